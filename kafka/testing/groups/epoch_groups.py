"""The groups of one kind that an embedded cluster has, where members have epochs.

Owns the groups by their ids, the room that they take, and the words for what members may have done
wrong. What may be asked of them is checked by each kind: consumer_groups.py, share_groups.py and
streams_groups.py. That an id means one group of any kind is known in registry.py.
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

#: What is said of the member of a heartbeat, by error.
MEMBER_TEXTS = {
    UNKNOWN_MEMBER_ID: 'Member %s is not in the group.',
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its partitions and rejoin.',
    FENCED_INSTANCE_ID: 'The instance of member %s belongs to another member.',
    UNRELEASED_INSTANCE_ID: 'The instance of member %s is in use by another member.',
    GROUP_MAX_SIZE_REACHED: 'There is no room for member %s: the group is full.',
    COORDINATOR_NOT_AVAILABLE: 'There is no memory for member %s.',
}


class EpochGroups(Generic[G]):
    """The groups of one kind. Arguments: rules: those of all of them."""

    group_type = ''

    def __init__(self, rules: EpochRules) -> None:
        self.rules = rules
        self._groups: Dict[str, G] = {}

    def __repr__(self) -> str:
        return '<%s: %d>' % (type(self).__name__, len(self._groups))

    def get(self, group_id: str) -> Optional[G]:
        """Return a group, None if there is none of this kind."""
        return self._groups.get(group_id)

    def all(self) -> List[G]:
        """Return all."""
        return list(self._groups.values())

    def make(self, group_id: str) -> Optional[G]:
        """Make a group; return None when there is no room for it."""
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
        """Forget a group, if there is one."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self.rules.budget.change(-group_size(group_id))
            group.die()


def epoch_text(epoch: int, instance_id: Optional[str]) -> Optional[str]:
    """Return what is wrong with an epoch where members may be static, None if it can be meant."""
    if epoch == STATIC_LEAVE_EPOCH and instance_id is None:
        return 'Only members with an instance id leave for a while.'
    return 'There is no member epoch %d.' % epoch if epoch < STATIC_LEAVE_EPOCH else None


def numbers_by_name(numbered: Iterable[Tuple[Key, int]]) -> Dict[Key, List[int]]:
    """Return partitions or tasks as messages have them: each topic or part once, all in order."""
    found: Dict[Key, List[int]] = {}
    for name, number in sorted(numbered):
        found.setdefault(name, []).append(number)
    return found
