#!/usr/bin/env python
"""Read a partition by fetch requests and write it to a file, 1.x spelling."""
from __future__ import print_function

import argparse

from kafka.client import SimpleClient
from kafka.errors import OffsetOutOfRangeError
from kafka.structs import FetchRequestPayload, OffsetRequestPayload


def dump(client, topic, partition, start, out):
    offset, count, problems = start, 0, []
    end, = client.send_offset_request([OffsetRequestPayload(topic, partition, -1, 1)])
    while offset != end.offsets[0]:
        payload = FetchRequestPayload(topic, partition, offset, 8192)
        try:
            response, = client.send_fetch_request([payload], max_wait_time=500, min_bytes=1)
        except OffsetOutOfRangeError as error:
            problems.append(type(error).__name__)
            offset = 0
            continue
        for item in response.messages:
            if item.message.value is None or item.offset < offset:
                continue
            out.write(item.message.value + b'\n')
            offset = item.offset + 1
            count += 1
    return count, response.highwaterMark, problems


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('brokers')
    parser.add_argument('topic')
    parser.add_argument('out')
    parser.add_argument('--start', type=int, default=0)
    args = parser.parse_args()
    client = SimpleClient(args.brokers)
    with open(args.out, 'wb') as out:
        count, mark, problems = dump(client, args.topic, 0, args.start, out)
    print('%d messages below %d, problems: %s' % (count, mark, problems))
    with open(args.out, 'rb') as written:
        print(written.read().decode('utf-8'), end='')
    client.close()
