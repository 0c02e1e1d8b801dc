"""The names of kafka.sasl (2.3): registration of custom mechanisms."""

from __future__ import annotations

from kafka.net.sasl import get_sasl_mechanism, register_sasl_mechanism

__all__ = ['get_sasl_mechanism', 'register_sasl_mechanism']
