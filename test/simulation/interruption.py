"""Exceptions raised inside the calls of a simulated program, as signal handlers raise them.

Owns where: at the begin or the end of a function of kafka/consumer that the program's call runs
itself, not in turns of a loop, which signals do not enter. Such a place has the same number with
every Python, so that a seed repeats its run; test/raising.py tries every instruction.
"""

from __future__ import annotations

import os
import sys

import kafka.consumer

CONSUMER = os.path.dirname(os.path.abspath(kafka.consumer.__file__)) + os.sep
LOOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'net/loop/loop.py')
#: When one of these returns, the program has what it asked for.
PUBLIC = frozenset(['poll', 'commit'])


class Interruption(BaseException):
    """Neither an Exception nor any other class that code of the package may know."""


class Interrupting:
    """Raises once in the code below ``with``; catches what it has raised.

    Arguments: at: the number of the place, from 0. Attributes: has_raised; where.
    """

    def __init__(self, at):
        self.has_raised = False
        self.where = ''
        self._left = at
        self._before = None

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, kind, error, trace):
        sys.settrace(self._before)
        return kind is Interruption

    def _on_call(self, frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(CONSUMER) or code.co_name.startswith('<'):
            return None
        if _is_elsewhere(frame):
            return None
        frame.f_trace_lines = False
        self._meet('begin of', code)
        return None if code.co_name in PUBLIC else self._on_return

    def _on_return(self, frame, event, argument):
        if event == 'return' and argument is not None:  # which is lost then
            self._meet('end of', frame.f_code)
        return self._on_return

    def _meet(self, what, code):
        self._left -= 1
        if self._left == -1:
            self.has_raised = True
            self.where = '%s %s()' % (what, code.co_name)
            raise Interruption


def _is_elsewhere(frame):
    """Return True in a turn, and in a listener, which nobody calls again that was begun."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename == LOOP or code.co_name.startswith('on_partitions'):
            return True
        frame = frame.f_back
    return False
