"""Streams group APIs of an embedded cluster: heartbeats and descriptions (KIP-1071).

The groups are in :mod:`kafka.testing.groups.streams_groups`, the coordinator check is in
group_checks.py. Brokers need a plugin to store topology descriptions (KIP-1331); this one has none
and does not request them.
"""

from __future__ import annotations

from typing import Any, List, Optional, Set

from kafka.protocol.streams import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeSubtopology,
    StreamsGroupDescribeTopology,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    TopicInfo,
)
from kafka.testing.calls import Call, handles
from kafka.testing.errors import UNSUPPORTED_VERSION
from kafka.testing.group_checks import described_groups, heartbeat_refusal
from kafka.testing.groups.streams_group import StreamsGroup, StreamsMember
from kafka.testing.groups.streams_groups import by_part, streams_refusal
from kafka.testing.groups.streams_topology import Task
from kafka.testing.handlers.groups import CLIENT_HOST

#: The status of a topology description that is not stored.
_NOT_AVAILABLE = 1


def has_streams_groups(call: Call[Any]) -> bool:
    """Return True if streams groups are enabled in the cluster."""
    return call.state.features.get('streams.version', 0) > 0


@handles(StreamsGroupHeartbeatRequest)
def streams_group_heartbeat(
    call: Call[StreamsGroupHeartbeatRequest],
) -> StreamsGroupHeartbeatResponse:
    """Process the heartbeat of a member; return its tasks."""
    refusal = heartbeat_refusal(call, has_streams_groups(call))
    if refusal is not None:
        return streams_refusal(*refusal)
    client_id = call.header.client_id or ''
    return call.state.groups.streams_heartbeat(call.request, client_id, CLIENT_HOST)


@handles(StreamsGroupTopologyDescriptionUpdateRequest)
def streams_group_topology_description_update(
    call: Call[StreamsGroupTopologyDescriptionUpdateRequest],
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse the description: only a plugin could store it."""
    return StreamsGroupTopologyDescriptionUpdateResponse(
        throttle_time_ms=0,
        error_code=UNSUPPORTED_VERSION,
        error_message='There is no plugin for descriptions of topologies.',
    )


# ------------------------------------------------------------ describe


@handles(StreamsGroupDescribeRequest)
def streams_group_describe(call: Call[StreamsGroupDescribeRequest]) -> StreamsGroupDescribeResponse:
    """Return groups with their topologies and the tasks of their members."""

    def fill(described: DescribedGroup, group: StreamsGroup) -> None:
        described.topology = _topology(group)
        described.members = [_member(group, each) for each in group.members.values()]
        if call.version >= 1 and call.request.include_topology_description:
            described.topology_description_status = _NOT_AVAILABLE

    return StreamsGroupDescribeResponse(
        throttle_time_ms=0,
        groups=described_groups(
            call, call.state.groups.streams, has_streams_groups(call), DescribedGroup, fill
        ),
    )


def _topology(group: StreamsGroup) -> Optional[StreamsGroupDescribeTopology]:
    if group.topology is None:
        return None
    return StreamsGroupDescribeTopology(
        epoch=group.topology.epoch,
        subtopologies=[
            StreamsGroupDescribeSubtopology(
                subtopology_id=part.subtopology_id,
                source_topics=part.source_topics,
                repartition_sink_topics=part.repartition_sink_topics,
                state_changelog_topics=_counted(group, part.state_changelog_topics),
                repartition_source_topics=_counted(group, part.repartition_source_topics),
            )
            for part in sorted(group.topology.subtopologies, key=lambda each: each.subtopology_id)
        ],
    )


def _counted(group: StreamsGroup, topics: List[TopicInfo]) -> List[TopicInfo]:
    """Return internal topics with their partition counts."""
    configured = group.configured
    counts = configured.topics if configured is not None and configured.is_ready else {}
    return [
        TopicInfo(
            name=each.name,
            partitions=counts.get(each.name, each.partitions),
            replication_factor=each.replication_factor,
            topic_configs=each.topic_configs,
        )
        for each in topics
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint,
        client_tags=member.client_tags,
        task_offsets=member.task_offsets,
        task_end_offsets=member.task_end_offsets,
        assignment=_assignment(set(member.assigned), member.standby),
        target_assignment=_assignment(
            group.target.get(member.member_id, set()), group.standby.get(member.member_id, set())
        ),
        is_classic=False,
    )


def _assignment(active: Set[Task], standby: Set[Task]) -> Assignment:
    return Assignment(active_tasks=by_part(active), standby_tasks=by_part(standby), warmup_tasks=[])
