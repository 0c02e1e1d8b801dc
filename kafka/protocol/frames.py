"""Frames: how Kafka cuts a byte stream into requests and responses.

A frame is an int32 length, big-endian, and that many bytes. This file owns the cutting and the
limit; what is inside a frame is the business of session.py. It follows the protocol guide
("Protocol Primitives", "Network"); the default limit is the one brokers have for requests
(``socket.request.max.bytes``).
"""

from __future__ import annotations

import struct
from typing import Iterable, List, Optional, Union

from kafka.errors import FrameError

__all__ = ['DEFAULT_MAX_FRAME_BYTES', 'FrameReader', 'frame', 'frame_length']

DEFAULT_MAX_FRAME_BYTES = 100 * 1024 * 1024
LENGTH_BYTES = 4
#: Pieces of a frame that are as large are kept as they came, and copied once, when it is whole.
LARGE_PIECE_BYTES = 16 * 1024

_LENGTH = struct.Struct('>i')

# The first four bytes of what answers on a port that is not Kafka's. Read as a length each is far
# beyond any limit, so this list only makes the error clearer and can never refuse a good frame.
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
    """Return `data` with its length in front, ready for the wire."""
    return _LENGTH.pack(len(data)) + data


def frame_length(parts: Iterable[bytes]) -> bytes:
    """Return the length of a frame, ready for the wire, that the parts follow."""
    return _LENGTH.pack(sum(map(len, parts)))


class FrameReader:
    """Cuts frames out of bytes that arrive in pieces of any size.

    Arguments, and attributes: max_frame_bytes: the largest length that is believed.

    Memory is taken as bytes arrive, never because a length announces them.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._pieces: List[Union[bytes, bytearray]] = []  # what follows the buffer
        self._length: Optional[int] = None  # of the frame at the head, once it was read
        self._missing = LENGTH_BYTES  # of the length or the frame; less than 0: more is there

    def __repr__(self) -> str:
        return '<FrameReader buffered=%d missing=%d>' % (self.buffered_bytes, self.missing_bytes)

    @property
    def missing_bytes(self) -> int:
        """How many bytes may be read, at most, without reading into the following frame.

        First the rest of the length field, then the rest of the frame; 0: ask next_frame().
        """
        return max(0, self._missing)

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are held: of a frame that is not complete, or not taken yet."""
        return len(self._buffer) + sum(map(len, self._pieces))

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and was not taken: a stream that ends here was cut off."""
        return bool(self._buffer)

    def receive_data(self, data: Union[bytes, bytearray, memoryview]) -> None:
        """Add bytes as they came from the peer. Raises TypeError for anything else."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError('data must be bytes, not %s' % type(data).__name__)
        is_inside = self._length is not None and self._missing > 0
        if self._pieces or (is_inside and len(data) >= LARGE_PIECE_BYTES):
            self._add_piece(data)
        else:
            self._buffer += data
        self._missing -= len(data)

    def _add_piece(self, data: Union[bytes, bytearray, memoryview]) -> None:
        last = self._pieces[-1] if self._pieces else None
        if len(data) >= LARGE_PIECE_BYTES:
            self._pieces.append(bytes(data))
        elif isinstance(last, bytearray):  # many small ones would take more memory than they have
            last += data
        else:
            self._pieces.append(bytearray(data))

    def next_frame(self) -> Optional[bytes]:
        """Return the next frame without its length, or None until it is complete.

        Raises FrameError as soon as a length shows that the peer doesn't speak Kafka.
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
        end = LENGTH_BYTES + self._length
        with memoryview(self._buffer) as view:
            body = b''.join([view[LENGTH_BYTES:end], *self._pieces])
        del self._buffer[:end]
        if self._pieces:
            self._buffer += memoryview(body)[self._length :]
            self._pieces = []
            body = body[: self._length]
        self._length = None
        self._missing += LENGTH_BYTES
        return body

    def take(self, data: bytes) -> Optional[bytes]:
        """Add bytes as receive_data(), then do what next_frame() does."""
        if not self._buffer and len(data) > LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(data)
            if length == len(data) - LENGTH_BYTES and length <= self.max_frame_bytes:
                return data[LENGTH_BYTES:]  # exactly one frame, as small answers come
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
