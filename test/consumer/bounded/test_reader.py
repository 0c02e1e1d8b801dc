"""BoundedReader: what it reads, how, what stands in its way, and what it is as a pickle."""

from __future__ import annotations

import datetime
import pickle
from collections import Counter

import pytest

from kafka import KafkaProducer
from kafka.consumer.bounded.ranges import OffsetRange, Timestamp
from kafka.consumer.bounded.reader import BoundedReader
from kafka.consumer_record import ConsumerRecord
from kafka.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaConfigurationError,
    NoBrokersAvailable,
)
from kafka.structs import TopicPartition
from kafka.testing import Cluster
from test.consumer.written_logs import NOW, T0, Stage, flip_last, numbered, offsets, values

RELEASES = ['0.9', '0.10.2', '0.11', '2.8', '4.4']


@pytest.fixture
def stage():
    made = Stage()
    yield made
    made.close()


@pytest.fixture
def filled(stage):
    """Three batches of ten records each."""
    for start in range(0, 30, 10):
        stage.write(*numbered(10, start=start), at=NOW + 1000 * start)
    return stage


# ------------------------------------------------------------ what is read


def test_a_topic_is_read_from_its_beginning_to_its_end(filled):
    reader = filled.reader('t')
    assert reader.ranges() == [OffsetRange('t', 0, 0, 30)]
    assert values(reader) == numbered(30)


def test_what_is_written_later_is_not_read(filled):
    reader = filled.reader('t')
    reader.ranges()
    filled.write(b'late')
    assert len(list(reader)) == 30


def test_a_range_begins_and_ends_inside_of_batches(filled):
    assert offsets(filled.reader({T0: (3, 25)})) == [*range(3, 25)]
    assert offsets(filled.reader({T0: (12, 13)})) == [12]


@pytest.mark.parametrize(
    'start, stop, expected',
    [
        (Timestamp(NOW + 10000), 'latest', (10, 30)),
        ('earliest', Timestamp(NOW + 20005), (0, 25)),
        (Timestamp(NOW + 99999999), 'latest', (30, 30)),
        (5, Timestamp(NOW + 99999999), (5, 30)),
        (-2, -1, (0, 30)),
        ('latest', 'latest', (30, 30)),
        (datetime.datetime.fromtimestamp(NOW // 1000 + 10, datetime.timezone.utc), 12, (10, 12)),
        (Timestamp(NOW + 20000), Timestamp(NOW), (20, 20)),
    ],
)
def test_bounds_are_looked_up(filled, start, stop, expected):
    assert filled.reader('t', start, stop).ranges() == [OffsetRange('t', 0, *expected)]


def test_several_topics_are_read_each_partition_in_order():
    stage = Stage(topics={'t': 2, 'u': 1, 'empty': 1})
    try:
        places = [('t', 0), ('t', 1), ('u', 0)]
        for round_ in range(3):
            for topic, partition in places:
                stage.write(*numbered(5, start=5 * round_), topic=topic, partition=partition)
        reader = stage.reader(['t', 'u', 'empty'])
        assert [each[:2] for each in reader.ranges()] == [('empty', 0), *places]
        found = {}
        for record in reader:
            found.setdefault((record.topic, record.partition), []).append(record.value)
        assert found == {place: numbered(15) for place in places}
    finally:
        stage.close()


def test_only_committed_records_are_read_if_that_is_asked_for(stage):
    stage.write(b'a', producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    stage.write(b'x', producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    stage.end(2, commit=False)
    stage.end(1, commit=True)
    stage.write(b'open', producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)
    committed = stage.reader(isolation_level='read_committed')
    assert committed.ranges() == [OffsetRange('t', 0, 0, 4)]
    assert values(committed) == [b'a']
    assert values(stage.reader()) == [b'a', b'x', b'open']


@pytest.mark.parametrize('release', RELEASES)
def test_each_release_is_read(release):
    """Over sockets, as it is used."""
    with Cluster(version=release, topics={'t': 3}) as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=5) as producer:
            for number in range(300):
                producer.send('t', b'%d' % number, key=b'k', partition=number % 3)
        with BoundedReader('t', bootstrap_servers=cluster.bootstrap) as reader:
            assert Counter(values(reader)) == Counter(b'%d' % each for each in range(300))


# ------------------------------------------------------------ how


def test_records_are_those_of_a_consumer(stage):
    stage.write((b'k', b'v', [('h', b'1')]))
    (record,) = stage.reader()
    assert isinstance(record, ConsumerRecord)
    assert record[:8] == ('t', 0, 0, NOW, 0, b'k', b'v', [('h', b'1')])


def test_lists_are_as_long_as_they_may_be(filled):
    reader = filled.reader('t')
    lengths = []
    while True:
        records = reader.read(7)
        if not records:
            break
        lengths.append(len(records))
    assert (max(lengths), sum(lengths)) == (7, 30)
    assert reader.read() == []


def test_lists_and_single_records_go_together(filled):
    reader = filled.reader('t')
    assert next(reader).offset == 0
    assert offsets(reader.read(2)) == [1, 2]
    assert offsets(reader.read())[0] == 3
    assert len(list(reader)) == 30 - 30


def test_deserializers_are_used(stage):
    stage.write((b'k', b'v', ()))
    (record,) = stage.reader(key_deserializer=bytes.decode, value_deserializer=bytes.upper)
    assert (record.key, record.value) == ('k', b'V')


# ------------------------------------------------------------ what stands in its way


def test_a_damaged_batch_is_an_error_that_names_it(stage):
    stage.write(*numbered(5))
    stage.write(*numbered(5), damage=flip_last)
    reader = stage.reader()
    assert len(reader.read()) == 5
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match='offset 5 of partition 0 of topic'):
            reader.read()


def test_a_damaged_batch_may_be_given_up(stage):
    stage.write(*numbered(5))
    stage.write(*numbered(5), damage=flip_last)
    stage.write(*numbered(5))
    reader = stage.reader()
    reader.read()
    with pytest.raises(CorruptRecordError):
        reader.read()
    assert reader.skip_corrupt() == 10
    assert offsets(reader) == [10, 11, 12, 13, 14]


def test_what_was_fetched_ahead_does_not_come_twice_after_a_damaged_batch(stage):
    stage.write(*numbered(5), damage=flip_last)
    for _ in range(3):
        stage.write(*numbered(5))
    reader = stage.reader(max_partition_fetch_bytes=1)  # a batch in each answer
    with pytest.raises(CorruptRecordError):
        reader.read()
    reader._loop.wait(lambda: False, 1.0)  # the next answer comes
    assert reader._fetcher.has_news
    reader.skip_corrupt()
    assert offsets(reader) == [*range(5, 20)]


def test_a_loop_goes_on_after_a_damaged_batch(stage):
    stage.write(*numbered(5), damage=flip_last)
    stage.write(*numbered(5))
    reader = stage.reader()
    with pytest.raises(CorruptRecordError):
        next(reader)
    reader.skip_corrupt()
    assert len(list(reader)) == 5


def test_what_a_deserializer_refuses_stays_where_it_is(stage):
    stage.write(b'1', b'x', b'3')
    reader = stage.reader(value_deserializer=int)
    assert values(reader.read()) == [1]
    for _ in range(2):
        with pytest.raises(ValueError, match='invalid literal'):
            reader.read()


def test_nothing_is_given_up_that_can_be_read(filled):
    reader = filled.reader('t')
    with pytest.raises(IllegalStateError):
        reader.skip_corrupt()
    reader.read(1)
    with pytest.raises(IllegalStateError):
        reader.skip_corrupt()
    assert offsets(reader)[0] == 1


@pytest.mark.parametrize(
    'options, error',
    [
        ({'group_id': 'g'}, KafkaConfigurationError),
        ({'group_instance_id': 'g'}, KafkaConfigurationError),
        ({'nonsense': 1}, KafkaConfigurationError),
        ({'fetch_max_bytes': 'x'}, KafkaConfigurationError),
        ({'timeout_ms': 0}, KafkaConfigurationError),
        ({'timeout_ms': 'x'}, KafkaConfigurationError),
        ({'max_buffered_bytes': 0}, KafkaConfigurationError),
        ({'start': 'newest'}, IllegalArgumentError),
        ({'start': 5, 'stop': 4}, IllegalArgumentError),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_connected(options, error):
    with pytest.raises(error):
        BoundedReader('t', **options)


def test_a_number_of_records_is_one_or_more(filled):
    with pytest.raises(IllegalArgumentError, match='not 0'):
        filled.reader('t').read(0)


def test_nobody_answers():
    reader = BoundedReader('t', bootstrap_servers='127.0.0.1:1', bootstrap_timeout_ms=100)
    with pytest.raises(NoBrokersAvailable):
        reader.read()
    reader.close()


def test_a_closed_reader_reads_no_more(filled):
    reader = filled.reader('t')
    reader.read(1)
    reader.close()
    reader.close()
    for call in (reader.read, reader.arrow, lambda: next(reader)):
        with pytest.raises(IllegalStateError, match='closed'):
            call()
    assert repr(reader) == '<BoundedReader 1 partitions closed>'


# ------------------------------------------------------------ as a pickle


def test_a_pickle_is_the_description():
    reader = BoundedReader(
        {'t': ('earliest', 9), TopicPartition('u', 1): (Timestamp(3), 'latest')},
        bootstrap_servers='h:1',
        fail_on_data_loss=False,
        timeout_ms=5,
        isolation_level='read_committed',
    )
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.settings == reader.settings
    assert copy.config == reader.config
    assert copy._wishes == reader._wishes


def test_a_pickle_has_the_offsets_that_were_looked_up(filled):
    reader = filled.reader('t', bootstrap_servers=filled.cluster.bootstrap)
    reader.read(1)
    made, (_, what, given) = reader.__reduce__()
    assert what == [OffsetRange('t', 0, 0, 30)]
    assert made(BoundedReader, what, given)._wishes.partitions == {T0: (0, 30)}


def test_a_pickle_of_a_reader_at_work_has_no_connection():
    with Cluster(topics={'t': 1}) as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send('t', b'v')
        with BoundedReader('t', bootstrap_servers=cluster.bootstrap) as reader:
            assert values(reader) == [b'v']
            with pickle.loads(pickle.dumps(reader)) as copy:
                assert values(copy) == [b'v']


def test_secrets_are_not_shown():
    reader = BoundedReader(
        't',
        security_protocol='SASL_PLAINTEXT',
        sasl_mechanism='PLAIN',
        sasl_plain_username='u',
        sasl_plain_password='secret-word',
    )
    assert 'secret-word' not in repr(reader) + repr(reader.__reduce__()) + repr(vars(reader))
