"""
Decoding records: kafka-evergreen beside kafka-python 1.4.7 and 3.0.12, CPU time per record.

``python benchmarks/decode.py`` makes a virtual environment for each of the three under
``.cache/benchmarks`` (same interpreter, same helper wheels, crc32c among them), gives all of them
the same bytes, checks that they read the same records from them, and then measures in rounds: every
round decodes each shape with each client in turn, so that a slow moment of the machine hits all.

Measured is the user and system time of the decoding process from the records of one partition of a
fetch response, 4,000 in 8 batches, to objects that have ``offset``, ``timestamp``, ``key``,
``value`` and ``headers``. What is compared is what a program gets in the end, and there are several
tables because the clients divide the way there differently:

* *consumer*: the entrances that consumers decode by, and a program that takes one record after the
  other. kafka-python's fetcher takes the bytes to ``ConsumerRecord``, with ``check_crcs`` on, the
  default, and without deserializers: ``Fetcher._unpack_message_set`` in 1.4.7, which makes a list
  of a whole fetch, ``Fetcher.PartitionRecords`` in 3.0.12, from which 500 are taken at a time. Ours
  makes each record when it is asked for; one that is dropped before the next never meets the cyclic
  collector.
* *list*: the same entrances, but a list of all 4,000 records is made, as ``poll()`` hands it out.
* *reader*: kafka-python's record readers without its fetcher, ``MemoryRecords`` and the check of
  each batch, to a list. Programs never see these objects, which lack topic and partition, as ours
  do; but nothing except decoding is in this table. 1.4.7 and 3.0.12 check no CRC inside compressed
  message sets here.
* *simple*: the entrance of ``SimpleConsumer``, by which programs of the era of message sets read
  them, from the bytes of a fetch response of version 0 to a list of ``OffsetAndMessage`` tuples, by
  ``KafkaProtocol.decode_fetch_response``; 3.0.12 has none. 1.4.7 checks no CRC here, ours are all
  checked.

``kafka-evergreen`` goes the same way in the first three tables, from ``MemoryRecords`` to
``Record``; each byte is covered by a CRC that is checked. Ratios are medians of the ratios of each
round.

The column *floor* is what no reader in Python that makes such objects can go below, with our own
code: one CRC over all bytes, decompression, and the records made by one ``map()`` from fields that
are ready. A ratio is followed by what it would be at the floor: where that is under 5, nothing but
another decompressor could reach 5.

Python 3.8 to 3.11 only: kafka-python 1.4.7 does not import on later ones.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import struct
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import CACHE, OURS, ROOT, Worker, answer, environment

# Compared here; workers.py knows more clients.
THEIRS = ('kafka-python 1.4.7', 'kafka-python 3.0.12')
FLOOR = 'floor'
WITHOUT_SIMPLE = 'kafka-python 3.0.12'
TABLES = {
    'consumer': 'To what the consumer hands out, one after the other',
    'list': 'To a list of what the consumer hands out',
    'reader': 'To a list, by the record readers alone',
    'simple': 'To a list of what SimpleConsumer hands out (message sets of magic 0)',
}
BATCHES = 8
RECORDS = 500
RECORDS_PER_ROUND = 20000

Decoder = Callable[[bytes], Iterable[Any]]
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


def decode_ours(data: bytes) -> Iterable[Any]:
    """Decode with the reader of this repository."""
    from kafka.record.memory_records import MemoryRecords

    return chain.from_iterable(MemoryRecords(data))


class Floor:
    """Do what every reader has to, with everything else done before."""

    def __init__(self) -> None:
        """Prepare nothing yet."""
        self.prepared: Dict[int, List[Any]] = {}

    def __call__(self, data: bytes) -> Iterable[Any]:
        """Return the records of all batches."""
        if id(data) not in self.prepared:
            self.prepared[id(data)] = list(self.prepare(data))
        return chain.from_iterable(map(self.batch, self.prepared[id(data)]))

    def batch(self, prepared: Tuple[Any, ...]) -> Iterable[Any]:
        """Check and decompress the bytes of a batch, and make its records from ready columns."""
        from kafka.codec import DEFAULT_LIMIT_BYTES, decompress
        from kafka.record.record import Record

        magic, codec, check, checked, packed, columns = prepared
        check(checked)
        if codec:
            decompress(codec, packed, magic, DEFAULT_LIMIT_BYTES)
        return map(Record, zip(*columns))

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


def read_theirs(data: bytes) -> Iterable[Any]:
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


def consume_theirs(data: bytes) -> Iterable[Any]:
    """Decode with kafka-python's fetcher."""
    from kafka.evented.fetcher import Fetcher
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
    return chain.from_iterable(iter(lambda: list(unpacked.take(500)), []))


def fetch_response(data: bytes) -> bytes:
    """Return the body of a fetch response of version 0 with one partition."""
    partition = struct.pack('>iihqi', 1, 0, 0, BATCHES * RECORDS, len(data)) + data
    return struct.pack('>ih5s', 1, 5, b'topic') + partition


def simple_ours(data: bytes) -> Iterable[Any]:
    """Decode as our SimpleConsumer."""
    from kafka.protocol import KafkaProtocol

    correlation_id = bytes(4)
    (response,) = KafkaProtocol.decode_fetch_response(correlation_id + fetch_response(data))
    return response.messages  # type: ignore[no-any-return]


def simple_theirs(data: bytes) -> Iterable[Any]:
    """Decode as the SimpleConsumer of 1.4.7."""
    from kafka.protocol.fetch import FetchResponse
    from kafka.protocol.legacy import KafkaProtocol

    decoded = FetchResponse[0].decode(fetch_response(data))
    (response,) = KafkaProtocol.decode_fetch_response(decoded)
    return response.messages  # type: ignore[no-any-return]


def fields(record: Any) -> Tuple[Any, ...]:
    """Return everything that a record says."""
    if hasattr(record, 'message'):
        return record.offset, record.message.key, record.message.value
    return record.offset, record.timestamp, record.key, record.value, list(record.headers)


def fingerprint(records: Iterable[Any]) -> str:
    """Digest everything the records say, to prove that all clients read the same."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(fields(record)).encode())
    return digest.hexdigest()


def timed(table: str, decode: Decoder, data: bytes, count: int, read: bool) -> float:
    """Return the CPU seconds of decoding ``count`` times."""
    before = time.process_time()
    for _ in range(count):
        records = decode(data)
        if table != 'consumer':
            records = list(records)
        if read:
            for record in records:
                fields(record)
        elif table == 'consumer':
            for _record in records:
                pass
        del records
    return time.process_time() - before


def work(decoders: Dict[str, Decoder], folder: Path, read: bool) -> None:
    """Answer commands: the name of a table, a shape, how often to decode it."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def respond(table: str, name: str, count: int) -> Any:
        decode, data = decoders[table], files[name]
        return timed(table, decode, data, count, read) if count else fingerprint(decode(data))

    answer(respond)


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
    others = [client for client in THEIRS if client in measured]
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
            decoders: Dict[str, Decoder] = dict.fromkeys(TABLES, decode)
            if client == OURS:
                decoders['simple'] = simple_ours
        else:
            decoders = dict.fromkeys(TABLES, consume_theirs)
            decoders.update(reader=read_theirs, simple=simple_theirs)
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
    pythons = {client: environment(client) for client in (OURS, *THEIRS)}
    pythons[FLOOR] = pythons[OURS]
    folder = CACHE / 'bytes'
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    names = [name for name, _ in shapes() if only in name]
    subprocess.run([str(pythons[OURS]), '-I', __file__, '--write', str(folder)], check=True)
    arguments = [str(folder), *hand_on]
    workers = [Worker(name, python, __file__, arguments) for name, python in pythons.items()]
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
