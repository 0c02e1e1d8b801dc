"""Ctrl-C at any line of what puts a record into a batch harms no other record."""

from __future__ import annotations

import linecache
import sys

import pytest

from kafka.producer.kafka import KafkaProducer
from kafka.producer.producer_batch import BatchState
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator

HEADERS = (('h', b'1'),)


class Producer(KafkaProducer):
    """The quick ways over an accumulator; the slow one puts the record in like the real one."""

    def __init__(self):
        self._accumulator = RecordAccumulator(
            AccumulatorConfig(), lambda: None, lambda done, timeout: done()
        )
        self.topic = self._accumulator.topic('t')
        self._accumulator.update(self.topic, [0], [0])
        self._accumulator.fast['t'] = self.topic
        self._max_block = 1.0

    def _begin_batch(self, queue, value, key):
        return self._send(queue.topic, value, key, None, None, None)

    def _send(self, topic, value, key, headers, partition, timestamp_ms):
        return self._accumulator.append(
            self.topic, partition, key, value, headers or (), timestamp_ms, 1000.0, 1.0
        )

    def many(self, values, keys):
        many = self._accumulator.prepare_many(
            self.topic, 0, keys, values, [10] * len(values), HEADERS, 1000
        )
        self._accumulator.append_many(many, 1.0)


# What is interrupted.
CALLS = {
    'quick': lambda producer: producer.send('t', b'torn'),
    'quick with a key': lambda producer: producer.send('t', b'torn', b'torn key'),
    'with headers': lambda producer: producer.send('t', b'torn', b'torn key', HEADERS, 0),
    'many': lambda producer: producer.many([b'torn'], [b'torn key']),
}


def interrupted(call, producer, number):
    """Make a call; raise KeyboardInterrupt before a line of it. Tell whether it came so far."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if '/kafka/producer/' not in frame.f_code.co_filename:
            return None
        # Python runs no handler between the end of a block and what ``with`` does then.
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == 'line' and not code.lstrip().startswith('with '):
            seen += 1
            if seen == number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(producer)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def records_of(producer):
    """Take all batches; return the records that are not the torn one."""
    found = []
    queue = producer.topic.queue(0)
    while producer._accumulator.peek(queue) is not None:
        batch = producer._accumulator.take(queue)
        if batch is None:
            continue
        batch.move(BatchState.IN_FLIGHT)
        assert batch.encode(2)
        count = batch.record_count
        keys, headers = batch.keys or [None] * count, batch.headers or [()] * count
        assert len(keys) == len(headers) == count
        found += zip(batch.values, keys, map(tuple, headers))
        batch.succeed(0)
        producer._accumulator.finish(batch)
    return [record for record in found if record[0] != b'torn'], found


@pytest.mark.parametrize('before', [[], [None], [b'k']], ids=['first', 'plain', 'keyed'])
@pytest.mark.parametrize('call', CALLS.values(), ids=list(CALLS))
def test_the_records_around_one_that_was_torn_are_whole(call, before):
    number, was_torn = 0, True
    while was_torn:
        number += 1
        producer = Producer()
        expected = []
        for key in before:
            producer.send('t', b'before', key)
            expected.append((b'before', key, ()))
        was_torn = interrupted(call, producer, number)
        for value, key, headers in (
            (b'1', None, ()),
            (b'2', b'two', ()),
            (b'3', None, HEADERS),
            (b'4', None, ()),
        ):
            producer.send('t', value, key, headers or None)
            expected.append((value, key, headers))
        others, found = records_of(producer)
        assert others == expected, number
        torn = [record for record in found if record[0] == b'torn']
        assert len(torn) <= 1
        assert all(key in (None, b'torn key') for _, key, _ in torn)
        if torn and call is not CALLS['quick']:
            assert torn[0][1] == b'torn key'
        assert producer._accumulator.is_empty()
    assert number > 10
