"""Postponed signal handling while the main thread runs a loop.

Python runs signal handlers between any two bytecodes of the main thread. An exception of a handler,
such as the KeyboardInterrupt of Ctrl-C, would be raised inside an arbitrary coroutine, for example
in the middle of a change to the accumulator. A blocking call in a handler, such as flush() on
SIGTERM, would wait for the loop that it interrupts. So while the main thread runs a loop, its
handlers are replaced by one that records the signal and ends the poll; the handlers of the program
are called after the driver lock was released.

All greenlets run in the main thread, whatever threading reports, and several may run their loops at
the same time and end in any order. One handler serves all of them: the loop that was started last
gets the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

__all__ = ['PostponedSignals', 'main_ident']

# The functions of the module signal create enumerations at each call: 6 us instead of 0.2 us.
_plain = getattr(signal, '_signal', signal)
_get: Callable[[int], Any] = _plain.getsignal
_set: Callable[[int, Any], Any] = _plain.signal
# The signals that programs commonly handle, if the system has them.
_NUMBERS = tuple(
    int(getattr(signal, name))
    for name in 'SIGINT SIGTERM SIGHUP SIGQUIT SIGBREAK SIGALRM SIGUSR1 SIGUSR2'.split()
    if hasattr(signal, name)
)


class PostponedSignals:
    """Postpones signals between begin() and end(). Has an effect in the main thread only.

    Arguments: wake: ends the poll; called by the signal handler.
    """

    __slots__ = ('__weakref__', '_frames', '_own', '_wake')

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._frames: Dict[int, Optional[FrameType]] = {}  # of postponed signals, by number
        self._own = weakref.ref(self)

    @property
    def is_due(self) -> bool:
        """Whether a signal was postponed whose handler has not been called yet."""
        return bool(self._frames)

    def begin(self) -> None:
        """Replace the handlers of the program, if this is the main thread.

        A handler that runs during this call may raise: the caller has to call end() even then.
        """
        if _ident() != main_ident[0] and 'greenlet' not in sys.modules:
            return
        handlers = list(map(_get, _NUMBERS))
        if handlers != _seen[0]:
            _seen[:] = handlers, _handled(handlers)
        for number, handler in _seen[1]:
            # Set everything up before the handler: the signal, or another one, may come at once.
            if handler is not _note:
                _programs[number] = handler
            if self._own not in _standing:
                _standing.append(self._own)
            try:
                _set(number, _note)
            except ValueError:  # not the main thread of the interpreter, whatever threading reports
                _standing.remove(self._own)
                return

    def end(self) -> None:
        """Restore the handlers and call those of postponed signals. Raises what they raise."""
        if self._own not in _standing:
            return
        try:
            _standing.remove(self._own)
            if _standing:  # remove those that an exception kept from calling end()
                _standing[:] = [each for each in _standing if each() is not None]
            if not _standing:
                _put_back()
            if self._frames:
                self._tell(_programs.copy())
        except BaseException:  # the handler of another signal may raise during this
            if self._frames:
                self._tell(_programs.copy())
            raise

    def _tell(self, handlers: Dict[int, Any]) -> None:
        """Call the handlers of all postponed signals, even if one raises."""
        while self._frames:
            number, frame = self._frames.popitem()
            try:
                handlers[number](number, frame)
            except BaseException:
                self._tell(handlers)
                raise

    def note(self, number: int, frame: Optional[FrameType]) -> None:
        """Record a signal, and end the poll."""
        self._frames[number] = frame
        self._wake()


def _handled(handlers: List[Any]) -> List[Tuple[int, Any]]:
    """Return signals with a Python handler: not ignored, not default, not set by C code."""
    return [
        (number, handler)
        for number, handler in zip(_NUMBERS, handlers)
        if type(handler) is not int and callable(handler)
    ]


_ident = threading.get_ident
#: The identifier of the main thread, where Python calls signal handlers.
main_ident = [threading.main_thread().ident]


#: The handlers of all signals at the last begin(), and those of them that are replaced.
_seen: List[Any] = [None, []]
#: The active PostponedSignals objects, in the order of begin().
_standing: List[weakref.ref[PostponedSignals]] = []
#: The handlers of the program that are, or were last, replaced.
_programs: Dict[int, Any] = {}


def _note(number: int, frame: Optional[FrameType]) -> None:
    for each in reversed(_standing):
        postponed = each()
        if postponed is not None:
            postponed.note(number, frame)
            return
    # No PostponedSignals is active: the program has saved and restored this handler, or an
    # exception kept a call from its end().
    _programs[number](number, frame)


def _put_back() -> None:
    """Restore the handlers of the program."""
    for number, handler in _programs.items():
        if _get(number) is _note:  # otherwise the program has set another one
            _set(number, handler)


def _after_fork() -> None:
    """Restore the handlers in the child of a fork, where no loop would call them."""
    main_ident[0] = threading.main_thread().ident
    if _standing:
        _standing.clear()
        _put_back()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_after_fork)
