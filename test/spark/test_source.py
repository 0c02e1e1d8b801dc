"""Batches that Spark reads of an embedded cluster, through the data source."""

from __future__ import annotations

import pytest

from kafka.testing import Cluster
from test.spark.embedded import fill, options_of

pyspark = pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

from pyspark.sql import datasource  # noqa: E402  (behind the check)

import kafka.spark  # noqa: E402
from kafka.spark import source  # noqa: E402

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
        ({'subscribe': 'missing'}, 'no topic missing'),
        ({'startingOffsets': 'latset'}, 'startingOffsets'),
        ({'startingOffsets': '{"t":{"0":1}}'}, 'leaves out t-1, t-2'),
        ({'startingOffsets': '{"t":{"0":9,"1":0,"2":0}}',
          'endingOffsets': '{"t":{"0":5,"1":0,"2":0}}'}, 'topic t partition 0 they are 9 and 5'),
        ({'startingOffsets': '{"t":{"0":999,"1":0,"2":0}}'}, 'from offset 999 up to 100'),
        ({'assign': '{"t":[0]}', 'subscribe': 't'}, 'assign'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_a_job_starts(read, options, expected):
    with pytest.raises(Exception, match='.') as error:  # Spark's, with ours in its text
        read(**options).count()
    assert expected in told(error)


def test_no_secret_is_in_a_plan(read):
    frame = read(**{'kafka.sasl.password': 'canary-7', 'kafka.sasl.username': 'u'})
    shown = frame._jdf.queryExecution().toString()
    assert 'canary-7' not in shown


def test_a_program_for_the_jvm_connector_runs(spark, cluster, monkeypatch):
    from pyspark.sql import readwriter

    for name in ('DataFrameReader', 'DataFrameWriter'):
        for method in ('format', 'mode'):
            cls = getattr(readwriter, name)
            if hasattr(cls, method):
                monkeypatch.setattr(cls, method, getattr(cls, method))
    assert kafka.spark.takeover(spark)
    servers = {'kafka.bootstrap.servers': cluster.bootstrap}
    assert spark.read.format('kafka').options(**servers, subscribe='t').load().count() == 300
