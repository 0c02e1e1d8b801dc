#!/usr/bin/env python
"""Send in the background and end at once, as in the first example of every README."""
import sys

from kafka import KafkaClient, SimpleProducer

kafka = KafkaClient(sys.argv[1])
producer = SimpleProducer(kafka, async=True)
for word in sys.argv[3:]:
    producer.send_messages(sys.argv[2].encode('ascii'), word.encode('ascii'))
print(producer, __file__.rsplit('/', 1)[-1], __name__, len(sys.argv))
