"""Requests with records skip the bytes of their old version only where nobody could see them."""

from __future__ import annotations

import functools
from contextlib import closing

import pytest

import kafka.client
from kafka.client import KafkaClient
from kafka.conn import KafkaConnection
from kafka.errors import ProtocolError
from kafka.protocol import KafkaProtocol, create_message
from kafka.record.default_records import encode_batch
from kafka.structs import FetchRequest, OffsetAndMessage, ProduceRequest, ProduceResponse
from test.hostile_servers import NEWEST, Broker, fetched, produced

BATCH = encode_batch([(5, b'k', b'v', ()), (5, None, b'w', ())])
FETCHED = [
    OffsetAndMessage(0, create_message(b'v', b'k')),
    OffsetAndMessage(1, create_message(b'w')),
]


def broker(**options):
    return Broker({0: produced(), 1: fetched(BATCH)}, **options)


def produce(client):
    (response,) = client.send_produce_request([ProduceRequest(b't', 0, [create_message(b'v')])])
    assert response == ProduceResponse(b't', 0, 0, 5)


def fetch(client):
    (response,) = client.send_fetch_request([FetchRequest(b't', 0, 0, 4096)])
    assert response[:4] == (b't', 0, 0, 100)
    assert list(response.messages) == FETCHED


@pytest.fixture
def written(monkeypatch):
    """Count how often an old request or answer is written as bytes."""
    found = []
    for owner, name in (
        ('kafka.protocol.translation.Unread', 'write'),
        ('kafka.protocol.legacy.KafkaProtocol', '_encode_message_header'),
    ):
        note(monkeypatch, found, owner, name)
    return found


def note(monkeypatch, found, owner, name):
    module, _, attribute = owner.rpartition('.')
    cls = getattr(__import__(module, fromlist=[attribute]), attribute)
    original = vars(cls)[name]
    function = getattr(original, '__func__', original)

    @functools.wraps(function)
    def noting(*args, **kwargs):
        found.append(name)
        return function(*args, **kwargs)

    monkeypatch.setattr(cls, name, classmethod(noting) if function is not original else noting)
    if name in kafka.client._OWN_METHODS:  # noting is no replacement that a program made
        monkeypatch.setitem(kafka.client._OWN_METHODS, name, vars(cls)[name])


def test_nothing_is_written_where_nothing_is_replaced(written):
    with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
        del written[:]  # metadata was
        produce(client)
        fetch(client)
        assert written == []
        assert server.requests[-2:] == [(0, 12), (1, 12)]


def test_a_broker_that_keeps_old_messages_gets_the_old_bytes(written):
    old = {**NEWEST, 0: (0, 2), 1: (0, 3)}
    with broker(versions=old) as server, closing(KafkaClient(server.address, timeout=2)) as client:
        del written[:]
        produce(client)
        assert written == ['_encode_message_header']
        assert server.requests[-1] == (0, 0)


class Watched(KafkaConnection):
    """A connection of a program's own that looks at what it carries."""

    carried = []

    def send(self, request_id, payload):
        self.carried.append(payload)
        super().send(request_id, payload)

    def recv(self, request_id):
        answer = super().recv(request_id)
        self.carried.append(answer)
        return answer


@pytest.mark.parametrize('do', [produce, fetch])
def test_a_subclass_of_the_connection_sees_bytes(do, monkeypatch):
    monkeypatch.setattr(kafka.client, 'KafkaConnection', Watched)
    monkeypatch.setattr(Watched, 'carried', [])
    with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
        do(client)
    assert [type(each) for each in Watched.carried[-2:]] == [bytes, bytes]


@pytest.mark.parametrize('name', ['send', 'recv'])
@pytest.mark.parametrize('do', [produce, fetch])
def test_a_replaced_method_of_the_connection_sees_bytes(name, do, monkeypatch):
    for owner in (KafkaConnection, None):
        seen = []
        with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
            (conn,) = client.conns.values()
            original = getattr(KafkaConnection, name)

            def watching(*args, original=original, seen=seen):
                answer = original(*args)
                seen.append(args[-1] if answer is None else answer)
                return answer

            if owner is not None:
                monkeypatch.setattr(owner, name, watching)
            else:
                conn_watching = functools.partial(watching, conn)
                monkeypatch.setattr(conn, name, conn_watching)
            do(client)
            monkeypatch.undo()
        assert [type(each) for each in seen] == [bytes]


@pytest.mark.parametrize(
    'name, do',
    [
        ('encode_produce_request', produce),
        ('decode_produce_response', produce),
        ('_encode_message_set', produce),
        ('_encode_message', produce),
        ('_encode_message_header', produce),
        ('encode_fetch_request', fetch),
        ('decode_fetch_response', fetch),
        ('_decode_message_set_iter', fetch),
    ],
)
def test_a_replaced_method_of_the_protocol_is_called(name, do, monkeypatch):
    called = []
    original = getattr(KafkaProtocol, name)

    def replaced(*args, **kwargs):
        called.append(args)
        return original(*args, **kwargs)

    with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
        monkeypatch.setattr(KafkaProtocol, name, replaced)
        do(client)
    assert called
    if name.startswith('decode'):
        assert type(called[0][0]) is bytes


def test_a_subclass_of_the_protocol_is_called(monkeypatch):
    called = []

    class Own(KafkaProtocol):
        @classmethod
        def _encode_message(cls, message):
            called.append(message)
            return super()._encode_message(message)

    with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
        monkeypatch.setattr(kafka.client, 'KafkaProtocol', Own)
        produce(client)
    assert called == [create_message(b'v')]


def test_what_cannot_be_encoded_goes_nowhere():
    with broker() as server, closing(KafkaClient(server.address, timeout=2)) as client:
        before = len(server.requests)
        for messages, error in (([create_message('text')], TypeError), (5, TypeError)):
            with pytest.raises(error):
                client.send_produce_request([ProduceRequest(b't', 0, messages)])
        with pytest.raises(ProtocolError):
            client.send_fetch_request([FetchRequest(b't', 0, 0, 1 << 40)])
        assert len(server.requests) == before
