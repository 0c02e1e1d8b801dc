"""Records into a DataFrame and out of one, on the driver."""

from __future__ import annotations

import pytest

import kafka.spark
from kafka import KafkaConsumer, KafkaProducer, SimpleClient, SimpleProducer
from kafka.consumer.bounded.reader import BoundedReader
from kafka.errors import KafkaConfigurationError
from kafka.spark import clients
from kafka.spark.rows import COLUMNS
from kafka.testing import Cluster
from test.spark.embedded import fill

pytestmark = pytest.mark.spark
BEGAN = 1_700_000_000_000


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 2, 'out': 1, 'empty': 1}) as made:
        fill(made, 't', 0, [b'a', b'b'], key=b'k', timestamp_ms=BEGAN)
        fill(made, 't', 1, [b'c'], headers=[('h', b'1')])
        yield made
        clients.close_all()


def test_a_topic_becomes_a_data_frame(spark, cluster):
    frame = kafka.spark.read_kafka(spark, 't', bootstrap_servers=cluster.bootstrap)
    assert frame.columns == list(COLUMNS)
    rows = frame.orderBy('partition', 'offset').collect()
    assert [bytes(row.value) for row in rows] == [b'a', b'b', b'c']
    assert (rows[0].offset, rows[0].timestamp.timestamp() * 1000) == (0, BEGAN)


def test_parts_of_it_and_headers_too(spark, cluster):
    frame = kafka.spark.read_kafka(
        spark, 't', 0, 1, include_headers=True, bootstrap_servers=cluster.bootstrap
    )
    first, second = frame.orderBy('partition').collect()
    assert (bytes(first.value), first.headers) == (b'a', None)
    assert [(each.key, bytes(each.value)) for each in second.headers] == [('h', b'1')]


def test_a_topic_without_records_has_the_columns(spark, cluster):
    frame = kafka.spark.read_kafka(spark, 'empty', bootstrap_servers=cluster.bootstrap)
    assert (frame.columns, frame.count()) == (list(COLUMNS), 0)


def test_a_data_frame_is_written(spark, cluster):
    frame = spark.range(5).selectExpr('CAST(id AS STRING) AS value')
    for _ in range(2):
        assert kafka.spark.to_kafka(frame, 'out', bootstrap_servers=cluster.bootstrap) == 5
    with BoundedReader('out', bootstrap_servers=cluster.bootstrap) as reader:
        assert sorted(record.value for record in reader) == sorted(
            2 * [b'%d' % n for n in range(5)]
        )
    assert len(clients._producers) == 1


def test_what_cannot_be_written_is_refused(spark, cluster):
    with pytest.raises(KafkaConfigurationError, match='value'):
        kafka.spark.to_kafka(spark.range(5), 'out', bootstrap_servers=cluster.bootstrap)


def test_batches_of_a_query_are_written_by_the_driver(spark, cluster, tmp_path):
    def write(frame, number):
        kafka.spark.to_kafka(frame.select('value'), 'out', bootstrap_servers=cluster.bootstrap)

    query = (
        spark.readStream.format('kafka-py')
        .option('kafka.bootstrap.servers', cluster.bootstrap)
        .option('subscribe', 't')
        .option('startingOffsets', 'earliest')
        .load()
        .writeStream.foreachBatch(write)
        .option('checkpointLocation', str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    with BoundedReader('out', bootstrap_servers=cluster.bootstrap) as reader:
        assert sorted(record.value for record in reader) == [b'a', b'b', b'c']


def produce(producer, values, bootstrap):
    for value in values:
        producer.send('out', value)
    producer.flush(10)


def produce_as_in_0_9(producer, values, bootstrap):
    client = SimpleClient(bootstrap)
    sends = SimpleProducer(client)
    sends.send_messages('out', *values)
    sends.stop()
    client.close()


def consume_and_produce(producer, values, bootstrap):
    with KafkaConsumer('t', bootstrap_servers=bootstrap, auto_offset_reset='earliest') as consumer:
        found = []
        while len(found) < len(values):
            found += [each.value for some in consumer.poll(1000).values() for each in some]
    produce(producer, found, bootstrap)


@pytest.mark.parametrize('work', [produce, produce_as_in_0_9, consume_and_produce])
def test_plain_clients_work_beside_a_session_and_in_its_batches(spark, cluster, tmp_path, work):
    """The producer is made once, outside of the function that has it."""
    kafka.spark.register(spark)
    given = {'kafka.bootstrap.servers': cluster.bootstrap, 'subscribe': 't'}
    rows = spark.readStream.format('kafka-py').options(**given, startingOffsets='earliest').load()
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:

        def each(frame, number):
            work(producer, [bytes(row.value) for row in frame.collect()], cluster.bootstrap)

        writer = rows.writeStream.foreachBatch(each).option('checkpointLocation', str(tmp_path))
        assert writer.trigger(availableNow=True).start().awaitTermination(60)
    with BoundedReader('out', bootstrap_servers=cluster.bootstrap) as reader:
        assert sorted(record.value for record in reader) == [b'a', b'b', b'c']


def test_tasks_may_have_a_producer_of_the_driver(spark, cluster):
    """It is pickled as its options, and connects in the process where it arrives."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:

        def send(batches):
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    producer.send('out', b'%d' % number)
                producer.flush(10)
                yield batch

        assert spark.range(0, 100, 1, 2).mapInArrow(send, 'id long').count() == 100
    with BoundedReader('out', bootstrap_servers=cluster.bootstrap) as reader:
        assert sorted(int(record.value) for record in reader) == [*range(100)]
