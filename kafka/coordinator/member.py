"""What a member of a group is to its consumer, whichever protocol it speaks.

Owns the settings of members, the steps that a member asks of the thread that polls, and the calls
that both kinds of members have. Does not own: the protocols (classic_member, consumer_member),
what is read (subscription_state.py), listeners (the consumer's).

A rebalance goes on in turns of the loop, but for what only the thread that polls may do: to commit
what it has handed out, to call the program's listener, to change what is read. For that a member
puts up a Step and waits until it is finished. Nobody else finishes it, so a program that does not
poll holds the rebalance up until the group goes on without it.
"""

from __future__ import annotations

import enum
from typing import Any, Callable, FrozenSet, Iterable, NamedTuple, Optional

from kafka.errors import KafkaError
from kafka.net.tasks import Waiter
from kafka.structs import ConsumerGroupMetadata, TopicPartition

__all__ = ['GroupSettings', 'Member', 'Step', 'StepKind']


class GroupSettings(NamedTuple):
    """What the options of a consumer mean for its membership; times in seconds."""

    group_id: str
    group_instance_id: Optional[str] = None
    session_timeout: float = 45.0
    #: How long members may take for a rebalance, and the longest pause between two polls.
    rebalance_timeout: float = 300.0
    heartbeat_interval: float = 3.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    client_rack: str = ''
    #: Of a KIP-848 group: 'uniform', 'range', None for what the broker prefers.
    remote_assignor: Optional[str] = None


class StepKind(enum.Enum):
    """What the thread that polls has to do."""

    REVOKE = 'revoke'  # commit if it is automatic, tell the listener, then stop reading
    LOSE = 'lose'  # others may own them by now: no commit; tell the listener, stop reading
    ASSIGN = 'assign'  # read the new ones too, tell the listener, then begin with them


class Step:
    """Something that a member needs done by the thread that polls.

    Arguments:
        loop: in whose turns the member waits.
        kind; partitions: those that go, or for ASSIGN those that come.
        owned: all that is owned once it is done.
        commits: whether what was handed out is to be committed first, if that is automatic.
        deadline: time of the loop by which it should be done.
    """

    def __init__(
        self,
        loop: Any,
        kind: StepKind,
        partitions: Iterable[TopicPartition],
        owned: Iterable[TopicPartition],
        commits: bool,
        deadline: float,
    ) -> None:
        self.kind = kind
        self.partitions: FrozenSet[TopicPartition] = frozenset(partitions)
        self.owned: FrozenSet[TopicPartition] = frozenset(owned)
        self.commits = commits
        self.deadline = deadline
        self._loop = loop
        self._waiter: Waiter[None] = Waiter()

    def __repr__(self) -> str:
        return '<Step %s %d of %d partitions%s>' % (
            self.kind.value,
            len(self.partitions),
            len(self.owned),
            ' done' if self._waiter.done else '',
        )

    def finish(self) -> None:
        """Tell the member that it is done, from any thread; raises as Loop.call_threadsafe()."""
        self._loop.call_threadsafe(self._waiter.wake)

    async def finished(self) -> None:
        """Return when it is done; for the member."""
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
        rebalances: how many were completed.
    """

    def __init__(self, settings: GroupSettings, on_change: Callable[[], Any]) -> None:
        self.settings = settings
        self.step: Optional[Step] = None
        self.error: Optional[KafkaError] = None
        self.rebalances = 0
        self._on_change = on_change

    # ------------------------------------------------------------ from any thread

    def polled(self, now: float) -> None:
        """Note that the program has polled: it lives, and takes part in the group from now on."""
        raise NotImplementedError

    @property
    def is_stable(self) -> bool:
        """Whether it has its assignment and no rebalance is under way that it knows of."""
        raise NotImplementedError

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

    def commit_refused(self, error: KafkaError) -> None:
        """Take note of what a commit was refused with, if that says something of the membership."""
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
