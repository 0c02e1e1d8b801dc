"""Rows with headers and partitions of their own: where they go, in which order, what is refused."""

from __future__ import annotations

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import IllegalStateError, KafkaTimeoutError, MessageSizeTooLargeError
from kafka.partitioner.hashed import murmur2
from kafka.producer.rows import RowRefusedError, Rows, send_rows
from kafka.protocol.admin.topics import CreatePartitionsRequest, CreatePartitionsTopic
from kafka.testing import Cluster

PARTITIONS = 3


@pytest.fixture
def cluster():
    with Cluster(topics={'t': PARTITIONS}) as cluster:
        yield cluster


@pytest.fixture
def stored(cluster):
    """Return a function that tells (key, value, headers) of what is stored, by partition."""

    def read():
        found = {}
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap) as consumer:
            places = [TopicPartition('t', each) for each in consumer.partitions_for_topic('t')]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning()
            while any(consumer.position(place) < ends[place] for place in places):
                for place, records in consumer.poll(1000).items():
                    rows = [(each.key, each.value, each.headers) for each in records]
                    found.setdefault(place.partition, []).extend(rows)
        return found

    return read


def send(producer, *columns):
    records = send_rows(producer, 't', Rows(*columns))
    producer.flush()
    return records


def values(rows):
    return [value for _, value, _ in rows]


def by_hash(key):
    return (murmur2(key) & 0x7FFFFFFF) % PARTITIONS


def test_rows_with_a_key_go_where_its_hash_says(make, stored):
    keys = [b'a', b'b', b'c', b'd', b'a']
    send(make(), [b'0', b'1', b'2', b'3', b'4'], keys)
    for partition, rows in stored().items():
        assert {by_hash(key) for key, _, _ in rows} == {partition}


def test_a_partition_of_its_own_goes_before_the_key(make, stored):
    send(make(), [b'0', b'1'], [b'a', b'a'], None, [2, 0])
    assert {p: values(rows) for p, rows in stored().items()} == {2: [b'0'], 0: [b'1']}


def test_rows_of_one_partition_keep_their_order_however_they_came_by_it(make, stored):
    partition = by_hash(b'a')
    wishes = [None, partition, None, partition, None]
    send(make(), [b'%d' % each for each in range(5)], [b'a', None, b'a', b'b', b'a'], None, wishes)
    assert {p: values(rows) for p, rows in stored().items()} == {
        partition: [b'0', b'1', b'2', b'3', b'4']
    }


def test_rows_without_key_and_partition_go_anywhere(make, stored):
    send(make(), [b'0', b'1', b'2'], [None, b'a', None], None, [None, None, None])
    assert sorted(value for rows in stored().values() for value in values(rows)) == [
        b'0',
        b'1',
        b'2',
    ]


def test_each_row_has_its_own_headers(make, stored):
    headers = [[('x', b'1'), ('x', None)], (), [('y', b'')]]
    send(make(), [b'0', b'1', b'2'], None, headers, [1, 1, 1])
    assert stored() == {
        1: [
            (None, b'0', [('x', b'1'), ('x', None)]),
            (None, b'1', []),
            (None, b'2', [('y', b'')]),
        ]
    }


def test_headers_stay_with_their_rows_where_keys_part_them(make, stored):
    keys = [b'%d' % each for each in range(30)]
    send(make(), keys, keys, [[('k', key)] for key in keys])
    assert all(key == headers[0][1] for rows in stored().values() for key, _, headers in rows)


def test_rows_with_headers_fit_behind_rows_without(make, stored):
    producer = make(linger_ms=1000)
    send_rows(producer, 't', Rows([b'0'], None, None, [0]))
    send_rows(producer, 't', Rows([b'1'], None, [[('x', b'')]], [0]))
    send_rows(producer, 't', Rows([b'2'], None, None, [0]))
    producer.flush()
    assert [headers for _, _, headers in stored()[0]] == [[], [('x', b'')], []]


def test_key_and_value_may_both_be_null(make, stored):
    send(make(), [None, b'1'], [None, None], None, [0, 0])
    assert stored() == {0: [(None, None, []), (None, b'1', [])]}


def test_the_futures_are_in_the_order_of_the_rows(make):
    records = send(make(), [b'0', b'1', b'2'], None, None, [2, 1, 2])
    assert [(each.partition, each.offset) for each in records.get()] == [(2, 0), (1, 0), (2, 1)]


def test_a_partition_that_came_later_is_found(make, stored):
    producer = make()
    send(producer, [b'0'], None, None, [0])
    grown = CreatePartitionsTopic(name='t', count=PARTITIONS + 1, assignments=None)
    request = CreatePartitionsRequest(topics=[grown], timeout_ms=1000, validate_only=False)
    producer._loop.run(producer._engine.pool.send(request), 10)
    send(producer, [b'1'], None, None, [PARTITIONS])
    assert values(stored()[PARTITIONS]) == [b'1']


@pytest.mark.parametrize('partition', [PARTITIONS, -1])
def test_a_partition_that_there_is_not_is_refused_with_the_number_of_the_row(
    make, stored, partition
):
    producer = make()
    with pytest.raises(RowRefusedError, match='partition %d' % partition) as refused:
        send_rows(producer, 't', Rows([b'0', b'1'], None, None, [0, partition]))
    assert refused.value.index == 1
    producer.flush()
    assert stored() == {}


def test_a_row_that_is_too_large_is_refused_with_its_number_and_none_is_sent(make, stored):
    producer = make(max_request_size=1000)
    with pytest.raises(RowRefusedError) as refused:
        send_rows(producer, 't', Rows([b'0', b'1' * 500], [None, b'k'], [(), [('h', b'2' * 500)]]))
    assert refused.value.index == 1
    assert isinstance(refused.value.reason, MessageSizeTooLargeError)
    assert 'topic t' in str(refused.value) and '1111' not in str(refused.value)
    producer.flush()
    assert stored() == {}


def test_no_rows_are_no_error(make):
    assert len(send(make(), [])) == 0


def test_a_topic_that_there_is_not_ends_at_max_block_ms(make):
    with pytest.raises(KafkaTimeoutError, match='nowhere'):
        send_rows(make(max_block_ms=50, allow_auto_create_topics=False), 'nowhere', Rows([b'0']))


def test_a_producer_with_a_serializer_is_refused(make):
    with pytest.raises(IllegalStateError, match='serializer'):
        send_rows(make(value_serializer=str.encode), 't', Rows([b'0']))


def test_a_closed_producer_is_refused(make):
    producer = make()
    producer.close()
    with pytest.raises(IllegalStateError, match='closed'):
        send_rows(producer, 't', Rows([b'0']))


def test_a_producer_that_may_not_send_is_refused(make, monkeypatch):
    producer = make()

    def check_send():
        raise IllegalStateError('fenced')

    monkeypatch.setattr(producer._engine.state, 'check_send', check_send)
    with pytest.raises(IllegalStateError, match='fenced'):
        send_rows(producer, 't', Rows([b'0']))
