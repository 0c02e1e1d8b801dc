"""Records that a thread other than the main one sends itself, ended by an exception at each point.

What the thread has left half done is completed or undone by the next turn of the loop: each record
with an outcome has the right one, none is stored twice, also without idempotence, and every thread
can go on. The broker is an embedded one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from kafka import KafkaProducer
from kafka.net.loop.loop import Loop
from kafka.producer.single_batch_path import SingleBatchPath
from kafka.testing import Cluster
from kafka.testing.faults import Delay
from test.raising import (
    PACKAGE,
    Interruption,
    Raiser,
    in_worker,
    needs_attempts,
    needs_points,
    points,
)
from test.stored import stored

SOON = 10
WITHIN = [PACKAGE + name for name in ('future.py', 'net/', 'producer/', 'protocol/', 'record/')]
#: Points of a call that are tried, spread over it; all of them in the thorough runs.
MOST, ALL = 40, 5000


class TimeLimit(TimeoutError):
    """Of a job. A TimeoutError is an OSError, but this one is not of a socket."""


KINDS = {
    'plain': {'acks': 1, 'enable_idempotence': False},
    'idempotent': {},
    'compressed': {'compression_type': 'gzip'},
    'unmeasured': {'metrics_enabled': False},
    'not retried': {'acks': 1, 'enable_idempotence': False, 'retries': 0},
    'flushed': {},
    'over TLS': {'security_protocol': 'SSL', 'retry_backoff_ms': 1, 'reconnect_backoff_ms': 1},
}


@pytest.fixture
def cluster(kind):
    with Cluster(version='4.4', topics={'t': 1}, tls='TLS' in kind) as running:
        yield running


@pytest.fixture
def producer(cluster, kind):
    options = dict(KINDS[kind], ssl_cafile=cluster.ca_file)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **options) as made:
        yield made


@pytest.fixture
def attempts(monkeypatch):
    """How many attempts were 'begun', and how they ended: True if the record was sent.

    Until 'hold_until' the background thread takes up nothing, or until an attempt has ended: a
    thread that is traced is so slow that the other one would send its record.
    """
    ends = Counter()
    try_to_send, has_work, run_attempt = (
        SingleBatchPath.try_to_send,
        Loop._has_work,
        Loop._run_attempt,
    )

    def counted(self, now, until, is_attempt=False):
        ends['begun'] += is_attempt
        was_sent = try_to_send(self, now, until, is_attempt)
        ends[was_sent] += is_attempt
        return was_sent

    def released(self, first, until, me):
        try:
            run_attempt(self, first, until, me)
        finally:
            ends['hold_until'] = 0

    monkeypatch.setattr(SingleBatchPath, 'try_to_send', counted)

    def has_work_now(self, now):
        return now >= ends['hold_until'] and has_work(self, now)

    monkeypatch.setattr(Loop, '_has_work', has_work_now)
    monkeypatch.setattr(Loop, '_run_attempt', released)
    return ends


@needs_attempts
@needs_points
@pytest.mark.parametrize('most', [MOST, pytest.param(ALL, marks=pytest.mark.thorough)])
@pytest.mark.parametrize('error', [Interruption, TimeLimit])
@pytest.mark.parametrize('kind', KINDS)
def test_an_exception_at_any_point_of_an_attempt_loses_nothing(
    cluster, producer, attempts, kind, error, most
):
    futures = []

    def hit(at):
        """Send a record and wait for it, with an exception at a point; return the raiser."""
        is_flushed = kind == 'flushed'
        raiser = Raiser(at, error, within=WITHIN)
        while producer._loop._ready:  # what a record before has left to be done
            time.sleep(0.001)
        attempts['hold_until'] = time.monotonic() + 0.5
        raised = None
        try:
            with raiser:
                futures.append((b'%d' % len(futures), producer.send('t', b'%d' % len(futures))))
                (producer.flush if is_flushed else futures[-1][1].get)(SOON)
        except error:
            raised = error
        assert (raised is None) is (raiser.raised_at is None), raiser.raised_at
        attempts['hold_until'] = 0
        return raiser

    def check(where, has_to_wait):
        """Each thread can send, and nothing is left; nothing waits until something else is sent."""
        if has_to_wait:
            futures[-1][1].get(SOON)
        for wait in (in_worker, lambda function: function()):
            value = b'after %d' % len(futures)
            futures.append((value, wait(lambda value=value: producer.send('t', value))))
            wait(lambda: futures[-1][1].get(SOON))
        producer.flush(SOON)
        assert len(producer) == 0 and producer._loop.interrupted_by is None, where
        assert not producer._loop._driver_lock.locked() or producer._loop._driver is not None

    producer.send('t', b'first').get(SOON)
    in_worker(lambda: hit(None))
    count = in_worker(lambda: hit(None)).count
    tried = points(count, most)
    for at in tried:
        raiser = in_worker(lambda at=at: hit(at))
        check(raiser.raised_at, at % 2)
    producer.close(SOON)
    log = stored(cluster, 't')
    times = Counter(log)
    for value, future in futures:
        assert future.is_done and log[future.get(0).offset] == value
        assert times[value] == 1
    was_ended = attempts['begun'] - attempts[True] - attempts[False]
    assert was_ended > len(tried) / 3, attempts  # or next to nothing was tried


@pytest.mark.parametrize('kind', KINDS)
def test_callbacks_that_come_while_a_record_is_sent_run_in_a_turn(cluster, producer, kind):
    """Not in the thread that sends it: what is raised there would end them in the middle."""
    producer.send('t', b'first').get(SOON)
    in_worker(lambda: producer.send('t', b'second').get(SOON))
    cluster.faults.add(Delay(0.5), 'Produce')
    told, futures = [], []
    until_sent = threading.Event()

    def call():
        futures.append(producer.send('t', b'v'))
        until_sent.set()
        return futures[0].get(SOON)

    sender = threading.Thread(target=call, name='sender')
    sender.start()
    until_sent.wait(SOON)
    for _ in range(2):
        futures[0].add_callback(lambda _: told.append(threading.current_thread().name))
        time.sleep(0.1)
    sender.join(SOON)
    end = time.monotonic() + SOON
    while len(told) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(told) == 2 and 'sender' not in told


@needs_attempts
@pytest.mark.parametrize('kind', KINDS)
def test_a_thread_sends_a_batch_itself_unless_nobody_would_notice_that_it_is_sent_twice(
    cluster, producer, attempts, kind
):
    """With TLS an exception may close the connection."""
    is_exact = producer.config['enable_idempotence']
    producer.send('t', b'first').get(SOON)
    in_worker(lambda: [producer.send('t', b'v').get(SOON) for _ in range(50)])
    assert attempts[True] > 25, attempts
    if not is_exact and cluster.ca_file:
        assert attempts[True] == 0
