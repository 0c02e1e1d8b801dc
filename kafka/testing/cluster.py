"""An embedded Kafka for tests: a cluster of any release inside the process.

The public class: start and stop, topics, failures of brokers, and fault injection. Everything else
is done with any Kafka client through the brokers' addresses. Nothing of Apache Kafka is needed.
"""

from __future__ import annotations

import random
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

from kafka.testing import handlers
from kafka.testing.broker import Broker
from kafka.testing.control import ControlHandler, Received
from kafka.testing.faults import Faults
from kafka.testing.handlers.metadata import is_legal_name
from kafka.testing.logs.log_settings import log_settings
from kafka.testing.logs.retention import compact_now, delete_all
from kafka.testing.releases import NEWEST, broker_release
from kafka.testing.security.acls import ALLOW, DENY
from kafka.testing.security.options import Security
from kafka.testing.security.tls import Tls
from kafka.testing.server import Server
from kafka.testing.settings.configs import topic_keys, unknown_or_invalid
from kafka.testing.state import ClusterState, Defaults, Node
from kafka.testing.storage.cluster_storage import Storage
from kafka.testing.timers import Clock, SystemClock, Timer, Timers
from kafka.testing.waiting import Waiting

T = TypeVar('T')

HOST = '127.0.0.1'
MAX_PORT = 65535
OWN_ARGUMENTS = (
    'brokers',
    'version',
    'host',
    'port',
    'topics',
    'seed',
    'sasl',
    'mechanisms',
    'tls',
)

handlers.load()  # here, so that the first cluster starts as fast as later ones


class Cluster:
    """A cluster of embedded brokers, as a context manager or between start() and stop().

    Arguments: brokers: their number; version: the release of Apache Kafka to behave as, from
    '0.8.0' to '4.4'; host: the host to listen on and to advertise ('0.0.0.0' and '::' are
    advertised as the name of the machine); port: of the first broker, the others follow; 0 for free
    ports; topics: created at the start, {name: number of partitions}; seed: of everything random,
    None for a new one; sasl: the users, {name: password}, None for no logins; mechanisms: of SASL,
    None for those with passwords; tls: True for a temporary certificate, or a
    ``kafka.testing.Tls`` with files; data: a folder in which everything is stored, and loaded at
    the next start, None for memory; fsync: whether data is flushed to the disk before it is
    acknowledged, so that it survives a power failure and not only the end of the process; other
    settings: fields of ``kafka.testing.state.Defaults``.

    Attributes: seed: for reproducing a run; faults: the injected faults, see
    ``kafka.testing.faults.Faults``; security: see ``kafka.testing.security.options.Security``.

    Raises: ValueError for an unknown release, fewer than one broker, ports above 65535, an invalid
    topic, security that the release does not support; TypeError for an unknown setting; from
    start() OSError if a port is taken, and ``kafka.testing.security.tls.CertificateError`` if no
    certificate can be created or used.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = NEWEST,
        *,
        host: str = HOST,
        port: int = 0,
        topics: Optional[Dict[str, int]] = None,
        seed: Optional[int] = None,
        sasl: Optional[Mapping[str, str]] = None,
        mechanisms: Optional[Iterable[str]] = None,
        tls: Union[bool, Tls] = False,
        data: Union[str, Path, None] = None,
        fsync: bool = False,
        **settings: Any,
    ) -> None:
        if not isinstance(brokers, int) or brokers < 1:
            raise ValueError('brokers must be a number >= 1, not %r' % (brokers,))
        if not isinstance(port, int) or not 0 <= port <= MAX_PORT + 1 - brokers:
            raise ValueError('port must leave room for %d below 65536, not %r' % (brokers, port))
        if topics is not None and not isinstance(topics, dict):
            raise TypeError('topics must be {name: number of partitions}, not %r' % (topics,))
        for name, partitions in (topics or {}).items():
            _check_topic(name, partitions)
        for setting in settings:
            _check_setting(setting)
        racks = settings['racks'] = _racks(settings.get('racks', ()), brokers)
        settings.setdefault('replication_factor', min(brokers, 3))
        self.seed = random.randrange(2**32) if seed is None else seed
        self.timers = Timers(self._make_clock())
        self.state = ClusterState(
            broker_release(version), self.timers, random.Random(self.seed), Defaults(**settings)
        )
        self.security = Security(self.state, host, sasl, mechanisms, tls)
        self.waiting = Waiting(self.timers)
        self._host = host
        self._topics = dict(topics or {})
        self._data, self._fsync = data, fsync
        self._was_stored = False
        self._brokers: Dict[int, Broker] = {}
        for node_id in range(brokers):
            rack = racks[node_id] if racks else None
            node = Node(node_id, host, port + node_id if port else 0, rack)
            self.state.nodes[node_id] = node
            self._brokers[node_id] = Broker(node, self.state, self.waiting)
        self._paused: Dict[int, Timer] = {}  # by node: when its session expires
        self._server: Any = None

    def __repr__(self) -> str:
        return '<%s %s at %s>' % (type(self).__name__, self.state.release.name, self.bootstrap)

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        failure = self._end()
        if failure is not None and error is None:  # otherwise the exception of the block is raised
            raise failure

    def _make_clock(self) -> Clock:
        return SystemClock()

    def _make_server(self) -> Any:
        return Server(self.timers, self.state.control.note_failure)

    def _call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread of the brokers."""
        server = self._server
        result: T = function() if server is None else server.call(function)
        return result

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Open the ports and serve; topics and records from before a stop() still exist.

        Raises: OSError if a port is taken; StorageError if another process uses the data folder, or
            it cannot be read: nothing in it is changed then.
        """
        if self._server is not None:
            return
        self.security.prepare()
        storage = self._open_storage()
        server = self._make_server()
        server.storage = storage
        try:
            for broker in self._brokers.values():
                broker.node.host = server.name_of(self._host)
                if broker.node.is_alive:
                    broker.node.port = server.listen(broker, self._host, broker.node.port)
            self._create_first_topics()
            if storage is not None:
                storage.commit()  # a crash before the first request must not lose the topics
        except BaseException:
            server.stop()
            if storage is not None:
                storage.close()
            raise
        self._server = server
        self.state.controller_id = min(self.state.alive, default=-1)
        server.start()

    def _create_first_topics(self) -> None:
        if self._topics and (self._data is not None or not self.state.topics):
            self.state.controller_id = min(self._brokers)
            for name, partitions in self._topics.items():
                if name not in self.state.topics:
                    self.state.create_topic(name, partitions)

    def _open_storage(self) -> Optional[Storage]:
        if self._data is None:
            return None
        if self._was_stored:
            self.state.forget()  # the folder has all of it
        storage = Storage(self._data, self._fsync, self.state, self.waiting)
        storage.open()
        self._was_stored = True
        return storage

    def stop(self) -> None:
        """Close all connections and ports and end the thread. May be called at any time.

        Raises the first exception of a handler while the cluster ran: of a function given to
        control(), or of the brokers themselves; StorageError if not everything could be stored in
        the data folder.
        """
        failure = self._end()
        if failure is not None:
            raise failure

    def _end(self) -> Optional[Exception]:
        """Stop, and return the first failure; all of them are logged."""
        server, self._server = self._server, None
        if server is None:
            return None
        server.stop()
        self._forget_paused()
        if self.state.storage is not None:
            self.state.storage.close()
        failures = list(self.state.control.failures)
        self.state.control.failures.clear()
        return failures[0] if failures else None

    # ------------------------------------------------------------ topics and brokers

    @property
    def bootstrap(self) -> str:
        """All brokers as ``host:port``, separated by commas, including stopped ones."""
        nodes = self.state.nodes
        return ','.join(
            ('[%s]:%d' if ':' in node.host else '%s:%d') % (node.host, node.port)
            for _, node in sorted(nodes.items())
        )

    @property
    def nodes(self) -> List[int]:
        """Ids of the running brokers."""
        return self._call(lambda: self.state.alive)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: Optional[int] = None,
        configs: Optional[Dict[str, str]] = None,
    ) -> None:
        """Create a topic, with settings of its own (``{'retention.ms': '1000'}``).

        Raises ValueError if it exists or is invalid.
        """
        _check_topic(name, partitions)
        known = topic_keys(self.state.release.name)
        for key, value in dict(configs or {}).items():
            wrong = unknown_or_invalid(known, key, value, 'topic')
            if wrong:
                raise ValueError(wrong)

        def create() -> None:
            if name in self.state.topics:
                raise ValueError('topic %r exists' % name)
            made = self.state.create_topic(name, partitions, replication_factor)
            made.configs.update(configs or {})
            self.state.kept.measure_again()

        self._call(create)

    def compact(self, topic: str) -> None:
        """Compact a topic by key now and completely, as brokers would eventually.

        The last record of each key stays; tombstones stay for ``delete.retention.ms`` from the
        first compaction on. Raises KeyError; ValueError for a topic whose ``cleanup.policy`` is not
        ``compact``.
        """

        def run() -> None:
            found = self.state.topics[topic]
            if not log_settings(self.state, topic).is_compacted:
                raise ValueError(
                    "topic %r is not compacted: set cleanup.policy to 'compact'" % topic
                )
            for partition in found.partitions:
                compact_now(self.state, self.waiting, partition)

        self._call(run)

    def apply_retention(self) -> None:
        """Apply ``retention.ms`` and ``retention.bytes`` now.

        Brokers do that every ``log_retention_check_interval_ms``, 300,000 by default.
        """
        self._call(lambda: delete_all(self.state, self.waiting))

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition, -1 without one. Raises KeyError, IndexError."""
        return self._call(lambda: self.state.topics[topic].partitions[partition].leader)

    def coordinator(self, key: str) -> int:
        """Return the coordinator of a group or a transactional id, -1 without one."""
        return self._call(lambda: self.state.coordinator_of(key))

    def kill(self, node_id: int) -> None:
        """Kill a broker: its connections break, other brokers become leaders. Raises KeyError."""
        broker = self._brokers[node_id]
        self._call(lambda: self._die(broker))

    def _die(self, broker: Broker) -> None:
        timer = self._paused.pop(broker.node_id, None)
        if timer is not None:
            timer.cancel()
        broker.is_paused = False
        if self._server is not None:
            self._server.deafen(broker)
        self._moving_leaders(lambda: self.state.node_died(broker.node_id))

    def restart(self, node_id: int) -> None:
        """Restart a killed broker, on its port. Raises KeyError, OSError."""
        broker = self._brokers[node_id]

        def come() -> None:
            if node_id in self._paused:
                self._die(broker)
            if not broker.node.is_alive:
                if self._server is not None:
                    broker.node.port = self._server.listen(broker, self._host, broker.node.port)
                self._moving_leaders(lambda: self.state.node_came(node_id))

        self._call(come)

    def pause(self, node_id: int) -> None:
        """Let a broker hang: it does nothing, and its connections stay, until resume() or kill().

        Its session expires after ``broker_session_timeout_ms``. Raises KeyError; ValueError for a
        broker that is not running.
        """
        broker = self._brokers[node_id]

        def hang() -> None:
            if self._server is None or not broker.node.is_alive:
                raise ValueError('node %d is not running' % node_id)
            if node_id not in self._paused:
                self._server.freeze(broker)
                broker.is_paused = True
                self._paused[node_id] = self.timers.later(
                    self.state.defaults.broker_session_timeout_ms / 1000.0,
                    lambda: self._moving_leaders(lambda: self.state.node_died(node_id)),
                )

        self._call(hang)

    def resume(self, node_id: int) -> None:
        """Let a paused broker continue. Raises KeyError."""
        broker = self._brokers[node_id]

        def go_on() -> None:
            timer = self._paused.pop(node_id, None)
            if timer is not None:
                timer.cancel()
                broker.is_paused = False
                if not broker.node.is_alive:
                    self._moving_leaders(lambda: self.state.node_came(node_id))
                self._server.thaw(broker)

        self._call(go_on)

    def _forget_paused(self) -> None:
        """Let brokers that are paused when the cluster stops run at the next start."""
        for node_id, timer in self._paused.items():
            timer.cancel()
            self._brokers[node_id].is_paused = False
            if not self.state.nodes[node_id].is_alive:
                self.state.node_came(node_id)
        self._paused.clear()

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make another replica the leader. Raises KeyError, IndexError; ValueError if it cannot
        be."""

        def move() -> None:
            found = self.state.topics[topic].partitions[partition]
            if node_id not in found.isr or node_id not in self.state.alive:
                raise ValueError('node %d is not an in-sync replica of %r' % (node_id, found))
            self._moving_leaders(lambda: found.elect(self.state.alive, preferred=node_id))

        self._call(move)

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Make another node the coordinator of a group or a transactional id, while it runs.

        Raises ValueError if it does not run.
        """

        def move() -> None:
            if node_id not in self.state.alive:
                raise ValueError('node %d is not running' % node_id)
            self.state.moved_coordinators[key] = node_id
            self.waiting.touch(('group', key))

        self._call(move)

    def _moving_leaders(self, move: Callable[[], None]) -> None:
        """Move leaders and wake calls that wait at partitions whose leader has changed."""
        before = {id(each): each.leader_epoch for each in self.state.partitions()}
        move()
        if self.state.storage is not None:
            self.state.storage.note_everything()
        for each in list(self.state.partitions()):
            if before.get(id(each)) != each.leader_epoch:
                self.waiting.touch(('partition', each.topic, each.index))

    # ------------------------------------------------------------ permissions

    def allow(self, principal: str, *operations: str, **resources: Any) -> None:
        """Allow operations: ``allow('alice', 'Read', topic='orders', group='readers')``.

        Arguments: principal: a user, ``'*'`` for all; operations: as in ACLs, 'All' for all;
            topic, group, transactional_id, user, delegation_token: a name, ``'orders-*'`` for all
            with that prefix, ``'*'`` for all; cluster: True for operations on the cluster; host:
            the client's address, '*' for any.
        Raises ValueError for an unknown operation, without a resource, and without an authorizer;
        TypeError for an unknown kind of resource.
        """
        self._call(lambda: self.security.add(ALLOW, principal, operations, **resources))

    def deny(self, principal: str, *operations: str, **resources: Any) -> None:
        """Deny operations, which takes precedence over allow(); same arguments."""
        self._call(lambda: self.security.add(DENY, principal, operations, **resources))

    @property
    def security_protocol(self) -> str:
        """The protocol for clients: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.security.protocol

    @property
    def ca_file(self) -> Optional[str]:
        """The file with the authority of the brokers' certificate; None without TLS."""
        return self.security.ca_file

    # ------------------------------------------------------------ fault injection

    @property
    def faults(self) -> Faults:
        """The injected faults; may be changed at any time."""
        return self.state.control.faults

    def control(self, api: Any, handler: Optional[ControlHandler]) -> None:
        """Let a function respond to an API instead of the brokers.

        Arguments: api: by name (``'Produce'``, ``'list_offsets'``), number or request class;
            handler: is called with the call (``call.request``, ``call.version``, ``call.broker``)
            in the thread of the brokers and returns the response, None to let the broker respond,
            or LATER to call ``call.respond()`` later; it may also use ``call.close_connection()``.
            Its exceptions close the connection and are raised by stop(). None removes the handler.
        Raises: ValueError for an unknown API, TypeError for a handler that is not a function.
        """
        self._call(lambda: self.state.control.set_handler(api, handler))

    @property
    def requests(self) -> List[Received]:
        """The requests that brokers received, oldest first: the last 10,000, or about 64 MiB.

        Each has ``at``, ``node``, ``connection``, ``api``, ``version``, ``client_id``, ``request``.
        """
        return self._call(self.state.control.requests.entries)

    def forget_requests(self) -> None:
        """Clear the log of requests."""
        self._call(self.state.control.requests.clear)


def _check_setting(name: str) -> None:
    if name not in Defaults._fields:
        near = get_close_matches(name, (*Defaults._fields, *OWN_ARGUMENTS), 1)
        hint = ': %s?' % near[0] if near else ''
        raise TypeError('unknown setting %r of a cluster%s' % (name, hint))


def _check_topic(name: Any, partitions: Any) -> None:
    if not isinstance(name, str) or not is_legal_name(name):
        raise ValueError('invalid name of a topic: %r' % (name,))
    if not isinstance(partitions, int) or partitions < 1:
        raise ValueError('topic %r must have >= 1 partitions, not %r' % (name, partitions))


def _racks(racks: Any, brokers: int) -> Tuple[str, ...]:
    is_list = isinstance(racks, (list, tuple)) and all(isinstance(rack, str) for rack in racks)
    if not is_list or len(racks) not in (0, brokers):
        raise ValueError('racks must be a list with one for each broker, not %r' % (racks,))
    return tuple(racks)
