"""
KafkaConsumer: kafka-evergreen beside kafka-python 3.0.12 and confluent-kafka on one real broker.

``python benchmarks/consumer.py`` starts a broker (Apache Kafka 4.4.0; another by ``--release``),
makes a virtual environment for each client under ``.cache/benchmarks``, fills topics, and measures
in rounds: in every round each row is done by each client in turn, each in a fresh process, so that
a slow moment of the machine hits all.

Measured is the user and system time that the client's process, all its threads together, spends per
record, from the assignment of the partitions until all are read: without start-up, which reading
another topic in the same way has paid for. Records have 100 bytes, six partitions, batches of 16
KiB, no compression (``--codec``). No group, no commits; all clients check checksums.

* *iterate*: ``for record in consumer``, value and offset of each; confluent-kafka: ``poll()``.
* *lists*: ``poll(max_records=1000)``, the same of each; confluent-kafka: ``consume(1000)``.
* *full*, *full lists*: the same with keys and a header: value, key, offset, timestamp, headers.
* *Arrow*: record batches of key, value, partition, offset and timestamp: ``poll_arrow()``; of the
  others lists, made of what *lists* brings, that pyarrow takes over. *Arrow reader*: by
  ``BoundedReader.arrow()``, beside the same of the others.

Both ways of confluent-kafka stand in each row. Ratios, how many times more the others take, are
medians of the ratios of each round; least and largest stand behind. Nothing is measured before
every client has read the same records in each row.

``--idle SECONDS``: the processor time of a group member with nothing to read. ``--lag``: what a
consumer of kafka-evergreen holds that reads slower than it could, over what it held before it had
partitions, with ``fetch_max_buffered_bytes`` of 50 MiB. ``--many 10 100 1000 3000``: the cost of an
empty ``poll(0)`` and of a record with so many partitions assigned.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import sys
import time
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from producer import KEYS, RELEASE, THEIRS, broker, values
from workers import CONFLUENT, OURS, ROOT, Worker, answer, beside, environment, in_memory

POLL, CONSUME = CONFLUENT + ' poll()', CONFLUENT + ' consume(1000)'
CLIENTS = (OURS, THEIRS, POLL, CONSUME)
ROWS = ('iterate', 'lists', 'full', 'full lists', 'Arrow', 'Arrow reader')
PLAIN, FULL, WARM = 'plain', 'full', 'warm-%s'
HEADERS = [('trace', b'0123456789abcdef')]
AT_A_TIME = 1000
WARM_RECORDS = 3000
SECONDS = 120
BUDGET = 50 * 2**20
LAG_BYTES = 300 * 2**20
LAG_VALUE = 1000
LAG_SECONDS = 15
POLLS = 300

Figures = Dict[str, Dict[str, List[float]]]

# ---------------------------------------------------------------- in the process of one client


class Ours:
    """KafkaConsumer of kafka-evergreen, and of kafka-python as far as it has the calls."""

    def __init__(self, address: str, **options: Any) -> None:
        """Connect."""
        from kafka import KafkaConsumer

        self.address, self.topic = address, ''
        options = {'group_id': None, 'auto_offset_reset': 'earliest', **options}
        self.consumer = KafkaConsumer(bootstrap_servers=address, **options)

    def assign(self, topic: str, partitions: int) -> None:
        """Read a topic from its beginning."""
        from kafka import TopicPartition

        self.topic = topic
        places = [TopicPartition(topic, each) for each in range(partitions)]
        self.consumer.assign(places)
        self.consumer.seek_to_beginning(*places)

    def iterate(self, count: int) -> int:
        """Read one by one."""
        total = 0
        for record in self.consumer:
            total += record.offset + len(record.value)
            count -= 1
            if not count:
                break
        return total

    def lists(self, count: int) -> int:
        """Read lists."""
        total, poll = 0, self.consumer.poll
        while count > 0:
            for records in poll(1000, max_records=AT_A_TIME).values():
                count -= len(records)
                for record in records:
                    total += record.offset + len(record.value)
        return total

    def full(self, count: int) -> int:
        """Read one by one, all of each."""
        total = 0
        for record in self.consumer:
            total += record.offset + len(record.value) + len(record.key) + record.timestamp % 7
            total += len(record.headers)
            count -= 1
            if not count:
                break
        return total

    def full_lists(self, count: int) -> int:
        """Read lists, all of each record."""
        total, poll = 0, self.consumer.poll
        while count > 0:
            for records in poll(1000, max_records=AT_A_TIME).values():
                count -= len(records)
                for record in records:
                    total += record.offset + len(record.value) + len(record.key)
                    total += record.timestamp % 7 + len(record.headers)
        return total

    def arrow(self, count: int) -> int:
        """Read record batches of Arrow; make them of lists where there is no such call."""
        return sum_of_batches(self._batches(count))

    def arrow_reader(self, count: int) -> int:
        """Read record batches of Arrow by a reader of its own, where there is one."""
        try:
            from kafka.consumer.bounded.reader import BoundedReader
        except ImportError:
            return self.arrow(count)
        self.consumer.unsubscribe()
        columns = ['key', 'value', 'partition', 'offset', 'timestamp']
        with BoundedReader(self.topic, bootstrap_servers=self.address) as reader:
            return sum_of_batches(reader.arrow(columns))

    def _batches(self, count: int) -> Iterator[Any]:
        poll_arrow = getattr(self.consumer, 'poll_arrow', None)
        while count > 0 and poll_arrow is not None:
            batch = poll_arrow(1000)
            if batch is not None and batch.num_rows:
                count -= batch.num_rows
                yield batch
        while count > 0:
            for records in self.consumer.poll(1000, max_records=AT_A_TIME).values():
                count -= len(records)
                yield batch_of(
                    [record.key for record in records],
                    [record.value for record in records],
                    [record.partition for record in records],
                    [record.offset for record in records],
                    [record.timestamp for record in records],
                )

    def checksum(self, count: int) -> int:
        """Return a number that depends on all of so many records, in whatever order."""
        total = 0
        while count > 0:
            for records in self.consumer.poll(1000, max_records=AT_A_TIME).values():
                count -= len(records)
                total += sum(
                    sum_of(each.partition, each.offset, each.key, each.value, each.headers)
                    for each in records
                )
        return total

    def empty_polls(self, count: int) -> None:
        """Poll without waiting."""
        for _ in range(count):
            self.consumer.poll(0)

    def idle(self, topic: str, seconds: float) -> None:
        """Poll as a member of a group that has nothing to read."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.consumer.poll(1000)

    def subscribe(self, topic: str) -> None:
        """Join and read what there is."""
        self.consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while not self.consumer.assignment() and time.monotonic() < deadline:
            self.consumer.poll(100)
        self.consumer.poll(1000)

    def close(self) -> None:
        """End."""
        self.consumer.close()


class Polling:
    """confluent-kafka, one by one."""

    def __init__(self, address: str, **options: Any) -> None:
        """Connect."""
        from confluent_kafka import Consumer

        config = {
            'bootstrap.servers': address,
            'group.id': options.get('group_id') or 'none',
            'enable.auto.commit': bool(options.get('group_id')),
            'auto.offset.reset': 'earliest',
            'check.crcs': True,
        }
        self.consumer = Consumer(config)

    def assign(self, topic: str, partitions: int) -> None:
        """Read a topic from its beginning."""
        from confluent_kafka import TopicPartition

        self.consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])

    def _messages(self, count: int) -> Iterator[Any]:
        poll = self.consumer.poll
        while count > 0:
            message = poll(1.0)
            if message is not None and message.error() is None:
                count -= 1
                yield message

    def iterate(self, count: int) -> int:
        """Read."""
        return sum(each.offset() + len(each.value()) for each in self._messages(count))

    def full(self, count: int) -> int:
        """Read all of each."""
        total = 0
        for each in self._messages(count):
            total += each.offset() + len(each.value()) + len(each.key())
            total += each.timestamp()[1] % 7 + len(each.headers())
        return total

    def arrow(self, count: int) -> int:
        """Make record batches of Arrow."""
        return sum_of_batches(self._batches(count))

    def _batches(self, count: int) -> Iterator[Any]:
        messages = self._messages(count)
        while True:
            some = list(itertools.islice(messages, AT_A_TIME))
            if not some:
                return
            yield batch_of(
                [each.key() for each in some],
                [each.value() for each in some],
                [each.partition() for each in some],
                [each.offset() for each in some],
                [each.timestamp()[1] for each in some],
            )

    lists, full_lists, arrow_reader = iterate, full, arrow

    def checksum(self, count: int) -> int:
        """Return a number that depends on all of so many records, in whatever order."""
        return sum(
            sum_of(each.partition(), each.offset(), each.key(), each.value(), each.headers() or [])
            for each in self._messages(count)
        )

    def empty_polls(self, count: int) -> None:
        """Poll without waiting."""
        for _ in range(count):
            self.consumer.poll(0)

    def idle(self, topic: str, seconds: float) -> None:
        """Poll as a member of a group that has nothing to read."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.consumer.poll(1.0)

    def subscribe(self, topic: str) -> None:
        """Join and read what there is."""
        self.consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while not self.consumer.assignment() and time.monotonic() < deadline:
            self.consumer.poll(0.1)

    def close(self) -> None:
        """End."""
        self.consumer.close()


class Consuming(Polling):
    """confluent-kafka, a thousand a call."""

    def _messages(self, count: int) -> Iterator[Any]:
        while count > 0:
            for message in self.consumer.consume(min(count, AT_A_TIME), 1.0):
                if message.error() is None:
                    count -= 1
                    yield message


def sum_of(partition: int, offset: int, key: Any, value: bytes, headers: Any) -> int:
    """Return a number for a record."""
    text = b'%d %d %r %r' % (partition, offset, key, value)
    return zlib.crc32(text + b''.join(b'%r' % (part,) for _, part in headers))


def sum_of_batches(batches: Iterator[Any]) -> int:
    """Return the sum of the offsets and of the lengths of the values."""
    import pyarrow.compute as compute

    total = 0
    for batch in batches:
        total += compute.sum(batch['offset']).as_py() or 0
        total += compute.sum(compute.binary_length(batch['value'])).as_py() or 0
    return int(total)


def batch_of(*columns: List[Any]) -> Any:
    """Return a record batch of Arrow."""
    import pyarrow

    kinds = (
        pyarrow.binary(),
        pyarrow.binary(),
        pyarrow.int32(),
        pyarrow.int64(),
        pyarrow.int64(),
    )
    arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds)]
    names = ['key', 'value', 'partition', 'offset', 'timestamp']
    return pyarrow.RecordBatch.from_arrays(arrays, names=names)


KINDS = {OURS: Ours, THEIRS: Ours, POLL: Polling, CONSUME: Consuming}


class Runner:
    """What a worker does on command."""

    def __init__(self, client: str, address: str) -> None:
        """Take note of whom to be."""
        self.client, self.address = client, address
        self.made: Any = None

    def _make(self, **options: Any) -> Any:
        return KINDS[self.client](self.address, **options)

    def check(self, topic: str, partitions: int, count: int) -> int:
        """Return a number that depends on what a topic holds."""
        with contextlib.closing(self._make()) as consumer:
            consumer.assign(topic, partitions)
            return int(consumer.checksum(count))

    def run(self, row: str, topic: str, partitions: int, count: int) -> Tuple[float, float, int]:
        """Return CPU seconds and clock seconds for a record, and the sum of what was read."""
        verb = row.lower().replace(' ', '_')
        with contextlib.closing(self._make()) as consumer:
            read = getattr(consumer, verb)
            consumer.assign(WARM % topic, partitions)
            read(WARM_RECORDS)
            began, wall = time.process_time(), time.perf_counter()
            consumer.assign(topic, partitions)
            total = read(count)
            spent = time.process_time() - began, time.perf_counter() - wall
        return spent[0] / count, spent[1] / count, total

    def idle(self, topic: str, seconds: float) -> float:
        """Return the share of a core that a member of a group takes that has nothing to read."""
        with contextlib.closing(self._make(group_id='idle %s' % self.client)) as consumer:
            consumer.subscribe(topic)
            consumer.idle(topic, 5)
            began, wall = time.process_time(), time.perf_counter()
            consumer.idle(topic, seconds)
            return (time.process_time() - began) / (time.perf_counter() - wall)

    def many(self, topic: str, partitions: int, count: int) -> Tuple[float, float]:
        """Return CPU seconds for a record, and for a poll that brings nothing."""
        with contextlib.closing(self._make()) as consumer:
            consumer.assign(WARM % PLAIN, 1)
            consumer.lists(1)
            began = time.process_time()
            consumer.assign(topic, partitions)
            consumer.lists(count)
            read = time.process_time() - began
            consumer.empty_polls(3)
            began = time.process_time()
            consumer.empty_polls(POLLS)
            return read / count, (time.process_time() - began) / POLLS

    def lag(self, topic: str, partitions: int) -> Tuple[int, int, int]:
        """Return bytes in memory before and at most, and how many records were read slowly."""
        with contextlib.closing(self._make(fetch_max_buffered_bytes=BUDGET)) as consumer:
            consumer.assign(WARM % PLAIN, partitions)
            consumer.lists(WARM_RECORDS)
            before = most = in_memory()
            consumer.assign(topic, partitions)
            count, deadline = 0, time.monotonic() + LAG_SECONDS
            while time.monotonic() < deadline:
                found = consumer.consumer.poll(100, max_records=20)
                count += sum(map(len, found.values()))
                most = max(most, in_memory())
                time.sleep(0.01)
            return before, most, count

    # ------------------------------------------------------------ of kafka-evergreen alone

    def fill(self, topic: str, partitions: int, count: int, kind: str, codec: str) -> None:
        """Write records: 'plain', 'full', or so many bytes each."""
        from kafka import KafkaProducer

        codec_or_none = None if codec == 'none' else codec
        with KafkaProducer(
            bootstrap_servers=self.address, linger_ms=20, compression_type=codec_or_none
        ) as producer:
            made = values(min(count, 100_000)) if kind in (PLAIN, FULL) else []
            if not made:
                made = [b'x' * int(kind)]
            each = count // partitions
            for partition in range(partitions):
                if kind == FULL:
                    for number in range(each):
                        value, key = made[number % len(made)], KEYS[number % len(KEYS)]
                        producer.send(topic, value, key, HEADERS, partition)
                    continue
                for start in range(0, each, AT_A_TIME):
                    some = range(start, min(each, start + AT_A_TIME))
                    rows = [made[number % len(made)] for number in some]
                    producer.send_many(topic, rows, partition=partition)
            producer.flush(SECONDS)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; confluent-kafka."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({'bootstrap.servers': self.address})
        admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=90)[topic].result(90)


# ---------------------------------------------------------------- the comparison


class Bench:
    """A broker, and clients that come and go."""

    def __init__(self, options: argparse.Namespace, address: str) -> None:
        """Make the environments."""
        self.options, self.address = options, address
        more = ('pyarrow', 'numpy')
        pythons = {client: environment(client, *more) for client in (OURS, THEIRS, CONFLUENT)}
        self.pythons = {**pythons, POLL: pythons[CONFLUENT], CONSUME: pythons[CONFLUENT]}

    def ask(self, client: str, *command: Any) -> Any:
        """Ask a client of a fresh process."""
        worker = Worker(client, self.pythons[client], __file__, [self.address])
        try:
            return worker.ask(*command)
        finally:
            worker.close()

    def make(self, topic: str, partitions: int, count: int, kind: str) -> None:
        """Create a topic and fill it."""
        self.ask(POLL, 'create', topic, partitions)
        time.sleep(1 + partitions / 500)
        if count:
            self.ask(OURS, 'fill', topic, partitions, count, kind, self.options.codec)

    def make_topics(self) -> None:
        """Make those of the rows; SystemExit if a client does not read what is in them."""
        partitions = self.options.partitions
        each = self.options.records // partitions * partitions
        for topic in (PLAIN, FULL):
            self.make(topic, partitions, each, topic)
            self.make(WARM % topic, partitions, WARM_RECORDS, topic)
            found = {
                client: self.ask(client, 'check', WARM % topic, partitions, WARM_RECORDS)
                for client in CLIENTS
            }
            if len(set(found.values())) > 1:
                raise SystemExit('not the same records of %s: %s' % (topic, found))
            print('the same records: %s' % topic, file=sys.stderr, flush=True)

    def rows(self) -> Tuple[Figures, Figures]:
        """Return CPU and clock seconds per record of each row, client and round."""
        options = self.options
        shown = [row for row in ROWS if options.only in row]
        cpu: Figures = {row: {client: [] for client in CLIENTS} for row in shown}
        clock: Figures = {row: {client: [] for client in CLIENTS} for row in shown}
        count = options.records // options.partitions * options.partitions
        for turn in range(options.rounds):
            for row in shown:
                topic = FULL if row.startswith('full') else PLAIN
                sums = set()
                for client in CLIENTS:
                    spent = self.ask(client, 'run', row, topic, options.partitions, count)
                    cpu[row][client].append(spent[0])
                    clock[row][client].append(spent[1])
                    sums.add(spent[2])
                if len(sums) > 1:
                    raise SystemExit('%s: not the same sums: %s' % (row, sums))
            print('round %d of %d' % (turn + 1, options.rounds), file=sys.stderr, flush=True)
        return cpu, clock

    def idle(self, seconds: float) -> None:
        """Print what members cost that have nothing to read."""
        for client in (OURS, THEIRS, POLL):
            share = self.ask(client, 'idle', WARM % PLAIN, seconds)
            print('idle: %.4f %% of a core: %s' % (share * 100, client), flush=True)

    def lag(self) -> None:
        """Print what a slow consumer holds."""
        partitions = self.options.partitions
        self.make('lag', partitions, LAG_BYTES // LAG_VALUE, str(LAG_VALUE))
        before, most, count = self.ask(OURS, 'lag', 'lag', partitions)
        sizes = [size / 2**20 for size in (before, most, BUDGET, most - before - BUDGET)]
        print(
            'lag: %.1f MiB in memory before, %.1f at most while %d records were read slowly:'
            ' fetch_max_buffered_bytes (%.0f) and %.1f' % (*sizes[:2], count, *sizes[2:]),
            flush=True,
        )

    def many(self, numbers: List[int]) -> None:
        """Print what many partitions cost."""
        print(
            '\n| partitions | us a record: %s | %s | us a poll(0): %s | %s |' % ((OURS, THEIRS) * 2)
        )
        print('|---|---|---|---|---|')
        for number in numbers:
            count = max(1, self.options.records // number) * number
            topic = 'many-%d' % number
            self.make(topic, number, count, PLAIN)
            mine, theirs = (self.ask(each, 'many', topic, number, count) for each in (OURS, THEIRS))
            shown = [each * 1e6 for each in (mine[0], theirs[0], mine[1], theirs[1])]
            print('| %d | %.2f | %.2f | %.1f | %.1f |' % (number, *shown), flush=True)


def report(cpu: Figures, clock: Figures) -> None:
    """Print the table."""
    print('\n| us per record | %s |' % ' | '.join(CLIENTS))
    print('|---|' + '---|' * len(CLIENTS))
    for row, by_client in cpu.items():
        mine = by_client[OURS]
        rate = 1 / statistics.median(clock[row][OURS])
        cells = ['%.3f (%d records/s)' % (statistics.median(mine) * 1e6, rate)]
        cells += [beside(mine, by_client[client]) for client in CLIENTS[1:]]
        print('| %s | %s |' % (row, ' | '.join(cells)), flush=True)


def compare(options: argparse.Namespace) -> None:
    """Start everything, check, measure, report."""
    with broker(options) as cluster:
        bench = Bench(options, cluster.bootstrap)
        bench.make_topics()
        if options.rounds:
            report(*bench.rows())
        if options.idle:
            bench.idle(options.idle)
        if options.lag:
            bench.lag()
        if options.many:
            bench.many(options.many)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--release', default=RELEASE, help='of the broker (default %s)' % RELEASE)
    parser.add_argument('--address', help='of a broker that runs already, host:port')
    parser.add_argument('--rounds', type=int, default=5, help='rounds to measure (default 5)')
    parser.add_argument('--records', type=int, default=200_000, help='a round (default 200000)')
    parser.add_argument('--partitions', type=int, default=6, help='of each topic (default 6)')
    parser.add_argument('--codec', default='none', help='none, gzip, snappy, lz4, zstd')
    parser.add_argument('--only', default='', help='only rows whose name contains this text')
    parser.add_argument('--idle', type=float, default=0, help='seconds to watch idle members')
    parser.add_argument('--lag', action='store_true', help='memory of a slow consumer')
    parser.add_argument(
        '--many', type=int, nargs='*', default=[], help='numbers of assigned partitions'
    )
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        client, address = options.worker
        if client == OURS:
            sys.path.insert(0, str(ROOT))
        runner = Runner(client, address)
        answer(lambda name, *arguments: getattr(runner, name)(*arguments))
    else:
        compare(options)


if __name__ == '__main__':
    main()
