"""
CRC-32C (Castagnoli), the checksum of record batches of magic 2.

An installed package (``crc32c`` or ``google-crc32c``, searched for when the first checksum is
needed) is used, or :func:`crc32c_by_lanes`, which only needs the standard library.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, List, Tuple

from kafka.internals.lazy_imports import import_late
from kafka.record.util import Buffer

_POLYNOMIAL = 0x82F63B78
_MASK = 0xFFFFFFFF
# Size of a lane: larger ones mean fewer lanes to join but shorter vectors.
_LANE = 32


def _byte_table() -> List[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _byte_table()


def _planes(table: List[int]) -> List[bytes]:
    """Part a table of 32-bit numbers into four tables of bytes, low byte first."""
    return [bytes(value >> shift & 0xFF for value in table) for shift in (0, 8, 16, 24)]


def _advance(register: int, data: bytes) -> int:
    table = _TABLE
    for byte in data:
        register = table[(register ^ byte) & 0xFF] ^ register >> 8
    return register


def crc32c_by_lanes(data: Buffer) -> int:
    """
    Return the CRC-32C of ``data`` as an unsigned 32-bit integer, with the standard library only.

    The data is divided into lanes of 32 bytes whose registers are updated together: the low bytes
    of all registers are one ``bytes`` object, and so on, so that a table lookup is
    ``bytes.translate`` and an exclusive or is one of big integers. At the end neighbouring lanes
    are joined until one is left. A loop over bytes would run Python code for each of them.
    """
    data = bytes(data)
    lanes = len(data) // _LANE
    if lanes < 8:
        return _advance(_MASK, data) ^ _MASK
    body = data[: lanes * _LANE]
    table0, table1, table2, table3 = _lane_tables()
    # The first lane starts with the register full of ones, all others with zero.
    plane0 = plane1 = plane2 = plane3 = 0xFF
    to_int = int.from_bytes
    for row in range(_LANE):
        index = (to_int(body[row::_LANE], 'little') ^ plane0).to_bytes(lanes, 'little')
        plane0 = to_int(index.translate(table0), 'little') ^ plane1
        plane1 = to_int(index.translate(table1), 'little') ^ plane2
        plane2 = to_int(index.translate(table2), 'little') ^ plane3
        plane3 = to_int(index.translate(table3), 'little')
    planes = [plane.to_bytes(lanes, 'little') for plane in (plane0, plane1, plane2, plane3)]
    register = _join(planes, lanes)
    return _advance(register, data[len(body) :]) ^ _MASK


@lru_cache(maxsize=None)
def _lane_tables() -> List[bytes]:
    return _planes(_TABLE)


def _join(planes: List[bytes], lanes: int) -> int:
    """Join the registers of neighbouring lanes until one is left."""
    level = 0
    to_int = int.from_bytes
    while lanes > 1:
        if lanes & 1:  # a lane of zeros before the others changes nothing
            planes = [b'\x00' + plane for plane in planes]
            lanes += 1
        lanes //= 2
        tables = _shift(level)[1]
        early = [plane[0::2] for plane in planes]
        joined = []
        for out in range(4):
            total = to_int(planes[out][1::2], 'little')
            for plane, by_byte in zip(early, tables):
                total ^= to_int(plane.translate(by_byte[out]), 'little')
            joined.append(total.to_bytes(lanes, 'little'))
        planes = joined
        level += 1
    return to_int(b''.join(planes), 'little')


@lru_cache(maxsize=None)
def _shift(level: int) -> Tuple[List[int], List[List[bytes]]]:
    """
    Return the effect of ``_LANE << level`` zero bytes on a register.

    First as the images of the 32 bits, then as tables: by the register's byte, by the result's
    byte.
    """
    if level:
        before = _shift(level - 1)[0]
        bits = [_apply(before, image) for image in before]
    else:
        bits = [_advance(1 << bit, bytes(_LANE)) for bit in range(32)]
    tables = []
    for first in range(0, 32, 8):
        table = [0]
        for bit in bits[first : first + 8]:
            table += [value ^ bit for value in table]
        tables.append(_planes(table))
    return bits, tables


def _apply(bits: List[int], register: int) -> int:
    total = 0
    for bit, image in enumerate(bits):
        if register >> bit & 1:
            total ^= image
    return total


@lru_cache(maxsize=None)
def _implementation() -> Callable[[Any], int]:
    try:
        wheel: Callable[[Any], int] = import_late('crc32c').crc32c
        return wheel
    except (ImportError, AttributeError):
        pass
    try:
        google = import_late('google_crc32c')
    except ImportError:
        return crc32c_by_lanes
    return lambda data: int(google.value(bytes(data)))  # it accepts only bytes


def crc32c(data: Buffer) -> int:
    """Return the CRC-32C of ``data`` as an unsigned 32-bit integer."""
    return _implementation()(data)


calc_crc32c = crc32c  # its name in kafka.record.util (1.4)
