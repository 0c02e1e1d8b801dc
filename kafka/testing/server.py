"""The thread that serves an embedded cluster over sockets.

Owns the sockets, the one thread and its selector: all brokers of a cluster, all their connections
and timers run in it, so nothing else of the cluster needs a lock. Other threads reach in by
:meth:`Server.call`. What the bytes mean is :mod:`kafka.testing.connection`'s business.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any, Callable, Deque, Dict, Optional, Tuple, TypeVar

from kafka.testing.broker import Broker
from kafka.testing.connection import Connection
from kafka.testing.timers import Timers

T = TypeVar('T')

READ_BYTES = 256 * 1024
BACKLOG = 512
#: How long ``call`` waits for the thread, in seconds.
CALL_SECONDS = 30.0


class _Transport:
    """One socket, and what waits to be written to it."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self.server = server
        self.sock = sock
        self.connection: Optional[Connection] = None
        self._unsent: Deque[memoryview] = deque()
        self._is_closing = False
        self._events = 0

    def write(self, data: bytes) -> None:
        """Send bytes, now as far as the socket takes them."""
        if self._is_closing:
            return
        self._unsent.append(memoryview(data))
        if len(self._unsent) == 1:
            self.flush()

    def flush(self) -> None:
        """Send what waits; close when all is sent and that is wanted."""
        try:
            while self._unsent:
                sent = self.sock.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                    break
                self._unsent.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._unsent.clear()
            self.lost()
            return
        if self._is_closing and not self._unsent:
            self._end()
        else:
            self.watch()

    def read(self) -> None:
        """Take what has arrived."""
        try:
            data = self.sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.lost()
            return
        assert self.connection is not None
        self.connection.receive_data(data)
        self.watch()

    def watch(self) -> None:
        """Ask the selector for what is of interest now."""
        if self.sock.fileno() < 0 or self.connection is None:
            return
        events = selectors.EVENT_WRITE if self._unsent else 0
        if self.connection.wants_data and not self._is_closing:
            events |= selectors.EVENT_READ
        if events != self._events:
            self.server.watch(self.sock, self._events, events, self)
            self._events = events

    def close(self) -> None:
        """Close the socket when what waits is sent."""
        self._is_closing = True
        if not self._unsent:
            self._end()

    def lost(self) -> None:
        """Note that the client is gone."""
        self._unsent.clear()
        if self.connection is not None and not self.connection.is_closed:
            self.connection.close()
        self._end()

    def _end(self) -> None:
        if self._events:
            self.server.watch(self.sock, self._events, 0, self)
            self._events = 0
        self.server.forget(self)
        self.sock.close()


class Server:
    """Serves the brokers of one cluster.

    Arguments: timers: what waits for its time, on the system's clock.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._selector = selectors.DefaultSelector()
        self._listening: Dict[int, Tuple[socket.socket, Broker]] = {}
        self._transports: set[_Transport] = set()
        self._calls: Deque[Callable[[], None]] = deque()
        self._waker, self._woken = socket.socketpair()
        for each in (self._waker, self._woken):
            each.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name='kafka-testing', daemon=True)

    def __repr__(self) -> str:
        return '<Server of %d brokers, %d connections>' % (
            len(self._listening),
            len(self._transports),
        )

    # ------------------------------------------------------------ from other threads

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close everything and wait for the end of the thread."""
        if self._thread.is_alive():
            self.call(self._stop)
            self._thread.join(CALL_SECONDS)
        for each in (self._waker, self._woken):
            each.close()
        self._selector.close()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread; return what it returns, raise what it raises."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._calls.append(run)
        self._wake()
        return future.result(CALL_SECONDS)

    def _wake(self) -> None:
        try:
            self._waker.send(b'\0')
        except (BlockingIOError, InterruptedError):
            pass  # it is awake

    # ------------------------------------------------------------ in the thread

    def listen(self, broker: Broker, host: str, port: int) -> int:
        """Let a broker listen; port 0 takes any. Return the port. Raises OSError."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(BACKLOG)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        self._listening[broker.node_id] = sock, broker
        self._selector.register(sock, selectors.EVENT_READ, broker)
        return int(sock.getsockname()[1])

    def deafen(self, broker: Broker) -> None:
        """Close the port of a broker, and its connections."""
        found = self._listening.pop(broker.node_id, None)
        if found is not None:
            self._selector.unregister(found[0])
            found[0].close()
        broker.close_connections()

    def watch(self, sock: socket.socket, before: int, events: int, data: Any) -> None:
        """Change what the selector looks for on a socket."""
        if not before:
            self._selector.register(sock, events, data)
        elif events:
            self._selector.modify(sock, events, data)
        else:
            self._selector.unregister(sock)

    def forget(self, transport: _Transport) -> None:
        """Let go of a transport that has ended."""
        self._transports.discard(transport)

    def _run(self) -> None:
        while not self._stopping:
            when = self._timers.next_time()
            timeout = None if when is None else max(0.0, when - self._timers.clock.monotonic())
            for key, events in self._selector.select(timeout):
                if isinstance(key.data, Broker):
                    self._accept(key.fileobj, key.data)
                elif key.data is None:
                    self._drain()
                elif key.data in self._transports:
                    if events & selectors.EVENT_WRITE:
                        key.data.flush()
                    if events & selectors.EVENT_READ and key.data in self._transports:
                        key.data.read()
            while self._calls:
                self._calls.popleft()()
            self._timers.run_due()

    def _drain(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except (BlockingIOError, InterruptedError):
            pass

    def _accept(self, listening: Any, broker: Broker) -> None:
        try:
            sock, _ = listening.accept()
        except OSError:
            return  # the client has thought better of it
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = _Transport(self, sock)
        self._transports.add(transport)
        transport.connection = broker.connect(transport)
        transport.watch()

    def _stop(self) -> None:
        for _, broker in list(self._listening.values()):
            self.deafen(broker)
        for transport in list(self._transports):
            transport.lost()
        self._stopping = True
