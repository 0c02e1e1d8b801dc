"""Classic groups of the embedded broker: who joins, when rebalances end, what members hear."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.protocol.group import MemberIdentity
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.groups.group_states import TRANSITIONS, GroupState

from ..drive import Driver
from ..group_requests import GROUP, SUBSCRIBED, Consumer, heartbeat, join, leave, settle, sync

OLD_AND_NEW = pytest.mark.parametrize('version', ['0.9', '0.10.2', '2.3', '2.8', '4.4'])


@pytest.fixture
def driver():
    return Driver('4.4')


def test_every_state_is_in_the_transition_table():
    assert set(TRANSITIONS) == set(GroupState)


def test_an_illegal_transition_names_both_states(driver):
    consumer = Consumer(driver)
    consumer.join()
    group = driver.state.groups.get(GROUP)
    with pytest.raises(IllegalStateError, match='COMPLETING_REBALANCE to EMPTY'):
        group._move(GroupState.EMPTY)


# ------------------------------------------------------------ join


@OLD_AND_NEW
def test_the_first_member_leads_generation_one(version):
    consumer = Consumer(Driver(version))
    response = consumer.join()
    assert (response.error_code, response.generation_id) == (NONE, 1)
    assert response.leader == response.member_id
    assert response.protocol_name == 'range'
    assert [(m.member_id, bytes(m.metadata)) for m in response.members] == [
        (response.member_id, SUBSCRIBED)
    ]


def test_a_member_id_is_the_client_id_and_a_random_rest(driver):
    assert Consumer(driver).join().member_id.startswith('driver-')


def test_a_join_without_id_only_gets_one_from_version_4(driver):
    response = driver.ask(join(), version=4)
    assert (response.error_code, response.generation_id) == (MEMBER_ID_REQUIRED, -1)
    assert response.member_id
    assert driver.ask(join(), version=3).error_code == NONE


def test_the_given_id_is_good_for_one_session_timeout(driver):
    given = driver.ask(join(), version=9).member_id
    driver.advance(10.1)
    assert driver.ask(join(given), version=9).error_code == UNKNOWN_MEMBER_ID


def test_an_unknown_member_id_is_refused(driver):
    assert driver.ask(join('nobody'), version=3).error_code == UNKNOWN_MEMBER_ID
    driver.ask(join(), version=3)
    assert driver.ask(join('nobody'), version=3).error_code == UNKNOWN_MEMBER_ID


def test_a_group_needs_a_name(driver):
    assert driver.ask(join(group=''), version=3).error_code == INVALID_GROUP_ID


@pytest.mark.parametrize(
    ('version', 'timeout_ms', 'error'),
    [
        ('4.4', 1, INVALID_SESSION_TIMEOUT),
        ('4.4', 1800000, NONE),
        ('4.4', 1800001, INVALID_SESSION_TIMEOUT),
        ('2.2', 300001, INVALID_SESSION_TIMEOUT),
        ('0.9', 30000, NONE),
        ('0.9', 40000, INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeouts_have_bounds(version, timeout_ms, error):
    response = Driver(version).ask(join(session_timeout_ms=timeout_ms), version=0)
    assert response.error_code == error


@pytest.mark.parametrize(('version', 'generation'), [('0.9', 0), ('2.8', -1)])
def test_a_refused_join_has_no_generation(version, generation):
    response = Driver(version).ask(join('nobody'), version=0)
    assert (response.generation_id, response.protocol_name, response.leader) == (generation, '', '')


def test_a_refused_join_names_no_protocol_from_version_7(driver):
    assert driver.ask(join('nobody'), version=6).protocol_name == ''
    assert driver.ask(join('nobody'), version=7).protocol_name is None


def test_members_must_have_a_protocol_in_common(driver):
    settle(Consumer(driver))
    other = join(protocols={'sticky': b''})
    assert driver.ask(other, version=3).error_code == INCONSISTENT_GROUP_PROTOCOL


def test_members_must_have_the_same_type_of_protocol(driver):
    settle(Consumer(driver))
    other = join(protocol_type='connect')
    assert driver.ask(other, version=3).error_code == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize('version', ['0.10.2', '0.11'])
def test_before_1_0_a_member_without_protocols_blocks_its_group(version):
    driver = Driver(version)
    client = driver.client()
    client.send(join('', protocols={}), 0)
    response = client.receive()
    if version == '0.11':
        assert response is None
    else:
        assert (response.error_code, response.generation_id) == (UNKNOWN_SERVER_ERROR, -1)
    group = driver.state.groups.get(GROUP)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert len(group.members) == 1
    assert Consumer(driver).join().error_code == INCONSISTENT_GROUP_PROTOCOL


def test_a_refused_first_member_leaves_an_empty_group_for_ten_minutes(driver):
    response = driver.ask(join(protocols={}), version=3)
    assert response.error_code == INCONSISTENT_GROUP_PROTOCOL
    assert driver.state.groups.get(GROUP).state is GroupState.EMPTY
    driver.advance(601)
    assert driver.state.groups.get(GROUP) is None


def test_the_protocol_with_most_votes_is_chosen(driver):
    both = {'range': b'', 'roundrobin': b''}
    turned = {'roundrobin': b'', 'range': b''}
    members = [Consumer(driver, protocols=dict(each)) for each in (both, turned, turned)]
    settle(*members)
    assert driver.state.groups.get(GROUP).protocol_name == 'roundrobin'


def test_only_what_all_support_is_chosen(driver):
    first = Consumer(driver, protocols={'sticky': b'', 'range': b''})
    settle(first, Consumer(driver, protocols={'range': b''}))
    assert driver.state.groups.get(GROUP).protocol_name == 'range'


def test_only_the_leader_is_told_the_members(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first)
    assert second.join() is None
    assert len(first.join().members) == 2
    assert second.joined().members == []


def test_a_full_group_takes_nobody_more():
    driver = Driver('4.4', group_max_size=1)
    settle(Consumer(driver))
    assert driver.ask(join(), version=3).error_code == GROUP_MAX_SIZE_REACHED


def test_what_all_groups_take_together_is_limited(driver):
    settle(Consumer(driver))
    driver.state.groups.budget.limit = driver.state.groups.budget.used + 1000
    assert Consumer(driver).join(3).error_code == COORDINATOR_NOT_AVAILABLE


def test_long_names_count(driver):
    driver.state.groups.budget.limit = 10000
    request = join(group='g' * 30000)
    assert driver.ask(request, version=3).error_code == COORDINATOR_NOT_AVAILABLE
    assert driver.state.groups.all() == []


def test_what_groups_take_is_given_back(driver):
    consumer, other = Consumer(driver), Consumer(driver)
    settle(consumer, other)
    driver.ask(join(), version=9)
    driver.advance(3600)
    assert driver.state.groups.budget.used == 0


# ------------------------------------------------------------ rebalances


def test_a_rejoin_of_a_follower_with_the_same_metadata_changes_nothing(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first, second)
    follower = second if first.leader == first.member_id else first
    before = follower.generation
    response = follower.join()
    assert (response.error_code, response.generation_id, response.members) == (0, before, [])
    assert first.heartbeat() == second.heartbeat() == NONE


def test_a_rejoin_of_the_leader_makes_a_new_generation(driver):
    consumer = Consumer(driver)
    settle(consumer)
    assert consumer.join().generation_id == 2


def test_a_rejoin_with_other_metadata_makes_a_new_generation(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first, second)
    follower, leader = (second, first) if first.leader == first.member_id else (first, second)
    follower.fields['protocols'] = {'range': b'other'}
    assert follower.join() is None
    assert leader.heartbeat() == REBALANCE_IN_PROGRESS


def test_a_repeated_join_before_the_sync_gets_the_same_generation(driver):
    consumer = Consumer(driver)
    first = consumer.join()
    again = consumer.join()
    assert (again.generation_id, again.members) == (first.generation_id, first.members)


def test_who_does_not_rejoin_in_time_is_out(driver):
    first, second = Consumer(driver, session_timeout_ms=120000), Consumer(driver)
    settle(first)
    second.join()
    driver.advance(59.9)
    assert second.joined() is None
    driver.advance(0.2)
    assert second.joined().generation_id == 2
    assert first.heartbeat() == UNKNOWN_MEMBER_ID


def test_version_0_waits_for_the_session_timeout(driver):
    first, second = Consumer(driver), Consumer(driver)
    first.join(0)
    second.send_join(0)
    assert second.joined() is None
    driver.advance(10.1)
    assert second.joined().generation_id == 2


def test_the_first_rebalance_collects_members():
    driver = Driver('4.4', group_initial_rebalance_delay_ms=3000)
    first, second = Consumer(driver), Consumer(driver)
    first.join()
    driver.advance(2)
    second.join()
    driver.advance(3.9)
    assert first.joined() is None
    driver.advance(0.2)
    assert first.joined().generation_id == second.joined().generation_id == 1


def test_the_first_rebalance_collects_no_longer_than_the_rebalance_timeout():
    driver = Driver('4.4', group_initial_rebalance_delay_ms=3000)
    first = Consumer(driver, rebalance_timeout_ms=8000)
    first.join()
    for _ in range(3):
        driver.advance(2.5)
        assert first.joined() is None
        Consumer(driver, rebalance_timeout_ms=8000).join()
    driver.advance(0.6)
    assert len(first.joined().members) == 4


def test_brokers_before_0_11_know_no_initial_delay():
    driver = Driver('0.10.2', group_initial_rebalance_delay_ms=3000)
    assert Consumer(driver).join().error_code == NONE


def test_a_member_that_waits_for_others_does_not_expire(driver):
    first, second = Consumer(driver, session_timeout_ms=60000), Consumer(driver)
    settle(first, second)
    third = Consumer(driver)
    third.join()
    second.send_join()
    driver.advance(50)
    assert driver.state.groups.get(GROUP).members.keys() >= {second.member_id}


def test_an_id_that_was_given_out_is_waited_for(driver):
    consumer = Consumer(driver)
    settle(consumer)
    given = driver.ask(join(), version=9).member_id
    assert consumer.join() is None
    driver.ask(leave(MemberIdentity(member_id=given)))
    assert consumer.joined().generation_id == 2


def test_those_who_wait_go_on_when_the_last_they_wait_for_leaves(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first)
    second.join()
    first.ask(leave(MemberIdentity(member_id=first.member_id)))
    assert second.joined().leader == second.member_id


# ------------------------------------------------------------ sync


def test_followers_get_their_assignment_when_the_leader_has_given_it(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first)
    second.join()
    first.join()
    second.joined()
    leader, follower = (first, second) if first.leader == first.member_id else (second, first)
    follower.send_sync()
    assert follower.client.receive() is None
    leader.send_sync({follower.member_id: b'yours'})
    assert follower.client.receive().assignment == b'yours'
    assert leader.client.receive().assignment == b''


def test_who_waits_for_the_leader_does_not_expire():
    driver = Driver('2.8')
    first, second = Consumer(driver, session_timeout_ms=60000), Consumer(driver)
    settle(first)
    second.join()
    first.join()
    second.joined()
    second.send_sync()
    driver.advance(15)
    first.send_sync({second.member_id: b'yours'})
    assert second.client.receive().assignment == b'yours'


def test_a_repeated_sync_gets_the_same_assignment(driver):
    consumer = Consumer(driver)
    settle(consumer)
    response = consumer.ask(sync(consumer.member_id, 1))
    assert (response.error_code, response.assignment) == (NONE, consumer.member_id.encode())
    assert (response.protocol_type, response.protocol_name) == ('consumer', 'range')


def test_a_sync_in_a_rebalance_is_told_so(driver):
    first = Consumer(driver)
    settle(first)
    Consumer(driver).join()
    assert first.ask(sync(first.member_id, 1)).error_code == REBALANCE_IN_PROGRESS


def test_a_waiting_sync_fails_when_somebody_joins(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first)
    second.join()
    first.join()
    second.joined()
    follower = second if first.leader == first.member_id else first
    follower.send_sync()
    Consumer(driver).join()
    assert follower.client.receive().error_code == REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ('generation', 'fields', 'error'),
    [
        (2, {}, ILLEGAL_GENERATION),
        (1, {'protocol_type': 'connect'}, INCONSISTENT_GROUP_PROTOCOL),
        (1, {'protocol_name': 'sticky'}, INCONSISTENT_GROUP_PROTOCOL),
        (1, {'protocol_type': 'consumer', 'protocol_name': 'range'}, NONE),
    ],
)
def test_a_sync_must_name_what_was_agreed_on(driver, generation, fields, error):
    consumer = Consumer(driver)
    settle(consumer)
    response = consumer.ask(sync(consumer.member_id, generation, **fields))
    assert response.error_code == error


@pytest.mark.parametrize('name', ['protocol_type', 'protocol_name'])
def test_a_sync_must_name_what_was_agreed_on_from_version_5(driver, name):
    consumer = Consumer(driver)
    settle(consumer)
    request = sync(consumer.member_id, 1, **{name: None})
    assert consumer.ask(request, 5).error_code == INCONSISTENT_GROUP_PROTOCOL
    assert consumer.ask(request, 4).error_code == NONE


def test_a_sync_to_an_unknown_group_is_of_an_unknown_member(driver):
    assert driver.ask(sync('nobody', 1)).error_code == UNKNOWN_MEMBER_ID


def test_who_does_not_sync_in_time_is_out_from_3_0(driver):
    first, second = Consumer(driver), Consumer(driver, session_timeout_ms=1000000)
    settle(first)
    second.join()
    first.join()
    second.joined()
    first.send_sync({})
    first.client.receive()
    for _ in range(7):
        driver.advance(9)
        first.heartbeat()
    assert second.heartbeat() == UNKNOWN_MEMBER_ID


def test_an_assignment_larger_than_a_record_is_not_stored(driver):
    consumer = Consumer(driver)
    consumer.join()
    consumer.send_sync({consumer.member_id: bytes(1100000)})
    assert consumer.client.receive().error_code == UNKNOWN_SERVER_ERROR


# ------------------------------------------------------------ heartbeats


def test_a_silent_member_is_out_after_its_session_timeout(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first, second)
    driver.advance(6)
    assert first.heartbeat() == NONE
    driver.advance(6)
    assert second.heartbeat() == UNKNOWN_MEMBER_ID
    assert first.heartbeat() == REBALANCE_IN_PROGRESS


def test_a_heartbeat_of_another_generation_is_refused(driver):
    consumer = Consumer(driver)
    settle(consumer)
    request = heartbeat(consumer.member_id, 7)
    assert consumer.ask(request).error_code == ILLEGAL_GENERATION


def test_0_9_tells_anybody_of_a_rebalance():
    driver = Driver('0.9')
    Consumer(driver).join()
    assert driver.ask(heartbeat('nobody', 1)).error_code == REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ('version', 'error'), [('2.3', REBALANCE_IN_PROGRESS), ('2.8', NONE), ('4.4', NONE)]
)
def test_a_heartbeat_before_the_sync(version, error):
    consumer = Consumer(Driver(version))
    consumer.join()
    assert consumer.heartbeat() == error


def test_many_heartbeats_need_no_memory(driver):
    consumer = Consumer(driver)
    settle(consumer)
    waiting = len(driver.timers._waiting)
    for _ in range(50):
        consumer.heartbeat()
    assert len(driver.timers._waiting) == waiting


# ------------------------------------------------------------ leave


def test_others_rebalance_when_a_member_leaves(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first, second)
    assert second.ask(leave(member_id=second.member_id), version=2).error_code == NONE
    assert first.heartbeat() == REBALANCE_IN_PROGRESS


def test_leaving_twice_is_an_error_at_the_top_below_version_3(driver):
    assert driver.ask(leave(member_id='nobody'), version=2).error_code == UNKNOWN_MEMBER_ID


def test_each_leaving_member_has_its_own_error_from_version_3(driver):
    consumer = Consumer(driver)
    settle(consumer)
    request = leave(
        MemberIdentity(member_id=consumer.member_id), MemberIdentity(member_id='nobody')
    )
    response = driver.ask(request)
    assert response.error_code == NONE
    assert [each.error_code for each in response.members] == [NONE, UNKNOWN_MEMBER_ID]


def test_an_id_that_was_only_given_out_can_leave(driver):
    given = driver.ask(join(), version=9).member_id
    response = driver.ask(leave(MemberIdentity(member_id=given)))
    assert response.members[0].error_code == NONE
    assert driver.ask(join(given), version=9).error_code == UNKNOWN_MEMBER_ID


def test_the_last_member_leaves_an_empty_group(driver):
    consumer = Consumer(driver)
    settle(consumer)
    driver.ask(leave(member_id=consumer.member_id), version=2)
    group = driver.state.groups.get(GROUP)
    assert (group.state, group.generation) == (GroupState.EMPTY, 2)


def test_before_0_10_1_the_group_goes_with_its_last_member():
    driver = Driver('0.10.0')
    consumer = Consumer(driver)
    settle(consumer)
    driver.ask(leave(member_id=consumer.member_id), version=0)
    assert driver.state.groups.get(GROUP) is None


def test_an_empty_group_without_offsets_goes_after_ten_minutes(driver):
    consumer = Consumer(driver)
    settle(consumer)
    driver.ask(leave(member_id=consumer.member_id), version=2)
    driver.advance(599)
    assert driver.state.groups.get(GROUP) is not None
    driver.advance(2)
    assert not driver.state.groups._groups


# ------------------------------------------------------------ answers and connections


def test_an_answer_that_nobody_waits_for_is_dropped(driver):
    first, second = Consumer(driver), Consumer(driver)
    settle(first, second)
    leader, other = (first, second) if first.leader == first.member_id else (second, first)
    leader.send_join()
    leader.client.connection.close()
    assert other.join().generation_id == leader.generation + 1
    assert other.client.receive() is None


def test_an_answer_brings_in_a_request_that_finds_the_group_settled(driver):
    """Two joins and the leader's sync lie in one connection; the sync is read in the answer."""
    consumer = Consumer(driver)
    consumer.join()
    other = Consumer(driver)
    other.join()
    consumer.client.send(join(consumer.member_id))
    consumer.client.send(sync(consumer.member_id, 2, {consumer.member_id: b'a'}))
    assert consumer.joined().generation_id == 2
    assert consumer.client.receive().assignment == b'a'
