"""
SimpleProducer and SimpleConsumer: kafka-evergreen beside kafka-python 1.4.7 on one real broker.

``python benchmarks/simple.py`` starts a broker (Apache Kafka 2.8.2, on which both run; another by
``--release``), makes a virtual environment for each client under ``.cache/benchmarks`` (same
interpreter, same helper wheels), and measures in rounds: in every round each row is done by each
client in turn, each in a process of its own, so that a slow moment of the machine hits both.

The blocking client of kafka-python 1.4.7 is SimpleClient; here both are measured, KafkaClient of
0.9.5 and SimpleClient of 1.x.

Measured is the user and system time that the client's process, all its threads together, spends per
message, without start-up: the connection stands, the messages exist, one round has gone before.
Every message has 100 bytes and, but for the keyed rows, no key.

* *produce*: ``send_messages`` with 200 messages a call, until the last is acknowledged; *keyed* by
  ``KeyedProducer`` with one key a call, *asynchronous* by ``SimpleProducer`` with
  ``batch_send_every_n=200`` from the first call until ``stop()`` has returned.
* *consume*: ``for message in consumer``, the value of each message read. *default options* means
  just that: a group, a commit every 100 messages, a buffer of 4 KiB that grows to 32 KiB. *1 MiB*
  is what one sets to read fast: ``buffer_size=1048576, max_buffer_size=None``, commits as by
  default; *no commits* adds ``auto_commit=False``. All read what kafka-python wrote.
* *single*: one message a call instead, so that each is a batch of its own; the cost of a call, and
  of waiting for its answer, which no client can avoid.

Before anything is measured, what each client wrote is read by all, every offset, key and value, and
must be the same. Ratios, how many times more kafka-python takes, are medians of the ratios of each
round; least and largest stand behind.

Python 3.8 to 3.11 only: kafka-python 1.4.7 does not import on later ones. The jars of the broker
come from build_integration.sh.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import statistics
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import OURS, ROOT, Worker, answer, environment, started

THEIRS = 'kafka-python 1.4.7'
# Who takes part: name in the table, client, class of its blocking client.
MINE = ('KafkaClient', 'SimpleClient')
RUNNERS: Dict[str, Tuple[str, str]] = {
    **{name: (OURS, name) for name in MINE},
    THEIRS: (THEIRS, 'SimpleClient'),
}
RELEASE = '2.8.2'
AT_A_TIME = 200
BYTES = 100
MIB = 1 << 20

Options = Dict[str, Any]
Digests = Dict[str, str]

# Name of the row: topic that it writes, class, options.
PRODUCERS: Dict[str, Tuple[str, str, Options]] = {
    'produce': ('plain', 'SimpleProducer', {}),
    'produce, keyed': ('keyed', 'KeyedProducer', {}),
    'produce, asynchronous': (
        'async',
        'SimpleProducer',
        {'async_send': True, 'batch_send_every_n': AT_A_TIME},
    ),
    'produce, gzip': ('gzip', 'SimpleProducer', {'codec': 1}),
    'produce, snappy': ('snappy', 'SimpleProducer', {'codec': 2}),
    'produce, single': ('single', 'SimpleProducer', {}),
}
LARGE: Options = {'buffer_size': MIB, 'max_buffer_size': None}
# Name of the row: topic that it reads, options of SimpleConsumer.
CONSUMERS: Dict[str, Tuple[str, Options]] = {
    'consume, default options': ('plain', {}),
    'consume, 1 MiB': ('plain', LARGE),
    'consume, 1 MiB, no commits': ('plain', {**LARGE, 'auto_commit': False}),
    'consume, 1 MiB, keyed': ('keyed', LARGE),
    'consume, 1 MiB, gzip': ('gzip', LARGE),
    'consume, 1 MiB, snappy': ('snappy', LARGE),
    'consume, 1 MiB, single': ('single', LARGE),
}

# Ends the names of the topics that kafka-python writes, from which all consume.
WRITTEN = '-%d' % len(MINE)

Times = Dict[str, Dict[str, List[float]]]


def is_single(row: str) -> bool:
    """Tell whether the messages of a row are sent one a call; then there are a tenth of them."""
    return row.endswith('single')


# ---------------------------------------------------------------- in the process of one client


def values(count: int) -> List[bytes]:
    """Return values that look like small JSON documents, each another one."""
    made = []
    for number in range(count):
        text = b'{"id": %d, "user": "u%05d", "amount": %d.%02d, "state": "open"}' % (
            number,
            number * 7919 % 100000,
            number * 31 % 1000,
            number % 100,
        )
        made.append((text * 3)[:BYTES])
    return made


class Simple:
    """What one client does on command; the classes have the same names in both."""

    def __init__(self, address: str, class_name: str) -> None:
        """Connect by the blocking client of that name."""
        import kafka

        self.kafka = kafka
        self.client = getattr(kafka, class_name)(address)
        self.values: List[bytes] = []

    def produce(self, row: str, topic: str, count: int) -> float:
        """Write messages in calls of 200 and return the CPU seconds that took."""
        if len(self.values) != count:
            self.values = values(count)
        _, class_name, options = PRODUCERS[row]
        step = 1 if is_single(row) else AT_A_TIME
        keyed = class_name == 'KeyedProducer'
        calls = [
            ([b'key-%d' % (start // AT_A_TIME)] if keyed else [])
            + self.values[start : start + step]
            for start in range(0, count, step)
        ]
        if not keyed:
            options = {**options, 'random_start': False}
        self.client.ensure_topic_exists(topic)
        producer = getattr(self.kafka, class_name)(self.client, **options)
        before = time.process_time()
        for arguments in calls:
            producer.send_messages(topic, *arguments)
        if options.get('async_send'):
            producer.stop()
        return time.process_time() - before

    def consume(self, row: str, topic: str, count: int) -> float:
        """Iterate over so many messages and return the CPU seconds that took."""
        consumer = self.consumer(topic, CONSUMERS[row][1])
        left, size = count, 0
        before = time.process_time()
        for message in consumer:
            size += len(message.message.value)
            left -= 1
            if not left:
                break
        seconds = time.process_time() - before
        consumer.stop()
        if size != count * BYTES:
            raise SystemExit('%d bytes were read, not %d messages' % (size, count))
        return seconds

    def consumer(self, topic: str, options: Options) -> Any:
        """Return a consumer of a group of its own, which begins with the first message."""
        return self.kafka.SimpleConsumer(
            self.client, 'group-%s' % uuid.uuid4().hex, topic, iter_timeout=2, **options
        )

    def digest(self, topic: str, count: int) -> Digests:
        """Return the digest of everything that so many messages say, by partition."""
        consumer = self.consumer(topic, {**LARGE, 'auto_commit': False})
        consumer.provide_partition_info()
        found: Dict[str, Any] = {}
        for left, (partition, (offset, message)) in zip(range(count, 0, -1), consumer):
            said = repr((offset, message.key, message.value))
            found.setdefault(str(partition), hashlib.sha256()).update(said.encode())
            if left == 1:
                break
        consumer.stop()
        return {partition: digest.hexdigest() for partition, digest in sorted(found.items())}


def work(address: str, class_name: str) -> None:
    """Answer commands: the name of a method and its arguments."""
    simple = Simple(address, class_name)
    answer(lambda name, *arguments: getattr(simple, name)(*arguments))


# ---------------------------------------------------------------- the comparison


@contextlib.contextmanager
def broker(options: argparse.Namespace) -> Iterator[Tuple[str, Callable[[str], None]]]:
    """Yield the address of a broker and a function that creates a topic there."""
    with started(options.release) as cluster:
        yield cluster.bootstrap, lambda topic: cluster.create_topic(topic, options.partitions)


def check(workers: Sequence[Worker], create: Callable[[str], None], count: int) -> None:
    """Let each client write each topic and both read it; SystemExit when they read anything else.

    In a topic of the asynchronous producer order is per partition as well: it has one thread.
    """
    for row, (name, _, _) in PRODUCERS.items():
        written = []
        for number, writer in enumerate(workers):
            topic = '%s-%d' % (name, number)
            create(topic)
            number_of = count // 10 if is_single(row) else count
            writer.ask('produce', row, topic, number_of)
            read = [reader.ask('digest', topic, number_of) for reader in workers]
            if read.count(read[0]) != len(read):
                raise SystemExit('the clients read different messages from %s' % topic)
            written.append(read[0])
        if written.count(written[0]) != len(written):
            raise SystemExit('the clients wrote different messages by %r' % row)
        print('all wrote and read the same: %s' % row, file=sys.stderr, flush=True)


def measure(
    workers: Sequence[Worker], create: Callable[[str], None], options: argparse.Namespace
) -> Times:
    """Return the CPU seconds per message of each row, client and round."""
    rows = [row for row in (*PRODUCERS, *CONSUMERS) if options.only in row]
    times: Times = {row: {worker.client: [] for worker in workers} for row in rows}
    for row in rows:
        for number in range(len(workers)):
            if row in PRODUCERS:
                create('%s-%d-more' % (PRODUCERS[row][0], number))
    for turn in range(options.rounds + 1):
        for row in rows:
            count = options.messages // 10 if is_single(row) else options.messages
            for number, worker in enumerate(workers):
                if row in PRODUCERS:
                    topic = '%s-%d-more' % (PRODUCERS[row][0], number)
                    seconds = worker.ask('produce', row, topic, count)
                else:
                    seconds = worker.ask('consume', row, CONSUMERS[row][0] + WRITTEN, count)
                if turn:  # the first round warms up
                    times[row][worker.client].append(seconds / count)
        print('round %d of %d' % (turn, options.rounds), file=sys.stderr, flush=True)
    return times


def report(times: Times) -> float:
    """Print the table and return the smallest ratio in it."""
    print('\n| us of CPU per message | %s | %s |' % (THEIRS, ' | '.join(MINE)))
    print('|---|---|%s' % ('---|' * len(MINE)))
    least = float('inf')
    for row, by_runner in times.items():
        theirs = by_runner[THEIRS]
        cells = ['%.2f' % (statistics.median(theirs) * 1e6)]
        for name in MINE:
            ratios = [b / a for a, b in zip(by_runner[name], theirs)]
            ratio = statistics.median(ratios)
            least = min(least, ratio)
            mine = statistics.median(by_runner[name]) * 1e6
            cells.append('%.2f: %.1fx (%.1f to %.1f)' % (mine, ratio, min(ratios), max(ratios)))
        print('| %s | %s |' % (row, ' | '.join(cells)))
    return least


def compare(options: argparse.Namespace) -> None:
    """Start everything, check, measure, report."""
    pythons = {client: environment(client) for client in (OURS, THEIRS)}
    hand_on = ['--without', options.without]
    with contextlib.ExitStack() as stack:
        address, create = stack.enter_context(broker(options))
        workers = []
        for name, (client, _) in RUNNERS.items():
            workers.append(Worker(name, pythons[client], __file__, [address, *hand_on]))
            stack.callback(workers[-1].close)
        check(workers, create, options.messages)
        least = report(measure(workers, create, options))
    print('\nleast ratio: %.1fx' % least)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--release', default=RELEASE, help='of the broker (default %s)' % RELEASE)
    parser.add_argument('--rounds', type=int, default=7, help='rounds to measure (default 7)')
    parser.add_argument('--messages', type=int, default=20000, help='a round (default 20000)')
    parser.add_argument('--partitions', type=int, default=1, help='of each topic (default 1)')
    parser.add_argument('--only', default='', help='only rows whose name contains this text')
    parser.add_argument('--without', default='', help='packages to hide from both, comma-joined')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.modules.update(dict.fromkeys(filter(None, options.without.split(','))))
    if options.worker:
        name, address = options.worker
        client, class_name = RUNNERS[name]
        if client == OURS:
            sys.path.insert(0, str(ROOT))
        work(address, class_name)
    else:
        compare(options)


if __name__ == '__main__':
    main()
