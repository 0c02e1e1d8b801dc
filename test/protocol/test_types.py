"""The types of 1.x: bytes of the protocol guide, and ValueError for everything that fails."""

from __future__ import annotations

import io

import pytest

from kafka.protocol import types
from kafka.protocol.abstract import AbstractType
from kafka.protocol.types import Array, Bytes, Int8, Int16, Int32, Int64, Schema, String

TEXT = String('utf-8')
PAIRS = Array(('id', Int32), ('name', TEXT))
COMPACT = types.CompactArray(types.CompactString())

VALUES = [
    (Int8, -1, b'\xff'),
    (Int16, 258, b'\x01\x02'),
    (Int32, -2, b'\xff\xff\xff\xfe'),
    (Int64, 1, bytes(7) + b'\x01'),
    (types.UInt16, 65535, b'\xff\xff'),
    (types.UInt32, 1 << 31, b'\x80\0\0\0'),
    (types.Float64, 1.0, b'\x3f\xf0' + bytes(6)),
    (types.Boolean, True, b'\x01'),
    (types.Uuid, bytes(range(16)), bytes(range(16))),
    (TEXT, 'é', b'\0\x02\xc3\xa9'),
    (TEXT, None, b'\xff\xff'),
    (Bytes, b'ab', b'\0\0\0\x02ab'),
    (Bytes, None, b'\xff\xff\xff\xff'),
    (Array(Int16), [1, 2], b'\0\0\0\x02\0\x01\0\x02'),
    (PAIRS, [(1, 'a')], b'\0\0\0\x01\0\0\0\x01\0\x01a'),
    (Schema(('x', Int8), ('y', Int8)), (1, 2), b'\x01\x02'),
    (types.UnsignedVarInt32, 300, b'\xac\x02'),
    (types.VarInt32, -2, b'\x03'),
    (types.VarInt64, 1 << 40, b'\x80\x80\x80\x80\x80\x40'),
    (types.CompactString(), 'ab', b'\x03ab'),
    (types.CompactString(), None, b'\0'),
    (types.CompactBytes, b'', b'\x01'),
    (COMPACT, ['a'], b'\x02\x02a'),
    (types.TaggedFields, {1: b'xy', 0: b''}, b'\x02\x00\x00\x01\x02xy'),
]


@pytest.mark.parametrize(('kind', 'value', 'data'), VALUES)
def test_a_value_becomes_bytes_and_comes_back(kind, value, data):
    """Both ways, and what follows stays in the stream."""
    assert kind.encode(value) == data
    stream = io.BytesIO(data + b'rest')
    assert kind.decode(stream) == value
    assert stream.read() == b'rest'


@pytest.mark.parametrize(('kind', 'value', 'data'), VALUES)
def test_a_stream_that_ends_too_early_is_a_value_error(kind, value, data):
    """Wherever it ends."""
    for end in range(len(data)):
        with pytest.raises(ValueError):
            kind.decode(io.BytesIO(data[:end]))


@pytest.mark.parametrize(
    ('kind', 'value'),
    [
        (Int8, 128),
        (Int32, 'x'),
        (Int64, None),
        (TEXT, 'x' * 32768),
        (Bytes, 'text'),
        (Bytes, 3),
        (types.Uuid, b'short'),
        (types.UnsignedVarInt32, -1),
        (types.VarInt32, 1 << 31),
        (types.VarInt32, 'x'),
        (types.CompactBytes, 7),
        (types.TaggedFields, {0: 'text'}),
        (Schema(('x', Int8)), ()),
    ],
)
def test_what_does_not_fit_is_a_value_error(kind, value):
    """No error of struct, and none of len()."""
    with pytest.raises(ValueError):
        kind.encode(value)


def test_text_is_made_of_anything_by_str():
    """As in 1.x."""
    assert TEXT.encode(12) == b'\0\x0212'


def test_an_array_of_a_negative_number_is_an_empty_list():
    """None goes out as -1 and comes back as no elements."""
    assert PAIRS.encode(None) == b'\xff\xff\xff\xff'
    assert PAIRS.decode(io.BytesIO(b'\xff\xff\xff\xff')) == []
    assert COMPACT.decode(io.BytesIO(COMPACT.encode(None))) == []


@pytest.mark.parametrize('of', [(), (Int8, Int8)])
def test_an_array_knows_what_it_is_of(of):
    """One type, or fields."""
    with pytest.raises(ValueError):
        Array(*of)


def test_a_number_that_never_ends_is_refused():
    """Ten bytes with the mark of one more."""
    with pytest.raises(ValueError, match='more than 32 bits'):
        types.UnsignedVarInt32.decode(io.BytesIO(b'\xff' * 10))


def test_values_are_shown_and_secrets_are_not():
    """Long bytes are cut; None is NULL in an array."""
    assert PAIRS.repr([(1, 'a')]) == "[(id=1, name='a')]"
    assert PAIRS.repr(None) == 'NULL'
    assert Bytes.repr(b'x' * 200) == repr(b'x' * 100 + b'...')
    assert types.SecretBytes.repr(b'secret') == types.SecretString().repr('secret') == '<hidden>'
    assert issubclass(Int8, AbstractType)
    assert Int8.repr(5) == '5'
    assert Schema(('x', Int8)).repr(None) == 'None'
    assert len(Schema(('x', Int8))) == 1


@pytest.mark.parametrize('kind', [types.UnsignedVarInt32, types.VarInt32])
def test_a_varint_of_five_bytes_may_still_be_too_large(kind):
    assert kind.decode(io.BytesIO(b'\xff\xff\xff\xff\x0f')) is not None
    with pytest.raises(ValueError, match='more than 32 bits'):
        kind.decode(io.BytesIO(b'\xff\xff\xff\xff\x1f'))
