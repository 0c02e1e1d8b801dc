"""TLS of a client (RFC 8446): the SSLContext of its settings, and a TLS session without a socket.

security.py creates the context; the connect conversation (connect.py) does the handshake with a
TlsClient, and secured.py encrypts with it afterwards. Errors of OpenSSL become TlsError here, with
the remedy in the text. The minimum version is TLS 1.2.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Union

from kafka.config.secrets import is_pem
from kafka.errors import KafkaConfigurationError, KafkaError
from kafka.internals.lazy_imports import LateModule
from kafka.net.failures import TlsCertificateError, TlsError

if TYPE_CHECKING:
    import ssl
    import tempfile

    from kafka.net.security import TlsSettings
else:
    # Imported late: together they take 6 MiB, and many clients do not use TLS.
    ssl, tempfile = LateModule('ssl'), LateModule('tempfile')

__all__ = ['TlsClient', 'as_ssl_error', 'make_context', 'shown_file']

READ_BYTES = 256 * 1024

Text = Union[str, bytes]


# ---------------------------------------------------------------- the context


def make_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of settings: TLS 1.2 or later, with verification of certificates.

    Raises KafkaConfigurationError with the option, the file and the reason.
    """
    if settings.context is not None:
        return settings.context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.check_hostname
    _load_authorities(context, settings)
    if settings.certfile:
        _load_certificate(context, settings)
    if settings.crlfile:
        _load_revocations(context, settings.crlfile)
    if settings.ciphers:
        try:
            context.set_ciphers(settings.ciphers)
        except ssl.SSLError as error:
            raise KafkaConfigurationError(
                'ssl_ciphers=%r names no cipher that OpenSSL has' % settings.ciphers
            ) from error
    return context


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    cafile = settings.cafile
    if not cafile:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    try:
        if is_pem(cafile):
            context.load_verify_locations(cadata=_text(cafile))
        else:
            context.load_verify_locations(cafile=cafile)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise _unusable('ssl_cafile', cafile, error, 'a certificate') from error


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    certfile, keyfile = settings.certfile, settings.keyfile or None
    assert certfile is not None
    names = 'ssl_certfile' if keyfile is None else 'ssl_certfile and ssl_keyfile'
    try:
        with _Files(certfile, keyfile) as (certificate, key):
            context.load_cert_chain(certificate, key, _password(settings.password))
    except (OSError, ValueError) as error:
        text = str(error).lower()
        if 'mismatch' in text:
            what = 'a key that belongs to the certificate'
        elif settings.password is not None:
            what = 'a certificate and its key; or ssl_password is not that of the key'
        else:
            what = 'a certificate and its key'
        raise _unusable(names, certfile, error, what) from error


def _password(password: Any) -> Callable[[], Text]:
    """Return the password callback of OpenSSL, which would prompt at the terminal without one."""
    if password is None:
        return _no_password
    return password if callable(password) else lambda: password


def _no_password() -> str:
    raise KafkaConfigurationError('the key of ssl_keyfile is encrypted: give its ssl_password')


def _load_revocations(context: ssl.SSLContext, crlfile: Text) -> None:
    try:
        with _Files(crlfile, None) as (path, _):
            context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        raise _unusable('ssl_crlfile', crlfile, error, 'a list of revoked certificates') from error
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _unusable(option: str, file: Text, error: Exception, what: str) -> KafkaConfigurationError:
    if isinstance(error, ssl.SSLError):
        reason = 'it does not hold %s (%s)' % (what, error.reason or 'unreadable')
    elif isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
    else:
        reason = 'it does not hold ' + what
    return KafkaConfigurationError('%s: cannot use %s: %s' % (option, shown_file(file), reason))


def _text(pem: Text) -> str:
    return pem.decode('ascii', 'replace') if isinstance(pem, bytes) else pem


def shown_file(value: Any) -> str:
    """Return the path of a file for error texts; PEM text itself is not shown."""
    if value is None:
        return 'None'
    return 'PEM text' if is_pem(value) else repr(os.fspath(value))


class _Files:
    """Paths for data that OpenSSL reads only from files; PEM text is written to temporary files.

    Only the owner may read these files, and they are deleted when the ``with`` block ends.
    """

    def __init__(self, *values: Optional[Text]) -> None:
        self._values = values
        self._made: list[str] = []

    def __enter__(self) -> Tuple[Any, ...]:
        try:
            return tuple(self._path(value) for value in self._values)
        except OSError:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        while self._made:
            os.unlink(self._made.pop())

    def _path(self, value: Optional[Text]) -> Optional[Text]:
        if not is_pem(value):
            return value
        assert value is not None
        number, path = tempfile.mkstemp(prefix='kafka-', suffix='.pem')
        self._made.append(path)
        with os.fdopen(number, 'wb') as file:
            file.write(value if isinstance(value, bytes) else value.encode('utf-8'))
        return path


def as_ssl_error(error: KafkaError) -> BaseException:
    """Return a TLS error as the ssl.SSLError that 1.x raised, any other error unchanged."""
    if not isinstance(error, TlsError):
        return error
    kind = ssl.SSLCertVerificationError if isinstance(error, TlsCertificateError) else ssl.SSLError
    return kind(' '.join(map(str, error.args)))


# ---------------------------------------------------------------- the connection


class TlsClient:
    """The client side of one TLS session, without a socket.

    Arguments: context: the SSLContext; server_hostname: the broker's name or address, not resolved.

    A driver passes received bytes to receive(), then calls handshake() until it returns True, and
    read() after that; after each call it sends the bytes that outgoing() returns.
    """

    def __init__(self, context: ssl.SSLContext, server_hostname: str) -> None:
        self.host = server_hostname.rstrip('.')
        self.is_ended = False  # whether the peer has closed: read() returns b''
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._head = b''
        self._is_open = False
        self._has_read = False
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=self.host or None
            )
        except (ValueError, UnicodeError) as error:
            raise TlsError('%r can be no name in a certificate' % server_hostname) from error

    def __repr__(self) -> str:
        state = 'ended' if self.is_ended else 'open' if self._is_open else 'in handshake'
        return '<TlsClient host=%s %s>' % (self.host, state)

    @property
    def version(self) -> Optional[str]:
        """The negotiated version, such as TLSv1.3; None before the handshake."""
        return self._tls.version()

    def receive(self, data: bytes) -> None:
        """Add bytes from the peer; b'' if the peer has closed the connection."""
        if len(self._head) < 8:
            self._head += bytes(data[: 8 - len(self._head)])
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def outgoing(self) -> bytes:
        """Return the bytes to send now."""
        return self._outgoing.read()

    def handshake(self) -> bool:
        """Continue the handshake; return True if it is complete. Raises TlsError."""
        if self._is_open:
            return True
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except OSError as error:  # includes ssl.SSLError
            raise self._failure(error) from error
        self._is_open = True
        return True

    def read(self, size: int = READ_BYTES) -> bytes:
        """Return decrypted bytes; b'' if none are available. Raises TlsError.

        With TLS 1.3 the rejection of the client's certificate is raised here, not by handshake().
        """
        if self.is_ended:
            return b''
        try:
            data = self._tls.read(size)
        except ssl.SSLWantReadError:
            return b''
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            data = b''
        except OSError as error:
            if not _is_of_tls(error):
                raise
            raise self._failure(error) from error
        self.is_ended = not data
        self._has_read = True
        return data

    def write(self, data: bytes) -> None:
        """Encrypt bytes; outgoing() returns them. Raises TlsError."""
        if not data:
            return
        try:
            self._tls.write(data)
        except OSError as error:
            if not _is_of_tls(error):
                raise
            raise self._failure(error) from error

    def close(self) -> None:
        """Create a close_notify, which outgoing() returns; do not wait for that of the peer."""
        if not self._is_open:
            return
        try:
            self._tls.unwrap()
        except OSError:
            pass  # the connection is broken, or the peer's close_notify is missing

    def _failure(self, error: OSError) -> TlsError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return TlsCertificateError(_of_verification(error, self.host))
        reason = (getattr(error, 'reason', None) or '').upper()
        for part, text in _ALERTS:
            if part in reason:
                return TlsCertificateError(text % self.host)
        stranger = _stranger(self._head)
        if stranger is not None and not self._is_open:
            return TlsError('%s does not speak TLS here: it sent %s' % (self.host, stranger))
        if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or 'EOF' in reason:
            return TlsError(
                '%s closed the connection during the TLS handshake. So does a listener without TLS:'
                ' then security_protocol must be PLAINTEXT or SASL_PLAINTEXT, or the port is'
                ' another; and one that demands a certificate: then give ssl_certfile' % self.host
            )
        for part, text in _DISAGREEMENTS:
            if part in reason:
                return TlsError(text % self.host)
        text = 'TLS with %s failed: %s' % (self.host, reason or type(error).__name__)
        return TlsError(text if self._has_read else text + _BREAKS_OFF)


def _is_of_tls(error: OSError) -> bool:
    """Return False for what was raised in this thread from outside, such as a TimeoutError.

    OpenSSL reads and writes memory here, and cannot time out.
    """
    return isinstance(error, (ssl.SSLError, ConnectionError)) or type(error) is OSError


# Alerts of a broker about the client's certificate.
_SEE = '; see ssl_certfile, and the trust store of the broker'
_ALERTS = (
    ('CERTIFICATE_REQUIRED', '%s demands a certificate of the client: give ssl_certfile'),
    ('ALERT_BAD_CERTIFICATE', '%s does not accept the certificate given, or demands one' + _SEE),
    ('ALERT_UNKNOWN_CA', '%s does not know the authority that signed the certificate given' + _SEE),
    ('ALERT_CERTIFICATE_UNKNOWN', '%s does not accept the certificate given' + _SEE),
    ('ALERT_CERTIFICATE_EXPIRED', '%s finds the certificate given expired (ssl_certfile)'),
    ('ALERT_CERTIFICATE_REVOKED', '%s finds the certificate given revoked (ssl_certfile)'),
)
# Observed with Kafka 0.10 to 2.8 on Java 17.
_BREAKS_OFF = (
    '; so do brokers that demand a certificate of the client, or do not accept the one given: see'
    ' ssl_certfile, and the log of the broker'
)
_NO_VERSION = '%s and this client share no version of TLS: nothing below 1.2 is taken here'
_NO_CIPHER = '%s and this client agree on no cipher (ssl_ciphers)'
_DISAGREEMENTS = (
    ('PROTOCOL_VERSION', _NO_VERSION),
    ('UNSUPPORTED_PROTOCOL', _NO_VERSION),
    ('HANDSHAKE_FAILURE', _NO_CIPHER + ', or it demands a certificate (ssl_certfile)'),
    ('NO_SHARED_CIPHER', _NO_CIPHER),
)

# Verification error codes of OpenSSL.
_NOT_YET_VALID, _EXPIRED, _REVOKED, _NO_CRL = 9, 10, 23, 3
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER = 18, 19, 20, 21
_WRONG_NAME, _WRONG_ADDRESS = 62, 64


def _of_verification(error: ssl.SSLCertVerificationError, host: str) -> str:
    code = error.verify_code
    if code in (_WRONG_NAME, _WRONG_ADDRESS):
        return (
            'the certificate of %s is for another name: connect by a name that it has, or correct'
            ' the advertised.listeners or the certificate of the broker (%s)'
            % (host, error.verify_message)
        )
    if code in (_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_LEAF_ISSUER):
        return (
            'the certificate of %s is signed by an authority that is not trusted here: give the'
            ' authority as ssl_cafile (%s)' % (host, error.verify_message)
        )
    if code in (_EXPIRED, _NOT_YET_VALID):
        return 'the certificate of %s %s: renew it at the broker, or correct the clock here' % (
            host,
            'has expired' if code == _EXPIRED else 'is not valid yet',
        )
    if code == _REVOKED:
        return 'the certificate of %s was revoked (ssl_crlfile)' % host
    if code == _NO_CRL:
        return 'ssl_crlfile has no list of the authority that signed the certificate of %s' % host
    return 'the certificate of %s is not accepted: %s' % (host, error.verify_message)


# The content types that a TLS stream may begin with; the major version in the next byte is 3.
_ALERT, _HANDSHAKE = 21, 22


def _stranger(head: bytes) -> Optional[str]:
    """Describe the first bytes of a peer if they are not TLS; otherwise return None."""
    if not head or (head[0] in (_ALERT, _HANDSHAKE) and head[1:2] in (b'', b'\x03')):
        return None
    if head.startswith(b'HTTP'):
        return 'an HTTP answer; this is a web server or a proxy'
    if head.startswith(b'SSH-'):
        return 'the greeting of an SSH server'
    return 'bytes that are not TLS (%s...); is this a listener without TLS?' % head[:4].hex()
