"""
The embedded broker beside a real one of the same release: records per second in and out.

``python benchmarks/broker.py`` starts three brokers of release 4.4: Apache Kafka (jars by
build_integration.sh; ``--without-real`` leaves it out), ``python -m kafka broker`` in a process of
its own, and ``kafka.testing.Cluster`` inside this process, which does nothing else meanwhile. The
clients live in a process of their own: confluent-kafka, the fastest at hand, in a virtual
environment under ``.cache/benchmarks``. Every round does each row on each broker in turn, so that a
slow moment of the machine hits all. Apache Kafka runs with the JVM options of its own start script,
and has two rounds to warm up, as all others.

* *in*: 100-byte records without key into one partition of a new topic, from the first
  ``produce_batch()`` to the end of ``flush()``. confluent-kafka's settings are its own but for the
  room in its queue: batches of up to 10,000 records or 1 MB, at most 5 ms apart.
* *out*: a consumer reads such a topic, 10,000 records a call, with ``fetch.queue.backoff.ms=1``:
  otherwise it pauses for a second whenever its queue is full.
* *one by one*: produce, flush, and again: the time until an acknowledgement.
* *fan-out*: 200 connections read what 200 others write, at once (fan.py). Records are counted as
  often as they are read. Behind it stands when the first and the last reader had everything, and
  the longest that any of the 400 waited for an answer.
* *start*: from nothing to the first answer.

Each cell has the median; behind it the median of the ratios to Apache Kafka of each round, their
least and largest. More than 1 is faster than Apache Kafka. The time that the clients take is in all
of them, so that no ratio can be as far from 1 as the brokers are. The second table has the user and
system time of the broker's process alone (Linux), which other programs disturb least; there less
than 1 is better than Apache Kafka.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import CONFLUENT, ROOT, Worker, answer, environment

RELEASE = '4.4.0'
REAL = 'Apache Kafka %s' % RELEASE
CHILD = 'python -m kafka broker'
INSIDE = 'Cluster in the process'
RECORD_BYTES = 100
CODECS = ('none', 'lz4')
#: Name of the row: settings of the producer.
WRITES = {
    'in, acks=%s, %s' % (acks, codec): {'acks': acks, 'compression.type': codec}
    for acks in ('1', 'all')
    for codec in CODECS
}
READS = {'out, %s' % codec: 'read-%s' % codec for codec in CODECS}
SINGLE = 'one by one'
FAN = 'fan-out'
FAN_CLIENTS = 200
BATCH_RECORDS = 100  # as fan.py has it
WARM_UP = 2
SECONDS = 120.0

#: By row and broker, for each round.
Figures = Dict[str, Dict[str, List[float]]]


class Measured(NamedTuple):
    """Records per second, microseconds of the broker's CPU per record, and the last notes."""

    rates: Figures
    costs: Figures
    notes: Dict[str, Dict[str, str]]


# ---------------------------------------------------------------- in the process of the client


class Confluent:
    """What confluent-kafka does on command."""

    def __init__(self) -> None:
        import confluent_kafka
        from confluent_kafka import admin

        self.kafka = confluent_kafka
        self.admin = admin

    def create(self, address: str, topic: str) -> bool:
        """Create a topic of one partition and wait until it can be written."""
        client = self.admin.AdminClient({'bootstrap.servers': address})
        wanted = self.admin.NewTopic(topic, num_partitions=1, replication_factor=1)
        client.create_topics([wanted])[topic].result(SECONDS)
        return self.write(address, topic, 1, {}) > 0

    def delete(self, address: str, topic: str) -> bool:
        """Delete a topic."""
        client = self.admin.AdminClient({'bootstrap.servers': address})
        client.delete_topics([topic])[topic].result(SECONDS)
        return True

    def write(self, address: str, topic: str, count: int, settings: Dict[str, Any]) -> float:
        """Write records and return the seconds until all were acknowledged."""
        producer = self._producer(address, settings)
        records = [{'value': value} for value in values(min(count, 10000))]
        failed: List[Any] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        producer.list_topics(topic, SECONDS)
        before = time.perf_counter()
        for start in range(0, count, len(records)):
            producer.produce_batch(topic, records[: count - start], on_delivery=on_delivery)
            producer.poll(0)
        left = producer.flush(SECONDS)
        seconds = time.perf_counter() - before
        if left or failed:
            raise SystemExit('%d records are left, failed were %s' % (left, failed[:1]))
        return seconds

    def write_singly(self, address: str, topic: str, count: int) -> float:
        """Write records, each when the last was acknowledged; return the seconds."""
        producer = self._producer(address, {'linger.ms': 0})
        producer.list_topics(topic, SECONDS)
        (value,) = values(1)
        before = time.perf_counter()
        for _ in range(count):
            producer.produce(topic, value)
            if producer.flush(SECONDS):
                raise SystemExit('a record was not acknowledged')
        return time.perf_counter() - before

    def _producer(self, address: str, settings: Dict[str, Any]) -> Any:
        room = {'queue.buffering.max.messages': 10000000, 'queue.buffering.max.kbytes': 1000000}
        return self.kafka.Producer({'bootstrap.servers': address, **room, **settings})

    def read(self, address: str, topic: str, count: int) -> float:
        """Read so many records from the start and return the seconds it took."""
        consumer = self.kafka.Consumer(
            {
                'bootstrap.servers': address,
                'group.id': 'benchmark',
                'enable.auto.commit': False,
                'fetch.queue.backoff.ms': 1,
                'queued.min.messages': 1000000,
            }
        )
        consumer.list_topics(topic, SECONDS)
        before = time.perf_counter()
        consumer.assign([self.kafka.TopicPartition(topic, 0, 0)])
        left, size = count, 0
        while left > 0:
            found = consumer.consume(min(left, 10000), SECONDS)
            if not found:
                raise SystemExit('%d records did not come' % left)
            left -= len(found)
            size += sum(len(message) for message in found)
        seconds = time.perf_counter() - before
        consumer.close()
        if left or size != count * RECORD_BYTES:
            raise SystemExit('%d records too many, %d bytes' % (-left, size))
        return seconds


def values(count: int) -> List[bytes]:
    """Return values that look like small JSON documents, each another one."""
    form = b'{"id": %d, "user": "u%05d", "amount": %d.%02d, "state": "open"}'
    made = (form % (n, n * 7919 % 100000, n * 31 % 1000, n % 100) for n in range(count))
    return [(text * 3)[:RECORD_BYTES] for text in made]


def work() -> None:
    """Answer commands: the name of a method and its arguments."""
    client = Confluent()
    answer(lambda name, *arguments: getattr(client, name)(*arguments))


# ---------------------------------------------------------------- the brokers


class Running(NamedTuple):
    """A broker that runs, how long it took to give the first answer, and its processes' ids."""

    name: str
    address: str
    start_seconds: float
    process_ids: List[int]

    def cpu_seconds(self) -> float:
        """Return the user and system time of its processes so far, where /proc tells it."""
        total = 0
        for process_id in self.process_ids:
            with contextlib.suppress(OSError):
                text = Path('/proc/%d/stat' % process_id).read_text(encoding='ascii')
                total += sum(map(int, text.rpartition(')')[2].split()[11:13]))
        return total / os.sysconf('SC_CLK_TCK') if total else 0.0


def wait_for_answer(address: str) -> None:
    """Ask for the versions of the APIs until there is an answer."""
    host, _, port = address.rpartition(':')
    end = time.monotonic() + SECONDS
    # ApiVersions v0: length, key, version, correlation id, no client id.
    request = bytes.fromhex('0000000a 0012 0000 00000001 ffff')
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, int(port)), 1.0) as sock:
                sock.sendall(request)
                if sock.recv(4):
                    return
        except OSError:
            time.sleep(0.001)
    raise SystemExit('%s does not answer' % address)


@contextlib.contextmanager
def real() -> Iterator[Running]:
    """Run Apache Kafka."""
    from servers.cluster import AS_SHIPPED, Cluster
    from servers.releases import chosen, problem

    (release,) = chosen(RELEASE)
    reason = problem(release)
    if reason:
        raise SystemExit('%s; --without-real does without it' % reason)
    before = time.perf_counter()
    with Cluster(release, jvm=AS_SHIPPED) as cluster:
        wait_for_answer(cluster.bootstrap)
        seconds = time.perf_counter() - before
        yield Running(REAL, cluster.bootstrap, seconds, sorted(cluster.process_ids))


@contextlib.contextmanager
def child() -> Iterator[Running]:
    """Run ``python -m kafka broker``."""
    before = time.perf_counter()
    command = [sys.executable, '-m', 'kafka', 'broker', '--port', '0', '--version', RELEASE]
    process = subprocess.Popen(command, cwd=str(ROOT), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = None
        for line in process.stdout:
            found = re.search(r'node 0 +(\S+:\d+)', line)
            if found:
                break
        if found is None:
            raise SystemExit('python -m kafka broker did not start')
        wait_for_answer(found.group(1))
        yield Running(CHILD, found.group(1), time.perf_counter() - before, [process.pid])
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def inside() -> Iterator[Running]:
    """Run a cluster in this process."""
    from kafka.testing import Cluster

    before = time.perf_counter()
    with Cluster(version=RELEASE) as cluster:
        wait_for_answer(cluster.bootstrap)
        yield Running(INSIDE, cluster.bootstrap, time.perf_counter() - before, [os.getpid()])


# ---------------------------------------------------------------- the comparison


def rows(options: argparse.Namespace) -> List[str]:
    """Return the rows that are wanted."""
    return [row for row in (*WRITES, *READS, SINGLE, FAN) if options.only in row]


def once(
    worker: Worker, broker: Running, row: str, turn: int, options: argparse.Namespace
) -> Tuple[int, float, str]:
    """Do a row once; return how many records it had, the seconds, and what else there is to say."""
    address, count = broker.address, options.records
    if row in READS:
        return count, worker.ask('read', address, READS[row], count), ''
    topic = re.sub('[^a-z0-9]+', '-', row) + '-%d' % turn
    worker.ask('create', address, topic)
    note = ''
    if row == SINGLE:
        count = max(100, count // 250)
        seconds = worker.ask('write_singly', address, topic, count)
        note = '%.0f us each' % (seconds / count * 1e6)
    elif row == FAN:
        worker.ask('delete', address, topic)
        worker.ask('create', address, topic)
        count, seconds, note = fan_out(address, topic, options)
    else:
        seconds = worker.ask('write', address, topic, count, WRITES[row])
    worker.ask('delete', address, topic)
    return count, seconds, note


def fan_out(address: str, topic: str, options: argparse.Namespace) -> Tuple[int, float, str]:
    """Let many read what many write; return how many records were read, and in which time."""
    batches = max(1, options.records // (FAN_CLIENTS * BATCH_RECORDS) // 4)
    command = [sys.executable, '-m', 'benchmarks.fan', address, topic]
    command += map(str, (FAN_CLIENTS, FAN_CLIENTS, batches))
    found = json.loads(subprocess.check_output(command, cwd=str(ROOT), timeout=SECONDS))
    first, last, waited = found['out']
    note = 'readers done %.2f to %.2f s, longest wait %.2f s' % (
        first,
        last,
        max(waited, found['in'][2]),
    )
    return FAN_CLIENTS * FAN_CLIENTS * batches * BATCH_RECORDS, last, note


def prepare(worker: Worker, brokers: List[Running], options: argparse.Namespace) -> None:
    """Write what is read."""
    for broker in brokers:
        for codec in CODECS:
            topic = 'read-%s' % codec
            worker.ask('create', broker.address, topic)
            settings = {'compression.type': codec}
            worker.ask('write', broker.address, topic, options.records - 1, settings)


def measure(worker: Worker, brokers: List[Running], options: argparse.Namespace) -> Measured:
    """Do all rows on all brokers, round by round."""
    wanted = rows(options)
    rates, costs = (
        {row: {broker.name: [] for broker in brokers} for row in wanted} for _ in range(2)
    )
    found = Measured(rates, costs, {row: {} for row in wanted})
    for turn in range(options.rounds + WARM_UP):
        for row in wanted:
            # Each is the first as often as the others.
            start = turn % len(brokers)
            for broker in brokers[start:] + brokers[:start]:
                before = broker.cpu_seconds()
                count, seconds, note = once(worker, broker, row, turn, options)
                cpu_seconds = broker.cpu_seconds() - before
                found.notes[row][broker.name] = note
                if turn >= WARM_UP:
                    found.rates[row][broker.name].append(count / seconds)
                    found.costs[row][broker.name].append(cpu_seconds / count * 1e6)
        print('round %d of %d' % (turn + 1 - WARM_UP, options.rounds), file=sys.stderr, flush=True)
    return found


def table(title: str, form: str, figures: Figures, names: List[str]) -> None:
    """Print a table: medians, and the ratios to Apache Kafka of each round."""
    print('\n| %s | %s |' % (title, ' | '.join(names)))
    print('|---|%s' % ('---|' * len(names)))
    for row, by_broker in figures.items():
        cells = []
        for name in names:
            cell = form.format(statistics.median(by_broker[name]))
            if name != REAL and REAL in names:
                pairs = zip(by_broker[name], by_broker[REAL])
                ratios = [mine / theirs for mine, theirs in pairs if theirs]
                if ratios:
                    spread = statistics.median(ratios), min(ratios), max(ratios)
                    cell += ': %.2fx (%.2f to %.2f)' % spread
            cells.append(cell)
        print('| %s | %s |' % (row, ' | '.join(cells)))


def report(found: Measured, brokers: List[Running]) -> None:
    """Print everything."""
    names = [broker.name for broker in brokers]
    table('records/s', '{:,.0f}', found.rates, names)
    starts = ' | '.join('%.0f ms' % (broker.start_seconds * 1000) for broker in brokers)
    print('| start | %s |' % starts)
    table('us of CPU per record', '{:.2f}', found.costs, names)
    for row, by_name in found.notes.items():
        for name in names:
            if by_name.get(name):
                print('%s, %s: %s' % (row, name, by_name[name]))


def compare(options: argparse.Namespace) -> None:
    """Start everything, measure, report."""
    sys.path.insert(0, str(ROOT))
    kinds: List[Callable[[], Any]] = (
        [child, inside]
        if options.without_real
        else [
            real,
            child,
            inside,
        ]
    )
    worker = Worker(CONFLUENT, environment(CONFLUENT), __file__, [])
    try:
        with contextlib.ExitStack() as stack:
            brokers = [stack.enter_context(each()) for each in kinds]
            prepare(worker, brokers, options)
            report(measure(worker, brokers, options), brokers)
    finally:
        worker.close()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().splitlines()[0])
    parser.add_argument('--records', type=int, default=500000, help='of a row (500000)')
    parser.add_argument('--rounds', type=int, default=5, help='that are counted (5)')
    parser.add_argument('--only', default='', help='rows whose names have this in them')
    parser.add_argument('--without-real', action='store_true', help='embedded brokers alone')
    parser.add_argument('--worker', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
    else:
        compare(options)


if __name__ == '__main__':
    main()
