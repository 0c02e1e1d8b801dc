"""Signals in a thread that runs a loop: handled after the driver lock was released.

Python runs the handler of a signal between any two byte codes of the main thread. What it raises,
such as the KeyboardInterrupt of Ctrl-C, would hit whatever coroutine is running: that of another
connection, or in the middle of a change to the accumulator; and what it calls, such as the flush()
of a program that is told to end, would wait for the loop that it interrupts. So for as long as the
main thread runs a loop, another handler is set that notes the signal and ends the poll; the
program's own is called after the lock was released.

Greenlets are all in the main thread, whatever threading says, and several may run their loops at
once, and end in any order. One handler serves all of them; the one that began last gets the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

__all__ = ['Interrupts', 'main_ident']

# Those of the module signal make enumerations at each call: 6 us, where these take 0.2.
_plain = getattr(signal, '_signal', signal)
_get: Callable[[int], Any] = _plain.getsignal
_set: Callable[[int, Any], Any] = _plain.signal
# The signals that programs handle, if this system has them.
_NUMBERS = tuple(
    int(getattr(signal, name))
    for name in 'SIGINT SIGTERM SIGHUP SIGQUIT SIGBREAK SIGALRM SIGUSR1 SIGUSR2'.split()
    if hasattr(signal, name)
)


class Interrupts:
    """Postpones signals between begin() and end(); for any thread, of use in the main one.

    Arguments: wake: ends a poll; called by the handler.
    """

    __slots__ = ('__weakref__', '_frames', '_own', '_wake')

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._frames: Dict[int, Optional[FrameType]] = {}  # of the signals that came
        self._own = weakref.ref(self)

    @property
    def is_due(self) -> bool:
        """Whether a signal came whose handler is still to be called."""
        return bool(self._frames)

    def begin(self) -> None:
        """Replace the handlers of the program, if this is the main thread.

        What one of them raises meanwhile is raised to the caller, which calls end() all the same.
        """
        if _ident() != main_ident[0] and 'greenlet' not in sys.modules:
            return
        handlers = list(map(_get, _NUMBERS))
        if handlers != _seen[0]:
            _seen[:] = handlers, _handled(handlers)
        for number, handler in _seen[1]:
            # All before the handler is set: the signal, or another one, may come at once.
            if handler is not _note:
                _programs[number] = handler
            if self._own not in _standing:
                _standing.append(self._own)
            try:
                _set(number, _note)
            except ValueError:  # not the main thread for Python, whatever threading says
                _standing.remove(self._own)
                return

    def end(self) -> None:
        """Put the handlers back; call those whose signals came. Raises what they raise."""
        if self._own not in _standing:
            return
        try:
            _standing.remove(self._own)
            if _standing:  # a call that an exception has kept from its end() is gone
                _standing[:] = [each for each in _standing if each() is not None]
            if not _standing:
                _put_back()
            if self._frames:
                self._tell(_programs.copy())
        except BaseException:  # the handler of another signal may raise meanwhile
            if self._frames:
                self._tell(_programs.copy())
            raise

    def _tell(self, handlers: Dict[int, Any]) -> None:
        """Call each handler that is due, also after one that raises."""
        while self._frames:
            number, frame = self._frames.popitem()
            try:
                handlers[number](number, frame)
            except BaseException:
                self._tell(handlers)
                raise

    def note(self, number: int, frame: Optional[FrameType]) -> None:
        """Take note of a signal, and end the poll."""
        self._frames[number] = frame
        self._wake()


def _handled(handlers: List[Any]) -> List[Tuple[int, Any]]:
    """Return the signals that are neither ignored, left to the system, nor of another language."""
    return [
        (number, handler)
        for number, handler in zip(_NUMBERS, handlers)
        if type(handler) is not int and callable(handler)
    ]


_ident = threading.get_ident
#: The identifier of the main thread, which is where handlers are called.
main_ident = [threading.main_thread().ident]


#: The handlers of all signals as they were last found, and those of them that are replaced.
_seen: List[Any] = [None, []]
#: The Interrupts objects that postpone signals now, in the order of begin().
_standing: List[weakref.ref[Interrupts]] = []
#: The handlers of the program that are replaced, or were last.
_programs: Dict[int, Any] = {}


def _note(number: int, frame: Optional[FrameType]) -> None:
    for each in reversed(_standing):
        interrupts = each()
        if interrupts is not None:
            interrupts.note(number, frame)
            return
    # A program that sets handlers in between has put this one back, or a call was kept from its
    # end() by an exception.
    _programs[number](number, frame)


def _put_back() -> None:
    """Let the program's handlers be called again."""
    for number, handler in _programs.items():
        if _get(number) is _note:  # else the program has set another one meanwhile
            _set(number, handler)


def _after_fork() -> None:
    """Put the handlers back in the child of a fork, where no loop would call them."""
    main_ident[0] = threading.main_thread().ident
    if _standing:
        _standing.clear()
        _put_back()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
