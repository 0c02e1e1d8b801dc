"""That one thread at a time is inside a consumer: the guard, and its error.

Owns noticing it. A consumer is not safe for several threads; wakeup(), and reading assignment(),
are the exceptions. Calls of the same thread may nest: a listener commits while poll() goes on.
"""

from __future__ import annotations

import threading
from typing import Any, Optional

from kafka.errors import IllegalStateError

__all__ = ['OneThread']


class OneThread:
    """A context manager that lets one thread in, as often as it likes."""

    __slots__ = ('_depth', '_lock', '_thread')

    def __init__(self) -> None:
        # Guards nothing else: whoever is inside holds it.
        self._lock = threading.Lock()
        self._thread: Optional[int] = None
        self._depth = 0

    def __repr__(self) -> str:
        return '<OneThread %s>' % ('free' if self._thread is None else 'thread %d' % self._thread)

    def __enter__(self) -> None:
        """Come in. Raises: IllegalStateError while another thread is inside."""
        me = threading.get_ident()
        if self._thread != me:
            if not self._lock.acquire(False):
                raise IllegalStateError(
                    'this consumer is being used by thread %s, and thread %d calls it too: a'
                    ' KafkaConsumer is for one thread at a time; wakeup() ends a call of another'
                    % (self._thread, me)
                )
            self._thread = me
        self._depth += 1

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._thread = None
            self._lock.release()
