"""Sends that come from inside a call of the same producer, in the thread that holds its lock.

The collector runs finalizers wherever an object is made, and signals' handlers run between any two
steps: what they send is placed after the change that is under way, in order, and what would wait
for itself is refused at once.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import sys
import threading
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.producer import record_accumulator
from kafka.producer.bounded_lock import bounded
from kafka.testing import Cluster
from test.raising import PACKAGE
from test.stored import stored

LONG = 60.0


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture(autouse=True)
def _lock_of_the_test(monkeypatch):
    """Before Python 3.10 a lock that no call of the producer has is released: see is_inside()."""
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', False)


@pytest.fixture
def producer(cluster):
    with contextlib.ExitStack() as ending:
        made = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        ending.callback(made.close, 30)
        made.partitions_for('t')
        yield made


@contextlib.contextmanager
def inside(producer):
    """Be in the middle of a change, as a finalizer or a signal's handler may be."""
    accumulator = producer._accumulator
    with accumulator.lock:
        accumulator.is_changing = True
        yield
        accumulator.is_changing = False


SENDS = {
    'send': lambda producer, value: producer.send('t', value),
    'a key': lambda producer, value: producer.send('t', value, b'k'),
    'headers': lambda producer, value: producer.send('t', value, headers=[('h', b'1')]),
    'a partition': lambda producer, value: producer.send('t', value, partition=0),
    'many': lambda producer, value: producer.send_many('t', [value])[0],
    'many with keys': lambda producer, value: producer.send_many('t', [value], [b'k'])[0],
}


@pytest.mark.parametrize('is_warm', [False, True])
@pytest.mark.parametrize('send', SENDS.values(), ids=list(SENDS))
def test_what_is_sent_from_inside_is_stored_in_order(cluster, producer, send, is_warm):
    if is_warm:
        producer.send('t', b'0')
    told = []
    with inside(producer):
        first = send(producer, b'1')
        second = send(producer, b'2')
        second.add_callback(told.append)
        assert not first.is_done
    third = producer.send('t', b'3')
    assert third.get(LONG).offset == first.get(LONG).offset + 2
    assert first.value.timestamp > 10**12 and first.is_done and first.succeeded()
    producer.flush(LONG)
    assert [metadata.offset for metadata in told] == [second.get(LONG).offset]
    assert stored(cluster)[-3:] == [b'1', b'2', b'3']
    assert producer._accumulator.memory.used == 0


def test_a_list_that_is_sent_from_inside_is_done_as_a_whole(producer):
    with inside(producer):
        futures = producer.send_many('t', [b'1', b'2', b'3'])
    assert [each.offset for each in futures.get(LONG)] == [0, 1, 2]
    assert futures.is_done and futures.exception() is None


def test_what_is_sent_from_inside_without_a_future_is_stored(cluster, producer):
    with inside(producer):
        for number in range(3):
            producer.send_and_forget('t', b'%d' % number)
    producer.flush(LONG)
    assert stored(cluster) == [b'0', b'1', b'2']


def test_what_is_sent_from_inside_needs_no_other_call_to_be_stored(cluster, producer):
    with inside(producer):
        future = producer.send('t', b'1')
    done = threading.Event()
    future.add_callback(lambda _: done.set())
    assert done.wait(LONG)


@pytest.mark.parametrize(
    'call',
    [
        lambda producer, future: producer.flush(30),
        lambda producer, future: producer.close(30),
        lambda producer, future: future.get(30),
        lambda producer, future: producer.partitions_for('other'),
        lambda producer, future: producer.partitions_for('t'),
        lambda producer, future: producer.send('other', b'v'),
        lambda producer, future: len(producer),
        lambda producer, future: producer.purge(),
        lambda producer, future: producer.send('t', b'v').get(30),
    ],
)
def test_what_would_wait_for_itself_is_refused_at_once(producer, call):
    future = producer.send('t', b'1')
    future.get(LONG)
    with producer._accumulator.lock:  # nothing is stored meanwhile
        waits = producer.send('t', b'2')
        began = time.monotonic()
        with inside(producer), pytest.raises(IllegalStateError, match='they would wait for it'):
            call(producer, waits)
        assert time.monotonic() - began < 0.5
    assert waits.get(LONG).offset == 1


def test_a_callback_cannot_wait_for_the_partitions_of_a_topic(producer):
    refused = []

    def send(metadata):
        with pytest.raises(IllegalStateError, match=r'partitions of topic u are known') as raised:
            producer.send('u', b'v')
        refused.append(raised.value)

    producer.send('t', b'v').add_callback(send).get(LONG)
    producer.flush(LONG)
    assert len(refused) == 1


def test_what_is_sent_from_inside_never_waits_for_memory(cluster):
    with contextlib.ExitStack() as ending:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap, buffer_memory=5000, batch_size=1000
        )
        ending.callback(producer.close, 30)
        producer.partitions_for('t')
        with inside(producer):
            futures = [producer.send('t', b'v' * 900) for _ in range(5)]
            with pytest.raises(KafkaTimeoutError, match='buffer_memory'):
                producer.send('t', b'v' * 900)
        assert [future.get(LONG).offset for future in futures] == [0, 1, 2, 3, 4]
        assert producer._accumulator.memory.used == 0


def test_what_is_sent_from_inside_is_refused_once_the_producer_is_closed(producer):
    producer.close(30)
    with inside(producer), pytest.raises(IllegalStateError, match='closed'):
        producer.send('t', b'v')


def test_a_lock_of_the_program_that_a_finalizer_waits_for_hangs_nobody(cluster, producer):
    """One thread is in send() and waits for that lock; the other has it and sends."""
    lock, is_inside = threading.Lock(), threading.Event()

    def finalizer():
        with inside(producer):
            is_inside.set()
            assert lock.acquire(timeout=LONG)

    with lock:
        waits = threading.Thread(target=finalizer)
        waits.start()
        is_inside.wait(LONG)
        began = time.monotonic()
        futures = [producer.send('t', b'1'), producer.send('t', b'2', b'k')]
        producer.send_and_forget('t', b'3')
        assert time.monotonic() - began < 5
    waits.join()
    producer.flush(LONG)
    assert [future.get(0).offset for future in futures] == [0, 1]
    assert stored(cluster) == [b'1', b'2', b'3']


def test_a_flush_does_not_wait_for_ever_for_a_thread_that_waits_for_it(producer):
    accumulator = producer._accumulator
    accumulator.patiently = bounded(accumulator.lock, 0.1, record_accumulator._is_stuck)
    is_inside, may_end = threading.Event(), threading.Event()

    def finalizer():
        with inside(producer):
            is_inside.set()
            may_end.wait(LONG)

    waits = threading.Thread(target=finalizer)
    waits.start()
    is_inside.wait(LONG)
    with pytest.raises(KafkaTimeoutError, match='in the middle of a call'):
        producer.flush(30)
    may_end.set()
    waits.join()
    producer.flush(30)


def test_what_is_sent_from_inside_at_any_point_of_send_is_stored(cluster, producer):
    """At each call that the lock is held in, as a finalizer does that runs there."""
    calls, found = [], []
    accumulator = producer._accumulator

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE + 'producer'):
            return None
        if event == 'line' and accumulator.is_mine() and len(calls) == number[0]:
            calls.append(1)
            found.append(producer.send('t', b'inside'))
        elif event == 'line' and accumulator.is_mine():
            calls.append(1)
        return trace

    number = [0]
    while True:
        calls.clear()
        before, count = sys.gettrace(), len(found)
        sys.settrace(trace)
        try:
            for key in (None, b'k', b'l%d' % number[0]):
                found.append(producer.send('t', b'v' * 300, key, headers=[('h', b'1')]))
        finally:
            sys.settrace(before)
        producer.flush(LONG)
        if len(found) == count + 3:
            break
        number[0] += 7
    assert number[0] > 50
    assert sorted(future.get(0).offset for future in found) == list(range(len(found)))
    assert accumulator.memory.used == 0


class Handler(logging.Handler):
    """A log handler of a program that sends its log records; it has a lock, as all have."""

    def __init__(self, producer):
        super().__init__()
        self.producer = producer
        self.futures = []

    def emit(self, record):
        self.futures.append(self.producer.send('t', b'log'))


class Cyclic:
    """Collected by the collector alone, which may come wherever an object is made."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        logging.getLogger('finalizers').warning('was left')


def test_finalizers_that_log_through_the_same_producer_hang_nobody(cluster, producer):
    """Four threads send and leave such objects; the collector runs as often as it may."""
    handler = Handler(producer)
    logger = logging.getLogger('finalizers')
    logger.propagate = False
    logger.addHandler(handler)
    before = gc.get_threshold()
    gc.set_threshold(7, 2, 2)
    sent = []

    def work(every):
        for number in range(4000):
            sent.append(producer.send('t', b'%d' % number, b'k%d' % (number % 99)))
            if number % every == 0:
                Cyclic()

    faulthandler.dump_traceback_later(LONG, exit=False)
    try:
        workers = [threading.Thread(target=work, args=(e,), daemon=True) for e in (3, 7, 17, 31)]
        for each in workers:
            each.start()
        deadline = time.monotonic() + LONG
        for each in workers:
            each.join(max(0.0, deadline - time.monotonic()))
        assert not any(each.is_alive() for each in workers), 'send() hangs'
        gc.collect()  # what finalizers send comes before the flush
        producer.flush(LONG)
    finally:
        faulthandler.cancel_dump_traceback_later()
        gc.set_threshold(*before)
        logger.removeHandler(handler)
        logger.propagate = True
    assert len(handler.futures) > 1000
    offsets = [future.get(0).offset for future in sent + handler.futures]
    assert sorted(offsets) == list(range(len(offsets)))
    assert producer._accumulator.memory.used == 0
