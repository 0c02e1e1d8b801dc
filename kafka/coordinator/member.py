"""What a member of a group is to its consumer, whichever protocol it speaks.

Owns the steps that a member asks of the thread that polls, and the calls that both kinds of members
have. Does not own: their settings (group_settings.py), the protocols (classic_member,
consumer_member), what is read (subscription_state.py), listeners (the consumer's).

A rebalance goes on in turns of the loop, but for what only the thread that polls may do: to commit
what it has handed out, to call the program's listener, to change what is read. For that a member
puts up a Step and waits until it is finished. Nobody else finishes it, so a program that does not
poll holds the rebalance up until the group goes on without it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, FrozenSet, Iterable, List, Optional, Union

from kafka.coordinator.group_settings import GroupSettings, StepKind
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.net.loop.tasks import Waiter
from kafka.structs import ConsumerGroupMetadata, TopicPartition

__all__ = ['GroupSettings', 'Member', 'Step', 'StepKind']


class Step:
    """Something that a member needs done by the thread that polls.

    That thread calls begin(), does it if that is True, and calls finish() in the end, whatever came
    of it. What the group has taken away meanwhile the member withdraws, unless it was begun. It may
    be up for a while after it was finished, until the member has its turn.

    Arguments:
        loop: in whose turns the member waits.
        kind; partitions: those that go, or for ASSIGN those that come.
        owned: all that is owned once it is done.
        commits: whether what was handed out is to be committed first, if that is automatic.
        deadline: time of the loop by which it should be done.
        tells: whether the listener is to be told; a cooperative member that keeps everything only
            commits.
    """

    def __init__(
        self,
        loop: Any,
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
        self.is_finished = False  # as far as the thread that polls is concerned
        #: Whether the listener has run: if the step is repeated it is not called a second time.
        self.has_told = False
        #: The commit that goes before; a poll() whose time is over leaves it to the next one.
        self.commit: Optional[Future] = None
        self._loop = loop
        self._waiter: Waiter[None] = Waiter()
        # 'begun' by the thread that polls, 'withdrawn' by a turn: the first word decides. Appending
        # is atomic between threads, and what was decided is seen by both at once.
        self._words: List[str] = []

    def __repr__(self) -> str:
        state = ' done' if self._waiter.done else ' begun' if self.is_begun else ''
        return '<Step %s %d, then %d partitions%s>' % (
            self.kind.value,
            len(self.partitions),
            len(self.owned),
            state,
        )

    def begin(self) -> bool:
        """Take it up, from the thread that polls; False if it was withdrawn, or begun before."""
        if self.is_begun or self.is_withdrawn:
            return False
        self._words.append('begun')
        self.is_begun = not self.is_withdrawn
        return self.is_begun

    @property
    def is_withdrawn(self) -> bool:
        """Whether the member has taken it back."""
        return self._words[:1] == ['withdrawn']

    def withdraw(self) -> bool:
        """Take it back, for the member in a turn; False if it was begun. May be repeated."""
        if not self._words:
            self._words.append('withdrawn')
            if self.is_withdrawn:
                self._waiter.wake()
        return self.is_withdrawn

    def finish(self) -> None:
        """Tell the member that it is done, from any thread; raises as Loop.call_threadsafe()."""
        self._loop.call_threadsafe(self._waiter.wake)
        self.is_finished = True

    async def finished(self) -> None:
        """Return when it is done or withdrawn; for the member."""
        await self._waiter


class Member:
    """What both kinds of members have; a base of them.

    Arguments: settings; on_change: called in a turn of the loop when the consumer may have
    something to do: a step, an error, a membership that became stable.

    Attributes:
        step: what the thread that polls has to do now, None for nothing. The same object until it
            is finished, or until the membership moved on and needs it no longer.
        error: why the membership is over and will not come back by itself, None while it may. Every
            poll raises it.
        errors: what the next poll is to raise, once each; the membership goes on in spite of them.
        rebalances: how many were completed.
        figures: a ConsumerMetrics that is told what the group costs, None for nobody.
    """

    def __init__(self, settings: GroupSettings, on_change: Callable[[], Any]) -> None:
        self.settings = settings
        self.step: Optional[Step] = None
        self.error: Optional[KafkaError] = None
        self.errors: Deque[KafkaError] = deque(maxlen=1)
        self.rebalances = 0
        self.figures: Any = None
        self._on_change = on_change

    # ------------------------------------------------------------ from any thread

    def polled(self, now: float) -> None:
        """Note that the program has polled: it lives, and takes part in the group from now on."""
        raise NotImplementedError

    @property
    def is_stable(self) -> bool:
        """Whether it has its assignment and no rebalance is under way that it knows of."""
        raise NotImplementedError

    @property
    def can_commit(self) -> bool:
        """Whether the group takes commits now, as far as it knows."""
        return self.is_stable

    @property
    def commits_held_only(self) -> bool:
        """Whether only what is read here may be committed now: others may get the rest."""
        return False

    def identity(self) -> ConsumerGroupMetadata:
        """Return who it is to the group now, as commits and transactions name it."""
        raise NotImplementedError

    # ------------------------------------------------------------ in turns of the loop

    def start(self) -> None:
        """Let the membership begin with the next poll."""
        raise NotImplementedError

    def subscription_changed(self) -> None:
        """Take note that the topics, or how many partitions they have, are others now."""
        raise NotImplementedError

    def rejoin(self, reason: str) -> None:
        """Ask the group for a rebalance (KIP-568). Arguments: reason: for logs, here and there."""
        raise NotImplementedError

    def commits_as(self) -> Union[ConsumerGroupMetadata, Callable[[], ConsumerGroupMetadata]]:
        """Return as whom to commit now; a function where each try has to ask anew."""
        return self.identity()

    async def until_commits(self, refused: Optional[ConsumerGroupMetadata] = None) -> bool:
        """Return True once the group takes commits, of another than who was refused.

        False when that would take the thread that polls, or the membership has ended. Whoever asks
        bounds the time.
        """
        return refused is None and self.can_commit

    def commit_refused(
        self, error: KafkaError, who: Optional[ConsumerGroupMetadata] = None
    ) -> None:
        """Take note of what a commit was refused with, if that says something of the membership.

        Arguments: who: as whom it was sent; what was refused to a former self says nothing. None
        for the present one.
        """
        raise NotImplementedError

    async def leave(self, reason: str, timeout: float) -> None:
        """Leave the group, unless static, within so many seconds; raises nothing of brokers.

        No step is put up any more: who leaves has revoked what it had before. Polling after it
        joins anew if there is a subscription.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End everything at once, telling nobody."""
        raise NotImplementedError
