"""Messages of 1.x: construction, CRC, sets, and what is cut off."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

from kafka.errors import ProtocolError
from kafka.protocol import message as module
from kafka.protocol.message import Message, MessageSet, PartialMessage, is_cut_off, messages_of
from kafka.record.legacy_records import encode_message_set


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
def test_crc_is_signed_and_stays_as_given_until_encoding(value, key, crc):
    message = Message(value, key)
    assert message.crc == 0
    assert message.encode()[:4] == crc.to_bytes(4, 'big', signed=True)
    assert message.crc == crc
    assert message.validate_crc()


def test_magic_1_has_a_timestamp():
    message = Message(b'test', key=b'key', magic=1, timestamp=1234)
    encoded = message.encode()
    assert message.crc == 1331087195
    assert encoded[4:6] == b'\x01\x00'  # magic, attributes
    assert encoded[6:14] == (1234).to_bytes(8, 'big')
    assert Message.decode(encoded) == message


def test_layout_of_magic_0():
    assert Message(b'test', key=b'key').encode()[4:] == (
        b'\x00'  # magic
        b'\x00'  # attributes
        b'\x00\x00\x00\x03key'
        b'\x00\x00\x00\x04test'
    )


def test_default_timestamp_is_now(monkeypatch):
    monkeypatch.setattr(module.time, 'time', lambda: 12.5)
    assert Message(b'', magic=1).timestamp == 12500
    assert Message(b'').timestamp is None


@pytest.mark.parametrize(
    'arguments',
    [
        {'value': 'text'},
        {'value': b'', 'key': 'text'},
        {'value': 5},
        {'value': b'', 'timestamp': 5},
    ],
)
def test_wrong_argument_is_an_assertion_error(arguments):
    with pytest.raises(AssertionError):
        Message(**arguments)


def test_equal_to_a_decoded_one_only_after_encoding():
    message = Message(b'v', b'k')
    decoded = Message.decode(Message(b'v', b'k').encode())
    assert message != decoded
    message.encode()
    assert message == decoded
    assert hash(message) == hash(decoded)
    assert message != Message(b'v')
    assert message != b'v'


def test_repr_begins_with_the_crc_and_has_the_timestamp():
    assert repr(Message(b'v', crc=5)) == (
        "Message(crc=5, magic=0, attributes=0, timestamp=None, key=None, value=b'v')"
    )


def test_crc_that_does_not_belong_is_noticed_and_kept():
    message = Message.decode(Message(b'v').encode())
    message.crc += 1
    wrong = message.crc
    assert not message.validate_crc()
    assert message.crc == wrong


def test_timestamp_type():
    assert Message(b'').timestamp_type is None
    assert Message(b'', magic=1, timestamp=1).timestamp_type == 0
    assert Message(b'', magic=1, attributes=8, timestamp=1).timestamp_type == 8


@pytest.mark.parametrize('magic', [0, 1])
def test_compressed_message_gives_the_set_inside(magic):
    encoded = encode_message_set([(0, 5, None, b'a'), (1, 5, b'k', b'b')], magic=magic, codec=1)
    ((_, _, wrapper),) = MessageSet.decode(encoded, bytes_to_read=len(encoded))
    assert wrapper.is_compressed()
    inner = wrapper.decompress()
    assert [(offset, m.key, m.value) for offset, _, m in inner] == [
        (0, None, b'a'),
        (1, b'k', b'b'),
    ]
    assert not inner[0][2].is_compressed()


def test_compressed_message_without_value_is_a_protocol_error():
    with pytest.raises(ProtocolError, match='is null'):
        Message(None, attributes=1).decompress()


def test_partial_message_is_bytes_of_its_own_kind():
    assert PartialMessage() == b''
    assert repr(PartialMessage()) == "PartialMessage(b'')"


# --- sets ---------------------------------------------------------------------------------------


def test_set_is_offset_size_and_message_with_the_size_in_front():
    message = Message(b'v').encode()
    encoded = MessageSet.encode([(7, message), (8, message)])
    entry = (7).to_bytes(8, 'big') + len(message).to_bytes(4, 'big') + message
    assert encoded[:4] == (len(encoded) - 4).to_bytes(4, 'big')
    assert encoded[4 : 4 + len(entry)] == entry
    assert MessageSet.encode([(7, message)], size=False) == entry
    assert MessageSet.encode(io.BytesIO(encoded), True, True) == encoded
    assert MessageSet.HEADER_SIZE == 12


def test_set_is_read_from_bytes_and_streams_and_never_beyond_its_size():
    message = Message(b'v').encode()
    encoded = MessageSet.encode([(7, message), (8, message)])
    expected = [
        (7, len(message), Message.decode(message)),
        (8, len(message), Message.decode(message)),
    ]
    assert MessageSet.decode(encoded + b'rest') == expected
    stream = io.BytesIO(encoded + b'rest')
    assert MessageSet.decode(stream) == expected
    assert stream.read() == b'rest'
    assert MessageSet.decode(encoded[4:], bytes_to_read=len(encoded) - 4) == expected
    assert MessageSet.decode(b'\x00\x00\x00\x00') == []


@pytest.mark.parametrize('cut', range(1, 29))
def test_message_that_is_cut_off_ends_the_list(cut):
    message = Message(b'v').encode()
    encoded = MessageSet.encode([(7, message), (8, message)], size=False)
    assert len(message) + 12 == 27
    found = MessageSet.decode(encoded[:-cut], bytes_to_read=len(encoded) - cut)
    left = [7] if cut < 28 else []
    partial = [] if cut == 27 else [(None, None, b'')]
    assert [offset for offset, _, _ in found] == left + [None] * len(partial)
    assert all(isinstance(m, PartialMessage) for _, _, m in found[len(left) :])
    assert is_cut_off(encoded[:-cut]) is bool(partial)


def test_lengths_inside_that_do_not_fit_end_the_list():
    broken = bytearray(MessageSet.encode([(7, Message(b'v', b'k').encode())], size=False))
    broken[12 + 6 : 12 + 10] = b'\x00\x00\x00\xff'  # the length of the key
    assert MessageSet.decode(bytes(broken), bytes_to_read=len(broken)) == [
        (None, None, PartialMessage())
    ]


def test_message_survives_copying_and_pickling():
    message = Message(b'v', b'k', magic=1, timestamp=5, crc=7)
    for copied in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert copied == message
        assert type(copied) is Message


def test_messages_are_made_of_columns():
    one, two = messages_of([b'a', None], [None, b'k'], 1, 8, [5, 6])
    assert (one.value, one.key, one.timestamp, one.timestamp_type) == (b'a', None, 5, 8)
    assert (two.value, two.key, two.timestamp) == (None, b'k', 6)
    assert one.validate_crc()


def test_what_columns_leave_out_is_as_in_a_plain_message():
    (message,) = messages_of([b'a'], None, 0, 0, None)
    plain = Message(b'a')
    plain.encode()
    assert message == plain
    assert repr(message) == repr(plain)
    with pytest.raises(AttributeError, match='nonsense'):
        getattr(message, 'nonsense')  # noqa: B009 - the error is what is asked for


def test_a_message_is_no_tuple():
    """Programs show one by ``%``, which takes a tuple apart."""
    message = Message(b'a', magic=1, timestamp=5)
    assert '%s' % message == repr(message)
    assert message != (b'a', None, 1, 0, 5)


def test_fields_can_be_set():
    message = Message(b'a', b'k')
    message.value = b'b'
    assert Message.decode(message.encode()).value == b'b'
