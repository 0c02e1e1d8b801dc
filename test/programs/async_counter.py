#!/usr/bin/env python
"""Count things and send the numbers in the background; the script ends when its work ends.

The settings of the producer come out of an ini file, the flag for the background included.
"""
try:
    import configparser
except ImportError:
    import ConfigParser as configparser
import sys

from kafka import KafkaClient, SimpleProducer


def producer_from(config, client):
    options = {
        'async': config.getboolean('producer', 'async'),
        'batch_send_every_n': config.getint('producer', 'batch_size'),
        'batch_send_every_t': config.getint('producer', 'batch_seconds'),
        'random_start': False,
    }
    return SimpleProducer(client, **options)


def main(path):
    config = configparser.RawConfigParser()
    config.read(path)
    client = KafkaClient(config.get('kafka', 'brokers'))
    topic = config.get('kafka', 'topic')
    producer = producer_from(config, client)
    answers = []
    for number in range(config.getint('job', 'count')):
        answers.append(producer.send_messages(topic, b'n=%d' % number))
    print('answers: %d, all empty: %s' % (len(answers), not any(answers)))


if __name__ == '__main__':
    main(sys.argv[1])
    # and that's all: whatever waits in the queue is sent on the way out
