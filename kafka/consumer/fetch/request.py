"""Fetch requests as one broker can read them, and what its answers are about.

Owns: how a plan of a fetch session becomes a request, of whichever version, and which partition
each part of an answer is about. Does not own: the plan (session.py), what is done with the
answer (manager.py). Pure.
"""

from __future__ import annotations

from typing import Iterable, List, NamedTuple, Optional, Tuple

from kafka.consumer.fetch.session import FINAL_EPOCH, FetchSession, Plan, Wanted
from kafka.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafka.structs import TopicPartition

__all__ = [
    'HAS_SESSIONS',
    'LAST_WITH_NAMES',
    'LIMITS_ALL',
    'FetchSettings',
    'ending_request',
    'fetch_request',
    'parts_of',
]

#: The first versions of Fetch that limit an answer as a whole (KIP-74; from then on a limit lets
#: the first batch pass), and that have sessions; the last that names topics.
LIMITS_ALL = 3
HAS_SESSIONS = 7
LAST_WITH_NAMES = 12


class FetchSettings(NamedTuple):
    """What a consumer was told about fetching; times in seconds, sizes in bytes.

    Attributes: max_wait: brokers wait so long for min_bytes; below request_timeout; idle_wait: and
    so long after they have waited in vain for a while, unless that is less; max_bytes: of an
    answer; max_partition_bytes: of a partition in it; max_buffered_bytes: of all that is fetched
    ahead, everywhere; metadata_max_age: for so long a nearer replica is asked.
    """

    min_bytes: int = 1
    max_wait: float = 0.5
    idle_wait: float = 0.0
    max_bytes: int = 52428800
    max_partition_bytes: int = 1048576
    max_buffered_bytes: int = 67108864
    check_crcs: bool = True
    read_committed: bool = False
    client_rack: str = ''
    use_sessions: bool = True
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    request_timeout: float = 30.0
    metadata_max_age: float = 300.0

    @property
    def partition_limit(self) -> int:
        """How much is usually asked of a partition."""
        return min(self.max_partition_bytes, self.max_bytes)


def fetch_request(
    plan: Plan,
    settings: FetchSettings,
    max_bytes: int,
    max_wait: float,
    partition_limit: Optional[int] = None,
) -> FetchRequest:
    """Return the request that says what a plan says.

    Arguments: max_bytes: of the answer; max_wait: seconds; partition_limit: bytes of those
    partitions that are asked for as usual, None for those of the settings.
    """
    usual = settings.partition_limit
    topics: List[FetchTopic] = []
    last: Optional[Tuple[object, bytes]] = None
    # The order is who has its turn first: a topic that has its turn twice is named twice.
    for (topic, index), wanted in plan.partitions:
        if (topic, wanted.topic_id) != last:
            last = topic, wanted.topic_id
            topics.append(FetchTopic(topic=str(topic), topic_id=wanted.topic_id, partitions=[]))
        topics[-1].partitions.append(_part(index, wanted, usual, partition_limit))
    return FetchRequest(
        max_wait_ms=int(max_wait * 1000),
        min_bytes=settings.min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(settings.read_committed),
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=topics,
        forgotten_topics_data=_forgotten(plan),
        rack_id=settings.client_rack,
    )


def _part(index: int, wanted: Wanted, usual: int, partition_limit: Optional[int]) -> FetchPartition:
    limit = wanted.max_bytes
    if partition_limit is not None and limit == usual:
        limit = partition_limit
    return FetchPartition(
        partition=index,
        current_leader_epoch=wanted.leader_epoch,
        fetch_offset=wanted.offset,
        partition_max_bytes=limit,
    )


def _forgotten(plan: Plan) -> List[ForgottenTopic]:
    topics: List[ForgottenTopic] = []
    for (topic, index), topic_id in plan.forgotten:
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, topic_id):
            topics.append(ForgottenTopic(topic=str(topic), topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(index)
    return topics


def ending_request(session_id: int) -> FetchRequest:
    """Return the request that ends a session and asks for nothing."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=FINAL_EPOCH,
        topics=[],
    )


def parts_of(
    response: FetchResponse, session: FetchSession
) -> Iterable[Tuple[TopicPartition, PartitionData]]:
    """Yield what an answer says, and of which partition; topics that nobody knows have no name."""
    for topic in response.responses:
        name = topic.topic or session.topic_of(topic.topic_id) or ''
        for data in topic.partitions:
            yield TopicPartition(name, data.partition_index), data
