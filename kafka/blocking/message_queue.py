"""The queue of an asynchronous producer: a Queue that takes and gives many at once.

Owns these two methods, and how the end of who takes is waited for. A lock and a wake-up for each
message would cost more than sending it (benchmarks/simple.py --only asynchronous); everything else
is ``queue.Queue``, which programs see.

gevent and eventlet put queues of their own in the place of that class, without ``mutex`` and its
kin. In programs that they patched the class is made anew from the library's source, where it locks
and waits by what they made of ``threading``.
"""

from __future__ import annotations

import importlib.util
import queue
import threading
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

__all__ = ['Empty', 'End', 'Full', 'MessageQueue']


def _as_in_the_library() -> Any:
    """Return the module queue, a copy of it if its classes were replaced."""
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
    """A Queue of (target, message, key); all of it is as in ``queue``, and two methods more.

    Its lock is a reentrant one. Sequence: the program puts a message; the handler of a signal, in
    the same thread, stops the producer. Or a producer is collected by the thread that takes.
    """

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self.mutex: Any = threading.RLock()
        self.not_empty = threading.Condition(self.mutex)
        self.not_full = threading.Condition(self.mutex)
        self.all_tasks_done = threading.Condition(self.mutex)

    def put_all(self, items: Sequence[Any]) -> int:
        """Put as many items as there is room for now, in their order; return how many."""
        with self.mutex:
            room = len(items)
            if self.maxsize > 0:
                room = max(0, min(room, self.maxsize - len(self.queue)))
            self.queue.extend(items[:room])
            self.unfinished_tasks += room
            self.not_empty.notify(room)
        return room

    def take(self, most: int, mark: Any) -> List[Any]:
        """Return up to so many items that are there now; one that begins with the mark is the last.

        Arguments: most: how many, at least 0.
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
    """An Event with a lock that who waits lets go of, although it had it before.

    Arguments: mutex: a reentrant lock, such as a MessageQueue has.
    """

    def __init__(self, mutex: Any) -> None:
        self._is_set = False
        self._condition = threading.Condition(mutex)

    def set(self) -> None:
        """Set it, and wake who waits."""
        with self._condition:
            self._is_set = True
            self._condition.notify_all()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is set, `timeout` seconds at most (None: ever); return whether it is."""
        with self._condition:
            return self._is_set or self._condition.wait(timeout) or self._is_set
