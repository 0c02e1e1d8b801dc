"""The clock of metrics.

Releases up to 2.3 used ``time.time()``, 3.0 ``time.monotonic()``, both through the module. Programs
replace one of the two by a clock of their own and compare with it: the replaced one is used.
"""

from __future__ import annotations

import time

_time, _monotonic = time.time, time.monotonic


def milliseconds() -> float:
    """Return the time in ms: since 1970, unless only time.monotonic was replaced."""
    if time.monotonic is not _monotonic and time.time is _time:
        return time.monotonic() * 1000
    return time.time() * 1000
