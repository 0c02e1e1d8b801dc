"""Promises about futures, callbacks and metadata of records."""

from __future__ import annotations

import threading
import time
from typing import Any, List

from asking import Asking, becomes, promise, raised, told

from kafka import TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future


@promise('M 14, L 2', release='0.10')
def what_metadata_says(at: Asking) -> Any:
    found = at.producer().send(at.topic, b'value', b'key', partition=1, timestamp_ms=12345).get(20)
    return [
        found.topic == at.topic,
        found.partition,
        found.topic_partition == TopicPartition(at.topic, 1),
        found.offset,
        found.timestamp,
        found.checksum is None or isinstance(found.checksum, int),
        found.serialized_key_size,
        found.serialized_value_size,
        isinstance(found, tuple),
        found[0] == at.topic,
        found[1],
        found[3],
        type(found).__name__,
    ]


@promise('L 2', release='0.11')
def sizes_that_metadata_says(at: Asking) -> Any:
    producer = at.producer()
    found = []
    for value, key, headers in (
        (b'value', None, None),
        (None, b'key', None),
        (b'', b'', []),
        (b'v', None, [('ä', b'12'), ('b', b'')]),
    ):
        told_of = producer.send(at.topic, value, key, headers=headers, partition=0).get(20)
        found.append(
            [
                told_of.serialized_key_size,
                told_of.serialized_value_size,
                told_of.serialized_header_size,
                told_of.checksum,
            ]
        )
    return found


@promise('M 14')
def a_future_that_is_done(at: Asking) -> Any:
    future = at.producer().send(at.topic, b'v', partition=0)
    found = future.get(timeout=20)
    return [
        isinstance(future, Future),
        type(future).__name__,
        future.is_done,
        future.succeeded(),
        future.failed(),
        future.retriable(),
        future.exception,
        future.value == found,
        future.get() == found,
        future.get(0) == found,
    ]


@promise('M 14, L 5')
def a_future_that_is_not_done(at: Asking) -> Any:
    producer = at.producer(linger_ms=3000)
    producer.partitions_for(at.topic)
    future = producer.send(at.topic, b'v', partition=0)
    before = [future.is_done, future.succeeded(), future.failed(), future.value, future.exception]
    began = time.monotonic()
    late = [told(future.get, 0.1), told(future.get, timeout=0.1), told(future.get, 0)]
    in_time = time.monotonic() - began < 2.5
    return [before, late, in_time, future.get(20).offset]


@promise('M 14, L 5')
def a_future_that_failed(at: Asking) -> Any:
    producer = at.producer(linger_ms=60000)
    producer.partitions_for(at.topic)
    future = producer.send(at.topic, b'v', partition=0)
    told(producer.close, timeout=0)
    errors = []
    for _ in range(2):
        try:
            future.get(5)
        except Exception as error:  # compared below
            errors.append(error)
    same = [each is future.exception for each in errors]
    return [same, future.is_done, future.succeeded(), future.failed(), future.value]


@promise('M 4, M 14')
def callbacks(at: Asking) -> Any:
    calls: List[Any] = []
    future = at.producer().send(at.topic, b'v', partition=0)
    returned = future.add_callback(lambda found: calls.append(['first', found.offset]))
    future.add_callback(lambda *given, **named: calls.append([given[:2], sorted(named)]), 1, 2, x=3)
    future.add_errback(lambda error: calls.append('never'))
    future.add_both(lambda found: calls.append(['both', found.offset]))
    future.get(20)
    is_complete = becomes(lambda: len(calls) == 3)
    future.add_callback(lambda found: calls.append(['late', found.offset]))
    return [returned is future, is_complete, calls]


@promise('M 4, M 14')
def callbacks_that_raise(at: Asking) -> Any:
    calls: List[Any] = []

    def raising(found: Any) -> None:
        calls.append('raises')
        raise ValueError('mine')

    producer = at.producer()
    future = producer.send(at.topic, b'v', partition=0)
    future.add_callback(raising)
    future.add_callback(lambda found: calls.append('next'))
    found = future.get(20)
    is_complete = becomes(lambda: len(calls) == 2)
    after = producer.send(at.topic, b'v', partition=0).get(20)
    return [found.offset, is_complete, calls, after.offset]


@promise('M 4, M 14')
def errbacks(at: Asking) -> Any:
    calls: List[Any] = []
    producer = at.producer(linger_ms=60000)
    producer.partitions_for(at.topic)
    future = producer.send(at.topic, b'v', partition=0)
    future.add_callback(lambda found: calls.append('never'))
    future.add_errback(lambda *given: calls.append([given[0], isinstance(given[1], KafkaError)]), 1)
    future.add_both(lambda error: calls.append(isinstance(error, KafkaError)))
    told(producer.close, timeout=0)
    return [becomes(lambda: len(calls) == 2), calls]


@promise('L 5')
def callbacks_may_send(at: Asking) -> Any:
    done = threading.Event()
    later: List[Any] = []
    producer = at.producer()

    def again(found: Any) -> None:
        later.append(producer.send(at.topic, b'again', partition=1))
        done.set()

    producer.send(at.topic, b'first', partition=0).add_callback(again)
    return [done.wait(20), later[0].get(20).partition]


@promise('M 4')
def a_future_of_ones_own(at: Asking) -> Any:
    calls: List[Any] = []
    future: Any = Future()
    before = [future.is_done, future.value, future.exception, future.succeeded(), future.failed()]
    future.add_callback(lambda value: calls.append(value))
    future.add_both(lambda value: calls.append(value))
    other: Any = Future()
    future.chain(other)
    returned = future.success(5) is future
    return [
        before,
        returned,
        calls,
        other.value,
        future.retriable(),
        told(future.success, 5),
        told(future.failure, ValueError()),
    ]


@promise('M 4')
def a_future_of_ones_own_that_fails(at: Asking) -> Any:
    calls: List[Any] = []
    future: Any = Future()
    future.add_errback(lambda *given: calls.append([given[0], type(given[1]).__name__]), 'x')
    future.failure(KafkaTimeoutError)
    wrong: Any = Future()
    return [
        calls,
        future.failed(),
        future.succeeded(),
        raised(future.exception),
        told(wrong.failure, 'text'),
    ]
