"""Why a connection did not come about, by the stage it got to.

Owns the classes. Each says in ``stage`` how far it came, and in its text whose fault it is and what
to do. What a broker refuses by a code (SASL) is an error of that code, with the same attribute.
"""

from __future__ import annotations

from kafka.errors import KafkaConnectionError

__all__ = ['ProxyError', 'SaslError', 'TlsCertificateError', 'TlsError']


class ProxyError(KafkaConnectionError):
    """The proxy did not let us through, or is none."""

    stage = 'proxy'


class TlsError(KafkaConnectionError):
    """The TLS handshake failed, or what is encrypted cannot be read."""

    stage = 'TLS'


class TlsCertificateError(TlsError):
    """One side does not accept the certificate of the other; trying again will not help."""

    retriable = False


class SaslError(KafkaConnectionError):
    """The login broke off without a verdict on the credentials."""

    stage = 'SASL'
