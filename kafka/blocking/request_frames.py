"""Request structs on the wire, in the version that their class says or in one the broker serves.

Owns what a request struct becomes on a connection, given the broker's versions or without them,
and how its answer becomes the response struct that was asked for. Old versions are translated by
protocol/translation.py. Does not own: the connection (evented/broker_connection.py), the structs
(protocol/struct_classes.py).
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
    """The answer that a request waits for.

    Attributes: api_key; correlation_id; frames: what has come of it.
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
        """How many frames are still to come."""
        return self._count - len(self.frames)

    def read(self) -> Any:
        """Return the response struct, given all frames.

        Raises whatever the class of the response raises for bytes that it cannot be.
        """
        return self._read(self.frames)


class Framing:
    """Makes frames of request structs.

    Arguments, and attributes: ranges: what the broker serves, {API key: (lowest, highest version)};
    None as long as that is not known: requests are then sent as they are.
    """

    def __init__(self, ranges: Optional[Ranges]) -> None:
        self.ranges = ranges or {}
        self._translator = None if ranges is None else Translator(ranges)

    def __repr__(self) -> str:
        return '<Framing for %d APIs>' % len(self.ranges)

    def frame(
        self, request: Any, correlation_id: int, client_id: Optional[str], now_ms: int
    ) -> Tuple[bytes, Expected]:
        """Return what to send, frames with their lengths, and what to expect.

        Arguments: now_ms: the timestamp of messages that carry none, in epoch ms.
        Raises UnsupportedVersionError, naming API and versions, if the broker serves nothing like
        it; ValueError or ProtocolError for values that cannot be sent.
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
        """Send a request in the version that is nearest to the one of its class."""
        low, high = self.ranges.get(header.api_key, (0, -1))
        message = request.declared()
        chosen = min(max(header.api_version, low), high)
        if not max(low, message.min_version) <= chosen <= message.max_version:
            raise UnsupportedVersionError(
                '%s was sent; the broker %s'
                % (
                    type(request).__name__,
                    'serves versions %d to %d' % (low, high) if high >= 0 else 'does not have it',
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
    """Say what an old version left to be understood."""
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
    """Return what reads the answers to declared messages."""

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
        # Structs of SimpleClient read bytes, those of programs streams too.
        return request.RESPONSE_TYPE.decode(stream.read())

    return data, Expected(header.api_key, header.correlation_id, 1, read)
