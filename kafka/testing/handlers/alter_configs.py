"""AlterConfigs and IncrementalAlterConfigs of an embedded cluster (KIP-133, KIP-226, KIP-339).

The changes of a resource are applied all or none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Tuple

from kafka.protocol.admin.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.groups.group_settings import wrong_value
from kafka.testing.handlers.configs import check_broker
from kafka.testing.kept_bytes import settings_bytes
from kafka.testing.settings import configs
from kafka.testing.settings.configs import ConfigKey, Keys, split_list
from kafka.testing.state import ClusterState
from kafka.testing.topic_checks import Refused, check_name, refuse

SET, DELETE, APPEND, SUBTRACT = range(4)
_LEVELS = ('OFF', 'FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG', 'TRACE')
#: The limit of groups, client metrics subscriptions and loggers with configs.
_MOST_RESOURCES = 10000

Values = Dict[str, str]


@handles(AlterConfigsRequest)
def alter_configs(call: Call[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Replace the configs of each resource."""

    def replaced(resource: Any, keys: Keys, own: Values) -> Values:
        missing = [each.name for each in resource.configs if each.value is None]
        if missing:
            if call.state.release.has_zookeeper:  # those brokers fail on it unexpectedly
                refuse(errors.UNKNOWN_SERVER_ERROR)
            refuse(errors.INVALID_REQUEST, 'Null value not supported for: %s' % missing)
        return {each.name: each.value for each in resource.configs}

    return AlterConfigsResponse(throttle_time_ms=0, responses=_results(call, replaced))


@handles(IncrementalAlterConfigsRequest)
def incremental_alter_configs(
    call: Call[IncrementalAlterConfigsRequest],
) -> IncrementalAlterConfigsResponse:
    """Set, delete, append to and subtract from configs of each resource."""

    def changed(resource: Any, keys: Keys, own: Values) -> Values:
        counts = Counter(each.name for each in resource.configs)
        if any(count > 1 for count in counts.values()):
            refuse(errors.INVALID_REQUEST, 'Error due to duplicate config keys')
        values = dict(own)
        for each in resource.configs:
            _operate(call.state, resource.resource_type, values, keys.get(each.name), each)
        return values

    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=_results(call, changed))


def _operate(
    state: ClusterState, kind: int, values: Values, key: Optional[ConfigKey], asked: Any
) -> None:
    name, operation = asked.name, asked.config_operation
    if not SET <= operation <= SUBTRACT:
        refuse(errors.UNKNOWN_SERVER_ERROR)  # brokers fail on it unexpectedly
    if kind == configs.BROKER_LOGGER and operation in (APPEND, SUBTRACT):
        refuse(
            errors.INVALID_REQUEST, 'The operation is not allowed for the BROKER_LOGGER resource'
        )
    if operation == DELETE:
        values.pop(name, None)
        return
    if asked.value is None:
        refuse(errors.INVALID_REQUEST, 'Null value not supported for: %s' % name)
    if operation == SET or key is None:
        values[name] = asked.value
        return
    if key.type != 'LIST':
        refuse(
            errors.INVALID_REQUEST if state.release.has_zookeeper else errors.INVALID_CONFIG,
            "Can't %s to key %s because its type is not LIST."
            % ('APPEND' if operation == APPEND else 'SUBTRACT', name),
        )
    words = split_list(values.get(name, key.default or ''))
    given = split_list(asked.value)
    if operation == APPEND:
        zookeeper = state.release.has_zookeeper  # these brokers do not check for duplicates
        words += [word for word in given if zookeeper or word not in words]
    else:
        words = [word for word in words if word not in given]
    values[name] = ','.join(words)


# ------------------------------------------------------------ both requests


def _results(
    call: Call[Any], change: Callable[[Any, Keys, Values], Values]
) -> List[AlterConfigsResourceResponse]:
    counts = Counter((each.resource_type, each.resource_name) for each in call.request.resources)
    results = []
    for resource in call.request.resources:
        place = resource.resource_type, resource.resource_name
        if not counts[place]:
            continue
        code, text = errors.NONE, None
        try:
            if counts[place] > 1:
                refuse(errors.INVALID_REQUEST, 'Each resource must appear at most once.')
            _alter(call, resource, place, change)
        except Refused as refused:
            code, text = refused.code, refused.text
        counts[place] = 0
        results.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return results


def _alter(
    call: Call[Any],
    resource: Any,
    place: Tuple[int, str],
    change: Callable[[Any, Keys, Values], Values],
) -> None:
    state = call.state
    keys, what = _keys(call, *place)
    topic = state.topics.get(place[1]) if place[0] == configs.TOPIC else None
    own = topic.configs if topic else state.configs.get(place, {})
    values = change(resource, keys, own)
    for name, value in values.items():
        if own.get(name) != value:
            _check(state, place, keys, what, name, value)
    if call.request.validate_only:
        return
    if not topic and values and place not in state.configs:
        if len(state.configs) >= _MOST_RESOURCES:
            refuse(errors.POLICY_VIOLATION, 'More than %d resources' % _MOST_RESOURCES)
    state.kept.change(settings_bytes(place[1], own), settings_bytes(place[1], values))
    if topic:
        topic.configs = values
    elif values:
        state.configs[place] = values
    else:
        state.configs.pop(place, None)


def _keys(call: Call[Any], kind: int, name: str) -> Tuple[Keys, str]:
    """Return the configs of a resource type and its name in messages. Raises Refused."""
    state = call.state
    version, release = state.release.version, state.release.name
    if kind == configs.TOPIC:
        check_name(state, name)
        if name not in state.topics:
            if version < (2, 0):
                refuse(errors.UNKNOWN_SERVER_ERROR, 'Topic %r does not exist' % name)
            refuse(errors.UNKNOWN_TOPIC_OR_PARTITION, "The topic '%s' does not exist." % name)
        return configs.topic_keys(release), 'topic'
    if kind == configs.BROKER and version >= (1, 1):
        if name:
            check_broker(name, call.broker.node_id)
        return configs.broker_keys(release), 'broker'
    if kind == configs.BROKER_LOGGER and version >= (2, 4):
        check_broker(name, call.broker.node_id)
        return {}, 'logger'
    if kind == configs.CLIENT_METRICS and version >= (3, 7):
        return configs.metrics_keys(release), 'client metrics'
    if kind == configs.GROUP and version >= (4, 0):
        if not name:
            refuse(errors.INVALID_REQUEST, 'Group name must not be empty')
        return configs.group_keys(release), 'group'
    refuse(
        errors.INVALID_REQUEST,
        'AlterConfigs is only supported for topics and brokers, not for type %d' % kind,
    )


def _check_more(state: ClusterState, kind: int, name: str, value: str) -> None:
    """Raise Refused for a well-formed value that is invalid or out of bounds."""
    wrong = None
    if kind == configs.CLIENT_METRICS and name == 'match':
        wrong = configs.bad_client_match(value)
    elif kind == configs.GROUP:
        wrong = wrong_value(state, name, value)
    if wrong:
        refuse(errors.INVALID_CONFIG, wrong)


def _check(
    state: ClusterState,
    place: Tuple[int, str],
    keys: Keys,
    what: str,
    name: str,
    value: str,
) -> None:
    """Raise Refused unless a config of the resource may have this value."""
    kind, resource = place
    if kind == configs.BROKER_LOGGER:
        if value not in _LEVELS:
            code = errors.INVALID_REQUEST if state.release.has_zookeeper else errors.INVALID_CONFIG
            refuse(code, 'Cannot set the log level of %s to %s' % (name, value))
        return
    key = keys.get(name)
    if kind == configs.BROKER:
        if key is None:  # brokers store unknown ones for plug-ins
            refuse(errors.INVALID_REQUEST, 'Unknown broker config name: %s' % name)
        if not key.is_dynamic:
            refuse(
                errors.INVALID_REQUEST, 'Cannot update these configs dynamically: Set(%s)' % name
            )
    wrong = configs.unknown_or_invalid(keys, name, value, what)
    if wrong is None and kind == configs.BROKER:
        wrong = configs.invalid_for_topics(state.release.name, name, value)
    if wrong is None:
        _check_more(state, kind, name, value)
        return
    zookeeper = state.release.has_zookeeper
    if kind == configs.CLIENT_METRICS:
        refuse(errors.INVALID_REQUEST, wrong)
    is_bad_value = key is not None and (zookeeper or kind == configs.BROKER)
    refuse(errors.INVALID_REQUEST if is_bad_value else errors.INVALID_CONFIG, wrong)
