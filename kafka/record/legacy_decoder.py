"""
A decoder of message sets of magic 0 and 1, which decodes a thousand messages at a time.

It decodes bytes into the columns of :mod:`kafka.record.legacy_run`, and the content of wrappers;
the batch interface and the encoders are in :mod:`kafka.record.legacy_records`.

An entry is ``offset, size, message``, a message is ``crc, magic, attributes, timestamp (magic
1), key length, key, value length, value``; all numbers have a fixed width and are big-endian.
"""

from __future__ import annotations

import struct
from collections import deque
from itertools import accumulate, repeat
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union
from zlib import crc32

from kafka import codec as codecs
from kafka.errors import ChecksumError, ProtocolError
from kafka.record.formats import formats
from kafka.record.legacy_run import MIN_MESSAGE_BYTES, LegacyMessage, Run
from kafka.record.util import Buffer

CODEC_MASK = 0x07
#: Nested wrappers: one level is normal, 0.8 brokers allowed deeper nesting.
MAX_NESTING = 3
#: The maximum number of plain messages that are read at a time.
RUN_MESSAGES = 1000

_INT32_AT = struct.Struct('>i').unpack_from
_INT64_AT = struct.Struct('>q').unpack_from
_ENTRY_AT = struct.Struct('>qi').unpack_from
_HEAD_AT = struct.Struct('>qiI').unpack_from
# From the offset to the length of the key, by magic; an empty field replaces the timestamp.
_AHEAD = (struct.Struct('>qiIH0si'), struct.Struct('>qiIHqi'))
# The same without offset and CRC, and in magic 0 without a field for the timestamp.
_TRUSTED_AHEAD = (struct.Struct('>8xi4xHi'), struct.Struct('>8xi4xHqi'))
# From the offset to the length of a null key and the length of the value after it, by magic.
_HEADS = (struct.Struct('>qiIHii'), struct.Struct('>qiIHqii'))


def entry_size(buf: Buffer, pos: int) -> int:
    """
    Return the size of the entry at ``pos`` including its first 12 bytes, 0 if the buffer ends in
    it.

    Raises ``ProtocolError`` for a negative size.
    """
    if pos + 12 > len(buf):
        return 0
    offset, size = _ENTRY_AT(buf, pos)
    if size < 0:
        raise ProtocolError('a message of %d bytes at offset %d' % (size, offset))
    return 12 + int(size) if pos + 12 + size <= len(buf) else 0


def is_plain(buf: Buffer, pos: int, size: int) -> bool:
    """Return True if the entry at ``pos`` is a message of magic 0 or 1 without codec."""
    return size >= 18 and buf[pos + 16] < 2 and not buf[pos + 17] & CODEC_MASK


def decode_message(data: Buffer, offset: int = -1, check: bool = True) -> LegacyMessage:
    """
    Decode one message (without the offset and size before it); a wrapper is not decompressed.

    ``offset`` is that of the result. The CRC is verified before anything else, unless ``check`` is
    False. Raises ``ChecksumError``, and ``ProtocolError`` if the fields contradict the size.
    """
    message = bytes(data)
    if len(message) < 4:
        raise ProtocolError('a message of %d bytes is too short' % len(message))
    if check and int.from_bytes(message[:4], 'big') != crc32(message[4:]):
        raise ChecksumError('wrong CRC in the message at offset %d' % offset)
    magic = message[4] if len(message) > 4 else -1
    if magic not in (0, 1) or len(message) < MIN_MESSAGE_BYTES[magic]:
        raise ProtocolError(
            'a message of magic %d and %d bytes at offset %d' % (magic, len(message), offset)
        )
    timestamp = _INT64_AT(message, 6)[0] if magic else None
    key, pos = _field(message, 14 if magic else 6)
    value, pos = _field(message, pos)
    if pos != len(message):
        raise ProtocolError('the size of the message at offset %d is wrong' % offset)
    return LegacyMessage(offset, magic, message[5], timestamp, key, value)


def _field(message: bytes, pos: int) -> Tuple[Optional[bytes], int]:
    start = pos + 4
    if start > len(message):
        raise ProtocolError('a message ends before its last field')
    (size,) = _INT32_AT(message, pos)
    if size == -1:
        return None, start
    if size < 0 or start + size > len(message):
        raise ProtocolError('a field of %d bytes does not fit into its message' % size)
    return message[start : start + size], start + size


def read_run(buf: bytes, pos: int, check: bool = True) -> Run:
    """
    Read the run of plain messages that starts at ``pos``; ``check`` False skips their CRCs.

    It ends before the first entry that is incomplete, invalid, a wrapper, or has other attributes.
    """
    run = Run(buf, pos)
    kind = buf[pos + 16 : pos + 18]
    while True:
        if check:
            _read_steps(buf, run, _walk_null_keys)
            _read_steps(buf, run, _walk_keys)
        else:
            _read_trusted(buf, run)
        _read_slices(buf, run, check)
        try:
            size = entry_size(buf, run.end)
            if (
                not size
                or len(run.values) == RUN_MESSAGES
                or (size >= 18 and buf[run.end + 16 : run.end + 18] != kind)
            ):
                return run
            offset = _INT64_AT(buf, run.end)[0]
            message = decode_message(buf[run.end + 12 : run.end + size], offset, check)
        except (ChecksumError, ProtocolError) as error:
            run.error = error
            return run
        run.add_offsets([message.offset])
        run.keys.append(message.key)
        run.values.append(message.value)
        if message.timestamp is not None:
            run.timestamps.append(message.timestamp)
        run.end += size


class _Steps(Dict[int, Tuple[Any, Optional[int], int]]):
    """
    Map the size of a message to a function, the length of its value, and the size of its entry.

    The function reads the rest of a message and the first numbers of the next entry, including
    offset and CRC unless ``trusted``. Without key it begins after the CRC, otherwise after the
    key's length. An impossible size is mapped to a format that never fits, with the length None.
    """

    def __init__(self, magic: int, key_size: Optional[int] = None, trusted: bool = False) -> None:
        self.fixed = MIN_MESSAGE_BYTES[magic] + (key_size or 0)
        ahead = (_TRUSTED_AHEAD if trusted else _AHEAD)[magic].format[1:]
        if key_size is None:
            self.after = '8xi4x' if trusted else 'qiI'
            self.before = '>%si' % ahead[len(self.after) :]
        else:
            self.before, self.after = '>%dsi' % key_size, ahead
        self.never = (struct.Struct('%s0s%s' % (self.before, self.after)).unpack_from, None, 0)

    def __missing__(self, size: int) -> Tuple[Any, Optional[int], int]:
        value = size - self.fixed
        if not 0 <= value <= 1024 or not formats.take():
            return self.never
        unpack = struct.Struct('%s%ds%s' % (self.before, value, self.after)).unpack_from
        step = self[size] = (unpack, value, size + 12)
        return step


class _StepsByKey(Dict[int, _Steps]):
    """Map the length of the key to :class:`_Steps`; those of lengths out of range never fit."""

    def __init__(self, magic: int, trusted: bool = False) -> None:
        self.magic, self.trusted = magic, trusted

    def __missing__(self, key_size: int) -> _Steps:
        steps = _Steps(self.magic, max(0, min(key_size, 255)), self.trusted)
        if -1 <= key_size <= 255:
            self[key_size] = steps
        else:
            steps.fixed = 1 << 40
        return steps


_NULL_KEY_STEPS = (_Steps(0), _Steps(1))
_STEPS = (_StepsByKey(0), _StepsByKey(1))
_TRUSTED_NULL_KEY_STEPS = (_Steps(0, trusted=True), _Steps(1, trusted=True))
_TRUSTED_STEPS = (_StepsByKey(0, trusted=True), _StepsByKey(1, trusted=True))
formats.forgetters.extend(
    steps.clear for steps in (*_NULL_KEY_STEPS, *_STEPS, *_TRUSTED_NULL_KEY_STEPS, *_TRUSTED_STEPS)
)

# 16 bytes that replace the first bytes of an entry: the CRC of the message before, little-endian,
# and twelve that bring CRC-32 from there (its residue) back to its initial value.
_REWIND = struct.Struct('<I12s').pack_into
_REWIND_TAIL = b'\x00\x00\x00\x00\x00\x00\x00\x00\xf2\xcc\x0c\x16'


def _crcs_agree(buf: bytes, start: int, end: int, places: List[int], crcs: List[int]) -> bool:
    """
    Verify the CRCs of all entries between ``start`` and ``end`` at a time.

    A call of zlib for each short message costs far more than the CRC of the same bytes in one
    block. So the entries' first bytes are overwritten in a copy, each with 16 bytes after which the
    CRC has its initial value if that of the message before is right; then one call verifies all. A
    corrupt message is detected as reliably as by itself, since only a second corrupt one after it
    could compensate (one case in 2 ** 32).
    ``places`` are positions at equal distance from the beginning of each entry.
    """
    with memoryview(buf) as view:
        copy = bytearray(view[start + 16 : end])
    heads = map((-16 - places[0]).__add__, places[1:])
    deque(map(_REWIND, repeat(copy), heads, crcs, repeat(_REWIND_TAIL)), maxlen=0)
    return crc32(copy) == crcs[-1]


def _read_steps(buf: bytes, run: Run, walk: Any) -> None:
    """
    Append messages to a run with prepared formats, which ``walk`` chooses.

    One call reads the rest of a message and the first numbers of the next one; benchmark:
    benchmarks/decode.py. If a CRC is wrong nothing is appended: another method finds the message.
    """
    before, start = len(run.values), run.end
    offsets: List[int] = []
    places: List[int] = []
    crcs: List[int] = []
    formats.allow(RUN_MESSAGES)
    walk(buf, run, offsets, places, crcs)
    if not crcs or _crcs_agree(buf, start, run.end, places, crcs):
        run.add_offsets(offsets)
        return
    run.end = start
    for column in (run.timestamps, run.keys, run.values):
        del column[before:]


def _walk_null_keys(
    buf: bytes, run: Run, offsets: List[int], places: List[int], crcs: List[int]
) -> None:
    """
    Append messages up to one with a key, no value, a long one, or contradictory numbers.

    Their offsets are added to ``offsets``; ``places`` and ``crcs`` get the values to verify.
    """
    add_offset, add_time, add_value = offsets.append, run.timestamps.append, run.values.append
    add_place, add_crc = places.append, crcs.append
    magic, wanted = run.magic, run.magic << 8 | run.attributes
    steps = _NULL_KEY_STEPS[magic]
    pos = run.end + 16
    try:
        offset, size, crc = _HEAD_AT(buf, run.end)
        for _ in range(RUN_MESSAGES - len(run.values)):
            unpack, right, whole = steps[size]
            this, that = offset, crc
            kind, time, key_size, length, value, offset, size, crc = unpack(buf, pos)
            if length != right or key_size != -1 or kind != wanted:
                break
            if magic:
                add_time(time)
            add_offset(this)
            add_value(value)
            add_crc(that)
            add_place(pos)
            pos += whole
    except struct.error:  # the buffer ends after this message
        pass
    run.end = pos - 16
    run.keys += [None] * len(offsets)


def _walk_keys(
    buf: bytes, run: Run, offsets: List[int], places: List[int], crcs: List[int]
) -> None:
    """Append messages up to one with a long key, no value, a long one, or contradictory numbers."""
    add_offset, add_time = offsets.append, run.timestamps.append
    add_key, add_value = run.keys.append, run.values.append
    add_place, add_crc = places.append, crcs.append
    magic, wanted = run.magic, run.magic << 8 | run.attributes
    by_key, head = _STEPS[magic], _AHEAD[magic]
    pos = run.end + head.size
    try:
        offset, size, crc, kind, time, key_size = head.unpack_from(buf, run.end)
        same, steps = key_size, by_key[key_size]
        for _ in range(RUN_MESSAGES - len(run.values)):
            if key_size != same:
                same, steps = key_size, by_key[key_size]
            if kind != wanted:
                break
            unpack, right, whole = steps[size]
            this, that, then = offset, crc, time
            key, length, value, offset, size, crc, kind, time, key_size = unpack(buf, pos)
            if length != right:
                break
            if magic:
                add_time(then)
            add_offset(this)
            add_key(key if same != -1 else None)
            add_value(value)
            add_crc(that)
            add_place(pos)
            pos += whole
    except struct.error:  # the buffer ends after this message
        pass
    run.end = pos - head.size


def _read_trusted(buf: bytes, run: Run) -> None:
    """
    Append messages as :func:`_read_steps` does if another CRC covers the bytes.

    There are fewer steps per message, and all offsets follow from the first and the last if there
    are no gaps.
    """
    start, before = run.end, len(run.values)
    formats.allow(RUN_MESSAGES)
    _trust_null_keys(buf, run)
    _trust_keys(buf, run)
    count = len(run.values) - before
    if not count:
        return
    fixed = 12 + MIN_MESSAGE_BYTES[run.magic]
    last = run.end - fixed - len(run.keys[-1] or b'') - len(run.values[-1] or b'')
    first, behind = int(_INT64_AT(buf, start)[0]), int(_INT64_AT(buf, last)[0]) + 1
    if behind - first == count:
        run.add_offsets(range(first, behind))
        return
    fields = zip(run.keys[before:], run.values[before:])
    sizes = (fixed + len(key or b'') + len(value or b'') for key, value in fields)
    places = list(accumulate(sizes, initial=start))[:count]
    run.add_offsets([_INT64_AT(buf, place)[0] for place in places])


def _trust_null_keys(buf: bytes, run: Run) -> None:
    """Do the same as :func:`_walk_null_keys`, except for offsets and CRCs."""
    times, values = run.timestamps, run.values
    magic, wanted = run.magic, run.magic << 8 | run.attributes
    steps = _TRUSTED_NULL_KEY_STEPS[magic]
    pos = run.end + 16
    try:
        size = _ENTRY_AT(buf, run.end)[1]
        if magic:
            for _ in repeat(None, RUN_MESSAGES - len(values)):
                unpack, right, whole = steps[size]
                kind, time, key_size, length, value, size = unpack(buf, pos)
                if length != right or key_size != -1 or kind != wanted:
                    break
                times.append(time)
                values.append(value)
                pos += whole
        else:
            for _ in repeat(None, RUN_MESSAGES - len(values)):
                unpack, right, whole = steps[size]
                kind, key_size, length, value, size = unpack(buf, pos)
                if length != right or key_size != -1 or kind != wanted:
                    break
                values.append(value)
                pos += whole
    except struct.error:  # the buffer ends after this message
        pass
    run.end = pos - 16
    run.keys += [None] * (len(values) - len(run.keys))


def _trust_keys(buf: bytes, run: Run) -> None:
    """Do the same as :func:`_walk_keys`, except for offsets and CRCs."""
    times, keys, values = run.timestamps, run.keys, run.values
    magic, wanted = run.magic, run.magic << 8 | run.attributes
    by_key, head = _TRUSTED_STEPS[magic], _TRUSTED_AHEAD[magic]
    pos = run.end + head.size
    try:
        size, kind, *maybe, key_size = head.unpack_from(buf, run.end)
        same, steps = key_size, by_key[key_size]
        if magic:
            time = maybe[0]
            for _ in repeat(None, RUN_MESSAGES - len(values)):
                if key_size != same:
                    same, steps = key_size, by_key[key_size]
                if kind != wanted:
                    break
                then = time
                unpack, right, whole = steps[size]
                key, length, value, size, kind, time, key_size = unpack(buf, pos)
                if length != right:
                    break
                times.append(then)
                keys.append(key if same != -1 else None)
                values.append(value)
                pos += whole
        else:
            for _ in repeat(None, RUN_MESSAGES - len(values)):
                if key_size != same:
                    same, steps = key_size, by_key[key_size]
                if kind != wanted:
                    break
                unpack, right, whole = steps[size]
                key, length, value, size, kind, key_size = unpack(buf, pos)
                if length != right:
                    break
                keys.append(key if same != -1 else None)
                values.append(value)
                pos += whole
    except struct.error:  # the buffer ends after this message
        pass
    run.end = pos - head.size


def _read_slices(buf: bytes, run: Run, check: bool) -> None:
    """
    Append messages to a run up to an unusual one (a null value, anything invalid).

    One call reads all numbers of a message without key. Benchmark: benchmarks/decode.py.
    """
    offsets: List[int] = []
    add_offset, add_time = offsets.append, run.timestamps.append
    add_key, add_value = run.keys.append, run.values.append
    magic, wanted = run.magic, run.magic << 8 | run.attributes
    head = _HEADS[magic]
    unpack, fixed, least = head.unpack_from, head.size, head.size - 12
    pos = run.end
    last = len(buf) - fixed
    for _ in range(RUN_MESSAGES - len(run.values)):
        if pos > last:
            break
        if magic:
            offset, size, crc, kind, time, key_size, value_size = unpack(buf, pos)
        else:
            offset, size, crc, kind, key_size, value_size = unpack(buf, pos)
        end = pos + 12 + size
        if check and crc32(buf[pos + 16 : end]) != crc:
            break
        if kind != wanted or size < least:
            break
        start = pos + fixed
        key = None
        if key_size != -1:
            start += key_size
            if not fixed <= start - pos <= size + 12:
                break
            key = buf[pos + fixed - 4 : start - 4]
            (value_size,) = _INT32_AT(buf, start - 4)
        if end - start != value_size:
            break
        add_offset(offset)
        add_key(key)
        add_value(buf[start:end])
        if magic:
            add_time(time)
        pos = end
    run.end = pos
    run.add_offsets(offsets)


def read_entries(buf: bytes, pos: int = 0) -> Iterator[Union[Run, LegacyMessage]]:
    """
    Yield wrappers and runs of plain messages; end where the buffer ends inside an entry.

    Raises ``ChecksumError`` and ``ProtocolError`` when the invalid message is reached.
    """
    while True:
        size = entry_size(buf, pos)
        if not size:
            return
        if is_plain(buf, pos, size):
            run = read_run(buf, pos)
            if run.offsets:
                yield run
            if run.error:
                raise run.error
            pos = run.end
        else:
            yield decode_message(buf[pos + 12 : pos + size], _INT64_AT(buf, pos)[0])
            pos += size


def unwrap(
    wrapper: LegacyMessage, limit: int, check: bool = True, depth: int = MAX_NESTING
) -> Iterator[Run]:
    """
    Yield the content of a wrapper, with offsets as stored, including that of nested wrappers.

    ``limit`` is the maximum decompressed size in bytes of all levels together. ``check`` False
    skips the CRCs of the content; that of the wrapper covers the same bytes. Raises
    ``ChecksumError``, ``ProtocolError`` and ``UnsupportedCodecError``.
    """
    where = 'the wrapper at offset %d' % wrapper.offset
    if not depth:
        raise ProtocolError('%s is nested too deeply' % where)
    if wrapper.value is None:
        raise ProtocolError('%s has no value' % where)
    codec = wrapper.attributes & CODEC_MASK
    data = codecs.decompress(codec, wrapper.value, wrapper.magic, limit)
    limit -= len(data)
    pos = 0
    while pos < len(data):
        size = entry_size(data, pos)
        if not size:
            raise ProtocolError('the set inside %s is truncated' % where)
        if is_plain(data, pos, size):
            run = read_run(data, pos, check)
            if run.magic != wrapper.magic:
                raise ProtocolError('%s contains messages of another magic' % where)
            if run.offsets:
                yield run
            if run.error:
                raise run.error
            pos = run.end
        else:
            offset = _INT64_AT(data, pos)[0]
            message = decode_message(data[pos + 12 : pos + size], offset, check)
            if message.magic != wrapper.magic:
                raise ProtocolError('%s contains messages of another magic' % where)
            for inner in unwrap(message, limit, check, depth - 1):
                limit -= sum(map(len, filter(None, inner.values)))
                yield inner
            pos += size
