"""kafka.producer.base: options, argument checks, one request per call."""

from __future__ import annotations

import logging

import pytest

from kafka.errors import FailedPayloadsError, UnsupportedCodecError
from kafka.producer import base
from kafka.producer.base import Producer
from kafka.protocol import CODEC_GZIP, CODEC_NONE
from kafka.structs import Message, ProduceRequest
from test.fake_client import FakeClient

NOT_MESSAGES = ['text', '\u4f60', 12, ['a', 'list'], ('a', 'tuple'), {'a': 'dict'}, bytearray(b'x')]


def test_constants_are_those_of_0_9_5():
    assert (Producer.ACK_NOT_REQUIRED, Producer.ACK_AFTER_LOCAL_WRITE) == (0, 1)
    assert (Producer.ACK_AFTER_CLUSTER_COMMIT, Producer.DEFAULT_ACK_TIMEOUT) == (-1, 1000)
    expected = {
        'BATCH_SEND_DEFAULT_INTERVAL': 20,
        'BATCH_SEND_MSG_COUNT': 20,
        'ASYNC_QUEUE_MAXSIZE': 0,
        'ASYNC_QUEUE_PUT_TIMEOUT': 0,
        'ASYNC_RETRY_LIMIT': None,
        'ASYNC_RETRY_BACKOFF_MS': 100,
        'ASYNC_RETRY_ON_TIMEOUTS': True,
        'ASYNC_LOG_MESSAGES_ON_ERROR': True,
        'STOP_ASYNC_PRODUCER': -1,
        'ASYNC_STOP_TIMEOUT_SECS': 30,
        'SYNC_FAIL_ON_ERROR_DEFAULT': True,
    }
    assert {name: getattr(base, name) for name in expected} == expected


def test_construction_calls_nothing_on_the_client():
    client = FakeClient()
    Producer(client)
    assert client.calls == []


def test_attributes_of_a_synchronous_producer():
    client = FakeClient()
    producer = Producer(client, -1, 500, CODEC_GZIP, 3, False)
    assert producer.client is client
    assert (producer.req_acks, producer.ack_timeout) == (-1, 500)
    assert (producer.codec, producer.codec_compresslevel) == (CODEC_GZIP, 3)
    assert producer.sync_fail_on_error is False
    assert producer.stopped is False
    assert Producer(client).codec == CODEC_NONE


def test_the_seventh_argument_is_the_asynchronous_flag_readable_under_both_names():
    producer = Producer(FakeClient(), 1, 1000, None, None, True, False, True, 5, 5)
    assert getattr(producer, 'async') is producer.async_send is False


def test_async_in_expanded_keywords_wins_and_says_what_it_is_called_now(caplog):
    options = {'async': False, 'async_send': True}
    producer = Producer(FakeClient(), **options)
    assert producer.async_send is False
    assert 'async_send' in caplog.text


def test_an_unknown_option_is_a_type_error_that_names_it():
    with pytest.raises(TypeError, match='asink'):
        Producer(FakeClient(), asink=True)


@pytest.mark.parametrize('codec', [3, -1, 'gzip'])
def test_an_unknown_codec_is_refused(codec):
    with pytest.raises(UnsupportedCodecError):
        Producer(FakeClient(), codec=codec)


def test_one_call_is_one_request_with_everything_the_client_needs():
    client = FakeClient()
    producer = Producer(client, req_acks=-1, ack_timeout=77)
    response = producer.send_messages('caf\xe9', 3, b'a', b'b')
    request = ProduceRequest(
        b'caf\xc3\xa9', 3, [Message(0, 0, None, b'a'), Message(0, 0, None, b'b')]
    )
    ((args, kwargs),) = client.called('send_produce_request')
    assert args == ([request],)
    assert kwargs == {'acks': -1, 'timeout': 77, 'fail_on_error': True}
    assert [(r.partition, r.error, r.offset) for r in response] == [(3, 0, 7)]


def test_a_codec_makes_one_compressed_message():
    client = FakeClient()
    Producer(client, codec=CODEC_GZIP, codec_compresslevel=1).send_messages(b't', 0, b'a', b'b')
    (message,) = client.called('send_produce_request')[0][0][0][0].messages
    assert message.attributes == CODEC_GZIP


def test_the_answer_is_returned_unexamined():
    client = FakeClient()
    answer = object()
    client.answers['send_produce_request'] = [answer]
    assert Producer(client).send_messages(b't', 0, b'a') is answer


def test_without_acknowledgement_the_list_is_empty():
    client = FakeClient()
    client.answers['send_produce_request'] = [lambda *args, **kwargs: []]
    assert Producer(client, req_acks=0).send_messages(b't', 0, b'a') == []
    assert client.called('send_produce_request')[0][1]['acks'] == 0


def test_nothing_to_send_sends_nothing():
    client = FakeClient()
    assert Producer(client).send_messages(b't', 0) == []
    assert client.called('send_produce_request') == []


def test_failures_are_logged_and_raised(caplog):
    client = FakeClient()
    error = FailedPayloadsError('payload')
    client.answers['send_produce_request'] = [error]
    with pytest.raises(FailedPayloadsError) as caught:
        Producer(client).send_messages(b't', 0, b'secret text')
    assert caught.value is error
    assert 'could not send 1 messages' in caplog.text
    assert 'secret' not in caplog.text


def test_failures_come_back_in_the_list_where_that_was_asked_for():
    client = FakeClient()
    error = FailedPayloadsError('payload')
    client.answers['send_produce_request'] = [[error]]
    producer = Producer(client, sync_fail_on_error=False)
    assert producer.send_messages(b't', 0, b'a') == [error]
    assert client.called('send_produce_request')[0][1]['fail_on_error'] is False


@pytest.mark.parametrize('message', NOT_MESSAGES + [None], ids=repr)
def test_a_message_that_is_not_bytes_is_refused_before_anything_is_sent(message):
    client = FakeClient()
    with pytest.raises(TypeError, match='msg 2 must be bytes'):
        Producer(client).send_messages(b't', 0, b'good', message)
    assert client.calls == []


@pytest.mark.parametrize('partition', ['0', None, 1.0, b'0'])
def test_a_partition_that_is_no_integer_is_refused(partition):
    with pytest.raises(TypeError, match='partition'):
        Producer(FakeClient()).send_messages(b't', partition, b'a')


@pytest.mark.parametrize('topic', [None, 5, ['t']])
def test_a_topic_that_is_no_name_is_refused(topic):
    with pytest.raises(TypeError, match='topic'):
        Producer(FakeClient()).send_messages(topic, 0, b'a')


def test_a_client_of_1_x_gets_the_topic_as_given():
    class LaterClient(FakeClient):
        names_as_given = True

    client = LaterClient()
    Producer(client).send_messages('topic', 0, b'a')
    assert client.called('send_produce_request')[0][0][0][0].topic == 'topic'


def test_stopping_a_synchronous_producer_is_only_a_warning(caplog):
    producer = Producer(FakeClient())
    producer.stop()
    producer.stop(timeout=1)
    assert [r.levelno for r in caplog.records] == [logging.WARNING] * 3


def test_repr():
    assert repr(Producer(FakeClient())) == '<Producer batch=False>'
