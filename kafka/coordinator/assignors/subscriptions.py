"""Subscriptions and assignments of the members of a classic group, as values and as bytes.

GroupSubscription, the bytes in JoinGroup and SyncGroup (protocol type "consumer"), and the members
that are passed to an assignor. Used by assignors and members of classic groups. An int16 with the
version precedes the fields; a higher version than known is decoded with the newest known layout,
and the bytes after it are ignored. Pure.
"""

from __future__ import annotations

import io
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.errors import ProtocolError
from kafka.protocol.consumer_protocol import TopicPartition as TopicPartitions
from kafka.protocol.types import Array, Bytes, Int16, Int32, String
from kafka.structs import TopicPartition

__all__ = [
    'GroupSubscription',
    'MemberName',
    'Members',
    'Partition',
    'by_topic',
    'decode_assignment',
    'decode_subscription',
    'encode_assignment',
    'encode_subscription',
    'read_members',
]

#: A TopicPartition or an equal tuple.
Partition = Tuple[Any, int]

#: The newest layout of a subscription.
NEWEST = 3

_STRING = String('utf-8')
_TOPICS = Array(_STRING)
PARTITIONS = Array(('topic', _STRING), ('partitions', Array(Int32)))


class GroupSubscription(NamedTuple):
    """The subscription of a member in JoinGroup.

    generation: of `owned`, -1 if unknown; rack: None if unknown; version: of its encoded form.
    """

    member_id: str
    group_instance_id: Optional[str] = None
    topics: Sequence[str] = ()
    owned: Sequence[Partition] = ()
    generation: int = -1
    rack: Optional[str] = None
    user_data: Optional[bytes] = None
    version: int = 0

    @property
    def rank(self) -> Tuple[bool, str]:
        """The sort key of members: those with an instance id first, by that (KIP-345)."""
        if self.group_instance_id is None:
            return True, self.member_id
        return False, self.group_instance_id


# ------------------------------------------------------------ bytes


def by_topic(partitions: Iterable[Partition]) -> List[Tuple[str, List[int]]]:
    """Return [(topic, [partition])], both ascending."""
    found: Dict[str, List[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return [(topic, sorted(found[topic])) for topic in sorted(found)]


def flat(topics: Iterable[Tuple[str, Iterable[int]]]) -> List[TopicPartition]:
    """Return the partitions of [(topic, [partition])]."""
    return [TopicPartition(topic, each) for topic, partitions in topics for each in partitions]


def encode_subscription(wanted: GroupSubscription) -> bytes:
    """Return the bytes for JoinGroup, in `version` or a higher one that has all given fields."""
    version = max(wanted.version, 1 if wanted.owned else 0)
    version = max(version, 2 if wanted.generation != -1 else 0)
    version = min(max(version, NEWEST if wanted.rack is not None else 0), NEWEST)
    parts = [
        Int16.encode(version),
        _TOPICS.encode(sorted(wanted.topics)),
        Bytes.encode(wanted.user_data),
    ]
    if version >= 1:
        parts.append(PARTITIONS.encode(by_topic(wanted.owned)))
    if version >= 2:
        parts.append(Int32.encode(wanted.generation))
    if version >= 3:
        parts.append(_STRING.encode(wanted.rack))
    return b''.join(parts)


def decode_subscription(
    data: bytes, member_id: str = '', group_instance_id: Optional[str] = None
) -> GroupSubscription:
    """Decode the subscription of a member from JoinGroup.

    Raises: ProtocolError, naming the member, if the bytes are not a subscription.
    """
    stream = io.BytesIO(data)
    try:
        version = Int16.decode(stream)
        topics = _TOPICS.decode(stream)
        user_data = Bytes.decode(stream)
        owned = flat(PARTITIONS.decode(stream)) if version >= 1 else []
        generation = Int32.decode(stream) if version >= 2 else -1
        rack = _STRING.decode(stream) if version >= 3 else None
        if None in topics or any(topic is None for topic, _ in owned):
            raise ValueError('a topic without name')
    except ValueError as error:
        raise ProtocolError(
            'the subscription of member %r of the group cannot be read: %s' % (member_id, error)
        ) from error
    return GroupSubscription(
        member_id, group_instance_id, topics, owned, generation, rack, user_data, version
    )


def encode_assignment(
    partitions: Iterable[Partition], user_data: Optional[bytes] = b'', version: int = 0
) -> bytes:
    """Return the bytes for SyncGroup; the layout is the same in all versions."""
    topics = PARTITIONS.encode(by_topic(partitions))
    return Int16.encode(version) + topics + Bytes.encode(user_data)


def read_assignment(data: bytes) -> ConsumerProtocolMemberAssignment:
    """Decode the assignment of a member from SyncGroup; b'' is an empty assignment.

    Raises: ProtocolError if the bytes are not an assignment.
    """
    if not data:
        return ConsumerProtocolMemberAssignment(0, [], b'')
    try:
        return ConsumerProtocolMemberAssignment.decode(data)
    except ValueError as error:
        raise ProtocolError(
            'the assignment that the leader of the group sent cannot be read: %s' % error
        ) from error


def decode_assignment(data: bytes) -> List[TopicPartition]:
    """Return the partitions of an assignment from SyncGroup; raises as read_assignment()."""
    return read_assignment(data).partitions()


# ------------------------------------------------------------ shapes of all eras


class MemberName(str):
    """The id of a member with the attributes of 3.0.

    1.x and 2.x pass member ids to assignors, 3.0 a list of members, each with member_id,
    group_instance_id and metadata.
    """

    group_instance_id: Optional[str]
    metadata: Any

    def __new__(cls, member_id: str, metadata: Any, instance: Optional[str] = None) -> MemberName:
        """Create the str and set its attributes."""
        made = super().__new__(cls, member_id)
        made.group_instance_id = instance
        made.metadata = metadata
        return made

    @property
    def member_id(self) -> str:
        """The id as plain text."""
        return str(self)


class Members(Dict[str, Any]):
    """The members for an assignor: {member id: metadata}; iterating yields the members of 3.0."""

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)):
            return list(self)[key]
        raise KeyError(key)


def shown_to_assignors(members: Iterable[GroupSubscription]) -> Members:
    """Return subscriptions in a form that assignors of all releases accept."""
    shown = Members()
    for wanted in members:
        metadata = ConsumerProtocolMemberMetadata(
            wanted.version, list(wanted.topics), wanted.user_data
        )
        metadata.owned_partitions = tuple(
            TopicPartitions(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(wanted.owned)
        )
        metadata.generation_id = wanted.generation
        metadata.rack_id = wanted.rack
        name = MemberName(wanted.member_id, metadata, wanted.group_instance_id)
        shown[name] = metadata
    return shown


def read_members(members: Any) -> List[GroupSubscription]:
    """Return the subscriptions of the members passed to an assignor, sorted by rank.

    Arguments: members: {member id: metadata} (1.x, 2.x), or objects with member_id,
        group_instance_id and metadata (3.0); metadata with subscription or topics, and user_data.
    """
    if isinstance(members, Mapping):
        pairs = list(members.items())
    else:
        pairs = [(member, member.metadata) for member in members]
    return sorted((_wanted(member, metadata) for member, metadata in pairs), key=_rank)


def _rank(member: GroupSubscription) -> Tuple[bool, str]:
    return member.rank


def _wanted(member: Any, metadata: Any) -> GroupSubscription:
    return read_metadata(metadata)._replace(
        member_id=str(getattr(member, 'member_id', member)),
        group_instance_id=getattr(member, 'group_instance_id', None),
    )


def read_metadata(metadata: Any) -> GroupSubscription:
    """Return the subscription in the metadata of a member: bytes, or an object of any release.

    Raises: AttributeError for an object without topics; ProtocolError for invalid bytes.
    """
    if isinstance(metadata, (bytes, bytearray, memoryview)):
        return decode_subscription(bytes(metadata))
    topics = getattr(metadata, 'subscription', None)
    owned = getattr(metadata, 'owned_partitions', None) or ()
    version = getattr(metadata, 'version', None)
    generation = getattr(metadata, 'generation_id', None)
    return GroupSubscription(
        member_id='',
        topics=list(metadata.topics if topics is None else topics),
        owned=flat((each.topic, each.partitions) for each in owned),
        generation=-1 if generation is None else generation,
        rack=getattr(metadata, 'rack_id', None),
        user_data=getattr(metadata, 'user_data', None),
        version=version if isinstance(version, int) else 0,
    )
