"""What the tests of the network floor share."""

from __future__ import annotations

import pytest

from kafka.net.loop.loop import Loop


@pytest.fixture
def loop():
    """Return a loop on the sockets of this machine; closed at the end."""
    made = Loop()
    yield made
    made.close()
