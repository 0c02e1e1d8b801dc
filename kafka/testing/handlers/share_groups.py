"""Share groups of an embedded cluster: ShareGroupHeartbeat and ShareGroupDescribe (KIP-932).

Owns the way from requests to :mod:`kafka.testing.groups.share_groups` and back. Releases in which
the feature ``share.version`` is 0 list these APIs and refuse them.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from kafka.protocol.share import (
    DescribedGroup,
    Member,
    ShareGroupDescribeAssignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeTopicPartitions,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NONE,
    NOT_COORDINATOR,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.share_group import ShareMember
from kafka.testing.groups.share_groups import share_refusal
from kafka.testing.handlers.groups import CLIENT_HOST, is_coordinator
from kafka.testing.security.operations import group_operations


def has_share_groups(call: Call[Any]) -> bool:
    """Tell whether the cluster has share groups."""
    return call.state.features.get('share.version', 0) > 0


@handles(ShareGroupHeartbeatRequest)
def share_group_heartbeat(call: Call[ShareGroupHeartbeatRequest]) -> ShareGroupHeartbeatResponse:
    """Take the heartbeat of a member; tell it what it may read."""
    request = call.request
    if not has_share_groups(call):
        return share_refusal(UNSUPPORTED_VERSION, None)
    if request.group_id and not is_coordinator(call, request.group_id):
        return share_refusal(NOT_COORDINATOR, 'Another broker coordinates the group.')
    client_id = call.header.client_id or ''
    return call.state.groups.share_heartbeat(request, client_id, CLIENT_HOST)


@handles(ShareGroupDescribeRequest)
def share_group_describe(call: Call[ShareGroupDescribeRequest]) -> ShareGroupDescribeResponse:
    """Tell of groups and what their members read."""
    return ShareGroupDescribeResponse(
        throttle_time_ms=0, groups=[_described(call, name) for name in call.request.group_ids]
    )


def _described(call: Call[ShareGroupDescribeRequest], group_id: str) -> DescribedGroup:
    if not has_share_groups(call):
        return _failed(group_id, UNSUPPORTED_VERSION, None)
    if not group_id:
        return _failed(group_id, INVALID_GROUP_ID, None)
    if not is_coordinator(call, group_id):
        return _failed(group_id, NOT_COORDINATOR, 'Another broker coordinates the group.')
    group = call.state.groups.shares.get(group_id)
    if group is None:
        return _failed(group_id, GROUP_ID_NOT_FOUND, 'There is no such share group.')
    described = DescribedGroup(
        error_code=NONE,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(call, each) for each in group.members.values()],
    )
    if call.request.include_authorized_operations:
        described.authorized_operations = group_operations(call, group_id)
    return described


def _failed(group_id: str, error: int, text: Optional[str]) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=text,
        group_id=group_id,
        group_state='',
        group_epoch=0,
        assignment_epoch=0,
        assignor_name='',
        members=[],
    )


def _member(call: Call[ShareGroupDescribeRequest], member: ShareMember) -> Member:
    partitions: Dict[bytes, List[int]] = {}
    for topic_id, index in sorted(member.assigned):
        partitions.setdefault(topic_id, []).append(index)
    topics = []
    for topic_id, indexes in partitions.items():
        topic = call.state.topic_by_id(topic_id)
        if topic is not None:  # else it was deleted
            topics.append(
                ShareGroupDescribeTopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=indexes
                )
            )
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=ShareGroupDescribeAssignment(topic_partitions=topics),
    )
