"""The single-thread guard of a consumer: one thread at a time may be inside its methods.

The public methods of a modern KafkaConsumer enter it, except wakeup() and assignment(). Calls of
the same thread may nest: a listener may commit inside poll().
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict

from kafka.consumer.call_checks import ConsumerClosedError
from kafka.errors import IllegalStateError

__all__ = ['OneThread']


class OneThread:
    """A reentrant context manager for one thread at a time.

    The objects that use it keep it in their attribute ``_guard``, by which their frames are
    recognised.

    Attributes: is_closed: whether the consumer is closed.
    """

    __slots__ = ('_depth', '_inside', 'is_closed')

    def __init__(self) -> None:
        # One key, 'thread': the id of the thread inside. setdefault() is atomic. An asynchronous
        # exception may come between any two lines and leave the key set; a thread that finds it
        # therefore inspects the stack of the other thread.
        self._inside: Dict[str, int] = {}
        self._depth = 0
        self.is_closed = False

    def __repr__(self) -> str:
        thread = self._inside.get('thread')
        return '<OneThread %s>' % ('free' if thread is None else 'thread %d' % thread)

    def check_open(self) -> None:
        """Raise ConsumerClosedError once the consumer is closed."""
        if self.is_closed:
            raise ConsumerClosedError('the consumer is closed')

    def __enter__(self) -> None:
        """Enter. Raises: IllegalStateError while another thread is inside."""
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
        """Return True if a thread is inside."""
        thread = self._inside.get('thread')
        return thread is not None and self._is_inside(thread)

    def _is_inside(self, thread: int) -> bool:
        """Return False if an exception kept a thread from running __exit__() on its way out."""
        frames = sys._current_frames()
        if threading.get_ident() not in frames:
            return True  # under gevent ids are those of greenlets, whose frames are not listed
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
