"""A program that writes DataFrames exactly once on a cluster that speculates.

Run as ``python -m test.spark.speculating`` with its options as JSON: bootstrap, topic, folder, and
points of held_writes.py, at each of which one attempt of a task is overtaken by another: what it
leaves is in ``<folder>/<point>``. Writes the numbers from 0 on, 20 for each point. Spark never runs
two attempts of a task on one host, so that local-cluster does not do: here the two workers have the
two names of this host. They, their master and the driver are one process. Knows no tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict

HOSTS = ('127.0.0.1', 'localhost')
SPECULATION = {
    'spark.speculation': 'true',
    'spark.speculation.interval': '100ms',
    'spark.speculation.quantile': '0.5',
    'spark.speculation.multiplier': '1.1',
    'spark.python.task.killTimeout': '60s',  # the attempt that is killed goes on as long as it will
    'spark.executor.cores': '1',
    'spark.executor.memory': '512m',
    'spark.executor.extraJavaOptions': '-XX:TieredStopAtLevel=1',
    'spark.master.rest.enabled': 'false',
}


def cluster(context: Any, conf: Any, folder: str) -> str:
    """Start a master, and a worker for each name, in the JVM; return the master's address."""
    java, deploy = context._jvm, context._jvm.org.apache.spark.deploy
    own = java.org.apache.spark.SparkConf()
    for name, value in conf.getAll():
        own.set(name, value)
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, own)._1()
    urls = context._gateway.new_array(java.java.lang.String, 1)
    urls[0] = master.address().toSparkURL()
    none = java.scala.Option.empty()
    for host in HOSTS:
        place = '%s/%s' % (folder, host)
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 512, urls, place, none, own, none
        )
    return str(urls[0])


def main(options: Dict[str, Any]) -> None:
    """Write, and wait each time until the attempt that lost is over."""
    from pyspark import SparkConf, SparkContext  # late: who starts it may have no PySpark
    from pyspark.sql import SparkSession

    from test.spark.conftest import SETTINGS, environment
    from test.spark.held_writes import HeldSource, wait_for

    os.environ.update(environment())
    folder = options['folder']
    conf = SparkConf().setAppName('speculating')
    own = {'spark.sql.warehouse.dir': folder, 'spark.local.dir': folder}
    for name, value in {**SETTINGS, **own, **SPECULATION}.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)
    conf.setMaster(cluster(SparkContext, conf, folder))
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < len(HOSTS) + 1:
        time.sleep(0.1)  # whoever started this waits for so long, and no longer
    spark.dataSource.register(HeldSource)
    for number, point in enumerate(options['points']):
        place = Path(folder) / point
        place.mkdir()
        query = 'select cast(id + %d as string) value from range(0, 20, 1, 2)' % (number * 20)
        writer = spark.sql(query).write.format('kafka-held').mode('append')
        writer = writer.option('kafka.bootstrap.servers', options['bootstrap'])
        writer = writer.options(exactlyOnce='true', transactionalIdPrefix=str(place / point))
        writer.option('topic', options['topic']).save()
        wait_for(place / 'over')
    spark.stop()


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
