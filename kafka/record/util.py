"""
Variable-length integers of the record format (zigzag, little-endian, seven bits per byte).

Functions, and the tables that the batch encoder and decoder use instead of calling them. The Kafka
protocol guide calls the types VARINT (32 bits) and VARLONG (64 bits).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple, Union, overload
from zlib import crc32 as calc_crc32

from kafka.errors import ProtocolError
from kafka.internals.lazy_imports import look_up

__all__ = [
    'Buffer',
    'VARINTS',
    'VarintTable',
    'calc_crc32',
    'decode_varint',
    'encode_varint',
    'size_of_varint',
]

Buffer = Union[bytes, bytearray, memoryview]

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10


@overload
def encode_varint(value: int) -> bytes: ...


@overload
def encode_varint(value: int, write: Callable[[int], Any]) -> int: ...


def encode_varint(value: int, write: Optional[Callable[[int], Any]] = None) -> Union[bytes, int]:
    """
    Encode a signed integer of up to 64 bits as zigzag varint.

    Returns 1 to 10 bytes; values of 32 bits need at most 5. ``write`` (1.4) is called with one byte
    after the other, and their number is returned. Raises ``ProtocolError`` for an integer outside
    the signed 64-bit range.
    """
    if not -(1 << 63) <= value < 1 << 63:
        raise ProtocolError('%d exceeds a 64-bit varint' % value)
    rest = value << 1 if value >= 0 else (~value << 1) | 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    if write is None:
        return bytes(out)
    for byte in out:
        write(byte)
    return len(out)


def decode_varint(
    buffer: Buffer, pos: int = 0, max_bytes: int = MAX_VARLONG_BYTES
) -> Tuple[int, int]:
    """
    Decode one zigzag varint.

    ``max_bytes`` is 5 for a VARINT and 10 for a VARLONG. Returns the value and the position after
    it. Raises ``ProtocolError`` if the buffer ends inside the number or the number is too long.
    """
    rest = 0
    shift = 0
    try:
        while True:
            byte = buffer[pos]
            pos += 1
            rest |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= 7 * max_bytes:
                raise ProtocolError('varint at byte %d is longer than %d bytes' % (pos, max_bytes))
    except IndexError:
        raise ProtocolError('the bytes end inside a varint at byte %d' % pos) from None
    if rest >> (64 if max_bytes > MAX_VARINT_BYTES else 32):
        raise ProtocolError('varint before byte %d is out of range' % pos)
    return (rest >> 1) ^ -(rest & 1), pos


def size_of_varint(value: int) -> int:
    """Return the size of :func:`encode_varint` for ``value`` in bytes."""
    return len(encode_varint(value))


class VarintTable(Dict[int, bytes]):
    """
    Map integers to their varints, filled on demand.

    At most ``LIMIT`` entries are kept, so unusual lengths cannot make it grow without bound.
    """

    LIMIT = 1 << 16

    def __missing__(self, value: int) -> bytes:
        encoded = encode_varint(value)
        if len(self) < self.LIMIT:
            self[value] = encoded
        return encoded


VARINTS = VarintTable()


def __getattr__(name: str) -> Any:
    """Return the names of 1.4 that are defined elsewhere."""
    return look_up(globals(), name, {'calc_crc32c': 'kafka.record.crc32c'})
