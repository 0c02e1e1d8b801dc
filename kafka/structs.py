"""Named tuples for the arguments and results of the clients of all releases.

``kafka.protocol`` encodes and decodes them. The class names are those of 0.9.5; the ``...Payload``
names of 1.x are aliases. As in 1.x the module also exports all names of ``kafka.errors``.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from kafka.consumer_record import ConsumerRecord as ConsumerRecord
from kafka.errors import *  # noqa: F403 - 1.x programs import errors from here

# bytes with the clients of 0.9.5, str with later ones.
TopicName = Union[bytes, str]


class TopicPartition(NamedTuple):
    """A partition of a topic (1.x and later)."""

    topic: TopicName
    partition: int


class TopicAndPartition(TopicPartition):
    """A partition of a topic (0.9.5); equal to a TopicPartition of the same values."""

    __slots__ = ()


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on one broker (3.0)."""

    topic: str
    partition: int
    broker_id: int


def _same_position(one: Any, other: object) -> Any:
    """Compare two (offset, text or timestamp, leader epoch) tuples, ignoring a missing epoch.

    Releases without the epoch created these tuples from two values; programs compare such tuples
    with results.
    """
    if not isinstance(other, tuple):
        return NotImplemented
    if tuple(one[:2]) != tuple(other[:2]) or not 2 <= len(other) <= 3:
        return False
    unknown = (None, -1)
    return len(other) == 2 or one[2] in unknown or other[2] in unknown or bool(one[2] == other[2])


class OffsetAndMetadata(NamedTuple):
    """A committed offset, its metadata text, and the epoch of the leader it was read from.

    Equality ignores the epoch if it is unknown on one side (-1 or None).
    """

    offset: int
    metadata: Any = ''
    leader_epoch: Optional[int] = -1

    def __eq__(self, other: object) -> bool:
        return _same_position(self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:2])


class OffsetAndTimestamp(NamedTuple):
    """The first offset at or after a time, the record's timestamp in ms, and the leader epoch.

    Equality ignores the epoch if it is unknown on one side (-1 or None).
    """

    offset: int
    timestamp: int
    leader_epoch: Optional[int] = -1

    def __eq__(self, other: object) -> bool:
        return _same_position(self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:2])


class _ThreeFields(NamedTuple):
    nodeId: int
    host: Optional[TopicName]
    port: Optional[int]


_NOT_GIVEN: Any = object()


def _one_of(value: Any, other: Any) -> Any:
    """Return the value that was given; _NOT_GIVEN if both or none were."""
    if value is _NOT_GIVEN:
        return other
    return value if other is _NOT_GIVEN else _NOT_GIVEN


class BrokerMetadata(_ThreeFields):
    """A broker and its address; host and port are None for a leader that is not listed.

    Three fields, as up to 1.2; with a rack, even None, the result is a Broker, with the four fields
    of 1.3 to 2.x. The first may be given as node_id, as in 3.0. From 0.9.5.
    """

    __slots__ = ()

    def __new__(
        cls,
        nodeId: int = _NOT_GIVEN,
        host: Optional[TopicName] = _NOT_GIVEN,
        port: Optional[int] = _NOT_GIVEN,
        rack: Optional[str] = _NOT_GIVEN,
        *,
        node_id: int = _NOT_GIVEN,
    ) -> BrokerMetadata:
        """Create a tuple of three fields, or of four."""
        fields = (_one_of(nodeId, node_id), host, port)
        if _NOT_GIVEN in fields:
            raise TypeError('BrokerMetadata needs nodeId (or node_id, and not both), host and port')
        if rack is _NOT_GIVEN:
            return tuple.__new__(cls, fields)
        return tuple.__new__(Broker, (*fields, rack))

    def __repr__(self) -> str:
        values = ', '.join('%s=%r' % item for item in zip(self._fields, self))
        return 'BrokerMetadata(%s)' % values

    @property
    def node_id(self) -> int:
        """The node id, under its name of 3.0."""
        return self.nodeId

    @property
    def rack(self) -> Optional[str]:
        """The rack of the broker, None if not reported."""
        return None

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Any:  # type: ignore[override]  # of three or four
        return cls(*iterable)

    def _replace(self, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})


class Broker(BrokerMetadata):
    """A broker as in 1.3 to 2.x: with a rack, or None if not reported."""

    __slots__ = ()
    _fields: Any = ('nodeId', 'host', 'port', 'rack')

    def __new__(
        cls,
        nodeId: int = _NOT_GIVEN,
        host: Optional[TopicName] = _NOT_GIVEN,
        port: Optional[int] = _NOT_GIVEN,
        rack: Optional[str] = None,
        *,
        node_id: int = _NOT_GIVEN,
    ) -> Broker:
        """Create a tuple of four fields."""
        return BrokerMetadata(nodeId, host, port, rack, node_id=node_id)  # type: ignore[return-value]

    @property
    def rack(self) -> Optional[str]:
        """The rack of the broker, None if not reported."""
        values: Tuple[Any, ...] = self
        rack: Optional[str] = values[3]
        return rack


def _field(place: int) -> Any:
    return property(itemgetter(place))


class _SixFields(NamedTuple):
    topic: TopicName
    partition: int
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    error: int


class PartitionMetadata(_SixFields):
    """The leader and the replicas of a partition; error is its error code in the response.

    Six fields, as up to 2.0; with eight values, or leader_epoch or offline_replicas by name, it has
    the eight fields of 2.1 and later: leader_epoch after leader, offline_replicas after isr. From
    0.9.5.
    """

    __slots__ = ()

    def __new__(cls, *fields: Any, **named: Any) -> PartitionMetadata:
        """Create a tuple of six fields, or of eight."""
        if len(fields) > 6 or not {'leader_epoch', 'offline_replicas'}.isdisjoint(named):
            return PartitionMetadataOf21(*fields, **named)
        made: PartitionMetadata = super().__new__(cls, *fields, **named)
        return made

    @property
    def leader_epoch(self) -> int:
        """The leader epoch, -1 if not reported (2.1)."""
        return -1

    @property
    def offline_replicas(self) -> Sequence[int]:
        """The ids of the replicas that are offline (2.1)."""
        return ()

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Any:  # type: ignore[override]  # of six or eight
        return cls(*iterable)

    def _replace(self, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})


class PartitionMetadataOf21(PartitionMetadata):
    """A PartitionMetadata as in 2.1 and later."""

    __slots__ = ()
    _fields: Any = (
        'topic',
        'partition',
        'leader',
        'leader_epoch',
        'replicas',
        'isr',
        'offline_replicas',
        'error',
    )

    def __new__(cls, *fields: Any, **named: Any) -> PartitionMetadataOf21:
        """Create a tuple; the fields added in 2.1 are optional if the others are named."""
        values = {'leader_epoch': -1, 'offline_replicas': (), **dict(zip(cls._fields, fields))}
        if len(fields) > len(cls._fields) or not named.keys().isdisjoint(
            cls._fields[: len(fields)]
        ):
            raise TypeError('PartitionMetadata was given a field twice, or more than eight')
        values.update(named)
        if set(values) != set(cls._fields):
            raise TypeError(
                'PartitionMetadata has the fields %s, and was given %s'
                % (', '.join(cls._fields), ', '.join(values))
            )
        return tuple.__new__(cls, (values[name] for name in cls._fields))

    def __repr__(self) -> str:
        values = ', '.join('%s=%r' % item for item in zip(self._fields, self))
        return 'PartitionMetadata(%s)' % values

    leader_epoch = _field(3)
    replicas = _field(4)
    isr = _field(5)
    offline_replicas = _field(6)
    error = _field(7)


class TopicMetadata(NamedTuple):
    """A topic in a metadata response (0.9.5)."""

    topic: TopicName
    error: int
    partitions: Sequence[PartitionMetadata]


class MetadataRequest(NamedTuple):
    """The topics to describe (0.9.5)."""

    topics: Sequence[TopicName]


class MetadataResponse(NamedTuple):
    """Brokers and topics of the cluster (0.9.5)."""

    brokers: Sequence[BrokerMetadata]
    topics: Sequence[TopicMetadata]


class ConsumerMetadataRequest(NamedTuple):
    """The group whose coordinator is requested (0.9.5)."""

    groups: TopicName


class ConsumerMetadataResponse(NamedTuple):
    """The coordinator of a group (0.9.5)."""

    error: int
    nodeId: int
    host: TopicName
    port: int


class Message(NamedTuple):
    """A message of the old format; bits 0 and 1 of attributes are the codec (0.9.5)."""

    magic: int
    attributes: int
    key: Optional[bytes]
    value: Optional[bytes]


class OffsetAndMessage(NamedTuple):
    """A message and its offset in the log (0.9.5)."""

    offset: int
    message: Any


class KafkaMessage(NamedTuple):
    """A message as returned by the KafkaConsumer of 0.9.5; value has been deserialized."""

    topic: TopicName
    partition: int
    offset: int
    key: Optional[bytes]
    value: Any


class ProduceRequest(NamedTuple):
    """Messages for one partition (0.9.5)."""

    topic: TopicName
    partition: int
    messages: Sequence[Any]


class ProduceResponse(NamedTuple):
    """The offset assigned to the first message of a request, or an error code (0.9.5)."""

    topic: TopicName
    partition: int
    error: int
    offset: int


class FetchRequest(NamedTuple):
    """The offset from which to read one partition, and the maximum number of bytes (0.9.5)."""

    topic: TopicName
    partition: int
    offset: int
    max_bytes: int


class FetchResponse(NamedTuple):
    """Fetched messages of a partition; highwaterMark is the offset after its last committed one.

    From 0.9.5.
    """

    topic: TopicName
    partition: int
    error: int
    highwaterMark: int
    messages: Iterable[Any]


class OffsetRequest(NamedTuple):
    """The offsets of one partition before a time in ms; -1 requests the latest, -2 the earliest.

    From 0.9.5.
    """

    topic: TopicName
    partition: int
    time: int
    max_offsets: int


class OffsetResponse(NamedTuple):
    """Offsets of one partition, the latest first, or an error code (0.9.5)."""

    topic: TopicName
    partition: int
    error: int
    offsets: Sequence[int]


class ListOffsetRequestPayload(NamedTuple):
    """One offset of one partition, by a time in ms as in OffsetRequest (1.4)."""

    topic: TopicName
    partition: int
    time: int


class ListOffsetResponsePayload(NamedTuple):
    """The first message of a partition at or after a time, -1 if none; or an error code (1.4)."""

    topic: TopicName
    partition: int
    error: int
    timestamp: int
    offset: int


class OffsetCommitRequest(NamedTuple):
    """The offset to store for one partition, and a metadata text (0.9.5)."""

    topic: TopicName
    partition: int
    offset: int
    metadata: Optional[TopicName]


class OffsetCommitResponse(NamedTuple):
    """The result of a commit for one partition: an error code, 0 for success (0.9.5)."""

    topic: TopicName
    partition: int
    error: int


class OffsetFetchRequest(NamedTuple):
    """The partition whose stored offset is requested (0.9.5)."""

    topic: TopicName
    partition: int


class OffsetFetchResponse(NamedTuple):
    """The stored offset of one partition, -1 for none, or an error code (0.9.5)."""

    topic: TopicName
    partition: int
    offset: int
    metadata: Optional[TopicName]
    error: int


class RetryOptions(NamedTuple):
    """How an asynchronous producer retries: limit None: no limit; backoff_ms: the pause (0.9.5)."""

    limit: Optional[int]
    backoff_ms: int
    retry_on_timeouts: bool


class ConsumerGroupMetadata(NamedTuple):
    """The membership of a consumer in its group, for transactions (3.0).

    generation_id: -1 if not a member; state: '<unjoined>', '<rebalancing>' or '<stable>'.
    """

    group_id: Optional[str] = None
    generation_id: int = -1
    member_id: str = ''
    group_instance_id: Optional[str] = None
    state: str = '<unjoined>'


class MemberInformation(NamedTuple):
    """A member of a described group (2.0.2 to 2.3)."""

    member_id: str
    client_id: str
    client_host: str
    member_metadata: Any
    member_assignment: Any


class GroupInformation(NamedTuple):
    """A described group (2.0.2 to 2.3)."""

    error_code: int
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: List[MemberInformation]
    authorized_operations: Any


# The names of 1.x.
ProduceRequestPayload = ProduceRequest
ProduceResponsePayload = ProduceResponse
FetchRequestPayload = FetchRequest
FetchResponsePayload = FetchResponse
OffsetRequestPayload = OffsetRequest
OffsetResponsePayload = OffsetResponse
OffsetCommitRequestPayload = OffsetCommitRequest
OffsetCommitResponsePayload = OffsetCommitResponse
OffsetFetchRequestPayload = OffsetFetchRequest
OffsetFetchResponsePayload = OffsetFetchResponse
