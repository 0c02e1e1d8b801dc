"""The names of kafka.sasl.oauth (2.3): the shape of what provides tokens."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider

__all__ = ['AbstractTokenProvider']
