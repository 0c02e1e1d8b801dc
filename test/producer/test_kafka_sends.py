"""The quick ways give the same batches and futures as the slow ones."""

from __future__ import annotations

import threading

import pytest

from kafka.errors import KafkaError
from kafka.producer import kafka as face
from kafka.producer.bounded_lock import LockBusyError
from kafka.producer.future import FutureRecords, future_of
from kafka.producer.kafka import KafkaProducer
from kafka.producer.producer_batch import BatchState
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator


class Producer(KafkaProducer):
    """The quick ways over an accumulator whose batches a test takes; counts what is slow."""

    def __init__(self, partitions=3, batch_size=1000, buffer_memory=1 << 30):
        limits = AccumulatorConfig(batch_size=batch_size, buffer_memory=buffer_memory)
        self._accumulator = RecordAccumulator(limits, lambda: None, lambda done, timeout: done())
        self.topic = self._accumulator.topic('t')
        self._accumulator.update(self.topic, range(partitions), range(partitions))
        self._accumulator.fast['t'] = self.topic
        self._max_block = 1.0
        self.slow = 0

    def _begin_batch(self, queue, value, key):
        return self._send(queue.topic, value, key, None, None, None)

    def _send(self, topic, value, key, headers, partition, timestamp_ms):
        self.slow += 1
        if key is not None and partition is None:
            partition = self.topic.by_key[key].topic_partition.partition
        placed = self._accumulator.append(
            self.topic,
            partition,
            key,
            value,
            headers or (),
            timestamp_ms,
            face._wall(),
            face._now(),
        )
        if not self._accumulator.deferred.waiting:  # which nothing may overtake
            self._accumulator.fast['t'] = self.topic
        return future_of(*placed, -1 if key is None else len(key), len(value), -1)

    def _forget(self, topic, value, key):
        self.slow += 1
        if key is not None:
            self._send(topic, value, key, None, None, None)
            return
        try:
            now = face._now()
            assert self._accumulator.open_box(self.topic, face._wall(), now) is None
        except LockBusyError:  # where a core is not to be had for a moment
            self._send(topic, value, None, None, None, None)
        else:
            self.topic.put_in_box(value)

    def _put_many(self, queue, values, keys, headers, partition, timestamp, deadline):
        sizes = [len(value) for value in values]
        if keys is not None:
            sizes = [size + len(key) for size, key in zip(sizes, keys)]
        many = self._accumulator.prepare_many(queue, None, keys, values, sizes, (), 5)
        assert self._accumulator.append_many(many, face._now()) is None
        return FutureRecords(many.placed, sizes)

    def _send_many(self, *arguments):
        self.slow += 1
        return arguments

    def drain(self):
        """Return (key, value) of all records by partition, their batches stored at offset 100."""
        found = {}
        self._accumulator.begin_flush(face._now())
        for partition, queue in sorted(self.topic.queues.items()):
            while True:
                batch = self._accumulator.take(queue)
                if batch is None:
                    break
                batch.move(BatchState.IN_FLIGHT)
                keys = batch.keys or [None] * batch.record_count
                found.setdefault(partition, []).extend(zip(keys, batch.values))
                batch.succeed(100)
                self._accumulator.finish(batch)
        return found


def test_most_records_take_the_quick_way():
    producer = Producer(partitions=1)
    futures = [producer.send('t', b'%d' % n) for n in range(500)]
    assert producer.drain() == {0: [(None, b'%d' % n) for n in range(500)]}
    assert producer.slow < 20
    places = {(id(future.batch), future.get().offset) for future in futures}
    assert len(places) == 500
    metadata = futures[3].get()
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (-1, 1)
    assert metadata.timestamp > 10**12


def test_keys_decide_the_partition():
    producer = Producer()
    keys = [b'k%d' % (n % 20) for n in range(600)]
    futures = [producer.send('t', b'%d' % n, key) for n, key in enumerate(keys)]
    found = producer.drain()
    for partition, rows in found.items():
        assert rows == [
            (key, b'%d' % n)
            for n, key in enumerate(keys)
            if producer.topic.by_key[key].topic_partition.partition == partition
        ]
    assert producer.slow < 60 and sum(map(len, found.values())) == 600
    assert futures[7].get().serialized_key_size == len(keys[7])


def test_with_and_without_keys_in_one_batch():
    producer = Producer(partitions=1)
    for n in range(50):
        producer.send('t', b'%d' % n, b'k' if n % 3 == 0 else None)
    assert producer.drain() == {0: [(b'k' if n % 3 == 0 else None, b'%d' % n) for n in range(50)]}


@pytest.mark.parametrize(
    'arguments',
    [
        {'headers': [('h', b'x')]},
        {'partition': 1},
        {'timestamp_ms': 5},
        {'value': bytearray(b'x')},
        {'key': bytearray(b'k'), 'partition': 0},
        {'topic': 'other'},
    ],
)
def test_everything_unusual_takes_the_slow_way(arguments):
    producer = Producer(partitions=2)
    for _ in range(3):
        producer.send(**{'topic': 't', 'value': b'v', **arguments})
    assert producer.slow == 3


def test_milliseconds_are_told_apart(monkeypatch):
    producer = Producer(partitions=1)
    producer.send('t', b'v')
    for now in (2000.0001, 2000.0002, 2000.0041, 1999.0):
        monkeypatch.setattr(face, '_wall', lambda now=now: now)
        monkeypatch.setattr(producer.topic.batch, 'tick', min(producer.topic.batch.tick, now))
        future = producer.send('t', b'v')
    times = [future.batch.timestamp_of(n) for n in range(1, 5)]
    assert times == [2000000, 2000000, 2000004, 1999000]


def test_what_is_forgotten_is_stored_in_order():
    producer = Producer(partitions=1)
    for n in range(300):
        producer.send_and_forget('t', b'%d' % n)
        if n % 50 == 0:
            producer.send('t', b'with a future')
    rows = [value for _, value in producer.drain()[0]]
    assert [value for value in rows if value != b'with a future'] == [b'%d' % n for n in range(300)]
    assert rows[:3] == [b'0', b'with a future', b'1']
    assert rows[51:53] == [b'50', b'with a future']


def test_large_and_keyed_records_are_not_boxed():
    producer = Producer(partitions=1)
    producer.send_and_forget('t', b'a')
    for _ in range(3):
        producer.send_and_forget('t', b'x' * 1025)
    producer.send_and_forget('t', b'v', b'k')
    assert producer.slow >= 5


def test_many_take_one_way():
    producer = Producer(partitions=1)
    many = producer.send_many('t', [b'%d' % n for n in range(100)])
    assert producer.drain() == {0: [(None, b'%d' % n) for n in range(100)]}
    assert len({(id(f.batch), f.get().offset) for f in many}) == 100
    assert producer.send_many('t', ['text'])[1] == ['text'] and producer.slow == 1
    assert producer.send_many('t', [b'v'], [None])[2] == [None]
    assert producer.send_many('t', [b'v'], [b'k', b'l'])[2] == [b'k', b'l']


def test_threads_lose_nothing_and_keep_their_order():
    producer = Producer(partitions=2)
    taken = {0: [], 1: []}
    futures = [[] for _ in range(4)]
    is_over = threading.Event()

    def drain():
        while not is_over.is_set():
            for partition, rows in producer.drain().items():
                taken[partition] += rows

    def send(thread):
        for n in range(3000):
            value = b'%d-%d' % (thread, n)
            if thread == 3:
                producer.send_and_forget('t', value)
            else:
                futures[thread].append(producer.send('t', value, b'k%d' % thread))

    drainer = threading.Thread(target=drain)
    drainer.start()
    senders = [threading.Thread(target=send, args=(thread,)) for thread in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    is_over.set()
    drainer.join()
    for partition, rows in producer.drain().items():
        taken[partition] += rows
    for thread in range(4):
        found = [
            int(value.split(b'-')[1])
            for rows in taken.values()
            for _, value in rows
            if value.startswith(b'%d-' % thread)
        ]
        assert sorted(found) == list(range(3000))
        if thread < 3:
            assert found == list(range(3000))
    for some in futures:
        assert all(isinstance(future.get().offset, int) for future in some)
    assert producer._accumulator.memory.used == 0


def test_batches_that_fail_fail_all_their_futures():
    producer = Producer(partitions=1)
    futures = [producer.send('t', b'v') for _ in range(5)]
    batch = futures[0].batch
    producer._accumulator.take(producer.topic.queue(0))
    batch.fail(KafkaError('x'))
    assert all(future.exception == batch.error_of(0) for future in futures)
