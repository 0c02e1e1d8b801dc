"""Who may take part in groups, see them and their offsets."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.api import request_class
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.testing.security import acls
from test.testing.filled_messages import filled
from test.testing.guards.people import CLUSTER, GROUP, TOPIC, TRANSACTION, People, codes

JOIN, HEARTBEAT, LEAVE, SYNC = 11, 12, 13, 14


@pytest.fixture
def people(request):
    people = People(getattr(request, 'param', '4.4'))
    people.state.create_topic('mine')
    people.state.create_topic('theirs')
    return people


@pytest.mark.parametrize('key', [JOIN, HEARTBEAT, LEAVE, SYNC])
@pytest.mark.parametrize('version', [0, 3])
def test_members_need_to_read_the_group(people, key, version):
    request = filled(request_class(key), version)
    assert codes(people.ask_as('bob', request, version)) == {30}
    people.allow('bob', acls.READ, GROUP, 'x')
    assert 30 not in codes(people.ask_as('bob', request, version))


def subscribe(*names):
    return ConsumerGroupHeartbeatRequest(
        group_id='g',
        member_id='m',
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=list(names),
        topic_partitions=[],
    )


def test_members_of_new_groups_need_to_describe_what_they_subscribe_to(people):
    assert people.ask_as('bob', subscribe('mine')).error_code == 30
    people.allow('bob', acls.READ, GROUP, 'g')
    assert people.ask_as('bob', subscribe('mine')).error_code == 29
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    assert people.ask_as('bob', subscribe('mine', 'theirs')).error_code == 29
    assert people.ask_as('bob', subscribe('mine')).error_code == 0


def matched_by(people, user, epoch, regex='t.*'):
    """Let a member of a group heartbeat; return its epoch and the topics it may consume."""
    asked = ConsumerGroupHeartbeatRequest(
        group_id='g',
        member_id='m',
        member_epoch=epoch,
        rebalance_timeout_ms=60000,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )
    answer = people.ask_as(user, asked)
    assert answer.error_code == 0
    topics = answer.assignment.topic_partitions if answer.assignment is not None else []
    return answer.member_epoch, sorted(
        people.state.topic_by_id(each.topic_id).name for each in topics
    )


@pytest.mark.parametrize('version', ['4.0', '4.1', '4.4'])
def test_expressions_match_topics_that_one_may_describe(version):
    """What was allowed later is matched after ten minutes, and not at all in 4.0."""
    people = People(version)
    for name in ('ta', 'tb', 'tc'):
        people.state.create_topic(name, 1)
    people.allow('bob', acls.READ, GROUP, 'g')
    people.allow('bob', acls.READ, TOPIC, 'ta')  # which implies that it may describe it
    people.allow('bob', acls.DESCRIBE, TOPIC, 'tc')
    people.deny('bob', acls.DESCRIBE, TOPIC, 'tc')
    epoch, _ = matched_by(people, 'bob', 0)
    people.advance(2)
    epoch, topics = matched_by(people, 'bob', epoch)
    assert topics == ['ta']
    people.allow('bob', acls.DESCRIBE, TOPIC, 'tb')
    for _ in range(24):
        people.advance(24)
        epoch, topics = matched_by(people, 'bob', epoch)
    assert topics == ['ta']
    for _ in range(3):
        people.advance(20)
        epoch, topics = matched_by(people, 'bob', epoch)
    assert topics == (['ta'] if version == '4.0' else ['ta', 'tb'])


def test_super_users_match_everything(people):
    epoch, _ = matched_by(people, 'root', 0, '.*')
    people.advance(2)
    assert matched_by(people, 'root', epoch, '.*')[1] == ['mine', 'theirs']


def test_groups_with_topics_that_one_may_not_describe_are_hidden(people):
    people.ask_as('root', subscribe('theirs'))
    people.allow('bob', acls.DESCRIBE, GROUP, 'g')
    request = ConsumerGroupDescribeRequest(group_ids=['g', 'h'], include_authorized_operations=True)
    found = {each.group_id: each for each in people.ask_as('bob', request).groups}
    assert {name: each.error_code for name, each in found.items()} == {'g': 29, 'h': 30}
    assert found['g'].members == []
    people.allow('bob', acls.DESCRIBE, TOPIC, 'theirs')
    found = {each.group_id: each for each in people.ask_as('bob', request).groups}
    assert found['g'].error_code == 0
    assert found['g'].authorized_operations == 1 << acls.DESCRIBE


@pytest.mark.parametrize(('kind', 'resource', 'code'), [(0, GROUP, 30), (1, TRANSACTION, 53)])
@pytest.mark.parametrize('version', [2, 6])
def test_coordinators_are_told_to_who_may_describe(people, kind, resource, code, version):
    asked = {'coordinator_keys': ['a', 'b']} if version >= 4 else {'key': 'b'}
    request = FindCoordinatorRequest(key_type=kind, **asked)
    people.allow('bob', acls.DESCRIBE, resource, 'a')
    response = people.ask_as('bob', request, version)
    if version < 4:
        assert (response.error_code, response.node_id, response.port) == (code, -1, -1)
    else:
        found = {each.key: (each.error_code, each.node_id) for each in response.coordinators}
        assert found == {'a': (0, 0), 'b': (code, -1)}


def test_coordinators_of_share_groups_are_told_to_brokers(people):
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=['g:%s:0' % ('A' * 22)])
    (found,) = people.ask_as('bob', request).coordinators
    assert (found.error_code, found.node_id, found.port) == (31, -1, -1)


def commit(*names):
    return OffsetCommitRequest(
        group_id='g',
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=7, committed_metadata=''
                    )
                ],
            )
            for name in names
        ],
    )


def test_offsets_are_committed_where_one_may_read(people):
    request = commit('mine', 'theirs', 'nowhere')
    assert codes(people.ask_as('bob', request, 7)) == {30}
    people.allow('bob', acls.READ, GROUP, 'g')
    people.allow('bob', acls.READ, TOPIC, 'mine')
    found = people.ask_as('bob', request, 7).topics
    assert {each.name: each.partitions[0].error_code for each in found} == {
        'mine': 0,
        'theirs': 29,
        'nowhere': 29,
    }
    assert people.state.offsets.fetch('g', 'theirs', 0) is None


def fetched(people, version, *names):
    """Return what is told of the offsets of topics, of all if none is named."""
    if version < 8:
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names]
        asked = {'group_id': 'g', 'topics': topics or None}
    else:
        more = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
        asked = {'groups': [OffsetFetchRequestGroup(group_id='g', topics=more or None)]}
    response = people.ask_as('bob', OffsetFetchRequest(**asked), version)
    answer = response.groups[0] if version >= 8 else response
    return answer.error_code, {
        topic.name: (each.error_code, each.committed_offset)
        for topic in answer.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize('version', [5, 8])
def test_offsets_are_told_to_who_may_describe(people, version):
    assert people.ask_as('root', commit('mine', 'theirs'), 7)
    assert fetched(people, version, 'mine')[0] == 30
    people.allow('bob', acls.DESCRIBE, GROUP, 'g')
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    assert fetched(people, version, 'mine', 'theirs') == (0, {'mine': (0, 7), 'theirs': (29, -1)})
    assert fetched(people, version) == (0, {'mine': (0, 7)})


def test_offsets_are_deleted_by_who_may_delete_the_group_and_read_the_topic(people):
    people.ask_as('root', commit('mine', 'theirs'), 7)
    parts = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=each, partitions=parts) for each in ('mine', 'theirs')]
    request = OffsetDeleteRequest(group_id='g', topics=topics)
    people.allow('bob', acls.READ, TOPIC, 'mine')
    assert people.ask_as('bob', request).error_code == 30
    people.allow('bob', acls.DELETE, GROUP, 'g')
    response = people.ask_as('bob', request)
    found = {each.name: each.partitions[0].error_code for each in response.topics}
    assert (response.error_code, found) == (0, {'mine': 0, 'theirs': 29})


def test_groups_are_described_and_deleted_by_who_may(people):
    people.ask_as('root', commit('mine'), 7)
    described = DescribeGroupsRequest(groups=['g', 'h'], include_authorized_operations=True)
    people.allow('bob', acls.DESCRIBE, GROUP, 'g')
    found = {each.group_id: each for each in people.ask_as('bob', described, 5).groups}
    assert {name: each.error_code for name, each in found.items()} == {'g': 0, 'h': 30}
    assert found['g'].authorized_operations == 1 << acls.DESCRIBE
    deleted = DeleteGroupsRequest(groups_names=['g', 'h'])
    assert codes(people.ask_as('bob', deleted)) == {30}
    people.allow('bob', acls.DELETE, GROUP, 'g')
    found = people.ask_as('bob', deleted).results
    assert {each.group_id: each.error_code for each in found} == {'g': 0, 'h': 30}


def test_groups_are_listed_to_who_may_describe_them_or_the_cluster(people):
    people.ask_as('root', commit('mine'), 7)
    assert people.ask_as('bob', ListGroupsRequest()).groups == []
    people.allow('bob', acls.DESCRIBE, GROUP, 'g')
    assert [each.group_id for each in people.ask_as('bob', ListGroupsRequest()).groups] == ['g']
    people.allow('carol', acls.DESCRIBE, CLUSTER)
    assert [each.group_id for each in people.ask_as('carol', ListGroupsRequest()).groups] == ['g']


@pytest.mark.parametrize('people', ['2.0'], indirect=True)
def test_before_2_1_groups_are_listed_to_who_may_describe_the_cluster(people):
    assert people.ask_as('bob', ListGroupsRequest()).error_code == 31
