"""Every subscriber of a topic gets a run of its partitions, from near by if racks are known."""

from __future__ import annotations

from hypothesis import given

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from test.coordinator.assignors.groups import (
    Cluster,
    RackedCluster,
    check_each_partition_has_one_reader,
    groups,
    member,
    shown,
    text,
)


def ranges(cluster, *members):
    return RangePartitionAssignor.assign(cluster, shown(*members))


def test_the_first_members_get_one_more_of_each_topic():
    assigned = ranges(Cluster(a=3, b=3), member('C1', 'ab'), member('C0', 'ab'))
    assert assigned == {
        'C0': ConsumerProtocolMemberAssignment(0, [('a', [0, 1]), ('b', [0, 1])], b''),
        'C1': ConsumerProtocolMemberAssignment(0, [('a', [2]), ('b', [2])], b''),
    }


def test_a_topic_of_which_a_member_gets_nothing_is_listed():
    assigned = ranges(Cluster(a=1), member('C0', 'a'), member('C1', 'a'), member('C2', 'b'))
    assert assigned['C1'].assignment == [('a', [])]
    assert assigned['C2'].assignment == []


def test_members_as_1_x_gives_them():
    metadata = RangePartitionAssignor.metadata(['a'])
    assigned = RangePartitionAssignor.assign(Cluster(a=2), {'C0': metadata, 'C1': metadata})
    assert text(assigned) == {'C0': 'a0', 'C1': 'a1'}


@given(groups())
def test_each_partition_has_one_reader(group):
    cluster, members = group
    assigned = ranges(cluster, *members)
    shares = {name: share.partitions() for name, share in assigned.items()}
    check_each_partition_has_one_reader(cluster, members, shares)


@given(groups())
def test_shares_of_a_topic_are_runs_and_differ_by_one(group):
    cluster, members = group
    assigned = ranges(cluster, *members)
    for topic in cluster.topics:
        runs = [
            dict(assigned[each.member_id].assignment)[topic]
            for each in members
            if topic in each.topics
        ]
        assert [number for run in runs for number in run] == [*range(sum(len(run) for run in runs))]
        assert {len(run) - len(runs[-1]) for run in runs} <= {0, 1}


# ------------------------------------------------------------ racks (KIP-881)


def racked(cluster, *members):
    return text(ranges(cluster, *members))


def test_members_get_what_is_kept_in_their_rack():
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'])
    assigned = racked(cluster, member('0', 't', rack='a'), member('1', 't', rack='b'))
    assert assigned == {'0': 't1 t3', '1': 't0 t2'}


def test_a_quota_is_kept_also_where_all_is_near():
    cluster = RackedCluster(t=['a', 'a', 'a', 'b'])
    assigned = racked(cluster, member('0', 't', rack='a'), member('1', 't', rack='b'))
    assert assigned == {'0': 't0 t1', '1': 't2 t3'}


def test_racks_do_not_count_where_all_have_everything():
    cluster = RackedCluster(t=['ab', 'ab', 'ab'])
    assigned = racked(cluster, member('0', 't', rack='b'), member('1', 't', rack='a'))
    assert assigned == {'0': 't0 t1', '1': 't2'}


def test_racks_do_not_count_where_no_member_stands_in_one():
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'])
    assigned = racked(cluster, member('0', 't', rack='x'), member('1', 't', rack='y'))
    assert assigned == {'0': 't0 t1', '1': 't2 t3'}


def test_a_member_without_rack_takes_anything():
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'])
    assigned = racked(cluster, member('0', 't'), member('1', 't', rack='b'))
    assert assigned == {'0': 't0 t1', '1': 't2 t3'}


def test_partitions_of_one_number_stay_together():
    """In topics of equal size and subscribers; the rack has to have all of them."""
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'], u=['b', 'a', 'a', 'a'])
    assigned = racked(cluster, member('0', 'tu', rack='a'), member('1', 'tu', rack='b'))
    assert assigned == {'0': 't1 t3 u1 u3', '1': 't0 t2 u0 u2'}


def test_topics_of_other_sizes_are_shared_by_themselves():
    cluster = RackedCluster(t=['b', 'a'], u=['b', 'a', 'a'])
    assigned = racked(cluster, member('0', 'tu', rack='a'), member('1', 'tu', rack='b'))
    assert assigned == {'0': 't1 u1 u2', '1': 't0 u0'}


def test_a_partition_whose_leader_is_gone_is_no_trouble():
    class Gone(RackedCluster):
        def partition(self, topic, number):
            return None if number == 0 else super().partition(topic, number)

        def broker_metadata(self, node):
            return None if node == ord('x') else super().broker_metadata(node)

    assigned = racked(
        Gone(t=['a', 'x', 'a']), member('0', 't', rack='b'), member('1', 't', rack='a')
    )
    assert assigned == {'0': 't0 t1', '1': 't2'}
