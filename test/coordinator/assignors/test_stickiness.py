"""Shares are even, little moves, and in a hand-over nobody gets what another one still owns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka.coordinator.assignors.racks import Racks
from kafka.coordinator.assignors.stickiness import Claims, share, withhold
from test.coordinator.assignors.groups import (
    Cluster,
    RackedCluster,
    check_each_partition_has_one_reader,
    groups,
    member,
    text,
)
from test.timing import spent


def shared(cluster, members):
    partitions = {topic: sorted(range(count)) for topic, count in cluster.topics.items()}
    members = sorted(members, key=lambda each: each.rank)
    claims = Claims.of(members)
    shares = share(members, claims, partitions, Racks(cluster, members, partitions))
    return {name: sorted(some) for name, some in shares.items()}


def after(members, shares, generation=1):
    """Return the members as they own their shares."""
    return [each._replace(owned=shares[each.member_id], generation=generation) for each in members]


# ------------------------------------------------------------ claims


def test_the_later_generation_owns_what_two_claim():
    claims = Claims.of([member('a', 't', 't0 t1', 3), member('b', 't', 't0', 4)])
    assert claims.owner == {('t', 0): 'b', ('t', 1): 'a'}
    assert claims.before == {('t', 0): 'a'}
    assert claims.contested == set()


def test_nobody_owns_what_two_of_one_generation_claim():
    members = [member('a', 't', 't0', 3), member('b', 't', 't0', 3), member('c', 't', 't0', 2)]
    for order in (members, members[::-1]):
        claims = Claims.of(order)
        assert (claims.owner, claims.contested) == ({}, {('t', 0)})


def test_a_still_later_claim_settles_it():
    members = [member('a', 't', 't0', 3), member('b', 't', 't0', 3), member('c', 't', 't0', 4)]
    for order in (members, members[::-1]):
        claims = Claims.of(order)
        assert (claims.owner, claims.contested) == ({('t', 0): 'c'}, set())


def test_of_several_who_lost_it_the_last_one_had_it_before():
    members = [member('a', 't', 't0', 1), member('b', 't', 't0', 2), member('c', 't', 't0', 3)]
    for order in (members, members[::-1], [members[2], members[0], members[1]]):
        assert Claims.of(order).before == {('t', 0): 'b'}


# ------------------------------------------------------------ members that want the same


def test_equal_members_get_equal_shares():
    cluster = Cluster(t=7)
    shares = text(shared(cluster, [member(name, 't') for name in 'abc']))
    assert shares == {'a': 't0 t3 t6', 'b': 't1 t4', 'c': 't2 t5'}


def test_who_had_one_more_keeps_it():
    members = [member('a', 't', 't0'), member('b', 't', 't1 t2')]
    assert text(shared(Cluster(t=3), members)) == {'a': 't0', 'b': 't1 t2'}


def test_only_what_is_too_much_is_taken():
    members = [member('a', 't', 't0 t1 t2 t3'), member('b', 't', 't4'), member('c', 't')]
    assert text(shared(Cluster(t=5), members)) == {'a': 't0 t1', 'b': 't3 t4', 'c': 't2'}


def test_what_is_gone_is_kept_by_nobody():
    members = [member('a', 't', 't0 t9 x1'), member('b', 't', 't1')]
    assert text(shared(Cluster(t=2), members)) == {'a': 't0', 'b': 't1'}


def test_there_may_be_more_members_than_partitions():
    members = [member('a', 't'), member('b', 't', 't1'), member('c', 't'), member('d', 't')]
    assert text(shared(Cluster(t=2), members)) == {'a': 't0', 'b': 't1', 'c': '', 'd': ''}


@given(groups(same_topics=True), st.data())
def test_equal_members_differ_by_one_at_most_and_keep_all_they_may(group, data):
    cluster, members = group
    shares = shared(cluster, members)
    check_each_partition_has_one_reader(cluster, members, shares)
    sizes = [len(some) for some in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    left = [each for each in after(members, shares) if data.draw(st.booleans())]
    if left:  # who stays keeps everything
        again = shared(cluster, left)
        check_each_partition_has_one_reader(cluster, left, again)
        for each in left:
            assert set(each.owned) <= set(again[each.member_id])


@given(groups(same_topics=True), st.integers(1, 3))
def test_who_joins_gets_a_share_and_nothing_else_moves(group, count):
    cluster, members = group
    shares = shared(cluster, members)
    new = [member('n%d' % number, members[0].topics) for number in range(count)]
    everybody = after(members, shares) + new
    again = shared(cluster, everybody)
    check_each_partition_has_one_reader(cluster, everybody, again)
    sizes = [len(some) for some in again.values()]
    assert max(sizes) - min(sizes) <= 1
    for each in members:  # nothing moves between those that were there
        assert set(again[each.member_id]) <= set(shares[each.member_id])


def test_racks_decide_about_what_is_free():
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'])
    members = [member('0', 't', rack='a'), member('1', 't', rack='b')]
    assert text(shared(cluster, members)) == {'0': 't1 t3', '1': 't0 t2'}


def test_what_was_owned_stays_also_where_it_is_far():
    cluster = RackedCluster(t=['b', 'a', 'b', 'a'])
    members = [member('0', 't', 't0', rack='a'), member('1', 't', 't1', rack='b')]
    assert text(shared(cluster, members)) == {'0': 't0 t3', '1': 't1 t2'}


def test_racks_do_not_make_shares_uneven():
    cluster = RackedCluster(t=['a', 'a', 'a', 'a', 'b'])
    members = [member('0', 't', rack='a'), member('1', 't', rack='b'), member('2', 't', rack='b')]
    shares = shared(cluster, members)
    assert sorted(len(some) for some in shares.values()) == [1, 2, 2]
    assert ('t', 4) in shares['1'] + shares['2']


@given(groups(same_topics=True), st.data())
def test_with_racks_each_partition_has_one_reader_too(group, data):
    cluster, members = group
    letters = st.sampled_from('xyz')
    racked = RackedCluster(
        **{topic: [data.draw(letters) for _ in range(n)] for topic, n in cluster.topics.items()}
    )
    members = [each._replace(rack=data.draw(st.sampled_from(['x', 'y', None]))) for each in members]
    shares = shared(racked, members)
    check_each_partition_has_one_reader(cluster, members, shares)
    sizes = [len(some) for some in shares.values()]
    assert max(sizes) - min(sizes) <= 1


# ------------------------------------------------------------ members that want different topics


def test_what_few_want_is_placed_first():
    members = [member('a', 'st'), member('b', 't')]
    assert text(shared(Cluster(s=2, t=2), members)) == {'a': 's0 s1', 'b': 't0 t1'}


def test_a_member_gives_up_what_is_too_much():
    members = [member('a', 'tu', 't0 t1 t2 t3'), member('b', 't')]
    shares = shared(Cluster(t=4, u=0), members)
    assert sorted(len(some) for some in shares.values()) == [2, 2]
    assert shares['b'] == [('t', 2), ('t', 3)]


def test_a_partition_goes_back_to_whose_it_was():
    members = [
        member('a', 'tu', 't0 t1 t2 t3', 5),
        member('b', 't'),
        member('c', 't', 't2', 4),
    ]
    assert ('t', 2) in shared(Cluster(t=4, u=0), members)['c']


def test_of_equal_loads_the_near_one_gets_it():
    cluster = RackedCluster(s=['a', 'b'], t=['b', 'a'])
    members = [member('0', 'st', rack='a'), member('1', 't', rack='b'), member('2', 's', rack='b')]
    shares = text(shared(cluster, members))
    assert 't0' in shares['1']
    assert 's1' in shares['2']


def improving_moves(cluster, members, shares):
    wants = {each.member_id: each.topics for each in members}
    return [
        (name, partition, to)
        for name, some in shares.items()
        for partition in some
        for to in shares
        if partition[0] in wants[to] and len(shares[to]) + 1 < len(some)
    ]


@given(groups(same_topics=False), st.data())
def test_no_move_would_make_shares_more_even(group, data):
    cluster, members = group
    shares = shared(cluster, members)
    check_each_partition_has_one_reader(cluster, members, shares)
    assert improving_moves(cluster, members, shares) == []
    left = [each for each in after(members, shares) if data.draw(st.booleans())]
    if left:
        again = shared(cluster, left)
        check_each_partition_has_one_reader(cluster, left, again)
        assert improving_moves(cluster, left, again) == []


def test_who_was_relieved_may_be_given_something():
    """The loads of members that fell count too, when the others are looked at."""
    members = [
        member('m0', 'b'),
        member('m1', 'abc', 'a1 a3'),
        member('m2', 'bc'),
        member('m3', 'abc', 'b0 b1'),
    ]
    cluster = Cluster(a=4, b=2, c=0)
    assert improving_moves(cluster, members, shared(cluster, members)) == []


@given(groups(same_topics=False))
def test_nothing_moves_where_nothing_has_changed(group):
    cluster, members = group
    shares = shared(cluster, members)
    assert shared(cluster, after(members, shares)) == shares


def claiming(draw, members, cluster):
    """Draw what members claim, whether it can be or not."""
    known = sorted((topic, n) for topic, count in cluster.topics.items() for n in range(count))
    some = st.lists(st.sampled_from(known), unique=True) if known else st.just([])
    return [
        each._replace(owned=draw(some), generation=draw(st.integers(-1, 3))) for each in members
    ]


@given(groups(), st.data())
def test_whatever_is_claimed_each_partition_has_one_reader(group, data):
    cluster, members = group
    members = claiming(data.draw, members, cluster)
    check_each_partition_has_one_reader(cluster, members, shared(cluster, members))


# ------------------------------------------------------------ cooperation


def test_what_somebody_owns_is_withheld_from_others():
    members = [member('a', 't', 't0 t1', 1), member('b', 't')]
    shares = {'a': [('t', 0)], 'b': [('t', 1), ('t', 2)]}
    assert text(withhold(shares, members, Claims.of(members))) == {'a': 't0', 'b': 't2'}


def test_what_two_claim_with_equal_right_is_withheld_from_both():
    members = [member('a', 't', 't0', 1), member('b', 't', 't0', 1)]
    shares = {'a': [('t', 0)], 'b': []}
    assert text(withhold(shares, members, Claims.of(members))) == {'a': '', 'b': ''}


@given(groups(), st.data())
def test_nobody_gets_what_another_one_owns(group, data):
    cluster, members = group
    members = claiming(data.draw, members, cluster)
    claims = Claims.of(members)
    shares = withhold(shared(cluster, members), members, claims)
    for name, some in shares.items():
        for partition in some:
            others = {e.member_id for e in members if partition in e.owned} - {name}
            assert not others or claims.owner[partition] == name


@given(groups(), st.data())
def test_a_hand_over_takes_two_rounds(group, data):
    """What is withheld is given up by its owner and placed when all have joined again."""
    cluster, members = group
    shares = {each.member_id: [] for each in members}
    wanted = sorted({topic for each in members for topic in each.topics} & cluster.topics.keys())
    for topic in wanted:
        for number in range(cluster.topics[topic]):
            readers = [each.member_id for each in members if topic in each.topics]
            shares[data.draw(st.sampled_from(readers))].append((topic, number))
    for generation in (1, 2):
        owning = after(members, shares, generation)
        shares = withhold(shared(cluster, owning), owning, Claims.of(owning))
    check_each_partition_has_one_reader(cluster, members, shares)
    assert shares == {n: sorted(s) for n, s in shared(cluster, after(members, shares, 3)).items()}


def test_a_hand_over_takes_two_rounds_where_a_chain_of_moves_makes_shares_even():
    """Of m2's partitions m3 gets one more if it leaves one to m0: to be seen in the first round."""
    cluster = Cluster(a=6, c=1, d=5)
    members = [
        member('m0', 'a', 'a4', 1),
        member('m1', 'a', 'a0 a1 a2 a3 a5', 1),
        member('m2', 'd', 'd0 d1 d2 d3 d4', 1),
        member('m3', 'abcd', 'c0', 1),
    ]
    wanted = shared(cluster, members)
    assert sorted(len(some) for some in wanted.values()) == [3, 3, 3, 3]
    owned = withhold(wanted, members, Claims.of(members))
    again = after(members, owned, 2)
    shares = withhold(shared(cluster, again), again, Claims.of(again))
    assert [len(some) for some in shares.values()] == [3, 3, 3, 3]
    assert shared(cluster, after(members, shares, 3)) == {n: sorted(s) for n, s in shares.items()}


def test_what_is_free_moves_before_what_is_owned():
    """s0 is free and could go to b, whose t0 would then have to move."""
    members = [member('a', 's'), member('b', 'st', 't0'), member('c', 't', 't1')]
    assert text(shared(Cluster(s=1, t=2), members)) == {'a': 's0', 'b': 't0', 'c': 't1'}


@given(groups(same_topics=False), st.data())
def test_shares_are_as_even_whatever_was_owned(group, data):
    cluster, members = group
    sizes = sorted(len(some) for some in shared(cluster, members).values())
    members = claiming(data.draw, members, cluster)
    assert sorted(len(some) for some in shared(cluster, members).values()) == sizes


# ------------------------------------------------------------ cost


def test_the_work_for_many_partitions_is_bounded():
    """100 members and 1,000 partitions: far from what each-with-each would take."""
    cluster = Cluster(**{'t%d' % number: 40 for number in range(25)})
    same = [member('m%03d' % number, cluster.topics) for number in range(100)]
    different = [
        each._replace(topics=[t for t in each.topics if hash_of(t, each.member_id) % 3])
        for each in same
    ]
    for members in (same, different):
        with spent() as found:
            shares = shared(cluster, members)
            again = shared(cluster, after(members, shares)[1:])
        assert found.seconds < 0.2
        check_each_partition_has_one_reader(cluster, members[1:], again)


def hash_of(topic, name):
    return int(topic[1:]) * 31 + int(name[1:]) * 17
