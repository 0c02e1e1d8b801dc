"""
What a consumer makes of a fetched partition: kafka-evergreen beside kafka-python 3.0.12.

``python benchmarks/consume_decode.py`` makes a virtual environment for each under
``.cache/benchmarks``, gives both the same bytes, checks that they hand out the same records, and
then measures in rounds, each shape with each client in turn.

Measured is the user and system time of the decoding process, from the bytes of one partition of a
fetch response to lists of 500 ``ConsumerRecord`` objects, and from there to one access each of
``value``, ``key``, ``offset``, ``timestamp`` and ``headers``. CRCs are checked, there are no
deserializers. No broker and no socket is in it: those are measured by benchmarks/consumer.py.

Batches have 16 KB, as a producer with default options makes them, unless the shape says otherwise.
Ratios are medians of the ratios of each round.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workers import CACHE, OURS, ROOT, Worker, answer, environment

THEIRS = 'kafka-python 3.0.12'
RECORDS = 6000
AT_ONCE = 500
BATCH_BYTES = 16384

Headers = List[Tuple[str, bytes]]
Fields = Tuple[int, Optional[bytes], bytes, Headers]


def shapes() -> Iterator[Tuple[str, Tuple[int, int, Optional[int], List[Fields]]]]:
    """Yield name and (magic, codec, records of a batch or None for 16 KB, records) of each."""
    rng = random.Random(20)
    times = [1600000000000 + i // 7 for i in range(RECORDS)]

    def text(size: int) -> bytes:
        words = b'{"id": %d, "user": "u%05d", "amount": %d.%02d, "state": "open"}' % (
            rng.randrange(10**6),
            rng.randrange(10**5),
            rng.randrange(1000),
            rng.randrange(100),
        )
        return (words * 8)[:size]

    equal = [text(100) for _ in times]
    varying = [text(rng.randrange(60, 140)) for _ in times]
    keys = [b'key-%04d' % rng.randrange(10**4) for _ in times]
    any_keys = [b'key-%d' % rng.randrange(10**4) for _ in times]
    content = [[('content-type', b'application/json')] for _ in times]
    trace = [[('trace', b'%016x' % rng.getrandbits(64))] for _ in times]
    user = [[('user', b'u%d' % rng.randrange(10**6))] for _ in times]
    both = [one + other for one, other in zip(trace, user)]

    def rows(values: List[bytes], keys: Any = None, headers: Any = None) -> List[Fields]:
        none = [None] * RECORDS
        return list(zip(times, keys or none, values, headers or [[] for _ in times]))

    yield 'null key, equal sizes', (2, 0, None, rows(equal))
    yield 'null key', (2, 0, None, rows(varying))
    yield 'keyed, equal sizes', (2, 0, None, rows(equal, keys))
    yield 'keyed', (2, 0, None, rows(varying, any_keys))
    yield 'keyed, one header, equal sizes', (2, 0, None, rows(equal, keys, content))
    yield 'keyed, one header', (2, 0, None, rows(varying, any_keys, content))
    yield 'keyed, unique header, equal sizes', (2, 0, None, rows(equal, keys, trace))
    yield 'keyed, unique header', (2, 0, None, rows(varying, any_keys, trace))
    yield 'keyed, unique header of any size', (2, 0, None, rows(varying, any_keys, user))
    yield 'keyed, two unique headers', (2, 0, None, rows(varying, any_keys, both))
    for count in (1000, 20, 1):
        yield 'null key, batches of %d' % count, (2, 0, count, rows(varying))
        yield (
            'keyed, one header, batches of %d' % count,
            (2, 0, count, rows(varying, keys, content)),
        )
    yield 'null key, gzip', (2, 1, None, rows(varying))
    yield 'null key, lz4', (2, 3, None, rows(varying))
    yield 'magic 1, null key', (1, 0, None, rows(varying))
    yield 'magic 1, keyed', (1, 0, None, rows(varying, keys))
    yield 'magic 0, null key', (0, 0, None, rows(varying))


def encode(magic: int, codec: int, per_batch: Optional[int], records: List[Fields]) -> bytes:
    """Encode records as one partition of a fetch response."""
    from kafka.record.default_records import encode_batch
    from kafka.record.legacy_records import encode_message_set

    parts = []
    start = 0
    while start < len(records):
        if per_batch is None:
            end, size = start, 0
            while end < len(records) and size < BATCH_BYTES:
                size += len(records[end][2]) + 10 + 30 * len(records[end][3])
                end += 1
        else:
            end = start + per_batch
        some = records[start:end]
        if magic == 2:
            parts.append(encode_batch(some, base_offset=start, codec=codec))
        else:
            messages = [(start + i, r[0], r[1], r[2]) for i, r in enumerate(some)]
            parts.append(encode_message_set(messages, magic=magic, codec=codec))
        start = end
    return b''.join(parts)


def lists_of_ours(data: bytes) -> Iterator[List[Any]]:
    """Yield lists of records, as our consumer hands them out."""
    from kafka.consumer.fetch.completed_fetch import CompletedFetch
    from kafka.protocol.fetch import PartitionData
    from kafka.structs import TopicPartition

    answered = PartitionData(
        partition_index=0, error_code=0, high_watermark=RECORDS, records=memoryview(data)
    )
    fetched = CompletedFetch(TopicPartition('topic', 0), 0, answered, token=1, node_id=0)
    while not fetched.is_done:
        yield fetched.take(AT_ONCE)


def lists_of_theirs(data: bytes) -> Iterator[List[Any]]:
    """Yield lists of records, as kafka-python's consumer hands them out."""
    from kafka.evented.fetcher import Fetcher
    from kafka.record.memory_records import MemoryRecords
    from kafka.structs import TopicPartition

    unpacked = Fetcher.PartitionRecords(0, TopicPartition('topic', 0), MemoryRecords(data))
    return iter(lambda: list(unpacked.take(AT_ONCE)), [])


def fields(record: Any) -> Tuple[Any, ...]:
    """Return what records say, to prove that both clients read the same."""
    return (
        *(record.topic, record.partition, record.offset, record.timestamp, record.timestamp_type),
        *(record.key, record.value, list(record.headers)),
        *(record.serialized_key_size, record.serialized_value_size),
        *(record.serialized_header_size, record.leader_epoch),
    )


def work(client: str, folder: Path) -> None:
    """Answer commands: a shape, whether to read the records, how often to decode it."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    lists = lists_of_ours if client == OURS else lists_of_theirs

    def respond(name: str, read: bool, count: int) -> Any:
        data = files[name]
        if not count:
            digest = hashlib.sha256()
            for records in lists(data):
                for record in records:
                    digest.update(repr(fields(record)).encode())
            return digest.hexdigest()
        before = time.process_time()
        for _ in range(count):
            for records in lists(data):
                for record in records if read else ():
                    _ = record.value, record.key, record.offset, record.timestamp, record.headers
        return time.process_time() - before

    answer(respond)


def measure(workers: List[Worker], names: List[str], rounds: int) -> None:
    """Measure and print."""
    print('| ns of CPU per record | lists | read too | kafka-python | read too | ratio |')
    print('|---|---|---|---|---|---|')
    for name in names:
        if len({worker.ask(name, False, 0) for worker in workers}) != 1:
            raise SystemExit('the clients read different records from %r' % name)
        times: Dict[Tuple[str, bool], List[float]] = {}
        for number in range(rounds + 1):
            for worker in workers:
                for read in (False, True):
                    count = 5 if worker.client == OURS else 1
                    seconds = worker.ask(name, read, count) / count / RECORDS
                    if number:  # the first round warms up
                        times.setdefault((worker.client, read), []).append(seconds)
        cells = [
            '%.0f' % (statistics.median(times[client, read]) * 1e9)
            for client in (OURS, THEIRS)
            for read in (False, True)
        ]
        ratios = [b / a for a, b in zip(times[OURS, True], times[THEIRS, True])]
        print('| %s | %s | %.1fx |' % (name, ' | '.join(cells), statistics.median(ratios)))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').split('\n\n')[0].strip())
    parser.add_argument('--rounds', type=int, default=9, help='rounds to measure (default 9)')
    parser.add_argument('--only', default='', help='only shapes whose name contains this text')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    parser.add_argument('--write', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        client, folder = options.worker
        if client == OURS:
            sys.path.insert(0, str(ROOT))
        work(client, Path(folder))
        return
    if options.write:
        sys.path.insert(0, str(ROOT))
        for name, shape in shapes():
            (Path(options.write) / name).write_bytes(encode(*shape))
        return
    pythons = {client: environment(client) for client in (OURS, THEIRS)}
    folder = CACHE / 'fetched'
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    subprocess.run([str(pythons[OURS]), '-I', __file__, '--write', str(folder)], check=True)
    workers = [Worker(each, python, __file__, [str(folder)]) for each, python in pythons.items()]
    try:
        measure(workers, [name for name, _ in shapes() if options.only in name], options.rounds)
    finally:
        for worker in workers:
            worker.close()


if __name__ == '__main__':
    main()
