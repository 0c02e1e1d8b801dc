"""What a blocking client knows of the cluster: brokers, topics, leaders, and how that is refreshed.

Owns the maps, what a metadata answer makes of them, and the look-up of leaders. How topics are
spelled, what is kept of a partition and how brokers are asked is the business of the two clients
that stand on it, KafkaClient of 0.9.5 and SimpleClient of 1.x: both kept the same maps and gave the
same errors.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple, Type

from kafka.blocking.exchange import Address
from kafka.blocking.new_topics import (
    are_unknown,
    creates_behind_its_answer,
    wait_for_creation,
    wait_for_leaders,
)
from kafka.blocking.topic_maps import TopicDict, has_exactly
from kafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    ReplicaNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
    error_for_code,
)
from kafka.structs import BrokerMetadata, TopicPartition
from kafka.util import check_number, kafka_bytestring, name_bytes, shown

log = logging.getLogger('kafka.client')

# What is said of a topic and matters to those only who have named it. 0.10.0 lists topics that the
# client may not see among all (seen on 0.10.0.1); 0.9.0.1 and 0.10.2.2 do not.
_OF_ITS_OWN = (
    UnknownTopicOrPartitionError.errno,
    LeaderNotAvailableError.errno,
    TopicAuthorizationFailedError.errno,
)

# What a broker that has just started says of a topic of which it does not know yet, while another
# broker is down: it would create it, and too few are there for its copies (seen on 0.11.0.3; 0.8
# has no code for that).
_NOT_CREATED = (InvalidReplicationFactorError, UnknownError)
#: How often metadata is loaded for a partition while other threads reset it.
_LOADS = 3


class KnownCluster:
    """The part of a blocking client of 0.9.5 or 1.x that knows the cluster."""

    # The kind of the maps' keys, and those errors of a leader's look-up that become the answer for
    # its payload; the others pass through.
    PARTITION: Type[TopicPartition]
    FAILED_LOOKUPS: Tuple[Type[KafkaError], ...]

    def _know_nothing(self) -> None:
        """Begin with empty maps."""
        self.brokers: Dict[int, Any] = {}
        self.topics_to_brokers = TopicDict()
        self.topic_partitions = TopicDict()
        self._metadata_from: Optional[Address] = None
        self._without_zookeeper: Set[Optional[Address]] = set()
        self._unavailable: Optional[KafkaUnavailableError] = None

    # -- what the client brings --------------------------------------------------------------------

    def _name(self, name: Any, argument: str) -> Any:
        """Return a topic in the client's spelling; TypeError naming the argument for no name."""
        raise NotImplementedError

    def _kept(self, meta: Any) -> Any:
        """Return what topic_partitions holds for a PartitionMetadata."""
        raise NotImplementedError

    def _leader_id(self, kept: Any) -> int:
        """Return the leader's id, given what topic_partitions holds."""
        raise NotImplementedError

    def _ask_metadata(self, names: List[Any]) -> Any:
        """Ask any broker about topics; return brokers and topics as the named tuples."""
        raise NotImplementedError

    def _refresh_new_topic(self, topic: Any) -> None:
        """Load the metadata of a topic that may be coming into being."""
        raise NotImplementedError

    def _versions_of(self, address: Optional[Address]) -> Mapping[int, Tuple[int, int]]:
        """Return what the broker at an address speaks; empty where only a request can tell."""
        raise NotImplementedError

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Ask for the brokers and for these topics (all without arguments) and remember them."""
        raise NotImplementedError

    def send_offset_request(
        self, payloads: Any = (), fail_on_error: bool = True, callback: Any = None
    ) -> List[Any]:
        """Ask for offsets of the log."""
        raise NotImplementedError

    # -- topics ----------------------------------------------------------------------------------

    @property
    def topics(self) -> List[Any]:
        """The known topics, as decoded."""
        return list(self.topic_partitions)

    def has_metadata_for_topic(self, topic: Any) -> bool:
        """Tell whether at least one partition of a topic is known, with a leader or without."""
        return bool(self.topic_partitions.get(self._name(topic, 'topic')))

    def get_partition_ids_for_topic(self, topic: Any) -> List[int]:
        """Return the partitions of a topic in order; ``[]`` for an unknown topic."""
        return sorted(self.topic_partitions.get(self._name(topic, 'topic')) or ())

    def reset_topic_metadata(self, *topics: Any) -> None:
        """Forget topics; a topic is meant in exactly this spelling, str or bytes."""
        for topic in topics:
            if has_exactly(self.topic_partitions, topic):
                for partition in self.topic_partitions.pop(topic, ()):
                    self.topics_to_brokers.pop(self.PARTITION(topic, partition), None)

    def reset_all_metadata(self) -> None:
        """Forget all topics; brokers stay known."""
        self.topics_to_brokers.clear()
        self.topic_partitions.clear()
        self._without_zookeeper.clear()

    def ensure_topic_exists(self, topic: Any, timeout: float = 30) -> None:
        """Wait until a topic has metadata; asking creates it where brokers create topics so.

        Arguments: topic: str or bytes; timeout: seconds.
        Raises: KafkaTimeoutError when the time is over (at once for 0);
            UnknownTopicOrPartitionError where brokers do not create topics on demand; otherwise as
            load_metadata_for_topics, but for LeaderNotAvailableError.
        """
        self._name(topic, 'topic')
        check_number(timeout, 'timeout')
        deadline = time.monotonic() + timeout
        pause = 0.0
        while not self.has_metadata_for_topic(topic):
            left = deadline - time.monotonic()
            if not left > 0:  # NaN is over at once
                raise KafkaTimeoutError('topic %r has no metadata after %s s' % (topic, timeout))
            if pause:
                time.sleep(min(pause, left))
            pause = 0.5
            self._refresh_new_topic(topic)

    # -- metadata --------------------------------------------------------------------------------

    def _load(self, names: List[Any], excused: Tuple[int, ...] = ()) -> None:
        """Ask for the brokers and for these topics (all if there are none) and remember them.

        Arguments: excused: codes that are no error even of a topic that is named here.
        """
        if names:
            self.reset_topic_metadata(*names)
        else:
            self.reset_all_metadata()
        spelled = [name_bytes(name, 'topics') for name in names]
        response = self._ask_metadata(names)
        created = False
        if are_unknown(spelled, response) and creates_behind_its_answer(
            self._versions_of(self._metadata_from)
        ):
            response = wait_for_creation(spelled, response, lambda _: self._ask_metadata(names))
            created = not are_unknown(spelled, response)
        self.brokers = {broker.nodeId: broker for broker in response.brokers}
        failure = None
        for topic in response.topics:
            code = topic.error
            if not code:
                self._remember_topic(topic)
            elif code in excused:
                log.debug('no metadata for topic %s yet', shown(topic.topic))
            elif code in _OF_ITS_OWN and kafka_bytestring(topic.topic) not in spelled:
                what = shown(topic.topic), error_for_code(code).message
                log.error('no metadata for topic %s: %s', *what)
            else:
                failure = failure or error_for_code(code)(topic)
        if failure is not None:
            raise failure
        if created and not wait_for_leaders(self._led(names), self.send_offset_request):
            self._load(names, excused)

    def _led(self, topics: List[Any]) -> List[Any]:
        """Return the partitions of topics that have leaders, as far as it is known."""
        partitions = [
            self.PARTITION(t, p) for t in topics for p in self.topic_partitions.get(t, ())
        ]
        return [key for key in partitions if self.topics_to_brokers.get(key) is not None]

    def _remember_topic(self, topic: Any) -> None:
        partitions: Dict[int, Any] = {}
        for meta in topic.partitions:
            partitions[meta.partition] = self._kept(meta)
            leader: Optional[Any] = None
            if meta.error not in (0, ReplicaNotAvailableError.errno):
                what = shown(topic.topic), meta.partition, meta.error
                log.warning('%s:%s has error %s', *what)
            if meta.error != LeaderNotAvailableError.errno and meta.leader != -1:
                leader = self._broker(meta.leader)
            self.topics_to_brokers[self.PARTITION(topic.topic, meta.partition)] = leader
        # At once: another thread that finds some of the partitions takes them for all.
        self.topic_partitions[topic.topic] = partitions

    def _broker(self, node_id: int) -> Any:
        return self.brokers.get(node_id, BrokerMetadata(node_id, None, None))

    # -- leaders ---------------------------------------------------------------------------------

    def _get_leader_for_partition(self, topic: Any, partition: int) -> Any:
        """Return the BrokerMetadata of a partition's leader, asking for it if need be.

        Raises: UnknownTopicOrPartitionError, LeaderNotAvailableError, KafkaUnavailableError.
        """
        leader = self.topics_to_brokers.get((topic, partition))
        if leader is not None:
            return leader
        key = self.PARTITION(topic, partition)
        unavailable = self._unavailable  # looked at once: another thread may take it away
        if unavailable is not None:
            # Another payload of this call has just found no host: do not wait for that again.
            raise KafkaUnavailableError(*unavailable.args)
        for _ in range(_LOADS):
            try:
                self.load_metadata_for_topics(topic)
            except _NOT_CREATED as error:
                raise LeaderNotAvailableError(key) from error
            partitions = self.topic_partitions.get(topic) or {}
            if partitions:  # else another thread, which lost its broker, has reset all metadata
                break
        if partition not in partitions:
            raise UnknownTopicOrPartitionError(key)
        if self._leader_id(partitions[partition]) == -1:
            raise LeaderNotAvailableError(key)
        return self._broker(self._leader_id(partitions[partition]))

    def _leaders(self, payloads: List[Any]) -> List[Tuple[Any, Any]]:
        """Return (payload, leader) pairs; the error itself where the look-up failed that way."""
        found: List[Tuple[Any, Any]] = []
        try:
            for payload in payloads:
                try:
                    leader = self._get_leader_for_partition(payload.topic, payload.partition)
                except self.FAILED_LOOKUPS as error:
                    what = shown(payload.topic), payload.partition, error
                    log.warning('no leader for %s:%s: %s', *what)
                    leader = error
                    if isinstance(error, KafkaUnavailableError):
                        self._unavailable = error
                found.append((payload, leader))
        finally:
            self._unavailable = None
        return found
