"""How long a call takes, on machines that are busy with something else.

Owns the tries: a machine may take a second for anything, and then takes less the next time; what is
always late is late. Owns the processor time of a piece of code.
"""

from __future__ import annotations

import contextlib
import gc
import time
from typing import Any, Callable, Iterator

TRIES = 10


def within(least: float, most: float, call: Callable[[], Any]) -> Any:
    """Return what a call returns that takes from `least` to less than `most` seconds.

    Longer at times, never less, and not longer each time.
    """
    took = []
    while not took or took[-1] >= most:
        assert len(took) < TRIES, 'it takes %s seconds, and not below %s' % (took, most)
        began = time.monotonic()
        found = call()
        took.append(time.monotonic() - began)
        assert least <= took[-1]
    return found


class Spent:
    """The processor time of a piece of code. Attributes: seconds."""

    seconds = 0.0


@contextlib.contextmanager
def spent() -> Iterator[Spent]:
    """Measure the processor time of what this thread does.

    Not that of threads that other tests left, nor that of the collector: it looks at what other
    tests left, so that twice as many new objects may take far more than twice as long.
    """
    found, was_enabled = Spent(), gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        yield found
    finally:
        found.seconds = time.thread_time() - began
        if was_enabled:
            gc.enable()
