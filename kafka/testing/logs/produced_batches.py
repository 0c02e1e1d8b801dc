"""Validation of produced records by the rules of each release, and their batches.

Called by handlers/produce.py. Turns the bytes for one partition into batches that can be appended,
converted as a broker would (format, codec, append time), or refuses them with an error. Offsets are
assigned by partition_log.py, sequences checked by producer_states.py. Follows the protocol guide
("Messages"), KIP-32, KIP-98, KIP-110 and, for record errors, KIP-467.
"""

from __future__ import annotations

import struct
from itertools import accumulate, chain, repeat
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from zlib import crc32

from kafka.codec import CODEC_LZ4, CODEC_ZSTD, MissingCodecError
from kafka.errors import ChecksumError, ProtocolError, UnsupportedCodecError
from kafka.record.batch_encoder import RecordFields
from kafka.record.crc32c import crc32c
from kafka.record.default_records import (
    ATTRIBUTES_POS,
    CODEC_MASK,
    CONTROL_MASK,
    HEADER,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    DefaultRecordBatch,
    encode_batch,
)
from kafka.record.legacy_decoder import decode_message, entry_size
from kafka.record.legacy_records import LegacyRecordBatch, MessageFields
from kafka.record.lz4_frames import read_header
from kafka.record.memory_records import MemoryRecords
from kafka.record.record import Record
from kafka.testing.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_COMPRESSION_TYPE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from kafka.testing.logs import message_sets
from kafka.testing.logs.log_settings import LogSettings
from kafka.testing.logs.partition_log import Batch

_CRC = struct.Struct('>I')
_STAMP = struct.Struct('>q')
_CRC_AT = 17
_MAX_TIMESTAMP_AT = 35
_MAGIC_AT = 16
#: Brokers before this release validate the records while they decode the request.
_READS_LATER = (2, 1)
#: The number of record errors in the error message, which has their count too (KIP-467).
_NAMED_ERRORS = 3


class RefusedRecords(Exception):
    """Records that a broker refuses.

    Attributes: error: the code; record_errors: index and message of each bad record; text: the
    error message of the partition; is_early: refused before the log was accessed; closes: the
    connection is closed instead of a response.
    """

    def __init__(
        self,
        error: int,
        text: Optional[str] = None,
        record_errors: Sequence[Tuple[int, str]] = (),
        *,
        is_early: bool = False,
        closes: bool = False,
    ) -> None:
        super().__init__(error, text)
        self.error = error
        self.text = text
        self.record_errors = list(record_errors)
        self.is_early = is_early
        self.closes = closes


class Rules(NamedTuple):
    """What validation depends on: release, version of the request, topic settings, and time."""

    release: Tuple[int, ...]
    api_version: int
    settings: LogSettings
    now_ms: int
    topic: str = ''
    partition: int = 0

    @property
    def invalid(self) -> int:
        """The error code for decodable but invalid records; INVALID_RECORD came with 2.4."""
        return INVALID_RECORD if self.release >= (2, 4) else CORRUPT_MESSAGE


def produced_batches(records: bytes, rules: Rules) -> List[Batch]:
    """Return the batches to append, none for an empty set. Raises RefusedRecords."""
    try:
        if rules.api_version >= 3:
            return [*_stored(_only_batch(records, rules), rules)]
        return _old_request(records, rules)
    except _BrokenFrames as error:
        closes = rules.api_version >= 3 and rules.release < _READS_LATER
        raise RefusedRecords(CORRUPT_MESSAGE, str(error), is_early=True, closes=closes) from None
    except ChecksumError:
        raise RefusedRecords(CORRUPT_MESSAGE, is_early=True) from None
    except ProtocolError as error:
        raise RefusedRecords(_damage(error, rules), is_early=not _is_compression(error)) from None
    except UnsupportedCodecError:
        raise RefusedRecords(UNKNOWN_SERVER_ERROR, is_early=rules.api_version < 7) from None


class _BrokenFrames(ProtocolError):
    """Bytes that cannot be divided into batches; the error message says why."""


def _damage(error: ProtocolError, rules: Rules) -> int:
    """Return the error code for bytes that cannot be decoded."""
    if not _is_compression(error):
        return CORRUPT_MESSAGE
    # 0.10 decoded LZ4 frames itself (KIP-57) and took them for corrupt messages.
    is_checked = 'lz4' in str(error) and (0, 10) <= rules.release < (0, 11)
    return CORRUPT_MESSAGE if is_checked else UNKNOWN_SERVER_ERROR


def _is_compression(error: ProtocolError) -> bool:
    """Return True if decompression failed, which brokers report as an unknown error."""
    # Only these errors name a codec; checking the codec beforehand would take another pass.
    return any(name in str(error) for name in ('gzip', 'snappy', 'lz4', 'zstd'))


# ---------------------------------------------------------------- magic 2


def _only_batch(data: bytes, rules: Rules) -> bytes:
    """Return the only batch that Produce v3 and later may have for a partition."""
    closes = rules.release < _READS_LATER  # decoding the request fails

    def refused(error: int) -> RefusedRecords:
        return RefusedRecords(error, is_early=True, closes=closes)

    size = _size_at(data, 0)
    if size and data[_MAGIC_AT] > 2:
        raise _BrokenFrames('Invalid magic found in record: %d' % data[_MAGIC_AT])
    if not size or data[_MAGIC_AT] < 2:
        raise refused(rules.invalid)
    if _size_at(data, size):
        raise refused(rules.invalid)
    if size > HEADER.size and data[ATTRIBUTES_POS + 1] & CODEC_MASK == CODEC_ZSTD:
        if rules.api_version < 7 and rules.release >= (2, 1):
            raise refused(UNSUPPORTED_COMPRESSION_TYPE)
    return data if size == len(data) else data[:size]


def _size_at(data: bytes, pos: int) -> int:
    """Return the size of the batch at a position, 0 if it is incomplete."""
    if len(data) - pos < 17:
        return 0
    try:
        size = entry_size(data, pos)
    except ProtocolError as error:
        raise _BrokenFrames(str(error)) from None
    if int.from_bytes(data[pos + 8 : pos + 12], 'big') < 14:
        raise _BrokenFrames('Found record size smaller than minimum record overhead (14).')
    return size


def _stored(data: bytes, rules: Rules) -> Iterator[Batch]:
    """Yield the batches to store for one batch of magic 2."""
    settings = rules.settings
    header = _checked_header(data, rules)
    with memoryview(data) as view:
        if crc32c(view[ATTRIBUTES_POS:]) != header.crc:
            raise ChecksumError('wrong CRC')
    if header.attributes & CONTROL_MASK:
        raise RefusedRecords(rules.invalid)
    is_wrong = header.last_offset_delta + 1 != header.record_count and rules.release >= (1, 0)
    if header.record_count <= 0 or is_wrong:
        raise RefusedRecords(rules.invalid)
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise RefusedRecords(rules.invalid)
    is_transactional = bool(header.attributes & TRANSACTIONAL_MASK)
    if is_transactional and header.producer_id < 0 and rules.release >= _READS_LATER:
        raise RefusedRecords(rules.invalid)
    batch = DefaultRecordBatch(data)
    codec = header.attributes & CODEC_MASK
    if codec == CODEC_ZSTD and rules.release < (2, 1):
        raise UnsupportedCodecError('no zstd before 2.1')
    stamps = _checked_stamps(batch, rules)
    _check_stamps(batch, stamps, rules)
    if settings.magic < 2:
        yield from _down(batch, list(batch), rules)
        return
    stamp = max(stamps)
    if settings.codec is not None and settings.codec != codec:
        data = _recompressed(batch, list(batch), settings.codec)
    if settings.has_append_time:
        data, stamp = _stamped(data, TIMESTAMP_TYPE_MASK, rules.now_ms), rules.now_ms
    elif batch.timestamp_type or stamp != header.max_timestamp:
        data = _stamped(data, 0, stamp)
    yield Batch(
        base_offset=0,
        last_offset=header.record_count - 1,
        max_timestamp=stamp,
        magic=2,
        data=data,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=is_transactional and header.producer_id >= 0,
    )


def _checked_header(data: bytes, rules: Rules) -> BatchHeader:
    """Check what brokers check before the CRC."""
    if len(data) < HEADER.size:
        raise ProtocolError('the header of a batch is cut off')
    header = BatchHeader._make(HEADER.unpack_from(data))
    if header.base_offset:
        raise RefusedRecords(rules.invalid)
    if len(data) > rules.settings.max_message_bytes:
        raise RefusedRecords(MESSAGE_TOO_LARGE, is_early=True)
    return header


def _checked_stamps(batch: DefaultRecordBatch, rules: Rules) -> List[int]:
    """Return the timestamps of the records, after a check of their count and offset order.

    On compacted topics all need a key. Brokers decode all records too, and correct the largest
    timestamp; this is done without an object for each record, which halves the time
    (benchmarks/broker.py).
    """
    stamps: List[int] = []
    missing: List[int] = []
    try:
        for offsets, timestamps, keys in batch.marks():
            first = len(stamps)
            stamps += timestamps
            if offsets != range(first, len(stamps)):
                raise RefusedRecords(rules.invalid)
            if rules.settings.is_compacted:
                found: Iterable[Optional[bytes]] = repeat(None, len(timestamps))
                pairs = enumerate(found if keys is None else keys, first)
                missing += [offset for offset, key in pairs if key is None]
    except ProtocolError as error:
        if _is_compression(error):
            raise
        raise RefusedRecords(rules.invalid) from None
    if missing:
        text = 'Compacted topic cannot accept message without key in topic partition %s-%d.'
        text %= rules.topic, rules.partition
        raise _refused_records(rules, rules.invalid, dict.fromkeys(missing, text))
    return stamps


def _check_stamps(batch: DefaultRecordBatch, stamps: Sequence[int], rules: Rules) -> None:
    """Check the timestamps if the topic limits them."""
    settings = rules.settings
    if batch.timestamp_type and rules.release < (3, 6):
        text = (
            'Invalid timestamp type in message. '
            'Producer should not set timestamp type to LogAppendTime.'
        )
        raise _refused_records(rules, INVALID_TIMESTAMP, dict.fromkeys(range(len(stamps)), text))
    earliest = rules.now_ms - settings.before_ms
    latest = rules.now_ms + settings.after_ms
    if settings.has_append_time:
        return
    if max(stamps) <= latest and min(stamps) >= earliest:
        return
    text = (
        'Timestamp %d of message with offset %d is out of range. '
        'The timestamp should be within [%d, %d]'
    )
    wrong = {
        index: text % (stamp, index, earliest, latest)
        for index, stamp in enumerate(stamps)
        if stamp >= 0 and not earliest <= stamp <= latest
    }
    if wrong:
        raise _refused_records(rules, INVALID_TIMESTAMP, wrong)


def _refused_records(rules: Rules, error: int, wrong: Dict[int, str]) -> RefusedRecords:
    if rules.release < (2, 4):
        return RefusedRecords(error)
    text = 'One or more records have been rejected due to %d record errors in total, and only ' % (
        len(wrong)
    )
    text += 'showing the first three errors at most: [%s]' % ', '.join(
        "RecordError(batchIndex=%d, message='%s')" % each
        for each in list(wrong.items())[:_NAMED_ERRORS]
    )
    return RefusedRecords(error, text, list(wrong.items()))


def _stamped(data: bytes, timestamp_type: int, max_timestamp: int) -> bytes:
    """Return a batch with another timestamp type and largest timestamp."""
    out = bytearray(data)
    out[ATTRIBUTES_POS + 1] = out[ATTRIBUTES_POS + 1] & ~TIMESTAMP_TYPE_MASK | timestamp_type
    _STAMP.pack_into(out, _MAX_TIMESTAMP_AT, max_timestamp)
    with memoryview(out) as view:
        crc = crc32c(view[ATTRIBUTES_POS:])
    _CRC.pack_into(out, _CRC_AT, crc)
    return bytes(out)


def _recompressed(batch: DefaultRecordBatch, records: Sequence[Record], codec: int) -> bytes:
    header = batch.header
    return _encoded(
        [(record.timestamp or 0, *record[2:]) for record in records],
        codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=bool(header.attributes & TRANSACTIONAL_MASK),
    )


def _encoded(fields: Sequence[RecordFields], codec: int, **settings: Any) -> bytes:
    """Encode a batch, uncompressed if the package of the codec is not installed."""
    try:
        return encode_batch(fields, codec=codec, **settings)
    except MissingCodecError:
        return encode_batch(fields, **settings)


def _down(batch: DefaultRecordBatch, records: Sequence[Record], rules: Rules) -> Iterator[Batch]:
    """Yield a batch of magic 2 in the older format of the topic."""
    if batch.producer_id >= 0:
        raise RefusedRecords(UNSUPPORTED_FOR_MESSAGE_FORMAT)
    if any(record.headers for record in records):
        raise RefusedRecords(UNKNOWN_SERVER_ERROR)
    yield from _as_set(records, batch.codec, rules)


# ---------------------------------------------------------------- magic 0 and 1


def _old_request(data: bytes, rules: Rules) -> List[Batch]:
    """Return the batches of a request before v3: message sets, from 0.11 on magic 2 too."""
    highest = 2 if rules.release >= (0, 11) else 1 if rules.release >= (0, 10) else 0
    pos, sizes = 0, []
    while True:
        size = _size_at(data, pos)
        if not size:
            break
        if data[pos + _MAGIC_AT] > highest and highest == 2:
            raise _BrokenFrames('Invalid magic found in record: %d' % data[pos + _MAGIC_AT])
        if size > rules.settings.max_message_bytes:
            raise RefusedRecords(MESSAGE_TOO_LARGE, is_early=True)
        sizes.append(size)
        pos += size
    if not sizes:
        return []
    data = data[:pos]
    if highest < 2 and _has_unknown_magic(data, sizes, highest):
        if not highest:
            # 0.8 and 0.9 check only the CRC, and store what cannot be decoded.
            return [Batch(0, len(sizes) - 1, -1, 0, data)]
        try:
            return _old_set(_as_magic_1(data, sizes), len(sizes), rules)
        except ProtocolError:
            raise RefusedRecords(UNKNOWN_SERVER_ERROR) from None
    if data[_MAGIC_AT] == 2:
        pieces = (data[end - size : end] for end, size in zip(accumulate(sizes), sizes))
        return list(chain.from_iterable(_stored(piece, rules) for piece in pieces))
    return _old_set(data, len(sizes), rules)


def _has_unknown_magic(data: bytes, sizes: Sequence[int], highest: int) -> bool:
    """Return True if a message has a newer magic. Raises ChecksumError if a CRC is wrong then."""
    starts = [end - size for end, size in zip(accumulate(sizes), sizes)]
    newer = [start for start in starts if data[start + _MAGIC_AT] > highest]
    if not newer:
        return False  # the decoder checks the CRC
    for start, size in zip(starts, sizes):
        crc = int.from_bytes(data[start + 12 : start + 16], 'big')
        if size < 18 or crc32(data[start + 16 : start + size]) != crc:
            raise ChecksumError('wrong CRC')
    if any(data[start + 17] & CODEC_MASK for start in newer):
        raise ProtocolError('a wrapper of another magic')
    return True


def _as_magic_1(data: bytes, sizes: Sequence[int]) -> bytes:
    """Return messages with newer magics rewritten to magic 1, as 0.10 does."""
    out, pos = bytearray(data), 0
    for size in sizes:
        out[pos + _MAGIC_AT] = min(1, out[pos + _MAGIC_AT])
        _CRC.pack_into(out, pos + 12, crc32(out[pos + 16 : pos + size]))
        pos += size
    return bytes(out)


def _old_set(data: bytes, entries: int, rules: Rules) -> List[Batch]:
    """Return a message set in the format of the topic."""
    settings = rules.settings
    batches: List[LegacyRecordBatch] = []
    for batch in MemoryRecords(data, check_inner_crcs=True):
        if not isinstance(batch, LegacyRecordBatch):
            raise ProtocolError('a batch of magic 2 in a message set')
        _check_codec(batch, data, rules)
        batches.append(batch)
    per_batch = [list(batch) for batch in batches]
    codecs = [batch.codec for batch in batches if batch.codec]
    codec = codecs[-1] if codecs else 0
    records = list(chain.from_iterable(per_batch))
    if not records:
        raise ProtocolError('an empty wrapper')
    _check_old(batches, records, rules)
    wanted = codec if settings.codec is None else settings.codec
    if settings.magic == 2:
        return _up(records, wanted, rules)
    stays = (
        wanted == codec
        and {batch.magic for batch in batches} == {settings.magic}
        and not (settings.has_append_time and settings.magic)
        and (not codec or (entries == 1 and _counts_up(batches[0], records)))
    )
    if not stays:
        return list(_as_set(records, wanted, rules))
    if codec:
        return [_piece(data, records, settings.magic)]
    pieces, pos = [], 0
    for batch, part in zip(batches, per_batch):
        pieces.append(_piece(data[pos : batch.end], part, settings.magic))
        pos = batch.end
    return pieces


def _check_codec(batch: LegacyRecordBatch, data: bytes, rules: Rules) -> None:
    """Refuse LZ4 if the release does: before 0.8.2, and before 0.10 with a right checksum."""
    if batch.codec != CODEC_LZ4 or rules.release >= (0, 10):
        return
    if rules.release < (0, 8, 2):
        raise UnsupportedCodecError('no LZ4 before 0.8.2')
    entry = data[: batch.end][-batch.size_in_bytes :]
    try:
        read_header(decode_message(entry[message_sets.HEAD_BYTES :]).value or b'')
    except ProtocolError:
        return
    raise UnsupportedCodecError('LZ4 with the right header checksum (KIP-57)')


def _counts_up(wrapper: LegacyRecordBatch, records: Sequence[Record]) -> bool:
    """Return True if the offsets in a wrapper are valid; those of magic 0 are always rewritten."""
    first = records[0].offset
    return not wrapper.magic or [record.offset for record in records] == list(
        range(first, first + len(records))
    )


def _check_old(
    batches: Sequence[LegacyRecordBatch], records: Sequence[Record], rules: Rules
) -> None:
    settings = rules.settings
    if settings.is_compacted and any(record.key is None for record in records):
        raise RefusedRecords(rules.invalid)
    if not settings.magic:
        return
    if any(batch.timestamp_type for batch in batches) and rules.release < (3, 6):
        raise RefusedRecords(INVALID_TIMESTAMP)
    if settings.has_append_time:
        return
    for record in records:
        stamp = -1 if record.timestamp is None else record.timestamp
        if stamp >= 0 or rules.release < (0, 11):  # 0.10 also checked missing timestamps
            if not -settings.before_ms <= stamp - rules.now_ms <= settings.after_ms:
                raise RefusedRecords(INVALID_TIMESTAMP)


def _up(records: Sequence[Record], codec: int, rules: Rules) -> List[Batch]:
    """Return a message set as one batch of magic 2."""
    fields = [
        (-1 if each.timestamp is None else each.timestamp, each.key, each.value, ())
        for each in records
    ]
    batch = _encoded(fields, codec)
    if len(batch) > rules.settings.max_message_bytes:
        raise RefusedRecords(MESSAGE_TOO_LARGE, is_early=True)
    stamp = HEADER.unpack_from(batch)[8]
    if rules.settings.has_append_time:
        batch, stamp = _stamped(batch, TIMESTAMP_TYPE_MASK, rules.now_ms), rules.now_ms
    return [Batch(0, len(records) - 1, stamp, 2, batch)]


def _as_set(records: Sequence[Record], codec: int, rules: Rules) -> Iterator[Batch]:
    """Yield records as a set of magic 0 or 1, the format of the topic."""
    settings = rules.settings
    append_time = rules.now_ms if settings.has_append_time and settings.magic else None
    fields: List[MessageFields] = [
        (offset, each.timestamp, each.key, each.value) for offset, each in enumerate(records)
    ]
    stamp = max(-1 if field[1] is None else field[1] for field in fields)
    if append_time is None:
        data = message_sets.encoded(fields, settings.magic, codec, 0)
    else:
        stamp = append_time
        data = message_sets.with_append_time(fields, codec, append_time)
    yield Batch(0, len(fields) - 1, stamp if settings.magic else -1, settings.magic, data)


def _piece(data: bytes, records: Sequence[Record], magic: int) -> Batch:
    stamps = (-1 if each.timestamp is None else each.timestamp for each in records)
    return Batch(0, len(records) - 1, max(stamps) if magic else -1, magic, data)
