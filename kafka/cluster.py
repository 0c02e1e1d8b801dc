"""ClusterMetadata: the metadata of a cluster: brokers, topics, leaders, coordinators.

Responses about all topics replace the metadata, responses about some topics are merged, older
leader epochs are ignored (KIP-320), and leaders named in error responses are applied (KIP-951).
net/pool.py sends the requests; the constructor takes a ``clock``, in monotonic seconds.

Several threads may read while one changes it, without a lock: each change builds new tables and
replaces the old ones in a single assignment, and objects that were returned are never modified.

The public names are those of 1.x to 3.x; the others are for the engine of this package.
"""

from __future__ import annotations

import threading
import time
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    Type,
)

from kafka.errors import (
    InvalidTopicError,
    KafkaError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.future import Future
from kafka.structs import Broker, BrokerMetadata, TopicPartition

__all__ = ['Broker', 'ClusterMetadata', 'PartitionState', 'Update']

NO_ID = bytes(16)
#: From this version of Metadata on, epochs are right also during reassignments (KAFKA-9261).
EPOCHS_FROM_VERSION = 9
#: The error of a partition that does not affect its leader.
_REPLICA_NOT_AVAILABLE = 9

#: If only an older epoch is reported for this number of seconds, it is that of another topic with
#: the same name: before 2.8 topics have no ids.
OLDER_SECONDS = 30.0

GROUP, TRANSACTION, SHARE_GROUP = 0, 1, 2


class PartitionState(NamedTuple):
    """The metadata of a partition: node ids; leader -1: none now; leader_epoch -1: unknown.

    ``error`` is the error code of the partition in the response.
    """

    leader: int
    leader_epoch: int
    replicas: Tuple[int, ...]
    isr: Tuple[int, ...]
    offline_replicas: Tuple[int, ...]
    error: int


class Update(NamedTuple):
    """The changes made by a response."""

    is_news: bool  # whether brokers, partitions, topic ids or the controller changed
    recreated_topics: FrozenSet[str]  # their ids have changed: their logs start again


_Partitions = Dict[int, PartitionState]


class ClusterMetadata:
    """The metadata of a cluster.

    Arguments: the options ``retry_backoff_ms`` and ``metadata_max_age_ms``; others are ignored;
    clock: a function that returns seconds.

    Attributes: config; unauthorized_topics; invalid_topics; internal_topics; controller_id, -1 if
    unknown; cluster_id; need_all_topic_metadata; topic_errors: {topic: error class}, as in the last
    response; deleted_topics: topics that were known and that brokers no longer know;
    update_requested: whether a refresh was requested and is not done.
    """

    DEFAULT_CONFIG: Dict[str, Any] = {
        'retry_backoff_ms': 100,
        'metadata_max_age_ms': 300000,
        'bootstrap_servers': [],
    }

    def __init__(self, clock: Callable[[], float] = time.monotonic, **configs: Any) -> None:
        self.config = {
            name: configs.get(name, default) for name, default in self.DEFAULT_CONFIG.items()
        }
        self.need_all_topic_metadata = False
        self.unauthorized_topics: Set[str] = set()
        self.invalid_topics: Set[str] = set()
        self.internal_topics: Set[str] = set()
        self.topic_errors: Dict[str, Type[KafkaError]] = {}
        self.deleted_topics: FrozenSet[str] = frozenset()
        self.controller_id = -1
        self.cluster_id: Optional[str] = None
        self._clock = clock
        #: The time of the last response; before the first one, that of creation.
        self.refreshed_at = clock()
        self._brokers: Dict[int, Broker] = {}
        self._bootstrap: Dict[Any, Broker] = {}
        #: The partitions of each topic; replaced by a new dict on every change.
        self.partition_states: Dict[str, _Partitions] = {}
        self._topic_ids: Dict[str, bytes] = {}
        self._topic_names: Dict[bytes, str] = {}  # the reverse of _topic_ids
        self._older: Dict[Tuple[str, int], float] = {}  # since when an older epoch is reported
        self._by_broker: Optional[Dict[int, Set[TopicPartition]]] = None
        self._coordinators: Dict[Tuple[int, str], int] = {}
        self._listeners: List[Callable[[ClusterMetadata], Any]] = []
        self._last_refresh = -1e9
        self._last_success = -1e9
        self.update_requested = True
        # Guards the future: any thread may request an update. Reentrant: so may a finalizer.
        self._lock = threading.RLock()
        self._future: Optional[Future] = None

    def __str__(self) -> str:
        groups = sum(kind == GROUP for kind, _ in self._coordinators)
        return 'Cluster(brokers: %d, topics: %d, groups: %d)' % (
            len(self._brokers),
            len(self.partition_states),
            groups,
        )

    __repr__ = __str__

    # ------------------------------------------------------------ brokers

    def brokers(self) -> Set[BrokerMetadata]:
        """Return all brokers; before the first response the bootstrap servers (1.x)."""
        return set(self._brokers.values() or self._bootstrap.values())

    def broker_metadata(self, broker_id: Any) -> Optional[BrokerMetadata]:
        """Return a broker, None if it is unknown."""
        return self._brokers.get(broker_id) or self._bootstrap.get(broker_id)

    def set_bootstrap(self, servers: Iterable[Tuple[str, int]]) -> None:
        """Set the bootstrap servers, which are listed as brokers until the first response."""
        self._bootstrap = {
            'bootstrap-%d' % number: Broker('bootstrap-%d' % number, host, port)  # type: ignore[arg-type]
            for number, (host, port) in enumerate(servers)
        }

    def is_bootstrap(self, node_id: Any) -> bool:
        """Return True if an id is that of a bootstrap server (2.x)."""
        return node_id in self._bootstrap

    @property
    def controller(self) -> Optional[BrokerMetadata]:
        """The controller, or with KRaft any broker, as in the last response; None if unknown."""
        return self._brokers.get(self.controller_id)

    # ------------------------------------------------------------ topics and partitions

    def topics(self, exclude_internal_topics: bool = True) -> Set[str]:
        """Return the names of all known topics (internal ones on request since 1.3)."""
        names = set(self.partition_states)
        return names - self.internal_topics if exclude_internal_topics else names

    def partitions_for_topic(self, topic: str) -> Optional[Set[int]]:
        """Return the numbers of all partitions, None for an unknown topic."""
        partitions = self.partition_states.get(topic)
        return None if partitions is None else set(partitions)

    def available_partitions_for_topic(self, topic: str) -> Optional[Set[int]]:
        """Return the numbers of the partitions that have a leader, None for an unknown topic."""
        partitions = self.partition_states.get(topic)
        if partitions is None:
            return None
        return {number for number, state in partitions.items() if state.leader != -1}

    def leader_for_partition(self, partition: Tuple[Any, int]) -> Optional[int]:
        """Return the id of the leader, -1 if there is none now, None for an unknown partition."""
        state = self.partition(partition[0], partition[1])
        return None if state is None else state.leader

    def leader_epoch_for_partition(self, partition: Tuple[Any, int]) -> Optional[int]:
        """Return the leader epoch, -1 if not reported, None for an unknown partition (2.1)."""
        state = self.partition(partition[0], partition[1])
        return None if state is None else state.leader_epoch

    def partitions_for_broker(self, broker_id: int) -> Optional[Set[TopicPartition]]:
        """Return the partitions that a broker leads, None if there are none."""
        found = self._by_broker
        if found is None:
            found = {}
            for topic, partitions in self.partition_states.items():
                for number, state in partitions.items():
                    if state.leader != -1:
                        at = TopicPartition(topic, number)
                        found.setdefault(state.leader, set()).add(at)
            self._by_broker = found
        return found.get(broker_id)

    def partition(self, topic: Any, partition: int) -> Optional[PartitionState]:
        """Return the state of a partition, None if it is unknown."""
        return self.partition_states.get(topic, {}).get(partition)

    def topic_id(self, topic: str) -> bytes:
        """Return the id of a topic (KIP-516), 16 zero bytes if it is unknown."""
        return self._topic_ids.get(topic, NO_ID)

    def topic_of_id(self, topic_id: bytes) -> Optional[str]:
        """Return the name of the topic with an id, None if it is unknown."""
        return self._topic_names.get(topic_id)

    # ------------------------------------------------------------ coordinators

    def coordinator_for_group(self, group: str) -> Optional[int]:
        """Return the coordinator's node id, -1 after an error, None if it was not looked up."""
        return self._coordinators.get((GROUP, group))

    def add_group_coordinator(self, group: str, response: Any) -> bool:
        """Apply a FindCoordinator response for a group. Returns False for an error (1.x).

        Arguments: response: with error_code, and coordinator_id or node_id, host and port.

        Also returns False if host or port differ from those in the metadata.
        """
        if response.error_code:
            self._coordinators = {**self._coordinators, (GROUP, group): -1}
            return False
        node_id = getattr(response, 'coordinator_id', None)
        if node_id is None:
            node_id = response.node_id
        known = self._brokers.get(node_id)
        if known is None:
            self.add_broker(node_id, response.host, response.port)
        elif (known.host, known.port) != (response.host, response.port):
            return False
        self.set_coordinator(GROUP, group, node_id)
        return True

    def coordinator(self, key_type: int, key: str) -> Optional[int]:
        """Return the node id of a coordinator, None if it has to be looked up."""
        node_id = self._coordinators.get((key_type, key))
        return None if node_id == -1 else node_id

    def set_coordinator(self, key_type: int, key: str, node_id: int) -> None:
        """Set the node id of a coordinator."""
        self._coordinators = {**self._coordinators, (key_type, key): node_id}

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Forget a coordinator, so that it is looked up again."""
        self._coordinators = {
            known: node_id
            for known, node_id in self._coordinators.items()
            if known != (key_type, key)
        }

    def add_broker(self, node_id: int, host: str, port: int, rack: Optional[str] = None) -> None:
        """Add a broker that was named in another response than that of Metadata."""
        self._brokers = {**self._brokers, node_id: Broker(node_id, host, port, rack)}

    # ------------------------------------------------------------ refreshes

    def ttl(self) -> float:
        """Return in how many ms a refresh is due, 0 for now."""
        now = self._clock()
        age = (now - self._last_success) * 1000
        remaining = 0 if self.update_requested else self.config['metadata_max_age_ms'] - age
        backoff = self.config['retry_backoff_ms'] - (now - self._last_refresh) * 1000
        due_ms: float = max(remaining, backoff, 0)
        return due_ms

    def request_update(self) -> Future:
        """Request a refresh; the future gets this object once it is done."""
        made = Future()  # first: creating an object may run a finalizer
        with self._lock:
            self.update_requested = True
            if self._future is None or self._future.is_done:
                self._future = made
            return self._future

    def add_listener(self, listener: Callable[[ClusterMetadata], Any]) -> None:
        """Call a listener with this object after each update; adding it again has no effect."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[ClusterMetadata], Any]) -> None:
        """Remove a listener. Raises KeyError if it was not added."""
        if listener not in self._listeners:
            raise KeyError(listener)
        self._listeners.remove(listener)

    def failed_update(self, exception: BaseException) -> None:
        """Record that a refresh failed, and fail its future."""
        self._last_refresh = self._clock()
        future = self._taken_future()
        if future is not None:
            future.failure(exception)

    def _taken_future(self) -> Optional[Future]:
        with self._lock:
            future, self._future = self._future, None
        return future

    # ------------------------------------------------------------ responses

    def update_metadata(self, metadata: Any) -> None:
        """Apply a complete response to Metadata (1.x).

        Arguments: metadata: a struct of kafka.protocol.metadata, of any version, or a declared
        response.

        A response without brokers, or with a single topic that has an error, is a failed update and
        changes nothing.
        """
        version = EPOCHS_FROM_VERSION
        if hasattr(metadata, 'declared'):  # the struct of one version
            version = metadata.API_VERSION
            metadata = metadata.declared()
        if not metadata.brokers:
            self.failed_update(MetadataEmptyBrokerList())
            return
        if len(metadata.topics) == 1 and _get(metadata.topics[0], 'error_code', 0):
            topic = metadata.topics[0]
            self.failed_update(for_code(topic.error_code)(_topic_name(topic, self)))
            return
        self.replace(metadata, version)

    def replace(self, metadata: Any, version: int) -> Update:
        """Apply a response about all topics of interest; forget the others.

        Arguments: version: the version of the Metadata response.
        Raises MetadataEmptyBrokerList, and changes nothing, for a response without brokers.
        """
        named = {_topic_name(topic, self) for topic in metadata.topics} if metadata.brokers else ()
        update = self._take(metadata, version, {}, {})
        self._topic_ids = {name: each for name, each in self._topic_ids.items() if name in named}
        self._topic_names = {each: name for name, each in self._topic_ids.items()}
        self.topic_errors = {name: e for name, e in self.topic_errors.items() if name in named}
        self.deleted_topics = self.deleted_topics & frozenset(named)
        return update

    def merge(self, metadata: Any, version: int) -> Update:
        """Apply a response about some topics; the others are unchanged. As replace()."""
        # Version 0 lists only the brokers that host these topics (before 0.8.2).
        others = {} if version else self._listed
        return self._take(metadata, version, dict(self.partition_states), others)

    @property
    def _listed(self) -> Dict[Any, Broker]:
        return {key: each for key, each in self._brokers.items() if not self.is_bootstrap(key)}

    def _take(
        self,
        metadata: Any,
        version: int,
        kept: Dict[str, _Partitions],
        others: Mapping[Any, Broker],
    ) -> Update:
        if not metadata.brokers:
            raise MetadataEmptyBrokerList('the answer lists no brokers')
        before = self._brokers, self.partition_states, dict(self._topic_ids), self.controller_id
        self._brokers = {
            **others,
            **{
                node_id: Broker(node_id, host, port, rack)
                for node_id, host, port, rack in map(_broker_fields, metadata.brokers)
            },
        }
        self.controller_id = _get(metadata, 'controller_id', -1)
        self.cluster_id = _get(metadata, 'cluster_id', None) or self.cluster_id
        recreated = self._take_topics(metadata.topics, version, kept)
        self.partition_states, self._by_broker = kept, None
        if self._older:  # of deleted partitions no older epoch can be reported
            self._older = {
                (name, index): since
                for (name, index), since in self._older.items()
                if index in kept.get(name, ())
            }
        self._coordinators = {
            known: node_id
            for known, node_id in self._coordinators.items()
            if node_id in self._brokers or node_id == -1
        }
        self._last_refresh = self._last_success = self.refreshed_at = self._clock()
        self.update_requested = False
        self._tell()
        after = self._brokers, self.partition_states, self._topic_ids, self.controller_id
        return Update(before != after, frozenset(recreated))

    def _tell(self) -> None:
        future = self._taken_future()
        if future is not None:
            future.success(self)
        for listener in list(self._listeners):
            listener(self)

    def _take_topics(
        self, topics: Iterable[Any], version: int, kept: Dict[str, _Partitions]
    ) -> List[str]:
        """Add the topics of a response to the table; return those that were recreated."""
        recreated = []
        for topic in topics:
            name, topic_id = _topic_name(topic, self), _get(topic, 'topic_id', NO_ID)
            if name is None:
                continue
            code = _get(topic, 'error_code', 0)
            self._note_error(name, code)
            if code == LeaderNotAvailableError.errno and not topic.partitions:
                if (
                    name in self.partition_states
                ):  # being created or recreated: nothing newer is known
                    kept[name] = self.partition_states[name]
                continue
            if code:
                if code == UnknownTopicOrPartitionError.errno and name in self.partition_states:
                    self.deleted_topics = self.deleted_topics | {name}
                self._topic_names.pop(self._topic_ids.pop(name, NO_ID), None)
                kept.pop(name, None)
                continue
            self.deleted_topics = self.deleted_topics - {name}
            known = self.partition_states.get(name, {})
            if topic_id not in (NO_ID, self._topic_ids.get(name, topic_id)):
                recreated.append(name)
                known = {}
            if topic_id != NO_ID:
                self._topic_names.pop(self._topic_ids.get(name, NO_ID), None)
                self._topic_ids[name] = topic_id
                self._topic_names[topic_id] = name
            if _get(topic, 'is_internal', False):
                self.internal_topics = self.internal_topics | {name}
            has_epochs = version >= EPOCHS_FROM_VERSION
            if has_epochs and known and topic_id == NO_ID:
                known = self._not_outlived(name, topic.partitions, known)
            kept[name] = _partitions(topic.partitions, known, has_epochs)
        return recreated

    def _not_outlived(self, name: str, answers: Iterable[Any], known: _Partitions) -> _Partitions:
        """Return the known partitions except those of a topic that seems to have been deleted."""
        left = dict(known)
        for each in answers:
            key, before = (name, each.partition_index), known.get(each.partition_index)
            if before is None or not 0 <= each.leader_epoch < before.leader_epoch:
                self._older.pop(key, None)
            elif self._clock() - self._older.setdefault(key, self._clock()) >= OLDER_SECONDS:
                del left[each.partition_index], self._older[key]
        return left

    def _note_error(self, name: str, code: int) -> None:
        self.unauthorized_topics = _with(
            self.unauthorized_topics, name, code == TopicAuthorizationFailedError.errno
        )
        self.invalid_topics = _with(self.invalid_topics, name, code == InvalidTopicError.errno)
        errors = {topic: error for topic, error in self.topic_errors.items() if topic != name}
        if code:
            errors[name] = for_code(code)
        self.topic_errors = errors

    # ------------------------------------------------------------ hints

    def take_hint(
        self,
        topic: str,
        partition: int,
        leader: int,
        leader_epoch: int,
        endpoints: Iterable[Any] = (),
    ) -> bool:
        """Apply the leader that a broker named in an error response (KIP-951).

        Arguments: endpoints: addresses in the response, with node_id, host, port, rack.

        Returns True if it was applied: the epoch is newer, and the broker's address is known.
        """
        known = self.partition(topic, partition)
        if known is None or leader_epoch <= known.leader_epoch or leader < 0:
            return False
        for each in endpoints:
            if each.node_id == leader:
                self.add_broker(leader, each.host, each.port, each.rack)
        if leader not in self._brokers:
            return False
        state = known._replace(leader=leader, leader_epoch=leader_epoch, error=0)
        changed = {**self.partition_states[topic], partition: state}
        self.partition_states = {**self.partition_states, topic: changed}
        self._by_broker = None
        return True

    def forget_coordinators(self) -> None:
        """Forget all coordinators, so that they are looked up again."""
        self._coordinators = {}


def _get(thing: Any, name: str, default: Any) -> Any:
    """Return a field that older versions, or tuples of 1.x programs, do not have."""
    return getattr(thing, name, default)


def _broker_fields(broker: Any) -> Tuple[int, str, int, Optional[str]]:
    if isinstance(broker, tuple):  # of a struct of 1.x
        return (*broker[:3], broker[3] if len(broker) > 3 else None)
    return broker.node_id, broker.host, broker.port, broker.rack


def _topic_name(topic: Any, cluster: ClusterMetadata) -> Optional[str]:
    name: Optional[str] = topic.name
    return cluster.topic_of_id(topic.topic_id) if name is None else name


def _with(names: Set[str], name: str, is_in: bool) -> Set[str]:
    """Return a set with a name added or removed."""
    if is_in == (name in names):
        return names
    return names | {name} if is_in else names - {name}


def _partitions(answers: Iterable[Any], known: _Partitions, has_epochs: bool) -> _Partitions:
    """Return the partitions of a topic in a response; an older epoch changes no leader."""
    made: _Partitions = {}
    for each in answers:
        epoch = each.leader_epoch if has_epochs else -1
        number = each.partition_index
        before = known.get(number)
        if before is not None and 0 <= epoch < before.leader_epoch:
            made[number] = before
            continue
        code = each.error_code
        has_leader = code in (0, _REPLICA_NOT_AVAILABLE)
        made[number] = PartitionState(
            each.leader_id if has_leader else -1,
            epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            code,
        )
    return made
