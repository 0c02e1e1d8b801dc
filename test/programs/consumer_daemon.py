#!/usr/bin/env python
"""An endless consumer that a signal ends in the middle of its wait, as init scripts do."""
from __future__ import print_function

import signal
import sys

from kafka import KafkaClient, SimpleConsumer


class Shutdown(Exception):
    pass


def on_signal(number, frame):
    raise Shutdown(number)


def main(brokers, group, topic):
    client = KafkaClient(brokers)
    consumer = SimpleConsumer(client, group, topic, auto_commit_every_n=100,
                              auto_commit_every_t=30000)
    handled = []
    signal.signal(signal.SIGALRM, on_signal)
    try:
        for message in consumer:  # for ever
            handled.append(message.message.value.decode('utf-8'))
            signal.setitimer(signal.ITIMER_REAL, 1)
    except Shutdown as shutdown:
        print('ended by signal %d' % (shutdown.args[0] == signal.SIGALRM))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        consumer.stop()
        client.close()
    print(' '.join(sorted(handled)))


if __name__ == '__main__':
    main(*sys.argv[1:])
