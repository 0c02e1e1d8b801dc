"""kafka.offsets.lookups: who is asked, how each version is asked and read, what errors lead to."""

from __future__ import annotations

import random

import pytest

from kafka.errors import (
    AuthenticationFailedError,
    IllegalStateError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafka.net.loop.tasks import Waiter
from kafka.offsets.lookups import EpochEnd, OffsetLookups
from kafka.structs import OffsetAndTimestamp
from test.consumer.scripted_pool import MISSING, Code, ScriptedPool, questions, tp
from test.manual_loop import ManualLoop

LEADS = {'a-0': (0, 3), 'a-1': (1, 3), 'b-0': (0, 5)}


@pytest.fixture
def loop():
    return ManualLoop()


@pytest.fixture
def pool(loop):
    return ScriptedPool(loop, LEADS)


class Asking:
    """A look-up under way. outcome(): what it returned or raised."""

    def __init__(self, loop, pool, coroutine_of, committed=False):
        lookups = OffsetLookups(loop, pool, committed, 30.0, 0.1, 1.0, random.Random(1))
        self._loop = loop
        self._task = loop.spawn(coroutine_of(lookups))
        self._task.add_done_callback(lambda task: None)

    def after(self, seconds):
        self._loop.advance(seconds)
        return self._task.done

    def outcome(self, seconds=0.0):
        assert self.after(seconds)
        return self._task.result()


def times(loop, pool, timestamps, timeout=10.0, committed=False):
    asked = {tp(name): time for name, time in timestamps.items()}
    return Asking(loop, pool, lambda each: each.look_up(asked, timeout), committed)


def epochs(loop, pool, wanted, timeout=10.0):
    asked = {tp(name): each for name, each in wanted.items()}
    return Asking(loop, pool, lambda each: each.epoch_ends(asked, timeout))


# ------------------------------------------------------------ who is asked what


def test_a_connection_that_is_lost_before_it_is_asked_is_made_again(loop, pool):
    pool.log = {'a-0': 10}
    link = pool.link(0)
    versions, link.versions = link.versions, None
    asking = times(loop, pool, {'a-0': -1})
    assert not asking.after(0.0)
    link.versions = versions
    assert asking.outcome(5.0)[tp('a-0')].offset == 10


def test_each_leader_is_asked_once_about_all_it_leads(loop, pool):
    pool.log = {'a-0': 10, 'a-1': 11, 'b-0': 12}
    found = times(loop, pool, {'a-0': -1, 'a-1': -2, 'b-0': 5000}).outcome()
    assert {each: offset.offset for each, offset in found.items()} == {
        tp('a-0'): 10,
        tp('a-1'): 11,
        tp('b-0'): 12,
    }
    assert [(node, questions(request)) for node, _, request in pool.asked] == [
        (0, {'a-0': -1, 'b-0': 5000}),
        (1, {'a-1': -2}),
    ]


def test_nothing_asked_is_nothing_found(loop, pool):
    assert times(loop, pool, {}, timeout=0.0).outcome() == {}
    assert pool.asked == []


def test_leaders_are_asked_at_the_same_time(loop, pool):
    pool.log = {'a-0': 10, 'a-1': 11}
    pool.waiting[0] = Waiter()
    waiting = pool.waiting[0]
    asking = times(loop, pool, {'a-0': -1, 'a-1': -1})
    assert not asking.after(0)
    assert [node for node, _, _ in pool.asked] == [0, 1]
    waiting.wake()
    assert len(asking.outcome()) == 2


def test_a_record_comes_with_its_time_and_epoch(loop, pool):
    pool.log = {'a-0': 10}
    found = times(loop, pool, {'a-0': 5000}).outcome()[tp('a-0')]
    assert tuple(found) == (10, 7010, 4)
    assert isinstance(found, OffsetAndTimestamp)


def test_requests_say_what_is_known_of_the_leader(loop, pool):
    pool.log = {'b-0': 1}
    times(loop, pool, {'b-0': -1}).outcome()
    (_, version, request) = pool.asked[0]
    assert version == 11
    assert request.topics[0].partitions[0].current_leader_epoch == 5
    assert (request.replica_id, request.timeout_ms) == (-1, 30000)


@pytest.mark.parametrize(
    'committed, version, level', [(True, 11, 1), (True, 2, 1), (True, 1, 0), (False, 11, 0)]
)
def test_isolation_is_asked_for_where_it_is_known(loop, pool, committed, version, level):
    pool.log = {'a-0': 1}
    pool.old(list_offsets=version)
    times(loop, pool, {'a-0': -1}, committed=committed).outcome()
    assert pool.asked[0][2].isolation_level == level


# ------------------------------------------------------------ versions


@pytest.mark.parametrize('version', range(12))
def test_the_ends_of_logs_are_found_by_every_version(loop, pool, version):
    pool.log = {'a-0': {-1: 10, -2: 3}}
    pool.old(list_offsets=version)
    assert times(loop, pool, {'a-0': -1}).outcome()[tp('a-0')].offset == 10
    assert times(loop, pool, {'a-0': -2}).outcome()[tp('a-0')].offset == 3
    assert pool.asked[0][1] == version


def test_version_0_asks_for_one_offset_and_has_no_times(loop, pool):
    pool.log = {'a-0': 10}
    pool.old(list_offsets=0)
    assert tuple(times(loop, pool, {'a-0': -1}).outcome()[tp('a-0')]) == (10, -1, -1)
    assert pool.asked[0][2].topics[0].partitions[0].max_num_offsets == 1


@pytest.mark.parametrize(
    'time, version',
    [(0, 0), (5000, 0), (-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)],
)
def test_a_time_that_a_broker_does_not_know_is_not_asked_for(loop, pool, time, version):
    pool.old(list_offsets=version)
    with pytest.raises(UnsupportedVersionError, match=r'node 0 .* time %d in a-0' % time):
        times(loop, pool, {'a-0': time}).outcome()
    assert pool.asked == []


@pytest.mark.parametrize(
    'time, version', [(0, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-1, 0), (-2, 0)]
)
def test_special_times_are_asked_for_from_their_version_on(loop, pool, time, version):
    pool.log = {'a-0': 8}
    pool.old(list_offsets=version)
    assert times(loop, pool, {'a-0': time}).outcome()[tp('a-0')].offset == 8


def test_no_offset_is_none(loop, pool):
    pool.log = {'a-0': -1}
    assert times(loop, pool, {'a-0': 5000}).outcome() == {tp('a-0'): None}


def test_a_log_without_times_has_no_offset_for_one(loop, pool):
    pool.log = {'a-0': Code(43)}
    assert times(loop, pool, {'a-0': 5000}).outcome() == {tp('a-0'): None}


# ------------------------------------------------------------ errors


@pytest.mark.parametrize('code', [-1, 2, 3, 5, 6, 7, 9, 13, 56, 74, 75, 78, 100, 103, 9999])
def test_errors_that_may_pass_are_asked_again_after_a_refresh(loop, pool, code):
    pool.log = {'a-0': [Code(code), 10], 'b-0': 20}
    asking = times(loop, pool, {'a-0': -1, 'b-0': -1})
    assert not asking.after(0.07)
    assert pool.metadata_asked == []
    assert asking.outcome(0.06)[tp('a-0')].offset == 10
    assert pool.metadata_asked == [['a']]
    assert [questions(request) for _, _, request in pool.asked] == [
        {'a-0': -1, 'b-0': -1},
        {'a-0': -1},
    ]


def test_a_new_leader_is_asked(loop, pool):
    pool.log = {'a-0': 10}
    pool.lead('a-0', 2, 4)
    assert times(loop, pool, {'a-0': -1}).outcome(0.2)[tp('a-0')].offset == 10
    assert [node for node, _, _ in pool.asked] == [0, 2]
    assert pool.asked[1][2].topics[0].partitions[0].current_leader_epoch == 4


def test_a_partition_left_out_of_an_answer_is_asked_again(loop, pool):
    pool.log = {'a-0': [MISSING, 10]}
    assert times(loop, pool, {'a-0': -1}).outcome(0.2)[tp('a-0')].offset == 10


def test_pauses_grow_up_to_their_longest(loop, pool):
    pool.log = {'a-0': Code(6)}
    asking = times(loop, pool, {'a-0': -1}, timeout=8.0)
    seen = []
    for _ in range(79):
        asking.after(0.1)
        seen.append(len(pool.asked))
    assert 11 <= seen[-1] <= 15
    assert seen[20] >= 5  # 0.1, 0.2, 0.4, 0.8 and then 1 each


@pytest.mark.parametrize(
    'error', [KafkaConnectionError('gone'), KafkaTimeoutError('slow'), NoBrokersAvailable()]
)
def test_a_lost_request_is_sent_again(loop, pool, error):
    pool.log = {'a-0': 10}
    pool.failing[0] = [error]
    assert times(loop, pool, {'a-0': -1}).outcome(0.2)[tp('a-0')].offset == 10


def test_a_leader_that_is_no_longer_listed_is_no_error(loop, pool):
    pool.lead('a-0', 7, 9)
    pool.learn()
    pool.log = {'a-0': 10}
    pool.lead('a-0', 1, 10)
    assert times(loop, pool, {'a-0': -1}).outcome(0.2)[tp('a-0')].offset == 10


@pytest.mark.parametrize(
    'error', [AuthenticationFailedError('no'), IllegalStateError('the client is closed')]
)
def test_what_connecting_fails_with_for_good_is_raised_at_once(loop, pool, error):
    pool.links[0].unreachable = [error]
    with pytest.raises(type(error)):
        times(loop, pool, {'a-0': -1}).outcome()


def test_topics_that_are_not_allowed_are_raised_together(loop, pool):
    pool.log = {'a-0': Code(29), 'b-0': Code(29), 'a-1': 5}
    with pytest.raises(TopicAuthorizationFailedError) as caught:
        times(loop, pool, {'a-0': -1, 'b-0': -1, 'a-1': -1}).outcome()
    assert caught.value.args == ({'a', 'b'},)


def test_a_time_that_one_partition_does_not_know_is_raised(loop, pool):
    pool.log = {'a-0': Code(35)}
    with pytest.raises(UnsupportedVersionError, match='a-0 at node 0'):
        times(loop, pool, {'a-0': -3}).outcome()


def test_the_time_out_names_partitions_and_why(loop, pool):
    pool.log = {'a-0': Code(6), 'a-1': 5, 'b-0': [Code(3)]}
    asking = times(loop, pool, {'a-0': -1, 'a-1': -1, 'b-0': -1}, timeout=2.5)
    assert not asking.after(2.4)
    with pytest.raises(KafkaTimeoutError) as caught:
        asking.outcome(0.1)
    text = str(caught.value)
    assert 'within 2.5 seconds' in text
    assert 'a-0 ([Error 6] NotLeader' in text
    assert 'b-0 ([Error 3] UnknownTopic' in text
    assert 'a-1' not in text


def test_the_time_out_names_some_of_many(loop):
    pool = ScriptedPool(loop, {'t-%d' % number: (-1, 0) for number in range(100)})
    asking = times(loop, pool, {'t-%d' % number: -1 for number in range(100)}, timeout=1.0)
    with pytest.raises(KafkaTimeoutError, match='t-0 .* and 92 others'):
        asking.outcome(1.0)


def test_a_leader_that_does_not_answer_costs_the_others_nothing_but_time(loop, pool):
    pool.log = {'a-0': 10, 'a-1': 11}
    pool.waiting[0] = Waiter()
    asking = times(loop, pool, {'a-0': -1, 'a-1': -1}, timeout=5.0)
    with pytest.raises(KafkaTimeoutError, match='a-0') as caught:
        asking.outcome(5.0)
    assert 'a-1' not in str(caught.value)


def test_a_leader_has_the_request_time_out_and_no_longer(loop, pool):
    pool.log = {'a-0': 10}
    pool.waiting[0] = Waiter()
    asking = times(loop, pool, {'a-0': -1}, timeout=100.0)
    assert not asking.after(29.9)
    assert asking.outcome(0.4)[tp('a-0')].offset == 10


# ------------------------------------------------------------ leaders that are not known


def test_an_unknown_topic_is_asked_about_at_once(loop, pool):
    pool.lead('c-0', 2)
    pool.log = {'c-0': 4}
    assert times(loop, pool, {'c-0': -1}).outcome()[tp('c-0')].offset == 4
    assert pool.metadata_asked == [['c']]


def test_a_partition_that_nobody_knows_is_asked_about_until_the_limit(loop, pool):
    asking = times(loop, pool, {'a-9': -1}, timeout=5.0)
    assert not asking.after(4.9)
    with pytest.raises(KafkaTimeoutError, match='a-9 .*topic a has 2 partitions, none of them 9'):
        asking.outcome(0.1)
    assert 6 <= len(pool.metadata_asked) <= 10
    assert all(0 < each <= 5.0 for each in pool.metadata_timeouts)
    assert pool.asked == []


def test_the_time_out_tells_what_brokers_say_of_the_topic(loop, pool):
    pool.topic_codes['c'] = 3
    with pytest.raises(KafkaTimeoutError, match=r'c-0 \(\[Error 3\]'):
        times(loop, pool, {'c-0': -1}, timeout=1.0).outcome(1.0)


@pytest.mark.parametrize(
    'code, error', [(29, TopicAuthorizationFailedError), (17, InvalidTopicError)]
)
def test_a_topic_that_is_refused_is_raised_when_it_is_told(loop, pool, code, error):
    pool.topic_codes['c'] = code
    with pytest.raises(error):
        times(loop, pool, {'c-0': -1}).outcome()
    assert pool.metadata_asked == [['c']]


def test_metadata_has_the_request_time_out_and_no_longer(loop, pool):
    times(loop, pool, {'a-9': -1}, timeout=100.0).after(1.0)
    assert set(pool.metadata_timeouts) == {30.0}


def test_a_partition_without_leader_is_told_as_that(loop, pool):
    pool.lead('a-0', -1, 4)
    pool.learn()
    with pytest.raises(KafkaTimeoutError, match='a-0 .*no leader is known'):
        times(loop, pool, {'a-0': -1}, timeout=1.0).outcome(1.0)
    assert pool.asked == []


def test_a_leader_that_comes_is_asked(loop, pool):
    pool.lead('a-0', -1, 4)
    pool.learn()
    pool.log = {'a-0': 10}
    asking = times(loop, pool, {'a-0': -1})
    assert not asking.after(1.0)
    pool.lead('a-0', 1, 5)
    assert asking.outcome(1.2)[tp('a-0')].offset == 10


def test_metadata_that_cannot_be_had_is_tried_again(loop, pool):
    pool.metadata_errors = [NoBrokersAvailable('nobody'), KafkaConnectionError('lost')]
    pool.lead('c-0', 2)
    pool.log = {'c-0': 4}
    assert times(loop, pool, {'c-0': -1}).outcome(0.5)[tp('c-0')].offset == 4


def test_metadata_that_is_refused_for_good_is_raised(loop, pool):
    pool.metadata_errors = [AuthenticationFailedError('no')]
    with pytest.raises(AuthenticationFailedError):
        times(loop, pool, {'c-0': -1}).outcome()


# ------------------------------------------------------------ epochs


def test_the_end_of_an_epoch_is_asked_of_the_leader(loop, pool):
    pool.log = {'a-0': EpochEnd(2, 50), 'a-1': EpochEnd(-1, -1)}
    found = epochs(loop, pool, {'a-0': (3, 2), 'a-1': (3, 1)}).outcome()
    assert found == {tp('a-0'): EpochEnd(2, 50), tp('a-1'): EpochEnd(-1, -1)}
    assert [(node, questions(request)) for node, _, request in pool.asked] == [
        (0, {'a-0': (3, 2)}),
        (1, {'a-1': (3, 1)}),
    ]
    assert pool.asked[0][2].replica_id == -1


@pytest.mark.parametrize('version', [3, 4])
def test_consumers_have_epochs_from_version_3_on(loop, pool, version):
    pool.log = {'a-0': EpochEnd(2, 50)}
    pool.old(epochs=version)
    assert epochs(loop, pool, {'a-0': (3, 2)}).outcome()[tp('a-0')].end_offset == 50


@pytest.mark.parametrize('version', [-1, 0, 2])
def test_brokers_before_it_are_not_asked(loop, pool, version):
    pool.old(epochs=version)
    with pytest.raises(UnsupportedVersionError, match='consumers need 3'):
        epochs(loop, pool, {'a-0': (3, 2)}).outcome()
    assert pool.asked == []


@pytest.mark.parametrize('answer', [Code(74), Code(75), Code(6), MISSING])
def test_the_end_of_an_epoch_is_asked_again_after_errors(loop, pool, answer):
    pool.log = {'a-0': [answer, EpochEnd(2, 50)]}
    assert epochs(loop, pool, {'a-0': (3, 2)}).outcome(0.2)[tp('a-0')].end_offset == 50


def test_it_shows_how_it_reads(loop, pool):
    assert repr(OffsetLookups(loop, pool, True, 1, 1, 1)) == '<OffsetLookups read_committed>'
