"""Nothing is lost, twice or out of order while brokers die: the figure of chaos.py, and its judge.

``test/run.py --all`` kills two brokers for each program; ``python -m test.integration.chaos`` does
it at full length.
"""

from __future__ import annotations

import pytest

from test.integration import chaos
from test.integration.chaos_judge import (
    KEYS,
    Found,
    Told,
    Transaction,
    judge,
    judge_transactions,
    key_of,
)


def log_of(*numbers, transaction=0):
    return [Found(at, key_of(n), n, transaction) for at, n in enumerate(numbers)]


def wrong_in(judgement):
    return {name for name in judgement._fields[4:] if getattr(judgement, name)}


STORED = {0: Told(0, 0), 1: Told(0, 1), KEYS: Told(0, 2)}


def test_a_log_of_what_was_acknowledged_is_good():
    found = judge({0: log_of(0, 1, KEYS)}, STORED)
    assert found.is_good
    assert (found.stored, found.acknowledged, found.uncertain) == (3, 3, 0)


def test_what_failed_may_be_stored_or_not():
    told = {0: Told(0, 0), 1: Told(error='KafkaTimeoutError'), 2: Told(error='KafkaTimeoutError')}
    found = judge({0: log_of(0, 1)}, told)
    assert found.is_good
    assert (found.failed, found.uncertain) == (2, 1)


@pytest.mark.parametrize(
    ('logs', 'told', 'wrong'),
    [
        ({0: log_of(0, 1)}, STORED, {'lost'}),
        ({0: log_of(0, 1, KEYS, KEYS)}, STORED, {'duplicated'}),
        ({0: log_of(KEYS, 0)}, {0: Told(0, 1), KEYS: Told(0, 0)}, {'disordered'}),
        ({0: log_of(0), 1: log_of(KEYS)}, {0: Told(0, 0), KEYS: Told(1, 0)}, {'disordered'}),
        ({0: log_of(0, 1)}, {0: Told(0, 1), 1: Told(0, 0)}, {'elsewhere'}),
        ({0: log_of(0, 1)}, {0: Told(0, 0)}, {'foreign'}),
        ({0: [Found(0, b'other', 0, 0)]}, {0: Told(0, 0)}, {'foreign'}),
        ({0: log_of(0)}, {0: Told(0, 0), 1: Told()}, {'unresolved'}),
    ],
    ids=['lost', 'twice', 'reordered', 'moved', 'elsewhere', 'unknown', 'key', 'unresolved'],
)
def test_what_must_not_be_is_seen(logs, told, wrong):
    found = judge(logs, told)
    assert wrong_in(found) == wrong
    assert not found.is_good


ENDS = {
    1: Transaction(range(2), 'aborted'),
    2: Transaction(range(2), 'committed'),
    3: Transaction(range(2, 4), 'unknown'),
}


@pytest.mark.parametrize(
    ('log', 'wrong'),
    [
        (log_of(0, 1, transaction=2), set()),
        (log_of(0, 1, transaction=2) + log_of(2, 3, transaction=3), set()),
        (log_of(0, transaction=2), {'lost', 'halves'}),
        (log_of(transaction=2), {'lost'}),
        (log_of(0, transaction=1) + log_of(0, 1, transaction=2), {'aborted', 'duplicated'}),
        (log_of(0, 1, transaction=2) + log_of(3, transaction=3), {'halves'}),
        (log_of(0, 1, transaction=2) + log_of(2, transaction=9), {'foreign'}),
        (log_of(0, 1, 1, transaction=2), {'duplicated'}),
    ],
    ids=['whole', 'known', 'half', 'lost', 'aborted', 'unknown', 'foreign', 'twice'],
)
def test_transactions_are_seen_whole_or_not_at_all(log, wrong):
    found = judge_transactions({0: log}, ENDS, 0)
    assert wrong_in(found) == wrong
    assert found.is_good == (not wrong)


def test_aborted_records_go_again_in_ever_smaller_transactions_and_in_their_order():
    waiting, done = [range(10, 15)], []
    while waiting:
        numbers = waiting.pop()
        if len(numbers) > 1:
            waiting += chaos.halves(numbers)
        else:
            done += numbers
    assert done == [*range(10, 15)]
    assert chaos.halves(range(7, 8)) == [range(7, 8)]


@pytest.mark.integration
@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(since='0.11', some=('4.4.0',))
@pytest.mark.parametrize('transactions', [False, True], ids=['idempotent', 'transactions'])
def test_nothing_is_lost_or_twice_while_brokers_die(cluster, new_name, transactions):
    pytest.importorskip('confluent_kafka')
    found = chaos.run(cluster, new_name(), 20_000, 2, 1, transactions)
    assert found.is_good, str(found)


@pytest.mark.integration
@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(since='0.11', some=('4.4.0',))
@pytest.mark.parametrize('transactions', [False, True], ids=['idempotent', 'transactions'])
@pytest.mark.parametrize('raises', ['thread', 'signal'])
def test_nothing_is_lost_or_twice_while_exceptions_are_raised(
    cluster, new_name, raises, transactions
):
    """Into the thread that sends, while a broker dies and finalizers send too."""
    pytest.importorskip('confluent_kafka')
    found = chaos.run(
        cluster,
        new_name(),
        20_000,
        1,
        1,
        transactions,
        raises,
        # A transaction of 2,000 records takes half a second.
        every=1.0 if transactions else 0.2,
        has_finalizers=not transactions,
    )
    assert found.errors['hit'] > 5, found
    assert found.is_good, str(found)
