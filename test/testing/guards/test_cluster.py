"""Who may look at the cluster and change it."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.acls import DescribeAclsRequest
from kafka.protocol.admin.cluster import DescribeClusterRequest
from kafka.protocol.admin.tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
)
from kafka.protocol.api import request_class
from kafka.testing.calls import HANDLERS
from kafka.testing.guards.cluster import DEMANDS
from kafka.testing.security import acls
from test.testing.filled_messages import filled
from test.testing.guards.people import CLUSTER, People, codes


@pytest.mark.parametrize('key', sorted(DEMANDS))
def test_each_api_needs_one_right_to_the_cluster(key):
    people = People('4.4')
    request = filled(request_class(key), request_class(key).max_version)
    assert key in HANDLERS and key in people.state.release.served
    _, version = people.state.release.served[key]
    for each in set(range(acls.READ, acls.TWO_PHASE_COMMIT)) - {DEMANDS[key]}:
        people.allow('bob', each, CLUSTER)
    implied = {acls.DESCRIBE: {acls.READ, acls.WRITE, acls.DELETE, acls.ALTER}}
    implied[acls.DESCRIBE_CONFIGS] = {acls.ALTER_CONFIGS}
    people.state.acls = {
        each for each in people.state.acls if each.operation not in implied.get(DEMANDS[key], ())
    }
    assert codes(people.ask_as('bob', request, version)) >= {31}
    people.allow('bob', DEMANDS[key], CLUSTER)
    response = people.ask_as('bob', request, version)
    assert response is None or 31 not in codes(response)


def test_whether_there_is_an_entry_is_told_to_who_may_describe_the_cluster():
    people = People('4.4')
    people.allow('bob', acls.DESCRIBE, CLUSTER)
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    assert len(people.ask_as('bob', request).resources) == 1
    assert people.ask_as('eve', request).error_code == 31


def test_operations_are_those_that_one_may():
    people = People('4.4')
    people.allow('bob', acls.ALTER, CLUSTER)
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    found = people.ask_as('bob', request)
    expected = 1 << acls.ALTER | 1 << acls.DESCRIBE
    assert (found.error_code, found.cluster_authorized_operations) == (0, expected)
    assert people.ask_as('eve', request).cluster_authorized_operations == 0


# ---------------------------------------------------------------- delegation tokens


@pytest.fixture
def people():
    return People('4.4', delegation_token_secret='a secret')


def token(people, user, owner=None):
    request = CreateDelegationTokenRequest(
        owner_principal_type='User' if owner else None,
        owner_principal_name=owner,
        renewers=[],
        max_lifetime_ms=-1,
    )
    return people.ask_as(user, request)


def seen(people, user):
    found = people.ask_as(user, DescribeDelegationTokenRequest(owners=None)).tokens
    return sorted(each.principal_name for each in found)


def test_a_token_for_somebody_else_needs_a_right(people):
    assert token(people, 'bob').error_code == 0
    assert token(people, 'bob', 'bob').error_code == 0
    denied = token(people, 'bob', 'alice')
    assert (denied.error_code, denied.principal_name) == (65, 'alice')
    people.allow('bob', acls.CREATE_TOKENS, acls.USER, 'User:alice')
    assert token(people, 'bob', 'alice').error_code == 0


def test_tokens_of_others_are_seen_by_who_may(people):
    token_id = token(people, 'alice').token_id
    assert (seen(people, 'alice'), seen(people, 'bob')) == (['alice'], [])
    people.allow('bob', acls.DESCRIBE, acls.DELEGATION_TOKEN, token_id)
    people.allow('carol', acls.DESCRIBE_TOKENS, acls.USER, 'User:alice')
    assert seen(people, 'bob') == seen(people, 'carol') == ['alice']
    assert seen(people, 'eve') == []
