"""Guards of the config APIs (KIP-133, KIP-339)."""

from __future__ import annotations

from typing import Any, Callable, List

from kafka.protocol.admin.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.guards.rules import (
    DENIED,
    Answer,
    change_response,
    guards,
    may_cluster,
    refuse_by_code,
    topic_code,
)
from kafka.testing.security import acls
from kafka.testing.settings import configs

_DENIED = (
    errors.TOPIC_AUTHORIZATION_FAILED,
    errors.GROUP_AUTHORIZATION_FAILED,
    errors.CLUSTER_AUTHORIZATION_FAILED,
)


def _code(call: Call[Any], resource: Any, operation: int) -> int:
    """Return the error code for a resource, NONE if it is allowed or its type is unknown."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == configs.TOPIC:
        return topic_code(call, operation, name)
    if kind == configs.GROUP:
        is_allowed = call.may(operation, acls.GROUP, name)
        return errors.NONE if is_allowed else errors.GROUP_AUTHORIZATION_FAILED
    if kind in (configs.BROKER, configs.BROKER_LOGGER, configs.CLIENT_METRICS):
        is_allowed = may_cluster(call, operation)
        return errors.NONE if is_allowed else errors.CLUSTER_AUTHORIZATION_FAILED
    return errors.NONE


@guards(DescribeConfigsRequest)
def describe_configs(call: Call[DescribeConfigsRequest]) -> Answer:
    """Require DESCRIBE_CONFIGS on topics and groups, for other types on the cluster."""
    return _refuse(call, 'results', lambda each: _code(call, each, acls.DESCRIBE_CONFIGS))


@guards(AlterConfigsRequest, IncrementalAlterConfigsRequest)
def alter_configs(call: Call[Any]) -> Answer:
    """Require ALTER_CONFIGS on topics and groups, for other types on the cluster."""
    return _refuse(call, 'responses', lambda each: _code(call, each, acls.ALTER_CONFIGS))


def _refuse(call: Call[Any], answered: str, code_of: Callable[[Any], int]) -> Answer:
    """Refuse the resources that are not allowed, each with its code."""
    response = refuse_by_code(call, 'resources', answered, code_of)
    if not call.state.release.has_zookeeper:
        change_response(call, lambda answer: _tell_more(call, getattr(answer, answered)))
    return response


def _tell_more(call: Call[Any], items: List[Any]) -> None:
    """Set the messages of KRaft brokers, which since 4.0 have none for broker configs."""
    told = [configs.TOPIC, configs.GROUP]
    if call.state.release.version < (4, 0):
        told.append(configs.BROKER)
    for each in items:
        if each.error_code in _DENIED and each.resource_type in told:
            each.error_message = DENIED
