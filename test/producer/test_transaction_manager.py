"""The names of kafka-python 2.2 to 3.0 for a producer's state."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager
from kafka.producer.transaction_state import TransactionState


def test_pair_has_attributes_validity_and_equality():
    pair = ProducerIdAndEpoch(7, 3)
    assert (pair.producer_id, pair.epoch, pair.is_valid) == (7, 3, True)
    assert ProducerIdAndEpoch(0, 0).is_valid
    assert not ProducerIdAndEpoch(-1, -1).is_valid
    assert pair == ProducerIdAndEpoch(7, 3)
    assert hash(pair) == hash(ProducerIdAndEpoch(7, 3))
    assert pair != ProducerIdAndEpoch(7, 4)
    assert pair != (7, 3)
    assert '7' in str(pair)


def test_begins_without_a_producer_id():
    manager = TransactionManager()
    assert manager.producer_id_and_epoch == ProducerIdAndEpoch(-1, -1)
    assert not manager.has_producer_id()
    assert not manager.is_transactional()


def test_producer_id_is_set_and_reset():
    manager = TransactionManager(None, 0, 100, (0, 11), object())
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(1000, 0))
    assert manager.has_producer_id()
    assert manager.producer_id_and_epoch == ProducerIdAndEpoch(1000, 0)
    manager.reset_producer_id()
    assert not manager.has_producer_id()


def test_only_a_pair_is_taken():
    with pytest.raises(TypeError, match='ProducerIdAndEpoch'):
        TransactionManager().set_producer_id_and_epoch((1, 2))


def test_transactional_id_keeps_its_producer_id():
    manager = TransactionManager(transactional_id='pay')
    assert manager.is_transactional()
    with pytest.raises(IllegalStateError, match='pay'):
        manager.reset_producer_id()


def test_shows_a_state_that_is_in_use():
    state = TransactionState('pay')
    manager = TransactionManager.of(state)
    assert manager.state is state
    assert 'pay' in repr(manager)
