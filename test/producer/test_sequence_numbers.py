"""Sequence numbers, rule by rule; what happens when rules meet is test_sequences_by_model.py's."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.producer.produce_errors import ProduceReaction
from kafka.producer.sequence_numbers import (
    LAST_EPOCH,
    MOST_IN_FLIGHT,
    NOBODY,
    Identity,
    Sequences,
    advance,
    is_after,
)
from kafka.structs import TopicPartition
from test.producer.numbered import Batch, answer

OTHER = TopicPartition('t', 1)


@pytest.fixture
def numbers():
    """Return the numbers of an idempotent producer that has an id."""
    made = Sequences(is_transactional=False)
    made.begin(Identity(7, 0))
    return made


@pytest.fixture
def transactional():
    """Return the numbers of a transactional producer."""
    made = Sequences(is_transactional=True)
    made.restart(Identity(7, 0))
    return made


def stored(numbers, *batches):
    """Send batches one after the other, each answered well; return the last."""
    for batch in batches:
        numbers.stamp(batch)
        numbers.on_stored(batch, 0)
    return batches[-1]


def judged(numbers, batch, code, **fields):
    """Return the reaction to a code about sequences, and report the batch accordingly."""
    reaction = numbers.judge(batch, answer(code, **fields))
    if reaction is ProduceReaction.RETRY:
        numbers.on_retry(batch, may_be_stored=False)
    else:
        numbers.on_refused(batch)
    return reaction


def test_after_the_last_number_comes_zero():
    assert advance(2**31 - 1, 1) == 0
    assert advance(2**31 - 2, 3) == 1
    assert is_after(0, 2**31 - 1)
    assert not is_after(2**31 - 1, 0)
    assert not is_after(5, 5)


def test_nothing_goes_without_a_producer_id():
    numbers = Sequences(is_transactional=False)
    assert numbers.identity == NOBODY and numbers.needs_identity
    assert not numbers.may_send(Batch())
    with pytest.raises(IllegalStateError, match='t-0 may not go'):
        numbers.stamp(Batch())


def test_numbers_count_records_by_partition(numbers):
    assert stored(numbers, Batch(3)).base == 0
    assert stored(numbers, Batch(2)).base == 3
    assert stored(numbers, Batch(place=OTHER)).base == 0
    assert stored(numbers, Batch()).base == 5


def test_first_batch_of_a_partition_goes_alone(numbers):
    first, second = Batch(), Batch()
    numbers.stamp(first)
    assert not numbers.may_send(second)
    assert numbers.may_send(Batch(place=OTHER))
    numbers.on_stored(first, 0)
    assert numbers.may_send(second)


def test_first_batch_needs_not_go_alone_where_brokers_insist_on_zero(transactional):
    transactional.begins_at_zero = True
    transactional.stamp(Batch())
    assert transactional.may_send(Batch())


@pytest.mark.parametrize('most', [1, MOST_IN_FLIGHT])
def test_no_more_than_brokers_remember_are_under_way(numbers, most):
    numbers.most_in_flight = most
    stored(numbers, Batch())
    batches = [Batch() for _ in range(most)]
    for batch in batches:
        numbers.stamp(batch)
    assert not numbers.may_send(Batch())
    numbers.on_stored(batches[0], 1)
    assert numbers.may_send(Batch())


def test_no_more_than_brokers_remember_go_beyond_one_without_answer(numbers):
    stored(numbers, Batch())
    oldest = Batch()
    numbers.stamp(oldest)
    for _ in range(MOST_IN_FLIGHT - 1):
        stored(numbers, Batch())
    assert not numbers.may_send(Batch())


def test_while_one_is_tried_again_nothing_else_goes(numbers):
    stored(numbers, Batch())
    batches = [Batch() for _ in range(3)]
    for batch in batches:
        numbers.stamp(batch)
    for batch in reversed(batches):
        numbers.on_retry(batch, may_be_stored=False)
    assert [numbers.may_send(batch) for batch in batches] == [True, False, False]
    assert not numbers.may_send(Batch())
    for batch in batches:
        stored(numbers, batch)
    assert [len(batch.stamps) for batch in batches] == [1, 1, 1]
    assert numbers.may_send(Batch())


def test_answer_about_what_is_not_on_the_wire_is_a_mistake(numbers):
    batch = stored(numbers, Batch())
    for report in (
        lambda: numbers.on_stored(batch, 0),
        lambda: numbers.on_retry(batch, False),
        lambda: numbers.on_refused(batch),
        lambda: numbers.on_split(batch, []),
    ):
        with pytest.raises(IllegalStateError, match='not on the wire'):
            report()


# ---------------------------------------------------------------- codes 45, 47, 59


def test_out_of_order_because_of_an_earlier_one_is_tried_again(numbers):
    stored(numbers, Batch())
    first, second = Batch(), Batch()
    numbers.stamp(first)
    numbers.stamp(second)
    assert judged(numbers, second, 45) is ProduceReaction.RETRY
    assert second.stamps == [(7, 0, 2)]
    assert numbers.identity.epoch == 0


def test_true_gap_raises_the_epoch_and_numbers_anew(numbers):
    stored(numbers, Batch(3))
    first, second = Batch(2), Batch()
    numbers.stamp(first)
    numbers.stamp(second)
    assert judged(numbers, first, 45) is ProduceReaction.RETRY
    assert not numbers.may_send(first)  # the other one is still on the wire
    assert judged(numbers, second, 45) is ProduceReaction.RETRY
    assert numbers.identity == (7, 1)
    assert first.stamps[-1] == (7, 1, 0)
    assert second.stamps[-1] == (7, 1, 2)
    assert numbers.may_send(first) and not numbers.may_send(second)


def test_other_partitions_go_over_to_a_new_epoch_when_they_are_done(numbers):
    stored(numbers, Batch(place=OTHER))
    under_way = Batch(place=OTHER)
    numbers.stamp(under_way)
    refused = Batch()
    numbers.stamp(refused)
    numbers.on_refused(refused)
    assert numbers.identity == (7, 1)
    assert not numbers.may_send(Batch(place=OTHER))
    numbers.on_stored(under_way, 1)
    assert stored(numbers, Batch(place=OTHER)).stamps == [(7, 1, 0)]


def test_partition_behind_the_others_takes_their_epoch_without_raising_it(numbers):
    refused, also = Batch(), Batch(place=OTHER)
    numbers.stamp(refused)
    numbers.stamp(also)
    numbers.on_refused(refused)
    numbers.on_refused(also)
    assert numbers.identity == (7, 1)
    assert stored(numbers, Batch(place=OTHER)).stamps == [(7, 1, 0)]


def test_last_epoch_asks_for_a_new_producer_id(numbers):
    numbers.begin(Identity(7, LAST_EPOCH))
    stored(numbers, Batch(), Batch(place=OTHER))
    batch, under_way = Batch(), Batch(place=OTHER)
    numbers.stamp(batch)
    numbers.stamp(under_way)
    judged(numbers, batch, 45)
    assert numbers.needs_identity
    assert not numbers.may_send(batch)
    numbers.on_stored(under_way, 1)  # the old id is still good for what is under way
    numbers.begin(Identity(8, 0))
    assert stored(numbers, batch).stamps[-1] == (8, 0, 0)


def test_old_epoch_fails_the_batch_and_raises_the_epoch(numbers):
    batch = Batch()
    numbers.stamp(batch)
    assert judged(numbers, batch, 47) is ProduceReaction.FAIL
    assert numbers.identity == (7, 1)


@pytest.mark.parametrize(('log_start', 'epoch'), [(-1, 0), (0, 1), (100, 1)])
def test_forgotten_producer(numbers, log_start, epoch):
    """Below Produce v5 the answer does not say where the log starts: then it is asked again."""
    stored(numbers, Batch())
    batch = Batch()
    numbers.stamp(batch)
    assert judged(numbers, batch, 59, log_start_offset=log_start) is ProduceReaction.RETRY
    assert numbers.identity.epoch == epoch


def test_transaction_begins_anew_when_all_that_it_wrote_is_deleted(transactional):
    stored(transactional, Batch(4))
    batch = Batch()
    transactional.stamp(batch)
    assert judged(transactional, batch, 59, log_start_offset=100) is ProduceReaction.RETRY
    assert batch.stamps[-1] == (7, 0, 0)
    assert not transactional.needs_epoch


@pytest.mark.parametrize('code', [45, 47, 59])
def test_gap_in_a_transaction_needs_an_epoch_of_the_coordinator(transactional, code):
    stored(transactional, Batch())
    batch = Batch()
    transactional.stamp(batch)
    assert judged(transactional, batch, code, log_start_offset=0) is ProduceReaction.ABORTABLE
    assert transactional.needs_epoch
    assert transactional.identity == (7, 0)


# ---------------------------------------------------------------- batches that fail


def test_transaction_moves_up_behind_a_batch_that_was_refused(transactional):
    stored(transactional, Batch())
    refused, behind = Batch(3), Batch(2)
    transactional.stamp(refused)
    transactional.stamp(behind)
    transactional.on_refused(refused)
    assert judged(transactional, behind, 45) is ProduceReaction.RETRY
    assert behind.stamps == [(7, 0, 4), (7, 0, 1)]
    assert stored(transactional, behind, Batch()).base == 3


def test_what_may_be_stored_is_known_before_anything_moves_up(numbers):
    """An elder was stored, with an error; a younger one was refused; the elder is tried again.

    Were it numbered anew with the others, the broker would store it a second time.
    """
    stored(numbers, Batch())
    elder, refused, younger = Batch(), Batch(), Batch()
    for batch in (elder, refused, younger):
        numbers.stamp(batch)
    numbers.on_retry(elder, may_be_stored=True)
    numbers.on_refused(refused)
    judged(numbers, younger, 45)
    assert numbers.may_send(elder) and not numbers.may_send(younger)
    stored(numbers, elder)
    assert elder.stamps == [(7, 0, 1)]
    assert younger.stamps[-1] == (7, 1, 0)


def test_batch_that_never_left_leaves_no_trace(numbers):
    numbers.on_given_up(Batch())
    assert stored(numbers, Batch()).base == 0


def test_after_an_unknown_fate_nothing_new_goes_until_the_others_are_answered(numbers):
    stored(numbers, Batch())
    lost, behind = Batch(), Batch()
    numbers.stamp(lost)
    numbers.stamp(behind)
    numbers.on_retry(lost, may_be_stored=True)
    numbers.on_given_up(lost)
    assert not numbers.may_send(Batch())
    numbers.on_stored(behind, 2)  # so that the lost one is stored too
    assert numbers.identity.epoch == 0
    assert stored(numbers, Batch()).stamps == [(7, 0, 3)]


def test_unknown_fate_that_nothing_resolves_raises_the_epoch(numbers):
    stored(numbers, Batch())
    lost = Batch()
    numbers.stamp(lost)
    numbers.on_given_up(lost)
    assert numbers.was_given_up(lost)
    assert not numbers.may_send(Batch())
    numbers.on_retry(lost, may_be_stored=True)
    assert stored(numbers, Batch()).stamps == [(7, 1, 0)]


def test_late_success_of_a_batch_that_was_given_up_counts(numbers):
    stored(numbers, Batch())
    lost = Batch()
    numbers.stamp(lost)
    numbers.on_given_up(lost)
    numbers.on_stored(lost, 1)
    assert stored(numbers, Batch()).stamps == [(7, 0, 2)]


def test_pieces_take_over_the_numbers_of_a_batch(numbers):
    stored(numbers, Batch())
    large, behind = Batch(5), Batch()
    numbers.stamp(large)
    numbers.stamp(behind)
    pieces = [Batch(2), Batch(3)]
    numbers.on_split(large, pieces)
    assert [piece.base for piece in pieces] == [1, 3]
    assert not numbers.is_numbered(large)
    numbers.on_retry(behind, may_be_stored=False)
    assert [numbers.may_send(batch) for batch in (*pieces, behind)] == [True, False, False]
    stored(numbers, *pieces, behind)
    assert behind.stamps == [(7, 0, 6)]


def test_pieces_have_to_be_all_of_a_batch(numbers):
    batch = Batch(5)
    numbers.stamp(batch)
    with pytest.raises(IllegalStateError, match='not all'):
        numbers.on_split(batch, [Batch(2)])


def test_transactions_begin_at_zero_only_when_nothing_is_under_way(transactional):
    batch = Batch()
    transactional.stamp(batch)
    with pytest.raises(IllegalStateError, match='still under way'):
        transactional.restart(Identity(7, 1))
    transactional.on_stored(batch, 0)
    transactional.restart(Identity(7, 1))
    assert stored(transactional, Batch()).stamps == [(7, 1, 0)]
