"""KnownCluster: the brokers, partitions and leaders known to a blocking client.

KafkaClient of 0.9.5 and SimpleClient of 1.x have one each: they fill it from metadata responses and
read it without sending a request. Several threads may use it: one thread may reset a client while
another looks up a leader. There is no lock: each step is a single operation of a dict.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional, Sequence, Type

from kafka.blocking.topic_maps import TopicDict, has_exactly
from kafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    ReplicaNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    error_for_code,
)
from kafka.structs import BrokerMetadata, MetadataResponse, PartitionMetadata, TopicPartition
from kafka.util import kafka_bytestring, shown

log = logging.getLogger('kafka.client')

# Errors of a topic that are raised only for a topic that was requested by name. 0.10.0 lists topics
# that the client may not see among all (seen on 0.10.0.1); 0.9.0.1 and 0.10.2.2 do not.
_OF_ITS_OWN = (
    UnknownTopicOrPartitionError.errno,
    LeaderNotAvailableError.errno,
    TopicAuthorizationFailedError.errno,
)


class KnownCluster:
    """The brokers, partitions and leaders in the last metadata responses.

    Arguments: partition_type: the class of the keys of `topics_to_brokers`; value_of: makes the
    values of `topic_partitions` from a PartitionMetadata, such as its leader's id.

    Attributes: brokers: {node id: BrokerMetadata}; topic_partitions: {topic: {partition: value}};
    topics_to_brokers: {topic and partition: BrokerMetadata, or None without a leader}.
    """

    def __init__(
        self, partition_type: Type[TopicPartition], value_of: Callable[[PartitionMetadata], Any]
    ) -> None:
        self.brokers: Dict[int, BrokerMetadata] = {}
        self.topics_to_brokers = TopicDict()
        self.topic_partitions = TopicDict()
        self._partition_type = partition_type
        self._value_of = value_of

    def __repr__(self) -> str:
        return '<KnownCluster of %d brokers, %d topics>' % (
            len(self.brokers),
            len(self.topic_partitions),
        )

    def key(self, topic: Any, partition: int) -> TopicPartition:
        """Return the key of a partition in `topics_to_brokers`."""
        return self._partition_type(topic, partition)

    def broker(self, node_id: int) -> BrokerMetadata:
        """Return a broker; host and port are None if the cluster did not list it."""
        return self.brokers.get(node_id, BrokerMetadata(node_id, None, None))

    def partitions_with_leader(self, topics: Sequence[Any]) -> List[TopicPartition]:
        """Return the partitions of topics whose leaders are known."""
        keys = [self.key(t, p) for t in topics for p in self.topic_partitions.get(t, ())]
        return [key for key in keys if self.topics_to_brokers.get(key) is not None]

    def forget_topic(self, topic: Any) -> None:
        """Forget one topic, in exactly this spelling, str or bytes."""
        if has_exactly(self.topic_partitions, topic):
            key = self._partition_type
            for partition in self.topic_partitions.pop(topic, ()):
                self.topics_to_brokers.pop(key(topic, partition), None)

    def forget_topics(self) -> None:
        """Forget all topics; brokers stay known."""
        self.topics_to_brokers.clear()
        self.topic_partitions.clear()

    def update(
        self, response: MetadataResponse, named: Sequence[bytes], excused: Sequence[int] = ()
    ) -> Optional[KafkaError]:
        """Replace the brokers, add the topics; return the first error to be raised, if any.

        Arguments: named: the topics that were requested by name, encoded; excused: error codes that
        are ignored even for one of these.
        """
        self.brokers = {broker.nodeId: broker for broker in response.brokers}
        failure: Optional[KafkaError] = None
        for topic in response.topics:
            code = topic.error
            if not code:
                self._add(topic)
            elif code in excused:
                log.debug('no metadata for topic %s yet', shown(topic.topic))
            elif code in _OF_ITS_OWN and kafka_bytestring(topic.topic) not in named:
                what = shown(topic.topic), error_for_code(code).message
                log.error('no metadata for topic %s: %s', *what)
            else:
                failure = failure or error_for_code(code)(topic)
        return failure

    def _add(self, topic: Any) -> None:
        partitions: Dict[int, Any] = {}
        key = self._partition_type
        for meta in topic.partitions:
            partitions[meta.partition] = self._value_of(meta)
            leader: Optional[BrokerMetadata] = None
            if meta.error not in (0, ReplicaNotAvailableError.errno):
                what = shown(topic.topic), meta.partition, meta.error
                log.warning('%s:%s has error %s', *what)
            if meta.error != LeaderNotAvailableError.errno and meta.leader != -1:
                leader = self.brokers.get(meta.leader) or self.broker(meta.leader)
            self.topics_to_brokers[key(topic.topic, meta.partition)] = leader
        # In one step: another thread that finds some of the partitions takes them for all.
        self.topic_partitions[topic.topic] = partitions
