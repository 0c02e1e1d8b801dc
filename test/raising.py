"""Exceptions raised at chosen points of a call, as a signal's handler or another thread raises.

CPython delivers what a handler or ``PyThreadState_SetAsyncExc`` raises after a call, at the start
of a function and at the end of each round of a loop. ``Raiser`` counts these points in the code of
the package while a call runs, and raises at one of them: a test that tries each point in turn knows
that no moment is left out. It stands on ``sys.settrace``, so coverage and debuggers do not see the
code below it. Where the interpreter would deliver in front of a ``try`` or ``with`` and a trace
function only after it, the point is left out: ``raise_in()`` and a timer find those, by chance.
"""

from __future__ import annotations

import ctypes
import dis
import os
import random
import sys
import threading

import pytest

import kafka

#: For tests that need a Raiser.
needs_points = pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason='from 3.13 on the interpreter leaves out events of code that was left by an exception',
)

#: For tests of what a thread other than the main one does itself: see loop.py.
needs_attempts = pytest.mark.skipif(
    sys.version_info < (3, 10), reason='before 3.10 only the main thread sends a record itself'
)

#: Of what docs/guarantees.rst excepts on these.
no_raise_before_return = pytest.mark.skipif(
    sys.version_info < (3, 10), reason='3.8 and 3.9 raise right before a return, too'
)

PACKAGE = os.path.dirname(os.path.abspath(kafka.__file__)) + os.sep

# Instructions after which the interpreter looks whether something is to be raised.
_CHECKING = {
    'CALL',
    'CALL_FUNCTION',
    'CALL_FUNCTION_EX',
    'CALL_FUNCTION_KW',
    'CALL_KW',
    'CALL_METHOD',
    'JUMP_BACKWARD',
    'RESUME',
}


class Interruption(BaseException):
    """Neither an Exception nor any other class that code of the package may know."""


class Raiser:
    """Raises once, in this thread, at a point of the code below ``with``.

    Arguments:
        at: the number of the point, from 0; None only counts them.
        error: what is raised, a class or an object; or a function that raises, or has it raised.
        within: paths of files, or of folders that end with a separator, whose points count.

    Attributes: count: points that were met; raised_at: "file:line function" once it has raised.
    """

    def __init__(self, at=None, error=Interruption, within=(PACKAGE,)):
        self.at, self.error, self.within = at, error, tuple(within)
        self.count = 0
        self.raised_at = None
        self._last = {}  # by frame, the instruction that ran last
        self._before = None
        # Kept, because the interpreter refers to what it calls only from the frame that is traced.
        self._trace_calls, self._trace_events = self._on_call, self._on_event

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._trace_calls)
        return self

    def __exit__(self, *raised):
        sys.settrace(self._before)
        self._last.clear()

    def _on_call(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(self.within):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._trace_events

    def _on_event(self, frame, event, arg):
        if event == 'return':
            self._last.pop(frame, None)
        elif event == 'opcode':
            last, now = self._last.get(frame), frame.f_lasti
            self._last[frame] = now
            if _is_point(frame.f_code, last, now):
                self._meet(frame)
        return self._trace_events

    def _meet(self, frame):
        number, self.count = self.count, self.count + 1
        if number == self.at:
            code = frame.f_code
            path = os.path.relpath(code.co_filename, os.path.dirname(PACKAGE[:-1]))
            self.raised_at = '%s:%d %s' % (path, frame.f_lineno, code.co_name)
            self._last.clear()
            if not isinstance(self.error, (type, BaseException)):
                sys.settrace(None)  # as after an exception
                self.error()
                return
            raise self.error


_instructions = {}
_handlers = {}


def _is_point(code, last, now):
    """Return True if the interpreter may raise between two instructions, to the same handler."""
    names = _instructions.get(code)
    if names is None:
        names = _instructions[code] = {each.offset: each.opname for each in dis.Bytecode(code)}
    if last is None:  # the start of a function, where there is no instruction for it
        return 'RESUME' not in names.values()
    name = names.get(last, '')
    if name == 'JUMP_ABSOLUTE' or name.startswith('POP_JUMP_BACKWARD_IF'):
        is_checked = now < last  # the jump was made, and backwards
    elif name.startswith('POP_JUMP_IF'):
        is_checked = sys.version_info < (3, 11) and now != last + 2
    else:
        is_checked = name in _CHECKING
    return is_checked and _handler(code, last) == _handler(code, now)


def _handler(code, offset):
    """Return where an exception of an instruction goes; from 3.11 on, before that is unknown."""
    if not hasattr(code, 'co_exceptiontable'):
        return None
    table = _handlers.get(code)
    if table is None:
        table = _handlers[code] = dis._parse_exception_table(code)
    for entry in table:
        if entry.start <= offset < entry.end:
            return entry.target
    return None


def points(count, most, seed=0):
    """Return the numbers of points to be tried: all with KAFKA_RAISE=all, else `most` of them.

    Those that are left out are chosen by `seed`; the first and the last are always tried.
    """
    if count <= most or os.environ.get('KAFKA_RAISE') == 'all':
        return list(range(count))
    chosen = random.Random(seed).sample(range(1, count - 1), most - 2)
    return [0, *sorted(chosen), count - 1]


def in_worker(function, seconds=20):
    """Run a function in another thread; return what it returns, once it has ended in time."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive() and found, 'it stalls, or failed'
    return found[0]


def raise_in(thread_ident, error=Interruption):
    """Raise a class of errors in another thread, soon; return True if there is that thread."""
    ident, kind = ctypes.c_ulong(thread_ident), ctypes.py_object(error)
    return ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, kind) == 1
