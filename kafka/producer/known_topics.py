"""The topics that an accumulator has queues for, and which of them nobody uses any more.

Owns the table and when a topic leaves it (KIP-526). Part of
:mod:`kafka.producer.record_accumulator`, whose lock guards it.

A thread may have got the queue of a topic, and put its first record there only after the topic was
forgotten, having waited for memory meanwhile. So who puts records asks for the queue once more: one
that is out of the table comes back, unless another has taken its place.
"""

from __future__ import annotations

from typing import Any, Callable, Collection, Deque, Dict, Iterable, List, Optional

from kafka.partitioner.sticky import UniformSticky
from kafka.producer.plans import Limits
from kafka.producer.topic_queue import NO_BATCH, TopicQueue
from kafka.structs import TopicPartition

# What part of the memory a box may have beyond it.
_BOX_SHARE = 8


class KnownTopics:
    """The part of an accumulator that knows its topics."""

    limits: Limits
    lock: Any
    patiently: Any
    is_changing: bool
    waiting_deferred: Deque[Any]
    _topics: Dict[Any, TopicQueue]

    def _settle(self) -> None:
        raise NotImplementedError

    def _begin(self) -> None:
        raise NotImplementedError

    def topic(self, name: Any) -> TopicQueue:
        """Return the queue of a topic."""
        found = self._topics.get(name)
        if found is None:
            sticky = UniformSticky(max(self.limits.batch_size, 1), self.limits.adaptive)
            made = TopicQueue(name, sticky)
            # What is in a box is counted as memory when it comes out of there: so not too much.
            made.boxed_size = min(made.boxed_size, self.limits.record_size)
            share = self.limits.buffer_memory // _BOX_SHARE
            made.most_boxed = max(1, min(made.most_boxed, share // max(made.boxed_size, 1)))
            found = self._topics.setdefault(name, made)  # one step, so without the lock
        found.is_used = True
        return found

    def topics(self) -> List[TopicQueue]:
        """Return the queues of all topics."""
        return list(self._topics.values())

    def update(
        self, topic: TopicQueue, partitions: Iterable[int], available: Iterable[int]
    ) -> None:
        """Note which partitions a topic has, and which have a leader. Raises KafkaTimeoutError."""
        ascending, led = sorted(partitions), sorted(available)
        with self.patiently:
            self._begin()
            topic.update(ascending, led)
            self.is_changing = False

    def avoid(self, nodes: Collection[int], leader_of: Callable[[Any], Optional[int]]) -> None:
        """Let records without key go to partitions that none of these nodes leads, if there are."""
        with self.lock:
            self._begin()
            for topic in list(self._topics.values()):
                name = topic.topic
                topic.avoid(
                    [p for p in topic.partitions if leader_of(TopicPartition(name, p)) in nodes]
                )
            self.is_changing = False

    def forget_idle(self, now: float, idle: float) -> List[Any]:
        """Forget the topics that got no record for some time; return their names.

        Arguments: now: monotonic seconds; idle: seconds, counted from the call that first finds
        nothing new, so that it must come more often than that.
        """
        forgotten = []
        with self.lock:
            self._begin()
            for topic in list(self._topics.values()):
                name = topic.topic
                if topic.is_used or not _is_at_rest(topic):
                    topic.is_used, topic.idle_since = False, now
                elif topic.idle_since + idle <= now:
                    topic.is_forgotten = True
                    del self._topics[name]
                    forgotten.append(name)
            self.is_changing = False
        return forgotten

    def _present(self, topic: TopicQueue) -> TopicQueue:
        """Return the queue that a topic has now, for one that was forgotten; the lock is held."""
        present = self._topics.setdefault(topic.topic, topic)
        present.is_forgotten = False
        if present is not topic:
            if not present.partitions:
                present.update(topic.partitions, topic.available)
            # A value that a thread was about to put into the box when that was watched last.
            present.box_time = max(present.box_time, topic.box_time)
            count = len(topic.box)  # more may come now, of which watch_box() hears
            present.box += topic.box[:count]
            del topic.box[:count]
        return present


def _is_at_rest(topic: TopicQueue) -> bool:
    """Tell whether nothing of a topic waits or is under way."""
    return not (topic.box or topic.is_watched) and all(
        queue.open is NO_BATCH and not queue.waiting and not queue.in_flight
        for queue in topic.queues.values()
    )
