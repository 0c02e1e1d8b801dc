"""Framing: request structs as frames, in the version of their class or in one the broker serves.

Called by kafka.evented.broker_connection. Encodes a request struct for a connection, with or
without the broker's versions, and decodes the response into the requested response struct. Old
versions are translated by kafka.protocol.translation; the structs are those of
kafka.protocol.struct_classes.
"""

from __future__ import annotations

import io
from typing import Any, Callable, List, Optional, Sequence, Tuple

from kafka.errors import UnsupportedVersionError
from kafka.protocol import api
from kafka.protocol.api import ApiKey, RequestHeader
from kafka.protocol.frames import frame
from kafka.protocol.negotiation import Ranges
from kafka.protocol.translation import OLD_VERSIONS, OldRequest, Translation, Translator
from kafka.protocol.translation_records import write_records
from kafka.protocol.types import TaggedFields
from kafka.protocol.wire import Message

__all__ = ['Expected', 'Framing']

NO_TAGS = b'\0'
CORRELATION_ID_BYTES = 4

Frames = Sequence[bytes]


class Expected:
    """The pending response of a request.

    Attributes: api_key; correlation_id; frames: the frames received so far.
    """

    def __init__(
        self, api_key: int, correlation_id: int, count: int, read: Callable[[Frames], Any]
    ) -> None:
        self.api_key = api_key
        self.correlation_id = correlation_id
        self.frames: List[bytes] = []
        self._count = count
        self._read = read

    @property
    def frames_missing(self) -> int:
        """The number of frames still to come."""
        return self._count - len(self.frames)

    def read(self) -> Any:
        """Return the response struct, once all frames are there.

        Raises whatever the class of the response raises for bytes that it cannot decode.
        """
        return self._read(self.frames)


class Framing:
    """Encodes request structs as frames.

    Arguments, and attributes: ranges: what the broker serves, {API key: (lowest, highest version)};
    None while that is unknown: requests are then sent in the version of their class.
    """

    def __init__(self, ranges: Optional[Ranges]) -> None:
        self.ranges = ranges or {}
        self._translator = None if ranges is None else Translator(ranges)

    def __repr__(self) -> str:
        return '<Framing for %d APIs>' % len(self.ranges)

    def frame(
        self, request: Any, correlation_id: int, client_id: Optional[str], now_ms: int
    ) -> Tuple[bytes, Expected]:
        """Return the bytes to send, frames with their lengths, and the response to expect.

        Arguments: now_ms: the timestamp of messages that carry none, in epoch ms.
        Raises UnsupportedVersionError, naming API and versions, if the broker serves no equivalent
        request; ValueError or ProtocolError for values that cannot be sent.
        """
        header = RequestHeader(request, correlation_id, client_id)
        if self._translator is not None and hasattr(request, 'declared'):
            low, high = self.ranges.get(header.api_key, (0, -1))
            if header.api_version <= OLD_VERSIONS.get(header.api_key, -1):
                old = OldRequest(header, request.declared())
                translation = self._translator.translate(old, now_ms)
                if translation is not None:
                    read = _reader(request, translation.requests, translation.version)
                    answer = _translated(request, translation, read)
                    return _framed(header, translation.requests, translation.version, answer)
            elif not low <= header.api_version <= high:
                return self._in_another_version(request, header)
        return _as_it_is(request, header)

    def _in_another_version(self, request: Any, header: RequestHeader) -> Tuple[bytes, Expected]:
        """Encode a request in the version nearest to that of its class."""
        low, high = self.ranges.get(header.api_key, (0, -1))
        message = request.declared()
        chosen = min(max(header.api_version, low), high)
        if not max(low, message.min_version) <= chosen <= message.max_version:
            raise UnsupportedVersionError(
                '%s was sent; the broker %s'
                % (
                    type(request).__name__,
                    'serves versions %d to %d' % (low, high) if high >= 0 else 'does not serve it',
                )
            )
        _complete(message)
        read = _reader(request, [message], chosen)
        return _framed(
            header, [message], chosen, lambda frames: request.RESPONSE_TYPE.of(read(frames)[0])
        )


def _translated(
    request: Any, translation: Translation, read: Callable[[Frames], List[Any]]
) -> Callable[[Frames], Any]:
    def answer(frames: Frames) -> Any:
        response = translation.unread(read(frames)).response
        write_records(response)
        return request.RESPONSE_TYPE.of(response)

    return answer


def _complete(message: Any) -> None:
    """Set the fields that the old version only implied."""
    if message.api_key == ApiKey.JOIN_GROUP and message.rebalance_timeout_ms < 0:
        message.rebalance_timeout_ms = message.session_timeout_ms


def _framed(
    header: RequestHeader,
    messages: Sequence[Message],
    version: int,
    read: Callable[[Frames], Any],
) -> Tuple[bytes, Expected]:
    data = b''.join(
        frame(api.encode_request(each, version, header.correlation_id, header.client_id))
        for each in messages
    )
    return data, Expected(header.api_key, header.correlation_id, len(messages), read)


def _reader(
    request: Any, messages: Sequence[Message], version: int
) -> Callable[[Frames], List[Any]]:
    """Return a function that decodes the responses to declared messages."""

    def read(frames: Frames) -> List[Any]:
        responses = []
        for each in frames:
            _, response = api.decode_response(api.response_class(request.API_KEY), each, version)
            responses.append(response)
        return responses

    return read


def _as_it_is(request: Any, header: RequestHeader) -> Tuple[bytes, Expected]:
    is_flexible = getattr(request, 'FLEXIBLE', False)
    tags = NO_TAGS if is_flexible else b''
    data = frame(b''.join((header.encode(), tags, request.encode())))

    def read(frames: Frames) -> Any:
        stream = io.BytesIO(frames[0])
        stream.seek(CORRELATION_ID_BYTES)
        if is_flexible:
            TaggedFields.decode(stream)
        # Structs of SimpleClient decode bytes; those that programs define also accept streams.
        return request.RESPONSE_TYPE.decode(stream.read())

    return data, Expected(header.api_key, header.correlation_id, 1, read)
