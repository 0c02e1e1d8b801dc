"""What needs two connections: groups of two members, fetches that wait for others."""

from __future__ import annotations

from typing import Any, Dict, List

from test.differential.script import Scenario, Step
from test.differential.steps_data import FETCH, PRODUCE, batch, fetch, produce
from test.differential.steps_groups import (
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    OFFSET_COMMIT,
    SYNC_GROUP,
    commit,
    join,
)

LIST_OFFSETS = 2
OTHER = 'b'


def _who(c: Any, name: str, **fields: Any) -> Dict[str, Any]:
    asked = {
        'group_id': c.group(),
        'generation_id': c.values['generation'],
        'member_id': c.values[name],
    }
    return dict(asked, **fields)


def _join(c: Any, name: str, **fields: Any) -> Dict[str, Any]:
    return join(c, c.values.get(name, ''), **fields)


def _keeps(name: str) -> Any:
    def keep(c: Any, answer: Any) -> None:
        c.values[name] = answer.member_id
        if answer.error_code != MEMBER_ID_REQUIRED:
            c.values['generation'] = answer.generation_id

    return keep


def _sync(c: Any, name: str, *given: str) -> Dict[str, Any]:
    assignments = [
        {'member_id': c.values[each], 'assignment': b'for ' + each.encode()} for each in given
    ]
    named = {'protocol_type': 'consumer', 'protocol_name': 'range', 'assignments': assignments}
    return dict(_who(c, name), **named)


def _leave(c: Any, name: str) -> Dict[str, Any]:
    member = c.values[name]
    return {'group_id': c.group(), 'member_id': member, 'members': [{'member_id': member}]}


def _described(name: str) -> Step:
    return Step(name, DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]})


def _needs_id(c: Any) -> bool:
    """Tell whether a member must come twice (KIP-394)."""
    return bool(c.version >= 4)


def _beat(name: str, member: str) -> Step:
    return Step(name, HEARTBEAT, lambda c: _who(c, member))


#: The members are a and b; b has a connection of its own, on which its answers may wait.
TWO_MEMBERS: List[Step] = [
    Step('a joins', JOIN_GROUP, lambda c: _join(c, 'a'), keep=_keeps('a')),
    Step('a joins with id', JOIN_GROUP, lambda c: _join(c, 'a'), keep=_keeps('a'), when=_needs_id),
    Step('a syncs', SYNC_GROUP, lambda c: _sync(c, 'a', 'a')),
    Step('b asks for an id', JOIN_GROUP, lambda c: _join(c, 'b'), keep=_keeps('b'), when=_needs_id),
    Step('b joins', JOIN_GROUP, lambda c: _join(c, 'b'), wire=OTHER, left=True),
    _described('describe while b waits'),
    _beat('heartbeat of a while b waits', 'a'),
    Step('commit of a while b waits', OFFSET_COMMIT, lambda c: _commit_as(c, 'a')),
    Step('a joins again', JOIN_GROUP, lambda c: _join(c, 'a'), keep=_keeps('a')),
    Step('b has joined', JOIN_GROUP, wire=OTHER, keep=_keeps('b')),
    Step('b syncs', SYNC_GROUP, lambda c: _sync(c, 'b'), wire=OTHER, left=True),
    _described('describe while b syncs'),
    _beat('heartbeat of a before its sync', 'a'),
    Step('a gives assignments', SYNC_GROUP, lambda c: _sync(c, 'a', 'a', 'b')),
    Step('b is given its own', SYNC_GROUP, wire=OTHER),
    _described('describe both'),
    Step('commit of b', OFFSET_COMMIT, lambda c: _commit_as(c, 'b')),
    Step(
        'b joins as before',
        JOIN_GROUP,
        lambda c: _join(c, 'b'),
        wire=OTHER,
    ),
    Step('a leaves', LEAVE_GROUP, lambda c: _leave(c, 'a')),
    _beat('heartbeat of b then', 'b'),
    Step('b joins alone', JOIN_GROUP, lambda c: _join(c, 'b'), wire=OTHER, keep=_keeps('b')),
    Step('b syncs alone', SYNC_GROUP, lambda c: _sync(c, 'b', 'b'), wire=OTHER),
    _described('describe b'),
    Step('b leaves', LEAVE_GROUP, lambda c: _leave(c, 'b')),
]


def _commit_as(c: Any, name: str) -> Dict[str, Any]:
    generation = c.values['generation']
    return commit(c, 9, generation_id_or_member_epoch=generation, member_id=c.values[name])


def _waiting(c: Any, offset: int, **fields: Any) -> Dict[str, Any]:
    return fetch(c, offset, **dict({'max_wait_ms': 5000, 'min_bytes': 1}, **fields))


def _write(name: str, partition: int = 0) -> Step:
    return Step(name, PRODUCE, lambda c: produce(c, batch(c), partition=partition))


#: A fetch waits on its own connection until there is something for it.
WAITING: List[Step] = [
    _write('write'),
    Step('wait', FETCH, lambda c: _waiting(c, 2), wire=OTHER, left=True),
    _write('write to the other partition', 1),
    _write('write more'),
    Step('woken', FETCH, wire=OTHER),
    Step('nothing to wait for', FETCH, lambda c: _waiting(c, 99), wire=OTHER),
]

#: What is there when the time is over is less than was asked for.
TIME_OVER: List[Step] = [
    _write('write'),
    Step(
        'wait for many bytes',
        FETCH,
        lambda c: _waiting(c, 2, min_bytes=100_000, max_wait_ms=1000),
        wire=OTHER,
        left=True,
    ),
    _write('write little'),
    Step('time over', FETCH, wire=OTHER),
]

SCRIPT = [
    Scenario('late fetch', (FETCH,), TIME_OVER, versions='high'),
    Scenario('two members', (JOIN_GROUP,), TWO_MEMBERS, since=(0, 9)),
    Scenario('waiting fetch', (FETCH,), WAITING),
]
