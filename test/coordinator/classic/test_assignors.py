"""What a member's assignors make of its calls."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.coordinator.assignors.adapt import adapt_assignors, decode_subscription
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.classic.assignors import AssignorError, MemberAssignors, subscriptions_of
from kafka.errors import ProtocolError
from kafka.structs import TopicPartition

A0 = TopicPartition('a', 0)


class Broken(RangePartitionAssignor):
    name = 'broken'

    @classmethod
    def assign(cls, cluster, members):
        raise ZeroDivisionError('oh')


def made(*names):
    return MemberAssignors(adapt_assignors(names))


def chosen(assignors, name, kind='consumer'):
    return assignors.chosen(SimpleNamespace(protocol_type=kind, protocol_name=name))


@pytest.mark.parametrize(
    ('names', 'is_cooperative'),
    [
        (['range'], False),
        (['cooperative-sticky'], True),
        (['range', 'cooperative-sticky'], False),
    ],
)
def test_only_where_all_are_cooperative_the_member_says_what_it_owns(names, is_cooperative):
    assignors = made(*names)
    assert assignors.is_cooperative is is_cooperative
    for (name, data), given in zip(assignors.subscriptions({'b', 'a'}, {A0}, 3, None), names):
        assert name == given
        told = decode_subscription(data, 'me', None)
        assert list(told.topics) == ['a', 'b']
        assert list(told.owned or ()) == ([A0] if is_cooperative else [])


def test_the_one_that_the_group_chose_is_found():
    assignors = made('range', 'sticky')
    assert chosen(assignors, 'sticky').name == 'sticky'
    assert chosen(assignors, 'range', None).name == 'range'  # older brokers tell no type
    assert chosen(assignors, 'unheard') is None
    assert chosen(assignors, 'range', 'connect') is None
    assert repr(assignors) == '<MemberAssignors range, sticky>'


def test_what_an_assignor_raises_names_it():
    assignors = made(Broken)
    with pytest.raises(AssignorError, match='broken') as raised:
        assignors.share(chosen(assignors, 'broken'), None, {})
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_who_was_forgotten_by_the_leader_has_nothing():
    assignors = made('range')
    assert assignors.read(chosen(assignors, 'range'), b'', 1) == []
    with pytest.raises(ProtocolError):
        assignors.read(chosen(assignors, 'range'), b'?', 1)


def test_the_leader_hears_what_each_member_said():
    ((_, data),) = made('range').subscriptions({'a'}, set(), 1, None)
    member = SimpleNamespace(member_id='m', metadata=data, group_instance_id='i')
    (found,) = subscriptions_of(SimpleNamespace(members=[member])).values()
    assert (found.member_id, found.group_instance_id, list(found.topics)) == ('m', 'i', ['a'])
    bad = SimpleNamespace(member_id='m', metadata=b'', group_instance_id=None)
    with pytest.raises(ProtocolError):
        subscriptions_of(SimpleNamespace(members=[bad]))
