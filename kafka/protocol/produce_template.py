"""A template of a produce request with one batch, and of its successful response.

The constant bytes of both are encoded once; the others are filled in, or read at their positions.
The template is derived from the encoders' output, with markers for the variable parts, so that it
does not depend on the layout of a version. A response of any other form, such as one with an error,
is left to the decoder. Follows the protocol guide (Produce). Pure.
"""

from __future__ import annotations

import struct
from typing import Any, Optional, Tuple, Union

from kafka.protocol.api import encode_request, encode_response
from kafka.protocol.primitives import UVARINTS
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

__all__ = ['FIRST_VERSION', 'ProduceTemplate', 'Stored']

#: The first version with the log start offset in responses.
FIRST_VERSION = 5

_HEAD = struct.Struct('>ihhi')  # length, key, version, correlation id
_ANSWER_HEAD = struct.Struct('>ii')  # length, correlation id
_SIZE = struct.Struct('>i')
_STORED = struct.Struct('>qqq')
_RECORDS = b'\xf7these records are a mark, and none\x00'
_MARKS = (0x5AD1FFEE0FF5E700, 0x5AD1FFEE0FF5E701, 0x5AD1FFEE0FF5E702)

_read_stored = _STORED.unpack_from
_read_head = _ANSWER_HEAD.unpack_from
_pack = _HEAD.pack


#: The content of a response: the base offset; the append time (ms), -1 for CreateTime; the log
#: start offset.
Stored = Tuple[int, int, int]


class ProduceTemplate:
    """A produce request that is sent repeatedly to one partition.

    Arguments: topic, partition; topic_id: 16 bytes; version: FIRST_VERSION or higher; acks: 1 or
    -1; timeout_ms; client_id: None sends null.
    Attributes: request: the decoded request, without its records. Raises: as encode_request().
    """

    __slots__ = (
        '_after',
        '_answer_size',
        '_before',
        '_end',
        '_flexible',
        '_last',
        '_start',
        '_stored_at',
        'request',
        'version',
    )

    def __init__(
        self,
        topic: Any,
        partition: int,
        topic_id: bytes,
        version: int,
        acks: int,
        timeout_ms: int,
        client_id: Optional[str],
    ) -> None:
        data = PartitionProduceData(index=partition, records=_RECORDS)
        self.request = ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
        )
        self.version = version
        flexible_from = ProduceRequest.flexible_from
        self._flexible = flexible_from is not None and version >= flexible_from
        start, self._end = encode_request(self.request, version, 0, client_id).split(_RECORDS)
        self._last = 0, self._size_of(0)  # in one attribute: a thread that encodes may be ended
        self._start = start[_HEAD.size - 4 : len(start) - len(self._size_of(len(_RECORDS)))]
        data.records = b''
        offset, append_time, start_offset = _MARKS
        stored = PartitionProduceResponse(
            index=partition,
            error_code=0,
            base_offset=offset,
            log_append_time_ms=append_time,
            log_start_offset=start_offset,
        )
        named = TopicProduceResponse(name=topic, topic_id=topic_id, partition_responses=[stored])
        answer = encode_response(ProduceResponse(responses=[named]), version, 0)
        before, self._after = answer.split(_STORED.pack(*_MARKS))
        self._before = before[4:]
        self._stored_at = 4 + len(before)
        self._answer_size = self._stored_at + _STORED.size + len(self._after)

    def __repr__(self) -> str:
        (topic,) = self.request.topic_data
        place = topic.name, topic.partition_data[0].index
        return '<ProduceTemplate %s-%d, version %d>' % (*place, self.version)

    def _size_of(self, length: int) -> bytes:
        return UVARINTS[length + 1] if self._flexible else _SIZE.pack(length)

    def encode(self, correlation_id: int, records: Union[bytes, bytearray]) -> bytes:
        """Return the frame of a request with these records, including its length."""
        length, start, end = len(records), self._start, self._end
        last, size = self._last
        if length != last:
            size = self._size_of(length)
            self._last = length, size
        length += 8 + len(start) + len(size) + len(end)
        return b''.join((_pack(length, 0, self.version, correlation_id), start, size, records, end))

    def read(self, data: bytes, correlation_id: int) -> Optional[Stored]:
        """Return the content of a successful response, None for any other.

        Arguments: data: received bytes; None is returned unless they are exactly one frame.
        """
        size = self._answer_size
        if len(data) != size or _read_head(data) != (size - 4, correlation_id):
            return None
        at = self._stored_at
        if data[8:at] != self._before or data[at + 24 :] != self._after:
            return None
        return _read_stored(data, at)
