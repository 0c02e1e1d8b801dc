"""Topics that come into being while one asks for them.

Owns the wait that makes creation by request look on newer brokers as it did on those of 0.9.5's
time. Up to 2.7 a broker created the topic before it answered, said "no leader yet" (5), and soon
the topic was there. From 2.8 on, without ZooKeeper, it passes the wish on and answers "unknown"
(3), which 0.9.5 programs take for final; and metadata tells of the topic some milliseconds before
its leaders take requests.
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

# How long a topic is given to appear, and its leaders to answer, in seconds.
CREATION_SECONDS = 2.0
CREATION_PAUSE_SECONDS = 0.05

_LATEST = -1
_NOT_READY = (
    UnknownTopicOrPartitionError.errno,
    LeaderNotAvailableError.errno,
    NotLeaderForPartitionError.errno,
)


def are_unknown(names: List[bytes], response: Any) -> bool:
    """Return whether a topic asked for by name is unknown, error 3, in a MetadataResponse."""
    return any(
        topic.error == UnknownTopicOrPartitionError.errno and kafka_bytestring(topic.topic) in names
        for topic in response.topics
    )


def creates_behind_its_answer(versions: Mapping[int, Tuple[int, int]]) -> bool:
    """Return whether a broker, by its versions, may be creating what it calls unknown.

    So do releases from 2.8 on, which are told by DescribeCluster (KIP-700).
    """
    return ApiKey.DESCRIBE_CLUSTER in versions


def wait_for_creation(names: List[bytes], response: Any, ask: Callable[[List[bytes]], Any]) -> Any:
    """Ask again while topics are unknown; return the last response, after 2 s at most.

    Arguments: response: the one that calls them unknown; ask: sends a metadata request.
    Raises: what `ask` raises.
    """
    deadline = time.monotonic() + CREATION_SECONDS
    while are_unknown(names, response) and time.monotonic() < deadline:
        time.sleep(CREATION_PAUSE_SECONDS)
        response = ask(names)
    return response


def wait_for_leaders(partitions: List[TopicPartition], ask: Callable[..., List[Any]]) -> bool:
    """Wait until leaders take requests, 2 s at most; return False if one could not be asked.

    The question is for the end of the log, which a broker answers once it leads the partition.

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
