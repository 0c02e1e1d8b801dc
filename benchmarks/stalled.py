"""
What a producer of kafka-evergreen holds in memory whose broker hangs: the process that fills it.

Owns nothing but that, so that little else is in its memory; producer.py starts it, lets the broker
hang when it has printed a line, and reads the next line: ``python stalled.py BROKERS TOPIC BYTES``.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError


def in_memory() -> int:
    """Return how many bytes of this process are in memory; Linux."""
    with open('/proc/self/statm') as numbers:
        return int(numbers.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def main() -> None:
    """Connect, say so, wait for a line; fill the memory until that times out, and say so."""
    address, topic, buffer_memory = sys.argv[1:]
    producer = KafkaProducer(
        bootstrap_servers=address, buffer_memory=int(buffer_memory), max_block_ms=1000
    )
    producer.send(topic, b'first').get(30)
    print(in_memory(), flush=True)
    sys.stdin.readline()
    number = 0
    try:
        while True:
            producer.send(topic, b'%-100d' % number)
            number += 1
    except KafkaTimeoutError:
        print(number, in_memory(), flush=True)
    producer.close(timeout=0)


if __name__ == '__main__':
    main()
