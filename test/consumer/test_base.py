"""kafka.consumer.base: partitions, stored offsets, commits."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import pytest

from kafka.consumer import base
from kafka.consumer.base import Consumer
from kafka.errors import (
    FailedPayloadsError,
    GroupLoadInProgressError,
    LeaderNotAvailableError,
    ProtocolError,
)
from kafka.structs import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetRequest,
    OffsetResponse,
)
from test.fake_client import FakeClient, LaterFakeClient


@pytest.fixture(autouse=True)
def timers(monkeypatch):
    """Replace the timer by one that the test moves by hand."""
    made = []

    class HandTimer:
        def __init__(self, t, fn):
            self.t, self.tick, self.running, self.started = t, fn, False, 0
            made.append(self)

        def start(self):
            self.running = True
            self.started += 1

        def stop(self):
            self.running = False

        cancel = stop

    monkeypatch.setattr(base, 'ReentrantTimer', HandTimer)
    return made


def consumer(client=None, **options):
    options.setdefault('auto_commit', False)
    return Consumer(client or FakeClient((0, 9), (0, 9)), 'group', 'topic', **options)


def committed(client):
    return [args for args, _ in client.called('send_offset_commit_request')]


def test_constants_are_those_of_0_9_5():
    expected = {
        'AUTO_COMMIT_MSG_COUNT': 100,
        'AUTO_COMMIT_INTERVAL': 5000,
        'FETCH_DEFAULT_BLOCK_TIMEOUT': 1,
        'FETCH_MAX_WAIT_TIME': 100,
        'FETCH_MIN_BYTES': 4096,
        'FETCH_BUFFER_SIZE_BYTES': 4096,
        'MAX_FETCH_BUFFER_SIZE_BYTES': 32768,
        'ITER_TIMEOUT_SECONDS': 60,
        'NO_MESSAGES_WAIT_TIME_SECONDS': 0.1,
        'FULL_QUEUE_WAIT_TIME_SECONDS': 0.1,
        'MAX_BACKOFF_SECONDS': 60,
    }
    assert {name: getattr(base, name) for name in expected} == expected


def test_topic_and_group_become_bytes_and_metadata_is_loaded_first():
    client = FakeClient((0, 0), (0, 0))
    made = consumer(client)
    assert (made.client, made.topic, made.group) == (client, b'topic', b'group')
    assert client.calls[0] == ('load_metadata_for_topics', (b'topic',), {})


def test_names_stay_as_given_with_a_client_of_1_x():
    made = consumer(LaterFakeClient())
    assert (made.topic, made.group) == ('topic', 'group')


def test_topic_that_is_being_created_is_no_error_with_a_client_of_1_x():
    client = LaterFakeClient()
    consumer(client)
    assert client.called('load_metadata_for_topics') == [
        (('topic',), {'ignore_leadernotavailable': True})
    ]


@pytest.mark.parametrize('group, topic, named', [(5, 't', 'group'), ('g', None, 'topic')])
def test_names_of_a_wrong_type_are_refused_by_name(group, topic, named):
    with pytest.raises(TypeError, match=named):
        Consumer(FakeClient(), group, topic)


def test_partitions_default_to_all_and_are_not_looked_up_when_given():
    client = FakeClient((0, 0), (0, 0), (0, 0))
    assert sorted(consumer(client).offsets) == [0, 1, 2]
    assert client.called('get_partition_ids_for_topic') == [((b'topic',), {})]
    other = FakeClient((0, 0), (0, 0), (0, 0))
    assert sorted(consumer(other, partitions=[1, 2]).offsets) == [1, 2]
    assert consumer(other, partitions=[]).offsets == {}
    assert other.called('get_partition_ids_for_topic') == []


@pytest.mark.parametrize('option', ['auto_commit_every_n', 'auto_commit_every_t'])
def test_an_interval_that_is_no_number_is_named(option):
    with pytest.raises(TypeError, match='%s must be a number' % option):
        consumer(FakeClient(), **{option: 'x'})


def test_partitions_must_be_integers():
    for wrong in (['0'], '01', [0, 1.5], [None]):
        with pytest.raises(AssertionError):
            consumer(partitions=wrong)
    with pytest.raises(TypeError, match='partitions'):
        consumer(partitions=0)


def test_with_a_group_the_stored_offsets_are_asked_for_with_the_very_object_given(monkeypatch):
    seen = []
    monkeypatch.setattr(
        Consumer, 'fetch_last_known_offsets', lambda self, *args, **kw: seen.append((args, kw))
    )
    given = (0, 1)
    consumer(partitions=given)
    assert seen == [((given,), {})]
    assert seen[0][0][0] is given


def test_an_iterator_of_partitions_is_not_used_up_by_checking_it():
    assert sorted(consumer(partitions=iter([0, 1])).offsets) == [0, 1]


def test_without_a_group_offsets_start_at_0():
    client = FakeClient((5, 9), (5, 9))
    made = Consumer(client, None, 'topic', auto_commit=False)
    assert made.group is None
    assert made.offsets == {0: 0, 1: 0}
    assert client.called('send_offset_fetch_request') == []
    with pytest.raises(ValueError):
        made.fetch_last_known_offsets()


def test_without_a_group_nothing_is_committed():
    client = FakeClient()
    made = Consumer(client, None, 'topic')
    made.count_since_commit = 5
    assert made.commit() is None
    made.stop()
    assert committed(client) == []


def test_stored_offsets_are_where_the_consumer_goes_on_and_none_stored_is_0():
    client = FakeClient((0, 9), (0, 9), (0, 9))
    client.stored = {0: 4, 2: 0}
    made = consumer(client)
    assert made.offsets == {0: 4, 1: 0, 2: 0}
    requests = [OffsetFetchRequest(b'topic', partition) for partition in (0, 1, 2)]
    assert client.called('send_offset_fetch_request') == [((b'group', requests), {})]


def test_error_3_means_none_stored():
    client = FakeClient()
    client.answers['send_offset_fetch_request'] = [[OffsetFetchResponse(b'topic', 0, -1, b'', 3)]]
    assert consumer(client).offsets == {0: 0}


def test_other_errors_of_stored_offsets_raise():
    client = FakeClient()
    failed = FailedPayloadsError(OffsetFetchRequest(b'topic', 0))
    client.answers['send_offset_fetch_request'] = [
        [OffsetFetchResponse(b'topic', 0, -1, b'', 14)],
        [failed],
    ]
    with pytest.raises(GroupLoadInProgressError):
        consumer(client)
    with pytest.raises(FailedPayloadsError):
        consumer(client)


def test_a_partition_without_an_answer_gets_no_offset():
    client = FakeClient((0, 0), (0, 0))
    client.answers['send_offset_fetch_request'] = [[OffsetFetchResponse(b'topic', 1, 6, b'', 0)]]
    assert consumer(client).offsets == {1: 6}


def test_stored_offsets_can_be_fetched_again_for_all_or_some():
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client)
    client.stored = {0: 3, 1: 4}
    made.fetch_last_known_offsets([1])
    assert made.offsets == {0: 0, 1: 4}
    made.fetch_last_known_offsets()
    assert made.offsets == {0: 3, 1: 4}


def test_commit_sends_all_offsets_at_once_and_resets_the_counter():
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client)
    made.offsets.update({0: 3, 1: 4})
    made.count_since_commit = 7
    assert made.commit() is True
    assert made.count_since_commit == 0
    requests = [
        OffsetCommitRequest(b'topic', 0, 3, None),
        OffsetCommitRequest(b'topic', 1, 4, None),
    ]
    assert committed(client) == [(b'group', requests)]


def test_commit_of_some_partitions_sends_only_these():
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client)
    made.count_since_commit = 1
    made.commit(partitions=[1])
    assert committed(client) == [(b'group', [OffsetCommitRequest(b'topic', 1, 0, None)])]
    made.count_since_commit = 1
    with pytest.raises(ValueError, match='5'):
        made.commit([5])


def test_commit_without_anything_new_sends_nothing():
    client = FakeClient()
    assert consumer(client).commit() is None
    assert committed(client) == []


def test_a_failed_commit_is_logged_and_gives_false_and_keeps_the_counter(caplog):
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 10
    client.answers['send_offset_commit_request'] = [FailedPayloadsError('payload', 'gone')]
    with caplog.at_level(logging.DEBUG):
        assert made.commit(partitions=[0]) is False
    assert made.count_since_commit == 10
    assert 'gone' in caplog.text


def test_the_answer_to_a_commit_is_not_examined():
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 1
    client.answers['send_offset_commit_request'] = [object()]
    assert made.commit() is True


def test_what_is_taken_while_a_commit_is_under_way_is_not_counted_as_committed():
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 2

    def meanwhile(group, payloads):
        made.offsets[0] += 1
        made.count_since_commit += 1

    client.answers['send_offset_commit_request'] = [meanwhile]
    assert made.commit() is True
    assert made.count_since_commit > 0


def test_a_second_commit_waits_for_the_first():
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 1
    order = []

    def other():
        order.append(made.commit())

    def slow(group, payloads):
        thread.start()
        thread.join(0.05)
        order.append('first')

    thread = threading.Thread(target=other)
    client.answers['send_offset_commit_request'] = [slow]
    assert made.commit() is True
    thread.join(5)
    assert order == ['first', None]


def test_a_commit_from_inside_a_commit_does_nothing():
    """As when a signal handler calls stop() while its own thread commits."""
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 1
    inner = []
    client.answers['send_offset_commit_request'] = [lambda *args: inner.append(made.commit())]
    assert made.commit() is True
    assert inner == [None]
    assert len(committed(client)) == 1


def test_the_timer_runs_only_with_auto_commit_and_an_interval(timers):
    for options in ({'auto_commit': False}, {'auto_commit': True, 'auto_commit_every_t': None}):
        assert consumer(**options).commit_timer is None
    assert timers == []
    made = consumer(auto_commit=True, auto_commit_every_t=70)
    assert [(timer.t, timer.running) for timer in timers] == [(70, True)]
    made.stop()
    assert not timers[0].running


def test_the_timer_commits(timers):
    client = FakeClient()
    made = consumer(client, auto_commit=True)
    timers[0].tick()
    assert committed(client) == []
    made.count_since_commit = 1
    timers[0].tick()
    assert len(committed(client)) == 1
    made.stop()


def test_a_constructor_that_fails_leaves_no_timer_running(timers):
    client = FakeClient()
    client.answers['send_offset_fetch_request'] = [LeaderNotAvailableError()]
    with pytest.raises(LeaderNotAvailableError):
        consumer(client, auto_commit=True)
    assert [timer.running for timer in timers] == [False]


@pytest.mark.parametrize(
    'auto_commit, every_n, count, commits',
    [(True, 5, 4, 0), (True, 5, 5, 1), (True, 5, 9, 1), (False, 5, 9, 0), (True, None, 9, 0)],
)
def test_a_count_triggers_a_commit(auto_commit, every_n, count, commits):
    client = FakeClient()
    made = consumer(client, auto_commit_every_n=every_n)
    made.auto_commit = auto_commit  # set from outside, as programs do
    made.count_since_commit = count
    made._auto_commit()
    assert len(committed(client)) == commits


def test_stop_commits_once_more_where_a_timer_ran(timers):
    client = FakeClient()
    made = consumer(client, auto_commit=True)
    made.count_since_commit = 1
    made.stop()
    assert len(committed(client)) == 1
    made.stop()
    assert len(committed(client)) == 1


def test_stop_commits_nothing_without_a_timer():
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 1
    made.stop()
    assert committed(client) == []


def test_a_commit_while_a_call_begins_has_nothing_that_it_takes():
    """That of the timer's thread."""
    client = FakeClient()
    made = consumer(client)

    class Beginning(dict):
        def __iter__(self):  # or dict() would not call keys()
            return super().__iter__()

        def keys(self):
            made._before = {0: self[0]}
            self[0] += 1
            return super().keys()

    made.offsets = Beginning({0: 5})
    assert made._read() == {0: 5}


def test_the_exit_hook_stops_and_is_dropped_by_stop(exit_hooks, timers):
    client = FakeClient()
    made = consumer(client, auto_commit=True)
    made.count_since_commit = 1
    exit_hooks[0]()
    assert len(committed(client)) == 1
    assert exit_hooks == []


def test_the_exit_hook_does_not_keep_a_consumer_alive(exit_hooks):
    made = consumer()
    gone, [hook] = weakref.ref(made), exit_hooks
    del made
    gc.collect()
    assert gone() is None
    assert exit_hooks == []
    hook()


def test_a_forked_process_commits_though_its_parent_was_committing(monkeypatch):
    """The thread that holds the lock exists in the parent alone."""
    client = FakeClient()
    made = consumer(client)
    made.count_since_commit = 1
    holder = threading.Thread(target=made.commit_lock.acquire)
    holder.start()
    holder.join()
    made._committing = True
    monkeypatch.setattr('kafka.consumer.base.os.getpid', lambda: -1)
    assert made.commit() is True


def test_a_forked_process_that_ends_leaves_the_commit_to_its_parent(
    exit_hooks, monkeypatch, timers
):
    client = FakeClient()
    made = consumer(client, auto_commit=True)
    made.count_since_commit = 1
    monkeypatch.setattr('kafka.consumer.base.os.getpid', lambda: -1)
    exit_hooks[0]()
    assert committed(client) == []


def test_pending_is_what_the_logs_hold_beyond_the_offsets():
    client = FakeClient((0, 10), (0, 20))
    made = consumer(client)
    made.offsets.update({0: 4, 1: 0})
    assert made.pending() == 26
    assert made.pending([1]) == made.pending(partitions=[1]) == 20
    requests = [OffsetRequest(b'topic', 0, -1, 1), OffsetRequest(b'topic', 1, -1, 1)]
    assert client.called('send_offset_request')[0] == ((requests,), {})
    with pytest.raises(ValueError):
        made.pending([7])


def test_an_answer_without_an_offset_is_a_protocol_error():
    client = FakeClient()
    made = consumer(client)
    client.answers['send_offset_request'] = [[OffsetResponse(b'topic', 0, 0, ())]]
    with pytest.raises(ProtocolError):
        made.pending()


def test_partition_info_is_off_until_asked_for():
    made = consumer()
    assert made.partition_info is False
    made.provide_partition_info()
    assert made.partition_info is True


def test_repr_shows_group_topic_and_partitions():
    assert repr(consumer()) == "<Consumer group=b'group', topic=b'topic', partitions=[0, 1]>"


@pytest.mark.parametrize('method', ['commit', 'pending', 'fetch_last_known_offsets'])
def test_partitions_that_are_no_list_are_named(method):
    made = consumer(FakeClient((0, 3)), auto_commit=False)
    made.count_since_commit = 1
    with pytest.raises(TypeError, match='partitions must be a list of int, not int'):
        getattr(made, method)(5)


def test_what_is_taken_while_the_timer_commits_other_partitions_is_not_committed_yet():
    """One that stands where a reset has put it is left out of the commit, and read meanwhile."""
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client)
    made.offsets.update({0: 3, 1: 5})
    made._unread[1] = 5
    made.count_since_commit = 1
    send = client.send_offset_commit_request

    def take(*args, **more):
        made.offsets[1] = 6
        made.count_since_commit += 1
        return send(*args, **more)

    client.send_offset_commit_request = take
    assert made.commit()
    assert made.count_since_commit == 1
    client.send_offset_commit_request = send
    assert made.commit()
    assert {request.partition: request.offset for request in committed(client)[-1][1]} == {
        0: 3, 1: 6
    }  # fmt: skip
