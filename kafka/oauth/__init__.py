"""The names of kafka.oauth (1.4.6 to 2.0): the interface of token providers."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider

__all__ = ['AbstractTokenProvider']
