"""DescribeClientQuotas and AlterClientQuotas of an embedded cluster (KIP-546).

Quotas are stored in ``state.quotas`` and returned; no client is throttled.
"""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

from kafka.protocol.admin.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    ComponentData,
    DescribeClientQuotasEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    OpData,
    ValueData,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.kept_bytes import quota_bytes
from kafka.testing.topic_checks import Refused, refuse

USER, CLIENT_ID, IP = 'user', 'client-id', 'ip'
_EXACT, _DEFAULT, _ANY = 0, 1, 2
#: Quotas of users and clients; rates in bytes are whole numbers.
_RATES = ('producer_byte_rate', 'consumer_byte_rate')
_SHARES = ('request_percentage', 'controller_mutation_rate')
_OF_IP = ('connection_creation_rate',)
_MOST_ENTITIES = 100_000

#: (type, name) for each part of an entity, None for the default of the type.
Entity = Tuple[Tuple[str, Optional[str]], ...]


@handles(DescribeClientQuotasRequest)
def describe_client_quotas(call: Call[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    """Return the quotas of the entities that match."""
    response = DescribeClientQuotasResponse(
        throttle_time_ms=0, error_code=errors.NONE, error_message='', entries=None
    )
    try:
        wanted = _components(call)
    except Refused as refused:
        response.error_code, response.error_message = refused.code, refused.text
        return response
    response.entries = [
        DescribeClientQuotasEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in sorted(values.items())],
        )
        for entity, values in call.state.quotas.items()
        if _is_wanted(dict(entity), wanted, call.request.strict)
    ]
    return response


def _components(call: Call[DescribeClientQuotasRequest]) -> Dict[str, ComponentData]:
    found: Dict[str, ComponentData] = {}
    for each in call.request.components:
        kind = each.entity_type
        if not kind:
            refuse(errors.INVALID_REQUEST, 'Unexpected empty filter component entity type')
        if kind in found:
            refuse(errors.INVALID_REQUEST, 'Duplicate %s filter component entity type' % kind)
        if kind not in (USER, CLIENT_ID, IP):
            refuse(errors.UNSUPPORTED_VERSION, "Custom entity type '%s' not supported" % kind)
        if each.match_type not in (_EXACT, _DEFAULT, _ANY):
            if call.state.release.has_zookeeper:
                refuse(errors.UNKNOWN_SERVER_ERROR)
            refuse(errors.INVALID_REQUEST, 'Unexpected match type: %d' % each.match_type)
        if (each.match is not None) != (each.match_type == _EXACT):
            refuse(
                errors.INVALID_REQUEST,
                'Invalid entity filter: an exact match needs a name, others have none',
            )
        found[kind] = each
    if IP in found and len(found) > 1:
        refuse(errors.INVALID_REQUEST, 'Invalid entity filter: an ip must be the only component')
    return found


def _is_wanted(
    entity: Dict[str, Optional[str]], wanted: Dict[str, ComponentData], strict: bool
) -> bool:
    if strict and set(entity) != set(wanted):
        return False
    for kind, each in wanted.items():
        if kind not in entity:
            return False
        if each.match_type != _ANY and entity[kind] != each.match:
            return False
    return True


@handles(AlterClientQuotasRequest)
def alter_client_quotas(call: Call[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    """Set and remove quotas; the changes of an entity are applied all or none."""
    return AlterClientQuotasResponse(
        throttle_time_ms=0, entries=[_result(call, each) for each in call.request.entries]
    )


def _result(
    call: Call[AlterClientQuotasRequest], asked: AlterClientQuotasRequestEntryData
) -> AlterClientQuotasResponseEntryData:
    code, text = errors.NONE, None
    try:
        _alter(call, asked)
    except Refused as refused:
        code, text = refused.code, refused.text
    return AlterClientQuotasResponseEntryData(
        error_code=code, error_message=text, entity=asked.entity
    )


def _alter(call: Call[AlterClientQuotasRequest], asked: AlterClientQuotasRequestEntryData) -> None:
    quotas = call.state.quotas
    entity = _entity(asked.entity)
    allowed = _OF_IP if entity[0][0] == IP else _RATES + _SHARES
    values = dict(quotas.get(entity, {}))
    for operation in asked.ops:
        if operation.key not in allowed:
            refuse(errors.INVALID_REQUEST, 'Invalid configuration key %s' % operation.key)
        if operation.remove:
            values.pop(operation.key, None)
        else:
            _check_value(operation)
            values[operation.key] = operation.value
    if call.request.validate_only:
        return
    if values and entity not in quotas and len(quotas) >= _MOST_ENTITIES:
        refuse(errors.POLICY_VIOLATION, 'There are quotas of %d entities' % _MOST_ENTITIES)
    before = quota_bytes(entity, quotas.get(entity))
    call.state.kept.change(before, quota_bytes(entity, values))
    if not values:
        quotas.pop(entity, None)
        return
    quotas[entity] = values


def _entity(parts: List[EntityData]) -> Entity:
    code = errors.INVALID_REQUEST
    found: Dict[str, Optional[str]] = {}
    for each in parts:
        if each.entity_type not in (USER, CLIENT_ID, IP):
            refuse(code, "Unhandled client quota entity type: '%s'" % each.entity_type)
        if each.entity_type in found:
            refuse(code, 'Duplicate %s in the entity' % each.entity_type)
        if each.entity_name == '':
            refuse(code, 'Empty %s not supported' % each.entity_type)
        found[each.entity_type] = each.entity_name
    if not found:
        refuse(code, 'Invalid empty client quota entity')
    if IP in found and len(found) > 1:
        refuse(code, 'Invalid quota entity combination, ip is never combined')
    return tuple((kind, found[kind]) for kind in (USER, CLIENT_ID, IP) if kind in found)


def _check_value(operation: OpData) -> None:
    value = operation.value
    if math.isnan(value) or value <= 0:
        refuse(errors.INVALID_REQUEST, 'Quota %s must be greater than 0' % operation.key)
    if operation.key in _RATES and not value.is_integer():
        refuse(errors.INVALID_REQUEST, '%s must be a Long value' % operation.key)
