"""One round of requests: everything is sent before the first answer is read.

Owns the order of sending and reading over several connections, and that no answer is left unread on
a connection that will be used again: a later request would take it for its own. Whom to ask, and
what a failure means, is the client's business. Follows the protocol guide ("Network": a broker
answers a connection's requests in their order) and 0.9.5, which asked all leaders before it read.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from kafka.conn import KafkaConnection
from kafka.errors import FailedPayloadsError, KafkaConnectionError, ProtocolError
from kafka.internals.running_calls import is_in_call
from kafka.protocol.unwritten import Unwritten

log = logging.getLogger('kafka.client')

Address = Tuple[str, int]

_NO_ADDRESS = 'the metadata names no address for this broker'

# What may be passed by, as long as no program has put something else there.
_OwnConnection = KafkaConnection
_SEND, _RECV = KafkaConnection.send, KafkaConnection.recv
_CONNECT = KafkaConnection.get_connected_socket


class Request(NamedTuple):
    """One request, encoded or Unwritten.

    `address` is None where the broker is known by its node id alone.
    """

    address: Optional[Address]
    request_id: int
    data: Any
    payloads: List[Any]


class Outcome(NamedTuple):
    """What became of a request: the answer as received, or Unread; or its connection's error."""

    request: Request
    answer: Any
    error: Optional[KafkaConnectionError]


def address_of(broker: Any) -> Optional[Address]:
    """Return where a broker of the metadata listens; None where the metadata names no address.

    So it is for a leader that is not listed, and for a host that is empty or no text.
    """
    host = broker.host
    if isinstance(host, bytes):
        try:
            host = host.decode('utf-8')
        except UnicodeDecodeError:
            return None
    return (host, broker.port) if host and broker.port is not None else None


def request_tuples(payloads: Any) -> List[Any]:
    """Return the payloads as a list; TypeError for what is no list of request tuples."""
    try:
        listed = list(payloads)
        for payload in listed:
            payload.topic, payload.partition  # noqa: B018 - that they are there is the question
    except (TypeError, AttributeError) as error:
        raise TypeError(
            'payloads must be a list of tuples with topic and partition, not %s'
            % type(payloads).__name__
        ) from error
    return listed


def check_callback(callback: Any) -> None:
    """Raise TypeError unless answers can be passed through it: before they are asked for."""
    if callback is not None and not callable(callback):
        raise TypeError('callback must be callable or None, not %s' % type(callback).__name__)


def failed(payload: Any, cause: Any) -> FailedPayloadsError:
    """Return the response of a payload whose broker could not be asked; it knows the cause."""
    error = FailedPayloadsError(payload)
    # The future of a connection that a program brought along may have failed with anything.
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
    """Close a connection on which an answer may still come.

    A connection that a program brought along need not have ``close``, and it may fail in any way.
    """
    if issubclass(type(conn), _OwnConnection):
        conn.close()  # raises only what interrupts it: the caller must not take it for closed then
        return
    try:
        conn.close()
    except Exception:
        log.debug('closing %s failed', conn, exc_info=True)


def ask(conn: Any, request_id: int, data: Any, decode: Callable[[Any], Any]) -> Any:
    """Send one request and return its decoded answer; close the connection if that fails."""
    asked: List[Tuple[Any, bool]] = []
    is_answered = False
    try:
        if _is_own(conn):
            conn = _free(conn, asked)
        conn.send(request_id, data)
        answer = decode(conn.recv(request_id))
        is_answered = True
        return answer
    finally:
        if not is_answered:
            abandon(conn)
        _let_go(asked)


def exchange(
    requests: List[Request], connect: Callable[[Address], Any], wants_answers: bool
) -> List[Outcome]:
    """Send every request, then read every answer.

    Arguments: connect: gives the connection to an address, and may raise KafkaConnectionError;
        wants_answers: False for requests that brokers do not answer.
    Returns: one Outcome a request, in no particular order; an error of one connection leaves the
        others alone. Any other exception, an interrupt too, passes through, after every connection
        that still owes an answer was closed.
    """
    if wants_answers and len(requests) == 1:
        return [_ask_alone(requests[0], connect)]
    outcomes: List[Outcome] = []
    waiting: List[Tuple[Request, Any]] = []
    receive: Dict[int, Callable[[int], Any]] = {}  # by request id
    asked: List[Tuple[Any, bool]] = []
    try:
        for request in requests:
            conn = None
            try:
                conn = _connected(request.address, connect, asked)
                waiting.append((request, conn))
                receive[request.request_id] = _send(conn, request)
            except KafkaConnectionError as error:
                if conn is not None:
                    abandon(conn)
                    waiting.pop()
                outcomes.append(Outcome(request, None, error))
        if not wants_answers:
            outcomes += [Outcome(request, None, None) for request, _ in waiting]
            waiting.clear()
        while waiting:
            request, conn = waiting[0]
            try:
                answer = receive[request.request_id](request.request_id)
                outcomes.append(Outcome(request, answer, None))
            except KafkaConnectionError as error:
                abandon(conn)
                outcomes.append(Outcome(request, None, error))
            del waiting[0]
    finally:
        for _, conn in waiting:
            abandon(conn)
        _let_go(asked)
    return outcomes


def _ask_alone(request: Request, connect: Callable[[Address], Any]) -> Outcome:
    """Do what exchange() does for a single request: nothing else is there to wait for."""
    conn, is_answered = None, False
    asked: List[Tuple[Any, bool]] = []
    try:
        if request.address is None:
            raise KafkaConnectionError(_NO_ADDRESS)
        conn = connect(request.address)
        if _is_own(conn):
            conn = _free(conn, asked)
            answer = conn.ask(request.request_id, request.data)
        else:
            data = request.data
            conn.send(request.request_id, data.write() if isinstance(data, Unwritten) else data)
            answer = conn.recv(request.request_id)
        is_answered = True
        return Outcome(request, answer, None)
    except KafkaConnectionError as error:
        return Outcome(request, None, error)
    finally:
        if conn is not None and not is_answered:
            abandon(conn)
        _let_go(asked)


def _free(conn: Any, asked: List[Tuple[Any, bool]]) -> Any:
    """Return a connection on which this thread waits for nothing, and note it as asked.

    A signal handler that sends while the interrupted call waits gets a connection of its own: the
    next answer on this one belongs to that call. A call that an exception ended before it could
    close the connection has left its mark, too.
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


def _let_go(asked: List[Tuple[Any, bool]]) -> None:
    for conn, is_spare in asked:
        conn.is_asked = None
        if is_spare:
            abandon(conn)


def _is_own(conn: Any) -> bool:
    """Tell whether a connection is this package's own, with nothing replaced."""
    kind: Any = type(conn)
    if (
        not issubclass(kind, _OwnConnection)
        or kind.send is not _SEND
        or kind.recv is not _RECV
        or kind.get_connected_socket is not _CONNECT
    ):
        return False
    here = vars(conn)
    return 'send' not in here and 'recv' not in here and 'get_connected_socket' not in here


def _send(conn: Any, request: Request) -> Callable[[int], Any]:
    """Send a request and return what will receive its answer."""
    data = request.data
    if isinstance(data, Unwritten):
        if _is_own(conn):
            conn.send_unwritten(request.request_id, data)
            receive: Callable[[int], Any] = conn.recv_unread
            return receive
        data = data.write()
    conn.send(request.request_id, data)
    return lambda request_id: conn.recv(request_id)


def _connected(
    address: Optional[Address], connect: Callable[[Address], Any], asked: List[Tuple[Any, bool]]
) -> Any:
    if address is None:
        raise KafkaConnectionError(_NO_ADDRESS)
    conn = connect(address)
    return _free(conn, asked) if _is_own(conn) else conn
