"""Synchronous sends with all the error handling somebody once needed (kafka-python 1.4)."""
import sys
from time import time

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, NoBrokersAvailable
from kafka.producer.future import RecordMetadata

brokers, topic, dead = sys.argv[1:]


def write(producer, **kwargs):
    try:
        return producer.send(topic, **kwargs).get(timeout=30)
    except MessageSizeTooLargeError:
        return 'too large'
    except KafkaTimeoutError as e:
        return 'timed out'
    except KafkaError as e:
        return 'failed: %r' % e


try:
    KafkaProducer(bootstrap_servers=[dead], api_version_auto_timeout_ms=200)
except NoBrokersAvailable as e:
    print('no brokers: %s' % (dead in str(e)))

producer = KafkaProducer(bootstrap_servers=brokers.split(','), max_request_size=5000,
                         batch_size=0, max_in_flight_requests_per_connection=1, retries=3)
print(sorted(producer.partitions_for(topic)))

meta = write(producer, value=b'one', partition=1)
print('%s %d %d' % (isinstance(meta, RecordMetadata), meta.partition, meta.offset))
print(meta.topic_partition == TopicPartition(topic, 1))
print(write(producer, value=b'x' * 6000, partition=1))
meta = write(producer, key=b'gone', partition=1)  # a tombstone
print('%d %s' % (meta.offset, meta.serialized_value_size))
meta = write(producer, value=b'old', key=b'k', partition=1, timestamp_ms=1400000000000)
print('%d %d %d' % (meta.offset, meta.serialized_key_size, meta.serialized_value_size))

for bad in (dict(value=u'text'), dict(), dict(value=b'v', partition=99), dict(value=b'v', partition=-1)):
    try:
        producer.send(topic, **bad)
        print('accepted %r' % bad)
    except AssertionError as e:
        print('refused')

begin = time()
stuck = KafkaProducer(bootstrap_servers=[dead], api_version=(0, 9), max_block_ms=300)
try:
    stuck.send(topic, b'nobody reads this')
except KafkaTimeoutError:
    print('no metadata, %s' % (0.2 < time() - begin < 20))
stuck.close(timeout=1)

producer.close()
after = None
try:
    after = producer.send(topic, b'too late')
    after.get(timeout=5)
except (AssertionError, KafkaError) as e:
    print('closed')
