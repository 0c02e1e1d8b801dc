"""Static members of classic groups (KIP-345): who comes back is who it was."""

from __future__ import annotations

import pytest

from kafka.protocol.group import MemberIdentity
from kafka.testing.errors import (
    FENCED_INSTANCE_ID,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    UNKNOWN_MEMBER_ID,
)

from .drive import Driver
from .group_requests import GROUP, Consumer, heartbeat, leave, settle, sync


@pytest.fixture
def driver():
    return Driver('4.4')


def test_a_static_member_needs_no_second_join(driver):
    response = Consumer(driver, instance='one').join()
    assert (response.error_code, response.member_id[:4]) == (NONE, 'one-')


@pytest.mark.parametrize('version', ['2.3', '2.8', '4.4'])
def test_a_restarted_static_follower_gets_a_new_id_in_the_same_generation(version):
    driver = Driver(version)
    first, second = Consumer(driver, instance='one'), Consumer(driver, instance='two')
    settle(first, second)
    old = second if first.leader == first.member_id else first
    new = Consumer(driver, instance=old.instance)
    response = new.join()
    assert (response.error_code, response.generation_id) == (NONE, old.generation)
    assert new.member_id != old.member_id
    assert response.members == []
    assert new.ask(sync(new.member_id, new.generation)).assignment == old.member_id.encode()
    assert old.heartbeat() == FENCED_INSTANCE_ID


def test_a_restarted_static_leader_is_told_the_old_leader_below_version_9(driver):
    old = Consumer(driver, instance='one')
    settle(old)
    response = Consumer(driver, instance='one').join(8)
    assert (response.leader, response.members) == (old.member_id, [])


def test_a_restarted_static_leader_skips_the_assignment_from_version_9(driver):
    settle(Consumer(driver, instance='one'))
    response = Consumer(driver, instance='one').join(9)
    assert response.skip_assignment
    assert response.leader == response.member_id
    assert len(response.members) == 1


def test_a_restarted_static_member_with_another_protocol_rebalances(driver):
    settle(Consumer(driver, instance='one'))
    again = Consumer(driver, instance='one', protocols={'sticky': b''})
    assert again.join().error_code == INCONSISTENT_GROUP_PROTOCOL
    turned = Consumer(driver, instance='one', protocols={'sticky': b'', 'range': b''})
    assert turned.join().generation_id == 2


def test_a_static_member_that_waits_is_fenced_by_its_successor(driver):
    first, second = Consumer(driver, instance='one'), Consumer(driver)
    settle(first, second)
    other = Consumer(driver, instance='two')
    other.join()
    second.send_join()
    again = Consumer(driver, instance='two')
    again.join()
    assert other.client.receive().error_code == FENCED_INSTANCE_ID


def test_a_known_id_with_anothers_instance_is_fenced(driver):
    first, second = Consumer(driver, instance='one'), Consumer(driver, instance='two')
    settle(first, second)
    request = heartbeat(first.member_id, first.generation, group_instance_id='two')
    assert first.ask(request).error_code == FENCED_INSTANCE_ID
    request = heartbeat(first.member_id, first.generation, group_instance_id='three')
    assert first.ask(request).error_code == UNKNOWN_MEMBER_ID


def test_an_unknown_instance_of_a_known_member_passes_before_3_0():
    first = Consumer(Driver('2.8'), instance='one')
    settle(first)
    request = heartbeat(first.member_id, first.generation, group_instance_id='three')
    assert first.ask(request).error_code == NONE


def test_a_static_member_stays_through_a_rebalance_that_it_misses(driver):
    first = Consumer(driver, instance='one', session_timeout_ms=1000000)
    settle(first)
    second = Consumer(driver)
    second.join()
    driver.advance(60.1)
    assert second.joined().leader == second.member_id
    assert first.member_id in driver.state.groups.get(GROUP).members


def test_an_administrator_removes_a_static_member_by_its_instance(driver):
    settle(Consumer(driver, instance='one'))
    request = leave(MemberIdentity(member_id='', group_instance_id='one'))
    response = driver.ask(request)
    assert (response.members[0].error_code, response.members[0].member_id) == (NONE, '')
    assert not driver.state.groups.get(GROUP).members
