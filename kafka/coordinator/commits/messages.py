"""OffsetCommit and OffsetFetch messages of every version, from offsets and back.

Version 0 stores offsets in ZooKeeper, version 10 names topics by their ids (KIP-848). Called by
OffsetCommits, the evented clients and Spark. Pure.
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

#: From this version on topics stand with ids only.
BY_ID_FROM = 10
#: From this version of OffsetCommit on members may be static (KIP-345).
INSTANCES_FROM = 7
#: From these versions of OffsetFetch on: several groups; open transactions are waited for.
SEVERAL_FROM = 8
STABLE_FROM = 7

Ids = Mapping[str, bytes]


def topic_ids(
    partitions: Iterable[TopicPartition], id_of: Callable[[str], bytes]
) -> Dict[str, bytes]:
    """Return the ids of topics by name, as far as they are known."""
    ids = {topic: id_of(topic) for topic in {str(partition[0]) for partition in partitions}}
    return {topic: topic_id for topic, topic_id in ids.items() if topic_id != ZERO_UUID}


def highest_version(partitions: Iterable[TopicPartition], ids: Ids) -> Optional[int]:
    """Return up to which version some topics can be named; None for any."""
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
    """Return the request that stores offsets, in the shape of a version.

    Arguments: who: the member, with generation -1 and no id outside of a membership.
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
    """Return which topic is meant, by whatever it is called."""
    found: str = topic.name or names.get(getattr(topic, 'topic_id', ZERO_UUID), '')
    return found


def committed_codes(response: OffsetCommitResponse, ids: Ids) -> Dict[TopicPartition, int]:
    """Return the code of each partition of an answer."""
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
    """Return the request for offsets, in the shape of a version.

    Offsets that an open transaction may still change are not to be told (KIP-447): who went by the
    one before would hand records out again.

    Arguments: who: a member of KIP-848, None for others; who is in no group now asks as nobody,
    whom brokers tell everything, while they look for a member that has no id.
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
    """What an answer to OffsetFetch says.

    error_code: of the whole; codes and offsets: of each partition, None for none committed.
    """

    error_code: int
    codes: Dict[TopicPartition, int]
    offsets: Dict[TopicPartition, Optional[OffsetAndMetadata]]


def fetched(response: OffsetFetchResponse, group: str, ids: Ids) -> Fetched:
    """Return what an answer says of a group."""
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
