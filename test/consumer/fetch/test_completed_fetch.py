"""What a broker sent of one partition, taken by the program."""

from __future__ import annotations

import gc
import json
import re
import weakref

import pytest

from kafka.codec import MissingCodecError
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer_record import RecentRecords
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaConfigurationError,
    ProtocolError,
    UnsupportedCodecError,
)
from kafka.protocol.fetch import AbortedTransaction, PartitionData
from kafka.structs import ConsumerRecord, TopicPartition
from test.record.batches import batch, broken, marker, messages, of_transaction

TP = TopicPartition('topic', 3)


def fetch(*parts, at=0, aborted=None, **settings):
    """Return what an answer with these batches gives."""
    data = PartitionData(
        partition_index=3,
        error_code=0,
        high_watermark=100,
        aborted_transactions=aborted,
        records=memoryview(b''.join(parts)) if parts else None,
    )
    return CompletedFetch(TP, at, data, token=5, node_id=1, **settings)


def offsets(records):
    return [record.offset for record in records]


# --- what it tells at once


def test_that_it_knows_what_was_asked():
    fetched = fetch(batch(7), at=8)
    assert (fetched.partition, fetched.fetch_offset, fetched.position) == (TP, 8, 8)
    assert (fetched.token, fetched.node_id, fetched.size_bytes) == (5, 1, len(batch(7)))
    assert repr(fetched) == "<CompletedFetch 'topic':3 at 8 of 8 to 10>"


def test_that_it_knows_where_the_next_fetch_begins_before_anything_is_decoded():
    fetched = fetch(batch(0), broken(batch(3), 70))
    assert (fetched.next_offset, fetched.next_epoch, fetched.position) == (6, 4, 0)
    assert (fetched.is_done, fetched.is_too_small, fetched.last_epoch) == (False, False, -1)


@pytest.mark.parametrize('parts', [(), (b'',)])
def test_that_nothing_is_done_at_once(parts):
    fetched = fetch(*parts, at=8)
    assert (fetched.is_done, fetched.next_offset, fetched.next_epoch) == (True, 8, -1)
    assert fetched.take() == [] and fetched.position == 8 and not fetched.is_too_small


def test_that_a_first_message_that_does_not_fit_is_told():
    fetched = fetch(messages(8)[:30], at=8)
    assert fetched.is_too_small and not fetched.is_done and fetched.next_offset == 8
    assert fetched.take() == [] and fetched.is_done and fetched.position == 8


# --- records


def test_that_a_record_says_everything():
    headers = [('h', b'12'), ('i', None)]
    (record,) = fetch(batch(7, [b'value'], key=b'k', headers=headers), at=7).take()
    assert type(record) is ConsumerRecord
    assert record == ('topic', 3, 7, 1600, 0, b'k', b'value', headers, None, 1, 5, 4, 4)


def test_that_a_record_without_anything_says_so():
    (record,) = fetch(batch(7, [None]), at=7).take()
    assert record[5:12] == (None, None, [], None, -1, -1, -1)
    (record,) = fetch(batch(7, [b''], key=b''), at=7).take()
    assert record[5:12] == (b'', b'', [], None, 0, 0, -1)


def test_that_fields_that_only_some_have_are_those_of_each():
    parts = [batch(0, [b'a']), batch(1, [None], key=b'kk', headers=[('h', b'')]), batch(2, [b'cc'])]
    records = fetch(*parts).take()
    assert [r.key for r in records] == [None, b'kk', None]
    assert [r.headers for r in records] == [[], [('h', b'')], []]
    assert [r[9:12] for r in records] == [(-1, 1, -1), (2, -1, 1), (-1, 2, -1)]


@pytest.mark.parametrize('headers', [(), (('h', b'1'),)])
def test_that_headers_are_a_list_of_each_record(headers):
    one, two = fetch(batch(0, [b'a', b'b'], headers=headers)).take()
    assert one.headers is one.headers
    one.headers.append(('more', b''))
    assert two.headers == list(headers)
    assert fetch(batch(0, [b'a', b'b'], headers=headers)).take()[0].headers == list(headers)


def test_that_old_formats_have_checksum_and_no_epoch():
    data = messages(7, [b'value'], magic=0)
    (record,) = fetch(data, at=7).take()
    crc = int.from_bytes(data[12:16], 'big')
    assert record == ('topic', 3, 7, None, None, None, b'value', [], crc, -1, 5, -1, -1)
    data = messages(7, [b'value'], magic=1)
    (record,) = fetch(data, at=7).take()
    crc = int.from_bytes(data[12:16], 'big')
    assert record == ('topic', 3, 7, 1600, 0, None, b'value', [], crc, -1, 5, -1, -1)


def test_that_records_before_the_one_that_was_asked_for_are_left_out():
    for data in (batch(5), messages(5, codec=1), messages(5, magic=0, codec=1), messages(5)):
        assert offsets(fetch(data, at=6).take()) == [6, 7]


# --- how many


def test_that_no_more_are_taken_than_asked_for():
    fetched = fetch(batch(0), batch(3), batch(6))
    assert offsets(fetched.take(2)) == [0, 1] and fetched.position == 2
    assert offsets(fetched.take(2)) == [2, 3] and fetched.position == 4
    assert offsets(fetched.take(0)) == [] and fetched.position == 4
    assert not fetched.is_done
    assert offsets(fetched.take()) == [4, 5, 6, 7, 8]
    assert fetched.is_done and fetched.position == fetched.next_offset == 9
    assert fetched.take() == [] and fetched.last_epoch == 4


def test_that_it_is_done_with_the_last_record():
    for parts in ([batch(0)], [batch(0), batch(3)], [messages(0)], [messages(0, codec=1)]):
        fetched = fetch(*parts)
        fetched.take(fetched.next_offset - 1)
        assert not fetched.is_done
        fetched.take(1)
        assert fetched.is_done and fetched.position == fetched.next_offset


def test_that_records_of_large_batches_come_in_order():
    fetched = fetch(batch(0, [b'%d' % i for i in range(2500)]), batch(2500))
    found = []
    while not fetched.is_done:
        found += fetched.take(700)
    assert offsets(found) == list(range(2503))
    assert [r.value for r in found[:2500]] == [b'%d' % i for i in range(2500)]


# --- what is passed over


def test_that_what_was_aborted_is_passed_over():
    parts = [of_transaction(0, 7), marker(3, 7, 0), batch(4), marker(7, 8, 1)]
    aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
    fetched = fetch(*parts, aborted=aborted, read_committed=True)
    assert offsets(fetched.take(3)) == [4, 5, 6]
    assert fetched.is_done and fetched.position == 8
    assert offsets(fetch(*parts, aborted=aborted).take()) == [0, 1, 2, 4, 5, 6]


def test_that_the_position_moves_even_if_there_is_nothing_to_hand_out():
    aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
    parts = [of_transaction(0, 7), marker(3, 7, 0)]
    fetched = fetch(*parts, aborted=aborted, read_committed=True)
    assert not fetched.is_done and fetched.position == 0
    assert fetched.take(1) == [] and fetched.is_done and fetched.position == 4
    assert fetched.last_epoch == -1


def test_that_the_position_stays_behind_the_last_record_while_something_follows():
    fetched = fetch(batch(0), marker(3, 8, 1), batch(4))
    assert offsets(fetched.take(3)) == [0, 1, 2] and fetched.position == 3
    assert offsets(fetched.take(1)) == [4] and fetched.position == 5


def test_that_a_tail_that_was_compacted_away_is_passed_over():
    data = bytearray(batch(0))
    data[23:27] = (9).to_bytes(4, 'big')
    fetched = fetch(data, check_crcs=False)
    assert offsets(fetched.take()) == [0, 1, 2] and fetched.position == 10
    fetched = fetch(data, at=5, check_crcs=False)
    assert fetched.take() == [] and fetched.is_done and fetched.position == 10


# --- deserializers


class ByTopic:
    def deserialize(self, topic, data):
        return topic, data


class ByHeaders:
    def deserialize(self, topic, headers, data):
        return topic, headers, data


def test_that_deserializers_get_key_and_value():
    settings = {'key_deserializer': ByTopic(), 'value_deserializer': json.loads}
    (record,) = fetch(batch(7, [b'[1]'], key=b'k'), at=7, **settings).take()
    assert (record.key, record.value) == (('topic', b'k'), [1])
    assert record[9:11] == (1, 3)


def test_that_deserializers_of_3_0_get_the_headers_of_the_record():
    (record,) = fetch(batch(7, [b'v'], headers=[('h', b'')]), value_deserializer=ByHeaders()).take()
    assert record.value == ('topic', [('h', b'')], b'v') and record.value[1] is record.headers


def test_that_deserializers_get_none_too():
    fetched = fetch(batch(7, [None, None]), key_deserializer=repr, value_deserializer=repr)
    assert [(r.key, r.value) for r in fetched.take()] == [('None', 'None')] * 2


def test_that_what_a_deserializer_raises_comes_after_the_records_before_it():
    parts = [batch(0, [b'1', b'2']), batch(2, [b'3', b'x', b'5'])]
    fetched = fetch(*parts, value_deserializer=int)
    assert [r.value for r in fetched.take()] == [1, 2, 3]
    assert (fetched.position, fetched.failed_at, fetched.is_done) == (3, None, False)
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal .* b'x'"):
            fetched.take()
        assert (fetched.position, fetched.failed_at) == (3, 3)
    with pytest.raises(IllegalStateError):
        fetched.skip_corrupt()


@pytest.mark.parametrize('bad', ['key', 'value'])
def test_that_the_first_error_counts_whichever_deserializer_raises_it(bad):
    def refuse(data):
        raise KeyError(data)

    def late(data):
        return refuse(data) if data == b'c' else data

    key, value = (refuse, late) if bad == 'key' else (late, refuse)
    fetched = fetch(batch(0, key=b'k'), key_deserializer=key, value_deserializer=value)
    with pytest.raises(KeyError, match='k' if bad == 'key' else 'a'):
        fetched.take()
    assert fetched.position == 0


@pytest.mark.parametrize('bad, name', [((b'1', b'2'), 'key'), ((b'2', b'1'), 'value')])
def test_that_the_error_of_the_earlier_record_counts(bad, name):
    def refuse(name, bad):
        def call(data):
            if data == bad:
                raise KeyError(name)

        return call

    key, value = refuse('key', bad[0]), refuse('value', bad[1])
    parts = [batch(i, [b'%d' % i], key=b'%d' % i) for i in range(3)]
    fetched = fetch(*parts, key_deserializer=key, value_deserializer=value)
    assert offsets(fetched.take()) == [0]
    with pytest.raises(KeyError, match=name):
        fetched.take()
    assert fetched.failed_at == 1


def test_that_a_deserializer_cannot_end_a_fetch():
    fetched = fetch(batch(0), value_deserializer=lambda data: next(iter(())))
    with pytest.raises(RuntimeError, match='StopIteration'):
        fetched.take()
    assert fetched.position == 0 and not fetched.is_done


def test_that_what_is_no_deserializer_is_refused():
    with pytest.raises(KafkaConfigurationError, match='value_deserializer'):
        fetch(batch(0), value_deserializer='json')


def test_that_deserialized_records_come_with_any_limit():
    fetched = fetch(batch(0, [b'%d' % i for i in range(30)]), value_deserializer=int)
    found = []
    while not fetched.is_done:
        found += [r.value for r in fetched.take(7)]
    assert found == list(range(30))


# --- what cannot be read


def test_that_a_corrupt_batch_comes_after_the_records_before_it():
    fetched = fetch(batch(0), broken(batch(3)), batch(6))
    assert offsets(fetched.take()) == [0, 1, 2]
    assert not fetched.is_done
    for _ in range(2):
        text = "offset 3 of partition 3 of topic 'topic', as node 1 sent"
        with pytest.raises(CorruptRecordError, match=text) as caught:
            fetched.take()
        assert 'wrong CRC' in str(caught.value)
        assert (fetched.position, fetched.failed_at) == (3, 3)


def test_that_a_corrupt_batch_can_be_left_out():
    fetched = fetch(batch(0), broken(batch(3)), batch(6))
    fetched.take()
    assert fetched.skip_corrupt() == 6
    assert (fetched.position, fetched.next_offset, fetched.is_done) == (6, 6, True)
    assert fetched.take() == []


def until_corrupt(fetched):
    """Take all that can be read; return what the rest is told as."""
    with pytest.raises(CorruptRecordError) as caught:
        while fetched.take():
            pass
    return str(caught.value)


class Answer(bytearray):
    """Bytes of which a test can tell whether they are still there."""


@pytest.mark.parametrize(
    'bad',
    [
        broken(batch(3)),
        broken(batch(3, codec=1), 65),
        batch(3, [bytes(10000)], codec=1),
        broken(messages(3)),
        broken(messages(3, codec=1)),
        broken(batch(3), 11),  # its length is not what it was
        broken(batch(3), 16),  # there is no such magic
    ],
    ids=range(7),
)
def test_that_of_a_corrupt_batch_only_its_own_bytes_are_kept(bad):
    whole = fetch(batch(0), bad, *[batch(6)] * 9, max_decompressed_bytes=500)
    answer = Answer(b''.join([batch(0), bad, *[batch(6)] * 9]))
    is_there = weakref.ref(answer)
    records = memoryview(answer)
    data = PartitionData(partition_index=3, error_code=0, high_watermark=100, records=records)
    fetched = CompletedFetch(TP, 0, data, token=5, node_id=1, max_decompressed_bytes=500)
    assert not fetched.shed()
    told = [until_corrupt(each) for each in (whole, fetched)]
    assert fetched.shed() and fetched.shed()
    assert fetched.size_bytes <= len(bad) + 26
    assert told == [until_corrupt(fetched)] * 2
    del answer, records, data
    gc.collect()
    assert is_there() is None
    assert fetched.undecoded() is None
    assert fetched.skip_corrupt() == whole.skip_corrupt()


def test_that_only_what_is_corrupt_can_be_left_out():
    fetched = fetch(batch(0), broken(batch(3)))
    with pytest.raises(IllegalStateError, match='nothing that cannot be read is next'):
        fetched.skip_corrupt()
    fetched.take(2)
    with pytest.raises(IllegalStateError):
        fetched.skip_corrupt()
    assert offsets(fetched.take()) == [2]
    assert fetched.skip_corrupt() == 6


def test_that_leaving_out_moves_on_even_inside_of_the_batch():
    fetched = fetch(broken(batch(0)), at=2)
    with pytest.raises(CorruptRecordError):
        fetched.take()
    assert fetched.failed_at == 2 and fetched.skip_corrupt() == 3


def test_that_a_bomb_is_an_error_that_names_its_batch():
    fetched = fetch(batch(0, [bytes(10000)], codec=1), max_decompressed_bytes=500)
    with pytest.raises(CorruptRecordError, match='offset 0 of partition 3 .* more than 500 bytes'):
        fetched.take()
    assert fetched.skip_corrupt() == 1


def test_that_an_unknown_codec_is_told():
    data = bytearray(batch(0))
    data[22] |= 7
    with pytest.raises(UnsupportedCodecError, match='codec 7 does not exist'):
        fetch(data, check_crcs=False).take()


def test_that_a_missing_package_is_told(monkeypatch):
    monkeypatch.setattr('kafka.codec._helper', lambda *names: None)
    data = bytearray(batch(0))
    data[22] |= 4
    with pytest.raises(MissingCodecError, match=re.escape('pip install kafka-evergreen[zstd]')):
        fetch(data, check_crcs=False).take()


# --- records that are held for a while


@pytest.mark.parametrize(
    'options, key, headers, held',
    [
        ({}, None, (), 3),
        ({}, b'k', (), 3),
        ({}, bytes(20), (), 0),
        ({}, None, [('h', bytes(20))], 0),
        ({'value_deserializer': bytes}, None, (), 0),
        ({'key_deserializer': str}, None, (), 0),
    ],
)
def test_that_those_of_few_bytes_are_held_for_a_while(options, key, headers, held):
    data = batch(0, [b'a', b'b', None], key=key, headers=headers)
    fetched, other = fetch(data, **options), fetch(data, **options)
    fetched.recent = RecentRecords(10, 100)
    assert fetched.take() == other.take()
    assert len(fetched.recent) == held


# --- records that are made when they are asked for


def test_that_records_made_later_move_the_position_at_once():
    fetched = fetch(batch(0), batch(3))
    one, two = fetched.take_lazily(2), fetched.take_lazily(9)
    assert (fetched.position, fetched.is_done, fetched.last_epoch) == (6, True, 4)
    assert offsets(two.iterator) == [2, 3, 4, 5] and offsets(one.iterator) == [0, 1]
    assert fetched.take_lazily(9) is None


def test_that_records_made_later_end_before_one_that_is_refused():
    fetched = fetch(batch(0, [b'1', b'2', b'x', b'4']), value_deserializer=int)
    assert [each.value for each in fetched.take_lazily(9).iterator] == [1, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal .* b'x'"):
            fetched.take_lazily(9)
        assert (fetched.position, fetched.failed_at, fetched.is_done) == (2, 2, False)


def test_that_records_made_later_end_before_a_corrupt_batch():
    fetched = fetch(batch(0), broken(batch(3)))
    assert offsets(fetched.take_lazily(9).iterator) == [0, 1, 2] and not fetched.is_done
    with pytest.raises(CorruptRecordError, match='offset 3'):
        fetched.take_lazily(9)
    assert fetched.failed_at == 3


# --- columns


def test_that_columns_come_without_records():
    fetched = fetch(batch(0, [b'a', b'b']), batch(2))
    assert offsets(fetched.take(1)) == [0]
    assert fetched.take_made(lambda columns: columns.values) == [b'b', b'a', b'b', b'c']
    assert fetched.last_epoch == 4
    assert fetched.is_done and fetched.take_made(list) is None


@pytest.mark.parametrize('refused', range(3))
def test_that_records_are_taken_up_to_the_first_that_is_refused(refused):
    def make(columns):
        found = list(columns.offsets)
        if refused in found:
            raise ProtocolError('offset %d' % refused)
        return found

    fetched = fetch(batch(0, [b'a', b'b', b'c']))
    if refused:
        assert fetched.take_made(make) == [*range(refused)]
    for _ in range(2):
        with pytest.raises(ProtocolError, match='offset %d' % refused):
            fetched.take_made(make)
        assert fetched.failed_at == fetched.position == refused


def test_that_columns_meet_errors_as_records_do():
    fetched = fetch(batch(0), broken(batch(3)))
    assert fetched.take_made(lambda columns: list(columns.offsets)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError, match='offset 3'):
        fetched.take_made(list)
    assert fetched.failed_at == 3 and fetched.skip_corrupt() == 6
