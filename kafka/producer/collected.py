"""How a producer ends that Python collects before it was closed.

Owns who closes it. Python collects cycles in whatever thread makes an object, at that place: also
in a turn of the producer's own loop, where what waits for the loop waits for itself; and where the
accumulator's lock is held, for which whoever collects would wait, and no object of the process
would be collected any more. There the loop is told to close it, in turns that follow.
"""

from __future__ import annotations

from typing import Any

__all__ = ['close_collected']

# How often it is looked whether everything has its outcome, in seconds.
_LOOK_SECONDS = 0.01


def close_collected(producer: Any, loop: Any, accumulator: Any, seconds: float) -> bool:
    """Close a producer, or see to it that it is closed; return whether it is closed now.

    Arguments: seconds: that its records may take.
    """
    if loop.runs_here() or accumulator.is_mine():
        loop.call_threadsafe(_begin, producer, loop, accumulator, seconds)
        return False
    producer.close(timeout=seconds)
    return True


def _begin(producer: Any, loop: Any, accumulator: Any, seconds: float) -> None:
    loop.spawn(_close(producer, loop, accumulator, loop.time() + seconds))


async def _close(producer: Any, loop: Any, accumulator: Any, deadline: float) -> None:
    accumulator.close()
    while not accumulator.is_empty() and loop.time() < deadline:
        await loop.sleep(_LOOK_SECONDS)
    producer.close(timeout=0)
