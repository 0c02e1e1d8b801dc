"""StickyPartitionAssignor: what members had is in their user data, also of the class as in 2.x."""

from __future__ import annotations

import pytest

from kafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor,
    decode_user_data,
    encode_user_data,
)
from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from test.coordinator.assignors.groups import Cluster, member, shown, text

V1 = (
    b'\x00\x00\x00\x01'  # one topic
    b'\x00\x01t'
    b'\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02'  # partitions 0 and 2
    b'\x00\x00\x00\x05'  # generation
)
GOT = ConsumerProtocolMemberAssignment(0, [('t', [0, 2])], b'')


@pytest.fixture
def restored(monkeypatch):
    """The class as it was before, after the test."""
    monkeypatch.setattr(StickyPartitionAssignor, 'member_assignment', None)
    monkeypatch.setattr(StickyPartitionAssignor, 'generation', -1)


def test_the_bytes_of_what_a_member_had():
    assert encode_user_data([('t', 2), ('t', 0)], 5) == V1
    assert decode_user_data(V1) == ([('t', 0), ('t', 2)], 5)


def test_the_first_version_has_no_generation():
    assert decode_user_data(V1[:-4]) == ([('t', 0), ('t', 2)], -1)


@pytest.mark.parametrize('data', [None, b'', b'\x00', V1[:9], b'\x7f\xff\xff\xff'])
def test_what_cannot_be_read_is_nothing(data):
    assert decode_user_data(data) == ((), -1)


def test_a_member_tells_what_it_got():
    assignor = StickyPartitionAssignor()
    assert assignor.metadata({'t'}) == ConsumerProtocolMemberMetadata(0, ['t'], b'')
    assignor.on_assignment(GOT, 5)
    assert assignor.metadata({'t'}) == ConsumerProtocolMemberMetadata(0, ['t'], V1)
    assert repr(assignor) == '<StickyPartitionAssignor has 2 partitions of generation 5>'


def test_objects_do_not_know_of_each_other():
    StickyPartitionAssignor().on_assignment(GOT, 5)
    assert StickyPartitionAssignor().metadata(['t']).user_data == b''


def test_the_class_is_used_as_in_2_x(restored):
    StickyPartitionAssignor.on_assignment(GOT)
    StickyPartitionAssignor.on_generation_assignment(5)
    assert StickyPartitionAssignor.metadata(['t']).user_data == V1
    assigned = StickyPartitionAssignor.assign(Cluster(t=1), shown(member('m', 't')))
    assert text(assigned) == {'m': 't0'}
    assert StickyPartitionAssignor().member_assignment is None


def test_the_leader_goes_by_user_data():
    """Other fields do not count: members have given up all when they join."""
    members = [
        member('a', 't', 't1', 9, user_data=encode_user_data([('t', 0)], 1)),
        member('b', 't', 't0', 9, user_data=encode_user_data([('t', 1), ('t', 0)], 0)),
    ]
    assigned = StickyPartitionAssignor().assign(Cluster(t=2), shown(*members))
    assert text(assigned) == {'a': 't0', 'b': 't1'}
    assert assigned['a'] == ConsumerProtocolMemberAssignment(0, [('t', [0])], b'')
