"""The states of classic groups, and what all groups of a cluster go by.

Owns the table of transitions and the rules; what happens in a state is in classic_group.py.
"""

from __future__ import annotations

import enum
from typing import Callable, Dict, FrozenSet, NamedTuple, Tuple

from kafka.testing.groups.group_members import Budget, Outbox
from kafka.testing.timers import Timer, Timers


class GroupState(enum.Enum):
    """Where a group is; values are the names that DescribeGroups gives."""

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
    """What all groups of a cluster share.

    ``version`` is that of the release; ``new_id`` makes what follows the client's name in a member
    id; ``max_metadata_bytes`` is what one group may store.
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
        """What a refused JoinGroup says of the generation."""
        return -1 if self.version >= (2, 3) else 0

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call something later, and send what it has to answer."""

        def run() -> None:
            call()
            self.outbox.flush()

        return self.timers.later(seconds, run)
