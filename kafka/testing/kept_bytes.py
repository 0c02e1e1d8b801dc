"""How much memory valid requests may fill with what an embedded cluster keeps for them.

Owns one budget for all that stays until somebody deletes it: ACLs, quotas, SCRAM users, settings of
any resource, topics' own included, and the offsets of groups. Beyond ``state_bytes_limit`` of the
settings of a cluster what is new is refused, as a broker with a policy of its own refuses it:
POLICY_VIOLATION by the APIs of administrators; COORDINATOR_NOT_AVAILABLE for offsets, at which
clients try again (UNKNOWN_SERVER_ERROR where ZooKeeper has them). What takes no more than before is
always allowed. Members of groups have a budget beside this (groups/group_members.py), and so have
logs (logs/appending.py) and requests on their way (connection.py).
"""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, Any, Mapping, Optional

from kafka.testing import errors
from kafka.testing.topic_checks import refuse

if TYPE_CHECKING:
    from kafka.testing.security.acls import Acl
    from kafka.testing.state import ClusterState

#: About what Python takes for one entry, and for each value in it, beside its texts.
ENTRY_BYTES = 400
VALUE_BYTES = 150


class KeptBytes:
    """What is kept, measured once and counted from then on. Arguments: state: the cluster's."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._counted: Optional[int] = None  # but for offsets, which count themselves

    def __repr__(self) -> str:
        return '<KeptBytes %d of %d>' % (self.used, self._state.defaults.state_bytes_limit)

    @property
    def used(self) -> int:
        """How much is taken."""
        if self._counted is None:
            self._counted = _measured(self._state)
        return self._counted + self._state.offsets.used

    def measure_again(self) -> None:
        """Count anew when it is asked next: something changed by another way than requests."""
        self._counted = None

    def has_room(self, before: int, after: int) -> bool:
        """Tell whether something may take so much that took so much before."""
        grows = after - before
        return grows <= 0 or self.used + grows <= self._state.defaults.state_bytes_limit

    def check(self, before: int, after: int) -> None:
        """Raise Refused unless something may take so much that took so much before."""
        if not self.has_room(before, after):
            refuse(
                errors.POLICY_VIOLATION,
                'There is no memory for it: ACLs, quotas, users, settings and offsets take %d bytes'
                ' of %d (state_bytes_limit)' % (self.used, self._state.defaults.state_bytes_limit),
            )

    def change(self, before: int, after: int) -> None:
        """Count what takes another size now. Raises Refused, with nothing counted, for no room."""
        self.check(before, after)
        if self._counted is not None:
            self._counted += after - before


def acl_bytes(acl: Acl) -> int:
    """Return what an entry takes."""
    return ENTRY_BYTES + sum(map(getsizeof, (acl.resource_name, acl.principal, acl.host)))


def quota_bytes(entity: Any, values: Optional[Mapping[str, float]]) -> int:
    """Return what the quotas of an entity take, 0 for none."""
    if not values:
        return 0
    names = sum(getsizeof(name) for _, name in entity)
    return ENTRY_BYTES + names + VALUE_BYTES * len(values)


def user_bytes(name: str, credentials: Optional[Mapping[int, Any]]) -> int:
    """Return what the SCRAM credentials of a user take, 0 for none."""
    if not credentials:
        return 0
    secrets = sum(len(each.salt) + len(each.salted_password) for each in credentials.values())
    return ENTRY_BYTES + getsizeof(name) + 2 * VALUE_BYTES * len(credentials) + secrets


def settings_bytes(name: str, values: Optional[Mapping[str, str]]) -> int:
    """Return what the settings of a resource take, 0 for none."""
    if not values:
        return 0
    texts = sum(getsizeof(key) + getsizeof(value) for key, value in values.items())
    return ENTRY_BYTES + getsizeof(name) + VALUE_BYTES * len(values) + texts


def _measured(state: ClusterState) -> int:
    settings = [(name, values) for (_, name), values in state.configs.items()]
    settings += [(name, topic.configs) for name, topic in state.topics.items()]
    return (
        sum(map(acl_bytes, state.acls))
        + sum(quota_bytes(*each) for each in state.quotas.items())
        + sum(user_bytes(*each) for each in state.scram.items())
        + sum(settings_bytes(*each) for each in settings)
    )
