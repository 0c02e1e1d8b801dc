"""Writers of Spark: DataFrames and queries become topics, and what is refused before a job."""

from __future__ import annotations

import pickle

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import IllegalStateError
from kafka.spark import clients
from kafka.spark.options import SinkOptions
from kafka.testing import Cluster

pytest.importorskip('pyspark')

from pyspark.sql.types import StructType

from kafka.spark import register, sink

pytestmark = pytest.mark.spark

OPTIONS = SinkOptions('t', False, {'sasl_plain_password': 'geheim'})
VALUE = StructType().add('value', 'string')


@pytest.fixture
def written(broker, topic):
    """Return a function that tells (partition, key, value, headers) of all that is in the topic."""

    def read(name=topic, **config):
        found = []
        with KafkaConsumer(bootstrap_servers=broker.bootstrap, **config) as consumer:
            places = [TopicPartition(name, p) for p in consumer.partitions_for_topic(name)]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning()
            while any(consumer.position(place) < ends[place] for place in places):
                for records in consumer.poll(1000).values():
                    found += [(r.partition, r.key, r.value, r.headers) for r in records]
        return found

    return read


@pytest.fixture
def save(spark, broker):
    """Return a function that writes what a query selects."""
    register(spark)

    def write(query, **options):
        frame = spark.sql(query) if isinstance(query, str) else query
        given = {'kafka.bootstrap.servers': broker.bootstrap, 'kafka.max.block.ms': '2000'}
        frame.write.format('kafka-py').mode('append').options(**given, **options).save()

    return write


@pytest.fixture
def start(spark, broker, checkpoint):
    """Return a function that starts a query that writes a DataFrame."""
    register(spark)

    def write(frame, **options):
        given = {'kafka.bootstrap.servers': broker.bootstrap, 'checkpointLocation': checkpoint}
        writer = frame.writeStream.format('kafka-py').options(**given, **options)
        return writer.trigger(availableNow=True).start()

    return write


# ------------------------------------------------------------ without a session


def test_writers_and_what_they_tell_are_pickles_without_connections():
    for made in (sink.batch_writer(OPTIONS, VALUE), sink.stream_writer(OPTIONS, VALUE)):
        assert type(pickle.loads(pickle.dumps(made))) is type(made)
    assert pickle.loads(pickle.dumps(sink.StoredRows(5))).rows == 5
    assert not clients._producers


def test_writers_show_their_topic_and_no_secrets():
    assert repr(sink.batch_writer(OPTIONS, VALUE)) == '<BatchWriter to topic t>'
    schema = StructType().add('value', 'string').add('topic', 'string')
    shown = repr(sink.stream_writer(OPTIONS._replace(topic=None), schema))
    assert shown.endswith('Writer to the topics that rows name>')


def test_a_batch_size_that_was_given_stays(monkeypatch):
    found = []
    monkeypatch.setattr(
        sink, 'write_batches', lambda b, layout, outlet, t: found.append(outlet._config)
    )
    sink.batch_writer(OPTIONS, VALUE).write([])
    sink.batch_writer(OPTIONS._replace(config={'batch_size': 1}), VALUE).write([])
    assert [config['batch_size'] for config in found] == [262144, 1]


def test_a_stream_without_arrow_is_written_by_rows(monkeypatch):
    monkeypatch.setattr(sink, '_HAS_ARROW_STREAMS', False)
    with Cluster(topics={'t': 1}) as cluster:
        config = {'bootstrap_servers': cluster.bootstrap}
        writer = sink.stream_writer(SinkOptions('t', False, config), VALUE)
        assert writer.write(iter([('a',), ('b',)])).rows == 2
        clients.close_all()


# ------------------------------------------------------------ batch


def test_a_data_frame_is_written(save, written, topic):
    save(
        "select concat('k', id) key, cast(cast(id as string) as binary) value, 'x' other"
        ' from range(1000)',
        topic=topic,
    )
    found = written()
    assert sorted(int(value) for _, _, value, _ in found) == list(range(1000))
    assert all(key == b'k' + value and not headers for _, key, value, headers in found)


def test_every_column_is_taken_in_any_order(save, written, topic):
    save(
        "select array(named_struct('key', 'h', 'value', binary('x'))) headers, 1 partition,"
        " binary('k') key, '%s' topic, 'v' value" % topic
    )
    assert written() == [(1, b'k', b'v', [('h', b'x')])]


def test_null_values_are_tombstones(save, written, topic):
    save("select 'k' key, cast(null as string) value, 0 partition", topic=topic)
    assert written() == [(0, b'k', None, [])]


def test_there_is_nothing_left_to_do_when_all_tasks_have_ended():
    writer = sink.batch_writer(OPTIONS, VALUE)
    assert writer.commit([sink.StoredRows(2), sink.StoredRows(3)]) is None
    assert writer.abort([sink.StoredRows(2), None]) is None


@pytest.mark.parametrize(
    'query, options, text',
    [
        ("select 'v' value", {}, 'option topic'),
        ("select 'k' key", {'topic': 't'}, "'value'.*missing"),
        ('select 1 value', {'topic': 't'}, "'value' has the type int; it must be string or binary"),
        ("select 'v' value, 1L partition", {'topic': 't'}, "'partition' has the type bigint"),
        ("select 'v' value, map('h', binary('x')) headers", {'topic': 't'}, 'array<struct<key'),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_job(save, query, options, text):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=text):
        save(query, **options)


def test_a_null_topic_fails_the_task_with_the_place_of_the_row(save, topic, written):
    from pyspark.errors import PythonException

    query = "select 'v' value, if(id < 3, '%s', null) topic from range(0, 5, 1, 1)" % topic
    with pytest.raises(PythonException, match='KAFKA_NULL_TOPIC_IN_DATA.*row 3 of.*partition 0'):
        save(query)
    assert written() == []


def test_a_row_that_is_too_large_fails_the_task_with_its_place(save, topic, written):
    from pyspark.errors import PythonException

    query = "select repeat('x', if(id = 2, 2000000, 1)) value from range(0, 5, 1, 1)"
    with pytest.raises(PythonException, match='row 2 of.*partition 0.*topic %s.*2000034' % topic):
        save(query, topic=topic)
    assert written() == []


def test_a_data_frame_is_written_exactly_once(save, written, topic):
    save(
        'select cast(id as string) value from range(0, 100, 1, 2)', topic=topic, exactlyOnce='true'
    )
    found = written(isolation_level='read_committed')
    assert sorted(int(value) for _, _, value, _ in found) == list(range(100))


def test_a_job_that_fails_leaves_nothing_of_what_was_to_be_written_exactly_once(
    save, written, topic
):
    from pyspark.errors import PythonException

    query = "select repeat('x', if(id = 99, 2000000, 1)) value from range(0, 100, 1, 2)"
    with pytest.raises(PythonException, match=r'row 49 of.*kafka\.max\.request\.size'):
        save(query, topic=topic, exactlyOnce='true')
    assert written(isolation_level='read_committed') == []
    save("select 'v' value", topic=topic, exactlyOnce='true')  # no transaction stands before it
    found = written(isolation_level='read_committed')
    assert [value for _, _, value, _ in found] == [b'v']


# ------------------------------------------------------------ streams


def test_a_query_is_written(spark, start, written, topic, tmp_path):
    spark.range(100).selectExpr('cast(id as string) value').write.text(str(tmp_path / 'in'))
    query = start(spark.readStream.text(str(tmp_path / 'in')), topic=topic)
    assert query.awaitTermination(60)
    assert sorted(int(value) for _, _, value, _ in written()) == list(range(100))


def test_a_query_with_a_wrong_column_fails(spark, start, topic, tmp_path):
    from pyspark.errors import StreamingQueryException

    spark.range(1).selectExpr('cast(id as string) value').write.text(str(tmp_path / 'in'))
    frame = spark.readStream.text(str(tmp_path / 'in')).selectExpr('1 value')
    with pytest.raises(StreamingQueryException, match="'value' has the type int"):
        start(frame, topic=topic).awaitTermination(60)


def test_a_query_is_written_exactly_once(spark, start, written, topic, tmp_path):
    frame = spark.range(100).selectExpr('cast(id as string) value')
    for _ in range(2):
        frame.write.mode('append').text(str(tmp_path / 'in'))
        source = spark.readStream.text(str(tmp_path / 'in'))
        query = start(source, topic=topic, exactlyOnce='true', transactionalIdPrefix='p')
        assert query.awaitTermination(60)
    found = written(isolation_level='read_committed')
    assert sorted(int(value) for _, _, value, _ in found) == sorted(list(range(100)) * 2)


def test_outside_of_tasks_nothing_is_written_exactly_once():
    with pytest.raises(IllegalStateError, match='only be written by tasks of Spark'):
        sink.batch_writer(OPTIONS._replace(exactly_once=True), VALUE).write([])


def test_transactions_may_take_as_long_as_brokers_allow_unless_it_is_said():
    given = OPTIONS._replace(exactly_once=True)
    assert sink.stream_writer(given, VALUE)._config['transaction_timeout_ms'] == 900000
    given = given._replace(config={'transaction_timeout_ms': 5})
    assert sink.stream_writer(given, VALUE)._config['transaction_timeout_ms'] == 5
    assert 'transaction_timeout_ms' not in sink.stream_writer(OPTIONS, VALUE)._config
