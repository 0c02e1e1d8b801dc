"""Requests of members of classic groups: what depends on settings, and on the broker's version."""

from __future__ import annotations

import pytest

from kafka.coordinator.classic.requests import (
    heartbeat_request,
    join_request,
    join_seconds,
    leave_request,
    rebalance_seconds,
    session_seconds,
    sync_request,
)
from kafka.coordinator.classic.state_machine import NOBODY, Generation
from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import UnsupportedVersionError

SETTINGS = GroupSettings('g', session_timeout=45.0, rebalance_timeout=300.0)
STATIC = SETTINGS._replace(group_instance_id='one')
ME = Generation(7, 'me')


def test_join_says_who_what_and_for_how_long():
    request = join_request(STATIC, ME, [('range', b'r'), ('sticky', b's')], 'because', 9)
    assert (request.group_id, request.member_id, request.protocol_type) == ('g', 'me', 'consumer')
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45000, 300000)
    assert request.group_instance_id == 'one'
    assert [(each.name, each.metadata) for each in request.protocols] == [
        ('range', b'r'),
        ('sticky', b's'),
    ]


@pytest.mark.parametrize(('length', 'kept'), [(255, 255), (256, 255), (3, 3)])
def test_a_long_reason_is_cut(length, kept):
    assert len(join_request(SETTINGS, NOBODY, [], 'x' * length, 9).reason) == kept
    assert len(leave_request(SETTINGS, ME, 'x' * length, 5).members[0].reason) == kept


def test_version_0_knows_the_session_time_out_alone_and_takes_30_seconds_at_most():
    assert session_seconds(SETTINGS, 0) == rebalance_seconds(SETTINGS, 0) == 30.0
    assert session_seconds(SETTINGS._replace(session_timeout=8.0), 0) == 8.0
    assert session_seconds(SETTINGS, 1) == 45.0
    assert rebalance_seconds(SETTINGS, 1) == 300.0
    assert join_request(SETTINGS, NOBODY, [], '', 0).session_timeout_ms == 30000


def test_the_answer_to_join_may_take_as_long_as_the_group_waits_and_a_little_longer():
    assert join_seconds(SETTINGS, 5) == 305.0
    assert join_seconds(SETTINGS, 0) == 35.0
    assert join_seconds(SETTINGS._replace(rebalance_timeout=2.0), 5) == 30.0


def test_a_time_that_does_not_fit_is_the_longest_that_does():
    request = join_request(SETTINGS._replace(rebalance_timeout=1e9), NOBODY, [], '', 9)
    assert request.rebalance_timeout_ms == 2**31 - 1


@pytest.mark.parametrize('version', [0, 4])
def test_a_static_member_needs_a_broker_that_knows_them(version):
    with pytest.raises(UnsupportedVersionError, match='group g.*group_instance_id'):
        join_request(STATIC, NOBODY, [], '', version)


def test_sync_hands_in_what_the_leader_gives():
    request = sync_request(STATIC, ME, 'range', {'me': b'1', 'you': b'2'})
    assert (request.generation_id, request.member_id, request.group_instance_id) == (7, 'me', 'one')
    assert (request.protocol_type, request.protocol_name) == ('consumer', 'range')
    assert [(each.member_id, each.assignment) for each in request.assignments] == [
        ('me', b'1'),
        ('you', b'2'),
    ]


def test_a_heartbeat_says_who_lives():
    request = heartbeat_request(STATIC, ME)
    assert (request.group_id, request.generation_id, request.member_id) == ('g', 7, 'me')
    assert request.group_instance_id == 'one'


def test_who_leaves_is_named_alone_before_version_3_and_in_a_list_from_there_on():
    old = leave_request(SETTINGS, ME, 'because', 2)
    assert (old.member_id, old.members) == ('me', [])
    new = leave_request(SETTINGS, ME, 'because', 3)
    assert (new.member_id, [each.member_id for each in new.members]) == ('', ['me'])
