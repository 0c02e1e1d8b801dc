"""Partitions are dealt to the members in turn."""

from __future__ import annotations

from hypothesis import given

from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from test.coordinator.assignors.groups import (
    Cluster,
    check_each_partition_has_one_reader,
    groups,
    member,
    shown,
    text,
)


def dealt(cluster, *members):
    return RoundRobinPartitionAssignor.assign(cluster, shown(*members))


def test_partitions_are_dealt_in_turn():
    assigned = dealt(Cluster(a=3, b=3), member('C1', 'ab'), member('C0', 'ab'))
    assert assigned == {
        'C0': ConsumerProtocolMemberAssignment(0, [('a', [0, 2]), ('b', [1])], b''),
        'C1': ConsumerProtocolMemberAssignment(0, [('a', [1]), ('b', [0, 2])], b''),
    }


def test_who_has_not_subscribed_is_passed_over():
    assigned = dealt(Cluster(a=2, b=2), member('0', 'a'), member('1', 'ab'), member('2', 'b'))
    assert text(assigned) == {'0': 'a0', '1': 'a1 b1', '2': 'b0'}


def test_who_gets_nothing_is_there():
    assert dealt(Cluster(a=1), member('0', 'a'), member('1', 'a'))['1'].assignment == []


@given(groups())
def test_each_partition_has_one_reader(group):
    cluster, members = group
    assigned = dealt(cluster, *members)
    shares = {name: share.partitions() for name, share in assigned.items()}
    check_each_partition_has_one_reader(cluster, members, shares)
