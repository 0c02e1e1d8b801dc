"""A cluster that asks who one is: SASL/PLAIN, ACLs, delegation tokens.

``admin`` may do everything and prepares topics and groups; ``alice`` may do what ACLs say.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from test.differential import steps_admin, steps_cluster, steps_groups
from test.differential import steps_transactions as transactions
from test.differential.script import KRAFT_SETTLES, KRAFT_SETTLES_LATE, Scenario, Step, one
from test.differential.secured_brokers import ADMIN, PASSWORDS
from test.differential.steps_basic import DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS
from test.differential.steps_cluster import (
    ACL,
    ACL_FILTER,
    CREATE_ACLS,
    CREATE_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_TOKEN,
    EXPIRE_TOKEN,
    RENEW_TOKEN,
)
from test.differential.steps_data import FETCH, PRODUCE, batch, fetch, produce
from test.differential.steps_fetch import LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, offsets
from test.differential.steps_groups import commit, join, stored
from test.testing.security.sasl.clients import plain

METADATA = 3
FIND_COORDINATOR = 10
SASL_HANDSHAKE = 17
API_VERSIONS = 18
DELETE_RECORDS = 21
SASL_AUTHENTICATE = 36

ALICE = 'alice'
PRINCIPAL = 'User:alice'
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, CREATE, DESCRIBE = 2, 3, 4, 5, 8
IDEMPOTENT_WRITE = 12
DENY, ALLOW = 2, 3

Fields = Callable[[Any], Dict[str, Any]]

# ------------------------------------------------------------ who has no ACL


def _partitions(c: Any, *fields: str) -> List[Dict[str, Any]]:
    """Return partition 0 of the case's topic, as requests nest it."""
    return [{fields[0]: c.topic(), fields[1]: [{fields[2]: 0}]}]


def _member(c: Any) -> Dict[str, Any]:
    return {'group_id': c.group(), 'generation_id': 1, 'member_id': 'm'}


def _owner(c: Any) -> None:
    c.values.update(id=1000, epoch=0, sequence=0)


def _transactional(fields: Fields) -> Fields:
    def build(c: Any) -> Dict[str, Any]:
        _owner(c)
        return fields(c)

    return build


#: One request of each API, for what alice may not do.
DENIED: List[Tuple[int, Fields]] = [
    (PRODUCE, lambda c: produce(c, batch(c))),
    (FETCH, fetch),
    (LIST_OFFSETS, lambda c: offsets(c, -1)),
    (METADATA, lambda c: {'topics': [{'name': c.topic()}], 'allow_auto_topic_creation': False}),
    (steps_groups.OFFSET_COMMIT, commit),
    (steps_groups.OFFSET_FETCH, stored),
    (FIND_COORDINATOR, lambda c: {'key': c.group(), 'coordinator_keys': [c.group()]}),
    (steps_groups.JOIN_GROUP, lambda c: join(c, '')),
    (steps_groups.HEARTBEAT, _member),
    (steps_groups.LEAVE_GROUP, lambda c: {'group_id': c.group(), 'member_id': 'm'}),
    (steps_groups.SYNC_GROUP, lambda c: dict(_member(c), **_PROTOCOL)),
    (steps_groups.DESCRIBE_GROUPS, lambda c: {'groups': [c.group()]}),
    (steps_groups.LIST_GROUPS, lambda c: {}),
    (steps_admin.CREATE_TOPICS, lambda c: {'topics': [_new(c)], 'timeout_ms': 1000}),
    (steps_admin.DELETE_TOPICS, lambda c: _named(c)),
    (DELETE_RECORDS, lambda c: {'topics': _partitions(c, 'name', 'partitions', 'partition_index')}),
    (transactions.INIT_PRODUCER_ID, lambda c: transactions.init(c)),
    (
        OFFSET_FOR_LEADER_EPOCH,
        lambda c: {'topics': _partitions(c, 'topic', 'partitions', 'partition')},
    ),
    (transactions.ADD_PARTITIONS, _transactional(lambda c: transactions.partitions_of(c, 0))),
    (transactions.ADD_OFFSETS, _transactional(lambda c: transactions.who(c, group_id=c.group()))),
    (transactions.END_TXN, _transactional(lambda c: transactions.end_transaction(c, True))),
    (transactions.WRITE_MARKERS, lambda c: {'markers': []}),
    (transactions.TXN_OFFSET_COMMIT, _transactional(lambda c: transactions.txn_commit(c))),
    (DESCRIBE_ACLS, lambda c: _filter(c)),
    (CREATE_ACLS, lambda c: {'creations': [ACL]}),
    (DELETE_ACLS, lambda c: {'filters': [_filter(c)]}),
    (
        steps_admin.DESCRIBE_CONFIGS,
        lambda c: steps_admin.describe_configs(TOPIC, c.topic(), 'retention.ms'),
    ),
    (
        steps_admin.ALTER_CONFIGS,
        lambda c: steps_admin.set_config(TOPIC, c.topic(), 'retention.ms', '1'),
    ),
    (steps_admin.ALTER_LOG_DIRS, lambda c: steps_admin.move_dirs(c, '/no/such/dir')),
    (steps_admin.DESCRIBE_LOG_DIRS, lambda c: {'topics': None}),
    (steps_admin.CREATE_PARTITIONS, lambda c: steps_admin.grow(c, 4)),
    (steps_groups.DELETE_GROUPS, lambda c: {'groups_names': [c.group()]}),
    (steps_admin.ELECT_LEADERS, lambda c: steps_admin.elect(c, 0, 0)),
    (
        steps_admin.INCREMENTAL_ALTER_CONFIGS,
        lambda c: steps_admin.change_config(TOPIC, c.topic(), 'retention.ms', 0, '1'),
    ),
    (steps_admin.ALTER_REASSIGNMENTS, lambda c: steps_admin.move(c, [0])),
    (steps_admin.LIST_REASSIGNMENTS, lambda c: {'topics': None}),
    (steps_groups.OFFSET_DELETE, lambda c: steps_groups.delete_offsets(c, 0)),
    (steps_cluster.DESCRIBE_QUOTAS, lambda c: {'components': [], 'strict': False}),
    (
        steps_cluster.ALTER_QUOTAS,
        lambda c: steps_cluster.quota('producer_byte_rate', 1.0, user='alice'),
    ),
    (steps_cluster.DESCRIBE_SCRAM, lambda c: {'users': None}),
    (steps_cluster.ALTER_SCRAM, lambda c: steps_cluster.user('alice')),
    (steps_cluster.DESCRIBE_QUORUM, lambda c: steps_cluster.quorum('__cluster_metadata')),
    (steps_cluster.UPDATE_FEATURES, lambda c: steps_cluster.feature('no.such.feature', 1)),
    (DESCRIBE_CLUSTER, lambda c: {'include_cluster_authorized_operations': True}),
    (
        transactions.DESCRIBE_PRODUCERS,
        lambda c: {'topics': [{'name': c.topic(), 'partition_indexes': [0]}]},
    ),
    (steps_cluster.UNREGISTER_BROKER, lambda c: {'broker_id': 7}),
    (transactions.DESCRIBE_TRANSACTIONS, lambda c: {'transactional_ids': [c.transaction()]}),
    (transactions.LIST_TRANSACTIONS, lambda c: {}),
    (DESCRIBE_TOPIC_PARTITIONS, lambda c: {'topics': [{'name': c.topic()}]}),
    (steps_admin.LIST_CONFIG_RESOURCES, lambda c: {}),
]

_PROTOCOL = {'protocol_type': 'consumer', 'protocol_name': 'range', 'assignments': []}


def _filter(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return a filter of ACLs; version 0 knows literal patterns only."""
    asked = dict(ACL_FILTER, **fields)
    return asked if c.version else dict(asked, pattern_type_filter=LITERAL)


def _new(c: Any) -> Dict[str, Any]:
    return {'name': c.name('new'), 'num_partitions': 1, 'replication_factor': 1}


def _named(c: Any) -> Dict[str, Any]:
    name = c.topic()
    return {'topic_names': [name], 'topics': [{'name': name}], 'timeout_ms': 1000}


DENIED_SCRIPT = [one('denied', api, fields, user=ALICE) for api, fields in DENIED]


# ------------------------------------------------------------ ACLs and what they do


def _acl(
    c: Any,
    kind: int,
    name: Optional[str],
    operation: int,
    permission: int = ALLOW,
    pattern: int = LITERAL,
    **fields: Any,
) -> Dict[str, Any]:
    made = {
        'resource_type': kind,
        'resource_name': c.topic() if name is None else name,
        'resource_pattern_type': pattern,
        'principal': PRINCIPAL,
        'host': '*',
        'operation': operation,
        'permission_type': permission,
    }
    return {'creations': [dict(made, **fields)]}


def _give(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, CREATE_ACLS, lambda c: _acl(c, *arguments, **fields))


def _own(c: Any, **fields: Any) -> Dict[str, Any]:
    return _filter(
        c, **dict({'resource_name_filter': c.topic(), 'resource_type_filter': TOPIC}, **fields)
    )


def _look(name: str, **fields: Any) -> Step:
    return Step(name, DESCRIBE_ACLS, lambda c: _own(c, **fields), settles=KRAFT_SETTLES)


def _take(name: str, **fields: Any) -> Step:
    return Step(name, DELETE_ACLS, lambda c: {'filters': [_own(c, **fields)]})


def _does(name: str, api: int, fields: Fields, version: int = 11) -> Step:
    return Step(name, api, fields, user=ALICE, settles=KRAFT_SETTLES, version=version)


def _writes(name: str) -> Step:
    return _does(name, PRODUCE, lambda c: produce(c, batch(c)))


def _reads(name: str) -> Step:
    return _does(name, FETCH, fetch)


def _sees(name: str) -> Step:
    return _does(
        name,
        METADATA,
        lambda c: {
            'topics': [{'name': c.topic()}, {'name': c.name('none')}],
            'allow_auto_topic_creation': False,
            'include_topic_authorized_operations': True,
            'include_cluster_authorized_operations': True,
        },
    )


ACL_LIFE: List[Step] = [
    _sees('alice sees'),
    _give('let write', TOPIC, None, WRITE),
    _look('let write: told'),
    _writes('alice writes'),
    _reads('alice reads not'),
    _sees('alice sees a topic'),
    _give('let write again', TOPIC, None, WRITE),
    _give('let read', TOPIC, None, READ),
    _reads('alice reads'),
    _give('forbid to read from here', TOPIC, None, READ, DENY, host='127.0.0.1'),
    _reads('alice reads not from here'),
    _look('of alice', principal_filter=PRINCIPAL),
    _look('denials', permission_type=DENY),
    _look('of bob', principal_filter='User:bob'),
    _look('to read', operation=READ),
    _take('take denials', permission_type=DENY),
    _reads('alice reads again'),
    _take('take of bob', principal_filter='User:bob'),
    _take('take all'),
    _look('none left'),
    _writes('alice writes not'),
    _give('let group', GROUP, 'g', READ),
    _give('let everything', CLUSTER, 'kafka-cluster', ALL),
    _does('alice creates', steps_admin.CREATE_TOPICS, lambda c: {'topics': [_new(c)]}, 4),
    Step(
        'take everything',
        DELETE_ACLS,
        lambda c: {
            'filters': [
                _filter(c, principal_filter=PRINCIPAL),
                _filter(c, resource_type_filter=TRANSACTIONAL_ID),
            ]
        },
    ),
    Step('all', DESCRIBE_ACLS, lambda c: _filter(c), settles=KRAFT_SETTLES),
]

ACL_BAD: List[Step] = [
    _give('operation any', TOPIC, None, 1),
    _give('operation unknown', TOPIC, None, 0),
    _give('operation 99', TOPIC, None, 99),
    _give('of no such kind', TOPIC, None, 12),
    _give('resource any', 1, 'x', READ),
    _give('resource 99', 99, 'x', READ),
    _give('cluster of other name', CLUSTER, 'x', CREATE),
    _give('permission any', TOPIC, None, READ, 1),
    _give('permission 0', TOPIC, None, READ, 0),
    _give('no name', TOPIC, '', READ),
    _give('no host', TOPIC, None, READ, host=''),
    _give('no principal', TOPIC, None, READ, principal=''),
    _give('principal without type', TOPIC, None, READ, principal='alice'),
    _give('principal with blanks', TOPIC, None, READ, principal='User:a b'),
    _look('operation unknown: told', operation=0)._replace(settles=''),
    _look('resource unknown', resource_type_filter=0)._replace(settles=''),
    _take('take unknown', operation=0),
    Step('take nothing', DELETE_ACLS, lambda c: {'filters': []}),
]

ACL_PATTERNS: List[Step] = [
    _give('let prefix', TOPIC, 'acl-pat', READ, ALLOW, PREFIXED),
    _give('let any name', TOPIC, '*', DESCRIBE),
    _reads('alice reads by prefix'),
    _sees('alice sees all'),
    _look('matching', pattern_type_filter=2),
    _look('literal', pattern_type_filter=LITERAL),
    _look('prefixed', pattern_type_filter=PREFIXED),
    _look('pattern 9', pattern_type_filter=9),
    _look('pattern unknown', pattern_type_filter=0),
    _give('pattern match', TOPIC, 'x', READ, ALLOW, 2),
    _give('pattern any', TOPIC, 'x', READ, ALLOW, 1),
    _give('pattern 9: let', TOPIC, 'x', READ, ALLOW, 9),
    _take('take matching', pattern_type_filter=2),
    _look('none left', pattern_type_filter=2),
    _reads('alice reads not'),
]

#: What else depends on ACLs: groups, transactional ids, idempotence, creation by asking.
ACL_OTHERS: List[Step] = [
    _does('join', steps_groups.JOIN_GROUP, lambda c: join(c, ''), 3),
    _give('let group', GROUP, 'acls-of', READ, ALLOW, PREFIXED),
    _does('join allowed', steps_groups.JOIN_GROUP, lambda c: join(c, ''), 3),
    _does('commit without topic', steps_groups.OFFSET_COMMIT, commit, 8),
    _does('stored without topic', steps_groups.OFFSET_FETCH, stored, 7),
    _does('init', transactions.INIT_PRODUCER_ID, lambda c: transactions.init(c)),
    _give('let transaction', TRANSACTIONAL_ID, 'acls-of', WRITE, ALLOW, PREFIXED),
    _does('init allowed', transactions.INIT_PRODUCER_ID, lambda c: transactions.init(c)),
    _does(
        'init idempotent',
        transactions.INIT_PRODUCER_ID,
        lambda c: transactions.init(c, transactional_id=None),
    ),
    _give('let idempotence', CLUSTER, 'kafka-cluster', IDEMPOTENT_WRITE),
    _does(
        'init idempotent allowed',
        transactions.INIT_PRODUCER_ID,
        lambda c: transactions.init(c, transactional_id=None),
    ),
    _does(
        'create by asking',
        METADATA,
        lambda c: {'topics': [{'name': c.name('new')}], 'allow_auto_topic_creation': True},
    ),
    Step(
        'take everything',
        DELETE_ACLS,
        lambda c: {'filters': [_filter(c, principal_filter=PRINCIPAL)]},
    ),
]

ACL_SCRIPT = [
    # Changes take a moment to be seen: not in every version of everything.
    Scenario('acls', (CREATE_ACLS,), ACL_LIFE),
    Scenario('bad acls', (CREATE_ACLS, DESCRIBE_ACLS, DELETE_ACLS), ACL_BAD),
    Scenario('acl-pattern', (DESCRIBE_ACLS,), ACL_PATTERNS, versions='1+'),
    Scenario('acls of others', (DELETE_ACLS,), ACL_OTHERS, versions='high'),
]


# ------------------------------------------------------------ tokens


def _keep_hmac(c: Any, answer: Any) -> None:
    c.values['hmac'] = bytes(answer.hmac)


def _keep_hers(c: Any, answer: Any) -> None:
    c.values['hers'] = bytes(answer.hmac)


def _token(c: Any, **fields: Any) -> Dict[str, Any]:
    return dict({'renewers': [], 'max_lifetime_ms': -1}, **fields)


def _of(kind: str, name: str) -> Dict[str, Any]:
    return {'principal_type': kind, 'principal_name': name}


def _renew(c: Any, period_ms: int = -1) -> Dict[str, Any]:
    return {'hmac': c.values['hmac'], 'renew_period_ms': period_ms}


def _expire(c: Any, period_ms: int = -1) -> Dict[str, Any]:
    return {'hmac': c.values['hmac'], 'expiry_time_period_ms': period_ms}


DAY_MS = 86_400_000

TOKEN_LIFE: List[Step] = [
    Step('create', CREATE_TOKEN, _token, keep=_keep_hmac),
    Step(
        'describe',
        DESCRIBE_TOKEN,
        lambda c: {'owners': [_of('User', 'admin')]},
        settles=KRAFT_SETTLES_LATE,
    ),
    Step('describe of nobody', DESCRIBE_TOKEN, lambda c: {'owners': [_of('User', 'nobody')]}),
    Step('alice describes', DESCRIBE_TOKEN, lambda c: {'owners': None}, user=ALICE),
    Step('alice renews', RENEW_TOKEN, _renew, user=ALICE),
    Step('alice expires', EXPIRE_TOKEN, _expire, user=ALICE),
    Step('renew', RENEW_TOKEN, _renew),
    Step('renew for two days', RENEW_TOKEN, lambda c: _renew(c, 2 * DAY_MS)),
    Step('renew for long', RENEW_TOKEN, lambda c: _renew(c, 900 * DAY_MS)),
    Step('expire in two days', EXPIRE_TOKEN, lambda c: _expire(c, 2 * DAY_MS)),
    Step('describe then', DESCRIBE_TOKEN, lambda c: {'owners': None}, settles=KRAFT_SETTLES_LATE),
    Step('expire now', EXPIRE_TOKEN, _expire),
    Step('describe after', DESCRIBE_TOKEN, lambda c: {'owners': None}, settles=KRAFT_SETTLES_LATE),
    Step('renew after', RENEW_TOKEN, _renew),
    Step('expire after', EXPIRE_TOKEN, _expire),
    Step('renew unknown', RENEW_TOKEN, lambda c: {'hmac': b'x', 'renew_period_ms': -1}),
    Step(
        'create with renewer',
        CREATE_TOKEN,
        lambda c: _token(c, renewers=[_of('User', 'alice')], max_lifetime_ms=DAY_MS),
        keep=_keep_hmac,
    ),
    Step('alice renews hers', RENEW_TOKEN, _renew, user=ALICE, settles=KRAFT_SETTLES_LATE),
    Step('alice expires hers', EXPIRE_TOKEN, lambda c: _expire(c, 7_200_000), user=ALICE),
    Step(
        'alice describes hers',
        DESCRIBE_TOKEN,
        lambda c: {'owners': None},
        user=ALICE,
        settles=KRAFT_SETTLES_LATE,
    ),
    Step(
        'create with bad renewer',
        CREATE_TOKEN,
        lambda c: _token(c, renewers=[_of('Group', 'alice')]),
    ),
    Step(
        'create for alice',
        CREATE_TOKEN,
        lambda c: _token(c, owner_principal_type='User', owner_principal_name='alice'),
        when=lambda c: c.version >= 3,
        keep=_keep_hers,
    ),
    Step(
        'alice creates for admin',
        CREATE_TOKEN,
        lambda c: _token(c, owner_principal_type='User', owner_principal_name='admin'),
        when=lambda c: c.version >= 3,
        user=ALICE,
    ),
    Step('expire at last', EXPIRE_TOKEN, _expire),
    Step(
        'alice expires at last',
        EXPIRE_TOKEN,
        lambda c: {'hmac': c.values['hers'], 'expiry_time_period_ms': -1},
        when=lambda c: 'hers' in c.values,
        user=ALICE,
        settles=KRAFT_SETTLES_LATE,
    ),
    Step('none at last', DESCRIBE_TOKEN, lambda c: {'owners': None}, settles=KRAFT_SETTLES_LATE),
]

TOKEN_SCRIPT = [
    Scenario(
        'tokens',
        (CREATE_TOKEN,),
        TOKEN_LIFE,
    )
]


# ------------------------------------------------------------ logging in


GOOD = plain(ALICE, PASSWORDS[ALICE])


def _hello(name: str, mechanism: str, wire: str) -> Step:
    return Step(
        name + ': mechanism',
        SASL_HANDSHAKE,
        lambda c: {'mechanism': mechanism},
        wire=wire,
        version=1,
    )


def _password(name: str, token: bytes, wire: str) -> Step:
    return Step(name + ': password', SASL_AUTHENTICATE, lambda c: {'auth_bytes': token}, wire=wire)


def _metadata(name: str, wire: str) -> Step:
    return Step(
        name + ': metadata', METADATA, lambda c: {'topics': [{'name': 'x'}]}, wire=wire, version=8
    )


def _attempt(name: str, token: bytes, mechanism: str = 'PLAIN') -> List[Step]:
    """Return a login on a connection of its own, and what comes of it."""
    return [
        _hello(name, mechanism, name),
        _password(name, token, name),
        _metadata(name, name),
    ]


LOGIN: List[Step] = [
    _metadata('nobody', 'nobody'),
    Step('versions first', API_VERSIONS, lambda c: {}, wire='versions', version=2),
    _hello('behind versions', 'PLAIN', 'versions'),
    Step('versions between', API_VERSIONS, lambda c: {}, wire='versions', version=2),
    _password('without mechanism', GOOD, 'none'),
    _hello('unknown and then known', 'NONE', 'twice'),
    _hello('known then', 'PLAIN', 'twice'),
    *_attempt('good', GOOD),
    _password('good again', GOOD, 'good'),
    _hello('good once more', 'PLAIN', 'good'),
    *_attempt('wrong password', plain('alice', 'wrong')),
    *_attempt('unknown user', plain('nobody', 'wrong')),
    *_attempt('no PLAIN', b'nonsense'),
    *_attempt('empty', b''),
    *_attempt('no user', plain('', 'wrong')),
    *_attempt('no password', plain('alice', '')),
    *_attempt('for another', plain(ALICE, PASSWORDS[ALICE], ADMIN)),
    *_attempt('for oneself', plain(ALICE, PASSWORDS[ALICE], ALICE)),
    *_attempt('four parts', GOOD + b'\0x'),
    *_attempt('no UTF-8', b'\0\xff\0\xff'),
    *_attempt('other mechanism', GOOD, 'SCRAM-SHA-256'),
    *_attempt('small letters', GOOD, 'plain'),
]

LOGIN_SCRIPT = [Scenario('login', (SASL_AUTHENTICATE,), LOGIN)]

SCRIPT = [*DENIED_SCRIPT, *ACL_SCRIPT, *TOKEN_SCRIPT, *LOGIN_SCRIPT]
