"""Conversion between message sets and batches, and the limit of old fetches."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import gzip_encode, has_lz4, has_snappy
from kafka.errors import ChecksumError, KafkaError, ProtocolError
from kafka.record import conversion
from kafka.record.conversion import (
    ENTRY_OVERHEAD,
    MESSAGE_OVERHEAD,
    MessageSet,
    down_convert,
    up_convert,
)
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message, encode_message_set
from kafka.record.memory_records import MemoryRecords

NOW = 1_700_000_000_000
NO_LIMIT = 2**31 - 1

CODECS = [0, 1] + [2] * has_snappy() + [3] * has_lz4()

texts = st.one_of(st.none(), st.binary(max_size=12))
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)


def message_set(pairs, magic=0, **options):
    """Messages of (key, value) at offsets 0, 1, ..."""
    messages = [(at, NOW - at, key, value) for at, (key, value) in enumerate(pairs)]
    return encode_message_set(messages, magic=magic, **options)


def wrapper(inner):
    """A message of magic 0 with a message set, compressed with gzip, as its value."""
    message = encode_message(None, gzip_encode(inner), attributes=1)
    return struct.pack('>qi', 0, len(message)) + message


def batch(values, base_offset=0, **options):
    records = [(NOW, None, value, ()) for value in values]
    return encode_batch(records, base_offset=base_offset, **options)


def control(base_offset):
    """The marker at the end of a transaction."""
    marker = (NOW, b'\x00\x00\x00\x01', b'\x00\x00\x00\x00\x00\x00', ())
    options = {'control': True, 'transactional': True, 'producer_id': 5, 'producer_epoch': 0}
    return encode_batch([marker], base_offset=base_offset, **options)


def read(data):
    return [record for each in MemoryRecords(data) for record in each]


def values(converted):
    return [(record.offset, record.value) for record in read(converted.data)]


# ---------------------------------------------------------------- up


@given(pairs, st.sampled_from(CODECS))
def test_a_message_set_becomes_one_batch_of_the_same_codec(pairs, codec):
    (only,) = MemoryRecords(up_convert(message_set(pairs, codec=codec), NOW))
    assert (only.magic, only.codec, only.base_offset) == (2, codec, 0)
    assert [(r.key, r.value) for r in only] == pairs
    assert {r.timestamp for r in only} == {NOW}


def test_messages_of_magic_1_keep_their_timestamps():
    records = read(up_convert(message_set([(None, b'a'), (None, b'b')], magic=1), 5))
    assert [r.timestamp for r in records] == [NOW, NOW - 1]


def test_a_message_of_magic_1_without_timestamp_gets_one():
    data = encode_message_set([(0, -1, None, b'a')], magic=1)
    assert read(up_convert(data, 5))[0].timestamp == 5


def test_nested_sets_are_unwrapped():
    inner = message_set([(None, b'a'), (None, b'b')], codec=1)
    wrapped = encode_message_set([(0, None, None, b'before')], magic=0) + inner
    assert [r.value for r in read(up_convert(wrapped, NOW))] == [b'before', b'a', b'b']


@pytest.mark.parametrize('empty', [b'', None])
def test_no_messages_become_no_batch(empty):
    assert up_convert(empty, NOW) is None


def test_a_wrong_crc_is_found():
    data = bytearray(message_set([(None, b'abc')]))
    data[-1] ^= 1
    with pytest.raises(ChecksumError):
        up_convert(bytes(data), NOW)


@pytest.mark.parametrize(
    'convert', [lambda s: up_convert(s, NOW), lambda s: down_convert(s, 0, 99)]
)
def test_a_wrong_crc_inside_a_wrapper_is_found_before_it_is_written_anew(convert):
    inner = bytearray(message_set([(None, b'abc')]))
    inner[12] ^= 1  # the CRC of the message inside; that of the wrapper is right
    with pytest.raises(ChecksumError):
        convert(wrapper(bytes(inner)))


def test_a_batch_of_magic_2_is_no_message_set():
    with pytest.raises(ProtocolError, match='magic 2'):
        up_convert(batch([b'a']), NOW)


def test_a_cut_off_message_is_not_left_out_in_silence():
    with pytest.raises(ProtocolError, match='ends inside a message'):
        up_convert(message_set([(None, b'a'), (None, b'b')])[:-1], NOW)


# ---------------------------------------------------------------- down


@given(pairs, st.sampled_from(CODECS), st.integers(0, 7))
def test_a_batch_becomes_the_messages_from_the_wanted_offset_on(pairs, codec, wanted):
    wanted %= len(pairs)
    records = [(NOW, key, value, (('h', b'x'),)) for key, value in pairs]
    data = encode_batch(records, base_offset=0, codec=codec)
    converted = down_convert(data, wanted, NO_LIMIT)
    assert (converted.end, converted.next_offset) == (len(pairs), len(pairs))
    assert len(converted) == len(converted.data)
    got = read(converted.data)
    assert [(r.offset, r.key, r.value) for r in got] == [
        (at, *pair) for at, pair in enumerate(pairs) if at >= wanted
    ]
    assert all(each.magic == 0 and each.codec == 0 for each in MemoryRecords(converted.data))


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
def test_messages_written_long_ago_are_read_as_well(magic, codec):
    data = message_set([(None, b'a'), (None, b'b')], magic=magic, codec=codec)
    assert values(down_convert(data, 0, NO_LIMIT)) == [(0, b'a'), (1, b'b')]


@pytest.mark.parametrize('nothing', [None, b''])
def test_nothing_becomes_nothing(nothing):
    assert down_convert(nothing, 7, NO_LIMIT) == MessageSet(b'', 7, 7)


def test_control_batches_vanish_and_the_way_behind_them_is_told():
    """A consumer that got nothing would ask for the same offset for ever."""
    assert down_convert(control(3), 3, NO_LIMIT) == MessageSet(b'', 3, 4)


def test_a_control_batch_at_the_end_is_a_gap_behind_the_messages():
    converted = down_convert(batch([b'a', b'b']) + control(2), 0, NO_LIMIT)
    assert values(converted) == [(0, b'a'), (1, b'b')]
    assert (converted.end, converted.next_offset) == (2, 3)


def test_messages_behind_a_control_batch_are_delivered_at_once():
    converted = down_convert(control(0) + batch([b'a'], base_offset=1), 0, NO_LIMIT)
    assert values(converted) == [(1, b'a')]
    assert converted.next_offset == converted.end == 2


def test_records_that_all_end_before_the_wanted_offset_are_refused():
    """A consumer would ask for the same offset, and get them, for ever."""
    with pytest.raises(ProtocolError, match='up to offset 1, but 2 was requested'):
        down_convert(batch([b'a', b'b']), 2, NO_LIMIT)


def test_the_beginning_of_a_batch_alone_comes_as_it_is():
    """The consumer takes it for a buffer that is too small, as it does with every broker."""
    data = batch([b'a'])
    assert down_convert(data[:-1], 3, NO_LIMIT) == MessageSet(data[:-1], 3, 3)
    assert down_convert(data[:-1], 3, 20) == MessageSet(data[:20], 3, 3)


def test_a_set_ends_where_its_messages_would_take_too_much_memory(monkeypatch):
    monkeypatch.setattr(conversion, 'MAX_SET_BYTES', 3 * MESSAGE_OVERHEAD)
    data = batch([b''] * 5, codec=1) + batch([b''], base_offset=5)
    first = down_convert(data, 0, NO_LIMIT)
    assert [offset for offset, _ in values(first)] == [0, 1, 2]
    assert (first.end, first.next_offset) == (3, 3)
    then = down_convert(data, 3, NO_LIMIT)
    assert [offset for offset, _ in values(then)] == [3, 4, 5]


def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch():
    data = batch([b'a']) + batch([b'b'], base_offset=1)
    assert values(down_convert(data[:-1], 0, NO_LIMIT)) == [(0, b'a')]


# ---------------------------------------------------------------- the limit


def test_a_first_message_beyond_the_limit_comes_cut_off():
    """As Fetch 0 to 2 sent it; the consumer takes it for a buffer that is too small."""
    converted = down_convert(batch([b'x' * 100]), 0, 50)
    assert len(converted.data) == 50
    assert MemoryRecords(converted.data).partial
    whole = encode_message_set([(0, None, None, b'x' * 100)], magic=0)
    assert whole.startswith(converted.data)
    assert (converted.end, converted.next_offset) == (0, 0)


def test_a_limit_of_0_gives_nothing():
    assert down_convert(batch([b'a']), 0, 0).data == b''


@pytest.mark.parametrize('key', [None, b'key'])
def test_a_message_of_exactly_the_limit_is_whole(key):
    records = [(NOW, key, b'x' * 100, ())]
    limit = ENTRY_OVERHEAD + len(key or b'') + 100
    whole = down_convert(encode_batch(records), 0, limit)
    assert len(whole.data) == limit
    assert len(read(whole.data)) == 1
    assert MemoryRecords(down_convert(encode_batch(records), 0, limit - 1).data).partial


def test_a_large_message_ends_the_set_and_comes_cut_off_when_it_is_first():
    data = batch([b'small', b'x' * 100, b'after'])
    assert values(down_convert(data, 0, 60)) == [(0, b'small')]
    cut_off = down_convert(data, 1, 60)
    assert MemoryRecords(cut_off.data).partial
    assert (cut_off.end, cut_off.next_offset) == (1, 1)


def test_the_set_may_be_larger_than_the_limit_that_each_message_keeps():
    """Leaving messages out would make the broker send the same batch again for each part."""
    converted = down_convert(batch([b'x' * 30] * 50), 0, 100)
    assert len(read(converted.data)) == 50


def test_a_compressed_batch_within_the_limit_is_delivered_whole():
    """In 0.8 the wrapper was the message; what came out of it was never limited."""
    packed = batch([b'x' * 1000], codec=1)
    assert len(packed) < 500
    assert len(read(down_convert(packed, 0, 500).data)) == 1


# ---------------------------------------------------------------- damage


def damaged(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def test_damage_in_the_first_batch_is_raised():
    with pytest.raises(ChecksumError):
        down_convert(damaged(batch([b'a'])), 0, NO_LIMIT)


def test_damage_further_behind_ends_the_set_and_is_raised_by_the_next_fetch():
    data = batch([b'a']) + damaged(batch([b'b'], base_offset=1))
    converted = down_convert(data, 0, NO_LIMIT)
    assert values(converted) == [(0, b'a')]
    assert converted.next_offset == 1


def test_messages_before_a_damaged_one_of_an_old_set_are_delivered():
    data = damaged(message_set([(None, b'a'), (None, b'b')]))
    assert values(down_convert(data, 0, NO_LIMIT)) == [(0, b'a')]
    with pytest.raises(ChecksumError):
        down_convert(data, 1, NO_LIMIT)


@given(
    st.sampled_from([batch([b'a', b'bb']), message_set([(b'k', b'v')] * 3, codec=1), control(0)]),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
    st.integers(0, 200),
)
def test_no_damage_leads_to_an_undocumented_error(data, changes, length):
    damaged = bytearray(data)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    for convert in (
        lambda: down_convert(bytes(damaged[:length]), 0, NO_LIMIT),
        lambda: up_convert(bytes(damaged[:length]), NOW),
    ):
        try:
            convert()
        except KafkaError:
            pass
