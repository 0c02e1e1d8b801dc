#!/usr/bin/env python
"""Archive small events in compressed sets, packed by hand."""
from __future__ import print_function

import sys

from kafka import KafkaClient, create_gzip_message, create_message, create_snappy_message
from kafka.common import ProduceRequest
from kafka.protocol import ATTRIBUTE_CODEC_MASK, CODEC_GZIP, create_message_set


def events(kind, count=5):
    return [('%s %d' % (kind, i)).encode('ascii') for i in range(count)]


def main(brokers, topic):
    client = KafkaClient(brokers)
    topic = topic.encode('ascii')
    sets = [
        [create_gzip_message([(e, None) for e in events('gzip')])],
        [create_snappy_message([(e, b's') for e in events('snappy')])],
        create_message_set([(e, b'k') for e in events('set')], CODEC_GZIP, b'outer', 6),
        create_message_set([(e, None) for e in events('plain', 2)]),
        [create_message(b'first of two'), create_message(b'second of two', b'with a key')],
    ]
    for messages in sets:
        codecs = [m.attributes & ATTRIBUTE_CODEC_MASK for m in messages]
        response, = client.send_produce_request([ProduceRequest(topic, 1, messages)])
        print('codecs %s: written at %d' % (codecs, response.offset))
    # two partitions in one request; the answers come in the order of the payloads
    responses = client.send_produce_request(
        [ProduceRequest(topic, 1, [create_message(b'last')]),
         ProduceRequest(topic, 0, [create_gzip_message([(b'lone', None)], compresslevel=1)])],
        acks=-1, timeout=3000)
    print(['%d/%d' % (r.partition, r.offset) for r in responses])
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
