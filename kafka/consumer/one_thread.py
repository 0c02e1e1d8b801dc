"""That one thread at a time is inside a consumer: the guard, and its error.

Owns noticing it. A consumer is not safe for several threads; wakeup(), and reading assignment(),
are the exceptions. Calls of the same thread may nest: a listener commits while poll() goes on.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict

from kafka.errors import IllegalStateError

__all__ = ['OneThread']


class OneThread:
    """A context manager that lets one thread in, as often as it likes."""

    __slots__ = ('_depth', '_inside')

    def __init__(self) -> None:
        # The thread that is inside, by one key: who sets it first is in, atomically. An exception
        # may come between any two lines and leave it there: who finds it looks at its stack.
        self._inside: Dict[str, int] = {}
        self._depth = 0

    def __repr__(self) -> str:
        thread = self._inside.get('thread')
        return '<OneThread %s>' % ('free' if thread is None else 'thread %d' % thread)

    def __enter__(self) -> None:
        """Come in. Raises: IllegalStateError while another thread is inside."""
        me = threading.get_ident()
        thread = self._inside.setdefault('thread', me)
        if thread != me and not self._is_inside(thread):
            self._depth = 0
            self._inside.clear()
            thread = self._inside.setdefault('thread', me)
        if thread != me:
            raise IllegalStateError(
                'this consumer is being used by thread %d, and thread %d calls it too: a'
                ' KafkaConsumer is for one thread at a time; wakeup() ends a call of another'
                % (thread, me)
            )
        self._depth += 1

    def is_used(self) -> bool:
        """Return True if a thread is inside now."""
        thread = self._inside.get('thread')
        return thread is not None and self._is_inside(thread)

    def _is_inside(self, thread: int) -> bool:
        """Return False if a thread has left, with an exception that kept it from saying so."""
        frames = sys._current_frames()
        if threading.get_ident() not in frames:
            return True  # a greenlet's id, by gevent: nobody can tell
        frame = frames.get(thread)
        while frame is not None:
            names = frame.f_locals
            owner = getattr(names.get('self'), '__dict__', {})
            if names.get('guard') is self or owner.get('_guard') is self:
                return True
            frame = frame.f_back
        return False

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._inside.clear()
