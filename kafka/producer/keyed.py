"""KeyedProducer: the producer of 0.9.5 that chooses the partition by the key of a message."""

from __future__ import annotations

import logging
import warnings
from typing import Any, Dict, List, Optional

from kafka.errors import LeaderNotAvailableError
from kafka.partitioner import HashedPartitioner, LegacyPartitioner, Murmur2Partitioner
from kafka.producer.base import Producer
from kafka.util import name_for, takes_names_as_given

log = logging.getLogger('kafka.producer.keyed')


class KeyedProducer(Producer):
    """Send messages to the partition that a partitioner chooses for their key (0.9.5).

    Arguments: those of Producer; partitioner: a class; its instances are made with the partition
    ids of a topic, and ``partition(key)`` returns one of them. ``partitioners`` has one per topic.

    Raises: TypeError for a partitioner that cannot be called; otherwise as Producer.
    """

    def __init__(self, *args: Any, partitioner: Any = HashedPartitioner, **kwargs: Any) -> None:
        if partitioner is not None and not callable(partitioner):
            raise TypeError('partitioner must be a class, not %s' % type(partitioner).__name__)
        self.partitioner_class = partitioner or HashedPartitioner
        self.partitioners: Dict[Any, Any] = {}
        super().__init__(*args, **kwargs)

    def _next_partition(self, topic: Any, key: Optional[bytes]) -> int:
        if topic not in self.partitioners:
            self.partitioners[topic] = self.partitioner_class(self._partitions_of(topic))
        partition: int = self.partitioners[topic].partition(key)
        return partition

    def _load_topic(self, topic: Any) -> None:
        """Load the metadata of a new topic; LeaderNotAvailableError while it is being created."""
        super()._load_topic(topic)
        if takes_names_as_given(self.client) and not self.client.has_metadata_for_topic(topic):
            raise LeaderNotAvailableError('topic %r is being created' % (topic,))

    def send_messages(  # type: ignore[override]
        self, topic: Any, key: Optional[bytes], *msg: Optional[bytes]
    ) -> List[Any]:
        """Send messages with one key to the partition of that key.

        Arguments: topic: str or bytes; key: bytes or None; msg: bytes each, or None with a key. In
        text mode (kafka.util.set_text_mode) key and messages may be str.
        Returns: a list with one ProduceResponse; empty with req_acks=0 or without messages.
        Raises: TypeError naming the argument of a wrong type; UnknownTopicOrPartitionError or
        LeaderNotAvailableError for a topic that does not exist (yet); otherwise as Producer.
        """
        topic = name_for(self.client, topic)
        msg, sent_key = self._as_bytes(msg, key)
        # Partitioners of this package hash the bytes, as other clients do. One of the program gets
        # the key as it was passed, which makes a difference in text mode only.
        is_ours = self.partitioner_class in (LegacyPartitioner, Murmur2Partitioner)
        partition = self._next_partition(topic, sent_key if is_ours else key)
        return self._send_messages(topic, partition, *msg, key=sent_key)

    def send(self, topic: Any, key: Optional[bytes], msg: Optional[bytes]) -> List[Any]:
        """Send one message. Deprecated: use send_messages."""
        warnings.warn(
            'KeyedProducer.send is deprecated, use send_messages', DeprecationWarning, stacklevel=2
        )
        return self.send_messages(topic, key, msg)
