"""The modern KafkaConsumer reads records of every format, codec and size, and of transactions.

They were written by confluent-kafka and the release's own console producer, or byte by byte in the
old formats (wire.py).
"""

from __future__ import annotations

import time

import pytest

from kafka import KafkaProducer
from kafka.structs import TopicPartition
from test.integration.consuming import nothing_comes, offsets, take, values
from test.integration.oracles import Confluent, console_of
from test.record.batches import AnyBytes

pytestmark = [pytest.mark.integration]

PAIRS = [(b'key %d' % i, b'value %d ' % i + b'and so on ' * (i % 7)) for i in range(200)]


def needs(since, *values):
    """A parameter (or several) that older releases know nothing of."""
    return pytest.param(*values, marks=pytest.mark.releases(since=since))


every_codec = pytest.mark.parametrize(
    'codec', ['none', 'gzip', 'snappy', needs('0.10', 'lz4'), needs('2.1', 'zstd')]
)
READ = {'isolation_level': 'read_committed'}
committed_or_not = pytest.mark.parametrize('isolation', ['read_committed', 'read_uncommitted'])


@pytest.fixture
def reader(consume, topic):
    """Return a function that makes a consumer of partition 0."""

    def give(**options):
        consumer = consume(**options)
        consumer.assign([TopicPartition(topic, 0)])
        return consumer

    return give


def pairs(records):
    return [(each.key, each.value) for each in records]


# --- codecs -------------------------------------------------------------------------------------


@every_codec
def test_each_codec_of_librdkafka(cluster, reader, topic, codec):
    Confluent(cluster).write(topic, codec, PAIRS)
    found = take(reader(), 200)
    assert pairs(found) == PAIRS
    assert offsets(found, 0) == list(range(200))


@every_codec
def test_each_codec_of_the_console_producer(cluster, consume, topic, codec):
    if codec == 'gzip' or cluster.release.version >= (0, 8, 2):
        console_of(cluster).write(topic, codec, PAIRS)
        assert sorted(pairs(take(consume(topic), 200))) == sorted(PAIRS)


@every_codec
def test_a_seek_into_the_middle_of_a_batch_begins_there(cluster, reader, topic, codec):
    Confluent(cluster).write(topic, codec, PAIRS)
    consumer = reader()
    for offset in (150, 1, 199):
        consumer.seek(TopicPartition(topic, 0), offset)
        found = take(consumer, 200 - offset)
        assert offsets(found, 0) == list(range(offset, 200))
        assert pairs(found) == PAIRS[offset:]


# --- what a record says -------------------------------------------------------------------------


def test_the_fields_of_a_record(cluster, reader, topic):
    from confluent_kafka import Producer  # late: only runs on brokers need it

    version = cluster.release.version
    has_headers, has_times = version >= (0, 11), version >= (0, 10)
    headers = [('h', b'x' * 21), ('', None)]
    more = {'headers': headers} if has_headers else {}
    if has_times:
        more['timestamp'] = 9999999
    producer = Producer(Confluent(cluster).config)
    producer.produce(topic, b'v' * 12, b'k' * 10, 0, **more)
    producer.produce(topic, None, None, 0)
    assert producer.flush(30) == 0
    first, second = take(reader(), 2)
    assert (first.topic, first.partition, first.offset) == (topic, 0, 0)
    assert (first.key, first.value) == (b'k' * 10, b'v' * 12)
    assert (first.serialized_key_size, first.serialized_value_size) == (10, 12)
    assert first.headers == (headers if has_headers else [])
    assert first.serialized_header_size == (22 if has_headers else -1)
    assert first.timestamp == (9999999 if has_times else None)
    assert first.timestamp_type == (0 if has_times else None)
    assert (second.key, second.value, second.headers) == (None, None, [])
    assert (second.serialized_key_size, second.serialized_value_size) == (-1, -1)


@pytest.mark.releases(since='0.11')
def test_a_header_name_that_is_not_utf_8_hides_no_record(cluster, reader, topic):
    """Brokers take it as any other."""
    raw = 'Zähler'.encode('latin-1')
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for name in ('a', AnyBytes(raw), 'b'):
            producer.send(topic, b'v', headers=[(name, b'x'), ('null', None)], partition=0)
    found = take(reader(), 3)
    assert [record.headers[0][0] for record in found] == ['a', 'Z\ufffdhler', 'b']
    assert found[1].headers[0][0].raw == raw
    assert {record.headers[1] for record in found} == {('null', None)}


@pytest.mark.releases(since='0.10')
def test_times_that_the_broker_sets(cluster, consume, fill, new_name):
    name = new_name()
    cluster.create_topic(name, 1, config={'message.timestamp.type': 'LogAppendTime'})
    before = time.time() * 1000
    fill({name: {0: [b'v']}})
    (found,) = take(consume(name), 1)
    assert found.timestamp_type == 1
    assert before - 5000 <= found.timestamp <= time.time() * 1000 + 5000


@pytest.mark.releases(since='2.1')
def test_records_know_the_epoch_of_their_leader(cluster, reader, topic, fill):
    fill({topic: {0: [b'v']}})
    (found,) = take(reader(), 1)
    assert found.leader_epoch in ((0,) if cluster.release.version >= (2, 1) else (None, -1, 0))


# --- sizes --------------------------------------------------------------------------------------


LARGE = [b'small', b'x' * 700_000, b'between', b'y' * 900_000, b'last']


@pytest.mark.parametrize('limit', [1000, 100_000, 1_048_576])
def test_records_larger_than_the_limits_are_read_all_the_same(reader, topic, fill, limit):
    """Brokers from 0.10.1 on send one batch whatever its size; before, the limit has to grow."""
    fill({topic: {0: LARGE}})
    consumer = reader(max_partition_fetch_bytes=limit, fetch_max_bytes=5_000_000)
    assert values(take(consumer, len(LARGE))) == LARGE


@pytest.mark.releases(since='0.10.1')
def test_a_limit_of_one_byte_for_an_answer_still_brings_everything(reader, topic, fill):
    fill({topic: {0: [b'%d' % n for n in range(10)]}})
    consumer = reader(fetch_max_bytes=1)
    assert values(take(consumer, 10)) == [b'%d' % n for n in range(10)]


def test_a_small_budget_for_what_is_fetched_ahead_loses_nothing(consume, topic, fill):
    contents = {p: [b'%06d' % n + b'.' * 20_000 for n in range(100)] for p in (0, 1)}
    fill({topic: contents})
    consumer = consume(
        topic,
        fetch_max_buffered_bytes=100_000,
        max_partition_fetch_bytes=30_000,
        max_poll_records=3,
    )
    found = take(consumer, 200)
    assert {p: values(found, p) for p in (0, 1)} == contents


# --- transactions -------------------------------------------------------------------------------

TRANSACTIONS = [
    ([b'one'], 'commit'),
    ([b'gone', b'lost'], 'abort'),
    ([b'two', b'three'], 'commit'),
    ([b'away'], 'abort'),
]


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions consumed')
@committed_or_not
def test_aborted_records_are_for_those_who_read_uncommitted_ones(
    cluster, reader, topic, new_name, isolation
):
    Confluent(cluster).transact(topic, new_name(), TRANSACTIONS)
    consumer = reader(isolation_level=isolation)
    wanted = [
        value
        for values, end in TRANSACTIONS
        for value in values
        if isolation == 'read_uncommitted' or end == 'commit'
    ]
    assert values(take(consumer, len(wanted))) == wanted
    assert nothing_comes(consumer)
    place = TopicPartition(topic, 0)
    # 6 records and 4 markers, which are never handed out and passed over.
    assert consumer.position(place) == consumer.end_offsets([place])[place] == 10


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions consumed')
def test_an_open_transaction_holds_up_those_who_read_committed_records(
    cluster, reader, consume, topic, new_name, fill
):
    from confluent_kafka import Producer  # late, as above

    place = TopicPartition(topic, 0)
    producer = Producer({**Confluent(cluster).config, 'transactional.id': new_name()})
    producer.init_transactions(30)
    fill({topic: {0: [b'before']}})
    producer.begin_transaction()
    producer.produce(topic, b'open', partition=0)
    assert producer.flush(30) == 0
    fill({topic: {0: [b'after']}})
    patient = reader(**READ)
    assert values(take(patient, 1)) == [b'before']
    assert nothing_comes(patient)
    assert patient.end_offsets([place]) == {place: 1}
    assert values(take(reader(), 3)) == [b'before', b'open', b'after']
    producer.commit_transaction(30)
    assert values(take(patient, 2)) == [b'open', b'after']


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions consumed')
def test_transactions_of_two_producers_that_run_into_each_other(cluster, reader, topic, new_name):
    from confluent_kafka import Producer  # late, as above

    producers = [
        Producer({**Confluent(cluster).config, 'transactional.id': new_name()}) for _ in range(2)
    ]
    for each in producers:
        each.init_transactions(30)
        each.begin_transaction()
    for n in range(6):
        producers[n % 2].produce(topic, b'%d of %d' % (n, n % 2), partition=0)
        assert producers[n % 2].flush(30) == 0
    producers[1].abort_transaction(30)
    producers[0].commit_transaction(30)
    consumer = reader(**READ)
    assert values(take(consumer, 3)) == [b'0 of 0', b'2 of 0', b'4 of 0']
    assert nothing_comes(consumer)


@pytest.mark.releases(since='0.11')
@pytest.mark.column('transactions consumed')
def test_many_transactions_in_small_fetches_and_after_seeks(cluster, reader, topic, new_name):
    ends = [('commit', 'abort')[n % 3 == 1] for n in range(30)]
    Confluent(cluster).transact(
        topic,
        new_name(),
        [([b'%d.%d' % (n, i) for i in range(5)], end) for n, end in enumerate(ends)],
    )
    wanted = [b'%d.%d' % (n, i) for n, end in enumerate(ends) if end == 'commit' for i in range(5)]
    consumer = reader(
        **READ, max_partition_fetch_bytes=200, fetch_max_bytes=200, max_poll_records=3
    )
    found = take(consumer, len(wanted))
    assert values(found) == wanted
    for offset in (3, 8, 9, 50):  # into a committed one, an aborted one, onto a marker
        consumer.seek(TopicPartition(topic, 0), offset)
        rest = [each for each in found if each.offset >= offset]
        assert values(take(consumer, len(rest))) == values(rest)


# --- formats ------------------------------------------------------------------------------------


@pytest.mark.releases(since='0.8.2', until='3.99')
def test_records_of_every_format_that_a_log_may_hold(cluster, client, reader, topic):
    """What the clients of 0.9.5 wrote, compressed too, stands beside what librdkafka wrote."""
    from kafka import create_gzip_message, create_message, create_snappy_message  # late, as above
    from test.integration.fixtures import produce  # of the 0.9.5 client

    produce(client, topic, 0, [create_message(b'plain', b'k'), b'bare'])
    produce(client, topic, 0, [create_gzip_message([(b'g%d' % n, None) for n in range(3)])])
    produce(client, topic, 0, [create_snappy_message([(b's%d' % n, None) for n in range(3)])])
    Confluent(cluster).write(topic, 'gzip', [(b'k', b'new'), (None, b'newer')])
    found = take(reader(), 10)
    wanted = [b'plain', b'bare', b'g0', b'g1', b'g2', b's0', b's1', b's2', b'new', b'newer']
    assert values(found) == wanted
    assert offsets(found, 0) == list(range(10))
