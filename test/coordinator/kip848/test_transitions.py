"""The tables of a member of a KIP-848 group."""

from __future__ import annotations

import pytest

from kafka.coordinator.kip848.transitions import (
    TRANSITIONS,
    Action,
    Event,
    State,
    action_of,
    following,
)
from kafka.errors import IllegalStateError


@pytest.mark.parametrize('state', list(State))
def test_what_is_not_in_the_table_is_a_mistake_that_names_both(state):
    for event in set(Event) - set(TRANSITIONS[state]):
        with pytest.raises(IllegalStateError) as caught:
            following(state, event)
        assert state.value in str(caught.value)
        assert event.value in str(caught.value)


def test_everything_ends_in_every_state_of_who_takes_part():
    for state in (State.JOINING, State.RECONCILING, State.ACKNOWLEDGING, State.STABLE):
        ends = [TRANSITIONS[state][each] for each in (Event.FENCE, Event.MISS_POLL, Event.LEAVE)]
        assert ends == [State.FENCED, State.STALE, State.LEAVING]
        assert TRANSITIONS[state][Event.FAIL] is State.FATAL


def test_every_state_can_be_left():
    for state in State:
        if state is not State.LEAVING:
            assert following(state, Event.LEAVE) is State.LEAVING


@pytest.mark.parametrize(
    ('code', 'action'),
    [
        (0, Action.GO_ON),
        (-1, Action.SURFACE),
        (7, Action.RETRY),
        (14, Action.RETRY),
        (15, Action.REFIND),
        (16, Action.REFIND),
        (25, Action.REJOIN),
        (29, Action.SURFACE),
        (30, Action.SURFACE),
        (89, Action.RETRY),
        (110, Action.REJOIN),
        (31999, Action.SURFACE),
    ],
)
def test_what_codes_demand(code, action):
    assert action_of(code) is action
