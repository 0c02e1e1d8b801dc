"""Streams that Spark reads of an embedded broker, through both kinds of reader."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import time

import pytest

from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from test.integration.wire import Wire
from test.spark.embedded import fill, without_topics

pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

from pyspark.errors import PySparkNotImplementedError

import kafka.spark
from kafka.consumer import KafkaConsumer
from kafka.spark import clients, stream
from kafka.spark.options import Limit, SourceOptions, Topics
from kafka.spark.source import KafkaDataSource
from kafka.spark.stream import SelfLimitedReader, simple_reader, stream_reader
from kafka.structs import TopicPartition
from kafka.testing import Cluster

pytestmark = pytest.mark.spark
SECONDS = 120
SOME = SourceOptions(Topics('subscribe', ('t',)), Limit('earliest'), None, {})


class SelfLimitedSource(KafkaDataSource):
    """What PySpark 4.0 and 4.1 use, for all."""

    @classmethod
    def name(cls):
        return 'kafka-self-limited'

    def streamReader(self, schema):
        options = SourceOptions.of(self.options, True)
        return SelfLimitedReader(options, [field.name for field in schema.fields])


class LowLatencySource(KafkaDataSource):
    """What the option lowLatency uses."""

    @classmethod
    def name(cls):
        return 'kafka-low-latency'

    def streamReader(self, schema):
        raise PySparkNotImplementedError(
            errorClass='NOT_IMPLEMENTED', messageParameters={'feature': 'streamReader'}
        )

    def simpleStreamReader(self, schema):
        options = SourceOptions.of(self.options, True)
        return simple_reader(options, [field.name for field in schema.fields])


class Queries:
    """Queries of one topic with one checkpoint. What each batch read is appended to `batches`."""

    def __init__(self, spark, name, servers, topic, checkpoint):
        self.spark, self.name, self.servers, self.topic = spark, name, servers, topic
        self.checkpoint = pathlib.Path(checkpoint)
        self.batches = []
        self.tasks = []

    def start(self, available_now=True, **options):
        """Start a query; without AvailableNow it goes on until it is stopped."""
        given = {'startingOffsets': 'earliest', **options}
        if 'subscribePattern' not in given:
            given['subscribe'] = self.topic
        reader = self.spark.readStream.format(self.name)
        reader = reader.option('kafka.bootstrap.servers', self.servers).options(**given)
        frame = reader.load().select('partition', 'offset', 'value')
        writer = frame.writeStream.foreachBatch(self._take)
        writer = writer.option('checkpointLocation', str(self.checkpoint))
        when = {'availableNow': True} if available_now else {'processingTime': '0 seconds'}
        return writer.trigger(**when).start()

    def _take(self, frame, number):
        self.tasks.append(frame.rdd.getNumPartitions())
        rows = [(row.partition, row.offset, bytes(row.value)) for row in frame.collect()]
        self.batches.append(sorted(rows))

    def run(self, **options):
        """Read what there is, and return the rows."""
        before = len(self.batches)
        query = self.start(**options)
        assert query.awaitTermination(SECONDS)
        return sorted(row for batch in self.batches[before:] for row in batch)

    @property
    def rows(self):
        """All rows of all batches."""
        return sorted(row for batch in self.batches for row in batch)

    def forget_commit(self, number):
        """Make a batch one that was begun and not finished."""
        for name in ('%d', '.%d.crc'):
            (self.checkpoint / 'commits' / (name % number)).unlink()

    def rewrite(self, number, offsets):
        """Write the offsets of a batch as the JVM connector does, and what it keeps beside them."""
        path = self.checkpoint / 'offsets' / str(number)
        lines = path.read_text().splitlines()
        path.write_text('\n'.join(lines[:-1] + [offsets]))
        (path.parent / ('.%d.crc' % number)).unlink()
        initial = self.checkpoint / 'sources' / '0' / '0'
        os.makedirs(initial.parent, exist_ok=True)
        initial.write_bytes(b'\x00v1\n' + offsets.encode())


#: Also the reader of PySpark 4.0 and 4.1, which newer ones take, too.
both = pytest.mark.parametrize('queries', ['kafka-py', 'kafka-self-limited'], indirect=True)
every = pytest.mark.parametrize(
    'queries', ['kafka-py', 'kafka-self-limited', 'kafka-low-latency'], indirect=True
)


@pytest.fixture
def queries(request, spark, broker, topic, checkpoint):
    kafka.spark.register(spark)
    spark.dataSource.register(SelfLimitedSource)
    spark.dataSource.register(LowLatencySource)
    name = getattr(request, 'param', 'kafka-py')
    return Queries(spark, name, broker.bootstrap, topic, checkpoint)


@pytest.fixture
def write(broker, topic):
    """Return a function that appends records to the partitions of the topic: from, to of each."""

    def give(*spans):
        for partition, (first, stop) in enumerate(spans):
            fill(broker, topic, partition, [b'%d' % each for each in range(first, stop)])
        return rows(*spans)

    return give


def rows(*spans):
    """The rows that records have whose value is their offset."""
    return [
        (partition, offset, b'%d' % offset)
        for partition, (first, stop) in enumerate(spans)
        for offset in range(first, stop)
    ]


def ask(broker, request, version):
    with Wire(broker.address(0)) as wire:
        return wire.ask(request, version)


def end_of(queries, number):
    """The offsets that the checkpoint has as the end of a batch."""
    return (queries.checkpoint / 'offsets' / str(number)).read_text().splitlines()[-1]


@every
def test_several_triggers_read_everything_once(queries, write):
    wanted = write((0, 50), (0, 30))
    query = queries.start(available_now=False, maxOffsetsPerTrigger='32')
    query.processAllAvailable()
    write((50, 60))
    query.processAllAvailable()
    query.stop()
    assert queries.rows == sorted(wanted + rows((50, 60)))
    assert [len(batch) for batch in queries.batches if batch][:2] == [32, 32]
    assert max(len(batch) for batch in queries.batches) == 32


@every
def test_a_restart_neither_loses_nor_repeats(queries, write):
    assert queries.run() == write((0, 0), (0, 0))
    first = write((0, 20), (0, 10))
    assert queries.run() == first
    assert queries.run() == []
    write((20, 25), (10, 30))
    assert queries.run() == rows((20, 25), (10, 30))


@pytest.mark.thorough
@every
def test_a_batch_that_was_not_finished_is_repeated(queries, write):
    write((0, 20))
    queries.run()
    write((20, 30))
    queries.run()
    queries.forget_commit(1)
    write((30, 40))
    before = len(queries.batches)
    for _ in range(2):  # without limits a run is one batch
        queries.run()
    batches = [batch for batch in queries.batches[before:] if batch]
    assert batches == [rows((20, 30)), rows((30, 40))]


@pytest.mark.thorough
@every
def test_the_first_batch_is_repeated_from_where_it_began(queries, write):
    write((0, 20), (0, 20))
    queries.run()
    queries.forget_commit(0)
    write((20, 30))
    for _ in range(2):
        queries.run(startingOffsets='latest')
    assert [len(batch) for batch in queries.batches] == [40, 40, 10]
    assert queries.batches[1:] == [rows((0, 20), (0, 20)), rows((20, 30))]


@pytest.mark.thorough
@every
def test_latest_is_fixed_by_a_first_batch_without_records(queries, write):
    write((0, 20), (0, 20))
    query = queries.start(available_now=False, startingOffsets='latest')
    query.processAllAvailable()
    query.stop()
    queries.forget_commit(0)
    write((20, 30))
    for _ in range(2):
        queries.run(startingOffsets='latest')
    assert queries.rows == rows((20, 30))


@pytest.mark.thorough
@both
def test_a_checkpoint_of_the_jvm_connector_is_gone_on_with(queries, write, topic):
    write((0, 20), (0, 10))
    queries.run()
    queries.rewrite(0, '{"%s":{"1":7,"0":15}}' % topic)
    assert queries.run(startingOffsets='latest') == rows((15, 20), (7, 10))


@pytest.mark.thorough
def test_later_ends_are_as_the_jvm_connector_has_them(queries, write, topic):
    write((0, 2), (0, 1))
    queries.run()
    write((2, 4))
    queries.run()
    first, second = end_of(queries, 0), end_of(queries, 1)
    began = '(the first batch began at %s:0=0,1=0)' % topic
    assert json.loads(first) == {topic: {'0': 2, '1': 1}, began: {}}
    assert second == json.dumps({topic: {'0': 4, '1': 1}})


@pytest.mark.thorough
@every
def test_without_news_there_are_no_batches(queries, write):
    write((0, 5))
    query = queries.start(available_now=False)
    query.processAllAvailable()
    write((5, 6))
    query.processAllAvailable()
    for _ in range(5):
        query.processAllAvailable()
    query.stop()
    assert queries.batches == [rows((0, 5)), rows((5, 6))]


@pytest.mark.thorough
@every
def test_a_partition_that_is_added_is_read_from_its_begin(queries, write, broker, topic):
    write((0, 5))
    query = queries.start(available_now=False)
    query.processAllAvailable()
    grown = CreatePartitionsTopic(name=topic, count=3, assignments=None)
    asked = CreatePartitionsRequest(topics=[grown], timeout_ms=10000, validate_only=False)
    assert [each.error_code for each in ask(broker, asked, 3).results] == [0]
    write((5, 6), (0, 0), (0, 4))
    query.processAllAvailable()
    query.stop()
    assert queries.rows == sorted(rows((0, 6), (0, 0), (0, 4)))


@pytest.mark.thorough
def test_large_batches_are_cut_into_tasks(queries, write):
    write((0, 20), (0, 10))
    assert queries.run(minPartitions='6') == rows((0, 20), (0, 10))
    assert queries.tasks == [6]
    write((20, 40), (10, 12))
    assert queries.run(maxRecordsPerPartition='5') == rows((20, 40), (10, 12))
    assert queries.tasks == [6, 5]


@pytest.mark.thorough
@both
def test_small_batches_are_waited_for(queries, write):
    write((0, 3))
    options = {'minOffsetsPerTrigger': '10', 'maxTriggerDelay': '1h'}
    query = queries.start(available_now=False, **options)
    query.processAllAvailable()  # the first is not waited for
    write((3, 8))
    query.processAllAvailable()
    assert queries.rows == rows((0, 3))
    write((8, 13))
    query.processAllAvailable()
    query.stop()
    assert queries.batches[1:] == [rows((3, 13))]


@pytest.mark.thorough
def test_offsets_are_committed_one_batch_later(queries, write, broker, topic, new_name):
    group = new_name()
    write((0, 5), (0, 2))
    queries.run(commitOffsets=group)
    write((5, 8))
    queries.run(commitOffsets=group)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    try:
        found = [consumer.committed(TopicPartition(topic, each)) for each in (0, 1)]
    finally:
        consumer.close()
    assert found == [5, 2]


def forget_records(broker, topic, before):
    partition = DeleteRecordsPartition(partition_index=0, offset=before)
    named = DeleteRecordsTopic(name=topic, partitions=[partition])
    answer = ask(broker, DeleteRecordsRequest(topics=[named], timeout_ms=10000), 2)
    assert answer.topics[0].partitions[0].error_code == 0


def recreate(broker, topic):
    asked = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10000)
    assert [each.error_code for each in ask(broker, asked, 5).responses] == [0]
    broker.create_topic(topic, 2)


def failed(queries, **options):
    """Return what a query fails with, as text."""
    query = queries.start(**options)
    with pytest.raises(Exception) as caught:
        query.awaitTermination(SECONDS)
    return str(caught.value)


@pytest.mark.thorough
def test_records_that_went_while_the_query_rested_fail_it(queries, write, broker, topic):
    write((0, 10))
    queries.run()
    write((10, 20))
    forget_records(broker, topic, 14)
    text = failed(queries)
    assert 'KAFKA_DATA_LOSS.START_OFFSET_RESET' in text
    assert '%s-0 must be read from offset 10, but its log starts at 14' % topic in text


@pytest.mark.thorough
def test_records_that_went_are_passed_over_if_that_is_allowed(queries, write, broker, topic):
    write((0, 10))
    queries.run()
    write((10, 20))
    forget_records(broker, topic, 14)
    assert queries.run(failOnDataLoss='false') == rows((14, 20))


@pytest.mark.thorough
def test_a_topic_that_was_made_anew_fails_the_query(queries, write, broker, topic):
    write((0, 10))
    queries.run()
    recreate(broker, topic)
    text = failed(queries, **{'fetchOffset.retryIntervalMs': '10'})
    assert 'KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED' in text
    assert '%s-0 went back from offset 10 to 0' % topic in text


@pytest.mark.thorough
def test_a_topic_that_was_made_anew_is_read_on_if_that_is_allowed(queries, write, broker, topic):
    write((0, 10))
    queries.run()
    recreate(broker, topic)
    options = {'failOnDataLoss': 'false', 'fetchOffset.retryIntervalMs': '10'}
    assert queries.run(**options) == []
    write((0, 3))
    assert queries.run(**options) == rows((0, 3))


# ---------------------------------------------------------------- what only newer ones know


@pytest.mark.thorough
@both
def test_available_now_keeps_to_the_limit(queries, write):
    wanted = write((0, 20), (0, 10))
    found = queries.run(maxOffsetsPerTrigger='12')
    sizes = [len(batch) for batch in queries.batches]
    if isinstance(stream_reader(SOME, ()), SelfLimitedReader) or queries.name != 'kafka-py':
        assert sizes == [12]  # nobody told it that there is no next trigger
    else:
        assert (found, sizes) == (wanted, [12, 12, 6])


@pytest.mark.thorough
@both
def test_available_now_reads_what_would_be_waited_for(queries, write):
    write((0, 4))
    options = {'minOffsetsPerTrigger': '10', 'maxTriggerDelay': '1h'}
    assert queries.run(**options) == rows((0, 4))
    write((4, 6))
    assert queries.run(**options) == rows((4, 6))


# ---------------------------------------------------------------- without a session


def test_a_reader_says_what_it_reads():
    assert repr(SelfLimitedReader(SOME, ('key', 'value'))) == (
        '<SelfLimitedReader of key, value, <Query of subscribe, new>>'
    )


def test_the_driver_reads_no_more_than_so_many_bytes_at_once(monkeypatch):
    """Where one partition has more than that, the others have their turn."""
    monkeypatch.setattr(stream, 'MOST_BYTES', 1500000)
    with Cluster(topics={'large': 2}) as made:
        for partition in (0, 1):
            fill(made, 'large', partition, [b'x' * 1000000] * 3)
        small = {'bootstrap_servers': made.bootstrap, 'max_partition_fetch_bytes': 1}
        options = SourceOptions(Topics('subscribe', ('large',)), Limit('earliest'), None, small)
        reader = simple_reader(options, ('partition', 'value'))
        at = reader.initialOffset()
        seen = []
        while True:
            start = json.loads(json.dumps(at))
            batches, at = reader.read(start)
            if at == start:
                break
            found = [each for batch in batches for each in batch[0].to_pylist()]
            again = reader.readBetweenOffsets(start, at)
            assert sorted(e for batch in again for e in batch[0].to_pylist()) == sorted(found)
            seen.append(found)
        clients.close_all()
        reader._query.close()
    # A batch of Arrow has the records that had come by then: one, or all three.
    first, second = seen[:2]
    assert set(first) == {0}
    assert set(second) == {1}
    assert sorted(sum(seen, [])) == [0, 0, 0, 1, 1, 1]
    assert at['large'] == {'0': 3, '1': 3}


def test_a_reader_travels_without_connections():
    reader = pickle.loads(pickle.dumps(stream_reader(SOME, ('value',))))
    assert type(reader) is type(stream_reader(SOME, ('value',)))


# ---------------------------------------------------------------- topics that are missing a while


def wait_until(is_so):
    """Wait for something, but not for ever: what follows tells whether it came."""
    deadline = time.monotonic() + SECONDS
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)


def asked_by_name(cluster):
    """Return how often a client has asked for topics by name."""
    return sum(
        each.api.name == 'METADATA' and bool(each.request.topics) for each in cluster.requests
    )


@pytest.mark.thorough
@pytest.mark.parametrize('name, fails', [('kafka-py', 'true'), ('kafka-self-limited', 'false')])
def test_a_pattern_that_finds_nothing_for_a_moment_repeats_and_loses_nothing(
    spark, checkpoint, name, fails
):
    """A broker that has just started names no topics: their offsets stay in the checkpoint."""
    kafka.spark.register(spark)
    for each in (SelfLimitedSource, LowLatencySource):
        spark.dataSource.register(each)
    with Cluster(topics={'t': 1}) as cluster:
        fill(cluster, 't', 0, [b'%d' % each for each in range(10)])
        queries = Queries(spark, name, cluster.bootstrap, 't', checkpoint)
        options = {'subscribePattern': 't.*', 'failOnDataLoss': fails}
        options['maxOffsetsPerTrigger'] = '100'
        query = queries.start(available_now=False, **options)
        query.processAllAvailable()
        cluster.forget_requests()
        cluster.control('Metadata', without_topics(cluster))
        wait_until(lambda: asked_by_name(cluster) > 1 or not query.isActive)
        cluster.control('Metadata', None)
        fill(cluster, 't', 0, [b'%d' % each for each in range(10, 15)])
        query.processAllAvailable()
        query.stop()
        assert queries.rows == rows((0, 15))
        assert json.loads(end_of(queries, 1))['t'] == {'0': 15}
