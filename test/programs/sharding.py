"""A partitioner of one's own, headers if the brokers have them, and the murmur2 of the Java client."""
import sys

from kafka import KafkaProducer
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.hashed import murmur2


def by_country(key_bytes, all_partitions, available_partitions):
    """Germany has a partition of its own."""
    assert available_partitions and set(available_partitions) <= set(all_partitions)
    if key_bytes is None:
        return all_partitions[0]
    if key_bytes.startswith(b'de-'):
        return all_partitions[-1]
    return all_partitions[0]


brokers, topic = sys.argv[1:]
producer = KafkaProducer(bootstrap_servers=brokers, partitioner=by_country,
                         key_serializer=lambda k: None if k is None else k.encode('utf-8'),
                         value_serializer=str.encode)
futures = [producer.send(topic, text, key) for key, text in (
    ('de-1', 'berlin'), ('fr-1', 'paris'), (None, 'atlantis'), ('de-2', 'hamburg'))]
print([future.get(timeout=30).partition for future in futures])
magic = producer._max_usable_produce_magic()
if magic >= 2:
    record = producer.send(topic, 'with headers', 'fr-2', headers=[('trace', b'\x00\x01')])
else:
    record = producer.send(topic, 'with headers', 'fr-2')
print(record.get(timeout=30).offset)
producer.close()

default = DefaultPartitioner()
print([default(key, list(range(1000)), []) for key in (b'a', b'123456789', b'')])
print(murmur2(b'a') & 0x7fffffff)
