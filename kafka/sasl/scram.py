"""The names of kafka.sasl.scram (2.3): the mechanisms SCRAM, for register_sasl_mechanism()."""

from __future__ import annotations

from kafka.net.sasl.scram import ScramSha256, ScramSha512

__all__ = ['ScramSha256', 'ScramSha512']
