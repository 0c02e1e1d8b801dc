"""The states of classic groups with their transitions, and the rules that all groups share.

Used by classic_group.py.
"""

from __future__ import annotations

import enum
from typing import Callable, Dict, FrozenSet, NamedTuple, Tuple

from kafka.testing.groups.group_members import Budget, Outbox
from kafka.testing.timers import Timer, Timers


class GroupState(enum.Enum):
    """The state of a classic group; values are the names in DescribeGroups responses."""

    EMPTY = 'Empty'
    PREPARING_REBALANCE = 'PreparingRebalance'
    COMPLETING_REBALANCE = 'CompletingRebalance'
    STABLE = 'Stable'
    DEAD = 'Dead'


TRANSITIONS: Dict[GroupState, FrozenSet[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}


class GroupRules(NamedTuple):
    """What all classic groups of a cluster share.

    ``version`` is that of the release; ``new_id`` returns the second part of a member id, after the
    client or instance id; ``max_metadata_bytes`` limits metadata and assignments of one group.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    new_id: Callable[[], str]
    initial_delay_ms: int
    max_size: int
    max_metadata_bytes: int

    @property
    def no_generation(self) -> int:
        """The generation in the response to a refused JoinGroup."""
        return -1 if self.version >= (2, 3) else 0

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call a function after ``seconds``, then flush the outbox."""

        def run() -> None:
            call()
            self.outbox.flush()

        return self.timers.later(seconds, run)
