"""An embedded cluster without sockets and threads: client and brokers in one thread, on a simulated
clock.

Connections in memory, the seeded order of events on them, and the replacements that let blocking
clients run on them. The seed determines the latency of each piece of bytes, and where the stream is
split into pieces, and thereby the order of events. The same seed and the same program give the same
run, event by event (``MemoryCluster.trace``).

Blocking clients, such as KafkaClient of 0.9.5, run inside ``with cluster.patched():``. Each of
their reads lets the brokers work and time pass until bytes arrive, or until the time-out.

A client without threads is simulated without patches: its driver uses ``cluster.connect()`` for
non-blocking sockets, and ``cluster.timers`` as its clock and for its own deadlines;
``cluster.step()`` executes the next event, of a broker or the client, after which the driver serves
sockets with ``is_ready``. Since all events are in one queue of timers, one seed reproduces all of
it.
"""

from __future__ import annotations

import errno
import math
import random
import socket
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

from kafka.errors import IllegalStateError
from kafka.testing.broker import Broker, Endpoint
from kafka.testing.cluster import Cluster
from kafka.testing.logs.segments import StorageError
from kafka.testing.timers import Clock, Timers, VirtualClock

T = TypeVar('T')

FIRST_PORT = 9092
MAX_TRACE = 100000
#: The maximum number of events while one read waits.
MAX_STEPS = 1000000
#: The maximum of unread bytes of a client before the broker stops sending.
MAX_UNREAD_BYTES = 1024 * 1024
#: The latency in seconds: usually up to the first, sometimes up to the second.
LATENCY = (0.001, 0.02)
RARELY = 0.1


class Event(NamedTuple):
    """One event: its time, its connection, what happened, and the number of bytes."""

    at: float
    connection: int
    what: str
    size_bytes: int


class Network:
    """The connections of clients with brokers, in place of ``kafka.testing.server.Server``.

    Arguments: timers: on a virtual clock; chance: of latencies and splits.
    """

    def __init__(self, timers: Timers, chance: random.Random) -> None:
        self.timers = timers
        self.trace: Deque[Event] = deque(maxlen=MAX_TRACE)
        self._chance = chance
        self._listening: Dict[Tuple[str, int], Broker] = {}
        self._sockets: List[MemorySocket] = []
        self._last_connection = 0
        self._held: Dict[int, List[Callable[[], None]]] = {}  # by paused node: pending steps

    def __repr__(self) -> str:
        return '<Network of %d brokers, %d connections>' % (
            len(self._listening),
            len(self._sockets),
        )

    # ------------------------------------------------------------ as Server

    def name_of(self, host: str) -> str:
        """Return the name that clients use for a host on which brokers listen."""
        return host

    def listen(self, broker: Broker, host: str, port: int) -> int:
        """Accept connections for a broker; return its port."""
        port = port or FIRST_PORT + broker.node_id
        self._listening[host, port] = broker
        return port

    def deafen(self, broker: Broker) -> None:
        """Break the connections of a broker and refuse new ones."""
        self._held.pop(broker.node_id, None)
        self._listening = {at: each for at, each in self._listening.items() if each is not broker}
        for each in [each for each in self._sockets if each.connection.broker is broker]:
            each.reset()

    def freeze(self, broker: Broker) -> None:
        """Pause a broker: it reads and writes nothing; its connections stay."""
        self._held.setdefault(broker.node_id, [])

    def thaw(self, broker: Broker) -> None:
        """Let a paused broker continue."""
        for step in self._held.pop(broker.node_id, []):
            step()

    def when_awake(self, broker: Broker, step: Callable[[], None]) -> None:
        """Run a step of a broker, now or when it is no longer paused."""
        held = self._held.get(broker.node_id)
        if held is None:
            step()
        else:
            held.append(step)

    def start(self) -> None:
        """Do nothing: events are executed by the thread that waits."""

    def stop(self) -> None:
        """Break all connections."""
        for broker in list(self._listening.values()):
            self.deafen(broker)
        for each in list(self._sockets):
            each.reset()

    def call(self, function: Callable[[], T]) -> T:
        """Call a function: everything is in one thread."""
        return function()

    # ------------------------------------------------------------ for clients

    def connect(self, address: Tuple[str, int], timeout: Optional[float] = None) -> MemorySocket:
        """Connect to a broker. Raises ConnectionRefusedError if none listens."""
        self.timers.advance(self.latency())
        broker = self._listening.get((str(address[0]), int(address[1])))
        if broker is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, 'no broker at %s:%s' % address[:2])
        self._last_connection += 1
        made = MemorySocket(self, broker, self._last_connection, address)
        made.settimeout(timeout)
        self._sockets.append(made)
        self.note(self._last_connection, 'connected to node %d' % broker.node_id)
        return made

    def forget(self, gone: MemorySocket) -> None:
        """Remove a connection that both sides have closed."""
        self._sockets = [each for each in self._sockets if each is not gone]

    def note(self, connection: int, what: str, size_bytes: int = 0) -> None:
        """Add an event to the trace."""
        self.trace.append(Event(self.timers.clock.monotonic(), connection, what, size_bytes))

    def latency(self) -> float:
        """Return a random latency."""
        usual, longest = LATENCY
        return self._chance.uniform(0, longest if self._chance.random() < RARELY else usual)

    def pieces(self, data: bytes) -> List[bytes]:
        """Split bytes as a network may split them."""
        if len(data) < 2 or self._chance.random() >= RARELY:
            return [data]
        cut = self._chance.randrange(1, len(data))
        return [data[:cut], data[cut:]]


class _Way:
    """One direction of a connection: sent bytes arrive later, in order."""

    def __init__(self, network: Network, arrived: Callable[[bytes], None]) -> None:
        self._network = network
        self._arrived = arrived
        self._last = 0.0

    def send(self, data: bytes) -> None:
        """Send bytes; empty means the end of the stream."""
        timers = self._network.timers
        for piece in self._network.pieces(data):
            soonest = timers.clock.monotonic() + self._network.latency()
            self._last = max(self._last, soonest)
            timers.at(self._last, lambda piece=piece: self._arrived(piece))  # type: ignore[misc]


class _BrokerEnd:
    """The transport of a broker's connection."""

    def __init__(self, client: MemorySocket) -> None:
        self._client = client

    def write(self, data: bytes) -> None:
        """Send bytes to the client, once the data that they confirm is stored."""
        if self._client.confirm():
            self._client.on_written(data)

    def write_parts(self, parts: List[bytes]) -> None:
        """Send pieces to the client, joined."""
        if parts:
            self.write(b''.join(parts))

    def close(self) -> None:
        """Close the connection after the pending bytes."""
        self._client.on_closed()


class MemorySocket:
    """The client's side of a connection in memory, with the methods of a socket that clients use.

    Arguments: network: the connections; broker: the other side; number: of the connection;
    address: the broker's, as the client used it.

    Attributes: number; on_ready: called when ``is_ready`` has become true because bytes arrived;
    None for no callback.
    """

    def __init__(
        self, network: Network, broker: Broker, number: int, address: Tuple[str, int]
    ) -> None:
        self.number = number
        self.on_ready: Optional[Callable[[], None]] = None
        self._network = network
        self._address = address
        self._timeout: Optional[float] = None
        self._arrived: Deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_ended = False  # the broker has closed the connection
        self._is_reset = False
        self._is_closed = False  # this side has closed the connection
        self._to_broker = _Way(network, self._at_broker)
        self._to_client = _Way(network, self._at_client)
        self.connection: Endpoint = broker.connect(_BrokerEnd(self))

    def __repr__(self) -> str:
        return '<MemorySocket %d to %s:%s>' % (self.number, self._address[0], self._address[1])

    def __enter__(self) -> MemorySocket:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    # ------------------------------------------------------------ as a socket

    def settimeout(self, timeout: Optional[float]) -> None:
        """Set the time-out of reads in seconds of the virtual clock; None: no limit, 0:
        non-blocking."""
        self._timeout = timeout

    def gettimeout(self) -> Optional[float]:
        """Return the time-out."""
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        """Make reads blocking without limit, or non-blocking."""
        self._timeout = None if flag else 0.0

    def setsockopt(self, *options: Any) -> None:
        """Ignore options."""

    def getpeername(self) -> Tuple[str, int]:
        """Return the address of the broker."""
        return self._address

    def sendall(self, data: bytes) -> None:
        """Send bytes. Raises OSError if the connection has ended."""
        self._check()
        if self._is_ended:
            raise BrokenPipeError(errno.EPIPE, 'the broker has closed the connection')
        if data:
            self._to_broker.send(bytes(data))

    def send(self, data: bytes) -> int:
        """Send bytes as sendall(); return their number."""
        self.sendall(data)
        return len(data)

    def recv(self, size: int) -> bytes:
        """Return bytes, executing events until some arrive; b'' at the end of the stream.

        Raises socket.timeout, OSError if the connection has ended; BlockingIOError if it is
        non-blocking and nothing has arrived; IllegalStateError if nothing can ever arrive.
        """
        self._wait()
        if not self._arrived:
            return b''
        piece = self._arrived.popleft()
        if len(piece) > size:
            self._arrived.appendleft(piece[size:])
            piece = piece[:size]
        self._unread_bytes -= len(piece)
        if self._unread_bytes <= MAX_UNREAD_BYTES:
            self.connection.resume()
        return piece

    def recv_into(self, buffer: Any, size: int = 0) -> int:
        """Read into a buffer; otherwise as recv()."""
        view = memoryview(buffer)
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        """Announce the end of sending. Raises OSError if the connection has ended."""
        self._check()
        if how != socket.SHUT_RD and not self._is_ended:
            self._to_broker.send(b'')

    def close(self) -> None:
        """Close this side."""
        if not self._is_closed:
            self._is_closed = True
            self._arrived.clear()
            self._network.note(self.number, 'closed by the client')
            self._to_broker.send(b'')
            self._network.forget(self)

    @property
    def is_ready(self) -> bool:
        """Whether recv() would return immediately."""
        return bool(self._arrived) or self._is_ended or self._is_reset

    def _check(self) -> None:
        if self._is_closed:
            raise OSError(errno.EBADF, 'the socket is closed')
        if self._is_reset:
            raise ConnectionResetError(errno.ECONNRESET, 'the broker was killed')

    def _wait(self) -> None:
        """Execute events until something arrives."""
        timers = self._network.timers
        start = timers.clock.monotonic()
        end = math.inf if self._timeout is None else start + self._timeout
        for _ in range(MAX_STEPS):
            self._check()
            if self.is_ready:
                return
            if self._timeout == 0:
                raise BlockingIOError(errno.EAGAIN, 'nothing has arrived')
            if not timers.step(end):
                if end == math.inf:
                    raise IllegalStateError('%r waits forever: there are no events' % (self,))
                timers.advance(end - timers.clock.monotonic())
                raise socket.timeout('timed out')
        raise IllegalStateError('%r waits, but nothing arrives after many events' % (self,))

    # ------------------------------------------------------------ the broker's side

    def confirm(self) -> bool:
        """Store the pending data on the disk; break the connection if that fails."""
        storage = self.connection.broker.state.storage
        try:
            if storage is not None:
                storage.commit()
        except StorageError:
            self.reset()
            return False
        return True

    def on_written(self, data: bytes) -> None:
        """Send bytes of the broker to the client."""
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self.connection.pause()
        self._network.when_awake(self.connection.broker, lambda: self._to_client.send(data))

    def on_closed(self) -> None:
        """Send the end of the broker's stream."""
        if not self._is_reset:
            self._network.when_awake(self.connection.broker, lambda: self._to_client.send(b''))

    def reset(self) -> None:
        """Break the connection: bytes in transit are lost."""
        self._is_reset = True
        self._arrived.clear()
        self._network.note(self.number, 'broken')
        self._network.forget(self)
        self.connection.close()
        self._tell()

    def _at_broker(self, data: bytes) -> None:
        self._network.when_awake(self.connection.broker, lambda: self._receive(data))

    def _receive(self, data: bytes) -> None:
        if not self._is_reset and not self.connection.is_closed:
            self._network.note(self.number, 'broker receives', len(data))
            self.connection.receive_data(data)

    def _at_client(self, data: bytes) -> None:
        if self._is_reset or self._is_closed:
            return
        self._network.note(self.number, 'client receives', len(data))
        if data:
            self._arrived.append(data)
        else:
            self._is_ended = True
        self._tell()

    def _tell(self) -> None:
        if self.on_ready is not None:
            self.on_ready()


class MemoryCluster(Cluster):
    """A cluster in the thread of its client; see the docstring of this module.

    Arguments: as for Cluster, except that idle connections are not closed unless
    ``connections_max_idle_ms`` is given, so that a read without a response is detected immediately,
    instead of ending when a broker closes the connection after ten minutes; seed: also of the
    network. Addresses are names only.

    Attributes: timers: the clock, and pending events.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings.setdefault('connections_max_idle_ms', None)
        super().__init__(*arguments, **settings)

    def _make_clock(self) -> Clock:
        return VirtualClock()

    def _make_server(self) -> Network:
        return Network(self.timers, random.Random('network %r' % (self.seed,)))

    @property
    def network(self) -> Network:
        """The connections of clients and brokers. Raises IllegalStateError before start()."""
        if not isinstance(self._server, Network):
            raise IllegalStateError('%r was not started' % (self,))
        return self._server

    @property
    def trace(self) -> List[Event]:
        """The events on the connections, oldest first; at most the last 100,000."""
        return list(self.network.trace)

    def connect(self, node_id: int = 0) -> MemorySocket:
        """Return a non-blocking connection to a broker.

        Raises KeyError for an unknown broker, ConnectionRefusedError for one that is not running.
        """
        node = self.state.nodes[node_id]
        return self.network.connect((node.host, node.port), 0.0)

    def step(self) -> bool:
        """Execute the next event, at its time. Returns whether there was one."""
        return self.timers.step()

    def advance(self, seconds: float) -> None:
        """Let time pass, and execute the events of that time."""
        self.timers.advance(seconds)

    def run_until(self, condition: Callable[[], Any], seconds: float = 60.0) -> None:
        """Execute events until a condition holds. Raises TimeoutError after this time."""
        end = self.timers.clock.monotonic() + seconds
        while not condition():
            if not self.timers.step(end):
                raise TimeoutError('the condition did not hold within %s seconds' % seconds)

    @contextmanager
    def patched(self) -> Iterator[MemoryCluster]:
        """Let clients of this thread connect here and use this clock, inside a ``with`` block.

        Replaces ``socket.create_connection``, ``time.sleep``, ``time.monotonic`` and ``time.time``
        for this thread; other threads use the originals. Only the cluster can be connected to. The
        module ``random`` is seeded, since clients shuffle their brokers, and restored afterwards.
        Threads of a client are not simulated.
        """
        clock = self.timers.clock
        thread = threading.get_ident()

        def create_connection(address: Any, timeout: Any = None, *rest: Any, **more: Any) -> Any:
            seconds = timeout if isinstance(timeout, (int, float)) else None
            return self.network.connect(address, seconds)

        stand_ins: List[Tuple[Any, str, Callable[..., Any]]] = [
            (socket, 'create_connection', create_connection),
            (time, 'sleep', self.advance),
            (time, 'monotonic', clock.monotonic),
            (time, 'time', lambda: clock.wall_ms() / 1000.0),
        ]
        originals = [(module, name, getattr(module, name)) for module, name, _ in stand_ins]

        def only_here(here: Callable[..., Any], elsewhere: Any) -> Callable[..., Any]:
            def choose(*args: Any, **named: Any) -> Any:
                chosen = here if threading.get_ident() == thread else elsewhere
                return chosen(*args, **named)

            return choose

        for (module, name, stand_in), (_, _, original) in zip(stand_ins, originals):
            setattr(module, name, only_here(stand_in, original))
        state_of_chance = random.getstate()
        random.seed('client %r' % (self.seed,))
        try:
            yield self
        finally:
            random.setstate(state_of_chance)
            for module, name, original in originals:
                setattr(module, name, original)
