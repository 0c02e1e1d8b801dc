"""Share groups (KIP-932): members, records that are acquired and what becomes of them, offsets.

A broker prepares share partitions in the background: what is written down begins when they are.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from test.differential.records import made
from test.differential.script import Scenario, Step
from test.differential.steps_groups import commit, join, stored
from test.differential.steps_later import MEMBER, beat, keep_epoch, set_config

PRODUCE = 0
OFFSET_COMMIT = 8
OFFSET_FETCH = 9
JOIN_GROUP = 11
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
DELETE_GROUPS = 42
OFFSET_DELETE = 47
CONSUMER_HEARTBEAT = 68
SHARE_HEARTBEAT = 76
SHARE_DESCRIBE = 77
SHARE_FETCH = 78
SHARE_ACKNOWLEDGE = 79
DESCRIBE_SHARE_OFFSETS = 90
ALTER_SHARE_OFFSETS = 91
DELETE_SHARE_OFFSETS = 92

OTHER = 'AAAAAAAAAAAAAAAAAAAAAg'
UNKNOWN_ID = b'\x07' * 16

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
NO_LIMITS = {'max_wait_ms': 0, 'min_bytes': 0, 'max_bytes': 0, 'max_records': 0}
#: First and last offset, and what is said of them.
Told = Tuple[Any, ...]


def _s(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, SHARE_HEARTBEAT, lambda c: beat(c, *arguments, **fields))


def _batches(told: Tuple[Told, ...]) -> List[Dict[str, Any]]:
    return [
        {'first_offset': first, 'last_offset': last, 'acknowledge_types': list(types)}
        for first, last, *types in told
    ]


def _epoch(c: Any, member: str, epoch: Optional[int]) -> int:
    """Return the epoch of a member's session: the next, unless another one is wanted."""
    if epoch is not None:
        if epoch < 1:
            c.values[member] = epoch + 1
        return epoch
    c.values[member] = c.values.get(member, 0) + 1
    return int(c.values[member]) - 1


def _fetch(c: Any, epoch: Optional[int], *told: Told, **fields: Any) -> Dict[str, Any]:
    """Return a ShareFetch of partition 0 that acknowledges something; fields by name."""
    member = fields.get('member_id', c.values.get('member', MEMBER))
    index = fields.pop('index', 0)
    topic_id = fields.pop('topic_id', None) or c.topic_id(c.topic())
    part = {'partition_index': index, 'acknowledgement_batches': _batches(told)}
    asked = {
        'group_id': c.group(),
        'member_id': member,
        'share_session_epoch': epoch if 'group_id' in fields else _epoch(c, member, epoch),
        'max_wait_ms': 200,
        'min_bytes': 1,
        'max_bytes': 1 << 20,
        'max_records': 100,
        'batch_size': 100,
        'topics': [{'topic_id': topic_id, 'partitions': [part]}],
    }
    return dict(asked, **fields)


def _acknowledge(c: Any, epoch: Optional[int], *told: Told, **fields: Any) -> Dict[str, Any]:
    renews = fields.pop('is_renew_ack', False)
    fetched = _fetch(c, epoch, *told, **fields)
    names = ('group_id', 'member_id', 'share_session_epoch', 'topics')
    return dict({name: fetched[name] for name in names}, is_renew_ack=renews)


def _f(name: str, epoch: Optional[int], *told: Told, **fields: Any) -> Step:
    return Step(name, SHARE_FETCH, lambda c: _fetch(c, epoch, *told, **fields))


def _a(name: str, epoch: Optional[int], *told: Told, **fields: Any) -> Step:
    return Step(name, SHARE_ACKNOWLEDGE, lambda c: _acknowledge(c, epoch, *told, **fields))


def _since_2(step: Step) -> Step:
    return step._replace(when=lambda c: c.version >= 2)


# ------------------------------------------------------------ offsets


def _offsets(c: Any, **fields: Any) -> Dict[str, Any]:
    # Not of a partition that is none: 4.4.0 never answers that.
    topics = [{'topic_name': c.topic(), 'partitions': [0, 1]}]
    return {'groups': [dict({'group_id': c.group(), 'topics': topics}, **fields)]}


def _alter(c: Any, offset: int, index: int = 0, **fields: Any) -> Dict[str, Any]:
    parts = [{'partition_index': index, 'start_offset': offset}]
    name = fields.pop('topic_name', None) or c.topic()
    topics = [{'topic_name': name, 'partitions': parts}]
    return dict({'group_id': c.group(), 'topics': topics}, **fields)


def _delete(c: Any, topic: Optional[str] = None, **fields: Any) -> Dict[str, Any]:
    topics = [{'topic_name': topic or c.topic()}]
    return dict({'group_id': c.group(), 'topics': topics}, **fields)


def _where(name: str) -> Step:
    return Step(name, DESCRIBE_SHARE_OFFSETS, _offsets)


def _describe(name: str) -> Step:
    return Step(name, SHARE_DESCRIBE, lambda c: {'group_ids': [c.group()]})


SHARE: List[Step] = [
    Step(
        'join',
        SHARE_HEARTBEAT,
        lambda c: beat(c, 0, subscribed_topic_names=[c.group_topic()]),
        keep=keep_epoch,
    ),
    _s('heartbeat'),
    _s('heartbeat of other', 1, member_id='other'),
    _s('heartbeat in later epoch', 99),
    _s('no group', 0, group_id=''),
    _s('no topics', 0, member_id='x', subscribed_topic_names=None),
    Step('describe', SHARE_DESCRIBE, lambda c: {'group_ids': [c.group(), c.name('none')]}),
    _f('fetch at once', 0, max_wait_ms=500),
    _f('fetch in wrong epoch', 9),
    _f('fetch of other', 1, member_id='other'),
    _a('acknowledge nothing acquired', 1, (0, 0, ACCEPT)),
    _a('acknowledge kind 9', 2, (0, 0, 9)),
    _a('acknowledge backwards', 3, (5, 2, ACCEPT)),
    _where('offsets'),
    Step('alter with member', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 0)),
    Step('close', SHARE_FETCH, lambda c: _fetch(c, -1, topics=[])),
    _s('leave', -1),
    _s('heartbeat after'),
    _describe('describe after'),
    Step('alter', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 0)),
    Step('delete offsets', DELETE_SHARE_OFFSETS, _delete),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
]


# ------------------------------------------------------------ records


def _write(c: Any, *batches: str) -> None:
    """Write batches with one record for each letter, to partition 0."""
    for values in batches:
        records = made(2, c.now_ms, [each.encode() for each in values])
        parts = [{'index': 0, 'records': records}]
        topics = [{'name': c.topic(), 'topic_id': c.topic_id(c.topic()), 'partition_data': parts}]
        c.ask(PRODUCE, {'acks': 1, 'timeout_ms': 1000, 'topic_data': topics})


def _begin(c: Any, *batches: str) -> None:
    """Have a member in the group that may read partition 0, and records to be read."""
    set_config(c, 'share.auto.offset.reset', 'earliest')
    set_config(c, 'share.assignment.interval.ms', '0')
    c.values['member'] = MEMBER
    joined = c.ask(SHARE_HEARTBEAT, beat(c, 0, subscribed_topic_names=[c.group_topic()]))
    c.values['epoch'] = joined.member_epoch

    def is_ready() -> bool:
        told = c.ask(SHARE_HEARTBEAT, beat(c))
        c.values['epoch'] = told.member_epoch
        if told.assignment is not None and told.assignment.topic_partitions:
            c.values['assigned'] = True
        if 'assigned' not in c.values:
            return False
        fetched = c.ask(SHARE_FETCH, _fetch(c, 0, max_wait_ms=100))
        c.ask(SHARE_FETCH, _fetch(c, -1, topics=[]))
        parts = [part for topic in fetched.responses for part in topic.partitions]
        return bool(parts) and not parts[0].error_code

    c.until(is_ready, 'share partitions of ' + c.group())
    _write(c, *batches)


def _first(name: str, *batches: str, **fields: Any) -> Step:
    """Return the first fetch of the case's member, before which everything is made ready."""

    def asked(c: Any) -> Dict[str, Any]:
        _begin(c, *batches)
        return _fetch(c, 0, **fields)

    return Step(name, SHARE_FETCH, asked)


RECORDS: List[Step] = [
    _first('fetch', 'abcd', 'ef', 'g', max_records=5, batch_size=2),
    _f('fetch of other', 0, member_id=OTHER),
    _where('offsets'),
    _a('accept', None, (0, 1, ACCEPT)),
    _where('offsets after'),
    _a('accept again', None, (0, 1, ACCEPT)),
    _a('each its own', None, (2, 4, RELEASE, REJECT, GAP)),
    _where('offsets with a hole'),
    _f('fetch again', None),
    _a('accept of other', None, (5, 5, ACCEPT), member_id=OTHER),
    _a('accept too much', None, (5, 9, ACCEPT)),
    _a('accept what comes', None, (8, 9, ACCEPT)),
    _a('accept twice', None, (5, 5, ACCEPT), (5, 5, ACCEPT)),
    _a('too many types', None, (5, 6, ACCEPT, ACCEPT, ACCEPT)),
    _a('no type', None, (5, 5)),
    _a('negative type', None, (5, 5, -1)),
    _a('backwards', None, (5, 5, ACCEPT), (2, 2, ACCEPT)),
    _a('unknown partition', None, (0, 0, ACCEPT), index=7),
    _a('unknown topic', None, (0, 0, ACCEPT), topic_id=UNKNOWN_ID),
    _a('renew without word', None, (5, 5, RENEW)),
    _since_2(_a('renew', None, (5, 5, RENEW), is_renew_ack=True)),
    _f('accept and fetch', None, (2, 2, ACCEPT), max_wait_ms=50),
    _f('accept nonsense and fetch', None, (2, 2, ACCEPT), max_wait_ms=50),
    _since_2(_f('renew only', None, (5, 5, RENEW), is_renew_ack=True, **NO_LIMITS)),
    _since_2(_f('renew and fetch', 1, (5, 5, RENEW), is_renew_ack=True)),
    _f('close', -1, (5, 5, RELEASE)),
    _f('close again', -1),
    _f('fetch what was released', None, member_id=OTHER),
    Step('write more', SHARE_FETCH, lambda c: (_write(c, 'hi'), _fetch(c, 0))[1]),
    _f('close with records', -1, topics=[]),
    _f('fetch what came back', None, member_id=OTHER),
    _a('close by acknowledging', -1, (5, 6, ACCEPT), member_id=OTHER),
    _where('offsets at last'),
    _f('fetch the rest', 0, max_records=1),
    _a('accept the rest', None, (7, 8, ACCEPT)),
    _where('offsets at the end'),
]

#: A member that never gets more than it wants (KIP-1206).
STRICT: List[Step] = [
    _first('fetch', 'abcd', 'ef', max_records=3, share_acquire_mode=1),
    _f('fetch of other', 0, max_records=2, share_acquire_mode=1, member_id=OTHER),
    _a('release', None, (0, 2, RELEASE)),
    _f('fetch again', None, max_records=2, share_acquire_mode=1),
    _f('fetch in unknown mode', None, max_records=2, share_acquire_mode=7),
    _f('fetch nothing', None, max_records=0, share_acquire_mode=1, max_wait_ms=50),
]


def _delivery(number: int) -> List[Step]:
    """Return the steps that deliver what is there once more, in vain."""

    def keep(c: Any, answer: Any) -> None:
        acquired = [
            (each.first_offset, each.last_offset, RELEASE)
            for topic in answer.responses
            for part in topic.partitions
            for each in part.acquired_records
        ]
        c.values['acquired'] = acquired

    def release(c: Any) -> Dict[str, Any]:
        return _acknowledge(c, None, *c.values['acquired'])

    fetch = _f('fetch %d' % number, None, max_wait_ms=50)
    if number == 1:
        fetch = _first('fetch 1', 'abcdefgh', 'i')
    return [
        fetch._replace(keep=keep),
        Step('release %d' % number, SHARE_ACKNOWLEDGE, release, when=_has_acquired),
    ]


def _has_acquired(c: Any) -> bool:
    return bool(c.values['acquired'])


DELIVERIES: List[Step] = [
    *(step for number in range(1, 17) for step in _delivery(number)),
    _where('offsets'),
]


def _forget(c: Any) -> Dict[str, Any]:
    """Return a fetch that forgets what is none."""
    forgotten = [
        {'topic_id': c.topic_id(c.topic()), 'partitions': [7]},
        {'topic_id': UNKNOWN_ID, 'partitions': [0]},
    ]
    return _fetch(c, None, topics=[], forgotten_topics_data=forgotten, max_wait_ms=50)


SESSIONS: List[Step] = [
    _first('fetch', 'a', 'b'),
    _a('acknowledge in first epoch', 0, (0, 0, ACCEPT)),
    _a('acknowledge in wrong epoch', 9, (0, 0, ACCEPT)),
    _f('fetch with word in first epoch', 0, (0, 0, ACCEPT)),
    _f('fetch anew', 0),
    _f('fetch unknown partition', None, index=7),
    _f('fetch what is known', None, topics=[], max_wait_ms=50),
    Step('forget', SHARE_FETCH, _forget),
    _f('fetch unknown topic', None, topic_id=UNKNOWN_ID),
    _f('fetch unknown topic again', None, topics=[], max_wait_ms=50),
    Step('forget topic', SHARE_FETCH, _forget),
    _a('acknowledge nothing', None),
    _f('no member', 0, member_id=''),
    _f('long member', 0, member_id=37 * 'x'),
    _f('null member', 0, member_id=None),
    _f('null group', 0, group_id=None),
    _f('unknown group', 0, group_id='none', max_wait_ms=50),
    _f('unknown group again', 1, group_id='none', max_wait_ms=50),
    _f('group of nobody', 0, group_id='', max_wait_ms=50),
    _f('no time', None, max_wait_ms=0, topics=[]),
    _f('no bytes', None, max_bytes=0, topics=[], max_wait_ms=50),
    _f('close', -1, topics=[]),
]

MEMBERS: List[Step] = [
    Step('describe of nobody', SHARE_DESCRIBE, lambda c: {'group_ids': ['', c.name('none')]}),
    _s('join nothing', 0, subscribed_topic_names=[]),
    _s('join without id', 0, member_id='', subscribed_topic_names=['x']),
    _s('join in an empty rack', 0, rack_id='', subscribed_topic_names=['x']),
    _s('epoch -2', -2),
    _s('leave before', -1),
    _s('heartbeat before', 1),
    _first('join and fetch', 'a'),
    _s('leave as other', -1, member_id='other'),
    Step('list', LIST_GROUPS, lambda c: {'types_filter': ['share']}),
    Step(
        'describe as consumers',
        DESCRIBE_GROUPS,
        lambda c: {'groups': [c.group()]},
    ),
    Step('join as consumer', JOIN_GROUP, lambda c: join(c, '')),
    Step(
        'join as new consumer',
        CONSUMER_HEARTBEAT,
        lambda c: {
            'group_id': c.group(),
            'member_id': 'consumer',
            'member_epoch': 0,
            'rebalance_timeout_ms': 10000,
            'subscribed_topic_names': [c.group_topic()],
            'topic_partitions': [],
        },
    ),
    Step('commit', OFFSET_COMMIT, lambda c: commit(c, 1)),
    Step('fetch offsets', OFFSET_FETCH, stored),
    Step(
        'delete offsets of consumers',
        OFFSET_DELETE,
        lambda c: {'group_id': c.group(), 'topics': []},
    ),
    Step('delete with member', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    Step('delete offsets with member', DELETE_SHARE_OFFSETS, _delete),
    Step('all offsets', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, topics=None)),
    Step('offsets of nobody', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, group_id='none')),
    Step('offsets of no name', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, group_id='')),
    Step(
        'all of nobody', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, topics=None, group_id='none')
    ),
    Step('delete of nobody', DELETE_SHARE_OFFSETS, lambda c: _delete(c, group_id='none')),
    Step('alter nobody', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 1, group_id=c.group('new'))),
    Step('describe new', SHARE_DESCRIBE, lambda c: {'group_ids': [c.group('new')]}),
    Step('offsets of new', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, group_id=c.group('new'))),
    Step('delete new', DELETE_GROUPS, lambda c: {'groups_names': [c.group('new')]}),
    Step('alter no name', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 0, group_id='')),
    Step('delete of no name', DELETE_SHARE_OFFSETS, lambda c: _delete(c, group_id='')),
    _s('leave', -1),
    _where('offsets of an empty group'),
    Step('alter', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 1)),
    Step('alter unknown partition', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 1, 7)),
    Step('alter unknown topic', ALTER_SHARE_OFFSETS, lambda c: _alter(c, 1, topic_name='none')),
    _where('altered'),
    _first('read on', 'b'),
    _s('leave again', -1),
    Step('delete unknown topic', DELETE_SHARE_OFFSETS, lambda c: _delete(c, 'none')),
    Step('delete known topic', DELETE_SHARE_OFFSETS, _delete),
    _where('deleted'),
    Step('all deleted', DESCRIBE_SHARE_OFFSETS, lambda c: _offsets(c, topics=None)),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    _describe('describe deleted'),
]

SCRIPT = [
    Scenario('share group', (SHARE_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE), SHARE),
    Scenario('share records', (SHARE_FETCH, SHARE_ACKNOWLEDGE), RECORDS),
    Scenario('share records strictly', (SHARE_FETCH,), STRICT, versions='2+'),
    Scenario('share deliveries', (SHARE_FETCH,), DELIVERIES),
    Scenario('share sessions', (SHARE_FETCH,), SESSIONS),
    Scenario('share members', (SHARE_HEARTBEAT,), MEMBERS),
]
