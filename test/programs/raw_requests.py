#!/usr/bin/env python
"""Speak to the broker by hand: produce and fetch requests made of bytes, no client in between."""
from __future__ import print_function

import sys

from kafka import KafkaConnection, create_message
from kafka.common import FetchRequest, OffsetRequest, ProduceRequest
from kafka.protocol import KafkaProtocol

CLIENT_ID = b'by-hand'


class Wire(object):
    def __init__(self, host, port):
        self.conn = KafkaConnection(host, port, timeout=10)
        self.correlation_id = 0

    def ask(self, encode, decode, *args, **kwargs):
        self.correlation_id += 1
        request = encode(CLIENT_ID, self.correlation_id, *args, **kwargs)
        self.conn.send(self.correlation_id, request)
        return list(decode(self.conn.recv(self.correlation_id)))


def main(broker, topic):
    host, port = broker.split(':')
    wire = Wire(host, int(port))
    topic = topic.encode('ascii')

    messages = [create_message(b'one'), create_message(b'two', b'k'), create_message(b'three')]
    acks = wire.ask(KafkaProtocol.encode_produce_request, KafkaProtocol.decode_produce_response,
                    [ProduceRequest(topic, 0, messages)], acks=1, timeout=2000)
    print('produced: %s' % [(a.partition, a.error, a.offset) for a in acks])

    ends = wire.ask(KafkaProtocol.encode_offset_request, KafkaProtocol.decode_offset_response,
                    [OffsetRequest(topic, p, -1, 1) for p in (0, 1)])
    print('ends: %s' % sorted((e.partition, e.error, e.offsets) for e in ends))

    answers = wire.ask(KafkaProtocol.encode_fetch_request, KafkaProtocol.decode_fetch_response,
                       [FetchRequest(topic, 0, 1, 4096)], max_wait_time=500, min_bytes=1)
    for answer in answers:
        print('fetched: partition %d, error %d, high water mark %d' % (
            answer.partition, answer.error, answer.highwaterMark))
        for offset, message in answer.messages:
            print('  %d %r %r' % (offset, message.key, message.value))
    wire.conn.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
