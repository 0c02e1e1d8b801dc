"""The names of kafka.net.sasl.abc (3.0): the interface of a mechanism."""

from __future__ import annotations

from kafka.net.sasl.mechanism import SaslMechanism

__all__ = ['SaslMechanism']
