"""Only what was returned, or where the program sought, is committed; on a cluster in memory."""

from __future__ import annotations

import random

import pytest

from kafka import OffsetAndMetadata
from kafka.testing import MemoryCluster
from test.consumer.modern import FIRST, SECOND
from test.consumer.written_logs import write
from test.simulation.reader import SimConsumer
from test.simulation.truncation import lose_the_end

pytestmark = pytest.mark.once

ABORT = b'\x00\x00\x00\x00'
#: In milliseconds, years before the clock of the cluster.
LONG_AGO = 1_000_000_000_000
PROTOCOLS = ['assign', 'classic', 'consumer']


@pytest.fixture
def cluster():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 2}) as made:
        for number in range(2):
            for _ in range(10):
                put(made, b'old', partition=number, at=LONG_AGO)
        yield made


def log_of(cluster, number):
    return cluster.state.topics['t'].partitions[number].log


def put(cluster, *values, partition=0, **fields):
    """Write a batch, and let those hear of it who wait to read."""
    write(log_of(cluster, partition), *values, **fields)
    cluster.waiting.touch(('partition', 't', partition))


def reader(cluster, how='assign', **options):
    """Return a consumer that reads 't', and by which it gets its partitions."""
    options = {'group_id': 'g', 'auto_commit_interval_ms': 1000, **options}
    if how != 'assign':
        options['group_protocol'] = how
    made = SimConsumer.of(cluster, [], **options)
    if how == 'assign':
        made.assign([FIRST, SECOND])
    else:
        made.subscribe(['t'])
    return made


def rest(consumer, seconds=1.0):
    """Let time pass without a call of the program."""
    consumer._engine.wait(lambda: False, seconds)


def settle(consumer, seconds=20):
    """Poll until all partitions have their position; nothing may come."""
    for _ in range(seconds):
        assert consumer.poll(timeout_ms=1000) == {}
    assert consumer.assignment() == {FIRST, SECOND}


def stored(cluster, *partitions):
    """Return what the group has committed, None for nothing."""
    other = SimConsumer.of(cluster, [], group_id='g')
    try:
        found = tuple(other.committed(each) for each in partitions or (FIRST, SECOND))
    finally:
        other.close(autocommit=False)
    return found if len(found) > 1 else found[0]


def test_a_consumer_that_never_polls_commits_nothing(cluster):
    made = reader(cluster)
    rest(made)
    assert made.position(FIRST) == 10
    made.close()
    assert stored(cluster) == (None, None)


@pytest.mark.parametrize('reset', ['earliest', 'latest', 'by_duration:PT1H'])
@pytest.mark.parametrize('how', PROTOCOLS)
def test_the_position_of_a_reset_is_not_committed(cluster, how, reset):
    if reset == 'earliest':  # what there is, is not handed out
        cluster.state.topics['t'].partitions[0].log.delete_before(10)
        cluster.state.topics['t'].partitions[1].log.delete_before(10)
    made = reader(cluster, how, auto_offset_reset=reset)
    settle(made)
    assert made.commit() is False
    made.close()
    assert stored(cluster) == (None, None)


@pytest.mark.parametrize('how', PROTOCOLS)
def test_of_several_partitions_only_those_are_committed_that_were_read(cluster, how):
    made = reader(cluster, how)
    settle(made)
    put(cluster, b'new')
    assert [each.offset for each in made.poll(timeout_ms=5000)[FIRST]] == [10]
    made.close()
    assert stored(cluster) == (11, None)


def test_records_of_a_paused_partition_are_not_committed(cluster):
    made = reader(cluster)
    settle(made)
    made.pause(FIRST, SECOND)
    put(cluster, b'new')
    assert made.poll(timeout_ms=5000) == {}
    made.close()
    assert stored(cluster) == (None, None)


@pytest.mark.parametrize('reset, start', [('earliest', 8), ('latest', 10)])
def test_where_a_position_that_was_out_of_range_was_reset_to_is_not_committed(
    cluster, reset, start
):
    """Retention overtakes a reader: what follows is lost or new, and nobody was given it."""
    made = reader(cluster)
    made.commit({FIRST: OffsetAndMetadata(2, '')})
    made.close(autocommit=False)
    made = reader(cluster, auto_offset_reset=reset)
    made.pause(FIRST, SECOND)
    rest(made)
    assert made.position(FIRST) == 2
    log_of(cluster, 0).delete_before(8)
    made.resume(FIRST)
    rest(made)
    assert made.position(FIRST) == start
    made.close()
    assert stored(cluster) == (2, None)


def test_where_the_log_was_cut_is_committed_if_what_was_before_was_read(cluster):
    made = reader(cluster, auto_offset_reset='earliest')
    while made.position(FIRST) < 10:
        made.poll(timeout_ms=1000)
    lose_the_end(cluster, cluster.state.topics['t'].partitions[0], random.Random(1))
    end = log_of(cluster, 0).end_offset
    made._engine.loop.call_threadsafe(made._engine.pool.refresh)
    rest(made)
    assert made.position(FIRST) == end < 10
    made.close()
    assert stored(cluster, FIRST) == end


@pytest.mark.parametrize('how', ['poll', 'iteration', 'poll_arrow'])
def test_passing_over_what_was_aborted_is_no_reading(cluster, how):
    """Only once something was read the position behind such a transaction counts."""
    made = reader(cluster, isolation_level='read_committed', consumer_timeout_ms=1000)
    settle(made)
    sender = {'producer_id': 7, 'producer_epoch': 0, 'transactional': True}
    put(cluster, b'aborted', base_sequence=0, **sender)
    put(cluster, (ABORT, b'', ()), control=True, **sender)
    read(made, how)
    assert made.position(FIRST) == 12
    assert made.commit() is False
    put(cluster, b'plain')
    assert read(made, how) == 1
    assert made.commit() is True
    made.close()
    assert stored(cluster) == (13, None)


def read(consumer, how):
    """Return how many records come."""
    if how == 'iteration':
        return len(list(consumer))
    if how == 'poll':
        return sum(map(len, consumer.poll(timeout_ms=1000).values()))
    batch = consumer.poll_arrow(timeout_ms=1000)
    return 0 if batch is None else batch.num_rows


class Refusing:
    """An interceptor that raises instead of letting records through."""

    def __init__(self):
        self.raises = True

    def on_consume(self, records):
        if self.raises:
            raise ZeroDivisionError
        return records


@pytest.mark.parametrize('how', ['poll', 'iteration'])
def test_records_that_an_interceptor_kept_from_the_program_are_not_committed(cluster, how):
    refusing = Refusing()
    made = reader(cluster, interceptors=[refusing], consumer_timeout_ms=1000)
    settle(made)
    put(cluster, b'1', b'2')
    with pytest.raises(ZeroDivisionError):
        while True:
            read(made, how)
    assert made.commit() is False
    refusing.raises = False
    assert read(made, how) == 2
    made.close()
    assert stored(cluster) == (12, None)


def test_records_that_ctrl_c_kept_from_the_program_are_not_committed(cluster):
    class Interrupting:
        def on_consume(self, records):
            raise KeyboardInterrupt

    made = reader(cluster, interceptors=[Interrupting()])
    rest(made)
    put(cluster, b'1', b'2')
    with pytest.raises(KeyboardInterrupt):
        while True:
            made.poll(timeout_ms=1000)
    made.close()
    assert stored(cluster) == (None, None)


@pytest.mark.parametrize('call', ['seek_to_end', 'seek_to_beginning'])
def test_where_the_program_sought_is_committed_once_it_is_known(cluster, call):
    made = reader(cluster, auto_offset_reset='earliest')
    made.poll()
    getattr(made, call)(FIRST)
    assert made.commit() is False, 'the offset is not known yet'
    rest(made)
    made.close()
    assert stored(cluster) == (10 if call == 'seek_to_end' else 0, None)


def test_an_offset_that_the_program_sought_is_committed(cluster):
    made = reader(cluster)
    made.seek(FIRST, 3)
    made.close()
    assert stored(cluster) == (3, None)


def test_the_committed_offset_is_where_the_next_one_begins_and_may_be_stored_again(cluster):
    made = reader(cluster)
    made.commit({FIRST: OffsetAndMetadata(4, 'why')})
    made.close(autocommit=False)
    made = reader(cluster)
    rest(made)
    assert made.position(FIRST) == 4
    made.close()
    assert stored(cluster, FIRST) == 4
