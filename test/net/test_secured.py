"""A transport that encrypts, over one that breaks."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError
from kafka.net.failures import TlsError
from kafka.net.secured import SecuredTransport, TransportLayer
from kafka.net.security import TlsSettings
from kafka.net.tls import TlsClient, make_context
from kafka.testing.security.certificates import local_tls


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
