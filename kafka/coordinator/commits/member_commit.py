"""The generation and member id that a commit carries, and whether it waits for a rebalance.

The consumer creates a MemberCommit for each commit of a member; OffsetCommits calls it before each
attempt, in the event loop.

A broker accepts commits of the old generation until all members have joined the new one. From then
on it rejects every commit until the leader has assigned (REBALANCE_IN_PROGRESS), and those of the
old generation permanently (ILLEGAL_GENERATION). A partition that the member has owned all the time
is still owned in the next generation, so its commit is retried; a partition that was revoked may be
read by another member, whose commits must not be overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterable, Optional, Union

from kafka.coordinator.member import Member
from kafka.errors import (
    CommitFailedError,
    CommitInRebalanceError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
)
from kafka.structs import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.consumer.subscription_state import SubscriptionState
    from kafka.net.loop.event_loop import EventLoop

__all__ = ['CommitIdentity', 'MemberCommit']

#: Generation and member id, or a function that returns them before each attempt.
CommitIdentity = Union[ConsumerGroupMetadata, Callable[[], ConsumerGroupMetadata]]

#: The errors of a commit that was overtaken by a rebalance.
_OVERTAKEN = frozenset([IllegalGenerationError.errno, RebalanceInProgressError.errno])


class MemberCommit:
    """One commit of a member, which begins now.

    Arguments: loop; member; subscription: a SubscriptionState, read under `lock`; partitions: those
        to commit.
    """

    def __init__(
        self,
        loop: EventLoop,
        member: Member,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
        partitions: Iterable[TopicPartition],
    ) -> None:
        self._loop = loop
        self._member = member
        self._subscription = subscription
        self._lock = lock
        # A partition that is assigned again after a revocation has a new state object.
        with lock:
            self._states = {each: subscription.assignment.get(each) for each in partitions}

    def __repr__(self) -> str:
        return '<MemberCommit of %d partitions in %s>' % (
            len(self._states),
            self._member.settings.group_id,
        )

    def now(self, partitions: Iterable[TopicPartition]) -> Optional[CommitIdentity]:
        """Return the identity to commit these partitions with; None if the commit has to wait.

        Raises CommitInRebalanceError during a rebalance for partitions the member does not own.
        """
        member = self._member
        if not member.can_commit:
            return None
        if member.commits_held_only and not self._holds(partitions):
            raise self._refusal()
        return member.commits_as()

    async def later(
        self,
        partitions: Iterable[TopicPartition],
        seconds: float,
        refused: Optional[CommitIdentity] = None,
        error: Optional[KafkaError] = None,
    ) -> CommitIdentity:
        """Return the identity to commit with, once the group accepts commits again.

        Arguments: seconds: to wait at most; refused, error: the identity and the error of the last
            attempt.
        Raises: that error, or CommitInRebalanceError, after that time, if the rebalance needs the
            polling thread, or if one of the partitions was revoked; the error that ended the
            membership.
        """
        if self._holds(partitions):
            was = refused if isinstance(refused, ConsumerGroupMetadata) else None
            try:
                is_open = await self._loop.within(seconds, self._member.until_commits(was))
            except KafkaTimeoutError:
                is_open = False
            if is_open and self._holds(partitions):
                return self._member.commits_as()
        raise error or self._refusal()

    def refused(self, error: KafkaError, who: CommitIdentity) -> bool:
        """Report the error of a commit to the member; return True if later() may help."""
        sender = who if isinstance(who, ConsumerGroupMetadata) else None
        self._member.commit_refused(error, sender)
        return isinstance(error, CommitFailedError) and error.errno_of_group in _OVERTAKEN

    def _holds(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return True if the member has owned all of these since the commit began."""
        states = self._states
        with self._lock:
            assignment = self._subscription.assignment
            return all(
                states[each] is not None and assignment.get(each) is states[each]
                for each in partitions
            )

    def _refusal(self) -> KafkaError:
        """Return the error of a commit that is not possible now."""
        member = self._member
        if member.error is not None and not member.can_commit:
            return member.error.with_traceback(None)  # the error that ended the membership
        return CommitInRebalanceError(
            'group %s is being rebalanced: poll() until that is over, then commit what this'
            ' member still has' % member.settings.group_id
        )
