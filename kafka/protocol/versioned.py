"""Requests and responses of single versions, with the fields of 1.x.

Used by ``SimpleClient`` and the encoders of 1.x: names of fields as in 1.x, arrays as lists,
structs inside arrays as plain tuples. Values are converted to the messages declared in
``produce.py``, ``fetch.py`` and so on. Fields with records contain the bytes of a message set, or
an object that can be converted to such bytes: MessagesOf, or the MessageSet of a translated
response.
"""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    ClassVar,
    NamedTuple,
    Optional,
    Tuple,
    Type,
    TypeVar,
)

from kafka.protocol import api, commit, fetch, find_coordinator, list_offsets, metadata, produce
from kafka.protocol.frames import frame
from kafka.protocol.plain_values import builder, taker, text_of
from kafka.protocol.single_partition import commit_request, read_committed
from kafka.protocol.wire import Message

S = TypeVar('S', bound='Versioned')


class MessagesOf(NamedTuple):
    """The messages of one partition in a produce request; ``encode`` returns their message set.

    For a broker with magic 2 the set is never created (protocol/later.py).
    """

    messages: Any
    encode: Callable[[Any], bytes]


class Versioned:
    """A message in one version: all fields positionally, or any by keyword (1.x).

    Strings may be given as bytes. Raises: ValueError for another number of fields, TypeError for an
    unknown field.
    """

    DECLARED: ClassVar[Type[Message]]
    API_KEY: ClassVar[Optional[int]]
    API_VERSION: ClassVar[int]
    FIELDS: ClassVar[Tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, 'DECLARED'):
            cls.API_KEY = cls.DECLARED.api_key

    def __init__(self, *values: Any, **named: Any) -> None:
        if values and len(values) != len(self.FIELDS):
            raise ValueError('%s has the fields %s' % (type(self).__name__, list(self.FIELDS)))
        for name in named:
            if name not in self.FIELDS:
                raise TypeError('%s has no field %r' % (type(self).__name__, name))
        fields = self.__dict__
        for name, value in zip(self.FIELDS, values):
            fields[name] = value
        if named:
            fields.update(named)

    def _values(self) -> Tuple[Any, ...]:
        return tuple([getattr(self, name, None) for name in self.FIELDS])

    def __eq__(self, other: object) -> bool:
        # Structs of struct_classes.py represent the same messages.
        same = getattr(other, 'DECLARED', None), getattr(other, 'API_VERSION', None)
        if same != (self.DECLARED, self.API_VERSION):
            return NotImplemented
        return list(self._values()) == list(other._values())  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        fields = ', '.join('%s=%r' % field for field in zip(self.FIELDS, self._values()))
        return '%s(%s)' % (type(self).__name__, fields)

    def declared(self) -> Message:
        """Return the declared message with these values.

        Raises: TypeError or ValueError for invalid values; some are only detected when the message
            is encoded.
        """
        return self._declared(_encoded)

    def unwritten(self) -> Message:
        """Return the declared message; messages in a MessagesOf are not encoded."""
        return self._declared(_unencoded)

    def _declared(self, records: Callable[[Any], Any]) -> Message:
        build: Any = builder(self.DECLARED, self.API_VERSION, records)
        values = self._values()
        built: Message = build(values[0] if len(values) == 1 else values)
        return built

    def encode(self) -> bytes:
        """Return the body.

        Raises: ProtocolError, naming the field, for an invalid value.
        """
        return self.declared().encode(self.API_VERSION)

    @classmethod
    def of(cls: Type[S], message: Message) -> S:
        """Return the declared message as this class."""
        take: Any = taker(cls.DECLARED, cls.API_VERSION)
        return cls(*take(message))

    @classmethod
    def decode(cls: Type[S], data: Any) -> S:
        """Decode a body that fills the bytes.

        Raises: BufferUnderflowError, ProtocolError for invalid bytes.
        """
        return cls.of(cls.DECLARED.decode(data, cls.API_VERSION))


class Request(Versioned):
    """A request, with the class of its response."""

    RESPONSE_TYPE: ClassVar[Type[Versioned]]

    def framed(self, correlation_id: int, client_id: Any) -> bytes:
        """Return the request with its header and length prefix; client_id: str or bytes."""
        if isinstance(client_id, bytes):
            client_id = client_id.decode('utf-8')
        return frame(
            api.encode_request(self.declared(), self.API_VERSION, correlation_id, client_id)
        )


def _encoded(value: Any) -> Any:
    return value.encode(value.messages) if isinstance(value, MessagesOf) else value


def _unencoded(value: Any) -> Any:
    return value.messages if isinstance(value, MessagesOf) else value


class ProduceResponse_v0(Versioned):
    """topics: [(topic, [(partition, error code, offset)])]."""

    DECLARED, API_VERSION, FIELDS = produce.ProduceResponse, 0, ('topics',)

    @classmethod
    def of(cls: Type[S], message: Any) -> S:
        """As Versioned.of, without reading the declaration: called for each produce request."""
        topics = [
            (
                topic.name,
                [
                    (part.index, part.error_code, part.base_offset)
                    for part in topic.partition_responses
                ],
            )
            for topic in message.responses
        ]
        return cls(topics)


class ProduceRequest_v0(Request):
    """topics: [(topic, [(partition, message set)])]; timeout in ms."""

    DECLARED, API_VERSION = produce.ProduceRequest, 0
    FIELDS = ('required_acks', 'timeout', 'topics')
    RESPONSE_TYPE = ProduceResponse_v0

    def unwritten(self) -> Message:
        """As Versioned.unwritten, without reading the declaration."""
        acks, timeout, topics = self._values()
        data = [
            produce.TopicProduceData(
                name=text_of(topic),
                partition_data=[
                    produce.PartitionProduceData(index=partition, records=_unencoded(records))
                    for partition, records in partitions
                ],
            )
            for topic, partitions in topics
        ]
        return produce.ProduceRequest(acks=acks, timeout_ms=timeout, topic_data=data)


class FetchResponse_v0(Versioned):
    """topics: [(topic, [(partition, error code, high watermark, message set)])]."""

    DECLARED, API_VERSION, FIELDS = fetch.FetchResponse, 0, ('topics',)


class FetchRequest_v0(Request):
    """topics: [(topic, [(partition, offset, max_bytes)])]; max_wait_time in ms."""

    DECLARED, API_VERSION = fetch.FetchRequest, 0
    FIELDS = ('replica_id', 'max_wait_time', 'min_bytes', 'topics')
    RESPONSE_TYPE = FetchResponse_v0


class OffsetResponse_v0(Versioned):
    """topics: [(topic, [(partition, error code, [offset])])]."""

    DECLARED, API_VERSION, FIELDS = list_offsets.ListOffsetsResponse, 0, ('topics',)


class OffsetRequest_v0(Request):
    """topics: [(topic, [(partition, time, max_offsets)])]."""

    DECLARED, API_VERSION = list_offsets.ListOffsetsRequest, 0
    FIELDS = ('replica_id', 'topics')
    RESPONSE_TYPE = OffsetResponse_v0


class OffsetResponse_v1(Versioned):
    """topics: [(topic, [(partition, error code, timestamp, offset)])]."""

    DECLARED, API_VERSION, FIELDS = list_offsets.ListOffsetsResponse, 1, ('topics',)


class OffsetRequest_v1(Request):
    """topics: [(topic, [(partition, time)])]."""

    DECLARED, API_VERSION = list_offsets.ListOffsetsRequest, 1
    FIELDS = ('replica_id', 'topics')
    RESPONSE_TYPE = OffsetResponse_v1


class MetadataResponse_v0(Versioned):
    """brokers: [(id, host, port)]; topics: [(error code, topic, partitions)].

    Partitions are [(error code, partition, leader, [replica], [isr])].
    """

    DECLARED, API_VERSION, FIELDS = metadata.MetadataResponse, 0, ('brokers', 'topics')


class MetadataRequest_v0(Request):
    """topics: [topic], an empty list for all topics."""

    DECLARED, API_VERSION, FIELDS = metadata.MetadataRequest, 0, ('topics',)
    RESPONSE_TYPE = MetadataResponse_v0


class OffsetCommitResponse_v0(Versioned):
    """topics: [(topic, [(partition, error code)])]."""

    DECLARED, API_VERSION, FIELDS = commit.OffsetCommitResponse, 0, ('topics',)

    @classmethod
    def decode(cls: Type[S], data: Any) -> S:
        """As Versioned.decode; faster for one partition, the most frequent response."""
        found = read_committed(data, 0)
        if found is not None:
            try:
                topic = str(found[0], 'utf-8')
            except UnicodeDecodeError:
                pass  # super().decode() raises the error
            else:
                return cls([(topic, [found[1:]])])
        return super().decode(data)


class OffsetCommitRequest_v0(Request):
    """topics: [(topic, [(partition, offset, metadata)])]."""

    DECLARED, API_VERSION = commit.OffsetCommitRequest, 0
    FIELDS = ('consumer_group', 'topics')
    RESPONSE_TYPE = OffsetCommitResponse_v0

    def framed(self, correlation_id: int, client_id: Any) -> bytes:
        """As Versioned.framed; faster for one partition without metadata, as consumers commit."""
        try:
            ((topic, ((partition, offset, metadata),)),) = self.topics  # type: ignore[attr-defined]
            if metadata is None:
                framed = commit_request(
                    correlation_id,
                    text_of(client_id).encode('utf-8'),
                    self.consumer_group.encode('utf-8'),  # type: ignore[attr-defined]
                    topic.encode('utf-8'),
                    partition,
                    offset,
                )
                if framed is not None:
                    return framed
        except (AttributeError, TypeError, ValueError):
            pass  # super().framed() raises the error, if there is one
        return super().framed(correlation_id, client_id)


class OffsetFetchResponse_v0(Versioned):
    """topics: [(topic, [(partition, offset, metadata, error code)])]; from ZooKeeper."""

    DECLARED, API_VERSION, FIELDS = commit.OffsetFetchResponse, 0, ('topics',)


class OffsetFetchRequest_v0(Request):
    """topics: [(topic, [partition])]; asks ZooKeeper."""

    DECLARED, API_VERSION = commit.OffsetFetchRequest, 0
    FIELDS = ('consumer_group', 'topics')
    RESPONSE_TYPE = OffsetFetchResponse_v0


class OffsetFetchResponse_v1(OffsetFetchResponse_v0):
    """As version 0, from the group's coordinator."""

    API_VERSION = 1


class OffsetFetchRequest_v1(OffsetFetchRequest_v0):
    """As version 0, sent to the group's coordinator."""

    API_VERSION = 1
    RESPONSE_TYPE = OffsetFetchResponse_v1


class GroupCoordinatorResponse_v0(Versioned):
    """The broker that coordinates a group."""

    DECLARED, API_VERSION = find_coordinator.FindCoordinatorResponse, 0
    FIELDS = ('error_code', 'coordinator_id', 'host', 'port')


class GroupCoordinatorRequest_v0(Request):
    """A request for the coordinator of a group."""

    DECLARED, API_VERSION, FIELDS = find_coordinator.FindCoordinatorRequest, 0, ('consumer_group',)
    RESPONSE_TYPE = GroupCoordinatorResponse_v0
