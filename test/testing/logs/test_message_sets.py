"""Message sets of magic 0 and 1 as brokers keep them."""

from __future__ import annotations

import pytest

from kafka.codec import has_snappy
from kafka.record.memory_records import MemoryRecords
from kafka.testing.logs import message_sets
from test.testing.data_requests import message_set, offsets, values

CODECS = [0, 1, pytest.param(2, marks=pytest.mark.skipif(not has_snappy(), reason='no snappy'))]


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', CODECS)
def test_new_offsets(magic: int, codec: int) -> None:
    data = message_set(b'a', b'b', b'c', magic=magic, codec=codec)
    moved = message_sets.renumbered(data, 70, 72)
    assert offsets(moved) == [70, 71, 72]
    assert values(moved) == [b'a', b'b', b'c']
    assert {part.codec for part in MemoryRecords(moved)} == {codec}


@pytest.mark.parametrize('magic', [0, 1])
def test_a_wrapper_has_the_offset_of_its_last_message(magic: int) -> None:
    data = message_set(b'a', b'b', magic=magic, codec=1)
    assert int.from_bytes(message_sets.renumbered(data, 5, 6)[:8], 'big') == 6


def test_offsets_inside_a_wrapper_of_magic_1_stay_relative() -> None:
    data = message_set(b'a', b'b', magic=1, codec=1)
    assert message_sets.renumbered(data, 5, 6)[8:] == data[8:]


def test_the_position_of_an_offset_in_a_row() -> None:
    data = message_sets.renumbered(message_set(b'a', b'bb', b'c'), 10, 12)
    assert [message_sets.position_of(data, offset) for offset in (0, 10, 11, 12, 13)] == [
        0,
        0,
        27,
        55,
        82,
    ]
    assert message_sets.entry_bytes(data, 27) == 28


def test_a_wrapper_is_read_from_its_beginning() -> None:
    data = message_sets.renumbered(message_set(b'a', b'b', codec=1), 10, 11)
    assert message_sets.is_wrapper(data)
    assert message_sets.position_of(data, 11) == 0
