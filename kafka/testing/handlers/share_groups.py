"""ShareGroupHeartbeat and ShareGroupDescribe of an embedded cluster (KIP-932).

The groups are in :mod:`kafka.testing.groups.share_groups`, the coordinator check is in
group_checks.py. Releases in which the feature ``share.version`` is 0 list these APIs and refuse
them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

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
from kafka.testing.group_checks import described_groups, heartbeat_refusal
from kafka.testing.groups.epoch_groups import numbers_by_name
from kafka.testing.groups.share_group import ShareGroup, ShareMember
from kafka.testing.groups.share_groups import share_refusal
from kafka.testing.handlers.groups import CLIENT_HOST


def has_share_groups(call: Call[Any]) -> bool:
    """Return True if share groups are enabled in the cluster."""
    return call.state.features.get('share.version', 0) > 0


@handles(ShareGroupHeartbeatRequest)
def share_group_heartbeat(call: Call[ShareGroupHeartbeatRequest]) -> ShareGroupHeartbeatResponse:
    """Process the heartbeat of a member; return its assignment."""
    refusal = heartbeat_refusal(call, has_share_groups(call))
    if refusal is not None:
        return share_refusal(*refusal)
    client_id = call.header.client_id or ''
    return call.state.groups.share_heartbeat(call.request, client_id, CLIENT_HOST)


@handles(ShareGroupDescribeRequest)
def share_group_describe(call: Call[ShareGroupDescribeRequest]) -> ShareGroupDescribeResponse:
    """Return groups with the assignments of their members."""

    def fill(described: DescribedGroup, group: ShareGroup) -> None:
        described.members = [_member(call, each) for each in group.members.values()]

    describe = partial(DescribedGroup, assignor_name='')
    is_supported, groups = has_share_groups(call), call.state.groups.shares
    return ShareGroupDescribeResponse(
        throttle_time_ms=0, groups=described_groups(call, groups, is_supported, describe, fill)
    )


def _member(call: Call[ShareGroupDescribeRequest], member: ShareMember) -> Member:
    topics = []
    for topic_id, indexes in numbers_by_name(member.assigned).items():
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
