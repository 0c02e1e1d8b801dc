"""How declarations are read, and which mistakes in them are noticed when the class is made."""

from __future__ import annotations

from typing import List, Optional

import pytest

from kafka.protocol.schema import KINDS, ListOf, Versions
from kafka.protocol.wire import Bool, Int32, Message, Records, String, Struct, Uuid, v


class Inner(Struct):
    number: Int32


class Sample(Message, api_key=999, valid='1-5', flexible='4+'):
    flag: Bool
    inner: Inner
    maybe: Optional[Inner] = v('2+', default=None)
    numbers: List[Int32]
    some: Optional[List[Inner]] = v('1-3', nullable='2+', default=[])
    records: Optional[Records]
    tagged: String = v('4+', tag=3, default='')


def field(name):
    return next(field for field in Sample.fields if field.name == name)


@pytest.mark.parametrize(
    'text, first, last',
    [('', 0, 32767), ('3+', 3, 32767), ('0-4', 0, 4), ('7', 7, 7), ('10-12', 10, 12)],
)
def test_ranges_of_versions(text, first, last):
    assert Versions.parse(text) == (first, last)


@pytest.mark.parametrize('text', ['+', '-1', '3-', 'none', '1-2-3', 'x', '3 +'])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(ValueError, match='not a range of versions'):
        Versions.parse(text)


def test_fields_keep_the_order_of_the_declaration():
    names = ['flag', 'inner', 'maybe', 'numbers', 'some', 'records', 'tagged']
    assert [field.name for field in Sample.fields] == names


def test_types_are_read_from_the_annotations():
    assert field('flag').type is KINDS['Bool']
    assert field('inner').type is Inner
    assert field('numbers').type == ListOf(KINDS['Int32'])
    assert field('some').type == ListOf(Inner)
    assert repr(field('numbers').type) == 'List[Int32]'


def test_an_optional_may_be_null_where_it_is_carried_or_where_it_says():
    assert [field('maybe').is_nullable(version) for version in (1, 2, 5)] == [False, True, True]
    assert [field('some').is_nullable(version) for version in (1, 2, 3)] == [False, True, True]
    assert not field('numbers').is_nullable(1)


def test_fields_without_a_written_default_are_required():
    required = [field.name for field in Sample.fields if field.required]
    assert required == ['flag', 'inner', 'numbers', 'records']


def test_versions_of_a_class():
    assert (Sample.min_version, Sample.max_version, Sample.flexible_from) == (1, 5, 4)


def test_an_unknown_type_is_refused_when_the_class_is_made():
    with pytest.raises(TypeError, match=r'Bad\.what: not a wire type: Int33'):

        class Bad(Struct):
            what: Int33  # noqa: F821


def test_null_needs_an_optional_annotation():
    with pytest.raises(TypeError, match=r'Bad\.what: nullable versions need an Optional'):

        class Bad(Struct):
            what: String = v(nullable='1+')


def test_a_message_without_versions_is_refused():
    with pytest.raises(TypeError, match='valid'):

        class Bad(Message, api_key=1):
            what: Uuid
