"""Fixtures of the tests of the embedded broker."""

from __future__ import annotations

import pytest

from test.testing.durable import Folders


@pytest.fixture
def folders(tmp_path):
    """Give folders for clusters; what runs in them is stopped after the test."""
    made = Folders(tmp_path)
    yield made
    made.stop()
