"""The codecs by all their names, with the helper packages and without, and against bombs."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tracemalloc
import types
import zlib

import pyarrow
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafka import codec
from kafka.codec import MissingCodecError, compress, decompress
from kafka.errors import ProtocolError, UnsupportedCodecError
from kafka.record import lz4_frames, snappy_blocks

MIB = 1024 * 1024
HEADER = b'\x82SNAPPY\x00' + b'\x00\x00\x00\x01' + b'\x00\x00\x00\x01'
# SNAPPY 50 times, then XERIAL 50 times, in blocks of 300 bytes.
FRAMED = HEADER + bytes.fromhex(
    '00000018'  # block of 24 bytes
    'ac02'  # 300 bytes of content
    '14534e41505059'  # literal of 6 bytes: SNAPPY
    'fe0600fe0600fe0600fe0600'  # four copies of 64 bytes, 6 back
    '960600'  # copy of 38 bytes, 6 back
    '00000018'
    'ac02'
    '1458455249414c'  # XERIAL
    'fe0600fe0600fe0600fe0600'
    '960600'
)
TEXT = b'SNAPPY' * 50 + b'XERIAL' * 50

payloads = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(0, 9000)).map(lambda p: p[0] * p[1]),
)


@pytest.fixture
def without_wheels(monkeypatch):
    """Make every helper package look as if it were not installed."""
    names = ('snappy', 'lz4', 'lz4.frame', 'zstandard', 'compression.zstd', 'backports.zstd')
    for name in (*names, 'isal', 'isal.isal_zlib', 'pyarrow'):
        monkeypatch.setitem(sys.modules, name, None)
    codec._helper.cache_clear()
    yield
    monkeypatch.undo()
    codec._helper.cache_clear()


@pytest.fixture
def with_pyarrow_alone(without_wheels, monkeypatch):
    """Make pyarrow the only helper package, as with the extra spark."""
    monkeypatch.setitem(sys.modules, 'pyarrow', pyarrow)
    codec._helper.cache_clear()


@pytest.fixture(params=['isal', 'zlib'])
def inflater(request):
    """Read gzip by each of the two that can."""
    if request.param == 'zlib':
        request.getfixturevalue('without_wheels')
    else:
        pytest.importorskip('isal', reason='isal has no wheel for this platform')
    return request.param


# --- all of them


@pytest.mark.parametrize('number', [0, 1, 2, 3, 4])
@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_every_codec_takes_any_buffer_and_gives_bytes(number, kind):
    packed = compress(number, kind(TEXT))
    unpacked = decompress(number, kind(packed))
    assert unpacked == TEXT
    assert type(packed) is type(unpacked) is bytes


@pytest.mark.parametrize('number', [1, 2, 3, 4])
@given(payload=payloads)
def test_round_trip(number, payload):
    assert decompress(number, compress(number, payload)) == payload


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_round_trip_of_several_blocks(number):
    payload = bytes(range(256)) * (20 * 1024)
    assert decompress(number, compress(number, payload)) == payload


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_nothing(number):
    assert decompress(number, compress(number, b'')) == b''


@pytest.mark.parametrize('number', [1, 2, 3, 4])
@given(data=st.data())
def test_damaged_data_ends_in_a_documented_error(number, data):
    """Or in other bytes, where the codec has no checksum; but in nothing else."""
    packed = bytearray(compress(number, TEXT))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(packed) - 1))
        packed[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        packed = packed or bytearray(b'\x00')
    try:
        assert type(decompress(number, packed, limit=MIB)) is bytes
    except ProtocolError:
        pass


@pytest.mark.parametrize('number', [1, 2, 3, 4])
@given(data=st.binary(max_size=100))
def test_random_data_ends_in_a_documented_error(number, data):
    try:
        assert type(decompress(number, data, limit=MIB)) is bytes
    except ProtocolError:
        pass


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_cut_off_data_is_malformed(number):
    packed = compress(number, bytes(range(256)) * 300)
    for end in list(range(30)) + list(range(len(packed) - 30, len(packed))):
        if number == 2 and end == 16:
            continue  # the head of a framed stream alone is what snappy-java writes for nothing
        with pytest.raises(ProtocolError):
            decompress(number, packed[:end])


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_the_limit_is_exact(number):
    packed = compress(number, bytes(70000))
    assert len(decompress(number, packed, limit=70000)) == 70000
    with pytest.raises(ProtocolError, match='expands to more than'):
        decompress(number, packed, limit=69999)


def bombs():
    """Yield name, codec and a few KiB that expand to 1 GiB and more."""
    chunk, packer = bytes(4 * MIB), zlib.compressobj(9, zlib.DEFLATED, 31)
    yield 'gzip', 1, b''.join([packer.compress(chunk) for _ in range(16)] + [packer.flush()])
    yield 'gzip members', 1, gzip.compress(bytes(MIB)) * 64
    block = bytes.fromhex('80808004 00 00') + b'\xfe\x01\x00' * 200000  # declares 8 MiB
    yield 'snappy', 2, HEADER + (len(block).to_bytes(4, 'big') + block) * 8
    yield 'snappy that lies about its size', 2, b'\xff\xff\xff\xff\x07' + b'\x00' * 20
    frame = codec.lz4_encode(bytes(64 * 1024))[:-4]
    yield 'lz4', 3, frame + frame[7:] * 1000 + bytes(4)
    yield 'lz4 frames', 3, codec.lz4_encode(bytes(MIB)) * 64
    rle = (1 << 17 << 3 | 2).to_bytes(3, 'little') + b'\x00'
    yield 'zstd', 4, bytes.fromhex('28b52ffd 00 88') + rle * 20000 + b'\x01\x00\x00'
    yield 'zstd frames', 4, codec.zstd_encode(bytes(MIB)) * 64


BOMBS = {name: (number, data) for name, number, data in bombs()}


@pytest.mark.parametrize('name', sorted(BOMBS))
def test_a_bomb_is_refused_within_its_limit(name):
    number, data = BOMBS[name]
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decompress(number, data, limit=2 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


@pytest.mark.parametrize('name', [name for name in sorted(BOMBS) if BOMBS[name][0] in (1, 2, 3)])
def test_a_bomb_is_refused_by_the_decoders_in_python(name, without_wheels):
    number, data = BOMBS[name]
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decompress(number, data, limit=MIB // 4)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB


def test_unknown_codecs():
    for number in (5, 7, -1):
        with pytest.raises(UnsupportedCodecError, match='codec'):
            compress(number, b'')
        with pytest.raises(UnsupportedCodecError, match='codec'):
            decompress(number, b'')
    for magic in (0, 1):
        with pytest.raises(UnsupportedCodecError, match='codec 4'):
            compress(4, b'', magic=magic)
        with pytest.raises(UnsupportedCodecError, match='codec 4'):
            decompress(4, b'', magic)


def test_what_is_installed_is_told():
    assert codec.has_gzip() is True
    assert codec.has_snappy() is True
    assert codec.has_lz4() is True
    assert codec.has_zstd() is True


def test_what_is_missing_is_told(without_wheels):
    assert codec.has_gzip() is True
    assert codec.has_snappy() is False
    assert codec.has_lz4() is False
    assert codec.has_zstd() is False


@pytest.mark.parametrize('number, extra', [(2, 'snappy'), (3, 'lz4'), (4, 'zstd')])
def test_a_missing_package_names_the_extra(number, extra, without_wheels):
    """It is the NotImplementedError of the old days and the error of today."""
    with pytest.raises(NotImplementedError, match=r'pip install kafka-evergreen\[%s\]' % extra):
        compress(number, b'payload')
    with pytest.raises(UnsupportedCodecError):
        compress(number, b'payload')
    assert issubclass(MissingCodecError, UnsupportedCodecError)


def test_zstd_cannot_be_read_without_a_package(without_wheels):
    with pytest.raises(MissingCodecError, match=r'kafka-evergreen\[zstd\]'):
        codec.zstd_decode(b'')


def test_snappy_and_lz4_are_read_without_a_package(request):
    packed = [(n, compress(n, TEXT)) for n in (2, 3)]
    old = codec.lz4_encode_old_kafka(TEXT)
    request.getfixturevalue('without_wheels')
    for number, data in packed:
        assert decompress(number, data) == TEXT
    assert codec.lz4_decode_old_kafka(old) == TEXT


NOISE = bytes(random.Random(7).getrandbits(8) for _ in range(150_000))
PAYLOADS = {'nothing': b'', 'text': TEXT, 'blocks': TEXT * 300, 'noise': NOISE}


@pytest.mark.parametrize('kind', PAYLOADS)
@pytest.mark.parametrize('number', [2, 3, 4])
def test_what_pyarrow_writes_and_reads_is_what_the_packages_do(number, kind, request):
    """Spark brings pyarrow, and none of the packages."""
    payload = PAYLOADS[kind]
    packed = compress(number, payload)
    old = codec.lz4_encode_old_kafka(payload)
    request.getfixturevalue('with_pyarrow_alone')
    assert decompress(number, packed) == payload
    assert codec.lz4_decode_old_kafka(old) == payload
    written, old = compress(number, payload), codec.lz4_encode_old_kafka(payload)
    assert decompress(number, written) == payload
    request.getfixturevalue('monkeypatch').undo()  # the packages are there again
    codec._helper.cache_clear()
    assert decompress(number, written) == payload
    assert codec.lz4_decode_old_kafka(old) == payload


def test_what_pyarrow_has_is_told(with_pyarrow_alone):
    assert codec.has_snappy() and codec.has_lz4() and codec.has_zstd()


def test_a_pyarrow_without_a_codec_is_as_none(with_pyarrow_alone, monkeypatch):
    plain = types.SimpleNamespace(Codec=types.SimpleNamespace(is_available=lambda _: False))
    monkeypatch.setitem(sys.modules, 'pyarrow', plain)
    codec._helper.cache_clear()
    assert not codec.has_zstd()
    with pytest.raises(MissingCodecError):
        compress(4, b'payload')


def test_pyarrow_reads_zstd_frames_of_unknown_size(with_pyarrow_alone):
    """Java's producer writes such ones."""
    packer = zstandard.ZstdCompressor(write_content_size=False)
    assert decompress(4, packer.compress(TEXT) + packer.compress(b'more')) == TEXT + b'more'


@pytest.mark.parametrize('number', [2, 3, 4])
def test_pyarrow_does_not_read_what_is_malformed_or_too_large(number, request):
    packed = compress(number, bytes(MIB))
    request.getfixturevalue('with_pyarrow_alone')
    with pytest.raises(ProtocolError, match='expands'):
        decompress(number, packed, limit=MIB - 1)
    for end in range(len(packed) - 1, 20, -len(packed) // 7 - 1):
        with pytest.raises(ProtocolError):
            decompress(number, packed[:end])
    middle = len(packed) // 2
    with pytest.raises(ProtocolError):
        decompress(number, packed[:middle] + b'\xff\xfe\xfd\xfc' * 4 + packed[middle + 16 :])


def test_helper_packages_are_imported_when_first_needed():
    program = (
        'import sys, kafka.codec, kafka.record.memory_records\n'
        "names = {'snappy', 'lz4', 'xxhash', 'zstandard', 'isal', 'crc32c', 'google_crc32c'}\n"
        'assert not names & set(sys.modules), names & set(sys.modules)\n'
    )
    subprocess.run([sys.executable, '-c', program], check=True)


# --- gzip


def test_gzip_is_a_complete_stream_of_the_level_asked_for():
    assert gzip.decompress(codec.gzip_encode(TEXT)) == TEXT
    assert codec.gzip_decode(gzip.compress(TEXT)) == TEXT
    assert codec.gzip_encode(TEXT) == codec.gzip_encode(TEXT, 0) == codec.gzip_encode(TEXT, 9)
    assert codec.gzip_encode(TEXT, 1) != codec.gzip_encode(TEXT, 9)


DATA = bytes((i * i >> 3) & 0xFF for i in range(20000))


def test_batches_are_packed_with_gzip_6_where_isal_is_missing(without_wheels):
    assert compress(1, DATA) == codec.gzip_encode(DATA, 6)


def test_batches_are_packed_by_isal_to_about_the_size_of_gzip_6():
    pytest.importorskip('isal', reason='isal has no wheel for this platform')
    packed = compress(1, DATA)
    assert packed != codec.gzip_encode(DATA, 6)
    assert gzip.decompress(packed) == DATA
    assert len(packed) < 1.1 * len(codec.gzip_encode(DATA, 6))


def test_a_level_that_is_asked_for_is_zlibs():
    assert compress(1, DATA, 9) == codec.gzip_encode(DATA, 9)


CODERS = [
    getattr(codec, '%s_%scode' % (name, way))
    for name in ['gzip', *(['snappy'] * codec.has_snappy()), *(['lz4'] * codec.has_lz4())]
    + ['zstd'] * codec.has_zstd()
    for way in ('en', 'de')
]


@pytest.mark.parametrize('coder', CODERS, ids=lambda coder: coder.__name__)
@pytest.mark.parametrize('payload', ['text', None, 5, 10**13, [1]])
def test_only_bytes_are_coded(coder, payload):
    """A number must not become that many zeros."""
    with pytest.raises(TypeError, match='payload must be bytes, not %s' % type(payload).__name__):
        coder(payload)


@pytest.mark.parametrize('code', [compress, decompress])
@pytest.mark.parametrize('number', [0, 1])
def test_only_bytes_are_coded_by_number(code, number):
    with pytest.raises(TypeError, match='payload must be bytes, not int'):
        code(number, 5)


@pytest.mark.skipif(not codec.has_snappy(), reason='needs python-snappy')
@pytest.mark.parametrize(('size', 'error'), [(0, ValueError), (-3, ValueError), ('x', TypeError)])
def test_a_block_size_that_is_none_is_named(size, error):
    """A negative one wrote a header and nothing of the payload."""
    with pytest.raises(error, match='xerial_blocksize'):
        codec.snappy_encode(b'payload', True, size)


@pytest.mark.parametrize(('level', 'error'), [(77, ValueError), (-5, ValueError), ('x', TypeError)])
def test_a_level_that_is_none_is_named(level, error):
    with pytest.raises(error, match='compression level'):
        codec.gzip_encode(b'payload', level)


def test_gzip_members_are_joined_and_zeros_behind_them_ignored(inflater):
    data = gzip.compress(b'one') + gzip.compress(b'two') + bytes(20)
    assert codec.gzip_decode(data) == b'onetwo'


def test_many_empty_streams_are_not_copied_once_for_each():
    """A megabyte of empty gzip members took a second, four of them twenty."""
    offered = []

    class Reader:
        """A stream takes four bytes and holds none."""

        eof = False

        def decompress(self, data, room):
            offered.append(len(data))
            self.eof = True
            self.unused_data = data[4:]
            return b''

    data = bytes(40000)
    assert codec._joined('', data, len(data), Reader, (), 1) == b''
    assert len(offered) == 10000
    assert sum(offered) < 200 * len(data)


@pytest.mark.parametrize('size', [1, 100, 600, 5000])
def test_a_later_stream_is_read_whatever_its_size(size):
    value = bytes((i * i >> 3) & 0xFF for i in range(size))
    for number in [1] + [3] * codec.has_lz4():
        packed = compress(number, b'first') + compress(number, value) + compress(number, b'last')
        assert decompress(number, packed) == b'first' + value + b'last'
        with pytest.raises(ProtocolError, match='end inside'):
            decompress(number, packed[:-1])


def test_gzip_with_wrong_or_missing_bytes(inflater):
    packed = codec.gzip_encode(TEXT)
    for place in range(len(packed)):
        with pytest.raises(ProtocolError, match='gzip'):
            codec.gzip_decode(packed[:place] or b'\x1f')
    # The magic, the method, the data, the checksum, the size; the rest of the head says little.
    for place in (0, 1, 2, *range(10, len(packed))):
        broken = bytearray(packed)
        broken[place] ^= 1
        with pytest.raises(ProtocolError, match='gzip'):
            codec.gzip_decode(broken)


def test_gzip_with_everything_a_head_may_hold(inflater):
    """Extra field, name, comment and the checksum of the head."""
    packed = gzip.compress(TEXT)
    head = packed[:3] + b'\x1e' + packed[4:10] + b'\x02\x00ab' + b'name\x00' + b'comment\x00'
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, 'little')
    assert codec.gzip_decode(head + packed[10:]) == TEXT


# --- snappy


def test_snappy_xerial_vector():
    assert codec.snappy_encode(TEXT, xerial_compatible=True, xerial_blocksize=300) == FRAMED
    assert codec.snappy_decode(FRAMED) == TEXT


def test_snappy_xerial_vector_without_a_package(without_wheels):
    assert codec.snappy_decode(FRAMED) == TEXT


def test_snappy_frames_by_default_and_reads_both():
    assert codec.snappy_encode(TEXT).startswith(HEADER)
    raw = codec.snappy_encode(TEXT, xerial_compatible=False)
    assert not raw.startswith(b'\x82SNAPPY')
    assert codec.snappy_decode(raw) == TEXT


def test_snappy_blocks_are_of_the_size_asked_for():
    packed = codec.snappy_encode(bytes(100), True, 40)
    sizes, pos = [], 16
    while pos < len(packed):
        size = int.from_bytes(packed[pos : pos + 4], 'big')
        sizes.append(snappy_blocks.declared_size(packed[pos + 4 : pos + 4 + size])[0])
        pos += 4 + size
    assert sizes == [40, 40, 20]


@pytest.mark.parametrize(
    'data, framed',
    [
        (HEADER + b'x', True),
        (b'\x82SNAPPY\x00' + b'\x01\x00\x00\x00' * 2 + b'x', False),
        (HEADER[:15] + b'\x02x', False),
        (HEADER, False),
        (b'', False),
        (b'\x00', False),
        (b'\x01SNAPPY\x00' + HEADER[8:] + b'x', False),
        (b'\x01\x02\x03\x04', False),
    ],
)
def test_xerial_detection(data, framed):
    """Framed is what has all 16 bytes of the header and more behind them."""
    assert codec._detect_xerial_stream(data) is framed


def test_framing_with_the_versions_little_end_first_is_read():
    """Some writers store them so: only the marker decides how to read."""
    little = FRAMED[:8] + b'\x01\x00\x00\x00' * 2 + FRAMED[16:]
    assert codec.snappy_decode(little) == TEXT


def test_what_snappy_java_writes_for_nothing():
    assert codec.snappy_decode(HEADER) == b''


# --- lz4


def test_lz4_frames_are_what_kafka_reads():
    """Independent blocks of 64 KiB, no content size: Kafka's reader knows nothing else."""
    frame = codec.lz4_encode(TEXT)
    header = lz4_frames.read_header(frame)
    assert header == (7, 65536, False, False, False, None)


def test_lz4_for_old_brokers_has_the_wrong_header_checksum():
    """KAFKA-3160: it covers the magic number too. Nothing else differs."""
    right, wrong = codec.lz4_encode(TEXT), codec.lz4_encode_old_kafka(TEXT)
    assert right[:6] + right[7:] == wrong[:6] + wrong[7:]
    assert right[6] != wrong[6]
    with pytest.raises(ProtocolError, match='checksum'):
        codec.lz4_decode(wrong)
    assert codec.lz4_decode_old_kafka(wrong) == codec.lz4_decode_old_kafka(right) == TEXT


def test_message_format_0_writes_the_wrong_checksum_and_reads_both():
    wrong, right = compress(3, TEXT, magic=0), compress(3, TEXT, magic=1)
    assert wrong == codec.lz4_encode_old_kafka(TEXT)
    assert right == codec.lz4_encode(TEXT)
    assert decompress(3, wrong, 0) == decompress(3, right, 0) == decompress(3, right, 1) == TEXT
    with pytest.raises(ProtocolError, match='checksum'):
        decompress(3, wrong, 1)


def test_lz4_frames_are_joined():
    frames = codec.lz4_encode(b'one') + codec.lz4_encode(b'two')
    assert codec.lz4_decode(frames) == b'onetwo'


def test_lz4_has_its_later_name():
    assert codec.lz4f_decode(codec.lz4_encode(TEXT)) == TEXT


# --- zstd


def test_zstd_frames_are_joined():
    frames = codec.zstd_encode(b'one') + codec.zstd_encode(b'two', 19)
    assert codec.zstd_decode(frames) == b'onetwo'


def test_zstd_written_as_a_stream_does_not_say_its_size():
    """Java's producers write such frames."""
    packer = zstandard.ZstdCompressor().compressobj()
    data = packer.compress(TEXT * 1000) + packer.flush()
    assert codec.zstd_decode(data) == TEXT * 1000


class FakeStandardLibrary(types.SimpleNamespace):
    """Has the interface of compression.zstd (Python 3.14), made of zstandard."""

    def __init__(self):
        class Decompressor:
            eof = False
            rest = b''

            def decompress(self, data, max_length=-1):
                self.rest += zstandard.ZstdDecompressor().decompressobj().decompress(data)
                part, self.rest = self.rest[:max_length], self.rest[max_length:]
                self.eof = not self.rest
                return part

        super().__init__(
            ZstdError=zstandard.ZstdError,
            ZstdDecompressor=Decompressor,
            compress=lambda data, level: zstandard.ZstdCompressor(level=level).compress(data),
        )


def test_zstd_of_the_standard_library_serves_too(monkeypatch, without_wheels):
    monkeypatch.setitem(sys.modules, 'compression.zstd', FakeStandardLibrary())
    codec._helper.cache_clear()
    assert codec.has_zstd() is True
    assert codec.zstd_decode(codec.zstd_encode(TEXT)) == TEXT
    with pytest.raises(ProtocolError, match='more than 599 bytes'):
        codec.zstd_decode(codec.zstd_encode(TEXT), 599)
