"""The broker's end of one connection, without a socket: frames in, calls to the broker, bytes out.

Called by the transports (server.py, memory.py). Handles one request at a time, as brokers do.
Follows the releases for requests that are unknown (protocol guide, "Network"; KIP-511) or cannot be
decoded: most of them close the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional

from kafka.errors import FrameError, KafkaError
from kafka.protocol.api import ApiKey, RequestHeader, encode_request
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.session import Event, RequestReceived, Role, Session, UnsupportedRequest
from kafka.protocol.wire import Buffer, Message
from kafka.testing.calls import ANONYMOUS, LOCAL_HOST, Call, ClientSoftware, Delivery
from kafka.testing.error_answers import error_answer
from kafka.testing.errors import ILLEGAL_SASL_STATE
from kafka.testing.lenient_reader import TooManyParts, read_leniently
from kafka.testing.security.sasl.login import MAX_REQUEST_BYTES, MAX_TOKEN_BYTES, Login, Verdict
from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed
from kafka.testing.timers import Timer

if TYPE_CHECKING:
    from kafka.testing.broker import Broker

UNSUPPORTED_VERSION = 35
#: Larger frames may have at most this number of parts: a part of three bytes takes 130 in memory.
LARGE_BYTES = 2 * 1024 * 1024
MOST_PARTS = 250_000
#: The limit of the bytes of incomplete requests on all connections together.
MAX_UNREAD_BYTES = 256 * 1024 * 1024
#: Requests that 0.9 decodes whatever their version, as 0.8 does all except OffsetCommit.
UNVERSIONED = frozenset(
    (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH)
)
#: Pieces of a response of this size or larger are written without a copy, smaller ones joined.
SHARED_BYTES = 4096


class Connection:
    """One connection to a broker.

    Arguments: connection_id: unique among the broker's connections; transport: has
    ``write(data)``, ``write_parts(parts)`` and ``close()``.
    """

    def __init__(self, broker: Broker, connection_id: int, transport: Any) -> None:
        self.broker = broker
        self.connection_id = connection_id
        self.login = Login(broker.state) if broker.state.sasl is not None else None
        self.principal = ANONYMOUS
        #: The client's address.
        self.host = getattr(transport, 'host', LOCAL_HOST)
        #: Called when the connection may want data again, since a response may be sent much later.
        self.when_ready: Optional[Callable[[], None]] = None
        self._software = ClientSoftware()
        self._transport = transport
        release = broker.state.release
        self._release = release.version
        self._served = served = broker.served
        self._frames = FrameReader(MAX_TOKEN_BYTES if self.login else MAX_REQUEST_BYTES)
        self._session = Session(Role.SERVER, supported=served)
        self._call: Optional[Call[Any]] = None  # the one that is not answered yet
        self._is_busy = False
        self._is_paused = False
        self._is_pumping = False
        self._has_ended = False  # the client has closed
        self._unaccounted_bytes = 0
        self._unread_bytes = 0  # as counted in the total of all connections
        self.is_closed = False
        self._active_at = 0.0
        self._idle_timer: Optional[Timer] = None
        if broker.state.defaults.connections_max_idle_ms is not None:
            self._active_at = broker.state.timers.clock.monotonic()
            self._watch_idleness(broker.state.defaults.connections_max_idle_ms / 1000)

    def __repr__(self) -> str:
        return '<Connection %d of node %d>' % (self.connection_id, self.broker.node_id)

    @property
    def is_admitted(self) -> bool:
        """Whether the client has logged in, or need not."""
        return self.login is None or self.login.is_renewal

    @property
    def wants_data(self) -> bool:
        """Whether data is read: as in Kafka, not while a request is processed or answered."""
        is_held = self._is_busy or self._is_paused
        return not self.is_closed and (not is_held or self._is_hung)

    @property
    def _is_hung(self) -> bool:
        """Whether a request will never be answered: then data is read only to notice the end."""
        return self._is_busy and self._call is not None and not self._call.is_waiting

    def receive_data(self, data: Buffer) -> None:
        """Receive bytes from the client; the buffer is not kept. Empty when it has closed."""
        self._note_activity()
        if self._is_hung:
            if not data:
                self.close()
        elif not self.is_closed:
            self._unaccounted_bytes += len(data)
            self._frames.receive_data(data)
            self._has_ended = self._has_ended or not data
            self._pump()
            self._count_unread()

    def _count_unread(self) -> None:
        """Count buffered bytes; close the connection if those of all connections are too many."""
        state = self.broker.state
        held = 0 if self.is_closed else self._frames.buffered_bytes
        state.unread_bytes += held - self._unread_bytes
        self._unread_bytes = held
        if held and state.unread_bytes > MAX_UNREAD_BYTES:
            self.close()

    def pause(self) -> None:
        """Stop reading, since the client does not read its responses."""
        self._is_paused = True

    def resume(self) -> None:
        """Resume reading."""
        if self._is_paused:
            self._is_paused = False
            self._pump()

    def close(self) -> None:
        """Close the connection from this side."""
        if not self.is_closed:
            self.is_closed = True
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            if self._call is not None:
                self._call.drop()
            self._frames = FrameReader(0)  # frees the buffer before garbage collection
            self._count_unread()
            self.broker.close_connection(self.connection_id)
            self._transport.close()

    def send(self, data: bytes) -> None:
        """Write bytes of a response."""
        if data and not self.is_closed:
            self._transport.write(data)

    def finish(self) -> None:
        """Continue with the next request after a response was written."""
        self._is_busy = False
        self._note_activity()
        if self.login is not None:
            self._note_login(self.login)
        self._pump()
        if self._unread_bytes:
            self._count_unread()
        if self.when_ready is not None:
            self.when_ready()

    def _note_activity(self) -> None:
        if self._idle_timer is not None:
            self._active_at = self.broker.state.timers.clock.monotonic()

    def _watch_idleness(self, seconds: float) -> None:
        """Close the connection if it has been idle for ``seconds``; else check again later."""
        timers = self.broker.state.timers
        left = self._active_at + seconds - timers.clock.monotonic()
        if left > 0 or self._is_busy or self.broker.is_paused:
            again = left if left > 0 else max(seconds, 0.001)
            self._idle_timer = timers.later(again, lambda: self._watch_idleness(seconds))
        else:
            self.close()

    def _pump(self) -> None:
        """Process the received requests one after another."""
        if self._is_pumping:  # a response was sent while its request was being handled
            return
        self._is_pumping = True
        try:
            while self.wants_data and not self._is_hung and self._step():
                pass
        finally:
            self._is_pumping = False

    def _step(self) -> bool:
        """Process the next frame; return False if there is none."""
        try:
            data = self._frames.next_frame()
        except FrameError:
            self.close()
            return False
        if data is None:
            if self._has_ended:
                self.close()
            return False
        if self.login is not None and self.login.has_bare_tokens:
            self._take_token(self.login, data)
            return True
        event = self._read(data)
        if self.login is not None and not self._admits(self.login, event):
            return True
        if isinstance(event, UnsupportedRequest):
            self._refuse(event)
        elif isinstance(event, RequestReceived):
            self._handle(event.header, event.request)
        elif not self._ignores(data):
            self.close()
        return True

    def _admits(self, login: Login, event: Optional[Event]) -> bool:
        """Return True if the login allows a request in its stage; else refuse it and close."""
        if not isinstance(event, (UnsupportedRequest, RequestReceived)):
            return True
        header = event.header
        verdict = login.judge(header.api_key)
        if verdict is Verdict.REFUSE and isinstance(event, RequestReceived):
            login.fail()
            call = self._make_call(header, event.request)
            answer = error_answer(call, ILLEGAL_SASL_STATE)
            if answer is not None:
                login.refuse(call, answer)
                return False
        if verdict is not Verdict.PASS:
            self.close()
            return False
        return True

    def _take_token(self, login: Login, data: bytes) -> None:
        """Process a SASL token without request header."""
        try:
            answer, _ = login.step(data)
        except LoginBroken:
            self.close()
        except LoginFailed:
            self._is_busy = True  # permanently
            self.broker.state.timers.later(login.failure_seconds, self.close)
        else:
            self._note_login(login)
            self.send(frame(answer))

    def _note_login(self, login: Login) -> None:
        self._frames.max_frame_bytes = login.max_frame_bytes
        self.principal = login.principal or ANONYMOUS

    def _read(self, data: bytes) -> Optional[Event]:
        """Decode a frame; return None if it cannot be decoded."""
        if len(data) > LARGE_BYTES and self._has_too_many_parts(data):
            return None
        try:
            return self._session.receive_frame(data)
        except KafkaError:
            # The session has failed. What brokers ignore in the frame is removed for the next one.
            self._session = Session(Role.SERVER, supported=self._served)
        try:
            header, request = read_leniently(data, takes_null=self._release < (0, 10))
            _, version, correlation_id, client_id = header
            strict = encode_request(request, version, correlation_id, client_id)
            return self._session.receive_frame(strict)
        except KafkaError:
            return None

    def _has_too_many_parts(self, data: bytes) -> bool:
        """Return True if a large frame has too many parts to be decoded."""
        try:
            read_leniently(data, most_parts=MOST_PARTS)
        except TooManyParts:
            return True
        except KafkaError:
            pass  # raised again when the frame is decoded
        return False

    def _ignores(self, data: bytes) -> bool:
        """Return True if this release ignores a frame that it cannot decode, and reads on.

        An exception leaves the loop over all received frames there, and nothing closes the
        connection: in 0.9 one of its old decoders, and up to 0.11 that of a frame that ends before
        its API key.
        """
        if not (0, 9) <= self._release < (1, 0):
            return False
        old = (*UNVERSIONED, ApiKey.OFFSET_COMMIT) if self._release < (0, 10) else ()
        return len(data) < 2 or int.from_bytes(data[:2], 'big') in old

    def _handle(
        self, header: RequestHeader, request: Message, asked: Optional[RequestHeader] = None
    ) -> None:
        """Pass a request to the broker.

        Arguments: asked: the header as received, if the request is decoded as another version.
        """
        self.broker.handle(self._make_call(header, request, asked))

    def _make_call(
        self, header: RequestHeader, request: Message, asked: Optional[RequestHeader] = None
    ) -> Call[Any]:
        """Return the call of a request, whose response is written when it is available."""
        self._is_busy = True

        def answer(response: Optional[Message]) -> None:
            self._call = None
            if self.is_closed:
                return
            try:
                parts = self._answered(header, asked, response)
            except KafkaError as error:  # the response does not fit the version
                self.broker.note_failure(call, error)
                return
            if call.deliveries:
                self._deliver(call.deliveries, b''.join(parts))
            else:
                self._transport.write_parts(_gathered(parts))
                self.finish()

        call: Call[Any] = Call(
            self.broker, header, request, self.connection_id, self.principal, answer
        )
        call.login, call.host, call.software = self.login, self.host, self._software
        call.size_bytes, self._unaccounted_bytes = self._unaccounted_bytes, 0
        self._call = call
        return call

    def _answered(
        self, header: RequestHeader, asked: Optional[RequestHeader], response: Optional[Message]
    ) -> List[bytes]:
        """Return the pieces of a response; none for a request without response."""
        if response is not None:
            version = header.api_version
            code = getattr(response, 'error_code', None)
            if code == UNSUPPORTED_VERSION and header.api_key == ApiKey.API_VERSIONS:
                version = 0  # in any version of the request (KIP-511)
            return self._session.respond_in_parts(asked or header, response, version=version)
        if asked is not None:
            self._session.skip(asked)
        return []

    def _deliver(self, deliveries: List[Delivery], data: bytes) -> None:
        """Pass a response through the remaining deliveries, such as faults, and write it."""
        if self.is_closed:
            return
        if deliveries:
            deliveries[0](data, self, lambda changed: self._deliver(deliveries[1:], changed))
        else:
            self.send(data)
            self.finish()

    def _refuse(self, event: UnsupportedRequest) -> None:
        """Handle an API or version that is unknown to this release, as the release does."""
        version = self._release
        if event.header.api_key == ApiKey.API_VERSIONS and version >= (0, 10):
            answer = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[])
            if version >= (2, 4):  # the client then retries with a supported version (KIP-511)
                low, high = self._served[ApiKey.API_VERSIONS]
                answer.api_keys.append(
                    ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
                )
            self._transport.write(self._session.respond(event.header, answer, version=0))
        elif version < (0, 10) and event.supported is not None:
            self._read_as_known(event, event.supported[1])
        elif (0, 9) <= version < (0, 10):
            self._session.skip(event.header)  # 0.9 does not answer, and continues
        else:
            self.close()

    def _read_as_known(self, event: UnsupportedRequest, version: int) -> None:
        """Decode a request of a newer version as the newest known one, as 0.8 and 0.9 do.

        They read the fields that they know and ignore the rest; the response has their layout.
        """
        is_0_8 = self._release < (0, 9)
        key = event.header.api_key
        if key in UNVERSIONED or is_0_8 and key != ApiKey.OFFSET_COMMIT:
            try:
                header, request = read_leniently(event.data, version, takes_null=True)
            except KafkaError:
                pass
            else:
                self._handle(header, request, event.header)
                return
        if is_0_8:
            self.close()
        else:
            self._session.skip(event.header)


def _gathered(parts: List[bytes]) -> List[bytes]:
    """Return pieces of a response with the small ones joined.

    Large ones are batches of the log, shared by all responses with them, so that a thousand
    clients that do not read take no more memory than the log.
    """
    if len(parts) < 2:
        return parts
    if max(map(len, parts)) < SHARED_BYTES:
        return [b''.join(parts)]
    gathered: List[bytes] = []
    small: List[bytes] = []
    for part in parts:
        if len(part) < SHARED_BYTES:
            small.append(part)
            continue
        if small:
            gathered.append(b''.join(small))
            small = []
        gathered.append(part)
    if small:
        gathered.append(b''.join(small))
    return gathered
