"""A fast path for Produce and Fetch of 0.9.5: from named tuples to current messages, and back.

Old requests of a client that uses this package's own connection are not encoded, because the
connection would decode them again, and their responses are converted to named tuples directly. The
result equals that of ``KafkaProtocol`` (legacy.py), which handles anything unusual: a function
returns None for it, and the request is then encoded, or fails, there. Tests compare both
implementations; benchmarks/simple.py measures the gain.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, repeat
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from kafka.protocol.api import ApiKey, RequestHeader
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.later import MessagesLater
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.translation import OldRequest
from kafka.record.columns import Columns
from kafka.record.conversion import MessageSet
from kafka.structs import FetchResponse, Message, OffsetAndMessage, ProduceResponse

__all__ = ['Unwritten', 'fetched', 'produced', 'unwritten_fetch', 'unwritten_produce']

_INT16, _INT32, _INT64 = 1 << 15, 1 << 31, 1 << 63
_NULLABLE = {bytes, type(None)}

# Named tuples created without a Python call for each, which costs more than decoding a message.
_new_message = partial(tuple.__new__, Message)
_new_offset_and_message = partial(tuple.__new__, OffsetAndMessage)


class Unwritten(NamedTuple):
    """An old request that is not encoded; ``write`` returns the bytes of KafkaProtocol."""

    old: OldRequest
    write: Callable[[], bytes]


# ---------------------------------------------------------------- requests


def unwritten_produce(
    client_id: Any, correlation_id: int, payloads: Any, acks: Any, timeout: Any, write: Any
) -> Optional[Unwritten]:
    """Return a ProduceRequest for named tuples; None to use KafkaProtocol."""
    if not (_fits(acks, _INT16) and _fits(timeout, _INT32)):
        return None
    topics = []
    for name, partitions in _by_topic(payloads):
        data: List[Any] = []
        for payload in partitions:
            messages: Any = _later(payload.messages)
            if messages is None:
                return None
            data.append(PartitionProduceData(index=payload.partition, records=messages))
        topics.append(TopicProduceData(name=name, partition_data=data))
    request = ProduceRequest(acks=acks, timeout_ms=timeout, topic_data=topics)
    return _unwritten(ApiKey.PRODUCE, client_id, correlation_id, request, topics, write)


def unwritten_fetch(
    client_id: Any,
    correlation_id: int,
    payloads: Any,
    max_wait_time: Any,
    min_bytes: Any,
    write: Any,
) -> Optional[Unwritten]:
    """Return a FetchRequest for named tuples; None to use KafkaProtocol."""
    if not (_fits(max_wait_time, _INT32) and _fits(min_bytes, _INT32)):
        return None
    topics = []
    for name, partitions in _by_topic(payloads):
        asked = []
        for payload in partitions:
            if not (_fits(payload.offset, _INT64) and _fits(payload.max_bytes, _INT32)):
                return None
            asked.append(
                FetchPartition(
                    partition=payload.partition,
                    fetch_offset=payload.offset,
                    partition_max_bytes=payload.max_bytes,
                )
            )
        topics.append(FetchTopic(topic=name, partitions=asked))
    request = FetchRequest(max_wait_ms=max_wait_time, min_bytes=min_bytes, topics=topics)
    return _unwritten(ApiKey.FETCH, client_id, correlation_id, request, topics, write)


def _unwritten(
    key: int, client_id: Any, correlation_id: int, request: Any, topics: List[Any], write: Any
) -> Optional[Unwritten]:
    name = None if client_id is None else _text(client_id)
    if not topics or (name is None and client_id is not None) or not _fits(correlation_id, _INT32):
        return None
    return Unwritten(OldRequest(RequestHeader(key, 0, correlation_id, name), request), write)


def _fits(value: Any, limit: int) -> bool:
    return type(value) is int and -limit <= value < limit


def _text(name: Any) -> Optional[str]:
    """Return bytes decoded to text; None if they are invalid or too long."""
    try:
        return name.decode('utf-8') if type(name) is bytes and len(name) < _INT16 else None
    except UnicodeDecodeError:
        return None


def _by_topic(payloads: Any) -> Iterable[Tuple[str, Iterable[Any]]]:
    """Return the payloads of each topic; nothing if one is unusual, or there are no payloads."""
    if len(payloads) == 1:
        name = _text(payloads[0].topic)
        return (
            () if name is None or not _fits(payloads[0].partition, _INT32) else [(name, payloads)]
        )
    grouped: Dict[str, Dict[int, Any]] = {}
    for payload in payloads:
        name = _text(payload.topic)
        if name is None or not _fits(payload.partition, _INT32):
            return ()
        partitions = grouped.setdefault(name, {})
        if payload.partition in partitions:
            return ()
        partitions[payload.partition] = payload
    return [(name, partitions.values()) for name, partitions in grouped.items()]


def _later(messages: Any) -> Optional[MessagesLater]:
    """Return messages as columns; None unless all are plain ones of magic 0."""
    if type(messages) is MessagesLater:
        return messages
    if type(messages) not in (list, tuple) or set(map(type, messages)) != {Message}:
        return None
    magics, attributes, keys, values = zip(*messages)
    if any(magics) or any(attributes) or not are_bytes(keys) or not are_bytes(values):
        return None
    return MessagesLater(values, keys, 0, None, partial(list, messages))


def are_bytes(fields: Any) -> bool:
    """Return True if all are bytes or None."""
    return set(map(type, fields)) <= _NULLABLE


# ---------------------------------------------------------------- responses


def produced(message: Any) -> Iterator[ProduceResponse]:
    """Yield the results of KafkaProtocol.decode_produce_response for the encoded response."""
    for topic in message.responses:
        name = topic.name.encode('utf-8')
        for part in topic.partition_responses:
            yield ProduceResponse(name, part.index, part.error_code, part.base_offset)


def fetched(message: Any, read: Callable[[bytes], Iterable[Any]]) -> Iterator[FetchResponse]:
    """Yield the results of KafkaProtocol.decode_fetch_response for the encoded response.

    Arguments: read: returns the messages of a message set, for records that are not columns.
    """
    for topic in message.responses:
        name = topic.topic.encode('utf-8')
        for part in topic.partitions:
            records: Any = part.records
            if isinstance(records, MessageSet):
                found = chain.from_iterable(map(_messages, records.columns))
                messages = found if records.columns else read(records.data)
            else:
                messages = read(records)
            yield FetchResponse(
                name, part.partition_index, part.error_code, part.high_watermark, messages
            )


def _messages(part: Columns) -> Iterator[OffsetAndMessage]:
    """Return messages of magic 0 without codec from columns."""
    keys = repeat(None) if part.keys is None else part.keys
    messages = map(_new_message, zip(repeat(0), repeat(0), keys, part.values))
    return map(_new_offset_and_message, zip(part.offsets, messages))
