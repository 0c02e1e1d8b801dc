"""Records of Arrow columns: the same bytes as those of the careful encoder, the same hashes."""

from __future__ import annotations

import random

import pytest

from kafka.partitioner.hashed import murmur2
from kafka.record.batch_encoder import encode_columns
from kafka.record.vector_encoder import (
    as_binary,
    encode_headers,
    encode_rows,
    hash_keys,
    sizes_of,
)

pa = pytest.importorskip('pyarrow')
pytest.importorskip('numpy')

# Sizes at which varints of the field, or of the record around it, become wider.
EDGES = (0, 1, 50, 55, 63, 64, 65, 100, 8191, 8192, 8200)


def binaries(values):
    """A column that does not begin where its buffer does."""
    return pa.array([b'before', *values, b'behind'], pa.binary()).slice(1, len(values))


def check(keys, values, counts):
    data, ends = encode_rows(None if keys is None else binaries(keys), binaries(values), counts)
    data = data.to_pybytes()
    first = begin = 0
    for count, end in zip(counts, ends):
        some = slice(first, first + count)
        assert data[begin:end] == encode_columns(
            values[some], None if keys is None else keys[some], None, [(0, 0)]
        )
        first, begin = first + count, end
    assert begin == len(data)


@pytest.mark.parametrize('size', EDGES)
def test_records_of_one_size(size):
    check(None, [b'v' * size] * 70, [70])
    check([b'k' * size] * 70, [b'v'] * 70, [70])


def test_records_of_any_size():
    check([b'k' * size for size in EDGES], [b'v' * size for size in reversed(EDGES)], [len(EDGES)])


def test_nulls_are_not_empty():
    check([None, b'', b'k', None], [b'', None, None, None], [4])
    check([None, None], [None, None], [2])


def test_offsets_begin_anew_in_each_batch():
    check(None, [b'%d' % number for number in range(300)], [1, 64, 65, 100, 70])


def test_offsets_of_large_batches_need_more_bytes():
    check(None, [b''] * 9000, [8500, 500])


def test_nulls_that_hide_something_are_nulls():
    column = pa.array([b'hidden', b'shown'])
    hiding = pa.Array.from_buffers(
        pa.binary(), 2, [pa.py_buffer(b'\x02'), *column.buffers()[1:]], null_count=1
    )
    data, ends = encode_rows(hiding, hiding, [2])
    want = [None, b'shown']
    assert data.to_pybytes() == encode_columns(want, want, None, [(0, 0)])
    assert ends == [len(data)]


def test_whatever_comes(seed=5):
    chance = random.Random(seed)

    def field():
        size = chance.choice([None, 0, 3, 63, 64, 200])
        return None if size is None else bytes(chance.choices(range(256), k=size))

    for _ in range(30):
        rows = chance.randint(1, 80)
        keys = [field() for _ in range(rows)] if chance.random() < 0.7 else None
        cut = chance.randint(0, rows - 1)
        counts = [cut, rows - cut] if cut else [rows]
        check(keys, [field() for _ in range(rows)], counts)


HEADERS = pa.list_(pa.struct([('key', pa.string()), ('value', pa.binary())]))


def structs(rows):
    """A column of headers that does not begin where its buffers do."""
    found = [r and [{'key': name, 'value': content} for name, content in r] for r in rows]
    more = [{'key': 'before', 'value': b'before'}]
    return pa.array([more, *found, more], HEADERS).slice(1, len(rows))


@pytest.mark.parametrize(
    'rows',
    [
        [None, [], [('a', b'1')]],
        [[('a', b'1'), ('a', None), ('', b'')], [('ä', b'2' * 100)], []],
        [[('n' * size, b'v' * size) for size in EDGES]],
        [[('a', b'')] * 200, None],
        [None, None],
    ],
)
def test_headers_are_those_of_each_record(rows):
    values = [b'v'] * len(rows)
    data, ends = encode_rows(None, binaries(values), [len(rows)], encode_headers(structs(rows)))
    assert data.to_pybytes() == encode_columns(values, None, [r or () for r in rows], [(0, 0)])
    assert ends == [len(data)]


def test_headers_that_a_null_row_hides_are_none():
    some = structs([[('x', b'1')], [('y', b'2')], [('z', b'3')]])
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), some.flatten(), mask=pa.array([False, True, False])
    )
    expected = encode_headers(structs([[('x', b'1')], None, [('z', b'3')]]))
    assert encode_headers(hidden).to_pylist() == expected.to_pylist()


def test_headers_without_a_name_are_not_encoded():
    assert encode_headers(structs([[('a', b'1')], [(None, b'2')]])) is None
    assert encode_headers(pa.array([[None]], HEADERS)) is None


def test_sizes_of_nulls_are_less_than_none():
    assert sizes_of(binaries([b'abc', None, b''])).tolist() == [3, -1, 0]
    assert sizes_of(pa.array([], pa.binary())).tolist() == []


@pytest.mark.parametrize('kind', [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_text_and_bytes_become_binaries(kind):
    found = as_binary(pa.array(['ä', None]).cast(kind))
    assert found.type == pa.binary() and found.to_pylist() == ['ä'.encode(), None]


@pytest.mark.parametrize('size', range(20))
def test_keys_of_one_size_are_hashed_as_by_java(size):
    keys = [bytes([number + each & 255 for each in range(size)]) for number in range(0, 256, 5)]
    assert hash_keys(binaries(keys)).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]


def test_keys_of_any_size_are_hashed_as_by_java():
    keys = [bytes([250 - each] * (each * 7 % 31)) for each in range(100)]
    assert hash_keys(binaries(keys)).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]


def test_keys_at_the_end_of_their_buffer_are_hashed():
    for keys in ([b'', b'a', b'abc'], [b'abcd'], [b'', b''], [b'ab', b'abcde']):
        column = pa.array(keys, pa.binary())
        assert hash_keys(column).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]
