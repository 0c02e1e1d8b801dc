"""``python -m test.testing.kill_rounds --rounds 50``: kill -9 while records are acknowledged.

A broker process with ``--data`` and ``--fsync`` is written to with acks=all, one thread for each
partition, and killed at a moment that a seed chooses. The next one, in the same folder, must have
every acknowledged record exactly where it was acknowledged, once, in order, and beside those only
what was on its way when the broker was killed. Half of the files get a torn end before that start,
as of a power cut. At the end the recovery of a folder of 1 GiB is measured: a second for each GiB
is the most. ``--client confluent`` writes with confluent-kafka's idempotent producer instead.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kafka import KafkaClient
from kafka.common import FetchRequest, KafkaError, ProduceRequest
from kafka.protocol import create_message_set
from kafka.record.default_records import encode_batch
from kafka.testing import Cluster
from kafka.testing.logs.partition_log import Batch
from kafka.testing.logs.segments import sealed
from kafka.testing.storage.cluster_storage import Storage
from test.sources import ROOT

TOPIC = 'kill-rounds'
#: Seconds after the first answer in which the broker is killed.
SOONEST, LATEST = 0.02, 0.6
GIB = 1 << 30

TORN_BATCH = encode_batch([(1, None, b'never acknowledged', ())])
TORN_LINE = sealed([['topic', 'never-made'], None])


class Sent(NamedTuple):
    """A batch of records as it was sent; ``offset`` is None if nobody answered."""

    values: Tuple[bytes, ...]
    offset: Optional[int]


class Child:
    """A broker process in a folder."""

    def __init__(self, data: Path, partitions: int) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, '-m', 'kafka', 'broker', '--port', '0', '--fsync'),
                *('--data', str(data), '--topic', '%s:%d' % (TOPIC, partitions)),
            ],
            env={**os.environ, 'PYTHONPATH': ROOT},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = ''
        assert self.process.stdout is not None and self.process.stderr is not None
        while 'Stop with' not in said:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError('the broker did not start: %s' % self.process.stderr.read())
            said += line
        found = re.search('Clients start with: (.+)', said)
        assert found is not None
        self.bootstrap = found.group(1)

    def end(self, number: int) -> str:
        """End it by a signal; return what it logged."""
        self.process.send_signal(number)
        return self.process.communicate()[1]


class Ledger:
    """What was sent to one partition, in order."""

    def __init__(self) -> None:
        self.sent: List[Sent] = []
        self._count = 0

    def next_values(self, chance: random.Random) -> List[bytes]:
        """Return values that nobody has sent yet."""
        first, self._count = self._count, self._count + chance.choice((1, 1, 3, 20, 200))
        return [b'%d %s' % (number, b'x' * 80) for number in range(first, self._count)]

    @property
    def acknowledged(self) -> int:
        """How many records were."""
        return sum(len(each.values) for each in self.sent if each.offset is not None)

    def check(self, values: Sequence[bytes]) -> None:
        """Compare with what is in the log, by offset. Raises AssertionError."""
        offset = 0
        for batch in self.sent:
            here = tuple(values[offset : offset + len(batch.values)])
            if batch.offset is None:
                offset += len(here) if here == batch.values else 0
                continue
            assert batch.offset == offset, 'acknowledged at %d, found at %d: %r' % (
                batch.offset,
                offset,
                batch.values[0],
            )
            assert here == batch.values, 'other records at offset %d: %r' % (offset, here[:1])
            offset += len(here)
        assert offset == len(values), 'records nobody sent from offset %d on' % offset


def write(
    bootstrap: str, partition: int, ledger: Ledger, chance: random.Random, began: Any
) -> None:
    """Write to a partition until the broker is gone."""
    client = KafkaClient(bootstrap, timeout=10)
    try:
        while True:
            values = ledger.next_values(chance)
            messages = create_message_set([(value, None) for value in values])
            request = ProduceRequest(TOPIC.encode(), partition, messages)
            try:
                [answer] = client.send_produce_request([request], acks=-1, fail_on_error=False)
                offset = None if isinstance(answer, Exception) else answer.offset
            except (KafkaError, OSError):
                offset = None
            ledger.sent.append(Sent(tuple(values), offset))
            if offset is None:
                return
            began.set()
    finally:
        client.close()


def write_by_confluent(
    bootstrap: str, partition: int, ledger: Ledger, chance: random.Random, began: Any
) -> None:
    """Write with an idempotent producer, many records at once, until the broker is gone."""
    from confluent_kafka import KafkaException, Producer  # an optional package

    producer = Producer(
        {
            'bootstrap.servers': bootstrap,
            'enable.idempotence': True,
            'linger.ms': 1,
            'message.timeout.ms': 2000,
            'log_level': 0,
        }
    )
    sent: List[Sent] = []
    is_over = False

    def delivered(error: Any, message: Any) -> None:
        nonlocal is_over
        is_over = is_over or error is not None
        if error is None:
            began.set()
        sent.append(Sent((message.value(),), None if error else message.offset()))

    while not is_over:
        for value in ledger.next_values(chance):
            producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
        producer.poll(0.001)
        if len(producer) > 2000:
            producer.flush(0.01)
    try:
        producer.purge()
    except KafkaException:
        pass
    producer.flush(3)
    ledger.sent += sorted(sent, key=lambda each: int(each.values[0].split()[0]))


WRITERS = {'own': write, 'confluent': write_by_confluent}


def read(bootstrap: str, partition: int) -> List[bytes]:
    """Return the values in a partition, by offset."""
    client = KafkaClient(bootstrap, timeout=10)
    values: List[bytes] = []
    try:
        while True:
            from_here = _fetched(client, partition, len(values))
            if not from_here:
                return values
            values += from_here
    finally:
        client.close()


def _fetched(client: KafkaClient, partition: int, offset: int) -> List[bytes]:
    request = FetchRequest(TOPIC.encode(), partition, offset, 4 << 20)
    [answer] = client.send_fetch_request([request], max_wait_time=0, min_bytes=0)
    found = []
    for message in answer.messages:
        if message.offset >= offset:
            assert message.offset == offset + len(found), 'offset %d is missing' % offset
            found.append(message.message.value)
    return found


def one_round(
    data: Path, ledgers: Dict[int, Ledger], chance: random.Random, client: str = 'own'
) -> str:
    """Start a broker, write to it, kill it; return what the broker logged at its start."""
    child = Child(data, len(ledgers))
    began = threading.Event()
    threads = [
        threading.Thread(
            target=WRITERS[client],
            args=(child.bootstrap, index, ledger, random.Random(chance.random()), began),
        )
        for index, ledger in ledgers.items()
    ]
    for thread in threads:
        thread.start()
    is_alive = began.wait(30)
    time.sleep(chance.uniform(SOONEST, LATEST))
    logged = child.end(signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert is_alive, 'nothing was acknowledged in 30 seconds: %s' % logged
    return logged


def tear(data: Path, chance: random.Random) -> None:
    """Leave behind what was not written whole, as a power cut does and a kill hardly ever."""
    for path in sorted([*data.glob('logs/*/*.log'), data / 'journal']):
        if chance.random() < 0.5:
            whole = TORN_LINE if path.suffix != '.log' else TORN_BATCH
            with path.open('ab') as file:
                file.write(whole[: chance.randrange(1, len(whole))])


def verify(data: Path, ledgers: Dict[int, Ledger]) -> str:
    """Start a broker and compare all of its records; return what it logged."""
    child = Child(data, len(ledgers))
    try:
        for index, ledger in ledgers.items():
            ledger.check(read(child.bootstrap, index))
    finally:
        logged = child.end(signal.SIGKILL)
    return logged


def fill(data: Path, size_bytes: int, batch_bytes: int) -> int:
    """Fill a folder as a killed broker leaves it; return the number of records."""
    count = max(1, batch_bytes // 110)
    batch = encode_batch([(1, None, b'x' * 100, ())] * count)
    cluster = Cluster(data=data)
    storage = cluster._open_storage()
    assert storage is not None
    cluster.state.controller_id = 0
    log = cluster.state.create_topic(TOPIC, 1).partitions[0].log
    for _ in range(size_bytes // len(batch)):
        log.append(Batch(0, count - 1, 1, 2, batch), 0)
        storage.commit()
    records = log.end_offset
    segment = max(data.glob('logs/*/*.log'))
    with segment.open('ab') as file:
        file.write(batch[: len(batch) // 2])  # torn
    _drop(storage)
    return records


def _drop(storage: Storage) -> None:
    """Let go of a folder as a process does that is killed: nothing is written."""
    storage._journal.close()
    storage._files.close_all()
    storage.folder.close()


class Measured(NamedTuple):
    """Seconds of recovery, those of them on the CPU, those until a new process can be asked."""

    seconds: float
    cpu_seconds: float
    process_seconds: float
    records: int


def measure(size_bytes: int, batch_bytes: int) -> Measured:
    """Fill a folder, and measure how long the next start takes."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / 'data'
        records = fill(data, size_bytes, batch_bytes)
        cluster = Cluster(data=data)
        before, cpu_before = time.monotonic(), time.process_time()
        storage = cluster._open_storage()
        seconds, cpu = time.monotonic() - before, time.process_time() - cpu_before
        assert storage is not None
        _drop(storage)
        found = cluster.state.topics[TOPIC].partitions[0].log.end_offset
        assert found == records, 'there are %d records, not %d' % (found, records)
        before = time.monotonic()
        child = Child(data, 1)
        process_seconds = time.monotonic() - before
        child.end(signal.SIGKILL)
    return Measured(seconds, cpu, process_seconds, records)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run all rounds and tell of them; return 1 when recovery was slow.

    Raises AssertionError when something acknowledged is not there.
    """
    parser = argparse.ArgumentParser(prog='python -m test.testing.kill_rounds', description=__doc__)
    parser.add_argument('--rounds', type=int, default=50)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--partitions', type=int, default=3)
    parser.add_argument('--client', choices=sorted(WRITERS), default='own')
    parser.add_argument('--recover', type=int, default=GIB, help='bytes to recover, 0 for none')
    parser.add_argument('--batch', type=int, default=16384, help='bytes of each batch of these')
    options = parser.parse_args(words)
    logging.getLogger('kafka').setLevel(logging.CRITICAL)  # that brokers die is no news
    chance = random.Random(options.seed)
    ledgers = {index: Ledger() for index in range(options.partitions)}
    cut = 0
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / 'data'
        for number in range(1, options.rounds + 1):
            one_round(data, ledgers, chance, options.client)
            tear(data, chance)
            cut += verify(data, ledgers).count('cut off')
            acknowledged = sum(ledger.acknowledged for ledger in ledgers.values())
            _say('round %d: %d records acknowledged, all there' % (number, acknowledged))
    _say('%d torn ends were cut off' % cut)
    if options.recover:
        found = measure(options.recover, options.batch)
        _say(
            'recovery of %d MiB, %d records: %.3f s, %.3f s on the CPU; with the start of a process'
            ' %.3f s'
            % (
                options.recover >> 20,
                found.records,
                found.seconds,
                found.cpu_seconds,
                found.process_seconds,
            )
        )
        if found.seconds > options.recover / GIB:
            return 1
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + '\n')
    sys.stdout.flush()


if __name__ == '__main__':
    sys.exit(main())
