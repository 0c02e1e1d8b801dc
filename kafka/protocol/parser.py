"""KafkaProtocol of 1.4 to 2.3: request structs to bytes and bytes to response structs.

Without a socket and without negotiation: requests are sent in the version of their struct. The
conversation that this package itself uses is session.py; the class of the same name of 0.9.5 is in
``kafka.protocol.legacy``.
"""

from __future__ import annotations

import io
from collections import deque
from typing import Any, Deque, List, Optional, Tuple, Union

from kafka.errors import CorrelationIdError, KafkaProtocolError
from kafka.protocol.api import RequestHeader
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.types import TaggedFields

__all__ = ['KafkaProtocol']

_ID_BYTES = 4
_COORDINATOR = 10  # API key
_MOST_IDS = 2**31


class KafkaProtocol:
    """One conversation with a broker; the caller transports the bytes (1.4.2).

    Arguments: client_id: text for the broker's logs; api_version: of the broker, as a tuple; ident:
    the name of the connection in errors.

    Attributes: in_flight_requests: (correlation id, request) of those without a response.
    """

    def __init__(
        self,
        client_id: Optional[str] = None,
        api_version: Optional[Tuple[int, ...]] = None,
        ident: str = '',
    ) -> None:
        self._client_id = client_id or 'kafka-python'
        self._api_version = api_version
        self._ident = ident
        self._correlation_id = 0
        self._frames = FrameReader()
        self._unsent: List[bytes] = []
        self.in_flight_requests: Deque[Tuple[int, Any]] = deque()

    def __repr__(self) -> str:
        waiting = len(self.in_flight_requests)
        return '<KafkaProtocol %s waiting for %d answers>' % (self._ident, waiting)

    def send_request(self, request: Any, correlation_id: Optional[int] = None) -> int:
        """Queue a request struct for send_bytes(); return its correlation id.

        Raises ValueError for values that cannot be sent; nothing has changed then.
        """
        if correlation_id is None:
            correlation_id = (self._correlation_id + 1) % _MOST_IDS
        header = RequestHeader(request, correlation_id, self._client_id)
        tags = b'\0' if getattr(request, 'FLEXIBLE', False) else b''
        self._unsent.append(frame(b''.join((header.encode(), tags, request.encode()))))
        self._correlation_id = correlation_id
        if request.expect_response():
            self.in_flight_requests.append((correlation_id, request))
        return correlation_id

    def send_bytes(self) -> bytes:
        """Return the bytes of all requests since the last call."""
        data = b''.join(self._unsent)
        self._unsent.clear()
        return data

    def receive_bytes(self, data: Union[bytes, bytearray, memoryview]) -> List[Tuple[int, Any]]:
        """Add received bytes, in pieces of any size; return (correlation id, response) of each.

        Raises CorrelationIdError for a response with another id, KafkaProtocolError for an invalid
        response: the connection must be closed.
        """
        self._frames.receive_data(data)
        answers: List[Tuple[int, Any]] = []
        while True:
            found = self._frames.next_frame()
            if found is None:
                return answers
            answers.append(self._answer(found))

    def _answer(self, data: bytes) -> Tuple[int, Any]:
        if not self.in_flight_requests:
            raise CorrelationIdError('%s: an unexpected response' % self._ident)
        expected, request = self.in_flight_requests.popleft()
        found = int.from_bytes(data[:_ID_BYTES], 'big', signed=True)
        # Brokers of 0.8.2 respond to a request for the coordinator with correlation id 0.
        is_excused = (
            found == 0 and request.API_KEY == _COORDINATOR and self._api_version == (0, 8, 2)
        )
        if found != expected and not is_excused:
            raise CorrelationIdError(
                '%s: a response with correlation id %d, expected %d'
                % (self._ident, found, expected)
            )
        stream = io.BytesIO(data)
        stream.seek(_ID_BYTES)
        try:
            if getattr(request, 'FLEXIBLE', False):
                TaggedFields.decode(stream)
            return expected, request.RESPONSE_TYPE.decode(stream)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise KafkaProtocolError(
                '%s: a response to %s that cannot be read: %s'
                % (self._ident, type(request).__name__, error)
            ) from error
