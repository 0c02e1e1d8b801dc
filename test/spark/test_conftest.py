"""What tests with Spark count on: a session as it was made, and workers that know this tree."""

from __future__ import annotations

import sys

import pytest

import kafka

pytestmark = pytest.mark.spark


def test_workers_import_this_tree_with_this_python(spark):
    def tell(_):
        import sys  # in the worker

        import kafka

        return [(sys.executable, kafka.__file__)]

    told = spark.sparkContext.parallelize([1], 1).mapPartitions(tell).collect()
    assert told == [(sys.executable, kafka.__file__)]


@pytest.mark.parametrize('time', ['first', 'second'])
def test_a_test_finds_the_session_as_it_was_made(spark, checkpoint, time):
    assert spark.conf.get('spark.sql.shuffle.partitions') == '2'
    assert spark.conf.get('spark.a.word', None) is None
    assert spark.catalog.listTables() == []
    assert spark.streams.active == []
    spark.conf.set('spark.sql.shuffle.partitions', '3')
    spark.conf.set('spark.a.word', time)
    spark.range(3).createOrReplaceTempView('numbers')
    rates = spark.readStream.format('rate').load().writeStream.format('noop')
    rates.option('checkpointLocation', checkpoint).start()


def test_the_broker_has_the_topic(broker, topic):
    assert sorted(broker.metadata(topic).topics[topic]) == [0, 1]
