"""Which entries a filter of ACLs matches."""

from __future__ import annotations

import pytest

from kafka.testing.security import acls
from kafka.testing.security.acls import Acl, AclFilter

ALL = AclFilter(acls.ANY, None, acls.ANY, None, None, acls.ANY, acls.ANY)


def acl(name='orders', pattern=acls.LITERAL, kind=acls.TOPIC):
    return Acl(kind, name, pattern, 'User:a', '*', acls.READ, acls.ALLOW)


@pytest.mark.parametrize(
    'change, is_meant',
    [
        ({}, True),
        ({'resource_type': acls.TOPIC}, True),
        ({'resource_type': acls.GROUP}, False),
        ({'principal': 'User:a'}, True),
        ({'principal': 'User:b'}, False),
        ({'host': '1.2.3.4'}, False),
        ({'operation': acls.WRITE}, False),
        ({'permission_type': acls.DENY}, False),
        ({'pattern_type': acls.PREFIXED}, False),
        ({'resource_name': 'orders'}, True),
        ({'resource_name': 'order'}, False),
    ],
)
def test_every_part_of_a_filter_counts(change, is_meant):
    assert ALL._replace(**change).matches(acl()) == is_meant


@pytest.mark.parametrize(
    'entry, is_meant',
    [
        (acl('orders'), True),
        (acl('order'), False),
        (acl('*'), True),
        (acl('ord', acls.PREFIXED), True),
        (acl('x', acls.PREFIXED), False),
    ],
)
def test_a_match_is_whatever_covers_the_name(entry, is_meant):
    wanted = ALL._replace(resource_name='orders', pattern_type=acls.MATCH)
    assert wanted.matches(entry) == is_meant
    assert entry.covers(acls.TOPIC, 'orders') == is_meant
    assert not entry.covers(acls.GROUP, 'orders')


@pytest.mark.parametrize('field', ['resource_type', 'pattern_type', 'operation', 'permission_type'])
@pytest.mark.parametrize('number', [0, -1, 99])
def test_numbers_without_meaning_are_found(field, number):
    assert not ALL._replace(**{field: number}).is_known
    assert ALL.is_known
