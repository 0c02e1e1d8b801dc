"""The tables of a member of a KIP-848 group."""

from __future__ import annotations

import pytest

from kafka.coordinator.kip848.state_machine import (
    TRANSITIONS,
    HeartbeatErrorAction,
    MemberEvent,
    MemberState,
    following,
    heartbeat_error_action,
)
from kafka.errors import IllegalStateError


@pytest.mark.parametrize('state', list(MemberState))
def test_what_is_not_in_the_table_is_a_mistake_that_names_both(state):
    for event in set(MemberEvent) - set(TRANSITIONS[state]):
        with pytest.raises(IllegalStateError) as caught:
            following(state, event)
        assert state.value in str(caught.value)
        assert event.value in str(caught.value)


def test_everything_ends_in_every_state_of_who_takes_part():
    for state in (
        MemberState.JOINING,
        MemberState.RECONCILING,
        MemberState.ACKNOWLEDGING,
        MemberState.STABLE,
    ):
        ends = [
            TRANSITIONS[state][each]
            for each in (MemberEvent.FENCE, MemberEvent.MISS_POLL, MemberEvent.LEAVE)
        ]
        assert ends == [MemberState.FENCED, MemberState.STALE, MemberState.LEAVING]
        assert TRANSITIONS[state][MemberEvent.FAIL] is MemberState.FATAL


def test_every_state_can_be_left():
    for state in MemberState:
        if state is not MemberState.LEAVING:
            assert following(state, MemberEvent.LEAVE) is MemberState.LEAVING


@pytest.mark.parametrize(
    ('code', 'action'),
    [
        (0, HeartbeatErrorAction.GO_ON),
        (-1, HeartbeatErrorAction.SURFACE),
        (7, HeartbeatErrorAction.RETRY),
        (14, HeartbeatErrorAction.RETRY),
        (15, HeartbeatErrorAction.REFIND),
        (16, HeartbeatErrorAction.REFIND),
        (25, HeartbeatErrorAction.REJOIN),
        (29, HeartbeatErrorAction.SURFACE),
        (30, HeartbeatErrorAction.SURFACE),
        (89, HeartbeatErrorAction.RETRY),
        (110, HeartbeatErrorAction.REJOIN),
        (31999, HeartbeatErrorAction.SURFACE),
    ],
)
def test_what_codes_demand(code, action):
    assert heartbeat_error_action(code) is action
