"""States and epochs of one transactional id."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.testing.transactions.transaction import LAST_EPOCH, TRANSITIONS, S, Transaction


def made(epoch=3, state=S.EMPTY):
    transaction = Transaction('t', 7, 0)
    transaction.producer_epoch, transaction.state = epoch, state
    return transaction


@pytest.mark.parametrize('now', list(S))
@pytest.mark.parametrize('then', list(S))
def test_only_the_table_allows_a_change(now, then):
    transaction = made(state=now)
    if then in TRANSITIONS[now]:
        transaction.move_to(then, 5)
        assert (transaction.state, transaction.changed_ms) == (then, 5)
        return
    with pytest.raises(IllegalStateError, match='from %s to %s' % (now.value, then.value)):
        transaction.move_to(then, 5)


def test_a_new_producer_gets_the_next_epoch():
    transaction = made()
    assert transaction.take_over(None, 10, 99, 0)
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 4)


def test_the_epoch_before_is_answered_like_a_repeat():
    transaction = made()
    assert transaction.take_over(3, 10, 99, 0)
    assert transaction.take_over(3, 10, 99, 0)
    assert transaction.producer_epoch == 4
    assert not transaction.take_over(2, 10, 99, 0)


def test_a_producer_that_does_not_say_its_epoch_fences_the_one_before():
    transaction = made()
    assert transaction.take_over(None, 10, 99, 0)
    assert not transaction.take_over(3, 10, 99, 0)


def test_an_id_whose_epochs_are_used_up_gives_way_to_another():
    transaction = made(LAST_EPOCH)
    assert transaction.take_over(LAST_EPOCH, 10, 99, 0)
    assert (transaction.producer_id, transaction.producer_epoch) == (99, 0)
    assert transaction.is_known(7, LAST_EPOCH)
    assert not transaction.is_known(7, 5)
    assert transaction.take_over(LAST_EPOCH, 10, 100, 0)
    assert (transaction.producer_id, transaction.producer_epoch) == (99, 0)


def test_a_transaction_begins_once_and_ends_empty():
    transaction = made()
    transaction.begin(10)
    transaction.begin(20)
    assert transaction.started_ms == 10
    transaction.partitions.add(('t', 0))
    transaction.prepare(True, 30, raised=False, keep_last=True)
    assert (transaction.state, transaction.producer_epoch) == (S.PREPARE_COMMIT, 3)
    transaction.complete(40)
    assert transaction.state is S.COMPLETE_COMMIT
    assert (transaction.partitions, transaction.started_ms) == (set(), 10)
    transaction.take_over(None, 10, 99, 50)
    assert transaction.started_ms == -1


def test_an_end_that_raises_the_epoch_knows_its_repeat():
    transaction = made(state=S.ONGOING)
    transaction.prepare(True, 30, raised=True, keep_last=True)
    assert transaction.next_identity == (7, 4)
    assert transaction.is_repeated(7, 3)
    assert not transaction.is_repeated(7, 2)


def test_an_end_with_the_last_epoch_goes_on_with_another_id():
    transaction = made(LAST_EPOCH, S.ONGOING)
    transaction.next_producer_id = 50
    transaction.prepare(True, 30, raised=True, keep_last=True)
    assert (transaction.producer_id, transaction.producer_epoch) == (7, LAST_EPOCH + 1)
    assert transaction.next_identity == (50, 0)
    transaction.complete(40)
    assert (transaction.producer_id, transaction.producer_epoch) == (50, 0)
    assert transaction.is_repeated(7, LAST_EPOCH)
