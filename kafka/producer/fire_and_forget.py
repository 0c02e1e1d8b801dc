"""Boxes: where values wait that are sent without key and future, for a millisecond at most.

Owns how they come out of there: into batches, in order, or not at all and counted. Part of
:mod:`kafka.producer.record_accumulator`, whose lock is held for all of it but for putting a value
into a box, which is the whole of what a sending thread does (:mod:`kafka.producer.sending`).

A thread may be about to put a value into a box that is emptied meanwhile for the last time. So who
puts looks afterwards whether the box is still watched, and who stops watching says so and then
looks whether it is empty: one of them sees the other.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from kafka.errors import KafkaError
from kafka.producer.bounded_lock import LockBusyError
from kafka.producer.buffer import BufferMemory, Ticket
from kafka.producer.known_topics import KnownTopics
from kafka.producer.many_records import Group, Many, ends_of
from kafka.producer.topic_queue import NO_BATCH, TopicQueue

# So many may be filled before anything of theirs is counted as memory.
_MOST_BOXES = 4


def restore_box(topic: TopicQueue) -> None:
    """Put back what was taken out of a box, and is not in a batch."""
    if topic.box and isinstance(topic.box[0], Group):
        topic.box[:1] = topic.box[0].unplaced()


class Boxes(KnownTopics):
    """The part of an accumulator that has to do with boxes."""

    memory: BufferMemory
    overhead: int
    _soon: Any
    _wake: Callable[[], None]
    _looks: int
    _woken_at: int
    # Topics with a box that may have something in it.
    _boxed: Dict[TopicQueue, None]

    def _check_open(self) -> None:
        raise NotImplementedError

    def is_inside(self) -> bool:
        """Return True if this thread is in the middle of a call that has the lock."""
        raise NotImplementedError

    def _append_group(
        self, many: Many, group: Group, now: float, ticket: Optional[Ticket]
    ) -> Optional[Ticket]:
        raise NotImplementedError

    def open_box(
        self, topic: TopicQueue, wall: float, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Let values without key be put into the box for the next millisecond.

        What is in it goes into batches first. Returns, raises: as append_many(); LockBusyError
        where a record has to be deferred.
        """
        if self.is_inside():
            raise LockBusyError
        with self._soon:
            if self.is_changing or self.waiting_deferred:
                self._settle()
            self._check_open()
            self.is_changing = True
            if topic.is_forgotten:
                topic = self._present(topic)
            ticket = self._sweep_some(topic, now, ticket)
            if ticket is None:
                topic.batch = NO_BATCH  # what is sent with a future must not overtake
                topic.box_time = int(wall * 1000)
                topic.box_until = now + 0.001
                self._watch(topic)
            looks, self.is_changing = self._looks, False
        if looks != self._woken_at:
            self._wake()
            self._woken_at = looks
        return ticket

    def watch_box(self, topic: TopicQueue) -> None:
        """Look into a box once more: something was put there that nobody watched any more.

        Raises: as append_many(): that will not be sent.
        """
        try:
            if self.is_inside():
                raise LockBusyError
            with self._soon:
                if self.is_changing or self.waiting_deferred:
                    self._settle()
                try:
                    self._check_open()
                except KafkaError:
                    if not topic.is_watched:
                        topic.box.clear()  # of those who came too late, each of whom is told
                    raise
                self.is_changing = True
                if topic.is_forgotten:
                    topic = self._present(topic)
                if topic.box:
                    self._watch(topic)
                self.is_changing = False
        except LockBusyError:
            self.waiting_deferred.append(topic)
        self._wake()

    def _watch(self, topic: TopicQueue) -> None:
        topic.is_watched = True
        self._boxed[topic] = None

    def sweep(self, now: float, ticket: Optional[Ticket] = None) -> Optional[Ticket]:
        """Put what is in all boxes into batches. Returns: as append_many()."""
        with self.patiently:
            self._begin()
            for topic in list(self._boxed):
                if topic.box:
                    ticket = self._sweep(topic, now, ticket)
                    if ticket is not None:
                        break
            else:
                if ticket is not None:
                    self.memory.leave(ticket)
                    ticket = None
            self.is_changing = False
            return ticket

    def _sweep_some(
        self, topic: TopicQueue, now: float, ticket: Optional[Ticket]
    ) -> Optional[Ticket]:
        """Put what is in a box into batches; that of all boxes where there are many of them."""
        if len(self._boxed) > _MOST_BOXES:
            for other in list(self._boxed):
                if other.box and other is not topic:
                    ticket = self._sweep(other, now, ticket)
                    if ticket is not None:
                        return ticket
        return self._sweep(topic, now, ticket)

    def _sweep(
        self, topic: TopicQueue, now: float, ticket: Optional[Ticket] = None
    ) -> Optional[Ticket]:
        """Put what is in the box into batches; the lock is held."""
        box = topic.box
        count = len(box)
        if not count:
            if ticket is not None:
                self.memory.leave(ticket)
            return None
        values = box[:count]
        many = Many(topic, (), topic.box_time)
        group = Group(None, None, values, None, ends_of(list(map(len, values)), self.overhead))
        # In one step, so that an exception neither loses nor doubles any: see restore_box().
        box[:count] = [group]
        ticket = self._append_group(many, group, now, ticket)
        for placed in many.placed:
            placed.batch.is_unasked = True
        restore_box(topic)
        return ticket

    def _sweep_all(self, now: float) -> None:
        """Put what is in all boxes into batches as far as there is memory; the lock is held."""
        for topic in list(self._boxed):
            while True:
                ticket = self._sweep(topic, now)
                if ticket is not None:
                    self.memory.leave(ticket)
                    break
                if topic.box_until > now:
                    break
                topic.is_watched = False
                if not topic.box:
                    del self._boxed[topic]
                    break
                topic.is_watched = True

    def drop_boxes(self) -> List[Tuple[TopicQueue, int]]:
        """Throw away what is in the boxes; return how much it was for each topic."""
        dropped = []
        with self.lock:
            self._begin()
            for topic in self._boxed:
                topic.is_watched = False
                count = len(topic.box)
                if count:
                    dropped.append((topic, count))
                    del topic.box[:count]  # who puts more there sees that nobody watches
            self._boxed.clear()
            self.is_changing = False
        return dropped
