"""Access control lists of an embedded cluster: entries, filters and their matching.

Follows KIP-140 and KIP-290. The entries are in ``state.acls``; the requests are in
handlers/acls.py, the decisions in authorizer.py. Pure.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

UNKNOWN, ANY = 0, 1

# Resource types.
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
# Pattern types.
MATCH, LITERAL, PREFIXED = 2, 3, 4
# Operations.
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = 13, 14, 15
# Permission types.
DENY, ALLOW = 2, 3

#: The largest numbers of resource types, pattern types, operations and permission types.
LARGEST = (USER, PREFIXED, TWO_PHASE_COMMIT, ALLOW)

WILDCARD = '*'
CLUSTER_NAME = 'kafka-cluster'


class Acl(NamedTuple):
    """One entry: a principal and host with an operation that is allowed or denied."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def covers(self, resource_type: int, name: str) -> bool:
        """Return True if the entry applies to a resource."""
        if resource_type != self.resource_type:
            return False
        if self.pattern_type == PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """A filter of entries; None and ANY match all."""

    resource_type: int
    resource_name: Optional[str]
    pattern_type: int
    principal: Optional[str]
    host: Optional[str]
    operation: int
    permission_type: int

    @property
    def numbers(self) -> Tuple[int, ...]:
        """The values of its enums, in the order of LARGEST."""
        return self.resource_type, self.pattern_type, self.operation, self.permission_type

    @property
    def is_known(self) -> bool:
        """Whether all enum values are known."""
        return all(ANY <= each <= most for each, most in zip(self.numbers, LARGEST))

    def matches(self, acl: Acl) -> bool:
        """Return True if an entry matches."""
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
