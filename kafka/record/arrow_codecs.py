"""
Snappy, lz4 and zstd by pyarrow, for installations without the usual packages for them.

Called by kafka.codec. Every function takes the imported module ``pyarrow``, so that nothing is
imported here. The lz4 frame format is that of the LZ4 frame description 1.6. Pure.
"""

from __future__ import annotations

from typing import Any, List

from kafka.errors import ProtocolError

__all__ = [
    'decompress_stream',
    'lz4_compress',
    'snappy_compress',
    'snappy_decompress',
    'supports',
    'zstd_compress',
]

#: Version 1, independent blocks of 64 KiB, no sizes and no checksums except that of the header:
#: Kafka's reader supports nothing else. pyarrow itself links the blocks of a frame.
_LZ4_HEADER = b'\x04\x22\x4d\x18\x60\x40\x82'
_LZ4_BLOCK_BYTES = 1 << 16
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)

_PIECE_BYTES = 1 << 20


def supports(pyarrow: Any, codec: str) -> bool:
    """Return True if this build of pyarrow has a codec: 'snappy', 'lz4' or 'zstd'."""
    names = ('lz4', 'lz4_raw') if codec == 'lz4' else (codec,)
    return all(pyarrow.Codec.is_available(name) for name in names)


def snappy_compress(pyarrow: Any, block: bytes) -> bytes:
    """Compress to one raw snappy block."""
    return bytes(pyarrow.Codec('snappy').compress(block, asbytes=True))


def snappy_decompress(pyarrow: Any, block: bytes, size: int) -> bytes:
    """Decompress a raw snappy block that declares `size` bytes. Raises ProtocolError."""
    try:
        found = pyarrow.Codec('snappy').decompress(block, decompressed_size=size, asbytes=True)
    except OSError as error:
        raise ProtocolError('malformed snappy data') from error
    return bytes(found)


def zstd_compress(pyarrow: Any, data: bytes, level: int) -> bytes:
    """Compress to one zstd frame."""
    return bytes(pyarrow.Codec('zstd', compression_level=level).compress(data, asbytes=True))


def lz4_compress(pyarrow: Any, data: bytes) -> bytes:
    """Compress to one lz4 frame of independent blocks."""
    codec = pyarrow.Codec('lz4_raw')
    out = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        size, packed = 0, codec.compress(block, asbytes=True)
        if len(packed) >= len(block):
            size, packed = _LZ4_STORED, block
        out.append((size + len(packed)).to_bytes(4, 'little'))
        out.append(packed)
    out.append(_LZ4_END)
    return b''.join(out)


def decompress_stream(pyarrow: Any, codec: str, data: bytes, limit: int) -> bytes:
    """Decompress frames of 'lz4' or 'zstd', one after the other.

    Arguments: limit: the maximum size of the result in bytes.
    Raises ProtocolError for data that is malformed, ends too early or exceeds the limit.
    """
    parts: List[bytes] = []
    room = limit + 1
    stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec)
    try:
        while room > 0:
            part = stream.read(min(room, _PIECE_BYTES))
            if not part:
                return b''.join(parts)
            parts.append(part)
            room -= len(part)
    except OSError as error:
        raise ProtocolError('malformed %s data: %s' % (codec, error)) from error
    raise ProtocolError('%s data expands to more than %d bytes' % (codec, limit))
