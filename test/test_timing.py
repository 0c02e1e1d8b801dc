"""What is late once is not late; what is always late, or too early, is."""

from __future__ import annotations

import gc
import threading
import time
from types import SimpleNamespace

import pytest

from test import timing


@pytest.fixture
def taking(monkeypatch):
    """Return a function that makes a call which takes so many seconds, at last always the same."""
    clock = [128.0]
    monkeypatch.setattr(timing, 'time', SimpleNamespace(monotonic=lambda: clock[0]))

    def make(*seconds):
        waiting = list(seconds)

        def call():
            clock[0] += waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return len(waiting)

        return call

    return make


def test_one_try_in_time_is_enough(taking):
    assert timing.within(0.25, 1.25, taking(5.0, 9.0, 0.25)) == 1


def test_what_is_always_late_is_late(taking):
    with pytest.raises(AssertionError, match='not below 1.25'):
        timing.within(0.25, 1.25, taking(1.25))


def test_what_comes_too_early_is_no_matter_of_tries(taking):
    with pytest.raises(AssertionError):
        timing.within(0.25, 1.25, taking(0.125, 0.5))


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_only_the_time_of_this_thread_is_spent():
    thread = threading.Thread(target=work, args=(0.1,))
    with timing.spent() as found:
        work(0.01)
        thread.start()
        thread.join()
    assert 0.01 <= found.seconds < 0.1


def test_the_collector_does_not_run_meanwhile_and_is_as_before_afterwards():
    for change in (gc.disable, gc.enable):
        change()
        before = gc.isenabled()
        with timing.spent():
            assert not gc.isenabled()
        assert gc.isenabled() == before
