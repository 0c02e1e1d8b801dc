"""
What a record costs KafkaProducer whose broker lags: how many share a batch decides it.

``python benchmarks/lagging.py`` runs a broker in Python (kafka.testing) in this process and a
producer in another one, whose user and system time is measured, all its threads together, per
record of 100 bytes, from the first call until all are acknowledged. *stopped* means that the broker
is stopped for 90 of every 100 ms. Settings are those of producer.py: six partitions, acks=1, no
idempotence, batches of 16 KiB, no lingering, no compression. Printed are the least and the most of
some rounds, and how many records a batch has.

* *full speed*: ``send()`` as fast as the program can. *small memory*: with 256 KiB of
  ``buffer_memory``.
* *bursts*: 20 records every 1.5 ms. *lingering bursts*: with ``linger_ms=10``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kafka import KafkaProducer  # noqa: E402
from kafka.testing import Cluster  # noqa: E402

PARTITIONS = 6
VALUE = b'v' * 100
BURST, EVERY = 20, 0.0015
#: Row: whether the broker is stopped again and again, whether records come in bursts, options.
ROWS: Dict[str, Tuple[bool, bool, Dict[str, Any]]] = {
    'full speed': (False, False, {}),
    'full speed, stopped': (True, False, {}),
    'small memory, stopped': (True, False, {'buffer_memory': 256 * 1024}),
    'bursts': (False, True, {}),
    'bursts, stopped': (True, True, {}),
    'lingering bursts': (False, True, {'linger_ms': 10}),
}


def work(bootstrap: str, row: str, count: int) -> None:
    """Send records; print the processor time of all of it, in seconds."""
    _, bursts, options = ROWS[row]
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks=1, enable_idempotence=False, **options
    )
    producer.partitions_for('t')
    began, due = time.process_time(), time.monotonic()
    send = producer.send
    for _ in range(count // BURST):
        for _ in range(BURST):
            send('t', VALUE)
        if bursts:
            due += EVERY
            time.sleep(max(0.0, due - time.monotonic()))
    producer.flush()
    print(json.dumps(time.process_time() - began))
    producer.close()


def measure(row: str, count: int) -> Tuple[float, float]:
    """Return the microseconds for a record, and how many records a batch has."""
    is_over = threading.Event()

    def stop_again_and_again(cluster: Cluster) -> None:
        while not is_over.wait(0.01):
            cluster.pause(0)
            is_over.wait(0.09)
            cluster.resume(0)

    with Cluster(version='4.4', topics={'t': PARTITIONS}) as cluster:
        thread = threading.Thread(target=stop_again_and_again, args=(cluster,))
        if ROWS[row][0]:
            thread.start()
        try:
            command = [sys.executable, __file__, '--worker', cluster.bootstrap, row, str(count)]
            seconds = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        finally:
            is_over.set()
            if ROWS[row][0]:
                thread.join()
        logs = [each.log for each in cluster.state.topics['t'].partitions]
        batches = sum(len(log.batches) for log in logs)
        stored = sum(log.end_offset for log in logs)
    if stored != count // BURST * BURST:
        raise SystemExit('%d records are stored, not %d' % (stored, count))
    return seconds / stored * 1e6, stored / batches


def main() -> None:
    """Measure all rows, or one, in rounds."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--records', type=int, default=40000, help='of a row and round')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', default='', help='rows with this in their name')
    parser.add_argument('--worker', nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker[0], options.worker[1], int(options.worker[2]))
        return
    for row in ROWS:
        if options.only in row:
            found: List[Tuple[float, float]] = [
                measure(row, options.records) for _ in range(options.rounds)
            ]
            costs, sizes = zip(*found)
            print(
                '%-22s %5.1f to %5.1f us   %4.0f to %4.0f records a batch'
                % (row, min(costs), max(costs), min(sizes), max(sizes)),
                flush=True,
            )


if __name__ == '__main__':
    main()
