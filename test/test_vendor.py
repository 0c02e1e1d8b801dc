"""kafka.vendor: what programs of 1.3 to 2.x took from there is there, and means what it says."""

from __future__ import annotations

import abc
import enum
import selectors

import pytest
from kafka.vendor.six.moves import range, urllib, xrange, zip

from kafka.vendor import enum34, selectors34, six, socketpair


def test_the_modules_of_the_standard_library():
    assert enum34.IntEnum is enum.IntEnum
    assert selectors34.DefaultSelector is selectors.DefaultSelector
    assert socketpair.__doc__


def test_moves_are_where_python_3_has_them():
    assert [*range(2)] == [*xrange(2)] == [0, 1]
    assert [*zip('a', 'b')] == [('a', 'b')]
    assert urllib.parse.quote('a b') == 'a%20b'
    assert six.moves.queue.Queue().empty()
    assert six.moves.configparser.ConfigParser().sections() == []


def test_types_are_those_of_python_3():
    assert (six.PY2, six.PY3) == (False, True)
    assert isinstance('x', six.string_types)
    assert isinstance(b'x', six.binary_type)
    assert isinstance(1, six.integer_types)
    assert isinstance('x', six.text_type)


def test_it_is_the_six_that_is_installed():
    import kafka.vendor.six.moves.urllib.parse
    import six as installed
    from kafka.vendor.six.moves.urllib.parse import quote

    assert six is installed and kafka.vendor.six is installed
    assert quote('a b') == 'a%20b' and six.moves.urllib.parse.quote is quote


def test_bytes_and_text():
    assert (six.b('\xff'), six.u('x'), six.unichr(65)) == (b'\xff', 'x', 'A')
    assert (six.int2byte(5), six.byte2int(b'a'), six.indexbytes(b'ab', 1)) == (b'\x05', 97, 98)
    assert [*six.iterbytes(b'a')] == [97]
    assert six.ensure_binary('é') == six.ensure_binary('é'.encode()) == 'é'.encode()
    assert six.ensure_str('é'.encode()) == six.ensure_text('é') == 'é'
    for call in (six.ensure_binary, six.ensure_text):
        with pytest.raises(TypeError):
            call(5)


def test_mappings():
    one = {'a': 1}
    assert [*six.iterkeys(one)] == ['a']
    assert [*six.itervalues(one)] == [1]
    assert [*six.iteritems(one)] == [*six.viewitems(one)] == [('a', 1)]


@pytest.mark.parametrize(
    'make',
    [
        lambda: type('Made', (six.with_metaclass(abc.ABCMeta, dict),), {'x': 1}),
        lambda: six.add_metaclass(abc.ABCMeta)(type('Made', (dict,), {'x': 1, '__slots__': 'y'})),
    ],
)
def test_a_class_is_made_by_a_metaclass(make):
    made = make()
    assert type(made) is abc.ABCMeta
    assert (made.__name__, made.__bases__, made.x) == ('Made', (dict,), 1)


def test_errors_are_raised_elsewhere():
    with pytest.raises(KeyError) as caught:
        six.reraise(KeyError, None)
    with pytest.raises(ValueError, match='why') as other:
        six.raise_from(ValueError('why'), caught.value)
    assert other.value.__cause__ is caught.value
