"""Security options of an embedded cluster: users and mechanisms, TLS, and ACLs.

Made by ``Cluster`` from its arguments; sets up logins (sasl/login.py), certificates (tls.py) and
ACLs (acls.py).
"""

from __future__ import annotations

import platform
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from kafka.testing.security import acls
from kafka.testing.security.acls import ALLOW, DENY, LITERAL, PREFIXED, WILDCARD, Acl
from kafka.testing.security.authorizer import EVERYWHERE, principal_of
from kafka.testing.security.certificates import local_tls
from kafka.testing.security.sasl.login import Sasl, chosen_mechanisms
from kafka.testing.security.tls import Tls
from kafka.testing.state import ClusterState

#: By lower-case name without underscores.
OPERATIONS = {
    'all': acls.ALL,
    'read': acls.READ,
    'write': acls.WRITE,
    'create': acls.CREATE,
    'delete': acls.DELETE,
    'alter': acls.ALTER,
    'describe': acls.DESCRIBE,
    'clusteraction': acls.CLUSTER_ACTION,
    'describeconfigs': acls.DESCRIBE_CONFIGS,
    'alterconfigs': acls.ALTER_CONFIGS,
    'idempotentwrite': acls.IDEMPOTENT_WRITE,
    'createtokens': acls.CREATE_TOKENS,
    'describetokens': acls.DESCRIBE_TOKENS,
    'twophasecommit': acls.TWO_PHASE_COMMIT,
}
#: Listening on all addresses, where clients use the name of the machine.
EVERY_ADDRESS = ('', '0.0.0.0', '::')
_TYPES = {
    'topic': acls.TOPIC,
    'group': acls.GROUP,
    'transactional_id': acls.TRANSACTIONAL_ID,
    'delegation_token': acls.DELEGATION_TOKEN,
    'user': acls.USER,
}


class Security:
    """The security settings of a cluster.

    Arguments: state: of the cluster; host: where its brokers listen; sasl: passwords by user, None
    for no logins; mechanisms: of SASL, None for those with passwords; tls: True for a self-signed
    certificate, the files of one, or False.

    Raises: ValueError if the release does not support it, or for a user without name or password;
    TypeError if ``sasl`` is not a mapping of strings or ``tls`` has another type.
    """

    def __init__(
        self,
        state: ClusterState,
        host: str,
        sasl: Optional[Mapping[str, str]] = None,
        mechanisms: Optional[Iterable[str]] = None,
        tls: Union[bool, Tls] = False,
    ) -> None:
        self._state = state
        self._host = host
        self._tls = tls
        if tls and state.release.version < (0, 9):
            raise ValueError('Kafka %s has no TLS, 0.9 is the first' % state.release.name)
        if not isinstance(tls, (bool, Tls)):
            raise TypeError('tls must be True, False or kafka.testing.Tls, not %r' % (tls,))
        if sasl is not None or mechanisms is not None:
            names = chosen_mechanisms(state.release, mechanisms)
            state.sasl = Sasl(state, _checked(sasl), names)

    def __repr__(self) -> str:
        return '<Security %s, %r, %r>' % (self.protocol, self._state.sasl, self._state.authorizer)

    @property
    def protocol(self) -> str:
        """The security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        transport = 'SSL' if self._tls else 'PLAINTEXT'
        return transport if self._state.sasl is None else 'SASL_' + transport

    @property
    def mechanisms(self) -> List[str]:
        """The mechanisms that brokers offer; empty without SASL."""
        return [] if self._state.sasl is None else list(self._state.sasl.mechanisms)

    @property
    def ca_file(self) -> Optional[str]:
        """The file with which clients verify the brokers' certificate; None without TLS."""
        return None if not self._tls else self._files().certificate

    def _files(self) -> Tls:
        if isinstance(self._tls, Tls):
            return self._tls
        return local_tls(platform.node() if self._host in EVERY_ADDRESS else self._host)

    def prepare(self) -> None:
        """Make the TLS context that connections need.

        Raises CertificateError if a certificate cannot be made or used; ValueError as Tls.context.
        """
        if self._tls and self._state.tls_context is None:
            self._state.tls_context = self._files().context()

    # ------------------------------------------------------------ ACLs

    def add(
        self, permission: int, principal: str, operations: Iterable[str], **resources: Any
    ) -> None:
        """Add ACLs; see ``Cluster.allow``."""
        if self._state.authorizer is None:
            raise ValueError('ACLs need Cluster(authorizer=True)')
        self._state.acls.update(_entries(permission, principal, operations, **resources))
        self._state.kept.measure_again()
        if self._state.storage is not None:
            self._state.storage.note_everything()


def _checked(sasl: Optional[Mapping[str, str]]) -> Dict[str, str]:
    """Return users and passwords after a check; error messages do not show passwords."""
    if sasl is not None and not isinstance(sasl, Mapping):
        raise TypeError('sasl must be {user: password}, not %s' % type(sasl).__name__)
    users = dict(sasl or {})
    for user, password in users.items():
        if not isinstance(user, str) or not isinstance(password, str):
            raise TypeError('users and passwords must be str: see that of %r' % (user,))
        if not user or not password or '\0' in user + password:
            raise ValueError(
                'a user and its password have one character or more, none 0: %r' % user
            )
        if any('\ud800' <= each <= '\udfff' for each in user + password):
            raise ValueError('a user and its password must be texts that UTF-8 has: %r' % user)
    return users


def _entries(
    permission: int,
    principal: str,
    operations: Iterable[str],
    host: str = EVERYWHERE,
    cluster: bool = False,
    **names: Optional[str],
) -> List[Acl]:
    assert permission in (ALLOW, DENY)
    resources: List[Tuple[int, str, int]] = []
    for kind, name in names.items():
        if kind not in _TYPES:
            raise TypeError('no kind of resource: %s; there are %s' % (kind, ', '.join(_TYPES)))
        if name is not None:
            resources.append((_TYPES[kind], *_pattern(name)))
    if cluster:
        resources.append((acls.CLUSTER, acls.CLUSTER_NAME, LITERAL))
    numbers = [_number(operation) for operation in operations]
    if not numbers or not resources:
        raise ValueError('name an operation and what it is for: allow("alice", "Read", topic="t")')
    who = principal_of(principal)
    return [
        Acl(kind, name, pattern, who, host, number, permission)
        for kind, name, pattern in resources
        for number in numbers
    ]


def _pattern(name: str) -> Tuple[str, int]:
    """Return name and type of a pattern; an asterisk after a name makes it a prefix."""
    if not name:
        raise ValueError('a resource has a name')
    is_prefix = name.endswith(WILDCARD) and name != WILDCARD
    return (name[:-1], PREFIXED) if is_prefix else (name, LITERAL)


def _number(operation: str) -> int:
    number = OPERATIONS.get(operation.replace('_', '').lower())
    if number is None:
        raise ValueError('no operation %r; there are %s' % (operation, ', '.join(OPERATIONS)))
    return number
