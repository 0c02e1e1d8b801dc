#!/usr/bin/env python
"""Send the same lines with every codec and level, and compare what the log says it holds."""
from __future__ import print_function

import sys

from kafka import KafkaClient, SimpleProducer
from kafka.codec import has_snappy
from kafka.common import OffsetRequest, UnsupportedCodecError
from kafka.protocol import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY

MATRIX = [
    ('none', CODEC_NONE, None),
    ('gzip', CODEC_GZIP, None),
    ('gzip', CODEC_GZIP, 1),
    ('gzip', CODEC_GZIP, 9),
    ('snappy', CODEC_SNAPPY, None),
]


def end(client, topic):
    response, = client.send_offset_request([OffsetRequest(topic, 0, -1, 1)])
    return response.offsets[0]


def main(brokers, topic):
    client = KafkaClient(brokers)
    lines = [('line %03d ' % i).encode('ascii') * 4 for i in range(25)]
    for name, codec, level in MATRIX:
        if codec == CODEC_SNAPPY and not has_snappy():
            continue
        producer = SimpleProducer(client, codec=codec, codec_compresslevel=level,
                                  random_start=False)
        response, = producer.send_messages(topic, *lines)
        print('%-6s level %-4s offset %3d end %3d' % (
            name, level, response.offset, end(client, topic.encode('ascii'))))
    try:
        SimpleProducer(client, codec=7)
    except UnsupportedCodecError as error:
        print('refused: %s' % type(error).__name__)
    client.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
