"""What brokers list as their address, and is none."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError
from kafka.net.loop.loop import Loop
from kafka.net.node_connection import NodeConnection
from kafka.net.settings import NetSettings


@pytest.mark.parametrize('host, port', [('127.0.0.1', 70000), ('localhost', -1), ('a\0b', 9092)])
def test_a_broker_that_lists_no_address_is_a_failed_try(host, port):
    loop = Loop()
    link = NodeConnection(loop, NetSettings(), host, port)
    with pytest.raises(KafkaConnectionError):
        loop.run(link.ready(), 60)
    assert link.attempts and not link.is_ready
    loop.close()
