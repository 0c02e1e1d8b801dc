"""
PySpark: kafka-py beside Spark's own Kafka connector, in one session, on one real broker.

``.venv-spark/bin/python benchmarks/spark.py`` starts a broker (Apache Kafka 4.4.0; another by
``--release``) and one session of ``local[2]`` that has both connectors, and measures in rounds: in
every round each row is done by each connector in turn, so that a slow moment of the machine hits
both. Java 17 is needed, and Maven the first time, for the jars of the JVM connector.

Records have a key of 16 bytes and a value of 100 or 1000 (``--sizes``), JSON-like text; topics have
six partitions, written by the JVM connector with what it has by default but ``--codecs``. All rows
are done for each size and codec:

* *read*: all columns of a topic to the sink noop. *count*: ``count()``.
* *write*: the same records from a generator to a new topic; *generator* is what the generator alone
  takes to noop, as a part of the time that the JVM connector's *write* took; *to Python* is what it
  takes to a writer that counts the rows in Python and does nothing with them: what is left to any
  writer in Python.
* *batch*: a stream, to noop, of a topic that gets 1000 records a second: the median of
  triggerExecution of the micro-batches with records behind the first few. *batch, low latency*: the
  same with the option lowLatency of kafka-py, beside the same of the JVM connector.

Read, count and write tell rows per second, and the user and system time that all of Spark's
processes, the JVM and the workers of Python, take for a million rows. Ratios are how many times
faster kafka-py is, or how many times more time the JVM connector takes: medians of the ratios of
each round; least and largest stand behind. Before anything is measured both have read the same
rows, as a sum of hashes tells, and both have written what the generator has; later the rows are
counted each time.

``--memory GB``: instead, the largest peak of memory (VmHWM) among the workers of Python that read a
topic of so many GB, of records of 1000 bytes, to noop by kafka-py.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import ROOT, started

RELEASE = '4.4.0'
OURS, JVM = 'kafka-py', 'kafka'
READS, WRITE, BATCH, LOW = ('read', 'count'), 'write', 'batch', 'low latency'
GENERATOR, TO_PYTHON = 'generator', 'to Python'
FLOORS = (GENERATOR, TO_PYTHON)
ROWS = (*READS, WRITE, BATCH, LOW)
PARTITIONS = 6
MEBIBYTE = 1 << 20
#: Micro-batches that begin a query are not counted.
FIRST_BATCHES = 5
RATE = 1000
SECONDS = 120
SETTINGS = {
    'spark.driver.bindAddress': '127.0.0.1',
    'spark.driver.host': '127.0.0.1',
    'spark.driver.memory': '2g',
    'spark.log.level': 'FATAL',  # a query that is stopped tells of tasks that it ends
    'spark.sql.session.timeZone': 'UTC',
    'spark.sql.shuffle.partitions': '2',
    'spark.ui.enabled': 'false',
    'spark.ui.showConsoleProgress': 'false',
}


def text_of(count: int) -> bytes:
    """Return so many small JSON documents, each another one."""
    form = '{"id": %d, "user": "u%05d", "amount": %d.%02d, "city": "%s", "state": "open"}'
    cities = ('Amsterdam', 'Bratislava', 'Copenhagen', 'Edinburgh', 'Helsinki', 'Ljubljana')
    made = (
        (n * 99991, n * 7919 % 100000, n * 31 % 9973, n % 100, cities[n % 6]) for n in range(count)
    )
    return ''.join(form % each for each in made).encode('ascii')


#: Values are cut out of it; a part of it shrinks like other JSON.
TEXT = text_of(800)


class Figure(NamedTuple):
    """What one connector did in one round: per second, or milliseconds, and seconds of CPU."""

    speed: float
    cpu_seconds: float


Figures = Dict[Tuple[str, int, str], Dict[str, List[Figure]]]

# ---------------------------------------------------------------- processes


def descendants(root: int) -> List[int]:
    """Return a process and all that descend from it. Linux."""
    children: Dict[int, List[int]] = {}
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / 'stat').read_text().rpartition(')')[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(root: int) -> float:
    """Return the user and system time of such processes, and of those that they have outlived."""
    ticks = 0
    for each in descendants(root):
        with contextlib.suppress(OSError):
            fields = Path('/proc/%d/stat' % each).read_text().rpartition(')')[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf('SC_CLK_TCK')


def worker_peaks(root: int) -> Dict[int, int]:
    """Return by id the most bytes in memory of each worker of Python below a process."""
    found = {}
    for each in descendants(root):
        with contextlib.suppress(OSError):
            home = Path('/proc/%d' % each)
            if b'pyspark' in (home / 'cmdline').read_bytes() and each != root:
                for line in (home / 'status').read_text().splitlines():
                    if line.startswith('VmHWM:'):
                        found[each] = int(line.split()[1]) * 1024
    return found


# ---------------------------------------------------------------- jobs of Spark


class Bench:
    """A session with both connectors, beside one broker."""

    def __init__(self, spark: Any, cluster: Any) -> None:
        self.spark = spark
        self.cluster = cluster
        self.process_id = spark.sparkContext._gateway.proc.pid
        self._made = 0

    def generator(self, count: int, size: int) -> Any:
        """Return records of one size, each another one."""
        place = 'CAST(1 + id * 7919 %% %d AS int)' % (len(TEXT) - size)
        text = "substring(X'%s', %s, %d)" % (TEXT.hex(), place, size - 16)
        value = "concat(%s, CAST(lpad(id, 16, '.') AS binary)) AS value" % text
        key = "CAST(lpad(id, 16, '0') AS binary) AS key"
        rows = self.spark.range(0, count, 1, PARTITIONS)
        return rows.selectExpr(key, value)

    def new_topic(self) -> str:
        """Make a topic and return its name."""
        self._made += 1
        topic = 'topic-%d' % self._made
        self.cluster.create_topic(topic, PARTITIONS)
        return topic

    def delete_topic(self, topic: str) -> None:
        """Make room on the disk."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({'bootstrap.servers': self.cluster.bootstrap})
        admin.delete_topics([topic])[topic].result(SECONDS)

    def read(self, connector: str, topic: str) -> Any:
        """Return all rows of a topic."""
        reader = self.spark.read.format(connector).option('subscribe', topic)
        return reader.option('kafka.bootstrap.servers', self.cluster.bootstrap).load()

    def write(self, connector: str, rows: Any, topic: str, codec: str) -> None:
        """Write rows to a topic."""
        writer = rows.write.format(connector).mode('append').option('topic', topic)
        writer = writer.option('kafka.bootstrap.servers', self.cluster.bootstrap)
        writer.option('kafka.compression.type', codec).save()

    def timed(self, count: int, job: Callable[[], None]) -> Figure:
        """Run a job of so many rows."""
        before, cpu = time.perf_counter(), cpu_seconds(self.process_id)
        job()
        seconds = time.perf_counter() - before
        return Figure(count / seconds, cpu_seconds(self.process_id) - cpu)

    def noop(self, rows: Any) -> None:
        """Have rows made, and drop them."""
        rows.write.format('noop').mode('overwrite').save()

    def once(
        self, row: str, connector: str, size: int, codec: str, topic: str, count: int
    ) -> Figure:
        """Do a row once."""
        if row == 'read':
            return self.timed(count, lambda: self.noop(self.read(connector, topic)))
        if row == 'count':
            return self.timed(count, lambda: expect(count, self.read(connector, topic).count()))
        if row == GENERATOR:
            return self.timed(count, lambda: self.noop(self.generator(count, size)))
        if row == TO_PYTHON:
            writer = self.generator(count, size).write.format('counter').mode('append')
            return self.timed(count, writer.save)
        made = self.new_topic()
        rows = self.generator(count, size)
        found = self.timed(count, lambda: self.write(connector, rows, made, codec))
        expect(count, self.length(made))
        self.delete_topic(made)
        return found

    def length(self, topic: str) -> int:
        """Return how many records a topic has."""
        from kafka.consumer.bounded.reader import BoundedReader

        with BoundedReader(topic, bootstrap_servers=self.cluster.bootstrap) as reader:
            return sum(each.length for each in reader.ranges())

    def digest(self, rows: Any) -> Tuple[int, int]:
        """Return how many rows there are, and a sum of their hashes."""
        columns = ', '.join(rows.columns)
        (found,) = rows.selectExpr(
            'count(*) AS n', 'sum(CAST(xxhash64(%s) AS decimal(38, 0))) AS h' % columns
        ).collect()
        return found.n, int(found.h)

    def check(self, topic: str, size: int, codec: str, count: int) -> None:
        """Let both read and write the same; SystemExit if they do not."""
        expect(self.digest(self.read(JVM, topic)), self.digest(self.read(OURS, topic)))
        wanted = self.digest(self.generator(count, size))
        for connector in (JVM, OURS):
            made = self.new_topic()
            self.write(connector, self.generator(count, size), made, codec)
            rows = self.read(JVM, made).select('key', 'value')
            expect(wanted, self.digest(rows))
            self.delete_topic(made)

    # ------------------------------------------------------------ streams

    def batches(self, connector: str, low_latency: bool, topic: str, count: int) -> Figure:
        """Return the median of so many micro-batches in milliseconds."""
        reader = self.spark.readStream.format(connector).option('subscribe', topic)
        reader = reader.option('kafka.bootstrap.servers', self.cluster.bootstrap)
        if low_latency and connector == OURS:
            reader = reader.option('lowLatency', 'true')
        wanted, found = FIRST_BATCHES + count, {}
        cpu = cpu_seconds(self.process_id)
        with tempfile.TemporaryDirectory() as folder:
            writer = reader.load().writeStream.format('noop').option('checkpointLocation', folder)
            query = writer.start()
            end = time.monotonic() + SECONDS
            while len(found) < wanted and time.monotonic() < end:
                time.sleep(0.5)
                if query.exception() is not None:
                    raise SystemExit(str(query.exception()))
                for each in query.recentProgress:
                    if each['numInputRows']:
                        found[each['batchId']] = each['durationMs']['triggerExecution']
            query.stop()
        if len(found) < wanted:
            raise SystemExit('%d micro-batches of %s in %d s' % (len(found), connector, SECONDS))
        some = [found[each] for each in sorted(found)][FIRST_BATCHES:]
        return Figure(statistics.median(some), cpu_seconds(self.process_id) - cpu)


def expect(wanted: Any, found: Any) -> None:
    """End the program if something differs."""
    if wanted != found:
        raise SystemExit('%s was found where there should be %s' % (found, wanted))


@contextlib.contextmanager
def trickle(address: str, topic: str) -> Iterator[None]:
    """Write records to a topic, so many a second."""
    from kafka import KafkaProducer

    stopping = threading.Event()
    pause = 0.02
    values = [b'%100d' % each for each in range(int(RATE * pause))]

    def work() -> None:
        with KafkaProducer(bootstrap_servers=address) as producer:
            while not stopping.wait(pause):
                producer.send_many(topic, values)

    thread = threading.Thread(target=work, name='trickle')
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


# ---------------------------------------------------------------- the comparison


@contextlib.contextmanager
def session() -> Iterator[Any]:
    """Start Spark with both connectors."""
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        raise SystemExit('PySpark is missing: run this by .venv-spark/bin/python') from None
    from kafka.spark import register
    from servers import spark_jars

    version = '.'.join(pyspark.__version__.split('.')[:2])
    reason = spark_jars.problem(version)
    if reason:
        raise SystemExit(reason)
    paths = filter(None, [str(ROOT), os.environ.get('PYTHONPATH', '')])
    os.environ['PYTHONPATH'] = os.pathsep.join(paths)
    os.environ['PYSPARK_PYTHON'] = os.environ['PYSPARK_DRIVER_PYTHON'] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master('local[2]').appName('benchmark')
        jars = ','.join(map(str, spark_jars.jars(version)))
        own = {'spark.local.dir': folder, 'spark.sql.warehouse.dir': folder, 'spark.jars': jars}
        for name, value in {**SETTINGS, **own}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            register(spark)
            spark.dataSource.register(counter())
            yield spark
        finally:
            spark.stop()


def counter() -> Any:
    """Return the format 'counter', whose writer takes rows as Arrow and counts them."""
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class Writer(DataSourceArrowWriter):  # type: ignore[misc]
        def write(self, iterator: Iterator[Any]) -> Any:
            sum(batch.num_rows for batch in iterator)
            return WriterCommitMessage()

    class Counter(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return 'counter'

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return Writer()

    return Counter


def measure(bench: Bench, options: argparse.Namespace) -> Figures:
    """Fill topics, check, and do all rows, round by round."""
    figures: Figures = {}
    for size in options.sizes:
        count = options.records * 100 // max(100, size // 3)  # of large ones a third of it, or so
        for codec in options.codecs:
            rows = [row for row in options.rows if row in READS or row == WRITE]
            if rows:
                _measure_rows(bench, options, rows, (size, codec, count), figures)
    if {BATCH, LOW} & set(options.rows):
        _measure_batches(bench, options, figures)
    return figures


def _measure_rows(
    bench: Bench,
    options: argparse.Namespace,
    rows: List[str],
    what: Tuple[int, str, int],
    figures: Figures,
) -> None:
    size, codec, count = what
    topic = bench.new_topic()
    bench.write(JVM, bench.generator(count, size), topic, codec)
    bench.check(topic, size, codec, count)
    for turn in range(-1, options.rounds):
        for row in rows:
            order = (OURS, JVM) if turn % 2 else (JVM, OURS)
            for name in (*order, *FLOORS) if row == WRITE else order:
                job = name if name in FLOORS else row
                found = bench.once(job, name, size, codec, topic, count)
                if turn >= 0:  # the first is to warm up
                    found = found._replace(cpu_seconds=found.cpu_seconds / count * 1e6)
                    by_name = figures.setdefault((row, size, codec), {})
                    by_name.setdefault(name, []).append(found)
        say('%d bytes, %s: round %d of %d' % (size, codec, turn + 1, options.rounds))
    bench.delete_topic(topic)


def _measure_batches(bench: Bench, options: argparse.Namespace, figures: Figures) -> None:
    topic = bench.new_topic()
    with trickle(bench.cluster.bootstrap, topic):
        for turn in range(-1, options.rounds):
            for row in (row for row in options.rows if row in (BATCH, LOW)):
                for name in (OURS, JVM) if turn % 2 else (JVM, OURS):
                    found = bench.batches(name, row == LOW, topic, options.batches)
                    if turn >= 0:
                        figures.setdefault((row, 100, ''), {}).setdefault(name, []).append(found)
            say('micro-batches: round %d of %d' % (turn + 1, options.rounds))


def say(text: str) -> None:
    """Tell how far it is."""
    print(time.strftime('%H:%M:%S'), text, file=sys.stderr, flush=True)


def spread(values: List[float], form: str = '%.2f') -> str:
    """Return the median, and the least and the largest in brackets."""
    found = (statistics.median(values), min(values), max(values))
    return '{0}x ({0} to {0})'.replace('{0}', form) % found


def report(figures: Figures) -> None:
    """Print a table."""
    print('\n| row | kafka-py | JVM connector | ratio | CPU s/M: kafka-py, JVM | ratio |')
    print('|---|---|---|---|---|---|')
    for (row, size, codec), by_name in figures.items():
        ours, theirs = by_name[OURS], by_name[JVM]
        medians = [statistics.median(f.speed for f in each) for each in (ours, theirs)]
        if row in (BATCH, LOW):
            ratios = [b.speed / a.speed for a, b in zip(ours, theirs)]
            print('| %s | %.0f ms | %.0f ms | %s | | |' % (row, *medians, spread(ratios)))
            continue
        ratios = [a.speed / b.speed for a, b in zip(ours, theirs)]
        costs = [statistics.median(f.cpu_seconds for f in each) for each in (ours, theirs)]
        cpu = [b.cpu_seconds / a.cpu_seconds for a, b in zip(ours, theirs)]
        name = '%s, %d bytes, %s' % (row, size, codec)
        cells = (name, *(each / 1000 for each in medians), spread(ratios), *costs, spread(cpu))
        print('| %s | %.0f k/s | %.0f k/s | %s | %.2f, %.2f | %s |' % cells)
        for floor in FLOORS:
            if floor in by_name:
                parts = [a.speed / b.speed for a, b in zip(theirs, by_name[floor])]
                cost = statistics.median(each.cpu_seconds for each in by_name[floor])
                part = statistics.median(parts)
                print('| %s, %d bytes | | | %.2f of the JVM | %.2f | |' % (floor, size, part, cost))


def measure_memory(bench: Bench, gigabytes: float) -> None:
    """Print how much the workers of Python held while they read a large topic."""
    size = 1000
    count = int(gigabytes * 1e9 / size)
    topic = bench.new_topic()
    say('writing %d records' % count)
    bench.write(JVM, bench.generator(count, size), topic, 'none')
    say('reading them')
    peaks: Dict[int, int] = {}
    stopping = threading.Event()

    def watch() -> None:
        while not stopping.wait(0.2):
            peaks.update(worker_peaks(bench.process_id))

    thread = threading.Thread(target=watch, name='watch')
    thread.start()
    try:
        bench.noop(bench.read(OURS, topic))
    finally:
        stopping.set()
        thread.join()
    expect(count, bench.length(topic))
    each = ', '.join('%.0f' % (peak / MEBIBYTE) for peak in sorted(peaks.values()))
    print('peaks of %d processes of Python, MiB: %s' % (len(peaks), each))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().splitlines()[0])
    parser.add_argument('--release', default=RELEASE, help='of the broker (%s)' % RELEASE)
    parser.add_argument('--rounds', type=int, default=5, help='that are counted (5)')
    parser.add_argument(
        '--records', type=int, default=2000000, help='of 100 bytes; of 1000 a third of it (2000000)'
    )
    parser.add_argument('--sizes', type=int, nargs='+', default=[100, 1000], help='(100 1000)')
    parser.add_argument(
        '--codecs', nargs='+', default=['none', 'lz4', 'zstd'], help='(none lz4 zstd)'
    )
    parser.add_argument('--rows', nargs='+', choices=ROWS, default=list(ROWS), help='(all)')
    parser.add_argument('--batches', type=int, default=30, help='that are counted in a round (30)')
    parser.add_argument('--memory', type=float, metavar='GB', help='measure that alone')
    options = parser.parse_args()
    with started(options.release) as cluster, session() as spark:
        bench = Bench(spark, cluster)
        if options.memory is not None:
            measure_memory(bench, options.memory)
        else:
            report(measure(bench, options))


if __name__ == '__main__':
    main()
