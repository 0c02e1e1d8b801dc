"""The names of kafka.sasl.gssapi (2.3): the mechanism GSSAPI, for register_sasl_mechanism()."""

from __future__ import annotations

from kafka.net.sasl.gssapi import Gssapi as SaslMechanismGSSAPI

__all__ = ['SaslMechanismGSSAPI']
