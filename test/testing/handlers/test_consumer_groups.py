"""Offsets and administration of KIP-848 groups of the embedded broker."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.commit import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NON_EMPTY_GROUP,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
)

from ..consumer_group_members import Member, described, settled, started
from ..group_requests import (
    GROUP,
    Consumer,
    commit,
    commit_error,
    fetch_groups,
    fetched,
    join,
    settle,
)


@pytest.fixture
def driver():
    return started()


# ------------------------------------------------------------ offsets


def member_commit(driver, member_id, epoch, version=9, partition=0):
    request = commit(
        5, partition=partition, generation_id_or_member_epoch=epoch, member_id=member_id
    )
    return commit_error(driver.ask(request, version))


def test_members_commit_with_their_epoch(driver):
    Member(driver, 'a').join()
    assert member_commit(driver, 'a', 1) == NONE
    assert member_commit(driver, 'a', 1, version=8) == UNSUPPORTED_VERSION
    assert member_commit(driver, 'a', 2) == STALE_MEMBER_EPOCH
    assert member_commit(driver, 'b', 1) == UNKNOWN_MEMBER_ID
    assert member_commit(driver, '', -1) == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(('version', 'error'), [('4.2', STALE_MEMBER_EPOCH), ('4.4', NONE)])
def test_an_earlier_epoch_does_from_4_3_for_what_was_owned_then(version, error):
    driver = started(version)
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    driver.advance(1)
    settled(first, second)
    kept, gone = first.partitions[0], second.partitions[0]
    assert member_commit(driver, 'a', first.epoch - 1, partition=kept) == error
    assert member_commit(driver, 'a', first.epoch - 1, partition=gone) == STALE_MEMBER_EPOCH
    assert member_commit(driver, 'a', first.epoch, partition=gone) == NONE


def test_members_fetch_with_their_epoch(driver):
    Member(driver, 'a').join()

    def error(**fields):
        return driver.ask(fetch_groups(**fields), 9).groups[0].error_code

    assert error(member_id='a', member_epoch=1) == NONE
    assert error(member_id='a', member_epoch=2) == STALE_MEMBER_EPOCH
    assert error(member_id='b', member_epoch=1) == UNKNOWN_MEMBER_ID
    assert error() == NONE
    assert fetched(driver.ask(fetch_groups(), 9)).committed_offset == -1


def test_offsets_in_transactions_are_fenced_by_the_epoch(driver):
    Member(driver, 'a').join()
    check = driver.state.groups.check_transactional_commit
    assert check(GROUP, 1, 'a', None) == NONE
    assert check(GROUP, 0, 'a', None) == ILLEGAL_GENERATION
    assert check(GROUP, 1, 'b', None) == UNKNOWN_MEMBER_ID
    assert check(GROUP, -1, '', None) == NONE


def test_offsets_of_consumed_topics_stay(driver):
    Member(driver, 'a').join()
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name='t', partitions=partitions)]
    response = driver.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics))
    assert commit_error(response) == GROUP_SUBSCRIBED_TO_TOPIC


# ------------------------------------------------------------ administration


def test_a_group_is_described_with_what_members_have_and_shall_have(driver):
    first, second = Member(driver, 'a', rack_id='r'), Member(driver, 'b')
    first.join()
    second.join()
    first.heartbeat()
    group = described(driver, operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ('Reconciling', 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ('uniform', 3400)
    member = group.members[1]
    assert (member.member_id, member.member_epoch, member.member_type) == ('b', 2, 1)
    assert member.assignment.topic_partitions == []
    (target,) = member.target_assignment.topic_partitions
    assert (target.topic_name, len(target.partitions)) == ('t', 2)
    assert group.members[0].rack_id == 'r'
    settled(first, second)
    assert described(driver).group_state == 'Stable'


@pytest.mark.parametrize(('version', 'epochs'), [('4.2', (2, 1)), ('4.4', (3, 3))])
def test_an_empty_group_is_assigned_from_4_4(version, epochs):
    driver = started(version)
    member = Member(driver, 'a')
    member.join()
    member.leave()
    group = described(driver)
    assert (group.group_epoch, group.assignment_epoch) == epochs


def test_an_unknown_or_classic_group_is_not_described(driver):
    assert described(driver).error_code == GROUP_ID_NOT_FOUND
    settle(Consumer(driver))
    assert described(driver).error_code == GROUP_ID_NOT_FOUND


def test_the_classic_description_does_not_know_it(driver):
    Member(driver, 'a').join()
    group = driver.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups[0]
    assert (group.error_code, group.group_state) == (GROUP_ID_NOT_FOUND, 'Dead')


def test_it_is_listed_with_its_type(driver):
    Member(driver, 'a').join()
    (listed,) = driver.ask(ListGroupsRequest(types_filter=['consumer'])).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        GROUP,
        'consumer',
        'Stable',
        'consumer',
    )


def test_it_is_deleted_when_it_is_empty(driver):
    member = Member(driver, 'a')
    member.join()

    def delete():
        return driver.ask(DeleteGroupsRequest(groups_names=[GROUP])).results[0].error_code

    assert delete() == NON_EMPTY_GROUP
    member.leave()
    assert described(driver).group_state == 'Empty'
    assert delete() == NONE
    assert described(driver).error_code == GROUP_ID_NOT_FOUND


def test_a_description_does_not_tell_of_a_group_that_has_become_too_old(driver):
    member = Member(driver, 'a')
    member.join()
    member_commit(driver, 'a', 1)
    member.leave()
    driver.advance(6 * 86400)
    assert described(driver).group_state == 'Empty'
    driver.advance(2 * 86400)
    assert described(driver).error_code == GROUP_ID_NOT_FOUND


def test_a_group_with_members_does_not_change_its_kind(driver):
    Member(driver, 'a').join()
    assert driver.ask(join(), version=3).error_code == INCONSISTENT_GROUP_PROTOCOL
    assert driver.ask(join(), version=9).error_code == MEMBER_ID_REQUIRED
    other = join(group='classic')
    driver.ask(other, version=3)
    assert Member(driver, 'a').join(group_id='classic').error_code == GROUP_ID_NOT_FOUND


def test_an_empty_group_does(driver):
    member = Member(driver, 'a')
    member.join()
    member_commit(driver, 'a', 1)
    member.leave()
    assert driver.ask(join(), version=3).error_code == NONE
    assert driver.state.offsets.fetch(GROUP, 't', 0).offset == 5
