"""The network side of one client: an event loop, the brokers of a cluster, and the bootstrap.

Every client that uses the event loop creates one: producers, consumers, bounded readers, prepared
transactions, the Spark connector. The blocking methods are for the threads of the program; the
coroutines run in the loop. The constructor opens no socket and starts no thread.
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, Optional, Tuple, TypeVar

from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaTimeoutError, NoBrokersAvailable
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.loop import Loop
from kafka.net.loop.tasks import CoroutineCall
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings
from kafka.protocol.release import release_of

__all__ = ['NetworkClient']

T = TypeVar('T')

# Timeouts in seconds of a bootstrap without a limit: for servers that all fail at once, and for a
# second try if a server did not respond in the first one.
_REFUSED_SECONDS, _SILENT_SECONDS = 2.0, 28.0


class NetworkClient:
    """An event loop and the brokers that are reached through it.

    Arguments:
        settings: of the connections.
        name: of the background thread.
        busy_poll: seconds for which a thread that waits for one response may poll the socket before
            it blocks in the selector.
        loop: the loop to run in, such as a manual one without a thread or a clock; None to create
            a Loop.

    Attributes: loop; pool: the brokers; is_bootstrapped: whether the bootstrap has succeeded.
    """

    def __init__(
        self,
        settings: NetSettings,
        name: str = 'kafka-network-thread',
        busy_poll: float = 0.0,
        loop: Optional[EventLoop] = None,
    ) -> None:
        self.loop: EventLoop = Loop(name, busy_poll) if loop is None else loop
        self.pool = Pool(self.loop, settings)
        self.is_bootstrapped = False

    def __repr__(self) -> str:
        return '<NetworkClient %r>' % self.pool

    @property
    def cluster(self) -> ClusterMetadata:
        """The cached metadata of the cluster."""
        return self.pool.cluster

    # ------------------------------------------------------------ in the loop

    async def bootstrap(self, limit: Optional[float] = None) -> None:
        """Fetch the metadata of the cluster from the bootstrap servers, unless already done.

        Arguments: limit: timeout in seconds; None for 2 if all servers fail with an error, 30 if
        one of them does not respond.
        Raises: NoBrokersAvailable, with ``attempts``; and as Pool.bootstrap().
        """
        if self.is_bootstrapped:
            return
        try:
            await self.pool.bootstrap(_REFUSED_SECONDS if limit is None else limit)
        except NoBrokersAvailable as error:
            attempts = getattr(error, 'attempts', ())
            is_silent = not attempts or any(
                isinstance(each.error, KafkaTimeoutError) for each in attempts
            )
            if limit is not None or not is_silent:
                raise
            await self.pool.bootstrap(_SILENT_SECONDS)
        self.is_bootstrapped = True

    async def wait_for_topic(self, name: str, seconds: float) -> None:
        """Wait until the partitions of a topic are known; bootstrap first.

        Raises: KafkaTimeoutError if that takes longer than `seconds`; and as bootstrap().
        """
        deadline = self.loop.time() + seconds
        await self.bootstrap(seconds)
        await self.pool.wait_for_topic(name, max(0.001, deadline - self.loop.time()))

    def release(self) -> Tuple[int, ...]:
        """Return the release of the brokers, inferred from the API versions that they support."""
        pool = self.pool
        found = [pool.versions(broker.node_id) for broker in pool.cluster.brokers()]
        for versions in (*found, pool.seen_versions):  # all connections may have been lost
            if versions is not None:
                return release_of(versions.ranges)
        return (0, 8, 0)

    # ------------------------------------------------------------ blocking

    def connect(self, limit: Optional[float] = None) -> None:
        """Block until the bootstrap has succeeded. Arguments and errors: as bootstrap()."""
        if not self.is_bootstrapped:
            self.loop.run(CoroutineCall(self.bootstrap, limit), None)

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: Optional[float]) -> T:
        """Run a coroutine in the loop and return its result; see Loop.run()."""
        return self.loop.run(coroutine, seconds)

    def wait(self, is_done: Callable[[], Any], seconds: Optional[float]) -> bool:
        """Block until a condition holds; return False after `seconds`; see Loop.wait()."""
        return self.loop.wait(is_done, seconds)

    def close(self, seconds: float = 5.0) -> None:
        """Close the connections and end the background thread, within `seconds`.

        May be called more than once. Does nothing in the child of a fork.
        """
        self.loop.close(seconds)
