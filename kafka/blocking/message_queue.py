"""The queue of an asynchronous producer: a ``queue.Queue`` that puts and takes many items at once.

A lock and a wake-up for each message would cost more than sending it (benchmarks/simple.py --only
asynchronous). Everything else is ``queue.Queue``, which programs see.

gevent and eventlet replace that class by queues without ``mutex`` and the conditions. In programs
patched by them, the class is created again from the source of the standard library, and so locks
and waits with the patched ``threading``.
"""

from __future__ import annotations

import importlib.util
import queue
import threading
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

__all__ = ['Empty', 'End', 'Full', 'MessageQueue']


def _as_in_the_library() -> Any:
    """Return the module queue, or an unpatched copy of it if its classes were replaced."""
    if queue.Queue.__module__ == 'queue' and hasattr(queue.Queue, '_put'):
        return queue
    spec = importlib.util.find_spec('queue')
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


if TYPE_CHECKING:
    from queue import Empty, Full

    _Base = queue.Queue[Any]
else:
    _library = _as_in_the_library()
    Empty, Full, _Base = _library.Empty, _library.Full, _library.Queue


class MessageQueue(_Base):
    """A Queue of (target, message, key) with two additional methods, put_all() and take().

    Its lock is reentrant: a signal handler may stop the producer while the same thread is putting a
    message, and the thread that takes may be the one that garbage-collects a producer.
    """

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self.mutex: Any = threading.RLock()
        self.not_empty = threading.Condition(self.mutex)
        self.not_full = threading.Condition(self.mutex)
        self.all_tasks_done = threading.Condition(self.mutex)

    def put_all(self, items: Sequence[Any]) -> int:
        """Put as many items as fit now, in order; return their number."""
        with self.mutex:
            room = len(items)
            if self.maxsize > 0:
                room = max(0, min(room, self.maxsize - len(self.queue)))
            self.queue.extend(items[:room])
            self.unfinished_tasks += room
            self.not_empty.notify(room)
        return room

    def take(self, most: int, mark: Any) -> List[Any]:
        """Return up to `most` queued items, ending with one that begins with `mark`.

        Arguments: most: at least 0.
        """
        taken: List[Any] = []
        with self.mutex:
            waiting = self.queue
            while len(taken) < most and waiting:
                taken.append(waiting.popleft())
                if taken[-1][0] == mark:
                    break
            self.not_full.notify(len(taken))
        return taken


class End:
    """An Event whose wait() releases the mutex even if the waiting thread already held it.

    Arguments: mutex: a reentrant lock, such as that of a MessageQueue.
    """

    def __init__(self, mutex: Any) -> None:
        self._is_set = False
        self._condition = threading.Condition(mutex)

    def set(self) -> None:
        """Set the event and wake the waiting threads."""
        with self._condition:
            self._is_set = True
            self._condition.notify_all()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is set, at most `timeout` seconds (None: forever); return True if it is."""
        with self._condition:
            return self._is_set or self._condition.wait(timeout) or self._is_set
