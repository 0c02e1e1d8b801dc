"""Fixtures of tests that more than one package is part of."""

from __future__ import annotations

from test.net.conftest import loop
from test.producer.conftest import make

__all__ = ['loop', 'make']
