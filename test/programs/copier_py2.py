#!/usr/bin/env python2
"""Copy numbers from one topic to another, doubled. Exit code: how many were no numbers."""
import ConfigParser
import sys
import urllib2
from itertools import imap

from kafka import KafkaClient, KeyedProducer, SimpleConsumer


def double(message):
    value = message.message.value
    return repr(int(value) * 2L).rstrip('L').encode('ascii')


def main(path):
    config = ConfigParser.RawConfigParser()
    config.read(path)
    settings = dict(config.items('copier'))
    if not (settings.has_key('source') and settings['source'] <> settings['target']):
        raise SystemExit, 'a source and another target, please'
    client = KafkaClient(settings['brokers'])
    consumer = SimpleConsumer(client, None, settings['source'], auto_commit=False, iter_timeout=1)
    messages = list(consumer)
    numbers = filter(lambda m: m.message.value.isdigit(), messages)
    producer = KeyedProducer(client, async=False)
    for index, value in zip(xrange(len(numbers)), imap(double, numbers)):
        print index,
        producer.send_messages(settings['target'], 'n%d' % index, value)
    print
    print `len(numbers)`, 'copied', urllib2.quote('a b')
    consumer.stop()
    client.close()
    return len(messages) - len(numbers)


if __name__ == '__main__':
    try:
        code = main(sys.argv[1])
    except (IOError, OSError), (errno, text):
        print >>sys.stderr, errno, text
        code = 99
    exec 'code += 0'
    sys.exit(code)
