"""The names of kafka.sasl.abc (2.3): the interface of a mechanism."""

from __future__ import annotations

from kafka.net.sasl.mechanism import SaslMechanism

__all__ = ['SaslMechanism']
