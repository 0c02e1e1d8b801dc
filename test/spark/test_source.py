"""Batches that Spark reads of an embedded cluster, through the data source."""

from __future__ import annotations

import datetime
import pickle

import pytest

from kafka.errors import InvalidOptionError, UnsupportedVersionError
from kafka.spark.options import Limit
from kafka.spark.progress import DataLossError
from kafka.spark.ranges import TaskRange
from kafka.structs import TopicPartition
from kafka.testing import Cluster
from test.spark.embedded import fill, options_of

pyspark = pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

from pyspark.errors import AnalysisException, PySparkNotImplementedError  # noqa: E402  (behind the check)
from pyspark.sql import datasource, types  # noqa: E402

import kafka.spark  # noqa: E402
from kafka.spark import clients, source, stream  # noqa: E402
from kafka.spark.stream import LowLatencyReader  # noqa: E402

pytestmark = pytest.mark.spark
BEGAN = 1_700_000_000_000


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 3, 'empty': 2}) as made:
        for partition in range(3):
            values = [b'%d-%d' % (partition, n) for n in range(100)]
            fill(made, 't', partition, values, key=b'k', timestamp_ms=BEGAN)
        yield made


@pytest.fixture
def read(spark, cluster):
    """Return a function that reads topic t with some options."""
    kafka.spark.register(spark)

    def give(schema=None, **options):
        if 'assign' not in options:
            options.setdefault('subscribe', 't')
        reader = spark.read.format('kafka-py').option('kafka.bootstrap.servers', cluster.bootstrap)
        return (reader.schema(schema) if schema else reader).options(**options).load()

    return give


def offsets(frame):
    """{partition: offsets} of a DataFrame."""
    found = {}
    for row in frame.select('partition', 'offset').collect():
        found.setdefault(row.partition, []).append(row.offset)
    return {partition: sorted(some) for partition, some in found.items()}


def told(error):
    """The message of what Spark raised."""
    return str(error.value)


def test_a_topic_is_read_whole(read):
    frame = read()
    assert frame.columns == [
        'key', 'value', 'topic', 'partition', 'offset', 'timestamp', 'timestampType'
    ]  # fmt: skip
    rows = frame.orderBy('partition', 'offset').collect()
    assert [bytes(row.value) for row in rows] == [
        b'%d-%d' % (partition, n) for partition in range(3) for n in range(100)
    ]
    first = rows[0]
    assert (bytes(first.key), first.topic, first.timestampType) == (b'k', 't', 0)
    assert first.timestamp.timestamp() * 1000 == BEGAN


def test_offsets_bound_what_is_read(read):
    frame = read(
        startingOffsets='{"t":{"0":90,"1":100,"2":-2}}', endingOffsets='{"t":{"0":95,"1":-1,"2":2}}'
    )
    assert offsets(frame) == {0: [90, 91, 92, 93, 94], 2: [0, 1]}


def test_times_bound_what_is_read(read):
    frame = read(startingTimestamp=str(BEGAN + 98), endingTimestamp=str(BEGAN + 99))
    assert offsets(frame) == {0: [98], 1: [98], 2: [98]}


def test_an_empty_topic_has_no_rows(read):
    assert read(subscribe='empty').count() == 0


@pytest.mark.parametrize('partition', [None, datasource.InputPartition(None)])
def test_the_task_where_there_are_none_reads_nothing(partition, cluster):
    reader = source.BatchReader(options_of(cluster, 'empty'), ('value',))
    assert reader.partitions() == []
    assert list(reader.read(partition)) == []


EARLIEST = Limit('earliest')
SOME = Limit('offsets', {TopicPartition('cut', 0): -2})
FROM_0 = Limit('offsets', {TopicPartition('cut', 0): 0})


@pytest.mark.parametrize('start, is_read', [(EARLIEST, True), (SOME, True), (FROM_0, False)])
def test_earliest_is_where_a_log_begins_when_it_is_read(start, is_read):
    """Retention may come between the plan and the task; an offset that was named is lost then."""
    with Cluster(topics={'cut': 1}) as made:
        fill(made, 'cut', 0, [b'%d' % n for n in range(6)])
        reader = source.BatchReader(options_of(made, 'cut', start=start), ('offset',))
        (task,) = reader.partitions()
        made.state.topics['cut'].partitions[0].log.delete_before(4)
        try:
            if is_read:
                assert [each for b in reader.read(task) for each in b[0].to_pylist()] == [4, 5]
            else:
                with pytest.raises(DataLossError):
                    list(reader.read(task))
        finally:
            clients.close_all()


def test_large_ranges_are_cut_into_tasks(read):
    frame = read(minPartitions='9')
    assert frame.rdd.getNumPartitions() == 9
    assert offsets(frame) == {partition: [*range(100)] for partition in range(3)}
    assert read(maxRecordsPerPartition='25').rdd.getNumPartitions() == 12


def test_a_schema_chooses_columns(read):
    frame = read(schema='offset bigint, value binary', assign='{"t":[1]}')
    assert frame.columns == ['offset', 'value']
    assert bytes(frame.where('offset = 7').first().value) == b'1-7'


def test_headers_come_when_they_are_asked_for(read, cluster):
    fill(cluster, 'empty', 0, [b'x'], headers=[('a', b'1'), ('a', b'2')])
    row = read(subscribe='empty', includeHeaders='true').first()
    assert [(each.key, bytes(each.value)) for each in row.headers] == [('a', b'1'), ('a', b'2')]


@pytest.mark.parametrize(
    'options, expected',
    [
        ({'subscribe': 'missing'}, 'topic missing does not exist'),
        ({'startingOffsets': 'latset'}, 'startingOffsets'),
        ({'startingOffsets': '{"t":{"0":1}}'}, 'missing t-1, t-2'),
        ({'startingOffsets': '{"t":{"0":9,"1":0,"2":0}}',
          'endingOffsets': '{"t":{"0":5,"1":0,"2":0}}'}, 'topic t partition 0 they are 9 and 5'),
        ({'startingOffsets': '{"t":{"0":999,"1":0,"2":0}}'}, 'from offset 999 to 100'),
        ({'assign': '{"t":[0]}', 'subscribe': 't'}, 'assign'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_a_job_starts(read, options, expected):
    with pytest.raises(Exception, match='.') as error:  # Spark's, with ours in its text
        read(**options).count()
    assert expected in told(error)


@pytest.mark.parametrize('read', ['read', 'readStream'])
def test_a_wrong_option_is_refused_by_load_as_by_the_jvm_connector(spark, read):
    """A stream would be started, and fail in the background."""
    kafka.spark.register(spark)
    given = {'kafka.bootstrap.servers': 'h:1', 'subscribe': 't', 'minPartitions': 'x'}
    with pytest.raises(AnalysisException, match="minPartitions must be a whole number .* not 'x'"):
        getattr(spark, read).format('kafka-py').options(**given).load()


def test_sql_gives_options_by_views_and_by_with_and_not_by_tables(read, spark, cluster):
    options = "'kafka.bootstrap.servers' %s '%s', subscribe %s 't'"
    given, assigned = (options % (sign, cluster.bootstrap, sign) for sign in ('', '='))
    spark.sql('CREATE OR REPLACE TEMPORARY VIEW topic USING `kafka-py` OPTIONS (%s)' % given)
    assert spark.sql('SELECT count(*) FROM topic').first()[0] == 300
    spark.sql('CREATE TABLE kept USING `kafka-py` OPTIONS (%s)' % given)
    try:
        of_table = spark.sql('SELECT count(*) FROM kept WITH (%s)' % assigned)
        assert of_table.first()[0] == 300
        with pytest.raises(Exception, match='CREATE TEMPORARY VIEW') as error:
            spark.sql('SELECT * FROM kept').collect()
        assert 'no options were given' in told(error)
    finally:
        spark.sql('DROP TABLE kept')


def test_no_secret_is_in_a_plan(read):
    frame = read(**{'kafka.sasl.password': 'canary-7', 'kafka.sasl.username': 'u'})
    shown = frame._jdf.queryExecution().toString()
    assert 'canary-7' not in shown


def test_a_program_for_the_jvm_connector_runs(spark, cluster, pyspark_as_it_was, checkpoint):
    """It reads, streams and writes, and may name the mode that Spark has by default."""
    assert kafka.spark.takeover(spark)
    servers = {'kafka.bootstrap.servers': cluster.bootstrap}
    given = {**servers, 'subscribe': 't', 'startingOffsets': 'earliest'}
    frame = spark.read.format('kafka').options(**given).load()
    assert frame.count() == 300
    rows = frame.select('value')
    for writer in (rows.write, rows.write.mode('errorifexists')):
        writer.format('kafka').options(**servers, topic='empty').save()
    stream = spark.readStream.format('kafka').options(**given).load().select('value')
    writer = stream.writeStream.format('kafka')
    writer = writer.options(**servers, topic='empty', checkpointLocation=checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    assert spark.read.format('kafka').options(**servers, subscribe='empty').load().count() == 900


# ---------------------------------------------------------------- filters

has_filters = pytest.mark.skipif(
    not hasattr(source.DataSourceReader, 'pushFilters'), reason='PySpark before 4.1 has no filters'
)
MOMENT = datetime.datetime.fromtimestamp(BEGAN / 1000, datetime.timezone.utc)
#: In SQL: from 90 ms on.
YOUNG = "timestamp'%s UTC'" % (MOMENT + datetime.timedelta(milliseconds=90)).strftime(
    '%Y-%m-%d %H:%M:%S.%f'
)

#: A condition, and from which offset of each partition records are fetched for it.
CONDITIONS = [
    ('partition = 1', {1: 0}),
    ('partition in (0, 2) and partition <> 0', {2: 0}),
    ('partition >= 1 and offset < 3', {1: 0, 2: 0}),
    ('offset = 42', {0: 42, 1: 42, 2: 42}),
    ('offset between 10 and 12 and partition = 0', {0: 10}),
    ('offset in (10, 13) and partition = 0', {0: 10}),
    ("topic = 't' and offset >= 98 and partition < 1", {0: 98}),
    ('timestamp >= %s and partition = 2' % YOUNG, {2: 90}),
    ('timestamp > %s and partition = 2' % YOUNG, {2: 91}),
    ('timestamp = %s and partition = 2' % YOUNG, {2: 90}),
    ("timestamp > timestamp'2100-01-01'", {}),
    ('timestamp <= %s and partition = 2' % YOUNG, {2: 0}),
    ("topic = 'x'", {}),
    ("topic like 'x%'", {}),
    ('partition = 7', {}),
    ('partition is null', {}),
    ('offset < -1', {}),
    ('offset > 9223372036854775806', {}),
    ('partition = 0 or offset = 5', {0: 0, 1: 0, 2: 0}),
    ("value = X'312D37' and partition = 1", {1: 0}),  # 1-7
]


def fetched(cluster):
    """The partitions that brokers were asked for since the log was forgotten, and from where."""
    found = {}
    for each in cluster.requests:
        if each.api.name == 'FETCH':
            for topic in each.request.topics:
                for one in topic.partitions:
                    found.setdefault(one.partition, []).append(one.fetch_offset)
    return {partition: min(some) for partition, some in found.items()}


def read_rows(frame):
    return sorted((row.partition, row.offset, bytes(row.value)) for row in frame.collect())


@pytest.fixture
def filtering(spark):
    spark.conf.set('spark.sql.python.filterPushdown.enabled', 'true')


@has_filters
def test_filters_narrow_what_is_read_and_change_no_row(read, cluster, filtering):
    whole = read().cache()
    expected, found = {}, {}
    for condition, starts in CONDITIONS:
        expected[condition] = read_rows(whole.where(condition)), starts
        cluster.forget_requests()
        rows = read_rows(read(pushdown='true').where(condition))
        found[condition] = rows, fetched(cluster)
    whole.unpersist()
    assert found == expected


@has_filters
def test_a_filter_that_is_answered_is_not_applied_again(read, filtering):
    frame = read(pushdown='true').where('partition = 1 and offset < 5 and timestamp > %s' % YOUNG)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert 'offset' not in plan.split('Filter')[1].split('\n')[0], plan
    assert 'timestamp' in plan.split('Filter')[1].split('\n')[0], plan


@has_filters
def test_without_the_conf_of_spark_pushdown_is_refused(read):
    with pytest.raises(Exception, match='.') as error:
        read(pushdown='true').where('partition = 1').count()
    assert 'spark.sql.python.filterPushdown.enabled' in told(error)


@pytest.fixture
def narrowed(cluster):
    """Return a function: the tasks that are left by filters, as (partition, start, stop)."""

    def give(*filters, **more):
        reader = source.NarrowedReader(options_of(cluster, 't', **more), ('value',))
        rest = reader.pushFilters(list(filters))
        tasks = pickle.loads(pickle.dumps(reader)).partitions()
        return [tuple(each.value[1:4]) for each in tasks], rest

    return give


@has_filters
def test_tasks_have_what_is_left_and_no_more(narrowed):
    partition, low, high, young = (
        datasource.In(('partition',), (1, 2)),
        datasource.GreaterThan(('offset',), 60),
        datasource.Not(datasource.GreaterThan(('offset',), 94)),
        datasource.GreaterThanOrEqual(('timestamp',), MOMENT + datetime.timedelta(milliseconds=90)),
    )
    assert narrowed(partition, high) == ([(1, 0, 95), (2, 0, 95)], [])
    assert narrowed(partition, low, high) == ([(1, 61, 95), (2, 61, 95)], [])
    assert narrowed(partition, low, young, high) == ([(1, 90, 95), (2, 90, 95)], [young])
    assert narrowed(high, datasource.GreaterThan(('offset',), 94)) == ([], [])


@has_filters
def test_limits_name_all_partitions_whatever_filters_leave(narrowed):
    start = Limit('offsets', {TopicPartition('t', n): 10 * n for n in range(3)})
    asked = datasource.LessThan(('partition',), 2)
    assert narrowed(asked, start=start) == ([(0, 0, 100), (1, 10, 100)], [])


@has_filters
def test_what_is_left_is_cut_into_tasks(narrowed):
    asked = datasource.LessThan(('offset',), 10)
    tasks, _ = narrowed(asked, datasource.EqualTo(('partition',), 1), max_records_per_partition=5)
    assert tasks == [(1, 0, 5), (1, 5, 10)]


class ScriptedLookups:
    """Answers where logs end, and then where a time begins."""

    def __init__(self, latest, starts):
        self._latest, self._starts = latest, starts

    def latest(self, partitions):
        return dict.fromkeys(partitions, self._latest)

    def starts(self, limit, partitions):
        assert (limit.kind, limit.timestamp, limit.is_lenient) == ('timestamp', BEGAN, True)
        if self._starts is None:
            raise UnsupportedVersionError('no times')
        return dict.fromkeys(partitions, self._starts)


@pytest.mark.parametrize(
    'latest, starts, left',
    [
        (50, 20, [(20, 60)]),
        (50, 5, [(10, 60)]),
        (50, 55, [(50, 60)]),  # what came while it was asked may be young
        (70, 70, []),
        (50, None, [(10, 60)]),  # a broker that knows no times
    ],
)
def test_a_time_moves_the_start_up_to_the_end_that_was_there_before(latest, starts, left):
    ranges = [TaskRange('t', 0, 10, 60)]
    found = source._young(ranges, BEGAN, ScriptedLookups(latest, starts))
    assert [(each.start, each.stop) for each in found] == left


def of_options(**options):
    """A source, as PySpark makes it."""
    given = {'kafka.bootstrap.servers': '127.0.0.1:1', 'subscribe': 't', **options}
    return source.KafkaDataSource({name.lower(): value for name, value in given.items()})


def schema_of(made):
    return types._parse_datatype_string(made.schema())


def test_pushdown_is_refused_where_there_are_no_filters(spark, monkeypatch):
    monkeypatch.setattr(source, 'DataSourceReader', object)
    made = of_options(pushdown='true')
    with pytest.raises(InvalidOptionError, match=r'pushdown=true needs PySpark 4\.1 or later'):
        made.reader(schema_of(made))


def test_without_the_option_a_reader_takes_no_filters(spark):
    made = of_options()
    assert 'pushFilters' not in vars(type(made.reader(schema_of(made))))


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize('low_latency', ['true', 'false'])
def test_pushdown_is_refused_for_streams(spark, low_latency):
    made = of_options(pushdown='true', lowLatency=low_latency)
    for method in (made.streamReader, made.simpleStreamReader):
        with pytest.raises(InvalidOptionError, match='pushdown=true is for batch queries'):
            method(schema_of(made))


def test_low_latency_makes_pyspark_ask_for_the_simple_reader(spark):
    made = of_options(lowLatency='true', maxOffsetsPerTrigger='1000')
    with pytest.raises(PySparkNotImplementedError):
        made.streamReader(schema_of(made))
    assert isinstance(made.simpleStreamReader(schema_of(made)), LowLatencyReader)
    made = of_options(lowLatency='true', maxOffsetsPerTrigger='0')
    with pytest.raises(InvalidOptionError, match='maxOffsetsPerTrigger'):
        made.streamReader(schema_of(made))


@pytest.mark.parametrize('takes_limits', [True, False])
def test_low_latency_needs_a_limit_where_a_run_is_one_batch(spark, monkeypatch, takes_limits):
    """PySpark 4.0 and 4.1 would end it after 10,000 offsets, and nobody had said so."""
    monkeypatch.setattr(stream, 'TAKES_LIMITS', takes_limits)
    made = of_options(lowLatency='true')
    if takes_limits:
        assert isinstance(made.simpleStreamReader(schema_of(made)), LowLatencyReader)
    else:
        with pytest.raises(InvalidOptionError, match='lowLatency=true needs maxOffsetsPerTrigger'):
            made.simpleStreamReader(schema_of(made))


def test_a_query_reads_with_low_latency(spark, cluster, new_name, checkpoint):
    kafka.spark.register(spark)
    name = new_name()
    reader = spark.readStream.format('kafka-py').options(
        **{'kafka.bootstrap.servers': cluster.bootstrap, 'subscribe': 't'},
        startingOffsets='earliest',
        lowLatency='true',
        maxOffsetsPerTrigger='1000',
    )
    writer = reader.load().writeStream.format('memory').queryName(name)
    query = writer.option('checkpointLocation', checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert offsets(spark.table(name)) == {partition: [*range(100)] for partition in range(3)}
