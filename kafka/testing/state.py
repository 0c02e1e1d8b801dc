"""The state that all brokers of an embedded cluster share: nodes, topics, partitions.

Also the leader election when nodes die or return. Replicas exist only as state: all replicas of a
partition share one log. The APIs are in :mod:`kafka.testing.handlers`.
"""

from __future__ import annotations

import base64
import random
import uuid
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple
from zlib import crc32

from kafka.testing.control import Control
from kafka.testing.groups.registry import Groups
from kafka.testing.groups.stored_offsets import StoredOffsets
from kafka.testing.kept_bytes import KeptBytes, settings_bytes
from kafka.testing.logs.partition_log import PartitionLog
from kafka.testing.releases import BrokerRelease
from kafka.testing.security.acls import Acl
from kafka.testing.security.authorizer import Authorizer
from kafka.testing.settings.features import first_features
from kafka.testing.timers import Timers

NO_LEADER = -1
#: Per cluster: each takes about 1500 bytes.
MOST_PARTITIONS = 50000


class Node:
    """One broker, as in metadata."""

    def __init__(self, node_id: int, host: str, port: int, rack: Optional[str] = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_alive = True

    def __repr__(self) -> str:
        return '<Node %d %s:%d %s>' % (
            self.node_id,
            self.host,
            self.port,
            'alive' if self.is_alive else 'dead',
        )


class Partition:
    """One partition: its replicas, its leader, and its log."""

    def __init__(self, topic: str, index: int, replicas: List[int]) -> None:
        self.topic = topic
        self.index = index
        self.replicas = replicas
        self.isr = list(replicas)
        self.leader = replicas[0] if replicas else NO_LEADER
        self.leader_epoch = 0
        self.log = PartitionLog()
        #: The state of producers that wrote here; see producer_states.py.
        self.producers: Dict[int, Any] = {}

    def __repr__(self) -> str:
        return '<Partition %s-%d leader=%d epoch=%d %r>' % (
            self.topic,
            self.index,
            self.leader,
            self.leader_epoch,
            self.log,
        )

    @property
    def high_watermark(self) -> int:
        """The offset up to which all in-sync replicas have the log."""
        return self.log.end_offset

    def elect(self, alive: Iterable[int], preferred: Optional[int] = None) -> None:
        """Choose a leader among the live replicas, and increase the epoch if it is another one."""
        living = [node for node in self.replicas if node in set(alive)]
        in_sync = [node for node in self.isr if node in living]
        # The last in-sync replica stays in the ISR when it dies: it alone has all records.
        self.isr = in_sync or self.isr[-1:]
        choice = preferred if preferred in in_sync else None
        if choice is None:
            choice = self.leader if self.leader in in_sync else (in_sync or [NO_LEADER])[0]
        if choice != self.leader:
            self.leader = choice
            self.leader_epoch += 1

    def rejoin(self, alive: Iterable[int]) -> None:
        """Add the live replicas to the ISR again."""
        living = set(alive)
        if self.leader == NO_LEADER:
            self.elect(living)
        if self.leader != NO_LEADER:
            self.isr = [node for node in self.replicas if node in living]


class Topic:
    """A topic and its partitions."""

    def __init__(self, name: str, topic_id: bytes, partitions: List[Partition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.configs: Dict[str, str] = {}
        self.is_internal = name in ('__consumer_offsets', '__transaction_state')

    def __repr__(self) -> str:
        return '<Topic %s, %d partitions>' % (self.name, len(self.partitions))

    def partition(self, index: int) -> Optional[Partition]:
        """Return a partition by number, None if it does not exist."""
        if 0 <= index < len(self.partitions) and self.partitions[index].index == index:
            return self.partitions[index]
        if not self.partitions or self.partitions[-1].index == len(self.partitions) - 1:
            return None
        # Releases before 2.0 allow topics whose partitions are not numbered from 0 on.
        return next((each for each in self.partitions if each.index == index), None)


class Defaults(NamedTuple):
    """Settings of the brokers."""

    num_partitions: int = 1
    replication_factor: int = 1
    racks: Tuple[str, ...] = ()  # one for each broker; consumers read from replicas in their rack
    auto_create_topics: bool = True
    delete_topic_enable: Optional[bool] = None  # None: the release's default, True from 1.0 on
    message_max_bytes: int = 1048588
    broker_session_timeout_ms: int = 9000  # after which a paused broker counts as dead
    log_bytes_limit: int = 256 * 1024 * 1024  # of all logs in memory together
    state_bytes_limit: int = 64 * 1024 * 1024  # of all other state; see kept_bytes.py
    log_retention_check_interval_ms: int = 300000
    log_cleaner_backoff_ms: int = 15000
    group_initial_rebalance_delay_ms: int = 0  # Kafka's own default is 3000
    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6000
    group_consumer_session_timeout_ms: int = 45000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_share_record_lock_duration_ms: int = 30000
    group_streams_initial_rebalance_delay_ms: int = 3000
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: Optional[int] = None  # None: the release's default
    offsets_topic_partitions: int = 50
    # The interval of the check for expired transactions; None: the release's default.
    transaction_abort_interval_ms: Optional[int] = None
    authorizer: bool = False  # without one, requests about ACLs are SECURITY_DISABLED
    super_users: Tuple[str, ...] = ()  # exempt from ACLs, 'alice' or 'User:alice'
    allow_everyone_if_no_acl_found: bool = False
    client_telemetry: bool = False  # whether metrics of clients are accepted (KIP-714)
    connections_max_idle_ms: Optional[int] = 600000  # None for never
    # The limit for TLS and SASL together; None for connections_max_idle_ms, as in Kafka.
    handshake_timeout_ms: Optional[int] = 30000
    connections_max_reauth_ms: int = 0  # the lifetime of SASL logins, 0 for no limit
    failed_authentication_delay_ms: int = 100  # connection.failed.authentication.delay.ms
    delegation_token_secret: Optional[str] = None  # None disables delegation tokens

    def __repr__(self) -> str:
        shown = self._asdict()
        shown['delegation_token_secret'] = '<hidden>' if self.delegation_token_secret else None
        return 'Defaults(%s)' % ', '.join('%s=%r' % each for each in shown.items())


class ClusterState:
    """The state that the brokers of one cluster share.

    Arguments: release: of the brokers; timers: the clock, and pending events; chance: random
    numbers for ids, seeded for reproducible runs.
    """

    def __init__(
        self, release: BrokerRelease, timers: Timers, chance: random.Random, defaults: Defaults
    ) -> None:
        self.release = release
        self.timers = timers
        self.chance = chance
        self.defaults = defaults
        self.cluster_id = text_id(self.new_uuid())
        self.nodes: Dict[int, Node] = {}
        self.controller_id = NO_LEADER
        self.topics: Dict[str, Topic] = {}  # by name; changed by add_topic() and drop_topic()
        self._topics_by_id: Dict[bytes, Topic] = {}
        self._topics_by_metric: Dict[str, Dict[str, None]] = {}  # names with the same metrics
        self.partition_count = 0  # of all topics
        self.had_topics = False  # ever; brokers of 0.8 report other brokers only then
        self.moved_coordinators: Dict[str, int] = {}  # key -> node, set by tests
        self.kept = KeptBytes(self)
        self.offsets = StoredOffsets(self)
        self.groups = Groups(self)
        self.unread_bytes = 0  # of incomplete frames; see connection.py
        self.unmeasured_bytes = 0  # appended since all logs were measured; see appending.py
        self.configs: Dict[Tuple[int, str], Dict[str, str]] = {}  # see configs.py
        self.log_settings: Dict[Any, Any] = {}  # parsed settings; see log_settings.py
        self.fetch_sessions: Dict[int, Any] = {}  # by node; see fetch_sessions.py
        self.share_sessions: Dict[int, Any] = {}  # by node; see share_sessions.py
        self.down_converter: Any = None  # created on first use; see down_conversion.py
        self.features = first_features(release.name)  # level of each; see features.py
        self.features_epoch = 1 if self.features else 0  # increased by every change of them
        self.reassignments: Dict[
            Tuple[str, int], List[int]
        ] = {}  # pending, until brokers are alive
        self.transactions: Any = None  # created on first use; see transactions.py
        self.acls: Set[Acl] = set()  # see acls.py
        self.authorizer = Authorizer(self) if defaults.authorizer else None  # evaluates them
        self.quotas: Dict[Any, Dict[str, float]] = {}  # by entity; see handlers/quotas.py
        self.telemetry: Dict[int, Any] = {}  # by node; see telemetry.py
        self.scram: Dict[str, Dict[int, Any]] = {}  # by user, mechanism; see handlers/users.py
        self.sasl: Any = None  # the logins of clients; see sasl/login.py
        self.tls_context: Any = None  # of TLS connections; see tls.py
        self.tokens: Any = None  # created on first use; see tokens.py
        self.upkeep: Any = None  # created on first use; see retention.py
        self.storage: Any = None  # of a durable cluster; see storage.py
        self.control = Control(random.Random(chance.getrandbits(64)))  # the hooks of tests

    def forget(self) -> None:
        """Remove all topics, groups, users and settings."""
        for name in list(self.topics):
            self.drop_topic(name)
        for known in (self.configs, self.reassignments, self.quotas, self.scram):
            known.clear()
        self.acls.clear()
        self.kept.measure_again()
        self.offsets, self.groups = StoredOffsets(self), Groups(self)
        self.transactions = self.tokens = None

    def __repr__(self) -> str:
        return '<ClusterState %s, %d nodes, %d topics>' % (
            self.release.name,
            len(self.nodes),
            len(self.topics),
        )

    def new_uuid(self) -> bytes:
        """Return a unique UUID as 16 bytes."""
        return uuid.UUID(int=self.chance.getrandbits(128), version=4).bytes

    @property
    def alive(self) -> List[int]:
        """Ids of the live nodes, in order."""
        return sorted(node.node_id for node in self.nodes.values() if node.is_alive)

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        partitions: Optional[int] = None,
        replication_factor: Optional[int] = None,
        assignments: Optional[List[List[int]]] = None,
        numbers: Optional[List[int]] = None,
    ) -> Topic:
        """Create a topic; names and numbers must be valid. None means the default.

        Arguments: assignments: the nodes of each partition; numbers: of the partitions.
        Raises ValueError if there are fewer live nodes than replicas.
        """
        if assignments is None:
            nodes = self.alive
            copies = replication_factor or min(self.defaults.replication_factor, len(nodes))
            count = partitions or self.defaults.num_partitions
            if not 0 < copies <= len(nodes):
                raise ValueError(
                    '%d replicas of %r, but %d live nodes' % (copies, name, len(nodes))
                )
            first = self.chance.randrange(len(nodes))
            assignments = [
                [nodes[(first + index + copy) % len(nodes)] for copy in range(copies)]
                for index in range(count)
            ]
        numbered = zip(numbers or range(len(assignments)), assignments)
        made = [Partition(name, index, list(nodes)) for index, nodes in numbered]
        topic = Topic(name, self.new_uuid(), made)
        for partition in made:
            partition.elect(self.alive)
        self.add_topic(topic)
        return topic

    def add_topic(self, topic: Topic) -> None:
        """Add a topic, replacing one with the same name."""
        self.drop_topic(topic.name)
        self.had_topics = True
        if self.storage is not None:
            self.storage.adopt(topic)
        self.topics[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic
        self._topics_by_metric.setdefault(_metric(topic.name), {})[topic.name] = None
        self.partition_count += len(topic.partitions)

    def drop_topic(self, name: str) -> None:
        """Remove a topic, if it exists."""
        topic = self.topics.pop(name, None)
        if topic is not None:
            self._topics_by_id.pop(topic.topic_id, None)
            self.partition_count -= len(topic.partitions)
            self.kept.change(settings_bytes(name, topic.configs), 0)
            if self.storage is not None:
                self.storage.discard(topic)
            self._topics_by_metric[_metric(name)].pop(name)
            if not self._topics_by_metric[_metric(name)]:
                del self._topics_by_metric[_metric(name)]

    def topic_like(self, name: str) -> Optional[str]:
        """Return the name of a topic with the same name in metrics, None if there is none."""
        return next(iter(self._topics_by_metric.get(_metric(name), ())), None)

    def add_partition(self, topic: Topic, nodes: List[int]) -> None:
        """Add a partition to a topic, on these nodes."""
        partition = Partition(topic.name, len(topic.partitions), nodes)
        partition.elect(self.alive)
        topic.partitions.append(partition)
        self.partition_count += 1
        if self.storage is not None:
            self.storage.adopt(topic)

    def has_room(self, partitions: int) -> bool:
        """Return True if clients may create this number of further partitions."""
        return self.partition_count + partitions <= MOST_PARTITIONS

    def topic_by_id(self, topic_id: bytes) -> Optional[Topic]:
        """Return the topic with an id, None if there is none."""
        return self._topics_by_id.get(topic_id)

    def partitions(self) -> Iterable[Partition]:
        """Yield all partitions of all topics."""
        for topic in self.topics.values():
            yield from topic.partitions

    # ------------------------------------------------------------ nodes

    def node_died(self, node_id: int) -> None:
        """Mark a node as dead: other nodes become leaders."""
        self.nodes[node_id].is_alive = False
        self.fetch_sessions.pop(node_id, None)
        self.share_sessions.pop(node_id, None)
        self._elect_controller()
        for partition in self.partitions():
            partition.elect(self.alive)

    def node_came(self, node_id: int) -> None:
        """Mark a node as alive: it becomes a follower, or the leader of partitions without one."""
        self.nodes[node_id].is_alive = True
        self._elect_controller()
        for partition in self.partitions():
            partition.rejoin(self.alive)

    def coordinator_of(self, key: str) -> int:
        """Return the coordinator of a group or a transactional id, -1 if no node is alive."""
        alive = self.alive
        if not alive:
            return NO_LEADER
        moved = self.moved_coordinators.get(key)
        return moved if moved in alive else alive[crc32(key.encode('utf-8')) % len(alive)]

    def _elect_controller(self) -> None:
        if self.controller_id not in self.alive:
            self.controller_id = self.alive[0] if self.alive else NO_LEADER


def _metric(topic: str) -> str:
    """Return the name of a topic in metrics, where dots separate names."""
    return topic.replace('.', '_')


def text_id(number: bytes) -> str:
    """Return an id as brokers write it: 22 characters of URL-safe base 64."""
    return base64.urlsafe_b64encode(number).decode('ascii').rstrip('=')
