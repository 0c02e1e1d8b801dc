"""The buffer_memory of a producer: bytes in use, and the queue of calls that wait for memory.

Used by the accumulator, whose lock guards it. BufferMemory only counts bytes; the records
themselves are in batches. SimpleBufferPool is the pool of 1.x, for programs that use it.

A waiting call holds its ticket, and the queue has a weak reference to it. If an exception ends the
call, at any step, the ticket is deleted, and the memory that was granted to it is released.
"""

from __future__ import annotations

import io
import threading
import weakref
from collections import deque
from typing import Deque, Dict, List, Optional

from kafka.errors import IllegalStateError, KafkaTimeoutError


class Ticket:
    """A place in the queue for memory. Attributes: size: bytes; granted: whether they are taken."""

    __slots__ = ('__weakref__', 'granted', 'size')

    def __init__(self, size: int, granted: bool = False) -> None:
        self.size = size
        self.granted = granted

    def __repr__(self) -> str:
        return '<Ticket %d bytes, %s>' % (self.size, 'granted' if self.granted else 'waits')


#: Returned in place of a ticket when the caller cannot be queued now and has to try again.
AGAIN = Ticket(0)


class BufferMemory:
    """A number of bytes, granted first come, first served.

    A batch that turns out to need more than was granted may exceed the total for a moment; nothing
    is granted until the total is no longer exceeded. Has no lock: the caller holds that of the
    accumulator.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self._waiting: Deque[weakref.ref[Ticket]] = deque()
        # The bytes of each ticket that is granted and not spent yet.
        self._granted: Dict[weakref.ref[Ticket], int] = {}

    def __repr__(self) -> str:
        return '<BufferMemory %d of %d bytes used, %d wait>' % (
            self.used,
            self.total,
            len(self._waiting),
        )

    @property
    def waiting(self) -> int:
        """The number of calls in the queue."""
        return len(self._waiting)

    def take(self, size: int) -> bool:
        """Take bytes if they are free and no call waits; return True if they were taken."""
        if self._waiting or self.used + size > self.total:
            if not (self._waiting or self._granted):
                return False
            self.forget_abandoned()
            if self._waiting or self.used + size > self.total:
                return False
        self.used += size
        return True

    def queue_up(self, size: int) -> Ticket:
        """Return a ticket for a number of bytes, granted at once if they are free."""
        ticket = Ticket(size)
        if self.take(size):
            self._granted[weakref.ref(ticket)] = size
            ticket.granted = True
        else:
            self._waiting.append(weakref.ref(ticket))
        return ticket

    def exceed(self, size: int) -> Ticket:
        """Return a granted ticket, even beyond the total: for records that must not wait."""
        ticket = Ticket(size, True)
        self._granted[weakref.ref(ticket)] = size
        self.used += size
        return ticket

    def spend(self, ticket: Ticket) -> None:
        """Note that the bytes of a ticket belong to a batch now."""
        self._granted.pop(weakref.ref(ticket), None)

    def adjust(self, size: int) -> None:
        """Change the bytes in use by ``size``, which may be negative.

        Raises IllegalStateError if more bytes are released than were taken.
        """
        self.used += size
        if self.used < 0:
            raise IllegalStateError('more memory was given back than taken')
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        waiting = self._waiting
        while waiting:
            ticket = waiting[0]()
            if ticket is not None:
                if self.used + ticket.size > self.total:
                    return
                self._granted[waiting[0]] = ticket.size
                self.used += ticket.size
                ticket.granted = True
            waiting.popleft()

    def release(self, size: int) -> None:
        """Release bytes; the first calls in the queue get them."""
        self.adjust(-size)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket from the queue, and release what was granted to it."""
        own = weakref.ref(ticket)
        ticket.granted = False
        if own in self._waiting:
            self._waiting.remove(own)
        self.adjust(-self._granted.pop(own, 0))  # also of 0: a smaller one may be granted now

    def forget_abandoned(self) -> None:
        """Release what was granted to calls that an exception has ended."""
        if not (self._waiting or self._granted):
            return
        for own in [each for each in self._granted if each() is None]:
            self.adjust(-self._granted.pop(own))
        for own in [each for each in self._waiting if each() is None]:
            self._waiting.remove(own)
        self.adjust(0)

    def recount(self, reserved: int) -> None:
        """Recompute the bytes in use after an interrupted change.

        Arguments: reserved: bytes that all batches have reserved.
        """
        for own in list(self._granted):
            ticket = own()
            if ticket is not None:
                ticket.granted = True
            if own in self._waiting:
                self._waiting.remove(own)
        self.used = reserved + sum(self._granted.values())
        self.forget_abandoned()


class SimpleBufferPool:
    """A pool of buffers of one size (1.x).

    Arguments: memory: bytes of all buffers; poolable_size: bytes of one.
    """

    def __init__(self, memory: int, poolable_size: int) -> None:
        self._poolable_size = poolable_size
        self._left = memory // poolable_size if poolable_size else 0
        self._free: List[io.BytesIO] = []
        self._waiting = 0
        # The condition guards all attributes above.
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return '<SimpleBufferPool of %d bytes, %d left, %d wait>' % (
            self._poolable_size,
            self._left,
            self._waiting,
        )

    def allocate(self, size: int, max_time_to_block_ms: Optional[float]) -> io.BytesIO:
        """Return an empty buffer.

        Arguments: size: bytes that will be written, ignored; max_time_to_block_ms: how long to wait
        until a buffer is returned, None for no limit.
        Raises: KafkaTimeoutError if none was returned in time.
        """
        seconds = None if max_time_to_block_ms is None else max_time_to_block_ms / 1000.0
        with self._changed:
            self._waiting += 1
            try:
                if not self._changed.wait_for(lambda: self._left > 0, seconds):
                    raise KafkaTimeoutError(
                        'no buffer became free within %s ms' % max_time_to_block_ms
                    )
            finally:
                self._waiting -= 1
            self._left -= 1
            return self._free.pop() if self._free else io.BytesIO()

    def deallocate(self, buf: io.BytesIO) -> None:
        """Return a buffer to the pool, which empties it."""
        buf.seek(0)
        buf.truncate()
        with self._changed:
            self._free.append(buf)
            self._left += 1
            self._changed.notify()

    def queued(self) -> int:
        """Return the number of calls that wait for a buffer."""
        return self._waiting
