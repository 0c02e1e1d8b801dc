"""Membership of share groups, and what administrators see of them."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import DeleteGroupsRequest, ListGroupsRequest
from kafka.protocol.commit import OffsetDeleteRequest
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_REQUEST,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.share_groups import ShareGroups
from test.testing.consumer_group_members import Member
from test.testing.data_requests import TOPIC
from test.testing.group_requests import join
from test.testing.share_members import GROUP, ShareMember, described, reader, started


def test_who_joins_gets_no_partitions_before_they_are_prepared():
    cluster = started()
    member = ShareMember(cluster)
    response = member.join()
    assert (response.member_epoch, response.assignment.topic_partitions) == (2, [])
    assert response.heartbeat_interval_ms == 5000
    cluster.advance(1.1)
    member.heartbeat()
    assert (member.partitions, member.epoch) == ([0], 2)


@pytest.mark.parametrize(('version', 'epoch'), [('4.2', 1), ('4.3', 2)])
def test_the_first_epoch_is_that_of_the_release(version, epoch):
    assert ShareMember(started(version)).join().member_epoch == epoch


def test_an_assignment_is_told_once():
    member = reader(started())
    assert member.heartbeat().assignment is None
    assert member.heartbeat(0, subscribed_topic_names=[TOPIC]).assignment is not None


def test_members_share_partitions_when_there_are_more_of_them():
    cluster = started()
    members = [reader(cluster, name) for name in 'abc']
    for each in members:
        each.settle()
    assert [each.partitions for each in members] == [[0], [0], [0]]


def test_members_divide_partitions_when_there_are_enough():
    cluster = started(partitions=4)
    members = [reader(cluster, name) for name in 'ab']
    for each in members * 2:
        each.settle()
    assert sorted(members[0].partitions + members[1].partitions) == [0, 1, 2, 3]
    assert len(members[0].partitions) == 2


def test_partitions_that_are_added_are_assigned():
    cluster = started()
    member = reader(cluster)
    topic = cluster.state.topics[TOPIC]
    topic.partitions.append(type(topic.partitions[0])(TOPIC, 1, [0]))
    assert member.settle().partitions == [0, 1]


def test_topics_that_were_deleted_are_forgotten():
    cluster = started()
    member = reader(cluster)
    member.fetch()
    for number in range(3):
        cluster.state.drop_topic(TOPIC)
        cluster.state.create_topic(TOPIC, 1)
        member.settle()
        assert member.partitions == [0], number
    (group,) = cluster.state.groups.shares.all()
    assert len(group.stored) == 1
    assert len(group.partitions) <= 1


def test_a_member_that_is_silent_is_removed():
    cluster = started()
    member = reader(cluster)
    cluster.advance(46)
    assert member.heartbeat().error_code == UNKNOWN_MEMBER_ID
    assert described(cluster).group_state == 'Empty'


def test_an_epoch_that_is_no_more_is_fenced():
    cluster = started()
    member = reader(cluster)
    assert member.heartbeat(99).error_code == FENCED_MEMBER_EPOCH
    ShareMember(cluster, 'b').join()
    cluster.advance(1.1)
    member.heartbeat()
    assert member.heartbeat(member.epoch - 1).error_code == NONE


@pytest.mark.parametrize(
    'fields',
    [
        {'group_id': ''},
        {'member_id': ''},
        {'rack_id': ''},
        {'subscribed_topic_names': None},
        {'subscribed_topic_names': []},
        {'epoch': -2},
    ],
)
def test_a_heartbeat_must_make_sense(fields):
    asked = {'epoch': 0, 'subscribed_topic_names': [TOPIC]}
    asked.update(fields)
    assert ShareMember(started()).heartbeat(**asked).error_code == INVALID_REQUEST


@pytest.mark.parametrize(('epoch', 'error'), [(1, GROUP_ID_NOT_FOUND), (-1, GROUP_ID_NOT_FOUND)])
def test_nobody_is_in_a_group_that_is_none(epoch, error):
    assert ShareMember(started()).heartbeat(epoch).error_code == error


@pytest.mark.parametrize('epoch', [1, -1])
def test_who_is_no_member_must_join(epoch):
    cluster = started()
    reader(cluster)
    assert ShareMember(cluster, 'b').heartbeat(epoch).error_code == UNKNOWN_MEMBER_ID


def test_a_group_has_only_so_many_members():
    cluster = started()
    shares = cluster.state.groups.shares
    shares.rules = shares.rules._replace(max_size=1)
    ShareMember(cluster, 'a').join()
    assert ShareMember(cluster, 'b').join().error_code == GROUP_MAX_SIZE_REACHED


def test_groups_have_only_so_much_memory():
    cluster = started()
    budget = cluster.state.groups.budget
    used = budget.used
    ShareMember(cluster).join()
    assert budget.used > used + len(TOPIC)
    ShareMember(cluster).leave()
    cluster.ask(DeleteGroupsRequest(groups_names=[GROUP]))
    assert budget.used == used
    budget.limit = budget.used + 100
    assert ShareMember(cluster).join().error_code == COORDINATOR_NOT_AVAILABLE


def test_another_broker_coordinates():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators[GROUP] = 1
    assert ShareMember(cluster).join().error_code == NOT_COORDINATOR
    assert described(cluster).error_code == NOT_COORDINATOR


def test_a_release_without_share_groups_refuses():
    cluster = started('4.1')
    assert ShareMember(cluster).join().error_code == UNSUPPORTED_VERSION
    assert described(cluster).error_code == UNSUPPORTED_VERSION
    cluster.state.features['share.version'] = 1
    assert ShareMember(cluster).join().error_code == NONE


# ------------------------------------------------------------ administration


def test_a_group_is_described_with_its_members():
    cluster = started()
    reader(cluster)
    group = described(cluster, operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ('Stable', 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ('simple', 3400)
    (member,) = group.members
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == (TOPIC, [0])
    assert member.subscribed_topic_names == [TOPIC]


@pytest.mark.parametrize(('name', 'error'), [('none', GROUP_ID_NOT_FOUND), ('', INVALID_GROUP_ID)])
def test_a_group_that_is_none_is_not_described(name, error):
    assert described(started(), name).error_code == error


@pytest.mark.parametrize(('version', 'assignment_epoch'), [('4.3', 2), ('4.4', 3)])
def test_a_group_without_members_stays(version, assignment_epoch):
    cluster = started(version)
    reader(cluster).leave()
    cluster.advance(100 * 86400)
    group = described(cluster)
    assert (group.group_state, group.group_epoch) == ('Empty', 3)
    assert group.assignment_epoch == assignment_epoch


def test_a_group_is_listed_as_one_of_its_kind():
    cluster = started()
    reader(cluster)
    (group,) = cluster.ask(ListGroupsRequest(types_filter=['share'])).groups
    assert (group.group_id, group.protocol_type, group.group_state) == (GROUP, 'share', 'Stable')


def test_a_group_is_deleted_when_it_has_no_members():
    cluster = started()
    member = reader(cluster)
    member.fetch()
    delete = DeleteGroupsRequest(groups_names=[GROUP])
    assert cluster.ask(delete).results[0].error_code == NON_EMPTY_GROUP
    member.leave()
    assert cluster.ask(delete).results[0].error_code == NONE
    assert described(cluster).error_code == GROUP_ID_NOT_FOUND


# ------------------------------------------------------------ other kinds of groups


def test_a_share_group_is_no_consumer_group():
    cluster = started()
    reader(cluster)
    groups = cluster.state.groups
    assert groups.check_commit(GROUP, -1, '', None) == GROUP_ID_NOT_FOUND
    assert groups.check_fetch(GROUP, None, -1) == NONE
    delete = OffsetDeleteRequest(group_id=GROUP, topics=[])
    assert cluster.ask(delete).error_code == GROUP_ID_NOT_FOUND
    refused = cluster.ask(join(group=GROUP))
    assert refused.error_code == INCONSISTENT_GROUP_PROTOCOL
    joined = Member(cluster, 'm').join(group_id=GROUP, subscribed_topic_names=[TOPIC])
    assert joined.error_code == GROUP_ID_NOT_FOUND


def test_a_consumer_group_is_no_share_group():
    cluster = started()
    Member(cluster, 'm').join(group_id=GROUP, subscribed_topic_names=[TOPIC])
    assert ShareMember(cluster).join().error_code == GROUP_ID_NOT_FOUND
    assert described(cluster).error_code == GROUP_ID_NOT_FOUND


def test_groups_show_what_they_are():
    cluster = started()
    reader(cluster).fetch()
    (group,) = cluster.state.groups.shares.all()
    assert repr(group) == '<ShareGroup queue Stable epoch=2, 1 members>'
    assert repr(cluster.state.groups.shares) == '<ShareGroups: 1>'
    assert isinstance(cluster.state.groups.shares, ShareGroups)
