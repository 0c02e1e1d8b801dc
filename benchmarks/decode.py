"""
Decoding records: kafka-evergreen beside kafka-python 1.4.7 and 3.0.12, CPU time per record.

``python benchmarks/decode.py`` makes a virtual environment for each of the three under
``.cache/benchmarks`` (same interpreter, same helper wheels, crc32c among them), gives all of them
the same bytes, checks that they read the same records from them, and then measures in rounds: every
round decodes each shape with each client in turn, so that a slow moment of the machine hits all.

Measured is the user and system time of the decoding process from the records of one partition of a
fetch response, 4,000 in 8 batches, to a list of objects that have ``offset``, ``timestamp``,
``key``, ``value`` and ``headers``. What is compared is what a program gets in the end, and there
are several tables because the clients divide the way there differently:

* *consumer*: the entrances that consumers decode by. kafka-python's fetcher takes the bytes to
  ``ConsumerRecord``: ``Fetcher._unpack_message_set`` in 1.4.7, ``Fetcher.PartitionRecords`` in
  3.0.12, with ``check_crcs`` on, the default, and without deserializers. This is like for like:
  a list of the objects whose attributes a program reads.
* *reader*: kafka-python's record readers without its fetcher, ``MemoryRecords`` and the check of
  each batch. Programs never see these objects, which lack topic and partition, as ours do; but
  nothing except decoding is in this table. 1.4.7 and 3.0.12 check no CRC inside compressed message
  sets here.
* *simple*: the entrance of ``SimpleConsumer``, by which programs of the era of message sets read
  them, from the bytes of a fetch response of version 0 to ``OffsetAndMessage`` tuples, by
  ``KafkaProtocol.decode_fetch_response``; 3.0.12 has none. 1.4.7 checks no CRC here, ours are all
  checked.

``kafka-evergreen`` goes the same way in the first two tables, from ``MemoryRecords`` to ``Record``;
each byte is covered by a CRC that is checked. Ratios are medians of the ratios of each round.

The column *floor* is what no reader in Python that makes such objects can go below, with our own
code: one CRC over all bytes, decompression, and the records made by one ``map()`` from fields that
are ready. A ratio is followed by what it would be at the floor: where that is under 5, nothing but
another decompressor could reach 5.

Python 3.8 to 3.11 only: kafka-python 1.4.7 does not import on later ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / '.cache' / 'benchmarks'
WHEELS = ('crc32c', 'python-snappy', 'lz4', 'xxhash', 'zstandard', 'isal')
CLIENTS: Dict[str, Tuple[str, ...]] = {
    'kafka-evergreen': ('six',),
    'kafka-python 1.4.7': ('kafka-python==1.4.7',),
    'kafka-python 3.0.12': ('kafka-python==3.0.12',),
}
OURS = 'kafka-evergreen'
FLOOR = 'floor'
WITHOUT_SIMPLE = 'kafka-python 3.0.12'
TABLES = {
    'consumer': 'To what the consumer hands out',
    'reader': 'By the record readers alone',
    'simple': 'To what SimpleConsumer hands out (message sets of magic 0)',
}
BATCHES = 8
RECORDS = 500
RECORDS_PER_ROUND = 20000

Times = Dict[str, Dict[str, List[float]]]
Shape = Tuple[int, int, List[Tuple[int, Any, Any, List[Tuple[str, bytes]]]]]


def shapes() -> Iterator[Tuple[str, Shape]]:
    """Yield name and (magic, codec, records of one batch) of everything that is measured."""
    rng = random.Random(20)
    start = 1600000000000
    times = [start + i // 7 for i in range(RECORDS)]

    def text(size: int) -> bytes:
        words = b'{"id": %d, "user": "u%05d", "amount": %d.%02d, "state": "open"}' % (
            rng.randrange(10**6),
            rng.randrange(10**5),
            rng.randrange(1000),
            rng.randrange(100),
        )
        return (words * 8)[:size]

    equal = [(t, None, text(100), []) for t in times]
    varying = [(t, None, text(rng.randrange(60, 140)), []) for t in times]
    keyed = [(t, b'key-%d' % rng.randrange(10**4), v, []) for t, _, v, _ in varying]
    header = [(t, k, v, [('content-type', b'application/json')]) for t, k, v, _ in keyed]
    traced = [(t, k, v, [('trace', b'%016x' % rng.getrandbits(64))]) for t, k, v, _ in keyed]
    yield 'v2 null key, equal lengths', (2, 0, equal)
    yield 'v2 null key', (2, 0, varying)
    yield 'v2 keyed', (2, 0, keyed)
    yield 'v2 keyed, one header', (2, 0, header)
    yield 'v2 keyed, unique headers', (2, 0, traced)
    for codec, name in ((1, 'gzip'), (2, 'snappy'), (3, 'lz4')):
        yield 'v2 keyed, one header, ' + name, (2, codec, header)
    for magic in (0, 1):
        yield 'v%d null key, equal lengths' % magic, (magic, 0, equal)
        yield 'v%d null key' % magic, (magic, 0, varying)
        yield 'v%d keyed' % magic, (magic, 0, keyed)
        for codec, name in ((1, 'gzip'), (2, 'snappy')):
            yield 'v%d null key, %s' % (magic, name), (magic, codec, varying)
            yield 'v%d keyed, %s' % (magic, name), (magic, codec, keyed)


def encode(shape: Shape) -> bytes:
    """Encode ``BATCHES`` batches of a shape, as one partition of a fetch response."""
    from kafka.record.default_records import encode_batch
    from kafka.record.legacy_records import encode_message_set

    magic, codec, records = shape
    parts = []
    for number in range(BATCHES):
        base = number * len(records)
        if magic == 2:
            parts.append(encode_batch(records, base_offset=base, codec=codec))
        else:
            messages = [(base + i, r[0], r[1], r[2]) for i, r in enumerate(records)]
            parts.append(encode_message_set(messages, magic=magic, codec=codec))
    return b''.join(parts)


def decode_ours(data: bytes) -> List[Any]:
    """Decode with the reader of this repository."""
    from kafka.record.memory_records import MemoryRecords

    out: List[Any] = []
    for batch in MemoryRecords(data):
        out.extend(batch)
    return out


class Floor:
    """Do what every reader has to, with everything else done before."""

    def __init__(self) -> None:
        """Prepare nothing yet."""
        self.prepared: Dict[int, List[Any]] = {}

    def __call__(self, data: bytes) -> List[Any]:
        """Check and decompress the bytes of each batch, and make its records from ready columns."""
        from kafka.codec import DEFAULT_LIMIT_BYTES, decompress
        from kafka.record.record import Record

        if id(data) not in self.prepared:
            self.prepared[id(data)] = list(self.prepare(data))
        out: List[Any] = []
        for magic, codec, check, checked, packed, columns in self.prepared[id(data)]:
            check(checked)
            if codec:
                decompress(codec, packed, magic, DEFAULT_LIMIT_BYTES)
            out.extend(map(Record, zip(*columns)))
        return out

    def prepare(self, data: bytes) -> Iterator[Tuple[Any, ...]]:
        """Yield what is needed of each batch."""
        from zlib import crc32

        from kafka.record.crc32c import crc32c
        from kafka.record.legacy_decoder import decode_message
        from kafka.record.memory_records import MemoryRecords

        start = 0
        for batch in MemoryRecords(data):
            columns = list(zip(*batch))
            raw = data[start : start + batch.size_in_bytes]
            start += len(raw)
            if batch.magic == 2:
                yield 2, batch.codec, crc32c, raw[21:], raw[61:], columns
            else:
                packed = decode_message(raw[12:]).value if batch.codec else b''
                yield batch.magic, batch.codec, crc32, raw[16:], packed, columns


def read_theirs(data: bytes) -> List[Any]:
    """Decode with kafka-python's record readers (the interface did not change in seven years)."""
    from kafka.record.memory_records import MemoryRecords

    out: List[Any] = []
    records = MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise ValueError('wrong CRC')
        out.extend(batch)
    return out


def consume_theirs(data: bytes) -> List[Any]:
    """Decode with kafka-python's fetcher."""
    from kafka.consumer.fetcher import Fetcher

    from kafka.record.memory_records import MemoryRecords
    from kafka.structs import TopicPartition

    partition, records = TopicPartition('topic', 0), MemoryRecords(data)
    if hasattr(Fetcher, '_unpack_message_set'):  # 1.4.7
        fetcher = Fetcher.__new__(Fetcher)
        fetcher.config = {
            'check_crcs': True,
            'key_deserializer': None,
            'value_deserializer': None,
        }
        return list(fetcher._unpack_message_set(partition, records))
    unpacked = Fetcher.PartitionRecords(0, partition, records)
    out: List[Any] = []
    while True:
        taken = list(unpacked.take(500))
        if not taken:
            return out
        out += taken


def fetch_response(data: bytes) -> bytes:
    """Return the body of a fetch response of version 0 with one partition."""
    partition = struct.pack('>iihqi', 1, 0, 0, BATCHES * RECORDS, len(data)) + data
    return struct.pack('>ih5s', 1, 5, b'topic') + partition


def simple_ours(data: bytes) -> List[Any]:
    """Decode as our SimpleConsumer."""
    from kafka.protocol import KafkaProtocol

    correlation_id = bytes(4)
    (response,) = KafkaProtocol.decode_fetch_response(correlation_id + fetch_response(data))
    return list(response.messages)


def simple_theirs(data: bytes) -> List[Any]:
    """Decode as the SimpleConsumer of 1.4.7."""
    from kafka.protocol.fetch import FetchResponse
    from kafka.protocol.legacy import KafkaProtocol

    decoded = FetchResponse[0].decode(fetch_response(data))
    (response,) = KafkaProtocol.decode_fetch_response(decoded)
    return list(response.messages)


def fields(record: Any) -> Tuple[Any, ...]:
    """Return everything that a record says."""
    if hasattr(record, 'message'):
        return record.offset, record.message.key, record.message.value
    return record.offset, record.timestamp, record.key, record.value, list(record.headers)


def fingerprint(records: Sequence[Any]) -> str:
    """Digest everything the records say, to prove that all clients read the same."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(fields(record)).encode())
    return digest.hexdigest()


def work(decoders: Dict[str, Callable[[bytes], List[Any]]], folder: Path, read: bool) -> None:
    """Answer commands from standard input: the name of a table, a shape, how often to decode it."""
    import gc

    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for line in sys.stdin:
        table, name, count = json.loads(line)
        decode, data = decoders[table], files[name]
        if not count:
            print(json.dumps(fingerprint(decode(data))), flush=True)
            continue
        records: List[Any] = []
        gc.collect()
        before = time.process_time()
        for _ in range(count):
            records = decode(data)
            if read:
                for record in records:
                    fields(record)
            records.clear()
        print(json.dumps(time.process_time() - before), flush=True)


class Worker:
    """One client in a process of its own."""

    def __init__(self, client: str, python: Path, folder: Path, hand_on: List[str]) -> None:
        """Start the process; ``hand_on`` are options of this one."""
        command = [str(python), '-I', __file__, '--worker', client, str(folder), *hand_on]
        self.client = client
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
        )

    def ask(self, *command: Any) -> Any:
        """Send one command and wait for its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + '\n')
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise SystemExit('%s ended; its message stands above' % self.client)
        return json.loads(answer)

    def close(self) -> None:
        """End the process and wait for it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def environment(client: str) -> Path:
    """Return the interpreter of a client's virtual environment; make it when it is not there."""
    version = '%d.%d' % sys.version_info[:2]
    home = CACHE / ('%s on %s' % (client, version)).replace(' ', '-')
    python = home / ('Scripts' if os.name == 'nt' else 'bin') / 'python'
    done = home / 'complete'
    if not done.exists():
        print('making the environment of %s ...' % client, flush=True)
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
        subprocess.run(command + list(CLIENTS[client] + WHEELS), check=True)
        done.touch()
    return python


def measure(workers: List[Worker], table: str, names: List[str], rounds: int) -> Times:
    """Return the CPU seconds per record of each shape, client and round."""
    times: Times = {name: {worker.client: [] for worker in workers} for name in names}
    count = max(1, RECORDS_PER_ROUND // (BATCHES * RECORDS))
    for number in range(rounds + 1):
        for name in names:
            for worker in workers:
                seconds = worker.ask(table, name, count)
                if number:  # the first round warms up
                    times[name][worker.client].append(seconds / (count * BATCHES * RECORDS))
        print('%s: round %d of %d' % (table, number, rounds), file=sys.stderr, flush=True)
    return times


def report(title: str, times: Times) -> float:
    """Print a table and return the smallest ratio in it."""
    measured = next(iter(times.values()))
    others = [client for client in CLIENTS if client != OURS and client in measured]
    print('\n%s\n' % title)
    print('| ns of CPU per record | %s | %s | %s |' % (OURS, FLOOR, ' | '.join(others)))
    print('|---|---|---|%s' % ('---|' * len(others)))
    least = float('inf')
    for name, row in times.items():
        cells = ['%.0f' % (statistics.median(row[client]) * 1e9) for client in (OURS, FLOOR)]
        for client in others:
            ratio, most = (
                statistics.median(b / a for a, b in zip(row[mine], row[client]))
                for mine in (OURS, FLOOR)
            )
            least = min(least, ratio)
            theirs = statistics.median(row[client]) * 1e9
            cells.append('%.0f (%.1fx of %.1fx)' % (theirs, ratio, most))
        print('| %s | %s |' % (name, ' | '.join(cells)))
    return least


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--rounds', type=int, default=9, help='rounds to measure (default 9)')
    parser.add_argument('--only', default='', help='only shapes whose name contains this text')
    parser.add_argument('--without', default='', help='packages to hide from all, comma-joined')
    parser.add_argument('--read', action='store_true', help='also read the five attributes')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    parser.add_argument('--write', help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.modules.update(dict.fromkeys(filter(None, options.without.split(','))))
    if options.worker:
        client, folder = options.worker
        if client in (OURS, FLOOR):
            sys.path.insert(0, str(ROOT))
            decode = decode_ours if client == OURS else Floor()
            decoders: Dict[str, Callable[[bytes], List[Any]]] = dict.fromkeys(TABLES, decode)
            if client == OURS:
                decoders['simple'] = simple_ours
        else:
            decoders = {'consumer': consume_theirs, 'reader': read_theirs, 'simple': simple_theirs}
        work(decoders, Path(folder), options.read)
        return
    if options.write:
        sys.path.insert(0, str(ROOT))
        for name, shape in shapes():
            (Path(options.write) / name).write_bytes(encode(shape))
        return
    hand_on = ['--read'] * options.read + ['--without', options.without]
    compare(options.rounds, options.only, hand_on)


def compare(rounds: int, only: str, hand_on: List[str]) -> None:
    """Make the environments and the bytes, check, measure, report."""
    pythons = {client: environment(client) for client in CLIENTS}
    pythons[FLOOR] = pythons[OURS]
    folder = CACHE / 'bytes'
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    names = [name for name, _ in shapes() if only in name]
    subprocess.run([str(pythons[OURS]), '-I', __file__, '--write', str(folder)], check=True)
    workers = [Worker(client, python, folder, hand_on) for client, python in pythons.items()]
    try:
        for table, title in TABLES.items():
            shown, asked = names, workers
            if table == 'simple':
                shown = [name for name in names if name.startswith('v0')]
                asked = [worker for worker in workers if worker.client != WITHOUT_SIMPLE]
            for name in shown:
                # The floor makes records whatever the table.
                readers = [worker for worker in asked if worker.client != FLOOR]
                if len({worker.ask(table, name, 0) for worker in readers}) != 1:
                    raise SystemExit('the clients read different records from %r' % name)
            if shown:
                least = report(title, measure(asked, table, shown, rounds))
                print('\nleast ratio: %.1fx' % least)
    finally:
        for worker in workers:
            worker.close()


if __name__ == '__main__':
    main()
