#!/usr/bin/env python2.7
# -*- coding: utf-8 -*-
"""Read a log of sensors and send what is plausible."""
import sys
from StringIO import StringIO

from kafka import KafkaClient, SimpleProducer
from kafka.common import KafkaError

LOG = u"""k\xfcche;21
bad;nine
cellar;11
attic;400
"""


def readings(lines):
    for line in lines:
        name, value = line.strip().split(u';')
        try:
            yield name, int(value)
        except ValueError, error:
            print >>sys.stderr, 'skipped %s: %s' % (name, type(error).__name__)


def main():
    client = KafkaClient(sys.argv[1])
    producer = SimpleProducer(client, async=False)
    counts = {'sent': 0, 'odd': 0}
    for name, value in readings(StringIO(LOG)):
        if not isinstance(name, unicode) or not -40 <= value < 100:
            counts['odd'] += 1
            continue
        try:
            producer.send_messages(sys.argv[2], (u'%s=%d' % (name, value)).encode('utf-8'))
        except KafkaError, e:
            raise SystemExit('cannot send: %r' % e)
        counts['sent'] += 1
    for key in sorted(counts.keys()):
        if counts.has_key(key):
            print key, counts[key]
    print 'done', len(counts)
    client.close()


if __name__ == '__main__':
    main()
