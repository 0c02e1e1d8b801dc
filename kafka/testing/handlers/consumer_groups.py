"""ConsumerGroupHeartbeat and ConsumerGroupDescribe of an embedded cluster (KIP-848).

The groups are in :mod:`kafka.testing.groups.consumer_groups`, the coordinator check is in
group_checks.py. Releases before 4.0 list these APIs and refuse them, as real brokers do unless
configured otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import Any, List, Set

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
from kafka.testing.group_checks import described_groups, heartbeat_refusal
from kafka.testing.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafka.testing.groups.consumer_groups import consumer_refusal
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.handlers.groups import CLIENT_HOST
from kafka.testing.security import acls

_KIND_CONSUMER = 1


def _has_consumer_groups(call: Call[Any]) -> bool:
    return call.state.release.version >= (4, 0)


@handles(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(
    call: Call[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse:
    """Process the heartbeat of a member; return its assignment."""
    refusal = heartbeat_refusal(call, _has_consumer_groups(call))
    if refusal is not None:
        return consumer_refusal(*refusal)
    return call.state.groups.consumer_heartbeat(
        call.request,
        call.version,
        call.header.client_id or '',
        CLIENT_HOST,
        lambda name: call.may(acls.DESCRIBE, acls.TOPIC, name),
    )


@handles(ConsumerGroupDescribeRequest)
def consumer_group_describe(
    call: Call[ConsumerGroupDescribeRequest],
) -> ConsumerGroupDescribeResponse:
    """Return groups with the current and the target assignments of their members."""

    def fill(described: DescribedConsumerGroup, group: ConsumerGroup) -> None:
        described.members = [_member(call, group, each) for each in group.members.values()]

    describe = partial(DescribedConsumerGroup, assignor_name='')
    is_supported, groups = _has_consumer_groups(call), call.state.groups.consumers
    return ConsumerGroupDescribeResponse(
        throttle_time_ms=0, groups=described_groups(call, groups, is_supported, describe, fill)
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
            if topic is None:  # the topic was deleted
                continue
            topics.append(TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=[]))
        topics[-1].partitions.append(index)
    return Assignment(topic_partitions=topics)
