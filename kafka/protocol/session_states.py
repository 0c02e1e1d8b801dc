"""The roles, states, transitions and events of a Session (session.py)."""

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
    """The side of the connection."""

    CLIENT = 'client'
    SERVER = 'server'


class State(enum.Enum):
    """The state of a conversation, which determines the messages that are allowed."""

    FRESH = 'fresh'  # connected; the client does not know the broker's versions yet
    NEGOTIATING = 'negotiating'  # the client has requested the broker's versions
    LOGGING_IN = 'logging in'  # SASL: only steps are sent; earlier responses may arrive
    READY = 'ready'  # requests and responses are allowed
    CLOSED = 'closed'  # one side has closed the connection
    FAILED = 'failed'  # the peer violated the protocol; the connection must be closed

    __hash__ = object.__hash__  # members are singletons; Enum's own is a Python call


class Input(enum.Enum):
    """The input of the state machine."""

    NEGOTIATE = 'ask for versions'
    ADOPT = 'learn the versions'
    SEND = 'send'
    BEGIN_LOGIN = 'begin a login'
    STEP = 'send a step of a login'
    END_LOGIN = 'end a login'
    CLOSE = 'close'
    FAIL = 'fail'

    __hash__ = object.__hash__


# A server starts in READY: a request for its versions is like any other.
TRANSITIONS: Dict[State, Dict[Input, State]] = {
    State.FRESH: {
        Input.NEGOTIATE: State.NEGOTIATING,
        Input.ADOPT: State.READY,
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.NEGOTIATING: {
        Input.NEGOTIATE: State.NEGOTIATING,  # again, in another version
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
        Input.NEGOTIATE: State.NEGOTIATING,  # again: features may change, SASL may reveal more
        Input.ADOPT: State.READY,
        Input.SEND: State.READY,
        Input.BEGIN_LOGIN: State.LOGGING_IN,  # also again, before the session expires (KIP-368)
        Input.CLOSE: State.CLOSED,
        Input.FAIL: State.FAILED,
    },
    State.CLOSED: {Input.CLOSE: State.CLOSED},
    State.FAILED: {Input.CLOSE: State.CLOSED},
}


class NeedData(NamedTuple):
    """There is no event until more bytes are received."""


class SendData(NamedTuple):
    """Bytes that the session needs to have sent now."""

    data: bytes


class VersionsNegotiated(NamedTuple):
    """The client knows the broker's versions; requests may be sent."""

    versions: BrokerVersions
    throttle_time_ms: int
    client_throttles: bool


class ResponseReceived(NamedTuple):
    """The response to the oldest request in flight.

    If ``client_throttles``, the broker did not delay the response: nothing may be sent to it for
    ``throttle_time_ms`` (KIP-219). Otherwise that time has already passed.
    """

    correlation_id: int
    request: Message
    version: int
    response: Message
    throttle_time_ms: int
    client_throttles: bool


class LoginAnswered(NamedTuple):
    """The broker's response to the last step of a login: a message, or a bare token."""

    answer: Union[Message, bytes]


class RequestReceived(NamedTuple):
    """A client's request. respond() must not be called for one without response (acks=0)."""

    header: RequestHeader
    request: Message


class UnsupportedRequest(NamedTuple):
    """A client's request with an API or version that this server does not support.

    The server decides what to do: brokers close the connection, except for ApiVersions, to which
    they respond in version 0 with error 35.
    """

    header: RequestHeader  # without client id, which is not readable in an unknown version
    supported: Optional[Tuple[int, int]]  # None: the API is unknown
    data: bytes  # the whole frame


class ConnectionClosed(NamedTuple):
    """The peer closed the connection."""

    inside_frame: bool  # a frame was truncated, and is lost
    unanswered: Tuple[Message, ...]  # a client's requests that will get no response


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
