#!/usr/bin/env python
"""The word count that every tutorial has: lines in, counts out."""
import collections
import re
import sys

from kafka import KafkaClient, KeyedProducer, SimpleConsumer
from kafka.partitioner import Murmur2Partitioner


def words(consumer):
    for message in consumer:
        for word in re.findall(r'\w+', message.message.value.decode('utf-8').lower()):
            yield word


def main():
    if len(sys.argv) < 4:
        print('usage: word_count.py BROKERS LINES COUNTS')
        return 1
    kafka = KafkaClient(sys.argv[1])
    consumer = SimpleConsumer(kafka, b'word-count', sys.argv[2], auto_commit=False,
                              iter_timeout=1)
    counts = collections.Counter(words(consumer))
    producer = KeyedProducer(kafka, partitioner=Murmur2Partitioner)
    for word, count in counts.most_common():
        producer.send_messages(sys.argv[3], word.encode('utf-8'), str(count).encode('ascii'))
    print('%d words, %d different' % (sum(counts.values()), len(counts)))
    kafka.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())
