"""RequestConnection: sends request structs and returns futures, for SimpleClient of 1.x.

A KafkaConnection carries what 1.x sent through a BrokerConnection; StructCarrier sends a round of
requests over such connections (kafka/blocking/exchange.py). A connection that the program passes in
needs ``send``, ``recv`` and, for when it is abandoned, ``close``.
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

# Requests with records: translated without encoding the old format if the broker stores magic 2.
_WITH_RECORDS = (ApiKey.PRODUCE, ApiKey.FETCH)

# The class itself: a program may replace the global KafkaConnection.
_OwnConnection = KafkaConnection

# Bytes per read: a small response together with its length, a large one in few pieces. Each read is
# two system calls if there is a time-out (benchmarks/simple.py --only consume).
AHEAD_BYTES = 64 * 1024

# The pause after a recv() that returned nothing, in seconds. RequestConnection.recv() waits itself.
PAUSE_SECONDS = 0.001


class RequestConnection(threading.local):
    """A connection to one broker for request structs, as SimpleClient uses it (1.x).

    Arguments: host, port: the broker; afi: the address family of its name; client_id: str or bytes,
    sent in each request; timeout: seconds, as for KafkaConnection; security: its security settings,
    None for plaintext.

    It connects on connect() or on the first send. Like a KafkaConnection it is thread-local:
    another thread that uses it gets a socket of its own.
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
        self.is_asked: Any = None  # mark of ask() while it waits for a response

    def __repr__(self) -> str:
        return '<RequestConnection host=%s port=%s>' % (self.host, self.port)

    def __reduce__(self) -> Tuple[Any, ...]:
        # Copies, deep ones and those for other processes, are made as by copy().
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
            conn.get_connected_socket()  # using an existing socket checks its owner
        return conn

    def _carrier(self) -> KafkaConnection:
        """Return a connection that connects by itself on use; otherwise as connect()."""
        conn = self._conn
        return conn if conn is not None and type(conn) is _OwnConnection else self.connect()

    def connected(self) -> bool:
        """Return True if there is a socket."""
        return self._conn is not None and self._conn._sock is not None

    def api_versions(self) -> Ranges:
        """Return the versions that the broker serves; see KafkaConnection. Raises as connect()."""
        conn = self._conn
        return (self.connect() if conn is None else conn).api_versions()

    def ask(self, request: Any) -> Any:
        """Send a request struct and return its response struct: send() and recv() without a future.

        No other response may be pending. Raises: what the future would fail with; what the struct
        raises when it is encoded.
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
                self.close()  # part of the response may be unread
            self.is_asked = None

    def send(self, request: Any, expect_response: bool = True) -> Future:
        """Send a request struct; return the future of its response struct.

        Arguments: expect_response: False for a request that brokers do not answer; its future has
        the value None.
        A connection that fails, or a request that the broker does not serve, fails the future.
        Raises: what the struct raises when it is encoded.
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

        If the response cannot be received or decoded, the future fails instead; a connection that
        fails, fails all pending futures.
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
            self.close()  # part of the response may be unread
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
        """Return a request for its connection; records stay unencoded if no bytes are needed."""
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
        """Close the connection and fail every pending future: the responses are lost with it."""
        if self._conn is not None:
            self._conn.close()
        waiting, self.in_flight = self.in_flight, deque()
        for _, _, future in waiting:
            future.failure(error)
            error = unraised_copy(error)  # for the next one

    def close(self) -> None:
        """Close the connection and fail the pending futures; the next use connects again."""
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
    """Return the response struct of a response, in bytes or still Unread."""
    if isinstance(answer, Unread):
        return response_type.of(answer.response)
    return response_type.decode(answer[4:])  # after the correlation id


# Bypassed while no program has replaced them.
_OwnRequests = RequestConnection
_SEND, _RECV = RequestConnection.send, RequestConnection.recv


def _is_own(conn: Any) -> bool:
    """Return True if a connection is this package's own, with nothing replaced or pending."""
    if type(conn) is not _OwnRequests or conn.in_flight:
        return False
    if _OwnRequests.send is not _SEND or _OwnRequests.recv is not _RECV:
        return False
    here = vars(conn)
    return 'send' not in here and 'recv' not in here


# ---------------------------------------------------------------- sending


class StructCarrier:
    """Carries requests as structs over RequestConnections and connections of programs; see Carrier.

    Arguments: timeout: seconds to wait for a response on a connection that has no limit of its own;
    None for no limit.
    """

    def __init__(self, timeout: Optional[float]) -> None:
        self._timeout = timeout

    def __repr__(self) -> str:
        return '<StructCarrier timeout=%s>' % (self._timeout,)

    def take(self, conn: Any, asked: Asked) -> Tuple[Any, bool]:
        """Return a connection with no response pending in this thread, and whether it is own."""
        if type(conn) is _OwnRequests and (conn.is_asked or conn.in_flight):
            conn = _free(conn, asked)
        return conn, _is_own(conn)

    def ask(self, request: Request, conn: RequestConnection) -> Outcome:
        """As Carrier.ask(): send and receive over an own connection; raise non-retriable errors."""
        try:
            return Outcome(request, conn.ask(request.data), None)
        except KafkaError as error:
            if not error.retriable:
                raise
            failure: Any = error
            return Outcome(request, None, failure)

    def send(self, request: Request, conn: Any, is_own: bool, wants_answer: bool) -> Receive:
        """Send a request; return a function that waits until its future is done."""
        options = {} if wants_answer else {'expect_response': False}
        future: Future = conn.send(request.data, **options)

        def receive() -> Tuple[Any, Any]:
            if wants_answer:
                _settle(conn, future, self._timeout)
            return future.value, future.exception if future.failed() else None

        return receive

    def let_go(self, asked: Asked) -> None:
        """Close the spares that take() has recorded."""
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
    """Return a connection with no response pending in this thread, in place of `conn`.

    In a signal handler, while the interrupted call waits on `conn`, it is a new connection, a
    spare, and recorded in `asked`; see kafka.blocking.exchange.
    """
    if conn.is_asked is not None and not is_in_call('asked', conn.is_asked):
        conn.close()  # an exception ended that call before it could close the connection
        conn.is_asked = None
        return conn
    conn = conn.copy()
    asked.append((conn, True))
    return conn


def _settle(conn: Any, future: Future, timeout: Optional[float]) -> None:
    """Read from a connection until a future is done; KafkaConnectionError after `timeout` s."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 0.0
    while not future.is_done:
        if deadline is not None and time.monotonic() >= deadline:
            raise KafkaConnectionError('%s gave no answer within %s s' % (conn, timeout))
        if pause:
            time.sleep(pause)
        pause = PAUSE_SECONDS
        conn.recv()
