"""Reading that is interrupted at any point loses no record, and commits none that was not returned.

What interrupts is an exception of any class, as the handler of a signal, another thread or a lack
of memory raises it.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
import time

import pytest

import kafka.consumer
from kafka.testing import Cluster
from test.consumer.modern import FIRST, SECOND, consumer_of, write
from test.raising import Interruption, Raiser, needs_points, points

CONSUMER = os.path.dirname(kafka.consumer.__file__) + os.sep
#: The code that the thread of the program runs to hand out records, without the loop's.
WITHIN = (
    CONSUMER,
    kafka.consumer_record.__file__,
    os.path.join(os.path.dirname(kafka.__file__), 'record') + os.sep,
)
pytestmark = pytest.mark.once

SECONDS = 5
RECORDS = 1000
MOST_POINTS = 40


class Limit(Exception):
    """What a job runner raises when the time is over."""


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2}) as made:
        for partition in (0, 1):
            write(made, RECORDS, partition=partition, linger_ms=5)
        yield made


class Program:
    """A program that reads two partitions, and knows what it was given.

    Attributes: consumer; given: {TopicPartition: [offset, ...]}.
    """

    def __init__(self, consumer):
        self.consumer = consumer
        self.given = {FIRST: [], SECOND: []}
        consumer.assign([FIRST, SECOND])

    def got(self, records):
        for record in records:
            self.given[record.topic, record.partition].append(record.offset)

    def wait(self):
        """Wait until there is something to hand out, so that no turn of the loop is torn."""
        consumer, engine = self.consumer, self.consumer._engine
        consumer.resume(FIRST, SECOND)
        for partition, offsets in self.given.items():
            if len(offsets) > RECORDS - 50:  # once more from the beginning
                consumer.seek(partition, 0)
                offsets.clear()
        if not consumer._modern._collector.held:
            assert engine.wait(engine.fetcher.has_news, SECONDS)

    def check(self, where):
        """Nothing is missing, nothing came twice, and what would be committed was returned."""
        for partition, behind in self.consumer._modern._commits.to_commit().items():
            assert behind.offset <= len(self.given[partition]), where
        for partition, offsets in self.given.items():
            assert offsets == list(range(len(offsets))), where
            assert self.consumer.position(partition) == len(offsets), where

    def check_memory(self):
        parked = self.consumer._engine.fetcher._buffer
        self.consumer.pause(FIRST, SECOND)
        left = set(parked._shared.values())
        assert parked.used == sum(each.size_bytes for each in left)


class OutsideTurns(Raiser):
    """Raises in what the program calls, not in a turn of the loop, which signals do not enter."""

    def __init__(self, consumer, at=None, error=Interruption):
        super().__init__(at, error, WITHIN)
        self.loop = consumer._engine.loop

    def _meet(self, frame):
        if not self.loop.runs_here():
            super()._meet(frame)


def poll(program):
    for records in program.consumer.poll(max_records=7).values():
        program.got(records)


def iterate(program):
    for record in itertools.islice(program.consumer, 3):
        program.got([record])


def poll_arrow(program):
    batch = program.consumer.poll_arrow(columns=['topic', 'partition', 'offset'])
    if batch is not None:
        for topic, partition, offset in zip(*batch.to_pydict().values()):
            program.given[topic, partition].append(offset)


def poll_and_iterate(program):
    """Each lets go of what the other has under way."""
    program.got([next(program.consumer)])
    poll(program)


def pause_and_resume(program):
    program.got([next(program.consumer)])
    program.consumer.pause(FIRST)
    poll(program)
    program.consumer.resume(FIRST)


READINGS = [poll, iterate, poll_arrow, poll_and_iterate, pause_and_resume]


@needs_points
@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError])
@pytest.mark.parametrize('read', READINGS)
def test_an_exception_at_any_point_loses_no_record(cluster, read, error):
    with consumer_of(cluster, max_partition_fetch_bytes=2000) as consumer:
        program = Program(consumer)
        program.wait()
        with OutsideTurns(consumer) as counting:
            read(program)
        for at in points(counting.count, MOST_POINTS):
            program.wait()
            raiser = OutsideTurns(consumer, at, error)
            try:
                with raiser:
                    read(program)
            except error:
                pass
            where = str(raiser.raised_at)
            if at % 2:
                program.check(where)
            program.wait()
            read(program)
            program.check(where)
        program.check_memory()


def interrupt(consumer, call, at, error=Interruption):
    """Call something and raise at a point of it, in no turn; return the Raiser."""
    raiser = OutsideTurns(consumer, at, error)
    try:
        with raiser:
            call()
    except error:
        pass
    return raiser


@needs_points
@pytest.mark.parametrize('error', [Limit, Interruption])
def test_automatic_commits_go_on_after_an_exception(cluster, error):
    options = {'group_id': 'g', 'auto_commit_interval_ms': 1}
    with consumer_of(cluster, max_partition_fetch_bytes=2000, **options) as consumer:
        program = Program(consumer)
        program.wait()
        count = interrupt(consumer, lambda: poll(program), None).count
        for at in points(count, MOST_POINTS):
            program.wait()
            where = interrupt(consumer, lambda: poll(program), at, error).raised_at
            poll(program)
            for partition, offsets in program.given.items():
                assert (consumer.committed(partition) or 0) <= len(offsets), where
        deadline = time.monotonic() + SECONDS
        while consumer.committed(FIRST) != len(program.given[FIRST]):
            assert time.monotonic() < deadline, 'nothing is committed any more'
            consumer.pause(FIRST, SECOND)
            consumer.poll(timeout_ms=20)


@needs_points
# An exception between making a coroutine and handing it to the loop leaves it to the collector.
@pytest.mark.filterwarnings('ignore:coroutine .* was never awaited')
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@pytest.mark.parametrize('error', [Limit, Interruption])
def test_commit_works_after_one_that_was_interrupted(cluster, error):
    told = []
    with consumer_of(cluster, group_id='g', enable_auto_commit=False) as consumer:
        program = Program(consumer)

        def commit():
            consumer.commit_async(callback=lambda *outcome: told.append(outcome))
            consumer.commit()

        program.wait()
        poll(program)
        count = interrupt(consumer, commit, None).count
        for at in points(count, MOST_POINTS):
            program.wait()
            poll(program)
            where = interrupt(consumer, commit, at, error).raised_at
            assert consumer.commit(), where
            assert consumer.committed(FIRST) == len(program.given[FIRST]), where
        before = len(told)
        future = consumer.commit_async(callback=lambda *outcome: told.append(outcome))
        consumer.commit()
        assert future.succeeded() and len(told) == before + 1


@needs_points
def test_a_member_gets_its_partitions_after_an_exception_in_a_rebalance(cluster):
    for at in range(0, 400, 37):
        with consumer_of(cluster, 't', group_id='g%d' % at, heartbeat_interval_ms=100) as consumer:
            consumer.poll()
            member = consumer._engine.member
            assert consumer._engine.wait(functools.partial(getattr, member, 'step'), SECONDS)
            where = interrupt(consumer, consumer.poll, at).raised_at
            deadline = time.monotonic() + SECONDS
            while not consumer.poll(timeout_ms=100):
                assert time.monotonic() < deadline, where


@needs_points
def test_close_ends_everything_after_one_that_was_interrupted(cluster):
    """Threads and sockets that are left behind fail every test."""
    for at in range(0, 300, 37):
        consumer = consumer_of(cluster, group_id='g%d' % at)
        program = Program(consumer)
        program.wait()
        poll(program)
        interrupt(consumer, consumer.close, at)
        consumer.close()
        with consumer_of(cluster, group_id='g%d' % at) as following:
            begin = following.committed(FIRST)
        assert begin is None or begin <= len(program.given[FIRST])


def read_all(consumer, given, read, count):
    """Read until so many records came, whatever is raised; return how often something was."""
    raised, deadline = 0, time.monotonic() + 4 * SECONDS
    while len(given) < count and time.monotonic() < deadline:
        try:
            read(consumer, given)
        except Limit:
            raised += 1
    return raised


def poll_some(consumer, given):
    for records in consumer.poll(timeout_ms=50).values():
        given += [record.offset for record in records]  # one step: none is half given


def iterate_some(consumer, given):
    for record in itertools.islice(consumer, 500):
        given.append(record.offset)


@pytest.mark.skipif(not hasattr(signal, 'setitimer'), reason='there are no timers of signals')
@pytest.mark.parametrize('read', [poll_some, iterate_some])
def test_a_timer_that_raises_again_and_again_skips_no_record(cluster, read, monkeypatch):
    write(cluster, 20000, partition=0, start=RECORDS, linger_ms=5)
    fired, swallowed = [], []
    # What is raised while a finalizer or a callback of the collector runs the interpreter swallows.
    # No step of Python is in this, because the timer would hit that as well.
    monkeypatch.setattr(sys, 'unraisablehook', swallowed.append)

    def on_alarm(*arguments):
        # Less and less often, or a busy machine is never done with a batch in between.
        signal.setitimer(signal.ITIMER_REAL, 0.003 + 0.0005 * len(fired))
        inside = sys._getframe(1)
        while inside is not None and not inside.f_code.co_filename.startswith(CONSUMER):
            inside = inside.f_back
        if inside is not None:  # else the test itself would lose what it has been given
            fired.append(1)
            raise Limit

    given, before = [], signal.signal(signal.SIGALRM, on_alarm)
    with consumer_of(cluster, consumer_timeout_ms=200) as consumer:
        consumer.assign([FIRST])
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        try:
            for _ in range(20):
                read_all(consumer, given, read, RECORDS + 20000)
                if fired:
                    break
                # All were read while no alarm met the consumer: once more.
                given.clear()
                consumer.seek(FIRST, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert fired
        assert {each.exc_type for each in swallowed} <= {Limit}
        assert given == list(range(RECORDS + 20000))
        assert consumer.position(FIRST) == len(given)
