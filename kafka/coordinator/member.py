"""The interface of a member of a group, for both group protocols.

The consumer calls Member; ClassicMember and ConsumerMember implement it. A rebalance runs in the
event loop, except for what only the polling thread may do: commit the records it has returned, call
the rebalance listener of the program, and change the assignment. For that the member offers a
RebalanceStep and waits until it is finished. Only the polling thread finishes it, so a program that
does not poll delays the rebalance until the group continues without it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, FrozenSet, Iterable, List, Optional, Union

from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.net.loop.tasks import Waiter
from kafka.structs import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop

__all__ = ['GroupSettings', 'Member', 'RebalanceStep', 'StepKind']


class RebalanceStep:
    """A part of a rebalance that only the polling thread may do.

    That thread calls begin(), does the step if it returns True, and finally calls finish(), whether
    the step succeeded or not. The member withdraws a step that is no longer needed, unless it was
    begun. Member.step may keep a finished step until the member runs in the loop again.

    Arguments:
        loop: the loop of the member.
        kind; partitions: the revoked or lost ones, or for ASSIGN the new ones.
        owned: all partitions owned after the step.
        commits: whether to commit the returned records first, if commits are automatic.
        deadline: time of the loop by which it should be finished.
        tells: whether to call the listener. It is False if a cooperative member keeps everything
            and only commits.
    """

    def __init__(
        self,
        loop: EventLoop,
        kind: StepKind,
        partitions: Iterable[TopicPartition],
        owned: Iterable[TopicPartition],
        commits: bool,
        deadline: float,
        tells: bool = True,
    ) -> None:
        self.kind = kind
        self.partitions: FrozenSet[TopicPartition] = frozenset(partitions)
        self.owned: FrozenSet[TopicPartition] = frozenset(owned)
        self.commits = commits
        self.deadline = deadline
        self.tells = tells
        self.is_begun = False
        self.is_finished = False  # by the polling thread
        #: Whether the listener was called: a repeated step does not call it again.
        self.has_told = False
        #: The commit before it; a poll() that times out leaves it to the next one.
        self.commit: Optional[Future] = None
        self._loop = loop
        self._waiter: Waiter[None] = Waiter()
        # 'begun' is appended by the polling thread, 'withdrawn' by the member; the first one
        # counts. list.append() is atomic, so both threads see the same first element.
        self._words: List[str] = []

    def __repr__(self) -> str:
        state = ' done' if self._waiter.done else ' begun' if self.is_begun else ''
        return '<RebalanceStep %s %d, then %d partitions%s>' % (
            self.kind.value,
            len(self.partitions),
            len(self.owned),
            state,
        )

    def begin(self) -> bool:
        """Begin the step, in the polling thread; return False if it was withdrawn or begun."""
        if self.is_begun or self.is_withdrawn:
            return False
        self._words.append('begun')
        self.is_begun = not self.is_withdrawn
        return self.is_begun

    @property
    def is_withdrawn(self) -> bool:
        """Whether the member has withdrawn the step."""
        return self._words[:1] == ['withdrawn']

    def withdraw(self) -> bool:
        """Withdraw the step, in the loop; return False if it was begun. May be repeated."""
        if not self._words:
            self._words.append('withdrawn')
            if self.is_withdrawn:
                self._waiter.wake()
        return self.is_withdrawn

    def finish(self) -> None:
        """Report to the member that the step is done; raises as EventLoop.call_threadsafe()."""
        self._loop.call_threadsafe(self._waiter.wake)
        self.is_finished = True

    async def finished(self) -> None:
        """Return when the step is done or withdrawn; for the member."""
        await self._waiter


class Member:
    """A member of a group; the base of both kinds.

    Arguments: settings; on_change: called in the loop after a change that concerns the consumer: a
    step, an error, a stable membership.

    Attributes:
        step: the step for the polling thread, or None. The same object until it is finished or
            withdrawn.
        error: the error that ended the membership and that only the program can fix, or None. Every
            poll() raises it.
        errors: errors for the next poll() to raise, once each; the membership goes on.
        rebalances: the number of completed rebalances.
        figures: a ConsumerMetrics for the metrics of the group, or None.
    """

    def __init__(self, settings: GroupSettings, on_change: Callable[[], Any]) -> None:
        self.settings = settings
        self.step: Optional[RebalanceStep] = None
        self.error: Optional[KafkaError] = None
        self.errors: Deque[KafkaError] = deque(maxlen=1)
        self.rebalances = 0
        self.figures: Any = None
        self._on_change = on_change

    # ------------------------------------------------------------ from any thread

    def polled(self, now: float) -> None:
        """Record a poll() of the program, after which the member may join."""
        raise NotImplementedError

    @property
    def is_stable(self) -> bool:
        """Whether the member has its assignment, and no known rebalance is in progress."""
        raise NotImplementedError

    @property
    def can_commit(self) -> bool:
        """Whether the group accepts commits now, as far as the member knows."""
        return self.is_stable

    @property
    def commits_held_only(self) -> bool:
        """Whether only owned partitions may be committed now: other members may own the rest."""
        return False

    def identity(self) -> ConsumerGroupMetadata:
        """Return the generation and ids of the member for commits and transactions."""
        raise NotImplementedError

    # ------------------------------------------------------------ in the event loop

    def start(self) -> None:
        """Allow the member to join at the next poll."""
        raise NotImplementedError

    def subscription_changed(self) -> None:
        """Handle a change of the subscribed topics or of their partitions."""
        raise NotImplementedError

    def rejoin(self, reason: str) -> None:
        """Trigger a rebalance of the group (KIP-568). Arguments: reason: for the logs."""
        raise NotImplementedError

    def commits_as(self) -> Union[ConsumerGroupMetadata, Callable[[], ConsumerGroupMetadata]]:
        """Return the identity for a commit; a function if each try needs the current one."""
        return self.identity()

    async def until_commits(self, refused: Optional[ConsumerGroupMetadata] = None) -> bool:
        """Return True when the group accepts commits with an identity other than the rejected one.

        False if the polling thread has to act first, or the membership has ended. The caller sets
        the timeout.
        """
        return refused is None and self.can_commit

    def commit_refused(
        self, error: KafkaError, who: Optional[ConsumerGroupMetadata] = None
    ) -> None:
        """Handle the error of a commit, if it concerns the membership.

        Arguments: who: the identity in the commit, None for the present one; errors for an earlier
        identity are ignored.
        """
        raise NotImplementedError

    async def leave(self, reason: str, timeout: float) -> None:
        """Leave the group, unless the member is static; raises no errors of brokers.

        Arguments: reason: for the logs of client and broker; timeout: seconds.

        Offers no more steps: the caller has revoked the partitions before. A later poll() joins
        again if there is a subscription.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the membership at once, without leaving the group."""
        raise NotImplementedError
