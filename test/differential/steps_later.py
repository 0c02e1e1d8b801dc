"""Groups of the new protocols: consumers (KIP-848), shares (KIP-932), streams (KIP-1071).

One member each. The broker assigns in the background: a heartbeat is asked again until it does.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import Scenario, Step, one
from test.differential.steps_groups import commit, join, stored

OFFSET_COMMIT = 8
OFFSET_FETCH = 9
JOIN_GROUP = 11
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
DELETE_GROUPS = 42
CONSUMER_HEARTBEAT = 68
CONSUMER_DESCRIBE = 69
GET_TELEMETRY = 71
PUSH_TELEMETRY = 72
SHARE_HEARTBEAT = 76
SHARE_DESCRIBE = 77
SHARE_FETCH = 78
SHARE_ACKNOWLEDGE = 79
STREAMS_HEARTBEAT = 88
STREAMS_DESCRIBE = 89
DESCRIBE_SHARE_OFFSETS = 90
ALTER_SHARE_OFFSETS = 91
DELETE_SHARE_OFFSETS = 92

MEMBER = 'AAAAAAAAAAAAAAAAAAAAAQ'


def _beat(c: Any, epoch: Optional[int] = None, **fields: Any) -> Dict[str, Any]:
    """Return a heartbeat of the case's member."""
    asked = {
        'group_id': c.group(),
        'member_id': c.values.get('member', MEMBER),
        'member_epoch': c.values.get('epoch', 0) if epoch is None else epoch,
    }
    return dict(asked, **fields)


def _keep(c: Any, answer: Any) -> None:
    if not answer.error_code:
        c.values['member'] = answer.member_id
        c.values['epoch'] = answer.member_epoch


def _joined(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return the first heartbeat; before version 1 of the API brokers give out the ids."""
    gives = c.version == 0
    asked = {
        'member_id': '' if gives else MEMBER,
        'rebalance_timeout_ms': 10000,
        'subscribed_topic_names': [c.topic()],
        'topic_partitions': [],
    }
    return _beat(c, 0, **dict(asked, **fields))


def _h(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, CONSUMER_HEARTBEAT, lambda c: _beat(c, *arguments, **fields))


def _j(name: str, **fields: Any) -> Step:
    return Step(name, CONSUMER_HEARTBEAT, lambda c: _joined(c, **fields))


def _owned(c: Any) -> List[Dict[str, Any]]:
    return [{'topic_id': c.topic_id(c.topic()), 'partitions': [0, 1]}]


def _commit(c: Any, epoch: int = 0, member: Optional[str] = None) -> Dict[str, Any]:
    return commit(
        c,
        9,
        generation_id_or_member_epoch=c.values['epoch'] + epoch,
        member_id=c.values['member'] if member is None else member,
    )


def _asked(c: Any, epoch: int = 0) -> Dict[str, Any]:
    return stored(c, member_id=c.values['member'], member_epoch=c.values['epoch'] + epoch)


CONSUMER: List[Step] = [
    _j('join')._replace(keep=_keep),
    _h('heartbeat'),
    Step('own', CONSUMER_HEARTBEAT, lambda c: _beat(c, topic_partitions=_owned(c)), keep=_keep),
    Step(
        'describe',
        CONSUMER_DESCRIBE,
        lambda c: {'group_ids': [c.group(), c.name('none'), '']},
    ),
    Step('describe as classic', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
    Step('list', LIST_GROUPS, lambda c: {'types_filter': ['consumer']}),
    Step('commit', OFFSET_COMMIT, _commit),
    Step('commit in next epoch', OFFSET_COMMIT, lambda c: _commit(c, 1)),
    Step('commit as other', OFFSET_COMMIT, lambda c: _commit(c, 0, 'other')),
    Step('commit as nobody', OFFSET_COMMIT, commit),
    Step('fetch', OFFSET_FETCH, _asked),
    Step('fetch in next epoch', OFFSET_FETCH, lambda c: _asked(c, 1)),
    _h('heartbeat of other', 1, member_id='other'),
    _h('heartbeat in later epoch', 99),
    _h('heartbeat in epoch -3', -3),
    _h('own nothing known', topic_partitions=[{'topic_id': b'\x07' * 16, 'partitions': [0]}]),
    _h('subscribe to unknown', subscribed_topic_names=['unknown'])._replace(keep=_keep),
    _h('subscribe by pattern', subscribed_topic_regex='a.*')._replace(
        keep=_keep, when=lambda c: c.version >= 1
    ),
    _h('subscribe by bad pattern', subscribed_topic_regex='(')._replace(
        when=lambda c: c.version >= 1
    ),
    Step('join as classic', JOIN_GROUP, lambda c: join(c, '')),
    Step('delete with member', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    _h('leave', -1),
    _h('heartbeat after'),
    Step('describe after', CONSUMER_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    Step('describe at last', CONSUMER_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
]

CONSUMER_BAD: List[Step] = [
    _j('no group', group_id=''),
    _j('no member', member_id=''),
    _j('no subscription', subscribed_topic_names=None),
    _j('no rebalance timeout', rebalance_timeout_ms=-1),
    _j('no partitions', topic_partitions=None),
    _j('unknown assignor', server_assignor='no-such'),
    _j('empty instance', instance_id=''),
    _j('empty rack', rack_id=''),
    _h('unknown member', 1, member_id='unknown'),
    _h('leave unknown', -1, member_id='unknown'),
    _h('leave unknown instance', -2, member_id='unknown', instance_id='i'),
]

CONSUMER_STATIC: List[Step] = [
    _j('join', instance_id='instance')._replace(keep=_keep),
    _j('join as other', instance_id='instance', member_id='AAAAAAAAAAAAAAAAAAAAAg'),
    _h('leave for a while', -2, instance_id='instance'),
    _j('return', instance_id='instance', member_id='AAAAAAAAAAAAAAAAAAAAAw')._replace(keep=_keep),
    _h('heartbeat of the old', 1, instance_id='instance', member_id=MEMBER),
    Step('describe', CONSUMER_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
    _h('leave', -1, instance_id='instance'),
]


def _share(c: Any, epoch: Optional[int] = None, **fields: Any) -> Dict[str, Any]:
    return _beat(c, epoch, **fields)


def _s(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, SHARE_HEARTBEAT, lambda c: _share(c, *arguments, **fields))


def _share_fetch(
    c: Any, epoch: int, first: int = -1, last: int = -1, kind: int = 1, **fields: Any
) -> Dict[str, Any]:
    acknowledged = {'first_offset': first, 'last_offset': last, 'acknowledge_types': [kind]}
    part = {'partition_index': 0, 'acknowledgement_batches': [acknowledged] if first >= 0 else []}
    asked = {
        'group_id': c.group(),
        'member_id': c.values.get('member', MEMBER),
        'share_session_epoch': epoch,
        'max_wait_ms': 500,
        'min_bytes': 1,
        'max_bytes': 1 << 20,
        'max_records': 100,
        'batch_size': 100,
        'topics': [{'topic_id': c.topic_id(c.topic()), 'partitions': [part]}],
    }
    return dict(asked, **fields)


def _acknowledge(c: Any, epoch: int, first: int, last: int, kind: int = 1) -> Dict[str, Any]:
    fetched = _share_fetch(c, epoch, first, last, kind)
    names = ('group_id', 'member_id', 'share_session_epoch', 'topics')
    return {name: fetched[name] for name in names}


def _a(name: str, *arguments: Any) -> Step:
    return Step(name, SHARE_ACKNOWLEDGE, lambda c: _acknowledge(c, *arguments))


def _share_offsets(c: Any, *words: str) -> Dict[str, Any]:
    # Not of a partition that is none: 4.4.0 never answers that.
    topics = [{'topic_name': c.topic(), 'partitions': [0, 1]}]
    return {'groups': [{'group_id': c.group(), 'topics': topics}]}


def _alter_offsets(c: Any, offset: int) -> Dict[str, Any]:
    parts = [{'partition_index': 0, 'start_offset': offset}]
    return {'group_id': c.group(), 'topics': [{'topic_name': c.topic(), 'partitions': parts}]}


SHARE: List[Step] = [
    Step(
        'join',
        SHARE_HEARTBEAT,
        lambda c: _share(c, 0, subscribed_topic_names=[c.topic()]),
        keep=_keep,
    ),
    _s('heartbeat'),
    _s('heartbeat of other', 1, member_id='other'),
    _s('heartbeat in later epoch', 99),
    _s('no group', 0, group_id=''),
    _s('no topics', 0, member_id='x', subscribed_topic_names=None),
    Step('describe', SHARE_DESCRIBE, lambda c: {'group_ids': [c.group(), c.name('none')]}),
    Step('fetch at once', SHARE_FETCH, lambda c: _share_fetch(c, 0)),
    Step('fetch in wrong epoch', SHARE_FETCH, lambda c: _share_fetch(c, 9)),
    Step('fetch of other', SHARE_FETCH, lambda c: _share_fetch(c, 1, member_id='other')),
    _a('acknowledge nothing acquired', 1, 0, 0),
    _a('acknowledge kind 9', 2, 0, 0, 9),
    _a('acknowledge backwards', 3, 5, 2),
    Step('offsets', DESCRIBE_SHARE_OFFSETS, _share_offsets),
    Step('alter with member', ALTER_SHARE_OFFSETS, lambda c: _alter_offsets(c, 0)),
    Step('close', SHARE_FETCH, lambda c: _share_fetch(c, -1, topics=[])),
    _s('leave', -1),
    _s('heartbeat after'),
    Step('describe after', SHARE_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
    Step('alter', ALTER_SHARE_OFFSETS, lambda c: _alter_offsets(c, 0)),
    Step(
        'delete offsets',
        DELETE_SHARE_OFFSETS,
        lambda c: {'group_id': c.group(), 'topics': [{'topic_name': c.topic()}]},
    ),
    Step('delete', DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
]


def _streams(c: Any, epoch: int, **fields: Any) -> Dict[str, Any]:
    asked = {
        'group_id': c.group(),
        'member_id': MEMBER,
        'member_epoch': epoch,
        'endpoint_information_epoch': 0,
    }
    return dict(asked, **fields)


def _topology(c: Any) -> Dict[str, Any]:
    part = {
        'subtopology_id': '0',
        'source_topics': [c.topic()],
        'source_topic_regex': [],
        'state_changelog_topics': [],
        'repartition_sink_topics': [],
        'repartition_source_topics': [],
        'copartition_groups': [],
    }
    return {'epoch': 0, 'subtopologies': [part]}


def _streams_join(c: Any) -> Dict[str, Any]:
    return _streams(
        c,
        0,
        rebalance_timeout_ms=10000,
        topology=_topology(c),
        process_id='process',
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        client_tags=[],
    )


STREAMS: List[Step] = [
    Step('join', STREAMS_HEARTBEAT, _streams_join),
    Step('unknown member', STREAMS_HEARTBEAT, lambda c: _streams(c, 1, member_id='unknown')),
    Step('no group', STREAMS_HEARTBEAT, lambda c: _streams(c, 0, group_id='')),
    Step('describe', STREAMS_DESCRIBE, lambda c: {'group_ids': [c.group(), c.name('none')]}),
    Step('leave', STREAMS_HEARTBEAT, lambda c: _streams(c, -1)),
    Step('describe after', STREAMS_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
]


SCRIPT = [
    Scenario('consumer group', (CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE), CONSUMER),
    Scenario('bad consumer group', (CONSUMER_HEARTBEAT,), CONSUMER_BAD),
    Scenario('static consumer group', (CONSUMER_HEARTBEAT,), CONSUMER_STATIC),
    Scenario('share group', (SHARE_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE), SHARE),
    Scenario('streams group', (STREAMS_HEARTBEAT, STREAMS_DESCRIBE), STREAMS),
    one('telemetry', GET_TELEMETRY, lambda c: {'client_instance_id': bytes(16)}),
    one('push telemetry', PUSH_TELEMETRY, lambda c: {'client_instance_id': bytes(16)}),
]
