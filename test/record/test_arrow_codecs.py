"""Frames that pyarrow writes and reads; test_codec.py compares them with those of the packages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.errors import ProtocolError
from kafka.record import arrow_codecs, lz4_frames

pyarrow = pytest.importorskip('pyarrow', reason='no pyarrow: install the extra arrow')

DATA = b'kafka' * 40_000


def test_an_lz4_frame_has_what_the_reader_of_kafka_knows():
    """Independent blocks of 64 KiB, and a checksum of the header alone."""
    frame = arrow_codecs.lz4_compress(pyarrow, DATA)
    header = lz4_frames.read_header(frame)
    assert (header.size, header.block_bytes, header.content_size) == (7, 1 << 16, None)
    assert not (header.linked or header.block_checksums or header.content_checksum)
    assert lz4_frames.decode_frames(frame, len(DATA)) == DATA


def test_an_lz4_block_that_does_not_shrink_is_stored():
    assert arrow_codecs.lz4_compress(pyarrow, b'ab') == (
        b'\x04\x22\x4d\x18\x60\x40\x82'  # magic number, flags, size of blocks, checksum
        b'\x02\x00\x00\x80'  # 2 bytes, stored
        b'ab'
        b'\x00\x00\x00\x00'  # the end
    )


@pytest.mark.parametrize('codec', ['lz4', 'zstd'])
def test_a_stream_is_read_up_to_its_limit(codec):
    packed = pyarrow.Codec(codec).compress(DATA, asbytes=True)
    assert arrow_codecs.decompress_stream(pyarrow, codec, packed, len(DATA)) == DATA
    with pytest.raises(ProtocolError, match='expands to more than %d' % (len(DATA) - 1)):
        arrow_codecs.decompress_stream(pyarrow, codec, packed, len(DATA) - 1)
    with pytest.raises(ProtocolError, match='malformed'):
        arrow_codecs.decompress_stream(pyarrow, codec, packed[:-9], len(DATA))


def test_lz4_needs_the_raw_codec_too():
    built = SimpleNamespace(Codec=SimpleNamespace(is_available=lambda name: name == 'lz4'))
    assert not arrow_codecs.supports(built, 'lz4')
    assert arrow_codecs.supports(pyarrow, 'lz4')
