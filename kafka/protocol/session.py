"""The protocol conversation on one connection, without input and output, for both sides.

A Session encodes requests and decodes responses, matches them, chooses the version of each request,
and enforces the order of messages. The same class is used by clients and by the embedded broker.
Sockets, time and retries belong to its driver. frames.py splits the byte stream, negotiation.py
reads lists of versions, session_states.py has the states and events.

A driver only moves bytes::

    session = Session(Role.CLIENT, 'my-client')
    write(session.negotiate())
    while True:
        event = session.next_event()
        if event is NEED_DATA:
            session.receive_data(read())        # b'' once the peer has closed
        elif isinstance(event, SendData):
            write(event.data)
        ...

The states and their transitions are the table TRANSITIONS in session_states.py. A SASL login is one
of the states: its driver calls begin_login(), sends the steps, and calls end_login(). The content
of the steps is not interpreted here.

On one connection a broker responds in the order of the requests, so the correlation id of a
response is only checked. The one exception, old brokers that ignore an unknown request, is handled
in probe.py.

Follows the protocol guide ("Network"), KIP-35 and KIP-511 (versions), KIP-43, KIP-152 and KIP-368
(logins), KIP-219 (throttling).
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple, Union

from kafka.errors import (
    CorrelationIdError,
    IllegalStateError,
    KafkaError,
    ProtocolError,
    TooManyInFlightRequests,
    UnsupportedVersionError,
)
from kafka.protocol import api
from kafka.protocol.api import ApiKey, RequestHeader
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.frames import DEFAULT_MAX_FRAME_BYTES, FrameReader, frame, frame_length
from kafka.protocol.negotiation import (
    SOFTWARE_NAME,
    BrokerVersions,
    Ranges,
    broker_versions,
    read_versions,
    versions_request,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.protocol.session_states import (
    NEED_DATA,
    TRANSITIONS,
    ConnectionClosed,
    Event,
    Input,
    LoginAnswered,
    RequestReceived,
    ResponseReceived,
    Role,
    SendData,
    State,
    UnsupportedRequest,
    VersionsNegotiated,
)
from kafka.protocol.wire import Message
from kafka.version import __version__

__all__ = [
    'NEED_DATA',
    'TRANSITIONS',
    'ConnectionClosed',
    'Event',
    'Input',
    'LoginAnswered',
    'RequestReceived',
    'ResponseReceived',
    'Role',
    'SendData',
    'Session',
    'State',
    'UnsupportedRequest',
    'VersionsNegotiated',
    'is_answered',
]

MAX_CORRELATION_ID = 2**31 - 1

# The maximum frame during a login, for responses as well as for requests (as in brokers).
MAX_LOGIN_BYTES = 512 * 1024

# The transition that a state must allow to receive frames; ADOPT for the others.
_RECEIVING = {State.LOGGING_IN: Input.STEP}
_LOGIN_STEPS = (SaslHandshakeRequest, SaslAuthenticateRequest)

_new = tuple.__new__  # creates a NamedTuple without a Python call
_HEADER_START = struct.Struct('>hhi')  # api key, api version, correlation id


class _Sent(NamedTuple):
    """A request of the client without a response yet."""

    correlation_id: int
    request: Message
    version: int


# From these versions on a broker responds to a request over quota immediately, with the throttle
# time, and reads nothing from the connection until that time has passed (KIP-219, Kafka 2.0). The
# other APIs of that release do so from version 1 on, later APIs always.
CLIENT_THROTTLES_FROM: Dict[int, int] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.DESCRIBE_CONFIGS: 2,
}
LAST_API_OF_1_1 = ApiKey.DELETE_GROUPS


def is_answered(request: Message) -> bool:
    """Return True if brokers respond to the request: all except Produce with acks=0."""
    return request.api_key != ApiKey.PRODUCE or getattr(request, 'acks', None) != 0


class Session:
    """One side of one connection: bytes in, events out; messages in, bytes out.

    Arguments:
        role: client or server.
        client_id: the client id in each request; None sends null.
        max_frame_bytes: larger frames of the peer are refused.
        max_in_flight: the maximum number of requests without a response; None for no limit.
        supported: the versions of a server, {api key: (lowest, highest version)}; None for all that
            this package can decode.
        software_name, software_version: sent in ApiVersions (KIP-511).

    An error of the peer changes the state to FAILED before it is raised: the following bytes cannot
    be trusted, and the connection must be closed.
    """

    def __init__(
        self,
        role: Role,
        client_id: Optional[str] = None,
        *,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        max_in_flight: Optional[int] = None,
        supported: Optional[Ranges] = None,
        software_name: str = SOFTWARE_NAME,
        software_version: str = __version__,
    ) -> None:
        if not isinstance(role, Role):
            raise TypeError('role must be a Role, not %s' % type(role).__name__)
        if client_id is not None and not isinstance(client_id, str):
            raise TypeError('client_id must be str or None, not %s' % type(client_id).__name__)
        self.role = role
        self.client_id = client_id
        self.state = State.FRESH if role is Role.CLIENT else State.READY
        self.versions = BrokerVersions({})
        self._frames = FrameReader(max_frame_bytes)
        self._max_in_flight = max_in_flight
        self._supported = supported
        self._software = software_name, software_version
        self._last_correlation_id = -1
        self._sent: Deque[_Sent] = deque()  # client: requests without a response, oldest first
        self._asked: Deque[RequestHeader] = deque()  # server: unanswered requests, oldest first
        self._max_frame_bytes = max_frame_bytes
        self._awaits_token = False  # client: the next frame is a token without header
        self._peer_closed = False

    def __repr__(self) -> str:
        return '<Session %s %s client_id=%s in_flight=%d>' % (
            self.role.value,
            self.state.value,
            self.client_id,
            self.in_flight,
        )

    # ------------------------------------------------------------ both sides

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return len(self._sent) + len(self._asked)

    @property
    def missing_bytes(self) -> int:
        """The number of bytes that can be read without reading into the following frame."""
        return self._frames.missing_bytes

    def receive_data(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Add received bytes, in pieces of any size; empty means that the peer closed the
        connection.

        Raises TypeError for anything but bytes.
        """
        self._frames.receive_data(data)
        if not data:
            self._peer_closed = True

    def next_event(self) -> Event:
        """Return the next event, or NEED_DATA.

        Raises FrameError for a frame that no Kafka peer sends, CorrelationIdError for a response to
        another request, ProtocolError or BufferUnderflowError for an invalid message,
        UnsupportedVersionError if the broker supports none of our ApiVersions versions, and
        IllegalStateError after such an error or after close().
        """
        if self.state in (State.CLOSED, State.FAILED):
            raise IllegalStateError('no more events: the session is %s' % self.state.value)
        try:
            data = self._frames.next_frame()
            if data is not None:
                take = self._take_response if self.role is Role.CLIENT else self._take_request
                return take(data)
        except KafkaError:
            self._move(Input.FAIL)
            raise
        return self._end() if self._peer_closed else NEED_DATA

    def take(self, data: bytes) -> Event:
        """Call receive_data() and next_event(); faster if the data is exactly one frame.

        Only valid when next_event() has returned NEED_DATA.
        """
        if self.state is State.READY and self.role is Role.CLIENT and data:
            try:
                frame_data = self._frames.take(data)
                return NEED_DATA if frame_data is None else self._take_response(frame_data)
            except KafkaError:
                self._move(Input.FAIL)
                raise
        self.receive_data(data)
        return self.next_event()

    def receive_frame(self, data: bytes) -> Event:
        """Process one frame, without its length, and return its event; errors as next_event.

        For drivers that split the stream themselves; must not be combined with receive_data().
        """
        if self.state is not State.READY:
            self._require(_RECEIVING.get(self.state, Input.ADOPT))
        take = self._take_response if self.role is Role.CLIENT else self._take_request
        try:
            return take(data)
        except KafkaError:
            self._move(Input.FAIL)
            raise

    def close(self) -> None:
        """Note that this side has closed the connection."""
        self._move(Input.CLOSE)

    def _end(self) -> Event:
        unanswered = tuple(sent.request for sent in self._sent)
        self._sent.clear()
        self._asked.clear()
        self._move(Input.CLOSE)
        return ConnectionClosed(self._frames.inside_frame, unanswered)

    def _only(self, role: Role) -> None:
        if self.role is not role:
            raise IllegalStateError('only a %s may call this' % role.value)

    def _require(self, move: Input) -> State:
        after = TRANSITIONS[self.state].get(move)
        if after is None:
            wanted = sorted(s.value for s, moves in TRANSITIONS.items() if move in moves)
            raise IllegalStateError(
                'cannot %s in state %s, only in %s' % (move.value, self.state.value, wanted)
            )
        return after

    def _move(self, move: Input) -> None:
        self.state = self._require(move)

    # ------------------------------------------------------------ client

    def negotiate(self, version: int = ApiVersionsRequest.max_version) -> bytes:
        """Return the bytes of a request for the broker's versions; VersionsNegotiated follows.

        It has the highest known version, or the given one: 0 before a login, because old brokers
        interpret other versions as a token there. If the broker requires a lower version, the
        session repeats the request (SendData).
        """
        self._only(Role.CLIENT)
        self._require(Input.NEGOTIATE)
        return self._ask_versions(version)

    def adopt(self, versions: BrokerVersions) -> None:
        """Use versions of the broker that are known already, instead of requesting them."""
        self._only(Role.CLIENT)
        self._move(Input.ADOPT)
        self.versions = versions

    def choose_version(
        self, request: Message, version: Optional[int] = None, highest: Optional[int] = None
    ) -> int:
        """Return the version in which `request` is sent.

        Arguments:
            version: a preferred one. It is used if the broker supports it; if the broker only
                supports higher ones, its lowest is used.
            highest: without a preferred version, the maximum.

        Raises UnsupportedVersionError, naming the API and both ranges, if no version is possible;
        TypeError naming an argument of a wrong type.
        """
        if not isinstance(request, Message):
            raise TypeError('request must be a message, not %r' % (request,))
        if type(version) is not int or highest is not None:
            _check_ints(version=version, highest=highest)
        if version is None:
            return api.choose_version(type(request), self.versions.ranges, highest)
        low, high = self.versions.ranges.get(_key(request), (0, -1))
        chosen = version if version > low else low
        if not (request.min_version <= chosen <= high and chosen <= request.max_version):
            raise UnsupportedVersionError(
                '%s in version %d was requested; the broker supports %s, this client %d to %d'
                % (
                    type(request).__name__,
                    version,
                    'versions %d to %d' % (low, high) if high >= 0 else 'none',
                    request.min_version,
                    request.max_version,
                )
            )
        return chosen

    def send(
        self,
        request: Message,
        *,
        version: Optional[int] = None,
        highest: Optional[int] = None,
        correlation_id: Optional[int] = None,
    ) -> bytes:
        """Return the bytes of a request; its ResponseReceived follows, unless acks=0.

        Arguments: version, highest as for choose_version(); correlation_id: None for the next one.

        Raises IllegalStateError before the versions are known, TooManyInFlightRequests at the
        limit, UnsupportedVersionError as choose_version(), ProtocolError if the value of a field
        cannot be sent in that version. After an error nothing has changed.
        """
        if self.role is not Role.CLIENT or self.state is not State.READY:
            self._only(Role.CLIENT)
            self._require(Input.STEP if isinstance(request, _LOGIN_STEPS) else Input.SEND)
        elif self._max_in_flight is not None and len(self._sent) >= self._max_in_flight:
            raise TooManyInFlightRequests('%d requests are in flight' % len(self._sent))
        chosen = self.choose_version(request, version, highest)
        if correlation_id is None:
            correlation_id = self._next_correlation_id()
        return self._encode(request, chosen, correlation_id)

    def number(self) -> int:
        """Return the correlation id for a request that is encoded without send(), with a response.

        The caller reads the response itself and never passes its bytes to receive_data(), unless it
        has called expect(). Raises: as send().
        """
        if self.role is not Role.CLIENT or self.state is not State.READY:
            self._only(Role.CLIENT)
            self._require(Input.SEND)
        if self._max_in_flight is not None and len(self._sent) >= self._max_in_flight:
            raise TooManyInFlightRequests('%d requests are in flight' % len(self._sent))
        correlation_id = (self._last_correlation_id + 1) & MAX_CORRELATION_ID
        self._last_correlation_id = correlation_id
        return correlation_id

    def expect(self, correlation_id: int, request: Message, version: int) -> None:
        """Expect a response, as if send() had encoded the request of the last number().

        It is the only request without a response; the call may be repeated. Arguments: request:
        determines how the response is decoded; version: one that the broker supports.
        """
        self._sent.clear()
        self._sent.append(_new(_Sent, (correlation_id, request, version)))

    def was_answered(self) -> None:
        """Remove the oldest request, whose response the caller has read itself."""
        self._sent.popleft()

    def _next_correlation_id(self) -> int:
        return (self._last_correlation_id + 1) & MAX_CORRELATION_ID

    def _encode(self, request: Message, version: int, correlation_id: int) -> bytes:
        parts = api.encode_request_parts(request, version, correlation_id, self.client_id)
        data = b''.join((frame_length(parts), *parts))
        self._last_correlation_id = correlation_id
        if is_answered(request):
            self._sent.append(_Sent(correlation_id, request, version))
        return data

    def _take_response(self, data: bytes) -> Event:
        if self._awaits_token:
            self._awaits_token = False
            return LoginAnswered(data)
        if len(data) < 4:
            raise ProtocolError('a response of %d bytes has no correlation id' % len(data))
        correlation_id = int.from_bytes(data[:4], 'big', signed=True)
        if not self._sent:
            raise CorrelationIdError(
                'a response with correlation id %d, but no request is in flight' % correlation_id
            )
        sent = self._sent[0]
        if correlation_id != sent.correlation_id:
            raise CorrelationIdError(
                'a response with correlation id %d, expected %d for %s'
                % (correlation_id, sent.correlation_id, type(sent.request).__name__)
            )
        self._sent.popleft()
        if self.state is State.NEGOTIATING and isinstance(sent.request, ApiVersionsRequest):
            return self._take_versions(data, sent)
        response_cls = api.response_class(_key(sent.request))
        _, response = api.decode_response(response_cls, data, sent.version)
        if self.state is State.LOGGING_IN and isinstance(sent.request, _LOGIN_STEPS):
            return LoginAnswered(response)
        return ResponseReceived(*sent, response, *_throttle(response, sent.version))

    # ------------------------------------------------------------ logins

    def begin_login(self) -> None:
        """Begin a login: until end_login() only its steps are sent.

        They are SaslHandshake and SaslAuthenticate by send(), or send_token(); the response to each
        is a LoginAnswered. Responses to earlier requests, if there are any, come before.
        """
        self._only(Role.CLIENT)
        self._move(Input.BEGIN_LOGIN)
        if not self._sent:
            self._frames.max_frame_bytes = min(MAX_LOGIN_BYTES, self._max_frame_bytes)

    def send_token(self, token: bytes) -> bytes:
        """Return the bytes of a step without a header, as before SaslAuthenticate (KIP-152)."""
        self._move(Input.STEP)
        self._awaits_token = True
        return frame(token)

    def end_login(self) -> None:
        """End a login; requests may be sent again."""
        self._move(Input.END_LOGIN)
        self._frames.max_frame_bytes = self._max_frame_bytes
        self._awaits_token = False

    # ------------------------------------------------------------ versions

    def _ask_versions(self, version: int) -> bytes:
        request = versions_request(version, *self._software)
        data = self._encode(request, version, self._next_correlation_id())
        self._move(Input.NEGOTIATE)
        return data

    def _take_versions(self, data: bytes, sent: _Sent) -> Event:
        answer = read_versions(data, sent.version)
        if isinstance(answer, int):
            return SendData(self._ask_versions(answer))
        self.versions = broker_versions(answer)
        self._move(Input.ADOPT)
        return VersionsNegotiated(self.versions, *_throttle(answer, sent.version))

    # ------------------------------------------------------------ server

    def _take_request(self, data: bytes) -> Event:
        if len(data) < _HEADER_START.size:
            raise ProtocolError('a request of %d bytes has no header' % len(data))
        key, version, correlation_id = _HEADER_START.unpack_from(data)
        supported = self._supported_range(key)
        if supported is None or not supported[0] <= version <= supported[1]:
            header = RequestHeader(key, version, correlation_id, None)
            self._asked.append(header)
            return UnsupportedRequest(header, supported, data)
        header, request = api.decode_request(data)
        if is_answered(request):
            self._asked.append(header)
        return RequestReceived(header, request)

    def _supported_range(self, key: int) -> Optional[Tuple[int, int]]:
        if self._supported is not None:
            return self._supported.get(key)
        try:
            cls = api.request_class(key)
        except ProtocolError:
            return None
        return cls.min_version, cls.max_version

    def skip(self, header: RequestHeader) -> None:
        """Do not respond to the oldest unanswered request, as brokers of 0.9 do with some.

        Raises IllegalStateError for any other request.
        """
        self._only(Role.SERVER)
        self._take_turn(header)
        self._asked.popleft()

    def _take_turn(self, header: RequestHeader) -> None:
        if not self._asked or self._asked[0] != header:
            raise IllegalStateError(
                'correlation id %d is not the oldest unanswered request' % header.correlation_id
            )

    def respond(
        self, header: RequestHeader, response: Message, *, version: Optional[int] = None
    ) -> bytes:
        """Return the bytes of the response to the oldest unanswered request.

        Arguments: header: of that request; version: if it differs from the request's, for
        ApiVersions with error 35, which is sent in version 0.

        Raises IllegalStateError for any other request, ProtocolError if the response cannot be
        written in that version.
        """
        return b''.join(self.respond_in_parts(header, response, version=version))

    def respond_in_parts(
        self, header: RequestHeader, response: Message, *, version: Optional[int] = None
    ) -> List[bytes]:
        """Return the parts of the result of respond(), for a vectored write.

        Records are not copied. Arguments and errors as for respond().
        """
        self._only(Role.SERVER)
        self._require(Input.SEND)
        self._take_turn(header)
        chosen = header.api_version if version is None else version
        parts = api.encode_response_parts(response, chosen, header.correlation_id)
        self._asked.popleft()
        return [frame_length(parts), *parts]


def _check_ints(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None and not isinstance(value, int):
            raise TypeError('%s must be an int, not %s' % (name, type(value).__name__))


def _key(message: Message) -> int:
    assert message.api_key is not None  # requests and responses have one
    return message.api_key


def _throttle(response: Any, version: int) -> Tuple[int, bool]:
    wait_ms = getattr(response, 'throttle_time_ms', 0)
    key = response.api_key
    since = CLIENT_THROTTLES_FROM.get(key, 1 if key <= LAST_API_OF_1_1 else 0)
    return wait_ms, wait_ms > 0 and version >= since
