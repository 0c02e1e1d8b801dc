#!/usr/bin/env python
"""Messages in a layout of our own, written and read with the helpers of kafka.util.

version int16 | name short string | payload int string | n int16 | n readings of int32
"""
from __future__ import print_function

import struct
import sys

from kafka import KafkaClient, SimpleConsumer, SimpleProducer
from kafka.common import BufferUnderflowError, TopicAndPartition
from kafka.util import (
    crc32, group_by_topic_and_partition, kafka_bytestring, read_int_string, read_short_string,
    relative_unpack, write_int_string, write_short_string)


def pack(name, payload, readings):
    return b''.join([
        struct.pack('>h', 2), write_short_string(kafka_bytestring(name)),
        write_int_string(payload),
        struct.pack('>h%di' % len(readings), len(readings), *readings)])


def unpack(data):
    (version,), cur = relative_unpack('>h', data, 0)
    name, cur = read_short_string(data, cur)
    payload, cur = read_int_string(data, cur)
    (count,), cur = relative_unpack('>h', data, cur)
    readings, cur = relative_unpack('>%di' % count, data, cur)
    return version, name, payload, readings


def main(brokers, topic):
    client = KafkaClient(brokers)
    SimpleProducer(client, random_start=False).send_messages(
        topic,
        pack(u'b\xfccher', b'\x00\x01', [1, -2, 3]),
        pack('empty', b'', []),
        pack('none', None, [7]),
        pack('cut', b'xyz', [1, 2])[:-3])
    consumer = SimpleConsumer(client, None, topic, auto_commit=False, iter_timeout=1)
    for m in consumer:
        try:
            version, name, payload, readings = unpack(m.message.value)
            print(version, name, payload, list(readings))
        except BufferUnderflowError as error:
            print('%s at offset %d' % (type(error).__name__, m.offset))
    grouped = group_by_topic_and_partition(
        [TopicAndPartition(topic, p) for p in client.get_partition_ids_for_topic(topic)])
    print(sorted(grouped[topic]), crc32(b'123456789') & 0xffffffff == 0xcbf43926)
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
