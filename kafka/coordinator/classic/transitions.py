"""The states of a member of a classic group, what may follow what, what the codes mean; pure.

Owns the tables, and the texts of errors and reasons. Does not own: what goes with a move
(state_machine.py). Follows the protocol guide's "Group Membership API", KIP-345, KIP-394 and
KIP-800.
"""

from __future__ import annotations

import enum
from typing import Dict, Mapping

from kafka.errors import IllegalStateError, KafkaError, for_code

__all__ = [
    'TRANSITIONS',
    'Call',
    'Event',
    'Reason',
    'State',
    'Verdict',
    'error_of',
    'following',
    'verdict_of',
]


class State(enum.Enum):
    """How far the membership is."""

    UNJOINED = 'unjoined'  # no part of the group as far as is known
    PREPARING = 'preparing'  # what has to be given up is given up; the coordinator is looked for
    JOINING = 'joining'  # JoinGroup is on its way: the broker parks it until all have come
    COMPLETING = 'completing'  # there is a generation; its leader assigns
    SYNCING = 'syncing'  # SyncGroup is on its way: the broker parks it until the leader's came
    ADOPTING = 'adopting'  # there is an assignment; the thread that polls takes it over
    STABLE = 'stable'
    FAILED = 'failed'  # it ended by an error that trying again does not cure

    __hash__ = object.__hash__


class Event(enum.Enum):
    """What happens to it."""

    BEGIN = 'begin to join'
    ASK_TO_JOIN = 'ask to join'
    JOINED = 'join'
    AGAIN = 'join again'  # the call has to be made again; nothing is lost
    ASK_TO_SYNC = 'ask for its assignment'
    SYNCED = 'get its assignment'
    ADOPTED = 'adopt its assignment'
    REBALANCE = 'rebalance'
    LOST = 'lose its generation'
    REFUSED = 'be refused'  # until the program polls again
    FAIL = 'fail'
    LEAVE = 'leave'

    __hash__ = object.__hash__


_S, _E = State, Event
_ALWAYS = {_E.LOST: _S.UNJOINED, _E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED}

#: What follows. What is not here is a mistake of this package.
TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    _S.UNJOINED: {_E.BEGIN: _S.PREPARING, _E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED},
    _S.PREPARING: {**_ALWAYS, _E.ASK_TO_JOIN: _S.JOINING, _E.REFUSED: _S.UNJOINED},
    _S.JOINING: {
        **_ALWAYS,
        _E.JOINED: _S.COMPLETING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.COMPLETING: {
        **_ALWAYS,
        _E.ASK_TO_SYNC: _S.SYNCING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.SYNCING: {
        **_ALWAYS,
        _E.SYNCED: _S.ADOPTING,
        _E.AGAIN: _S.PREPARING,
        _E.REFUSED: _S.UNJOINED,
    },
    _S.ADOPTING: {**_ALWAYS, _E.ADOPTED: _S.STABLE, _E.REFUSED: _S.UNJOINED},
    _S.STABLE: {**_ALWAYS, _E.REBALANCE: _S.PREPARING},
    _S.FAILED: {_E.FAIL: _S.FAILED, _E.LEAVE: _S.UNJOINED},
}


def following(state: State, event: Event) -> State:
    """Return the state after an event. Raises IllegalStateError if it cannot happen there."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalStateError('a member that is %s cannot %s' % (state.value, event.value))
    return found


# ---------------------------------------------------------------- codes


class Call(enum.Enum):
    """The calls whose answers say something of the membership."""

    JOIN = 'JoinGroup'
    SYNC = 'SyncGroup'
    HEARTBEAT = 'Heartbeat'
    COMMIT = 'OffsetCommit'

    __hash__ = object.__hash__


class Verdict(enum.Enum):
    """What an answer means."""

    GOOD = 'good'
    RETRY = 'again, after back-off'
    REFIND = 'again, to whoever coordinates now'
    TAKE_ID = 'again at once, with the member id that came'
    REBALANCE = 'the group rebalances: join again'
    LOST = 'the generation is over: join again with the same member id'
    LOST_ID = 'the member id is not known: join as a new member'
    IGNORE = 'nothing'
    TELL = 'the program has to know'  # and the membership goes on
    REFUSED = 'the program has to know, and may try again'
    FATAL = 'the membership is over'


_V = Verdict
_VERDICTS: Dict[Call, Dict[int, Verdict]] = {
    Call.JOIN: {
        0: _V.GOOD,
        14: _V.RETRY,
        15: _V.REFIND,
        16: _V.REFIND,
        22: _V.LOST,
        23: _V.FATAL,
        24: _V.FATAL,
        25: _V.LOST_ID,
        26: _V.FATAL,
        27: _V.RETRY,
        30: _V.REFUSED,
        79: _V.TAKE_ID,
        81: _V.FATAL,
        82: _V.FATAL,
    },
    Call.SYNC: {
        0: _V.GOOD,
        14: _V.REBALANCE,
        15: _V.REFIND,
        16: _V.REFIND,
        22: _V.LOST,
        23: _V.FATAL,
        25: _V.LOST_ID,
        27: _V.REBALANCE,
        30: _V.REFUSED,
        82: _V.FATAL,
    },
    Call.HEARTBEAT: {
        0: _V.GOOD,
        14: _V.RETRY,
        15: _V.REFIND,
        16: _V.REFIND,
        22: _V.LOST,
        25: _V.LOST_ID,
        27: _V.REBALANCE,
        30: _V.TELL,
        82: _V.FATAL,
    },
    Call.COMMIT: {
        22: _V.LOST,
        25: _V.LOST_ID,
        27: _V.REBALANCE,
        69: _V.LOST,
        82: _V.FATAL,
    },
}
#: What is not in the table and cannot be tried again.
_OTHERWISE: Dict[Call, Verdict] = {
    Call.JOIN: _V.REFUSED,
    Call.SYNC: _V.REFUSED,
    Call.HEARTBEAT: _V.TELL,
    Call.COMMIT: _V.IGNORE,
}


def verdict_of(call: Call, code: int) -> Verdict:
    """Return what a code in the answer to a call means."""
    found = _VERDICTS[call].get(code)
    if found is not None:
        return found
    error = for_code(code)
    if call is not Call.COMMIT and error.retriable:
        return Verdict.REFIND if error.refind_coordinator else Verdict.RETRY
    return _OTHERWISE[call]


_ADVICE: Dict[int, str] = {
    23: 'its members share no partition_assignment_strategy with this one, or are no consumers',
    24: 'the broker does not take that group id',
    26: 'the broker does not take session_timeout_ms=%(session_ms)d: it has to be within its'
    ' group.min.session.timeout.ms and group.max.session.timeout.ms',
    30: 'this user may not read the group: it needs the permission READ',
    35: 'the broker cannot do this; classic groups need brokers from 0.9 on',
    81: 'it has as many members as group.max.size of the broker allows',
    82: 'another consumer has joined with group_instance_id %(instance)r; each needs its own',
}


def error_of(code: int, group_id: str, session_timeout: float, instance: object) -> KafkaError:
    """Return the error of a code, which says what is wrong with which group and what to do."""
    told = {'session_ms': round(session_timeout * 1000), 'instance': instance}
    advice = _ADVICE.get(code)
    text = 'group %s' % group_id
    return for_code(code)('%s: %s' % (text, advice % told) if advice else text)


# ---------------------------------------------------------------- reasons


class Reason(enum.Enum):
    """Why a member joins again: for logs here and, from JoinGroup v8 on, at the broker."""

    POLLED = 'the consumer begins to poll'
    GROUP = 'the group is rebalancing'
    ANOTHER = 'the group began another rebalance before this one had ended'
    SUBSCRIPTION = 'the topics of the consumer have changed'
    FOREIGN = 'the assignment has topics that the consumer no longer wants'
    PARTITIONS = 'the partitions of the topics have changed'
    FOLLOW_UP = 'partitions that were given up can be taken over'
    GENERATION = 'the group went on without this member: its generation is over'
    UNKNOWN = 'the group does not know this member any more'
    LATE = 'the consumer did not poll in time'
