"""Connections with TLS after the handshake.

SecuredTransport is a transport of the event loop; TransportLayer encrypts and decrypts the bytes of
a socket that blocking.py or the evented clients drive. The connect conversation (connect.py) does
the handshake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple, Union

from kafka.errors import KafkaConnectionError
from kafka.net.tls import TlsClient

if TYPE_CHECKING:
    from kafka.net.transport import Transport

__all__ = ['SecuredTransport', 'TransportLayer']


class SecuredTransport:
    """A transport with TLS. Methods, attributes and errors are those of Transport, and TlsError."""

    is_encrypted = True

    def __init__(self, inner: Union[Transport, SecuredTransport], tls: TlsClient) -> None:
        self._inner = inner
        self._tls = tls
        self._has_read = False
        # True while bytes are encrypted and sent, or received and decrypted, and after an exception
        # in that: these are several steps, and bytes between two of them are lost then.
        self.is_torn = False

    def __repr__(self) -> str:
        return '<SecuredTransport over %r>' % self._inner

    @property
    def peername(self) -> Tuple[str, int]:
        """Host and port of the peer."""
        peername: Tuple[str, int] = self._inner.peername
        return peername

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return bool(self._inner.is_closed)

    @property
    def expecting(self) -> bool:
        """Whether a response is outstanding; see Transport.expecting."""
        return bool(self._inner.expecting)

    @expecting.setter
    def expecting(self, expecting: bool) -> None:
        self._inner.expecting = expecting

    @property
    def descriptor(self) -> int:
        """The descriptor of the socket; all that was received from it has been decrypted."""
        return self._inner.descriptor

    def write(self, buffers: Sequence[Any], noted: Optional[List[int]] = None) -> None:
        """Encrypt and send; see Transport.write().

        Arguments: noted: gets the number of bytes in `buffers` after they are sent.
        """
        self.is_torn = True
        for each in buffers:
            self._tls.write(each)
        self._inner.write([self._tls.outgoing()])
        if noted is not None:
            noted.append(sum(map(len, buffers)))
        self.is_torn = False

    async def send(self, buffers: Sequence[Any]) -> None:
        """Encrypt and send; return when all bytes are in the socket buffer."""
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
        """Call a function with decrypted bytes, as Transport.listen() does.

        Bytes that were received before are passed at once.
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

    def receive_into(self, received: List[bytes]) -> None:
        """Append decrypted bytes to a list, in one piece or several; b'' at the end of the stream.

        Used after listen(), which has passed on what was received before. Nothing is appended if
        nothing is complete, or if the connection is broken: then on_broken is called. Raises
        TlsError, also after some pieces.
        """
        self.is_torn = True
        encrypted: List[bytes] = []
        broken: Optional[KafkaConnectionError] = None
        try:
            self._inner.receive_into(encrypted)
        except KafkaConnectionError as error:  # of TLS in TLS, after some pieces
            broken = error
        for each in encrypted:
            self._tls.receive(each)
            self._flush()
            received.extend(iter(self._tls.read, b''))
        self._has_read = self._has_read or bool(received)
        if self._tls.is_ended:
            received.append(b'')
        self.is_torn = False
        if broken is not None:
            raise broken

    def _explained(self, error: KafkaConnectionError) -> KafkaConnectionError:
        """Add a hint to the error of a connection that breaks before anything was read from it."""
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
            pass  # the connection has ended

    def _flush(self) -> None:
        data = self._tls.outgoing()
        if data:
            self._inner.write([data])

    def close(self) -> None:
        """Send a close_notify and close."""
        if not self.is_closed:
            self._tls.close()
            self._flush_if_open()
            self._inner.close()


class TransportLayer:
    """Sends and receives the bytes of one socket, through TLS after start_tls(). Not thread-safe.

    Arguments: write: writes bytes to the socket.
    """

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write
        self._tls: Optional[TlsClient] = None

    def __repr__(self) -> str:
        return '<TransportLayer %s>' % ('TLS' if self.is_encrypted else 'without TLS')

    @property
    def is_encrypted(self) -> bool:
        """Whether start_tls() was called."""
        return self._tls is not None

    @property
    def is_ended(self) -> bool:
        """Whether the peer has ended the TLS session."""
        return self._tls is not None and self._tls.is_ended

    def start_tls(self, client: TlsClient) -> None:
        """Encrypt and decrypt from now on: the handshake is complete."""
        self._tls = client

    def write(self, data: bytes) -> None:
        """Send bytes. Raises TlsError, and the errors of `write`."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._tls.outgoing()
        self._write(data)

    def decrypt(self, received: bytes) -> bytes:
        """Decrypt received bytes; the result is b'' if they do not complete a TLS record.

        Raises TlsError.
        """
        tls = self._tls
        if tls is None:
            return received
        tls.receive(received)
        pieces = list(iter(tls.read, b''))
        self._flush(tls)
        return b''.join(pieces)

    def close(self) -> None:
        """Send a close_notify if TLS is in use; do not wait for that of the peer.

        Raises the errors of `write`.
        """
        if self._tls is not None:
            self._tls.close()
            self._flush(self._tls)

    def _flush(self, tls: TlsClient) -> None:
        data = tls.outgoing()
        if data:
            self._write(data)
