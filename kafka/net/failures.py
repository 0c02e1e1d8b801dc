"""Errors of connecting, by the stage in which it failed.

Each has that stage in ``stage``, and in its text whose fault it is and what to do. A refusal of the
broker with an error code (SASL) is the error of that code, with the same attribute.
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
    """One side does not accept the certificate of the other; not retriable."""

    retriable = False


class SaslError(KafkaConnectionError):
    """The login ended before the broker accepted or refused the credentials."""

    stage = 'SASL'
