"""Fixtures of the record tests."""

from __future__ import annotations

import sys

import pytest

from kafka import codec

PACKAGES = (
    'snappy',
    'lz4',
    'lz4.frame',
    'zstandard',
    'compression.zstd',
    'backports.zstd',
    'pyarrow',
)


@pytest.fixture
def without_wheels(monkeypatch):
    """Make every helper package for compression look as if it were not installed."""
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    codec._helper.cache_clear()
    yield
    monkeypatch.undo()
    codec._helper.cache_clear()
