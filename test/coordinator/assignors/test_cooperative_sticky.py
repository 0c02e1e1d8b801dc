"""CooperativeStickyAssignor: what changes its owner is given to nobody at first."""

from __future__ import annotations

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from test.coordinator.assignors.groups import Cluster, member, shown, text


def assigned(count, *members):
    return text(CooperativeStickyAssignor().assign(Cluster(t=count), shown(*members)))


def test_it_can_do_both():
    assert CooperativeStickyAssignor().supported_protocols() == [
        RebalanceProtocol.COOPERATIVE,
        RebalanceProtocol.EAGER,
    ]


def test_what_moves_is_given_to_nobody_at_first():
    assert assigned(4, member('a', 't', 't0 t1 t2 t3', 1), member('b', 't')) == {
        'a': 't0 t1',
        'b': '',
    }
    assert assigned(4, member('a', 't', 't0 t1', 2), member('b', 't', '', 2)) == {
        'a': 't0 t1',
        'b': 't2 t3',
    }


def test_the_later_generation_owns_what_two_claim():
    members = member('a', 't', 't0', 4), member('b', 't', 't0 t1', 3)
    assert assigned(2, *members) == {'a': 't0', 'b': 't1'}


def test_the_generation_of_a_first_version_is_in_the_user_data():
    members = (
        member('a', 't', 't0', version=1, user_data=b'\x00\x00\x00\x04'),
        member('b', 't', 't0 t1', version=1, user_data=b'\x00\x00\x00\x03'),
    )
    assert assigned(2, *members) == {'a': 't0', 'b': 't1'}


def test_user_data_does_not_count_beside_the_field():
    members = (
        member('a', 't', 't0', 4, version=2, user_data=b'\x00\x00\x00\x00'),
        member('b', 't', 't0 t1', -1, version=2, user_data=b'\x00\x00\x00\x09'),
    )
    assert assigned(2, *members) == {'a': 't0', 'b': 't1'}


def test_user_data_that_cannot_be_read_is_no_generation():
    members = member('a', 't', 't0', user_data=b'\x00'), member('b', 't', 't1', user_data=None)
    assert assigned(2, *members) == {'a': 't0', 'b': 't1'}


def test_a_member_tells_what_it_owns():
    assignor = CooperativeStickyAssignor()
    assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [('t', [0, 2])], b''), 5)
    told = assignor.metadata(['t'])
    assert (told.version, told.topics, told.generation_id) == (1, ['t'], 5)
    assert told.user_data == b'\x00\x00\x00\x05'
    assert [(each.topic, each.partitions) for each in told.owned_partitions] == [('t', [0, 2])]
