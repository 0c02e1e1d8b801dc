"""All brokers of a cluster: bootstrap, metadata, and routing of requests to nodes.

Created by NetworkClient; used only by the thread that runs its loop, except for ``is_connected``.
It does not retry a request that was sent: if it is unknown whether the broker has handled a
request, only the caller can decide whether a retry is safe.

Metadata is refreshed when a caller requests it: at once after a pause, otherwise after a backoff
that grows while responses bring no news (metadata_updater.py). The client rebootstraps if no known
broker can be reached (KIP-899), if a broker demands it, or if no broker has responded to Metadata
for ``rebootstrap_after`` seconds (KIP-1102).
"""

from __future__ import annotations

import logging
import math
import random
from functools import partial
from typing import Any, Callable, Coroutine, Dict, List, Optional, Tuple

from kafka.cluster import ClusterMetadata, Update
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    MetadataEmptyBrokerList,
    NoBrokersAvailable,
    RebootstrapRequiredError,
)
from kafka.net.attempts import Attempt, given_up
from kafka.net.backoff import backoff_seconds
from kafka.net.broker_connections import INTERVAL, BrokerConnections, with_attempts
from kafka.net.coordinators import Coordinators
from kafka.net.group_connections import GroupConnections
from kafka.net.happy_eyeballs import first_of
from kafka.net.loop.event_loop import EventLoop
from kafka.net.metadata_updater import CAN_SPARE_FROM, MetadataUpdater, metadata_request
from kafka.net.node_connection import WARN_EVERY, NodeConnection, session_of
from kafka.net.resolver import canonical_name, look_up
from kafka.net.routes import (
    GROUP,
    TRANSACTION,
    group_of,
    is_fatal,
    leader_of,
    partitions_of,
    transaction_of,
)
from kafka.net.settings import NetSettings
from kafka.protocol.api import Route
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.wire import Message

__all__ = ['Pool']

log = logging.getLogger(__name__)


class Pool:
    """The brokers of one cluster, for the thread that runs its loop.

    Arguments: loop; settings; chance: random numbers for the order of servers and the jitter.

    Attributes: cluster: the cached metadata; settings; topics: the MetadataUpdater.
    """

    def __init__(
        self, loop: EventLoop, settings: NetSettings, chance: Optional[random.Random] = None
    ) -> None:
        self.settings = settings
        self.cluster = ClusterMetadata(
            loop.time,
            metadata_max_age_ms=settings.metadata_max_age * 1000,
            retry_backoff_ms=settings.retry_backoff * 1000,
        )
        self.cluster.set_bootstrap(settings.servers)
        self._loop = loop
        self._chance = chance or random.Random()
        self._connections = BrokerConnections(
            loop, settings, self.cluster, self._chance, self._on_lost
        )
        self._coordinators = Coordinators(loop, self._connections, settings, self._chance)
        self._groups = GroupConnections(self._connections, self._coordinators)
        self._silent_since: Optional[float] = (
            None  # time of the first of consecutive failed refreshes
        )
        self._warned_at = -math.inf  # time of the last warning about a rebootstrap
        self.topics = MetadataUpdater(loop, settings, self.cluster, self._fetch, self._chance)

    def __repr__(self) -> str:
        connections = self._connections
        state = ' closed' if connections.is_closed else ''
        return '<Pool %s ready=%d%s>' % (self.cluster, connections.ready_count, state)

    @property
    def seen_versions(self) -> Optional[BrokerVersions]:
        """The API versions of the broker that was connected last; None before the first."""
        return self._connections.seen_versions

    # ------------------------------------------------------------ bootstrap

    async def bootstrap(self, timeout: float = 30.0) -> None:
        """Fetch the metadata of the cluster, retrying until a bootstrap server responds.

        Raises NoBrokersAvailable after `timeout` seconds, with all attempts in ``attempts``; at
        once an error that is not retriable, such as wrong credentials, also with ``attempts``;
        KafkaConfigurationError.
        """
        deadline = self._loop.time() + timeout
        attempts: List[Attempt] = []
        failures = 0
        while True:
            try:
                await self._loop.within(
                    max(0.001, deadline - self._loop.time()), self._bootstrap_once(attempts)
                )
                break
            except KafkaError as error:
                if is_fatal(error):
                    raise with_attempts(error, attempts) from None
                failures += 1
                pause = self._pause(failures)
                left = deadline - self._loop.time()
                if pause >= left:
                    # Raise after the timeout even if all servers fail sooner: callers expect it.
                    await self._loop.sleep(max(0.0, left))
                    raise self._connections.no_brokers(attempts, timeout) from error
            await self._loop.sleep(pause)
        self.topics.begin()

    async def _bootstrap_once(self, attempts: List[Attempt]) -> None:
        """Try the bootstrap servers in random order until one returns the metadata."""
        servers = list(self.settings.servers)
        if self.settings.canonical_names:
            servers = await self._canonical(servers)
        self._chance.shuffle(servers)
        links = [self._connections.make(host, port) for host, port in servers]
        if not links:
            raise KafkaConnectionError('there are no bootstrap servers')
        asked: Dict[NodeConnection, float] = {}
        try:
            await first_of(self._loop, [self._asking(link, asked) for link in links], INTERVAL)
        finally:
            for link, began in asked.items():
                link.note('Metadata', began, given_up())
            for link in links:
                self._connections.keep_or_close(link)
                attempts.extend(link.attempts)

    async def _canonical(self, servers: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
        """Return the canonical names of all addresses of the servers, which Kerberos needs."""
        found: List[Tuple[str, int]] = []
        for host, port in servers:
            names = await self._loop.blocking(
                partial(_canonical_names, host, port),
                self.settings.setup_timeout,
                'the look-up of ' + host,
            )
            found.extend((name, port) for name in names)
        return list(dict.fromkeys(found))

    def _asking(
        self, link: NodeConnection, asked: Dict[NodeConnection, float]
    ) -> Callable[[], Coroutine[Any, Any, Update]]:
        """Return a function that requests the metadata from a bootstrap server.

        While its request is outstanding, `asked` has the time when it was sent.
        """

        async def ask() -> Update:
            await link.ready()
            asked[link] = began = self._loop.time()
            try:
                update = await self._ask(link, self.topics.topics())
            except KafkaError as error:
                link.note('Metadata', began, error)
                del asked[link]
                raise
            del asked[link]
            return update

        return ask

    async def _rebootstrap(self) -> None:
        """Bootstrap again, and close the old connections if that succeeds (KIP-899)."""
        now = self._loop.time()
        if now >= self._warned_at + WARN_EVERY:
            self._warned_at = now
            log.warning('no broker that is known answers: asking the bootstrap servers')
        attempts: List[Attempt] = []
        before = dict(self._connections.common)
        try:
            await self._bootstrap_once(attempts)
        except KafkaError as error:
            raise with_attempts(error, attempts) from None
        self.cluster.forget_coordinators()
        self._connections.close_replaced(before)

    # ------------------------------------------------------------ brokers

    def link(self, node_id: int) -> NodeConnection:
        """Return the connection to a node for common requests.

        Raises UnknownBrokerIdError for an unknown node.
        """
        return self._connections.of_node(self._connections.common, node_id)

    def fetch_link(self, node_id: int) -> NodeConnection:
        """Return the connection to a node for Fetch requests.

        A broker responds in order, and holds a Fetch until records are available: any other request
        on the same connection would wait for it. Raises as link().
        """
        return self._connections.of_node(self._connections.fetches, node_id)

    async def group_link(self, group_id: str, parks: bool = False) -> NodeConnection:
        """Return a ready connection to the coordinator of a group, for requests of a member.

        Arguments: parks: True for JoinGroup and SyncGroup, which use a separate connection: a
        broker holds them until the other members have joined, and with them all later requests of
        the connection.

        If the connection was closed, the next call returns a new one. Raises as coordinator(), and
        KafkaConnectionError if the coordinator cannot be reached.
        """
        return await self._groups.ready(group_id, parks)

    def group_link_at_hand(self, group_id: str) -> Optional[NodeConnection]:
        """Return the connection of group_link() with ``parks=False``; None if not connected."""
        return self._groups.at_hand(group_id)

    async def any_group_link(self, group_id: str) -> NodeConnection:
        """Return a ready connection for a group to any broker, the same one while it is connected.

        For offsets in ZooKeeper, which any broker can access. Raises as any_ready().
        """
        return await self._groups.ready_anywhere(group_id)

    def candidates(self) -> List[NodeConnection]:
        """Return the connections to all brokers, the least loaded first."""
        return self._connections.candidates()

    async def any_ready(self) -> NodeConnection:
        """Return a ready connection to any broker; connect if necessary.

        Raises NoBrokersAvailable, with ``attempts``, if no broker can be reached.
        """
        return await self._connections.any_ready()

    def _on_lost(self, link: NodeConnection) -> None:
        if not self._connections.is_closed:
            self.refresh()

    @property
    def is_connected(self) -> bool:
        """Whether any connection is ready; may be read by any thread."""
        return self._connections.is_connected

    def versions(self, node_id: int) -> Optional[BrokerVersions]:
        """Return the API versions of a node; None while it is not connected."""
        return self._connections.versions(node_id)

    def finalized_features(self) -> Dict[str, int]:
        """Return {feature: level} of the newest finalized features of the cluster (KIP-584)."""
        return self._connections.finalized_features()

    # ------------------------------------------------------------ requests

    async def send(
        self,
        request: Message,
        node: Optional[int] = None,
        timeout: Optional[float] = None,
        version: Optional[int] = None,
        highest: Optional[int] = None,
        key: Optional[str] = None,
    ) -> Any:
        """Send a request to the node that it is for, and return the response.

        Arguments: node: the node id, None to choose the node by the Route of the request;
        timeout: seconds for all of it, None for the request timeout; version, highest: as
        Session.choose_version(); key: the group or transactional id whose coordinator the request
        is for, None to read it from the request.

        Raises KafkaTimeoutError; KafkaConnectionError and NoBrokersAvailable if the broker cannot
        be reached or the connection is lost; UnknownBrokerIdError for an unknown node.
        The caller has to handle the error codes in the response.
        """
        if node is not None:
            link = self.link(node)
            if link.can_send:
                return await link.request(request, timeout, version, highest)
        seconds = self.settings.request_timeout if timeout is None else timeout
        return await self._loop.within(
            seconds, self._send(request, node, seconds, version, highest, key)
        )

    async def _send(
        self,
        request: Message,
        node: Optional[int],
        seconds: float,
        version: Optional[int],
        highest: Optional[int],
        key: Optional[str],
    ) -> Any:
        link = await self._link_for(request, node, key)
        try:
            return await link.request(request, seconds, version, highest)
        except KafkaConnectionError:
            self.refresh()
            raise

    async def _link_for(
        self, request: Message, node: Optional[int], key: Optional[str]
    ) -> NodeConnection:
        if node is not None:
            return self.link(node)
        route = request.route
        if route is Route.LEADER:
            return self.link(await self._leader(request))
        if route is Route.CONTROLLER and self.cluster.controller is not None:
            return self.link(self.cluster.controller_id)
        if route is Route.GROUP_COORDINATOR:
            return self.link(await self.coordinator(GROUP, key or group_of(request)))
        if route is Route.TRANSACTION_COORDINATOR:
            return self.link(await self.coordinator(TRANSACTION, key or transaction_of(request)))
        return await self.any_ready()

    async def _leader(self, request: Message) -> int:
        for topic, _ in partitions_of(request):
            if topic is not None:
                self.want_topic(topic)
        while True:
            leader = leader_of(request, self.cluster)
            if leader is not None:
                return leader
            await self.refreshed()

    async def coordinator(self, key_type: int, key: str) -> int:
        """Return the node id of the coordinator of a group (0) or transactional id (1).

        Sends FindCoordinator unless the coordinator is cached; retries while it is not available,
        up to the request timeout. Raises errors that are not retriable, such as
        GroupAuthorizationFailedError; UnsupportedVersionError for brokers without coordinators; and
        as any_ready().
        """
        return await self._coordinators.find(key_type, key)

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Remove a coordinator from the cache: it is looked up again when it is needed next."""
        self.cluster.forget_coordinator(key_type, key)

    # ------------------------------------------------------------ metadata

    def want_topic(self, topic: str) -> None:
        """Keep the metadata of a topic from now on; request it soon if it is unknown."""
        self.topics.want(topic)

    def need_topic(self, topic: str) -> None:
        """As want_topic(), for a topic with a record to send: brokers may create it again if it was
        deleted.
        """
        self.topics.need(topic)

    async def wait_for_topic(self, topic: str, timeout: float) -> None:
        """Return when the partitions of a topic are known. Raises as MetadataUpdater.topic()."""
        await self.topics.topic(topic, timeout)

    def refresh(self) -> None:
        """Request the metadata of all topics of interest soon, after the backoff."""
        self.topics.refresh()

    async def refreshed(self) -> None:
        """As refresh(), and return when the response was received."""
        await self.topics.refreshed()

    async def metadata(
        self, topics: Optional[List[str]] = None, timeout: Optional[float] = None
    ) -> ClusterMetadata:
        """Request the metadata of some topics now, None for all; return the cluster.

        Errors of topics are in ``cluster.topic_errors``. Raises KafkaTimeoutError after `timeout`
        seconds, None for the request timeout; and as any_ready().
        """
        seconds = self.settings.request_timeout if timeout is None else timeout
        await self._loop.within(seconds, self._fetch(topics))
        return self.cluster

    async def _fetch(self, topics: Optional[List[str]]) -> Update:
        """Request metadata from any broker; rebootstrap if no broker can be reached."""
        if not self.settings.rebootstraps:
            return await self._ask(await self.any_ready(), topics)
        now = self._loop.time()
        if self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since >= self.settings.rebootstrap_after:
            self._silent_since = now
            await self._rebootstrap()
        try:
            link = await self.any_ready()
            update = await self._ask(link, topics)
        except (NoBrokersAvailable, RebootstrapRequiredError):
            await self._rebootstrap()
            update = await self._ask(await self.any_ready(), topics)
        self._silent_since = None
        return update

    async def _ask(self, link: NodeConnection, topics: Optional[List[str]]) -> Update:
        """Request metadata from one broker and update the cluster."""
        await link.ready()
        version = session_of(link).choose_version(MetadataRequest(topics=[]))
        creates = self.settings.allow_auto_create_topics
        if creates and topics is not None and version >= CAN_SPARE_FROM:
            known = {*self.cluster.partition_states, *self.cluster.deleted_topics}
            new = [each for each in topics if each not in known]
            creates = new == topics
            if new and not creates:  # the flag applies to all topics of a request
                response = await self._described(link, new, version, True)
                if response.brokers:
                    self.cluster.merge(response, version)
        response = await self._described(link, topics, version, creates)
        replaces = topics is None or topics == self.topics.topics()
        take = self.cluster.replace if replaces else self.cluster.merge
        try:
            update = take(response, version)
        except MetadataEmptyBrokerList:
            # Brokers of 0.8 list no broker before a topic exists, and before 0.8.2 only the leaders
            # of requested topics, but such a broker can serve requests. A later broker that lists
            # no broker has just started, and its list of topics is not complete either.
            if version > 0:
                raise
            if link.node_id is None:
                self._connections.spare = link
            return Update(False, frozenset())
        spare = self._connections.take_spare()
        if spare is not None:
            self._connections.keep_or_close(spare)
        self._connections.close_gone()
        return update

    async def _described(
        self, link: NodeConnection, topics: Optional[List[str]], version: int, creates: bool
    ) -> Any:
        """Return a broker's Metadata response. Raises RebootstrapRequiredError."""
        request = metadata_request(topics, version, creates)
        response = await link.request(request, version=version)
        if response.error_code == RebootstrapRequiredError.errno:
            raise RebootstrapRequiredError('%s:%s' % (link.host, link.port))
        return response

    def _pause(self, failures: int) -> float:
        settings = self.settings
        longest = max(settings.reconnect_backoff, settings.reconnect_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(settings.reconnect_backoff, longest, failures, part)

    def close(self) -> None:
        """Close all connections; outstanding requests fail."""
        self._connections.is_closed = True
        self.topics.close()
        self._connections.close()


def _canonical_names(host: str, port: int) -> List[str]:
    """Return the names of all addresses of a host; blocks."""
    return [canonical_name(each) for each in look_up(host, port)]
