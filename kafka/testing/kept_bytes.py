"""The memory limit of the state that requests create in an embedded cluster.

One budget, ``state_bytes_limit``, for ACLs, quotas, SCRAM users, configs of all resources,
including topics, and the offsets of groups. Above it additions are refused with POLICY_VIOLATION,
as by a broker with a policy; offsets with COORDINATOR_NOT_AVAILABLE, at which clients retry
(UNKNOWN_SERVER_ERROR for those in ZooKeeper). What takes no more memory than before is always
allowed. Members of groups (groups/group_members.py), logs (logs/appending.py) and incomplete
requests (connection.py) have limits of their own.
"""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, Any, Mapping, Optional

from kafka.testing import errors
from kafka.testing.topic_checks import refuse

if TYPE_CHECKING:
    from kafka.testing.security.acls import Acl
    from kafka.testing.state import ClusterState

#: The estimated memory of an entry and of each value in Python, besides their strings.
ENTRY_BYTES = 400
VALUE_BYTES = 150


class KeptBytes:
    """The size of the state, measured once and then counted. Arguments: state: of the cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._counted: Optional[int] = None  # except offsets, which are counted in StoredOffsets

    def __repr__(self) -> str:
        return '<KeptBytes %d of %d>' % (self.used, self._state.defaults.state_bytes_limit)

    @property
    def used(self) -> int:
        """The bytes in use."""
        if self._counted is None:
            self._counted = _measured(self._state)
        return self._counted + self._state.offsets.used

    def measure_again(self) -> None:
        """Measure again at the next use: something was changed other than by requests."""
        self._counted = None

    def has_room(self, before: int, after: int) -> bool:
        """Return True if something may grow from ``before`` to ``after`` bytes."""
        grows = after - before
        return grows <= 0 or self.used + grows <= self._state.defaults.state_bytes_limit

    def check(self, before: int, after: int) -> None:
        """Raise Refused unless something may grow from ``before`` to ``after`` bytes."""
        if not self.has_room(before, after):
            refuse(
                errors.POLICY_VIOLATION,
                'There is no memory for it: ACLs, quotas, users, settings and offsets take %d bytes'
                ' of %d (state_bytes_limit)' % (self.used, self._state.defaults.state_bytes_limit),
            )

    def change(self, before: int, after: int) -> None:
        """Count a change of size. Raises Refused, with nothing counted, above the limit."""
        self.check(before, after)
        if self._counted is not None:
            self._counted += after - before


def acl_bytes(acl: Acl) -> int:
    """Return the size of an ACL."""
    return ENTRY_BYTES + sum(map(getsizeof, (acl.resource_name, acl.principal, acl.host)))


def quota_bytes(entity: Any, values: Optional[Mapping[str, float]]) -> int:
    """Return the size of the quotas of an entity, 0 without quotas."""
    if not values:
        return 0
    names = sum(getsizeof(name) for _, name in entity)
    return ENTRY_BYTES + names + VALUE_BYTES * len(values)


def user_bytes(name: str, credentials: Optional[Mapping[int, Any]]) -> int:
    """Return the size of the SCRAM credentials of a user, 0 without credentials."""
    if not credentials:
        return 0
    secrets = sum(len(each.salt) + len(each.salted_password) for each in credentials.values())
    return ENTRY_BYTES + getsizeof(name) + 2 * VALUE_BYTES * len(credentials) + secrets


def settings_bytes(name: str, values: Optional[Mapping[str, str]]) -> int:
    """Return the size of the configs of a resource, 0 without configs."""
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
