"""SimpleProducer: the producer of 0.9.5 that uses the partitions of a topic in turn."""

from __future__ import annotations

import logging
import random
from itertools import cycle
from typing import Any, Dict, Iterator, List

from kafka.producer.base import Producer
from kafka.util import name_for, takes_names_as_given, whole_number

log = logging.getLogger('kafka.producer.simple')


class SimpleProducer(Producer):
    """Send the messages of each call to the next partition of their topic (0.9.5).

    Arguments: those of Producer; random_start: begin with any partition of a topic (True) or with
    its lowest (False).
    """

    def __init__(self, *args: Any, random_start: bool = True, **kwargs: Any) -> None:
        self.partition_cycles: Dict[Any, Iterator[int]] = {}
        self.random_start = random_start
        super().__init__(*args, **kwargs)

    def _next_partition(self, topic: Any) -> int:
        if topic not in self.partition_cycles:
            partitions = self._partitions_of(topic)
            start = random.randrange(len(partitions)) if self.random_start else 0
            self.partition_cycles[topic] = cycle(partitions[start:] + partitions[:start])
        return next(self.partition_cycles[topic])

    def _load_topic(self, topic: Any) -> None:
        """Load the metadata of a new topic; with a client of 1.x, wait until the topic exists."""
        if takes_names_as_given(self.client):
            self.client.ensure_topic_exists(topic)
        else:
            super()._load_topic(topic)

    def send_messages(self, topic: Any, *msg: bytes) -> List[Any]:  # type: ignore[override]
        """Send messages to the next partition of a topic, all to the same one.

        Arguments: topic: str or bytes; msg: bytes each, or str in text mode
        (kafka.util.set_text_mode).
        Returns: a list with one ProduceResponse; empty with req_acks=0 or without messages.
        Raises: TypeError naming the argument of a wrong type; UnknownTopicOrPartitionError or
        LeaderNotAvailableError for a topic that does not exist (yet); otherwise as Producer.
        """
        topic = name_for(self.client, topic)
        msg, _ = self._as_bytes(msg, None)
        partition = self._next_partition(topic)
        if type(self)._send_messages is _SEND_MESSAGES and '_send_messages' not in vars(self):
            # As _send_messages(), without repeated checks: benchmarks/simple.py --only produce.
            return self._send_checked(topic, whole_number(partition, 'partition'), msg, None)
        return self._send_messages(topic, partition, *msg)


# To detect whether a program has replaced the method; only then it has to be called.
_SEND_MESSAGES = Producer._send_messages
