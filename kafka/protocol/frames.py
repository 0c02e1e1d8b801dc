"""Frames: the division of a byte stream into requests and responses.

A frame is an int32 length, big-endian, and that number of bytes. Used by session.py, which reads
the content. Follows the protocol guide ("Protocol Primitives", "Network"); the default limit is
that of brokers for requests (``socket.request.max.bytes``).
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Iterable, Optional, Union

from kafka.errors import FrameError

__all__ = ['DEFAULT_MAX_FRAME_BYTES', 'FrameReader', 'frame', 'frame_length']

DEFAULT_MAX_FRAME_BYTES = 100 * 1024 * 1024
LENGTH_BYTES = 4
#: A frame of which a piece of this size arrives is assembled in a buffer of its own.
LARGE_PIECE_BYTES = 16 * 1024
#: The initial size of that buffer; it is doubled when it is full.
LARGE_FRAME_BYTES = 8 * 1024 * 1024

_LENGTH = struct.Struct('>i')

# The first bytes of responses from other kinds of servers. Read as a length each is far above any
# limit, so this table only improves the error and never rejects a valid frame.
_STRANGERS = (
    (b'HTTP', 'an HTTP answer; this is a web server'),
    (b'GET ', 'an HTTP request'),
    (b'POST', 'an HTTP request'),
    (b'PUT ', 'an HTTP request'),
    (b'HEAD', 'an HTTP request'),
    (b'<htm', 'a web page'),
    (b'<!DO', 'a web page'),
    (b'SSH-', 'the greeting of an SSH server'),
    (b'220 ', 'the greeting of a mail or FTP server'),
    (b'220-', 'the greeting of a mail or FTP server'),
    (b'-ERR', 'an answer of Redis or of a mail server'),
    (b'\x15\x03', 'a TLS alert; this port wants TLS'),
    (b'\x16\x03', 'a TLS handshake; the peer speaks TLS and this side does not'),
)


def frame(data: bytes) -> bytes:
    """Return `data` with its length prefix."""
    return _LENGTH.pack(len(data)) + data


def frame_length(parts: Iterable[bytes]) -> bytes:
    """Return the length prefix of a frame that consists of these parts."""
    return _LENGTH.pack(sum(map(len, parts)))


class FrameReader:
    """Splits a byte stream, which arrives in pieces of any size, into frames.

    Arguments, and attributes: max_frame_bytes: the maximum length of a frame.

    Memory is allocated as bytes arrive, not as soon as a length announces them: for a long frame at
    most twice the received size, or LARGE_FRAME_BYTES. The buffer is extended in few large steps,
    because fresh memory costs more than copying the bytes, and becomes the frame without a copy.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._large: Optional[BytesIO] = None  # a long frame; what follows it is in _buffer
        self._room = 0  # the allocated size of _large
        self._length: Optional[int] = None  # of the first frame, once it was read
        self._missing = LENGTH_BYTES  # of the length or the frame; negative: more was received

    def __repr__(self) -> str:
        return '<FrameReader buffered=%d missing=%d>' % (self.buffered_bytes, self.missing_bytes)

    @property
    def missing_bytes(self) -> int:
        """The number of bytes that can be read without reading into the following frame.

        First the rest of the length field, then the rest of the frame; 0: call next_frame().
        """
        return max(0, self._missing)

    @property
    def buffered_bytes(self) -> int:
        """The number of buffered bytes: of an incomplete frame, or not taken yet."""
        return len(self._buffer) + (0 if self._large is None else LENGTH_BYTES + self._large.tell())

    @property
    def inside_frame(self) -> bool:
        """Whether a part of a frame is buffered: if the stream ends here, the frame is
        truncated."""
        return bool(self._buffer) or self._large is not None

    def receive_data(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Add received bytes. Raises TypeError for anything else."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError('data must be bytes, not %s' % type(data).__name__)
        is_inside = self._length is not None and self._missing > 0
        if is_inside and (self._large is not None or len(data) >= LARGE_PIECE_BYTES):
            self._add_to_large(data)
        else:
            self._buffer += data
        self._missing -= len(data)

    def _add_to_large(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Add bytes to a long frame, and those after its end to the buffer."""
        large = self._large
        if large is None:
            self._large = large = BytesIO()
            self._room = 0
            self._reserve(large, len(self._buffer) - LENGTH_BYTES)
            large.write(memoryview(self._buffer)[LENGTH_BYTES:])
            self._buffer = bytearray()
        if len(data) > self._missing:
            self._buffer += memoryview(data)[self._missing :]
            data = memoryview(data)[: self._missing]
        self._reserve(large, large.tell() + len(data))
        large.write(data)

    def _reserve(self, large: BytesIO, size: int) -> None:
        """Extend the buffer of a long frame to at least this size."""
        assert self._length is not None
        if size > self._room:
            filled = large.tell()
            self._room = min(self._length, max(size, LARGE_FRAME_BYTES, 2 * self._room))
            large.seek(self._room - 1)
            large.write(b'\0')
            large.seek(filled)

    def next_frame(self) -> Optional[bytes]:
        """Return the next frame without its length, or None until it is complete.

        Raises FrameError as soon as a length shows that the peer does not use the Kafka protocol.
        """
        if self._missing > 0:
            return None
        if self._length is None:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if not 0 <= length <= self.max_frame_bytes:
                raise FrameError(self._explain(length))
            self._length = length
            self._missing += length
            if self._missing > 0:
                return None
        if self._large is not None:
            body, self._large = self._large.getvalue(), None
        else:
            end = LENGTH_BYTES + self._length
            with memoryview(self._buffer) as view:
                body = bytes(view[LENGTH_BYTES:end])
            del self._buffer[:end]
        self._length = None
        self._missing += LENGTH_BYTES
        return body

    def take(self, data: bytes) -> Optional[bytes]:
        """Call receive_data(), then next_frame()."""
        if not self._buffer and self._length is None and len(data) > LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(data)
            if length == len(data) - LENGTH_BYTES and length <= self.max_frame_bytes:
                return data[LENGTH_BYTES:]  # exactly one frame, the usual case for small responses
        self.receive_data(data)
        return self.next_frame()

    def _explain(self, length: int) -> str:
        head = bytes(self._buffer[:LENGTH_BYTES])
        for start, what in _STRANGERS:
            if head.startswith(start):
                return 'the peer does not speak Kafka: it sent %s' % what
        if length < 0:
            return 'the peer announced a frame of negative length (%d)' % length
        return 'the peer announced a frame of %d bytes; the limit is %d' % (
            length,
            self.max_frame_bytes,
        )
