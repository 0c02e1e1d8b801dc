"""Which brokers do not take what is there for them, so that records go elsewhere (KIP-794).

Owns since when a broker could not be sent what is ready, and when that has taken too long. Pure.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Optional, Tuple


class Stalls:
    """The brokers that do not take what is ready. Arguments: limit: seconds; 0: nobody is slow."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: Dict[int, float] = {}

    def __repr__(self) -> str:
        return '<Stalls of %s>' % sorted(self._since)

    def stuck(self, node: int, now: float) -> None:
        """Note that something is ready for a broker and cannot be sent."""
        if self._limit:
            self._since.setdefault(node, now)

    def moved(self, node: int) -> None:
        """Note that something was sent to a broker."""
        self._since.pop(node, None)

    def slow(self, wanted: Collection[int], now: float) -> Tuple[FrozenSet[int], Optional[float]]:
        """Return the brokers that are too slow, and when to ask again at the latest.

        Arguments: wanted: the brokers for which anything is ready; the others are not waited for.
        """
        if not self._since:
            return frozenset(), None
        for node in [node for node in self._since if node not in wanted]:
            del self._since[node]
        slow = frozenset(n for n, since in self._since.items() if since + self._limit <= now)
        later = [since + self._limit for n, since in self._since.items() if n not in slow]
        return slow, min(later, default=None)
