"""The TLS layer between a transport and a broker's connection, without sockets.

Decrypts what arrives for the connection, and encrypts what it writes. The subject of a client's
certificate is its principal, as in Kafka. Certificates are made in certificates.py, or are the
user's files.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, NamedTuple, Optional, Tuple

from kafka.protocol.wire import Buffer
from kafka.testing.calls import LOCAL_HOST

if TYPE_CHECKING:
    from kafka.testing.broker import Broker
    from kafka.testing.connection import Connection

READ_BYTES = 256 * 1024
NONE, REQUESTED, REQUIRED = 'none', 'requested', 'required'
_VERIFY = {NONE: ssl.CERT_NONE, REQUESTED: ssl.CERT_OPTIONAL, REQUIRED: ssl.CERT_REQUIRED}

# The names of attribute types in Java; for other types it writes object identifiers.
_SHORT = {
    'commonName': 'CN',
    'countryName': 'C',
    'localityName': 'L',
    'stateOrProvinceName': 'ST',
    'organizationName': 'O',
    'organizationalUnitName': 'OU',
    'streetAddress': 'STREET',
    'domainComponent': 'DC',
    'userId': 'UID',
}
_EMAIL = 'emailAddress'
_EMAIL_NUMBER = '1.2.840.113549.1.9.1'


class CertificateError(RuntimeError):
    """A certificate cannot be made or used; the message says which and why."""


class Tls(NamedTuple):
    """The files of TLS listeners, all PEM.

    ``certificate`` is the brokers', followed by those between it and an authority; ``key`` its
    private key. ``client_ca`` has the authorities of clients; ``client_auth`` is 'none',
    'requested' or 'required', as ``ssl.client.auth``.
    """

    certificate: str
    key: str
    client_ca: Optional[str] = None
    client_auth: str = NONE

    def context(self) -> ssl.SSLContext:
        """Return the SSL context of the listeners.

        Raises ValueError for an unknown client_auth, or one without client_ca; CertificateError for
        files that cannot be read or are not a certificate or key.
        """
        if self.client_auth not in _VERIFY:
            words = ', '.join(map(repr, _VERIFY))
            raise ValueError('client_auth must be one of %s, not %r' % (words, self.client_auth))
        if self.client_auth != NONE and not self.client_ca:
            raise ValueError('client_auth=%r needs client_ca' % self.client_auth)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except OSError as error:  # ssl.SSLError is one
            names = '%s with the key %s' % (self.certificate, self.key)
            raise CertificateError('cannot use %s: %s' % (names, error)) from error
        try:
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
        except OSError as error:
            raise CertificateError('cannot use %s: %s' % (self.client_ca, error)) from error
        context.verify_mode = _VERIFY[self.client_auth]
        return context


def distinguished_name(subject: Iterable[Iterable[Tuple[str, str]]]) -> str:
    """Return the subject of a certificate in the format of RFC 2253: the last part first."""
    parts = []
    for group in reversed(list(subject)):
        texts = []
        for kind, value in group:
            if kind == _EMAIL:
                data = value.encode('ascii', 'replace')
                texts.append('%s=#16%02x%s' % (_EMAIL_NUMBER, len(data) & 0x7F, data.hex()))
            else:
                texts.append('%s=%s' % (_SHORT.get(kind, kind), _escaped(value)))
        parts.append('+'.join(texts))
    return ','.join(parts)


def _escaped(value: str) -> str:
    text = ''.join('\\' + each if each in ',+"\\<>;' else each for each in value)
    if text.startswith((' ', '#')):
        text = '\\' + text
    if text.endswith(' ') and len(text) > 1:
        text = text[:-1] + '\\ '
    return text


class TlsEnd:
    """TLS on the broker's end of a connection; has the interface of Connection to the transport.

    Arguments: broker: whose connection it is; transport: carries the bytes; context: of the broker;
    connect: makes the connection on a transport.
    """

    def __init__(
        self,
        broker: Broker,
        transport: Any,
        context: ssl.SSLContext,
        connect: Callable[[Any], Connection],
    ) -> None:
        self.broker = broker
        self._transport = transport
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_open = False
        self._has_failed = False
        self.connection = connect(_Plain(self, getattr(transport, 'host', LOCAL_HOST)))

    def __repr__(self) -> str:
        return '<TlsEnd of %r, %s>' % (self.connection, 'open' if self._is_open else 'not yet open')

    # ------------------------------------------------------------ the interface of a connection

    @property
    def principal(self) -> str:
        """The principal of the client."""
        return self.connection.principal

    @property
    def is_admitted(self) -> bool:
        """Whether the handshake is done, and the client has logged in if it must."""
        return self._is_open and self.connection.is_admitted

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self.connection.is_closed

    @property
    def wants_data(self) -> bool:
        """Whether the connection reads data."""
        return self.connection.wants_data

    @property
    def when_ready(self) -> Optional[Callable[[], None]]:
        """Called when the connection may want data again."""
        return self.connection.when_ready

    @when_ready.setter
    def when_ready(self, callback: Optional[Callable[[], None]]) -> None:
        self.connection.when_ready = callback

    def pause(self) -> None:
        """Stop reading."""
        self.connection.pause()

    def resume(self) -> None:
        """Resume reading."""
        self.connection.resume()

    def close(self) -> None:
        """Close the connection from this side."""
        self.connection.close()

    def receive_data(self, data: Buffer) -> None:
        """Receive bytes from the client; empty when it has closed."""
        if self.is_closed:
            return
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        try:
            if not self._is_open:
                self._open()
            if self._is_open:
                self._read()
        except ssl.SSLWantReadError:
            self._flush()
            if not data:
                self.connection.receive_data(b'')
        except OSError:  # ssl.SSLError: the peer does not speak TLS, or does not trust us
            self._has_failed = True
            self._flush()  # the TLS alert
            self.close()

    def _open(self) -> None:
        self._tls.do_handshake()
        self._is_open = True
        certificate = self._tls.getpeercert()
        if certificate:
            name = distinguished_name(certificate.get('subject', ()))  # type: ignore[arg-type]
            self.connection.principal = 'User:' + name
        self._flush()

    def _read(self) -> None:
        """Pass what can be decrypted to the connection. Raises ssl.SSLError, mostly SSLWantRead."""
        while not self.is_closed:
            try:
                data = self._tls.read(READ_BYTES)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                data = b''
            self.connection.receive_data(data)
            if not data:
                return

    # ------------------------------------------------------------ called by the connection

    def send(self, parts: Iterable[bytes]) -> None:
        """Encrypt and send what the connection writes."""
        try:
            for part in parts:
                if part:
                    self._tls.write(part)
        except OSError:
            self._has_failed = True
        self._flush()

    def end(self) -> None:
        """Send the TLS close_notify and close the transport."""
        if self._is_open and not self._has_failed:
            try:
                self._tls.unwrap()
            except OSError:
                pass  # the client's close_notify is not awaited
            self._flush()
        self._transport.close()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._transport.write(data)


class _Plain:
    """The transport of the connection: writes to the TLS layer."""

    def __init__(self, end: TlsEnd, host: str) -> None:
        self._end = end
        self.host = host

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._end.send([data])

    def write_parts(self, parts: List[bytes]) -> None:
        """Send several pieces of bytes."""
        self._end.send(parts)

    def close(self) -> None:
        """Close the connection."""
        self._end.end()
