"""Message sets of magic 0 and 1 as brokers of 0.8 to 0.10 keep them: offsets, wrappers, positions.

Owns the bytes of such sets in the log. A stored piece is a row of plain messages or one wrapper; it
gets its offsets when it is appended (:func:`renumbered`), and readers may begin inside of a row
(:func:`position_of`). Inside a wrapper of magic 0 offsets are absolute, so that it is
compressed anew for each place; in magic 1 they are relative and only the wrapper's own changes
(KIP-31). Whether a set may be stored is produced_batches.py's business.
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
    """Tell whether a stored piece of magic 0 or 1 is a wrapper."""
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
    """Return where in a stored piece the first entry begins that ends at ``offset`` or later."""
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
    """Encode a message set, without codec where the package for it is missing."""
    try:
        return encode_message_set(messages, magic, codec, timestamp_type=timestamp_type)
    except MissingCodecError:
        return encode_message_set(messages, magic, timestamp_type=timestamp_type)


def with_append_time(messages: List[MessageFields], codec: int, now_ms: int) -> bytes:
    """Encode a set of magic 1 that was written now; inside of a wrapper messages keep their times.

    The wrapper says which time counts (KIP-32).
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
