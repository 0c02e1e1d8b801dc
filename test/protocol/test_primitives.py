"""Varints, tagged sections and arrays: the rare cases of compiled messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.protocol.primitives import (
    MAX_TAGS,
    UVARINTS,
    Arrays,
    Pieces,
    as_bytes,
    as_list,
    bad_length,
    read_tags,
    read_uvarint,
    tag_section,
    uvarint,
)
from test.protocol import interpreter


@given(st.integers(0, 2**32 - 1) | st.integers(0, 300))
def test_varints_agree_with_the_interpreter_and_come_back(value):
    data = uvarint(value)
    assert data == interpreter.encode_uvarint(value) == UVARINTS[value]
    assert read_uvarint(data + b'rest', 0) == (value, len(data))


@pytest.mark.parametrize(
    'value, data',
    [
        (0, b'\x00'),
        (127, b'\x7f'),
        (128, b'\x80\x01'),
        (300, b'\xac\x02'),
        (2**32 - 1, b'\xff\xff\xff\xff\x0f'),
    ],
)
def test_varints_at_the_edges(value, data):
    assert uvarint(value) == data


@pytest.mark.parametrize('value', [-1, 2**32])
def test_varints_hold_32_bits_without_sign(value):
    with pytest.raises(ProtocolError, match='does not fit'):
        uvarint(value)


def test_long_varints_are_not_kept():
    assert UVARINTS[1000] == b'\xe8\x07'
    assert len(UVARINTS) == 128


def test_a_varint_may_be_longer_than_it_must_within_five_bytes():
    """Java reads such varints too."""
    assert read_uvarint(b'\x81\x80\x80\x00', 0) == (1, 4)


@given(
    st.dictionaries(st.integers(0, 50), st.binary(max_size=4)),
    st.dictionaries(st.integers(51, 2**32 - 1), st.binary(max_size=4)),
)
def test_a_tagged_section_comes_back_in_the_order_of_tags(known, unknown):
    data = tag_section(known, unknown)
    assert data[0] == len(known) + len(unknown)
    tags, pos = read_tags(data, 1, len(data), data[0])
    assert (tags, pos) == ({**known, **unknown}, len(data))
    assert list(tags) == sorted(tags)


def test_more_than_127_tags_have_a_longer_count():
    tags = dict.fromkeys(range(200), b'')
    data = tag_section({}, tags)
    assert data[:2] == b'\xc8\x01'
    assert read_tags(data, 1, len(data), data[0]) == (tags, len(data))


def test_the_cap_of_tags_is_checked_before_they_are_read():
    count = uvarint(MAX_TAGS + 1)
    with pytest.raises(ProtocolError, match='10001 tagged fields'):
        read_tags(count, 1, len(count), count[0])


def test_arrays_keep_the_functions_of_short_arrays_only():
    packers = Arrays('i', 'pack')
    assert packers[2](1, 2) == b'\x00\x00\x00\x01\x00\x00\x00\x02'
    assert len(packers[1000](*range(1000))) == 4000
    assert list(packers) == [2]


@pytest.mark.parametrize('value', ['abc', b'abc', bytearray(b'abc'), memoryview(b'abc'), {1: 2}])
def test_strings_and_mappings_are_no_arrays(value):
    with pytest.raises(TypeError, match='is not an array'):
        as_list(value)


def test_sequences_sets_and_generators_are_arrays():
    for value in ((1, 2), [1, 2], {1, 2}, (n for n in (1, 2))):
        assert as_list(value) == [1, 2]


def test_bytes_come_from_contiguous_buffers():
    assert as_bytes(memoryview(b'\x00\x01\x00\x02').cast('h')).nbytes == 4
    for value in ('text', 5, [1, 2], memoryview(b'abcd')[::2]):
        with pytest.raises(TypeError):
            as_bytes(value)


def test_a_length_is_wrong_in_two_ways():
    assert isinstance(bad_length(-5, 'x'), ProtocolError)
    assert isinstance(bad_length(5, 'x'), BufferUnderflowError)


def test_records_in_pieces_are_as_long_as_all_of_them():
    pieces = Pieces([b'ab', b'', b'cde'])
    assert (len(pieces), bytes(pieces)) == (5, b'abcde')
    assert repr(pieces) == '<Pieces: 3, 5 bytes>'
    assert not Pieces([])
