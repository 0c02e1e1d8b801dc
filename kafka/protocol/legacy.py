"""KafkaProtocol of 0.9.5: requests of versions 0 and 1 as bytes, their responses as tuples.

Topics, groups and hosts are ``bytes``. The same layouts are declared as messages in ``produce.py``,
``fetch.py`` and so on; these are not used here because their strings are text: 0.9.5 sent topics,
groups and offset metadata as any bytes, and returned them so. Its responses are also generators,
which can be read as far as the bytes are valid. A test compares both implementations. Message sets
are read by :mod:`kafka.record.legacy_records`.

Decoders raise BufferUnderflowError for bytes that end too early and ProtocolError for contradictory
ones; bytes after the end of a response are ignored, as in 0.9.5.
"""

from __future__ import annotations

import struct
from functools import partial
from itertools import chain, repeat
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

from kafka.errors import (
    BufferUnderflowError,
    ConsumerFetchSizeTooSmall,
    ProtocolError,
)
from kafka.protocol.legacy_messages import (
    ALL_CODECS,
    ATTRIBUTE_CODEC_MASK,
    CODEC_GZIP,
    CODEC_NONE,
    CODEC_SNAPPY,
    create_gzip_message,
    create_message,
    create_message_set,
    create_snappy_message,
)
from kafka.protocol.legacy_structs import also_structs
from kafka.protocol.message import is_cut_off
from kafka.protocol.single_partition import commit_request, read_committed
from kafka.record.legacy_records import ENTRY_HEADER, encode_message, iter_message_set, iter_runs
from kafka.structs import (
    BrokerMetadata,
    ConsumerMetadataResponse,
    FetchResponse,
    Message,
    MetadataResponse,
    OffsetAndMessage,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetResponse,
    PartitionMetadata,
    ProduceResponse,
    TopicMetadata,
)
from kafka.util import (
    group_by_topic_and_partition,
    name_in_text_mode,
    read_int_string,
    read_short_string,
    relative_unpack,
    text_bytes,
    whole_ms,
)

__all__ = [
    'ALL_CODECS',
    'ATTRIBUTE_CODEC_MASK',
    'CODEC_GZIP',
    'CODEC_NONE',
    'CODEC_SNAPPY',
    'KafkaProtocol',
    'create_gzip_message',
    'create_message',
    'create_message_set',
    'create_snappy_message',
]

# The minimum size of an array's item; a count that exceeds the remaining bytes is rejected.
_TOPIC_BYTES = 2 + 4
_INT32_BYTES, _INT64_BYTES = 4, 8


# ---------------------------------------------------------------- writing


def _pack(form: str, **fields: Any) -> bytes:
    """Pack integers in order; the error names the one that cannot be packed."""
    try:
        return struct.pack('>' + form, *fields.values())
    except struct.error as error:
        for code, (name, value) in zip(form, fields.items()):
            try:
                struct.pack('>' + code, value)
            except struct.error:
                if not isinstance(value, int):
                    raise TypeError(
                        '%s must be an integer, not %s' % (name, type(value).__name__)
                    ) from None
                raise ProtocolError('%s is out of range: %d' % (name, value)) from None
        raise ProtocolError('%s: %s' % (form, error)) from error


def _string(name: str, value: Any, nullable: bool = False) -> bytes:
    """Encode an int16 length and the bytes; in text mode a name may be text."""
    if value is None and nullable:
        return b'\xff\xff'
    if not isinstance(value, bytes):
        value = name_in_text_mode(value, name)
    if not isinstance(value, bytes):
        raise TypeError('expected %s to be bytes, not %s' % (name, type(value).__name__))
    if len(value) > 0x7FFF:
        raise ProtocolError('%s must have at most 32767 bytes, got %d' % (name, len(value)))
    return struct.pack('>h', len(value)) + value


def _text(name: str, value: Any) -> bytes:
    """Return a key or value that is not bytes encoded, if it is text and text mode is enabled."""
    encoded = text_bytes(value, '%s of a message' % name)
    if encoded is None:
        raise TypeError(
            'expected %s of a message to be bytes, not %s' % (name, type(value).__name__)
        )
    return encoded


def _by_topic(payloads: Optional[Iterable[Any]], encode: Callable[[Any], bytes]) -> bytes:
    """Encode payloads as an array of topics with arrays of partitions; `encode` encodes one
    payload.

    Raises: AssertionError when a partition is repeated.
    """
    try:
        grouped = group_by_topic_and_partition(payloads or ())
    except (AttributeError, TypeError) as error:
        raise TypeError('payloads must be tuples with topic and partition: %s' % error) from error
    parts = [_pack('i', topics=len(grouped))]
    for topic, partitions in grouped.items():
        parts.append(_string('topic', topic))
        parts.append(_pack('i', partitions=len(partitions)))
        try:
            parts += [encode(payload) for payload in partitions.values()]
        except AttributeError as error:
            raise TypeError('payloads are not of this request: %s' % error) from error
    return b''.join(parts)


def _single_commit(
    protocol: Any, client_id: Any, correlation_id: Any, group: Any, payload: Any
) -> Optional[bytes]:
    """Return a commit of one partition, None if it has metadata or is otherwise unusual."""
    if (
        vars(protocol).get('_encode_message_header') is _OWN_HEADER
        and type(payload) is OffsetCommitRequest
        and payload.metadata is None
        and type(client_id) is bytes
        and type(group) is bytes
        and type(payload.topic) is bytes
    ):
        return commit_request(
            correlation_id, client_id, group, payload.topic, payload.partition, payload.offset
        )
    return None


def _list(name: str, items: Any) -> List[Any]:
    try:
        return list(items)
    except TypeError:
        raise TypeError('%s must be a list, not %s' % (name, type(items).__name__)) from None


def _framed(*parts: bytes) -> bytes:
    request = b''.join(parts)
    return _pack('i', request_size=len(request)) + request


# ---------------------------------------------------------------- reading


def _buffer(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError('data must be bytes, not %s' % type(data).__name__)


def _count(data: bytes, cur: int, item_bytes: int) -> Tuple[int, int]:
    """Read the length of an array whose items take at least `item_bytes` each."""
    (count,), cur = relative_unpack('>i', data, cur)
    if count < 0:
        raise ProtocolError('an array must have >= 0 items, got %d at byte %d' % (count, cur - 4))
    if count * item_bytes > len(data) - cur:
        raise BufferUnderflowError(
            '%d bytes are left at byte %d for %d items' % (len(data) - cur, cur, count)
        )
    return count, cur


def _integers(data: bytes, cur: int, code: str, item_bytes: int) -> Tuple[Tuple[int, ...], int]:
    count, cur = _count(data, cur, item_bytes)
    return relative_unpack('>%d%s' % (count, code), data, cur)


_Item = Callable[[Any, bytes, int], Tuple[Any, int]]


def _each_partition(data: Any, item_bytes: int, decode: _Item) -> Iterator[Any]:
    """Yield the result of `decode` for each partition in a response that is an array of topics."""
    data = _buffer(data)
    topics, cur = _count(data, 4, _TOPIC_BYTES)
    for _ in range(topics):
        topic, cur = read_short_string(data, cur)
        partitions, cur = _count(data, cur, item_bytes)
        for _ in range(partitions):
            item, cur = decode(topic, data, cur)
            yield item


def _produced(topic: Any, data: bytes, cur: int) -> Tuple[ProduceResponse, int]:
    (partition, error, offset), cur = relative_unpack('>ihq', data, cur)
    return ProduceResponse(topic, partition, error, offset), cur


# Named tuples created without a Python call for each, which costs more than decoding a message.
_new_message = partial(tuple.__new__, Message)
_new_offset_and_message = partial(tuple.__new__, OffsetAndMessage)


def _decoded_runs(data: Any) -> Iterator[Iterable[OffsetAndMessage]]:
    """Yield the messages of a set in groups; see KafkaProtocol._decode_message_set_iter."""
    if isinstance(data, str) and len(data) < ENTRY_HEADER.size:
        data = bytes(len(data))  # 0.9.5 did not reach the type check for so short data
    data = _buffer(data)
    empty = True
    for run in iter_runs(data):
        empty = False
        fields = zip(repeat(run.magic), repeat(run.attributes), run.keys, run.values)
        messages = map(_new_message, fields)
        yield map(_new_offset_and_message, zip(run.offsets, messages))
    if empty and is_cut_off(data):
        raise ConsumerFetchSizeTooSmall('the first message is larger than %d bytes' % len(data))


def _fetched(topic: Any, data: bytes, cur: int) -> Tuple[FetchResponse, int]:
    (partition, error, high_watermark), cur = relative_unpack('>ihq', data, cur)
    message_set, cur = read_int_string(data, cur)
    messages: Any = KafkaProtocol._decode_message_set_iter(message_set or b'')
    return FetchResponse(topic, partition, error, high_watermark, messages), cur


def _listed(topic: Any, data: bytes, cur: int) -> Tuple[OffsetResponse, int]:
    (partition, error), cur = relative_unpack('>ih', data, cur)
    offsets, cur = _integers(data, cur, 'q', _INT64_BYTES)
    return OffsetResponse(topic, partition, error, offsets), cur


def _committed(topic: Any, data: bytes, cur: int) -> Tuple[OffsetCommitResponse, int]:
    (partition, error), cur = relative_unpack('>ih', data, cur)
    return OffsetCommitResponse(topic, partition, error), cur


def _stored(topic: Any, data: bytes, cur: int) -> Tuple[OffsetFetchResponse, int]:
    (partition, offset), cur = relative_unpack('>iq', data, cur)
    metadata, cur = read_short_string(data, cur)
    (error,), cur = relative_unpack('>h', data, cur)
    return OffsetFetchResponse(topic, partition, offset, metadata, error), cur


def _topic_metadata(data: bytes, cur: int) -> Tuple[TopicMetadata, int]:
    (topic_error,), cur = relative_unpack('>h', data, cur)
    topic: Any
    topic, cur = read_short_string(data, cur)
    if topic is None:
        raise ProtocolError('the name of a topic is null')
    count, cur = _count(data, cur, 2 + 4 + 4 + 4 + 4)
    partitions = []
    for _ in range(count):
        (error, partition, leader), cur = relative_unpack('>hii', data, cur)
        replicas, cur = _integers(data, cur, 'i', _INT32_BYTES)
        isr, cur = _integers(data, cur, 'i', _INT32_BYTES)
        partitions.append(PartitionMetadata(topic, partition, leader, replicas, isr, error))
    return TopicMetadata(topic, topic_error, partitions), cur


@also_structs
class KafkaProtocol:
    """The encoders and decoders of 0.9.5 and 1.x; without state, purely for organization.

    This class has the form of 0.9.5. Encoders called without client_id and correlation_id return
    request structs, and decoders accept such structs: the form of 1.x, see StructProtocol.

    Encoders return the request with its length prefix. client_id: bytes or None; correlation_id:
    an int32; payloads: tuples of ``kafka.structs``, one for each partition. They raise TypeError
    for an argument of the wrong type, ProtocolError for one that is out of range, AssertionError
    when a topic and partition are repeated. Decoders take the response without its length; those
    that yield raise errors during iteration: BufferUnderflowError for bytes that end too early,
    ProtocolError for contradictory bytes, TypeError for anything but bytes. From 0.9.5.
    """

    PRODUCE_KEY = 0
    FETCH_KEY = 1
    OFFSET_KEY = 2
    METADATA_KEY = 3
    OFFSET_COMMIT_KEY = 8
    OFFSET_FETCH_KEY = 9
    CONSUMER_METADATA_KEY = 10

    # -- messages --------------------------------------------------------------------------------

    @classmethod
    def _encode_message_header(
        cls, client_id: Any, correlation_id: int, request_key: int, version: int = 0
    ) -> bytes:
        """Encode the header of a request."""
        return _pack(
            'hhi', request_key=request_key, version=version, correlation_id=correlation_id
        ) + _string('client_id', client_id, nullable=True)

    @classmethod
    def _encode_message_set(cls, messages: Iterable[Any]) -> bytes:
        """Encode messages, all with offset 0: brokers assign the offsets."""
        entries = []
        for message in _list('messages', messages):
            encoded = cls._encode_message(message)
            entries.append(ENTRY_HEADER.pack(0, len(encoded)) + encoded)
        return b''.join(entries)

    @classmethod
    def _encode_message(cls, message: Any) -> bytes:
        """Encode a Message. Raises: ProtocolError unless its magic is 0."""
        try:
            magic, key, value = message.magic, message.key, message.value
        except AttributeError:
            raise TypeError(
                'messages must be made by create_message or similar functions, not %s'
                % type(message).__name__
            ) from None
        if magic != 0:
            raise ProtocolError('the magic of a message must be 0, got %r' % (magic,))
        if not isinstance(key, bytes) and key is not None:
            key = _text('key', key)
        if not isinstance(value, bytes) and value is not None:
            value = _text('value', value)
        return encode_message(key, value, magic=0, attributes=message.attributes)

    @classmethod
    def _decode_message_set_iter(cls, data: Any) -> Iterator[OffsetAndMessage]:
        """Yield the messages of a set, including those inside compressed messages.

        A truncated message at the end is left out; if it is the first, it raises
        ConsumerFetchSizeTooSmall. Other errors are raised when the invalid message is reached:
        ChecksumError, ProtocolError, UnsupportedCodecError.
        """
        return chain.from_iterable(_decoded_runs(data))

    @classmethod
    def _decode_message(cls, data: Any, offset: int) -> Iterator[Tuple[int, Message]]:
        """Yield (offset, Message) for one encoded message, or for each inside a compressed one.

        Inner messages have their stored offsets. Raises on iteration: ChecksumError before any
        other check; BufferUnderflowError for fewer than 6 bytes.
        """
        data = _buffer(data)
        if len(data) < 6:
            raise BufferUnderflowError('%d bytes are too few for a message' % len(data))
        entry = _pack('qi', offset=offset, size=len(data)) + data
        for found, magic, attributes, key, value in iter_message_set(entry):
            yield found, Message(magic, attributes, key, value)

    # -- requests to leaders ---------------------------------------------------------------------

    @classmethod
    def encode_produce_request(
        cls,
        client_id: Any,
        correlation_id: int,
        payloads: Optional[Iterable[Any]] = None,
        acks: int = 1,
        timeout: int = 1000,
    ) -> bytes:
        """Encode ProduceRequests. `acks` is written as given; `timeout` is in ms."""

        def encode(payload: Any) -> bytes:
            message_set = cls._encode_message_set(payload.messages)
            return (
                _pack('ii', partition=payload.partition, message_set_size=len(message_set))
                + message_set
            )

        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.PRODUCE_KEY),
            _pack('hi', acks=acks, timeout=whole_ms(timeout, 'timeout')),
            _by_topic(payloads, encode),
        )

    @classmethod
    def decode_produce_response(cls, data: Any) -> Iterator[ProduceResponse]:
        """Yield a ProduceResponse for each partition."""
        return _each_partition(data, 4 + 2 + 8, _produced)

    @classmethod
    def encode_fetch_request(
        cls,
        client_id: Any,
        correlation_id: int,
        payloads: Optional[Iterable[Any]] = None,
        max_wait_time: int = 100,
        min_bytes: int = 4096,
    ) -> bytes:
        """Encode FetchRequests. The broker waits `max_wait_time` ms at most for `min_bytes`."""

        def encode(payload: Any) -> bytes:
            return _pack(
                'iqi',
                partition=payload.partition,
                offset=payload.offset,
                max_bytes=payload.max_bytes,
            )

        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.FETCH_KEY),
            _pack(
                'iii',
                replica_id=-1,
                max_wait_time=whole_ms(max_wait_time, 'max_wait_time'),
                min_bytes=min_bytes,
            ),
            _by_topic(payloads, encode),
        )

    @classmethod
    def decode_fetch_response(cls, data: Any) -> Iterator[FetchResponse]:
        """Yield a FetchResponse for each partition; its messages are decoded while iterating."""
        return _each_partition(data, 4 + 2 + 8 + 4, _fetched)

    @classmethod
    def encode_offset_request(
        cls, client_id: Any, correlation_id: int, payloads: Optional[Iterable[Any]] = None
    ) -> bytes:
        """Encode OffsetRequests. `time` is in ms, -1 for the latest, -2 for the earliest offset."""

        def encode(payload: Any) -> bytes:
            return _pack(
                'iqi',
                partition=payload.partition,
                time=whole_ms(payload.time, 'time'),
                max_offsets=payload.max_offsets,
            )

        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.OFFSET_KEY),
            _pack('i', replica_id=-1),
            _by_topic(payloads, encode),
        )

    @classmethod
    def decode_offset_response(cls, data: Any) -> Iterator[OffsetResponse]:
        """Yield an OffsetResponse for each partition; `offsets` is a tuple."""
        return _each_partition(data, 4 + 2 + 4, _listed)

    # -- requests to any broker ------------------------------------------------------------------

    @classmethod
    def encode_metadata_request(
        cls,
        client_id: Any,
        correlation_id: int,
        topics: Optional[Iterable[bytes]] = None,
        payloads: Optional[Iterable[bytes]] = None,
    ) -> bytes:
        """Encode a request for metadata of topics, or of all topics if none are given.

        `payloads`, if given, replaces `topics`.
        """
        names = _list('topics or payloads', (topics or ()) if payloads is None else payloads)
        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.METADATA_KEY),
            _pack('i', topics=len(names)),
            *(_string('topics', topic) for topic in names),
        )

    @classmethod
    def decode_metadata_response(cls, data: Any) -> MetadataResponse:
        """Return the MetadataResponse, with brokers and topics in the order of the response."""
        data = _buffer(data)
        count, cur = _count(data, 4, 4 + 2 + 4)
        brokers: List[BrokerMetadata] = []
        for _ in range(count):
            (node_id,), cur = relative_unpack('>i', data, cur)
            host, cur = read_short_string(data, cur)
            (port,), cur = relative_unpack('>i', data, cur)
            brokers.append(BrokerMetadata(node_id, host, port))
        count, cur = _count(data, cur, 2 + 2 + 4)
        topics: List[TopicMetadata] = []
        for _ in range(count):
            topic, cur = _topic_metadata(data, cur)
            topics.append(topic)
        return MetadataResponse(brokers, topics)

    @classmethod
    def encode_consumer_metadata_request(
        cls, client_id: Any, correlation_id: int, payloads: bytes
    ) -> bytes:
        """Encode a request for the coordinator of a group; `payloads` is the group's name."""
        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.CONSUMER_METADATA_KEY),
            _string('payloads (the group)', payloads),
        )

    @classmethod
    def decode_consumer_metadata_response(cls, data: Any) -> ConsumerMetadataResponse:
        """Return the ConsumerMetadataResponse; its host is bytes."""
        data = _buffer(data)
        (error, node_id), cur = relative_unpack('>hi', data, 4)
        host: Any
        host, cur = read_short_string(data, cur)
        (port,), cur = relative_unpack('>i', data, cur)
        return ConsumerMetadataResponse(error, node_id, host, port)

    # -- committed offsets -----------------------------------------------------------------------

    @classmethod
    def encode_offset_commit_request(
        cls, client_id: Any, correlation_id: int, group: bytes, payloads: Optional[Iterable[Any]]
    ) -> bytes:
        """Encode OffsetCommitRequests of a group; metadata may be None."""
        if type(payloads) is list and len(payloads) == 1:
            single = _single_commit(cls, client_id, correlation_id, group, payloads[0])
            if single is not None:
                return single

        def encode(payload: Any) -> bytes:
            return _pack('iq', partition=payload.partition, offset=payload.offset) + _string(
                'metadata', payload.metadata, nullable=True
            )

        return _framed(
            cls._encode_message_header(client_id, correlation_id, cls.OFFSET_COMMIT_KEY),
            _string('group', group),
            _by_topic(payloads, encode),
        )

    @classmethod
    def decode_offset_commit_response(cls, data: Any) -> Iterator[OffsetCommitResponse]:
        """Yield an OffsetCommitResponse for each partition."""
        found = read_committed(data, 4) if type(data) is bytes else None
        if found is not None:
            return iter((OffsetCommitResponse(*found),))
        return _each_partition(data, 4 + 2, _committed)

    @classmethod
    def encode_offset_fetch_request(
        cls,
        client_id: Any,
        correlation_id: int,
        group: bytes,
        payloads: Optional[Iterable[Any]],
        from_kafka: bool = False,
    ) -> bytes:
        """Encode OffsetFetchRequests of a group.

        Version 0 requests the offsets in ZooKeeper; version 1, with `from_kafka`, those stored by
        the coordinator of the group.
        """
        return _framed(
            cls._encode_message_header(
                client_id, correlation_id, cls.OFFSET_FETCH_KEY, version=1 if from_kafka else 0
            ),
            _string('group', group),
            _by_topic(payloads, lambda payload: _pack('i', partition=payload.partition)),
        )

    @classmethod
    def decode_offset_fetch_response(cls, data: Any) -> Iterator[OffsetFetchResponse]:
        """Yield an OffsetFetchResponse for each partition; its metadata is bytes."""
        return _each_partition(data, 4 + 8 + 2 + 2, _stored)


# A commit calls this method only if a program has replaced it.
_OWN_HEADER = vars(KafkaProtocol)['_encode_message_header']
