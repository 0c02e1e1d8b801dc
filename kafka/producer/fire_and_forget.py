"""FireAndForgetQueue: a box for each topic, where values sent without key and future wait for 1 ms.

Used by :mod:`kafka.producer.record_accumulator`, which moves the values of a box into batches, and
whose lock is held during all calls. A sending thread takes no lock to put a value into a box
(:mod:`kafka.producer.kafka`), and may therefore do so just after the box was emptied for the last
time. So that such a value is not forgotten, the sending thread checks *after* it has put a value
whether the box is still watched, and ``unwatch()`` marks the box as unwatched *before* it checks
whether the box is empty. At least one of the two sees the change of the other.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from kafka.producer.many_records import Many, RecordGroup, ends_of
from kafka.producer.topic_queue import TopicQueue

__all__ = ['FireAndForgetQueue']

# The values of one box may take this part of buffer_memory (1/8): they count as used memory only
# once they are in a batch.
_BOX_SHARE = 8


class FireAndForgetQueue:
    """The boxes of all topics.

    Arguments: buffer_memory: bytes of the producer; record_size: the size of key and value in bytes
    that every record may have.

    Attributes: topics: those whose box is watched, in order (read without the lock).
    """

    def __init__(self, buffer_memory: int, record_size: int) -> None:
        self._share = buffer_memory // _BOX_SHARE
        self._record_size = record_size
        self.topics: Dict[TopicQueue, None] = {}

    def __repr__(self) -> str:
        return '<FireAndForgetQueue of %d topics>' % len(self.topics)

    def fit(self, topic: TopicQueue) -> None:
        """Limit the number and the size of the values in the box of a new topic."""
        topic.boxed_size = min(topic.boxed_size, self._record_size)
        topic.most_boxed = max(1, min(topic.most_boxed, self._share // max(topic.boxed_size, 1)))

    def watch(self, topic: TopicQueue) -> None:
        """Have a box emptied by the next pass of the sender."""
        topic.is_watched = True
        self.topics[topic] = None

    def unwatch(self, topic: TopicQueue) -> bool:
        """Stop watching a box; if a value has arrived meanwhile, keep watching and return False."""
        topic.is_watched = False
        if not topic.box:
            del self.topics[topic]
            return True
        topic.is_watched = True
        return False

    def take_out(self, topic: TopicQueue, overhead: int) -> Many:
        """Remove the values from a box that is not empty, to be put into batches.

        They stay in the box as one RecordGroup until restore(). Arguments: overhead: bytes that a
        record needs besides its value.
        """
        box = topic.box
        count = len(box)
        values = box[:count]
        many = Many(topic, (), topic.box_time)
        group = RecordGroup(None, None, values, None, ends_of(list(map(len, values)), overhead))
        many.groups.append(group)
        # One atomic step, so that an exception neither loses nor duplicates a value.
        box[:count] = [group]
        return many

    def restore(self, topic: TopicQueue) -> None:
        """Put back the values that take_out() removed and no batch has; also after an exception."""
        if topic.box and isinstance(topic.box[0], RecordGroup):
            topic.box[:1] = topic.box[0].unplaced()

    def drop(self) -> List[Tuple[TopicQueue, int]]:
        """Empty all boxes and stop watching them; return the number of values of each topic."""
        dropped = []
        for topic in self.topics:
            topic.is_watched = False
            count = len(topic.box)
            if count:
                dropped.append((topic, count))
                del topic.box[:count]  # a thread that adds a value now sees that it is unwatched
        self.topics.clear()
        return dropped
