"""Administration: topics, partitions, configurations, replicas."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import REFUSED_ABOVE, REFUSED_BELOW, SETTLES, Scenario, Step, one
from test.differential.steps_data import FETCH, PRODUCE, batch, fetch, produce
from test.differential.steps_fetch import LIST_OFFSETS, offsets
from test.differential.steps_groups import OFFSET_COMMIT, OFFSET_FETCH, commit, stored

METADATA = 3
CREATE_TOPICS = 19
DELETE_TOPICS = 20
DESCRIBE_CONFIGS = 32
ALTER_CONFIGS = 33
ALTER_LOG_DIRS = 34
DESCRIBE_LOG_DIRS = 35
CREATE_PARTITIONS = 37
ELECT_LEADERS = 43
INCREMENTAL_ALTER_CONFIGS = 44
ALTER_REASSIGNMENTS = 45
LIST_REASSIGNMENTS = 46
LIST_CONFIG_RESOURCES = 74

UNKNOWN_ID = b'\x07' * 16
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def _topic(name: str, partitions: int = 1, copies: int = 1, **fields: Any) -> Dict[str, Any]:
    return dict(
        {'name': name, 'num_partitions': partitions, 'replication_factor': copies}, **fields
    )


def _create(c: Any, *topics: Dict[str, Any], **fields: Any) -> Dict[str, Any]:
    return dict({'topics': list(topics), 'timeout_ms': 10000}, **fields)


def _made(name: str, word: str, *arguments: Any, **fields: Any) -> Step:
    """Return a step that creates one topic of the case."""
    request: Dict[str, Any] = {}
    for field in ('validate_only', 'timeout_ms'):
        if field in fields:
            request[field] = fields.pop(field)
    return Step(
        name,
        CREATE_TOPICS,
        lambda c: _create(c, _topic(c.name(word), *arguments, **fields), **request),
    )


def _assigned(*nodes: List[int], start: int = 0) -> List[Dict[str, Any]]:
    return [{'partition_index': start + i, 'broker_ids': ids} for i, ids in enumerate(nodes)]


def _config(name: str, value: Optional[str]) -> List[Dict[str, Any]]:
    return [{'name': name, 'value': value}]


def _illegal(c: Any) -> Dict[str, Any]:
    names = ('', '.', '..', 'a b', 'x' * 250, 'a/b')
    return _create(c, *(_topic(name) for name in names))


def _here(*words: str) -> Step:
    """Return the step that shows topics of the case as they are now."""
    return Step(
        'metadata',
        METADATA,
        lambda c: {
            'topics': [{'name': c.name(word)} for word in words],
            'allow_auto_topic_creation': False,
        },
        when=lambda c: c.version >= 4,
        settles=SETTLES,
    )


CREATE_SCRIPT = [
    Scenario(
        'create topics',
        (CREATE_TOPICS,),
        [
            _made('create', 'a'),
            _made('create again', 'a'),
            _made('three partitions', 'b', 3),
            _made('no partitions', 'x1', 0),
            _made('negative partitions', 'x2', -5),
            _made('default partitions', 'c', -1, -1),
            _made('no copies', 'x3', 1, 0),
            _made('two copies', 'x4', 1, 2),
            _made('assigned', 'd', -1, -1, assignments=_assigned([0], [0])),
            _made('assigned and counted', 'x5', 2, 1, assignments=_assigned([0], [0])),
            # With ZooKeeper it is made, and waits for a leader until the time is over.
            _made('assigned to unknown', 'h', -1, -1, assignments=_assigned([7]), timeout_ms=100),
            _made('assigned with a gap', 'x6', -1, -1, assignments=_assigned([0], start=1)),
            _made('assigned twice to one', 'x7', -1, -1, assignments=_assigned([0, 0])),
            _made('assigned to nobody', 'x8', -1, -1, assignments=_assigned([]), timeout_ms=100),
            _made('with config', 'e', configs=_config('retention.ms', '1000')),
            _made('bad config', 'x9', configs=_config('retention.ms', 'soon')),
            _made('unknown config', 'x10', configs=_config('no.such.config', '1')),
            _made('null config', 'x11', configs=_config('retention.ms', None)),
            _made('config out of range', 'x12', configs=_config('min.insync.replicas', '0')),
            Step('illegal names', CREATE_TOPICS, _illegal),
            Step(
                'same name twice',
                CREATE_TOPICS,
                lambda c: _create(c, _topic(c.name('f')), _topic(c.name('f'))),
            ),
            Step('with dots', CREATE_TOPICS, lambda c: _create(c, _topic(c.label + '.p.q'))),
            Step('as with dots', CREATE_TOPICS, lambda c: _create(c, _topic(c.label + '.p_q'))),
            _made('only validated', 'g', validate_only=True),
            _made('only validated, exists', 'a', validate_only=True),
            Step('nothing', CREATE_TOPICS, lambda c: _create(c)),
            Step('internal', CREATE_TOPICS, lambda c: _create(c, _topic('__consumer_offsets'))),
            _here('a', 'b', 'd', 'e', 'g', *('x%d' % n for n in range(1, 15))),
        ],
    ),
    one('create', CREATE_TOPICS, lambda c: _create(c), versions=REFUSED_ABOVE),
    one('create', CREATE_TOPICS, lambda c: _create(c), versions=REFUSED_BELOW),
]


def _delete(c: Any, *names: str) -> Dict[str, Any]:
    topics = [{'name': name} for name in names]
    # Before 1.0 delete.topic.enable was off: nothing is deleted until the time is over.
    timeout_ms = 300 if c.release.version < (1, 0) else 10000
    return {'topic_names': list(names), 'topics': topics, 'timeout_ms': timeout_ms}


def _delete_ids(*ids: bytes) -> Dict[str, Any]:
    topics = [{'name': None, 'topic_id': topic_id} for topic_id in ids]
    return {'topics': topics, 'timeout_ms': 10000}


def _with_ids(c: Any) -> bool:
    return bool(c.version >= 6)


DELETE_SCRIPT = [
    Scenario(
        'delete topics',
        (DELETE_TOPICS,),
        [
            Step('delete', DELETE_TOPICS, lambda c: _delete(c, c.topic('a'), c.topic('b'))),
            Step('delete unknown', DELETE_TOPICS, lambda c: _delete(c, c.name('a'), 'unknown')),
            Step('delete illegal', DELETE_TOPICS, lambda c: _delete(c, 'a b', '')),
            Step('delete nothing', DELETE_TOPICS, lambda c: _delete(c)),
            _here('a', 'b'),
            Step(
                'delete by id',
                DELETE_TOPICS,
                lambda c: _delete_ids(c.topic_id(c.topic('c'))),
                when=_with_ids,
            ),
            Step(
                'delete unknown id',
                DELETE_TOPICS,
                lambda c: _delete_ids(UNKNOWN_ID),
                when=_with_ids,
            ),
            Step(
                'delete by nothing', DELETE_TOPICS, lambda c: _delete_ids(bytes(16)), when=_with_ids
            ),
            Step(
                'delete by both',
                DELETE_TOPICS,
                lambda c: {'topics': [{'name': c.topic('d'), 'topic_id': UNKNOWN_ID}]},
                when=_with_ids,
            ),
            Step('delete twice', DELETE_TOPICS, lambda c: _delete(c, c.topic('e'), c.name('e'))),
        ],
    ),
]


def _still_there(c: Any) -> Dict[str, Any]:
    return {'topics': [{'name': c.topic()}], 'allow_auto_topic_creation': False}


#: What is left of a topic for those who go on as if it were there.
GONE_SCRIPT = [
    Scenario(
        'deleted topic',
        (DELETE_TOPICS,),
        [
            Step('produce', PRODUCE, lambda c: produce(c, batch(c))),
            Step('commit', OFFSET_COMMIT, commit),
            Step('delete', DELETE_TOPICS, lambda c: _delete(c, c.topic())),
            Step('metadata', METADATA, _still_there, settles=SETTLES),
            Step('produce then', PRODUCE, lambda c: produce(c, batch(c))),
            Step('fetch', FETCH, fetch),
            Step('latest', LIST_OFFSETS, lambda c: offsets(c, -1)),
            Step('commit then', OFFSET_COMMIT, commit),
            Step('stored', OFFSET_FETCH, stored),
            Step('settings', DESCRIBE_CONFIGS, lambda c: describe_configs(TOPIC, c.topic())),
            Step('grow', CREATE_PARTITIONS, lambda c: grow(c, 4)),
            Step('delete again', DELETE_TOPICS, lambda c: _delete(c, c.topic())),
        ],
        versions='high',
        since=(2, 0),  # before that, what goes on for how long is chance
    ),
    Scenario(
        'grown topic',
        (CREATE_PARTITIONS,),
        [
            Step('produce early', PRODUCE, lambda c: produce(c, batch(c), partition=3)),
            Step('grow', CREATE_PARTITIONS, lambda c: grow(c, 4)),
            Step('metadata', METADATA, _still_there, settles=SETTLES),
            Step('produce', PRODUCE, lambda c: produce(c, batch(c), partition=3)),
            Step('fetch', FETCH, lambda c: fetch(c, 0, 3)),
        ],
        versions='high',
    ),
]


def grow(
    c: Any, count: int, name: Optional[str] = None, given: Optional[List[List[int]]] = None
) -> Dict[str, Any]:
    """Return a CreatePartitions request."""
    assignments = None if given is None else [{'broker_ids': nodes} for nodes in given]
    topic = {'name': c.topic() if name is None else name, 'count': count}
    return {'topics': [dict(topic, assignments=assignments)], 'timeout_ms': 10000}


def _g(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, CREATE_PARTITIONS, lambda c: grow(c, *arguments, **fields))


PARTITIONS_SCRIPT = [
    Scenario(
        'create partitions',
        (CREATE_PARTITIONS,),
        [
            _g('to four', 4),
            _g('to the same', 4),
            _g('to fewer', 2),
            _g('to none', 0),
            _g('to negative', -1),
            _g('of unknown', 4, 'unknown'),
            _g('given', 5, None, [[0]]),
            _g('given too many', 6, None, [[0], [0]]),
            _g('given too few', 8, None, [[0]]),
            _g('given to unknown', 6, None, [[7]]),
            _g('given to two', 6, None, [[0, 1]]),
            _g('given to nobody', 6, None, [[]]),
            Step('validated', CREATE_PARTITIONS, lambda c: dict(grow(c, 6), validate_only=True)),
            Step('twice', CREATE_PARTITIONS, lambda c: {'topics': grow(c, 7)['topics'] * 2}),
            _here('t'),
        ],
    )
]


def describe_configs(kind: int, name: str, *keys: str, **fields: Any) -> Dict[str, Any]:
    """Return a DescribeConfigs request for one resource."""
    resource = {'resource_type': kind, 'resource_name': name}
    resources = [dict(resource, configuration_keys=list(keys) or None)]
    return dict({'resources': resources}, **fields)


#: Those that say something of the broker and do not depend on where it keeps its files.
BROKER_KEYS = (
    'auto.create.topics.enable',
    'message.max.bytes',
    'num.partitions',
    'default.replication.factor',
    'log.retention.ms',
    'log.retention.hours',
    'offsets.topic.num.partitions',
    'group.max.session.timeout.ms',
    'transaction.max.timeout.ms',
    'compression.type',
    'no.such.config',
)


def set_config(
    kind: int, name: str, key: str, value: Optional[str], **fields: Any
) -> Dict[str, Any]:
    """Return an AlterConfigs request for one setting."""
    resource = {'resource_type': kind, 'resource_name': name, 'configs': _config(key, value)}
    return dict({'resources': [resource]}, **fields)


def change_config(
    kind: int, name: str, key: str, operation: int, value: Optional[str], **fields: Any
) -> Dict[str, Any]:
    """Return an IncrementalAlterConfigs request for one setting."""
    config = {'name': key, 'config_operation': operation, 'value': value}
    resource = {'resource_type': kind, 'resource_name': name, 'configs': [config]}
    return dict({'resources': [resource]}, **fields)


def _shown() -> Step:
    keys = ('retention.ms', 'cleanup.policy', 'max.message.bytes')
    return Step(
        'shown',
        DESCRIBE_CONFIGS,
        lambda c: describe_configs(TOPIC, c.topic(), *keys, include_synonyms=True),
        settles=SETTLES,
    )


def _a(name: str, key: str, value: Optional[str], **fields: Any) -> Step:
    return Step(name, ALTER_CONFIGS, lambda c: set_config(TOPIC, c.topic(), key, value, **fields))


def _i(name: str, key: str, operation: int, value: Optional[str], **fields: Any) -> Step:
    return Step(
        name,
        INCREMENTAL_ALTER_CONFIGS,
        lambda c: change_config(TOPIC, c.topic(), key, operation, value, **fields),
    )


CONFIGS_SCRIPT = [
    Scenario(
        'describe configs',
        (DESCRIBE_CONFIGS,),
        [
            Step(
                'of a topic',
                DESCRIBE_CONFIGS,
                lambda c: describe_configs(TOPIC, c.topic(), include_synonyms=True),
            ),
            Step(
                'some',
                DESCRIBE_CONFIGS,
                lambda c: describe_configs(TOPIC, c.topic(), 'retention.ms', 'no.such.config'),
            ),
            Step('of unknown', DESCRIBE_CONFIGS, lambda c: describe_configs(TOPIC, 'unknown')),
            Step('of illegal', DESCRIBE_CONFIGS, lambda c: describe_configs(TOPIC, 'a b')),
            Step(
                'of the broker',
                DESCRIBE_CONFIGS,
                lambda c: describe_configs(BROKER, '0', *BROKER_KEYS),
            ),
            Step(
                'of all brokers',
                DESCRIBE_CONFIGS,
                lambda c: describe_configs(BROKER, '', *BROKER_KEYS),
            ),
            Step('of unknown broker', DESCRIBE_CONFIGS, lambda c: describe_configs(BROKER, '7')),
            Step('of no broker', DESCRIBE_CONFIGS, lambda c: describe_configs(BROKER, 'x')),
            Step('of type 0', DESCRIBE_CONFIGS, lambda c: describe_configs(0, 'x')),
            Step('of type 99', DESCRIBE_CONFIGS, lambda c: describe_configs(99, 'x')),
            Step('of metrics', DESCRIBE_CONFIGS, lambda c: describe_configs(CLIENT_METRICS, 'x')),
            Step('of a group', DESCRIBE_CONFIGS, lambda c: describe_configs(GROUP, 'x')),
            Step(
                'of a logger',
                DESCRIBE_CONFIGS,
                lambda c: describe_configs(BROKER_LOGGER, '0', 'kafka.no.such.logger'),
            ),
            Step('of nothing', DESCRIBE_CONFIGS, lambda c: {'resources': []}),
        ],
    ),
    Scenario(
        'alter configs',
        (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS),
        [
            _a('set', 'retention.ms', '3600000'),
            _shown(),
            _a('set other', 'cleanup.policy', 'compact'),
            _a('set wrong', 'retention.ms', 'soon'),
            _a('set unknown', 'no.such.config', '1'),
            _a('set null', 'retention.ms', None),
            _a('validate', 'retention.ms', '5', validate_only=True),
            Step(
                'of unknown',
                ALTER_CONFIGS,
                lambda c: set_config(TOPIC, 'unknown', 'retention.ms', '1'),
            ),
            Step('of type 0', ALTER_CONFIGS, lambda c: set_config(0, 'x', 'retention.ms', '1')),
            Step(
                'of broker 7',
                ALTER_CONFIGS,
                lambda c: set_config(BROKER, '7', 'log.retention.ms', '1'),
            ),
            _i('add', 'retention.ms', 0, '7200000'),
            _i('append', 'cleanup.policy', 2, 'delete'),
            _i('append the same', 'cleanup.policy', 2, 'delete'),
            _i('append to no list', 'retention.ms', 2, '1'),
            _shown()._replace(name='shown then'),
            _i('subtract', 'cleanup.policy', 3, 'compact'),
            _i('delete', 'retention.ms', 1, None),
            _i('operation 9', 'retention.ms', 9, '1'),
            _i('set wrong incrementally', 'retention.ms', 0, 'soon'),
            _i('set unknown incrementally', 'no.such.config', 0, '1'),
            _i('set null incrementally', 'retention.ms', 0, None),
            _i('validate incrementally', 'retention.ms', 0, '5', validate_only=True),
            Step(
                'of unknown incrementally',
                INCREMENTAL_ALTER_CONFIGS,
                lambda c: change_config(TOPIC, 'unknown', 'retention.ms', 0, '1'),
            ),
            _shown()._replace(name='shown at last'),
        ],
        # 4.4.0 was seen to take 1.1 to 1.4 s for 'set wrong incrementally'; why, nobody looked.
        is_slow=True,
    ),
    one('config resources', LIST_CONFIG_RESOURCES, lambda c: {'resource_types': [CLIENT_METRICS]}),
    one('config resources 99', LIST_CONFIG_RESOURCES, lambda c: {'resource_types': [99]}),
]


def move_dirs(c: Any, path: str, name: Optional[str] = None) -> Dict[str, Any]:
    """Return an AlterReplicaLogDirs request."""
    topics = [{'name': c.topic() if name is None else name, 'partitions': [0, 9]}]
    return {'dirs': [{'path': path, 'topics': topics}]}


def elect(c: Any, kind: int, *parts: int, topic: Optional[str] = None) -> Dict[str, Any]:
    """Return an ElectLeaders request."""
    topics = [{'topic': c.topic() if topic is None else topic, 'partitions': list(parts)}]
    return {'election_type': kind, 'topic_partitions': topics, 'timeout_ms': 10000}


def move(c: Any, nodes: Optional[List[int]], name: Optional[str] = None) -> Dict[str, Any]:
    """Return an AlterPartitionReassignments request."""
    parts = [{'partition_index': 0, 'replicas': nodes}]
    topics = [{'name': c.topic() if name is None else name, 'partitions': parts}]
    return {'timeout_ms': 10000, 'topics': topics}


REPLICAS_SCRIPT = [
    Scenario(
        'log dirs',
        (DESCRIBE_LOG_DIRS, ALTER_LOG_DIRS),
        [
            Step(
                'of a topic',
                DESCRIBE_LOG_DIRS,
                lambda c: {'topics': [{'topic': c.topic(), 'partitions': [0]}]},
            ),
            Step(
                'of unknown',
                DESCRIBE_LOG_DIRS,
                lambda c: {'topics': [{'topic': 'unknown', 'partitions': [0]}]},
            ),
            Step('move to unknown', ALTER_LOG_DIRS, lambda c: move_dirs(c, '/no/such/dir')),
            Step('move unknown', ALTER_LOG_DIRS, lambda c: move_dirs(c, '/no/such/dir', 'unknown')),
            Step('move nothing', ALTER_LOG_DIRS, lambda c: {'dirs': []}),
        ],
    ),
    Scenario(
        'elections',
        (ELECT_LEADERS,),
        [
            Step('preferred', ELECT_LEADERS, lambda c: elect(c, 0, 0, 1)),
            Step('unclean', ELECT_LEADERS, lambda c: elect(c, 1, 0)),
            Step('unknown partition', ELECT_LEADERS, lambda c: elect(c, 0, 9)),
            Step('unknown topic', ELECT_LEADERS, lambda c: elect(c, 0, 0, topic='unknown')),
            Step('kind 9', ELECT_LEADERS, lambda c: elect(c, 9, 0)),
            Step('nothing', ELECT_LEADERS, lambda c: {'topic_partitions': []}),
            Step(
                'one partition twice', ELECT_LEADERS, lambda c: elect(c, 0, 1, 1), settles=SETTLES
            ),
        ],
    ),
    Scenario(
        'reassignments',
        (ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS),
        [
            Step('to the same', ALTER_REASSIGNMENTS, lambda c: move(c, [0])),
            Step('to unknown', ALTER_REASSIGNMENTS, lambda c: move(c, [7])),
            Step('to nobody', ALTER_REASSIGNMENTS, lambda c: move(c, [])),
            Step('twice to one', ALTER_REASSIGNMENTS, lambda c: move(c, [0, 0])),
            Step('to negative', ALTER_REASSIGNMENTS, lambda c: move(c, [-1])),
            Step('cancel none', ALTER_REASSIGNMENTS, lambda c: move(c, None)),
            Step('of unknown', ALTER_REASSIGNMENTS, lambda c: move(c, [0], 'unknown')),
            Step('nothing', ALTER_REASSIGNMENTS, lambda c: {'topics': []}),
            Step('list all', LIST_REASSIGNMENTS, lambda c: {'topics': None}),
            Step(
                'list some',
                LIST_REASSIGNMENTS,
                lambda c: {'topics': [{'name': c.topic(), 'partition_indexes': [0, 9]}]},
            ),
            Step(
                'list unknown',
                LIST_REASSIGNMENTS,
                lambda c: {'topics': [{'name': 'unknown', 'partition_indexes': [0]}]},
            ),
        ],
    ),
]

SCRIPT = [
    *CREATE_SCRIPT,
    *DELETE_SCRIPT,
    *GONE_SCRIPT,
    *PARTITIONS_SCRIPT,
    *CONFIGS_SCRIPT,
    *REPLICAS_SCRIPT,
]
