"""Messages are made later only for a client that can send them so, and never in another way."""

from __future__ import annotations

import pytest

import kafka.protocol
import kafka.protocol.legacy
from kafka.blocking.message_set import message_set
from kafka.client import KafkaClient
from kafka.codec import has_snappy
from kafka.errors import UnsupportedCodecError
from kafka.protocol import create_message_set
from kafka.protocol.later import MessagesLater
from test.fake_client import FakeClient

VALUES, KEYS = [b'a', b'b'], [b'k', None]
CLIENT = KafkaClient.__new__(KafkaClient)


def made(client=CLIENT, codec=0, level=None, create=create_message_set):
    return message_set(create, client, VALUES, KEYS, codec, b'k', level)


@pytest.mark.parametrize('codec', [0, 1] + [2] * has_snappy())
def test_they_are_what_create_message_set_makes(codec):
    expected = create_message_set(list(zip(VALUES, KEYS)), codec, b'k', None)
    assert type(made(codec=codec)) is MessagesLater
    assert made(codec=codec) == expected
    assert made(FakeClient(), codec) == expected


def test_another_client_gets_a_list():
    class Answering:
        def __getattr__(self, name):
            return True

    for client in (FakeClient(), Answering()):
        assert type(made(client)) is list


@pytest.mark.parametrize('module', [kafka.protocol, kafka.protocol.legacy])
@pytest.mark.parametrize(
    'name, codec', [('create_message', 0), ('create_message', 1), ('create_gzip_message', 1)]
)
def test_a_replaced_constructor_makes_them_at_once(module, name, codec, monkeypatch):
    called = []
    original = getattr(kafka.protocol, name)

    def replaced(*args, **kwargs):
        called.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, replaced, raising=False)
    assert type(made(codec=codec)) is list
    assert called


def test_a_replaced_create_message_set_makes_them_at_once():
    assert made(create=lambda *args: ['made']) == ['made']


@pytest.mark.parametrize('level', [10, 'high', 1.5])
def test_a_level_that_is_none_is_refused_at_once(level):
    with pytest.raises((TypeError, ValueError)):
        made(codec=1, level=level)


def test_a_codec_that_is_missing_is_refused_at_once(monkeypatch):
    monkeypatch.setattr('kafka.blocking.message_set.has_snappy', lambda: False)
    monkeypatch.setattr('kafka.codec._helper', lambda *names: None)
    with pytest.raises(NotImplementedError):
        made(codec=2)


def test_a_codec_that_does_not_exist_is_refused_at_once():
    with pytest.raises(UnsupportedCodecError):
        made(codec=7)
