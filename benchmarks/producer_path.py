"""
What a record costs KafkaProducer between the call and the bytes of its batch, without a network.

``python benchmarks/producer_path.py`` sends records of 100 bytes for six partitions by each of
the quick ways, then takes and encodes all batches as the sender does. Measured is the CPU time of
the process for a record, in microseconds, in each of some rounds: the least, and the median
behind it; ``send`` is what the calls took, ``drain`` what came after them. ``kept`` keeps all
futures until the end, which is what the garbage collector charges for. No broker is needed, so
that what is left out is the network alone: requests, sockets, answers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kafka.producer.future import FutureRecords, future_of  # noqa: E402
from kafka.producer.kafka import KafkaProducer  # noqa: E402
from kafka.producer.producer_batch import BatchState  # noqa: E402
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator  # noqa: E402

PARTITIONS = 6
KEYS = 1000
AT_A_TIME = 1000
VALUES = [b'%0100d' % number for number in range(AT_A_TIME)]
HOT = [b'key-%d' % (number % KEYS) for number in range(AT_A_TIME)]


class Producer(KafkaProducer):
    """The quick ways, and the shortest slow ones."""

    def __init__(self, batch_size: int, codec: int) -> None:
        limits = AccumulatorConfig(
            batch_size=batch_size, buffer_memory=1 << 40, compressed=bool(codec)
        )
        self._accumulator = RecordAccumulator(limits, lambda: None, lambda done, timeout: done())
        self.topic = self._accumulator.topic('t')
        self._accumulator.update(self.topic, range(PARTITIONS), range(PARTITIONS))
        self._accumulator.fast['t'] = self.topic
        self._max_block = 60.0
        self.codec = codec

    def _send(self, topic: Any, value: Any, key: Any, *more: Any) -> Any:
        partition = None
        if key is not None:
            partition = self.topic.by_key[key].topic_partition.partition
        batch, index = self._accumulator.append(
            self.topic, partition, key, value, (), None, time.time(), time.monotonic()
        )
        return future_of(batch, index, -1, len(value), -1)

    def _forget(self, topic: Any, value: Any, key: Any) -> None:
        self._accumulator.open_box(self.topic, time.time(), time.monotonic())
        self.topic.put_in_box(value)

    def _put_many(self, queue: Any, values: Any, keys: Any, *more: Any) -> FutureRecords:
        value_sizes = sizes = list(map(len, values))
        if keys is not None:
            sizes = list(map(int.__add__, sizes, map(len, keys)))
        now = int(time.time() * 1000)
        many = self._accumulator.prepare_many(queue, None, keys, values, sizes, (), now)
        self._accumulator.append_many(many, time.monotonic())
        return FutureRecords(many.placed, value_sizes)

    def drain(self) -> int:
        """Take, encode and finish all batches; return how many records there were."""
        accumulator, records = self._accumulator, 0
        while True:
            queues = accumulator.ready(time.monotonic() + 1, lambda place: 0).by_node.get(0)
            if not queues:
                return records
            for queue in queues:
                batch = accumulator.take(queue)
                assert batch is not None
                batch.encode(2, self.codec)
                accumulator.encoded(batch)
                batch.move(BatchState.IN_FLIGHT)
                records += batch.record_count
                batch.succeed(0)
                accumulator.finish(batch)


def send(producer: Producer, rounds: int) -> None:
    call = producer.send
    for _ in range(rounds):
        for value in VALUES:
            call('t', value)


def send_kept(producer: Producer, rounds: int) -> List[Any]:
    call = producer.send
    return [call('t', value) for _ in range(rounds) for value in VALUES]


def send_keyed(producer: Producer, rounds: int) -> None:
    call = producer.send
    for _ in range(rounds):
        for value, key in zip(VALUES, HOT):
            call('t', value, key)


def forget(producer: Producer, rounds: int) -> None:
    call = producer.send_and_forget
    for _ in range(rounds):
        for value in VALUES:
            call('t', value)


def many(producer: Producer, rounds: int) -> None:
    for _ in range(rounds):
        producer.send_many('t', VALUES)


def many_keyed(producer: Producer, rounds: int) -> None:
    for _ in range(rounds):
        producer.send_many('t', VALUES, HOT)


ROWS: Dict[str, Callable[[Producer, int], Any]] = {
    'send()': send,
    'send(), kept': send_kept,
    'send(), keyed': send_keyed,
    'send_and_forget()': forget,
    'send_many()': many,
    'send_many(), keyed': many_keyed,
}


def measure(
    run: Callable[[Producer, int], Any], batch_size: int, codec: int, count: int
) -> Tuple[float, float]:
    """Return microseconds for a record: calls, and draining."""
    producer = Producer(batch_size, codec)
    run(producer, 1)
    producer.drain()
    began = time.process_time()
    kept = run(producer, count // AT_A_TIME)
    called = time.process_time()
    records = producer.drain()
    ended = time.process_time()
    del kept
    assert records == count
    return (called - began) / count * 1e6, (ended - called) / count * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--records', type=int, default=100_000)
    parser.add_argument('--batch-size', type=int, action='append')
    parser.add_argument('--codec', type=int, default=0)
    arguments = parser.parse_args()
    for batch_size in arguments.batch_size or (16384, 262144):
        print('batch_size=%d, us per record: least (median)' % batch_size)
        for name, run in ROWS.items():
            found = [
                measure(run, batch_size, arguments.codec, arguments.records)
                for _ in range(arguments.rounds)
            ]
            whole = sorted(map(sum, found))
            print(
                '  %-20s send %.3f  drain %.3f  together %.3f (%.3f)'
                % (
                    name,
                    min(found)[0],
                    min(f[1] for f in found),
                    whole[0],
                    statistics.median(whole),
                )
            )


if __name__ == '__main__':
    main()
