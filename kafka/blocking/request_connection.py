"""RequestConnection: takes request structs and gives futures, as SimpleClient of 1.x needs it.

It lets a KafkaConnection carry what 1.x sent through a BrokerConnection; StructCarrier sends a
round of requests over such connections (kafka/blocking/exchange.py). A connection that a program
brings along needs ``send``, ``recv`` and, for when it is given up, ``close``.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

from kafka.blocking.exchange import Asked, Outcome, Receive, Request, abandon
from kafka.conn import KafkaConnection
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.future import Future
from kafka.internals.error_copies import unraised_copy
from kafka.internals.running_calls import is_in_call
from kafka.protocol.api import ApiKey, RequestHeader
from kafka.protocol.negotiation import Ranges
from kafka.protocol.translation import OldRequest, Unread
from kafka.protocol.unwritten import Unwritten

# Requests that are translated without their old bytes where the broker keeps magic 2.
_WITH_RECORDS = (ApiKey.PRODUCE, ApiKey.FETCH)

# The class itself: the global of this name may be replaced.
_OwnConnection = KafkaConnection

# How much is read at once: a small answer together with its length, a large one in few pieces. Each
# read is two calls of the system where there is a time-out: benchmarks/simple.py --only consume.
AHEAD_BYTES = 64 * 1024

# The pause after a recv() that brought nothing, in seconds. RequestConnection's waits by itself.
PAUSE_SECONDS = 0.001


class RequestConnection(threading.local):
    """A connection to one broker for request structs, as SimpleClient uses it (1.x).

    Arguments: host, port: the broker; afi: the address family that its name stands for; client_id:
    str or bytes, what to call oneself in each request; timeout: seconds, as KafkaConnection;
    security: what secures it, None for nothing.

    It connects when connect() is called or something is sent. As a KafkaConnection it is local to
    the thread: another one that uses it gets a socket of its own.
    """

    def __init__(
        self,
        host: str,
        port: int,
        afi: int,
        client_id: Any,
        timeout: Optional[float],
        security: Any = None,
    ) -> None:
        super().__init__()
        self._security = security
        self.host = host
        self.port = port
        self.afi = afi
        self.client_id = client_id
        self.timeout = timeout
        self._client_name = client_id.decode('utf-8') if isinstance(client_id, bytes) else client_id
        self._conn: Optional[KafkaConnection] = None
        self._correlation_id = 0
        self.in_flight: Deque[Tuple[int, Any, Future]] = deque()
        self.is_asked: Any = None  # the mark of ask(), while it waits for an answer

    def __repr__(self) -> str:
        return '<RequestConnection host=%s port=%s>' % (self.host, self.port)

    def __reduce__(self) -> Tuple[Any, ...]:
        # Copies, deep ones and those for other processes, are made like copy().
        return type(self), self._arguments()

    def _arguments(self) -> Tuple[Any, ...]:
        return self.host, self.port, self.afi, self.client_id, self.timeout, self._security

    def connect(self) -> KafkaConnection:
        """Connect, unless it is connected. Raises: KafkaConnectionError."""
        conn = self._conn
        if conn is None:
            options = {} if self._security is None else {'security': self._security}
            made = KafkaConnection(self.host, self.port, timeout=self.timeout, **options)
            self._conn = conn = made
            if type(conn) is _OwnConnection:
                conn.ahead_bytes = AHEAD_BYTES
        elif type(conn) is not _OwnConnection or conn._sock is None:
            conn.get_connected_socket()  # where there is a socket, using it tells whose it is
        return conn

    def _carrier(self) -> KafkaConnection:
        """Return what connects by itself when it is used; otherwise as connect()."""
        conn = self._conn
        return conn if conn is not None and type(conn) is _OwnConnection else self.connect()

    def connected(self) -> bool:
        """Return whether there is a socket."""
        return self._conn is not None and self._conn._sock is not None

    def api_versions(self) -> Ranges:
        """Return what the broker serves; see KafkaConnection. Raises: KafkaConnectionError."""
        conn = self._conn
        return (self.connect() if conn is None else conn).api_versions()

    def ask(self, request: Any) -> Any:
        """Send a request struct and return its response struct: send() and recv() without a future.

        Nothing else may wait for an answer. Raises: what the future would fail with; what the
        struct raises when it is encoded.
        """
        self._correlation_id = request_id = (self._correlation_id + 1) % 2**31
        conn = self._conn
        if conn is None or type(conn) is not _OwnConnection:
            conn = self.connect()
        data = self._data(conn, request)
        self.is_asked = asked = [False]
        try:
            if type(conn) is _OwnConnection:
                answer: Any = conn.ask(request_id, data)
            else:
                conn.send(request_id, data)
                answer = conn.recv(request_id)
            response = _read(answer, request.RESPONSE_TYPE)
            asked[0] = True
            return response
        finally:
            if not asked[0]:
                self.close()  # part of the answer may be left on it
            self.is_asked = None

    def send(self, request: Any, expect_response: bool = True) -> Future:
        """Send a request struct; return the future of its response struct.

        Arguments: expect_response: False for a request that brokers do not answer; its future has
        the value None.
        A connection that fails, or a broker that cannot be asked this, fails the future. Raises:
        what the struct raises when it is encoded.
        """
        self._correlation_id = (self._correlation_id + 1) % 2**31
        future = Future()
        try:
            self._send(self._carrier(), request)
        except KafkaError as error:
            if isinstance(error, KafkaConnectionError):
                self._fail(error)
            return future.failure(error)
        if not expect_response:
            return future.success(None)
        self.in_flight.append((self._correlation_id, request, future))
        return future

    def recv(self) -> Any:
        """Wait for the response to the oldest request and complete its future; return it, or None.

        Where the response cannot be had or read, the future fails instead; a connection that fails
        fails all of them.
        """
        if not self.in_flight:
            return None
        request_id, request, future = self.in_flight[0]
        try:
            response = self._receive(self._carrier(), request_id, request.RESPONSE_TYPE)
        except KafkaConnectionError as error:
            self._fail(error)
            return None
        except KafkaError as error:
            self.in_flight.popleft()
            future.failure(error)
            self.close()  # part of the answer may be left on it
            return None
        self.in_flight.popleft()
        future.success(response)
        return response

    def _send(self, conn: Any, request: Any) -> None:
        data = self._data(conn, request)
        if isinstance(data, Unwritten):
            conn.send_unwritten(self._correlation_id, data)
        else:
            conn.send(self._correlation_id, data)

    def _data(self, conn: Any, request: Any) -> Any:
        """Return a request as its connection takes it; records that need no bytes go without."""
        if request.API_KEY not in _WITH_RECORDS or type(conn) is not _OwnConnection:
            return request.framed(self._correlation_id, self._client_name)
        header = RequestHeader(
            request.API_KEY, request.API_VERSION, self._correlation_id, self._client_name
        )
        write = functools.partial(request.framed, self._correlation_id, self._client_name)
        return Unwritten(OldRequest(header, request.unwritten()), write)

    def _receive(self, conn: Any, request_id: int, response_type: Any) -> Any:
        if type(conn) is _OwnConnection:
            return _read(conn.recv_unread(request_id), response_type)
        return _read(conn.recv(request_id), response_type)

    def _fail(self, error: KafkaError) -> None:
        """Close the connection and fail every future that waits: their answers are lost with it."""
        if self._conn is not None:
            self._conn.close()
        waiting, self.in_flight = self.in_flight, deque()
        for _, _, future in waiting:
            future.failure(error)
            error = unraised_copy(error)  # for the next one

    def close(self) -> None:
        """Close the connection and fail what waits for answers; the next use connects again."""
        self._fail(
            KafkaConnectionError('the connection to %s:%s was closed' % (self.host, self.port))
        )

    def reinit(self) -> None:
        """Close the connection if there is one, and connect. Raises: KafkaConnectionError."""
        self.close()
        self.connect()

    def copy(self) -> RequestConnection:
        """Return an object for the same broker, not connected."""
        return type(self)(*self._arguments())


def _read(answer: Any, response_type: Any) -> Any:
    """Return the response struct in an answer as it was received, or that is still unread."""
    if isinstance(answer, Unread):
        return response_type.of(answer.response)
    return response_type.decode(answer[4:])  # after the correlation id


# What need not be called, unless a program has put its own in the place.
_OwnRequests = RequestConnection
_SEND, _RECV = RequestConnection.send, RequestConnection.recv


def _is_own(conn: Any) -> bool:
    """Return whether a connection is this package's own, with nothing replaced or under way."""
    if type(conn) is not _OwnRequests or conn.in_flight:
        return False
    if _OwnRequests.send is not _SEND or _OwnRequests.recv is not _RECV:
        return False
    here = vars(conn)
    return 'send' not in here and 'recv' not in here


# ---------------------------------------------------------------- asking


class StructCarrier:
    """Carries requests as structs, over RequestConnections and the like; see Carrier.

    Arguments: timeout: seconds that a response may take on a connection which does not limit that
    itself; None for any number.
    """

    def __init__(self, timeout: Optional[float]) -> None:
        self._timeout = timeout

    def __repr__(self) -> str:
        return '<StructCarrier timeout=%s>' % (self._timeout,)

    def take(self, conn: Any, asked: Asked) -> Tuple[Any, bool]:
        """Return a connection on which this thread waits for nothing, and whether it is own."""
        if type(conn) is _OwnRequests and (conn.is_asked or conn.in_flight):
            conn = _free(conn, asked)
        return conn, _is_own(conn)

    def ask(self, request: Request, conn: RequestConnection) -> Outcome:
        """Send a request over an own connection and read its answer; raise what is final."""
        try:
            return Outcome(request, conn.ask(request.data), None)
        except KafkaError as error:
            if not error.retriable:
                raise
            failure: Any = error
            return Outcome(request, None, failure)

    def send(self, request: Request, conn: Any, is_own: bool, wants_answer: bool) -> Receive:
        """Send a request; return what waits until its future is done."""
        options = {} if wants_answer else {'expect_response': False}
        future: Future = conn.send(request.data, **options)

        def receive() -> Tuple[Any, Any]:
            if wants_answer:
                _settle(conn, future, self._timeout)
            return future.value, future.exception if future.failed() else None

        return receive

    def let_go(self, asked: Asked) -> None:
        """Close the spares that take() has noted."""
        for conn, _ in asked:
            abandon(conn)


def ask_for(conn: Any, request: Any, decode: Callable[[Any], Any], timeout: Optional[float]) -> Any:
    """Send one request and return its decoded response.

    Arguments: timeout: as for StructCarrier.
    Raises: what the future fails with, or `decode` raises; KafkaConnectionError when time is over.
    """
    asked: Asked = []
    try:
        if type(conn) is _OwnRequests and (conn.is_asked or conn.in_flight):
            conn = _free(conn, asked)
        if _is_own(conn):
            return decode(conn.ask(request))
        future = conn.send(request)
        _settle(conn, future, timeout)
        if future.failed():
            raise future.exception
        return decode(future.value)
    finally:
        for spare, _ in asked:
            abandon(spare)


def _free(conn: RequestConnection, asked: Asked) -> RequestConnection:
    """Return a connection on which this thread waits for nothing, for one on which it may.

    In the handler of a signal, while the interrupted call waits on `conn`, it is a new one, a
    spare, and noted; see kafka.blocking.exchange.
    """
    if conn.is_asked is not None and not is_in_call('asked', conn.is_asked):
        conn.close()  # that call was ended by an exception, and could not close it
        conn.is_asked = None
        return conn
    conn = conn.copy()
    asked.append((conn, True))
    return conn


def _settle(conn: Any, future: Future, timeout: Optional[float]) -> None:
    """Let a connection work until a future is done; KafkaConnectionError when time is over."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 0.0
    while not future.is_done:
        if deadline is not None and time.monotonic() >= deadline:
            raise KafkaConnectionError('%s gave no answer within %s s' % (conn, timeout))
        if pause:
            time.sleep(pause)
        pause = PAUSE_SECONDS
        conn.recv()
