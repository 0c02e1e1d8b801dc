"""The authorizer of an embedded cluster, which decides by its ACLs.

Follows Kafka's own authorizers (KIP-11, KIP-290, KIP-679): DENY has precedence over ALLOW, what is
not allowed is denied, and some operations imply others. Called by guards/, which know what each
API requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, List

from kafka.testing.security import acls
from kafka.testing.security.acls import ALLOW, DENY, PREFIXED, WILDCARD, Acl

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

EVERYBODY = 'User:*'
EVERYWHERE = '*'

#: The operations whose permission also allows an operation, besides itself and ALL.
IMPLIED_BY = {
    acls.DESCRIBE: (acls.READ, acls.WRITE, acls.DELETE, acls.ALTER),
    acls.DESCRIBE_CONFIGS: (acls.ALTER_CONFIGS,),
}


def principal_of(name: str) -> str:
    """Return a principal as in ACLs; a name without a type is a user's."""
    return name if ':' in name else 'User:' + name


def _is_for(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYBODY) and acl.host in (host, EVERYWHERE)


class Authorizer:
    """Decides by the ACLs of a cluster, which may change at any time.

    Arguments: state: of the cluster, whose settings have the super users and the policy for
    resources without an ACL.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._super_users = frozenset(map(principal_of, state.defaults.super_users))

    def __repr__(self) -> str:
        return '<Authorizer, %d ACLs, %d super users>' % (
            len(self._state.acls),
            len(self._super_users),
        )

    def allows(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        """Return True if a principal on a host may perform an operation on a resource."""
        if principal in self._super_users:
            return True
        found = [acl for acl in self._state.acls if acl.covers(resource_type, name)]
        if not found:
            return self._state.defaults.allow_everyone_if_no_acl_found
        found = [acl for acl in found if _is_for(acl, principal, host)]
        if _has(found, DENY, (operation, acls.ALL)):
            return False
        return _has(found, ALLOW, (operation, acls.ALL, *IMPLIED_BY.get(operation, ())))

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return True if the operation is allowed on at least one possible resource of a type."""
        if principal in self._super_users:
            return True
        own = [
            acl
            for acl in self._state.acls
            if acl.resource_type == resource_type
            and _is_for(acl, principal, host)
            and acl.operation in (operation, acls.ALL)
        ]
        denied = [acl for acl in own if acl.permission_type == DENY]
        if any(_is_for_all(acl) for acl in denied):
            return False
        if self._state.defaults.allow_everyone_if_no_acl_found:
            return True
        allowed = [acl for acl in own if acl.permission_type == ALLOW]
        return any(not any(_dominates(no, yes) for no in denied) for yes in allowed)


def _has(found: List[Acl], permission: int, operations: Iterable[int]) -> bool:
    return any(acl.permission_type == permission and acl.operation in operations for acl in found)


def _is_for_all(acl: Acl) -> bool:
    """Return True if an entry applies to every resource of its type."""
    is_prefixed = acl.pattern_type == PREFIXED
    return acl.resource_name == ('' if is_prefixed else WILDCARD)


def _dominates(denied: Acl, allowed: Acl) -> bool:
    """Return True if a DENY entry leaves nothing of an ALLOW entry."""
    if _is_for_all(denied):
        return True
    if denied.pattern_type == PREFIXED:
        is_literal_for_all = allowed.pattern_type != PREFIXED and _is_for_all(allowed)
        return not is_literal_for_all and allowed.resource_name.startswith(denied.resource_name)
    same_pattern = denied.pattern_type == allowed.pattern_type
    return same_pattern and denied.resource_name == allowed.resource_name
