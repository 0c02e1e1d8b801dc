"""Sleep of a thread that waits for what happens in the turns of a loop.

Made by the thread that waits, woken by whichever thread runs the turn (threads.py). The loop holds
only weak references: the thread may be ended by an exception at any point, and an entry that it
left is gone with its frame. Locks: one for each thread that sleeps; it guards nothing and is slept
on.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, List

__all__ = ['Entry', 'Parked', 'discard']

if TYPE_CHECKING:
    #: What a loop holds of a thread that waits.
    Entry = weakref.ReferenceType['Parked']
else:
    Entry = weakref.ref  # not subscriptable before Python 3.9

#: Longest sleep in seconds; then the thread looks itself, in case a wake-up was lost. Where Ctrl-C
#: does not end the sleep of a lock, it is looked for so often.
LONGEST = 0.2 if os.name == 'nt' else 5.0


class Parked:
    """A thread that waits while another one runs the turn.

    Arguments: done: returns whether the thread has what it waits for; asked in any thread.
    """

    __slots__ = ('__weakref__', '_lock', 'done')

    def __init__(self, done: Callable[[], Any]) -> None:
        self.done = done
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float) -> None:
        """Sleep until called, at most so many seconds, and no longer than LONGEST."""
        self._lock.acquire(timeout=max(0.0, min(seconds, LONGEST)))

    def call(self) -> None:
        """End the sleep; the next one, if none is under way."""
        try:
            self._lock.release()
        except RuntimeError:  # it was called already
            pass

    def is_done(self) -> bool:
        """Return True if it has what it waits for; an error is for its own thread to find."""
        try:
            return bool(self.done())
        except Exception:
            return True


def discard(entries: List[Entry], entry: Entry) -> None:
    """Remove an entry, which another thread may have removed already."""
    try:
        entries.remove(entry)
    except ValueError:
        pass
