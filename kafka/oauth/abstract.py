"""The names of kafka.oauth.abstract (1.4.6 to 2.0); the same as in kafka.oauth."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider

__all__ = ['AbstractTokenProvider']
