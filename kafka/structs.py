"""The value tuples of every era: what goes into the calls of the clients and what comes back.

Owns the tuples and nothing else; their bytes are made in ``kafka.protocol``. The names of 0.9.5 are
the classes, the ``...Payload`` names of 1.x are the same classes. As in 1.x the module also offers
every name of ``kafka.errors``.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from kafka.consumer_record import ConsumerRecord as ConsumerRecord
from kafka.errors import *  # noqa: F403 - 1.x programs import errors from here

# bytes in the 0.9.5 dialect, str in the later ones.
TopicName = Union[bytes, str]


class TopicPartition(NamedTuple):
    """A partition of a topic (1.x and later)."""

    topic: TopicName
    partition: int


class TopicAndPartition(TopicPartition):
    """A partition of a topic (0.9.5); equal to a TopicPartition of the same values."""

    __slots__ = ()


class TopicPartitionReplica(NamedTuple):
    """The copy of a partition that one broker keeps (3.0)."""

    topic: str
    partition: int
    broker_id: int


def _same_position(one: Any, other: object) -> Any:
    """Compare two (offset, text or timestamp, leader epoch) tuples, ignoring an epoch left out.

    Eras without the epoch built these tuples from two values and compare them with what we return.
    """
    if not isinstance(other, tuple):
        return NotImplemented
    if tuple(one[:2]) != tuple(other[:2]) or not 2 <= len(other) <= 3:
        return False
    unknown = (None, -1)
    return len(other) == 2 or one[2] in unknown or other[2] in unknown or bool(one[2] == other[2])


class OffsetAndMetadata(NamedTuple):
    """A committed offset, the text stored with it, and the epoch of the leader it was read from.

    Equality ignores the epoch where one side does not know it (-1 or None).
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

    Equality ignores the epoch where one side does not know it (-1 or None).
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
    """Return the one that is given; nothing where both are, or neither."""
    if value is _NOT_GIVEN:
        return other
    return value if other is _NOT_GIVEN else _NOT_GIVEN


class BrokerMetadata(_ThreeFields):
    """A broker and where it listens; host and port are None for a leader that is not listed.

    Three fields, as up to 1.2; who gives a rack, also None, gets the four of 1.3 to 2.x: a Broker.
    The first may be given as node_id, as in 3.0. From 0.9.5.
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
        """Make one of three fields, or of four."""
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
        """The node id under its name of 3.0."""
        return self.nodeId

    @property
    def rack(self) -> Optional[str]:
        """Where it stands, None if that was not told."""
        return None

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Any:  # type: ignore[override]  # of three or four
        return cls(*iterable)

    def _replace(self, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})


class Broker(BrokerMetadata):
    """A broker as 1.3 to 2.x have it: with a rack, which is None if not told."""

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
        """Make one."""
        return BrokerMetadata(nodeId, host, port, rack, node_id=node_id)  # type: ignore[return-value]

    @property
    def rack(self) -> Optional[str]:
        """Where it stands."""
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
    """Who leads a partition and who keeps copies; error is the code the broker gave with it.

    Six fields, as up to 2.0; who gives eight, or a leader_epoch or offline_replicas by name, gets
    the eight of 2.1 and later: leader_epoch behind leader, offline_replicas behind isr. From 0.9.5.
    """

    __slots__ = ()

    def __new__(cls, *fields: Any, **named: Any) -> PartitionMetadata:
        """Make one of six fields, or of eight."""
        if len(fields) > 6 or not {'leader_epoch', 'offline_replicas'}.isdisjoint(named):
            return PartitionMetadataOf21(*fields, **named)
        made: PartitionMetadata = super().__new__(cls, *fields, **named)
        return made

    @property
    def leader_epoch(self) -> int:
        """How often the leader has changed, -1 if that was not told (2.1)."""
        return -1

    @property
    def offline_replicas(self) -> Sequence[int]:
        """Who keeps a copy and is not there (2.1)."""
        return ()

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Any:  # type: ignore[override]  # of six or eight
        return cls(*iterable)

    def _replace(self, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})


class PartitionMetadataOf21(PartitionMetadata):
    """A PartitionMetadata as 2.1 and later have it."""

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
        """Make one; what 2.1 added may be left out where the rest is named."""
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
    """A topic of a metadata answer (0.9.5)."""

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
    """The group whose coordinator is sought (0.9.5)."""

    groups: TopicName


class ConsumerMetadataResponse(NamedTuple):
    """The coordinator of a group (0.9.5)."""

    error: int
    nodeId: int
    host: TopicName
    port: int


class Message(NamedTuple):
    """A message of the old format; attributes carry the codec in bits 0 and 1 (0.9.5)."""

    magic: int
    attributes: int
    key: Optional[bytes]
    value: Optional[bytes]


class OffsetAndMessage(NamedTuple):
    """A message and its offset in the log (0.9.5)."""

    offset: int
    message: Any


class KafkaMessage(NamedTuple):
    """A message as the KafkaConsumer of 0.9.5 hands it out; value has been deserialized."""

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
    """The offset that the first message of a ProduceRequest got, or an error code (0.9.5)."""

    topic: TopicName
    partition: int
    error: int
    offset: int


class FetchRequest(NamedTuple):
    """From where and how many bytes to read of one partition (0.9.5)."""

    topic: TopicName
    partition: int
    offset: int
    max_bytes: int


class FetchResponse(NamedTuple):
    """What one partition gave; highwaterMark is the offset after its last committed message.

    From 0.9.5.
    """

    topic: TopicName
    partition: int
    error: int
    highwaterMark: int
    messages: Iterable[Any]


class OffsetRequest(NamedTuple):
    """The offsets of one partition before a time in ms; -1 asks for the latest, -2 the earliest.

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
    """One offset of one partition by a time in ms: as OffsetRequest (1.4)."""

    topic: TopicName
    partition: int
    time: int


class ListOffsetResponsePayload(NamedTuple):
    """The first message of one partition that is not older, -1 without one; or an error (1.4)."""

    topic: TopicName
    partition: int
    error: int
    timestamp: int
    offset: int


class OffsetCommitRequest(NamedTuple):
    """The offset to store for one partition, and a text to go with it (0.9.5)."""

    topic: TopicName
    partition: int
    offset: int
    metadata: Optional[TopicName]


class OffsetCommitResponse(NamedTuple):
    """Whether the offset of one partition was stored: an error code, 0 for yes (0.9.5)."""

    topic: TopicName
    partition: int
    error: int


class OffsetFetchRequest(NamedTuple):
    """The partition whose stored offset is asked for (0.9.5)."""

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
    """How an asynchronous producer retries: limit None for ever, pauses of backoff_ms (0.9.5)."""

    limit: Optional[int]
    backoff_ms: int
    retry_on_timeouts: bool


class ConsumerGroupMetadata(NamedTuple):
    """A consumer as a member of its group, for transactions (3.0).

    generation_id: -1 outside of one; state: '<unjoined>', '<rebalancing>' or '<stable>'.
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
