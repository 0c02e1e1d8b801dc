"""As whom a member commits: while its group rebalances some commits are taken, some have to wait.

Owns when a commit of a member may be sent, and whether it may be sent once more by who the member
is in the next generation. Does not own: who that is (member.py and its two kinds), what is sent and
what brokers answer (manager.py).

A broker takes commits of the old generation until all have joined the new one. From then on it
refuses all (REBALANCE_IN_PROGRESS) until the leader has assigned, and those of the old generation
for good (ILLEGAL_GENERATION). What a member has held all the time is its own in the next generation
too, so that such a commit is worth to be made again; what it has given up may be read by others,
whose commits must not be undone.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Union

from kafka.coordinator.member import Member
from kafka.errors import CommitFailedError, CommitInRebalanceError, KafkaError, KafkaTimeoutError
from kafka.structs import ConsumerGroupMetadata, TopicPartition

__all__ = ['Standing', 'Who']

#: Who commits: as it was at the call, or what tells it anew for each try.
Who = Union[ConsumerGroupMetadata, Callable[[], ConsumerGroupMetadata]]

#: ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS: what a commit meets that was overtaken by a rebalance.
_OVERTAKEN = frozenset([22, 27])


class Standing:
    """That of a member for one commit, which it makes now.

    Arguments: loop; member; subscription: a SubscriptionState, read under `lock`; partitions: that
        are committed.
    """

    def __init__(
        self,
        loop: Any,
        member: Member,
        subscription: Any,
        lock: Any,
        partitions: Iterable[TopicPartition],
    ) -> None:
        self._loop = loop
        self._member = member
        self._subscription = subscription
        self._lock = lock
        # A partition that comes back after it was given up has another state.
        with lock:
            self._states = {each: subscription.assignment.get(each) for each in partitions}

    def __repr__(self) -> str:
        return '<Standing of %d partitions in %s>' % (
            len(self._states),
            self._member.settings.group_id,
        )

    def now(self, partitions: Iterable[TopicPartition]) -> Optional[Who]:
        """Return as whom to commit these of the partitions; None if that has to be waited for.

        In a turn. Raises CommitInRebalanceError during a rebalance for what the member has not.
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
        refused: Optional[Who] = None,
        error: Optional[KafkaError] = None,
    ) -> Who:
        """Return as whom to commit, when the group takes commits again.

        Arguments: seconds: to wait at most; refused: as whom a try was made; error: of that try.
        Raises: the error, or CommitInRebalanceError, when it does not within that time, when that
            takes the thread that polls, and for what the member has given up; what ended the
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

    def refused(self, error: KafkaError, who: Who) -> bool:
        """Let the membership hear what a commit was refused with; tell whether to ask later()."""
        sender = who if isinstance(who, ConsumerGroupMetadata) else None
        self._member.commit_refused(error, sender)
        return isinstance(error, CommitFailedError) and error.errno_of_group in _OVERTAKEN

    def _holds(self, partitions: Iterable[TopicPartition]) -> bool:
        """Tell whether the member has had all of these since the commit was asked for."""
        states = self._states
        with self._lock:
            assignment = self._subscription.assignment
            return all(
                states[each] is not None and assignment.get(each) is states[each]
                for each in partitions
            )

    def _refusal(self) -> KafkaError:
        """Return why nothing can be committed now."""
        member = self._member
        if member.error is not None and not member.can_commit:
            return member.error.with_traceback(None)  # why there is no membership
        return CommitInRebalanceError(
            'group %s is being rebalanced: poll() until that is over, then commit what this'
            ' member still has' % member.settings.group_id
        )
