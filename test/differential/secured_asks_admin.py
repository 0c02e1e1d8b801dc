"""What people ask a secured broker about transactions and the cluster; see secured_asks.py."""

from __future__ import annotations

from typing import Any, Dict, List

from test.differential.secured_asks import (
    IDS,
    TOPICS,
    UNKNOWN_ID,
    Ask,
    each_topic,
    nothing,
    offsets,
)

ANY = {
    'resource_type_filter': 1,
    'resource_name_filter': None,
    'pattern_type_filter': 1,
    'principal_filter': 'User:nobody',
    'host_filter': None,
    'operation': 1,
    'permission_type': 1,
}

# ---------------------------------------------------------------- transactions


def _producer(**fields: Any) -> Dict[str, Any]:
    return {'producer_id': 4711, 'producer_epoch': 0, **fields}


TRANSACTION_REQUESTS = [
    *(
        Ask(
            'init %s' % name,
            22,
            lambda v, c, name=name: {
                'transactional_id': name,
                'transaction_timeout_ms': 10000,
                'producer_id': -1,
                'producer_epoch': -1,
            },
        )
        for name in (None, 'x-seen', 'x-hidden')
    ),
    *(
        Ask(
            'add partitions ' + name,
            24,
            lambda v, c, name=name: {
                'v3_and_below_transactional_id': name,
                'v3_and_below_producer_id': 4711,
                'v3_and_below_producer_epoch': 0,
                'v3_and_below_topics': each_topic(c, partitions=[0]),
            },
            (0, 3),
        )
        for name in IDS
    ),
    Ask(
        'add partitions as a broker',
        24,
        lambda v, c: {
            'transactions': [
                _producer(transactional_id='x-full', topics=each_topic(c, partitions=[0]))
            ]
        },
        (4, 99),
    ),
    *(
        Ask(
            'add offsets %s %s' % (name, group),
            25,
            lambda v, c, name=name, group=group: _producer(transactional_id=name, group_id=group),
        )
        for name, group in (('x-hidden', 'g-full'), ('x-full', 'g-hidden'))
    ),
    Ask('end', 26, lambda v, c: _producer(transactional_id='x-hidden', committed=True)),
    *(
        Ask(
            'commit offsets %s %s' % (name, group),
            28,
            lambda v, c, name=name, group=group: offsets(
                v,
                c,
                6,
                **_producer(
                    transactional_id=name, group_id=group, generation_id_or_member_epoch=-1
                ),
            ),
        )
        for name, group in (('x-hidden', 'g-full'), ('x-full', 'g-hidden'))
    ),
    Ask(
        'markers',
        27,
        lambda v, c: {
            'markers': [
                _producer(
                    transaction_result=True,
                    topics=[{'name': 'full', 'partition_indexes': [0]}],
                    coordinator_epoch=0,
                )
            ]
        },
    ),
    Ask('describe transactions', 65, lambda v, c: {'transactional_ids': list(IDS)}),
    Ask('list transactions', 66, nothing),
]

# ---------------------------------------------------------------- cluster


def _resources(configs: Any = ()) -> List[Dict[str, Any]]:
    places = [(2, name) for name in TOPICS] + [(4, '0'), (8, '0'), (32, 'g-full'), (32, 'g-hidden')]
    return [
        {'resource_type': kind, 'resource_name': name, **dict(configs)} for kind, name in places
    ]


def _resources_of(c: Any, configs: Any = ()) -> List[Dict[str, Any]]:
    newest = 32 if c.release.version >= (4, 0) else 8 if c.release.version >= (2, 4) else 4
    return [each for each in _resources(configs) if each['resource_type'] <= newest]


CLUSTER_REQUESTS = [
    Ask('describe acls', 29, lambda v, c: dict(ANY)),
    Ask(
        'create acls',
        30,
        lambda v, c: {
            'creations': [
                {
                    'resource_type': 2,
                    'resource_name': 't%d' % n,
                    'resource_pattern_type': 3,
                    'principal': 'User:x',
                    'host': '*',
                    'operation': 3,
                    'permission_type': 3,
                }
                for n in range(2)
            ]
        },
    ),
    Ask('delete acls', 31, lambda v, c: {'filters': [dict(ANY), dict(ANY)]}),
    Ask(
        'describe configs',
        32,
        lambda v, c: {
            'resources': _resources_of(c, {'configuration_keys': ['retention.ms', 'nothing']})
        },
    ),
    Ask(
        'alter configs',
        33,
        lambda v, c: {
            'resources': [{'resource_type': 2, 'resource_name': n, 'configs': []} for n in TOPICS]
            + [{'resource_type': 4, 'resource_name': '0', 'configs': []}],
            'validate_only': True,
        },
    ),
    Ask(
        'alter configs one by one',
        44,
        lambda v, c: {'resources': _resources_of(c, {'configs': []}), 'validate_only': True},
    ),
    Ask(
        'move logs',
        34,
        lambda v, c: {
            'dirs': [{'path': '/nowhere', 'topics': [{'name': 'full', 'partitions': [0, 1]}]}]
        },
    ),
    Ask('log dirs', 35, lambda v, c: {'topics': None}),
    Ask(
        'elect leaders',
        43,
        lambda v, c: {
            'topic_partitions': [{'topic': 'full', 'partitions': [0]}],
            'timeout_ms': 5000,
        },
    ),
    Ask(
        'reassign',
        45,
        lambda v, c: {
            'timeout_ms': 5000,
            'topics': [{'name': 'full', 'partitions': [{'partition_index': 0, 'replicas': [0]}]}],
        },
    ),
    Ask('reassignments', 46, lambda v, c: {'timeout_ms': 5000, 'topics': None}),
    Ask('quotas', 48, nothing),
    Ask(
        'alter quotas',
        49,
        lambda v, c: {
            'entries': [{'entity': [{'entity_type': 'user', 'entity_name': 'x'}], 'ops': []}],
            'validate_only': True,
        },
    ),
    Ask('users', 50, lambda v, c: {'users': []}),
    Ask(
        'alter users',
        51,
        lambda v, c: {'deletions': [{'name': 'x', 'mechanism': 1}], 'upsertions': []},
    ),
    Ask(
        'quorum',
        55,
        lambda v, c: {
            'topics': [{'topic_name': '__cluster_metadata', 'partitions': [{'partition_index': 0}]}]
        },
    ),
    Ask(
        'features',
        57,
        lambda v, c: {
            'timeout_ms': 5000,
            'feature_updates': [{'feature': 'nothing', 'max_version_level': 1}],
        },
    ),
    Ask('cluster', 60, lambda v, c: {'include_cluster_authorized_operations': True}),
    Ask('unregister', 64, lambda v, c: {'broker_id': 99}),
    Ask('config resources', 74, nothing),
    Ask('remove voter', 81, lambda v, c: {'voter_id': 99, 'voter_directory_id': UNKNOWN_ID}),
    Ask('create token', 38, lambda v, c: {'renewers': [], 'max_lifetime_ms': 1000}),
    Ask(
        'create token for admin',
        38,
        lambda v, c: {
            'owner_principal_type': 'User',
            'owner_principal_name': 'admin',
            'renewers': [],
            'max_lifetime_ms': 1000,
        },
        (3, 99),
    ),
]
