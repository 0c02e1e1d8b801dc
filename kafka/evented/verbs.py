"""The calls of the evented KafkaClient of 1.x and 2.x, as KafkaClient offers them.

Owns what they are called and what they mean to a program. What they do is in client_async.py, which
is loaded when a client of that kind is made: programs of 0.9.5 need none of it.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional

from kafka.errors import IllegalStateError
from kafka.internals.lazy_imports import import_late

__all__ = ['EventedVerbs']


class _Defaults:
    """The defaults of the options, from the table, which only an evented client needs."""

    def __get__(self, client: Any, owner: Any = None) -> Any:
        table = import_late('kafka.config')
        return table.defaults(table.CLIENT)


class EventedVerbs:
    """The evented half of KafkaClient. Not for several threads, but for wakeup().

    Node ids are those of the metadata. Raises IllegalStateError where the client is a blocking one.
    """

    DEFAULT_CONFIG: Any = _Defaults()

    _evented_client: Any = None  # of a client of the other kind

    def _begin_evented(self, configs: Any) -> None:
        client = import_late('kafka.evented.client').EventedClient
        self._evented_client = client(**configs)

    @property
    def _evented(self) -> Any:
        if self._evented_client is None:
            raise IllegalStateError(
                'this KafkaClient is the blocking one of 0.9.5, made with hosts; the evented one is'
                " made with keywords: KafkaClient(bootstrap_servers='host:port')"
            )
        return self._evented_client

    @property
    def cluster(self) -> Any:
        """What is known of the cluster, a ClusterMetadata."""
        return self._evented.cluster

    @property
    def config(self) -> Any:
        """The options in force."""
        return self._evented.config

    def ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Begin to connect if need be; tell whether a request can be sent now.

        Arguments: metadata_priority: False to say so while metadata is refreshed, too (1.3).
        Raises AssertionError for a node that is not in the metadata.
        """
        return self._evented.ready(node_id, metadata_priority)  # type: ignore[no-any-return]

    def is_ready(self, node_id: Any, metadata_priority: bool = True) -> bool:
        """Tell whether a node is connected, takes more requests, and no refresh goes first."""
        return self._evented.is_ready(node_id, metadata_priority)  # type: ignore[no-any-return]

    def maybe_connect(self, node_id: Any, wakeup: bool = True) -> bool:
        """Begin or go on connecting; tell whether it is connected (1.3)."""
        return self._evented.maybe_connect(node_id)  # type: ignore[no-any-return]

    def await_ready(self, node_id: Any, timeout_ms: float = 30000) -> bool:
        """Wait until a node is ready; KafkaTimeoutError when time is over (2.1)."""
        return self._evented.await_ready(node_id, timeout_ms)  # type: ignore[no-any-return]

    def connected(self, node_id: Any) -> bool:
        """Tell whether a node is connected; False for one that was never used."""
        return self._evented.connected(node_id)  # type: ignore[no-any-return]

    def is_disconnected(self, node_id: Any) -> bool:
        """Tell whether a node was used and is disconnected."""
        return self._evented.is_disconnected(node_id)  # type: ignore[no-any-return]

    def connection_delay(self, node_id: Any) -> float:
        """Return how many ms to wait before it is worth calling; 999999999 when connected."""
        return self._evented.connection_delay(node_id)  # type: ignore[no-any-return]

    def bootstrap_connected(self) -> bool:
        """Tell whether a bootstrap server answered (1.4)."""
        return self._evented.bootstrap_connected()  # type: ignore[no-any-return]

    def send(self, node_id: Any, request: Any, wakeup: bool = True) -> Any:
        """Send a request struct; return the Future of its response struct.

        A Produce request with acks 0 is not answered: its future has the value None. A version that
        the broker does not serve is translated. Raises AssertionError for a node that is not in the
        metadata; the future has failed with NodeNotReadyError if it is not connected.
        """
        return self._evented.send(node_id, request)

    def send_and_receive(self, node_id: Any, request: Any) -> Any:
        """Send a request, wait for its response and return it; raise what it fails with (2.1)."""
        return self._evented.send_and_receive(node_id, request)

    def poll(
        self, timeout_ms: Optional[float] = None, future: Any = None, sleep: bool = True
    ) -> List[Any]:
        """Read, connect, run tasks, refresh metadata; return the responses that came.

        Arguments: timeout_ms: how long to wait for something, request_timeout_ms if None; future:
        go on until it is done, or time is over; sleep: False not to wait while nothing is under
        way.
        """
        return self._evented.poll(timeout_ms, future, sleep)  # type: ignore[no-any-return]

    def wakeup(self) -> None:
        """End a poll() that waits in another thread."""
        self._evented.wakeup()

    def in_flight_request_count(self, node_id: Any = None) -> int:
        """Return how many requests wait for answers, of one node or all."""
        return self._evented.in_flight_request_count(node_id)  # type: ignore[no-any-return]

    def least_loaded_node(self) -> Any:
        """Return the id of the node to ask: connected and idle, else least busy, else a new one.

        None if there is none; then the bootstrap servers are asked again.
        """
        return self._evented.least_loaded_node()

    def set_topics(self, topics: Iterable[str]) -> Any:
        """Track metadata of these topics, of all if empty.

        Returns a Future: done with the topics if nothing is new, else to be done with the cluster.
        """
        return self._evented.set_topics(topics)

    def add_topic(self, topic: str) -> Any:
        """Track metadata of one more topic; as set_topics()."""
        return self._evented.add_topic(topic)

    def schedule(self, task: Callable[[], Any], at: float) -> Any:
        """Run a callable during a poll(), at epoch seconds; return the Future of its result.

        Scheduled again it is moved; the future of before fails with Cancelled.
        """
        return self._evented.schedule(task, at)

    def unschedule(self, task: Callable[[], Any]) -> None:
        """Do not run a task; of no effect for one that is not scheduled."""
        self._evented.unschedule(task)

    def check_version(self, node_id: Any = None, timeout: float = 2, strict: bool = False) -> Any:
        """Find out which release a broker is, at most for so many seconds; it stays connected.

        Returns text such as '0.9' that compares as numbers too. Raises NoBrokersAvailable if there
        is nobody to ask, NodeNotReadyError or UnrecognizedBrokerVersion if that one does not
        answer.
        """
        return self._evented.check_version(node_id, timeout, strict)

    def get_api_versions(self) -> Any:
        """Return {API key: (lowest, highest version)} of a connected broker, or None (1.4)."""
        return self._evented.get_api_versions()

    def api_version(self, request_class: Any, max_version: Optional[int] = None) -> int:
        """Return the highest version of a request that a broker takes and a struct has (2.1)."""
        return self._evented.api_version(request_class, max_version)  # type: ignore[no-any-return]
