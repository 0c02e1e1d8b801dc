"""DescribeConfigs and ListConfigResources of an embedded cluster (KIP-133, KIP-226, KIP-1142).

The documentation of a config is a short text with its type and limits, not that of Kafka.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from kafka.protocol.admin.configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.settings import configs
from kafka.testing.settings.configs import ConfigKey, ConfigSource
from kafka.testing.topic_checks import Refused, check_name, refuse

_LOGGERS = ('kafka', 'org.apache.kafka', 'root')
_FROM_LOGGER = 6
#: The same config in several units.
_SAME_TIMES = (
    ('log.roll.ms', 'log.roll.hours'),
    ('log.roll.jitter.ms', 'log.roll.jitter.hours'),
    ('log.retention.ms', 'log.retention.minutes', 'log.retention.hours'),
)


@handles(DescribeConfigsRequest)
def describe_configs(call: Call[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Return the configs of each resource."""
    return DescribeConfigsResponse(
        throttle_time_ms=0, results=[_result(call, each) for each in call.request.resources]
    )


def _result(
    call: Call[DescribeConfigsRequest], asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    # Generated messages default to an empty text, earlier ones to null.
    code, text = errors.NONE, '' if call.state.release.version >= (2, 6) else None
    found: List[DescribeConfigsResourceResult] = []
    try:
        found = _described(call, asked)
    except Refused as refused:
        code, text = refused.code, refused.text or text
    wanted = asked.configuration_keys
    if wanted or (wanted is not None and call.state.release.version < (2, 6)):
        found = [each for each in found if each.name in wanted]
    return DescribeConfigsResult(
        error_code=code,
        error_message=text,
        resource_type=_known_type(call, asked.resource_type),
        resource_name=asked.resource_name,
        configs=found,
    )


def _known_type(call: Call[DescribeConfigsRequest], kind: int) -> int:
    """Return a resource type as in responses: releases before 2.4 return 0 for unknown types."""
    is_known = call.state.release.version >= (2, 4) or kind in (configs.TOPIC, configs.BROKER)
    return kind if is_known else 0


def _described(
    call: Call[DescribeConfigsRequest], asked: DescribeConfigsResource
) -> List[DescribeConfigsResourceResult]:
    version = call.state.release.version
    kind = asked.resource_type
    if kind == configs.TOPIC:
        return _of_topic(call, asked.resource_name)
    if kind == configs.BROKER:
        return _of_broker(call, asked.resource_name)
    if kind == configs.BROKER_LOGGER and version >= (2, 4):
        return _of_loggers(call, asked.resource_name)
    if kind == configs.CLIENT_METRICS and version >= (3, 7):
        return _of_metrics(call, asked.resource_name)
    if kind == configs.GROUP and version >= (4, 0):
        return _of_group(call, asked.resource_name)
    refuse(errors.INVALID_REQUEST, 'Unsupported resource type: %d' % kind)


def _of_topic(call: Call[DescribeConfigsRequest], name: str) -> List[DescribeConfigsResourceResult]:
    state = call.state
    check_name(state, name)
    topic = state.topics.get(name)
    if topic is None and state.release.version >= (2, 0):
        refuse(errors.UNKNOWN_TOPIC_OR_PARTITION)
    own = topic.configs if topic else {}
    return [
        _entry(call, key, configs.topic_values(state, own, key, call.broker.node_id), False)
        for _, key in sorted(configs.topic_keys(state.release.name).items())
    ]


def _of_broker(
    call: Call[DescribeConfigsRequest], name: str
) -> List[DescribeConfigsResourceResult]:
    state, node_id = call.state, call.broker.node_id
    keys = configs.broker_keys(state.release.name)
    if name == '' and state.release.version >= (1, 1):
        values = configs.of_all_brokers(state)
        return [
            _entry(call, key, [ConfigSource(key.name, values[key.name], configs.FROM_ALL_BROKERS)])
            for key in map(keys.__getitem__, sorted(values))
        ]
    check_broker(name, node_id)
    return [
        _entry(call, key, configs.broker_values(state, key, node_id), _is_fixed(call, key))
        for _, key in sorted(keys.items())
    ]


def _is_fixed(call: Call[DescribeConfigsRequest], key: ConfigKey) -> bool:
    """Return True if a broker config is read-only in responses (KIP-226)."""
    version = call.state.release.version
    keys = configs.broker_keys(call.state.release.name)
    if (1, 1) <= version < (2, 0):  # which considered the other units too
        names = next((group for group in _SAME_TIMES if key.name in group), (key.name,))
        return not any(keys[name].is_dynamic for name in names)
    return version < (1, 1) or not key.is_dynamic


def check_broker(name: str, node_id: int) -> None:
    """Raise Refused unless the resource is the broker that received the request."""
    if not name.isdecimal():
        refuse(errors.INVALID_REQUEST, 'Broker id must be an integer, but it is: %s' % name)
    if int(name) != node_id:
        refuse(
            errors.INVALID_REQUEST,
            'Unexpected broker id, expected %d or empty string, but received %s' % (node_id, name),
        )


def _of_loggers(
    call: Call[DescribeConfigsRequest], name: str
) -> List[DescribeConfigsResourceResult]:
    if name == '':
        refuse(errors.INVALID_REQUEST, 'Broker id must not be empty')
    check_broker(name, call.broker.node_id)
    levels = call.state.configs.get((configs.BROKER_LOGGER, name), {})
    return [
        _entry(
            call,
            ConfigKey(logger, 'STRING', 'INFO'),
            [ConfigSource(logger, levels.get(logger, 'INFO'), _FROM_LOGGER)],
        )
        for logger in sorted(set(_LOGGERS) | set(levels))
    ]


def _of_metrics(
    call: Call[DescribeConfigsRequest], name: str
) -> List[DescribeConfigsResourceResult]:
    if not name:
        refuse(errors.INVALID_REQUEST, 'Client metrics subscription name must not be empty')
    values = call.state.configs.get((configs.CLIENT_METRICS, name), {})
    if not values and call.state.release.version < (4, 1):
        return []
    return _own_or_default(
        call, configs.metrics_keys(call.state.release.name), values, configs.FROM_CLIENT_METRICS
    )


def _of_group(call: Call[DescribeConfigsRequest], name: str) -> List[DescribeConfigsResourceResult]:
    if not name:
        refuse(errors.INVALID_REQUEST, 'Group name must not be empty')
    return _own_or_default(
        call,
        configs.group_keys(call.state.release.name),
        call.state.configs.get((configs.GROUP, name), {}),
        configs.FROM_GROUP,
    )


def _own_or_default(
    call: Call[DescribeConfigsRequest], keys: configs.Keys, own: Any, source: int
) -> List[DescribeConfigsResourceResult]:
    if source == configs.FROM_CLIENT_METRICS and call.state.release.version < (4, 1):
        return [_bare(name, own[name], source) for name in sorted(own)]
    found = []
    for name, key in sorted(keys.items()):
        values = [ConfigSource(name, own[name], source)] if name in own else []
        behind = configs.broker_keys(call.state.release.name).get(key.synonym or '')
        if source == configs.FROM_GROUP and call.state.release.version < (4, 1):
            values = values or [ConfigSource(name, key.default or '', configs.FROM_DEFAULT)]
        elif behind is not None:
            values += configs.broker_values(call.state, behind, call.broker.node_id)
        found.append(_entry(call, key, values))
    return found


def _bare(name: str, value: str, source: int) -> DescribeConfigsResourceResult:
    """Return a client metrics config as before 4.1: without type, synonyms and documentation."""
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=[],
        config_type=0,
        documentation='',
    )


def _entry(
    call: Call[DescribeConfigsRequest],
    key: ConfigKey,
    values: Sequence[ConfigSource],
    read_only: bool = False,
) -> DescribeConfigsResourceResult:
    """Return one config; ``values`` are its sources, the effective one first."""
    value = values[0].value if values else key.default
    source = values[0].source if values else configs.FROM_DEFAULT
    entry = DescribeConfigsResourceResult(
        name=key.name,
        value=_shown(key, value),
        read_only=read_only,
        config_source=source,
        is_sensitive=key.is_sensitive,
    )
    if call.version == 0 and call.state.release.version < (2, 6):
        entry.is_default = source == configs.FROM_DEFAULT
    if call.request.include_synonyms:
        entry.synonyms = [
            DescribeConfigsSynonym(name=e.name, value=_shown(key, e.value), source=e.source)
            for e in values
        ]
    if call.version >= 3:
        entry.config_type = configs.TYPES[key.type]
        entry.documentation = _documentation(key) if call.request.include_documentation else None
    return entry


def _shown(key: ConfigKey, value: Optional[str]) -> Optional[str]:
    return None if key.is_sensitive else value


def _documentation(key: ConfigKey) -> str:
    limits = '' if key.allowed == '-' else ' Allowed: %s.' % key.allowed
    return 'A setting of type %s.%s' % (key.type.lower(), limits)


@handles(ListConfigResourcesRequest)
def list_config_resources(call: Call[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    """Return the resources that have configs, of all types if the request names none."""
    state = call.state
    known = [configs.TOPIC, configs.BROKER, configs.BROKER_LOGGER]
    known += [configs.CLIENT_METRICS, configs.GROUP]
    if call.version == 0:
        wanted: Sequence[int] = [configs.CLIENT_METRICS]
    else:
        wanted = call.request.resource_types or known
    if not set(wanted) <= set(known):
        return ListConfigResourcesResponse(
            throttle_time_ms=0, error_code=errors.UNSUPPORTED_VERSION, config_resources=[]
        )
    found = [(kind, name) for kind, name in state.configs if kind not in known[:3]]
    found += [(configs.TOPIC, name) for name in state.topics]
    found += [(kind, str(node)) for kind in known[1:3] for node in state.alive]
    return ListConfigResourcesResponse(
        throttle_time_ms=0,
        error_code=errors.NONE,
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, name in sorted(found)
            if kind in wanted
        ],
    )
