"""
Compression codecs: gzip, snappy, lz4 and zstd, each with a limit of the decompressed size.

The functions ``has_x``, ``x_encode`` and ``x_decode`` are the interface of all eras: those of gzip
and snappy from 0.9.5 on, of lz4 and zstd from the eras of those codecs. :func:`compress` and
:func:`decompress` are used by the record formats, zstd from magic 2 on (KIP-110). All take bytes,
bytearray or memoryview and raise TypeError for anything else. Optional packages are imported when
first needed; pyarrow is used if they are missing. Without it, too, snappy and lz4 can still be
decompressed, in Python (:mod:`kafka.record.snappy_blocks`, :mod:`kafka.record.lz4_frames`), and
gzip by zlib; everything else raises :class:`MissingCodecError`, which names the extra to install.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache, partial
from typing import Any, Callable, List, Optional

from kafka.errors import ProtocolError, UnsupportedCodecError
from kafka.internals.lazy_imports import import_late
from kafka.record import arrow_codecs, lz4_frames, snappy_blocks, zstd_frames
from kafka.record.util import Buffer

CODEC_NONE = 0
CODEC_GZIP = 1
CODEC_SNAPPY = 2
CODEC_LZ4 = 3
CODEC_ZSTD = 4

CODEC_NAMES = {
    CODEC_NONE: 'none',
    CODEC_GZIP: 'gzip',
    CODEC_SNAPPY: 'snappy',
    CODEC_LZ4: 'lz4',
    CODEC_ZSTD: 'zstd',
}

#: The default maximum of the decompressed size in bytes. A fetch response is 50 MiB by default and
#: a broker accepts batches of 1 MiB, so real data is far below; compression bombs reach gigabytes.
DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024

# The size of the first piece that is passed to the second of several streams.
_FIRST_PIECE_BYTES = 512

_ISAL_BEST = 3  # isal's levels are 0 to 3

_XERIAL_MARK = b'\x82SNAPPY\x00'
_XERIAL_HEADER = _XERIAL_MARK + struct.pack('>ii', 1, 1)


class MissingCodecError(UnsupportedCodecError, NotImplementedError):
    """
    An optional package for compression is not installed.

    It is a ``NotImplementedError`` too, which ``snappy_encode`` and similar functions raised in
    every release since 0.8.
    """


@lru_cache(maxsize=None)
def _helper(*names: str) -> Any:
    """Import the first available of some optional packages on first use; None if all are
    missing."""
    for name in names:
        try:
            return import_late(name)
        except ImportError:
            continue
    return None


_ZSTD = ('zstandard', 'compression.zstd', 'backports.zstd')


def _arrow(codec: str) -> Any:
    """Return pyarrow, None if it is missing or was built without a codec."""
    pyarrow = _helper('pyarrow')
    return pyarrow if pyarrow is not None and arrow_codecs.supports(pyarrow, codec) else None


def _arrow_required(codec: str) -> Any:
    pyarrow = _arrow(codec)
    if pyarrow is None:
        raise MissingCodecError(
            '%s needs a package that is not installed: pip install kafka-evergreen[%s]'
            % (codec, codec)
        )
    return pyarrow


def _bytes(payload: Buffer) -> bytes:
    """Return the payload as bytes. bytes() of a number would be that many zeros."""
    if not isinstance(payload, (bytes, bytearray, memoryview)):
        raise TypeError('payload must be bytes, not %s' % type(payload).__name__)
    return bytes(payload)


def _level(level: Any, lowest: int, highest: int) -> int:
    if not isinstance(level, int):
        raise TypeError('the compression level must be an int, not %s' % type(level).__name__)
    if not lowest <= level <= highest:
        raise ValueError(
            'the compression level must be from %d to %d, got %d' % (lowest, highest, level)
        )
    return level


def _too_large(codec: str, limit: int) -> ProtocolError:
    return ProtocolError('%s data expands to more than %d bytes' % (codec, limit))


def _joined(
    codec: str, data: bytes, end: int, new_reader: Callable[[], Any], errors: Any, limit: int
) -> bytes:
    """
    Decompress consecutive streams, until one ends at or after ``end``.

    A decompressor returns a copy of what follows its stream. Only the first gets all data, the
    others get pieces of increasing size: a million empty streams would make a million copies
    otherwise.
    """
    parts: List[bytes] = []
    room = limit + 1
    pos = 0
    piece = len(data)
    while True:
        reader = new_reader()
        while not reader.eof:
            if pos == len(data):
                raise ProtocolError('the bytes end inside %s data' % codec)
            offered = data[pos : pos + piece]
            try:
                part = reader.decompress(offered, room)
            except errors as error:
                raise ProtocolError('malformed %s data: %s' % (codec, error)) from error
            if part:
                parts.append(part)
                room -= len(part)
            if room <= 0:
                raise _too_large(codec, limit)
            pos += len(offered)
            piece *= 2
        pos -= len(reader.unused_data or b'')
        if pos >= end:
            return parts[0] if len(parts) == 1 else b''.join(parts)
        piece = _FIRST_PIECE_BYTES


def has_gzip() -> bool:
    """Return True: gzip is always available."""
    return True


def has_snappy() -> bool:
    """Return True if snappy data can be compressed. It can always be decompressed."""
    return (_helper('snappy') or _arrow('snappy')) is not None


def has_lz4() -> bool:
    """Return True if lz4 data can be compressed. It can always be decompressed."""
    return (_helper('lz4.frame') or _arrow('lz4')) is not None


def has_zstd() -> bool:
    """Return True if zstd is available."""
    return (_helper(*_ZSTD) or _arrow('zstd')) is not None


# --- gzip


def gzip_encode(payload: Buffer, compresslevel: Optional[int] = None) -> bytes:
    """
    Compress to a complete gzip stream.

    ``compresslevel`` is 1 (fast) to 9 (small); None and 0 mean 9, as in every release.
    """
    compressor = zlib.compressobj(_level(compresslevel or 9, -1, 9), zlib.DEFLATED, 31)
    return compressor.compress(_bytes(payload)) + compressor.flush()


def _gzip(data: Buffer) -> bytes:
    """Compress to a gzip stream with the best ratio of time to size."""
    # About the size of zlib's level 6, in a quarter of the time: benchmarks/simple.py --only gzip.
    isal = _helper('isal.isal_zlib')
    if isal is None:
        return gzip_encode(data, 6)
    compressor = isal.compressobj(_ISAL_BEST, zlib.DEFLATED, 31)
    return bytes(compressor.compress(_bytes(data)) + compressor.flush())


def gzip_decode(payload: Buffer, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress a gzip stream of one or more members.

    ``limit`` is the maximum size of the result in bytes. Raises ``ProtocolError`` if the stream is
    malformed, ends too early or exceeds the limit.
    """
    data = _bytes(payload)
    # Padding with zeros after the last member is allowed by gzip and by Java's reader.
    end = len(data.rstrip(b'\x00'))
    # isal inflates about three times as fast: benchmarks/decode.py.
    inflate = _helper('isal.isal_zlib') or zlib
    return _joined('gzip', data, end, lambda: inflate.decompressobj(31), inflate.error, limit)


# --- snappy


def snappy_encode(
    payload: Buffer, xerial_compatible: bool = True, xerial_blocksize: int = 32 * 1024
) -> bytes:
    """
    Compress with snappy.

    ``xerial_compatible`` chooses the framing of the snappy-java library, which Kafka uses (the
    default since 1.0; 0.9.5 wrote one raw block), ``xerial_blocksize`` the number of input bytes
    per block. Raises :class:`MissingCodecError` without python-snappy and pyarrow.
    """
    compress_block = _snappy_compressor()
    data = _bytes(payload)
    if not xerial_compatible:
        return compress_block(data)
    if not isinstance(xerial_blocksize, int):
        raise TypeError('xerial_blocksize must be an int, not %s' % type(xerial_blocksize).__name__)
    if xerial_blocksize <= 0:
        raise ValueError('xerial_blocksize must be > 0, got %d' % xerial_blocksize)
    out = [_XERIAL_HEADER]
    for start in range(0, len(data), xerial_blocksize):
        block = compress_block(data[start : start + xerial_blocksize])
        out.append(struct.pack('>i', len(block)))
        out.append(block)
    return b''.join(out)


def _snappy_compressor() -> Callable[[bytes], bytes]:
    snappy = _helper('snappy')
    if snappy is None:
        return partial(arrow_codecs.snappy_compress, _arrow_required('snappy'))
    return lambda block: bytes(snappy.compress(block))


def _detect_xerial_stream(payload: Buffer) -> bool:
    """Return True if the payload begins with snappy-java's framing, exactly as Kafka writes it."""
    return len(payload) > 16 and bytes(payload[:16]) == _XERIAL_HEADER


def snappy_decode(payload: Buffer, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress snappy, framed by snappy-java or one raw block.

    ``limit`` is the maximum size of the result in bytes. Raises ``ProtocolError`` if the data is
    malformed or exceeds the limit.
    """
    data = _bytes(payload)
    if data == _XERIAL_HEADER:
        return b''
    # Only the marker decides: some writers store the two version numbers in little-endian order.
    if len(data) <= 16 or not data.startswith(_XERIAL_MARK):
        return _snappy_block(data, limit)
    parts: List[bytes] = []
    room = limit
    pos = 16
    while pos < len(data):
        size = int.from_bytes(data[pos : pos + 4], 'big')
        pos += 4
        if pos + size > len(data):
            raise ProtocolError('the bytes end inside a snappy block')
        part = _snappy_block(data[pos : pos + size], room)
        parts.append(part)
        room -= len(part)
        pos += size
    return b''.join(parts)


def _snappy_block(block: bytes, room: int) -> bytes:
    size, _ = snappy_blocks.declared_size(block)
    if size > room:
        raise ProtocolError('snappy data expands to more than the limit (%d bytes left)' % room)
    snappy = _helper('snappy')
    if snappy is None:
        pyarrow = _arrow('snappy')
        if pyarrow is None:
            return snappy_blocks.decode_block(block)
        return arrow_codecs.snappy_decompress(pyarrow, block, size)
    try:
        out = bytes(snappy.uncompress(block))
    except snappy.UncompressError as error:
        raise ProtocolError('malformed snappy data') from error
    if len(out) != size:
        raise ProtocolError('a snappy block has %d bytes, but declares %d' % (len(out), size))
    return out


# --- lz4


def lz4_encode(payload: Buffer) -> bytes:
    """
    Compress to one LZ4 frame that brokers from 0.10 on accept.

    Blocks are independent and of 64 KiB and the header has no content size, because Kafka's
    reader supports nothing else. Raises :class:`MissingCodecError` without lz4 and pyarrow.
    """
    frame = _helper('lz4.frame')
    if frame is None:
        return arrow_codecs.lz4_compress(_arrow_required('lz4'), _bytes(payload))
    return bytes(
        frame.compress(
            _bytes(payload),
            block_size=frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
    )


def lz4_encode_old_kafka(payload: Buffer) -> bytes:
    """
    Compress to an LZ4 frame with the wrong header checksum that Kafka 0.8.2 requires (KAFKA-3160).

    Raises :class:`MissingCodecError` without lz4 and pyarrow.
    """
    frame = lz4_encode(payload)
    return lz4_frames.with_checksum(frame, lz4_frames.wrong_checksum(frame))


def lz4_decode(payload: Buffer, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress LZ4 frames.

    ``limit`` is the maximum size of the result in bytes. Raises ``ProtocolError`` if the data is
    malformed (including a wrong header checksum), ends too early or exceeds the limit.
    """
    data = _bytes(payload)
    lz4_frames.read_header(data)
    frame = _helper('lz4.frame')
    if frame is None:
        pyarrow = _arrow('lz4')
        if pyarrow is None:
            return lz4_frames.decode_frames(data, limit)
        return arrow_codecs.decompress_stream(pyarrow, 'lz4', data, limit)
    errors = (RuntimeError, EOFError, ValueError)
    return _joined('lz4', data, len(data), frame.LZ4FrameDecompressor, errors, limit)


def lz4_decode_old_kafka(payload: Buffer, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress LZ4 frames with a correct header checksum, or the wrong one of Kafka 0.8.2.

    As :func:`lz4_decode` except for that checksum (KAFKA-3160).
    """
    data = _bytes(payload)
    size = lz4_frames.header_size(data)
    if data[size - 1] == lz4_frames.wrong_checksum(data):
        data = lz4_frames.with_checksum(data, lz4_frames.right_checksum(data))
    return lz4_decode(data, limit)


lz4f_decode = lz4_decode


# --- zstd


def zstd_encode(payload: Buffer, level: Optional[int] = None) -> bytes:
    """
    Compress to one zstd frame.

    ``level`` is 1 to 22, None the library's default (3). Raises :class:`MissingCodecError`
    without a zstd package.
    """
    zstd = _helper(*_ZSTD)
    level = 3 if level is None else _level(level, -131072, 22)
    if zstd is None:
        return arrow_codecs.zstd_compress(_arrow_required('zstd'), _bytes(payload), level)
    if hasattr(zstd, 'ZstdDecompressionReader'):
        return bytes(zstd.ZstdCompressor(level=level).compress(_bytes(payload)))
    return bytes(zstd.compress(_bytes(payload), level))


def zstd_decode(payload: Buffer, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress zstd frames.

    ``limit`` is the maximum size of the result in bytes. Raises ``ProtocolError`` if the data is
    malformed, ends too early or exceeds the limit, :class:`MissingCodecError` without a zstd
    package.
    """
    zstd = _helper(*_ZSTD)
    pyarrow = _arrow_required('zstd') if zstd is None else None
    data = _bytes(payload)
    if not data:
        raise ProtocolError('not a zstd frame')
    parts: List[bytes] = []
    room = limit
    for frame in zstd_frames.walk_frames(data):
        if frame.least_bytes > room:
            raise _too_large('zstd', limit)
        piece, most = data[frame.start : frame.end], min(frame.most_bytes, room)
        if pyarrow is None:
            part = _zstd_frame(zstd, piece, most)
        else:
            part = arrow_codecs.decompress_stream(pyarrow, 'zstd', piece, most)
        parts.append(part)
        room -= len(part)
    return parts[0] if len(parts) == 1 else b''.join(parts)


def _zstd_frame(zstd: Any, frame: bytes, most: int) -> bytes:
    try:
        if hasattr(zstd, 'ZstdDecompressionReader'):
            return bytes(zstd.ZstdDecompressor().decompress(frame, max_output_size=max(1, most)))
        reader = zstd.ZstdDecompressor()
        part = bytes(reader.decompress(frame, max_length=most))
        if not reader.eof:
            part += bytes(reader.decompress(b'', max_length=1))
    except zstd.ZstdError as error:
        raise ProtocolError(
            'zstd data is malformed or expands to more than %d bytes: %s' % (most, error)
        ) from error
    if not reader.eof or len(part) > most:
        raise ProtocolError('zstd data expands to more than %d bytes' % most)
    return part


# --- by codec number


def compress(codec: int, data: Buffer, level: Optional[int] = None, magic: int = 2) -> bytes:
    """
    Compress the records of a batch.

    ``codec`` is the number in the batch's attributes. ``level`` None means zstd 3 and for gzip the
    best of isal, or 6 of zlib (its own default) without isal; snappy and lz4 ignore it.
    ``magic`` 0 writes the LZ4 frames that brokers of 0.8.2 and 0.9 require. Raises
    ``UnsupportedCodecError`` for an unknown codec, :class:`MissingCodecError` for a missing
    package.
    """
    if codec == CODEC_NONE:
        return _bytes(data)
    if codec == CODEC_GZIP:
        return _gzip(data) if level is None else gzip_encode(data, level)
    if codec == CODEC_SNAPPY:
        return snappy_encode(data)
    if codec == CODEC_LZ4:
        return lz4_encode_old_kafka(data) if magic == 0 else lz4_encode(data)
    if codec == CODEC_ZSTD and magic >= 2:
        return zstd_encode(data, level)
    raise UnsupportedCodecError('codec %r does not exist in message format %d' % (codec, magic))


def decompress(codec: int, data: Buffer, magic: int = 2, limit: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """
    Decompress the records of a batch.

    ``codec`` is the number in the batch's attributes, ``limit`` the maximum size of the result in
    bytes. With ``magic`` 0 the header checksum of LZ4 may be correct or the wrong one of 0.8.2.
    Raises ``ProtocolError`` for malformed or too large data, ``UnsupportedCodecError`` for an
    unknown codec, :class:`MissingCodecError` for a missing package.
    """
    if codec == CODEC_NONE:
        return _bytes(data)
    if codec == CODEC_GZIP:
        return gzip_decode(data, limit)
    if codec == CODEC_SNAPPY:
        return snappy_decode(data, limit)
    if codec == CODEC_LZ4:
        return lz4_decode_old_kafka(data, limit) if magic == 0 else lz4_decode(data, limit)
    if codec == CODEC_ZSTD and magic >= 2:
        return zstd_decode(data, limit)
    raise UnsupportedCodecError('codec %r does not exist in message format %d' % (codec, magic))
