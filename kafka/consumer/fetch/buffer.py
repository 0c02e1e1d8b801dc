"""The fetch buffer: completed fetches that wait for poll(), and their budget of bytes.

It keeps completed fetches in the order of arrival, those of paused partitions apart, and counts the
bytes, by which the fetch manager limits its requests. All access is under the consumer's lock.

The records of one response are views into the same bytes. A response therefore counts with all its
bytes until the last of its fetches is done: the budget limits the memory in use, not the bytes of
the records that were not returned yet.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Set

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.structs import TopicPartition

__all__ = ['FetchBuffer']


class _SharedBytes:
    """The bytes of a response, which several fetches share."""

    __slots__ = ('left', 'size_bytes')

    def __init__(self, size_bytes: int, left: int) -> None:
        self.size_bytes = size_bytes
        self.left = left


class FetchBuffer:
    """Completed fetches in the order of arrival.

    Arguments: budget: bytes; states: returns the state of a partition, None if not assigned.

    Attributes: budget; used: bytes of responses with fetches that are not done; reserved: bytes
    that the responses to requests in flight may have.
    """

    def __init__(self, budget: int, states: Callable[[TopicPartition], Any]) -> None:
        self.budget = budget
        self.used = 0
        self.reserved = 0
        self._states = states
        self._queue: Deque[CompletedFetch] = deque()
        self._aside: Dict[TopicPartition, List[CompletedFetch]] = {}
        self._shared: Dict[CompletedFetch, _SharedBytes] = {}
        self._waiting: Dict[int, int] = {}  # by node, fetches in the queue that were never taken
        self._begun: Set[CompletedFetch] = set()
        self._is_relieved = False

    def __repr__(self) -> str:
        return '<FetchBuffer %d, %d partitions aside, %d of %d bytes>' % (
            len(self._queue),
            len(self._aside),
            self.used,
            self.budget,
        )

    @property
    def free(self) -> int:
        """The bytes that requests may reserve now; negative after responses larger than that."""
        return self.budget - self.used - self.reserved

    @property
    def is_quiet(self) -> bool:
        """True only if first() would return None and take_relief() False."""
        return not self._queue and not self._is_relieved

    def waiting(self, node_id: int) -> int:
        """Return the number of fetches of a node that were never taken.

        Those of paused partitions do not count.
        """
        return self._waiting.get(node_id, 0)

    def take_relief(self) -> bool:
        """Return True if bytes were released, or a node emptied, since the last call."""
        is_relieved, self._is_relieved = self._is_relieved, False
        return is_relieved

    # ------------------------------------------------------------ adding and taking

    def add(self, fetches: Iterable[CompletedFetch]) -> None:
        """Append the fetches of one response."""
        fetches = list(fetches)
        shared = _SharedBytes(sum(fetch.size_bytes for fetch in fetches), len(fetches))
        self.used += shared.size_bytes
        for fetch in fetches:
            self._shared[fetch] = shared
            self._queue.append(fetch)
            state = self._states(fetch.partition)
            # It may stay for long: the next request to its node must not wait for it.
            if state is not None and state.is_stuck:
                self._begun.add(fetch)
            self._count(fetch, 1)

    def first(self) -> Optional[CompletedFetch]:
        """Return the next fetch, or None.

        Stale fetches are removed, those of paused partitions kept aside until restore().
        """
        queue = self._queue
        while queue:
            fetch = queue[0]
            state = self._states(fetch.partition)
            if state is None or state.token != fetch.token:
                self._count(queue.popleft(), -1)
                self.done(fetch)
            elif not state.is_fetchable():
                self._count(queue.popleft(), -1)
                self._aside.setdefault(fetch.partition, []).append(fetch)
            elif fetch.is_put_off:
                fetch.is_put_off = False
                self._put_behind(fetch.partition)
            else:
                return fetch
        return None

    def _put_behind(self, partition: TopicPartition) -> None:
        """Move the fetches of a partition to the end of the queue, in their order."""
        mine = [fetch for fetch in self._queue if fetch.partition == partition]
        for fetch in mine:
            self._queue.remove(fetch)
        self._queue.extend(mine)

    def next_fetch(self) -> Optional[CompletedFetch]:
        """Remove and return the next fetch, or None; its bytes count until done()."""
        fetch = self.first()
        if fetch is not None:
            self._count(self._queue.popleft(), -1)
            self._begun.add(fetch)
        return fetch

    def put_back(self, fetch: CompletedFetch) -> None:
        """Put back a fetch with records left, as the next of its partition."""
        aside = self._aside.get(fetch.partition)
        if aside is not None:
            aside.insert(0, fetch)
        else:
            self._queue.appendleft(fetch)

    def put_off(self, fetch: CompletedFetch) -> None:
        """Put back a fetch whose next record cannot be returned; others are taken before it, once.

        It may stay for long. So only the bytes of the unreadable batch are kept, no more is fetched
        of its partition, and the next request to its node does not wait for it.
        """
        state = self._states(fetch.partition)
        if state is not None and state.token == fetch.token:
            state.stick()
        for each in self._queue:
            if each.partition == fetch.partition:
                self._count(each, -1)
                self._begun.add(each)
        fetch.is_put_off = True  # otherwise no other partition would be served
        if fetch in self._shared and fetch.shed():
            self._release(self._shared[fetch])
            self._shared[fetch] = _SharedBytes(fetch.size_bytes, 1)
            self.used += fetch.size_bytes
        self.put_back(fetch)

    def done(self, fetch: CompletedFetch) -> None:
        """Release a fetch; the bytes of its response are free after the last of them."""
        self._begun.discard(fetch)
        shared = self._shared.pop(fetch, None)
        if shared is not None:
            self._release(shared)

    def _release(self, shared: _SharedBytes) -> None:
        shared.left -= 1
        if not shared.left:
            self.used -= shared.size_bytes
            self._is_relieved = True

    def restore(self, partition: TopicPartition) -> None:
        """Move the fetches kept aside for a partition to the front, if it is fetchable."""
        state = self._states(partition)
        if state is not None and not state.is_fetchable():
            return
        for fetch in reversed(self._aside.pop(partition, ())):
            self._queue.appendleft(fetch)
            self._count(fetch, 1)

    def drop_aside(self) -> List[TopicPartition]:
        """Drop all fetches kept aside, to make room for others; return their partitions."""
        partitions = list(self._aside)
        for fetches in self._aside.values():
            for fetch in fetches:
                self.done(fetch)
        self._aside.clear()
        return partitions

    def clear(self) -> None:
        """Drop everything."""
        self._queue.clear()
        self._aside.clear()
        self._shared.clear()
        self._begun.clear()
        self._waiting.clear()
        self.used = 0

    def _count(self, fetch: CompletedFetch, change: int) -> None:
        if fetch in self._begun:
            return
        left = self._waiting[fetch.node_id] = self._waiting.get(fetch.node_id, 0) + change
        if not left:
            self._is_relieved = True
