"""EventedClient: requests to all brokers of a cluster, which advance only in poll() (1.x, 2.x).

Holds one BrokerConnection per node, a poller for their sockets, the refreshes of metadata, and
scheduled tasks. It has no thread. Programs use ``KafkaClient`` (kafka/client.py), whose calls of
1.x and 2.x are delegated to this class.

Each connection requests the broker's versions before it carries requests, so that structs in
versions that the broker dropped can be translated. The class BrokerConnection is looked up in this
module when a connection is made: programs replace it here.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from kafka import config as options
from kafka.client import KafkaClient
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    Cancelled,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NodeNotReadyError,
)
from kafka.evented.bootstrap import Bootstrap, metadata_request, nobody
from kafka.evented.broker_connection import BrokerConnection
from kafka.evented.stepped_socket import NameNotResolved
from kafka.future import Future
from kafka.internals.logging_setup import be_quiet
from kafka.metrics.network_metrics import ClientMetrics
from kafka.net.addresses import collect_hosts, get_ip_port_afi
from kafka.net.loop.selector import READ, Poller
from kafka.protocol.release import ReleaseName, release_of

__all__ = ['BrokerConnection', 'DelayedTaskQueue', 'EventedClient', 'KafkaClient']

log = logging.getLogger('kafka.client_async')
be_quiet()

LATER_SECONDS = 9999999999  # if the queue is empty
NEVER_MS = 999999999
CONNECTING_SECONDS = 0.01  # between two checks of connections that are being established
FINDING_SECONDS = 0.002  # ... while the constructor looks for the cluster
MOST_ATTEMPTS = 100  # that an error lists
# How long the constructor tries if servers refuse connections, and if they do not answer.
REFUSED_SECONDS, SILENT_SECONDS = 2.0, 30.0


class DelayedTaskQueue:
    """Callables to run at given times in epoch seconds, each at most once."""

    def __init__(self) -> None:
        self._heap: List[Tuple[float, int, Any]] = []
        self._futures: Dict[Any, Tuple[int, Future]] = {}
        self._count = itertools.count()

    def add(self, task: Any, at: float) -> Future:
        """Add a task, replacing an earlier entry of it; return the future of its result."""
        if task in self._futures:
            self.remove(task)
        number, future = next(self._count), Future()
        self._futures[task] = number, future
        heapq.heappush(self._heap, (at, number, task))
        return future

    def __contains__(self, task: Any) -> bool:
        return task in self._futures

    def remove(self, task: Any) -> None:
        """Remove a task; its future fails with Cancelled. Raises KeyError for an unknown one."""
        _, future = self._futures.pop(task)
        future.failure(Cancelled())

    def _drop_removed(self) -> None:
        while self._heap:
            _, number, task = self._heap[0]
            if self._futures.get(task, (None,))[0] == number:
                return
            heapq.heappop(self._heap)

    def next_at(self) -> float:
        """Return the seconds until the next task is due, 0 if it is; 9999999999 without one."""
        self._drop_removed()
        return max(0, self._heap[0][0] - time.time()) if self._heap else LATER_SECONDS

    def pop_ready(self) -> List[Tuple[Any, Future]]:
        """Remove and return the tasks that are due, with their futures."""
        ready = []
        while self.next_at() <= 0:
            _, _, task = heapq.heappop(self._heap)
            ready.append((task, self._futures.pop(task)[1]))
        return ready


def _checked(topic: Any) -> str:
    if not isinstance(topic, str):
        raise TypeError('a topic is named by str, not by %s' % type(topic).__name__)
    return topic


class EventedClient:
    """The implementation of an evented KafkaClient; see there for the meaning of the calls."""

    def __init__(self, **configs: Any) -> None:
        self.given = options.hidden(configs)
        self.config = options.resolve(options.CLIENT, configs)
        self.cluster = ClusterMetadata(**self.config)
        self._process = os.getpid()
        self._conns: Dict[Any, Any] = {}
        self._registered: Dict[Any, Any] = {}  # node id -> socket
        self._topics: Set[str] = set()
        self._refreshing: Optional[Future] = None
        self._tasks = DelayedTaskQueue()
        self._poller = Poller()
        self._search: Optional[Bootstrap] = None  # a search that poll() advances
        self._search_attempts: List[Any] = []  # of the last search that failed
        self._bootstrap_fails = 0
        self._last_bootstrap: float = 0  # monotonic seconds
        self._metrics: Optional[ClientMetrics] = None
        if self.config['metrics'] is not None:
            self._metrics = ClientMetrics(
                self.config['metrics'],
                self.config['metric_group_prefix'],
                self._registered.__len__,
            )
        self._find_cluster()

    # ------------------------------------------------------------ bootstrapping

    def _make(self, host: str, port: int, afi: int, node_id: Any = None) -> Any:
        def changed(conn: Any) -> None:
            if node_id is not None:
                self._changed(node_id, conn)

        names = BrokerConnection.DEFAULT_CONFIG
        given = {name: value for name, value in self.config.items() if name in names}
        given['api_version'] = given.get('api_version') or (0, 8, 2)
        given['state_change_callback'] = changed
        given['node_id'] = 'bootstrap' if node_id is None else node_id
        conn = BrokerConnection(host, port, afi, **given)
        conn.asks_versions = node_id is not None or self.config['api_version'] is None
        return conn

    def _new_search(self, seconds: float) -> Bootstrap:
        """Return a search through all bootstrap servers, which takes at most `seconds`."""
        hosts = collect_hosts(self.config['bootstrap_servers'])
        self._last_bootstrap = time.monotonic()
        limit = min(seconds / max(1, len(hosts)), self.config['request_timeout_ms'] / 1000)
        return Bootstrap(hosts, self._make, limit)

    def _find_cluster(self) -> None:
        """Find the cluster, blocking; see KafkaClient for how long.

        Without api_version, failure raises, since the brokers' release is needed; with it, poll()
        continues the search.
        """
        began = time.monotonic()
        is_needed = self.config['api_version'] is None
        given = self.config['api_version_auto_timeout_ms'] / 1000
        is_given = 'api_version_auto_timeout_ms' in self.config.given
        refused, silent = (given, given) if is_given else (REFUSED_SECONDS, SILENT_SECONDS)
        attempts: List[Any] = []
        while not self._has_found(self._searched(silent)):
            attempts = [*attempts, *self._search_attempts][-MOST_ATTEMPTS:]
            error = nobody(self.config['bootstrap_servers'], attempts)
            is_final = not isinstance(error, NoBrokersAvailable)
            if not is_needed and not is_final:
                log.warning('%s', error)
                return
            pause = self._bootstrap_pause()
            if is_final or time.monotonic() + pause > began + refused:
                self.close()
                raise error
            time.sleep(pause)

    def _searched(self, seconds: float) -> Bootstrap:
        search = self._new_search(seconds)
        try:
            while not search.step():
                time.sleep(FINDING_SECONDS)
        finally:
            search.close()
        return search

    def _has_found(self, search: Bootstrap) -> bool:
        """Apply the result of a search; return True if a server answered."""
        if search.metadata is None:
            self._bootstrap_fails += 1
            self._search_attempts = search.attempts
            return False
        self._bootstrap_fails = 0
        if self.config['api_version'] is None and search.versions is not None:
            options.settle_release(self.config, release_of(search.versions))
        self.cluster.update_metadata(search.metadata)
        return True

    def _bootstrap_pause(self) -> float:
        """Return the pause in seconds before all servers are tried again."""
        first, most = self.config['reconnect_backoff_ms'], self.config['reconnect_backoff_max_ms']
        backoff_ms = first * 2 ** min(self._bootstrap_fails, 9)
        pause: float = min(max(first, most), backoff_ms) / 1000
        return pause

    def _look_again(self) -> None:
        """Continue the search for the cluster, or start one if it is time; never waits."""
        if self._search is None:
            if time.monotonic() - self._last_bootstrap < self._bootstrap_pause():
                return
            self._search = self._new_search(SILENT_SECONDS)
        if self._search.step():
            found, self._search = self._search, None
            if not self._has_found(found):
                log.warning('%s', nobody(self.config['bootstrap_servers'], found.attempts))

    # ------------------------------------------------------------ nodes

    def _changed(self, node_id: Any, conn: Any) -> None:
        """Register the socket of a connection with the poller while it is connected."""
        sock = self._registered.pop(node_id, None)
        if sock is not None:
            self._poller.unregister(sock)
            if self._metrics is not None:
                self._metrics.disconnected()
        if conn.connected():
            sock = conn.sock
            self._poller.register(sock, READ, lambda events: None)
            self._registered[node_id] = sock
            if self._metrics is not None:
                self._metrics.connected()
        elif conn.disconnected():
            self.cluster.request_update()

    def _leave_parent(self) -> None:
        """After a fork, drop the parent's poller, and close the inherited sockets."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        inherited, self._poller = self._poller, Poller()
        self._registered.clear()
        inherited.close()
        for conn in self._conns.values():
            conn.leave_parent()
        self._search = self._refreshing = None

    def maybe_connect(self, node_id: Any) -> bool:
        """Continue connecting; return True if connected. AssertionError for an unknown node."""
        self._leave_parent()
        conn = self._conns.get(node_id)
        if conn is None:
            broker: Any = self.cluster.broker_metadata(node_id)
            if broker is None:
                raise AssertionError('node %r is not in the metadata' % (node_id,))
            host, port = broker.host, broker.port
            _, _, afi = get_ip_port_afi('[%s]' % host if ':' in host else host)
            conn = self._conns[node_id] = self._make(host, port, afi, node_id)
        if conn.connecting() or (conn.disconnected() and not conn.blacked_out()):
            try:
                conn.connect()
            except NameNotResolved as error:
                log.warning('%s: %s', conn, error)
        return bool(conn.connected())

    def ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Start connecting if necessary; return True if a request can be sent now."""
        self.maybe_connect(node_id)
        return self.is_ready(node_id, metadata_priority)

    def is_ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Return True if a request can be sent now, and no metadata refresh comes first."""
        if metadata_priority and (self._is_refreshing() or self.cluster.ttl() == 0):
            return False
        return self._can_send(node_id)

    def _can_send(self, node_id: Any) -> bool:
        conn = self._conns.get(node_id)
        return conn is not None and conn.connected() and conn.can_send_more()

    def connected(self, node_id: Any) -> bool:
        """Return True if a node is connected."""
        conn = self._conns.get(node_id)
        return conn is not None and conn.connected()

    def is_disconnected(self, node_id: Any) -> bool:
        """Return True if a node was in use and is disconnected."""
        conn = self._conns.get(node_id)
        return conn is not None and conn.disconnected()

    def connection_delay(self, node_id: Any) -> float:
        """Return the ms to wait until the next call can make progress."""
        conn = self._conns.get(node_id)
        delay_ms: float = 0 if conn is None else conn.connection_delay()
        return delay_ms

    def close(self, node_id: Any = None) -> None:
        """Close one connection, or all connections and the poller."""
        for each in list(self._conns) if node_id is None else [node_id]:
            conn = self._conns.pop(each, None)
            if conn is not None:
                conn.close()
        if node_id is None:
            if self._search is not None:
                self._search.close()
                self._search = None
            self._poller.close()

    def in_flight_request_count(self, node_id: Any = None) -> int:
        """Return the number of requests without a response, of one node or all."""
        nodes = list(self._conns) if node_id is None else [node_id]
        conns = [self._conns[each] for each in nodes if each in self._conns]
        return sum(len(conn.in_flight_requests) for conn in conns)

    def least_loaded_node(self) -> Any:
        """Return the best node for a request: connected and idle, else least busy, else new."""
        known = {broker.nodeId for broker in self.cluster.brokers()}
        usable = [
            node_id
            for node_id in known & set(self._conns)
            if not self._conns[node_id].blacked_out() and self._conns[node_id].can_send_more()
        ]
        usable.sort(key=lambda n: (not self.connected(n), self.in_flight_request_count(n)))
        if usable and self.connected(usable[0]):
            return usable[0]
        fresh = sorted(known - set(self._conns))
        if usable or fresh:
            return (usable or fresh)[0]
        self._look_again()
        return None

    # ------------------------------------------------------------ requests

    def send(self, node_id: Any, request: Any, wakeup: bool = True) -> Future:
        """Send a request; see KafkaClient."""
        if not self.maybe_connect(node_id):
            return Future().failure(NodeNotReadyError(node_id))
        if not hasattr(request, 'API_KEY'):
            raise TypeError('a request struct is needed, not %s' % type(request).__name__)
        conn = self._conns[node_id]
        is_answered = request.API_KEY != 0 or getattr(request, 'required_acks', None) != 0
        future: Future = conn.send(request, expect_response=is_answered)
        return future

    def poll(
        self,
        timeout_ms: Optional[float] = None,
        future: Optional[Future] = None,
        sleep: bool = True,
    ) -> List[Any]:
        """Send, receive, refresh metadata and run tasks that are due; see KafkaClient."""
        if timeout_ms is None:
            timeout_ms = self.config['request_timeout_ms']
        ends_at = time.monotonic() + timeout_ms / 1000
        responses: List[Any] = []
        self._leave_parent()
        for conn in list(self._conns.values()):
            conn.check_whole()  # otherwise poll() would wait for an interrupted step
        while True:
            self._run_tasks()
            self._connect_all()
            metadata_ms = self._maybe_refresh()
            left = max(0, ends_at - time.monotonic())
            is_done = future is not None and future.is_done
            self._wait(0 if is_done else self._waiting_seconds(left, metadata_ms, sleep))
            responses += self._received()
            if future is None or future.is_done or time.monotonic() >= ends_at:
                return responses

    def _run_tasks(self) -> None:
        for task, future in self._tasks.pop_ready():
            try:
                future.success(task())
            except Exception as error:  # of the program, which has the future
                log.error('Task %s failed: %s', task, error)
                future.failure(error)

    def _connect_all(self) -> None:
        if self._search is not None:
            self._look_again()
        for node_id, conn in list(self._conns.items()):
            if conn.connecting():
                self.maybe_connect(node_id)

    def _waiting_seconds(self, left: float, metadata_ms: float, sleep: bool) -> float:
        is_idle = not self.in_flight_request_count()
        connecting = self._search is not None or any(
            conn.connecting() for conn in self._conns.values()
        )
        if is_idle and not connecting and not sleep:
            return 0
        waits = [left, metadata_ms / 1000, self._tasks.next_at()]
        waits.append(self.config['request_timeout_ms'] / 1000)
        if connecting:
            waits.append(CONNECTING_SECONDS)
        return max(0, min(waits))

    def _wait(self, seconds: float) -> None:
        began = time.perf_counter_ns()
        for on_ready, events in self._poller.poll(seconds):
            on_ready(events)
        if self._metrics is not None:
            self._metrics.waited(time.perf_counter_ns() - began)

    def _received(self) -> List[Any]:
        began = time.perf_counter_ns()
        responses = self._receive()
        if self._metrics is not None:
            self._metrics.worked(time.perf_counter_ns() - began)
        return responses

    def _receive(self) -> List[Any]:
        responses = []
        for conn in list(self._conns.values()):
            while conn.connected():
                response = conn.recv()
                if response is None:
                    break
                responses.append(response)
        return responses

    def wakeup(self) -> None:
        """Interrupt a poll() that runs in another thread."""
        self._poller.wake()

    # ------------------------------------------------------------ metadata

    def _maybe_refresh(self) -> float:
        """Request metadata if it is due; return the ms until the next check."""
        if self._is_refreshing():
            return NEVER_MS
        due_ms: float = self.cluster.ttl()
        if due_ms > 0:
            return due_ms
        node_id = self.least_loaded_node()
        backoff_ms: float = self.config['retry_backoff_ms']
        if node_id is None:
            self.cluster.failed_update(NodeNotReadyError('no broker can be asked for metadata'))
            return backoff_ms
        if not self.maybe_connect(node_id) or not self._can_send(node_id):
            return self.config['reconnect_backoff_ms']  # type: ignore[no-any-return]
        conn, wanted = self._conns[node_id], None
        if self._topics and not self.cluster.need_all_topic_metadata:
            wanted = sorted(self._topics)
        self._refreshing = future = conn.send(metadata_request(wanted, conn.versions))
        future.add_both(self._refreshed)
        return NEVER_MS

    def _is_refreshing(self) -> bool:
        refreshing = self._refreshing
        if refreshing is not None and refreshing.is_done:
            # An exception has prevented the callback from handling the result.
            self._refreshed(refreshing.value if refreshing.succeeded() else refreshing.exception)
        return self._refreshing is not None

    def _refreshed(self, result: Any) -> None:
        self._refreshing = None
        if isinstance(result, BaseException):
            self.cluster.failed_update(result)
        else:
            self.cluster.update_metadata(result)

    def set_topics(self, topics: Iterable[str]) -> Future:
        """Track these topics; see KafkaClient."""
        wanted = set(map(_checked, [topics] if isinstance(topics, (str, bytes)) else topics))
        is_news = bool(wanted - self._topics) or not wanted
        self._topics = wanted
        if not is_news:
            return Future().success(set(wanted))
        if self._refreshing is not None:
            return self._after(self._refreshing)
        return self.cluster.request_update()

    def _after(self, refreshing: Future) -> Future:
        """Return the future of the next refresh: the running one is about other topics."""
        following = Future()
        refreshing.add_callback(lambda _: self.cluster.request_update().chain(following))
        refreshing.add_errback(following.failure)
        return following

    def add_topic(self, topic: str) -> Future:
        """Track another topic."""
        if _checked(topic) in self._topics:
            return Future().success(set(self._topics))
        return self.set_topics(self._topics | {topic})

    # ------------------------------------------------------------ tasks, versions

    def schedule(self, task: Callable[[], Any], at: float) -> Future:
        """Run a task during poll(), at a time in epoch seconds."""
        return self._tasks.add(task, at)

    def unschedule(self, task: Callable[[], Any]) -> None:
        """Remove a task, if it is scheduled."""
        if task in self._tasks:
            self._tasks.remove(task)

    def await_ready(self, node_id: Any, timeout_ms: float = 30000) -> bool:
        """Wait until a node is ready. Raises KafkaTimeoutError when time is over."""
        ends_at = time.monotonic() + timeout_ms / 1000
        while not self.ready(node_id, metadata_priority=False):
            if time.monotonic() >= ends_at:
                raise KafkaTimeoutError('node %r is not ready after %s ms' % (node_id, timeout_ms))
            self.poll(timeout_ms=min(50, timeout_ms))
        return True

    def send_and_receive(self, node_id: Any, request: Any) -> Any:
        """Send a request, wait for the response and return it. Raises the request's error."""
        self.await_ready(node_id)
        future = self.send(node_id, request)
        self.poll(future=future)
        if not future.is_done:
            raise KafkaTimeoutError('node %r did not answer in time' % (node_id,))
        if future.failed():
            raise future.exception
        return future.value

    def check_version(
        self, node_id: Any = None, timeout: float = 2, strict: bool = False
    ) -> ReleaseName:
        """Return the release of a broker; see KafkaClient."""
        if node_id is None:
            node_id = self.least_loaded_node()
        if node_id is None:
            raise nobody(self.config['bootstrap_servers'], self._search_attempts)
        self.maybe_connect(node_id)
        found: ReleaseName = self._conns[node_id].check_version(timeout=timeout, strict=strict)
        return found

    def get_api_versions(self, node_id: Any = None) -> Optional[Dict[int, Tuple[int, int]]]:
        """Return the versions a broker serves, None if none is known."""
        for conn in self._conns.values() if node_id is None else [self._conns.get(node_id)]:
            if conn is not None and conn.versions is not None:
                versions: Dict[int, Tuple[int, int]] = conn.versions
                return versions
        return None

    def api_version(self, request_class: Any, max_version: Optional[int] = None) -> int:
        """Return the highest version supported by both the struct classes and the broker."""
        classes = list(request_class)
        low, high = (self.get_api_versions() or {}).get(classes[0].API_KEY, (0, 0))
        version = min(high, len(classes) - 1, high if max_version is None else max_version)
        return max(version, min(low, len(classes) - 1))

    def bootstrap_connected(self) -> bool:
        """Return True if a bootstrap server has answered (1.4)."""
        return self._bootstrap_fails == 0
