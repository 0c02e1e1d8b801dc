"""Commits of the modern consumer, on embedded brokers: asked for, automatic, by marks."""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import kafka.consumer.commits
from kafka import OffsetAndMetadata, TopicPartition
from kafka.consumer.commits import _is_stored
from kafka.errors import CommitFailedError, KafkaError, UnknownTopicOrPartitionError
from kafka.internals.validation import ArgumentTypeError
from kafka.testing import Cluster, MemoryCluster
from test.consumer.modern import FIRST, SECOND, SECONDS, consumer_of, poll_until, values, write
from test.consumer.written_logs import write as write_to
from test.raising import Interruption, Raiser, needs_points
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2}) as made:
        write(made, 10)
        yield made


def member(cluster, **options):
    made = consumer_of(cluster, group_id='g', **options)
    made.assign([FIRST])
    return made


def stored(cluster, partition=FIRST):
    with consumer_of(cluster, group_id='g') as made:
        return made.committed(partition, metadata=True)


def wait_for(is_so):
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_handed_out_is_committed(cluster):
    with member(cluster, enable_auto_commit=False) as made:
        assert made.commit() is False  # nothing is known to be read yet
        poll_until(made, 4, max_records=4)
        assert made.commit() is True
        assert made.committed(FIRST) == 4
    assert stored(cluster).offset == 4
    assert stored(cluster, SECOND) is None


def test_iteration_counts_each_record_that_was_handed_out(cluster):
    with member(cluster, enable_auto_commit=False) as made:
        for _ in range(3):
            next(made)
        made.commit()
    assert stored(cluster).offset == 3


def test_offsets_may_be_named_with_metadata_and_epoch(cluster):
    with member(cluster) as made:
        made.commit({SECOND: OffsetAndMetadata(7, 'why', 0)})
        assert made.committed(SECOND, metadata=True) == OffsetAndMetadata(7, 'why', 0)
        made.commit({})
    assert stored(cluster, SECOND).metadata == 'why'


def test_a_commit_without_group_is_refused(cluster):
    with consumer_of(cluster) as made:
        made.assign([FIRST])
        for call in (made.commit, made.commit_async, lambda: made.committed(FIRST)):
            with pytest.raises(AssertionError, match='group_id'):
                call()


def test_a_commit_for_a_partition_that_there_is_not_fails_soon(cluster):
    with member(cluster) as made:
        began = time.monotonic()
        with pytest.raises(UnknownTopicOrPartitionError):
            made.commit({TopicPartition('t', 9): OffsetAndMetadata(1, '')})
        assert time.monotonic() - began < 10


def test_a_commit_async_is_told_in_a_later_poll(cluster):
    told = []
    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        future = made.commit_async(callback=lambda *args: told.append(args))
        wait_for(lambda: made.poll(timeout_ms=10) == {} and told)
        assert told == [({FIRST: OffsetAndMetadata(10, '', 0)}, None)]
        assert future.succeeded()
        wrong = {TopicPartition('t', 9): OffsetAndMetadata(1, '')}
        future = made.commit_async(wrong, callback=lambda *args: told.append(args))
        wait_for(lambda: made.poll(timeout_ms=10) == {} and len(told) == 2)
        assert isinstance(told[1][1], UnknownTopicOrPartitionError)
        assert future.failed()
    assert stored(cluster).offset == 10


@pytest.mark.parametrize('end', ['close', 'unsubscribe'])
@pytest.mark.parametrize('protocol', ['assign', 'classic', 'consumer'])
def test_a_commit_async_is_stored_and_told_although_the_consumer_ends_at_once(
    cluster, protocol, end
):
    told = []
    options = {} if protocol == 'assign' else {'group_protocol': protocol}
    made = consumer_of(cluster, group_id='g', enable_auto_commit=False, **options)
    with made:
        if protocol == 'assign':
            made.assign([FIRST])
        else:
            made.subscribe(['t'])
        poll_until(made, 1, max_records=1)
        future = made.commit_async(
            {FIRST: OffsetAndMetadata(7, '')}, lambda *args: told.append(args)
        )
        getattr(made, end)()
    assert told == [({FIRST: OffsetAndMetadata(7, '', -1)}, None)]
    assert future.succeeded()
    assert stored(cluster).offset == 7


def test_commits_that_nobody_answers_fail_when_the_consumer_is_closed():
    """Those under way and those that were not begun; neither is waited for without end."""
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        made = SimConsumer.of(cluster, [], group_id='g', enable_auto_commit=False)
        made.assign([FIRST])
        made.commit({FIRST: OffsetAndMetadata(1, '')})
        told = []

        def tell(offsets, error):
            told.append(error)
            made.commit(offsets)  # it is closed: that is logged, and close() goes on

        cluster.pause(0)
        futures = [
            made.commit_async({FIRST: OffsetAndMetadata(number, '')}, tell) for number in (2, 3)
        ]
        began = cluster.timers.clock.monotonic()
        made.close(timeout_ms=3000)
        assert cluster.timers.clock.monotonic() - began <= 4.0
        assert [type(error).__name__ for error in told] == ['ConsumerClosedError'] * 2
        assert all(future.failed() for future in futures)


def test_a_stored_commit_stays_so_when_the_consumer_ends_while_it_is_moved(cluster):
    """An exception may come when it is with those to tell of and has not left the others."""
    made, told = member(cluster), []
    made.poll(SECONDS * 1000)
    commits = made._modern._commits
    future = made.commit_async(callback=lambda offsets, error: told.append(error))
    wait_for(lambda: commits.ended)
    commits._under_way.append(commits.ended[0])
    commits.fail_pending(KafkaError('closed'))
    made.close()
    assert future.succeeded() and told == [None]


def test_a_commit_is_noted_behind_those_that_were_before_it(cluster):
    """A seek back is committed at the end, and interceptors hear of commits in their order."""
    heard = []
    noting = SimpleNamespace(on_commit=lambda offsets: heard.append(offsets[FIRST].offset))
    with member(cluster, auto_commit_interval_ms=600000, interceptors=[noting]) as made:
        poll_until(made, 10)
        made.commit_async({FIRST: OffsetAndMetadata(5, '')})
        made.commit({FIRST: OffsetAndMetadata(9, '')})
        assert heard == [5, 9]
        assert made._engine.subscription.assignment[FIRST].committed.offset == 9
        made.seek(FIRST, 5)
    assert stored(cluster).offset == 5


def test_commits_async_are_told_in_the_order_of_the_calls(cluster):
    """The first takes longer: it is asked whether there is such a partition."""
    told = []
    wrong = {TopicPartition('t', 9): OffsetAndMetadata(1, '')}
    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        for offsets in (wrong, {FIRST: OffsetAndMetadata(3, '')}):
            made.commit_async(offsets, lambda *args: told.append(args))
        wait_for(lambda: made.poll(timeout_ms=10) == {} and len(told) == 2)
    assert [list(offsets) for offsets, _ in told] == [list(wrong), [FIRST]]
    assert [type(error) for _, error in told] == [UnknownTopicOrPartitionError, type(None)]


def test_what_a_callback_raises_changes_no_outcome_and_keeps_none_from_being_told(cluster):
    told = []

    def fails(offsets, error):
        told.append('first')
        raise ZeroDivisionError

    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        futures = [made.commit_async(callback=fails)]
        futures.append(made.commit_async(callback=lambda *args: told.append(args)))
        wait_for(lambda: len(made._modern._commits.ended) == 2)
        with pytest.raises(ZeroDivisionError):
            made.poll()
        assert told == ['first', ({FIRST: OffsetAndMetadata(10, '', 0)}, None)]
        assert all(future.succeeded() for future in futures)


def test_a_callback_that_cannot_be_called_is_refused_and_nothing_committed(cluster):
    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        with pytest.raises(ArgumentTypeError, match='callback must be callable, not int'):
            made.commit_async(callback=5)
    assert stored(cluster) is None


@pytest.mark.parametrize('is_refused', [False, True])
def test_a_commit_async_is_told_in_a_later_commit(cluster, is_refused):
    told = []
    other = {TopicPartition('t', 9): OffsetAndMetadata(1, '')} if is_refused else None
    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        future = made.commit_async(callback=lambda *args: told.append(args))
        with pytest.raises(UnknownTopicOrPartitionError) if is_refused else nullcontext():
            wait_for(lambda: made.commit(other, timeout_ms=300) and told)
        assert told == [({FIRST: OffsetAndMetadata(10, '', 0)}, None)]
        assert future.succeeded()


def test_the_option_is_called_where_a_commit_has_no_callback(cluster):
    told = []
    with member(cluster, default_offset_commit_callback=lambda *args: told.append(args)) as made:
        poll_until(made, 10)
        made.commit_async()
        wait_for(lambda: made.poll(timeout_ms=10) == {} and told)


def test_offsets_that_are_stored_are_committed_by_themselves_once_in_a_while():
    """So that brokers do not let them expire, and do not hear of them with each interval."""
    with MemoryCluster(version='4.4', seed=1, topics={'t': 2}) as cluster:
        options = {'group_id': 'g', 'auto_commit_interval_ms': 1000, 'fetch_max_wait_ms': 5000}
        made = SimConsumer.of(cluster, [], **options)
        made.assign([FIRST, SECOND])
        made.seek_to_beginning()
        for _ in range(50):
            made.poll(timeout_ms=1000)
        commits = [each for each in cluster.requests if each.api.name == 'OFFSET_COMMIT']
        assert len(commits) == 2
        write_to(cluster.state.topics['t'].partitions[1].log, b'a')
        for _ in range(9):
            made.poll(timeout_ms=1000)
        assert made.committed(SECOND) == 1, 'what has changed goes with the next interval'
        made.close()


def test_any_number_of_callbacks_may_fail(cluster):
    told = []

    def fails(offsets, error):
        told.append(len(told))
        raise LookupError(told[-1])

    with member(cluster, enable_auto_commit=False) as made:
        poll_until(made, 10)
        futures = [made.commit_async(callback=fails) for _ in range(1200)]
        wait_for(lambda: len(made._modern._commits.ended) == len(futures))
        with pytest.raises(LookupError, match='^0$'):
            made.poll()
        assert len(told) == len(futures)
        assert all(future.succeeded() for future in futures)
        made.poll()


@needs_points
def test_an_exception_before_the_outcome_of_an_automatic_commit_is_noted_ends_no_later_one():
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        options = {'group_id': 'g', 'auto_commit_interval_ms': 100, 'auto_offset_reset': 'earliest'}
        made = SimConsumer.of(cluster, [], **options)
        made.assign([FIRST])
        log = cluster.state.topics['t'].partitions[0].log
        write_to(log, b'a')
        raiser = InTell()
        for _ in range(20):
            try:
                with raiser:
                    made.poll(timeout_ms=200)
            except Interruption:
                break
        write_to(log, b'b')
        cluster.waiting.touch(('partition', 't', 0))
        for _ in range(10):
            made.poll(timeout_ms=200)
        assert raiser.raised_at
        assert made.committed(FIRST) == 2
        made.close(autocommit=False)


class InTell(Raiser):
    """Raises once, at the first point of tell()."""

    def __init__(self):
        super().__init__(0, within=[kafka.consumer.commits.__file__])

    def _meet(self, frame):
        if frame.f_code.co_name == 'tell':
            super()._meet(frame)


def test_automatic_commits_have_only_what_was_handed_out(cluster):
    with member(cluster, auto_commit_interval_ms=50, max_poll_records=3) as made:
        assert len(poll_until(made, 3)) == 3
        time.sleep(0.2)
        assert stored(cluster) is None  # nobody has polled since
        made.pause(FIRST)
        wait_for(lambda: made.poll(timeout_ms=10) == {} and stored(cluster))
        assert stored(cluster).offset == 3
        made.close(autocommit=False)


def test_closing_commits_unless_told_not_to(cluster):
    made = member(cluster)
    poll_until(made, 6, max_records=6)
    made.close(autocommit=False)
    assert stored(cluster) is None
    made = member(cluster)
    poll_until(made, 6, max_records=6)
    made.close()
    assert stored(cluster).offset == 6
    with pytest.raises(ZeroDivisionError), member(cluster) as made:
        poll_until(made, 4)
        1 / 0  # noqa: B018 - it is to raise
    assert stored(cluster).offset == 6


def test_the_next_consumer_of_the_group_goes_on(cluster):
    with member(cluster) as made:
        poll_until(made, 6, max_records=6)
    with member(cluster) as made:
        assert values(poll_until(made, 4)) == [6, 7, 8, 9]


def test_marks_are_what_is_committed_once_there_are_any(cluster):
    with member(cluster) as made:
        records = poll_until(made, 10)
        assert made.task_done(records[4])
        made.commit()
        assert stored(cluster).offset == 5
        made.task_done(records[6])
    assert stored(cluster).offset == 7


def test_only_records_can_be_marked(cluster):
    with member(cluster) as made:
        with pytest.raises(
            ArgumentTypeError, match='takes a record of this consumer, not NoneType'
        ):
            made.task_done(None)


def test_marks_are_committed_with_the_epoch_of_their_record(cluster):
    """Without it nobody could tell whether the log was cut below them."""
    with member(cluster) as made:
        (record,) = poll_until(made, 1, max_records=1)
        made.task_done(record._replace(leader_epoch=7))
        made.commit()
        assert (stored(cluster).offset, stored(cluster).leader_epoch) == (1, 7)
        assert made.offsets('task_done')[FIRST] == 0


@pytest.mark.parametrize('known, is_stored', [(3, False), (4, True), (-1, True), (None, True)])
def test_an_offset_behind_a_record_of_another_epoch_is_not_stored_yet(known, is_stored):
    state = SimpleNamespace(committed=OffsetAndMetadata(10, 'x', known))
    assert _is_stored(state, OffsetAndMetadata(10, '', 4)) is is_stored


def test_an_interceptor_learns_of_commits(cluster):
    seen = []

    class Noting:
        def on_commit(self, offsets):
            seen.append(offsets)

    with member(cluster, interceptors=[Noting]) as made:
        poll_until(made, 10)
        made.commit()
        assert seen == [{FIRST: OffsetAndMetadata(10, '', 0)}]


def test_a_group_that_went_on_without_the_member_refuses_its_commit(cluster):
    with consumer_of(cluster, 't', group_id='other') as active:
        poll_until(active, 10)
        with consumer_of(cluster, group_id='other') as made:
            made.assign([FIRST])
            with pytest.raises(CommitFailedError):
                made.commit({FIRST: OffsetAndMetadata(1, '')})
