"""Struct of 1.x: values under the names of a schema."""

from __future__ import annotations

import io

import pytest

from kafka.protocol.struct import Struct
from kafka.protocol.types import Array, Int8, Schema, String


class Point(Struct):
    SCHEMA = Schema(('x', Int8), ('tags', Array(('name', String('utf-8')), ('size', Int8))))


class Same(Struct):
    SCHEMA = Point.SCHEMA


class Other(Struct):
    SCHEMA = Schema(('x', Int8), ('tags', Array(Int8)))


DATA = b'\x05\0\0\0\x01\0\x01a\x02'


def test_it_is_made_of_all_values_or_of_names():
    """What was not given is None, and shows when it is used."""
    assert Point(5, [('a', 2)]) == Point(x=5, tags=[('a', 2)])
    left_out = Point(tags=[])
    assert left_out.x is None
    with pytest.raises(ValueError):
        left_out.encode()


@pytest.mark.parametrize(('values', 'named'), [((1,), {}), ((1, [], 3), {}), ((), {'y': 1})])
def test_wrong_fields_are_value_errors(values, named):
    """Another number of them, or a name that there is not."""
    with pytest.raises(ValueError, match='Point has'):
        Point(*values, **named)


def test_it_encodes_itself_or_a_sequence():
    """An object its own values, the class those that it is given."""
    assert Point(5, [('a', 2)]).encode() == Point.encode((5, [('a', 2)])) == DATA


@pytest.mark.parametrize('of', [bytes, bytearray, memoryview, io.BytesIO])
def test_it_decodes_bytes_and_streams(of):
    """Bytes that are left over are no error."""
    assert Point.decode(of(DATA + b'left')) == Point(5, [('a', 2)])


def test_equality_is_of_the_schema_object():
    """Two classes of one schema are the same."""
    assert Point(1, []) == Same(1, [])
    assert Point(1, []) != Other(1, [])
    assert Point(1, []) != Point(2, [])
    assert Point(1, []) != 'Point'
    assert hash(Point(1, [])) == hash(Same(1, []))


def test_it_shows_its_fields():
    """On one line."""
    assert repr(Point(5, [('a', 2)])) == "Point(x=5, tags=[(name='a', size=2)])"


def test_it_becomes_dicts_and_lists():
    """Under the names of the schema (1.4.5)."""
    point = Point(5, [('a', 2)])
    assert point.to_object() == {'x': 5, 'tags': [{'name': 'a', 'size': 2}]}
    assert point.get_item('x') == 5
    with pytest.raises(KeyError, match='y is not a field'):
        point.get_item('y')
