"""Serializers, partitioners and interceptors of programs, without a producer."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConfigurationError, KafkaError, UnsupportedForMessageFormatError
from kafka.partitioner.default import DefaultPartitioner
from kafka.producer.future import future_of
from kafka.producer.producer_batch import FailedBatch
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.producer.record_checks import ProducerRecord, RecordTypeError, RecordValueError
from kafka.producer.record_preparation import ProducerInterceptors, RecordPreparation
from kafka.structs import TopicPartition

NEW = (4, 0)


def preparation(key=None, value=None, partitioner=None):
    return RecordPreparation(key, value, partitioner or DefaultPartitioner())


@pytest.fixture
def queue():
    """Return a topic with partitions 0 to 3, the last without a leader."""
    accumulator = RecordAccumulator(AccumulatorConfig(), lambda: None, lambda done, timeout: done())
    made = accumulator.topic('t')
    accumulator.update(made, [0, 1, 2, 3], [0, 1, 2])
    return made


def test_records_are_plain_unless_an_object_of_the_program_takes_part():
    assert preparation().is_plain
    assert not preparation(key=str.encode).is_plain
    assert not preparation(value=str.encode).is_plain
    chosen = preparation(partitioner=lambda key, partitions, available: 0)
    assert not chosen.is_plain and not chosen.is_default


def test_key_and_value_are_serialized_in_this_order():
    calls = []

    class Serializer:
        def serialize(self, topic, headers, data):
            calls.append((topic, headers, data))
            return data.encode()

    headers = [('h', b'1')]
    record = ProducerRecord('t', 'value', 'key', headers, None, 5)
    made = preparation(Serializer(), Serializer())
    assert made.prepare(record, NEW) == (b'key', b'value', headers, 5)
    assert calls == [('t', headers, 'key'), ('t', headers, 'value')]


@pytest.mark.parametrize(
    ('record', 'release', 'error'),
    [
        (ProducerRecord('t'), NEW, RecordValueError),
        (ProducerRecord('t', 'text'), NEW, RecordTypeError),
        (ProducerRecord('t', b'v', None, {'h': b'1'}), NEW, RecordTypeError),
        (ProducerRecord('t', b'v', None, None, None, -1), NEW, RecordValueError),
        (ProducerRecord('t', b'v', None, [('h', b'')]), (0, 10), UnsupportedForMessageFormatError),
        (ProducerRecord('t', None, b'k'), (0, 8, 0), RecordValueError),
        (ProducerRecord('t/', b'v'), NEW, ValueError),
    ],
)
def test_what_cannot_be_stored_is_refused(record, release, error):
    with pytest.raises(error):
        preparation().prepare(record, release)


def test_columns_are_serialized_and_an_error_has_the_number_of_the_record():
    record = ProducerRecord('t')
    made = preparation(key=str.encode)
    assert made.serialize_keys(record, ['a', 'b']) == [b'a', b'b']
    assert made.serialize_values(record, [b'1', None]) == [b'1', None]
    with pytest.raises(RecordTypeError, match=r'\(record 1; none was sent\)'):
        made.serialize_values(record, [b'1', 'text'])


def test_the_partition_of_a_record_comes_before_the_partitioner(queue):
    made = preparation(partitioner=lambda key, partitions, available: 1)
    assert made.partition(queue, ProducerRecord('t', b'v', partition=3), None, b'v', None) == 3
    with pytest.raises(RecordValueError):
        made.partition(queue, ProducerRecord('t', b'v', partition=4), None, b'v', None)


def test_the_default_partitioner_leaves_records_without_key_to_the_accumulator(queue):
    record = ProducerRecord('t', b'v', b'k')
    assert preparation().partition(queue, record, None, b'v', None) is None
    chosen = preparation().partition(queue, record, b'k', b'v', None)
    assert chosen == queue.by_key[b'k'].topic_partition.partition


def test_a_partitioner_of_3_0_is_given_all_and_told_of_new_batches(queue):
    class Partitioner:
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
            asked.append((topic, key, serialized_key, value, serialized_value, cluster))
            return 2

        def on_new_batch(self, topic, cluster, partition):
            asked.append(partition)

    asked, cluster = [], object()
    made = preparation(partitioner=Partitioner())
    record = ProducerRecord('t', 'v', 'k')
    assert made.partition(queue, record, b'k', b'v', cluster) == 2
    made.on_new_batch('t', cluster, 2)
    assert asked == [('t', 'k', b'k', 'v', b'v', cluster), 2]
    assert preparation().on_new_batch is None


def test_a_partitioner_that_returns_no_partition_of_the_topic_is_told_of(queue):
    made = preparation(partitioner=lambda key, partitions, available: 'first')
    with pytest.raises(RecordValueError, match='the partitioner returned'):
        made.partition(queue, ProducerRecord('t', b'v'), None, b'v', None)


@pytest.mark.parametrize('options', [{'key': 1}, {'value': 'utf-8'}, {'partitioner': 5}])
def test_what_is_neither_serializer_nor_partitioner_is_refused(options):
    with pytest.raises(KafkaConfigurationError):
        preparation(**options)


class Named:
    """An interceptor that adds its name to the value, and keeps what it is told."""

    def __init__(self, name=b'made', error=None):
        self.name, self.error, self.told = name, error, []

    def on_send(self, record):
        return record._replace(value=record.value + self.name)

    def on_acknowledgement(self, metadata, exception):
        self.told.append((metadata, exception))
        if self.error is not None:
            raise self.error


def test_interceptors_change_a_record_in_their_order():
    class OnlyTold:
        def on_acknowledgement(self, metadata, exception):
            """Be told, and leave records alone."""

    interceptors = ProducerInterceptors([Named(b'1'), OnlyTold(), Named])
    assert interceptors.on_send(ProducerRecord('t', b'v')).value == b'v1made'


def test_an_interceptor_has_to_return_a_record():
    class Broken:
        def on_send(self, record):
            """Forget to return it."""

    with pytest.raises(RecordTypeError, match=r'Broken\.on_send\(\) must return a record'):
        ProducerInterceptors([Broken()]).on_send(ProducerRecord('t', b'v'))


def test_all_interceptors_are_told_of_a_record_that_was_not_taken(caplog):
    first, second = Named(error=ValueError('of the program')), Named()
    error = RecordTypeError('text')
    ProducerInterceptors([first, second]).on_send_error(error)
    assert first.told == second.told == [(None, error)]
    assert 'an interceptor failed' in caplog.text


def test_interceptors_are_told_what_becomes_of_a_record():
    told = Named()
    error = KafkaError('lost')
    batch = FailedBatch(TopicPartition('t', 0), error, 5)
    ProducerInterceptors([told]).watch(future_of(batch, 0, -1, 1, -1))
    assert [(metadata, type(cause)) for metadata, cause in told.told] == [(None, KafkaError)]
