"""TLS over a transport: the same calls, the bytes encrypted.

Owns the moving of bytes between a transport and tls.TlsClient. Does not own: either of them.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Tuple

from kafka.errors import KafkaConnectionError
from kafka.net.tls import TlsClient

__all__ = ['SecuredTransport']


class SecuredTransport:
    """A transport that encrypts. Its calls and errors are those of Transport, and TlsError."""

    #: What can be read of the socket is not what was sent: nobody but this may read it.
    descriptor = None

    def __init__(self, inner: Any, tls: TlsClient) -> None:
        self._inner = inner
        self._tls = tls
        self._has_read = False

    def __repr__(self) -> str:
        return '<SecuredTransport over %r>' % self._inner

    @property
    def peername(self) -> Tuple[str, int]:
        """Host and port of the other end."""
        peername: Tuple[str, int] = self._inner.peername
        return peername

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return bool(self._inner.is_closed)

    @property
    def expecting(self) -> bool:
        """Whether an answer is due."""
        return bool(self._inner.expecting)

    @expecting.setter
    def expecting(self, expecting: bool) -> None:
        self._inner.expecting = expecting

    def write(self, buffers: Iterable[Any]) -> None:
        """Encrypt and send."""
        for each in buffers:
            self._tls.write(each)
        self._inner.write([self._tls.outgoing()])

    async def send(self, buffers: Iterable[Any]) -> None:
        """Encrypt and send; return when the system has taken it."""
        self.write(buffers)
        await self._inner.send([])

    async def recv(self) -> bytes:
        """Return the next bytes, decrypted; b'' at the end of the stream. Raises TlsError."""
        while True:
            data = self._tls.read()
            if data or self._tls.is_ended:
                self._has_read = self._has_read or bool(data)
                return data
            try:
                arrived = await self._inner.recv()
            except KafkaConnectionError as error:
                raise self._explained(error) from error.__cause__
            self._tls.receive(arrived)
            self._flush()

    def listen(
        self, on_data: Callable[[bytes], Any], on_broken: Callable[[KafkaConnectionError], Any]
    ) -> None:
        """Call something with whatever comes, decrypted, as Transport.listen() does.

        What is there already is handed over at once.
        """

        def hand_over() -> None:
            while not self.is_closed:
                data = self._tls.read()
                if not data and not self._tls.is_ended:
                    return
                self._has_read = self._has_read or bool(data)
                on_data(data)
                if self._tls.is_ended:
                    return

        def arrived(data: bytes) -> None:
            try:
                self._tls.receive(data)
                self._flush()
                hand_over()
            except KafkaConnectionError as error:
                on_broken(error)

        def broken(error: KafkaConnectionError) -> None:
            on_broken(self._explained(error))

        self._inner.listen(arrived, broken)
        hand_over()

    def _explained(self, error: KafkaConnectionError) -> KafkaConnectionError:
        """Say what it may mean that a connection breaks before anything was read from it."""
        if self._has_read or not isinstance(error.__cause__, ConnectionError):
            return error
        return KafkaConnectionError(
            '%s; so does a broker that demands a certificate, see ssl_certfile'
            % ' '.join(map(str, error.args))
        )

    def _flush_if_open(self) -> None:
        try:
            self._flush()
        except KafkaConnectionError:
            pass  # it is gone

    def _flush(self) -> None:
        data = self._tls.outgoing()
        if data:
            self._inner.write([data])

    def close(self) -> None:
        """Say goodbye and close."""
        if not self.is_closed:
            self._tls.close()
            self._flush_if_open()
            self._inner.close()
