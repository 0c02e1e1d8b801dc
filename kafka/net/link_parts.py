"""What a link to a broker is made of: its states, and those who wait for it.

Owns the states and the moves between them (TRANSITIONS), the back-off, a request in flight, a place
in the queue. Does not own: what happens with them (broker.py).
"""

from __future__ import annotations

import enum
from typing import Any, Callable, Dict, List, Optional

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.loop.tasks import Waiter
from kafka.protocol.session import ConnectionClosed, Session
from kafka.protocol.wire import Message

__all__ = [
    'IDLE_LONG',
    'TRANSITIONS',
    'Answer',
    'LinkState',
    'OnAnswer',
    'Pending',
    'Place',
    'backoff_seconds',
    'closed_text',
    'session_of',
]


#: Seconds without a request after which a broker may be about to close the connection.
IDLE_LONG = 10.0


class LinkState(enum.Enum):
    """How far the connection to a broker is."""

    DISCONNECTED = 'disconnected'
    CONNECTING = 'connecting'
    READY = 'ready'
    RENEWING = 'renewing its login'
    CLOSED = 'closed'

    __hash__ = object.__hash__


TRANSITIONS: Dict[LinkState, List[LinkState]] = {
    LinkState.DISCONNECTED: [LinkState.CONNECTING, LinkState.CLOSED],
    LinkState.CONNECTING: [LinkState.READY, LinkState.DISCONNECTED, LinkState.CLOSED],
    LinkState.READY: [LinkState.RENEWING, LinkState.DISCONNECTED, LinkState.CLOSED],
    LinkState.RENEWING: [LinkState.READY, LinkState.DISCONNECTED, LinkState.CLOSED],
    LinkState.CLOSED: [],
}


def backoff_seconds(base: float, longest: float, failures: int, part: float) -> float:
    """Return how long to wait after so many failures in a row (KIP-580); part: 0.8 to 1.2."""
    if failures <= 0:
        return 0.0
    return min(longest, base * 2.0 ** min(failures - 1, 50) * part)


#: Called in a turn with the response and None, or with None and the error.
OnAnswer = Callable[[Any, Optional[KafkaError]], Any]


class Answer:
    """What stands in for the waiter of a request where a call is to be made."""

    __slots__ = ('_call', '_loop')

    def __init__(self, loop: Any, call: OnAnswer) -> None:
        self._loop = loop
        self._call = call

    def wake(self, response: Any) -> None:
        """Make the call with the response, soon."""
        self._loop.call_soon(self._call, response, None)

    def fail(self, error: KafkaError) -> None:
        """Make the call with the error, soon."""
        self._loop.call_soon(self._call, None, error)


class Pending:
    """A request that was sent and not answered. Arguments: answer: a waiter or Answer."""

    __slots__ = ('answer', 'deadline', 'message', 'timeout')

    def __init__(self, message: Message, answer: Any, deadline: float, timeout: float) -> None:
        self.message = message
        self.answer = answer
        self.deadline = deadline
        self.timeout = timeout


class Place:
    """A place in the queue of those who want to send. counts: whether it will be in flight."""

    __slots__ = ('counts', 'waiter')

    def __init__(self, counts: bool) -> None:
        self.counts = counts
        self.waiter: Waiter[None] = Waiter()


def session_of(link: Any) -> Session:
    """Return the session of a link that has become ready.

    Raises KafkaConnectionError where there is none: bytes that came with the last answer of the
    handshake, or right after it, may end a connection before those who wait for it have their turn.
    """
    session: Optional[Session] = link.session
    if session is None:
        raise KafkaConnectionError('%r was lost as soon as it was ready' % (link,))
    return session


def closed_text(host: str, port: int, event: ConnectionClosed) -> str:
    """Say how a broker closed a connection."""
    text = '%s:%s closed the connection' % (host, port)
    if event.inside_frame:
        return text + ' in the middle of an answer'
    if event.unanswered:
        return '%s while %s waited for an answer' % (
            text,
            ', '.join(sorted({type(each).__name__ for each in event.unanswered})),
        )
    return text
