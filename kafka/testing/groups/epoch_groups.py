"""The groups of one type of an embedded cluster, where members have epochs.

The base of consumer_groups.py, share_groups.py and streams_groups.py, which check the heartbeats.
registry.py checks that a group id is used by one type only.
"""

from __future__ import annotations

from typing import Any, Dict, Generic, Iterable, List, Optional, Tuple, TypeVar

from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from kafka.testing.groups.epoch_group import STATIC_LEAVE_EPOCH, EpochGroup, EpochRules
from kafka.testing.groups.group_members import group_size

G = TypeVar('G', bound=EpochGroup[Any, Any, Any])
Key = TypeVar('Key', str, bytes)

#: The error messages of heartbeat responses, by error code.
MEMBER_TEXTS = {
    UNKNOWN_MEMBER_ID: 'Member %s is not in the group.',
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its partitions and rejoin.',
    FENCED_INSTANCE_ID: 'The instance of member %s belongs to another member.',
    UNRELEASED_INSTANCE_ID: 'The instance of member %s is in use by another member.',
    GROUP_MAX_SIZE_REACHED: 'There is no room for member %s: the group is full.',
    COORDINATOR_NOT_AVAILABLE: 'There is no memory for member %s.',
}


class EpochGroups(Generic[G]):
    """The groups of one type. Arguments: rules: what all of them share."""

    group_type = ''

    def __init__(self, rules: EpochRules) -> None:
        self.rules = rules
        self._groups: Dict[str, G] = {}

    def __repr__(self) -> str:
        return '<%s: %d>' % (type(self).__name__, len(self._groups))

    def get(self, group_id: str) -> Optional[G]:
        """Return a group, None if none of this type has the id."""
        return self._groups.get(group_id)

    def all(self) -> List[G]:
        """Return all groups."""
        return list(self._groups.values())

    def make(self, group_id: str) -> Optional[G]:
        """Create a group; return None if the memory limit does not allow it."""
        if not self.rules.budget.has_room(group_size(group_id)):
            return None
        return self._create(group_id)

    def _create(self, group_id: str) -> G:
        group = self._groups[group_id] = self._new_group(group_id)
        self.rules.budget.change(group_size(group_id))
        return group

    def _new_group(self, group_id: str) -> G:
        raise NotImplementedError

    def forget(self, group_id: str) -> None:
        """Remove a group if it exists."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self.rules.budget.change(-group_size(group_id))
            group.die()


def epoch_text(epoch: int, instance_id: Optional[str]) -> Optional[str]:
    """Return why a member epoch is invalid where members may be static, None if it is valid."""
    if epoch == STATIC_LEAVE_EPOCH and instance_id is None:
        return 'Only members with an instance id leave for a while.'
    return 'There is no member epoch %d.' % epoch if epoch < STATIC_LEAVE_EPOCH else None


def numbers_by_name(numbered: Iterable[Tuple[Key, int]]) -> Dict[Key, List[int]]:
    """Return partitions or tasks grouped by topic or subtopology, sorted."""
    found: Dict[Key, List[int]] = {}
    for name, number in sorted(numbered):
        found.setdefault(name, []).append(number)
    return found
