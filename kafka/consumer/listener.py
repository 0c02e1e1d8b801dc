"""The rebalance listeners that programs derive from, and the pattern that brokers match.

Called by kafka.consumer.rebalancing, in the thread that polls. Pure.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Set

from kafka.internals.validation import ArgumentTypeError
from kafka.structs import TopicPartition

__all__ = [
    'AsyncConsumerRebalanceListener',
    'ConsumerRebalanceListener',
    'SubscriptionPattern',
    'check_listener',
    'defines_lost',
    'is_async',
]


class ConsumerRebalanceListener:
    """Told by a consumer which partitions go and come; programs derive from it (1.0).

    The calls are made in the thread that polls. Commits, seeks, positions and pauses are allowed in
    them.
    """

    def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> Any:
        """Finish with partitions before others may own them: the last chance to commit.

        Arguments: revoked: those that go; may be none.
        """

    def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> Any:
        """Prepare for partitions that are new; nothing is read of them before this returns.

        Arguments: assigned: those that came; may be none.
        """

    def on_partitions_lost(self, lost: Set[TopicPartition]) -> Any:
        """Let go of partitions that others may own by now; too late to commit (3.0).

        Unless a program defines it, this is on_partitions_revoked().
        """
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener:
    """The same calls as coroutines, each awaited before the rebalance goes on (3.0).

    They may await the futures of clients, such as that of commit_async(), and nothing else.
    """

    async def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> Any:
        """Finish with partitions; see ConsumerRebalanceListener."""

    async def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> Any:
        """Prepare for partitions that are new."""

    async def on_partitions_lost(self, lost: Set[TopicPartition]) -> Any:
        """Let go of partitions that others may own by now; else on_partitions_revoked()."""
        return await self.on_partitions_revoked(lost)


class SubscriptionPattern(NamedTuple):
    """A regular expression that brokers match whole names of topics with (KIP-848).

    Its syntax is that of RE2; only groups of the consumer protocol have it.
    """

    pattern: str


def check_listener(listener: Any) -> None:
    """Raise ArgumentTypeError unless it is a listener of either kind, or None."""
    kinds = (ConsumerRebalanceListener, AsyncConsumerRebalanceListener)
    if listener is not None and not isinstance(listener, kinds):
        raise ArgumentTypeError(
            'listener must be a ConsumerRebalanceListener, not %s' % type(listener).__name__
        )


def is_async(listener: Any) -> bool:
    """Return True if the methods of a listener are coroutines."""
    return isinstance(listener, AsyncConsumerRebalanceListener)


def defines_lost(listener: Any) -> bool:
    """Return True if a listener has its own on_partitions_lost(), as those of 3.0 do."""
    defaults = (
        ConsumerRebalanceListener.on_partitions_lost,
        AsyncConsumerRebalanceListener.on_partitions_lost,
    )
    return getattr(type(listener), 'on_partitions_lost', None) not in (None, *defaults)
