"""The broker's end of one connection: bytes in, calls to the broker, bytes out. No socket.

Owns: one request at a time, as brokers read a connection; what a release does with a request that
it does not know (protocol guide, "Network"; KIP-511). A request that cannot be read closes the
connection, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from kafka.errors import FrameError, KafkaError
from kafka.protocol.api import ApiKey, RequestHeader
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
from kafka.testing.calls import HANDLERS, Call

if TYPE_CHECKING:
    from kafka.testing.broker import Broker

UNSUPPORTED_VERSION = 35
#: As ``socket.request.max.bytes``.
MAX_REQUEST_BYTES = 104857600


class Connection:
    """One connection to a broker.

    Arguments: connection_id: tells it from others of the broker; transport: has ``write(data)`` and
    ``close()``.
    """

    def __init__(self, broker: Broker, connection_id: int, transport: Any) -> None:
        self.broker = broker
        self.connection_id = connection_id
        self.principal = 'User:ANONYMOUS'
        self._transport = transport
        release = broker.state.release
        served = {key: versions for key, versions in release.served.items() if key in HANDLERS}
        self._session = Session(Role.SERVER, max_frame_bytes=MAX_REQUEST_BYTES, supported=served)
        self._served = served
        self._is_busy = False
        self._is_pumping = False
        self.is_closed = False

    def __repr__(self) -> str:
        return '<Connection %d of node %d>' % (self.connection_id, self.broker.node_id)

    @property
    def wants_data(self) -> bool:
        """Whether it reads on: not while a request waits for its answer, as brokers do."""
        return not (self._is_busy or self.is_closed)

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the client; empty when it has closed."""
        if not self.is_closed:
            self._session.receive_data(data)
            self._pump()

    def close(self) -> None:
        """Close the connection from this side."""
        if not self.is_closed:
            self.is_closed = True
            self.broker.close_connection(self.connection_id)
            self._transport.close()

    def _pump(self) -> None:
        """Handle what has arrived, one request after the other."""
        if self._is_pumping:  # an answer came while its request was being handled
            return
        self._is_pumping = True
        try:
            while self.wants_data:
                try:
                    event = self._session.next_event()
                except (KafkaError, FrameError):
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

    def _handle(self, header: RequestHeader, request: Message) -> None:
        self._is_busy = True

        def answer(response: Optional[Message]) -> None:
            if self.is_closed:
                return
            self._is_busy = False
            if response is not None:
                self._transport.write(self._session.respond(header, response))
            self._pump()

        self.broker.handle(
            Call(self.broker, header, request, self.connection_id, self.principal, answer)
        )

    def _refuse(self, event: UnsupportedRequest) -> None:
        version = self.broker.state.release.version
        if event.header.api_key == ApiKey.API_VERSIONS and version >= (0, 10):
            answer = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[])
            if version >= (2, 4):  # so that the client knows what to ask with (KIP-511)
                low, high = self._served[ApiKey.API_VERSIONS]
                answer.api_keys.append(
                    ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
                )
            self._transport.write(self._session.respond(event.header, answer, version=0))
        elif (0, 9) <= version < (0, 10) and event.supported is None:
            self._is_busy = True  # 0.9 says nothing and leaves the connection open
        else:
            self.close()
