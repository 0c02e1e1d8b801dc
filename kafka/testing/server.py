"""The thread that serves an embedded cluster over sockets.

All brokers of a cluster, all their connections and timers run in this thread with its selector, so
nothing else of the cluster needs a lock. Other threads use :meth:`Server.call`. The bytes are
handled by :mod:`kafka.testing.connection`.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
from collections import deque
from concurrent.futures import Future
from itertools import islice
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple, TypeVar

from kafka.testing.broker import Broker, Endpoint
from kafka.testing.logs.segments import StorageError
from kafka.testing.storage.cluster_storage import Storage
from kafka.testing.timers import Timers

T = TypeVar('T')

READ_BYTES = 256 * 1024
#: The maximum number of bytes sent to one client before others are served.
TURN_BYTES = 1024 * 1024
#: The maximum number of buffers for one system call; its limit is 1024.
MOST_PARTS = 512
BACKLOG = 512
#: The time-out of ``call``, in seconds.
CALL_SECONDS = 30.0
#: How long a closed connection waits for the client to read its pending bytes.
LINGER_SECONDS = 5.0
#: How long no connections are accepted if the process has no file descriptors left.
REFUSE_SECONDS = 0.1
MAX_SELECT = 3600.0
#: A connection with this number of bytes that wait for the disk reads no further.
MAX_HELD_BYTES = 1024 * 1024
#: Addresses for listening that cannot be connected to.
EVERYWHERE = ('', '0.0.0.0', '::')


class _Transport:
    """One socket, and the bytes that wait to be written to it."""

    def __init__(self, server: Server, sock: socket.socket, host: str) -> None:
        self.server = server
        self.sock = sock
        self.host = host  # the client's
        self.connection: Optional[Endpoint] = None
        self._unsent: Deque[memoryview] = deque()
        self._takes_parts = type(sock) is socket.socket and hasattr(sock, 'sendmsg')
        self._is_closing = False
        self._events = 0

    def write(self, data: bytes) -> None:
        """Send bytes, immediately as far as the socket accepts them."""
        self.write_parts([data])

    def write_parts(self, parts: List[bytes]) -> None:
        """Send buffers, one after the other; otherwise as write()."""
        if self._is_closing or not parts:
            return
        was_all_sent = not self._unsent
        self._unsent.extend(map(memoryview, parts))
        if self.server.holds(self):
            if sum(map(len, self._unsent)) > MAX_HELD_BYTES and self.connection is not None:
                self.connection.pause()
        elif was_all_sent:
            self.flush()

    def flush(self) -> None:
        """Send pending bytes; close the socket afterwards if that was requested."""
        if self.server.is_frozen(self) or self in self.server.held:
            return
        try:
            self._send()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.lost()
            return
        if self._is_closing and not self._unsent:
            self._end()
            return
        if self.connection is not None:
            # A client that does not read gets no more responses until it does, as from brokers.
            if self._unsent:
                self.connection.pause()
            else:
                self.connection.resume()
        self.watch()

    def _send(self) -> None:
        """Send what the socket accepts, up to TURN_BYTES. Raises OSError."""
        unsent, room = self._unsent, TURN_BYTES
        while unsent and room > 0:
            if len(unsent) == 1 or not self._takes_parts:
                sent, wanted = self.sock.send(unsent[0]), len(unsent[0])
            else:
                parts = list(islice(unsent, MOST_PARTS))
                sent, wanted = self.sock.sendmsg(parts), sum(map(len, parts))
            room -= sent
            is_full = sent < wanted
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if is_full:
                unsent[0] = unsent[0][sent:]
                return

    def read(self) -> None:
        """Read the bytes that have arrived."""
        try:
            data = self.server.buffer[: self.sock.recv_into(self.server.buffer)]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.lost()
            return
        assert self.connection is not None
        self.connection.receive_data(data)
        self.watch()

    def watch(self) -> None:
        """Update the events that the selector waits for."""
        if self.sock.fileno() < 0 or self.connection is None:
            return
        events = selectors.EVENT_WRITE if self._unsent else 0
        if self.connection.wants_data and not self._is_closing:
            events |= selectors.EVENT_READ
        if self.server.is_frozen(self):
            events = 0
        if events != self._events:
            self.server.watch(self.sock, self._events, events, self)
            self._events = events

    def is_of(self, broker: Broker) -> bool:
        """Return True if it is a connection to this broker."""
        return self.connection is not None and self.connection.broker is broker

    def close(self) -> None:
        """Close the socket when pending bytes are sent, or after a time for the client to read
        them."""
        self._is_closing = True
        if self._unsent:
            self.server.timers.later(LINGER_SECONDS, self.lost)
            self.watch()
        else:
            self._end()

    def lost(self) -> None:
        """Close a connection that the client has closed."""
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
    """Serves the brokers of one cluster, once.

    Arguments: timers: pending events, on the system's clock; failed: called with failures in the
    thread, which continues.
    """

    def __init__(self, timers: Timers, failed: Callable[[str, Exception], None]) -> None:
        self.timers = timers
        self._failed = failed
        self._selector = selectors.DefaultSelector()
        self._listening: Dict[int, Tuple[socket.socket, Broker]] = {}
        self._held: Dict[int, socket.socket] = {}  # ports of killed brokers, to reserve them
        self._frozen: Set[int] = set()  # paused nodes
        self._transports: Set[_Transport] = set()
        self.buffer = memoryview(bytearray(READ_BYTES))  # for reading
        #: Of a durable cluster: data that must be on the disk before it is acknowledged.
        self.storage: Optional[Storage] = None
        self.held: Dict[_Transport, None] = {}  # those with responses that wait for that, in order
        # Guards the calls, and whether the thread will still execute them.
        self._lock = threading.Lock()
        self._calls: Deque[Callable[[], None]] = deque()
        self._is_over = False
        self._made_in = os.getpid()
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
        """Close everything and wait for the end of the thread, unless called in it.

        Does nothing in the child of a fork: selector and connections belong to the parent as well.
        """
        if os.getpid() != self._made_in:
            return
        self.call(self._stop)
        if threading.current_thread() is self._thread:
            return
        if self._thread.is_alive():
            self._thread.join(CALL_SECONDS)
        elif not self._is_over:  # it was never started
            self._end()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread; return its result, raise its exception.

        Before the thread has started and after it has ended the function runs in the caller's.
        """
        if threading.current_thread() is self._thread:
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            is_served = self._thread.is_alive() and not self._is_over
            if is_served:
                self._calls.append(run)
                self._wake()
        return future.result(CALL_SECONDS) if is_served else function()

    def _wake(self) -> None:
        try:
            self._waker.send(b'\0')
        except (BlockingIOError, InterruptedError):
            pass  # a wake-up is pending

    # ------------------------------------------------------------ in the thread

    def name_of(self, host: str) -> str:
        """Return the name that clients use for a host on which brokers listen."""
        return socket.gethostname() if host in EVERYWHERE else host

    def listen(self, broker: Broker, host: str, port: int) -> int:
        """Let a broker listen; port 0 takes any. Return the port. Raises OSError."""
        held = self._held.pop(broker.node_id, None)
        sock = held if held is not None else _bound(host, port)
        try:
            sock.listen(BACKLOG)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        self._listening[broker.node_id] = sock, broker
        self._selector.register(sock, selectors.EVENT_READ, broker)
        return int(sock.getsockname()[1])

    def deafen(self, broker: Broker) -> None:
        """Break the connections of a broker and refuse new ones; its port stays reserved.

        Otherwise, if a client connects to the port repeatedly, the system may choose the same port
        for the client's side, and the client is connected to itself.
        """
        self._frozen.discard(broker.node_id)
        found = self._listening.pop(broker.node_id, None)
        if found is not None:
            address = found[0].getsockname()
            self._close_port(found[0])
            try:
                self._held[broker.node_id] = _bound(address[0], address[1])
            except OSError:
                pass  # another process has the port now: restarting the broker will raise an error
        for transport in [each for each in self._transports if each.is_of(broker)]:
            transport.lost()
        broker.close_connections()

    def freeze(self, broker: Broker) -> None:
        """Pause a broker: it reads, writes and accepts nothing; its connections stay."""
        self._frozen.add(broker.node_id)
        sock, _ = self._listening[broker.node_id]
        if sock in self._selector.get_map():
            self._selector.unregister(sock)
        for transport in [each for each in self._transports if each.is_of(broker)]:
            transport.watch()

    def thaw(self, broker: Broker) -> None:
        """Let a paused broker continue."""
        self._frozen.discard(broker.node_id)
        self._selector.register(self._listening[broker.node_id][0], selectors.EVENT_READ, broker)
        for transport in [each for each in self._transports if each.is_of(broker)]:
            transport.flush()

    def is_frozen(self, transport: _Transport) -> bool:
        """Return True if the broker of a connection is paused."""
        connection = transport.connection
        return (
            bool(self._frozen)
            and connection is not None
            and (connection.broker.node_id in self._frozen)
        )

    def _close_port(self, sock: socket.socket) -> None:
        if sock in self._selector.get_map():
            self._selector.unregister(sock)
        sock.close()

    def watch(self, sock: socket.socket, before: int, events: int, data: Any) -> None:
        """Change the events that the selector waits for on a socket."""
        if not before:
            self._selector.register(sock, events, data)
        elif events:
            self._selector.modify(sock, events, data)
        else:
            self._selector.unregister(sock)

    def holds(self, transport: _Transport) -> bool:
        """Keep pending bytes until the end of this iteration, if data must be stored before."""
        if self.storage is None:
            return False
        self.held[transport] = None
        return True

    def _confirm(self, storage: Storage) -> None:
        """Store the data of this iteration on the disk, and send the responses.

        If that fails there are no responses: connections are closed.
        """
        while True:
            try:
                storage.commit()
            except StorageError:
                for transport in list(self.held):
                    transport.lost()
            held, self.held = self.held, {}
            for transport in held:
                if transport in self._transports:
                    self._guarded(transport.flush)
            if not self.held:  # otherwise a connection has processed its next request
                return

    def forget(self, transport: _Transport) -> None:
        """Remove a transport that has ended."""
        self._transports.discard(transport)
        self.held.pop(transport, None)

    def _run(self) -> None:
        try:
            while not self._stopping:
                when = self.timers.next_time()
                timeout = None if when is None else max(0.0, when - self.timers.clock.monotonic())
                # The maximum of the system call; longer waits are split.
                for key, events in self._selector.select(timeout and min(timeout, MAX_SELECT)):
                    self._guarded(self._serve, key.fileobj, key.data, events)
                while self._calls:
                    self._calls.popleft()()
                self._guarded(self.timers.run_due)
                if self.storage is not None:
                    self._guarded(self._confirm, self.storage)
        finally:
            self._end()

    def _guarded(self, step: Callable[..., None], *args: Any) -> None:
        """Run a step; its exceptions end neither the thread nor other connections."""
        try:
            step(*args)
        except Exception as error:
            transport = args[1] if len(args) > 1 else None
            if isinstance(transport, _Transport):
                transport.lost()
            self._failed('a step of the server', error)

    def _serve(self, sock: Any, data: Any, events: int) -> None:
        """Handle the events of a socket."""
        if isinstance(data, Broker):
            self._accept(sock, data)
        elif data is None:
            self._drain()
        elif data in self._transports:
            if events & selectors.EVENT_WRITE:
                data.flush()
            if events & selectors.EVENT_READ and data in self._transports:
                data.read()

    def _end(self) -> None:
        """Execute the last calls, and close the server's own sockets."""
        with self._lock:
            self._is_over = True
        while self._calls:
            self._calls.popleft()()
        for each in (self._waker, self._woken):
            each.close()
        self._selector.close()

    def _drain(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except (BlockingIOError, InterruptedError):
            pass

    def _accept(self, listening: Any, broker: Broker) -> None:
        found = self._listening.get(broker.node_id)
        if found is None or found[0] is not listening:
            return  # it was closed in the meantime
        try:
            sock, address = listening.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                self._rest(listening, broker)
            return  # the client has closed the connection already
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # the connection is broken already
            sock.close()
            return
        transport = _Transport(self, sock, address[0])
        self._transports.add(transport)
        transport.connection = broker.connect(transport)
        transport.connection.when_ready = transport.watch
        transport.watch()

    def _rest(self, listening: socket.socket, broker: Broker) -> None:
        """Accept nothing for a moment: the waiting client would be reported again immediately."""
        self._selector.unregister(listening)

        def go_on() -> None:
            found = self._listening.get(broker.node_id)
            is_awake = broker.node_id not in self._frozen
            if found is not None and found[0] is listening and is_awake:
                self._selector.register(listening, selectors.EVENT_READ, broker)

        self.timers.later(REFUSE_SECONDS, go_on)

    def _stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        for sock, broker in list(self._listening.values()):
            self._close_port(sock)
            broker.close_connections()
        self._listening.clear()
        for sock in self._held.values():
            sock.close()
        self._held.clear()
        for transport in list(self._transports):
            transport.lost()


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to a port. Raises OSError."""
    family, kind, proto, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, proto)
    try:
        if os.name == 'posix':  # elsewhere it would allow two sockets with the same port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock
