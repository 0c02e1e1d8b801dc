"""CRC-32C by a wheel and without one."""

from __future__ import annotations

import random
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.record import crc32c as module
from kafka.record.crc32c import crc32c, crc32c_by_lanes
from test.record import oracle

# RFC 3720, B.4.
VECTORS = [
    (b'', 0x00000000),
    (b'123456789', 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b'\xff' * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.fixture
def fresh_choice():
    module._implementation.cache_clear()
    yield
    module._implementation.cache_clear()


@pytest.mark.parametrize('data, expected', VECTORS)
def test_vectors(data, expected):
    assert crc32c(data) == crc32c_by_lanes(data) == oracle.crc32c(data) == expected


@given(st.integers(0, 1500), st.integers())
def test_lanes_agree_with_division_bit_by_bit(size, seed):
    rng = random.Random(seed)
    data = bytes(rng.getrandbits(8) for _ in range(size))
    assert crc32c_by_lanes(data) == oracle.crc32c(data)


@pytest.mark.parametrize('lanes', [8, 9, 15, 16, 17, 500, 511])
@pytest.mark.parametrize('rest', [0, 1, 31])
def test_lanes_of_any_number_join(lanes, rest):
    """Odd numbers of lanes are filled up at every level."""
    data = (
        random.Random(lanes)
        .getrandbits(8 * (32 * lanes + rest))
        .to_bytes(32 * lanes + rest, 'little')
    )
    assert crc32c_by_lanes(data) == module._advance(0xFFFFFFFF, data) ^ 0xFFFFFFFF


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_takes_any_buffer(kind):
    assert crc32c(kind(b'123456789')) == 0xE3069283
    assert crc32c_by_lanes(kind(b'123456789' * 50)) == oracle.crc32c(b'123456789' * 50)


def test_without_wheels_the_lanes_do_it(monkeypatch, fresh_choice):
    monkeypatch.setitem(sys.modules, 'crc32c', None)
    monkeypatch.setitem(sys.modules, 'google_crc32c', None)
    assert module._implementation() is crc32c_by_lanes
    assert crc32c(b'123456789') == 0xE3069283


def test_google_crc32c_is_taken_when_it_is_the_one_installed(monkeypatch, fresh_choice):
    """It takes bytes alone, so other buffers are copied for it."""
    seen = []

    def value(data):
        seen.append(data)
        return oracle.crc32c(data)

    monkeypatch.setitem(sys.modules, 'crc32c', None)
    monkeypatch.setitem(sys.modules, 'google_crc32c', types.SimpleNamespace(value=value))
    assert crc32c(memoryview(b'123456789')) == 0xE3069283
    assert seen == [b'123456789'] and type(seen[0]) is bytes
