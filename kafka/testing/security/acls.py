"""Access control lists of an embedded cluster: what one is, and which filters match it.

Owns the values and the matching of KIP-140 and KIP-290. They lie in ``state.acls``; the requests
are in handlers/acls.py. Nothing is refused because of them here.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

UNKNOWN, ANY = 0, 1

# Types of resources.
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
# Patterns of names.
MATCH, LITERAL, PREFIXED = 2, 3, 4
# Operations.
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = 13, 14, 15
# Permissions.
DENY, ALLOW = 2, 3

#: Of types of resources, patterns, operations, permissions.
LARGEST = (USER, PREFIXED, TWO_PHASE_COMMIT, ALLOW)

WILDCARD = '*'
CLUSTER_NAME = 'kafka-cluster'


class Acl(NamedTuple):
    """One entry: whom something is allowed or denied."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def covers(self, resource_type: int, name: str) -> bool:
        """Tell whether it is about a resource."""
        if resource_type != self.resource_type:
            return False
        if self.pattern_type == PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """Which entries are meant; None and ANY stand for all."""

    resource_type: int
    resource_name: Optional[str]
    pattern_type: int
    principal: Optional[str]
    host: Optional[str]
    operation: int
    permission_type: int

    @property
    def numbers(self) -> Tuple[int, ...]:
        """What its numbers are, in the order of LARGEST."""
        return self.resource_type, self.pattern_type, self.operation, self.permission_type

    @property
    def is_known(self) -> bool:
        """Whether all numbers in it mean something."""
        return all(ANY <= each <= most for each, most in zip(self.numbers, LARGEST))

    def matches(self, acl: Acl) -> bool:
        """Tell whether an entry is meant."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type == MATCH:
            return acl.covers(acl.resource_type, self.resource_name)
        return self.resource_name == acl.resource_name
