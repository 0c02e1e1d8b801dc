"""Conversion of batches to older formats for fetches of old versions, as in brokers 0.10 to 3.9.

Called by handlers/fetch.py, which chooses the format. Converted batches are cached, so that the
next consumer of the same batch costs nothing. Each batch keeps its codec.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Iterable, List, Optional, Tuple

from kafka.codec import CODEC_ZSTD
from kafka.errors import UnsupportedCodecError
from kafka.record.legacy_records import MessageFields
from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs import message_sets
from kafka.testing.logs.partition_log import Batch

_FILLING = struct.Struct('>qi').pack  # base offset, length
_SHORTEST_BATCH = 61
#: The limit of the cache.
MOST_BYTES = 32 * 1024 * 1024


def filled_up(converted: bytes, size: int) -> bytes:
    """Return converted records padded or cut to ``size``, which brokers from 2.0 on send first.

    The padding is the beginning of a batch that is larger than any limit (KIP-283).
    """
    missing = size - len(converted)
    if missing <= 0:
        return converted[:size]
    head = _FILLING(-1, max(missing + 1, _SHORTEST_BATCH))
    return converted + (head + bytes(max(0, missing - len(head))))[:missing]


class HeadersError(Exception):
    """Records have headers, which brokers before 1.0 cannot drop."""


class DownConverter:
    """Converts batches.

    Arguments: takes_headers: whether headers of records are dropped; else they are an error.
    """

    def __init__(self, *, takes_headers: bool = True) -> None:
        self._takes_headers = takes_headers
        # By batch and magic; the batch is kept as well, so that no other object gets its id.
        self._known: OrderedDict[Tuple[int, int], Tuple[bytes, bytes]] = OrderedDict()
        self._size_bytes = 0

    def __repr__(self) -> str:
        return '<DownConverter with %d batches, %d bytes>' % (len(self._known), self._size_bytes)

    def convert(
        self, batches: Iterable[Batch], offset: int, max_bytes: int, magic: int
    ) -> Optional[bytes]:
        """Return the batches from an offset on that fit into ``max_bytes`` before the conversion.

        None if not even the first does. Raises UnsupportedCodecError for zstd, which older formats
        do not have, and HeadersError.
        """
        parts: List[bytes] = []
        fits = False
        for batch in batches:
            max_bytes -= len(batch.data)
            if max_bytes < 0:
                break
            fits = True
            data = batch.data if batch.magic <= magic else self._converted(batch, magic)
            if data and not parts:
                data = data[message_sets.position_of(data, offset) :]
            parts.append(data)
        return b''.join(parts) if fits else None

    def convert_set(self, data: bytes, magic: int) -> bytes:
        """Return the complete messages of a set, which may be cut off; ``data`` if there are none.

        As in 0.10: all messages get the codec of the first one.
        """
        parts = list(MemoryRecords(data))
        messages: List[MessageFields] = [record[:4] for part in parts for record in part]
        return message_sets.encoded(messages, magic, parts[0].codec, 0) if messages else data

    def _converted(self, batch: Batch, magic: int) -> bytes:
        if batch.is_control:
            return b''
        key = id(batch.data), magic
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known[1]
        made = self._made(batch.data, magic)
        self._known[key] = batch.data, made
        self._size_bytes += len(batch.data) + len(made)
        while self._size_bytes > MOST_BYTES and len(self._known) > 1:
            _, (data, old) = self._known.popitem(last=False)
            self._size_bytes -= len(data) + len(old)
        return made

    def _made(self, data: bytes, magic: int) -> bytes:
        parts: List[bytes] = []
        for batch in MemoryRecords(data, check_crcs=False):
            if batch.codec == CODEC_ZSTD:
                raise UnsupportedCodecError('zstd in magic %d' % magic)
            records = list(batch)
            if not self._takes_headers and any(record.headers for record in records):
                raise HeadersError
            messages: List[MessageFields] = [record[:4] for record in records]
            kind = batch.timestamp_type or 0
            if messages:
                parts.append(message_sets.encoded(messages, magic, batch.codec, kind))
        return b''.join(parts)
