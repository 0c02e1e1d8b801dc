"""SCRAM credentials of an embedded cluster's users (KIP-554).

They are stored in ``state.scram`` by user and mechanism, salted as in the requests.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Optional, Tuple, Union

from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.kept_bytes import user_bytes
from kafka.testing.security.scram import (
    FEWEST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    ScramCredential,
)
from kafka.testing.topic_checks import Refused, refuse

_MOST_USERS = 100_000

Change = Union[ScramCredentialDeletion, ScramCredentialUpsertion]


@handles(DescribeUserScramCredentialsRequest)
def describe_credentials(
    call: Call[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of users, of all users if none is named."""
    scram = call.state.scram
    names = [user.name for user in call.request.users or ()] or sorted(scram)
    counts = Counter(names)
    results = []
    for name in counts:
        code, text = errors.NONE, ''
        if counts[name] > 1:
            code = errors.DUPLICATE_RESOURCE
            text = 'Cannot describe SCRAM credentials for the same user twice: %s' % name
        elif name not in scram:
            code = errors.RESOURCE_NOT_FOUND
            text = 'Attempt to describe a user credential that does not exist: %s' % name
        infos = [] if code else sorted(scram[name].items())
        results.append(
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=code,
                error_message=text,
                credential_infos=[
                    CredentialInfo(mechanism=mechanism, iterations=each.iterations)
                    for mechanism, each in infos
                ],
            )
        )
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=0, error_code=errors.NONE, error_message='', results=results
    )


@handles(AlterUserScramCredentialsRequest)
def alter_credentials(
    call: Call[AlterUserScramCredentialsRequest],
) -> AlterUserScramCredentialsResponse:
    """Set and delete credentials; the changes of a user are applied all or none."""
    changes: Dict[str, List[Change]] = {}
    asked: List[Change] = [*call.request.deletions]
    asked += call.request.upsertions
    for change in asked:
        changes.setdefault(change.name, []).append(change)
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0, results=[_result(call, *each) for each in changes.items()]
    )


def _result(
    call: Call[AlterUserScramCredentialsRequest], name: str, changes: List[Change]
) -> AlterUserScramCredentialsResult:
    code = errors.NONE
    text = '' if call.state.release.has_zookeeper else None
    try:
        if is_wrong_node(call):
            refuse(errors.NOT_CONTROLLER)
        _alter(call, name, changes)
    except Refused as refused:
        code, text = refused.code, refused.text
    return AlterUserScramCredentialsResult(user=name, error_code=code, error_message=text)


def _alter(call: Call[AlterUserScramCredentialsRequest], name: str, changes: List[Change]) -> None:
    scram = call.state.scram
    if not name:
        refuse(errors.UNACCEPTABLE_CREDENTIAL, 'Username must not be empty')
    # KRaft allows one change of a user in a request, ZooKeeper releases one of each mechanism.
    zookeeper = call.state.release.has_zookeeper
    if len(changes) > (len({change.mechanism for change in changes}) if zookeeper else 1):
        refuse(
            errors.DUPLICATE_RESOURCE,
            'A user credential cannot be altered twice in the same request',
        )
    credentials = dict(scram.get(name, {}))
    for change in changes:
        mechanism, credential = _changed(change)
        if credential is not None:
            credentials[mechanism] = credential
        elif credentials.pop(mechanism, None) is None:
            refuse(
                errors.RESOURCE_NOT_FOUND,
                'Attempt to delete a user credential that does not exist',
            )
    if credentials and name not in scram and len(scram) >= _MOST_USERS:
        refuse(errors.POLICY_VIOLATION, 'There are %d users' % _MOST_USERS)
    call.state.kept.change(user_bytes(name, scram.get(name)), user_bytes(name, credentials))
    if credentials:
        scram[name] = credentials
    else:
        scram.pop(name, None)


def _changed(change: Change) -> Tuple[int, Optional[ScramCredential]]:
    """Return mechanism and new credential, None for a deleted one. Raises Refused."""
    code = errors.UNACCEPTABLE_CREDENTIAL
    if change.mechanism not in MECHANISMS:
        refuse(errors.UNSUPPORTED_SASL_MECHANISM, 'Unknown SCRAM mechanism')
    if isinstance(change, ScramCredentialDeletion):
        return change.mechanism, None
    if change.iterations < FEWEST_ITERATIONS:
        refuse(code, 'Too few iterations')
    if change.iterations > MOST_ITERATIONS:
        refuse(code, 'Too many iterations')
    if len(change.salt) > 1024 or len(change.salted_password) > 1024:
        refuse(code, 'Too long a salt or password')
    return change.mechanism, ScramCredential(
        change.iterations, bytes(change.salt), bytes(change.salted_password)
    )
