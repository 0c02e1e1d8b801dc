"""What may follow what in a transactional producer, each pair of state and event."""

from __future__ import annotations

import itertools

import pytest

from kafka.errors import IllegalStateError
from kafka.producer.transaction_table import SENDING, TRANSITIONS, TxnEvent, TxnState, following

LEGAL = """
uninitialized:   initialize > initializing, fatal > fatal error
initializing:    initialized > ready, abortable > abortable error, fatal > fatal error
ready:           begin > in transaction, initialize > initializing, fatal > fatal error
in transaction:  commit > committing, abort > aborting, abortable > abortable error
in transaction:  prepare > prepared, fatal > fatal error
prepared:        commit > committing, abort > aborting, fatal > fatal error
committing:      ended > ready, renew > initializing, abortable > abortable error
committing:      fatal > fatal error
aborting:        ended > ready, renew > initializing, abortable > aborting, fatal > fatal error
abortable error: abort > aborting, abortable > abortable error, initialize > initializing
abortable error: start over > uninitialized, fatal > fatal error
fatal error:     abortable > fatal error, fatal > fatal error
"""


def legal_moves():
    """Yield (state, event, next state) of the text above."""
    for line in LEGAL.strip().splitlines():
        state, _, moves = line.partition(':')
        for move in moves.split(','):
            event, _, there = move.partition('>')
            yield TxnState(state.strip()), TxnEvent(event.strip()), TxnState(there.strip())


MOVES = list(legal_moves())
ILLEGAL = sorted(
    set(itertools.product(TxnState, TxnEvent)) - {(state, event) for state, event, _ in MOVES},
    key=lambda pair: (pair[0].value, pair[1].value),
)


@pytest.mark.parametrize(('state', 'event', 'there'), MOVES)
def test_legal_move(state, event, there):
    assert following(state, event) is there


@pytest.mark.parametrize(('state', 'event'), ILLEGAL)
def test_illegal_move_names_both(state, event):
    with pytest.raises(IllegalStateError) as caught:
        following(state, event)
    assert state.value in str(caught.value)
    assert event.value in str(caught.value)


def test_nothing_but_closing_leaves_a_fatal_error():
    assert set(TRANSITIONS[TxnState.FATAL_ERROR].values()) == {TxnState.FATAL_ERROR}


def test_a_commit_never_becomes_an_abort():
    """Only the answer of a coordinator leads there, by way of an error that was told."""
    assert TxnState.ABORTING not in TRANSITIONS[TxnState.COMMITTING].values()


def test_records_are_on_their_way_only_inside_of_a_transaction():
    assert {
        TxnState.READY,
        TxnState.INITIALIZING,
        TxnState.UNINITIALIZED,
        TxnState.FATAL_ERROR,
    } & SENDING == set()
