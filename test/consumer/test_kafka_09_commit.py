"""kafka.consumer.kafka_09: marks and commits of 0.9.5's KafkaConsumer."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from kafka.errors import (
    ConsumerTimeout,
    FailedPayloadsError,
    GroupAuthorizationFailedError,
    KafkaConfigurationError,
    KafkaUnavailableError,
    NotCoordinatorForConsumerCode,
    UnknownError,
)
from kafka.structs import OffsetCommitRequest, OffsetCommitResponse
from test.consumer.helpers_09 import SERVERS, consumer, fetched, kept, message, places

ZERO, ONE = (b'topic', 0), (b'topic', 1)


# ---------------------------------------------------------------- task_done


def test_task_done_notes_the_offset(serve):
    serve((0, 9), (0, 9))
    made = consumer()
    assert made.task_done(message(0)) is True
    assert made.task_done(message(1)) is True
    assert made.task_done(message(4, partition=1, topic='topic')) is True
    assert made.offsets('task_done') == {ZERO: 1, ONE: 4}


def test_a_message_of_a_partition_that_is_not_consumed_is_not_marked(serve, caplog):
    serve((0, 9), (0, 9))
    made = consumer(('topic', 0))
    assert made.task_done(message(0, partition=1)) is False
    assert made.task_done(message(0, topic=b'other')) is False
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert made.offsets('task_done') == {ZERO: None}


@pytest.mark.parametrize('first, second', [(3, 5), (3, 3), (3, 1)])
def test_a_gap_between_marks_is_warned_about_and_marked(serve, caplog, first, second):
    serve((0, 9))
    made = consumer(group_id='g')
    made.task_done(message(first))
    assert caplog.records == []
    assert made.task_done(message(second)) is True
    (line,) = caplog.records
    assert (line.name, line.levelno) == ('kafka.consumer.kafka', logging.WARNING)
    made.commit()
    assert made.offsets('commit') == {ZERO: second + 1}


def test_offsets_without_a_message_are_no_gap(serve, caplog):
    """Compaction and the markers of transactions leave them; the program has missed nothing."""
    client = serve((0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [[fetched(messages=kept(0, 4, 5, 8))]]
    for _ in range(4):
        made.task_done(next(made))
    assert made.offsets('task_done') == {ZERO: 8}
    assert caplog.records == []


def test_a_mark_before_what_is_committed_is_warned_about(serve, caplog):
    client = serve((0, 9))
    client.stored = {0: 5}
    made = consumer(group_id='g')
    made.task_done(message(5))
    assert caplog.records == []
    made.set_topic_partitions(('topic', 0, 2))
    assert made.task_done(message(2)) is True
    assert 'committed' in caplog.text
    assert made.commit() is True
    assert client.stored == {0: 3}


@pytest.mark.parametrize('thing', [None, 7, b'value', SimpleNamespace(topic='t', partition=0)])
def test_what_is_no_message_is_a_type_error(serve, thing):
    serve((0, 9))
    with pytest.raises(TypeError, match='message'):
        consumer().task_done(thing)


def test_a_message_with_an_offset_that_is_no_int_is_a_type_error(serve):
    serve((0, 9))
    with pytest.raises(TypeError, match='offset'):
        consumer().task_done(SimpleNamespace(topic='topic', partition=0, offset='1'))


# ---------------------------------------------------------------- commit


def test_commit_stores_the_offset_after_the_marked_message(serve):
    client = serve((0, 9), (0, 9))
    made = consumer(group_id='g')
    made.task_done(message(3))
    assert made.commit() is True
    assert client.called('send_offset_commit_request') == [
        ((b'g', [OffsetCommitRequest(b'topic', 0, 4, b'')]), {})
    ]
    assert made.offsets('commit') == {ZERO: 4, ONE: None}


def test_commit_without_anything_new_stores_nothing(serve):
    client = serve((0, 9))
    made = consumer(group_id='g')
    next(made)
    assert made.commit() is False  # nothing marked
    made.task_done(message(0))
    assert (made.commit(), made.commit()) == (True, False)
    assert len(client.called('send_offset_commit_request')) == 1


def test_commit_without_a_group_is_a_configuration_error(serve):
    serve((0, 9))
    made = consumer()
    made.task_done(next(made))
    with pytest.raises(KafkaConfigurationError, match='group_id'):
        made.commit()


def test_a_commit_that_fails_is_made_again(serve):
    client = serve((0, 9))
    made = consumer(group_id='g')
    made.task_done(next(made))
    client.answers['send_offset_commit_request'] = [UnknownError('no')]
    with pytest.raises(UnknownError):
        made.commit()
    assert made.offsets('commit') == {ZERO: None}
    assert made.commit() is True
    assert client.stored == {0: 1}


def test_an_error_in_the_answer_to_a_commit_comes_out(serve):
    client = serve((0, 9))
    made = consumer(group_id='g')
    made.task_done(next(made))
    client.answers['send_offset_commit_request'] = [[OffsetCommitResponse(b'topic', 0, -1)]]
    with pytest.raises(UnknownError):
        made.commit()
    assert made.offsets('commit') == {ZERO: None}


def test_offsets_of_another_group_do_not_count_as_committed(serve):
    client = serve((0, 9))
    made = consumer(group_id='one')
    made.task_done(next(made))
    made.commit()
    made.configure(bootstrap_servers=SERVERS, group_id='two')
    assert made.commit() is True
    assert [args[0] for args, _ in client.called('send_offset_commit_request')] == [b'one', b'two']


def test_a_group_goes_on_where_it_committed(serve):
    serve((0, 9))
    first = consumer(group_id='g')
    for _ in range(4):
        first.task_done(next(first))
    first.commit()
    first.close()
    assert places([next(consumer(group_id='g'))]) == [(0, 4)]


# ---------------------------------------------------------------- auto commit


def commits(client):
    """Return the offset of each commit of partition 0."""
    return [args[1][0].offset for args, _ in client.called('send_offset_commit_request')]


def take(made, count):
    for _ in range(count):
        made.task_done(next(made))


def test_auto_commit_by_count(serve):
    client = serve((0, 100))
    take(consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_messages=20), 79)
    assert commits(client) == [20, 40, 60]


def test_auto_commit_by_time_happens_with_the_next_mark(serve, clock_09):
    client = serve((0, 100))
    made = consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_ms=5000)
    take(made, 3)
    clock_09.now += 4.9
    take(made, 1)
    assert commits(client) == []
    clock_09.now += 0.2
    take(made, 1)
    assert commits(client) == [5]
    clock_09.now += 4.9
    take(made, 1)
    assert commits(client) == [5]


def test_count_and_time_reset_each_other_and_so_does_commit(serve, clock_09):
    client = serve((0, 100))
    made = consumer(
        group_id='g',
        auto_commit_enable=True,
        auto_commit_interval_ms=5000,
        auto_commit_interval_messages=10,
    )
    clock_09.now += 4
    take(made, 10)
    clock_09.now += 4
    take(made, 9)
    assert commits(client) == [10]
    made.commit()
    take(made, 9)
    assert commits(client) == [10, 19]
    take(made, 1)
    assert commits(client) == [10, 19, 29]


@pytest.mark.parametrize('never', [None, 0, -1])
def test_no_interval_means_never(serve, clock_09, never):
    client = serve((0, 100))
    made = consumer(
        group_id='g',
        auto_commit_enable=True,
        auto_commit_interval_ms=never,
        auto_commit_interval_messages=never,
    )
    take(made, 50)
    clock_09.now += 1e6
    take(made, 49)
    assert commits(client) == []


def test_without_auto_commit_enable_intervals_mean_nothing(serve):
    client = serve((0, 100))
    take(consumer(group_id='g', auto_commit_interval_messages=2), 50)
    assert commits(client) == []


def test_what_is_not_marked_is_not_committed(serve, clock_09):
    client = serve((0, 100))
    made = consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_ms=1000)
    for _ in range(100):
        clock_09.now += 1
        next(made)
    assert commits(client) == []


def test_marks_are_committed_in_time_though_nothing_more_comes(serve, clock_09):
    client = serve((0, 3))
    made = consumer(
        group_id='g',
        auto_commit_enable=True,
        auto_commit_interval_ms=5000,
        consumer_timeout_ms=20000,
    )
    take(made, 3)
    with pytest.raises(ConsumerTimeout, match='no message'):
        next(made)
    assert commits(client) == [3]


@pytest.mark.parametrize(
    'failure',
    [FailedPayloadsError(None), KafkaUnavailableError('down'), NotCoordinatorForConsumerCode()],
)
def test_a_failure_that_may_pass_is_logged_and_made_up_for(serve, clock_09, caplog, failure):
    client = serve((0, 3))
    made = consumer(
        group_id='g',
        auto_commit_enable=True,
        auto_commit_interval_ms=5000,
        consumer_timeout_ms=20000,
    )
    client.answers['send_offset_commit_request'] = [failure]
    take(made, 3)
    with pytest.raises(ConsumerTimeout, match='no message'):
        next(made)
    assert commits(client) == [3, 3]
    assert client.stored == {0: 3}
    assert [r.levelno for r in caplog.records] == [logging.ERROR]


def test_a_mark_whose_commit_failed_counts_all_the_same(serve, caplog):
    client = serve((0, 9))
    made = consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_messages=2)
    client.answers['send_offset_commit_request'] = [FailedPayloadsError(None)]
    take(made, 3)
    assert 'commit failed' in caplog.text
    assert (commits(client), client.stored) == ([2], {})
    take(made, 1)
    assert (commits(client), client.stored) == ([2, 4], {0: 4})


def test_a_failure_that_lasts_comes_out(serve):
    """A program whose offsets are never stored has to know."""
    client = serve((0, 9))
    made = consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_messages=2)
    client.answers['send_offset_commit_request'] = [GroupAuthorizationFailedError()] * 2
    take(made, 1)
    for _ in range(2):
        with pytest.raises(GroupAuthorizationFailedError):
            take(made, 2)
    take(made, 2)
    assert client.stored == {0: 6}


def test_a_failure_that_lasts_does_not_keep_messages_back(serve, clock_09):
    client = serve((0, 9), per_fetch=1)
    made = consumer(group_id='g', auto_commit_enable=True, auto_commit_interval_ms=5000)
    take(made, 1)
    client.answers['send_offset_commit_request'] = [GroupAuthorizationFailedError()]
    clock_09.now += 6
    with pytest.raises(GroupAuthorizationFailedError):
        next(made)
    assert places([next(made)]) == [(0, 1)]
