"""Conversion between offsets and OffsetCommit and OffsetFetch messages of every version.

Version 0 stores offsets in ZooKeeper, version 10 has topic ids in place of names (KIP-848). Called
by OffsetCommits, the evented clients and Spark. Pure.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = [
    'BY_ID_FROM',
    'Fetched',
    'commit_request',
    'committed_codes',
    'fetch_request',
    'fetched',
    'highest_version',
]

#: From this version on topics have only an id.
BY_ID_FROM = 10
#: From this version of OffsetCommit on members may be static (KIP-345).
INSTANCES_FROM = 7
#: The first versions of OffsetFetch with several groups, and with the flag require_stable.
SEVERAL_FROM = 8
STABLE_FROM = 7

Ids = Mapping[str, bytes]


def topic_ids(
    partitions: Iterable[TopicPartition], id_of: Callable[[str], bytes]
) -> Dict[str, bytes]:
    """Return the known topic ids by name."""
    ids = {topic: id_of(topic) for topic in {str(partition[0]) for partition in partitions}}
    return {topic: topic_id for topic, topic_id in ids.items() if topic_id != ZERO_UUID}


def highest_version(partitions: Iterable[TopicPartition], ids: Ids) -> Optional[int]:
    """Return the highest version possible with the known topic ids; None for any version."""
    known = all(partition[0] in ids for partition in partitions)
    return None if known else BY_ID_FROM - 1


def _by_topic(partitions: Iterable[TopicPartition]) -> Dict[str, List[int]]:
    found: Dict[str, List[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(str(topic), []).append(partition)
    return found


def commit_request(
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    who: ConsumerGroupMetadata,
    ids: Ids,
    version: int,
) -> OffsetCommitRequest:
    """Return the OffsetCommit request in the layout of a version.

    Arguments: who: the member; generation -1 and an empty id without a membership.
    """
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            topic_id=ids.get(topic, ZERO_UUID),
            partitions=[
                _partition(number, offsets[TopicPartition(topic, number)]) for number in numbers
            ],
        )
        for topic, numbers in _by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=who.generation_id,
        member_id=who.member_id,
        topics=topics,
    )
    if who.generation_id >= 0 and version >= INSTANCES_FROM:
        request.group_instance_id = who.group_instance_id
    return request


def _partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    epoch = offset.leader_epoch
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if epoch is None else epoch,
        committed_metadata=offset.metadata or '',
    )


def _name(topic: Any, names: Mapping[bytes, str]) -> str:
    """Return the name of a topic in a response, which may have only its id."""
    found: str = topic.name or names.get(getattr(topic, 'topic_id', ZERO_UUID), '')
    return found


def committed_codes(response: OffsetCommitResponse, ids: Ids) -> Dict[TopicPartition, int]:
    """Return the error code of each partition in an OffsetCommit response."""
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(_name(topic, names), each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def fetch_request(
    group: str,
    partitions: Iterable[TopicPartition],
    who: Optional[ConsumerGroupMetadata],
    ids: Ids,
    version: int,
) -> OffsetFetchRequest:
    """Return the OffsetFetch request in the layout of a version.

    It requires stable offsets (KIP-447): with an offset that an open transaction may still change,
    a consumer would return records again.

    Arguments: who: the identity of a KIP-848 member, None for others. A consumer that is in no
    group now sends none: brokers then skip the check, but would search for a member with an empty
    id.
    """
    by_topic = _by_topic(partitions)
    if version < SEVERAL_FROM:
        topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic.items()
        ]
        is_stable = version >= STABLE_FROM
        return OffsetFetchRequest(group_id=group, topics=topics, require_stable=is_stable)
    asked = OffsetFetchRequestGroup(
        group_id=group,
        topics=[
            OffsetFetchRequestTopics(
                name=topic, topic_id=ids.get(topic, ZERO_UUID), partition_indexes=numbers
            )
            for topic, numbers in by_topic.items()
        ],
    )
    if who is not None and who.generation_id >= 0:
        asked.member_id, asked.member_epoch = who.member_id, who.generation_id
    return OffsetFetchRequest(groups=[asked], require_stable=True)


class Fetched(NamedTuple):
    """The content of a response to OffsetFetch.

    error_code: of the group; codes and offsets: of each partition; None if no offset is committed.
    """

    error_code: int
    codes: Dict[TopicPartition, int]
    offsets: Dict[TopicPartition, Optional[OffsetAndMetadata]]


def fetched(response: OffsetFetchResponse, group: str, ids: Ids) -> Fetched:
    """Return the content of an OffsetFetch response for a group."""
    names = {topic_id: name for name, topic_id in ids.items()}
    error_code, topics = _of_group(response, group)
    result = Fetched(error_code, {}, {})
    for topic in topics:
        for each in topic.partitions:
            partition = TopicPartition(_name(topic, names), each.partition_index)
            result.codes[partition] = each.error_code
            result.offsets[partition] = _offset(each)
    return result


def _of_group(response: OffsetFetchResponse, group: str) -> Tuple[int, List[Any]]:
    for each in response.groups:
        if each.group_id == group:
            return each.error_code, list(each.topics)
    return response.error_code, list(response.topics)


def _offset(found: Any) -> Optional[OffsetAndMetadata]:
    if found.committed_offset < 0:
        return None
    return OffsetAndMetadata(
        found.committed_offset, found.metadata or '', found.committed_leader_epoch
    )
