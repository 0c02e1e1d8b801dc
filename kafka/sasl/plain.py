"""The names of kafka.sasl.plain (2.3): the mechanism PLAIN, for register_sasl_mechanism()."""

from __future__ import annotations

from kafka.net.sasl.plain import Plain as SaslMechanismPlain

__all__ = ['SaslMechanismPlain']
