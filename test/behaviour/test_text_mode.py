"""Text mode in the producers and in messages made by hand: str keys and values become bytes."""

from __future__ import annotations

import pytest

from kafka import util
from kafka.partitioner import Murmur2Partitioner
from kafka.partitioner.base import Partitioner
from kafka.producer import KeyedProducer, SimpleProducer
from kafka.producer.base import Producer
from kafka.protocol import KafkaProtocol, create_gzip_message, create_message
from kafka.protocol.message import Message as LaterMessage
from kafka.structs import Message, OffsetFetchRequest, OffsetRequest
from test.fake_client import FakeClient


@pytest.fixture
def text_mode():
    """Switch text mode on; off again afterwards."""
    util.set_text_mode('utf-8')
    yield util.set_text_mode
    util.set_text_mode(None)


class Prefixes(Partitioner):
    """Choose by what stands before a dash, as a program does whose keys are text."""

    def partition(self, key):
        return int(key.split('-')[0])


def sent(client):
    return [
        (request.partition, message.key, message.value)
        for args, _ in client.called('send_produce_request')
        for request in args[0]
        for message in request.messages
    ]


def test_values_are_encoded_beside_bytes(text_mode):
    client = FakeClient()
    SimpleProducer(client).send_messages('topic', 'é', b'\xff', '')
    assert sent(client) == [(0, None, b'\xc3\xa9'), (0, None, b'\xff'), (0, None, b'')]


def test_the_base_class_encodes_too(text_mode):
    client = FakeClient()
    Producer(client).send_messages('topic', 0, 'é')
    assert sent(client) == [(0, None, b'\xc3\xa9')]


def test_keys_are_encoded_and_none_stays_none(text_mode):
    client = FakeClient()
    KeyedProducer(client).send_messages('topic', 'ké', 'v', None, b'w')
    assert sent(client) == [(0, b'k\xc3\xa9', value) for value in (b'v', None, b'w')]


def test_queued_messages_are_encoded_before_they_are_queued(text_mode):
    client = FakeClient()
    producer = SimpleProducer(client, async_send=True)
    producer.send_messages('topic', 'a')
    text_mode(None)
    producer.stop()
    assert sent(client) == [(0, None, b'a')]


def test_the_packages_partitioners_go_by_the_bytes_that_are_sent(text_mode):
    text_mode('latin-1')
    client = FakeClient(*[(0, 0)] * 50)
    producer = KeyedProducer(client, partitioner=Murmur2Partitioner)
    producer.send_messages('topic', 'é', b'v')
    producer.send_messages('topic', b'\xe9', b'v')
    (one, _, _), (two, _, _) = sent(client)
    assert one == two != Murmur2Partitioner(range(50)).partition('é')


def test_a_partitioner_of_the_program_gets_keys_as_the_program_has_them(text_mode):
    client = FakeClient((0, 0), (0, 0))
    KeyedProducer(client, partitioner=Prefixes).send_messages('topic', '1-a', 'v')
    assert sent(client) == [(1, b'1-a', b'v')]


def test_messages_made_by_hand_are_encoded_when_they_are_written(text_mode):
    message = create_message('é', 'k')
    assert message == Message(0, 0, 'k', 'é')
    assert KafkaProtocol._encode_message(message) == KafkaProtocol._encode_message(
        create_message('é'.encode(), b'k')
    )
    assert create_gzip_message([('é', 'k')]) == create_gzip_message([('é'.encode(), b'k')])


def test_names_in_requests_made_by_hand_are_utf_8(text_mode):
    text_mode('latin-1')
    for encode in (
        lambda client, topic, group: KafkaProtocol.encode_offset_request(
            client, 1, [OffsetRequest(topic, 0, -1, 1)]
        ),
        lambda client, topic, group: KafkaProtocol.encode_offset_fetch_request(
            client, 1, group, [OffsetFetchRequest(topic, 0)]
        ),
    ):
        assert encode('client', 'topic', 'gé') == encode(b'client', b'topic', 'gé'.encode())
    with pytest.raises(TypeError, match='expected topic to be bytes, not int'):
        KafkaProtocol.encode_offset_request(b'client', 1, [OffsetRequest(5, 0, -1, 1)])
    text_mode(None)
    with pytest.raises(TypeError, match='expected topic to be bytes, not str'):
        KafkaProtocol.encode_offset_request(b'client', 1, [OffsetRequest('topic', 0, -1, 1)])


def test_messages_of_1_x_are_encoded_when_they_are_made(text_mode):
    message = LaterMessage('é', 'k')
    assert (message.value, message.key) == (b'\xc3\xa9', b'k')


@pytest.mark.parametrize('value', [5, ['a'], ('a',), {'a': 1}, None, bytearray(b'a')])
def test_what_is_no_text_is_refused_all_the_same(text_mode, value):
    client = FakeClient()
    with pytest.raises(TypeError, match='msg 2 must be bytes, not %s' % type(value).__name__):
        SimpleProducer(client).send_messages('topic', 'a', value)
    with pytest.raises(TypeError, match='key must be bytes or None, not int'):
        KeyedProducer(client).send_messages('topic', 5, 'a')
    assert sent(client) == []


def test_text_that_cannot_be_encoded_is_refused_before_anything_is_sent(text_mode):
    text_mode('ascii')
    client = FakeClient()
    with pytest.raises(ValueError, match='msg 2 cannot be written as ascii'):
        SimpleProducer(client).send_messages('topic', 'a', 'é')
    with pytest.raises(ValueError, match='key cannot be written as ascii'):
        KeyedProducer(client).send_messages('topic', 'é', 'a')
    with pytest.raises(ValueError, match='value of a message cannot be written as ascii'):
        KafkaProtocol._encode_message(create_message('é'))
    assert client.calls == []


def test_without_text_mode_the_error_names_the_switch():
    with pytest.raises(TypeError, match=r'msg 1 must be bytes, not str \(.*set_text_mode\)'):
        SimpleProducer(FakeClient()).send_messages('topic', 'a')
    with pytest.raises(TypeError, match=r'key must be bytes or None, not str'):
        KeyedProducer(FakeClient()).send_messages('topic', 'k', b'a')
    with pytest.raises(TypeError, match='expected value of a message to be bytes, not str'):
        KafkaProtocol._encode_message(create_message('a'))
    with pytest.raises(AssertionError, match='value must be bytes or None, not str'):
        LaterMessage('a')
