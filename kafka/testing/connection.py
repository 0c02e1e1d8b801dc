"""The broker's end of one connection: bytes in, calls to the broker, bytes out. No socket.

Owns: one request at a time, as brokers read a connection; what a release does with a request that
it does not know (protocol guide, "Network"; KIP-511). A request that cannot be read closes the
connection, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional

from kafka.errors import KafkaError
from kafka.protocol.api import ApiKey, RequestHeader, decode_request
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.session import (
    NEED_DATA,
    ConnectionClosed,
    RequestReceived,
    Role,
    Session,
    UnsupportedRequest,
)
from kafka.protocol.wire import Message
from kafka.testing.calls import HANDLERS, Call, Delivery

if TYPE_CHECKING:
    from kafka.testing.broker import Broker

UNSUPPORTED_VERSION = 35
#: As ``socket.request.max.bytes``.
MAX_REQUEST_BYTES = 104857600
#: So many bytes may follow what an old broker knows of a request.
MAX_LEFT_OUT = 64


class Connection:
    """One connection to a broker.

    Arguments: connection_id: tells it from others of the broker; transport: has ``write(data)`` and
    ``close()``.
    """

    def __init__(self, broker: Broker, connection_id: int, transport: Any) -> None:
        self.broker = broker
        self.connection_id = connection_id
        self.principal = 'User:ANONYMOUS'
        #: Called when it may want data again; an answer may come long after its request.
        self.when_ready: Optional[Callable[[], None]] = None
        self._transport = transport
        release = broker.state.release
        self._release = release.version
        served = {key: versions for key, versions in release.served.items() if key in HANDLERS}
        self._session = Session(Role.SERVER, max_frame_bytes=MAX_REQUEST_BYTES, supported=served)
        self._served = served
        self._call: Optional[Call[Any]] = None  # the one that waits for its answer
        self._is_busy = False
        self._is_paused = False
        self._is_pumping = False
        self._unaccounted_bytes = 0
        self.is_closed = False

    def __repr__(self) -> str:
        return '<Connection %d of node %d>' % (self.connection_id, self.broker.node_id)

    @property
    def wants_data(self) -> bool:
        """Whether it reads on: not while a request or its answer is on the way, as brokers do."""
        return not (self._is_busy or self._is_paused or self.is_closed)

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the client; empty when it has closed."""
        if not self.is_closed:
            self._unaccounted_bytes += len(data)
            self._session.receive_data(data)
            self._pump()

    def pause(self) -> None:
        """Read no further: the client does not take what it was sent."""
        self._is_paused = True

    def resume(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            self._pump()

    def close(self) -> None:
        """Close the connection from this side."""
        if not self.is_closed:
            self.is_closed = True
            if self._call is not None:
                self._call.drop()
            self.broker.close_connection(self.connection_id)
            self._transport.close()

    def send(self, data: bytes) -> None:
        """Write bytes of an answer."""
        if data and not self.is_closed:
            self._transport.write(data)

    def finish(self) -> None:
        """Note that an answer was written; the next request may come."""
        self._is_busy = False
        self._pump()
        if self.when_ready is not None:
            self.when_ready()

    def _pump(self) -> None:
        """Handle what has arrived, one request after the other."""
        if self._is_pumping:  # an answer came while its request was being handled
            return
        self._is_pumping = True
        try:
            while self.wants_data:
                try:
                    event = self._session.next_event()
                except KafkaError:
                    self.close()
                    return
                if event is NEED_DATA:
                    return
                if isinstance(event, ConnectionClosed):
                    self.close()
                elif isinstance(event, UnsupportedRequest):
                    self._refuse(event)
                else:
                    assert isinstance(event, RequestReceived)
                    self._handle(event.header, event.request)
        finally:
            self._is_pumping = False

    def _handle(
        self, header: RequestHeader, request: Message, asked: Optional[RequestHeader] = None
    ) -> None:
        """Let the broker answer.

        Arguments: asked: the header as it came, if the request is read as of another version.
        """
        self._is_busy = True

        def answer(response: Optional[Message]) -> None:
            self._call = None
            if self.is_closed:
                return
            try:
                data = self._answered(header, asked, response)
            except KafkaError as error:  # the response does not fit the version
                self.broker.note_failure(call, error)
                return
            self._deliver(call.deliveries, data)

        call: Call[Any] = Call(
            self.broker, header, request, self.connection_id, self.principal, answer
        )
        call.size_bytes, self._unaccounted_bytes = self._unaccounted_bytes, 0
        self._call = call
        self.broker.handle(call)

    def _answered(
        self, header: RequestHeader, asked: Optional[RequestHeader], response: Optional[Message]
    ) -> bytes:
        """Return the bytes of an answer; none for a request that gets none."""
        if response is not None:
            version = header.api_version
            return self._session.respond(asked or header, response, version=version)
        if asked is not None:
            self._session.skip(asked)
        return b''

    def _deliver(self, deliveries: List[Delivery], data: bytes) -> None:
        """Let the bytes of an answer pass what stands in their way, and write them."""
        if self.is_closed:
            return
        if deliveries:
            deliveries[0](data, self, lambda changed: self._deliver(deliveries[1:], changed))
        else:
            self.send(data)
            self.finish()

    def _refuse(self, event: UnsupportedRequest) -> None:
        """Do what this release does with an API or a version that it does not know."""
        version = self._release
        if event.header.api_key == ApiKey.API_VERSIONS and version >= (0, 10):
            answer = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[])
            if version >= (2, 4):  # so that the client knows what to ask with (KIP-511)
                low, high = self._served[ApiKey.API_VERSIONS]
                answer.api_keys.append(
                    ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
                )
            self._transport.write(self._session.respond(event.header, answer, version=0))
        elif version < (0, 10) and event.supported is not None:
            self._read_as_known(event, event.supported[1])
        elif (0, 9) <= version < (0, 10):
            self._session.skip(event.header)  # 0.9 says nothing, and answers what follows
        else:
            self.close()

    def _read_as_known(self, event: UnsupportedRequest, version: int) -> None:
        """Read a request of a newer version as the newest one known, as 0.8 and 0.9 do.

        They read what they know and leave the rest; the answer has their layout. 0.8 looks at the
        version of OffsetCommit only.
        """
        if event.header.api_key == ApiKey.OFFSET_COMMIT and self._release < (0, 9):
            self.close()
            return
        data = event.data[:2] + version.to_bytes(2, 'big') + event.data[4:]
        for left_out in range(min(MAX_LEFT_OUT, len(data))):
            try:
                header, request = decode_request(data[: len(data) - left_out])
            except KafkaError:
                continue
            self._handle(header, request, event.header)
            return
        self.close()
