"""No sending thread waits for ever for the accumulator's lock while it has one of the program.

A finalizer or a log handler may run in the thread that has the accumulator's lock, and wait for a
lock of the program, as that of a logging.Handler. Another thread has that and sends.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections import deque
from types import SimpleNamespace

import pytest

from kafka.errors import KafkaTimeoutError
from kafka.producer import kafka as face
from kafka.producer import record_accumulator
from kafka.producer.bounded_lock import bounded
from kafka.producer.buffer import AGAIN, Ticket
from kafka.producer.future import future_of
from kafka.producer.kafka import KafkaProducer
from kafka.producer.plain_state import PlainState
from kafka.producer.producer_batch import BatchState
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator

LONG = 30.0


class Producer(KafkaProducer):
    """The quick ways, and of the slow ones what puts records into batches."""

    def __init__(self, **limits):
        limits = {'buffer_memory': 1 << 40, 'delivery_timeout': 1e12, **limits}
        self._accumulator = RecordAccumulator(
            AccumulatorConfig(**limits), lambda: None, lambda done, timeout: done()
        )
        self.topic = self._accumulator.topic('t')
        self._accumulator.update(self.topic, [0, 1, 2], [0, 1, 2])
        self._accumulator.fast['t'] = self.topic
        self._max_block = 60.0

    def _begin_batch(self, queue, value, key):
        return self._send(queue.topic, value, key, None, None, None)

    def _send(self, topic, value, key, *more):
        placed = self._accumulator.append(
            self.topic, None, key, value, (), None, time.time(), time.monotonic()
        )
        if not self._accumulator.deferred.waiting:
            self._accumulator.fast['t'] = self.topic
        return future_of(*placed, -1, len(value), -1)

    def drain(self):
        """Take all batches; return the values in them."""
        accumulator, values = self._accumulator, []
        while True:
            plan = accumulator.ready(time.monotonic() + 1, lambda place: 1)
            if not plan.by_node:
                return values
            for queue in plan.by_node[1]:
                batch = accumulator.take(queue)
                if batch is not None:
                    values += batch.values
                    batch.move(BatchState.IN_FLIGHT)
                    batch.succeed()
                    accumulator.finish(batch)


@contextlib.contextmanager
def changing(accumulator):
    """Be in the middle of a change in another thread."""
    has_it, may_end = threading.Event(), threading.Event()

    def change():
        with accumulator.lock:
            accumulator.is_changing = True
            has_it.set()
            may_end.wait(LONG)
            accumulator.is_changing = False

    changer = threading.Thread(target=change)
    changer.start()
    has_it.wait(LONG)
    try:
        yield
    finally:
        may_end.set()
        changer.join()


@pytest.mark.parametrize('key', [None, b'k'])
def test_a_change_that_begins_in_the_middle_of_send_is_not_waited_for(monkeypatch, key):
    producer, others = Producer(), contextlib.ExitStack()
    producer.send('t', b'0', key)

    def wall():
        others.enter_context(changing(producer._accumulator))
        monkeypatch.undo()
        return time.time()

    monkeypatch.setattr(face, '_wall', wall)
    sends = threading.Thread(target=producer.send, args=('t', b'1', key))
    sends.start()
    sends.join(2.0)
    is_stuck = sends.is_alive()
    others.close()
    sends.join()
    assert not is_stuck
    assert sorted(producer.drain()) == [b'0', b'1']


@pytest.mark.parametrize('key', [None, b'k'])
def test_nothing_overtakes_a_deferred_record_because_another_thread_has_sent_too(key):
    """That thread is held up where it lets the quick ways send to the topic."""
    producer = Producer()
    accumulator = producer._accumulator
    accumulator.update(producer.topic, [0], [0])
    producer.send('t', b'0', key)

    class HeldUp(dict):
        def __setitem__(self, topic, queue):
            with changing(accumulator):
                producer.send('t', b'1', key)
            super().__setitem__(topic, queue)
            producer.send('t', b'2', key)

    accumulator.fast = HeldUp()
    another = SimpleNamespace(
        _accumulator=accumulator,
        _is_plain=True,
        _closed=False,
        _engine=SimpleNamespace(state=PlainState()),
    )
    KafkaProducer._allow_fast(another, 't', producer.topic)
    assert producer.drain() == [b'0', b'1', b'2']


def test_a_change_that_begins_in_the_middle_of_a_slow_send_is_not_waited_for():
    producer = Producer()
    accumulator, topic = producer._accumulator, producer.topic
    many = accumulator.prepare_many(topic, 0, None, [b'a', b'b'], [1, 1], (), 1)
    calls = {
        'append': lambda: accumulator.append(topic, 0, None, b'v', (), None, 1.0, 1.0),
        'append_many': lambda: accumulator.append_many(many, 1.0),
        'needs_batch': lambda: accumulator.needs_batch(topic, 0, 9),
        'watch_box': lambda: accumulator.watch_box(topic),
        'settle': accumulator.settle,
        'leave': lambda: accumulator.leave(Ticket(9)),
    }
    # The lock of another thread, whose change has not begun: nothing says that it will.
    for name, call in calls.items():
        with changing(accumulator):
            accumulator.is_changing = False
            caller = threading.Thread(target=call)
            caller.start()
            caller.join(2.0)
            assert not caller.is_alive(), name
    assert sorted(producer.drain()) == [b'a', b'b', b'v']


def test_the_sender_of_a_waiting_thread_does_not_wait_without_a_limit():
    """It may be that of a log handler which sends and waits, and has its lock meanwhile."""
    producer = Producer(batch_size=100)
    accumulator, topic = producer._accumulator, producer.topic
    queue = topic.queue(0)
    for number in range(4):
        accumulator.append(topic, 0, None, b'%d' % number * 80, (), None, 1.0, 1.0)
    first, second = accumulator.take(queue), accumulator.take(queue)
    first.move(BatchState.IN_FLIGHT)
    with changing(accumulator):
        assert accumulator.ready(1.0, lambda place: 1) == ({}, 1.0, [], False)
        assert accumulator.take(queue) is accumulator.take_alone(queue) is None
        first.succeed()
        accumulator.finish(first)
        accumulator.put_back(second)
        assert accumulator.held == [first, second] and not accumulator.is_empty()
    accumulator.settle()
    assert not accumulator.held and queue.in_flight == 0 and queue.waiting[0] is second
    assert producer.drain() == [b'%d' % number * 80 for number in (1, 2, 3)]
    assert accumulator.memory.used == 0 and accumulator.is_empty()


def test_calls_that_cannot_be_deferred_fail_after_some_time():
    producer = Producer()
    accumulator = producer._accumulator
    accumulator.patiently = bounded(accumulator.lock, 0.01, KafkaTimeoutError)
    with changing(accumulator):
        for call in (
            lambda: accumulator.update(producer.topic, [0], [0]),
            lambda: accumulator.records,
            lambda: accumulator.begin_flush(1.0),
            lambda: accumulator.sweep(1.0),
            accumulator.check_outside,
        ):
            with pytest.raises(KafkaTimeoutError):
                call()
        accumulator.close()
    assert accumulator.is_closed


def test_each_call_that_has_the_lock_says_so():
    """Else a finalizer that runs there and sends would change what is being looked at."""
    producer = Producer()
    accumulator, topic, found = producer._accumulator, producer.topic, []

    class Values(list):
        def __len__(self):
            if not found:
                found.append(accumulator.is_changing)
                producer.send('t', b'inside')
            return super().__len__()

    producer.send('t', b'v')
    (batch,) = accumulator.incomplete
    batch.values = Values(batch.values)
    assert accumulator.records == 1
    accumulator.avoid([], lambda place: found.append(accumulator.is_changing))
    assert found and all(found)
    assert accumulator.records == 2 and topic.partitions == (0, 1, 2)


def test_a_record_that_finds_no_room_waits_for_the_change_of_another_thread():
    producer = Producer(batch_size=100, buffer_memory=150)
    accumulator, topic = producer._accumulator, producer.topic
    accumulator.append(topic, 0, None, b'x' * 80, (), None, 1.0, 1.0)
    many = accumulator.prepare_many(topic, 0, None, [b'a' * 30, b'b' * 30], [30, 30], (), 1)
    with changing(accumulator):
        assert accumulator.append(topic, 0, None, b'x' * 80, (), None, 1.0, 1.0) is AGAIN
        assert accumulator.append_many(many, 1.0) is AGAIN
        assert sum(part.size for part in many.placed) == 1
    assert producer.drain() == [b'x' * 80, b'a' * 30]
    assert accumulator.append_many(many, 1.0) is None
    assert producer.drain() == [b'b' * 30]
    assert accumulator.memory.used == accumulator.deferred.size == 0


def test_what_is_deferred_is_not_counted_again_for_each_record(monkeypatch):
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', False)  # the test has the lock
    producer, looks = Producer(), []
    accumulator = producer._accumulator

    class Waiting(deque):
        def __iter__(self):
            looks.append(1)
            return super().__iter__()

    accumulator.deferred.waiting = accumulator.waiting_deferred = Waiting()
    many = accumulator.prepare_many(producer.topic, 0, None, [b'x'] * 99, [1] * 99, (), 1)
    with accumulator.lock:
        accumulator.is_changing = True
        accumulator.append_many(many, 1.0)
        accumulator.is_changing = False
    assert accumulator.deferred.size == 99 * (1 + accumulator.overhead) and not looks
    assert len(producer.drain()) == 99 and accumulator.deferred.size == 0


def test_a_lock_that_an_exception_kept_is_released_by_the_next_slow_call(monkeypatch):
    """Before Python 3.10 one may come between the body of a with statement and its end."""
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', True)
    producer = Producer()
    accumulator, topic = producer._accumulator, producer.topic
    for call in (
        lambda: accumulator.append(topic, 0, None, b'v', (), None, 1.0, 1.0),
        lambda: accumulator.open_box(topic, 1.0, 1.0),
        lambda: producer.send('t', b'w' * 20_000),
        accumulator.settle,
        accumulator.check_outside,
    ):
        for is_changing in (False, True):
            accumulator.lock.acquire()
            accumulator.is_changing = is_changing
            call()
            assert not accumulator.is_mine()
    assert len(producer.drain()) == 4 and not accumulator.deferred.waiting


def test_a_lock_that_a_call_further_out_has_is_kept(monkeypatch):
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', True)
    producer = Producer()
    accumulator, armed, found = producer._accumulator, [], []

    class Values(list):
        def __len__(self):
            if armed:
                armed.clear()
                producer.send('t', b'inside' * 5000)
                found.append(accumulator.is_mine() and len(accumulator.deferred.waiting))
            return super().__len__()

    for call in (
        lambda: producer.send('t', b'v'),
        lambda: producer.send('t', b'v', b'k'),
        lambda: accumulator.records,
    ):
        producer.send('t', b'v')
        producer.send('t', b'v', b'k')
        for batch in accumulator.incomplete:
            batch.values = Values(batch.values)
        armed.append(True)
        call()
        assert found.pop() == 1
        producer.drain()


class Cycle:
    def __init__(self, call):
        self.itself, self.call = self, call

    def __del__(self):
        self.call()


def test_finalizers_that_log_hang_nobody():
    """One thread sends what it logs, another leaves objects whose finalizers log."""
    producer, handler = Producer(), threading.RLock()  # that of a logging.Handler
    is_over, counts, taken = threading.Event(), [0, 0, 0], []

    def log():
        with handler:
            counts[2] += 1
            producer.send('t', b'log')

    def send_logged():
        while not is_over.is_set():
            log()
            counts[0] += 1

    def send():
        while not is_over.is_set():
            producer.send('t', b'v' * 50)
            counts[1] += 1
            if counts[1] % 3 == 0:
                Cycle(log)

    def drain():
        while not is_over.is_set():
            taken.extend(producer.drain())
            time.sleep(0.001)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(0.00001)
    gc.set_threshold(50)
    try:
        threads = [
            threading.Thread(target=each, daemon=True) for each in (send_logged, send, drain)
        ]
        for each in threads:
            each.start()
        time.sleep(1.5)
        is_over.set()
        for each in threads:
            each.join(5.0)
        assert not any(each.is_alive() for each in threads), 'send() hangs'
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    gc.collect()
    while not producer._accumulator.is_empty():
        taken += producer.drain()
    assert len(taken) == counts[1] + counts[2]
    assert producer._accumulator.memory.used == 0
