"""Queries in output mode update, which Spark refuses for sinks in Python, after takeover()."""

from __future__ import annotations

import pathlib
import pickle

import pytest

import kafka.spark
from kafka.errors import InvalidOptionError
from kafka.spark.takeover import take_over
from kafka.spark.update_mode import BatchWrite, check
from test.spark.elsewhere import stored
from test.spark.embedded import fill

SECONDS = 120


# ------------------------------------------------------------ without Spark


class DataStreamWriter:
    """Keeps what it is told, as PySpark's hands it on; `has` is what starts in the end."""

    def __init__(self):
        self.has = {}
        self._jwrite = self

    def format(self, source):
        self.has['format'] = source
        return self

    def outputMode(self, outputMode):
        self.has['mode'] = outputMode
        return self

    def option(self, key, value):
        self.has.setdefault('options', {})[key] = value
        return self

    def options(self, **options):
        for key, value in options.items():
            self.has.setdefault('options', {})[key] = value
        return self

    def foreach(self, f):
        self.has['format'] = f
        return self

    def foreachBatch(self, func):
        self.has['format'] = func
        return self

    def start(self, path=None, format=None, outputMode=None, partitionBy=None, queryName=None):
        if queryName is not None:
            self.has['name'] = queryName
        return self.has


@pytest.fixture
def writer(monkeypatch):
    cls = type('DataStreamWriter', (DataStreamWriter,), dict(vars(DataStreamWriter)))
    monkeypatch.setitem(take_over.__globals__, '_classes', lambda: [cls])
    take_over('kafka-py')
    return cls()


SERVERS = {'kafka.bootstrap.servers': 'h:1'}


def test_a_query_in_update_mode_is_written_by_foreach_batch(writer):
    writer.options(**SERVERS, checkpointLocation='c').option('topic', 't')
    has = writer.format('kafka').outputMode('Update').start(queryName='q')
    assert (has['name'], has['mode']) == ('q', 'Update')
    assert has['format']._options == {**SERVERS, 'topic': 't'}
    assert repr(has['format']) == '<BatchWrite by kafka-py>'


def test_so_is_one_of_which_start_is_told_all(writer):
    has = writer.start(format='KAFKA', outputMode='update', topic='t', **SERVERS)
    assert has['format']._options == {**SERVERS, 'topic': 't'}


@pytest.mark.parametrize('mode', ['append', 'complete', None])
def test_other_modes_stay_with_the_sink(writer, mode):
    has = writer.format('kafka').options(**SERVERS).start(outputMode=mode)
    assert has['format'] == 'kafka-py'


def test_other_formats_and_functions_of_the_program_are_left_alone(writer):
    assert writer.outputMode('update').format('console').start()['format'] == 'console'
    assert writer.format('kafka').foreachBatch(len).start()['format'] is len
    assert writer.format('kafka').foreach(len).start()['format'] is len


def test_a_wrong_option_is_told_before_the_query_starts(writer):
    writer.format('kafka').outputMode('update').options(**SERVERS, exactlyOnce='perhaps')
    with pytest.raises(InvalidOptionError, match='exactlyOnce must be true or false'):
        writer.start()
    assert writer.has['format'] == 'kafka-py'


def test_exactly_once_needs_to_know_the_query():
    check({**SERVERS, 'exactlyOnce': 'true'}, True)
    check(SERVERS, False)
    with pytest.raises(InvalidOptionError, match='outputMode.*update.* needs a classic session'):
        check({**SERVERS, 'exactlyOnce': 'true'}, False)


def test_what_writes_batches_travels_as_a_pickle():
    made = pickle.loads(pickle.dumps(BatchWrite('kafka-py', SERVERS)))
    assert made._options == SERVERS


# ------------------------------------------------------------ with Spark


@pytest.mark.spark
def test_counts_are_updated_exactly_once(
    spark, broker, topic, new_name, checkpoint, pyspark_as_it_was
):
    """A batch that is repeated because the driver died before it was noted is not written again."""
    kafka.spark.takeover(spark)
    target = new_name()
    broker.create_topic(target, 2)
    servers = {'kafka.bootstrap.servers': broker.bootstrap}

    def run():
        reader = spark.readStream.format('kafka').options(**servers, subscribe=topic)
        frame = reader.option('startingOffsets', 'earliest').load()
        counts = frame.groupBy('value').count()
        counts = counts.selectExpr('value AS key', 'CAST(count AS STRING) AS value')
        writer = counts.writeStream.format('kafka').outputMode('update').options(**servers)
        writer = writer.options(topic=target, exactlyOnce='true', checkpointLocation=checkpoint)
        assert writer.trigger(availableNow=True).start().awaitTermination(SECONDS)
        return stored(broker, target)

    fill(broker, topic, 0, [b'a', b'b', b'a'])
    assert run() == [(b'a', b'2'), (b'b', b'1')]
    for name in ('0', '.0.crc'):
        (pathlib.Path(checkpoint) / 'commits' / name).unlink()
    fill(broker, topic, 1, [b'a', b'c'])
    run()  # in PySpark 4.0 and 4.1 the batch that is repeated is all of a run
    assert run() == [(b'a', b'2'), (b'a', b'3'), (b'b', b'1'), (b'c', b'1')]
