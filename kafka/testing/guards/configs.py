"""Who may see and change settings: guards of the APIs of configs (KIP-133, KIP-339)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from kafka.protocol.admin.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.api import ApiKey
from kafka.testing import acls, configs, errors
from kafka.testing.calls import Call
from kafka.testing.error_answers import answer_with, items_with
from kafka.testing.guards.rules import DENIED, Answer, change_response, changed, guards, may_cluster


def _code(call: Call[Any], resource: Any, operation: int) -> int:
    """Return why a resource may not be touched, NONE if it may; what it is not is told later."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == configs.TOPIC:
        is_allowed = call.may(operation, acls.TOPIC, name)
        return errors.NONE if is_allowed else errors.TOPIC_AUTHORIZATION_FAILED
    if kind == configs.GROUP:
        is_allowed = call.may(operation, acls.GROUP, name)
        return errors.NONE if is_allowed else errors.GROUP_AUTHORIZATION_FAILED
    if kind in (configs.BROKER, configs.BROKER_LOGGER, configs.CLIENT_METRICS):
        is_allowed = may_cluster(call, operation)
        return errors.NONE if is_allowed else errors.CLUSTER_AUTHORIZATION_FAILED
    return errors.NONE


@guards(DescribeConfigsRequest)
def describe_configs(call: Call[DescribeConfigsRequest]) -> Answer:
    """Demand DESCRIBE_CONFIGS on topics and groups, for the rest on the cluster."""
    return _refuse(call, 'results', lambda each: _code(call, each, acls.DESCRIBE_CONFIGS))


@guards(AlterConfigsRequest, IncrementalAlterConfigsRequest)
def alter_configs(call: Call[Any]) -> Answer:
    """Demand ALTER_CONFIGS on topics and groups, for the rest on the cluster."""
    return _refuse(call, 'responses', lambda each: _code(call, each, acls.ALTER_CONFIGS))


def _refuse(call: Call[Any], answered: str, code_of: Callable[[Any], int]) -> Answer:
    """Refuse the resources that may not be touched, each with its code."""
    request: Any = call.request
    parts: Dict[int, List[Any]] = {}
    for each in request.resources:
        parts.setdefault(code_of(each), []).append(each)
    allowed = parts.pop(errors.NONE, [])
    if not parts:
        return None
    key = call.header.api_key
    items = [
        item
        for code, resources in parts.items()
        for item in items_with(
            changed(request, resources=resources), call.version, key, answered, code
        )
    ]
    for item in items:
        # Of brokers KRaft says nothing, and with ZooKeeper nothing is said of what was not altered.
        is_told = call.header.api_key == ApiKey.DESCRIBE_CONFIGS
        if not is_told and not call.state.release.has_zookeeper:
            is_told = item.resource_type in (configs.TOPIC, configs.GROUP)
        item.error_message = DENIED if is_told else None
    if not allowed:
        response: Any = answer_with(changed(request, resources=[]), call.version, key, errors.NONE)
        setattr(response, answered, items)
        return response
    call.request = changed(request, resources=allowed)
    change_response(call, lambda answer: getattr(answer, answered).extend(items))
    return None
