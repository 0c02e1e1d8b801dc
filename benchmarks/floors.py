"""
What no producer can spare for one record in flight, on one broker, in this process.

Owns two measurements, with acks=1 and a record of 100 bytes, each the median of many:

* *floor*: a produce request made beforehand, on a blocking socket, its answer thrown away: the
  broker's and the system's own time.
* *bare*: a record becomes a batch with its checksum and a request, is sent, and the offset is read
  from the answer, on a blocking socket, by the quickest pieces of the client: what is left of a
  producer in Python without futures, batches of several, time-outs, retries, figures, threads,
  signals, and other connections.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import time
from typing import Any, Callable, Iterator

from kafka.protocol.produce_template import ProduceTemplate
from kafka.record.default_records import encode_single

VERSION, TIMEOUT_MS = 9, 30000
VALUE = b'v' * 100
now = time.perf_counter


def template(topic: str) -> ProduceTemplate:
    """Return the request of both."""
    return ProduceTemplate(topic, 0, bytes(16), VERSION, 1, TIMEOUT_MS, 'floor')


@contextlib.contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    """Yield a socket to the first broker of an address."""
    host, port = address.split(',')[0].rsplit(':', 1)
    with socket.create_connection((host, int(port)), 30) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield plain


def polled(sock: socket.socket) -> bytes:
    """Return what comes, without sleeping."""
    while True:
        try:
            return sock.recv(65536)
        except BlockingIOError:
            pass


def floor(
    address: str, topic: str, count: int, busy: float = 0.0, is_polling: bool = False
) -> float:
    """Return the floor, in seconds; busy: seconds to compute before each request."""
    sent = template(topic).encode(1, encode_single(None, VALUE, int(time.time() * 1000)))
    with connected(address) as plain:
        plain.setblocking(not is_polling)
        receive = (lambda: polled(plain)) if is_polling else (lambda: plain.recv(65536))

        def exchange() -> Any:
            plain.sendall(sent)
            return receive()

        return median(exchange, count, busy)


def bare(address: str, topic: str, count: int) -> float:
    """Return what a bare producer takes, in seconds."""
    made = template(topic)
    with connected(address) as plain:

        def exchange() -> Any:
            plain.send(made.encode(7, encode_single(None, VALUE, int(time.time() * 1000))))
            return made.read(plain.recv(65536), 7)

        return median(exchange, count)


def median(exchange: Callable[[], Any], count: int, busy: float = 0.0) -> float:
    """Return the median time of an exchange; SystemExit if there is no answer, or not that."""
    times = []
    for _ in range(count):
        until = now() + busy
        while now() < until:
            pass
        began = now()
        answered = exchange()
        times.append(now() - began)
        if not answered:
            raise SystemExit('the broker does not take a request made by hand')
    return statistics.median(times)
