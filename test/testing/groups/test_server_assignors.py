"""How the embedded broker spreads partitions over members: evenly, and moving few."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.testing.groups.server_assignors import ranges, simple, uniform

TOPICS = [b'a', b'b', b'c']


@st.composite
def groups(draw):
    """Return what members want, the partitions there are, and what members had."""
    names = draw(st.lists(st.sampled_from('klmnopq'), unique=True, max_size=6))
    wanted = {name: draw(st.sets(st.sampled_from(TOPICS))) for name in names}
    counts = {topic: draw(st.integers(0, 7)) for topic in TOPICS}
    owned = {}
    for topic, count in counts.items():
        for index in range(count + 2):
            owned.setdefault(draw(st.sampled_from('klmnopqx')), set()).add((topic, index))
    return wanted, counts, owned


def everything(wanted, counts):
    topics = set().union(*wanted.values()) if wanted else set()
    return {(topic, index) for topic in topics for index in range(counts[topic])}


@settings(deadline=None, max_examples=150)
@given(groups())
def test_each_partition_goes_to_one_member_that_wants_it(group):
    wanted, counts, owned = group
    for assign in (uniform, ranges):
        result = assign(wanted, counts, owned)
        given_out = [partition for has in result.values() for partition in has]
        assert sorted(given_out) == sorted(everything(wanted, counts))
        assert all(topic in wanted[name] for name, has in result.items() for topic, _ in has)


@settings(deadline=None, max_examples=100)
@given(groups())
def test_members_with_one_wish_get_the_same_number_but_for_one(group):
    wanted, counts, owned = group
    wanted = {name: set(TOPICS) for name in wanted}
    sizes = [len(has) for has in uniform(wanted, counts, owned).values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@settings(deadline=None, max_examples=100)
@given(groups())
def test_what_is_even_stays(group):
    wanted, counts, owned = group
    first = uniform(wanted, counts, owned)
    assert uniform(wanted, counts, first) == first


def test_a_range_is_of_neighbours():
    wanted = {'k': {b'a'}, 'l': {b'a'}}
    assert ranges(wanted, {b'a': 5}, {}) == {
        'k': {(b'a', 0), (b'a', 1), (b'a', 2)},
        'l': {(b'a', 3), (b'a', 4)},
    }


def test_uniform_leaves_the_first_partitions_where_they_are():
    wanted = {'a': {b'a'}, 'b': {b'a'}}
    owned = {'a': {(b'a', index) for index in range(4)}}
    target = uniform(wanted, {b'a': 4}, owned)
    assert target == {'a': {(b'a', 0), (b'a', 1)}, 'b': {(b'a', 2), (b'a', 3)}}


@settings(max_examples=100, deadline=None)
@given(groups())
def test_simple_has_each_partition_read_by_about_the_same_number_of_members(group):
    wanted, counts, owned = group
    partitions = everything({'all': set(TOPICS)}, counts)
    target = simple(wanted, partitions, owned)
    for topic in TOPICS:
        names = [name for name in wanted if topic in wanted[name]]
        shares = {name: {each for each in target[name] if each[0] == topic} for name in names}
        readers = [
            sum((topic, index) in share for share in shares.values())
            for index in range(counts[topic])
        ]
        if names and readers:
            assert max(readers) - min(readers) <= 1
            assert min(readers) >= 1
            assert all(shares.values())
            sizes = [len(share) for share in shares.values()]
            assert max(sizes) - min(sizes) <= 1


def test_simple_lets_a_member_move_where_the_room_left_is_of_no_use_to_the_next():
    wanted = {name: {b'c'} for name in 'lmoq'}
    owned = {'q': {(b'c', 1)}, 'o': {(b'c', 2)}}
    target = simple(wanted, {(b'c', index) for index in range(3)}, owned)
    read = [each for has in target.values() for each in has]
    assert [read.count((b'c', index)) for index in range(3)] == [2, 2, 2]
    assert (b'c', 1) in target['q'] and (b'c', 2) in target['o']


def test_simple_moves_no_partition_without_need():
    wanted = {'a': {b'a'}, 'b': {b'a'}}
    partitions = {(b'a', index) for index in range(4)}
    owned = {'a': {(b'a', 1), (b'a', 3)}}
    target = simple(wanted, partitions, owned)
    assert target == {'a': {(b'a', 1), (b'a', 3)}, 'b': {(b'a', 0), (b'a', 2)}}
