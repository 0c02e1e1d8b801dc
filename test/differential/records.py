"""Records for the scripts, good and bad ones, and stored records as JSON-able values.

Owns both directions. Everything is made by ``kafka.record``; times are milliseconds from the
script's own beginning.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Optional, Sequence
from zlib import crc32

from kafka.codec import DEFAULT_LIMIT_BYTES
from kafka.errors import KafkaError
from kafka.record.crc32c import crc32c
from kafka.record.default_records import (
    ATTRIBUTES_POS,
    CODEC_MASK,
    DefaultRecordBatch,
    encode_batch,
)
from kafka.record.legacy_decoder import decode_message, unwrap
from kafka.record.legacy_records import encode_message_set

#: How far from the script's beginning its own times reach, in ms.
SPAN_MS = 1_000_000
#: How far before now the script's own times begin.
AGE_MS = 3_600_000
HOUR_MS = 3_600_000
#: Times that brokers make up are at most so far from now.
MOST_HOURS = 400 * 24


NameProducer = Callable[[int], str]


def natural_magic(version: int) -> int:
    """Return the format that belongs to a version of Produce."""
    return 0 if version < 2 else 1 if version < 3 else 2


def made(
    magic: int,
    now_ms: int,
    values: Sequence[Optional[bytes]] = (b'one', b'two'),
    codec: int = 0,
    key: Optional[bytes] = b'k',
    **options: Any,
) -> bytes:
    """Return values as one batch or message set, a millisecond apart; options of encode_batch."""
    if magic == 2:
        headers = (('h', b'x'),)
        fields = [(now_ms + i, key, value, headers) for i, value in enumerate(values)]
        return encode_batch(fields, codec=codec, **options)
    return encode_message_set(
        [(i, now_ms + i, key, value) for i, value in enumerate(values)], magic=magic, codec=codec
    )


def with_wrong_crc(data: bytes) -> bytes:
    """Return the first entry with another byte at its end, and the checksum as it was."""
    return data[:-1] + bytes([data[-1] ^ 1])


def with_attributes(data: bytes, attributes: int) -> bytes:
    """Return a batch or a message with other attributes and the right checksum."""
    changed = bytearray(data)
    if data[16] == 2:
        struct.pack_into('>h', changed, ATTRIBUTES_POS, attributes)
    else:
        changed[17] = attributes
    return with_right_crc(bytes(changed))


def with_field(data: bytes, layout: str, position: int, value: int) -> bytes:
    """Return a batch of magic 2 with another number at a position and the right checksum."""
    changed = bytearray(data)
    struct.pack_into('>' + layout, changed, position, value)
    return with_right_crc(bytes(changed))


def with_right_crc(data: bytes) -> bytes:
    """Return one entry with the checksum that it should have."""
    changed = bytearray(data)
    if data[16] == 2:
        struct.pack_into('>I', changed, 17, crc32c(data[ATTRIBUTES_POS:]))
    else:
        struct.pack_into('>I', changed, 12, crc32(data[16:]))
    return bytes(changed)


def shown_time(value: int, base_ms: int) -> Any:
    """Return a time that can be compared: the script's own as distances, others in hours."""
    if base_ms <= value < base_ms + SPAN_MS:
        return 'base+%d' % (value - base_ms)
    hours = round((value - base_ms - AGE_MS) / HOUR_MS)
    return '<now%+dh>' % hours if abs(hours) <= MOST_HOURS else value


def shown_bytes(data: Optional[bytes]) -> Optional[str]:
    """Return bytes as text: ASCII as it is, else hexadecimal; long ones by length and checksum."""
    if data is None:
        return None
    if len(data) > 200:
        return '<%d bytes, CRC %08x>' % (len(data), crc32(data))
    if all(32 <= byte < 127 for byte in data):
        return bytes(data).decode('ascii')
    return 'hex:' + bytes(data).hex()


def shown(
    data: Optional[bytes],
    base_ms: int,
    name_producer: NameProducer = '<producer {}>'.format,
) -> Any:
    """Return stored records as a list of batches and messages; what is cut off by its length.

    Arguments: name_producer: gets the id of a producer, returns what is shown of it.
    """
    if data is None:
        return None
    data = bytes(data)
    found: List[Any] = []
    pos = 0
    while pos < len(data):
        size = 12 + struct.unpack_from('>i', data, pos + 8)[0] if len(data) - pos >= 12 else 0
        if len(data) - pos < 17 or not 12 < size <= len(data) - pos:
            found.append({'cut_off_bytes': len(data) - pos})
            break
        entry = data[pos : pos + size]
        try:
            if entry[16] == 2:
                found.append(_batch(entry, base_ms, name_producer))
            else:
                found.append(_message(entry, base_ms))
        except (KafkaError, struct.error) as error:
            found.append({'unreadable': type(error).__name__})
        pos += size
    return found


def _batch(data: bytes, base_ms: int, name_producer: NameProducer) -> Dict[str, Any]:
    batch = DefaultRecordBatch(data)
    header = batch.header
    stored: Dict[str, Any] = {
        'base_offset': header.base_offset,
        'partition_leader_epoch': header.partition_leader_epoch,
        'magic': 2,
        'attributes': header.attributes,
        'last_offset_delta': header.last_offset_delta,
        'base_timestamp': shown_time(header.base_timestamp, base_ms),
        'max_timestamp': shown_time(header.max_timestamp, base_ms),
        'producer_id': name_producer(header.producer_id) if header.producer_id >= 0 else -1,
        'producer_epoch': header.producer_epoch,
        'base_sequence': header.base_sequence,
        'crc': 'right' if crc32c(data[ATTRIBUTES_POS:]) == header.crc else 'wrong',
    }
    stored['records'] = [
        [
            record.offset,
            shown_time(record.timestamp or 0, base_ms),
            shown_bytes(record.key),
            shown_bytes(record.value),
            [[name, shown_bytes(value)] for name, value in record.headers],
        ]
        for record in batch
    ]
    return stored


def _message(entry: bytes, base_ms: int) -> Dict[str, Any]:
    (offset,) = struct.unpack_from('>q', entry)
    message = decode_message(entry[12:], offset, check=False)
    stored: Dict[str, Any] = {
        'offset': offset,
        'magic': message.magic,
        'attributes': message.attributes,
        'crc': 'right' if crc32(entry[16:]) == struct.unpack_from('>I', entry, 12)[0] else 'wrong',
        'key': shown_bytes(message.key),
    }
    if message.magic:
        stored['timestamp'] = shown_time(message.timestamp or 0, base_ms)
    if message.attributes & CODEC_MASK:
        stored['inside'] = [
            [inner, stamp, shown_bytes(key), shown_bytes(value)]
            for run in unwrap(message, DEFAULT_LIMIT_BYTES)
            for inner, stamp, key, value in zip(
                run.offsets, _times(run, base_ms), run.keys, run.values
            )
        ]
    else:
        stored['value'] = shown_bytes(message.value)
    return stored


def _times(run: Any, base_ms: int) -> List[Any]:
    if not run.magic:
        return [None] * len(run.offsets)
    return [shown_time(stamp, base_ms) for stamp in run.timestamps]
