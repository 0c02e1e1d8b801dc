"""Messages and message sets of 0.9.5: constructors, bytes, and what reading them may raise."""

from __future__ import annotations

import gzip
import struct
import zlib
from unittest import mock

import pytest

import kafka.protocol
import kafka.protocol.legacy
from kafka.codec import gzip_decode, gzip_encode, has_snappy, snappy_decode, snappy_encode
from kafka.errors import (
    BufferUnderflowError,
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    ProtocolError,
    UnsupportedCodecError,
)
from kafka.protocol import (
    CODEC_GZIP,
    CODEC_NONE,
    CODEC_SNAPPY,
    KafkaProtocol,
    create_gzip_message,
    create_message,
    create_message_set,
    create_snappy_message,
)
from kafka.structs import (
    Message,
    OffsetAndMessage,
)

needs_snappy = pytest.mark.skipif(not has_snappy(), reason='python-snappy is not installed')


def entry(message, offset=0):
    return struct.pack('>qi', offset, len(message)) + message


def message(value, key=None, attributes=0):
    sized = [
        struct.pack('>i', -1) if f is None else struct.pack('>i', len(f)) + f for f in (key, value)
    ]
    body = b'\x00' + bytes([attributes]) + b''.join(sized)
    return struct.pack('>I', zlib.crc32(body)) + body


# --- constructors -------------------------------------------------------------------------------


def test_create_message_does_not_look_at_its_arguments():
    value, key = object(), object()
    assert create_message(value, key) == Message(0, 0, key, value)


@pytest.mark.parametrize('codec, create', [(CODEC_GZIP, create_gzip_message)])
def test_compressed_message_holds_the_set_of_its_pairs(codec, create):
    made = create([(b'v1', None), (b'v2', b'k2')], key=b'outer')
    inner = entry(message(b'v1')) + entry(message(b'v2', b'k2'))
    assert (made.magic, made.attributes, made.key) == (0, codec, b'outer')
    assert gzip_decode(made.value) == inner
    assert gzip.decompress(made.value) == inner


def test_gzip_level_is_passed_on():
    pairs = [(b'a' * 1000 + bytes(range(256)), None)] * 3
    assert create_gzip_message(pairs, compresslevel=1).value == gzip_encode(
        gzip_decode(create_gzip_message(pairs).value), compresslevel=1
    )


@needs_snappy
def test_snappy_message_holds_the_set_of_its_pairs():
    made = create_snappy_message([(b'v1', None), (b'v2', b'k2')], b'outer')
    assert (made.magic, made.attributes, made.key) == (0, 2, b'outer')
    assert snappy_decode(made.value) == entry(message(b'v1')) + entry(message(b'v2', b'k2'))


def test_message_set_without_codec_is_plain_messages():
    pairs = [(b'v1', b'k1'), (b'v2', None)]
    assert create_message_set(pairs) == [Message(0, 0, b'k1', b'v1'), Message(0, 0, None, b'v2')]


def test_message_set_with_codec_is_one_message():
    pairs = [(b'v1', b'k1')]
    (made,) = create_message_set(pairs, CODEC_GZIP, b'outer', 3)
    assert made == create_gzip_message(pairs, b'outer', 3)


def test_unknown_codec_is_refused():
    with pytest.raises(UnsupportedCodecError, match='3'):
        create_message_set([(b'v', None)], 3)


@pytest.mark.parametrize('create', [create_message_set, create_gzip_message])
def test_values_without_keys_are_refused_by_name(create):
    with pytest.raises(TypeError, match=r'messages must be \(value, key\) pairs, not bytes'):
        create([b'ab'])


@pytest.mark.parametrize('module', [kafka.protocol, kafka.protocol.legacy])
def test_replaced_constructors_take_effect(module, monkeypatch):
    """``create_message_set`` finds them as globals of the package and of the module."""
    monkeypatch.setattr(module, 'create_message', lambda value, key: ('plain', value, key))
    monkeypatch.setattr(module, 'create_gzip_message', lambda *args: ('gzip', args))
    monkeypatch.setattr(module, 'create_snappy_message', lambda *args: ('snappy', args))
    pairs = [(b'v', b'k')]
    assert create_message_set(pairs, CODEC_NONE) == [('plain', b'v', b'k')]
    assert create_message_set(pairs, CODEC_GZIP, b'key', 5) == [('gzip', (pairs, b'key', 5))]
    assert create_message_set(pairs, CODEC_SNAPPY, b'key') == [('snappy', (pairs, b'key'))]


def test_constructor_is_its_old_self_after_a_patch_of_either_module():
    for path in ('kafka.protocol', 'kafka.protocol.legacy', 'kafka.protocol'):
        with mock.patch(path + '.create_message', return_value='patched'):
            assert create_message_set([(b'v', None)]) == ['patched']
        assert create_message_set([(b'v', None)]) == [Message(0, 0, None, b'v')]


# --- messages and sets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    'value, key, crc',
    [
        (b'v1', None, 1285512130),
        (b'v2', None, -711587208),
        (b'v1', b'k1', 1474775406),
        (b'v2', b'k2', -16383415),
        (b'test', b'key', -1427009701),
    ],
)
def test_crc_of_known_messages(value, key, crc):
    encoded = KafkaProtocol._encode_message(create_message(value, key))
    assert struct.unpack('>i', encoded[:4]) == (crc,)
    assert encoded == message(value, key)
    assert KafkaProtocol._encode_message(create_message(b'v1')) == message(b'v1')


def test_message_split_by_field():
    assert KafkaProtocol._encode_message(create_message(b'test', b'key')) == b''.join(
        [
            struct.pack('>i', -1427009701),  # CRC of what follows
            b'\x00',  # magic
            b'\x00',  # attributes: no codec
            b'\x00\x00\x00\x03' + b'key',
            b'\x00\x00\x00\x04' + b'test',
        ]
    )


def test_sizes_of_messages():
    assert len(KafkaProtocol._encode_message(create_message(b'v1'))) == 16
    assert len(KafkaProtocol._encode_message(create_message(b'v1', b'k1'))) == 18


def test_only_magic_0_is_written_whatever_else_is_wrong():
    with pytest.raises(ProtocolError, match='magic'):
        KafkaProtocol._encode_message(Message(1, 0, 'a key', 5))


@pytest.mark.parametrize('field, made', [('key', (b'v', 'k')), ('value', ('v', b'k'))])
def test_key_and_value_must_be_bytes(field, made):
    with pytest.raises(TypeError, match='expected %s of a message to be bytes, not str' % field):
        KafkaProtocol._encode_message(create_message(*made))


def test_message_that_is_none_is_refused_by_name():
    with pytest.raises(TypeError, match='messages must be made by create_message'):
        KafkaProtocol._encode_message_set([b'raw'])


def test_message_set_numbers_nothing():
    encoded = KafkaProtocol._encode_message_set(
        [create_message(b'v1', b'k1'), create_message(b'v2')]
    )
    assert encoded == entry(message(b'v1', b'k1'), 0) + entry(message(b'v2'), 0)


def test_message_set_is_decoded_with_its_offsets():
    encoded = entry(message(b'v1', b'k1'), 41) + entry(message(None), 43)
    assert list(KafkaProtocol._decode_message_set_iter(encoded)) == [
        OffsetAndMessage(41, Message(0, 0, b'k1', b'v1')),
        OffsetAndMessage(43, Message(0, 0, None, None)),
    ]


@pytest.mark.parametrize('kind', [bytearray, memoryview])
def test_message_set_may_be_any_bytes(kind):
    encoded = entry(message(b'v1'), 7)
    assert list(KafkaProtocol._decode_message_set_iter(kind(encoded))) == [
        OffsetAndMessage(7, Message(0, 0, None, b'v1'))
    ]


def test_decoded_message_is_one_pair():
    pairs = KafkaProtocol._decode_message(message(b'v1', b'k1'), 10)
    assert list(pairs) == [(10, Message(0, 0, b'k1', b'v1'))]


@pytest.mark.parametrize(
    'codec, compress',
    [(1, gzip_encode), pytest.param(2, snappy_encode, marks=needs_snappy)],
)
def test_compressed_message_gives_inner_messages_with_stored_offsets(codec, compress):
    inner = entry(message(b'v1'), 0) + entry(message(b'v2', b'k2'), 0)
    encoded = message(compress(inner), b'outer', codec)
    assert list(KafkaProtocol._decode_message(encoded, 99)) == [
        (0, Message(0, 0, None, b'v1')),
        (0, Message(0, 0, b'k2', b'v2')),
    ]


def test_compressed_message_keeps_its_place_in_the_set():
    inner = entry(message(b'v2'), 6) + entry(message(b'v3'), 7)
    encoded = b''.join(
        [
            entry(message(b'v1'), 5),
            entry(message(gzip_encode(inner), attributes=1), 7),
            entry(message(b'v4'), 8),
        ]
    )
    found = KafkaProtocol._decode_message_set_iter(encoded)
    assert [(m.offset, m.message.value) for m in found] == [
        (5, b'v1'),
        (6, b'v2'),
        (7, b'v3'),
        (8, b'v4'),
    ]


def test_wrong_crc_appears_on_iteration():
    broken = bytearray(message(b'v1'))
    broken[-1] ^= 1
    pairs = KafkaProtocol._decode_message(bytes(broken), 10)
    with pytest.raises(ChecksumError):
        next(pairs)


def test_crc_is_checked_before_lengths_are_believed():
    with pytest.raises(ChecksumError):
        list(KafkaProtocol._decode_message(b'\x00' * 4 + b'\x00\x00' + b'\x7f' * 8, 0))


@pytest.mark.parametrize('size', range(6))
def test_fewer_than_six_bytes_are_no_message(size):
    with pytest.raises(BufferUnderflowError):
        list(KafkaProtocol._decode_message(b'\x00' * size, 0))


def test_six_bytes_are_enough_to_be_wrong():
    with pytest.raises(ChecksumError):
        list(KafkaProtocol._decode_message(b'\x00' * 6, 0))


@pytest.mark.parametrize('data', ['a', b'a', entry(message(b'v1'))[:-1], b'\x00' * 11])
def test_set_cut_off_in_its_first_message_is_too_small(data):
    with pytest.raises(ConsumerFetchSizeTooSmall):
        list(KafkaProtocol._decode_message_set_iter(data))


@pytest.mark.parametrize('tail', [b'@1$%(Y!', entry(message(b'v2'))[:-1], entry(b'v')[:12]])
def test_set_cut_off_later_simply_ends(tail):
    found = list(KafkaProtocol._decode_message_set_iter(entry(message(b'v1'), 3) + tail))
    assert found == [OffsetAndMessage(3, Message(0, 0, None, b'v1'))]


@pytest.mark.parametrize('data', [b'', entry(message(gzip_encode(b''), attributes=1))])
def test_set_without_messages_yields_nothing(data):
    assert list(KafkaProtocol._decode_message_set_iter(data)) == []


def test_set_must_be_bytes():
    with pytest.raises(TypeError, match='data must be bytes, not str'):
        list(KafkaProtocol._decode_message_set_iter('a text longer than a header'))


def test_compressed_set_that_is_cut_off_inside_is_no_fetch_size_problem():
    inner = entry(message(b'v1'))[:-1]
    with pytest.raises(ProtocolError):
        list(KafkaProtocol._decode_message_set_iter(entry(message(gzip_encode(inner), None, 1))))


def test_endless_nesting_is_refused():
    data = entry(message(b'v1'))
    for _ in range(20):
        data = entry(message(gzip_encode(data), attributes=1))
    with pytest.raises(ProtocolError, match='nested'):
        list(KafkaProtocol._decode_message_set_iter(data))
