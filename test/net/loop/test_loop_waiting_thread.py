"""A thread that waits for the driver is woken once, early or late, and leaves no entry."""

from __future__ import annotations

import threading
import time

from kafka.net.loop.loop import Entry, WaitingThread, discard


def test_waking_ends_the_sleep():
    waiting = WaitingThread(lambda: False)
    thread = threading.Thread(target=waiting.sleep, args=(4,))
    began = time.monotonic()
    thread.start()
    waiting.wake()
    thread.join()
    assert time.monotonic() - began < 3


def test_waking_before_the_sleep_ends_it_and_two_count_as_one():
    waiting = WaitingThread(lambda: False)
    waiting.wake()
    waiting.wake()
    began = time.monotonic()
    waiting.sleep(4)
    assert time.monotonic() - began < 3
    waiting.sleep(0)
    waiting.sleep(-1)


def test_an_error_in_the_question_counts_as_done():
    """Its own thread asks again and raises it."""
    assert WaitingThread(lambda: 1 / 0).is_done() is True
    assert WaitingThread(list).is_done() is False


def test_an_entry_is_gone_with_its_thread_and_may_be_discarded_twice():
    waiting = WaitingThread(lambda: False)
    entries = [Entry(waiting)]
    entry = entries[0]
    del waiting
    assert entry() is None
    discard(entries, entry)
    discard(entries, entry)
    assert entries == []
