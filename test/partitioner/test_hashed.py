"""kafka.partitioner.hashed: which partition a key goes to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.partitioner import (
    HashedPartitioner,
    LegacyPartitioner,
    Murmur2Partitioner,
    hashed,
)
from kafka.partitioner.hashed import murmur2

# Key, hash, index among 1000 partitions, as the Java client computes them.
VECTORS = [
    (b'', 275646681, 681),
    (b'a', 2731586172, 524),
    (b'ab', 316155434, 434),
    (b'abc', 479470107, 107),
    (b'abcd', 2971317748, 100),
    (b'test', 716234879, 879),
    (b'foo', 597841616, 616),
    (b'123456789', 2472730214, 566),
    (b'\x00 ', 1121897742, 742),
    (bytes(range(256)), 2346620022, 374),
]


def plain_murmur2(data):
    """Compute MurmurHash2 by the book, byte by byte: the oracle of the fast one."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    position = 0
    while len(data) - position >= 4:
        k = sum(data[position + i] << 8 * i for i in range(4))
        k = k * m & mask
        k ^= k >> 24
        k = k * m & mask
        h = (h * m & mask) ^ k
        position += 4
    rest = data[position:]
    if rest:
        h ^= sum(byte << 8 * i for i, byte in enumerate(rest))
        h = h * m & mask
    h ^= h >> 13
    h = h * m & mask
    return h ^ h >> 15


@pytest.mark.parametrize('key, value, index', VECTORS)
def test_murmur2_is_the_java_clients(key, value, index):
    assert murmur2(key) == value
    assert Murmur2Partitioner(range(1000)).partition(key) == index


@given(st.binary(max_size=40))
def test_murmur2_agrees_with_the_plain_form(key):
    assert murmur2(key) == plain_murmur2(key)


def test_murmur2_takes_bytearrays_and_text():
    assert murmur2(bytearray(b'test')) == murmur2('test') == murmur2(b'test')
    assert murmur2(123456789) == murmur2(b'123456789')
    assert murmur2('\xe9') == murmur2(b'\xc3\xa9')


def test_murmur2_partitioner_uses_the_list_of_the_call_unless_it_is_empty():
    partitioner = Murmur2Partitioner([7, 8, 9])
    assert partitioner.partition(b'test', [4]) == 4
    own = partitioner.partition(b'test')
    assert own in (7, 8, 9)
    assert partitioner.partition(b'test', []) == partitioner.partition(b'test', None) == own


def test_the_hashed_partitioner_is_the_legacy_one_and_goes_by_hash():
    assert HashedPartitioner is LegacyPartitioner is hashed.HashedPartitioner
    partitioner = HashedPartitioner([5, 6, 7])
    for key in (b'key', 'key', None, 12):
        assert partitioner.partition(key) == [5, 6, 7][hash(key) % 3]
    assert partitioner.partition(b'key', [3]) == 3


@pytest.mark.parametrize('cls', [Murmur2Partitioner, HashedPartitioner])
def test_no_partitions_is_a_value_error(cls):
    with pytest.raises(ValueError):
        cls([]).partition(b'key')
