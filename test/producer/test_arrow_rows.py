"""Rows of Arrow: where they go, in which order, what is refused, what is left to the other way."""

from __future__ import annotations

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import IllegalStateError, MessageSizeTooLargeError
from kafka.partitioner.hashed import murmur2
from kafka.producer import arrow_rows
from kafka.producer.arrow_rows import ArrowRows, send_arrow_rows
from kafka.producer.rows import RowRefusedError, Rows, send_rows
from kafka.testing import Cluster

pa = pytest.importorskip('pyarrow')
pytest.importorskip('numpy')

PARTITIONS = 3


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch):
    monkeypatch.setattr(arrow_rows, '_FEWEST', 1)
    monkeypatch.setattr(arrow_rows, '_FEWEST_EACH', 0)


@pytest.fixture
def cluster():
    with Cluster(topics={'t': PARTITIONS}) as cluster:
        yield cluster


@pytest.fixture
def stored(cluster):
    """Return a function that tells (key, value) of what is stored, by partition."""

    def read():
        found = {}
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap) as consumer:
            places = [TopicPartition('t', each) for each in consumer.partitions_for_topic('t')]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning()
            while any(consumer.position(place) < ends[place] for place in places):
                for place, records in consumer.poll(1000).items():
                    rows = [(each.key, each.value) for each in records]
                    found.setdefault(place.partition, []).extend(rows)
        return found

    return read


def numbered(count):
    return [b'%d' % number for number in range(count)]


def send(producer, values, keys=None, partitions=None):
    records = send_arrow_rows(
        producer,
        't',
        ArrowRows(
            pa.array(values, pa.binary()),
            None if keys is None else pa.array(keys, pa.binary()),
            None if partitions is None else pa.array(partitions, pa.int32()),
        ),
    )
    producer.flush()
    return records


def by_hash(key):
    return (murmur2(key) & 0x7FFFFFFF) % PARTITIONS


def test_keys_choose_the_partition_and_rows_keep_their_order_there(make, stored):
    values = numbered(500)
    keys = [b'key-%d' % (number * 7 % 50) for number in range(500)]
    send(make(batch_size=500), values, keys)
    expected = {}
    for key, value in zip(keys, values):
        expected.setdefault(by_hash(key), []).append((key, value))
    assert stored() == expected


def test_a_partition_of_its_own_goes_before_the_key(make, stored):
    send(make(), [b'0', b'1', b'2'], [b'a', b'a', b'a'], [2, 0, 2])
    assert stored() == {2: [(b'a', b'0'), (b'a', b'2')], 0: [(b'a', b'1')]}


def test_rows_without_key_and_partition_go_to_all(make, stored):
    send(make(batch_size=200), numbered(500))
    found = stored()
    assert sorted(int(value) for rows in found.values() for _, value in rows) == list(range(500))
    assert len(found) == PARTITIONS


def test_null_values_are_tombstones(make, stored):
    send(make(), [None, b''], [b'a', b'a'])
    assert stored() == {by_hash(b'a'): [(b'a', None), (b'a', b'')]}


@pytest.mark.parametrize('codec', ['gzip', 'snappy', 'lz4', 'zstd'])
def test_batches_are_compressed(make, stored, codec):
    pytest.importorskip('cramjam') if codec in ('snappy', 'lz4', 'zstd') else None
    producer = make(compression_type=codec, batch_size=2000)
    for _ in range(3):
        send(producer, [b'0' * 100] * 50, [b'a'] * 50)
    assert stored() == {by_hash(b'a'): [(b'a', b'0' * 100)] * 150}


HEADERS = pa.list_(pa.struct([('key', pa.string()), ('value', pa.binary())]))


def with_headers(values, names, **columns):
    headers = [None if name is None else [{'key': name, 'value': b'x'}] for name in names]
    return ArrowRows(pa.array(values, pa.binary()), headers=pa.array(headers, HEADERS), **columns)


def test_headers_stay_with_their_rows_where_these_are_sorted(make, cluster):
    partitions = pa.array([2, 0, 2, 0], pa.int32())
    rows = with_headers([b'0', b'1', None, b'3'], ['a', 'b', None, 'd'], partitions=partitions)
    producer = make()
    assert send_arrow_rows(producer, 't', rows) is not None
    producer.flush()
    with KafkaConsumer(
        't',
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset='earliest',
    ) as consumer:
        found = [next(consumer) for _ in range(4)]
    assert sorted((each.partition, each.offset, each.value, each.headers) for each in found) == [
        (0, 0, b'1', [('b', b'x')]),
        (0, 1, b'3', [('d', b'x')]),
        (2, 0, b'0', [('a', b'x')]),
        (2, 1, None, []),
    ]


def test_headers_count_as_bytes_of_the_row(make):
    rows = with_headers([b'0', b'1'], ['a', 'b' * 1000])
    with pytest.raises(RowRefusedError) as refused:
        send_arrow_rows(make(max_request_size=1000), 't', rows)
    assert refused.value.index == 1


def test_headers_without_a_name_are_left_to_the_other_way(make):
    headers = pa.array([[{'key': None, 'value': b'x'}]], HEADERS)
    assert send_arrow_rows(make(), 't', ArrowRows(pa.array([b'0']), headers=headers)) is None


def test_pieces_of_a_batch_that_is_split_have_its_headers(make, cluster):
    cluster.create_topic('small', 1, configs={'max.message.bytes': '300'})
    producer = make()
    send_arrow_rows(producer, 'small', with_headers([b'0' * 100] * 5, 'abcde'))
    producer.flush()
    with KafkaConsumer(
        'small', bootstrap_servers=cluster.bootstrap, auto_offset_reset='earliest'
    ) as consumer:
        assert [next(consumer).headers[0][0] for _ in range(5)] == list('abcde')


def test_the_order_is_kept_between_both_ways(make, stored):
    producer = make(linger_ms=1000)
    for number in range(0, 40, 4):
        send_rows(producer, 't', Rows([b'%d' % number], [b'a']))
        rows = ArrowRows(pa.array([b'%d' % (number + each) for each in (1, 2, 3)]))
        rows = rows._replace(keys=pa.array([b'a'] * 3))
        assert send_arrow_rows(producer, 't', rows) is not None
    producer.flush()
    assert [int(value) for _, value in stored()[by_hash(b'a')]] == list(range(40))


def test_batches_are_no_larger_than_asked_for(make, cluster):
    records = send(make(batch_size=1000), [b'0' * 90] * 100, None, [1] * 100)
    assert {part.size for part in records._placed} == {10}


def test_a_record_that_is_larger_than_a_batch_has_one_of_its_own(make, stored):
    values = [b'0', b'1' * 5000, b'2']
    records = send(make(batch_size=1000), values, None, [1, 1, 1])
    assert [part.size for part in records._placed] == [1, 1, 1]
    assert stored() == {1: [(None, value) for value in values]}


def test_the_futures_are_in_the_order_of_the_rows(make):
    records = send(make(), [b'0', b'1', b'2'], None, [2, 1, 2])
    assert [(each.partition, each.offset) for each in records.get()] == [(2, 0), (1, 0), (2, 1)]
    assert [each.serialized_value_size for each in records.get()] == [1, 1, 1]


def test_more_rows_than_there_is_memory_for_wait(make, stored):
    send(make(buffer_memory=2000, batch_size=500), [b'0' * 90] * 200, None, [0] * 200)
    assert len(stored()[0]) == 200


def test_a_batch_that_the_broker_finds_too_large_is_split(make, cluster, stored):
    cluster.create_topic('small', 1, configs={'max.message.bytes': '2000'})
    values = pa.array([b'%0100d' % number for number in range(50)] + [b'x' * 3000])
    producer = make(batch_size=16384)
    records = send_arrow_rows(producer, 'small', ArrowRows(values))
    producer.flush()
    number, error = records.failure()
    assert number == 50 and isinstance(error, MessageSizeTooLargeError)
    assert [future.value.offset for future in records[:50]] == list(range(50))


def test_a_row_that_failed_is_told_by_its_number_although_rows_are_sorted(make, cluster):
    cluster.create_topic('small', 2, configs={'max.message.bytes': '2000'})
    rows = ArrowRows(
        pa.array([b'0', b'1' * 3000, b'2', b'3']), None, pa.array([1, 1, 0, 0], pa.int32())
    )
    producer = make()
    records = send_arrow_rows(producer, 'small', rows)
    producer.flush()
    assert records.failure()[0] == 1


def test_a_row_that_is_too_large_is_refused_with_its_number_and_none_is_sent(make, stored):
    producer = make(max_request_size=1000)
    with pytest.raises(RowRefusedError, match='topic t') as refused:
        send(producer, [b'0', b'1' * 500, b'2'], [b'a', b'b' * 500, b'c'])
    assert refused.value.index == 1
    assert isinstance(refused.value.reason, MessageSizeTooLargeError)
    producer.flush()
    assert stored() == {}


def test_a_partition_that_there_is_not_is_refused_with_the_number_of_the_row(make):
    with pytest.raises(RowRefusedError, match='partition 9') as refused:
        send(make(), [b'0', b'1', b'2', b'3'], None, [0, 0, 0, 9])
    assert refused.value.index == 3


@pytest.mark.parametrize(
    'columns',
    [
        ([b'0', b'1'], [b'a', None]),
        ([b'0', b'1'], [b'a', b'b'], [0, None]),
    ],
)
def test_rows_some_of_which_have_no_place_are_left_to_the_other_way(make, columns):
    assert send(make(), *columns) is None


def test_few_rows_are_left_to_the_other_way(make, monkeypatch):
    producer = make()
    monkeypatch.setattr(arrow_rows, '_FEWEST', 3)
    assert send(producer, [b'0', b'1']) is None
    assert send(producer, [b'0', b'1', b'2']) is not None
    monkeypatch.setattr(arrow_rows, '_FEWEST_EACH', 2)
    assert send(producer, [b'0', b'1', b'2']) is not None
    assert send(producer, [b'0'] * 5, [b'a'] * 5) is None
    assert send(producer, [b'0'] * 6, [b'a'] * 6) is not None


def test_brokers_of_old_formats_are_left_to_the_other_way():
    with Cluster(version='0.10.2', topics={'t': 1}) as cluster:
        from kafka import KafkaProducer

        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            assert send(producer, [b'0']) is None


def test_without_numpy_rows_are_left_to_the_other_way(make, monkeypatch):
    monkeypatch.setattr(arrow_rows, 'has_numpy', lambda: False)
    assert send(make(), [b'0']) is None


def test_a_producer_with_a_serializer_is_refused(make):
    with pytest.raises(IllegalStateError, match='serializer'):
        send(make(key_serializer=str.encode), [b'0'])


def test_records_of_a_transaction_are_part_of_it(make, stored):
    producer = make(transactional_id='x')
    producer.init_transactions()
    producer.begin_transaction()
    assert send(producer, [b'0'], None, [0]) is not None
    producer.commit_transaction()
    with pytest.raises(Exception, match='begin_transaction'):
        send(producer, [b'1'], None, [0])
    assert stored() == {0: [(None, b'0')]}
