"""Where share groups stand: described, altered, deleted."""

from __future__ import annotations

import pytest

from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.share_partition import ACCEPT, RELEASE
from test.testing.data_requests import TOPIC
from test.testing.share_members import GROUP, acquired, described, reader, started, values, write


def offsets(cluster, topic=TOPIC, group_id=GROUP, indexes=(0,), node=0):
    topics = None
    if topic is not None:
        each = DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=list(indexes))
        topics = [each]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    return cluster.ask(request, node=node).groups[0]


def stand(cluster, **fields):
    """Return the start and the lag of partition 0."""
    part = offsets(cluster, **fields).topics[0].partitions[0]
    assert part.error_code == NONE
    return part.start_offset, part.lag


def alter(cluster, offset, topic=TOPIC, index=0, group_id=GROUP):
    part = AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
    asked = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[part])
    return cluster.ask(AlterShareGroupOffsetsRequest(group_id=group_id, topics=[asked]))


def delete(cluster, topic=TOPIC, group_id=GROUP):
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
    return cluster.ask(DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics))


def test_a_group_stands_nowhere_before_it_acknowledged():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y', b'z')
    member.fetch()
    assert stand(cluster) == (-1, -1)
    member.acknowledge((0, 0, ACCEPT))
    assert stand(cluster) == (0, 2)  # what was stored before the start moved
    member.acknowledge((1, 1, RELEASE))
    assert stand(cluster) == (1, 2)


def test_what_is_dealt_with_behind_the_start_is_no_lag():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y', b'z')
    member.fetch()
    member.acknowledge((1, 1, ACCEPT))
    assert stand(cluster) == (0, 2)


def test_all_topics_of_a_group_are_told_of():
    cluster = started(partitions=2)
    reader(cluster)
    (topic,) = offsets(cluster, topic=None).topics
    assert (topic.topic_name, [p.partition_index for p in topic.partitions]) == (TOPIC, [0, 1])


@pytest.mark.parametrize(('topic', 'index'), [('none', 0), (TOPIC, 7)])
def test_a_partition_that_is_none_is_an_error(topic, index):
    cluster = started()
    reader(cluster).leave()
    (found,) = offsets(cluster, topic, indexes=[index]).topics
    assert found.partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    (found,) = alter(cluster, 0, topic, index).responses
    assert found.partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_that_is_none_stands_nowhere():
    cluster = started()
    assert stand(cluster, group_id='none') == (-1, -1)
    assert offsets(cluster, topic=None, group_id='none').topics == []
    assert delete(cluster, group_id='none').error_code == GROUP_ID_NOT_FOUND


def test_a_group_must_have_a_name():
    cluster = started()
    assert offsets(cluster, group_id='').error_code == UNKNOWN_SERVER_ERROR
    assert alter(cluster, 0, group_id='').error_code == INVALID_GROUP_ID
    assert delete(cluster, group_id='').error_code == INVALID_GROUP_ID


def test_a_group_is_made_by_telling_where_it_shall_begin():
    cluster = started()
    assert alter(cluster, 0).error_code == NONE
    group = described(cluster)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ('Empty', 1, 1)
    now_ms = cluster.timers.clock.wall_ms()
    cluster.state.offsets.commit('classic', TOPIC, 0, 1, -1, '', now_ms)
    assert alter(cluster, 0, group_id='classic').error_code == GROUP_ID_NOT_FOUND


def test_a_group_begins_where_it_is_told_to():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    write(cluster, b'y')
    member.fetch()
    member.acknowledge((0, 1, ACCEPT))
    member.leave()
    assert alter(cluster, 1).responses[0].partitions[0].error_code == NONE
    assert stand(cluster) == (1, 1)
    assert values(reader(cluster, 'b').fetch()) == [(1, b'y')]


def test_a_group_that_has_forgotten_a_topic_begins_as_a_new_one():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    member.fetch()
    member.acknowledge((0, 0, ACCEPT))
    member.leave()
    assert delete(cluster).responses[0].error_code == NONE
    assert offsets(cluster, topic=None).topics == []
    assert acquired(reader(cluster, 'b').fetch()) == {0: [(0, 0, 1)]}


def test_a_group_with_members_is_left_alone():
    cluster = started()
    reader(cluster)
    assert alter(cluster, 0).error_code == NON_EMPTY_GROUP
    assert delete(cluster).error_code == NON_EMPTY_GROUP


def test_a_group_keeps_where_it_stands_without_members():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    write(cluster, b'y')
    member.fetch()
    member.acknowledge((0, 0, ACCEPT))
    member.leave()
    assert stand(cluster) == (0, 1)
    member.fetch(epoch=-1)
    assert acquired(reader(cluster, 'b').fetch()) == {0: [(1, 1, 2)]}


def test_an_unknown_topic_is_not_forgotten():
    cluster = started()
    reader(cluster).leave()
    assert delete(cluster, 'none').responses[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_another_broker_coordinates():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators[GROUP] = 1
    assert offsets(cluster).error_code == NOT_COORDINATOR


def test_a_release_without_share_groups_refuses():
    cluster = started('4.1')
    assert offsets(cluster).error_code == UNSUPPORTED_VERSION
    assert alter(cluster, 0).error_code == UNSUPPORTED_VERSION
