"""Administration of the cluster: ACLs, quotas, users, tokens, features, the quorum.

No authorizer and no token secret are set, as in every default broker: ACLs and tokens are refused.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import KRAFT_SETTLES_LATE, Scenario, Step, one

DESCRIBE_ACLS = 29
CREATE_ACLS = 30
DELETE_ACLS = 31
CREATE_TOKEN = 38
RENEW_TOKEN = 39
EXPIRE_TOKEN = 40
DESCRIBE_TOKEN = 41
DESCRIBE_QUOTAS = 48
ALTER_QUOTAS = 49
DESCRIBE_SCRAM = 50
ALTER_SCRAM = 51
DESCRIBE_QUORUM = 55
UPDATE_FEATURES = 57
UNREGISTER_BROKER = 64
ADD_VOTER = 80
REMOVE_VOTER = 81
UNREGISTER_CONTROLLER = 94

TOPIC, ANY, ALLOW, READ, LITERAL = 2, 1, 3, 3, 3
SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2

ACL_FILTER = {
    'resource_type_filter': ANY,
    'resource_name_filter': None,
    'pattern_type_filter': 1,
    'principal_filter': None,
    'host_filter': None,
    'operation': ANY,
    'permission_type': ANY,
}
#: Version 0 knows literal patterns only.
OLD_FILTER = dict(ACL_FILTER, pattern_type_filter=LITERAL)
ACL = {
    'resource_type': TOPIC,
    'resource_name': 'a',
    'resource_pattern_type': LITERAL,
    'principal': 'User:alice',
    'host': '*',
    'operation': READ,
    'permission_type': ALLOW,
}

ACL_SCRIPT = [
    one('describe acls', DESCRIBE_ACLS, lambda c: ACL_FILTER if c.version else OLD_FILTER),
    one('create acls', CREATE_ACLS, lambda c: {'creations': [ACL, dict(ACL, resource_name='b')]}),
    one('create no acls', CREATE_ACLS, lambda c: {'creations': []}),
    one(
        'delete acls', DELETE_ACLS, lambda c: {'filters': [ACL_FILTER if c.version else OLD_FILTER]}
    ),
]

TOKEN_SCRIPT = [
    one('create token', CREATE_TOKEN, lambda c: {'renewers': [], 'max_lifetime_ms': -1}),
    one('renew token', RENEW_TOKEN, lambda c: {'hmac': b'x', 'renew_period_ms': -1}),
    one('expire token', EXPIRE_TOKEN, lambda c: {'hmac': b'x', 'expiry_time_period_ms': -1}),
    one('describe tokens', DESCRIBE_TOKEN, lambda c: {'owners': None}),
]


def _entity(**parts: Optional[str]) -> List[Dict[str, Any]]:
    return [
        {'entity_type': kind.replace('_', '-'), 'entity_name': name} for kind, name in parts.items()
    ]


def quota(
    key: str,
    value: float,
    remove: bool = False,
    validate_only: bool = False,
    **parts: Optional[str],
) -> Dict[str, Any]:
    """Return an AlterClientQuotas request."""
    ops = [{'key': key, 'value': value, 'remove': remove}]
    entries = [{'entity': _entity(**parts), 'ops': ops}]
    return {'entries': entries, 'validate_only': validate_only}


def _q(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, ALTER_QUOTAS, lambda c: quota(*arguments, **fields))


def _match(
    kind: str, match_type: int, match: Optional[str], strict: bool = False
) -> Dict[str, Any]:
    component = {'entity_type': kind, 'match_type': match_type, 'match': match}
    return {'components': [component], 'strict': strict}


def _m(name: str, *arguments: Any) -> Step:
    return Step(name, DESCRIBE_QUOTAS, lambda c: _match(*arguments))


QUOTA_SCRIPT = [
    Scenario(
        'quotas',
        (ALTER_QUOTAS, DESCRIBE_QUOTAS),
        [
            _m('none', 'user', 0, 'nobody'),
            _q('set', 'producer_byte_rate', 1048576.0, user='alice'),
            _q('set for client', 'consumer_byte_rate', 2097152.0, client_id='program'),
            _q('set for both', 'request_percentage', 50.0, user='alice', client_id='program'),
            _q('set default', 'producer_byte_rate', 4194304.0, user=None),
            _q('set unknown', 'no_such_rate', 1.0, user='alice'),
            _q('set for unknown', 'producer_byte_rate', 1.0, planet='earth'),
            _q('set negative', 'producer_byte_rate', -1.0, user='alice'),
            _q('set fraction', 'producer_byte_rate', 0.5, user='alice'),
            _q('set for nobody', 'producer_byte_rate', 1.0),
            _q('set empty name', 'producer_byte_rate', 1.0, user=''),
            _q('validate', 'producer_byte_rate', 5.0, validate_only=True, user='bob'),
            Step(
                'all',
                DESCRIBE_QUOTAS,
                lambda c: {'components': [], 'strict': False},
                settles=KRAFT_SETTLES_LATE,
            ),
            _m('of alice', 'user', 0, 'alice'),
            _m('of alice strictly', 'user', 0, 'alice', True),
            _m('of the default', 'user', 1, None),
            _m('of any user', 'user', 2, None),
            _m('of unknown type', 'planet', 2, None),
            _m('of match 9', 'user', 9, None),
            _m('of empty type', '', 2, None),
            _q('remove', 'producer_byte_rate', 0.0, True, user='alice'),
            _q('remove again', 'producer_byte_rate', 0.0, True, user='alice'),
            _q('remove default', 'producer_byte_rate', 0.0, True, user=None),
            _q('remove of client', 'consumer_byte_rate', 0.0, True, client_id='program'),
            _q(
                'remove of both', 'request_percentage', 0.0, True, user='alice', client_id='program'
            ),
            Step(
                'all then',
                DESCRIBE_QUOTAS,
                lambda c: {'components': [], 'strict': False},
                settles=KRAFT_SETTLES_LATE,
            ),
        ],
    )
]


def user(name: str, mechanism: int = SCRAM_SHA_256, iterations: int = 4096) -> Dict[str, Any]:
    """Return a request that gives a user a SCRAM credential."""
    upsertion = {
        'name': name,
        'mechanism': mechanism,
        'iterations': iterations,
        'salt': b'salt',
        'salted_password': b'p' * 32,
    }
    return {'deletions': [], 'upsertions': [upsertion]}


def _gone(name: str, mechanism: int = SCRAM_SHA_256) -> Dict[str, Any]:
    return {'deletions': [{'name': name, 'mechanism': mechanism}], 'upsertions': []}


def _users(*names: str) -> Dict[str, Any]:
    return {'users': [{'name': name} for name in names]}


SCRAM_SCRIPT = [
    Scenario(
        'users',
        (ALTER_SCRAM,),
        [
            Step('nobody', DESCRIBE_SCRAM, lambda c: {'users': None}),
            Step('add', ALTER_SCRAM, lambda c: user('alice')),
            Step('add other', ALTER_SCRAM, lambda c: user('alice', SCRAM_SHA_512, 8192)),
            Step('few iterations', ALTER_SCRAM, lambda c: user('bob', iterations=10)),
            Step('many iterations', ALTER_SCRAM, lambda c: user('bob', iterations=1_000_000)),
            Step('unknown mechanism', ALTER_SCRAM, lambda c: user('bob', 9)),
            Step('no name', ALTER_SCRAM, lambda c: user('')),
            Step('delete none', ALTER_SCRAM, lambda c: _gone('bob')),
            Step('twice', ALTER_SCRAM, lambda c: dict(_gone('alice'), **user('alice'))),
            Step('nothing', ALTER_SCRAM, lambda c: {'deletions': [], 'upsertions': []}),
            Step(
                'some',
                DESCRIBE_SCRAM,
                lambda c: _users('alice', 'bob'),
                settles=KRAFT_SETTLES_LATE,
            ),
            Step('same twice', DESCRIBE_SCRAM, lambda c: _users('alice', 'alice')),
            Step('empty name', DESCRIBE_SCRAM, lambda c: _users('')),
            Step('delete', ALTER_SCRAM, lambda c: _gone('alice', SCRAM_SHA_512)),
            Step('all', DESCRIBE_SCRAM, lambda c: {'users': []}, settles=KRAFT_SETTLES_LATE),
        ],
    )
]


def feature(name: str, level: int, upgrade_type: int = 1, **fields: Any) -> Dict[str, Any]:
    """Return an UpdateFeatures request."""
    update = {'feature': name, 'max_version_level': level, 'upgrade_type': upgrade_type}
    return dict({'timeout_ms': 10000, 'feature_updates': [update]}, **fields)


def _voter(c: Any) -> Dict[str, Any]:
    return {'cluster_id': None, 'voter_id': 7, 'voter_directory_id': b'\x07' * 16}


def quorum(topic: str) -> Dict[str, Any]:
    """Return a DescribeQuorum request."""
    return {'topics': [{'topic_name': topic, 'partitions': [{'partition_index': 0}]}]}


FEATURE_SCRIPT = [
    Scenario(
        'features',
        (UPDATE_FEATURES,),
        [
            Step('unknown', UPDATE_FEATURES, lambda c: feature('no.such.feature', 1)),
            Step('level 0 of unknown', UPDATE_FEATURES, lambda c: feature('no.such.feature', 0)),
            Step('nothing', UPDATE_FEATURES, lambda c: {'feature_updates': []}),
            Step('no name', UPDATE_FEATURES, lambda c: feature('', 1)),
            Step('too high', UPDATE_FEATURES, lambda c: feature('metadata.version', 9999)),
            Step(
                'too high, validated',
                UPDATE_FEATURES,
                lambda c: feature('metadata.version', 9999, validate_only=True),
            ),
            Step('negative', UPDATE_FEATURES, lambda c: feature('metadata.version', -1)),
            Step('kind 9', UPDATE_FEATURES, lambda c: feature('metadata.version', 1, 9)),
        ],
    ),
    one('quorum', DESCRIBE_QUORUM, lambda c: quorum('__cluster_metadata')),
    one('quorum of other', DESCRIBE_QUORUM, lambda c: quorum('other')),
    one('quorum of nothing', DESCRIBE_QUORUM, lambda c: {'topics': []}),
    one('unregister unknown', UNREGISTER_BROKER, lambda c: {'broker_id': 7}, kraft=True),
    one('unregister unknown controller', UNREGISTER_CONTROLLER, lambda c: {'controller_id': 7}),
    one('add voter', ADD_VOTER, lambda c: dict(_voter(c), timeout_ms=1000, listeners=[])),
    one('remove voter', REMOVE_VOTER, _voter),
]

SCRIPT = [*ACL_SCRIPT, *TOKEN_SCRIPT, *QUOTA_SCRIPT, *SCRAM_SCRIPT, *FEATURE_SCRIPT]
