"""A program that copies a topic by a streaming query exactly once, for tests that kill it.

Run as ``python -m test.spark.copying`` with its options as JSON: bootstrap, source, target,
checkpoint, folder, per_batch, master, trigger, settings. Knows no tests. With ``shuffle`` rows are
dealt out at random: the same batch, when it is run again, has other rows in its tasks. With
``deadly``, pairs of a batch and a partition of Spark, those tasks kill their executors.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict


def main(options: Dict[str, Any]) -> None:
    """Copy until the end, if there is one."""
    from pyspark.sql import SparkSession, functions  # late: who starts it may have no PySpark

    from kafka.spark import register
    from kafka.spark.source import KafkaDataSource
    from test.spark.conftest import SETTINGS, environment
    from test.spark.deadly_writes import DEADLY, DeadlySource

    sink = DeadlySource if 'deadly' in options else KafkaDataSource
    os.environ.update(environment())
    os.environ[DEADLY] = json.dumps([options['folder'], options.get('deadly')])
    builder = SparkSession.builder.master(options['master']).appName('copying')
    own = {'spark.sql.warehouse.dir': options['folder'], 'spark.local.dir': options['folder']}
    for name, value in {**SETTINGS, **own, **options.get('settings', {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    spark.dataSource.register(sink)
    brokers = {'kafka.bootstrap.servers': options['bootstrap']}
    frame = (
        spark.readStream.format('kafka-py')
        .options(**brokers)
        .option('subscribe', options['source'])
        .option('startingOffsets', 'earliest')
        .option('maxOffsetsPerTrigger', str(options['per_batch']))
        .load()
        .select('key', 'value')
    )
    if options.get('shuffle'):
        frame = frame.repartition(3, functions.rand())
    query = (
        frame.writeStream.format(sink.name())
        .options(**brokers)
        .option('topic', options['target'])
        .option('exactlyOnce', 'true')
        .option('checkpointLocation', options['checkpoint'])
        .trigger(**options['trigger'])
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
