"""Messages for the administration of client quotas (KIP-546)."""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bool, Float64, Int8, Int16, Int32, Message, Route, String, Struct


class ComponentData(Struct):
    entity_type: String
    match_type: Int8
    match: Optional[String]


class DescribeClientQuotasRequest(Message, api_key=48, valid='0-1', flexible='1+', route=Route.ANY):
    """Request the quotas that match a filter. v1 is flexible."""

    components: List[ComponentData]
    strict: Bool


class EntityData(Struct):
    entity_type: String
    entity_name: Optional[String]


class ValueData(Struct):
    key: String
    value: Float64


class DescribeClientQuotasEntryData(Struct):
    entity: List[EntityData]
    values: List[ValueData]


class DescribeClientQuotasResponse(Message, api_key=48, valid='0-1', flexible='1+'):
    """Quotas by entity; entries are null after an error. v1 is flexible."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
    entries: Optional[List[DescribeClientQuotasEntryData]]


class OpData(Struct):
    key: String
    value: Float64
    remove: Bool


class AlterClientQuotasRequestEntryData(Struct):
    entity: List[EntityData]
    ops: List[OpData]


class AlterClientQuotasRequest(Message, api_key=49, valid='0-1', flexible='1+', route=Route.ANY):
    """Set or remove quotas of entities. v1 is flexible."""

    entries: List[AlterClientQuotasRequestEntryData]
    validate_only: Bool


class AlterClientQuotasResponseEntryData(Struct):
    error_code: Int16
    error_message: Optional[String]
    entity: List[EntityData]


class AlterClientQuotasResponse(Message, api_key=49, valid='0-1', flexible='1+'):
    """One result per entity. v1 is flexible."""

    throttle_time_ms: Int32
    entries: List[AlterClientQuotasResponseEntryData]
