"""What cannot be read in a log is named, stepped over deliberately, and holds nobody for ever."""

from __future__ import annotations

import contextlib
import logging
import time

import pytest

from kafka.errors import CorruptRecordError, IllegalStateError
from kafka.testing import Cluster, MemoryCluster
from test.consumer.modern import FIRST, SECOND, SECONDS, consumer_of, poll_until
from test.consumer.written_logs import flip_last, numbered, offsets, write
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

RELEASES = ['0.11', '4.4']
#: More than a batch may expand to.
BOMB_BYTES = 135_000_000


@pytest.fixture(params=RELEASES)
def cluster(request):
    with Cluster(version=request.param, topics={'t': 2}) as made:
        yield made


@pytest.fixture
def log_of(cluster):
    return lambda partition: cluster.state.topics['t'].partitions[partition].log


@pytest.fixture
def damaged(log_of):
    """Offsets 5 to 9 of partition 0 are a batch with a wrong checksum."""
    write(log_of(0), *numbered(5))
    write(log_of(0), *numbered(5), damage=flip_last)
    write(log_of(0), *numbered(5))


@pytest.fixture
def consumer(cluster):
    with consumer_of(cluster, consumer_timeout_ms=30000) as made:
        made.assign([FIRST])
        yield made


def raises(consumer, how='poll'):
    """Go on until something cannot be read; return the error and what came before."""
    found = []
    with pytest.raises(CorruptRecordError) as caught:
        while True:
            if how == 'next':
                found.append(next(consumer))
            else:
                for records in getattr(consumer, how)(timeout_ms=30000).values():
                    found += records
    return caught.value, found


@pytest.mark.usefixtures('damaged')
@pytest.mark.parametrize('how', ['poll', 'next'])
def test_a_damaged_batch_is_named_each_time_and_stepped_over(consumer, how):
    error, found = raises(consumer, how)
    assert offsets(found) == [0, 1, 2, 3, 4]
    for _ in range(2):
        for part in ('offset 5', 'partition 0', "topic 't'", 'skip_corrupt()'):
            assert part in str(error)
        assert error.failed_at == (FIRST, 5)
        assert consumer.position(FIRST) == 5
        error, found = raises(consumer, how)
        assert found == []
    assert consumer.skip_corrupt(FIRST) == consumer.position(FIRST) == 10
    assert offsets(poll_until(consumer, 5)) == [10, 11, 12, 13, 14]


@pytest.mark.usefixtures('damaged')
def test_only_what_cannot_be_read_is_stepped_over(consumer):
    def refused(*arguments):
        with pytest.raises(IllegalStateError):
            consumer.skip_corrupt(*arguments)

    refused()
    raises(consumer)
    refused(SECOND)
    consumer.seek(FIRST, 0)
    refused(FIRST)
    raises(consumer)
    assert consumer.skip_corrupt() == 10
    refused()


@pytest.mark.usefixtures('damaged')
def test_others_are_read_while_the_damaged_partition_is_paused(log_of, consumer):
    write(log_of(1), *numbered(3))
    consumer.assign([FIRST, SECOND])
    consumer.pause(SECOND)
    raises(consumer)
    consumer.pause(FIRST)
    consumer.resume(SECOND)
    assert offsets(poll_until(consumer, 3)) == [0, 1, 2]
    consumer.resume(FIRST)
    assert raises(consumer)[0].failed_at == (FIRST, 5)


@pytest.mark.usefixtures('damaged')
@pytest.mark.parametrize('how', ['poll', 'next'])
def test_others_are_read_while_nobody_sees_to_the_damaged_batch(log_of, consumer, how):
    consumer.assign([FIRST, SECOND])
    for end in (0, 3, 6):
        error, _ = raises(consumer, how)
        assert error.failed_at == (FIRST, 5)
        assert (consumer.position(FIRST), consumer.position(SECOND)) == (5, end)
        write(log_of(1), *numbered(3))
        deadline = time.monotonic() + SECONDS
        while consumer.position(SECOND) < end + 3:
            assert time.monotonic() < deadline
            with contextlib.suppress(CorruptRecordError):
                next(consumer) if how == 'next' else consumer.poll(timeout_ms=100)


@pytest.mark.usefixtures('damaged')
def test_a_damaged_batch_keeps_no_more_than_itself_of_the_budget(log_of, consumer):
    write(log_of(0), *[bytes(1000)] * 100)
    write(log_of(1), *numbered(5))
    consumer.assign([FIRST, SECOND])
    parked = consumer._engine.fetcher._buffer
    count = 0
    while count < 5 + 5:  # before the batch, and in the other partition
        count += len(raises(consumer)[1])
    assert parked.used < 1000
    assert consumer.skip_corrupt(FIRST) == 10
    assert len(poll_until(consumer, 100)) >= 100


def test_what_cannot_be_read_is_told_of_before_more_of_others_is_handed_out():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 2}) as cluster:
        damaged, good = (each.log for each in cluster.state.topics['t'].partitions)
        write(damaged, *numbered(5), damage=flip_last)
        made = SimConsumer.of(cluster, [], auto_offset_reset='earliest')
        made.assign([FIRST, SECOND])
        for _ in range(3):
            assert raises(made)[1] == []
            write(good, *numbered(3))
            made._engine.loop.wait(lambda: False, 5.0)  # it comes while the program does not poll
            assert offsets(made.poll(timeout_ms=0)[SECOND])[0] % 3 == 0
            write(good, *numbered(3))
            made._engine.loop.wait(lambda: False, 5.0)
        made.close()


@pytest.mark.parametrize('how', ['damaged', 'refused'])
def test_what_was_fetched_behind_it_keeps_nobody_from_asking_for_others(how):
    with MemoryCluster(version='4.4', seed=1, topics={'t': 2}) as cluster:
        bad, good = (each.log for each in cluster.state.topics['t'].partitions)
        write(bad, b'bad', damage=flip_last if how == 'damaged' else None)
        options = {} if how == 'damaged' else {'value_deserializer': int}
        made = SimConsumer.of(cluster, [], auto_offset_reset='earliest', **options)
        made.assign([FIRST, SECOND])

        def polled():
            made._engine.loop.wait(lambda: False, 5.0)
            try:
                return made.poll(timeout_ms=0)
            except (CorruptRecordError, ValueError):
                return {}

        made._engine.loop.wait(lambda: False, 5.0)
        assert polled() == {}
        for _ in range(3):
            write(bad, b'1')
            assert polled() == {}
            write(good, b'2')
            found = [polled() for _ in range(4)]
            assert [place for each in found for place in each] == [SECOND]
        if how == 'damaged':
            made.skip_corrupt()
        else:
            made.seek(FIRST, 1)
        assert sum(len(each) for _ in range(4) for each in polled().values()) == 3
        made.close()


@pytest.mark.usefixtures('damaged')
def test_what_stands_before_a_damaged_batch_is_all_that_is_committed(cluster):
    with consumer_of(cluster, 't', group_id='g') as made:
        raises(made)
    with consumer_of(cluster, 't', group_id='g') as made:
        assert made.committed(FIRST) == 5
        raises(made)
        made.skip_corrupt()
        assert offsets(poll_until(made, 5))[0] == 10


def test_without_check_crcs_a_batch_is_taken_as_it_is(cluster, log_of):
    write(log_of(0), b'good', damage=lambda data: data.replace(b'good', b'gold'))
    with consumer_of(cluster, check_crcs=False) as made:
        made.assign([FIRST])
        assert [each.value for each in poll_until(made, 1)] == [b'gold']


def test_a_bomb_is_not_unpacked(log_of, consumer):
    write(log_of(0), bytes(BOMB_BYTES), codec=1)
    write(log_of(0), b'behind')
    error, _ = raises(consumer)
    assert 'expands to more than' in str(error)
    assert error.failed_at == (FIRST, 0)
    assert consumer.skip_corrupt() == 1
    assert [each.value for each in poll_until(consumer, 1)] == [b'behind']


def test_what_a_deserializer_refuses_is_named_and_not_stepped_over_as_corrupt(
    cluster, log_of, caplog
):
    write(log_of(0), b'1', b'two', b'3')
    with consumer_of(cluster, value_deserializer=int) as made:
        made.assign([FIRST])
        poll_until(made, 1)
        for _ in range(2):
            with pytest.raises(ValueError, match='two') as caught, caplog.at_level(logging.ERROR):
                made.poll(timeout_ms=30000)
            place = "offset 1 of partition 0 of topic 't'"
            assert any(place in note for note in caught.value.__notes__)
            assert caught.value.failed_at == (FIRST, 1)
        assert [place in each.getMessage() for each in caplog.records] == [True]
        with pytest.raises(IllegalStateError):
            made.skip_corrupt(FIRST)
        made.seek(FIRST, 2)
        assert poll_until(made, 1)[0].value == 3
