"""Waits for topics that brokers create on a metadata request.

Makes auto-creation on newer brokers look as it did with 0.9.5. Up to 2.7 a broker created the topic
before it answered, with error 5 (leader not available), and soon the topic existed. From 2.8 on,
without ZooKeeper, it forwards the creation and answers with error 3 (unknown topic), which 0.9.5
programs take for final; and metadata lists the topic some milliseconds before its leaders accept
requests. Called by BlockingClient; blocks in the caller's thread.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, Mapping, Tuple

from kafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.api import ApiKey
from kafka.structs import OffsetRequest, TopicPartition
from kafka.util import kafka_bytestring

# The time for a topic to appear, and for its leaders to answer, in seconds.
CREATION_SECONDS = 2.0
CREATION_PAUSE_SECONDS = 0.05

_LATEST = -1
_NOT_READY = (
    UnknownTopicOrPartitionError.errno,
    LeaderNotAvailableError.errno,
    NotLeaderForPartitionError.errno,
)


def are_unknown(names: List[bytes], response: Any) -> bool:
    """Return True if a topic requested by name is unknown, error 3, in a MetadataResponse."""
    return any(
        topic.error == UnknownTopicOrPartitionError.errno and kafka_bytestring(topic.topic) in names
        for topic in response.topics
    )


def creates_behind_its_answer(versions: Mapping[int, Tuple[int, int]]) -> bool:
    """Return True if a broker with these versions may be creating a topic that it calls unknown.

    Releases from 2.8 on may; they are recognised by DescribeCluster (KIP-700).
    """
    return ApiKey.DESCRIBE_CLUSTER in versions


def wait_for_creation(names: List[bytes], response: Any, ask: Callable[[List[bytes]], Any]) -> Any:
    """Repeat a metadata request while topics are unknown, at most 2 s; return the last response.

    Arguments: response: the one in which they are unknown; ask: sends a metadata request.
    Raises: what `ask` raises.
    """
    deadline = time.monotonic() + CREATION_SECONDS
    while are_unknown(names, response) and time.monotonic() < deadline:
        time.sleep(CREATION_PAUSE_SECONDS)
        response = ask(names)
    return response


def wait_for_leaders(partitions: List[TopicPartition], ask: Callable[..., List[Any]]) -> bool:
    """Wait until leaders accept requests, 2 s at most; return False if a request failed.

    Requests the end of the log, which a broker returns once it leads the partition.

    Arguments: partitions: those that have leaders; ask: sends OffsetRequests, as
        ``KafkaClient.send_offset_request`` does.
    """
    requests = [OffsetRequest(topic, partition, _LATEST, 1) for topic, partition in partitions]
    deadline = time.monotonic() + CREATION_SECONDS
    while True:
        try:
            answers = ask(requests, fail_on_error=False)
        except KafkaError:
            return False
        if any(isinstance(answer, KafkaError) for answer in answers):
            return False
        if not any(answer.error in _NOT_READY for answer in answers):
            return True
        if time.monotonic() >= deadline:
            return True
        time.sleep(CREATION_PAUSE_SECONDS)
