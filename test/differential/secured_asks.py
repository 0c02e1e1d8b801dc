"""What people ask a secured broker about records, topics and groups, which they may see or not.

An ``Ask`` is one way to ask an API; a function of a version and a context gives the fields.
Names of resources say what alice may do with them: ``full`` everything, ``seen`` describe,
``hidden`` nothing; ``absent`` topics are not there.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from kafka.protocol.wire import ZERO_UUID
from test.differential.records import made, natural_magic

TOPICS = ('full', 'seen', 'hidden', 'absent', 'absent-full')
THERE = ('full', 'seen', 'hidden')
GROUPS = ('g-full', 'g-seen', 'g-hidden')
IDS = ('x-full', 'x-seen', 'x-hidden')
UNKNOWN_ID = b'\x07' * 16

Fields = Callable[[int, Any], Dict[str, Any]]


class Ask(NamedTuple):
    """One way to ask an API; ``versions`` are the first and the last that it makes sense for."""

    name: str
    api: int
    fields: Fields
    versions: Tuple[int, int] = (0, 99)


def each_topic(c: Any, field: str = 'name', by_id: bool = False, **parts: Any) -> List[Any]:
    """Return an item for each topic, by name or, those that there are, by id."""
    if not by_id:
        return [{field: name, **parts} for name in TOPICS]
    return [{field: '', 'topic_id': c.ids[name], **parts} for name in THERE] + [
        {field: '', 'topic_id': UNKNOWN_ID, **parts}
    ]


# ---------------------------------------------------------------- records


def _produce(v: int, c: Any, **fields: Any) -> Dict[str, Any]:
    options = {key: fields.pop(key) for key in ('producer_id', 'transactional') if key in fields}
    magic = min(natural_magic(v), c.release.highest_magic)
    if 'producer_id' in options:
        options.update(producer_epoch=0, base_sequence=0)
    parts = [{'index': 0, 'records': made(magic, c.now_ms, **options)}]
    return {
        'transactional_id': None,
        'acks': 1,
        'timeout_ms': 1000,
        'topic_data': each_topic(c, by_id=v >= 13, partition_data=parts),
        **fields,
    }


def _fetch(v: int, c: Any, **fields: Any) -> Dict[str, Any]:
    parts = [{'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': 1000}]
    return {
        'replica_id': -1,
        'max_wait_ms': 50,
        'min_bytes': 0,
        'max_bytes': 1 << 20,
        'session_epoch': -1,
        'topics': each_topic(c, 'topic', v >= 13, partitions=parts),
        **fields,
    }


def nothing(v: int, c: Any, **fields: Any) -> Dict[str, Any]:
    return fields


RECORDS = [
    Ask('produce', 0, _produce),
    Ask('produce idempotent', 0, lambda v, c: _produce(v, c, producer_id=4711), (3, 99)),
    Ask(
        'produce in a hidden transaction',
        0,
        lambda v, c: _produce(
            v, c, producer_id=4711, transactional=True, transactional_id='x-hidden'
        ),
        (3, 99),
    ),
    Ask('fetch', 1, _fetch),
    Ask('fetch as a follower', 1, lambda v, c: _fetch(v, c, replica_id=1), (0, 14)),
    Ask(
        'list offsets',
        2,
        lambda v, c: {
            'replica_id': -1,
            'topics': each_topic(
                c, partitions=[{'partition_index': 0, 'timestamp': -2, 'max_num_offsets': 1}]
            ),
        },
    ),
    Ask(
        'epochs',
        23,
        lambda v, c: {
            'replica_id': -1,
            'topics': each_topic(c, 'topic', partitions=[{'partition': 0, 'leader_epoch': 0}]),
        },
    ),
    Ask(
        'delete records',
        21,
        lambda v, c: {
            'topics': each_topic(c, partitions=[{'partition_index': 0, 'offset': 0}]),
            'timeout_ms': 1000,
        },
    ),
    Ask('producers', 61, lambda v, c: {'topics': each_topic(c, partition_indexes=[0])}),
]

# ---------------------------------------------------------------- topics


def _metadata(v: int, c: Any, **fields: Any) -> Dict[str, Any]:
    return {
        'allow_auto_topic_creation': True,
        'include_cluster_authorized_operations': True,
        'include_topic_authorized_operations': True,
        **fields,
    }


def _creations(v: int, *names: str) -> List[Dict[str, Any]]:
    return [
        {'name': '%s-%d' % (name, v), 'num_partitions': 1, 'replication_factor': 1}
        for name in names
    ]


TOPIC_REQUESTS = [
    Ask('metadata of all', 3, lambda v, c: _metadata(v, c, topics=None if v else [])),
    Ask('metadata', 3, lambda v, c: _metadata(v, c, topics=each_topic(c)), (4, 99)),
    Ask(
        'metadata without creation',
        3,
        lambda v, c: _metadata(
            v, c, topics=[{'name': n} for n in THERE], allow_auto_topic_creation=False
        ),
    ),
    Ask(
        'metadata by id',
        3,
        lambda v, c: _metadata(
            v,
            c,
            topics=[{'name': None, 'topic_id': c.ids[n]} for n in THERE]
            + [{'name': None, 'topic_id': UNKNOWN_ID}],
        ),
        (12, 99),
    ),
    Ask(
        'describe topics',
        75,
        lambda v, c: {'topics': each_topic(c), 'response_partition_limit': 100},
    ),
    Ask('describe all topics', 75, lambda v, c: {'response_partition_limit': 100}),
    Ask(
        'create topics',
        19,
        lambda v, c: {
            'topics': _creations(v, 'new-' + c.who, 'made-' + c.who),
            'timeout_ms': 5000,
        },
    ),
    Ask(
        'create partitions',
        37,
        lambda v, c: {
            'topics': [{'name': n, 'count': 3, 'assignments': None} for n in TOPICS],
            'timeout_ms': 5000,
            'validate_only': True,
        },
    ),
]

TOPIC_DELETIONS = [
    Ask(
        'delete topics',
        20,
        lambda v, c: {
            'topic_names': ['seen', 'hidden', 'absent'],
            'topics': [{'name': n, 'topic_id': ZERO_UUID} for n in ('seen', 'hidden', 'absent')],
            'timeout_ms': 5000,
        },
    ),
    Ask(
        'delete topics by id',
        20,
        lambda v, c: {
            'topics': [
                {'name': None, 'topic_id': each}
                for each in (c.ids['seen'], c.ids['hidden'], UNKNOWN_ID)
            ],
            'timeout_ms': 5000,
        },
        (6, 99),
    ),
]

# ---------------------------------------------------------------- groups


def _member(v: int, c: Any, group: str, **fields: Any) -> Dict[str, Any]:
    return {'group_id': group, 'member_id': 'm', **fields}


def offsets(v: int, c: Any, by_id_from: int, **fields: Any) -> Dict[str, Any]:
    parts = [{'partition_index': 0, 'committed_offset': 1, 'committed_metadata': ''}]
    return {'topics': each_topic(c, by_id=v >= by_id_from, partitions=parts), **fields}


GROUP_REQUESTS = [
    *(
        Ask(
            'find %s' % key,
            10,
            lambda v, c, key=key, kind=kind: {
                'key': key,
                'key_type': kind,
                'coordinator_keys': [key],
            },
            (kind, 99),
        )
        for keys, kind in ((GROUPS, 0), (IDS, 1))
        for key in keys
    ),
    Ask(
        'find several',
        10,
        lambda v, c: {'key_type': 0, 'coordinator_keys': list(GROUPS)},
        (4, 99),
    ),
    Ask(
        'join hidden',
        11,
        lambda v, c: _member(
            v,
            c,
            'g-hidden',
            session_timeout_ms=10000,
            rebalance_timeout_ms=10000,
            member_id='',
            protocol_type='consumer',
            protocols=[{'name': 'range', 'metadata': b''}],
        ),
    ),
    Ask('heartbeat seen', 12, lambda v, c: _member(v, c, 'g-seen', generation_id=1)),
    Ask(
        'leave hidden',
        13,
        lambda v, c: {
            'group_id': 'g-hidden',
            'member_id': 'm',
            'members': [{'member_id': 'm'}],
        },
    ),
    Ask(
        'sync hidden',
        14,
        lambda v, c: _member(
            v, c, 'g-hidden', generation_id=1, protocol_type='consumer', protocol_name='range'
        ),
    ),
    Ask(
        'describe groups',
        15,
        lambda v, c: {'groups': list(GROUPS), 'include_authorized_operations': True},
    ),
    Ask('list groups', 16, nothing),
    Ask('delete groups', 42, lambda v, c: {'groups_names': ['g-seen', 'g-hidden']}),
    *(
        Ask(
            'commit ' + group,
            8,
            lambda v, c, group=group: offsets(
                v, c, 10, group_id=group, generation_id_or_member_epoch=-1
            ),
            (1, 99),
        )
        for group in GROUPS
    ),
    *(
        Ask(
            'offsets of ' + group,
            9,
            lambda v, c, group=group: {
                'group_id': group,
                'topics': each_topic(c, partition_indexes=[0]),
            },
            (1, 7),
        )
        for group in GROUPS
    ),
    Ask('all offsets of g-full', 9, lambda v, c: {'group_id': 'g-full', 'topics': None}, (2, 7)),
    Ask(
        'offsets of groups',
        9,
        lambda v, c: {
            'groups': [
                {
                    'group_id': group,
                    'topics': each_topic(c, by_id=v >= 10, partition_indexes=[0]),
                }
                for group in GROUPS
            ]
        },
        (8, 99),
    ),
    Ask(
        'all offsets of groups',
        9,
        lambda v, c: {'groups': [{'group_id': group, 'topics': None} for group in GROUPS]},
        (8, 99),
    ),
    *(
        Ask(
            'delete offsets of ' + group,
            47,
            lambda v, c, group=group: {
                'group_id': group,
                'topics': each_topic(c, partitions=[{'partition_index': 1}]),
            },
        )
        for group in GROUPS
    ),
    *(
        Ask(
            'new heartbeat ' + name,
            68,
            lambda v, c, group=group, topics=topics: {
                'group_id': group,
                'member_id': 'A' * 22,
                'member_epoch': 0,
                'rebalance_timeout_ms': 10000,
                'subscribed_topic_names': topics,
                'topic_partitions': [],
            },
        )
        for name, group, topics in (
            ('hidden', 'g-hidden', ['full']),
            ('to hidden', 'g-new', ['full', 'hidden']),
        )
    ),
    Ask(
        'describe new groups',
        69,
        lambda v, c: {'group_ids': list(GROUPS), 'include_authorized_operations': True},
    ),
    Ask(
        'share heartbeat hidden',
        76,
        lambda v, c: {
            'group_id': 'g-hidden',
            'member_id': 'A' * 22,
            'member_epoch': 0,
            'subscribed_topic_names': ['full'],
        },
    ),
    Ask(
        'describe share groups',
        77,
        lambda v, c: {'group_ids': list(GROUPS), 'include_authorized_operations': True},
    ),
    Ask(
        'share offsets',
        90,
        lambda v, c: {
            'groups': [
                {'group_id': 'g-hidden', 'topics': [{'topic_name': 'full', 'partitions': [0]}]}
            ]
        },
    ),
]
