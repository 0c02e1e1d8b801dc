"""Finding the cluster once, whoever of a client's parts needs it first.

Owns how long brokers are looked for that refuse connections, and that are silent, and the reading
of their release. Does not own: the search (pool.py).
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

from kafka.errors import KafkaTimeoutError, NoBrokersAvailable
from kafka.protocol.release import release_of

__all__ = ['Beginning']

# Seconds for which brokers are looked for that refuse connections, and more for silent ones.
_REFUSED_SECONDS, _SILENT_SECONDS = 2.0, 28.0


class Beginning:
    """Finds the cluster once, whoever needs it first."""

    def __init__(self, loop: Any, pool: Any) -> None:
        self._loop = loop
        self._pool = pool
        self.has_begun = False

    async def begin(self, limit: Optional[float]) -> None:
        """Find the cluster, unless that was done.

        Arguments: limit: seconds; None for 2 where all brokers refuse, 30 where one is silent.
        """
        if self.has_begun:
            return
        try:
            await self._pool.bootstrap(_REFUSED_SECONDS if limit is None else limit)
        except NoBrokersAvailable as error:
            attempts = getattr(error, 'attempts', ())
            is_silent = not attempts or any(
                isinstance(each.error, KafkaTimeoutError) for each in attempts
            )
            if limit is not None or not is_silent:
                raise
            await self._pool.bootstrap(_SILENT_SECONDS)
        self.has_begun = True

    async def topic(self, name: str, seconds: float) -> None:
        """Wait so long until the partitions of a topic are known; find the cluster first."""
        deadline = self._loop.time() + seconds
        await self.begin(seconds)
        await self._pool.wait_for_topic(name, max(0.001, deadline - self._loop.time()))

    def release(self) -> Tuple[int, ...]:
        """Return the release of the brokers, as one of them shows it, or the last that did."""
        pool = self._pool
        found = [pool.versions(broker.node_id) for broker in pool.cluster.brokers()]
        for versions in (*found, pool.seen_versions):  # connections may be lost by now
            if versions is not None:
                return release_of(versions.ranges)
        return (0, 8, 0)
