"""
KafkaProducer: kafka-evergreen beside kafka-python 3.0.12 and confluent-kafka on one real broker.

``python benchmarks/producer.py`` starts a broker (Apache Kafka 4.4.0; another by ``--release``)
with the JVM options of Kafka's own start script, makes a virtual environment for each client under
``.cache/benchmarks``, and measures in rounds: in every round each row is done by each client in
turn, each in a process of its own, so that a slow moment of the machine hits all.

Measured is the user and system time that the client's process, all its threads together, spends per
record of 100 bytes, from the first call until all are acknowledged, without start-up. All clients
have the same settings: acks=1, no idempotence (``--idempotent`` for acks=all with it), batches of
16 KiB, no lingering (confluent-kafka: its 5 ms), no compression.

* *future*: ``send()``, whose future is dropped; confluent-kafka: ``produce()`` with a delivery
  callback. *kept*: all futures are kept until the end.
* *keyed*: the same with one of 1000 keys for each record.
* *forget*: without a future: ``send_and_forget()``; kafka-python has only ``send()``;
  confluent-kafka: ``produce()`` without a callback.
* *many*: ``send_many()`` of 1000 records a call; confluent-kafka: ``produce_batch()``.
* *one*: one record in flight: ``send().get()``, ``produce(); flush()``: the median of the time
  between the call and the acknowledgement; *one (CPU)*: what that costs the client's process.
  Behind the table stand the *floor* (floors.py) of each round, which no client can spare; how many
  times more each client takes, and a *bare* producer, which does nothing but encode, send and read;
  and how many times more than the bare one kafka-python takes: nobody in Python who sleeps while he
  waits can be quicker beside it.

Ratios, how many times more the others take, are medians of the ratios of each round; least and
largest stand behind. Nothing is measured before every client has written the same records, as read
back by confluent-kafka.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from operator import truediv
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import CONFLUENT, OURS, ROOT, Worker, answer, beside, environment, started

THEIRS = 'kafka-python 3.0.12'
CLIENTS = (OURS, THEIRS, CONFLUENT)
RELEASE = '4.4.0'
AT_A_TIME = 1000
KEYS = [b'key-%d' % number for number in range(1000)]
ROWS = ('future', 'kept', 'keyed', 'forget', 'many', 'one')
SINGLE = 'one'
SINGLE_CPU = 'one (CPU)'

Figures = Dict[str, Dict[str, List[float]]]


def values(count: int) -> List[bytes]:
    """Return values that look like small JSON documents, each another one, of 100 bytes."""
    made = []
    for number in range(count):
        text = b'{"id": %d, "user": "u%05d", "state": "open"}' % (number, number * 7919 % 100000)
        made.append((text * 3)[:100])
    return made


# ---------------------------------------------------------------- in the process of one client


class Ours:
    """KafkaProducer of kafka-evergreen, and of kafka-python as far as it has the calls."""

    def __init__(self, address: str, idempotent: bool, options: Dict[str, Any]) -> None:
        """Connect."""
        from kafka import KafkaProducer

        self.producer = KafkaProducer(
            bootstrap_servers=address,
            acks='all' if idempotent else 1,
            enable_idempotence=idempotent,
            **options,
        )

    def future(self, topic: str, records: List[bytes]) -> None:
        """Send one by one."""
        send = self.producer.send
        for value in records:
            send(topic, value)

    def kept(self, topic: str, records: List[bytes]) -> Any:
        """Send one by one and keep the futures."""
        send = self.producer.send
        return [send(topic, value) for value in records]

    def keyed(self, topic: str, records: List[bytes]) -> None:
        """Send one by one, each with a key."""
        send = self.producer.send
        for start in range(0, len(records), AT_A_TIME):
            for value, key in zip(records[start : start + AT_A_TIME], KEYS):
                send(topic, value, key)

    def forget(self, topic: str, records: List[bytes]) -> None:
        """Send without futures."""
        send = getattr(self.producer, 'send_and_forget', self.producer.send)
        for value in records:
            send(topic, value)

    def many(self, topic: str, records: List[bytes]) -> None:
        """Send a thousand a call."""
        if not hasattr(self.producer, 'send_many'):
            self.future(topic, records)
            return
        for start in range(0, len(records), AT_A_TIME):
            self.producer.send_many(topic, records[start : start + AT_A_TIME])

    def single(self, topic: str, value: bytes) -> None:
        """Send one and wait for it."""
        self.producer.send(topic, value).get(30)

    def flush(self) -> None:
        """Wait until all are acknowledged."""
        self.producer.flush(120)


class Confluent:
    """confluent-kafka."""

    def __init__(self, address: str, idempotent: bool, options: Dict[str, Any]) -> None:
        """Connect."""
        from confluent_kafka import Producer

        self.producer = Producer(
            {
                'bootstrap.servers': address,
                'acks': 'all' if idempotent else '1',
                'enable.idempotence': idempotent,
                'queue.buffering.max.messages': 1_000_000,
            }
        )
        self.delivered = 0

    def _delivered(self, error: Any, message: Any) -> None:
        self.delivered += 1

    def _produce(self, topic: str, value: bytes, **more: Any) -> None:
        while True:
            try:
                self.producer.produce(topic, value, **more)
                return
            except BufferError:
                self.producer.poll(0.01)

    def future(self, topic: str, records: List[bytes]) -> None:
        """Send one by one, with a callback each."""
        for number, value in enumerate(records):
            self._produce(topic, value, on_delivery=self._delivered)
            if not number % AT_A_TIME:
                self.producer.poll(0)

    kept = future

    def keyed(self, topic: str, records: List[bytes]) -> None:
        """Send one by one, each with a key."""
        for start in range(0, len(records), AT_A_TIME):
            for value, key in zip(records[start : start + AT_A_TIME], KEYS):
                self._produce(topic, value, key=key, on_delivery=self._delivered)
            self.producer.poll(0)

    def forget(self, topic: str, records: List[bytes]) -> None:
        """Send without callbacks."""
        for value in records:
            self._produce(topic, value)

    def many(self, topic: str, records: List[bytes]) -> None:
        """Send a thousand a call."""
        for start in range(0, len(records), AT_A_TIME):
            batch = [{'value': value} for value in records[start : start + AT_A_TIME]]
            while batch:
                self.producer.produce_batch(topic, batch)
                batch = [each for each in batch if each.get('_error') is not None]
                for each in batch:
                    del each['_error']
                if batch:
                    self.producer.poll(0.01)

    def single(self, topic: str, value: bytes) -> None:
        """Send one and wait for it."""
        self.producer.produce(topic, value)
        self.producer.flush(30)

    def flush(self) -> None:
        """Wait until all are acknowledged."""
        if self.producer.flush(120):
            raise SystemExit('some records were not acknowledged')


class Runner:
    """What a worker does on command."""

    def __init__(self, client: str, address: str, idempotent: bool) -> None:
        """Connect by the client of that name."""
        made = Confluent if client == CONFLUENT else Ours
        self.client: Any = made(address, idempotent, {})
        self.address = address
        self.records: List[bytes] = []

    def run(self, row: str, topic: str, count: int) -> Tuple[float, float]:
        """Return CPU seconds, and seconds of the clock (*one*: their median), for a record."""
        if len(self.records) != count:
            self.records = values(count)
        if row == SINGLE:
            times = []
            spent_before = time.process_time()
            for value in self.records:
                began = time.perf_counter()
                self.client.single(topic, value)
                times.append(time.perf_counter() - began)
            return (time.process_time() - spent_before) / count, statistics.median(times)
        began, wall = time.process_time(), time.perf_counter()
        kept = getattr(self.client, row)(topic, self.records)
        self.client.flush()
        spent = (time.process_time() - began) / count, (time.perf_counter() - wall) / count
        del kept
        return spent

    def idle(self, seconds: float) -> float:
        """Return the share of a core that is spent while nothing happens."""
        began, wall = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        return (time.process_time() - began) / (time.perf_counter() - wall)

    def floors(self, topic: str, count: int) -> List[float]:
        """Return the floor of one in flight and what a bare producer takes; kafka-evergreen."""
        import floors

        return [measure(self.address, topic, count) for measure in (floors.floor, floors.bare)]

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic, much faster than Kafka's own tool does."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({'bootstrap.servers': self.address})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def read(self, topic: str, count: int) -> int:
        """Return a number that depends on each of so many values, in whatever order."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({'bootstrap.servers': self.address, 'group.id': 'check'})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found, deadline = [], time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            found += [m.value() for m in consumer.consume(count, 0.2) if m.error() is None]
        consumer.close()
        if sorted(found) != sorted(values(count)):
            raise SystemExit('%s does not hold what was sent' % topic)
        return len(found)


# ---------------------------------------------------------------- the comparison


@contextlib.contextmanager
def broker(options: argparse.Namespace) -> Iterator[Any]:
    """Yield a cluster of one broker; only its address for one that runs already."""
    if options.address:
        yield argparse.Namespace(bootstrap=options.address)
        return
    with started(options.release) as cluster:
        yield cluster


def measure(
    workers: Dict[str, Worker], options: argparse.Namespace
) -> Tuple[Figures, Figures, List[List[float]]]:
    """Return CPU and clock seconds per record of each row, client and round; and the floors."""
    floors: List[List[float]] = []
    rows = [row for row in ROWS if options.only in row]
    shown = rows + [SINGLE_CPU] * (SINGLE in rows)
    cpu: Figures = {row: {client: [] for client in workers} for row in shown}
    clock: Figures = {row: {client: [] for client in workers} for row in shown}
    for row in rows:
        for number, (client, worker) in enumerate(workers.items()):
            topic = '%s-%d' % (row, number)
            workers[CONFLUENT].ask('create', topic, options.partitions)
            worker.ask('run', row, topic, 2000)
            workers[CONFLUENT].ask('read', topic, 2000)
            print('the same records: %s by %s' % (row, client), file=sys.stderr, flush=True)
    for turn in range(options.rounds):
        for row in rows:
            for number, (client, worker) in enumerate(workers.items()):
                count = options.singles if row == SINGLE else options.records
                spent = worker.ask('run', row, '%s-%d' % (row, number), count)
                if row == SINGLE:
                    cpu[SINGLE_CPU][client].append(spent[0])
                    clock[SINGLE_CPU][client].append(spent[1])
                cpu[row][client].append(spent[row == SINGLE])
                clock[row][client].append(spent[1])
            if row == SINGLE:
                floors.append(workers[OURS].ask('floors', SINGLE + '-0', options.singles))
        print('round %d of %d' % (turn + 1, options.rounds), file=sys.stderr, flush=True)
    return cpu, clock, floors


def report(cpu: Figures, clock: Figures, floors: List[List[float]]) -> None:
    """Print the table, and the floors."""
    print('\n| us per record | %s | %s | %s |' % (OURS, THEIRS, CONFLUENT))
    print('|---|---|---|---|')
    for row, by_client in cpu.items():
        mine = by_client[OURS]
        rate = 1 / statistics.median(clock[row][OURS])
        cells = ['%.3f (%d records/s)' % (statistics.median(mine) * 1e6, rate)]
        for client in (THEIRS, CONFLUENT):
            cells.append(beside(mine, by_client[client]))
        print('| %s | %s |' % (row, ' | '.join(cells)))
    if floors:
        plain, bare = map(list, zip(*floors))
        times = [
            '%s %s' % (client, spread(each, plain))
            for client, each in [('bare', bare), *cpu[SINGLE].items()]
        ]
        floor = statistics.median(plain) * 1e6
        print('\nfloor of one in flight: %.0f us; %s' % (floor, ', '.join(times)))
        print('%s, of the bare producer: %s' % (THEIRS, spread(cpu[SINGLE][THEIRS], bare)))


def spread(times: List[float], others: List[float]) -> str:
    """Return how many times more than others something takes: median, least and most of rounds."""
    ratios = list(map(truediv, times, others))
    return '%.2fx (%.2f to %.2f)' % (statistics.median(ratios), min(ratios), max(ratios))


def compare(options: argparse.Namespace) -> None:
    """Start everything, check, measure, report."""
    pythons = {client: environment(client) for client in CLIENTS}
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(broker(options))
        workers = {}
        for client, python in pythons.items():
            arguments = [cluster.bootstrap, str(int(options.idempotent))]
            workers[client] = Worker(client, python, __file__, arguments)
            stack.callback(workers[client].close)
        report(*measure(workers, options))
        if options.idle:
            share = workers[OURS].ask('idle', options.idle)
            print('\nidle: %.4f %% of a core' % (share * 100))
        if options.stalled:
            workers[CONFLUENT].ask('create', 'stalled', options.partitions)
            fill(cluster, pythons[OURS], options.stalled << 20)


def fill(cluster: Any, python: Path, buffer_memory: int) -> None:
    """Print what a producer of kafka-evergreen holds when its broker hangs."""
    script = str(Path(__file__).with_name('stalled.py'))
    command = [str(python), '-I', script, cluster.bootstrap, 'stalled', str(buffer_memory)]
    (node,) = cluster.nodes
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        before = int(process.stdout.readline())
        cluster.pause(node)
        try:
            process.stdin.write('\n')
            process.stdin.flush()
            count, after = map(int, process.stdout.readline().split())
        finally:
            cluster.resume(node)
    print(
        'stalled: %d records until it blocked; %.1f MiB in memory before, %.1f after: buffer_memory'
        ' (%.0f) and %.1f'
        % (count, *(size / 2**20 for size in (before, after, buffer_memory, after - buffer_memory)))
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--release', default=RELEASE, help='of the broker (default %s)' % RELEASE)
    parser.add_argument('--address', help='of a broker that runs already, host:port')
    parser.add_argument('--rounds', type=int, default=5, help='rounds to measure (default 5)')
    parser.add_argument('--records', type=int, default=100_000, help='a round (default 100000)')
    parser.add_argument('--singles', type=int, default=1000, help='one in flight (default 1000)')
    parser.add_argument('--partitions', type=int, default=6, help='of each topic (default 6)')
    parser.add_argument('--only', default='', help='only rows whose name contains this text')
    parser.add_argument('--idempotent', action='store_true', help='acks=all, idempotence')
    parser.add_argument('--idle', type=float, default=0, help='seconds to watch an idle producer')
    parser.add_argument(
        '--stalled', type=int, default=0, help='buffer_memory (MiB) to fill while the broker hangs'
    )
    parser.add_argument('--worker', nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        client, address, idempotent = options.worker
        if client == OURS:
            sys.path.insert(0, str(ROOT))
        runner = Runner(client, address, bool(int(idempotent)))
        answer(lambda name, *arguments: getattr(runner, name)(*arguments))
    else:
        compare(options)


if __name__ == '__main__':
    main()
