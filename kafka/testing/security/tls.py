"""TLS between the bytes of a client and a broker's connection, without sockets.

Owns the broker's end of TLS: what arrives is decrypted for the connection, what it writes is
encrypted. Who a client's certificate names is its principal, as in Kafka. Files with certificates
are made in certificates.py, or are the user's.
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

# What Java calls the parts of a name; for others it writes their numbers.
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
    """A certificate cannot be made or used; the text says which and why."""


class Tls(NamedTuple):
    """The files of TLS listeners, all PEM.

    ``certificate`` is the brokers', with those between it and an authority behind it; ``key`` its
    private key. ``client_ca`` are the authorities of clients; ``client_auth`` is 'none',
    'requested' or 'required', as ``ssl.client.auth``.
    """

    certificate: str
    key: str
    client_ca: Optional[str] = None
    client_auth: str = NONE

    def context(self) -> ssl.SSLContext:
        """Return what connections are made with.

        Raises ValueError for a client_auth that there is not; CertificateError for files that
        cannot be read or are no certificate or key.
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
    """Return the name of a certificate as RFC 2253 writes it: the last part first."""
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
    """Stands between what carries bytes and a connection; is a connection to the first.

    Arguments: broker: whose connection it is; transport: carries bytes; context: of the broker;
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

    # ------------------------------------------------------------ as a connection

    @property
    def principal(self) -> str:
        """Who the client is."""
        return self.connection.principal

    @property
    def is_admitted(self) -> bool:
        """Whether TLS stands, and the client has logged in where it must."""
        return self._is_open and self.connection.is_admitted

    @property
    def is_closed(self) -> bool:
        """Whether the connection is."""
        return self.connection.is_closed

    @property
    def wants_data(self) -> bool:
        """Whether it reads on."""
        return self.connection.wants_data

    @property
    def when_ready(self) -> Optional[Callable[[], None]]:
        """What is called when it may want data again."""
        return self.connection.when_ready

    @when_ready.setter
    def when_ready(self, callback: Optional[Callable[[], None]]) -> None:
        self.connection.when_ready = callback

    def pause(self) -> None:
        """Read no further."""
        self.connection.pause()

    def resume(self) -> None:
        """Read on."""
        self.connection.resume()

    def close(self) -> None:
        """Close the connection from this side."""
        self.connection.close()

    def receive_data(self, data: Buffer) -> None:
        """Take bytes from the client; empty when it has closed."""
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
        except OSError:  # ssl.SSLError: nobody speaks TLS there, or trusts this certificate
            self._has_failed = True
            self._flush()  # the alert that says so
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
        """Give the connection what can be decrypted. Raises ssl.SSLError, mostly SSLWantRead."""
        while not self.is_closed:
            try:
                data = self._tls.read(READ_BYTES)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                data = b''
            self.connection.receive_data(data)
            if not data:
                return

    # ------------------------------------------------------------ for the connection

    def send(self, parts: Iterable[bytes]) -> None:
        """Send what the connection writes."""
        try:
            for part in parts:
                if part:
                    self._tls.write(part)
        except OSError:
            self._has_failed = True
        self._flush()

    def end(self) -> None:
        """Say goodbye and close what carries the bytes."""
        if self._is_open and not self._has_failed:
            try:
                self._tls.unwrap()
            except OSError:
                pass  # the client's goodbye is not waited for
            self._flush()
        self._transport.close()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._transport.write(data)


class _Plain:
    """What the connection takes for its transport."""

    def __init__(self, end: TlsEnd, host: str) -> None:
        self._end = end
        self.host = host

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._end.send([data])

    def write_parts(self, parts: List[bytes]) -> None:
        """Send pieces, one behind the other."""
        self._end.send(parts)

    def close(self) -> None:
        """Close the connection."""
        self._end.end()
