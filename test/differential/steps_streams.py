"""Streams groups (KIP-1071): members, topologies, tasks, internal topics."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import Scenario, Step
from test.differential.steps_groups import commit, join, stored
from test.differential.steps_later import MEMBER, set_config

METADATA = 3
OFFSET_COMMIT = 8
OFFSET_FETCH = 9
JOIN_GROUP = 11
DESCRIBE_GROUPS = 15
DELETE_GROUPS = 42
OFFSET_DELETE = 47
SHARE_HEARTBEAT = 76
STREAMS_HEARTBEAT = 88
STREAMS_DESCRIBE = 89
STREAMS_UPDATE = 93

OTHER = 'AAAAAAAAAAAAAAAAAAAAAg'


def _streams(c: Any, epoch: int, **fields: Any) -> Dict[str, Any]:
    asked = {
        'group_id': c.group(),
        'member_id': MEMBER,
        'member_epoch': epoch,
        'endpoint_information_epoch': 0,
    }
    return dict(asked, **fields)


def _info(name: str, partitions: int = 0) -> Dict[str, Any]:
    return {'name': name, 'partitions': partitions, 'replication_factor': 1, 'topic_configs': []}


def _part(c: Any, name: str = '0', **fields: Any) -> Dict[str, Any]:
    part = {
        'subtopology_id': name,
        'source_topics': [c.group_topic()],
        'source_topic_regex': [],
        'state_changelog_topics': [],
        'repartition_sink_topics': [],
        'repartition_source_topics': [],
        'copartition_groups': [],
    }
    return dict(part, **fields)


def _topology(*parts: Dict[str, Any], epoch: int = 0) -> Dict[str, Any]:
    return {'epoch': epoch, 'subtopologies': list(parts)}


def _join(c: Any, **fields: Any) -> Dict[str, Any]:
    asked = {
        'rebalance_timeout_ms': 10000,
        'topology': _topology(_part(c)),
        'process_id': 'process',
        'active_tasks': [],
        'standby_tasks': [],
        'warmup_tasks': [],
        'client_tags': [],
    }
    return _streams(c, 0, **dict(asked, **fields))


def _h(name: str, epoch: int, **fields: Any) -> Step:
    return Step(name, STREAMS_HEARTBEAT, lambda c: _streams(c, epoch, **fields))


def _j(name: str, **fields: Any) -> Step:
    return Step(name, STREAMS_HEARTBEAT, lambda c: _join(c, **fields))


def _describe(name: str) -> Step:
    return Step(name, STREAMS_DESCRIBE, lambda c: {'group_ids': [c.group()]})


STREAMS: List[Step] = [
    _j('join'),
    _h('unknown member', 1, member_id='unknown'),
    _h('no group', 0, group_id=''),
    Step('describe', STREAMS_DESCRIBE, lambda c: {'group_ids': [c.group(), c.name('none')]}),
    _h('leave', -1),
    _describe('describe after'),
]


# ------------------------------------------------------------ what makes no sense

BAD: List[Step] = [
    _h('leave before', -1),
    _h('heartbeat before', 1),
    _j('no member', member_id=''),
    _j('empty rack', rack_id=''),
    _j('empty instance', instance_id=''),
    _j('no rebalance timeout', rebalance_timeout_ms=-1),
    _j('null tasks', active_tasks=None, standby_tasks=None, warmup_tasks=None),
    _j('tasks', active_tasks=[{'subtopology_id': '0', 'partitions': [0]}]),
    _j('no topology', topology=None),
    _h('leave for a while', -2),
    _h('epoch -3', -3),
    _h('tasks of one kind', 1, active_tasks=[]),
    Step(
        'topology later',
        STREAMS_HEARTBEAT,
        lambda c: _streams(c, 1, topology=_topology(_part(c))),
    ),
    Step(
        'sources by pattern',
        STREAMS_HEARTBEAT,
        lambda c: _join(c, topology=_topology(_part(c, source_topic_regex=['a.*']))),
    ),
    Step(
        'counted changelog',
        STREAMS_HEARTBEAT,
        lambda c: _join(
            c, topology=_topology(_part(c, state_changelog_topics=[_info(c.name('log'), 3)]))
        ),
    ),
    Step(
        'uncountable repartition',
        STREAMS_HEARTBEAT,
        lambda c: _join(
            c, topology=_topology(_part(c, repartition_source_topics=[_info(c.name('mid'))]))
        ),
    ),
    Step(
        'copartition of none',
        STREAMS_HEARTBEAT,
        lambda c: _join(
            c,
            topology=_topology(
                _part(
                    c,
                    copartition_groups=[
                        {
                            'source_topics': [7],
                            'source_topic_regex': [],
                            'repartition_source_topics': [],
                        }
                    ],
                )
            ),
        ),
    ),
    _describe('describe of none'),
    _j('no process', process_id=None),
    Step('describe of nobody', STREAMS_DESCRIBE, lambda c: {'group_ids': ['', c.name('none')]}),
    _describe('describe'),
]


# ------------------------------------------------------------ tasks


def _without_delay(c: Any) -> None:
    set_config(c, 'streams.initial.rebalance.delay.ms', '0')


def _first(name: str, **fields: Any) -> Step:
    """Return the step by which the first member joins and gets its tasks at once."""

    def asked(c: Any) -> Dict[str, Any]:
        _without_delay(c)
        return _join(c, **fields)

    return Step(name, STREAMS_HEARTBEAT, asked, keep=_keep)


def _keep(c: Any, answer: Any) -> None:
    if not answer.error_code:
        c.values['epoch'] = answer.member_epoch
        if answer.active_tasks is not None:
            c.values['tasks'] = [
                {'subtopology_id': each.subtopology_id, 'partitions': each.partitions}
                for each in answer.active_tasks
            ]


def _told(c: Any, **fields: Any) -> Dict[str, Any]:
    tasks = {'active_tasks': c.values['tasks'], 'standby_tasks': [], 'warmup_tasks': []}
    return _streams(c, c.values['epoch'], **dict(tasks, **fields))


def _t(name: str, **fields: Any) -> Step:
    return Step(name, STREAMS_HEARTBEAT, lambda c: _told(c, **fields), keep=_keep)


def _commit(c: Any, epoch: int = 0, member: Optional[str] = None) -> Dict[str, Any]:
    return commit(
        c,
        9,
        generation_id_or_member_epoch=c.values['epoch'] + epoch,
        member_id=MEMBER if member is None else member,
    )


TASKS: List[Step] = [
    _first('join'),
    _t('own'),
    _describe('describe'),
    Step('describe as classic', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
    _t('later epoch', member_epoch=99),
    _j('other topology', member_id=OTHER, topology=_topology()),
    Step(
        'newer topology',
        STREAMS_HEARTBEAT,
        lambda c: _join(c, member_id=OTHER, topology=_topology(_part(c), epoch=1)),
    ),
    _t('tell unknown tasks', active_tasks=[{'subtopology_id': '9', 'partitions': [0]}]),
    _t('tell too many', active_tasks=[{'subtopology_id': '0', 'partitions': [0, 1, 2]}]),
    _t('tell rack', rack_id='r'),
    Step('commit', OFFSET_COMMIT, _commit),
    Step('commit in next epoch', OFFSET_COMMIT, lambda c: _commit(c, 1)),
    Step('commit as other', OFFSET_COMMIT, lambda c: _commit(c, 0, 'other')),
    Step('commit as nobody', OFFSET_COMMIT, commit),
    Step(
        'fetch offsets',
        OFFSET_FETCH,
        lambda c: stored(c, member_id=MEMBER, member_epoch=c.values['epoch']),
    ),
    Step(
        'delete offsets',
        OFFSET_DELETE,
        lambda c: {
            'group_id': c.group(),
            'topics': [{'name': c.topic(), 'partitions': [{'partition_index': 0}]}],
        },
    ),
    Step('join as consumer', JOIN_GROUP, lambda c: join(c, '')),
    Step(
        'join as share member',
        SHARE_HEARTBEAT,
        lambda c: {
            'group_id': c.group(),
            'member_id': OTHER,
            'member_epoch': 0,
            'subscribed_topic_names': [c.group_topic()],
        },
    ),
    _t('shut down', shutdown_application=True),
    Step('delete with member', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    Step(
        'describe topology',
        STREAMS_DESCRIBE,
        lambda c: {'group_ids': [c.group()], 'include_topology_description': True},
        when=lambda c: c.version >= 1,
    ),
    Step(
        'update description',
        STREAMS_UPDATE,
        lambda c: {
            'group_id': c.group(),
            'member_id': MEMBER,
            'topology_epoch': 0,
            'topology_description': {'subtopologies': [], 'global_stores': []},
        },
    ),
    _h('leave', -1),
    _h('heartbeat after', 1),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    _describe('describe at last'),
]

STALE: List[Step] = [
    Step(
        'join',
        STREAMS_HEARTBEAT,
        lambda c: (_without_delay(c), _join(c, topology=_topology(_part(c), epoch=2)))[1],
    ),
    _j('join with an older one', member_id=OTHER, process_id='other'),
]

ENDPOINT: List[Step] = [
    _first('join', user_endpoint={'host': 'h', 'port': 1}),
    _t('heartbeat', endpoint_information_epoch=1),
    _t('heartbeat without', endpoint_information_epoch=0),
    _describe('describe'),
]

STATIC: List[Step] = [
    _first('join', instance_id='i'),
    _j('join as other', instance_id='i', member_id=OTHER),
    _h('heartbeat as other', 1, instance_id='i', member_id=OTHER),
    _h('leave for a while', -2, instance_id='i'),
    _j('return', instance_id='i', member_id=OTHER),
    _h('heartbeat of the old', 1, instance_id='i'),
    _h('leave as the old', -1, instance_id='i'),
    _h('leave unknown instance', -1, instance_id='none'),
    _h('leave', -1, instance_id='i', member_id=OTHER),
]


def _missing(c: Any) -> Dict[str, Any]:
    _without_delay(c)
    return _join(c, topology=_topology(_part(c, source_topics=[c.name('none')])))


def _internal(c: Any) -> Dict[str, Any]:
    _without_delay(c)
    parts = [
        _part(c, '0', repartition_sink_topics=[c.name('mid')]),
        _part(
            c,
            '1',
            source_topics=[],
            repartition_source_topics=[_info(c.name('mid'))],
            state_changelog_topics=[_info(c.name('log'))],
        ),
    ]
    return _join(c, topology=_topology(*parts))


def _created(c: Any) -> Dict[str, Any]:
    names = [c.name('mid'), c.name('log')]

    def are_there() -> bool:
        asked = {'topics': [{'name': name} for name in names], 'allow_auto_topic_creation': False}
        return all(not each.error_code for each in c.ask(METADATA, asked).topics)

    c.until(are_there, 'internal topics')
    return {'topics': [{'name': name} for name in names], 'allow_auto_topic_creation': False}


INTERNAL: List[Step] = [
    Step('join', STREAMS_HEARTBEAT, _internal, keep=_keep),
    Step('metadata', METADATA, _created),
    _describe('describe'),
]

MISSING: List[Step] = [
    Step('join', STREAMS_HEARTBEAT, _missing, keep=_keep),
    _describe('describe'),
]


def _of(name: str, member: str, epoch: Optional[int] = None, **fields: Any) -> Step:
    """Return the heartbeat of one of several members, in the epoch that it was told last."""

    def asked(c: Any) -> Dict[str, Any]:
        known = c.values.get(member, 0) if epoch is None else epoch
        return _streams(c, known, **dict({'member_id': member}, **fields))

    def keep(c: Any, answer: Any) -> None:
        c.values[member] = answer.member_epoch

    return Step(name, STREAMS_HEARTBEAT, asked, keep=keep)


def _joining(name: str, member: str, **fields: Any) -> Step:
    def asked(c: Any) -> Dict[str, Any]:
        _without_delay(c)
        set_config(c, 'streams.assignment.interval.ms', '0')
        return _join(c, **dict({'member_id': member, 'process_id': member}, **fields))

    return _of(name, member)._replace(fields=asked)


def _runs(name: str, member: str, *partitions: int) -> Step:
    active = [{'subtopology_id': '0', 'partitions': list(partitions)}] if partitions else []
    return _of(name, member, active_tasks=active, standby_tasks=[], warmup_tasks=[])


#: How a task goes from one member to another, and to the last one.
TWO: List[Step] = [
    _joining('a joins', 'a'),
    _joining('b joins', 'b'),
    _of('b waits', 'b'),
    _of('a hears', 'a'),
    _of('b waits on', 'b'),
    _of('a says nothing', 'a'),
    _runs('a has given back', 'a', 0),
    _of('b gets it', 'b'),
    _runs('b runs', 'b', 1),
    _joining('c joins', 'c'),
    _runs('a runs', 'a', 0),
    _of('a leaves', 'a', -1),
    _runs('b runs on', 'b', 1),
    _of('c gets it', 'c'),
    _joining('b joins again', 'b'),
    _of('b of long ago', 'b', 1),
]

SCRIPT = [
    Scenario('streams group', (STREAMS_HEARTBEAT, STREAMS_DESCRIBE), STREAMS),
    Scenario('bad streams group', (STREAMS_HEARTBEAT,), BAD),
    Scenario('streams tasks', (STREAMS_HEARTBEAT,), TASKS),
    Scenario('streams group of several', (STREAMS_HEARTBEAT,), TWO),
    Scenario('streams stale topology', (STREAMS_HEARTBEAT,), STALE),
    Scenario('streams endpoint', (STREAMS_HEARTBEAT,), ENDPOINT),
    Scenario('static streams group', (STREAMS_HEARTBEAT,), STATIC),
    Scenario('streams internal topics', (STREAMS_HEARTBEAT,), INTERNAL),
    Scenario('streams missing topics', (STREAMS_HEARTBEAT,), MISSING),
]
