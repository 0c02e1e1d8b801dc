"""The listener that knows how far queries are behind, on an embedded broker."""

from __future__ import annotations

import time

import pytest

from test.spark.embedded import fill

pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

from pyspark.sql.datasource import DataSourceStreamReader

import kafka.spark
from kafka.spark.listener import LagListener
from kafka.structs import TopicPartition

pytestmark = pytest.mark.spark


def wait_for(condition, seconds=30.0):
    """PySpark tells listeners in a thread of its own."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def listen(spark):
    added = []

    def give(listener):
        spark.streams.addListener(listener)
        added.append(listener)
        return listener

    yield give
    for listener in added:
        spark.streams.removeListener(listener)


def test_a_query_is_behind_by_what_its_limit_left(spark, broker, topic, checkpoint, listen):
    kafka.spark.register(spark)
    fill(broker, topic, 0, [b'x'] * 30)
    reports = []
    listener = listen(LagListener(reports.append))
    reader = spark.readStream.format('kafka-py').option('subscribe', topic)
    reader = reader.option('kafka.bootstrap.servers', broker.bootstrap)
    reader = reader.options(startingOffsets='earliest', maxOffsetsPerTrigger='20')
    writer = reader.load().writeStream.format('noop').option('checkpointLocation', checkpoint)
    query = writer.queryName('behind').trigger(processingTime='0 seconds').start()
    query.processAllAvailable()
    wait_for(lambda: len(reports) >= 2)
    assert [lag.ends[TopicPartition(topic, 0)] for lag in reports[:2]] == [20, 30]
    assert [(lag.name, lag.query_id) for lag in reports[:1]] == [('behind', str(query.id))]
    knows = hasattr(DataSourceStreamReader, 'reportLatestOffset')  # from 4.2 on
    assert [lag.total for lag in reports[:2]] == ([10, 0] if knows else [0, 0])
    assert [bool(lag.behind) for lag in reports[:2]] == [knows, knows]
    assert [lag.ends[TopicPartition(topic, 0)] for lag in listener.lags()] == [30]
    query.stop()
    wait_for(lambda: not listener.lags())
    assert repr(listener) == '<LagListener of 0 queries>'
