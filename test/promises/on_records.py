"""Promises about send(): what may be sent, where it goes, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any, List

from asking import Asking, is_now, outcome, promise, told

from kafka import KafkaProducer, TopicPartition


def _sent(producer: Any, *given: Any, **named: Any) -> Any:
    return outcome(producer.send(*given, **named))


# ------------------------------------------------------------ what may be sent


@promise('M 14')
def value_and_key(at: Asking) -> Any:
    producer = at.producer()
    sends = [
        ((b'value',), {}),
        ((b'value', b'key'), {}),
        ((), {'value': b'value'}),
        ((), {'key': b'key'}),
        ((None, b'key'), {}),
        ((b'', b''), {}),
        ((b'',), {}),
        ((bytearray(b'array'),), {}),
        ((b'v',), {'key': bytearray(b'array')}),
        ((memoryview(b'view'),), {}),
    ]
    return [told(_sent, producer, at.topic, *given, partition=0, **named) for given, named in sends]


@promise('M 14, L 5')
def neither_key_nor_value(at: Asking) -> Any:
    producer = at.producer()
    return [told(producer.send, at.topic), told(producer.send, at.topic, None, None)]


@promise('M 14, L 5')
def what_is_no_bytes(at: Asking) -> Any:
    producer = at.producer()
    wrong: List[Any] = ['text', 5, 5.0, {'a': 1}, [b'a'], object()]
    return [
        [told(producer.send, at.topic, each) for each in wrong],
        [told(producer.send, at.topic, b'v', each) for each in wrong],
    ]


@promise('L 5', since='2.2.15')
def names_of_topics(at: Asking) -> Any:
    producer = at.producer(max_block_ms=1500)
    wrong = ['', '.', '..', 'a b', 'ä', 'x' * 250, 'a/b', None, 5, b'bytes']
    return [told(_sent, producer, each, b'v') for each in wrong]


@promise('M 14, L 5')
def partitions_that_are_given(at: Asking) -> Any:
    producer = at.producer(max_block_ms=1500)
    return [told(_sent, producer, at.topic, b'v', partition=each) for each in (0, 1, 2, 3, -1, 99)]


@promise('M 14, L 5')
def times_of_records(at: Asking) -> Any:
    producer = at.producer()
    found = [
        producer.send(at.topic, b'v', partition=0, timestamp_ms=each).get(20).timestamp
        for each in (1, 9999999, 1700000000000)
    ]
    own = producer.send(at.topic, b'v', partition=0).get(20).timestamp
    return [found, is_now(own)]


@promise('L 5', release='0.11')
def headers(at: Asking) -> Any:
    producer = at.producer()
    sends: List[Any] = [
        None,
        [],
        [('name', b'value')],
        [('name', b'1'), ('name', b'2')],
        [('ä', b'')],
        [('', b'empty')],
    ]
    return [outcome(producer.send(at.topic, b'v', headers=each, partition=0)) for each in sends]


@promise('L 5', release='0.11')
def headers_that_are_none(at: Asking) -> Any:
    producer = at.producer()
    wrong: List[Any] = [
        'text',
        {'name': b'value'},
        [('name', 'text')],
        [(b'name', b'value')],
        [('name', 5)],
        [('name',)],
        [('name', b'value', b'more')],
        [['name', b'value']],
        ['name'],
        (('name', b'value'),),
    ]
    return [told(producer.send, at.topic, b'v', headers=each) for each in wrong]


@promise('L 5', release='0.11')
def the_order_of_arguments(at: Asking) -> Any:
    producer = at.producer()
    future = producer.send(at.topic, b'v', b'k', [('h', b'x')], 1, 12345)
    found = future.get(20)
    return [found.partition, found.timestamp, found.serialized_header_size]


# ------------------------------------------------------------ where it goes


@promise('M 13')
def keys_decide_partitions(at: Asking) -> Any:
    producer = at.producer()
    keys = [b'', b'a', b'123456789', 'ä'.encode(), b'\x00', b'\xff' * 7] + [
        b'key %d' % n for n in range(40)
    ]
    return [producer.send(at.topic, b'v', key).get(20).partition for key in keys]


@promise('M 13', until='3.0')
def what_a_partitioner_is_told(at: Asking) -> Any:
    calls: List[Any] = []

    def partitioner(key: Any, partitions: Any, available: Any) -> int:
        calls.append([key, list(partitions), sorted(available)])
        return 2

    producer = at.producer(partitioner=partitioner, key_serializer=str.encode)
    sent = [
        outcome(producer.send(at.topic, b'v', 'text')),
        outcome(producer.send(at.topic, b'v', 'text', partition=0)),
    ]
    return [sent, calls]


@promise('M 14, L 5', until='3.0')
def what_a_partitioner_may_return(at: Asking) -> Any:
    found: List[Any] = []
    for returned in (0, 2):
        producer = at.producer(partitioner=lambda *given, it=returned: it)
        found.append(told(_sent, producer, at.topic, b'v', b'k'))
    return found


@promise('L 5', until='3.0')
def a_partitioner_that_raises(at: Asking) -> Any:
    def partitioner(*given: Any) -> int:
        raise KeyError('mine')

    producer = at.producer(partitioner=partitioner)
    return told(producer.send, at.topic, b'v', b'k')


@promise('L 11', since='3.0.12')
def partitioners_of_3_0(at: Asking) -> Any:
    from kafka.partitioner import Partitioner

    calls: List[Any] = []

    class Mine(Partitioner):
        def partition(
            self, topic: Any, key: Any, skey: Any, value: Any, svalue: Any, cluster: Any
        ) -> int:
            found = cluster.partitions_for_topic(topic)
            calls.append([topic == at.topic, key, skey, value, svalue, sorted(found)])
            return 1

    producer = at.producer(partitioner=Mine(), value_serializer=str.encode)
    return [outcome(producer.send(at.topic, 'value', b'k')), calls]


@promise('M 14')
def partitions_of_topics(at: Asking) -> Any:
    producer = at.producer()
    return [producer.partitions_for(at.topic), producer.partitions_for(at.other('new'))]


# ------------------------------------------------------------ serializers


@promise('M 14')
def serializers_are_called_with_everything(at: Asking) -> Any:
    calls: List[Any] = []

    def serializer(name: str) -> Any:
        def serialize(data: Any) -> Any:
            calls.append([name, data])
            return None if data is None else str(data).encode()

        return serialize

    producer = at.producer(key_serializer=serializer('key'), value_serializer=serializer('value'))
    sent = [
        outcome(producer.send(at.topic, 'text', 5, partition=0)),
        outcome(producer.send(at.topic, {'a': 1}, partition=0)),
        outcome(producer.send(at.topic, key='tombstone', partition=0)),
    ]
    return [sent, sorted(calls, key=repr)]


@promise('M 14, L 5')
def serializers_that_raise(at: Asking) -> Any:
    producer = at.producer(value_serializer=lambda value: json.dumps(value).encode())
    plain = at.producer(key_serializer=str.encode)
    return [
        told(producer.send, at.topic, object()),
        told(plain.send, at.topic, b'v', 5),
        told(lambda: outcome(plain.send(at.topic, b'v', partition=0))),
    ]


@promise('L 11')
def serializers_with_a_method(at: Asking) -> Any:
    from kafka.serializer import Serializer

    calls: List[Any] = []

    class Mine(Serializer):
        def serialize(self, topic: Any, *more: Any) -> Any:
            calls.append([topic == at.topic, more[-1]])
            return more[-1].encode()

        def close(self) -> None:
            calls.append('closed')

    producer = at.producer(value_serializer=Mine())
    sent = outcome(producer.send(at.topic, 'text', partition=0))
    producer.close()
    return [sent, calls]


@promise('M 14, L 5')
def a_serializer_that_makes_text(at: Asking) -> Any:
    producer = at.producer(value_serializer=json.dumps)
    return told(producer.send, at.topic, {'a': 1})


# ------------------------------------------------------------ sizes, order, acknowledgements


@promise('L 5')
def too_large_for_max_request_size(at: Asking) -> Any:
    producer = at.producer(max_request_size=2000)
    found = told(lambda: outcome(producer.send(at.topic, b'x' * 3000, partition=0)))
    return [found, outcome(producer.send(at.topic, b'small', partition=0))]


@promise('L 5', since='3.0.12', release='0.11')
def many_in_order(at: Asking) -> Any:
    producer = at.producer(batch_size=1024, linger_ms=5)
    futures = [producer.send(at.topic, b'%d' % n, partition=0) for n in range(500)]
    producer.flush(20)
    return [future.get(0).offset for future in futures]


@promise('M 14')
def acks_of_every_kind(at: Asking) -> Any:
    found: List[Any] = []
    for acks in (1, -1, 'all'):
        producer = at.producer(acks=acks)
        found.append(outcome(producer.send(at.topic, b'v', partition=0)))
        producer.close()
    return found


@promise('M 14', until='3.0')
def no_acknowledgements(at: Asking) -> Any:
    producer = at.producer(acks=0)
    found = outcome(producer.send(at.topic, b'v', partition=0))
    time.sleep(0.5)
    return found


@promise('M 14')
def batches_of_one(at: Asking) -> Any:
    producer = at.producer(batch_size=0)
    futures = [producer.send(at.topic, b'%d' % n, partition=0) for n in range(20)]
    return [outcome(future)[0] for future in futures]


@promise('L 5', since='2.2.15')
def message_formats(at: Asking) -> Any:
    producer = at.producer()
    return producer.max_usable_produce_magic(producer.config['api_version'])


def _compressed(at: Asking, codec: str) -> Any:
    producer = at.producer(compression_type=codec, linger_ms=10)
    futures = [producer.send(at.topic, b'value %d' % n * 9, b'k', partition=0) for n in range(100)]
    producer.flush(20)
    return [outcome(future) for future in futures]


@promise('M 14, L 16')
def gzip(at: Asking) -> Any:
    return _compressed(at, 'gzip')


@promise('M 14, L 16')
def snappy(at: Asking) -> Any:
    return _compressed(at, 'snappy')


@promise('M 14, L 16')
def lz4(at: Asking) -> Any:
    return _compressed(at, 'lz4')


@promise('L 4', release='2.8')
def zstd(at: Asking) -> Any:
    return _compressed(at, 'zstd')


@promise('L 4')
def zstd_on_brokers_that_are_too_old(at: Asking) -> Any:
    return told(at.producer, api_version=(1, 0), compression_type='zstd')


@promise('M 14')
def threads_share_a_producer(at: Asking) -> Any:
    import threading

    producer = at.producer(linger_ms=2)
    found: List[Any] = []

    def work(number: int) -> None:
        for _ in range(50):
            found.append(producer.send(at.topic, b'v', b'k').get(20).topic == at.topic)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(40)
    return [len(found), all(found)]


@promise('M 14')
def a_topic_that_is_new(at: Asking) -> Any:
    producer = at.producer()
    began = time.monotonic()
    sent = outcome(producer.send(at.other('new'), b'v'))
    return [sent[1:], time.monotonic() - began < 20]


@promise('M 1')
def what_the_package_offers(at: Asking) -> Any:
    import kafka.producer

    return [
        KafkaProducer is kafka.producer.KafkaProducer,
        TopicPartition('t', 1) == ('t', 1),
        isinstance(kafka.__version__, str),
    ]
