"""The partitions of many keys: hashing in bulk, and a cache of frequent keys.

The hash is that of kafka.partitioner.hashed. Keys of equal length are hashed together: each is a
lane of one big integer, so that Python code runs for each four bytes of a key, not for each key.
"""

from __future__ import annotations

from struct import unpack
from typing import Dict, List, Sequence, TypeVar, cast

from kafka.partitioner.hashed import murmur2

T = TypeVar('T')

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
#: The minimum and maximum number of keys of equal length for one big integer.
_FEWEST = 8
_MOST = 512
#: The number of cached keys, and their maximum length.
KEPT_KEYS = 16384
KEPT_BYTES = 256


def murmur2_many(keys: Sequence[bytes]) -> List[int]:
    """Return the hash of each key, as hashed.murmur2 does."""
    by_length: Dict[int, List[int]] = {}
    for index, length in enumerate(map(len, keys)):
        by_length.setdefault(length, []).append(index)
    hashes = [0] * len(keys)
    for length, indices in by_length.items():
        for start in range(0, len(indices), _MOST):
            some = indices[start : start + _MOST]
            found: Sequence[int]
            if len(some) < _FEWEST:
                found = [murmur2(keys[index]) for index in some]
            else:
                found = _lanes([keys[index] for index in some], length)
            for index, value in zip(some, found):
                hashes[index] = value
    return hashes


def _lanes(keys: List[bytes], length: int) -> Sequence[int]:
    """Hash keys of equal length, each in a lane of 64 bits: a product of two 32-bit numbers
    fits."""
    count = len(keys)
    data = b''.join(keys)
    # One bit at the bottom of each lane: multiplied by a number, it puts that number into each
    # lane.
    ones = int.from_bytes(b'\x01\0\0\0\0\0\0\0' * count, 'little')
    mask = ones * _MASK
    state = ones * (_SEED ^ length)
    for at in range(0, length - 3, 4):
        word = _column(data, at, 4, length, count) * _M & mask
        # Bits shifted in from the lane above are in the upper half, which is masked.
        word = (word ^ word >> 24) & mask
        state = (state * _M & mask) ^ (word * _M & mask)
    tail = length & 3
    if tail:
        state = (state ^ _column(data, length - tail, tail, length, count)) * _M & mask
    state = (state ^ (state >> 13)) & mask
    state = state * _M & mask
    state = (state ^ (state >> 15)) & mask
    return unpack('<%dI' % (2 * count), state.to_bytes(8 * count, 'little'))[::2]


def _column(data: bytes, at: int, width: int, length: int, count: int) -> int:
    """Return some bytes of each key, from a position on, as the lanes of one integer."""
    column = bytearray(8 * count)
    for byte in range(width):
        column[byte::8] = data[at + byte :: length]
    return int.from_bytes(column, 'little')


class HotKeys(Dict[bytes, T]):
    """A mapping of keys to targets, each of which represents a partition, as in the Java client.

    It caches some thousand keys. Arguments: targets: one per partition, in ascending order.
    """

    def __init__(self, targets: Sequence[T]) -> None:
        super().__init__()
        self.targets = targets

    def __missing__(self, key: bytes) -> T:
        if not self.targets:
            raise ValueError('there are no partitions to choose from')
        found = self.targets[(murmur2(key) & 0x7FFFFFFF) % len(self.targets)]
        if len(key) <= KEPT_BYTES:
            if len(self) >= KEPT_KEYS:
                self.clear()
            self[key] = found
        return found

    def of_many(self, keys: Sequence[bytes]) -> List[T]:
        """Return the target of each key."""
        found = list(map(self.get, keys))
        if None not in found:
            return cast(List[T], found)
        unknown = list({key for key, known in zip(keys, found) if known is None})
        count = len(self.targets)
        hashes = murmur2_many(unknown)
        fresh = {key: self.targets[(h & 0x7FFFFFFF) % count] for key, h in zip(unknown, hashes)}
        if len(self) + len(fresh) > KEPT_KEYS:
            self.clear()
        if len(fresh) <= KEPT_KEYS:
            self.update((k, target) for k, target in fresh.items() if len(k) <= KEPT_BYTES)
        return [fresh[key] if known is None else known for key, known in zip(keys, found)]
