"""
Where the time of one record in flight goes: ``send().get()``, one behind the other, real broker.

``python benchmarks/one_in_flight.py`` starts a broker (Apache Kafka 4.4.0; another by
``--release``, one that runs already by ``--address``) and measures in rounds, in this process, with
the settings of producer.py: acks=1, no idempotence, no compression, records of 100 bytes. Printed
are medians of the medians of the rounds, with the least and the most, in microseconds:

* *floor*: a request made beforehand, on a blocking socket, its answer thrown away.
* *floor, busy*: the same, but between two requests the process computes for as long as the client
  does: what the floor is for somebody who has other things to do than to send the same bytes.
* *all*: a record, from the call of ``send()`` to the return of ``get()``; behind it its parts:
  *to the socket* (the record becomes a request), *sending* (the system takes the bytes), *waiting*
  (the broker, and being woken), *to the program* (the answer becomes what ``get()`` returns).
* *processor*: what a record costs this process, all its threads.
* *all, polling* and *processor, polling*: a client that does not sleep for the first 0.3 ms of each
  wait but asks the selector again and again; and by what factor that changes *all* of a round, the
  rounds of both in turn.
* *calls*: how many functions are called for a record, those in C included: counted, not measured.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import sys
import time
from operator import truediv
from pathlib import Path
from typing import Any, Dict, Iterator, List

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from workers import started  # noqa: E402

from kafka import KafkaProducer  # noqa: E402
from kafka.net.poller import Poller  # noqa: E402
from kafka.net.transport import Transport  # noqa: E402
from kafka.protocol.api import encode_request  # noqa: E402
from kafka.protocol.produce import (  # noqa: E402
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafka.record.default_records import encode_column_batch  # noqa: E402

TOPIC = 'one-in-flight'
VALUE = b'v' * 100
PARTS = ('all', 'to the socket', 'sending', 'waiting', 'to the program')
FLOORS = ('floor', 'floor, busy', 'floor, polling', 'floor, busy, polling')
#: For so many seconds a client that polls does not sleep.
AWAKE = 0.0003
now = time.perf_counter

Figures = Dict[str, List[float]]


class Marks:
    """When the bytes of a request go and when those of its answer come."""

    def __init__(self) -> None:
        self.begun = self.sent = self.came = 0.0

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Take the times while this lasts."""
        send, readable = Transport._send_one, Transport._on_readable

        def send_one(transport: Any, piece: Any) -> Any:
            self.begun = now()
            rest = send(transport, piece)
            self.sent = now()
            return rest

        def on_readable(transport: Any) -> None:
            self.came = now()
            readable(transport)

        Transport._send_one = send_one  # type: ignore[method-assign]
        Transport._on_readable = on_readable  # type: ignore[method-assign]
        try:
            yield
        finally:
            Transport._send_one = send  # type: ignore[method-assign]
            Transport._on_readable = readable  # type: ignore[method-assign]


@contextlib.contextmanager
def polling() -> Iterator[None]:
    """Let clients ask their selectors again and again for a while before they sleep."""
    poll = Poller.poll

    def ask(poller: Any, seconds: Any) -> Any:
        until = now() + AWAKE
        while (seconds is None or seconds > 0) and now() < until:
            happened = poll(poller, 0)
            if happened:
                return happened
        return poll(poller, seconds)

    Poller.poll = ask  # type: ignore[method-assign]
    try:
        yield
    finally:
        Poller.poll = poll  # type: ignore[method-assign]


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
    for part, times in taken.items():
        figures[part].append(statistics.median(times))


def request() -> bytes:
    """Return a produce request as the producer sends it, ready for the wire."""
    batch = encode_column_batch([VALUE], None, None, [(0, int(time.time() * 1000))])
    data = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])]
    body = encode_request(ProduceRequest(None, 1, 30000, data), 9, 1, 'floor')
    return len(body).to_bytes(4, 'big') + body


def polled(sock: socket.socket) -> bytes:
    """Return what comes, without sleeping."""
    while True:
        try:
            return sock.recv(65536)
        except BlockingIOError:
            pass


def floor(address: str, count: int, busy: float, is_polling: bool) -> float:
    """Return the median time of a request; busy: seconds to compute before each."""
    host, port = address.split(',')[0].rsplit(':', 1)
    sent, times = request(), []
    with socket.create_connection((host, int(port)), 30) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setblocking(not is_polling)
        receive = (lambda: polled(plain)) if is_polling else (lambda: plain.recv(65536))
        for _ in range(count):
            until = now() + busy
            while now() < until:
                pass
            began = now()
            plain.sendall(sent)
            answer = receive()
            times.append(now() - began)
            if not answer:
                raise SystemExit('the broker closes on a request made by hand')
    return statistics.median(times)


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
    figures: Figures = {name: [] for name in (*FLOORS, *PARTS, 'processor')}
    awake: Figures = {name: [] for name in (*PARTS, 'processor')}
    producer = KafkaProducer(bootstrap_servers=address, acks=1, enable_idempotence=False)
    try:
        for _ in range(300):
            producer.send(TOPIC, VALUE, partition=0).get(30)
        for turn in range(options.rounds):
            records(producer, options.records, figures)
            with polling():
                records(producer, options.records, awake)
            busy = figures['all'][-1] - figures['waiting'][-1] - figures['sending'][-1]
            for name in FLOORS:
                seconds = floor(
                    address, options.records, busy * ('busy' in name), 'polling' in name
                )
                figures[name].append(seconds)
            print('round %d of %d' % (turn + 1, options.rounds), file=sys.stderr, flush=True)
        number = calls(producer)
    finally:
        producer.close(10)
    ratios = list(map(truediv, awake['all'], figures['all']))
    for name in ('all', 'processor'):
        figures[name + ', polling'] = awake[name]
    for name, times in figures.items():
        low, middle, high = min(times), statistics.median(times), max(times)
        print('%-20s %6.1f us (%.1f to %.1f)' % (name, middle * 1e6, low * 1e6, high * 1e6))
    spread = statistics.median(ratios), min(ratios), max(ratios)
    print('%-20s %6.2f x (%.2f to %.2f)' % ('all, by polling', *spread))
    print('%-20s %6d' % ('calls', number))


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--address', help='host:port of a broker that runs already')
    parser.add_argument('--release', default='4.4.0', help='of the broker (default 4.4.0)')
    parser.add_argument('--rounds', type=int, default=5, help='default 5')
    parser.add_argument('--records', type=int, default=1000, help='a round (default 1000)')
    options = parser.parse_args()
    if options.address:
        measure(options.address, options)
        return
    with started(options.release) as cluster:
        measure(cluster.bootstrap, options)


if __name__ == '__main__':
    main()
