"""Lookup of the partition that a request names, with the errors of topics, leaders and epochs.

Called by handlers. Also the addresses of the current leaders that responses carry (KIP-951).
"""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Type, TypeVar, Union

from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call
from kafka.testing.errors import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafka.testing.state import NO_LEADER, Partition, Topic

E = TypeVar('E')

#: The leader epoch in requests that do not check it.
ANY_EPOCH = -1


def find_topic(call: Call[Any], name: str, topic_id: bytes, by_id: bool) -> Union[Topic, int]:
    """Return the topic with a name or id, or an error code."""
    if not by_id:
        topic = call.state.topics.get(name)
        return UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic
    found = None if topic_id == ZERO_UUID else call.state.topic_by_id(topic_id)
    return UNKNOWN_TOPIC_ID if found is None else found


def led_partition(call: Call[Any], topic: Union[Topic, int], index: int) -> Union[Partition, int]:
    """Return a partition that the broker leads, else an error code."""
    partition = known_partition(topic, index)
    if isinstance(partition, int) or partition.leader == call.broker.node_id:
        return partition
    return _not_leader(call, partition)


def held_partition(call: Call[Any], topic: Union[Topic, int], index: int) -> Union[Partition, int]:
    """Return a partition of which the broker has a replica, else an error code."""
    partition = known_partition(topic, index)
    if isinstance(partition, int) or call.broker.node_id in partition.replicas:
        return partition
    return _not_leader(call, partition)


def known_partition(topic: Union[Topic, int], index: int) -> Union[Partition, int]:
    """Return a partition, or an error code."""
    if isinstance(topic, int):
        return topic
    partition = topic.partition(index)
    return UNKNOWN_TOPIC_OR_PARTITION if partition is None else partition


def _not_leader(call: Call[Any], partition: Partition) -> int:
    version = call.state.release.version
    if call.broker.node_id not in partition.replicas and version < (1, 1):
        return UNKNOWN_TOPIC_OR_PARTITION  # these brokers know only their own partitions
    return NOT_LEADER_OR_FOLLOWER


def epoch_error(partition: Partition, current_leader_epoch: int) -> int:
    """Return the error code for a client's leader epoch, or NONE (KIP-320)."""
    if current_leader_epoch == ANY_EPOCH or current_leader_epoch == partition.leader_epoch:
        return NONE
    if current_leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    return UNKNOWN_LEADER_EPOCH


def as_replica_error(call: Call[Any], error: int) -> int:
    """Return the error code of a replica that is not the leader, another one before 2.6."""
    if error == NOT_LEADER_OR_FOLLOWER and (2, 4) <= call.state.release.version < (2, 6):
        return REPLICA_NOT_AVAILABLE
    return error


def leader_endpoints(call: Call[Any], leaders: Iterable[Optional[int]], kind: Type[E]) -> List[E]:
    """Return the addresses of live leaders, each once."""
    nodes = call.state.nodes
    wanted = sorted({leader for leader in leaders if leader is not None and leader != NO_LEADER})
    make: Any = kind
    return [
        make(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in map(nodes.__getitem__, wanted)
        if node.is_alive
    ]
