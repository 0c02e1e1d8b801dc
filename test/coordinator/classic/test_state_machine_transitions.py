"""Tables of classic membership: what may follow what, what a code means, what errors say."""

from __future__ import annotations

import pytest

from kafka.coordinator.classic.state_machine import (
    TRANSITIONS,
    Call,
    ClassicErrorAction,
    ClassicMemberEvent,
    ClassicMemberState,
    classic_error_action,
    error_of,
    following,
)
from kafka.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    InvalidSessionTimeoutError,
)

LEGAL = """
unjoined: begin to join -> preparing
preparing: ask to join -> joining
joining: join -> completing
joining: join again -> preparing
completing: ask for its assignment -> syncing
completing: join again -> preparing
syncing: get its assignment -> adopting
syncing: join again -> preparing
adopting: adopt its assignment -> stable
stable: rebalance -> preparing
"""


def legal():
    for line in LEGAL.strip().splitlines():
        state, _, move = line.partition(': ')
        event, _, result = move.partition(' -> ')
        yield ClassicMemberState(state), ClassicMemberEvent(event), ClassicMemberState(result)
    joined = [
        ClassicMemberState.PREPARING,
        ClassicMemberState.JOINING,
        ClassicMemberState.COMPLETING,
        ClassicMemberState.SYNCING,
        ClassicMemberState.ADOPTING,
    ]
    for state in joined:
        yield state, ClassicMemberEvent.REFUSED, ClassicMemberState.UNJOINED
    for state in [*joined, ClassicMemberState.STABLE]:
        yield state, ClassicMemberEvent.LOST, ClassicMemberState.UNJOINED
    for state in ClassicMemberState:
        yield state, ClassicMemberEvent.LEAVE, ClassicMemberState.UNJOINED
        yield state, ClassicMemberEvent.FAIL, ClassicMemberState.FAILED


MOVES = {(state, event): result for state, event, result in legal()}


@pytest.mark.parametrize('state', ClassicMemberState)
@pytest.mark.parametrize('event', ClassicMemberEvent)
def test_what_follows_is_in_the_table_and_anything_else_is_refused_with_both_names(state, event):
    if (state, event) in MOVES:
        assert following(state, event) is MOVES[state, event]
    else:
        with pytest.raises(IllegalStateError) as raised:
            following(state, event)
        assert state.value in str(raised.value)
        assert event.value in str(raised.value)


def test_every_state_can_be_reached_and_left():
    reached = {result for moves in TRANSITIONS.values() for result in moves.values()}
    assert reached == set(ClassicMemberState) == set(TRANSITIONS)


# By code: JoinGroup, SyncGroup, Heartbeat, OffsetCommit. '-' is what no broker should say there.
CODES = """
0    good     good       good       -
14   retry    rebalance  retry      ignore
15   refind   refind     refind     ignore
16   refind   refind     refind     ignore
22   lost     lost       lost       lost
23   fatal    fatal      tell       ignore
24   fatal    refused    tell       ignore
25   lost_id  lost_id    lost_id    lost_id
26   fatal    refused    tell       ignore
27   retry    rebalance  rebalance  rebalance
30   refused  refused    tell       ignore
35   refused  refused    tell       ignore
69   refused  refused    tell       lost
79   take_id  refused    tell       ignore
81   fatal    refused    tell       ignore
82   fatal    fatal      fatal      fatal
-1   refused  refused    tell       ignore
7    retry    retry      retry      ignore
9999 refused  refused    tell       ignore
"""


@pytest.mark.parametrize('line', CODES.strip().splitlines())
def test_what_a_code_means_in_each_call(line):
    code, *meant = line.split()
    for call, name in zip(Call, meant):
        if name != '-':
            assert classic_error_action(call, int(code)) is ClassicErrorAction[name.upper()], call


def test_errors_say_which_group_and_what_to_do():
    fenced = error_of(82, 'g', 45.0, 'one')
    assert isinstance(fenced, FencedInstanceIdError)
    assert 'group g' in str(fenced)
    assert "group_instance_id 'one'" in str(fenced)
    refused = error_of(26, 'g', 45.0, None)
    assert isinstance(refused, InvalidSessionTimeoutError)
    assert 'session_timeout_ms=45000' in str(refused)
    assert isinstance(error_of(30, 'g', 45.0, None), GroupAuthorizationFailedError)
    assert 'READ' in str(error_of(30, 'g', 45.0, None))
