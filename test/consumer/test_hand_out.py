"""What the next call knows of one that handed out records."""

from __future__ import annotations

from kafka.consumer.hand_out import HandOut
from kafka.consumer.partition_state import TopicPartitionState
from kafka.structs import OffsetAndMetadata, TopicPartition

FIRST = TopicPartition('t', 0)


def state_at(offset, epoch=-1):
    state = TopicPartitionState()
    state.seek(0)
    state.consumed(offset, epoch)
    return state


def test_partitions_are_put_back_to_where_they_were():
    state, made = state_at(5, 1), HandOut()
    for offset in (8, 12):
        made.append((FIRST, state, state.place()))
        state.consumed(offset, 2)
    token = state.token
    made.put_back()
    assert (state.position, state.position_epoch, state.fetch_offset) == (5, 1, 5)
    assert state.token != token  # what was fetched behind it is void


def test_putting_back_may_be_repeated():
    state, made = state_at(5), HandOut()
    made.append((FIRST, state, state.place()))
    state.consumed(8)
    made.put_back()
    made.put_back()
    assert state.position == 5


def test_a_partition_that_was_moved_since_stays():
    state, made = state_at(5), HandOut()
    made.append((FIRST, state, state.place()))
    state.consumed(8)
    state.seek(3)
    made.put_back()
    assert state.position == 3


def test_a_partition_that_only_fetches_anew_is_put_back():
    """Whoever validates a position may have done that meanwhile."""
    state, made = state_at(5), HandOut()
    made.append((FIRST, state, state.place()))
    state.consumed(8)
    state.rewind()
    made.put_back()
    assert state.position == 5


def test_it_knows_what_was_returned_before_it():
    state, made = state_at(5, 1), HandOut()
    for offset in (8, 12):
        made.append((FIRST, state, state.place()))
        state.consumed(offset, 2)
    assert made.before() == {FIRST: OffsetAndMetadata(5, '', 1)}


def test_it_runs_for_whom_its_call_calls():
    def call(callback):
        hand_out = HandOut()
        callback(hand_out)
        return hand_out

    answers = []
    made = call(lambda mine: answers.append(mine.is_running()))
    assert answers == [True]
    assert not made.is_running()  # the call has ended
