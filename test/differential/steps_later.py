"""Consumer groups of the new protocol (KIP-848).

Share groups are in steps_share.py, streams groups in steps_streams.py.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import Scenario, Step
from test.differential.steps_groups import commit, join, stored

OFFSET_COMMIT = 8
OFFSET_FETCH = 9
JOIN_GROUP = 11
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
DELETE_GROUPS = 42
ALTER_CONFIGS = 44
CONSUMER_HEARTBEAT = 68
CONSUMER_DESCRIBE = 69

MEMBER = 'AAAAAAAAAAAAAAAAAAAAAQ'


def beat(c: Any, epoch: Optional[int] = None, **fields: Any) -> Dict[str, Any]:
    """Return a heartbeat of the case's member."""
    asked = {
        'group_id': c.group(),
        'member_id': c.values.get('member', MEMBER),
        'member_epoch': c.values.get('epoch', 0) if epoch is None else epoch,
    }
    return dict(asked, **fields)


def keep_epoch(c: Any, answer: Any) -> None:
    if not answer.error_code:
        c.values['member'] = answer.member_id
        c.values['epoch'] = answer.member_epoch


def _joined(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return the first heartbeat; before version 1 of the API brokers give out the ids."""
    gives = c.version == 0
    asked = {
        'member_id': '' if gives else MEMBER,
        'rebalance_timeout_ms': 10000,
        'subscribed_topic_names': [c.group_topic()],
        'topic_partitions': [],
    }
    return beat(c, 0, **dict(asked, **fields))


def _h(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, CONSUMER_HEARTBEAT, lambda c: beat(c, *arguments, **fields))


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


def _is_member(c: Any) -> bool:
    return 'member' in c.values


CONSUMER: List[Step] = [
    _j('join')._replace(keep=keep_epoch),
    _h('heartbeat'),
    Step('own', CONSUMER_HEARTBEAT, lambda c: beat(c, topic_partitions=_owned(c)), keep=keep_epoch),
    Step(
        'describe',
        CONSUMER_DESCRIBE,
        lambda c: {'group_ids': [c.group(), c.name('none'), '']},
    ),
    Step('describe as classic', DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
    Step('list', LIST_GROUPS, lambda c: {'types_filter': ['consumer']}),
    Step('commit', OFFSET_COMMIT, _commit, when=_is_member),
    Step('commit in next epoch', OFFSET_COMMIT, lambda c: _commit(c, 1), when=_is_member),
    Step('commit as other', OFFSET_COMMIT, lambda c: _commit(c, 0, 'other'), when=_is_member),
    Step('commit as nobody', OFFSET_COMMIT, commit),
    Step('fetch', OFFSET_FETCH, _asked, when=_is_member),
    Step('fetch in next epoch', OFFSET_FETCH, lambda c: _asked(c, 1), when=_is_member),
    _h('heartbeat of other', 1, member_id='other'),
    _h('heartbeat in later epoch', 99),
    _h('heartbeat in epoch -3', -3),
    _h('own nothing known', topic_partitions=[{'topic_id': b'\x07' * 16, 'partitions': [0]}]),
    _h('subscribe to unknown', subscribed_topic_names=['unknown'])._replace(keep=keep_epoch),
    _h('subscribe by pattern', subscribed_topic_regex='a.*')._replace(
        keep=keep_epoch, when=lambda c: c.version >= 1
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
    _j('join', instance_id='instance')._replace(keep=keep_epoch),
    _j('join as other', instance_id='instance', member_id='AAAAAAAAAAAAAAAAAAAAAg'),
    _h('leave for a while', -2, instance_id='instance'),
    _j('return', instance_id='instance', member_id='AAAAAAAAAAAAAAAAAAAAAw')._replace(
        keep=keep_epoch
    ),
    _h('heartbeat of the old', 1, instance_id='instance', member_id=MEMBER),
    Step('describe', CONSUMER_DESCRIBE, lambda c: {'group_ids': [c.group()]}),
    _h('leave', -1, instance_id='instance'),
]


# ------------------------------------------------------------ several members


def set_config(c: Any, name: str, value: str) -> None:
    """Give the group of a case a setting."""
    config = {'name': name, 'config_operation': 0, 'value': value}
    resource = {'resource_type': 32, 'resource_name': c.group(), 'configs': [config]}
    c.ask(ALTER_CONFIGS, {'resources': [resource], 'validate_only': False})


def _of(name: str, member: str, epoch: Optional[int] = None, **fields: Any) -> Step:
    """Return the heartbeat of one of several members, in the epoch that it was told last."""

    def asked(c: Any) -> Dict[str, Any]:
        known = c.values.get(member, 0) if epoch is None else epoch
        return beat(c, known, **dict({'member_id': member}, **fields))

    def keep(c: Any, answer: Any) -> None:
        if not answer.error_code:
            c.values[member] = answer.member_epoch

    return Step(name, CONSUMER_HEARTBEAT, asked, keep=keep)


def _joining(name: str, member: str, **fields: Any) -> Step:
    def asked(c: Any) -> Dict[str, Any]:
        set_config(c, 'consumer.assignment.interval.ms', '0')
        return _joined(c, **dict({'member_id': member}, **fields))

    return _of(name, member)._replace(fields=asked)


def _owns(name: str, member: str, *partitions: int, **fields: Any) -> Step:
    def asked(c: Any) -> Dict[str, Any]:
        topics = [{'topic_id': c.topic_id(c.topic()), 'partitions': list(partitions)}]
        owned = {'member_id': member, 'topic_partitions': topics if partitions else []}
        return beat(c, c.values[member], **dict(owned, **fields))

    return _of(name, member)._replace(fields=asked)


#: How a partition goes from one member to another, and to the last one.
TWO: List[Step] = [
    _joining('a joins', 'a'),
    _joining('b joins', 'b'),
    _of('b waits', 'b'),
    _of('a hears', 'a'),
    _of('b waits on', 'b'),
    _of('a says nothing', 'a'),
    _owns('a has given back', 'a', 0),
    _of('b gets it', 'b'),
    _owns('b owns', 'b', 1),
    _joining('c joins', 'c'),
    _owns('a owns', 'a', 0),
    _owns('b owns on', 'b', 1),
    _of('a leaves', 'a', -1),
    _owns('b stays', 'b', 1),
    _of('c gets it', 'c'),
    _joining('b joins again', 'b'),
    _of('b of long ago', 'b', 1),
    _owns('c', 'c', 0),
    _of('b wants nothing', 'b', subscribed_topic_names=[]),
    _owns('b has given back', 'b'),
    _owns('c gets all', 'c', 0),
    _of('c prefers another assignor', 'c', server_assignor='range'),
    _owns('c owns all', 'c', 0, 1),
    _of('b comes back', 'b', subscribed_topic_names=None, rebalance_timeout_ms=9000),
]

#: The place of a static member, while it is away.
TWO_STATIC: List[Step] = [
    _joining('a joins', 'a', instance_id='i'),
    _joining('b joins', 'b'),
    _owns('a gives back', 'a', 0, instance_id='i'),
    _owns('a has given back', 'a', 0, instance_id='i'),
    _owns('b gets it', 'b'),
    _of('a leaves for a while', 'a', -2, instance_id='i'),
    _owns('b keeps its own', 'b', 1),
    _joining('z takes the place', 'z', instance_id='i'),
    _owns('b owns', 'b', 1),
    _of('z wants nothing', 'z', instance_id='i', subscribed_topic_names=[]),
    _owns('b waits', 'b', 1),
    _owns('z has given back', 'z', instance_id='i'),
    _owns('b gets all', 'b', 1),
]

SCRIPT = [
    Scenario('consumer group', (CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE), CONSUMER),
    Scenario('bad consumer group', (CONSUMER_HEARTBEAT,), CONSUMER_BAD),
    Scenario('consumer group of several', (CONSUMER_HEARTBEAT,), TWO, versions='1+'),
    Scenario(
        'consumer group of several and a static one',
        (CONSUMER_HEARTBEAT,),
        TWO_STATIC,
        versions='1+',
    ),
    Scenario('static consumer group', (CONSUMER_HEARTBEAT,), CONSUMER_STATIC),
]
