"""Senders need not know which kind of producer they send for."""

from __future__ import annotations

import inspect

import pytest

from kafka.errors import KafkaError
from kafka.producer.plain_state import PlainState
from kafka.producer.produce_errors import ProduceAction
from kafka.producer.transaction_state import TransactionState
from test.producer.numbered import Batch, answer

ASKED_BY_SENDERS = [name for name in vars(PlainState) if name[0] != '_']


@pytest.mark.parametrize('name', ASKED_BY_SENDERS)
def test_has_the_methods_of_the_state_that_tracks(name):
    there = inspect.getattr_static(TransactionState('x'), name)
    here = inspect.getattr_static(PlainState(), name)
    if inspect.isfunction(here):
        assert (
            inspect.signature(here).parameters.keys() == inspect.signature(there).parameters.keys()
        )


def test_numbers_nothing_and_lets_everything_go():
    state, batch = PlainState(), Batch()
    state.check_send()
    assert state.may_send(batch)
    state.stamp(batch)
    assert batch.stamps == []
    assert state.take_unsent_error() is None
    assert not state.may_drop(batch)
    state.on_split(batch, [])
    state.give_up(batch, KafkaError('late'))
    assert state.may_send(Batch())


def test_verdicts_are_those_of_the_plain_column():
    state = PlainState()
    assert state.on_produced(Batch(), answer(45)).action is ProduceAction.FAIL
    assert state.on_produced(Batch(), answer(0, offset=3)).base_offset == 3
    assert state.on_lost(Batch(), KafkaError('gone')).action is ProduceAction.RETRY
