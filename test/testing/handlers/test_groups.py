"""DescribeGroups, ListGroups and DeleteGroups of the embedded broker; who answers for a group."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.group import MemberIdentity
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
)

from ..drive import Driver
from ..group_requests import (
    GROUP,
    SUBSCRIBED,
    Consumer,
    commit,
    heartbeat,
    join,
    leave,
    settle,
    sync,
)


def started(version='4.4', **settings):
    driver = Driver(version, **settings)
    driver.state.create_topic('t', 1)
    return driver


@pytest.fixture
def driver():
    return started()


def described(driver, version=None, node=0, **fields):
    request = DescribeGroupsRequest(groups=[GROUP], **fields)
    return driver.ask(request, version, node=node).groups[0]


# ------------------------------------------------------------ who answers


def test_another_broker_than_the_coordinator_refuses_all():
    driver = started(brokers=2)
    other = 1 - driver.state.coordinator_of(GROUP)
    assert driver.ask(join(), node=other).error_code == NOT_COORDINATOR
    assert driver.ask(sync('m', 1), node=other).error_code == NOT_COORDINATOR
    assert driver.ask(heartbeat('m', 1), node=other).error_code == NOT_COORDINATOR
    gone = driver.ask(leave(MemberIdentity(member_id='m')), node=other)
    assert (gone.error_code, gone.members) == (NOT_COORDINATOR, [])
    assert described(driver, node=other).error_code == NOT_COORDINATOR
    deleted = driver.ask(DeleteGroupsRequest(groups_names=[GROUP]), node=other)
    assert deleted.results[0].error_code == NOT_COORDINATOR


def test_a_join_that_waits_while_the_coordinator_moves_is_sent_away():
    driver = started(brokers=2)
    here = driver.state.coordinator_of(GROUP)
    clients = [driver.client(here) for _ in range(2)]
    clients[0].send(join(), 3)
    first = clients[0].receive()
    clients[1].send(join(), 3)
    driver.state.moved_coordinators[GROUP] = 1 - here
    driver.ask(join(first.member_id), 3, node=1 - here)
    assert clients[1].receive().error_code == NOT_COORDINATOR


@pytest.mark.parametrize(
    ('version', 'error'), [('1.1', UNKNOWN_MEMBER_ID), ('2.0', INVALID_GROUP_ID)]
)
def test_a_group_needs_a_name(version, error):
    driver = started(version)
    request = leave(member_id='m')
    request.group_id = ''
    assert driver.ask(request, version=0).error_code == error
    beat = heartbeat('m', 1)
    beat.group_id = ''
    assert driver.ask(beat).error_code == error
    assert driver.ask(sync('m', 1, group='')).error_code == error


# ------------------------------------------------------------ describe


@pytest.mark.parametrize(('release', 'version'), [('0.9', 0), ('2.8', 5), ('4.4', 6)])
def test_a_stable_group_is_described_with_its_members(release, version):
    driver = started(release)
    consumer = Consumer(driver)
    settle(consumer)
    group = described(driver, version)
    assert (group.error_code, group.group_state) == (NONE, 'Stable')
    assert (group.protocol_type, group.protocol_data) == ('consumer', 'range')
    (member,) = group.members
    assert (member.member_id, member.client_id) == (consumer.member_id, 'driver')
    assert member.client_host == '/127.0.0.1'
    assert bytes(member.member_metadata) == SUBSCRIBED
    assert bytes(member.member_assignment) == consumer.member_id.encode()


def test_an_unsettled_group_is_described_without_metadata(driver):
    consumer = Consumer(driver)
    consumer.join()
    group = described(driver)
    assert (group.group_state, group.protocol_data) == ('CompletingRebalance', '')
    assert group.members[0].member_metadata == b''


def test_before_1_1_a_group_awaits_its_sync():
    driver = started('1.0')
    Consumer(driver).join()
    assert described(driver).group_state == 'AwaitingSync'


def test_static_members_are_described_by_their_instance(driver):
    settle(Consumer(driver, instance='one'))
    assert described(driver).members[0].group_instance_id == 'one'


@pytest.mark.parametrize(('version', 'error'), [(0, NONE), (5, NONE), (6, GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_is_dead(driver, version, error):
    group = described(driver, version)
    assert (group.error_code, group.group_state, group.members) == (error, 'Dead', [])


def test_a_group_of_offsets_only_is_empty(driver):
    driver.ask(commit(1), 2)
    group = described(driver)
    assert (group.error_code, group.group_state, group.protocol_type) == (NONE, 'Empty', '')


@pytest.mark.parametrize(('release', 'bits'), [('2.3', 328), ('3.9', 328), ('4.0', 3400)])
def test_operations_are_told_when_asked_for(release, bits):
    driver = started(release)
    driver.ask(commit(1), 2)
    assert described(driver).authorized_operations == -0x80000000
    group = described(driver, include_authorized_operations=True)
    assert group.authorized_operations == bits


# ------------------------------------------------------------ list


def names(response):
    return [each.group_id for each in response.groups]


@pytest.mark.parametrize('version', range(6))
def test_groups_are_listed_in_every_version(driver, version):
    settle(Consumer(driver))
    driver.ask(commit(1, group='offsets'), 2)
    response = driver.ask(ListGroupsRequest(), version)
    assert [(each.group_id, each.protocol_type) for each in response.groups] == [
        (GROUP, 'consumer'),
        ('offsets', ''),
    ]
    assert response.groups[0].group_state == ('Stable' if version >= 4 else '')
    assert response.groups[0].group_type == ('classic' if version >= 5 else '')


def test_the_list_is_filtered_by_state(driver):
    settle(Consumer(driver))
    driver.ask(commit(1, group='offsets'), 2)
    assert names(driver.ask(ListGroupsRequest(states_filter=['Empty']))) == ['offsets']
    assert names(driver.ask(ListGroupsRequest(states_filter=['stable']))) == [GROUP]


def test_the_list_is_filtered_by_type(driver):
    settle(Consumer(driver))
    assert names(driver.ask(ListGroupsRequest(types_filter=['classic']))) == [GROUP]
    assert names(driver.ask(ListGroupsRequest(types_filter=['consumer']))) == []


def test_each_broker_lists_its_own_groups():
    driver = started(brokers=2)
    here = driver.state.coordinator_of(GROUP)
    driver.ask(commit(1), 2, node=here)
    assert names(driver.ask(ListGroupsRequest(), node=here)) == [GROUP]
    assert names(driver.ask(ListGroupsRequest(), node=1 - here)) == []


# ------------------------------------------------------------ delete


def deleted(driver, version=None):
    return driver.ask(DeleteGroupsRequest(groups_names=[GROUP]), version).results[0].error_code


@pytest.mark.parametrize('version', range(3))
def test_a_group_without_members_is_deleted_with_its_offsets(driver, version):
    driver.ask(commit(1), 2)
    assert deleted(driver, version) == NONE
    assert driver.state.offsets.fetch_all(GROUP) == {}
    assert deleted(driver, version) == GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(('version', 'error'), [('1.1', INVALID_GROUP_ID), ('2.0', NONE)])
def test_the_group_without_name_is_deleted_from_2_0(version, error):
    driver = started(version)
    driver.ask(commit(1, group=''), 2)
    response = driver.ask(DeleteGroupsRequest(groups_names=['']))
    assert response.results[0].error_code == error


def test_a_group_with_members_is_not_deleted(driver):
    consumer = Consumer(driver)
    settle(consumer)
    assert deleted(driver) == NON_EMPTY_GROUP
    driver.ask(leave(MemberIdentity(member_id=consumer.member_id)))
    assert deleted(driver) == NONE
    assert described(driver, 5).group_state == 'Dead'
