"""KIP-848 groups of an embedded cluster: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

Owns the way from requests to :mod:`kafka.testing.groups.consumer_groups` and back. Releases before
4.0 list these APIs, and refuse them unless they are told otherwise.
"""

from __future__ import annotations

from typing import List, Optional, Set

from kafka.protocol.admin.groups import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    Member,
    TopicPartitions,
)
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NONE,
    NOT_COORDINATOR,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafka.testing.groups.consumer_groups import consumer_refusal
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.handlers.groups import CLIENT_HOST, is_coordinator
from kafka.testing.security import acls
from kafka.testing.security.operations import group_operations

_KIND_CONSUMER = 1


@handles(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(
    call: Call[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse:
    """Take the heartbeat of a member; tell it what it may consume."""
    request = call.request
    if call.state.release.version < (4, 0):
        return consumer_refusal(UNSUPPORTED_VERSION, None)
    if request.group_id and not is_coordinator(call, request.group_id):
        return consumer_refusal(NOT_COORDINATOR, 'Another broker coordinates the group.')
    return call.state.groups.consumer_heartbeat(
        request,
        call.version,
        call.header.client_id or '',
        CLIENT_HOST,
        lambda name: call.may(acls.DESCRIBE, acls.TOPIC, name),
    )


@handles(ConsumerGroupDescribeRequest)
def consumer_group_describe(
    call: Call[ConsumerGroupDescribeRequest],
) -> ConsumerGroupDescribeResponse:
    """Tell of groups and what their members have and shall have."""
    return ConsumerGroupDescribeResponse(
        throttle_time_ms=0, groups=[_described(call, name) for name in call.request.group_ids]
    )


def _described(call: Call[ConsumerGroupDescribeRequest], group_id: str) -> DescribedConsumerGroup:
    group = call.state.groups.consumers.get(group_id)
    if call.state.release.version < (4, 0):
        return _failed(group_id, UNSUPPORTED_VERSION, None)
    if not group_id:
        return _failed(group_id, INVALID_GROUP_ID, None)
    if not is_coordinator(call, group_id):
        return _failed(group_id, NOT_COORDINATOR, 'Another broker coordinates the group.')
    if group is None:
        return _failed(group_id, GROUP_ID_NOT_FOUND, 'There is no such consumer group.')
    described = DescribedConsumerGroup(
        error_code=NONE,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(call, group, each) for each in group.members.values()],
    )
    if call.request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    return described


def _failed(group_id: str, error: int, text: Optional[str]) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        error_code=error,
        error_message=text,
        group_id=group_id,
        group_state='',
        group_epoch=0,
        assignment_epoch=0,
        assignor_name='',
        members=[],
    )


def _member(
    call: Call[ConsumerGroupDescribeRequest], group: ConsumerGroup, member: ConsumerMember
) -> Member:
    is_newer = call.state.release.version >= (4, 3)
    held = member.holds if is_newer else set(member.assigned)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.regex or '',
        assignment=_assignment(call, held),
        target_assignment=_assignment(call, group.target.get(member.member_id, set())),
        member_type=_KIND_CONSUMER,
    )


def _assignment(
    call: Call[ConsumerGroupDescribeRequest], partitions: Set[TopicPartition]
) -> Assignment:
    topics: List[TopicPartitions] = []
    for topic_id, index in sorted(partitions):
        if not topics or topics[-1].topic_id != topic_id:
            topic = call.state.topic_by_id(topic_id)
            if topic is None:  # it was deleted
                continue
            topics.append(TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=[]))
        topics[-1].partitions.append(index)
    return Assignment(topic_partitions=topics)
