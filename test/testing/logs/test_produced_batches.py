"""What a produce request may hold, and what becomes of it."""

from __future__ import annotations

import struct
from typing import Any, List, Optional
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka import codec as codecs
from kafka.codec import has_lz4, has_zstd
from kafka.record.crc32c import crc32c
from kafka.record.default_records import encode_batch
from kafka.record.legacy_decoder import decode_message, unwrap
from kafka.record.legacy_records import encode_message, encode_message_set
from kafka.record.memory_records import MemoryRecords
from kafka.testing.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from kafka.testing.logs.log_settings import LogSettings
from kafka.testing.logs.partition_log import Batch, PartitionLog
from kafka.testing.logs.produced_batches import RefusedRecords, Rules, produced_batches
from test.testing.data_requests import NOW, batch, message_set, offsets, values

FOREVER = 2**63 - 1


def rules(*release: int, api_version: Optional[int] = None, **changes: Any) -> Rules:
    highest = 0 if release < (0, 10) else 1 if release < (0, 11) else 2
    settings = LogSettings(
        magic=highest,
        max_message_bytes=1048588,
        codec=None,
        has_append_time=False,
        before_ms=FOREVER,
        after_ms=FOREVER,
        is_compacted=False,
        is_deleted=True,
        min_insync_replicas=1,
    )
    version = (7 if highest == 2 else highest + 1) if api_version is None else api_version
    return Rules(release, version, settings._replace(**changes), NOW)


def stored(data: bytes, by: Rules) -> bytes:
    """Return what lies in the log at first, after five other records."""
    log = PartitionLog()
    log.end_offset = log.start_offset = 5
    for each in produced_batches(data, by):
        log.append(each, 0)
    return log.read(5, log.end_offset, 1 << 20, False)


def error_of(data: bytes, by: Rules) -> int:
    with pytest.raises(RefusedRecords) as caught:
        produced_batches(data, by)
    return caught.value.error


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize('sent', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('kept', [0, 1, 2])
def test_sets_are_kept_in_the_format_of_the_topic(sent: int, codec: int, kept: int) -> None:
    data = message_set(b'a', b'b', magic=sent, codec=codec)
    found = stored(data, rules(2, 8, api_version=2, magic=kept))
    parts = list(MemoryRecords(found))
    assert [(part.magic, part.codec) for part in parts] == [(kept, codec)]
    assert (values(found), offsets(found)) == ([b'a', b'b'], [5, 6])


@pytest.mark.parametrize('kept', [0, 1])
def test_batches_are_kept_in_the_format_of_the_topic(kept: int) -> None:
    found = stored(batch(b'a', b'b', codec=1), rules(2, 8, magic=kept))
    assert [(part.magic, part.codec) for part in MemoryRecords(found)] == [(kept, 1)]
    assert offsets(found) == [5, 6]


def test_older_formats_have_no_producer_ids() -> None:
    data = batch(b'a', producer_id=1, producer_epoch=0, base_sequence=0)
    assert error_of(data, rules(2, 8, magic=1)) == UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_going_up_a_message_keeps_its_time_and_gets_none_where_it_has_none() -> None:
    for magic, stamp in ((0, -1), (1, NOW)):
        found = stored(message_set(b'a', magic=magic), rules(2, 8, api_version=2))
        (part,) = MemoryRecords(found)
        assert [record.timestamp for record in part] == [stamp]


def test_batches_of_magic_2_in_old_requests() -> None:
    found = produced_batches(batch(b'a') + batch(b'b', b'c'), rules(2, 8, api_version=2))
    assert [each.last_offset for each in found] == [0, 1]


def test_plain_and_compressed_messages_become_one_wrapper() -> None:
    data = message_set(b'a') + message_set(b'b', codec=1)
    found = stored(data, rules(0, 9))
    assert [part.codec for part in MemoryRecords(found)] == [1]
    assert (values(found), offsets(found)) == ([b'a', b'b'], [5, 6])


def test_wild_offsets_in_a_wrapper_are_written_anew() -> None:
    for magic, release in ((0, (0, 9)), (1, (0, 10))):
        messages = [(offset, NOW, None, b'%d' % offset) for offset in (7, 3, 99)]
        data = encode_message_set(messages, magic=magic, codec=1)
        assert offsets(stored(data, rules(*release))) == [5, 6, 7]


def test_many_messages_come_as_pieces() -> None:
    data = message_set(*[b'%d' % number for number in range(2500)])
    found = produced_batches(data, rules(0, 9))
    assert [each.last_offset + 1 for each in found] == [1000, 1000, 500]
    assert offsets(stored(data, rules(0, 9))) == list(range(5, 2505))


def test_a_set_that_ends_inside_a_message_loses_that() -> None:
    data = message_set(b'a', b'b')
    assert values(stored(data[:-1], rules(0, 9))) == [b'a']


# ---------------------------------------------------------------- codecs


@pytest.mark.skipif(not has_lz4(), reason='no lz4')
@pytest.mark.parametrize(
    ('release', 'right', 'wrong'),
    [
        ((0, 8, 1), UNKNOWN_SERVER_ERROR, UNKNOWN_SERVER_ERROR),
        ((0, 8, 2), UNKNOWN_SERVER_ERROR, 0),
        ((0, 9), UNKNOWN_SERVER_ERROR, 0),
        ((0, 10, 0), 0, 0),
    ],
)
def test_lz4_in_magic_0(release: tuple, right: int, wrong: int) -> None:
    inner = message_set(b'a')
    for packed, error in (
        (codecs.lz4_encode(inner), right),
        (codecs.lz4_encode_old_kafka(inner), wrong),
    ):
        message = encode_message(None, packed, attributes=3)
        data = struct.pack('>qi', 0, len(message)) + message
        if error:
            assert error_of(data, rules(*release)) == error
        else:
            assert values(stored(data, rules(*release))) == [b'a']


@pytest.mark.skipif(not has_lz4(), reason='no lz4')
@pytest.mark.parametrize(
    ('release', 'error'), [((0, 10, 0), CORRUPT_MESSAGE), ((0, 11), UNKNOWN_SERVER_ERROR)]
)
def test_lz4_in_magic_1_with_the_old_checksum(release: tuple, error: int) -> None:
    packed = codecs.lz4_encode_old_kafka(message_set(b'a', magic=1))
    message = encode_message(None, packed, magic=1, attributes=3, timestamp=NOW)
    data = struct.pack('>qi', 0, len(message)) + message
    assert error_of(data, rules(*release, api_version=2)) == error


@pytest.mark.skipif(not has_zstd(), reason='no zstd')
def test_zstd_before_2_1() -> None:
    assert error_of(batch(b'a', codec=4), rules(2, 0, api_version=6)) == UNKNOWN_SERVER_ERROR
    assert values(stored(batch(b'a', codec=4), rules(2, 1))) == [b'a']


@pytest.mark.parametrize('sent', [0, 1])
@pytest.mark.parametrize('wanted', [0, 1])
def test_a_topic_with_a_codec_of_its_own(sent: int, wanted: int) -> None:
    data = batch(b'a', b'b', codec=sent, producer_id=4, producer_epoch=1, base_sequence=9)
    by = rules(4, 4, codec=wanted)
    (found,) = produced_batches(data, by)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (4, 1, 9)
    (part,) = MemoryRecords(stored(data, by))
    assert part.codec == wanted
    assert [record.value for record in part] == [b'a', b'b']


# ---------------------------------------------------------------- refused


def sealed(data: bytes, **fields: int) -> bytes:
    """Return a batch with other fields in its header, and the CRC for them."""
    places = {'attributes': (21, '>h'), 'delta': (23, '>i'), 'count': (57, '>i')}
    out = bytearray(data)
    for name, value in fields.items():
        struct.pack_into(places[name][1], out, places[name][0], value)
    struct.pack_into('>I', out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


@pytest.mark.parametrize(
    'fields',
    [
        {'count': 0, 'delta': -1},
        {'count': -1, 'delta': -2},
        {'count': 3},
        {'delta': 5},
        {'count': 3, 'delta': 2},
        {'count': 1, 'delta': 0},
        {'count': 2**31 - 1, 'delta': 2**31 - 2},
    ],
)
def test_counts_that_cannot_be(fields: dict) -> None:
    error = error_of(sealed(batch(b'a', b'b'), **fields), rules(4, 4))
    assert error in (INVALID_RECORD, CORRUPT_MESSAGE)


def test_a_codec_that_cannot_read_it() -> None:
    data = sealed(batch(b'a'), attributes=1)
    assert error_of(data, rules(4, 4)) == UNKNOWN_SERVER_ERROR


def test_transactional_without_producer() -> None:
    assert error_of(batch(b'a', transactional=True), rules(4, 4)) == INVALID_RECORD


def test_a_producer_without_sequence() -> None:
    assert error_of(batch(b'a', producer_id=1, producer_epoch=0), rules(4, 4)) == INVALID_RECORD


def test_the_producer_does_not_say_log_append_time() -> None:
    data = batch(b'a', timestamp_type=1)
    assert error_of(data, rules(2, 8)) == INVALID_TIMESTAMP
    (part,) = MemoryRecords(stored(data, rules(4, 4)))
    assert part.timestamp_type == 0
    data = message_set(b'a', magic=1, timestamp_type=1)
    assert produced_batches(data, rules(3, 9, api_version=2))
    assert error_of(data, rules(0, 10)) == INVALID_TIMESTAMP


@pytest.mark.parametrize(('away', 'is_taken'), [(-11, False), (-10, True), (10, True), (11, False)])
def test_limits_of_timestamps(away: int, is_taken: bool) -> None:
    for data, by in (
        (batch(b'a', at=NOW + away), rules(4, 4, before_ms=10, after_ms=10)),
        (message_set(b'a', magic=1, at=NOW + away), rules(0, 10, before_ms=10, after_ms=10)),
    ):
        if is_taken:
            assert produced_batches(data, by)
        else:
            assert error_of(data, by) == INVALID_TIMESTAMP


def test_0_10_has_no_exception_for_messages_without_time() -> None:
    data = message_set(b'a', magic=0)
    assert error_of(data, rules(0, 10, before_ms=10, after_ms=10)) == INVALID_TIMESTAMP


def test_the_largest_timestamp_is_corrected() -> None:
    data = batch(b'a', b'b', max_timestamp=NOW + 500)
    (part,) = MemoryRecords(stored(data, rules(4, 4)))
    assert part.max_timestamp == NOW


def test_older_formats_have_no_headers() -> None:
    data = encode_batch([(NOW, None, b'a', [('h', b'x')])])
    assert error_of(data, rules(2, 8, magic=1)) == UNKNOWN_SERVER_ERROR


def test_0_8_keeps_messages_of_any_magic() -> None:
    data = bytearray(message_set(b'a'))
    data[16] = 9
    struct.pack_into('>I', data, 12, crc32(bytes(data[16:])))
    (found,) = produced_batches(bytes(data), rules(0, 9))
    assert found.data == bytes(data)
    assert error_of(bytes(data), rules(0, 10)) == UNKNOWN_SERVER_ERROR


def test_0_10_takes_newer_magics_for_1() -> None:
    data = bytearray(message_set(b'a', magic=1))
    data[16] = 9
    struct.pack_into('>I', data, 12, crc32(bytes(data[16:])))
    assert values(stored(bytes(data), rules(0, 10))) == [b'a']


def test_in_a_wrapper_with_append_time_messages_keep_theirs() -> None:
    data = message_set(b'a', b'b', magic=1, at=NOW - 7, codec=1)
    found = stored(data, rules(0, 10, has_append_time=True))
    (part,) = MemoryRecords(found)
    assert [record.timestamp for record in part] == [NOW, NOW]
    wrapper = decode_message(found[12:])
    assert wrapper.timestamp == NOW
    assert [run.timestamps for run in unwrap(wrapper, 1000)] == [[NOW - 7, NOW - 7]]


def test_all_bad_records_are_counted_and_three_are_named() -> None:
    data = encode_batch([(NOW, None, b'a', ())] * 5)
    with pytest.raises(RefusedRecords) as caught:
        produced_batches(data, rules(4, 4, is_compacted=True))
    assert [index for index, _ in caught.value.record_errors] == [0, 1, 2, 3, 4]
    assert '5 record errors' in (caught.value.text or '')
    assert (caught.value.text or '').count('RecordError(') == 3


def test_the_size_counts_after_the_conversion_too() -> None:
    data = message_set(b'a' * 50)
    assert error_of(data, rules(2, 8, api_version=2, max_message_bytes=100)) == MESSAGE_TOO_LARGE
    assert produced_batches(data, rules(0, 9, max_message_bytes=100))


@pytest.mark.parametrize('release', [(0, 8, 0), (0, 9), (0, 10, 2)])
def test_a_wrong_crc_is_found_beside_a_message_of_a_newer_magic(release: tuple) -> None:
    newer = bytearray(message_set(b'b', magic=1))
    newer[16] = 2
    newer[12:16] = crc32(newer[16:]).to_bytes(4, 'big')
    broken = bytearray(message_set(b'a'))
    broken[-1] ^= 1
    assert produced_batches(bytes(newer), rules(*release))
    assert error_of(bytes(broken + newer), rules(*release)) == CORRUPT_MESSAGE


@pytest.mark.parametrize('release', [(0, 8, 0), (0, 9), (0, 10, 2), (0, 11), (2, 8), (4, 4)])
@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 300),
    kind=st.integers(0, 5),
    reseal=st.booleans(),
)
def test_damaged_records_are_taken_or_refused_and_nothing_else(
    release: tuple, changes: List[tuple], cut: int, kind: int, reseal: bool
) -> None:
    sources = [
        batch(b'a', b'b', key=b'k'),
        batch(b'a' * 40, codec=1),
        message_set(b'a', b'b'),
        message_set(b'a', b'b', codec=1),
        message_set(b'a', b'b', magic=1),
        message_set(b'a', b'b', magic=1, codec=1),
    ]
    data = bytearray(sources[kind])
    for place, value in changes:
        data[place % len(data)] = value
    if reseal and kind < 2:
        data = bytearray(sealed(bytes(data)))
    by = rules(*release, api_version=None if release < (4,) else 3)
    try:
        found = produced_batches(bytes(data[:cut]), by)
    except RefusedRecords:
        return
    assert all(isinstance(each, Batch) for each in found)
    log = PartitionLog()
    for each in found:
        log.append(each, 0)
    read = log.read(0, log.end_offset, 1 << 20, False)
    if release < (0, 10) and data[16]:
        return  # what nobody can read is kept there
    found_offsets = offsets(read)
    if release == (0, 11) and found_offsets:  # it counts from a last offset that may be wrong
        found_offsets = [offset - found_offsets[0] for offset in found_offsets]
    assert found_offsets == list(range(log.end_offset))
