"""Values sent without key and future: each topic has a box where they wait for up to a millisecond.

Used by :mod:`kafka.producer.record_accumulator`, which puts the values of a box into batches. Its
lock is held for everything here. A sending thread takes no lock to put a value into a box
(:mod:`kafka.producer.kafka`), and may therefore do so just after the box was emptied for the last
time. So that no value is forgotten there, the sending thread checks *after* it has put a value
whether the box is still watched; and ``unwatch()`` marks the box as unwatched *before* it checks
whether the box is empty. At least one of the two sees the other.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from kafka.producer.many_records import Many, RecordGroup, ends_of
from kafka.producer.topic_queue import TopicQueue

__all__ = ['FireAndForgetQueue']

# How much of buffer_memory the values of one box may take: they count only once they are in a
# batch.
_BOX_SHARE = 8


class FireAndForgetQueue:
    """The boxes of all topics.

    Arguments: buffer_memory: bytes of the producer; record_size: bytes of key and value that every
    record may have.

    Attributes: topics: those whose box is watched, in order (read without the lock).
    """

    def __init__(self, buffer_memory: int, record_size: int) -> None:
        self._share = buffer_memory // _BOX_SHARE
        self._record_size = record_size
        self.topics: Dict[TopicQueue, None] = {}

    def __repr__(self) -> str:
        return '<FireAndForgetQueue of %d topics>' % len(self.topics)

    def fit(self, topic: TopicQueue) -> None:
        """Limit how much the box of a new topic takes."""
        topic.boxed_size = min(topic.boxed_size, self._record_size)
        topic.most_boxed = max(1, min(topic.most_boxed, self._share // max(topic.boxed_size, 1)))

    def watch(self, topic: TopicQueue) -> None:
        """Have a box emptied by the next look of the sender."""
        topic.is_watched = True
        self.topics[topic] = None

    def unwatch(self, topic: TopicQueue) -> bool:
        """Stop watching a box; return False, and go on, if a value has arrived meanwhile."""
        topic.is_watched = False
        if not topic.box:
            del self.topics[topic]
            return True
        topic.is_watched = True
        return False

    def take_out(self, topic: TopicQueue, overhead: int) -> Many:
        """Take the values out of a box that is not empty, on their way into batches.

        They stay in the box as one RecordGroup until restore(). Arguments: overhead: bytes that a
        record needs besides its value.
        """
        box = topic.box
        count = len(box)
        values = box[:count]
        many = Many(topic, (), topic.box_time)
        group = RecordGroup(None, None, values, None, ends_of(list(map(len, values)), overhead))
        many.groups.append(group)
        # In one step, so that an exception neither loses a value nor doubles it.
        box[:count] = [group]
        return many

    def restore(self, topic: TopicQueue) -> None:
        """Put back the values that were taken out and are in no batch; also after an exception."""
        if topic.box and isinstance(topic.box[0], RecordGroup):
            topic.box[:1] = topic.box[0].unplaced()

    def drop(self) -> List[Tuple[TopicQueue, int]]:
        """Empty all boxes and stop watching them; return how many values each topic had."""
        dropped = []
        for topic in self.topics:
            topic.is_watched = False
            count = len(topic.box)
            if count:
                dropped.append((topic, count))
                del topic.box[:count]  # a thread that adds one now sees it unwatched
        self.topics.clear()
        return dropped
