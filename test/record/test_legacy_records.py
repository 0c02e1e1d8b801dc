"""Message sets of magic 0 and 1: bytes, wrappers, offsets, errors."""

from __future__ import annotations

import zlib
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import compress
from kafka.errors import ChecksumError, ProtocolError, UnsupportedCodecError
from kafka.record import legacy_decoder
from kafka.record.legacy_records import (
    LegacyRecordBatch,
    decode_message,
    encode_message,
    encode_message_set,
    iter_message_set,
)
from kafka.record.memory_records import MemoryRecords
from test.record import oracle
from test.record.oracle import R
from test.record.strategies import fields

MAGIC_0 = [
    '0000000000000005',  # offset 5
    '00000013',  # 19 bytes follow
    '{crc}',  # CRC-32 of everything behind it
    '00',  # magic 0
    '00',  # attributes: no codec
    '00000002',  # key of 2 bytes
    '6b31',
    '00000003',  # value of 3 bytes
    '766131',
]
MAGIC_1 = [
    '0000000000000005',  # offset 5
    '0000001b',  # 27 bytes follow
    '{crc}',  # CRC-32 of everything behind it
    '01',  # magic 1
    '08',  # attributes: no codec, log append time
    '00000000000004d2',  # timestamp 1234
    'ffffffff',  # null key
    '00000005',  # value of 5 bytes
    '7661317661',
]


def vector(parts):
    body = bytes.fromhex(''.join(parts[3:]))
    return bytes.fromhex(''.join(parts).format(crc='%08x' % zlib.crc32(body)))


messages = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-1, 1 << 40), fields, fields), min_size=1, max_size=20
)


def numbered(steps):
    """Turn (step, timestamp, key, value) into messages of ascending offsets."""
    offset, out = 100, []
    for step, timestamp, key, value in steps:
        out.append((offset, timestamp, key, value))
        offset += 1 + step
    return out


def read(data):
    return [record for batch in MemoryRecords(data) for record in batch]


def expected(records, magic):
    return [R(o, t if magic else None, k, v) for o, t, k, v in records]


def wrap(inner, magic, codec=1, offset=0, attributes=0, timestamp=None):
    """Make a wrapper entry around bytes by hand."""
    value = compress(codec, inner, magic=magic)
    message = oracle.write_message(None, value, magic, codec | attributes, timestamp)
    return oracle.write_entry(offset, message)


def test_vector_of_magic_0():
    encoded = encode_message_set([(5, None, b'k1', b'va1')], magic=0)
    assert encoded == vector(MAGIC_0)
    assert read(encoded) == [(5, None, b'k1', b'va1', ())]


def test_vector_of_magic_1():
    encoded = encode_message_set([(5, 1234, None, b'va1va')], magic=1, timestamp_type=1)
    assert encoded == vector(MAGIC_1)
    assert read(encoded) == [(5, 1234, None, b'va1va', ())]


@pytest.mark.parametrize(
    'value, key, crc',
    [
        (b'v1', None, 1285512130),
        (b'v2', None, -711587208),
        (b'v1', b'k1', 1474775406),
        (b'v2', b'k2', -16383415),
        (b'test', b'key', -1427009701),
    ],
)
def test_known_checksums_of_magic_0(value, key, crc):
    """What the clients of 2015 computed."""
    assert encode_message(key, value)[:4] == (crc % 2**32).to_bytes(4, 'big')


def test_known_checksum_of_magic_1():
    encoded = encode_message(b'key', b'test', magic=1, timestamp=1234)
    assert encoded[:4] == (1331087195).to_bytes(4, 'big')


@given(messages, st.sampled_from([0, 1]))
def test_plain_sets_agree_with_the_obvious_way(steps, magic):
    records = numbered(steps)
    encoded = encode_message_set(records, magic=magic)
    assert encoded == oracle.write_set(expected(records, magic), magic)
    assert read(encoded) == oracle.read_set(encoded)[0] == expected(records, magic)


@given(messages, st.sampled_from([0, 1]), st.sampled_from([1, 2, 3]))
def test_wrapped_sets_come_back_with_their_offsets(steps, magic, codec):
    records = numbered(steps)
    encoded = encode_message_set(records, magic=magic, codec=codec)
    assert read(encoded) == expected(records, magic)


def test_a_wrapper_of_magic_1_holds_relative_offsets_and_the_largest_time():
    encoded = encode_message_set([(7, 30, None, b'a'), (9, 20, None, b'b')], magic=1, codec=1)
    assert int.from_bytes(encoded[:8], 'big') == 9
    wrapper = decode_message(encoded[12:])
    assert wrapper.timestamp == 30
    assert [m[0] for m in iter_message_set(encoded)] == [0, 2]


def test_a_wrapper_of_magic_0_holds_absolute_offsets():
    encoded = encode_message_set([(7, None, None, b'a'), (9, None, None, b'b')], magic=0, codec=1)
    assert int.from_bytes(encoded[:8], 'big') == 9
    assert [m[0] for m in iter_message_set(encoded)] == [7, 9]


def test_relative_offsets_with_gaps_count_back_from_the_last():
    """Compaction removed the first and the third of five messages."""
    inner = oracle.write_set([R(1, 5, None, b'b'), R(3, 6, None, b'd'), R(4, 7, None, b'e')], 1)
    assert [r.offset for r in read(wrap(inner, 1, offset=104))] == [101, 103, 104]


def test_log_append_time_of_a_wrapper_overrides_the_times_inside():
    inner = oracle.write_set([R(0, 5, None, b'a'), R(1, 6, None, b'b')], 1)
    (batch,) = MemoryRecords(wrap(inner, 1, offset=1, attributes=8, timestamp=777))
    assert batch.timestamp_type == 1
    assert [r.timestamp for r in batch] == [777, 777]


def test_create_time_inside_a_wrapper_stays():
    inner = oracle.write_set([R(0, 5, None, b'a'), R(1, 6, None, b'b')], 1)
    assert [r.timestamp for r in read(wrap(inner, 1, offset=1, timestamp=777))] == [5, 6]


@pytest.mark.parametrize('magic', [0, 1])
def test_wrappers_in_wrappers(magic):
    """0.8 brokers took what writers nested; more than three levels are nobody's data."""
    data = oracle.write_set([R(0, 5, None, b'a'), R(1, 6, None, b'b')], magic)
    for _ in range(3):
        data = wrap(data, magic, offset=1)
        assert [r.value for r in read(data)] == [b'a', b'b']
    with pytest.raises(ProtocolError, match='too deeply'):
        read(wrap(data, magic, offset=1))


def test_messages_of_different_kinds_in_one_set():
    parts = [
        encode_message_set([(1, 5, b'k', b'v')], magic=0),
        encode_message_set([(2, 5, b'k', b'v')], magic=1),
        encode_message_set([(3, 5, b'k', b'v')], magic=1, timestamp_type=1),
        encode_message_set([(4, 5, b'k', b'v')], magic=0, codec=1),
        encode_message_set([(5, 5, b'k', None)], magic=0),
    ]
    batches = list(MemoryRecords(b''.join(parts)))
    assert [b.size_in_bytes for b in batches] == list(map(len, parts))
    assert [b.timestamp_type for b in batches] == [None, 0, 1, None, None]
    assert [r.offset for b in batches for r in b] == [1, 2, 3, 4, 5]


def test_a_batch_says_what_it_is():
    records = [(5, 9, None, b'a'), (8, 9, None, None)]
    for codec in (0, 1):
        (batch,) = MemoryRecords(encode_message_set(records, magic=1, codec=codec))
        assert (batch.magic, batch.codec, batch.timestamp_type) == (1, codec, 0)
        assert (batch.base_offset, batch.last_offset, batch.next_offset) == (5, 8, 9)
        assert (batch.is_control, batch.is_transactional) == (False, False)
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert (batch.partition_leader_epoch, batch.delete_horizon_ms) == (-1, None)
        assert list(batch) == list(batch)


def test_a_long_set_comes_as_batches_of_a_thousand():
    encoded = encode_message_set([(i, None, None, b'v') for i in range(2500)], magic=0)
    batches = list(MemoryRecords(encoded))
    assert [b.next_offset for b in batches] == [1000, 2000, 2500]
    assert [len(list(b)) for b in batches] == [1000, 1000, 500]


def test_extent_is_the_same_read_or_measured():
    encoded = encode_message_set([(i, None, None, b'v') for i in range(30)], magic=0)
    read_first, measured = LegacyRecordBatch(encoded), LegacyRecordBatch(encoded)
    assert len(list(read_first)) == 30
    assert (read_first.end, read_first.last_offset) == (measured.end, measured.last_offset)


@pytest.mark.parametrize('place', [0, 1, 7])
def test_a_wrong_crc_is_reported_after_the_messages_before_it(place):
    encoded = bytearray(encode_message_set([(i, 0, None, b'v%d' % i) for i in range(8)], magic=1))
    encoded[(place + 1) * (len(encoded) // 8) - 1] ^= 1
    got = []
    with pytest.raises(ChecksumError, match='offset %d' % place):
        for batch in MemoryRecords(encoded):
            got += [r.offset for r in batch]
    assert got == []  # list() of the batch failed as a whole ...
    (batch,) = MemoryRecords(encoded)
    with pytest.raises(ChecksumError):
        for record in batch:
            got.append(record.offset)
    assert got == list(range(place))  # ... but one by one they come


def test_a_wrong_crc_of_a_wrapper():
    outer = bytearray(encode_message_set([(4, 0, None, b'v')], codec=1))
    outer[-1] ^= 1
    with pytest.raises(ChecksumError, match='offset 4'):
        read(outer)


def test_a_wrong_crc_inside_a_wrapper_is_looked_at_by_the_old_interface_alone():
    """The wrapper's CRC covers the same bytes, and the broker checked each message it took."""
    inner = bytearray(oracle.write_set([R(i, 5, k, b'a') for i, k in enumerate((None, b'k'))], 0))
    inner[-1] ^= 1
    assert read(wrap(bytes(inner), 0))[1] == (1, None, b'k', b'`', ())
    with pytest.raises(ChecksumError, match='offset 1'):
        list(iter_message_set(wrap(bytes(inner), 0)))
    with pytest.raises(ChecksumError, match='offset 1'):
        list(iter_message_set(wrap(wrap(bytes(inner), 0), 0)))


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('key', [None, b'key'])
def test_crcs_of_a_run_are_checked_at_once(magic, key, monkeypatch):
    """The last message alone is left to the next way; any flipped bit is found before."""
    rows = [(i, 7 * i, key, b'%d' % 3**i) for i in range(9)]
    encoded = encode_message_set(rows, magic)
    starts = [len(encode_message_set(rows[:i], magic)) for i in range(9)]
    reached = []

    def leave(_buf, run, _check):
        reached.append((run.end, len(run.offsets), len(run.keys), len(run.values)))
        raise EOFError

    monkeypatch.setattr(legacy_decoder, '_read_slices', leave)
    with pytest.raises(EOFError):
        read(encoded)
    assert reached.pop() == (starts[-1], 8, 8, 8)
    covered = [range(start + 12, end) for start, end in zip(starts[1:], starts[2:])]
    for place in chain(*covered):
        damaged = bytearray(encoded)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(EOFError):
            read(damaged)
        end, *counts = reached.pop()
        assert end <= place and counts == [counts[0]] * 3, place


def sealed(data):
    """Write the CRC of each entry anew, as far as the sizes lead."""
    out, pos = bytearray(data), 0
    while pos + 16 <= len(out):
        end = pos + 12 + int.from_bytes(out[pos + 8 : pos + 12], 'big')
        if end > len(out) or end < pos + 16:
            break
        out[pos + 12 : pos + 16] = zlib.crc32(out[pos + 16 : end]).to_bytes(4, 'big')
        pos = end
    return bytes(out)


def runs_of(data, magic, check):
    """Return all that comes out of a wrapper, and how it ends."""
    wrapper = legacy_decoder.LegacyMessage(0, magic, 1, None, None, compress(1, data))
    columns = [], [], [], []
    try:
        for run in legacy_decoder.unwrap(wrapper, 1 << 20, check):
            for column, more in zip(columns, (run.offsets, run.timestamps, run.keys, run.values)):
                column += more
    except (ProtocolError, UnsupportedCodecError) as error:
        return columns, str(error)
    return columns, None


@given(messages, st.sampled_from([0, 1]), st.data())
def test_messages_read_without_their_crcs_are_the_same(steps, magic, data):
    """Whatever number is wrong, what is left out are CRCs, and offsets between two others."""
    encoded = bytearray(encode_message_set(numbered(steps), magic))
    offsets, pos = set(), 0
    while pos < len(encoded):
        offsets.update(range(pos, pos + 8))
        pos += 12 + int.from_bytes(encoded[pos + 8 : pos + 12], 'big')
    places = sorted(set(range(len(encoded))) - offsets)
    for _ in range(data.draw(st.integers(0, 2))):
        encoded[data.draw(st.sampled_from(places))] = data.draw(st.integers(0, 255))
    damaged = sealed(encoded)
    assert runs_of(damaged, magic, False) == runs_of(damaged, magic, True)


@given(messages, st.sampled_from([0, 1]), st.data())
def test_offsets_inside_a_wrapper_may_leave_gaps(steps, magic, data):
    """Compaction makes them, anywhere."""
    rows = numbered(steps)
    offsets = data.draw(
        st.lists(st.integers(0, 1 << 40), min_size=len(rows), max_size=len(rows), unique=True)
    )
    rows = [(offset, *row[1:]) for offset, row in zip(sorted(offsets), rows)]
    encoded = encode_message_set(rows, magic)
    unchecked = runs_of(encoded, magic, False)
    assert unchecked == runs_of(encoded, magic, True)
    assert unchecked[0][0] == [row[0] for row in rows]


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('fill', [b'\xff', b'\x00'])
def test_long_keys_without_value_inside_a_wrapper(magic, fill):
    """Such a key is not looked up in the ready-made formats, nor is its content taken for sizes."""
    rows = [(0, 1, fill * 300, None), (1, 2, None, None), (2, 3, b'k', fill * 2000)]
    assert read(encode_message_set(rows, magic, codec=1)) == expected(rows, magic)


def test_a_set_cut_off_inside_a_wrapper_is_malformed():
    """Only what comes from a broker may end anywhere; a wrapper was written whole."""
    inner = oracle.write_set([R(0, 5, None, b'aaaa')], 0)
    for cut in range(1, len(inner)):
        with pytest.raises(ProtocolError, match='truncated'):
            read(wrap(inner[:cut], 0))


def test_a_wrapper_with_more_messages_than_are_kept():
    """Its last offset is looked for first and the wrapper read a second time."""
    records = [(100 + i, i, None, None) for i in range(17500)]
    assert read(encode_message_set(records, magic=1, codec=1)) == expected(records, 1)


def test_an_empty_wrapper():
    with pytest.raises(ProtocolError, match='empty'):
        read(wrap(b'', 1))
    assert read(wrap(b'', 0)) == []


def test_a_wrapper_without_value():
    message = oracle.write_message(b'k', None, 0, 1)
    with pytest.raises(ProtocolError, match='no value'):
        read(oracle.write_entry(3, message))


@pytest.mark.parametrize('magic', [0, 1])
def test_another_magic_inside_a_wrapper(magic):
    inner = oracle.write_set([R(0, 5, None, b'a')], 1 - magic)
    with pytest.raises(ProtocolError, match='another magic'):
        read(wrap(inner, magic))
    with pytest.raises(ProtocolError, match='another magic'):
        read(wrap(wrap(inner, 1 - magic), magic))


def test_zstd_does_not_exist_in_message_sets():
    with pytest.raises(UnsupportedCodecError, match='codec 4'):
        encode_message_set([(0, 0, None, b'v')], magic=1, codec=4)
    message = oracle.write_message(None, b'x', 1, 4, 0)
    with pytest.raises(UnsupportedCodecError, match='codec 4'):
        read(oracle.write_entry(0, message))


@pytest.mark.parametrize('magic', [0, 1])
def test_sizes_that_contradict_each_other(magic):
    """The CRC is right each time: only the fields are not."""
    good = oracle.write_message(b'key', b'value', magic, timestamp=5)
    at = 14 if magic else 6
    for place, size in [(at, -2), (at, 100), (at, 4), (at + 7, 4), (at + 7, 6), (at + 7, -1)]:
        body = good[4:place] + size.to_bytes(4, 'big', signed=True) + good[place + 4 :]
        message = zlib.crc32(body).to_bytes(4, 'big') + body
        with pytest.raises(ProtocolError):
            read(oracle.write_entry(0, message))


def test_decode_message_checks_the_crc_before_anything_else():
    with pytest.raises(ChecksumError):
        decode_message(b'\x00\x00\x00\x01' + b'\x7f' * 30)
    with pytest.raises(ProtocolError, match='too short'):
        decode_message(b'abc')
    with pytest.raises(ProtocolError, match='magic 5'):
        decode_message(zlib.crc32(b'\x05' * 20).to_bytes(4, 'big') + b'\x05' * 20)


def test_iter_message_set_gives_what_is_stored():
    """The offsets inside a wrapper stay as they are, as 0.9.5 had it."""
    encoded = encode_message_set([(6, None, b'k', b'v')], magic=0)
    encoded += wrap(oracle.write_set([R(0, None, None, b'a'), R(0, None, None, b'b')], 0), 0)
    encoded += encode_message_set([(9, 5, None, None)], magic=1, timestamp_type=1)
    assert list(iter_message_set(encoded + encoded[:20])) == [
        (6, 0, 0, b'k', b'v'),
        (0, 0, 0, None, b'a'),
        (0, 0, 0, None, b'b'),
        (9, 1, 8, None, None),
    ]


def test_iter_message_set_raises_where_the_broken_message_stands():
    encoded = bytearray(encode_message_set([(i, None, None, b'v') for i in range(3)], magic=0))
    encoded[-1] ^= 1
    found = iter_message_set(encoded)
    assert [next(found)[0], next(found)[0]] == [0, 1]
    with pytest.raises(ChecksumError, match='offset 2'):
        next(found)


@pytest.mark.parametrize('keyword', [{'magic': 2}, {'magic': 0, 'attributes': 128}])
def test_what_no_message_can_carry(keyword):
    with pytest.raises(ProtocolError):
        encode_message(None, b'', **keyword)


def test_an_offset_out_of_range():
    with pytest.raises(ProtocolError, match='out of range'):
        encode_message_set([(1 << 63, 0, None, b'')])
    with pytest.raises(ProtocolError, match='out of range'):
        encode_message_set([(0, 1 << 63, None, b'')])


def test_no_messages_make_an_empty_set():
    assert encode_message_set([], codec=1) == b''


@pytest.mark.parametrize(
    'message, complaint',
    [
        ((0, 0, 'key', b''), 'key of a message must be bytes or None, not str'),
        ((0, 0, None, 5), 'value of a message must be bytes or None, not int'),
        ((0, 'now', None, b''), 'timestamp'),
    ],
)
def test_wrong_types_are_named(message, complaint):
    with pytest.raises(TypeError, match=complaint):
        encode_message_set([message])
