"""A pipeline from events to a plot: Kafka, Spark's streams, Kafka.

    python -m examples.pipeline                              on a broker inside this process
    python -m examples.pipeline --bootstrap-servers H:9092   on the brokers that are there

Six cold rooms send their temperatures to one topic: out of order, some twice, some far too late.
Spark reads them as they arrive, drops what is doubled, takes the mean of each room for every five
minutes and writes it to a second topic, exactly once. That topic is read back into a table and a
plot. Needs Java 17, PySpark (extra ``spark``) and matplotlib (examples/requirements.txt).

Owns the course of it, the broker and what is said on the way. The events are in events.py, the
query in stream.py, the table and the plot in report.py.
"""

import argparse
import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator, List

from examples.pipeline import events, report
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition
from kafka.testing import Cluster

#: So many minutes arrive between two words about how far it is.
STEP_MINUTES = 20
SECONDS = 30
OLDEST_JAVA = 17


def main(arguments: List[str]) -> None:
    """Run all of it. SystemExit, with the reason, where it cannot."""
    options = parse(arguments)
    look_around(options)
    with contextlib.ExitStack() as stack:
        try:
            servers = stack.enter_context(brokers(options))
            prepare(servers, options.prefix)
        except KafkaError as error:
            sys.exit('The brokers at %s: %s' % (options.bootstrap_servers, error))
        spark = stack.enter_context(session(options))
        checkpoint = stack.enter_context(tempfile.TemporaryDirectory())
        run(spark, servers, options, checkpoint)
        show(servers, options)


def parse(arguments: List[str]) -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(
        prog='python -m examples.pipeline',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument('--bootstrap-servers', metavar='HOST:PORT', help='brokers that are there')
    where.add_argument(
        '--port', type=int, default=0, help='of the broker in this process (default: a free one)'
    )
    parser.add_argument(
        '--prefix',
        default='rooms',
        help='of the names of the two topics, which must be empty (default: %(default)s)',
    )
    parser.add_argument('--minutes', type=int, default=120, help='how long it is in the rooms')
    parser.add_argument('--seed', type=int, default=1, help='the same seed gives the same events')
    parser.add_argument('--plot', metavar='FILE', default='rooms.png', help='default: %(default)s')
    parser.add_argument('--no-plot', action='store_true', help='the table alone')
    options = parser.parse_args(arguments)
    if options.minutes < events.SHORTEST_MINUTES:
        parser.error('--minutes: at least %d' % events.SHORTEST_MINUTES)
    if not options.plot.lower().endswith(('.png', '.svg', '.pdf')):
        parser.error('--plot: a name that ends in .png, .svg or .pdf')
    if not 0 <= options.port < 65536:
        parser.error('--port: 0 to 65535')
    return options


def look_around(options: argparse.Namespace) -> None:
    """Tell what is missing before anything is started."""
    if importlib.util.find_spec('pyspark') is None:
        sys.exit("PySpark is missing: pip install '.[spark]'")
    home = os.environ.get('JAVA_HOME')
    java = shutil.which('java', path=home and os.path.join(home, 'bin'))
    if java is None or java_version(java) < OLDEST_JAVA:
        sys.exit(
            'Spark needs Java %d or later, on the PATH or at JAVA_HOME, and finds %s'
            ' (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)'
            % (OLDEST_JAVA, java or 'none')
        )
    if options.no_plot:
        return
    if importlib.util.find_spec('matplotlib') is None:
        sys.exit('matplotlib is missing: pip install -r examples/requirements.txt, or --no-plot')
    folder = os.path.dirname(os.path.abspath(options.plot))
    if not os.access(folder, os.W_OK):
        sys.exit('--plot: no file can be made in %s' % folder)


def java_version(java: str) -> int:
    """Return the first number of a Java's version, 0 where it tells none."""
    told = subprocess.run(
        [java, '-version'],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    found = re.search(rb'version "(\d+)', told.stdout)
    return int(found.group(1)) if found else 0


@contextlib.contextmanager
def brokers(options: argparse.Namespace) -> Iterator[str]:
    """Give the address of the brokers: those that are there, or one that ends with this program."""
    if options.bootstrap_servers:
        yield options.bootstrap_servers
        return
    cluster = Cluster(port=options.port, topics=dict.fromkeys(topics(options.prefix), 3))
    try:
        cluster.start()
    except OSError as error:
        sys.exit('--port %d: the broker could not listen there: %s' % (options.port, error))
    try:
        yield cluster.bootstrap
    finally:
        cluster.stop()


def topics(prefix: str) -> List[str]:
    """Return the names of the topics: of the readings, and of their means."""
    return ['%s-readings' % prefix, '%s-means' % prefix]


def prepare(servers: str, prefix: str) -> None:
    """Have the topics made where brokers make them by themselves. SystemExit if they are in use."""
    with KafkaProducer(bootstrap_servers=servers, max_block_ms=SECONDS * 1000) as producer:
        found = [
            TopicPartition(topic, partition)
            for topic in topics(prefix)
            for partition in producer.partitions_for(topic)
        ]
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        ends = consumer.end_offsets(found, timeout_ms=SECONDS * 1000)
    used = sorted({each.topic for each, end in ends.items() if end})
    if used:
        sys.exit('%s: there are records already; choose other names by --prefix' % ', '.join(used))


@contextlib.contextmanager
def session(options: argparse.Namespace) -> Iterator[Any]:
    """Give a session of Spark with two cores."""
    # Late: look_around() tells first whether there is PySpark.
    from pyspark.sql import SparkSession

    # Workers are to run in this Python, which has the package.
    os.environ.setdefault('PYSPARK_PYTHON', sys.executable)
    os.environ.setdefault('SPARK_LOCAL_IP', '127.0.0.1')
    say('Spark starts')
    spark = (
        SparkSession.builder.master('local[2]')
        .appName('cold rooms')
        # A program this short ends before the JVM's second compiler pays. Yours may run for longer.
        .config('spark.driver.extraJavaOptions', '-XX:TieredStopAtLevel=1')
        .config('spark.log.level', 'ERROR')
        .config('spark.sql.session.timeZone', 'UTC')
        .config('spark.sql.shuffle.partitions', 2)
        .config('spark.ui.enabled', False)
        .config('spark.ui.showConsoleProgress', False)
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def run(spark: Any, servers: str, options: argparse.Namespace, checkpoint: str) -> None:
    """Let the events arrive in Kafka while the query reads them, until all are counted."""
    # Late, as in session().
    from examples.pipeline import stream

    source, target = topics(options.prefix)
    found = events.make(options.minutes, options.seed)
    arrived = 0
    query = stream.start(spark, servers, source, target, checkpoint, events.ROOMS)
    try:
        with KafkaProducer(bootstrap_servers=servers, acks='all') as producer:
            for minute, those in enumerate(events.minute_by_minute(found, options.minutes), 1):
                send(producer, source, those)
                arrived += len(those)
                if minute % STEP_MINUTES == 0 or minute == options.minutes:
                    query.processAllAvailable()
                    say(progress(query, minute, arrived, len(found)))
            send(producer, source, [events.closing_event(options.minutes)])
        query.processAllAvailable()
    finally:
        query.stop()


def send(producer: KafkaProducer, topic: str, those: List[events.Event]) -> None:
    """Store what arrives in one minute, so that no partition is ahead of others by more."""
    for event in those:
        producer.send(topic, event.encode(), key=event.room.encode())
    producer.flush(SECONDS)


def progress(query: Any, minute: int, arrived: int, of: int) -> str:
    """Return how far it is, in one line."""
    last = query.lastProgress or {}
    mark = last.get('eventTime', {}).get('watermark', '')
    return '%s  %5d of %d events arrived; Spark: batch %s, windows before %s are over' % (
        events.instant(minute * 60)[11:16],
        arrived,
        of,
        last.get('batchId', '-'),
        mark[11:16] or '-',
    )


def show(servers: str, options: argparse.Namespace) -> None:
    """Print the table of what the results topic has, and draw the plot."""
    means = report.read_back(servers, topics(options.prefix)[1])
    print(report.table(means), flush=True)
    if not options.no_plot:
        report.plot(means, options.plot)
        say('plot: %s' % os.path.abspath(options.plot))


BEGAN = time.monotonic()


def say(text: str) -> None:
    """Print a line about the course of it, with the seconds so far."""
    print('[%4.1f s] %s' % (time.monotonic() - BEGAN, text), flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
