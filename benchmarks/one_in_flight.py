"""
Where the time of one record in flight goes: ``send().get()``, one behind the other, real broker.

``python benchmarks/one_in_flight.py`` starts a broker (Apache Kafka 4.4.0; another by
``--release``, one that runs already by ``--address``) and measures in rounds, in this process, with
the settings of producer.py: acks=1, no idempotence, no compression, records of 100 bytes. Printed
are medians of the medians of the rounds, with the least and the most, in microseconds:

* *floor*: a request made beforehand, on a blocking socket, its answer thrown away (floors.py).
* *floor, busy*: the same, but between two requests the process computes for as long as the client
  does: what the floor is for somebody who has other things to do than to send the same bytes.
* *floor, polling*: the same two, by a process that asks for the answer until it is there.
* *bare*: a producer in Python that does nothing but encode, send and read.
* *all*: a record, from the call of ``send()`` to the return of ``get()``; behind it its parts:
  *to the socket* (the record becomes a request), *sending* (the system takes the bytes), *waiting*
  (the broker, and being woken), *to the program* (the answer becomes what ``get()`` returns).
* *mean*: of *all*. *processor*: what a record costs this process, all its threads.
* the same, *sleeping*: of a producer with ``busy_poll_us=0``, the default; the rows before are of
  one with 300. And how many times as long *all* of the latter takes, the rounds of both in turn.
* how many times as much *all* and *processor* take where the calls are made in a thread that is not
  the main one; for both producers, the rounds in turn.
* *calls*: how many functions are called for a record, those in C included, when nothing else is to
  be done: counted, not measured.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import threading
import time
from operator import truediv
from pathlib import Path
from typing import Any, Dict, Iterator, List

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from floors import VALUE, bare, floor  # noqa: E402
from workers import started  # noqa: E402

from kafka import KafkaProducer  # noqa: E402
from kafka.net.transport import Transport  # noqa: E402

TOPIC = 'one-in-flight'
PARTS = ('all', 'to the socket', 'sending', 'waiting', 'to the program')
ENDS = ('mean', 'processor')
FLOORS = ('floor', 'floor, busy', 'floor, polling', 'floor, busy, polling')
now = time.perf_counter

Figures = Dict[str, List[float]]


class Marks:
    """When the bytes of a request go and when those of its answer come."""

    def __init__(self) -> None:
        self.begun = self.sent = self.came = 0.0

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Take the times while this lasts."""
        write, receive = Transport.write, Transport.receive_into

        def marked_write(transport: Any, buffers: Any, noted: Any = None) -> None:
            self.begun = now()
            write(transport, buffers, noted)
            self.sent = now()

        def marked_receive(transport: Any, received: Any) -> None:
            self.came = now()
            receive(transport, received)

        Transport.write = marked_write  # type: ignore[method-assign]
        Transport.receive_into = marked_receive  # type: ignore[method-assign]
        try:
            yield
        finally:
            Transport.write = write  # type: ignore[method-assign]
            Transport.receive_into = receive  # type: ignore[method-assign]


@contextlib.contextmanager
def computing(count: int) -> Iterator[None]:
    """Let so many programs compute beside, which want every processor."""
    command = [sys.executable, '-c', 'while True: pass']
    programs = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def records(producer: Any, count: int, figures: Figures) -> None:
    """Send records, each when the one before it is acknowledged; note the medians."""
    marks = Marks()
    taken: Figures = {part: [] for part in PARTS}
    with marks.placed():
        began = time.process_time()
        for _ in range(count):
            start = now()
            producer.send(TOPIC, VALUE).get(30)
            end = now()
            moments = [start, marks.begun, marks.sent, marks.came, end]
            taken['all'].append(end - start)
            for part, first, last in zip(PARTS[1:], moments, moments[1:]):
                taken[part].append(last - first)
        figures['processor'].append((time.process_time() - began) / count)
        figures['mean'].append(statistics.mean(taken['all']))
    for part, times in taken.items():
        figures[part].append(statistics.median(times))


def in_thread(producer: Any, count: int, figures: Figures) -> None:
    """Do the same in a thread that is not the main one."""
    thread = threading.Thread(target=records, args=(producer, count, figures))
    thread.start()
    thread.join()


def calls(producer: Any) -> int:
    """Return how many functions are called for a record."""
    counted = [0]

    def count(frame: Any, event: str, argument: Any) -> None:
        counted[0] += event in ('call', 'c_call')

    sys.setprofile(count)
    try:
        producer.send(TOPIC, VALUE).get(30)
    finally:
        sys.setprofile(None)
    return counted[0]


def measure(address: str, options: argparse.Namespace) -> None:
    """Measure in rounds and print."""
    figures: Figures = {name: [] for name in (*FLOORS, 'bare', *PARTS, *ENDS)}
    asleep: Figures = {name: [] for name in (*PARTS, *ENDS)}
    threaded: Figures = {name: [] for name in (*PARTS, *ENDS)}
    threaded_asleep: Figures = {name: [] for name in (*PARTS, *ENDS)}
    settings = {'bootstrap_servers': address, 'acks': 1, 'enable_idempotence': False}
    with KafkaProducer(busy_poll_us=300, **settings) as producer, KafkaProducer(
        **settings
    ) as sleeping, computing(options.computing):
        for each in (producer, sleeping):
            for _ in range(3000):
                each.send(TOPIC, VALUE, partition=0).get(30)
        for turn in range(options.rounds):
            records(producer, options.records, figures)
            records(sleeping, options.records, asleep)
            in_thread(producer, options.records, threaded)
            in_thread(sleeping, options.records, threaded_asleep)
            busy = asleep['all'][-1] - asleep['waiting'][-1] - asleep['sending'][-1]
            for name in FLOORS:
                seconds = floor(
                    address, TOPIC, options.records, busy * ('busy' in name), 'polling' in name
                )
                figures[name].append(seconds)
            figures['bare'].append(bare(address, TOPIC, options.records))
            print('round %d of %d' % (turn + 1, options.rounds), file=sys.stderr, flush=True)
        number = min(calls(sleeping) for _ in range(20))
    report(figures, asleep, number)
    for label, ones, others in (
        ('', threaded, figures),
        (', sleeping', threaded_asleep, asleep),
    ):
        for name in ('all', 'processor'):
            tell_ratio('%s%s, thread to main' % (name, label), ones[name], others[name])


def report(figures: Figures, asleep: Figures, number: int) -> None:
    """Print the figures of one that does not sleep at first, and of one that does."""
    sleeping = {name + ', sleeping': times for name, times in asleep.items()}
    for name, times in {**figures, **sleeping}.items():
        low, middle, high = min(times), statistics.median(times), max(times)
        print('%-26s %6.1f us (%.1f to %.1f)' % (name, middle * 1e6, low * 1e6, high * 1e6))
    tell_ratio('all, to all, sleeping', figures['all'], asleep['all'])
    print('%-26s %6d' % ('calls', number))


def tell_ratio(name: str, ones: List[float], others: List[float]) -> None:
    """Print how many times as much something takes as something else, round by round."""
    ratios = list(map(truediv, ones, others))
    spread = statistics.median(ratios), min(ratios), max(ratios)
    print('%-26s %6.2f x (%.2f to %.2f)' % (name, *spread))


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--address', help='host:port of a broker that runs already')
    parser.add_argument('--release', default='4.4.0', help='of the broker (default 4.4.0)')
    parser.add_argument('--rounds', type=int, default=5, help='default 5')
    parser.add_argument('--computing', type=int, default=0, help='so many programs beside')
    parser.add_argument('--records', type=int, default=1000, help='a round (default 1000)')
    options = parser.parse_args()
    if options.address:
        measure(options.address, options)
        return
    with started(options.release) as cluster:
        measure(cluster.bootstrap, options)


if __name__ == '__main__':
    main()
