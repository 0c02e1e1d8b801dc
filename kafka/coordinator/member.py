"""The interface of a member of a group, for both group protocols.

The consumer calls Member; ClassicMember and ConsumerMember implement it. A rebalance runs in turns
of the loop, except for what only the polling thread may do: commit the records it has returned,
call the listener of the program, and change the assignment. For that the member offers a
RebalanceStep and waits until it is finished. Only the polling thread finishes it, so a program that
does not poll delays the rebalance until the group goes on without it.
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

    That thread calls begin(), does the step if it returns True, and calls finish() in the end,
    whether it succeeded or not. The member withdraws a step that the group no longer needs, unless
    it was begun. Member.step may keep a finished step until the next turn of the member.

    Arguments:
        loop: the loop of the member.
        kind; partitions: the revoked ones, or for ASSIGN the new ones.
        owned: all partitions owned after the step.
        commits: whether to commit the returned records first, if commits are automatic.
        deadline: time of the loop by which it should be done.
        tells: whether to call the listener; a cooperative member that keeps everything only
            commits.
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
        # 'begun' by the polling thread, 'withdrawn' by the member: the first word decides.
        # Appending is atomic between threads, so both see the same first word.
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
        """Begin it, in the polling thread; return False if it was withdrawn or begun before."""
        if self.is_begun or self.is_withdrawn:
            return False
        self._words.append('begun')
        self.is_begun = not self.is_withdrawn
        return self.is_begun

    @property
    def is_withdrawn(self) -> bool:
        """Whether the member has withdrawn it."""
        return self._words[:1] == ['withdrawn']

    def withdraw(self) -> bool:
        """Withdraw it, in a turn of the member; return False if it was begun. May be repeated."""
        if not self._words:
            self._words.append('withdrawn')
            if self.is_withdrawn:
                self._waiter.wake()
        return self.is_withdrawn

    def finish(self) -> None:
        """Report to the member that it is done; raises as EventLoop.call_threadsafe()."""
        self._loop.call_threadsafe(self._waiter.wake)
        self.is_finished = True

    async def finished(self) -> None:
        """Return when it is done or withdrawn; for the member."""
        await self._waiter


class Member:
    """A member of a group; the base of both kinds.

    Arguments: settings; on_change: called in a turn of the loop after a change that concerns the
    consumer: a step, an error, a stable membership.

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
        """Note that the program has polled: it is alive, and may join."""
        raise NotImplementedError

    @property
    def is_stable(self) -> bool:
        """Whether it has its assignment, and no known rebalance is under way."""
        raise NotImplementedError

    @property
    def can_commit(self) -> bool:
        """Whether the group accepts commits now, as far as the member knows."""
        return self.is_stable

    @property
    def commits_held_only(self) -> bool:
        """Whether only owned partitions may be committed now: others may get the rest."""
        return False

    def identity(self) -> ConsumerGroupMetadata:
        """Return its generation and ids, as commits and transactions carry them."""
        raise NotImplementedError

    # ------------------------------------------------------------ in turns of the loop

    def start(self) -> None:
        """Let the membership begin with the next poll."""
        raise NotImplementedError

    def subscription_changed(self) -> None:
        """Handle a change of the subscribed topics or of their partitions."""
        raise NotImplementedError

    def rejoin(self, reason: str) -> None:
        """Ask the group for a rebalance (KIP-568). Arguments: reason: for the logs."""
        raise NotImplementedError

    def commits_as(self) -> Union[ConsumerGroupMetadata, Callable[[], ConsumerGroupMetadata]]:
        """Return the identity for a commit; a function if each try needs the current one."""
        return self.identity()

    async def until_commits(self, refused: Optional[ConsumerGroupMetadata] = None) -> bool:
        """Return True once the group accepts commits of another identity than the refused one.

        False if the polling thread has to act first, or the membership has ended. The caller limits
        the time.
        """
        return refused is None and self.can_commit

    def commit_refused(
        self, error: KafkaError, who: Optional[ConsumerGroupMetadata] = None
    ) -> None:
        """Handle the error of a commit, if it concerns the membership.

        Arguments: who: the identity of the commit, None for the present one; errors of an earlier
        identity are ignored.
        """
        raise NotImplementedError

    async def leave(self, reason: str, timeout: float) -> None:
        """Leave the group in time, unless static; raises no errors of brokers.

        Arguments: reason: for the logs of both sides; timeout: seconds.

        Offers no more steps: the caller has revoked its partitions before. A later poll() joins
        again if there is a subscription.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End everything at once, without leaving the group."""
        raise NotImplementedError
