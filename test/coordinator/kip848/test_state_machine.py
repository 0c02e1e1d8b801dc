"""What a member of a KIP-848 group tells, and when; with a clock by hand."""

from __future__ import annotations

import math

import pytest

from kafka.coordinator.group_settings import GroupSettings
from kafka.coordinator.kip848.state_machine import HeartbeatErrorAction, MemberState
from kafka.errors import IllegalStateError, TopicAuthorizationFailedError, UnsupportedVersionError
from test.coordinator.driven_membership import A0, A1, SETTINGS, Driven, stable, units
from test.coordinator.heartbeats import A


def test_a_member_joins_once():
    driven = stable()
    with pytest.raises(IllegalStateError):
        driven.machine.join()


# ---------------------------------------------------------------- requests


def test_a_join_tells_everything():
    driven = Driven()
    driven.machine.join()
    request = driven.send()
    assert (request.group_id, request.member_id, request.member_epoch) == ('g', 'm', 0)
    assert request.rebalance_timeout_ms == 60000
    assert request.subscribed_topic_names == ['a', 'b']
    assert request.subscribed_topic_regex is None
    assert request.server_assignor == 'uniform'
    assert request.rack_id == 'r1'
    assert request.topic_partitions == []  # null is refused
    assert request.instance_id is None


def test_who_has_no_rack_and_no_wish_says_null():
    driven = Driven(GroupSettings('g'))
    driven.machine.join()
    request = driven.send()
    assert request.rack_id is None
    assert request.server_assignor is None


def test_a_heartbeat_tells_nothing_that_was_told():
    driven = stable()
    driven.wait()
    request = driven.send()
    assert (request.member_id, request.member_epoch) == ('m', 1)
    assert request.rebalance_timeout_ms == -1
    assert request.subscribed_topic_names is None
    assert request.server_assignor is None
    assert request.topic_partitions is None
    assert request.rack_id is None


def test_new_topics_are_told_at_once_and_once():
    driven = stable()
    assert driven.machine.subscribe(['a'], None)
    assert not driven.machine.subscribe(['a'], None)
    assert driven.beat(1).subscribed_topic_names == ['a']
    driven.wait()
    assert driven.beat(1).subscribed_topic_names is None


def test_topics_that_change_while_an_answer_is_on_its_way_are_told_after_it():
    driven = stable()
    driven.wait()
    driven.send()
    driven.machine.subscribe(['a'], None)
    assert driven.machine.due == math.inf
    driven.take(1)
    assert driven.send().subscribed_topic_names == ['a']


def test_nothing_subscribed_is_an_empty_list():
    driven = stable()
    driven.machine.subscribe((), None)
    assert driven.send().subscribed_topic_names == []


def test_a_pattern_takes_the_place_of_topics_and_back():
    driven = stable()
    driven.machine.subscribe(None, 'a.*')
    request = driven.beat(1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], 'a.*')
    driven.machine.subscribe(['a'], None)
    request = driven.beat(1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (['a'], '')
    driven.wait()
    assert driven.beat(1).subscribed_topic_regex is None


def test_a_pattern_that_may_have_been_told_is_removed_after_an_error():
    driven = stable(pattern='a.*')
    driven.wait()
    driven.send()
    driven.machine.unanswered(driven.life, driven.now)
    driven.machine.subscribe(['a'], None)
    driven.wait()
    assert driven.send().subscribed_topic_regex == ''


def test_a_static_member_removes_the_pattern_of_the_process_before_it():
    driven = Driven(SETTINGS._replace(group_instance_id='i'))
    driven.machine.join()
    request = driven.send()
    assert request.instance_id == 'i'
    assert request.subscribed_topic_regex == ''


def test_version_0_has_no_patterns():
    driven = Driven(SETTINGS._replace(group_instance_id='i'))
    driven.machine.join()
    assert driven.send(version=0).subscribed_topic_regex is None
    driven = Driven(pattern='a.*')
    driven.machine.join()
    with pytest.raises(UnsupportedVersionError, match=r'Kafka 4\.0'):
        driven.machine.heartbeat(driven.now, 0)


def test_a_member_without_name_takes_the_one_it_is_given():
    driven = Driven(member_id='')
    driven.machine.join()
    assert driven.send(version=0).member_id == ''
    driven.take(1, {}, member_id='given')
    assert driven.machine.member_id == 'given'


def test_a_member_with_a_name_keeps_it():
    driven = Driven()
    driven.machine.join()
    driven.send()
    driven.take(1, {}, member_id='other')
    assert driven.machine.member_id == 'm'


@pytest.mark.parametrize('code', [None, 14, 16, 29])
def test_after_an_error_or_a_lost_answer_everything_is_told(code):
    driven = stable()
    driven.wait()
    driven.send()
    if code is None:
        driven.machine.unanswered(driven.life, driven.now)
    else:
        driven.take(code=code)
    driven.wait()
    request = driven.send()
    assert request.member_epoch == 1
    assert request.rebalance_timeout_ms == 60000
    assert request.subscribed_topic_names == ['a', 'b']
    assert request.server_assignor == 'uniform'
    assert units(request) == {(A, 0), (A, 1)}
    assert request.rack_id is None


# ---------------------------------------------------------------- times


def test_heartbeats_come_as_often_as_the_coordinator_says():
    driven = stable()
    assert driven.machine.due == driven.now + 5
    driven.wait()
    driven.send()
    assert driven.machine.due == math.inf  # one at a time
    driven.now += 2
    driven.take(1, interval_ms=700)
    assert driven.machine.due == pytest.approx(driven.now - 2 + 0.7)


def test_a_coordinator_that_names_no_interval_is_asked_in_the_one_that_is_known():
    driven = stable()
    driven.wait()
    driven.beat(1, interval_ms=0)
    assert driven.machine.due == driven.now + 5


def test_who_is_outside_sends_nothing():
    driven = Driven()
    assert driven.machine.due == math.inf
    driven = stable()
    driven.machine.miss_poll()
    assert driven.machine.due == math.inf


def test_pauses_grow_with_failures_and_end_with_an_answer():
    driven = stable()
    driven.wait()
    for pause in (0.1, 0.2, 0.3):
        driven.send()
        driven.machine.unanswered(driven.life, driven.now)
        assert driven.machine.due == pytest.approx(driven.now + pause)
        driven.wait()
    driven.beat(1)
    driven.wait()
    driven.send()
    driven.take(code=14)
    assert driven.machine.due == pytest.approx(driven.now + 0.1)


@pytest.mark.parametrize('code', [15, 16])
def test_another_coordinator_is_asked_at_once_and_then_after_pauses(code):
    driven = stable()
    driven.wait()
    driven.send()
    assert driven.take(code=code).action is HeartbeatErrorAction.REFIND
    assert driven.machine.due == driven.now
    driven.send()
    driven.take(code=code)
    assert driven.machine.due == pytest.approx(driven.now + 0.1)


def test_a_missing_right_is_passed_on_and_asked_for_again_in_an_interval():
    driven = stable()
    driven.wait()
    driven.send()
    verdict = driven.take(code=29)
    assert verdict.action is HeartbeatErrorAction.SURFACE
    assert isinstance(verdict.error, TopicAuthorizationFailedError)
    assert driven.machine.state is MemberState.STABLE
    assert driven.machine.due == driven.now + 5


def test_another_subscription_than_the_one_denied_is_told_at_once():
    driven = stable()
    driven.wait()
    driven.send()
    driven.take(code=29)
    driven.machine.subscribe(['a', 'b'], None)  # the same
    assert driven.machine.due == driven.now + 5
    driven.machine.subscribe(['a'], None)
    assert driven.send().subscribed_topic_names == ['a']


@pytest.mark.parametrize(('code', 'pause'), [(14, 0.1), (30, 5)])
def test_another_subscription_does_not_shorten_the_pause_after_another_error(code, pause):
    driven = stable()
    driven.wait()
    driven.send()
    driven.take(code=29)
    driven.machine.subscribe(['a'], None)
    driven.send()
    driven.take(code=code)
    due = driven.machine.due
    assert due >= driven.now + pause
    driven.machine.subscribe(['b'], None)
    assert driven.machine.due == due


def test_a_denial_of_what_is_wanted_no_more_is_not_passed_on():
    driven = stable()
    driven.wait()
    driven.send()
    driven.machine.subscribe(['a'], None)
    assert driven.take(code=29).action is HeartbeatErrorAction.RETRY
    assert driven.send().subscribed_topic_names == ['a']
    assert driven.take(code=29).action is HeartbeatErrorAction.SURFACE


def test_who_hurries_waits_a_moment_since_the_last_heartbeat():
    driven = stable()
    driven.machine.hurry()
    assert driven.machine.due == pytest.approx(driven.now + 0.1)
    driven.now += 1
    assert driven.machine.due < driven.now
    driven.beat(1)
    assert driven.machine.due == driven.now + 5


# ---------------------------------------------------------------- leaving


@pytest.mark.parametrize(('instance', 'epoch'), [(None, -1), ('i', -2)])
def test_who_leaves_says_so_by_the_epoch(instance, epoch):
    driven = stable(SETTINGS._replace(group_instance_id=instance))
    driven.machine.leave()
    request = driven.machine.farewell()
    assert (request.member_id, request.member_epoch, request.instance_id) == ('m', epoch, instance)
    assert request.topic_partitions is None
    assert driven.machine.owned == {}
    driven.machine.left()
    assert driven.machine.state is MemberState.UNSUBSCRIBED
    assert driven.machine.farewell() is None


def test_who_never_asked_has_nobody_to_tell():
    driven = Driven()
    driven.machine.join()
    driven.machine.leave()
    assert driven.machine.farewell() is None


def test_a_join_that_may_have_arrived_is_taken_back():
    driven = Driven()
    driven.machine.join()
    driven.send()
    driven.machine.leave()
    assert driven.machine.farewell().member_epoch == -1


def test_who_was_put_out_need_not_leave():
    driven = stable()
    driven.wait()
    driven.send()
    driven.take(code=110)
    driven.machine.leave()
    assert driven.machine.farewell() is None


def test_who_has_no_name_cannot_leave():
    driven = Driven(member_id='')
    driven.machine.join()
    driven.send(version=0)
    driven.machine.leave()
    assert driven.machine.farewell() is None


def test_who_missed_a_poll_leaves_and_keeps_what_it_has_until_it_is_dropped():
    driven = stable()
    driven.machine.miss_poll()
    machine = driven.machine
    assert (machine.state, machine.epoch) == (MemberState.STALE, 0)
    assert machine.farewell().member_epoch == -1
    assert set(machine.owned.values()) == {A0, A1}
    machine.lost()
    assert (machine.state, machine.owned) == (MemberState.STALE, {})
    machine.join()
    assert driven.send().member_epoch == 0


def test_it_shows_where_it_is():
    assert repr(stable().machine) == '<ConsumerMembership of m in g stable epoch=1, 2 owned>'
