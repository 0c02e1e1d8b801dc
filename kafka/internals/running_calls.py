"""Whether a call that was begun is still running in this thread, or was left by an exception.

A call that must not be left half done keeps a mark where the next call finds it, and a variable
that holds the mark. The next call either is made inside of the first one, by a callback or by the
handler of a signal, or the first one has ended without taking its mark back: it was interrupted.
Used by consumers and by the blocking connections. Pure.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Optional

__all__ = ['is_in_call']


def is_in_call(variable: str, mark: Any, thread: Optional[int] = None) -> bool:
    """Return True if a thread is inside a call whose variable of that name is the mark.

    Arguments: thread: its identifier; None for this one.
    """
    frame: Optional[FrameType] = sys._getframe(1)
    if thread is not None:
        frame = sys._current_frames().get(thread)
    while frame is not None:
        if variable in frame.f_code.co_varnames and frame.f_locals.get(variable) is mark:
            return True
        frame = frame.f_back
    return False
