"""Whether an earlier call is still running in a thread, or was ended by an exception.

A call that must not be left half done stores a mark for the next call to find, and keeps it in a
local variable too. The next call is either made from inside the first one, by a callback or a
signal handler, or the first one has ended without removing its mark, because it was interrupted.
Used by consumers and by the blocking connections. Pure.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Optional

__all__ = ['is_in_call', 'is_running']


def is_in_call(variable: str, mark: Any, thread: Optional[int] = None) -> bool:
    """Return True if a thread is inside a call whose local variable of that name is the mark.

    Arguments: thread: its identifier; None for the current one.
    """
    frame: Optional[FrameType] = sys._getframe(1)
    if thread is not None:
        frame = sys._current_frames().get(thread)
    while frame is not None:
        if variable in frame.f_code.co_varnames and frame.f_locals.get(variable) is mark:
            return True
        frame = frame.f_back
    return False


def is_running(frame: FrameType) -> bool:
    """Return True if the current thread is inside the call of a frame, as in a signal handler."""
    inside: Optional[FrameType] = sys._getframe(1)
    while inside is not None and inside is not frame:
        inside = inside.f_back
    return inside is frame
