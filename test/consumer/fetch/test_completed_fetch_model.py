"""Whatever lies in a log, what is taken from a fetch is what was written, in pieces of any size.

The model is a list of records and whether they were aborted, made together with the bytes; a log
mixes batches of all formats and codecs, gaps that compaction left, transactions and their markers.
"""

from __future__ import annotations

import zlib
from typing import Any, List, NamedTuple, Tuple

from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import compress
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.protocol.fetch import AbortedTransaction, PartitionData
from kafka.record.legacy_records import encode_message_set
from kafka.structs import TopicPartition
from test.record import oracle
from test.record.batches import marker
from test.record.oracle import R
from test.record.strategies import rows

TP = TopicPartition('t', 0)


class Written(NamedTuple):
    """Records as the consumer should hand them out, and where the log ends."""

    records: List[Tuple[Any, ...]]
    aborted: List[Tuple[Any, ...]]
    transactions: List[Tuple[int, int]]
    end: int
    epoch: int


def expected(r: R, timestamp: Any, kind: Any, checksum: Any, epoch: int) -> Tuple[Any, ...]:
    """Return a ConsumerRecord as a plain tuple."""
    sizes = [-1 if field is None else len(field) for field in (r.key, r.value)]
    of_headers = sum(len(name.encode()) + len(content or b'') for name, content in r.headers)
    return (
        *(TP.topic, TP.partition, r.offset, timestamp, kind, r.key, r.value, list(r.headers)),
        *(checksum, *sizes, of_headers if r.headers else -1, epoch),
    )


@st.composite
def new_batches(draw, offset, producer):
    """Draw bytes and records of a batch of magic 2; producer None: outside of transactions."""
    codec = draw(st.sampled_from([0, 0, 1, 2, 3]))
    append_time = draw(st.sampled_from([None, None, 77]))
    step = draw(st.sampled_from([1, 1, 1, 3]))
    epoch = draw(st.sampled_from([-1, 4, 4, 4]))
    records = [R(offset + i * step, *row) for i, row in enumerate(draw(rows(max_size=12)))]
    last = records[-1].offset + draw(st.sampled_from([0, 0, 5]))
    base = records[0].timestamp
    payload = b''.join(oracle.write_record(r, offset, base) for r in records)
    data = oracle.write_batch(
        records,
        payload=compress(codec, payload),
        attributes=codec | (0 if append_time is None else 8) | (0 if producer is None else 16),
        base_offset=offset,
        max_timestamp=append_time,
        last_offset=last,
        leader_epoch=epoch,
        producer=(-1, -1, -1) if producer is None else (producer, 0, 0),
    )
    if append_time is None:
        made = [expected(r, r.timestamp, 0, None, epoch) for r in records]
    else:
        made = [expected(r, append_time, 1, None, epoch) for r in records]
    return data, made, last + 1, epoch


@st.composite
def old_messages(draw, offset):
    """Draw bytes and records of messages of magic 0 or 1."""
    magic, codec = draw(st.sampled_from([0, 1])), draw(st.sampled_from([0, 1, 2]))
    chosen = draw(rows(max_size=8))
    records = [R(offset + i, *row[:3]) for i, row in enumerate(chosen)]
    made = []
    for r in records:
        message = oracle.write_message(r.key, r.value, magic, 0, r.timestamp)
        crc = zlib.crc32(message[4:])
        time = (r.timestamp, 0) if magic else (None, None)
        made.append(expected(r, *time, crc, -1))
    return encode_message_set(records, magic, codec), made, offset + len(records), -1


@st.composite
def logs(draw):
    """Draw the bytes of a log and what is written in it."""
    offset, epoch = draw(st.sampled_from([0, 5, 1 << 40])), -1
    pieces, records, aborted, transactions = [], [], [], []
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(['new', 'new', 'new', 'old', 'aborted', 'committed', 'marker']))
        if kind == 'old':
            data, made, offset, epoch = draw(old_messages(offset))
        elif kind == 'marker':
            data, made, epoch = marker(offset, 99, draw(st.integers(0, 3))), [], 4
            offset += 1
        else:
            start = offset
            data, made, offset, epoch = draw(
                new_batches(offset, {'aborted': 7, 'committed': 8}.get(kind))
            )
            if kind == 'aborted':
                transactions.append((7, start))
                aborted += made
                data += marker(offset, 7, 0)
                offset, epoch = offset + 1, 4
        pieces.append(data)
        records += made
    return b''.join(pieces), Written(records, aborted, transactions, offset, epoch)


@given(logs(), st.data(), st.booleans())
def test_that_what_is_taken_is_what_was_written(log, data, read_committed):
    encoded, written = log
    wanted = written.records
    if read_committed:
        wanted = [each for each in wanted if each not in written.aborted]
    offsets = [each[2] for each in written.records] or [written.end]
    start = data.draw(st.sampled_from([offsets[0], offsets[len(offsets) // 2], offsets[-1]]))
    cut = data.draw(st.sampled_from([b'', encoded[:11], encoded[:16]]))
    fetch = CompletedFetch(
        TP,
        start,
        PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=written.end,
            aborted_transactions=[
                AbortedTransaction(producer_id=who, first_offset=first)
                for who, first in written.transactions[::-1]
            ],
            records=memoryview(encoded + cut),
        ),
        token=1,
        node_id=1,
        read_committed=read_committed,
    )
    assert (fetch.next_offset, fetch.next_epoch) == (written.end, written.epoch)
    taken: List[Any] = []
    while not fetch.is_done:
        position, count = fetch.position, data.draw(st.sampled_from([1, 2, 3, 7, 40, None]))
        some = fetch.take(count)
        if count and data.draw(st.booleans()):
            lazy = fetch.take_lazily(count)
            some += [] if lazy is None else list(lazy.iterator)
            count *= 2
        assert len(some) <= (count or len(some)) and (some or fetch.is_done)
        if some:
            assert position <= some[0].offset and fetch.position > some[-1].offset
            assert fetch.is_done or fetch.position == some[-1].offset + 1
            assert fetch.last_epoch == some[-1].leader_epoch
        taken += some
    assert fetch.position == written.end
    assert taken == [each for each in wanted if each[2] >= start]


@given(logs())
def test_that_what_is_taken_as_columns_is_the_same(log):
    encoded, written = log
    partition = PartitionData(
        partition_index=0, error_code=0, high_watermark=written.end, records=encoded
    )
    fetch = CompletedFetch(TP, 0, partition, token=1, node_id=1)
    found: List[Any] = []
    while not fetch.is_done:
        columns = fetch.take_made(lambda columns: columns)
        if columns is None:
            break
        none = [None] * len(columns.values)
        found += zip(
            columns.offsets,
            none if columns.timestamps is None else columns.timestamps,
            none if columns.keys is None else columns.keys,
            columns.values,
            [()] * len(none) if columns.headers is None else columns.headers,
        )
    assert found == [(each[2], each[3], *each[5:7], tuple(each[7])) for each in written.records]
    assert fetch.position == written.end
