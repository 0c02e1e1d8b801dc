"""All brokers of a cluster: found through the bootstrap servers, chosen by what a request is about.

Made by NetworkClient; used only by the thread that runs its loop, but for ``is_connected``. It does
not retry a request that was sent: only its caller can judge whether that is safe when it is unknown
whether the broker acted on it.

Metadata is refreshed when a caller asks for it: at once after a pause, otherwise after a backoff
that grows while responses bring nothing new (metadata_updater.py). When no known broker can be
reached, the bootstrap servers are asked again (KIP-899), and so when a broker demands it (KIP-1102)
or no broker has answered for ``rebootstrap_after`` seconds.
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

    Arguments: loop; settings; chance: for the order of servers and the jitter.

    Attributes: cluster: what is known of it; settings; topics: the MetadataUpdater.
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
        self._silent_since: Optional[float] = None  # first of the refreshes that failed
        self._warned_at = -math.inf  # that bootstrap servers were asked again
        self.topics = MetadataUpdater(loop, settings, self.cluster, self._fetch, self._chance)

    def __repr__(self) -> str:
        connections = self._connections
        state = ' closed' if connections.is_closed else ''
        return '<Pool %s ready=%d%s>' % (self.cluster, connections.ready_count, state)

    @property
    def seen_versions(self) -> Optional[BrokerVersions]:
        """What the broker serves that was connected last; None before the first."""
        return self._connections.seen_versions

    # ------------------------------------------------------------ bootstrap

    async def bootstrap(self, timeout: float = 30.0) -> None:
        """Find the cluster, trying again until a server answers.

        Raises NoBrokersAvailable after `timeout` seconds, with all attempts in ``attempts``; at
        once an error that is not retriable, such as wrong credentials, with ``attempts`` too;
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
                    # A caller that gives a time gets the error after that time, not earlier.
                    await self._loop.sleep(max(0.0, left))
                    raise self._connections.no_brokers(attempts, timeout) from error
            await self._loop.sleep(pause)
        self.topics.begin()

    async def _bootstrap_once(self, attempts: List[Attempt]) -> None:
        """Ask the servers one after the other, until one describes the cluster."""
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
        """Return a call that asks a bootstrap server; `asked` has when, until it has answered."""

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
        """Ask the bootstrap servers again; close the old connections if one answers (KIP-899)."""
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
        """Return the connection to a node. Raises UnknownBrokerIdError for an unknown one."""
        return self._connections.of_node(self._connections.common, node_id)

    def fetch_link(self, node_id: int) -> NodeConnection:
        """Return another connection to a node, for fetching records.

        A broker answers in order, and holds a Fetch back until there are records: any other request
        on that connection would wait for it. Raises as link().
        """
        return self._connections.of_node(self._connections.fetches, node_id)

    async def group_link(self, group_id: str, parks: bool = False) -> NodeConnection:
        """Return a connection to the coordinator of a group, ready, for requests of its members.

        Arguments: parks: True for JoinGroup and SyncGroup, which a broker holds back until the
        other members have come, and with them all later requests of that connection; another
        connection is for the rest.

        After it was closed, the next call returns a new one. Raises as coordinator(), and
        KafkaConnectionError when it cannot be reached.
        """
        return await self._groups.ready(group_id, parks)

    def group_link_at_hand(self, group_id: str) -> Optional[NodeConnection]:
        """Return the result of group_link() for the rest if it is connected already, else None."""
        return self._groups.at_hand(group_id)

    async def any_group_link(self, group_id: str) -> NodeConnection:
        """Return a connection for a group to any broker, the same one while it is connected.

        For offsets in ZooKeeper, which any broker reaches. Raises as any_ready().
        """
        return await self._groups.ready_anywhere(group_id)

    def candidates(self) -> List[NodeConnection]:
        """Return the connections to all brokers, the least loaded first."""
        return self._connections.candidates()

    async def any_ready(self) -> NodeConnection:
        """Return a broker that can be sent any request; connects if need be.

        Raises NoBrokersAvailable, with ``attempts``, when none can be reached.
        """
        return await self._connections.any_ready()

    def _on_lost(self, link: NodeConnection) -> None:
        if not self._connections.is_closed:
            self.refresh()

    @property
    def is_connected(self) -> bool:
        """Whether any connection is open; may be asked by any thread."""
        return self._connections.is_connected

    def versions(self, node_id: int) -> Optional[BrokerVersions]:
        """Return what a node serves; None while it is not connected."""
        return self._connections.versions(node_id)

    def finalized_features(self) -> Dict[str, int]:
        """Return the features of the cluster and their levels, of the newest epoch (KIP-584)."""
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
        """Send a request to the broker that it is for, and return the response.

        Arguments: node: the id of the broker, None to choose it by the request's Route;
        timeout: seconds for all of it, None for the request time-out; version, highest: as
        Session.choose_version(); key: the group or transactional id whose coordinator it is for,
        None to read that from the request.

        Raises KafkaTimeoutError; KafkaConnectionError and NoBrokersAvailable when the broker cannot
        be reached or the connection is lost; UnknownBrokerIdError for a node that is not known.
        Error codes inside the response are for the caller to handle.
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
        """Return the node that coordinates a group (0) or transactional id (1); asks if need be.

        Asks again while there is none, up to the request time-out. Raises errors that are not
        retriable, such as GroupAuthorizationFailedError; UnsupportedVersionError for brokers that
        have no coordinators; and as any_ready().
        """
        return await self._coordinators.find(key_type, key)

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Look a coordinator up again when it is needed next."""
        self.cluster.forget_coordinator(key_type, key)

    # ------------------------------------------------------------ metadata

    def want_topic(self, topic: str) -> None:
        """Keep the metadata of a topic from now on; ask for it soon if it is not known."""
        self.topics.want(topic)

    def need_topic(self, topic: str) -> None:
        """As want_topic(), for a record that waits: a deleted topic may be created again."""
        self.topics.need(topic)

    async def wait_for_topic(self, topic: str, timeout: float) -> None:
        """Return once the partitions of a topic are known. Raises as MetadataUpdater.topic()."""
        await self.topics.topic(topic, timeout)

    def refresh(self) -> None:
        """Ask for the metadata of all topics of interest soon, with backoff."""
        self.topics.refresh()

    async def refreshed(self) -> None:
        """As refresh(), and return when the response has come."""
        await self.topics.refreshed()

    async def metadata(
        self, topics: Optional[List[str]] = None, timeout: Optional[float] = None
    ) -> ClusterMetadata:
        """Ask now for the metadata of some topics, None for all; return the cluster.

        Errors of topics are in ``cluster.topic_errors``. Raises KafkaTimeoutError after `timeout`
        seconds, None for the request time-out; and as any_ready().
        """
        seconds = self.settings.request_timeout if timeout is None else timeout
        await self._loop.within(seconds, self._fetch(topics))
        return self.cluster

    async def _fetch(self, topics: Optional[List[str]]) -> Update:
        """Ask any broker; ask the bootstrap servers again if none answers."""
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
        """Ask one broker for the metadata of topics; put it into the cluster."""
        await link.ready()
        version = session_of(link).choose_version(MetadataRequest(topics=[]))
        creates = self.settings.allow_auto_create_topics
        if creates and topics is not None and version >= CAN_SPARE_FROM:
            known = {*self.cluster.partition_states, *self.cluster.deleted_topics}
            new = [each for each in topics if each not in known]
            creates = new == topics
            if new and not creates:  # the flag of a request holds for all of its topics
                response = await self._described(link, new, version, True)
                if response.brokers:
                    self.cluster.merge(response, version)
        response = await self._described(link, topics, version, creates)
        replaces = topics is None or topics == self.topics.topics()
        take = self.cluster.replace if replaces else self.cluster.merge
        try:
            update = take(response, version)
        except MetadataEmptyBrokerList:
            # Brokers of 0.8 list no broker before there is a topic, and before 0.8.2 only those
            # that lead one of the topics asked for; they can be asked all the same. A later broker
            # that lists none has just started, and its list of topics is not complete either.
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
        """Close all connections; requests that wait fail."""
        self._connections.is_closed = True
        self.topics.close()
        self._connections.close()


def _canonical_names(host: str, port: int) -> List[str]:
    """Return the names of all addresses of a host; blocks."""
    return [canonical_name(each) for each in look_up(host, port)]
