"""Fixtures of the consumers' tests."""

from __future__ import annotations

import pytest

from kafka.consumer import simple
from test.consumer.helpers import Clock


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(simple, 'time', made)
    return made
