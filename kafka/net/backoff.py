"""Exponential backoff (KIP-580): how long to wait after consecutive failures.

Used for connections, metadata, coordinators, fetches and logins. Pure.
"""

from __future__ import annotations

__all__ = ['backoff_seconds']


def backoff_seconds(base: float, longest: float, failures: int, jitter: float) -> float:
    """Return ``min(longest, base * 2^(failures - 1) * jitter)`` seconds; 0 without a failure.

    Arguments: failures: number of consecutive failures; jitter: a random number in [0.8, 1.2].
    """
    if failures <= 0:
        return 0.0
    return min(longest, base * 2.0 ** min(failures - 1, 50) * jitter)
