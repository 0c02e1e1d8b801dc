"""DescribeLogDirs and AlterReplicaLogDirs of an embedded broker, which has one log directory.

Follows KIP-113. The directory is a name only; data_folder.py knows where files are.
"""

from __future__ import annotations

from typing import Dict, List

from kafka.protocol.admin.partitions import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.state import ClusterState, Partition
from kafka.testing.topic_checks import INTERNAL


def log_dir(node_id: int) -> str:
    """Return the name of a broker's log directory."""
    return '/tmp/kafka-logs-%d' % node_id


@handles(DescribeLogDirsRequest)
def describe_log_dirs(call: Call[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    """Return the replicas in the log directory of this broker."""
    state, node_id = call.state, call.broker.node_id
    asked = call.request.topics
    if asked is None:
        asked = [
            DescribableLogDirTopic(
                topic=topic.name, partitions=[each.index for each in topic.partitions]
            )
            for topic in state.topics.values()
        ]
    topics = []
    for each in asked:
        here = _here(state, each.topic, each.partitions, node_id)
        if here:
            topics.append(_topic(each.topic, here))
    if (2, 0) <= state.release.version < (3, 3) and call.request.topics is not None:
        # These releases also return their other topics, without partitions.
        told = {each.name for each in topics}
        held = [p.topic for p in state.partitions() if node_id in p.replicas]
        others = [name for name in dict.fromkeys([*held, *INTERNAL]) if name not in told]
        topics += [_topic(name, {}) for name in others]
    limit = state.defaults.log_bytes_limit
    used = sum(each.log.size_bytes for each in state.partitions())
    directory = DescribeLogDirsResult(
        error_code=errors.NONE,
        log_dir=log_dir(node_id),
        topics=topics,
        total_bytes=limit,
        usable_bytes=max(0, limit - used),
    )
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=errors.NONE, results=[directory])


def _here(state: ClusterState, name: str, indexes: List[int], node_id: int) -> Dict[int, Partition]:
    """Return the partitions of a topic that have a replica on this broker."""
    topic = state.topics.get(name)
    found = {}
    for index in indexes:
        partition = topic.partition(index) if topic else None
        if partition is not None and node_id in partition.replicas:
            found[index] = partition
    return found


def _topic(name: str, here: Dict[int, Partition]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=partition.log.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for index, partition in here.items()
        ],
    )


@handles(AlterReplicaLogDirsRequest)
def alter_replica_log_dirs(call: Call[AlterReplicaLogDirsRequest]) -> AlterReplicaLogDirsResponse:
    """Accept moves to the only directory; another one is LOG_DIR_NOT_FOUND."""
    results: Dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            here = _here(call.state, topic.name, topic.partitions, call.broker.node_id)
            result = results.setdefault(
                topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=[])
            )
            for index in topic.partitions:
                code = errors.NONE
                if directory.path != log_dir(call.broker.node_id):
                    code = errors.LOG_DIR_NOT_FOUND
                elif index not in here:
                    code = errors.REPLICA_NOT_AVAILABLE
                result.partitions.append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return AlterReplicaLogDirsResponse(throttle_time_ms=0, results=list(results.values()))
