"""What hits calls at random hits these alone, and every hit is accounted for."""

from __future__ import annotations

import threading
import time

import pytest

from test.integration.interrupting import Interrupted, Interrupter


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.0001)
    return 'done'


def make_calls(found):
    """Make calls until some were hit; the code between them would not survive a hit."""
    interrupter = Interrupter(seconds=0.005, seed=1)
    results, hit = [], 0
    try:
        while hit < 20:
            try:
                results.append(interrupter.call(work, 0.003))
            except Interrupted:
                hit += 1
    finally:
        interrupter.end()
    found.append((results, hit, interrupter.hits, interrupter.swallowed))


@pytest.mark.parametrize('kind', ['main', 'worker'])
def test_calls_are_hit_and_nothing_else(kind):
    found = []
    if kind == 'main':
        make_calls(found)
    else:
        thread = threading.Thread(target=make_calls, args=(found,))
        thread.start()
        thread.join(30)
    ((results, hit, hits, swallowed),) = found
    assert set(results) == {'done'}
    assert hit == 20 <= hits and swallowed == 0
