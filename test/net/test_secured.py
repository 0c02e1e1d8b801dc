"""A transport that encrypts, over one that breaks."""

from __future__ import annotations

import ssl

import pytest

from kafka.errors import KafkaConnectionError
from kafka.net.failures import TlsError
from kafka.net.secured import SecuredTransport, TransportLayer
from kafka.net.security import TlsSettings
from kafka.net.tls import TlsClient, make_context
from kafka.testing.security.certificates import local_tls
from test.net.test_tls import Pair, trusting


class Inner:
    """A transport that does as it is told, in turn: errors are raised."""

    is_closed = False
    expecting = False
    peername = 'localhost', 9092

    def __init__(self, writes=(), reads=()):
        self.writes, self.reads = list(writes), list(reads)

    def write(self, buffers):
        if self.writes:
            self._do(self.writes)

    async def recv(self):
        return self._do(self.reads)

    def receive_into(self, received):
        received.extend(self._do(self.reads))

    def _do(self, turns):
        told = turns.pop(0)
        if isinstance(told, BaseException):
            raise told
        return told


def broken(cause=None):
    error = KafkaConnectionError('it broke')
    error.__cause__ = cause
    return error


def context():
    return make_context(TlsSettings(cafile=local_tls().certificate))


def run(coroutine):
    """Run what never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError('it waits')


def test_a_reset_before_anything_was_read_may_mean_a_missing_certificate():
    """With TLS 1.3 a client knows of a refusal only afterwards, and some brokers just reset."""
    tls = TlsClient(context(), 'localhost')
    inner = Inner(reads=[broken(ConnectionResetError()), broken()])
    secured = SecuredTransport(inner, tls)
    tls.read = lambda: b''
    with pytest.raises(KafkaConnectionError, match='it broke; so does .* see ssl_certfile'):
        run(secured.recv())
    with pytest.raises(KafkaConnectionError, match='^[^;]*it broke$'):
        run(secured.recv())


@pytest.fixture
def pair():
    made = Pair(trusting()).shake_hands()
    made.to_client()
    assert made.client.read() == b''  # tickets of TLS 1.3
    return made


def encrypted(pair, *values):
    for value in values:
        pair.server.write(value)
    return pair.outgoing.read()


def test_what_is_received_is_decrypted(pair):
    secured = SecuredTransport(Inner(reads=[[encrypted(pair, b'one')], []]), pair.client)
    received = []
    secured.receive_into(received)
    secured.receive_into(received)  # there is nothing
    assert received == [b'one'] and not secured.is_torn


def test_what_comes_in_two_parts_is_received_with_the_second(pair):
    data = encrypted(pair, b'one')
    secured = SecuredTransport(Inner(reads=[[data[:10]], [data[10:]]]), pair.client)
    received = []
    secured.receive_into(received)
    assert received == []
    secured.receive_into(received)
    assert received == [b'one']


@pytest.mark.parametrize('how', ['goodbye', 'cut off'])
def test_the_end_is_received_after_what_came_before(pair, how):
    data = encrypted(pair, b'one', b'two')
    if how == 'goodbye':
        with pytest.raises(ssl.SSLWantReadError):
            pair.server.unwrap()
        reads = [[data + pair.outgoing.read()]]
    else:
        reads = [[data], [b'']]
    secured, received = SecuredTransport(Inner(reads=reads), pair.client), []
    for _ in reads:
        secured.receive_into(received)
    assert received == [b'one', b'two', b'']


def test_what_came_before_an_error_is_received(pair):
    secured = SecuredTransport(Inner(reads=[[encrypted(pair, b'one') + bytes(50)]]), pair.client)
    received = []
    with pytest.raises(TlsError, match='failed'):
        secured.receive_into(received)
    assert received == [b'one']


@pytest.mark.parametrize('name', ['receive', 'read', 'outgoing', 'write'])
def test_an_exception_between_socket_and_tls_is_noted(pair, monkeypatch, name):
    """What it leaves undone cannot be done later."""

    class Ended(OSError):
        """Is no error of a socket."""

    def end(*_):
        raise Ended(name)

    secured = SecuredTransport(Inner(reads=[[encrypted(pair, b'one')]]), pair.client)
    assert not secured.is_torn
    noted = []
    monkeypatch.setattr(pair.client, name, end)
    with pytest.raises(Ended):
        secured.write([b'two'], noted)
        secured.receive_into([])
    assert secured.is_torn and noted == ([] if name in ('outgoing', 'write') else [3])


def test_closing_says_goodbye():
    """Without it the peer cannot tell the end from a connection that was cut."""
    tls = TlsClient(context(), 'localhost')
    said = []
    tls.close = lambda: said.append(b'goodbye')
    tls.outgoing = lambda: b''.join(said)
    inner = Inner()
    inner.write, inner.close = said.append, lambda: said.append('closed')
    SecuredTransport(inner, tls).close()
    assert said == [b'goodbye', [b'goodbye'], 'closed']


def test_a_layer_passes_bytes_until_tls_starts():
    written = []
    layer = TransportLayer(written.append)
    layer.write(b'plain')
    assert layer.decrypt(b'answer') == b'answer' and not layer.is_encrypted and not layer.is_ended
    layer.close()
    assert written == [b'plain']
    layer.start_tls(TlsClient(context(), 'localhost'))
    assert layer.is_encrypted
    with pytest.raises(TlsError):
        layer.decrypt(b'no TLS')


class Session:
    """TLS within TLS, as to a broker behind a proxy: two clients, and what the servers send."""

    def __init__(self):
        self.outer = Pair(trusting()).shake_hands()
        self.outer.to_client()
        self.outer.client.read()  # tickets of TLS 1.3
        self.inner = Pair(trusting()).shake_hands()
        self.inner.to_client()
        self.inner.client.read()

    def sent(self, value):
        return encrypted(self.outer, encrypted(self.inner, value))


def test_what_came_before_an_error_of_the_proxy_is_received():
    session = Session()
    wire = Inner(reads=[[session.sent(b'one') + bytes(50)]])
    secured = SecuredTransport(SecuredTransport(wire, session.outer.client), session.inner.client)
    received = []
    with pytest.raises(TlsError, match='failed'):
        secured.receive_into(received)
    assert received == [b'one']


class Failing:
    """A TLS object of the program that fails."""

    def __init__(self, error):
        self.error = error

    def read(self, size):
        raise self.error

    write = read


@pytest.mark.parametrize('name', ['read', 'write'])
@pytest.mark.parametrize('error', [OSError(5, 'no input'), ConnectionResetError(), ssl.SSLError()])
def test_an_error_of_the_tls_object_is_one_of_tls(name, error):
    tls = TlsClient(context(), 'localhost')
    tls._tls = Failing(error)
    with pytest.raises(TlsError):
        getattr(tls, name)(b'x')


@pytest.mark.parametrize('name', ['read', 'write'])
def test_a_time_limit_that_is_raised_meanwhile_is_none_of_tls(name):
    tls = TlsClient(context(), 'localhost')
    tls._tls = Failing(TimeoutError('of the job'))
    with pytest.raises(TimeoutError, match='of the job'):
        getattr(tls, name)(b'x')
