"""The way through the batches that a broker sent of a partition."""

from __future__ import annotations

import pytest

from kafka.errors import ChecksumError, KafkaError, ProtocolError
from kafka.record.fetched_records import FetchedRecords, measure
from test.record.batches import batch, broken, marker, messages, of_transaction

MIXED = [
    batch(0),
    messages(3, magic=0),
    messages(6, magic=1),
    batch(9, codec=1),
    messages(12, magic=1, codec=1),
    messages(15, magic=0, codec=1),
    batch(18),
]


def offsets(records):
    """Return the offsets of all records until the end or an error."""
    found = []
    try:
        for columns in iter(records.read, None):
            assert len(columns.values) == len(columns.offsets)
            found += columns.offsets
    except KafkaError:
        pass
    return found


# --- where the next fetch begins


def test_that_heads_tell_where_the_next_fetch_begins():
    assert measure(b''.join(MIXED)) == (21, 4, len(b''.join(MIXED)))
    assert measure(b''.join(MIXED[:3])) == (9, -1, len(b''.join(MIXED[:3])))
    assert measure(b'') == (None, -1, 0)


def test_that_a_batch_whose_tail_was_compacted_away_is_passed_as_a_whole():
    data = bytearray(batch(10))
    data[23:27] = (9).to_bytes(4, 'big')
    assert measure(data).next_offset == 20


def test_that_a_batch_that_is_cut_off_counts_for_nothing():
    data = b''.join(MIXED)
    for end in range(len(data) - len(MIXED[-1]), len(data)):
        assert measure(data[:end]).next_offset == 18
        records = FetchedRecords(data[:end])
        assert offsets(records) == list(range(18))
        assert records.error is None and not records.is_too_small


def test_that_a_first_batch_that_is_cut_off_is_told():
    for end in range(1, len(MIXED[0])):
        records = FetchedRecords(MIXED[0][:end])
        assert records.is_too_small and offsets(records) == [] and records.error is None
    assert not FetchedRecords(MIXED[0]).is_too_small and not FetchedRecords(b'').is_too_small


@pytest.mark.parametrize('head', [b'\x00\x00\x00\x05\x00', b'\xff\xff\xff\xfe\x02'])
def test_that_heads_end_at_one_that_makes_no_sense(head):
    bad = MIXED[0] + (3).to_bytes(8, 'big') + head[:4] + bytes(4) + head[4:] + bytes(80)
    assert measure(bad).next_offset == 3
    records = FetchedRecords(bad)
    assert offsets(records) == [0, 1, 2]
    assert isinstance(records.error, ProtocolError) and records.offset == 3
    assert records.behind_error() == 4


# --- records


def test_that_batches_of_all_formats_follow_each_other():
    records = FetchedRecords(b''.join(MIXED))
    assert offsets(records) == list(range(21))
    assert records.read() is None and not records.has_more()


def test_that_columns_say_everything():
    headers = (('h', b'12'), ('i', None))
    columns = FetchedRecords(batch(5, [b'a', None], key=b'k', headers=headers)).read()
    assert columns.part(0) == (
        range(5, 7),
        [1600, 1601],
        0,
        [b'k', b'k'],
        [b'a', None],
        [headers, headers],
        [4, 4],
        None,
        4,
        None,
    )


def test_that_the_time_of_the_log_is_told():
    columns = FetchedRecords(batch(5, timestamp_type=1, max_timestamp=99)).read()
    assert columns.timestamps == [99] * 3 and columns.timestamp_type == 1
    columns = FetchedRecords(messages(5, codec=1, timestamp_type=1)).read()
    assert columns.timestamps == [1602] * 3 and columns.timestamp_type == 1


def test_that_format_0_has_no_time():
    columns = FetchedRecords(messages(5, magic=0)).read()
    assert columns.timestamps is None and columns.timestamp_type is None


@pytest.mark.parametrize('magic', [0, 1])
@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('key', [None, b'key'])
def test_that_old_formats_have_the_checksum_of_each_message(magic, codec, key):
    data = messages(5, [b'a', None, b'ccc'], magic, codec, key)
    alone = [messages(i, [v], magic, 0, key) for i, v in enumerate([b'a', None, b'ccc'])]
    columns = FetchedRecords(data).read()
    if magic == 0:
        assert columns.checksums == [int.from_bytes(each[12:16], 'big') for each in alone]
    assert len(set(columns.checksums)) == 3 and columns.leader_epoch == -1
    assert columns.keys == (None if key is None else [key] * 3)


# --- transactions


def committed(data, *aborted):
    return offsets(FetchedRecords(b''.join(data), aborted=aborted))


def test_that_control_batches_are_never_records():
    data = b''.join([batch(0), marker(3, 7, 1), batch(4), marker(7, 7, 0), marker(8, 7, 5)])
    assert offsets(FetchedRecords(data)) == [0, 1, 2, 4, 5, 6]
    assert offsets(FetchedRecords(data, aborted=())) == [0, 1, 2, 4, 5, 6]
    assert measure(data).next_offset == 9


def test_that_what_was_aborted_is_passed_over_up_to_the_marker():
    data = [of_transaction(0, 7), batch(3), marker(6, 7, 0), of_transaction(7, 7)]
    assert committed(data, (7, 0)) == [3, 4, 5, 7, 8, 9]
    assert committed(data) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


def test_that_another_transaction_of_the_producer_may_be_aborted_later():
    data = [
        of_transaction(0, 7),
        marker(3, 7, 1),
        of_transaction(4, 7),
        marker(7, 7, 0),
        of_transaction(8, 7),
        marker(11, 7, 0),
        of_transaction(12, 7),
    ]
    assert committed(data, (7, 8), (7, 4)) == [0, 1, 2, 12, 13, 14]


def test_that_an_abort_ends_nothing_of_other_producers():
    data = [of_transaction(0, 7), of_transaction(3, 8), marker(6, 7, 0), of_transaction(7, 8)]
    assert committed(data, (7, 0), (8, 3)) == []
    assert committed(data, (7, 0)) == [3, 4, 5, 7, 8, 9]


def test_that_a_commit_marker_ends_no_abort():
    data = [of_transaction(0, 7), marker(3, 7, 1), of_transaction(4, 7)]
    assert committed(data, (7, 0)) == []


def test_that_batches_outside_of_transactions_are_handed_out():
    data = [of_transaction(0, 7), batch(3, producer_id=7, producer_epoch=0, base_sequence=3)]
    assert committed(data, (7, 0)) == [3, 4, 5]


def test_that_a_transaction_begins_inside_of_a_batch_that_is_larger():
    assert committed([of_transaction(0, 7)], (7, 2)) == []
    assert committed([of_transaction(0, 7)], (7, 3)) == [0, 1, 2]


def test_that_who_reads_all_gets_what_was_aborted():
    data = b''.join([of_transaction(0, 7), marker(3, 7, 0)])
    assert offsets(FetchedRecords(data)) == [0, 1, 2]


def test_that_a_marker_without_key_cannot_be_read():
    data = batch(3, [b''], control=True, transactional=True, producer_id=7)
    records = FetchedRecords(of_transaction(0, 7) + data, aborted=[(7, 0)])
    assert offsets(records) == [] and 'no key' in str(records.error)


def test_that_a_batch_without_records_is_passed_over():
    empty = batch(3, [], transactional=True, producer_id=7)
    assert offsets(FetchedRecords(empty + batch(5))) == [5, 6, 7]


def test_that_what_was_aborted_stays_so_where_a_later_batch_cannot_be_read():
    """All are decoded together at first, and then one by one, from the first one on."""
    bad = bytearray(batch(8))
    bad[61] = 0x7F  # the size of its first record
    data = b''.join([batch(0), of_transaction(3, 7), marker(6, 7, 0), batch(7, [b'z']), bad])
    records = FetchedRecords(data, aborted=[(7, 3)], check_crcs=False)
    assert offsets(records) == [0, 1, 2, 7] and records.behind_error() == 11


# --- undecoded


def first_offsets(raw):
    return [header[0] for header in raw.headers]


def test_that_batches_are_shown_where_they_lie():
    data = batch(0) + marker(3, 7, 0) + batch(4, [b'd']) + batch(5)[:-1]
    raw = FetchedRecords(data).raw(0)
    assert first_offsets(raw) == [0, 4] and raw.buffer.obj is data
    shown = [bytes(raw.buffer[begin:end]) for begin, end in zip(raw.begins, raw.ends)]
    assert shown == [batch(0)[61:], batch(4, [b'd'])[61:]]


def test_that_what_is_compressed_is_shown_beside_what_is_not():
    raw = FetchedRecords(batch(0, codec=1) + batch(3) + batch(6, codec=1)).raw(0)
    shown = [raw.buffer[begin:end] for begin, end in zip(raw.begins, raw.ends)]
    assert shown == [batch(0)[61:]] * 3


@pytest.mark.parametrize('since, found', [(2, [0, 3]), (3, [3]), (6, [])])
def test_that_only_what_reaches_an_offset_is_shown(since, found):
    assert first_offsets(FetchedRecords(batch(0) + batch(3)).raw(since)) == found


def test_that_what_was_aborted_is_not_shown():
    data = of_transaction(0, 7) + batch(3) + marker(6, 7, 0) + of_transaction(7, 7)
    assert first_offsets(FetchedRecords(data, aborted=[(7, 0)]).raw(0)) == [3, 7]
    assert first_offsets(FetchedRecords(data).raw(0)) == [0, 3, 7]


@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('at, number', [(57, 1 << 30), (23, (1 << 32) - 2)])
def test_that_numbers_of_a_head_that_cannot_be_are_refused(at, number, codec):
    """How many records there are, for which memory would be taken; the last offset delta."""
    data = bytearray(batch(0, codec=codec))
    data[at : at + 4] = number.to_bytes(4, 'big')
    with pytest.raises(ProtocolError):
        FetchedRecords(data, check_crcs=False).raw(-9)


def test_that_nothing_is_shown_beside_old_formats_and_wrong_checksums():
    assert FetchedRecords(batch(0) + messages(3)).raw(0) is None
    with pytest.raises(ChecksumError, match='offset 3'):
        FetchedRecords(batch(0) + broken(batch(3))).raw(0)


# --- what cannot be read


def test_that_more_is_there_only_if_something_is_wanted():
    records = FetchedRecords(batch(0) + marker(3, 7, 0))
    assert records.has_more() and list(records.read().offsets) == [0, 1, 2]
    assert not records.has_more() and records.read() is None


def test_that_an_error_stays():
    records = FetchedRecords(batch(0) + broken(batch(3)) + batch(6))
    records.read()
    assert records.has_more()
    for _ in range(2):
        with pytest.raises(ChecksumError, match='offset 3'):
            records.read()
    assert records.offset == 3 and records.behind_error() == 6


def test_that_checksums_may_be_left_out():
    records = FetchedRecords(
        batch(0, producer_id=1)[:17] + b'1234' + batch(0)[21:], check_crcs=False
    )
    assert offsets(records) == [0, 1, 2]


def test_that_a_message_with_a_wrong_checksum_is_left_out_alone():
    good = messages(0)
    records = FetchedRecords(good + broken(messages(3)[:35]) + messages(4))
    assert offsets(records) == [0, 1, 2]
    assert isinstance(records.error, ChecksumError)
    assert (records.offset, records.behind_error()) == (3, 4)


def test_that_a_first_message_with_a_wrong_checksum_is_told():
    records = FetchedRecords(broken(messages(3)[:35]) + messages(4))
    assert offsets(records) == [] and (records.offset, records.behind_error()) == (3, 4)


def test_that_a_broken_wrapper_is_left_out():
    records = FetchedRecords(messages(0) + broken(messages(3, codec=1)) + messages(6))
    assert offsets(records) == [0, 1, 2] and (records.offset, records.behind_error()) == (5, 6)


def test_that_a_batch_that_expands_too_far_cannot_be_read():
    bomb = batch(3, [bytes(5000)], codec=1)
    records = FetchedRecords(batch(0) + bomb + batch(4), max_decompressed_bytes=1000)
    assert offsets(records) == [0, 1, 2]
    assert 'more than' in str(records.error) and records.behind_error() == 4


def test_that_records_before_a_broken_one_of_a_large_batch_are_read():
    data = bytearray(batch(0, [b'value'] * 2500))
    data[-8:] = bytes(8)
    records = FetchedRecords(data, check_crcs=False)
    assert offsets(records) == list(range(2000)) and records.behind_error() == 2500


def test_that_an_unknown_format_cannot_be_read():
    future = bytearray(batch(3))
    future[16] = 3
    records = FetchedRecords(batch(0) + future + batch(6))
    assert offsets(records) == [0, 1, 2] and 'magic 3' in str(records.error)
    assert records.behind_error() == 6


def test_that_no_good_batch_is_left_out_where_the_head_is_broken():
    """The last offset stands in the part that the checksum covers."""
    bad = bytearray(batch(3))
    bad[23:27] = (900).to_bytes(4, 'big')
    records = FetchedRecords(batch(0) + bad + batch(6))
    assert offsets(records) == [0, 1, 2] and records.behind_error() == 6
    records = FetchedRecords(batch(0) + bad)
    assert offsets(records) == [0, 1, 2] and records.behind_error() == 6
    bad[23:27] = b'\xff\xff\xff\xff'
    records = FetchedRecords(batch(0) + bad)
    assert offsets(records) == [0, 1, 2] and records.behind_error() == 4
