"""Message sets of magic 0 and 1 as stored by brokers 0.8 to 0.10: offsets, wrappers, positions.

Called by the logs. A stored piece is a sequence of plain messages or one wrapper. It gets its
offsets when it is appended (:func:`renumbered`), and a read may begin inside a sequence
(:func:`position_of`). In a wrapper of magic 0 the inner offsets are absolute, so that it has to be
compressed again; in magic 1 they are relative and only the wrapper's own offset changes (KIP-31).
produced_batches.py validates the sets.
"""

from __future__ import annotations

import struct
from typing import List

from kafka.codec import MissingCodecError
from kafka.record.legacy_decoder import decode_message
from kafka.record.legacy_records import MessageFields, encode_message, encode_message_set
from kafka.record.legacy_run import TIMESTAMP_TYPE_MASK
from kafka.record.memory_records import MemoryRecords

CODEC_MASK = 0x07
#: Offset and size of an entry.
HEAD_BYTES = 12

_OFFSET = struct.Struct('>q')
_HEAD = struct.Struct('>qi')
_MAGIC_AT = 16
_ATTRIBUTES_AT = 17


def is_wrapper(data: bytes) -> bool:
    """Return True if a stored piece of magic 0 or 1 is a wrapper."""
    return bool(data[_ATTRIBUTES_AT] & CODEC_MASK)


def renumbered(data: bytes, base: int, last: int) -> bytes:
    """Return a stored piece with offsets from ``base`` to ``last``."""
    if not is_wrapper(data):
        return _renumbered_row(data, base)
    if data[_MAGIC_AT] == 0:
        return _rewrapped(data, base)
    return _OFFSET.pack(last) + data[8:]


def _renumbered_row(data: bytes, base: int) -> bytes:
    out = bytearray(data)
    put, head, end = _OFFSET.pack_into, _HEAD.unpack_from, len(data)
    pos = 0
    while pos < end:
        put(out, pos, base)
        base += 1
        pos += HEAD_BYTES + head(data, pos)[1]
    return bytes(out)


def _rewrapped(data: bytes, base: int) -> bytes:
    messages: List[MessageFields] = [
        (offset, None, record.key, record.value)
        for batch in MemoryRecords(data)
        for offset, record in enumerate(batch, base)
    ]
    return encoded(messages, 0, data[_ATTRIBUTES_AT] & CODEC_MASK, 0)


def position_of(data: bytes, offset: int) -> int:
    """Return the position in a stored piece of the first entry that ends at ``offset`` or later."""
    if is_wrapper(data):
        return 0
    head, end = _HEAD.unpack_from, len(data)
    pos = 0
    while pos < end:
        found, size = head(data, pos)
        if found >= offset:
            return pos
        pos += HEAD_BYTES + size
    return pos


def entry_bytes(data: bytes, pos: int) -> int:
    """Return the size of the entry at a position of a stored piece."""
    return HEAD_BYTES + int(_HEAD.unpack_from(data, pos)[1])


def encoded(messages: List[MessageFields], magic: int, codec: int, timestamp_type: int) -> bytes:
    """Encode a message set, uncompressed if the package of the codec is not installed."""
    try:
        return encode_message_set(messages, magic, codec, timestamp_type=timestamp_type)
    except MissingCodecError:
        return encode_message_set(messages, magic, timestamp_type=timestamp_type)


def with_append_time(messages: List[MessageFields], codec: int, now_ms: int) -> bytes:
    """Encode a set of magic 1 with append time; in a wrapper the inner messages keep their times.

    The timestamp type of the wrapper says which one is valid (KIP-32).
    """
    wrapper = encoded(messages, 1, codec, 0)
    if not is_wrapper(wrapper):
        now = [(offset, now_ms, key, value) for offset, _, key, value in messages]
        return encode_message_set(now, magic=1, timestamp_type=1)
    inside = decode_message(wrapper[HEAD_BYTES:])
    message = encode_message(
        None,
        inside.value,
        magic=1,
        attributes=inside.attributes | TIMESTAMP_TYPE_MASK,
        timestamp=now_ms,
    )
    return _HEAD.pack(messages[-1][0], len(message)) + message
