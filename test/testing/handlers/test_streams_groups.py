"""Streams groups: members, tasks, internal topics, statuses."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import DeleteGroupsRequest, ListGroupsRequest
from kafka.protocol.commit import OffsetDeleteRequest
from kafka.protocol.streams import (
    Endpoint,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
    TaskOffset,
    TopologyDescription,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_REQUEST,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    STALE_MEMBER_EPOCH,
    STREAMS_INVALID_TOPOLOGY,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.streams_groups import by_part
from kafka.testing.groups.streams_topology import (
    ASSIGNMENT_DELAYED,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    SHUTDOWN_APPLICATION,
    STALE_TOPOLOGY,
)
from test.testing import share_members
from test.testing.consumer_group_members import Member
from test.testing.data_requests import driver
from test.testing.group_requests import join
from test.testing.groups.test_streams_topology import info, part, topology

GROUP = share_members.GROUP


def started(version='4.4', partitions=4, delay='0', **settings):
    """Return a cluster whose streams groups do not wait for more members."""
    cluster = driver(version, **settings)
    cluster.state.create_topic('in', partitions)
    share_members.set_config(cluster, 'streams.initial.rebalance.delay.ms', delay)
    return cluster


class StreamsMember:
    """A member that does what it is told."""

    def __init__(self, cluster, member_id='a', process='', parts=None, **fields):
        self.cluster, self.member_id = cluster, member_id
        self.process = process or member_id
        self.parts = [part()] if parts is None else parts
        self.fields = fields
        self.epoch = 0
        self.active, self.standby, self.status = set(), set(), []

    def heartbeat(self, epoch=None, **fields):
        asked = {'group_id': GROUP, 'member_id': self.member_id, 'endpoint_information_epoch': 0}
        asked.update(fields)
        asked['member_epoch'] = self.epoch if epoch is None else epoch
        response = self.cluster.ask(StreamsGroupHeartbeatRequest(**asked))
        self.status = [each.status_code for each in response.status]
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.active_tasks is not None:
                self.active = tasks(response.active_tasks)
                self.standby = tasks(response.standby_tasks)
        return response

    def join(self, **fields):
        asked = {
            'rebalance_timeout_ms': 10000,
            'topology': topology(*self.parts),
            'process_id': self.process,
            'active_tasks': [],
            'standby_tasks': [],
            'warmup_tasks': [],
            'client_tags': [],
        }
        asked.update(self.fields)
        asked.update(fields)
        return self.heartbeat(0, **asked)

    def tell(self, **fields):
        """Send the tasks that it runs."""
        active = by_part(self.active)
        return self.heartbeat(
            active_tasks=active,
            standby_tasks=by_part(self.standby),
            warmup_tasks=[],
            **fields,
        )


def tasks(told):
    return {(each.subtopology_id, index) for each in told for index in each.partitions}


def settle(*members):
    for _ in range(5):
        members[0].cluster.advance(1.1)
        for each in members:
            each.tell()


def described(cluster, group_id=GROUP, version=None):
    request = StreamsGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    return cluster.ask(request, version).groups[0]


# ------------------------------------------------------------ tasks


def test_the_only_member_runs_all_tasks():
    member = StreamsMember(started())
    response = member.join()
    assert response.error_code == NONE
    assert member.active == {('0', index) for index in range(4)}
    assert (response.task_offset_interval_ms, response.acceptable_recovery_lag) == (60000, 10000)


def test_the_first_assignment_waits_for_other_members():
    cluster = started(delay='3000')
    first, second = StreamsMember(cluster, 'a'), StreamsMember(cluster, 'b')
    first.join()
    second.join()
    assert first.status == second.status == [ASSIGNMENT_DELAYED]
    assert described(cluster).group_state == 'Assigning'
    cluster.advance(3)
    first.tell()
    second.tell()
    assert (len(first.active), len(second.active)) == (2, 2)


def test_a_task_moves_when_its_member_has_given_it_back():
    cluster = started()
    first, second = StreamsMember(cluster, 'a'), StreamsMember(cluster, 'b')
    first.join()
    second.join()
    assert second.active == set()
    cluster.advance(1.1)
    second.tell()
    assert second.active == set()
    settle(first, second)
    assert (len(first.active), len(second.active)) == (2, 2)
    assert not first.active & second.active
    assert described(cluster).group_state == 'Stable'


def test_who_does_not_give_tasks_back_in_time_is_removed():
    cluster = started()
    first, second = StreamsMember(cluster, 'a'), StreamsMember(cluster, 'b')
    first.join()
    second.join()
    cluster.advance(1.1)
    second.tell()
    first.heartbeat()
    for _ in range(3):
        cluster.advance(5)
        second.tell()
    assert first.heartbeat().error_code == UNKNOWN_MEMBER_ID
    settle(second)
    assert len(second.active) == 4


def test_a_member_that_leaves_or_is_silent_leaves_its_tasks():
    cluster = started()
    first, second = StreamsMember(cluster, 'a'), StreamsMember(cluster, 'b')
    first.join()
    second.join()
    settle(first, second)
    response = first.heartbeat(-1)
    assert (response.member_id, response.member_epoch) == ('a', -1)
    settle(second)
    assert len(second.active) == 4
    cluster.advance(46)
    assert second.heartbeat().error_code == UNKNOWN_MEMBER_ID


def test_tasks_with_state_have_standby_tasks_in_other_processes():
    cluster = started()
    share_members.set_config(cluster, 'streams.num.standby.replicas', '1')
    cluster.state.create_topic('store', 4)
    parts = [part(state=['store'])]
    members = [StreamsMember(cluster, name, name[0], parts) for name in ('x1', 'x2', 'y1')]
    for each in members:
        each.join()
    settle(*members)
    held = {each.member_id: each for each in members}
    assert sum(len(each.active) for each in members) == 4
    assert sum(len(each.standby) for each in members) == 4
    assert held['y1'].standby == held['x1'].active | held['x2'].active
    assert held['x1'].standby | held['x2'].standby == held['y1'].active


def test_standby_tasks_go_where_there_is_least_to_do():
    cluster = started(partitions=2)
    share_members.set_config(cluster, 'streams.num.standby.replicas', '1')
    cluster.state.create_topic('store', 2)
    members = [StreamsMember(cluster, name, parts=[part(state=['store'])]) for name in 'abc']
    for each in members:
        each.join()
        settle(*members[: members.index(each) + 1])
    assert [(each.active, each.standby) for each in members] == [
        ({('0', 0)}, {('0', 1)}),
        ({('0', 1)}, set()),
        (set(), {('0', 0)}),
    ]


def test_internal_topics_are_created():
    cluster = started()
    parts = [
        part('0', sinks=['mid']),
        part('1', sources=[], repartitions=[info('mid')], state=['store']),
    ]
    member = StreamsMember(cluster, parts=parts)
    member.join()
    assert (member.status, member.active) == ([MISSING_INTERNAL_TOPICS], set())
    assert len(cluster.state.topics['mid'].partitions) == 4
    assert len(cluster.state.topics['store'].partitions) == 4
    settle(member)
    assert (member.status, len(member.active)) == ([], 8)
    (_, second) = described(cluster).topology.subtopologies
    assert [each.partitions for each in second.state_changelog_topics] == [4]


def test_a_group_is_not_ready_without_its_source_topics():
    cluster = started()
    member = StreamsMember(cluster, parts=[part(sources=['later'])])
    member.join()
    assert member.status == [MISSING_SOURCE_TOPICS]
    assert described(cluster).group_state == 'NotReady'
    cluster.state.create_topic('later', 2)
    settle(member)
    assert len(member.active) == 2


# ------------------------------------------------------------ topologies


def test_another_topology_of_the_same_epoch_is_refused():
    cluster = started()
    StreamsMember(cluster).join()
    other = StreamsMember(cluster, 'b', parts=[part(sources=['in', 'in2'])])
    assert other.join().error_code == INVALID_REQUEST


def test_a_member_with_an_older_topology_is_told_so():
    cluster = started()
    newer = topology(part())
    newer.epoch = 2
    StreamsMember(cluster, topology=newer).join()
    old = StreamsMember(cluster, 'b')
    old.join()
    assert STALE_TOPOLOGY in old.status


def test_a_topology_that_can_never_work_is_refused():
    cluster = started()
    member = StreamsMember(cluster, parts=[part(repartitions=[info('mid')])])
    assert member.join().error_code == STREAMS_INVALID_TOPOLOGY
    member = StreamsMember(cluster, parts=[part(copartitions=[((3,), ())])])
    assert member.join().error_code == UNKNOWN_SERVER_ERROR
    assert described(cluster).error_code == GROUP_ID_NOT_FOUND


def test_changelogs_have_no_number_of_partitions_of_their_own():
    parts = [part(state=['store'])]
    parts[0].state_changelog_topics[0].partitions = 3
    member = StreamsMember(started(), parts=parts)
    assert member.join().error_code == STREAMS_INVALID_TOPOLOGY


# ------------------------------------------------------------ heartbeats


@pytest.mark.parametrize(
    'fields',
    [
        {'group_id': ''},
        {'member_id': ''},
        {'instance_id': ''},
        {'rack_id': ''},
        {'rebalance_timeout_ms': -1},
        {'active_tasks': None},
        {'topology': None},
    ],
)
def test_who_joins_must_make_sense(fields):
    assert StreamsMember(started()).join(**fields).error_code == INVALID_REQUEST


@pytest.mark.parametrize(
    ('epoch', 'fields'),
    [
        (-2, {}),
        (-3, {'instance_id': 'i'}),
        (1, {'topology': topology(part())}),
        (1, {'active_tasks': []}),
    ],
)
def test_a_heartbeat_must_make_sense(epoch, fields):
    assert StreamsMember(started()).heartbeat(epoch, **fields).error_code == INVALID_REQUEST


@pytest.mark.parametrize(
    'fields',
    [
        {'instance_id': 'i'},
        {'task_offsets': [TaskOffset(subtopology_id='0', partition=0, offset=1)]},
    ],
)
def test_releases_before_4_4_refuse_what_came_later(fields):
    assert StreamsMember(started('4.3')).join(**fields).error_code == INVALID_REQUEST
    assert StreamsMember(started('4.4')).join(**fields).error_code == NONE


def test_source_topics_by_regular_expressions_are_refused():
    parts = [part()]
    parts[0].source_topic_regex = ['a.*']
    assert StreamsMember(started(), parts=parts).join().error_code == INVALID_REQUEST


@pytest.mark.parametrize('epoch', [1, -1])
def test_nobody_is_in_a_group_that_is_none(epoch):
    assert StreamsMember(started()).heartbeat(epoch).error_code == GROUP_ID_NOT_FOUND


def test_an_epoch_that_is_no_more_is_fenced_unless_the_answer_was_lost():
    cluster = started()
    member = StreamsMember(cluster)
    member.join()
    before = member.epoch
    StreamsMember(cluster, 'b').join()
    assert member.heartbeat(99).error_code == FENCED_MEMBER_EPOCH
    StreamsMember(cluster, 'b').heartbeat(-1)
    cluster.advance(1.1)
    member.tell()
    assert member.epoch > before
    assert member.heartbeat(before).error_code == FENCED_MEMBER_EPOCH
    member.epoch = before
    assert member.tell().error_code == NONE


def test_static_members_come_back_to_their_tasks():
    cluster = started()
    first = StreamsMember(cluster, 'a', instance_id='i')
    first.join()
    other = StreamsMember(cluster, 'b', 'a', instance_id='i')
    assert other.join().error_code == UNRELEASED_INSTANCE_ID
    assert other.heartbeat(1, instance_id='i').error_code == FENCED_INSTANCE_ID
    assert other.heartbeat(-1, instance_id='i').error_code == FENCED_INSTANCE_ID
    assert first.heartbeat(-2, instance_id='i').member_epoch == -2
    assert other.join().error_code == NONE
    assert len(other.active) == 4
    assert other.heartbeat(1, instance_id='none').error_code == UNKNOWN_MEMBER_ID
    assert other.heartbeat(-1, instance_id='none').error_code == UNKNOWN_MEMBER_ID


def test_the_end_of_an_application_is_told_to_all_members():
    cluster = started()
    first, second = StreamsMember(cluster, 'a'), StreamsMember(cluster, 'b')
    first.join()
    second.join()
    settle(first, second)
    first.heartbeat(shutdown_application=True)
    second.heartbeat()
    assert second.status == [SHUTDOWN_APPLICATION]


def test_endpoints_are_told_with_what_is_read_there():
    cluster = started()
    endpoint = Endpoint(host='h', port=1)
    member = StreamsMember(cluster, user_endpoint=endpoint)
    response = member.join()
    assert response.endpoint_information_epoch == 0  # of a group that was none before
    (found,) = response.partitions_by_user_endpoint
    assert (found.user_endpoint.host, found.active_partitions[0].topic) == ('h', 'in')
    assert found.active_partitions[0].partitions == [0, 1, 2, 3]
    assert member.heartbeat().partitions_by_user_endpoint is None
    assert member.heartbeat(endpoint_information_epoch=1).partitions_by_user_endpoint == [found]
    second = StreamsMember(cluster, 'b', user_endpoint=endpoint)
    second.join()
    settle(member, second)
    assert second.heartbeat().endpoint_information_epoch == 2


@pytest.mark.parametrize('told', [('9', 0), ('0', 4)])
def test_tasks_that_are_none_are_refused(told):
    member = StreamsMember(started())
    member.join()
    member.active = {told}
    assert member.tell().error_code == INVALID_REQUEST


def test_the_description_of_a_topology_is_not_available():
    cluster = started()
    StreamsMember(cluster).join()
    request = StreamsGroupDescribeRequest(
        group_ids=[GROUP], include_authorized_operations=False, include_topology_description=True
    )
    (group,) = cluster.ask(request).groups
    assert (group.topology_description, group.topology_description_status) == (None, 1)


def test_a_group_has_only_so_many_members_and_so_much_memory():
    cluster = started()
    streams = cluster.state.groups.streams
    streams.rules = streams.rules._replace(max_size=1)
    budget = cluster.state.groups.budget
    before = budget.used
    StreamsMember(cluster, 'a').join()
    assert StreamsMember(cluster, 'b').join().error_code == GROUP_MAX_SIZE_REACHED
    used, budget.limit = budget.used, budget.used + 10
    assert StreamsMember(cluster, 'b').join().error_code == COORDINATOR_NOT_AVAILABLE
    assert budget.used == used
    StreamsMember(cluster, 'a').heartbeat(-1)
    cluster.ask(DeleteGroupsRequest(groups_names=[GROUP]))
    assert budget.used == before
    assert StreamsMember(cluster, 'b').join().error_code == COORDINATOR_NOT_AVAILABLE


# ------------------------------------------------------------ administration


@pytest.mark.parametrize(('version', 'assignment_epoch'), [('4.3', 2), ('4.4', 3)])
def test_a_group_without_members_keeps_its_topology(version, assignment_epoch):
    cluster = started(version)
    member = StreamsMember(cluster, client_tags=[KeyValue(key='zone', value='1')])
    member.join()
    (shown,) = described(cluster).members
    assert (shown.process_id, shown.client_tags[0].key, shown.topology_epoch) == ('a', 'zone', 0)
    assert tasks(shown.assignment.active_tasks) == tasks(shown.target_assignment.active_tasks)
    member.heartbeat(-1)
    group = described(cluster)
    assert (group.group_state, group.group_epoch) == ('Empty', 3)
    assert group.assignment_epoch == assignment_epoch
    assert group.topology.subtopologies[0].source_topics == ['in']


def test_descriptions_name_the_assignor_since_version_1():
    cluster = started()
    StreamsMember(cluster).join()
    assert described(cluster, version=1).assignor_name == 'sticky'
    assert described(cluster, 'none', version=1).assignor_name is None


def test_a_group_is_listed_and_deleted_as_others():
    cluster = started()
    member = StreamsMember(cluster)
    member.join()
    (group,) = cluster.ask(ListGroupsRequest(types_filter=['streams'])).groups
    assert (group.group_id, group.protocol_type, group.group_state) == (GROUP, 'streams', 'Stable')
    delete = DeleteGroupsRequest(groups_names=[GROUP])
    assert cluster.ask(delete).results[0].error_code == NON_EMPTY_GROUP
    member.heartbeat(-1)
    assert cluster.ask(delete).results[0].error_code == NONE
    assert described(cluster).error_code == GROUP_ID_NOT_FOUND


def test_an_empty_group_is_forgotten_after_a_while():
    cluster = started()
    member = StreamsMember(cluster)
    member.join()
    member.heartbeat(-1)
    cluster.advance(1201)
    assert described(cluster).error_code == GROUP_ID_NOT_FOUND


def test_an_instance_id_that_a_member_has_given_up_is_free():
    cluster = started()
    member = StreamsMember(cluster, instance_id='i')
    member.join()
    assert member.join(instance_id='j').error_code == NONE
    assert member.heartbeat(-1, instance_id='j').error_code == NONE
    assert StreamsMember(cluster, 'b', instance_id='i').join().error_code == NONE


def test_members_commit_in_their_epoch_or_for_tasks_that_they_had():
    cluster = started()
    member = StreamsMember(cluster)
    member.join()
    groups, epoch = cluster.state.groups, member.epoch
    place = [(cluster.state.topics['in'].topic_id, 0)]
    assert groups.check_commit(GROUP, epoch, 'a', None, 9, place) == NONE
    assert groups.check_commit(GROUP, epoch, 'a', None, 8, place) == UNSUPPORTED_VERSION
    assert groups.check_commit(GROUP, epoch + 1, 'a', None, 9, place) == STALE_MEMBER_EPOCH
    assert groups.check_commit(GROUP, epoch - 1, 'a', None, 9, place) == STALE_MEMBER_EPOCH
    assert groups.check_commit(GROUP, epoch, 'none', None, 9, place) == UNKNOWN_MEMBER_ID
    StreamsMember(cluster, 'b').join()
    StreamsMember(cluster, 'b').heartbeat(-1)
    cluster.advance(1.1)
    member.tell()
    assert member.epoch > epoch
    assert groups.check_commit(GROUP, epoch, 'a', None, 9, place) == NONE
    assert groups.check_transactional_commit(GROUP, member.epoch, 'a', None) == NONE
    assert groups.check_transactional_commit(GROUP, epoch, 'a', None) == 22
    assert groups.check_fetch(GROUP, 'a', epoch) == STALE_MEMBER_EPOCH
    assert groups.check_fetch(GROUP, None, -1) == NONE


def test_offsets_of_topics_that_are_read_stay():
    cluster = started()
    StreamsMember(cluster).join()
    groups = cluster.state.groups
    assert groups.is_subscribed(GROUP, 'in')
    assert not groups.is_subscribed(GROUP, 'other')
    assert cluster.ask(OffsetDeleteRequest(group_id=GROUP, topics=[])).error_code == NONE


def test_a_streams_group_is_no_group_of_another_kind():
    cluster = started()
    StreamsMember(cluster).join()
    assert cluster.ask(join(group=GROUP)).error_code == INCONSISTENT_GROUP_PROTOCOL
    assert Member(cluster, 'm').join(group_id=GROUP).error_code == GROUP_ID_NOT_FOUND
    assert share_members.ShareMember(cluster).join('in').error_code == GROUP_ID_NOT_FOUND


def test_a_group_of_another_kind_is_no_streams_group():
    cluster = started()
    Member(cluster, 'm').join(group_id=GROUP)
    assert StreamsMember(cluster).join().error_code == GROUP_ID_NOT_FOUND


def test_another_broker_coordinates():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators[GROUP] = 1
    assert StreamsMember(cluster).join().error_code == NOT_COORDINATOR
    assert described(cluster).error_code == NOT_COORDINATOR


def test_a_cluster_without_streams_groups_refuses():
    cluster = started('4.2')
    cluster.state.features.pop('streams.version')
    assert StreamsMember(cluster).join().error_code == UNSUPPORTED_VERSION
    assert described(cluster).error_code == UNSUPPORTED_VERSION


def test_descriptions_of_topologies_are_not_kept():
    request = StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=GROUP,
        member_id='a',
        topology_epoch=0,
        topology_description=TopologyDescription(subtopologies=[], global_stores=[]),
    )
    assert started().ask(request).error_code == UNSUPPORTED_VERSION
