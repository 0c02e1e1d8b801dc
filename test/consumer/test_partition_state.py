"""kafka.consumer.partition_state: every phase with everything that may happen in it."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka.consumer.partition_state import (
    TRANSITIONS,
    EpochEnd,
    Phase,
    PositionEvent,
    TopicPartitionState,
    Validation,
    ValidationOutcome,
)
from kafka.consumer.reset_policy import EARLIEST, LATEST, NONE, ByDuration
from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata, TopicPartition

TP = TopicPartition('t', 0)


def in_phase(phase):
    state = TopicPartitionState(TP, set())
    if phase is Phase.FETCHING:
        state.seek(10)
    elif phase is Phase.AWAIT_RESET:
        state.await_reset('latest')
    elif phase is Phase.AWAIT_VALIDATION:
        state.seek(10, 3)
    assert state.phase is phase
    return state


def validating(offset=10, epoch=3, leader=(1, 5)):
    state = TopicPartitionState(TP)
    state.seek(offset, epoch)
    state.leader_changed(*leader)
    return state


#: What is done for an event. Each moves the state from a phase that may have it.
DO = {
    PositionEvent.COMMITTED: lambda s: s.begin_at(s.token, OffsetAndMetadata(5, '')),
    PositionEvent.COMMITTED_IN_EPOCH: lambda s: s.begin_at(s.token, OffsetAndMetadata(5, '', 2)),
    PositionEvent.SEEK: lambda s: s.seek(5),
    PositionEvent.SEEK_IN_EPOCH: lambda s: s.seek(5, 2),
    PositionEvent.NEED_RESET: lambda s: s.await_reset('earliest'),
    PositionEvent.RESET: lambda s: s.reset_to(s.token, 5),
    PositionEvent.DOUBT: lambda s: s._go(PositionEvent.DOUBT),
    PositionEvent.VALIDATED: lambda s: s._go(PositionEvent.VALIDATED),
    PositionEvent.TRUNCATED: lambda s: s._go(PositionEvent.TRUNCATED),
    PositionEvent.HAND_OUT: lambda s: s.consumed(11, 3),
    PositionEvent.FETCH: lambda s: s.fetched(11, 3),
}
I, F, R, V = (  # noqa: E741 - as columns
    Phase.INITIALIZING,
    Phase.FETCHING,
    Phase.AWAIT_RESET,
    Phase.AWAIT_VALIDATION,
)
#: Phase -> event -> phase; None for what cannot happen. Written out, not taken from the code.
EXPECTED = {
    PositionEvent.COMMITTED: {I: F, F: None, R: None, V: None},
    PositionEvent.COMMITTED_IN_EPOCH: {I: V, F: None, R: None, V: None},
    PositionEvent.SEEK: {I: F, F: F, R: F, V: F},
    PositionEvent.SEEK_IN_EPOCH: {I: V, F: V, R: V, V: V},
    PositionEvent.NEED_RESET: {I: R, F: R, R: R, V: R},
    PositionEvent.RESET: {I: None, F: None, R: F, V: None},
    PositionEvent.DOUBT: {I: None, F: V, R: None, V: V},
    PositionEvent.VALIDATED: {I: None, F: None, R: None, V: F},
    PositionEvent.TRUNCATED: {I: None, F: None, R: None, V: F},
    PositionEvent.HAND_OUT: {I: None, F: F, R: None, V: V},
    PositionEvent.FETCH: {I: None, F: F, R: None, V: V},
}


@pytest.mark.parametrize('event', PositionEvent)
@pytest.mark.parametrize('phase', Phase)
def test_what_follows_what(phase, event):
    state, follows = in_phase(phase), EXPECTED[event][phase]
    if follows is None:
        with pytest.raises(IllegalStateError) as caught:
            DO[event](state)
        assert 't-0 is %s and cannot %s' % (phase.value, event.value) in str(caught.value)
        assert state.phase is phase
    else:
        DO[event](state)
        assert state.phase is follows
    assert TRANSITIONS[phase].get(event) is follows


# ------------------------------------------------------------ positions


def test_a_new_partition_has_no_position():
    state = TopicPartitionState(TP)
    assert (state.position, state.fetch_offset, state.has_valid_position) == (None, None, False)
    assert not state.is_fetchable()
    assert state.consumed_offset() is None


def test_seek_moves_both_places_and_forgets_epochs():
    state = in_phase(Phase.FETCHING)
    state.fetched(20, 7)
    state.seek(4)
    assert (state.position, state.fetch_offset) == (4, 4)
    assert (state.position_epoch, state.fetch_epoch) == (-1, -1)


def test_seek_with_an_epoch_keeps_it_for_the_commit():
    state = in_phase(Phase.AWAIT_VALIDATION)
    committed = state.consumed_offset()
    assert (committed.offset, committed.metadata, committed.leader_epoch) == (10, '', 3)


def test_handing_out_moves_the_position_and_not_what_was_fetched():
    state = in_phase(Phase.FETCHING)
    state.fetched(30, 2)
    state.consumed(15, 1)
    assert (state.position, state.position_epoch) == (15, 1)
    assert (state.fetch_offset, state.fetch_epoch) == (30, 2)


def test_handing_out_is_never_ahead_of_what_was_fetched():
    state = in_phase(Phase.FETCHING)
    state.consumed(12, 4)
    assert (state.fetch_offset, state.fetch_epoch) == (12, 4)


def test_an_unknown_epoch_leaves_the_one_before():
    state = in_phase(Phase.FETCHING)
    state.fetched(20, 5)
    state.fetched(21, -1)
    state.consumed(20, 5)
    state.consumed(21, -1)
    assert (state.position_epoch, state.fetch_epoch) == (5, 5)


def test_rewinding_goes_back_to_what_was_handed_out():
    state = in_phase(Phase.FETCHING)
    state.fetched(20, 5)
    state.consumed(12, 4)
    before = state.token
    state.rewind()
    assert (state.fetch_offset, state.fetch_epoch) == (12, 4)
    assert state.token != before


def test_a_position_can_be_set_where_there_is_one():
    state = in_phase(Phase.FETCHING)
    state.position = 3
    assert (state.position, state.fetch_offset) == (3, 3)
    with pytest.raises(IllegalStateError, match='has no position'):
        TopicPartitionState(TP).position = 3


def test_awaiting_a_reset_there_is_no_position_and_nothing_to_commit():
    state = in_phase(Phase.AWAIT_RESET)
    assert (state.position, state.fetch_offset, state.awaiting_reset) == (None, None, True)
    assert state.reset_strategy == LATEST
    assert state.consumed_offset() is None


def test_the_strategy_of_a_reset_goes_with_it():
    state = TopicPartitionState(TP)
    state.await_reset('by_duration:PT1S')
    assert state.reset_strategy == ByDuration(1000)
    state.await_reset('nonsense')
    assert state.reset_strategy == NONE
    state.await_reset(EARLIEST)
    assert state.reset_strategy == EARLIEST
    state.seek(0)
    assert state.reset_strategy is None


# ------------------------------------------------------------ tokens


@pytest.mark.parametrize(
    'event, changes',
    [
        (PositionEvent.SEEK, True),
        (PositionEvent.SEEK_IN_EPOCH, True),
        (PositionEvent.NEED_RESET, True),
        (PositionEvent.HAND_OUT, False),
        (PositionEvent.FETCH, False),
        (PositionEvent.DOUBT, False),
    ],
)
def test_the_token_changes_when_the_position_is_moved(event, changes):
    state = in_phase(Phase.FETCHING)
    before = state.token
    DO[event](state)
    assert (state.token != before) is changes


def test_tokens_differ_between_partitions_that_come_again():
    assert TopicPartitionState(TP).token != TopicPartitionState(TP).token


def test_a_committed_offset_that_comes_late_is_dropped():
    state = TopicPartitionState(TP)
    token = state.token
    state.seek(50)
    assert not state.begin_at(token, OffsetAndMetadata(5, ''))
    assert (state.position, state.committed) == (50, None)


def test_a_committed_offset_is_remembered():
    state = TopicPartitionState(TP)
    assert state.begin_at(state.token, OffsetAndMetadata(5, 'text', None))
    assert state.committed == OffsetAndMetadata(5, 'text')
    assert (state.position, state.phase) == (5, Phase.FETCHING)


def test_a_reset_that_comes_late_is_dropped():
    state = in_phase(Phase.AWAIT_RESET)
    token = state.token
    state.await_reset('earliest')
    assert not state.reset_to(token, 99)
    assert state.phase is Phase.AWAIT_RESET
    assert state.reset_to(state.token, 0)
    assert state.position == 0


# ------------------------------------------------------------ leaders and validation


def test_a_changed_leader_makes_a_known_epoch_doubtful():
    state = in_phase(Phase.FETCHING)
    assert not state.leader_changed(1, 5)  # nothing is known of what comes before
    state.fetched(20, 5)
    assert not state.leader_changed(1, 5)  # the same
    assert state.leader_changed(2, 6)
    assert state.validation() == Validation(state.token, 20, 5, (2, 6))


def test_without_an_epoch_of_the_leader_nothing_can_be_validated():
    state = in_phase(Phase.FETCHING)
    state.fetched(20, 5)
    assert not state.leader_changed(2, -1)
    assert state.phase is Phase.FETCHING


def test_a_changed_leader_ends_fetching_from_a_follower():
    state = in_phase(Phase.FETCHING)
    state.preferred_replica = 3
    state.leader_changed(2, -1)
    assert state.preferred_replica is None


@pytest.mark.parametrize('phase', [Phase.INITIALIZING, Phase.AWAIT_RESET])
def test_a_changed_leader_does_not_matter_without_a_position(phase):
    state = in_phase(phase)
    assert not state.leader_changed(2, 6)
    assert state.phase is phase


@pytest.mark.parametrize('end', [EpochEnd(3, 10), EpochEnd(3, 11), EpochEnd(2, 10)])
def test_a_position_before_the_end_of_its_epoch_is_valid(end):
    state = validating()
    assert state.judge(state.validation(), end) is ValidationOutcome.VALID
    assert (state.phase, state.position, state.position_epoch) == (Phase.FETCHING, 10, 3)


def test_a_position_behind_the_end_of_its_epoch_was_truncated():
    state = validating()
    asked, end = state.validation(), EpochEnd(2, 9)
    assert state.judge(asked, end) is ValidationOutcome.TRUNCATED
    assert (state.phase, state.position) == (Phase.AWAIT_VALIDATION, 10)
    assert state.truncate(asked, end)
    assert (state.phase, state.position, state.position_epoch) == (Phase.FETCHING, 9, 2)
    assert state.token != asked.token


@pytest.mark.parametrize('end', [EpochEnd(-1, -1), EpochEnd(3, -1), EpochEnd(-1, 50)])
def test_an_epoch_that_the_leader_does_not_know_says_nothing(end):
    state = validating()
    assert state.judge(state.validation(), end) is ValidationOutcome.UNDEFINED
    assert state.phase is Phase.AWAIT_VALIDATION


@pytest.mark.parametrize('end', [EpochEnd(4, 25), EpochEnd(-1, -1)])
def test_what_was_fetched_ahead_is_void_first(end):
    state = in_phase(Phase.FETCHING)
    state.fetched(30, 4)
    state.consumed(20, 3)
    assert state.leader_changed(2, 6)
    before = state.token
    assert state.judge(state.validation(), end) is ValidationOutcome.AGAIN
    assert state.token != before
    assert state.validation()[1:] == (20, 3, (2, 6))


def test_a_position_without_epoch_goes_on_once_what_was_fetched_ahead_is_void():
    state = in_phase(Phase.FETCHING)
    state.fetched(30, 4)
    state.leader_changed(2, 6)
    assert state.judge(state.validation(), EpochEnd(4, 25)) is ValidationOutcome.VALID
    assert (state.phase, state.fetch_offset) == (Phase.FETCHING, 10)


@pytest.mark.parametrize(
    'meanwhile',
    [
        lambda s: s.seek(10, 3),
        lambda s: s.seek(10),
        lambda s: s.fetched(11, 3),
        lambda s: s.leader_changed(7, 8),
        lambda s: s.await_reset('latest'),
    ],
)
def test_an_answer_about_something_else_is_stale(meanwhile):
    state = validating()
    asked = state.validation()
    meanwhile(state)
    phase, position = state.phase, state.position
    assert state.judge(asked, EpochEnd(3, 5)) is ValidationOutcome.STALE
    assert not state.truncate(asked, EpochEnd(3, 5))
    assert not state.spare_validation(asked)
    assert (state.phase, state.position) == (phase, position)


def test_a_validation_can_be_spared():
    state = validating()
    assert state.spare_validation(state.validation())
    assert (state.phase, state.validation()) == (Phase.FETCHING, None)


# ------------------------------------------------------------ what may be fetched


@pytest.mark.parametrize('phase', Phase)
def test_only_what_is_fetching_is_fetched(phase):
    assert in_phase(phase).is_fetchable() is (phase is Phase.FETCHING)


def test_neither_paused_nor_held_partitions_are_fetched():
    state = in_phase(Phase.FETCHING)
    state.pause()
    assert not state.is_fetchable()
    state.resume()
    state.held = True
    assert not state.is_fetchable()


def test_it_stands_among_the_unsettled_unless_it_is_fetching():
    unsettled = set()
    state = TopicPartitionState(TP, unsettled)
    seen = [TP in unsettled]
    for move in (
        lambda: state.seek(1),
        lambda: state.seek(1, 1),
        lambda: state.spare_validation(state.validation()),
        lambda: state.await_reset('latest'),
    ):
        move()
        seen.append(TP in unsettled)
    assert seen == [True, False, True, False, True]


def test_it_shows_where_it_is():
    state = in_phase(Phase.FETCHING)
    state.paused = state.held = True
    assert repr(state) == (
        '<TopicPartitionState t-0 fetching position=10 fetch_offset=10 paused held>'
    )
    assert '? initializing' in repr(TopicPartitionState())


# ------------------------------------------------------------ anything in any order

OFFSETS = st.integers(0, 50)
EPOCHS = st.integers(-1, 4)


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens, what was fetched is not behind what was handed out."""

    @initialize()
    def make(self):
        self.unsettled = set()
        self.state = TopicPartitionState(TP, self.unsettled)
        self.asked = self.validation = None

    @rule(offset=OFFSETS, epoch=EPOCHS)
    def seek(self, offset, epoch):
        self.state.seek(offset, epoch)
        assert self.state.position == offset

    @rule(word=st.sampled_from(['latest', 'earliest', 'none']))
    def await_reset(self, word):
        self.state.await_reset(word)

    @rule()
    def ask(self):
        self.asked = self.state.phase, self.state.token
        self.validation = self.state.validation()

    @rule(offset=OFFSETS, epoch=EPOCHS)
    def answer(self, offset, epoch):
        phase, token = self.asked or (None, None)
        before = self.state.position
        if phase is Phase.INITIALIZING:
            taken = self.state.begin_at(token, OffsetAndMetadata(offset, '', epoch))
        elif phase is Phase.AWAIT_RESET:
            taken = self.state.reset_to(token, offset)
        else:
            return
        assert self.state.position == (offset if taken else before)
        self.asked = None

    @rule(offset=OFFSETS, epoch=EPOCHS)
    def answer_validation(self, offset, epoch):
        if self.validation is None:
            return
        before = self.state.position
        verdict = self.state.judge(self.validation, EpochEnd(epoch, offset))
        assert self.state.position == before
        if verdict is ValidationOutcome.VALID:
            assert self.state.phase is Phase.FETCHING
        elif verdict is ValidationOutcome.TRUNCATED:
            assert offset < before
            assert self.state.truncate(self.validation, EpochEnd(epoch, offset))
            assert self.state.position == offset

    @rule(count=st.integers(0, 9), epoch=EPOCHS)
    def fetch(self, count, epoch):
        if self.state.has_valid_position:
            self.state.fetched(self.state.fetch_offset + count, epoch)

    @rule(part=st.floats(0, 1))
    def hand_out(self, part):
        if self.state.has_valid_position:
            ahead = self.state.fetch_offset - self.state.position
            self.state.consumed(self.state.position + int(part * ahead), 0)

    @rule(node=st.integers(0, 2), epoch=EPOCHS)
    def change_leader(self, node, epoch):
        self.state.leader_changed(node, epoch)

    @rule()
    def rewind(self):
        self.state.rewind()
        assert self.state.fetch_offset == self.state.position

    @invariant()
    def places_are_in_order(self):
        state = self.state
        assert (state.position is None) == (state.fetch_offset is None)
        assert state.has_valid_position == (state.phase in (Phase.FETCHING, V))
        if state.position is not None:
            assert 0 <= state.position <= state.fetch_offset
        assert (state.reset_strategy is not None) == state.awaiting_reset
        assert (TP in self.unsettled) == (state.phase is not Phase.FETCHING)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
