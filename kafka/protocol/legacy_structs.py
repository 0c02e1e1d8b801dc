"""KafkaProtocol of 1.x: the same encoders and decoders with request and response structs.

It also decides which form a call means. The structs are those of :mod:`kafka.protocol.versioned`;
the form with bytes is :mod:`kafka.protocol.legacy`.
"""

from __future__ import annotations

import functools
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

from kafka.errors import KafkaError
from kafka.protocol.later import MessagesLater
from kafka.protocol.message import (
    Message,
    PartialMessage,
    is_cut_off,
    messages_of,
    messages_of_runs,
)
from kafka.protocol.versioned import (
    FetchRequest_v0,
    GroupCoordinatorRequest_v0,
    MessagesOf,
    MetadataRequest_v0,
    OffsetCommitRequest_v0,
    OffsetFetchRequest_v0,
    OffsetFetchRequest_v1,
    OffsetRequest_v0,
    OffsetRequest_v1,
    ProduceRequest_v0,
    Request,
    Versioned,
)
from kafka.record.columns import Columns
from kafka.record.conversion import MessageSet
from kafka.record.legacy_records import iter_runs
from kafka.structs import (
    ConsumerMetadataResponse,
    FetchResponse,
    ListOffsetResponsePayload,
    OffsetAndMessage,
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetResponse,
    ProduceResponse,
)
from kafka.util import name_bytes, whole_ms, whole_number

_C = TypeVar('_C')

Grouped = List[Tuple[Any, List[Any]]]

# The methods that encode message sets; programs may replace them.
_ENCODERS = ('_encode_message_set', '_encode_message')
_OWN: Dict[str, Any] = {}

_INT16, _INT32 = 1 << 15, 1 << 31

# Named tuples created without a Python call for each, which costs more than decoding a message.
_new_offset_and_message = functools.partial(tuple.__new__, OffsetAndMessage)
_new_produced = functools.partial(tuple.__new__, ProduceResponse)
_new_committed = functools.partial(tuple.__new__, OffsetCommitResponse)


def _may_wait(protocol: Any, payload: Any, timeout: Any) -> bool:
    """Return True if messages can be encoded later, because nothing in them can fail then."""
    present = vars(protocol)
    return (
        all(present.get(name) is own for name, own in _OWN.items())
        and type(payload.partition) is int
        and abs(payload.partition) < _INT32
        and type(timeout) is int
        and abs(timeout) < _INT32
    )


def _name(name: Any, argument: str) -> str:
    """Return a name as text. Raises: TypeError, ValueError naming the argument."""
    if type(name) is str and name.isascii() and len(name) < _INT16:
        return name
    encoded = name_bytes(name, argument)
    if len(encoded) >= _INT16:
        raise ValueError('%s must have at most 32767 bytes, got %d' % (argument, len(encoded)))
    try:
        return encoded.decode('utf-8')
    except UnicodeDecodeError:
        raise ValueError('%s must be UTF-8, got %r' % (argument, name)) from None


def _by_topic(payloads: Optional[Iterable[Any]], fields: Callable[[Any], Any]) -> Grouped:
    """Return [(topic, [result of `fields` for each payload])] in the order of the payloads."""
    grouped: Dict[str, Dict[int, Any]] = {}
    try:
        if type(payloads) is list and len(payloads) == 1 and type(payloads[0].partition) is int:
            return [(_name(payloads[0].topic, 'topic'), [fields(payloads[0])])]
        for payload in payloads or ():
            topic = _name(payload.topic, 'topic')
            partition = whole_number(payload.partition, 'partition')
            partitions = grouped.setdefault(topic, {})
            if partition in partitions:
                raise AssertionError('more than one payload for %r %r' % (topic, partition))
            partitions[partition] = fields(payload)
    except AttributeError as error:
        raise TypeError('payloads are not of this request: %s' % error) from error
    return [(topic, list(partitions.values())) for topic, partitions in grouped.items()]


def _items(response: Any) -> List[Tuple[Any, ...]]:
    """Return (topic, fields of a partition ...) for each partition of a response."""
    try:
        return [(topic, *fields) for topic, partitions in response.topics for fields in partitions]
    except (AttributeError, TypeError) as error:
        raise TypeError('data must be bytes or a response struct: %s' % error) from error


class StructProtocol:
    """The encoders and decoders of 1.x, which KafkaProtocol has in addition to those of 0.9.5.

    Encoders take the tuples of ``kafka.structs``, one for each partition, and return request
    structs. They raise TypeError for other objects and for fields of a wrong type, which are named;
    ValueError for an invalid name; AssertionError when a topic and partition are repeated. Numbers
    out of range are detected when the request is sent. Decoders take response structs and return
    lists of such tuples.
    """

    _encode_message_set: Callable[[Iterable[Any]], bytes]

    @classmethod
    def encode_produce_request(
        cls, payloads: Optional[Iterable[Any]] = (), acks: int = 1, timeout: int = 1000
    ) -> Request:
        """Return a request to append messages; `timeout` is in ms.

        Raises: ValueError for acks other than 1, 0 and -1.
        """
        if acks not in (1, 0, -1):
            raise ValueError('acks must be 1, 0 or -1, not %r' % (acks,))

        def fields(payload: Any) -> Tuple[int, Any]:
            messages: Any = payload.messages
            if type(messages) is MessagesLater and _may_wait(cls, payload, timeout):
                return payload.partition, MessagesOf(messages, cls._encode_message_set)
            return payload.partition, cls._encode_message_set(messages)

        return ProduceRequest_v0(acks, whole_ms(timeout, 'timeout'), _by_topic(payloads, fields))

    @classmethod
    def decode_produce_response(cls, response: Any) -> List[ProduceResponse]:
        """Return a ProduceResponsePayload for each partition."""
        return [_new_produced(fields[:4]) for fields in _items(response)]

    @classmethod
    def encode_fetch_request(
        cls,
        payloads: Optional[Iterable[Any]] = (),
        max_wait_time: int = 100,
        min_bytes: int = 4096,
    ) -> Request:
        """Return a request to fetch messages; the broker waits at most `max_wait_time` ms."""

        def fields(payload: Any) -> Tuple[int, int, int]:
            offset = whole_number(payload.offset, 'offset')
            return payload.partition, offset, whole_number(payload.max_bytes, 'max_bytes')

        wait = whole_ms(max_wait_time, 'max_wait_time')
        return FetchRequest_v0(
            -1, wait, whole_number(min_bytes, 'min_bytes'), _by_topic(payloads, fields)
        )

    @classmethod
    def decode_fetch_response(cls, response: Any) -> List[FetchResponse]:
        """Return a FetchResponsePayload for each partition, its messages as a list.

        The last message is a PartialMessage if the set was truncated. Raises: ChecksumError,
        ProtocolError, UnsupportedCodecError if the first message cannot be decoded.
        """
        return [
            FetchResponse(
                topic, partition, error, high_watermark, list(cls.decode_message_set(messages))
            )
            for topic, partition, error, high_watermark, messages in _items(response)
        ]

    @classmethod
    def decode_message_set(cls, messages: Any) -> Iterator[OffsetAndMessage]:
        """Yield OffsetAndMessage for each message of a set, including those in compressed messages.

        Arguments: messages: the bytes, or [(offset, size, Message)] as from MessageSet.decode().
        A truncated message comes last, as a PartialMessage without offset.
        """
        if isinstance(messages, MessageSet) and messages.columns:
            return chain.from_iterable(map(_of_columns, messages.columns))
        if isinstance(messages, MessageSet):
            return _read(messages.data)
        if not isinstance(messages, (bytes, bytearray, memoryview, type(None))):
            return _listed(messages)
        return _read(bytes(messages or b''))

    @classmethod
    def encode_offset_request(cls, payloads: Optional[Iterable[Any]] = ()) -> Request:
        """Return a request for offsets of the log; times are in ms, -1 latest, -2 earliest."""

        def fields(payload: Any) -> Tuple[int, int, int]:
            when = whole_ms(payload.time, 'time')
            return payload.partition, when, whole_number(payload.max_offsets, 'max_offsets')

        return OffsetRequest_v0(-1, _by_topic(payloads, fields))

    @classmethod
    def decode_offset_response(cls, response: Any) -> List[OffsetResponse]:
        """Return an OffsetResponsePayload for each partition."""
        return [
            OffsetResponse(topic, partition, error, tuple(offsets))
            for topic, partition, error, offsets in _items(response)
        ]

    @classmethod
    def encode_list_offset_request(cls, payloads: Optional[Iterable[Any]] = ()) -> Request:
        """Return a request for one offset by time, for brokers since 0.10.1 (1.4)."""

        def fields(payload: Any) -> Tuple[int, int]:
            return payload.partition, whole_ms(payload.time, 'time')

        return OffsetRequest_v1(-1, _by_topic(payloads, fields))

    @classmethod
    def decode_list_offset_response(cls, response: Any) -> List[ListOffsetResponsePayload]:
        """Return a ListOffsetResponsePayload for each partition (1.4)."""
        return [ListOffsetResponsePayload(*fields) for fields in _items(response)]

    @classmethod
    def encode_metadata_request(cls, topics: Any = (), payloads: Any = None) -> Request:
        """Return a request for metadata; `payloads`, if given, replaces `topics`."""
        names = topics if payloads is None else payloads
        if isinstance(names, (str, bytes)):
            raise TypeError('topics must be a list, not %s' % type(names).__name__)
        return MetadataRequest_v0([_name(name, 'topics') for name in names or ()])

    @classmethod
    def decode_metadata_response(cls, response: Any) -> Any:
        """Return the argument."""
        return response

    @classmethod
    def encode_consumer_metadata_request(cls, payloads: Any) -> Request:
        """Return a request for the coordinator of a group; `payloads` is the group's name."""
        return GroupCoordinatorRequest_v0(_name(payloads, 'payloads (the group)'))

    @classmethod
    def decode_consumer_metadata_response(cls, response: Any) -> ConsumerMetadataResponse:
        """Return the ConsumerMetadataResponse."""
        return ConsumerMetadataResponse(
            response.error_code, response.coordinator_id, response.host, response.port
        )

    @classmethod
    def encode_offset_commit_request(cls, group: Any, payloads: Optional[Iterable[Any]]) -> Request:
        """Return a request to store offsets of a group."""

        def fields(payload: Any) -> Tuple[int, int, Optional[str]]:
            text = None if payload.metadata is None else _name(payload.metadata, 'metadata')
            offset = payload.offset
            if type(offset) is not int:
                offset = whole_number(offset, 'offset')
            return payload.partition, offset, text

        return OffsetCommitRequest_v0(_name(group, 'group'), _by_topic(payloads, fields))

    @classmethod
    def decode_offset_commit_response(cls, response: Any) -> List[OffsetCommitResponse]:
        """Return an OffsetCommitResponsePayload for each partition."""
        return list(map(_new_committed, _items(response)))

    @classmethod
    def encode_offset_fetch_request(
        cls, group: Any, payloads: Optional[Iterable[Any]], from_kafka: bool = False
    ) -> Request:
        """Return a request for committed offsets: from ZooKeeper, or the coordinator."""
        request = OffsetFetchRequest_v1 if from_kafka else OffsetFetchRequest_v0
        return request(_name(group, 'group'), _by_topic(payloads, lambda p: p.partition))

    @classmethod
    def decode_offset_fetch_response(cls, response: Any) -> List[OffsetFetchResponse]:
        """Return an OffsetFetchResponsePayload for each partition."""
        return [OffsetFetchResponse(*fields) for fields in _items(response)]


def _listed(messages: Iterable[Tuple[Any, Any, Any]]) -> Iterator[OffsetAndMessage]:
    for offset, _, message in messages:
        if isinstance(message, Message) and message.is_compressed():
            yield from _listed(message.decompress())
        else:
            yield OffsetAndMessage(offset, message)


def _of_columns(part: Columns) -> Iterator[OffsetAndMessage]:
    messages = messages_of(part.values, part.keys, 0, 0, None)
    return map(_new_offset_and_message, zip(part.offsets, messages))


def _read(data: bytes) -> Iterator[OffsetAndMessage]:
    """Yield the messages of a set in bytes, with their CRCs checked.

    An invalid message ends the iteration; the fetch that begins at it raises the error.
    """
    first = True
    try:
        for found in messages_of_runs(iter_runs(data)):
            first = False
            yield _new_offset_and_message(found)
    except KafkaError:
        if first:
            raise
        return
    if is_cut_off(data):
        yield OffsetAndMessage(None, PartialMessage())  # type: ignore[arg-type]


# ---------------------------------------------------------------- the two forms of a call

Arguments = Tuple[Any, ...]


def _has_ids(args: Arguments, kwargs: Dict[str, Any]) -> bool:
    """Return True if an encoder's call has client id and correlation id, by its first argument."""
    if 'client_id' in kwargs or 'correlation_id' in kwargs:
        return True
    return len(args) > 1 and isinstance(args[0], (bytes, str, int, type(None)))


def _has_ids_before_a_group(args: Arguments, kwargs: Dict[str, Any]) -> bool:
    """The same if the form of 1.x begins with a name too: the number after it decides."""
    if 'client_id' in kwargs or 'correlation_id' in kwargs:
        return True
    return len(args) > 3 or (len(args) > 1 and isinstance(args[1], int))


def _has_bytes(args: Arguments, kwargs: Dict[str, Any]) -> bool:
    """Return True if a decoder was called with bytes, or another value that is not a struct."""
    return 'data' in kwargs or (
        bool(args)
        and isinstance(args[0], (bytes, bytearray, memoryview, str, int, float, type(None)))
    )


def _told_by(name: str) -> Callable[[Arguments, Dict[str, Any]], bool]:
    if name.startswith('decode_'):
        return _has_bytes
    in_group = name in ('encode_offset_commit_request', 'encode_offset_fetch_request')
    return _has_ids_before_a_group if in_group else _has_ids


def also_structs(protocol: _C) -> _C:
    """Add the methods of StructProtocol to a class with those of 0.9.5, under the same names."""
    _OWN.update((name, vars(protocol)[name]) for name in _ENCODERS)
    for name, method in vars(StructProtocol).items():
        if isinstance(method, classmethod):
            old = vars(protocol).get(name)
            both = method if old is None else _either(name, old.__func__, method.__func__)
            setattr(protocol, name, both)
    return protocol


def _either(name: str, with_bytes: Callable[..., Any], with_structs: Callable[..., Any]) -> Any:
    means_bytes = _told_by(name)
    decodes = name.startswith('decode_')

    @functools.wraps(with_bytes)
    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if decodes and args and isinstance(args[0], Versioned):
            form = with_structs
        elif args:
            form = with_bytes if means_bytes(args, kwargs) else with_structs
        elif 'client_id' in kwargs or 'correlation_id' in kwargs or 'data' in kwargs:
            form = with_bytes
        else:
            form = with_structs
        return form(cls, *args, **kwargs)

    return classmethod(call)
