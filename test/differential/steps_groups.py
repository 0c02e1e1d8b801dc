"""Offsets and classic groups, with one member each."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import REFUSED_ABOVE, REFUSED_BELOW, Scenario, Step, one

OFFSET_COMMIT = 8
OFFSET_FETCH = 9
JOIN_GROUP = 11
HEARTBEAT = 12
LEAVE_GROUP = 13
SYNC_GROUP = 14
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
DELETE_GROUPS = 42
OFFSET_DELETE = 47

UNKNOWN_ID = b'\x07' * 16
MEMBER_ID_REQUIRED = 79


def _id(c: Any, topic: str) -> bytes:
    """Return the id of a topic; of a strange one, none that is there."""
    return c.topic_id(topic) if topic.startswith(c.label + '-') else UNKNOWN_ID


def commit(
    c: Any,
    offset: int = 5,
    partition: int = 0,
    topic: Optional[str] = None,
    metadata: Optional[str] = 'note',
    **fields: Any,
) -> Dict[str, Any]:
    """Return an OffsetCommit request of a client without membership."""
    name = c.topic() if topic is None else topic
    part = {
        'partition_index': partition,
        'committed_offset': offset,
        'committed_metadata': metadata,
        'committed_leader_epoch': 0,
    }
    topic_id = _id(c, name) if c.version >= 10 else UNKNOWN_ID
    topics = [{'name': name, 'topic_id': topic_id, 'partitions': [part]}]
    asked = {'group_id': c.group(), 'generation_id_or_member_epoch': -1, 'member_id': ''}
    return dict(dict(asked, topics=topics), **fields)


def stored(
    c: Any, group: Optional[str] = None, topic: Optional[str] = None, **fields: Any
) -> Dict[str, Any]:
    """Return an OffsetFetch request for both partitions of the case's topic and a third."""
    name = c.topic() if topic is None else topic
    topic_id = _id(c, name) if c.version >= 10 else UNKNOWN_ID
    group_id = c.group() if group is None else group
    parts = [0, 1, 7]
    wants_all = fields.pop('all_topics', False)
    topics = None if wants_all else [{'name': name, 'partition_indexes': parts}]
    inner = (
        None if wants_all else [{'name': name, 'topic_id': topic_id, 'partition_indexes': parts}]
    )
    asked = {'group_id': group_id, 'topics': topics}
    about = {key: fields.pop(key) for key in ('member_id', 'member_epoch') if key in fields}
    groups = [dict({'group_id': group_id, 'topics': inner}, **about)]
    return dict(dict(asked, groups=groups), **fields)


def _c(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, OFFSET_COMMIT, lambda c: commit(c, *arguments, **fields))


def delete_offsets(c: Any, *partitions: int, group: Optional[str] = None) -> Dict[str, Any]:
    """Return an OffsetDelete request."""
    parts = [{'partition_index': index} for index in partitions]
    topics = [{'name': c.topic(), 'partitions': parts}]
    return {'group_id': c.group() if group is None else group, 'topics': topics}


def _is_nullable(c: Any) -> bool:
    return bool(c.version >= 2)


def _two_groups(c: Any) -> Dict[str, Any]:
    first = stored(c)['groups'][0]
    return {'groups': [first, dict(first, group_id=c.group('other'))]}


OFFSETS_SCRIPT = [
    Scenario(
        'offsets',
        (OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE),
        [
            Step('fetch none', OFFSET_FETCH, stored),
            _c('commit'),
            _c('commit other partition', 7, 1, None, None),
            Step('fetch', OFFSET_FETCH, stored),
            Step(
                'fetch all', OFFSET_FETCH, lambda c: stored(c, all_topics=True), when=_is_nullable
            ),
            _c('commit again', 3, 0, None, ''),
            _c('commit unknown partition', 5, 7),
            _c('commit unknown topic', 5, 0, 'unknown'),
            _c('commit negative', -1),
            _c('commit very negative', -9, 1),
            _c('commit large metadata', 5, 0, None, 'x' * 4097),
            _c('commit most metadata', 5, 0, None, 'x' * 4096),
            _c('commit in generation 5', generation_id_or_member_epoch=5, member_id='m'),
            _c('commit as a member', generation_id_or_member_epoch=-1, member_id='m'),
            _c('commit in generation 5 as nobody', generation_id_or_member_epoch=5),
            Step('commit for no group', OFFSET_COMMIT, lambda c: commit(c, group_id='')),
            _c('commit for a short time', retention_time_ms=1),
            Step('commit nothing', OFFSET_COMMIT, lambda c: dict(commit(c), topics=[])),
            Step('fetch again', OFFSET_FETCH, stored),
            Step('fetch of no group', OFFSET_FETCH, lambda c: stored(c, group='')),
            Step('fetch of unknown group', OFFSET_FETCH, lambda c: stored(c, group=c.group('u'))),
            Step('fetch of unknown topic', OFFSET_FETCH, lambda c: stored(c, topic='unknown')),
            Step(
                'fetch all of unknown group',
                OFFSET_FETCH,
                lambda c: stored(c, group=c.group('u'), all_topics=True),
                when=_is_nullable,
            ),
            Step('fetch stable', OFFSET_FETCH, lambda c: stored(c, require_stable=True)),
            Step('fetch of two', OFFSET_FETCH, _two_groups, when=lambda c: c.version >= 8),
            Step(
                'fetch as a member',
                OFFSET_FETCH,
                lambda c: stored(c, member_id='m', member_epoch=3),
                when=lambda c: c.version >= 9,
            ),
            Step('describe', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
            Step('delete', OFFSET_DELETE, lambda c: delete_offsets(c, 0, 9)),
            Step(
                'delete of unknown group',
                OFFSET_DELETE,
                lambda c: delete_offsets(c, 0, group=c.group('u')),
            ),
            Step('fetch after delete', OFFSET_FETCH, stored),
            Step('delete group', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
            Step('delete group again', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
            Step('fetch after the end', OFFSET_FETCH, stored),
        ],
        since=(0, 8, 1),
    ),
    one('commit', OFFSET_COMMIT, commit, versions=REFUSED_ABOVE, since=(0, 8, 1)),
    one('commit', OFFSET_COMMIT, commit, versions=REFUSED_BELOW),
    one('stored', OFFSET_FETCH, stored, versions=REFUSED_ABOVE, since=(0, 8, 1)),
]

METADATA = b'\0\0\0\0\0\1\0\1t\0\0\0\0'
ASSIGNMENT = b'\0\0\0\0\0\0\0\0\0\0'


def join(c: Any, member_id: Optional[str] = None, **fields: Any) -> Dict[str, Any]:
    """Return a JoinGroup request with the member id that the case knows, or another."""
    asked: Dict[str, Any] = {
        'group_id': c.group(),
        'session_timeout_ms': 10000,
        'rebalance_timeout_ms': 10000,
        'member_id': c.values.get('member', '') if member_id is None else member_id,
        'protocol_type': 'consumer',
        'protocols': [
            {'name': 'range', 'metadata': METADATA},
            {'name': 'roundrobin', 'metadata': METADATA},
        ],
    }
    return dict(asked, **fields)


def _keep_member(c: Any, answer: Any) -> None:
    c.values['member'] = answer.member_id
    if answer.error_code != MEMBER_ID_REQUIRED:
        c.values['generation'] = answer.generation_id


def sync(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return a SyncGroup request of the leader."""
    asked = _member(c)
    given = [{'member_id': asked['member_id'], 'assignment': ASSIGNMENT}]
    named = {'protocol_type': 'consumer', 'protocol_name': 'range', 'assignments': given}
    return dict(dict(asked, **named), **fields)


def _member(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return who one is: group, member, generation."""
    asked = {
        'group_id': c.group(),
        'generation_id': c.values['generation'],
        'member_id': c.values['member'],
    }
    return dict(asked, **fields)


def _leave(c: Any, member_id: Optional[str] = None, **identity: Any) -> Dict[str, Any]:
    member = c.values.get('member', '') if member_id is None else member_id
    members = [dict({'member_id': member}, **identity)]
    return {'group_id': c.group(), 'member_id': member, 'members': members}


def _commit_as(c: Any, generation: int = 0) -> Dict[str, Any]:
    return commit(
        c,
        9,
        generation_id_or_member_epoch=c.values['generation'] + generation,
        member_id=c.values['member'],
    )


def _j(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, JOIN_GROUP, lambda c: join(c, *arguments, **fields))


def _kept(step: Step) -> Step:
    return step._replace(keep=_keep_member)


def _has_member(c: Any) -> bool:
    return 'member' in c.values


def _describe(*words: str) -> Step:
    """Return the step that describes the case's group and others."""
    return Step(
        'describe ' + ' '.join(words),
        DESCRIBE_GROUPS,
        lambda c: {
            'groups': [c.group(), *map(c.name, words)],
            'include_authorized_operations': True,
        },
    )


WALKED = (JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS)

LIFE: List[Step] = [
    _kept(_j('join')),
    _kept(_j('join again')),
    Step('heartbeat early', HEARTBEAT, _member),
    _describe(),
    Step('commit early', OFFSET_COMMIT, _commit_as),
    Step('sync', SYNC_GROUP, sync),
    Step('sync again', SYNC_GROUP, sync),
    Step('heartbeat', HEARTBEAT, _member),
    Step('describe', DESCRIBE_GROUPS, lambda c: {'groups': [c.group(), c.name('none')]}),
    Step('commit', OFFSET_COMMIT, _commit_as),
    Step('commit in next generation', OFFSET_COMMIT, lambda c: _commit_as(c, 1)),
    Step('commit as nobody', OFFSET_COMMIT, lambda c: commit(c)),
    Step('commit as other', OFFSET_COMMIT, lambda c: dict(_commit_as(c), member_id='other')),
    Step('heartbeat of other', HEARTBEAT, lambda c: _member(c, member_id='other')),
    Step('heartbeat in next generation', HEARTBEAT, lambda c: _member(c, generation_id=99)),
    Step('sync of other', SYNC_GROUP, lambda c: sync(c, member_id='other')),
    Step('sync in next generation', SYNC_GROUP, lambda c: sync(c, generation_id=99)),
    Step('sync other protocol', SYNC_GROUP, lambda c: sync(c, protocol_name='sticky')),
    Step('sync other type', SYNC_GROUP, lambda c: sync(c, protocol_type='connect')),
    _j('join as unknown', 'unknown'),
    _j('join other type', '', protocol_type='connect'),
    _j('join other protocols', '', protocols=[{'name': 'x', 'metadata': b''}]),
    Step('delete with member', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    Step('delete offsets with member', OFFSET_DELETE, lambda c: delete_offsets(c, 0)),
    _kept(_j('rejoin')),
    Step('heartbeat in rebalance', HEARTBEAT, _member),
    Step('sync of nothing', SYNC_GROUP, lambda c: sync(c, assignments=[])),
    Step('leave of other', LEAVE_GROUP, lambda c: _leave(c, 'other')),
    Step('leave', LEAVE_GROUP, _leave),
    Step('leave again', LEAVE_GROUP, _leave),
    Step('heartbeat after', HEARTBEAT, _member),
    Step('describe after', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
    Step('stored', OFFSET_FETCH, stored),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group(), c.name('none')]}),
    Step('describe at last', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
]

BAD_JOINS: List[Step] = [
    _j('short session', session_timeout_ms=1),
    _j('long session', session_timeout_ms=100_000_000),
    _j('no group', group_id=''),
    _j('no protocols', protocols=[]),
    _j('no type', protocol_type=''),
    _j('unknown member', 'unknown'),
    Step('heartbeat', HEARTBEAT, lambda c: _unknown(c)),
    Step('heartbeat of no group', HEARTBEAT, lambda c: dict(_unknown(c), group_id='')),
    Step('sync', SYNC_GROUP, lambda c: dict(_unknown(c), assignments=[])),
    Step('sync of no group', SYNC_GROUP, lambda c: dict(_unknown(c), group_id='', assignments=[])),
    Step('leave', LEAVE_GROUP, lambda c: _leave(c, 'unknown')),
    Step('leave of no group', LEAVE_GROUP, lambda c: dict(_leave(c, 'unknown'), group_id='')),
    Step('describe', DESCRIBE_GROUPS, lambda c: {'groups': [c.group(), '']}),
    Step('describe nothing', DESCRIBE_GROUPS, lambda c: {'groups': []}),
]


def _unknown(c: Any) -> Dict[str, Any]:
    return {'group_id': c.group(), 'generation_id': 1, 'member_id': 'unknown'}


def _static(c: Any, member_id: Optional[str] = None, **fields: Any) -> Dict[str, Any]:
    return join(c, member_id, group_instance_id='instance', **fields)


def _old_static(c: Any, **fields: Any) -> Dict[str, Any]:
    return _member(c, member_id=c.values['old'], group_instance_id='instance', **fields)


def _keep_old(c: Any, answer: Any) -> None:
    c.values['old'] = c.values.get('member', '')
    _keep_member(c, answer)


STATIC: List[Step] = [
    _kept(Step('join', JOIN_GROUP, _static)),
    Step('sync', SYNC_GROUP, lambda c: sync(c, group_instance_id='instance')),
    Step('heartbeat', HEARTBEAT, lambda c: _member(c, group_instance_id='instance')),
    Step('heartbeat of other instance', HEARTBEAT, lambda c: _member(c, group_instance_id='o')),
    Step('return', JOIN_GROUP, lambda c: _static(c, ''), keep=_keep_old),
    Step('heartbeat of the old', HEARTBEAT, _old_static),
    Step('sync of the old', SYNC_GROUP, lambda c: _old_static(c, assignments=[])),
    Step('join of the old', JOIN_GROUP, lambda c: _static(c, c.values['old'])),
    Step('sync again', SYNC_GROUP, lambda c: sync(c, group_instance_id='instance')),
    _describe(),
    Step(
        'leave unknown instance', LEAVE_GROUP, lambda c: _leave(c, '', group_instance_id='unknown')
    ),
    Step('leave by instance', LEAVE_GROUP, lambda c: _leave(c, '', group_instance_id='instance')),
    Step('describe after', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
]


def _list_steps(c: Any) -> List[str]:
    return [c.group()]


GROUPS_SCRIPT = [
    Scenario('group', WALKED, LIFE, since=(0, 9)),
    Scenario('bad group', WALKED, BAD_JOINS, since=(0, 9)),
    Scenario('static group', (JOIN_GROUP,), STATIC, versions='5+'),
    Scenario(
        'list groups',
        (LIST_GROUPS,),
        [
            Step('of a state', LIST_GROUPS, lambda c: {'states_filter': ['PreparingRebalance']}),
            Step('of no state', LIST_GROUPS, lambda c: {'states_filter': ['Nonsense']}),
            Step('of no type', LIST_GROUPS, lambda c: {'types_filter': ['nonsense']}),
            Step('of a type', LIST_GROUPS, lambda c: {'types_filter': ['consumer']}),
        ],
        versions='4+',
    ),
    one('list all groups', LIST_GROUPS, lambda c: {}, versions='high'),
    Scenario(
        'delete groups',
        (DELETE_GROUPS,),
        [
            Step('commit', OFFSET_COMMIT, commit),
            Step('unknown', DELETE_GROUPS, lambda c: {'groups_names': [c.group('u'), '']}),
            Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
            Step('nothing', DELETE_GROUPS, lambda c: {'groups_names': []}),
        ],
    ),
    one('join', JOIN_GROUP, join, versions=REFUSED_ABOVE),
]

SCRIPT = [*OFFSETS_SCRIPT, *GROUPS_SCRIPT]
