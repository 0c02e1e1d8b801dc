"""Partitioners that use a hash of the key: Java's MurmurHash2, and Python's own ``hash``.

``Utils.murmur2`` is the default for keys in Apache Kafka's Java client.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, Optional, Sequence

from kafka.partitioner.base import Partitioner

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(key: Any) -> int:
    """Return the 32-bit MurmurHash2 of a key as an unsigned number, as in the Java client.

    Arguments: key: bytes or bytearray; anything else is converted to text and encoded as UTF-8.
    From 0.9.5.
    """
    if not isinstance(key, (bytes, bytearray)):
        key = str(key).encode('utf-8')
    length = len(key)
    h = _SEED ^ length
    # Products are masked only if a later shift would bring high bits back down.
    for k in unpack_from('<%dI' % (length >> 2), key):
        k = k * _M & _MASK
        h = (h * _M ^ (k ^ k >> 24) * _M) & _MASK
    tail = length & 3
    if tail:
        h = (h ^ int.from_bytes(key[length - tail :], 'little')) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


class Murmur2Partitioner(Partitioner):
    """Choose the partition that the Java client chooses for the same key (0.9.5)."""

    def partition(self, key: Any, partitions: Optional[Sequence[int]] = None) -> int:
        """Return the partition id for a key.

        Arguments: key: what murmur2 takes; partitions: ids to choose from, the constructor's when
        empty or None.
        Raises: ValueError when there are no partitions at all.
        """
        choices = self._choices(partitions)
        return choices[(murmur2(key) & 0x7FFFFFFF) % len(choices)]


class LegacyPartitioner(Partitioner):
    """Choose by Python's ``hash``, as the default of 0.9.5 does.

    The result for text and bytes differs between processes unless PYTHONHASHSEED is a number.
    ``HashedPartitioner`` is this class.
    """

    def partition(self, key: Any, partitions: Optional[Sequence[int]] = None) -> int:
        """Return the partition id for a key.

        Arguments: key: anything that can be hashed; partitions: ids to choose from, the
        constructor's when empty or None.
        Raises: ValueError when there are no partitions at all.
        """
        choices = self._choices(partitions)
        return choices[hash(key) % len(choices)]


HashedPartitioner = LegacyPartitioner
