"""All brokers of a cluster: found by the bootstrap servers, asked by what a request is about.

Owns: one BrokerLink for each node, and one more to each that records are fetched from; the
refreshing of what is known of the cluster, the finding of coordinators, the choice of a broker.
Does not own: the knowledge itself (cluster.py), connections (broker.py), those of groups beside the
common ones (group_links.py), what answers mean to who asked, and retries of what was sent: whether
a broker acted on a request that was lost only its sender can judge.

A refresh is asked for by whoever needs one, and happens soon: at once after a pause, otherwise
after a back-off that grows while answers bring nothing new. When nobody that is known can be
reached, the client begins anew with the bootstrap servers (KIP-899), and so it does when a broker
says that it has to (KIP-1102) or nobody has answered for ``rebootstrap_after``.
"""

from __future__ import annotations

import logging
import math
import random
from typing import Any, Callable, Coroutine, Dict, List, Optional, Tuple

from kafka.cluster import ClusterMetadata, Update
from kafka.errors import (
    Cancelled,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    MetadataEmptyBrokerList,
    NoBrokersAvailable,
    RebootstrapRequiredError,
    UnknownBrokerIdError,
)
from kafka.net.attempts import Attempt, describe, given_up, telling
from kafka.net.broker import WARN_EVERY, BrokerLink
from kafka.net.connect import Family
from kafka.net.coordinators import Coordinators
from kafka.net.group_links import GroupLinks
from kafka.net.link_parts import LinkState, backoff_seconds, session_of
from kafka.net.metadata_updater import CAN_SPARE_FROM, Refreshing, metadata_request
from kafka.net.racing import first_of
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
from kafka.structs import BrokerMetadata

__all__ = ['Pool']

log = logging.getLogger(__name__)

#: Seconds after which the next server is tried beside one that does not answer.
INTERVAL = 1.0

Server = Tuple[str, int]
_Links = Dict[int, BrokerLink]


class Pool:
    """The brokers of one cluster, for turns of its loop only.

    Arguments: loop; settings; chance: for the order of servers and the jitter.

    Attributes: cluster: what is known, a ClusterMetadata; settings; topics: which topics are of
    interest, and when they are asked about; seen_versions: what the broker serves that was
    connected last, None before the first.
    """

    def __init__(
        self, loop: Any, settings: NetSettings, chance: Optional[random.Random] = None
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
        self._family = Family()
        self._links: _Links = {}
        self._fetch_links: _Links = {}
        self._group_links = GroupLinks(self, self._link_of)
        self._is_closed = False
        self.seen_versions: Optional[BrokerVersions] = None
        self._features: Tuple[int, Dict[str, int]] = (-1, {})
        self._silent_since: Optional[float] = None  # first of the refreshes that failed
        self._warned_at = -math.inf  # that bootstrap servers were asked again
        self._spare: Optional[BrokerLink] = None  # a bootstrap server that knows of no broker
        self._coordinators = Coordinators(loop, self, settings, self._chance)
        self.topics = Refreshing(loop, settings, self.cluster, self._fetch, self._chance)

    def __repr__(self) -> str:
        ready = sum(link.is_ready for link in self._links.values())
        return '<Pool %s ready=%d%s>' % (self.cluster, ready, ' closed' if self._is_closed else '')

    # ------------------------------------------------------------ bootstrap

    async def bootstrap(self, timeout: float = 30.0) -> None:
        """Find the cluster, trying again until somebody answers.

        Raises NoBrokersAvailable after `timeout` seconds, with all tries in ``attempts``; at once
        what no further try will cure, such as wrong credentials, with ``attempts`` too;
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
                    raise _with_attempts(error, attempts) from None
                failures += 1
                pause = self._pause(failures)
                left = deadline - self._loop.time()
                if pause >= left:
                    # Who says how long to wait is not told earlier that nobody came.
                    await self._loop.sleep(max(0.0, left))
                    raise self._nobody(attempts, timeout) from error
            await self._loop.sleep(pause)
        self.topics.begin()

    def _nobody(self, attempts: List[Attempt], timeout: float) -> NoBrokersAvailable:
        attempts = telling(attempts)
        text = 'no bootstrap server of %s answered within %.3g seconds' % (
            ', '.join('%s:%s' % server for server in self.settings.servers) or '(none)',
            timeout,
        )
        shown = describe(attempts)
        error = NoBrokersAvailable('%s: %s' % (text, shown) if shown else text)
        _with_attempts(error, attempts)
        return error

    async def _bootstrap_once(self, attempts: List[Attempt]) -> None:
        """Ask all servers, one after the other, until one tells of the cluster."""
        servers = list(self.settings.servers)
        if self.settings.canonical_names:
            servers = await self._canonical(servers)
        self._chance.shuffle(servers)
        links = [
            BrokerLink(
                self._loop,
                self.settings,
                host,
                port,
                family=self._family,
                chance=self._chance,
                on_ready=self._on_ready,
                on_lost=self._on_lost,
            )
            for host, port in servers
        ]
        if not links:
            raise KafkaConnectionError('there are no bootstrap servers')
        asked: Dict[BrokerLink, float] = {}
        try:
            await first_of(self._loop, [self._asking(link, asked) for link in links], INTERVAL)
        finally:
            for link, began in asked.items():
                link.note('Metadata', began, given_up())
            for link in links:
                self._keep_or_close(link)
                attempts.extend(link.attempts)

    async def _canonical(self, servers: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
        """Return the servers behind names that stand for several, as Kerberos wants them."""
        found: List[Tuple[str, int]] = []
        for host, port in servers:
            names = await self._loop.blocking(
                lambda host=host, port=port: [canonical_name(each) for each in look_up(host, port)],
                self.settings.setup_timeout,
                'the look-up of ' + host,
            )
            found.extend((name, port) for name in names)
        return list(dict.fromkeys(found))

    def _asking(
        self, link: BrokerLink, asked: Dict[BrokerLink, float]
    ) -> Callable[[], Coroutine[Any, Any, Update]]:
        """Return what asks a bootstrap server; `asked` has when, for as long as that goes on."""

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

    def _keep_or_close(self, link: BrokerLink) -> None:
        """Go on using the connection to a bootstrap server as that of the broker it is."""
        if link is self._spare:
            return
        for broker in self._brokers():
            known = self._links.get(broker.nodeId)
            same = (broker.host, broker.port) == (link.host, link.port)
            if same and link.is_ready and (known is None or not known.is_ready):
                if known is not None:
                    known.close()
                link.node_id = broker.nodeId
                self._links[broker.nodeId] = link
                return
        link.close()

    async def _rebootstrap(self) -> None:
        """Begin anew with the servers, without the old connections if one answers (KIP-899)."""
        now = self._loop.time()
        if now >= self._warned_at + WARN_EVERY:
            self._warned_at = now
            log.warning('no broker that is known answers: asking the bootstrap servers')
        attempts: List[Attempt] = []
        before = dict(self._links)
        try:
            await self._bootstrap_once(attempts)
        except KafkaError as error:
            raise _with_attempts(error, attempts) from None
        self.cluster.forget_coordinators()
        for node_id, link in before.items():
            if self._links.get(node_id) is link:
                del self._links[node_id]
            link.close()
        self._group_links.close()
        for link in self._fetch_links.values():
            link.close()
        self._fetch_links.clear()

    # ------------------------------------------------------------ brokers

    def link(self, node_id: int) -> BrokerLink:
        """Return the link to a node. Raises UnknownBrokerIdError for one that is not known."""
        return self._link_of(self._links, node_id)

    def fetch_link(self, node_id: int) -> BrokerLink:
        """Return another link to a node, for what fetches records.

        A broker answers in order, and keeps a Fetch for as long as there is nothing to tell: what
        is asked on that connection meanwhile would wait behind it. Raises as link().
        """
        return self._link_of(self._fetch_links, node_id)

    def _link_of(self, links: _Links, node_id: int) -> BrokerLink:
        if self._is_closed:
            raise IllegalStateError('the client is closed')
        broker = self.cluster.broker_metadata(node_id)
        if broker is None or not isinstance(broker.port, int):
            raise UnknownBrokerIdError('no broker has the node id %r' % (node_id,))
        link = links.get(node_id)
        if link is not None and (link.host, link.port) != (broker.host, broker.port):
            link.close()
        if link is None or link.state is LinkState.CLOSED:
            link = links[node_id] = BrokerLink(
                self._loop,
                self.settings,
                str(broker.host),
                broker.port,
                node_id,
                self._family,
                self._chance,
                self._on_ready,
                self._on_lost,
            )
        return link

    async def group_link(self, group_id: str, parks: bool = False) -> BrokerLink:
        """Return a link to the coordinator of a group, connected, for the calls of its members.

        Arguments: parks: for JoinGroup and SyncGroup, which a broker parks until the other members
        have come, and everything behind them on that connection; another one is for the rest.

        Who closes it gets a new one. Raises as coordinator(), and KafkaConnectionError when it
        cannot be reached.
        """
        return await self._group_links.ready(group_id, parks)

    def group_link_at_hand(self, group_id: str) -> Optional[BrokerLink]:
        """Return what group_link() would for the rest; None unless it is known and connected."""
        return self._group_links.at_hand(group_id)

    async def any_group_link(self, group_id: str) -> BrokerLink:
        """Return a link for a group to any broker, always the same while that is connected.

        For offsets in ZooKeeper, which any broker reaches. Raises as any_ready().
        """
        return await self._group_links.ready_anywhere(group_id)

    def _all_links(self) -> List[BrokerLink]:
        spare = self._spare  # looked at once: is_connected is asked by any thread
        beside = [*self._fetch_links.values(), *self._group_links.links()]
        return [*self._links.values(), *beside, *([] if spare is None else [spare])]

    def _brokers(self) -> List[BrokerMetadata]:
        """Return the brokers in the same order in every process, which a set does not keep."""
        return sorted(self.cluster.brokers(), key=lambda broker: broker.nodeId)

    def candidates(self) -> List[BrokerLink]:
        """Return the links to all brokers, the best one to ask anything first.

        Those that are ready with the fewest requests, then those that connect, then the others, the
        longest not tried first and those in back-off last.
        """
        links = [
            self.link(broker.nodeId)
            for broker in self._brokers()
            if not self.cluster.is_bootstrap(broker.nodeId)
        ]
        if not links and self._spare is not None:
            return [self._spare]
        self._chance.shuffle(links)
        return sorted(
            links,
            key=lambda link: (
                not link.is_ready,
                link.load if link.is_ready else 0,
                link.backoff > 0,
                link.last_attempt,
            ),
        )

    async def any_ready(self) -> BrokerLink:
        """Return a broker that can be asked anything; connects if need be.

        Raises NoBrokersAvailable, with ``attempts``, when none can be reached.
        """
        links = self.candidates()
        if links and links[0].is_ready:
            return links[0]
        if not links:
            raise self._nobody([], 0)

        def way(link: BrokerLink) -> Callable[[], Coroutine[Any, Any, BrokerLink]]:
            async def get_ready() -> BrokerLink:
                if link.state is LinkState.CLOSED:  # the pool has begun anew meanwhile
                    raise Cancelled('%r was closed' % link)
                await link.ready()
                return link

            return get_ready

        try:
            return await first_of(self._loop, [way(link) for link in links], INTERVAL)
        except KafkaError as error:
            attempts = [each for link in links for each in link.attempts]
            if is_fatal(error):
                raise _with_attempts(error, attempts) from None
            text = 'no broker can be reached: ' + describe(attempts)
            raise _with_attempts(NoBrokersAvailable(text), attempts) from error

    def _on_ready(self, link: BrokerLink) -> None:
        versions = link.versions
        self.seen_versions = versions or self.seen_versions
        if versions is not None and versions.finalized_features_epoch > self._features[0]:
            self._features = (versions.finalized_features_epoch, versions.finalized_features)

    def _on_lost(self, link: BrokerLink) -> None:
        if not self._is_closed:
            self.refresh()

    @property
    def is_connected(self) -> bool:
        """Whether any connection is open; may be asked by any thread."""
        return not self._is_closed and any(link.is_ready for link in self._all_links())

    def versions(self, node_id: int) -> Optional[BrokerVersions]:
        """Return what a node serves; None while it is not connected."""
        link = self._links.get(node_id)
        return None if link is None else link.versions

    def finalized_features(self) -> Dict[str, int]:
        """Return the features of the cluster and their levels, of the newest epoch (KIP-584)."""
        return self._features[1]

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

        Arguments: node: the id of the broker that is meant, None to go by the request's Route;
        timeout: seconds for all of it, None for the request time-out; version, highest: as
        Session.choose_version(); key: whose coordinator is meant, None if the request says it.

        Raises KafkaTimeoutError; KafkaConnectionError and NoBrokersAvailable when the broker cannot
        be reached or the connection is lost; UnknownBrokerIdError for a node that is not known.
        Errors inside the response are the caller's business.
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
    ) -> BrokerLink:
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

        Goes on asking while there is none, up to the request time-out. Raises what a broker says
        for good, such as GroupAuthorizationFailedError; UnsupportedVersionError for brokers that
        have no coordinators; and as any_ready().
        """
        return await self._coordinators.find(key_type, key)

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Look a coordinator up again when it is needed next."""
        self.cluster.forget_coordinator(key_type, key)

    # ------------------------------------------------------------ metadata

    def want_topic(self, topic: str) -> None:
        """Take a topic into interest; it is asked about soon if it is not known."""
        self.topics.want(topic)

    def need_topic(self, topic: str) -> None:
        """As want_topic(), for a record that waits: a deleted topic may be created again."""
        self.topics.need(topic)

    async def wait_for_topic(self, topic: str, timeout: float) -> None:
        """Return once the partitions of a topic are known. Raises as Refreshing.topic()."""
        await self.topics.topic(topic, timeout)

    def refresh(self) -> None:
        """Ask about the cluster soon, with back-off."""
        self.topics.refresh()

    async def refreshed(self) -> None:
        """Ask about the cluster soon, and return when the answer has come."""
        await self.topics.refreshed()

    async def metadata(
        self, topics: Optional[List[str]] = None, timeout: Optional[float] = None
    ) -> ClusterMetadata:
        """Ask now about some topics, None for all; return what is known then.

        Errors of topics are in ``cluster.topic_errors``. Raises KafkaTimeoutError after `timeout`
        seconds, None for the request time-out; and as any_ready().
        """
        seconds = self.settings.request_timeout if timeout is None else timeout
        await self._loop.within(seconds, self._fetch(topics))
        return self.cluster

    async def _fetch(self, topics: Optional[List[str]]) -> Update:
        """Ask any broker; begin anew with the bootstrap servers where none answers."""
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

    async def _ask(self, link: BrokerLink, topics: Optional[List[str]]) -> Update:
        """Ask one broker about topics, and remember what it answers."""
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
            # Brokers of 0.8 list none before there is a topic, and before 0.8.2 those alone that
            # have one of the topics asked about; they can be asked all the same. A later one has
            # just started and knows nothing yet: that it names no topics says nothing either.
            if version > 0:
                raise
            if link.node_id is None:
                self._spare = link
            return Update(False, frozenset())
        spare, self._spare = self._spare, None
        if spare is not None:
            self._keep_or_close(spare)
        self._close_gone()
        return update

    async def _described(
        self, link: BrokerLink, topics: Optional[List[str]], version: int, creates: bool
    ) -> Any:
        """Return what a broker answers about topics. Raises RebootstrapRequiredError."""
        request = metadata_request(topics, version, creates)
        response = await link.request(request, version=version)
        if response.error_code == RebootstrapRequiredError.errno:
            raise RebootstrapRequiredError('%s:%s' % (link.host, link.port))
        return response

    def _close_gone(self) -> None:
        """Close connections to brokers that are no longer listed."""
        known = {broker.nodeId for broker in self.cluster.brokers()}
        for links in (self._links, self._fetch_links, *self._group_links.tables()):
            for node_id in [each for each in links if each not in known]:
                if not links[node_id].load:
                    links.pop(node_id).close()

    def _pause(self, failures: int) -> float:
        settings = self.settings
        longest = max(settings.reconnect_backoff, settings.reconnect_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(settings.reconnect_backoff, longest, failures, part)

    def close(self) -> None:
        """Close all connections; requests that wait fail."""
        self._is_closed = True
        self.topics.close()
        for link in self._all_links():
            link.close()
        self._links.clear()
        self._fetch_links.clear()


def _with_attempts(error: Any, attempts: List[Attempt]) -> Any:
    error.attempts = list(attempts)
    return error
