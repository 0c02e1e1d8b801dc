"""What was fetched and waits for the program, in order, and how many bytes it takes.

Owns: the queue of what was fetched, what waits aside because its partition is paused, and the
budget of bytes. Does not own: the records inside (completed_fetch.py), who is asked for more
(manager.py). Pure; all of it under the consumer's lock.

The records of one answer are views into the same bytes. So an answer counts with all its bytes
until the last of its fetches is done with, and the budget holds for the memory that is in use, not
for what the program has yet to see.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Set

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.structs import TopicPartition

__all__ = ['ParkedFetches']


class _Answer:
    """The bytes that several fetches share."""

    __slots__ = ('left', 'size_bytes')

    def __init__(self, size_bytes: int, left: int) -> None:
        self.size_bytes = size_bytes
        self.left = left


class ParkedFetches:
    """Fetches in the order in which they came.

    Arguments: budget: bytes; states: gives the state of a partition, None where it is not assigned.

    Attributes: budget; used: bytes of answers that are not done with; reserved: bytes that requests
    in flight may bring.
    """

    def __init__(self, budget: int, states: Callable[[TopicPartition], Any]) -> None:
        self.budget = budget
        self.used = 0
        self.reserved = 0
        self._states = states
        self._queue: Deque[CompletedFetch] = deque()
        self._aside: Dict[TopicPartition, List[CompletedFetch]] = {}
        self._answers: Dict[CompletedFetch, _Answer] = {}
        self._waiting: Dict[int, int] = {}  # by node, what is in the queue and was never taken
        self._begun: Set[CompletedFetch] = set()
        self._is_relieved = False

    def __repr__(self) -> str:
        return '<ParkedFetches %d, %d partitions aside, %d of %d bytes>' % (
            len(self._queue),
            len(self._aside),
            self.used,
            self.budget,
        )

    @property
    def free(self) -> int:
        """How many bytes may be asked for now; negative after answers that were too large."""
        return self.budget - self.used - self.reserved

    @property
    def is_quiet(self) -> bool:
        """Whether first() and take_relief() surely have nothing to tell."""
        return not self._queue and not self._is_relieved

    def waiting(self, node_id: int) -> int:
        """Return how many fetches from a node wait for the program to begin with them.

        Those aside do not count.
        """
        return self._waiting.get(node_id, 0)

    def take_relief(self) -> bool:
        """Tell whether more may be asked for since this was called last."""
        is_relieved, self._is_relieved = self._is_relieved, False
        return is_relieved

    # ------------------------------------------------------------ coming and going

    def add(self, fetches: Iterable[CompletedFetch]) -> None:
        """Put the fetches of one answer behind the others."""
        fetches = list(fetches)
        answer = _Answer(sum(fetch.size_bytes for fetch in fetches), len(fetches))
        self.used += answer.size_bytes
        for fetch in fetches:
            self._answers[fetch] = answer
            self._queue.append(fetch)
            state = self._states(fetch.partition)
            if state is not None and state.is_stuck:  # nobody knows when it is begun with
                self._begun.add(fetch)
            self._count(fetch, 1)

    def first(self) -> Optional[CompletedFetch]:
        """Return what is next for the program, None for nothing.

        What is stale leaves the queue for good, what is paused until restore().
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
        """Let what others have go before what there is of a partition, whose order stays."""
        mine = [fetch for fetch in self._queue if fetch.partition == partition]
        for fetch in mine:
            self._queue.remove(fetch)
        self._queue.extend(mine)

    def take(self) -> Optional[CompletedFetch]:
        """Hand out what is next; its bytes count until done()."""
        fetch = self.first()
        if fetch is not None:
            self._count(self._queue.popleft(), -1)
            self._begun.add(fetch)
        return fetch

    def put_back(self, fetch: CompletedFetch) -> None:
        """Take back what was handed out and is not emptied; it is the next of its partition."""
        aside = self._aside.get(fetch.partition)
        if aside is not None:
            aside.insert(0, fetch)
        else:
            self._queue.appendleft(fetch)

    def put_off(self, fetch: CompletedFetch) -> None:
        """Take back what could not be handed out; what others have goes before it, once.

        Nobody knows how long it stays: of a batch that cannot be read no other bytes are kept,
        nothing more is asked for of its partition, and for what was, nobody waits.
        """
        state = self._states(fetch.partition)
        if state is not None and state.token == fetch.token:
            state.stick()
        for each in self._queue:
            if each.partition == fetch.partition:
                self._count(each, -1)
                self._begun.add(each)
        fetch.is_put_off = True  # or nobody would be served before somebody sees to it
        if fetch in self._answers and fetch.shed():
            self._release(self._answers[fetch])
            self._answers[fetch] = _Answer(fetch.size_bytes, 1)
            self.used += fetch.size_bytes
        self.put_back(fetch)

    def done(self, fetch: CompletedFetch) -> None:
        """Let go of a fetch; the bytes of its answer are free with the last of them."""
        self._begun.discard(fetch)
        answer = self._answers.pop(fetch, None)
        if answer is not None:
            self._release(answer)

    def _release(self, answer: _Answer) -> None:
        answer.left -= 1
        if not answer.left:
            self.used -= answer.size_bytes
            self._is_relieved = True

    def restore(self, partition: TopicPartition) -> None:
        """Put what waits aside for a partition back in front, unless it still has to wait."""
        state = self._states(partition)
        if state is not None and not state.is_fetchable():
            return
        for fetch in reversed(self._aside.pop(partition, ())):
            self._queue.appendleft(fetch)
            self._count(fetch, 1)

    def drop_aside(self) -> List[TopicPartition]:
        """Let go of all that waits aside, for others starve; return whose it was."""
        partitions = list(self._aside)
        for fetches in self._aside.values():
            for fetch in fetches:
                self.done(fetch)
        self._aside.clear()
        return partitions

    def clear(self) -> None:
        """Let go of everything."""
        self._queue.clear()
        self._aside.clear()
        self._answers.clear()
        self._begun.clear()
        self._waiting.clear()
        self.used = 0

    def _count(self, fetch: CompletedFetch, change: int) -> None:
        if fetch in self._begun:
            return
        left = self._waiting[fetch.node_id] = self._waiting.get(fetch.node_id, 0) + change
        if not left:
            self._is_relieved = True
