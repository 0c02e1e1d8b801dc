"""What a session can be in the middle of, what moves it on, and what it reports.

Owns the words of session.py: roles, states, the table of the moves between them, and the events.
What happens in each state is the session's business.
"""

from __future__ import annotations

import enum
from typing import Dict, NamedTuple, Optional, Tuple, Union

from kafka.protocol.api import RequestHeader
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.wire import Message

__all__ = [
    'NEED_DATA',
    'TRANSITIONS',
    'ConnectionClosed',
    'Event',
    'Input',
    'LoginAnswered',
    'NeedData',
    'RequestReceived',
    'ResponseReceived',
    'Role',
    'SendData',
    'State',
    'UnsupportedRequest',
    'VersionsNegotiated',
]


class Role(enum.Enum):
    """Which end of the connection a session is."""

    CLIENT = 'client'
    SERVER = 'server'


class State(enum.Enum):
    """What may be said now."""

    FRESH = 'fresh'  # connected; the client knows nothing of the broker yet
    NEGOTIATING = 'negotiating'  # the client has asked for the broker's versions
    LOGGING_IN = 'logging in'  # SASL: nothing else is sent; answers to earlier requests may come
    READY = 'ready'  # requests and responses flow
    CLOSED = 'closed'  # one side has closed the connection
    FAILED = 'failed'  # the peer broke the protocol; only closing is left

    __hash__ = object.__hash__  # members are single; Enum's own is a call of Python


class Input(enum.Enum):
    """What moves a session from state to state."""

    NEGOTIATE = 'ask for versions'
    ADOPT = 'learn the versions'
    SEND = 'send'
    BEGIN_LOGIN = 'begin a login'
    STEP = 'send a step of a login'
    END_LOGIN = 'end a login'
    CLOSE = 'close'
    FAIL = 'fail'

    __hash__ = object.__hash__


# A server starts READY: asking for versions is a request to it like any other.
TRANSITIONS: Dict[State, Dict[Input, State]] = {
    State.FRESH: {
        Input.NEGOTIATE: State.NEGOTIATING,
        Input.ADOPT: State.READY,
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.NEGOTIATING: {
        Input.NEGOTIATE: State.NEGOTIATING,  # once more, in another version
        Input.ADOPT: State.READY,
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.LOGGING_IN: {
        Input.STEP: State.LOGGING_IN,
        Input.END_LOGIN: State.READY,
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.READY: {
        Input.NEGOTIATE: State.NEGOTIATING,  # anew: features may rise, SASL may show more
        Input.ADOPT: State.READY,
        Input.SEND: State.READY,
        Input.BEGIN_LOGIN: State.LOGGING_IN,  # also once more, before the login ends (KIP-368)
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.CLOSED: {Input.CLOSE: State.CLOSED},
    State.FAILED: {Input.CLOSE: State.CLOSED},
}


class NeedData(NamedTuple):
    """Nothing more can be said before more bytes arrive."""


class SendData(NamedTuple):
    """Bytes the session itself has to send now."""

    data: bytes


class VersionsNegotiated(NamedTuple):
    """The client knows the broker's versions; requests may be sent."""

    versions: BrokerVersions
    throttle_time_ms: int
    client_throttles: bool


class ResponseReceived(NamedTuple):
    """The answer to the oldest unanswered request.

    When ``client_throttles``, the broker has not waited itself: nothing may be sent to it for
    ``throttle_time_ms`` (KIP-219). Otherwise that time has already passed.
    """

    correlation_id: int
    request: Message
    version: int
    response: Message
    throttle_time_ms: int
    client_throttles: bool


class LoginAnswered(NamedTuple):
    """The broker's answer to the last step of a login: a response, or a bare token."""

    answer: Union[Message, bytes]


class RequestReceived(NamedTuple):
    """A client's request. One that is not answered (acks=0) needs no respond()."""

    header: RequestHeader
    request: Message


class UnsupportedRequest(NamedTuple):
    """A client's request for an API or version this server does not serve.

    What to do is the server's choice: brokers close the connection, except that they answer
    ApiVersions in version 0 with error 35.
    """

    header: RequestHeader  # without client id, which can't be read in an unknown version
    supported: Optional[Tuple[int, int]]  # None: the API is unknown
    data: bytes  # the whole frame


class ConnectionClosed(NamedTuple):
    """The peer closed the connection."""

    inside_frame: bool  # in the middle of a frame, which is lost
    unanswered: Tuple[Message, ...]  # a client's requests that will stay without answer


NEED_DATA = NeedData()

Event = Union[
    NeedData,
    SendData,
    VersionsNegotiated,
    ResponseReceived,
    LoginAnswered,
    RequestReceived,
    UnsupportedRequest,
    ConnectionClosed,
]
