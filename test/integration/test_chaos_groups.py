"""A group is handed every record while brokers and members die: chaos_groups.py and its judge.

``test/run.py --all`` runs it for a short time, ``python -m test.integration.chaos_groups`` at full
length.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest

from test.integration import chaos_groups
from test.integration.chaos_judge import KEYS, Found, key_of
from test.integration.group_judge import judge, stints_of
from test.integration.group_processes import Event

LOG = {0: {offset: offset for offset in range(10)}}


class Life(NamedTuple):
    """A member as the judge sees it."""

    name: str
    events: list
    killed_at: Optional[float] = None


def life(name, *events, killed_at=None):
    return Life(name, [Event(at, what, words) for at, what, *words in events], killed_at)


def records(at, *offsets):
    return (at, 'records', 0, list(offsets), list(offsets))


def member(name, begins, *events, **more):
    return life(name, (begins, 'assigned', [0]), *events, **more)


A_HALF = records(2, *range(5))
REST = records(12, *range(5, 10))
ALL = records(2, *range(10))


@pytest.mark.parametrize(
    ('lives', 'committed', 'is_so'),
    [
        ([member('a', 1, ALL)], 0, True),
        ([member('a', 1, A_HALF)], 0, False),
        ([member('a', 1, A_HALF)], 10, True),
        ([member('a', 1, ALL, killed_at=5)], 5, False),
        ([member('a', 1, ALL, killed_at=5)], 10, True),
        ([member('a', 1, ALL, (3, 'revoked', [0]))], 5, False),
        ([member('a', 1, ALL, killed_at=5), member('b', 6, REST)], 5, True),
        ([member('a', 1, ALL, killed_at=5), member('b', 6)], 5, False),
    ],
)
def test_members_are_stopped_when_those_that_live_have_what_is_not_committed(
    lives, committed, is_so
):
    assert chaos_groups.are_in_hands({0: 10}, stints_of(lives), {0: committed}) is is_so


@pytest.mark.parametrize(
    ('state', 'found', 'is_so'),
    [
        ('Stable', ['b', 'a'], True),
        ('PreparingRebalance', ['a', 'b'], False),
        ('Stable', ['a'], False),
        ('Stable', ['a', 'b', 'killed'], False),
        ('Stable', ['a', 'killed'], False),
        ('', [], False),
    ],
)
def test_members_are_stopped_when_the_group_has_those_that_live(state, found, is_so):
    assert chaos_groups.is_whole(state, found, ['a', 'b']) is is_so


def wrong_in(*lives, committed=None, keys=0, logs=LOG):
    found = judge(logs, stints_of(lives), committed, keys)
    return {name for name in found._fields[4:] if getattr(found, name)}


@pytest.mark.parametrize(
    'lives',
    [
        [member('a', 1, ALL, (3, 'committed', {'0': 10}), (4, 'closed'))],
        [
            member('a', 1, A_HALF, (3, 'committed', {'0': 5}), (4, 'revoked', [0])),
            member('b', 11, REST),
        ],
        [member('a', 1, A_HALF, killed_at=5), member('b', 11, records(12, *range(10)))],
        [
            member('a', 1, A_HALF, (3, 'committed', {'0': 3}), killed_at=5),
            member('b', 11, records(12, *range(3, 10))),
        ],
        # Taken for dead, it hears of it late.
        [member('a', 1, A_HALF, (13, 'lost', [0])), member('b', 11, records(12, *range(10)))],
    ],
    ids=['alone', 'in turn', 'killed', 'killed after a commit', 'taken for dead'],
)
def test_what_may_be(lives):
    assert wrong_in(*lives, keys=3) == set()


@pytest.mark.parametrize(
    ('lives', 'wrong'),
    [
        ([member('a', 1, records(2, *range(9)))], {'missed'}),
        ([member('a', 1, records(2, 0, 1, 3, 2, *range(4, 10)))], {'disordered', 'ahead'}),
        ([member('a', 1, records(2, 0, 1, 1, *range(2, 10)))], {'disordered'}),
        ([member('a', 1, (2, 'committed', {'0': 4}), records(3, *range(10)))], {'ahead'}),
        (
            [
                member('a', 1, A_HALF, (3, 'committed', {'0': 5}), (4, 'revoked', [0])),
                member('b', 11, records(12, *range(4, 10))),
            ],
            {'unexplained'},
        ),
        ([member('a', 1, A_HALF, killed_at=5), member('b', 11, records(12, *range(6, 10)))],
         {'missed', 'ahead'}),
        ([member('a', 1, A_HALF, (20, 'revoked', [0])), member('b', 11, REST)], {'shared'}),
        ([life('a', ALL)], {'unowned', 'missed'}),
        (
            [member('a', 1, A_HALF, (3, 'revoked', [0]), records(4, 5)), member('b', 11, REST)],
            {'unowned'},
        ),
        ([member('a', 1, (2, 'records', 0, list(range(10)), [7, *range(1, 10)]))],
         {'wrong', 'missed'}),
    ],
    ids=[
        'missed',
        'order',
        'twice in a stint',
        'commit first',
        'after the commit',
        'a gap',
        'shared',
        'never assigned',
        'after it was revoked',
        'another record',
    ],
)  # fmt: skip
def test_what_must_not_be_is_seen(lives, wrong):
    assert wrong_in(*lives) >= wrong
    assert wrong_in(*lives) <= wrong | {'ahead'}


def test_what_is_committed_at_the_end_is_all_that_there_is():
    assert wrong_in(member('a', 1, ALL), committed={0: 10}) == set()
    assert wrong_in(member('a', 1, ALL), committed={0: 8}) == {'behind'}
    assert wrong_in(member('a', 1, ALL), committed={0: 12}) == {'ahead'}


def copy_of(*numbers):
    return [Found(at, key_of(number), number, 0) for at, number in enumerate(numbers)]


@pytest.mark.parametrize(
    ('copy', 'wrong'),
    [
        (copy_of(0, 1, KEYS), set()),
        (copy_of(0, 1), {'missed'}),
        (copy_of(0, 1, KEYS, 1), {'twice'}),
        (copy_of(KEYS, 0, 1), {'disordered'}),
        (copy_of(0, 1, KEYS, 2), {'foreign'}),
    ],
    ids=['exact', 'missed', 'twice', 'order', 'foreign'],
)
def test_a_copy_holds_every_record_once(copy, wrong):
    found = chaos_groups.judge_copy({0: copy_of(0, 1, KEYS)}, {0: copy}, 0)
    assert {name for name in found._fields[1:] if getattr(found, name)} == wrong


SHORT = {'records': 12_000, 'kills': 1, 'member_kills': 2, 'seed': 1}
on_three = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.brokers(3),
    pytest.mark.releases(since='0.11', some=('4.4.0',)),
]


def marked(*marks):
    def mark(test):
        for each in [*on_three, *marks]:
            test = each(test)
        return test

    return mark


NEXT = pytest.param('consumer', marks=[pytest.mark.releases(since='4.0')])


@marked()
@pytest.mark.parametrize('protocol', ['classic', NEXT])
def test_every_record_is_handed_out_while_brokers_and_members_die(cluster, new_name, protocol):
    pytest.importorskip('confluent_kafka')
    found = chaos_groups.run(cluster, new_name(), protocol=protocol, **SHORT)
    assert found.is_good, str(found)


@marked()
@pytest.mark.parametrize('protocol', ['classic', NEXT])
def test_a_copy_in_transactions_is_exact_while_brokers_and_members_die(cluster, new_name, protocol):
    pytest.importorskip('confluent_kafka')
    found = chaos_groups.run(cluster, new_name(), protocol=protocol, transactions=True, **SHORT)
    assert found.is_good, str(found)


@marked()
@pytest.mark.parametrize(
    ('protocol', 'transactions'),
    [
        pytest.param('classic', False, id='classic-commits'),
        pytest.param('consumer', True, marks=[pytest.mark.releases(since='4.0')], id='next-copies'),
    ],
)
def test_every_record_is_handed_out_while_exceptions_are_raised(
    cluster, new_name, protocol, transactions
):
    """Into calls of each member, in its main thread or another one, while members die."""
    pytest.importorskip('confluent_kafka')
    options = {**SHORT, 'kills': 0, 'raises': True, 'every': 0.3}
    found = chaos_groups.run(
        cluster, new_name(), protocol=protocol, transactions=transactions, **options
    )
    assert any(name.lower().startswith('interrupted') for name in found.errors), found
    assert found.is_good, str(found)


@marked()
def test_members_that_commit_too_early_are_found(cluster, new_name):
    """The judge sees it: committed before it was handed out, and lost with who is killed then."""
    pytest.importorskip('confluent_kafka')
    options = {**SHORT, 'kills': 0, 'member_kills': 4}
    found = chaos_groups.run(cluster, new_name(), commits='early', **options)
    assert found.producer.is_good, found
    assert found.verdict.ahead, found
