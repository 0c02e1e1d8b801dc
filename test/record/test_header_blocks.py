"""Headers of many records give what each alone gives, whatever repeats and whatever differs."""

from __future__ import annotations

import copy
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import ProtocolError
from kafka.record import header_blocks
from kafka.record.header_blocks import (
    EqualNames,
    decode_headers,
    read_headers,
    size_of_headers,
)
from test.record.oracle import sized_bytes, varint_bytes
from test.record.strategies import fields, headers, names


def block(found):
    """Return headers as they are encoded."""
    return varint_bytes(len(found)) + b''.join(
        sized_bytes(name.encode()) + sized_bytes(content) for name, content in found
    )


def same(many):
    """Tell whether headers of many records are read as they were written, sizes too."""
    read, sizes = read_headers([block(found) for found in many])
    assert [read[i] for i in range(len(many))] == list(many)
    assert list(sizes) == [size_of_headers(found) for found in many]
    return list(read) == list(many) and list(map(list, read)) == list(map(list, many))


@given(st.lists(headers, min_size=1, max_size=60))
def test_any_mixture(many):
    assert same(many)


@given(st.lists(names, min_size=1, max_size=3), st.data())
def test_equal_names_with_any_values(chosen, data):
    values = st.lists(fields, min_size=len(chosen), max_size=len(chosen))
    rows = data.draw(st.lists(values, min_size=16, max_size=40))
    assert same([tuple(zip(chosen, row)) for row in rows])


def traces(count, sizes=(16,)):
    rng = random.Random(7)
    return [
        tuple(
            ('h%d' % place, b'%0*x' % (size - i % 3 * (size < 10), rng.getrandbits(4 * size)))
            for place, size in enumerate(sizes)
        )
        for i in range(count)
    ]


@pytest.mark.parametrize('sizes', [(16,), (16, 12), (9, 16), (5, 6, 7), (63,)])
@pytest.mark.parametrize('count', [15, 16, 64, 130])
def test_values_that_all_differ_are_read_by_columns(sizes, count):
    many = traces(count, sizes)
    assert same(many)
    read, _ = read_headers([block(found) for found in many])
    assert isinstance(read, EqualNames) is (count >= 16)


def test_that_one_of_another_kind_is_not_overlooked():
    """The odd one stands at each place once, and has the length of the others where it can."""
    many = traces(70)
    odd = [
        (),
        (('h0', None),),
        (('x0', b'%016x' % 5),),
        (('h', b'h%016x' % 5),),
        (('h0', b'v' * 200),),
        (('h0', b''),),
        (('h0', b'%06x' % 5), ('h1', b'%06x' % 5)),
        (('h0', b'%016x' % 5), ('h1', b'')),
    ]
    for other in odd:
        for place in (0, 1, 63, 64, 69):
            assert same([*many[:place], other, *many[place + 1 :]])


def test_that_one_of_another_kind_is_not_overlooked_among_equal_ones():
    many = [(('h', b'v'),)] * 40
    for other in ((), (('h', b'w'),), (('h', None),), (('h', b'v'), ('h', b'v'))):
        for place in (0, 1, 20, 39):
            assert same([*many[:place], other, *many[place + 1 :]])
    read, sizes = read_headers([block(each) for each in many])
    assert (list(read), list(sizes)) == (many, [2] * 40)


def test_that_damage_is_found_among_many():
    blocks = [block(found) for found in traces(40)]
    for place in (0, 39):
        for index in range(len(blocks[0])):
            for byte in (0, 1, 2, 0x7F, 0x80, 0xFF):
                damaged = blocks[place][:index] + bytes((byte,)) + blocks[place][index + 1 :]
                try:
                    expected = decode_headers(damaged)
                except ProtocolError:
                    with pytest.raises(ProtocolError):
                        read_headers([*blocks[:place], damaged, *blocks[place + 1 :]])
                else:
                    read, _ = read_headers([*blocks[:place], damaged, *blocks[place + 1 :]])
                    assert read[place] == expected


def test_that_parts_of_columns_are_columns():
    many = traces(30, (16, 5))
    read, _ = read_headers([block(found) for found in many])
    part = read[7:20]
    assert isinstance(part, EqualNames) and len(part) == 13
    assert list(part) == many[7:20] and part[0] == many[7]


def test_that_headers_that_repeat_are_shared():
    read, sizes = read_headers([block((('h', b'1'),)), block(())] * 20)
    assert read[0] is read[2] and sizes[:2] == [2, -1]


def test_that_headers_that_do_not_repeat_fill_no_cache():
    before = len(header_blocks.HEADERS), len(header_blocks.HEADER_SIZES)
    same(traces(200))
    assert (len(header_blocks.HEADERS), len(header_blocks.HEADER_SIZES)) == before


def test_that_the_caches_are_bounded():
    for number in range(3000):
        assert same([(('h%d' % number, b'x'),)])
    assert len(header_blocks.HEADERS) <= 1024
    assert len(header_blocks.HEADER_SIZES) <= 1024
    assert len(header_blocks._NAMES) <= 1024


# --- names that are not UTF-8: brokers store them unchecked, and the Java client reads them

LATIN_1 = 'Zähler'.encode('latin-1')


def stored(name, content):
    """Return the block of one header with these bytes for a name."""
    return varint_bytes(1) + sized_bytes(name) + sized_bytes(content)


def check_name(name):
    assert name == 'Z\ufffdhler' and name.raw == LATIN_1


@pytest.mark.parametrize('name', [b'\xff', LATIN_1, LATIN_1 * 40, b'\xed\xa0\x80', b'a\x80' * 100])
def test_a_name_that_is_not_utf_8_is_decoded_with_replacement_and_keeps_its_bytes(name):
    ((found, content),) = decode_headers(stored(name, b'v'))
    assert (found, found.raw, content) == (name.decode('utf-8', 'replace'), name, b'v')
    assert size_of_headers([(found, content)]) == len(name) + 1


@pytest.mark.parametrize('count', [1, 15, 40])
@pytest.mark.parametrize('content', [lambda i: b'v', lambda i: b'%016x' % i, lambda i: b'v' * i])
def test_every_record_of_a_batch_with_such_names_is_read(count, content):
    """Headers that repeat, that differ only in their values, and that differ in length."""
    read, sizes = read_headers([stored(LATIN_1, content(i)) for i in range(count)])
    assert list(sizes) == [len(LATIN_1) + len(content(i)) for i in range(count)]
    for i, ((name, value),) in enumerate(read):
        assert value == content(i)
        check_name(name)


@pytest.mark.parametrize('place', [0, 17, 39])
def test_one_such_name_changes_no_other_record(place):
    many = traces(40)
    blocks = [block(found) for found in many]
    # As long as the others, so that they could be read by columns.
    odd = varint_bytes(1) + sized_bytes(b'h\xff') + sized_bytes(b'%016x' % 5)
    read, _ = read_headers([*blocks[:place], odd, *blocks[place + 1 :]])
    assert read[place] == (('h\ufffd', b'%016x' % 5),) and read[place][0][0].raw == b'h\xff'
    assert [*read[:place], *read[place + 1 :]] == [*many[:place], *many[place + 1 :]]


def test_a_name_with_a_stored_replacement_character_is_not_taken_for_such_a_name():
    """Both have the same text, and their bytes differ."""
    right = stored('\ufffd'.encode(), b'v')
    read, _ = read_headers([stored(b'\xff\xff\xff', b'v'), right] * 20)
    assert read[1] == (('\ufffd', b'v'),) and type(read[1][0][0]) is str
    assert read[0][0][0].raw == b'\xff\xff\xff'


def test_such_a_name_is_a_str_wherever_it_goes():
    ((name, _),) = decode_headers(stored(LATIN_1, b'v'))
    assert isinstance(name, str) and {name: 1} == {'Z\ufffdhler': 1}
    for copied in (copy.copy(name), copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
        check_name(copied)
