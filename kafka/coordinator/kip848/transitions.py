"""The states of a member of a KIP-848 group, what may follow what, what the codes mean; pure.

Owns the tables, and what is said of errors that somebody has to see to. Does not own: what goes
with a move (state_machine.py). Follows KIP-848.
"""

from __future__ import annotations

import enum
from typing import Mapping, NamedTuple, Optional

from kafka.errors import BrokerResponseError, IllegalStateError, UnrecognizedBrokerError, for_code

__all__ = [
    'ADVICE',
    'TAKING_PART',
    'TRANSITIONS',
    'Action',
    'Event',
    'State',
    'Verdict',
    'action_of',
    'following',
]


class State(enum.Enum):
    """What a member is in."""

    UNSUBSCRIBED = 'unsubscribed'  # no member: it never was, or has left
    JOINING = 'joining'  # a heartbeat of epoch 0 is owed, or on its way
    RECONCILING = 'reconciling'  # it shall own other partitions than it does
    ACKNOWLEDGING = 'acknowledging'  # it owes the coordinator a list of what it owns
    STABLE = 'stable'
    FENCED = 'fenced'  # the coordinator has put it out; what it owned is to be dropped first
    STALE = 'stale'  # the program did not poll in time: it has left, and waits for a poll
    LEAVING = 'leaving'
    FATAL = 'fatal'  # it will not come back before somebody acts


class Event(enum.Enum):
    """What happens to it."""

    JOIN = 'join'
    RETARGET = 'reconcile'  # what it shall own is not what it owns
    SETTLE = 'settle'  # it is
    RECONCILED = 'have reconciled'
    ACKNOWLEDGED = 'have acknowledged'
    FENCE = 'be fenced'
    MISS_POLL = 'miss a poll'
    LEAVE = 'leave'
    LEFT = 'have left'
    FAIL = 'fail'


_S, _E = State, Event

#: How a member may go: fenced, too late, by its own will, for good.
_OUT: Mapping[Event, State] = {
    _E.FENCE: _S.FENCED,
    _E.MISS_POLL: _S.STALE,
    _E.LEAVE: _S.LEAVING,
    _E.FAIL: _S.FATAL,
}

#: What follows. What is not here is a mistake of this package.
TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    _S.UNSUBSCRIBED: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.JOINING: {_E.RETARGET: _S.RECONCILING, **_OUT},
    _S.RECONCILING: {
        _E.RETARGET: _S.RECONCILING,
        _E.SETTLE: _S.ACKNOWLEDGING,  # what was given is taken back, and was not taken up
        _E.RECONCILED: _S.ACKNOWLEDGING,
        **_OUT,
    },
    _S.ACKNOWLEDGING: {
        _E.RETARGET: _S.ACKNOWLEDGING,  # what it owns now is told first
        _E.SETTLE: _S.ACKNOWLEDGING,
        _E.ACKNOWLEDGED: _S.STABLE,
        **_OUT,
    },
    _S.STABLE: {_E.RETARGET: _S.RECONCILING, _E.SETTLE: _S.STABLE, **_OUT},
    _S.FENCED: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.STALE: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
    _S.LEAVING: {_E.LEAVE: _S.LEAVING, _E.LEFT: _S.UNSUBSCRIBED},
    _S.FATAL: {_E.JOIN: _S.JOINING, _E.LEAVE: _S.LEAVING},
}

#: The states of who is in the group, or about to be.
TAKING_PART = frozenset([_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE])


def following(state: State, event: Event) -> State:
    """Return the state after an event. Raises IllegalStateError if it cannot happen there."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalStateError('a group member that is %s cannot %s' % (state.value, event.value))
    return found


class Action(enum.Enum):
    """What an answer demands."""

    GO_ON = 'go on'
    RETRY = 'retry'
    REFIND = 'refind'  # another broker coordinates the group
    REJOIN = 'rejoin'  # all partitions are lost
    SURFACE = 'surface'  # the program has to hear of it; the membership goes on
    FAIL = 'fail'


_ACTIONS: Mapping[int, Action] = {
    0: Action.GO_ON,
    14: Action.RETRY,  # COORDINATOR_LOAD_IN_PROGRESS
    15: Action.REFIND,  # COORDINATOR_NOT_AVAILABLE
    16: Action.REFIND,  # NOT_COORDINATOR
    25: Action.REJOIN,  # UNKNOWN_MEMBER_ID
    29: Action.SURFACE,  # TOPIC_AUTHORIZATION_FAILED: rights may come
    30: Action.SURFACE,  # GROUP_AUTHORIZATION_FAILED: likewise
    110: Action.REJOIN,  # FENCED_MEMBER_EPOCH
    -1: Action.SURFACE,  # UNKNOWN_SERVER_ERROR
}

#: What to do about errors that somebody has to see to; the others say enough.
ADVICE: Mapping[int, str] = {
    30: 'let its user READ the group',
    35: 'group_protocol="consumer" needs brokers of Kafka 4.0 or later that have it switched on',
    81: 'the group may have no more members (group.consumer.max.size)',
    82: 'another member has taken over its group_instance_id, which must be unique in the group',
    111: 'another member has its group_instance_id, and has not left',
    112: 'choose another group_remote_assignor',
    128: 'the pattern must be one of RE2, which the broker matches against whole names',
}


def action_of(code: int) -> Action:
    """Return what an error code of a heartbeat demands; one that is not known is passed on."""
    found = _ACTIONS.get(code)
    if found is not None:
        return found
    error = for_code(code)
    if issubclass(error, UnrecognizedBrokerError):
        return Action.SURFACE
    return Action.RETRY if error.retriable else Action.FAIL


class Verdict(NamedTuple):
    """What an answer demands, and the error that it is about."""

    action: Action
    error: Optional[BrokerResponseError] = None
