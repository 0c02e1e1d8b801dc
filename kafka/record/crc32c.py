"""
CRC-32C (Castagnoli), the checksum of record batches of magic 2.

A wheel does it when one is installed; otherwise a stand-in from the standard library.
"""

from __future__ import annotations

from typing import List

from kafka.record.util import Buffer


def _table() -> List[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _table()


def crc32c(data: Buffer) -> int:
    """Return the CRC-32C of ``data`` as an unsigned 32-bit integer."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in bytes(data):
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
