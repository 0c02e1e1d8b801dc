"""A program of its own that reads by Spark, for tests to kill.

``python -m test.spark.fault_program`` takes one argument, JSON: master, bootstrap, topic,
checkpoint, folder, count. First it reads the topic in a batch by a source whose worker kills itself
in the middle of the first task it gets, and writes the offsets that came into ``folder/read.json``.
Then it streams the topic, and writes the offsets of each batch into ``folder/<batch>.<number of
this program>.json``, until it has seen ``count`` of
them. Owns nothing else; what has to come out of it is the tests'.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from kafka.spark.source import BatchReader, KafkaDataSource
from test.spark.conftest import environment, session

SECONDS = 150
#: Names the file that is there once a reader has killed itself.
MARKER = 'KAFKA_TEST_DIED'


class DyingReader(BatchReader):
    """Kills the process that reads, once: behind the first Arrow batch."""

    def read(self, partition):
        for batch in super().read(partition):
            yield batch
            try:
                os.close(os.open(os.environ[MARKER], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)


class DyingSource(KafkaDataSource):
    """As ``kafka-py``, by a DyingReader."""

    @classmethod
    def name(cls):
        return 'kafka-dying'

    def reader(self, schema):
        made = super().reader(schema)
        return DyingReader(made._options, made._columns)


def put(path, value):
    """Write a file that is there as a whole, or not."""
    part = path.with_suffix('.part-%d' % os.getpid())
    part.write_text(json.dumps(value))
    part.rename(path)


def read(spark, asked, folder):
    """Read the topic in a batch, whose worker dies once."""
    spark.dataSource.register(DyingSource)
    reader = spark.read.format('kafka-dying')
    reader = reader.option('kafka.bootstrap.servers', asked['bootstrap'])
    frame = reader.option('subscribe', asked['topic']).load()
    put(folder / 'read.json', [list(row) for row in frame.select('partition', 'offset').collect()])


def stream(spark, asked, folder):
    """Read the topic in a stream, until all of it was seen."""
    number = sum(1 for _ in folder.glob('began.*'))
    put(folder / ('began.%d' % number), None)

    def take(frame, batch):
        found = sorted(list(row) for row in frame.select('partition', 'offset').collect())
        time.sleep(0.3)  # so that a kill may come between reading and knowing
        put(folder / ('%d.%d.json' % (batch, number)), found)

    reader = spark.readStream.format('kafka-py').option('subscribe', asked['topic'])
    reader = reader.option('kafka.bootstrap.servers', asked['bootstrap'])
    reader = reader.options(startingOffsets='earliest', maxOffsetsPerTrigger='50')
    writer = reader.load().writeStream.foreachBatch(take)
    writer = writer.option('checkpointLocation', asked['checkpoint'])
    query = writer.trigger(processingTime='0 seconds').start()
    end = time.monotonic() + SECONDS
    while seen(folder) < asked['count'] and time.monotonic() < end:
        if query.awaitTermination(1):
            break
    query.stop()


def seen(folder):
    """Return how many offsets stand in the files of batches."""
    batches = {path.name.split('.')[0]: path for path in folder.glob('*.*.json')}
    return sum(len(json.loads(path.read_text())) for path in batches.values())


def main(argument):
    asked = json.loads(argument)
    folder = Path(asked['folder'])
    os.environ.update(environment(), **{MARKER: str(folder / 'died')})
    with tempfile.TemporaryDirectory() as own:
        with session(own, {'spark.master': asked['master']}) as spark:
            import kafka.spark

            kafka.spark.register(spark)
            if not (folder / 'read.json').exists():
                read(spark, asked, folder)
            stream(spark, asked, folder)


if __name__ == '__main__':
    main(sys.argv[1])
