"""Batches of one size are read by numpy as those of any size are, or left to that way."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from kafka.errors import ProtocolError
from kafka.record import vectors
from kafka.record.default_records import DefaultRecordBatch, encode_batch
from kafka.record.even_batches import FieldArrays, even_fields
from kafka.record.fetched_records import RawRecords

np = pytest.importorskip('numpy')

NOW = 1_600_000_000_000
HEADERS = [('h', b'v'), ('i', None)]


def payload(count, key=b'key', size=50, headers=(), time=int):
    """Return the records of a batch, each another one but all of one size."""
    rows = [(NOW + time(number), key, b'%0*d' % (size, number), headers) for number in range(count)]
    return DefaultRecordBatch(encode_batch(rows)).payload()


def read(payloads, counts, ends=None):
    """Return what is read the short way and the long way; None where it is not read."""
    buf = b''.join([*payloads, bytes(16)])
    ends = list(accumulate(map(len, payloads))) if ends is None else ends
    return both_ways(buf, [0, *ends[:-1]], ends, counts)


def both_ways(buf, *place):
    try:
        long = vectors._decode(np, buf, *vectors._frame(np, buf, *place))
    except (ProtocolError, IndexError):
        long = None
    return even_fields(np, buf, *place, vectors.COLUMNS), long


def is_same(one, other):
    return all(map(np.array_equal, one, other))


@pytest.mark.parametrize('headers', [(), HEADERS])
@pytest.mark.parametrize('key', [None, b'', b'key'])
@pytest.mark.parametrize('count, size', [(1, 5), (63, 50), (64, 50), (65, 50), (200, 100)])
def test_that_they_are_read_as_others_are(count, size, key, headers):
    payloads = [payload(count, key, size, headers, lambda number: number % 60)] * 3
    short, long = read(payloads, [count] * 3)
    assert isinstance(short, FieldArrays) and is_same(short, long)


def test_that_times_may_differ():
    times = [lambda number: 0, lambda number: number, lambda number: -number]
    short, long = read([payload(60, time=time) for time in times], [60] * 3)
    assert is_same(short, long)
    assert set(short.timestamp_deltas.tolist()) == set(range(-59, 60))


def test_that_times_may_have_two_bytes():
    some = b''.join(map(with_wide_delta, range(64)))
    short, long = read([some, some], [64] * 2)
    assert is_same(short, long) and max(short.timestamp_deltas) > 64


def test_that_damaged_times_of_two_bytes_are_left_to_others_or_do_not_matter():
    some = b''.join(map(with_wide_delta, range(60)))
    for place in range(len(some) // 60):
        for byte in (0, 1, 2, 127, 128, 129, 254):
            torn = bytearray(some)
            torn[len(some) // 2 + place] = byte
            short, long = read([some, bytes(torn)], [60] * 2)
            assert short is None or (long is not None and is_same(short, long))


def with_wide_delta(number):
    """Return a record whose timestamp delta has two bytes."""
    body = bytes([0, 0x80 + number, 1 + number, 2 * number, 6]) + b'key\x0a%05d\0' % number
    return bytes([2 * len(body)]) + body


@pytest.mark.parametrize(
    'counts, payloads',
    [
        ([64, 65], [payload(64, time=bool), payload(65)]),
        (
            [64, 64, 64],
            [
                payload(64, time=bool),
                payload(64, size=51, time=bool),
                payload(64, size=49, time=bool),
            ],
        ),
        ([64, 63, 65], [payload(64, time=bool)] * 3),
        ([3, 3], [payload(3, size=200), payload(3, key=bytes(100), size=102)]),
        (
            [64, 64],
            [payload(64, size=2000, time=bool), payload(64, size=2000, headers=HEADERS, time=bool)],
        ),
        ([9000, 9000], [payload(9000, size=5, time=bool)] * 2),
    ],
)
def test_that_what_is_not_even_is_left_to_others(counts, payloads):
    assert read(payloads, counts)[0] is None


def test_that_a_longer_record_at_the_end_of_all_is_left_to_others():
    rows = [(NOW, b'key', bytes(50 if number < 65 else 57), ()) for number in range(66)]
    some = DefaultRecordBatch(encode_batch(rows)).payload()
    short, long = read([some] * 2, [66] * 2)
    assert short is None and long is not None


def test_that_borders_elsewhere_are_left_to_others():
    some = payload(64, time=bool)
    size = len(some)
    assert read([some] * 3, [64] * 3, [size, 2 * size, 3 * size])[0] is not None
    for ends in ([size, 2 * size + 1, 3 * size], [size, 2 * size, 3 * size - 1]):
        assert read([some] * 3, [64] * 3, ends) == (None, None)
    for more in (b'\0', some[: size // 64]):
        assert read([some + more] * 3, [64] * 3) == (None, None)


@pytest.mark.parametrize('count', [63, 65])
def test_that_something_may_lie_between_them(count):
    some = payload(count, time=bool)
    buf = b'before' + (some + b'between') * 2 + some
    begins = [6 + number * (len(some) + 7) for number in range(3)]
    ends = [begin + len(some) for begin in begins]
    short, long = both_ways(buf, begins, ends, [count] * 3)
    assert short is not None and is_same(short, long)


def test_that_distances_that_are_not_even_are_left_to_others():
    some = payload(64, time=bool)
    buf = some + b'1' + some + b'12' + some
    begins = [0, len(some) + 1, 2 * len(some) + 3]
    short, long = both_ways(buf, begins, [begin + len(some) for begin in begins], [64] * 3)
    assert short is None and long is not None


@pytest.mark.parametrize('begins', [[0, 1], [1, 0], [0, 0]])
def test_that_batches_that_overlap_are_left_to_others(begins):
    some = payload(64, time=bool)
    ends = [begin + len(some) for begin in begins]
    assert both_ways(some + b'!', begins, ends, [64] * 2)[0] is None


def test_that_a_record_more_than_is_said_is_left_to_others():
    some = payload(64, time=bool)
    size, one = len(some), len(some) // 64
    buf = some + bytes(61) + some + bytes(61 - one) + some[:one] + some
    begins = [0, size + 61, 2 * (size + 61) - one]
    ends = [size, 2 * size + 61, 3 * size + 122]
    assert both_ways(buf, begins, ends, [64] * 3) == (None, None)


def test_that_offsets_elsewhere_are_left_to_others():
    for offset in (b'\x80\x80\x00', b'\x80\x00', b'\x02'):
        one = bytes([2 * (9 + len(offset)), 0, 0]) + offset + b'\x01\x08four\0'
        assert len(one) == one[0] // 2 + 1
        short, long = read([one] * 3, [1] * 3)
        assert short is None and long is not None
    head, tail = payload(64, time=bool), payload(8192, time=bool)
    size = (len(payload(66, time=bool)) - len(head)) // 2
    many = head + tail[-8000 * size :] * 2
    assert read([many] * 2, [64 + 16000] * 2)[0] is None


def test_that_lengths_that_are_not_even_are_left_to_others():
    one, other = payload(64, b'key', 50, (), bool), payload(64, b'keys', 49, (), bool)
    assert len(one) == len(other)
    assert read([one, other], [64, 64])[0] is None


@pytest.mark.parametrize('key, headers', [(None, ()), (b'key', ()), (b'key', HEADERS)])
def test_that_damage_is_left_to_others_or_does_not_matter(key, headers):
    chance, refused = random.Random(5), 0
    whole = [payload(80, key, 20, headers, lambda number: number % 60)] * 3
    size = len(whole[0])
    for place in [*range(32), *range(size - 8, size), *chance.sample(range(size), 20)]:
        for byte in (0, 1, 127, 129, 254):
            torn = bytearray(whole[1])
            torn[place] = byte
            short, long = read([whole[0], bytes(torn), whole[2]], [80] * 3)
            if short is None:
                refused += 1
            else:
                assert long is not None and is_same(short, long)
    assert refused > 20


def test_that_they_are_read_beside_others(monkeypatch):
    found = []

    def counted(*arguments):
        found.append(even_fields(*arguments))
        return found[-1]

    monkeypatch.setattr(vectors, 'even_fields', counted)
    odd = [payload(3, size=9), payload(4, size=7)]
    payloads = [odd[0], *[payload(1000, time=bool)] * 4, *odd, *[payload(500, None, time=bool)] * 9]
    counts = [3, *[1000] * 4, 3, 4, *[500] * 9]
    buf = b''.join(payloads)
    ends = list(accumulate(map(len, payloads)))
    begins, headers = [0, *ends[:-1]], [(0,) * 12 + (count,) for count in counts]
    raw = RawRecords(buf, begins, ends, headers)
    parts = vectors._read(np, buf, 0, raw, vectors.COLUMNS)
    fields = map(np.concatenate, zip(*parts))
    assert is_same(fields, vectors._decode(np, buf, *vectors._frame(np, buf, begins, ends, counts)))
    assert [each is None for each in found] == [False, True, False]
