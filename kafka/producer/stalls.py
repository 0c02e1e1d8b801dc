"""Stalls: detection of brokers to which ready batches cannot be sent (KIP-794).

Used by the sender, which avoids the partitions of these brokers. Notes since when a ready batch
could not be sent to a broker, and returns the brokers that have exceeded
partitioner_availability_timeout_ms. Pure.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Optional, Tuple


class Stalls:
    """The brokers with unsent ready batches. Arguments: limit: seconds; 0 to disable."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: Dict[int, float] = {}

    def __repr__(self) -> str:
        return '<Stalls of %s>' % sorted(self._since)

    def stuck(self, node: int, now: float) -> None:
        """Note that a batch is ready for a broker and not sent yet."""
        if self._limit:
            self._since.setdefault(node, now)

    def moved(self, node: int) -> None:
        """Note that a batch was sent to a broker."""
        self._since.pop(node, None)

    def slow(self, wanted: Collection[int], now: float) -> Tuple[FrozenSet[int], Optional[float]]:
        """Return the brokers that are too slow, and the time of the next check, or None.

        Arguments: wanted: the brokers with ready batches; the others are forgotten; now: monotonic
        seconds.
        """
        if not self._since:
            return frozenset(), None
        for node in [node for node in self._since if node not in wanted]:
            del self._since[node]
        slow = frozenset(n for n, since in self._since.items() if since + self._limit <= now)
        later = [since + self._limit for n, since in self._since.items() if n not in slow]
        return slow, min(later, default=None)
