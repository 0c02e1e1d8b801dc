"""A producer's state: begin."""

from __future__ import annotations

from kafka.producer.transaction_state import TransactionState


def test_smoke():
    assert TransactionState('x').refuses_send
