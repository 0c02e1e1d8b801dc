"""A thread that waits for turns of others is woken once, early or late, and leaves no entry."""

from __future__ import annotations

import threading
import time

from kafka.net.loop.parked import Entry, Parked, discard


def test_a_call_ends_the_sleep():
    parked = Parked(lambda: False)
    thread = threading.Thread(target=parked.sleep, args=(4,))
    began = time.monotonic()
    thread.start()
    parked.call()
    thread.join()
    assert time.monotonic() - began < 3


def test_a_call_before_the_sleep_ends_it_and_two_count_as_one():
    parked = Parked(lambda: False)
    parked.call()
    parked.call()
    began = time.monotonic()
    parked.sleep(4)
    assert time.monotonic() - began < 3
    parked.sleep(0)
    parked.sleep(-1)


def test_an_error_in_the_question_counts_as_done():
    """Its own thread asks again and raises it."""
    assert Parked(lambda: 1 / 0).is_done() is True
    assert Parked(list).is_done() is False


def test_an_entry_is_gone_with_its_thread_and_may_be_discarded_twice():
    parked = Parked(lambda: False)
    entries = [Entry(parked)]
    entry = entries[0]
    del parked
    assert entry() is None
    discard(entries, entry)
    discard(entries, entry)
    assert entries == []
