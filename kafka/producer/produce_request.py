"""Building of Produce requests in a version that the broker supports, and reading of responses.

Used by the sender, which decides which batches are sent and when. Follows KIP-516 (topic ids).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from kafka.errors import UnsupportedVersionError
from kafka.producer.producer_batch import ProducerBatch
from kafka.protocol.api import choose_version
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafka.protocol.wire import ZERO_UUID

__all__ = ['ProduceVersions', 'SenderSettings', 'answers_of', 'magic_of', 'produce_request']

#: The first versions of Produce for magic 1 and 2, and the last one with topic names.
MAGIC_1_SINCE = 2
MAGIC_2_SINCE = 3
LAST_WITH_NAMES = 12


class SenderSettings(NamedTuple):
    """The options of a producer about sending; times in seconds, sizes in bytes."""

    acks: int = 1
    request_timeout: float = 30.0
    delivery_timeout: float = 120.0
    max_request_size: int = 1048576
    max_in_flight: int = 5
    retries: float = float('inf')
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    batch_size: int = 16384
    codec: int = 0
    compresslevel: Optional[int] = None
    availability_timeout: float = 0.0


def magic_of(version: int) -> int:
    """Return the record format (magic) for a version of Produce."""
    return 2 if version >= MAGIC_2_SINCE else int(version >= MAGIC_1_SINCE)


class ProduceVersions:
    """The version of Produce for each node, chosen once for its supported version ranges."""

    def __init__(self) -> None:
        self._chosen: Dict[int, Tuple[Any, int, int, int]] = {}  # by node, with its version ranges

    def __repr__(self) -> str:
        return '<ProduceVersions of %d nodes>' % len(self._chosen)

    def choose(
        self,
        node: int,
        ranges: Mapping[int, Tuple[int, int]],
        wanted: Tuple[int, int],
        have_ids: bool,
    ) -> int:
        """Return the version for a broker.

        Arguments: ranges: the version ranges that the broker supports, by API key; wanted: the
        lowest and the highest version that the producer can use; have_ids: whether the ids of all
        topics are known.
        Raises: UnsupportedVersionError if the broker supports no version that the producer can use.
        """
        lowest, highest = wanted
        if not have_ids:
            highest = min(highest, LAST_WITH_NAMES)
        known = self._chosen.get(node)
        if known is not None and known[0] is ranges and known[1:3] == (lowest, highest):
            return known[3]
        version = choose_version(ProduceRequest, ranges, highest)
        if version < lowest:
            raise UnsupportedVersionError(
                'the producer needs Produce %d, the broker has %d' % (lowest, version)
            )
        self._chosen[node] = (ranges, lowest, highest, version)
        return version


def produce_request(
    batches: Iterable[ProducerBatch],
    version: int,
    settings: SenderSettings,
    transactional_id: Optional[str],
    topic_id: Callable[[Any], bytes],
) -> ProduceRequest:
    """Return a request with encoded batches.

    Arguments: topic_id: returns the id of a topic; called for versions without topic names.
    """
    by_topic: Dict[Any, List[PartitionProduceData]] = {}
    for batch in batches:
        topic, partition = batch.topic_partition
        data = PartitionProduceData(index=partition, records=batch.encoded)
        by_topic.setdefault(topic, []).append(data)
    with_ids = version > LAST_WITH_NAMES
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=settings.acks,
        timeout_ms=int(settings.request_timeout * 1000),
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic_id(topic) if with_ids else ZERO_UUID,
                partition_data=partitions,
            )
            for topic, partitions in by_topic.items()
        ],
    )


def answers_of(
    request: ProduceRequest, response: ProduceResponse
) -> Dict[Tuple[Any, int], PartitionProduceResponse]:
    """Return the partition responses by (topic, partition); '' for an unknown topic id."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    answers: Dict[Tuple[Any, int], PartitionProduceResponse] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, '')
        for partition in topic.partition_responses:
            answers[name, partition.index] = partition
    return answers
