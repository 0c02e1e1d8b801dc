"""Ctrl-C in a thread that runs the turn of a loop: told once the turn is left, and not inside it.

Python runs the handler of a signal between any two steps of the main thread, and what it raises,
usually KeyboardInterrupt, would tear whatever coroutine is running: that of another connection, or
half of a change to the accumulator. So for as long as the main thread runs turns, a handler stands
in that notes the signal and ends the poll; the program's own is called behind the turn.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Callable, Optional

__all__ = ['Interrupts']

# Those of signal turn numbers into enumerations at each call, and take 6 us where these take 0.2.
_plain = getattr(signal, '_signal', signal)
_get: Callable[[int], Any] = _plain.getsignal
_set: Callable[[int, Any], Any] = _plain.signal


class Interrupts:
    """Postpones SIGINT between begin() and end(); for any thread, of use in the main one.

    Arguments: wake: ends a poll; called by the handler.
    """

    __slots__ = ('_frame', '_handler', '_wake', 'is_due')

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._handler: Any = None
        self._frame: Optional[FrameType] = None
        self.is_due = False

    def begin(self) -> None:
        """Stand in for the handler, if this is the main thread and the program has one."""
        if threading.current_thread() is not threading.main_thread():
            return
        handler = _get(signal.SIGINT)
        if not callable(handler):  # ignored, left to the system, or of another language
            return
        try:
            _set(signal.SIGINT, self._note)
        except ValueError:  # main for threading and yet not for Python, as in some embeddings
            return
        self._handler = handler

    def end(self) -> None:
        """Put the handler back; call it if the signal came. Raises what it raises."""
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if _get(signal.SIGINT) == self._note:  # else the program has set another one meanwhile
            _set(signal.SIGINT, handler)
        if self.is_due:
            self.is_due = False
            frame, self._frame = self._frame, None
            handler(signal.SIGINT, frame)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self.is_due = True
        self._frame = frame
        self._wake()
