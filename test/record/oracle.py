"""
The record formats, read and written in the most obvious way: the oracle of the fast code.

One byte, one field, one record at a time, in the order of the Kafka protocol guide. Nothing here is
imported from ``kafka`` and nothing is compressed. Whatever is malformed raises ``Malformed``.
"""

from __future__ import annotations

import zlib
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple


class Malformed(Exception):
    """The bytes are no record batch or message set."""


class R(NamedTuple):
    """A record: offset, timestamp, key, value, headers as a tuple of pairs."""

    offset: int
    timestamp: Optional[int]
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Tuple[Tuple[str, Optional[bytes]], ...] = ()


def crc32c(data: bytes) -> int:
    """Divide bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


class Reader:
    """A position in bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.pos = 0

    def left(self) -> int:
        return len(self.data) - self.pos

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.left():
            raise Malformed('%d bytes wanted, %d left' % (size, self.left()))
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def int(self, width: int) -> int:
        return int.from_bytes(self.take(width), 'big', signed=True)

    def varint(self, bits: int) -> int:
        total = 0
        for shift in range(0, bits + 6, 7):
            byte = self.take(1)[0]
            total += (byte % 128) * 2**shift
            if byte < 128:
                if total >= 2**bits:
                    raise Malformed('varint too large')
                return total // 2 if total % 2 == 0 else -(total + 1) // 2
        raise Malformed('varint too long')

    def sized(self) -> Optional[bytes]:
        size = self.varint(32)
        return None if size < 0 else self.take(size)

    def sized32(self) -> Optional[bytes]:
        size = self.int(4)
        return None if size == -1 else self.take(size)


def int_bytes(value: int, width: int) -> bytes:
    return value.to_bytes(width, 'big', signed=True)


def varint_bytes(value: int) -> bytes:
    value = value * 2 if value >= 0 else -value * 2 - 1
    out = b''
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def sized_bytes(field: Optional[bytes]) -> bytes:
    return varint_bytes(-1) if field is None else varint_bytes(len(field)) + field


def sized32_bytes(field: Optional[bytes]) -> bytes:
    return int_bytes(-1, 4) if field is None else int_bytes(len(field), 4) + field


# --- magic 2


def write_record(record: R, base_offset: int, base_timestamp: int) -> bytes:
    assert record.timestamp is not None
    body = b'\x00'
    body += varint_bytes(record.timestamp - base_timestamp)
    body += varint_bytes(record.offset - base_offset)
    body += sized_bytes(record.key)
    body += sized_bytes(record.value)
    body += varint_bytes(len(record.headers))
    for name, content in record.headers:
        body += sized_bytes(name.encode('utf-8')) + sized_bytes(content)
    return varint_bytes(len(body)) + body


def write_batch(
    records: Sequence[R],
    *,
    payload: Optional[bytes] = None,
    attributes: int = 0,
    base_offset: Optional[int] = None,
    base_timestamp: Optional[int] = None,
    max_timestamp: Optional[int] = None,
    last_offset: Optional[int] = None,
    leader_epoch: int = -1,
    producer: Tuple[int, int, int] = (-1, -1, -1),
    count: Optional[int] = None,
) -> bytes:
    """Write a batch; what is not given follows from the records."""
    stamps: List[Any] = [record.timestamp for record in records] or [-1]
    base_offset = records[0].offset if base_offset is None else base_offset
    base_timestamp = stamps[0] if base_timestamp is None else base_timestamp
    last_offset = records[-1].offset if last_offset is None else last_offset
    if payload is None:
        payload = b''.join(write_record(r, base_offset, base_timestamp) for r in records)
    checked = (
        int_bytes(attributes, 2)
        + int_bytes(last_offset - base_offset, 4)
        + int_bytes(base_timestamp, 8)
        + int_bytes(max(stamps) if max_timestamp is None else max_timestamp, 8)
        + int_bytes(producer[0], 8)
        + int_bytes(producer[1], 2)
        + int_bytes(producer[2], 4)
        + int_bytes(len(records) if count is None else count, 4)
        + payload
    )
    rest = int_bytes(leader_epoch, 4) + b'\x02' + crc32c(checked).to_bytes(4, 'big') + checked
    return int_bytes(base_offset, 8) + int_bytes(len(rest), 4) + rest


def read_batch(data: bytes) -> List[R]:
    """Read the records of exactly one batch that is not compressed."""
    outer = Reader(data)
    base_offset = outer.int(8)
    reader = Reader(outer.take(outer.int(4)))
    if outer.left():
        raise Malformed('more than one batch')
    reader.take(4)  # leader epoch
    if reader.take(1) != b'\x02':
        raise Malformed('magic')
    crc = int.from_bytes(reader.take(4), 'big')
    if crc32c(reader.data[reader.pos :]) != crc:
        raise Malformed('CRC')
    attributes = reader.int(2)
    reader.take(4)  # last offset delta
    base_timestamp, max_timestamp = reader.int(8), reader.int(8)
    reader.take(14)  # producer
    count = reader.int(4)
    if count < 0 or attributes & 7:
        raise Malformed('count or codec')
    records = [
        read_record(reader, base_offset, base_timestamp, max_timestamp if attributes & 8 else None)
        for _ in range(count)
    ]
    if reader.left():
        raise Malformed('bytes behind the last record')
    return records


def read_record(
    outer: Reader, base_offset: int, base_timestamp: int, append_time: Optional[int]
) -> R:
    reader = Reader(outer.take(outer.varint(32)))
    reader.take(1)  # attributes
    timestamp = base_timestamp + reader.varint(64)
    offset = base_offset + reader.varint(32)
    key = reader.sized()
    value = reader.sized()
    count = reader.varint(32)
    if count < 0 or count > reader.left():
        raise Malformed('header count')
    headers = []
    for _ in range(count):
        name, content = reader.sized(), reader.sized()
        if name is None:
            raise Malformed('header without name')
        headers.append((name.decode('utf-8', 'replace'), content))
    if reader.left():
        raise Malformed('bytes behind the headers')
    stamp = timestamp if append_time is None else append_time
    return R(offset, stamp, key, value, tuple(headers))


# --- magic 0 and 1


def write_message(
    key: Optional[bytes],
    value: Optional[bytes],
    magic: int,
    attributes: int = 0,
    timestamp: Optional[int] = None,
) -> bytes:
    body = bytes([magic, attributes])
    if magic:
        body += int_bytes(-1 if timestamp is None else timestamp, 8)
    body += sized32_bytes(key) + sized32_bytes(value)
    return zlib.crc32(body).to_bytes(4, 'big') + body


def write_entry(offset: int, message: bytes) -> bytes:
    return int_bytes(offset, 8) + int_bytes(len(message), 4) + message


def write_set(records: Sequence[R], magic: int, attributes: int = 0) -> bytes:
    return b''.join(
        write_entry(r.offset, write_message(r.key, r.value, magic, attributes, r.timestamp))
        for r in records
    )


def read_set(data: bytes) -> Tuple[List[R], bool]:
    """Read a set of plain messages; also tell whether it ends inside an entry."""
    reader = Reader(data)
    records = []
    while reader.left() >= 12:
        offset, size = reader.int(8), reader.int(4)
        if size < 0:
            raise Malformed('size')
        if size > reader.left():
            return records, True
        message = Reader(reader.take(size))
        crc = int.from_bytes(message.take(4), 'big')
        if crc != zlib.crc32(message.data[4:]):
            raise Malformed('CRC')
        magic, attributes = message.take(1)[0], message.take(1)[0]
        if magic > 1 or attributes & 7:
            raise Malformed('magic or codec')
        timestamp = message.int(8) if magic else None
        record = R(offset, timestamp, message.sized32(), message.sized32())
        if message.left():
            raise Malformed('bytes behind the value')
        records.append(record)
    return records, reader.left() > 0
