"""A short run of the script that kills brokers, and of what it finds."""

from __future__ import annotations

import logging
import random

import pytest

from test.testing.kill_rounds import Ledger, Sent, measure, one_round, tear, verify

pytestmark = pytest.mark.once


def test_acknowledged_records_survive_kills(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL, 'kafka')
    chance = random.Random(5)
    ledgers = {0: Ledger(), 1: Ledger()}
    for _ in range(2):
        one_round(tmp_path, ledgers, chance)
        tear(tmp_path, chance)
    logged = verify(tmp_path, ledgers)
    assert sum(ledger.acknowledged for ledger in ledgers.values()) > 10
    assert 'cut off' in logged


def test_what_was_torn_is_read_quickly():
    found = measure(4 << 20, 16384)
    assert found.records > 35000
    assert found.cpu_seconds < 1


@pytest.mark.parametrize(
    'found, complaint',
    [
        ([b'a', b'b'], None),
        ([b'a', b'x', b'b'], None),
        ([b'a'], 'other records'),
        ([b'b', b'a'], 'other records'),
        ([b'x', b'a', b'b'], 'other records'),
        ([b'a', b'b', b'b'], 'nobody sent'),
        ([b'a', b'x', b'x', b'b'], 'acknowledged at 1, found at 2'),
    ],
)
def test_what_is_missing_or_too_much_is_found(found, complaint):
    ledger = Ledger()
    at = found.index(b'b') if b'b' in found and complaint is None else 1
    ledger.sent = [Sent((b'a',), 0), Sent((b'x',), None), Sent((b'b',), at)]
    if complaint is None:
        ledger.check(found)
    else:
        with pytest.raises(AssertionError, match=complaint):
            ledger.check(found)
