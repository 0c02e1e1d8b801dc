"""One round of requests: every request is sent before the first response is read.

Both blocking clients send with exchange(); a Carrier adapts it to their connections: BytesCarrier
for KafkaClient of 0.9.5, StructCarrier (kafka/blocking/request_connection.py) for SimpleClient of
1.x. No response is left unread on a connection that will be used again, since a later request would
take it for its own. Follows the protocol guide ("Network": a broker answers the requests of a
connection in order) and 0.9.5, which sent to all leaders before it read.

Runs in the caller's thread, where an exception may be raised at any step, and a signal handler may
send over the same connections.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Tuple

from kafka.conn import KafkaConnection
from kafka.errors import FailedPayloadsError, KafkaConnectionError, KafkaError, ProtocolError
from kafka.internals.running_calls import is_in_call
from kafka.protocol.unwritten import Unwritten
from kafka.structs import BrokerMetadata

log = logging.getLogger('kafka.client')

Address = Tuple[str, int]
#: The connections that a call waits on, and whether each is a spare that was made for it. A call
#: keeps this list in a local variable named ``asked``, which is_in_call() searches for.
Asked = List[Tuple[Any, bool]]
#: A function that reads the response to a request; returns (response, error of its future or None).
Receive = Callable[[], Tuple[Any, Any]]

_NO_ADDRESS = 'the metadata names no address for this broker'

# Bypassed while no program has replaced them.
_OwnConnection = KafkaConnection
_SEND, _RECV = KafkaConnection.send, KafkaConnection.recv
_CONNECT = KafkaConnection.get_connected_socket


class Request(NamedTuple):
    """One request, encoded or Unwritten.

    `address` is None if only the node id of the broker is known.
    """

    address: Optional[Address]
    request_id: int
    data: Any
    payloads: List[Any]


class Outcome(NamedTuple):
    """The result of a request: the response as received, or Unread; or the connection's error."""

    request: Request
    answer: Any
    error: Optional[KafkaConnectionError]


def address_of(broker: BrokerMetadata) -> Optional[Address]:
    """Return the address of a broker in the metadata; None if the metadata has no address for it.

    That is so for a leader that is not listed, and for a host that is empty or not text.
    """
    host = broker.host
    if isinstance(host, bytes):
        try:
            host = host.decode('utf-8')
        except UnicodeDecodeError:
            return None
    return (host, broker.port) if host and broker.port is not None else None


def request_tuples(payloads: Any) -> List[Any]:
    """Return the payloads as a list; TypeError unless it is a list of request tuples."""
    try:
        listed = list(payloads)
        for payload in listed:
            payload.topic, payload.partition  # noqa: B018 - raises AttributeError for other objects
    except (TypeError, AttributeError) as error:
        raise TypeError(
            'payloads must be a list of tuples with topic and partition, not %s'
            % type(payloads).__name__
        ) from error
    return listed


def check_callback(callback: Any) -> None:
    """Raise TypeError unless a callback can be called, before any request is sent."""
    if callback is not None and not callable(callback):
        raise TypeError('callback must be callable or None, not %s' % type(callback).__name__)


def failed(payload: Any, cause: Any) -> FailedPayloadsError:
    """Return the FailedPayloadsError for a payload whose request failed, with its cause."""
    error = FailedPayloadsError(payload)
    # The future of a connection that the program passed in may have failed with any object.
    error.__cause__ = cause if isinstance(cause, BaseException) else None
    return error


def in_order(payloads: List[Any], responses: Dict[Any, Any]) -> List[Any]:
    """Return the responses in the order of the payloads; ProtocolError where one is missing."""
    ordered = []
    for payload in payloads:
        key = (payload.topic, payload.partition)
        try:
            ordered.append(responses[key])
        except KeyError:
            raise ProtocolError('the answer says nothing about %r, partition %r' % key) from None
    return ordered


def abandon(conn: Any) -> None:
    """Close a connection on which a response may still arrive.

    A connection that the program passed in need not have ``close``, and it may fail in any way.
    """
    if issubclass(type(conn), _OwnConnection):
        conn.close()  # raises only interrupts: then the caller must not treat it as closed
        return
    try:
        conn.close()
    except Exception:
        log.debug('closing %s failed', conn, exc_info=True)


class Carrier(Protocol):
    """How the connections of a client send requests and receive responses.

    ``is_own`` means that a connection is this package's own, with none of its methods replaced. A
    connection that the program passed in only needs ``send`` and ``recv``.
    """

    def take(self, conn: Any, asked: Asked) -> Tuple[Any, bool]:
        """Return a connection with no response pending in this thread, and whether it is own."""

    def ask(self, request: Request, conn: Any) -> Outcome:
        """Send a request over an own connection and read its response."""

    def send(self, request: Request, conn: Any, is_own: bool, wants_answer: bool) -> Any:
        """Send a request; return a Receive for its response, or None if there is none to read."""

    def let_go(self, asked: Asked) -> None:
        """Release the connections that take() has recorded; close the spares."""


def exchange(
    requests: List[Request],
    connect: Callable[[Address], Any],
    wants_answers: bool,
    carrier: Optional[Carrier] = None,
) -> List[Outcome]:
    """Send every request, then read every response.

    Arguments: connect: returns the connection to an address, and may raise KafkaConnectionError;
        wants_answers: False for requests that brokers do not answer; carrier: that of the
        connections, of KafkaConnections by default.
    Returns: one Outcome a request, in no particular order; an error of one connection does not
        affect the others. Any other exception is raised after every connection with a pending
        response was closed: an interrupt, or a failure of a future that a retry would meet again,
        such as a codec that is not installed.
    """
    if carrier is None:
        carrier = BYTES
    is_single = wants_answers and len(requests) == 1
    outcomes: List[Outcome] = []
    waiting: List[Tuple[Request, Any]] = []
    receives: List[Any] = []
    asked: Asked = []
    try:
        for request in requests:
            try:
                if request.address is None:
                    raise KafkaConnectionError(_NO_ADDRESS)
                conn, is_own = carrier.take(connect(request.address), asked)
                if is_single and is_own:
                    return [carrier.ask(request, conn)]
                # Before sending: if an exception ends it, it is unknown how much was sent.
                waiting.append((request, conn))
                receives.append(carrier.send(request, conn, is_own, wants_answers))
            except KafkaConnectionError as error:
                if waiting and waiting[-1][0] is request:
                    abandon(conn)
                    waiting.pop()
                outcomes.append(Outcome(request, None, error))
        while waiting:
            (request, conn), receive = waiting[0], receives[0]
            answer, failure, is_lost = None, None, False
            try:
                if receive is not None:
                    answer, failure = receive()
            except KafkaConnectionError as lost:
                abandon(conn)
                failure, is_lost = lost, True
            del waiting[0], receives[0]
            if not is_lost and isinstance(failure, KafkaError) and not failure.retriable:
                raise failure
            outcomes.append(Outcome(request, answer, failure))
    finally:
        for _, conn in waiting:
            abandon(conn)
        if asked:
            carrier.let_go(asked)
    return outcomes


class BytesCarrier:
    """Carries requests as bytes with correlation ids, over KafkaConnections."""

    def __repr__(self) -> str:
        return '<BytesCarrier>'

    def take(self, conn: Any, asked: Asked) -> Tuple[Any, bool]:
        """Return a connection with no response pending in this thread, and whether it is own.

        It is own if no method of KafkaConnection is replaced, in its class or in the instance.
        """
        kind: Any = type(conn)
        if (
            not issubclass(kind, _OwnConnection)
            or kind.send is not _SEND
            or kind.recv is not _RECV
            or kind.get_connected_socket is not _CONNECT
        ):
            return conn, False
        here = vars(conn)
        if 'send' in here or 'recv' in here or 'get_connected_socket' in here:
            return conn, False
        return _free(conn, asked), True

    def ask(self, request: Request, conn: KafkaConnection) -> Outcome:
        """Send a request over an own connection and read its response."""
        is_answered = False
        try:
            answer = conn.ask(request.request_id, request.data)
            is_answered = True
            return Outcome(request, answer, None)
        except KafkaConnectionError as error:
            return Outcome(request, None, error)
        finally:
            if not is_answered:
                abandon(conn)

    def send(
        self, request: Request, conn: Any, is_own: bool, wants_answer: bool
    ) -> Optional[Receive]:
        """Send a request; return a Receive for its response, or None if there is none to read."""
        request_id, data = request.request_id, request.data
        if is_own and isinstance(data, Unwritten):
            conn.send_unwritten(request_id, data)
            return (lambda: (conn.recv_unread(request_id), None)) if wants_answer else None
        conn.send(request_id, data.write() if isinstance(data, Unwritten) else data)
        return (lambda: (conn.recv(request_id), None)) if wants_answer else None

    def let_go(self, asked: Asked) -> None:
        """Release the connections that take() has recorded; close the spares."""
        for conn, is_spare in asked:
            conn.is_asked = None
            if is_spare:
                abandon(conn)


BYTES = BytesCarrier()


def ask(conn: Any, request_id: int, data: Any, decode: Callable[[Any], Any]) -> Any:
    """Send one request and return its decoded response; close the connection if that fails."""
    asked: Asked = []
    is_answered = False
    try:
        conn, _ = BYTES.take(conn, asked)
        conn.send(request_id, data)
        answer = decode(conn.recv(request_id))
        is_answered = True
        return answer
    finally:
        if not is_answered:
            abandon(conn)
        BYTES.let_go(asked)


def _free(conn: KafkaConnection, asked: Asked) -> KafkaConnection:
    """Return a connection with no response pending in this thread, and record it in `asked`.

    A signal handler that sends while the interrupted call waits gets a connection of its own: the
    next response on this one belongs to that call. A mark is also left by a call that an exception
    ended before it could close the connection.
    """
    mark = conn.is_asked
    is_spare = mark is not None and is_in_call('asked', mark)
    if is_spare:
        conn = conn.copy()
    elif mark is not None:
        conn.close()
    asked.append((conn, is_spare))
    conn.is_asked = asked
    return conn
