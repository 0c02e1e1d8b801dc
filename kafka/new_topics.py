"""Topics that come into being while one asks for them.

Owns the wait that makes creation by request look on newer brokers as it did on those of 0.9.5's
time. Up to 2.7 a broker created the topic before it answered, said "no leader yet" (5), and soon
the topic was there. From 2.8 on, without ZooKeeper, it passes the wish on and answers "unknown"
(3), which 0.9.5 programs take for final; and metadata tells of the topic some milliseconds before
its leaders take requests.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from kafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafka.exchange import Address
from kafka.protocol.api import ApiKey
from kafka.structs import OffsetRequest
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


class NewTopics:
    """The part of KafkaClient that waits for topics which asking for them creates."""

    topic_partitions: Dict[Any, Any]
    _metadata_from: Optional[Address]

    # What the client brings.
    send_metadata_request: Callable[..., Any]
    send_offset_request: Callable[..., List[Any]]
    _versions_of: Callable[[Optional[Address]], Mapping[int, Tuple[int, int]]]

    def _wait_for_creation(self, names: List[bytes], response: Any) -> Tuple[Any, bool]:
        """Ask again while a topic is unknown to a broker that may be creating it.

        Returns: the last response, and whether topics appeared that the first one did not know.
        Releases from 2.8 on are told by DescribeCluster; others are not asked again.
        """
        if not _unknown(names, response) or (
            ApiKey.DESCRIBE_CLUSTER not in self._versions_of(self._metadata_from)
        ):
            return response, False
        deadline = time.monotonic() + CREATION_SECONDS
        while _unknown(names, response):
            if time.monotonic() >= deadline:
                return response, False
            time.sleep(CREATION_PAUSE_SECONDS)
            response = self.send_metadata_request(names)
        return response, True

    def _wait_for_leaders(self, names: List[bytes]) -> bool:
        """Wait until the leaders of new topics take requests; False if one could not be asked.

        The question is for the end of the log, which a broker answers once it leads the partition.
        """
        requests = [
            OffsetRequest(name, partition, _LATEST, 1)
            for name in names
            for partition, known in (self.topic_partitions.get(name) or {}).items()
            if known.leader != -1
        ]
        deadline = time.monotonic() + CREATION_SECONDS
        while True:
            try:
                answers = self.send_offset_request(requests, fail_on_error=False)
            except KafkaError:
                return False
            if any(isinstance(answer, KafkaError) for answer in answers):
                return False
            if not any(answer.error in _NOT_READY for answer in answers):
                return True
            if time.monotonic() >= deadline:
                return True
            time.sleep(CREATION_PAUSE_SECONDS)


def _unknown(names: List[bytes], response: Any) -> bool:
    """Tell whether a topic asked for by name is unknown."""
    return any(
        topic.error == UnknownTopicOrPartitionError.errno and kafka_bytestring(topic.topic) in names
        for topic in response.topics
    )
