"""Errors of connecting, one class per stage that can fail.

Each has the stage in ``stage``, and the cause and remedy in its text. If a broker rejects a SASL
login with an error code, the class is that of the code, with the same attribute. Pure.
"""

from __future__ import annotations

from kafka.errors import KafkaConnectionError

__all__ = ['ProxyError', 'SaslError', 'TlsCertificateError', 'TlsError']


class ProxyError(KafkaConnectionError):
    """The proxy refused the connection, or is not a proxy."""

    stage = 'proxy'


class TlsError(KafkaConnectionError):
    """The TLS handshake failed, or encrypted bytes cannot be decrypted."""

    stage = 'TLS'


class TlsCertificateError(TlsError):
    """The client or the broker rejected the certificate of the other side; not retriable."""

    retriable = False


class SaslError(KafkaConnectionError):
    """The login ended before the broker accepted or rejected the credentials."""

    stage = 'SASL'
