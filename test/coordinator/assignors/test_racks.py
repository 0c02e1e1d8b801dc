"""Whether racks make a difference, and who is near what."""

from __future__ import annotations

import pytest

from kafka.coordinator.assignors.racks import Racks
from test.coordinator.assignors.groups import Cluster, RackedCluster, member


def racks(cluster, *of_members):
    members = [member('m%s' % number, 't', rack=rack) for number, rack in enumerate(of_members)]
    return Racks(cluster, members, {'t': [0, 1]}), [each.member_id for each in members]


@pytest.mark.parametrize(
    'kept, of_members, matters',
    [
        (['a', 'b'], ['a', 'b'], True),
        (['ab', 'a'], ['a', None], True),
        (['ab', 'ab'], ['a', 'b'], False),  # all of it is everywhere
        (['a', 'b'], ['x', 'y'], False),  # nobody is near anything
        (['a', 'b'], [None, None], False),
        (['a', 'b'], ['', None], False),
        (['', ''], ['a', 'b'], False),
    ],
)
def test_whether_racks_matter(kept, of_members, matters):
    found, names = racks(RackedCluster(t=kept), *of_members)
    assert found.matter_to('t', names) is matters


def test_a_cluster_that_knows_no_replicas_has_no_racks():
    found, names = racks(Cluster(t=2), 'a')
    assert not found.matter_to('t', names)
    assert found.of_partition(('t', 0)) == frozenset()


def test_who_is_near():
    found, _ = racks(RackedCluster(t=['ab', 'c']), 'a', None)
    assert found.of_partition(('t', 0)) == {'a', 'b'}
    assert found.match('m0', ('t', 0))
    assert not found.match('m0', ('t', 1))
    assert found.match('m1', ('t', 1))
