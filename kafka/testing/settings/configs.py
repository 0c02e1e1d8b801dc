"""Configs of brokers, topics, groups and client metrics of an embedded cluster.

The configs of each release with types and defaults, the check of values, and the effective value in
the order of KIP-226. Values are stored in ``Topic.configs`` and ``state.configs``; the tables are
in config_table.py and broker_config_table.py, the requests in handlers/configs.py.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Union,
)

from kafka.testing.groups.regex import Pattern
from kafka.testing.releases import RELEASES
from kafka.testing.settings.broker_config_table import BROKER_TABLE, LONG
from kafka.testing.settings.config_table import GROUP_TABLE, METRICS_TABLE, TOPIC_TABLE

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState, Topic

# Resource types, by their numbers in DescribeConfigs.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

#: Value types, by their numbers in DescribeConfigs.
TYPES = {
    name: number
    for number, name in enumerate(
        'UNKNOWN BOOLEAN STRING INT SHORT LONG DOUBLE LIST CLASS PASSWORD'.split()
    )
}
# Sources of values, by their numbers in DescribeConfigs.
FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS, FROM_FILE, FROM_DEFAULT = 1, 2, 3, 4, 5
FROM_CLIENT_METRICS, FROM_GROUP = 7, 8

_WIDTHS = {'INT': 31, 'LONG': 63, 'SHORT': 15}
RACK_AWARE_SELECTOR = 'org.apache.kafka.common.replica.RackAwareReplicaSelector'
#: The interval of the check for expired transactions.
OVERDUE_INTERVAL = 'transaction.abort.timed.out.transaction.cleanup.interval.ms'

_LONGEST_PATTERN = 256
_MOST_TEXT = 32768  # of one value, since values are kept in memory


class ConfigKey(NamedTuple):
    """One config in one release; ``default`` is None if it has no default."""

    name: str
    type: str
    default: Optional[str]
    synonym: Optional[str] = None  # the broker config that is the default of a topic's
    allowed: str = '-'
    is_dynamic: bool = True

    @property
    def is_sensitive(self) -> bool:
        """Whether its value is never returned."""
        return self.type == 'PASSWORD'


class ConfigSource(NamedTuple):
    """A value and its source."""

    name: str
    value: Optional[str]
    source: int


Keys = Mapping[str, ConfigKey]


@lru_cache(maxsize=None)
def topic_keys(release: str) -> Keys:
    """Return the topic configs of a release, by name."""
    return {key.name: key for key in _keys(TOPIC_TABLE, release)}


@lru_cache(maxsize=None)
def group_keys(release: str) -> Keys:
    """Return the group configs of a release, by name."""
    return {key.name: key for key in _keys(GROUP_TABLE, release)}


@lru_cache(maxsize=None)
def metrics_keys(release: str) -> Keys:
    """Return the client metrics configs of a release, by name."""
    return {key.name: key for key in _keys(METRICS_TABLE, release)}


@lru_cache(maxsize=None)
def broker_keys(release: str) -> Keys:
    """Return the broker configs of a release, by name; those of 0.11 for older ones."""
    position = max(RELEASES.index(release), RELEASES.index('0.11'))
    found = {}
    for name, kind, *defaults in map(str.split, _lines(BROKER_TABLE)):
        default = _default(defaults, position)
        if default != '~':
            shown = None if default == 'null' or default == '<NONE>' else LONG.get(default, default)
            found[name] = ConfigKey(
                name, kind.rstrip('*'), _named(shown, release), is_dynamic=kind.endswith('*')
            )
    return found


@lru_cache(maxsize=None)
def _any_default(name: str) -> str:
    """Return the default of a topic config in the newest release with it. Raises KeyError."""
    for release in reversed(RELEASES):
        key = topic_keys(release).get(name)
        if key is not None:
            return key.default or ''
    raise KeyError(name)


def _keys(table: str, release: str) -> Iterator[ConfigKey]:
    position = RELEASES.index(release)
    for name, kind, synonym, allowed, *defaults in map(str.split, _lines(table)):
        default = _default(defaults, position)
        if default != '~':
            behind = None if synonym == '-' else synonym
            shown = None if default == 'null' else _named(default, release)
            yield ConfigKey(name, kind, shown, behind, allowed)


def _lines(table: str) -> List[str]:
    return table.strip('\n').replace('\n    ', ' ').splitlines()


def _default(defaults: Iterable[str], position: int) -> str:
    """Return the default in a release, ``~`` if it does not have the config."""
    found = '~'
    for each in defaults:
        since, _, value = each.partition('=')
        since = '0.8.0' if since == '0.8' else since
        if RELEASES.index(since) <= position:
            found = value
    return found


def _named(default: Optional[str], release: str) -> Optional[str]:
    return _protocol(release) if default == '@protocol' else default


def _protocol(release: str) -> str:
    """Return the name of the newest inter-broker protocol of a release."""
    revisions = {'0.10.0': 1, '0.10.1': 2, '0.11': 2, '2.0': 1, '2.1': 2, '2.2': 1, '2.3': 1}
    revisions.update({'2.4': 1, '2.7': 2, '2.8': 1, '3.0': 1, '3.3': 3, '3.5': 2, '3.6': 2})
    revisions.update({'3.7': 4})
    name = '0.11.0' if release == '0.11' else release
    if name < '0.10' or name.startswith('0.9'):
        return '%s.X' % name
    return '%s-IV%d' % (name, revisions.get(release, 0))


# ------------------------------------------------------------ effective values


def topic_config(state: ClusterState, topic: Union[Topic, str], name: str) -> str:
    """Return the effective value of a topic config.

    A config that this release does not have has the default of another one. Raises KeyError for
    a name that is unknown in all releases.
    """
    found = state.topics.get(topic) if isinstance(topic, str) else topic
    if found is not None and name in found.configs:
        return found.configs[name]
    key = topic_keys(state.release.name).get(name)
    if key is None:
        return _any_default(name)
    if not state.configs and not _chosen(state):
        return key.default or ''
    held = topic_values(state, {}, key, state.controller_id)
    return (held[0].value if held else key.default) or ''


def topic_values(
    state: ClusterState, own: Mapping[str, str], key: ConfigKey, node_id: int
) -> List[ConfigSource]:
    """Return the values of a topic config, the effective one first; none for its default.

    Arguments: own: the values of the topic; node_id: the broker whose configs are the defaults.
    """
    found = [ConfigSource(key.name, own[key.name], FROM_TOPIC)] if key.name in own else []
    behind = broker_keys(state.release.name).get(key.synonym or '')
    return found if behind is None else found + broker_values(state, behind, node_id)


def broker_values(state: ClusterState, key: ConfigKey, node_id: int) -> List[ConfigSource]:
    """Return the values of a broker config, the effective one first."""
    found = []
    of_one = state.configs.get((BROKER, str(node_id)), {})
    for values, source in ((of_one, FROM_BROKER), (of_all_brokers(state), FROM_ALL_BROKERS)):
        if key.name in values:
            found.append(ConfigSource(key.name, values[key.name], source))
    in_file = static_values(state, node_id).get(key.name)
    if in_file is not None:
        found.append(ConfigSource(key.name, in_file, FROM_FILE))
    if key.default is not None:
        found.append(ConfigSource(key.name, key.default, FROM_DEFAULT))
    return found


def of_all_brokers(state: ClusterState) -> Mapping[str, str]:
    """Return the dynamic configs of all brokers; KIP-966 makes min.insync.replicas one."""
    found = state.configs.get((BROKER, ''), {})
    if 'eligible.leader.replicas.version' not in state.features:
        return found
    usual = broker_keys(state.release.name)['min.insync.replicas'].default or '1'
    return {'min.insync.replicas': usual, **found}


def broker_config(state: ClusterState, node_id: int, name: str) -> str:
    """Return the effective value of a broker config, '' if it has none.

    Raises KeyError for a config that the release does not have.
    """
    values = broker_values(state, broker_keys(state.release.name)[name], node_id)
    return (values[0].value or '') if values else ''


def static_values(state: ClusterState, node_id: int) -> Dict[str, str]:
    """Return the values that a broker's properties file would have."""
    values = _chosen(state)
    node = state.nodes.get(node_id)
    if node is not None:
        address = 'PLAINTEXT://%s:%d' % (node.host, node.port)
        values['listeners'] = values['advertised.listeners'] = address
        values['broker.id' if state.release.has_zookeeper else 'node.id'] = str(node_id)
        if node.rack is not None:
            values['broker.rack'] = node.rack
            values['replica.selector.class'] = RACK_AWARE_SELECTOR
    return values


def _chosen(state: ClusterState) -> Dict[str, str]:
    """Return the configs that were given to the cluster; others have the release's default.

    None counts as the default, also where it means never.
    """
    given, usual = state.defaults, type(state.defaults)()
    names = {
        'num.partitions': 'num_partitions',
        'default.replication.factor': 'replication_factor',
        'auto.create.topics.enable': 'auto_create_topics',
        'connections.max.idle.ms': 'connections_max_idle_ms',
        'delete.topic.enable': 'delete_topic_enable',
        'group.share.record.lock.duration.ms': 'group_share_record_lock_duration_ms',
        'group.streams.initial.rebalance.delay.ms': 'group_streams_initial_rebalance_delay_ms',
        'group.consumer.session.timeout.ms': 'group_consumer_session_timeout_ms',
        'group.consumer.heartbeat.interval.ms': 'group_consumer_heartbeat_interval_ms',
        'message.max.bytes': 'message_max_bytes',
        'log.retention.check.interval.ms': 'log_retention_check_interval_ms',
        'log.cleaner.backoff.ms': 'log_cleaner_backoff_ms',
        'offsets.topic.num.partitions': 'offsets_topic_partitions',
        OVERDUE_INTERVAL: 'transaction_abort_interval_ms',
    }
    return {
        name: str(getattr(given, field)).lower()
        for name, field in names.items()
        if getattr(given, field) not in (None, getattr(usual, field))
    }


# ------------------------------------------------------------ validation


def unknown_or_invalid(keys: Keys, name: str, value: str, what: str) -> Optional[str]:
    """Return why a config is unknown or its value invalid, None if it is valid.

    Arguments: what: the resource type in the message.
    """
    key = keys.get(name)
    if key is None:
        return 'Unknown %s config name: %s' % (what, name)
    return invalid(key, value)


def invalid(key: ConfigKey, value: str) -> Optional[str]:
    """Return why a value is invalid, None if it is valid."""
    if len(value) > _MOST_TEXT or not _is_typed(key.type, value.strip()):
        return 'Invalid value %s for configuration %s: not a %s' % (
            value[:80],
            key.name,
            key.type.lower(),
        )
    if not _is_allowed(key, value.strip()):
        return 'Invalid value %s for configuration %s: not in %s' % (value, key.name, key.allowed)
    return None


def invalid_for_topics(release: str, name: str, value: str) -> Optional[str]:
    """Return why a broker config is invalid as the default of a topic config, None if it is not."""
    behind = (key for key in topic_keys(release).values() if key.synonym == name)
    return next((wrong for key in behind for wrong in [invalid(key, value)] if wrong), None)


#: The attributes by which client metrics select clients (KIP-714).
_CLIENT_PARTS = frozenset(
    'client_instance_id client_id client_software_name client_software_version'
    ' client_source_address client_source_port'.split()
)


def bad_client_match(value: str) -> Optional[str]:
    """Return why a selection of clients is invalid, None if it is valid."""
    for part in split_list(value):
        name, equals, pattern = part.partition('=')
        if not equals or name.strip() not in _CLIENT_PARTS or len(pattern) > _LONGEST_PATTERN:
            return 'Illegal client matching pattern: %s' % part
        try:
            Pattern(pattern.strip())
        except ValueError as error:
            return 'Illegal client matching pattern: %s: %s' % (part, error)
    return None


def _is_typed(kind: str, value: str) -> bool:
    if kind == 'BOOLEAN':
        return value.lower() in ('true', 'false')
    if kind == 'DOUBLE':
        return re.fullmatch(r'[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?', value) is not None
    if kind in _WIDTHS:
        if re.fullmatch(r'[+-]?[0-9]{1,20}', value) is None:
            return False
        return -(1 << _WIDTHS[kind]) <= int(value) < 1 << _WIDTHS[kind]
    return True


def _is_allowed(key: ConfigKey, value: str) -> bool:
    if '|' in key.allowed:
        words = split_list(value) if key.type == 'LIST' else [value]
        return all(word in key.allowed.split('|') for word in words)
    low, dots, high = key.allowed.partition('..')
    if not dots:
        return True
    number = float(value)
    return float(low) <= number and (not high or number <= float(high))


def split_list(value: str) -> List[str]:
    """Return the elements of a value of type LIST."""
    return [word.strip() for word in value.split(',') if word.strip()]
