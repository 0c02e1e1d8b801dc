"""Who may do what, by which entries."""

from __future__ import annotations

import pytest

from kafka.testing.security.acls import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
)
from kafka.testing.security.authorizer import Authorizer
from test.testing.drive import Driver

ALICE, BOB, ROOT = 'User:alice', 'User:bob', 'User:root'
HERE, THERE = '127.0.0.1', '10.0.0.9'


def acl(operation=READ, name='orders', **fields):
    values = {
        'resource_type': TOPIC,
        'resource_name': name,
        'pattern_type': LITERAL,
        'principal': ALICE,
        'host': '*',
        'operation': operation,
        'permission_type': ALLOW,
        **fields,
    }
    return Acl(**values)


def authorizer(*entries, **settings):
    state = Driver(authorizer=True, super_users=('root',), **settings).state
    state.acls.update(entries)
    return Authorizer(state)


def allows(decides, operation=READ, name='orders', who=ALICE, host=HERE, kind=TOPIC):
    return decides.allows(who, host, operation, kind, name)


def test_what_nobody_allowed_is_refused():
    assert not allows(authorizer())
    assert not allows(authorizer(acl(WRITE)))
    assert not allows(authorizer(acl(name='other')))
    assert not allows(authorizer(acl(principal=BOB)))
    assert not allows(authorizer(acl(resource_type=GROUP)))


def test_what_is_allowed_is_allowed():
    assert allows(authorizer(acl()))


def test_a_super_user_may_do_everything():
    denied = acl(ALL, '*', principal='User:*', permission_type=DENY)
    assert allows(authorizer(denied), who=ROOT)
    assert not allows(authorizer(denied), who='Group:root')


def test_entries_without_a_host_or_principal_are_for_all():
    decides = authorizer(acl(principal='User:*', host=THERE))
    assert allows(decides, who=BOB, host=THERE)
    assert not allows(decides, who=BOB, host=HERE)


@pytest.mark.parametrize('operation', range(READ, ALTER_CONFIGS + 2))
def test_all_stands_for_every_operation(operation):
    assert allows(authorizer(acl(ALL)), operation)
    assert not allows(authorizer(acl(ALL), acl(ALL, permission_type=DENY)), operation)


def test_a_denial_counts_before_a_permission():
    assert not allows(authorizer(acl(), acl(permission_type=DENY)))
    assert not allows(authorizer(acl(), acl(permission_type=DENY, principal='User:*')))
    assert allows(authorizer(acl(), acl(permission_type=DENY, host=THERE)))
    assert allows(authorizer(acl(), acl(WRITE, permission_type=DENY)))


@pytest.mark.parametrize(
    ('given', 'implied'),
    [(each, DESCRIBE) for each in (READ, WRITE, DELETE, ALTER)]
    + [(ALTER_CONFIGS, DESCRIBE_CONFIGS)],
)
def test_a_permission_implies_another(given, implied):
    assert allows(authorizer(acl(given)), implied)
    assert not allows(authorizer(acl(implied)), given)
    assert allows(authorizer(acl(implied), acl(given, permission_type=DENY)), implied)


@pytest.mark.parametrize('operation', [CREATE, ALTER_CONFIGS, DESCRIBE_CONFIGS])
def test_others_do_not_imply_that_one_may_describe(operation):
    assert not allows(authorizer(acl(operation)), DESCRIBE)


def test_names_may_be_patterns():
    assert allows(authorizer(acl(name='*')))
    assert allows(authorizer(acl(name='ord', pattern_type=PREFIXED)))
    assert not allows(authorizer(acl(name='ord')))
    assert not allows(authorizer(acl(name='*', pattern_type=PREFIXED)))
    assert not allows(authorizer(acl(), acl(name='o', pattern_type=PREFIXED, permission_type=DENY)))


def test_resources_without_an_entry_may_be_for_everybody():
    decides = authorizer(acl(), allow_everyone_if_no_acl_found=True)
    assert allows(decides, name='free', who=BOB)
    assert not allows(decides, who=BOB)


# ---------------------------------------------------------------- some resource of a type


def allows_some(*entries, who=ALICE, **settings):
    return authorizer(*entries, **settings).allows_some(who, HERE, WRITE, TOPIC)


def test_one_topic_that_may_be_written_is_enough():
    assert allows_some(acl(WRITE))
    assert allows_some(acl(ALL, 'o', pattern_type=PREFIXED))
    assert allows_some(who=ROOT)
    assert not allows_some()
    assert not allows_some(acl(READ))
    assert not allows_some(acl(WRITE, principal=BOB))
    assert not allows_some(acl(WRITE, host=THERE))
    assert not allows_some(acl(WRITE, resource_type=GROUP))


@pytest.mark.parametrize(
    ('denied', 'is_left'),
    [
        (acl(WRITE, permission_type=DENY), False),
        (acl(WRITE, '*', permission_type=DENY), False),
        (acl(ALL, 'ord', permission_type=DENY, pattern_type=PREFIXED), False),
        (acl(WRITE, 'orders-', permission_type=DENY, pattern_type=PREFIXED), True),
        (acl(WRITE, 'other', permission_type=DENY), True),
        (acl(READ, '*', permission_type=DENY), True),
    ],
)
def test_a_denial_may_leave_nothing(denied, is_left):
    assert allows_some(acl(WRITE), denied) is is_left


def test_a_permission_for_all_topics_is_not_lost_by_a_denial_of_some():
    denied = acl(WRITE, 'ord', permission_type=DENY, pattern_type=PREFIXED)
    assert allows_some(acl(WRITE, '*'), denied)


def test_without_entries_it_may_be_for_everybody():
    assert allows_some(allow_everyone_if_no_acl_found=True)
    denied = acl(WRITE, '*', permission_type=DENY)
    assert not allows_some(denied, allow_everyone_if_no_acl_found=True)


def test_it_says_what_it_is():
    assert repr(authorizer(acl())) == '<Authorizer, 1 ACLs, 1 super users>'
