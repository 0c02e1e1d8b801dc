"""The base classes of rebalance listeners, and SubscriptionPattern (KIP-848).

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
    """Called by a consumer when partitions are revoked and assigned; a base class (1.0).

    Its methods are called in the thread that polls. They may commit, seek, pause, resume, and ask
    for positions.
    """

    def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> Any:
        """Finish with partitions before another member may own them: the last chance to commit.

        Arguments: revoked: the revoked partitions; may be empty.
        """

    def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> Any:
        """Prepare for new partitions; no records of them are returned before this returns.

        Arguments: assigned: the new partitions; may be empty.
        """

    def on_partitions_lost(self, lost: Set[TopicPartition]) -> Any:
        """Release partitions that another member may own already; too late to commit (3.0).

        The default calls on_partitions_revoked().
        """
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener:
    """A listener whose methods are coroutines; the rebalance waits for each (3.0).

    They may await the futures of clients, such as that of commit_async(), and nothing else.
    """

    async def on_partitions_revoked(self, revoked: Set[TopicPartition]) -> Any:
        """Finish with partitions; see ConsumerRebalanceListener."""

    async def on_partitions_assigned(self, assigned: Set[TopicPartition]) -> Any:
        """Prepare for new partitions; see ConsumerRebalanceListener."""

    async def on_partitions_lost(self, lost: Set[TopicPartition]) -> Any:
        """Release lost partitions; the default calls on_partitions_revoked()."""
        return await self.on_partitions_revoked(lost)


class SubscriptionPattern(NamedTuple):
    """A regular expression that brokers match against whole topic names (KIP-848).

    Its syntax is that of RE2; it needs the option group_protocol='consumer'.
    """

    pattern: str


def check_listener(listener: Any) -> None:
    """Raise ArgumentTypeError unless the value is a listener of either kind, or None."""
    kinds = (ConsumerRebalanceListener, AsyncConsumerRebalanceListener)
    if listener is not None and not isinstance(listener, kinds):
        raise ArgumentTypeError(
            'listener must be a ConsumerRebalanceListener, not %s' % type(listener).__name__
        )


def is_async(listener: Any) -> bool:
    """Return True if the methods of a listener are coroutines."""
    return isinstance(listener, AsyncConsumerRebalanceListener)


def defines_lost(listener: Any) -> bool:
    """Return True if a listener defines on_partitions_lost() itself, as those of 3.0 do."""
    defaults = (
        ConsumerRebalanceListener.on_partitions_lost,
        AsyncConsumerRebalanceListener.on_partitions_lost,
    )
    return getattr(type(listener), 'on_partitions_lost', None) not in (None, *defaults)
