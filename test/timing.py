"""How long a call takes, on machines that are busy with something else.

Owns the tries: a machine may take a second for anything, and then takes less the next time; what is
always late is late.
"""

from __future__ import annotations

import time
from typing import Any, Callable

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
