"""Messages for the configurations of brokers, topics, groups and client metrics.

In the order of the protocol guide. Requests for one broker's configuration are sent to that broker,
all others to any.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bool, Int8, Int16, Int32, Message, Route, String, Struct, v


class DescribeConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configuration_keys: Optional[List[String]]


class DescribeConfigsRequest(Message, api_key=32, valid='0-4', flexible='4+', route=Route.ANY):
    """Request configurations; null keys mean all of them.

    v1 adds synonyms (KIP-226), v3 documentation (KIP-569), v4 is flexible. 4.0 dropped v0.
    """

    resources: List[DescribeConfigsResource]
    include_synonyms: Bool = v('1+', default=False)
    include_documentation: Bool = v('3+', default=False)


class DescribeConfigsSynonym(Struct):
    name: String
    value: Optional[String]
    source: Int8


class DescribeConfigsResourceResult(Struct):
    name: String
    value: Optional[String]
    read_only: Bool
    is_default: Bool = v('0', default=False)
    config_source: Int8 = v('1+', default=-1, ignorable=True)
    is_sensitive: Bool
    synonyms: List[DescribeConfigsSynonym] = v('1+', default=[], ignorable=True)
    config_type: Int8 = v('3+', default=0, ignorable=True)
    documentation: Optional[String] = v('3+', default='', ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: Optional[String]
    resource_type: Int8
    resource_name: String
    configs: List[DescribeConfigsResourceResult]


class DescribeConfigsResponse(Message, api_key=32, valid='0-4', flexible='4+'):
    """Configurations of each resource.

    v1 adds the source of a value (KIP-226), v3 types and documentation (KIP-569), v4 is
    flexible.
    """

    throttle_time_ms: Int32
    results: List[DescribeConfigsResult]


class AlterableConfig(Struct):
    name: String
    value: Optional[String] = v(secret=True)


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: List[AlterableConfig]


class AlterConfigsRequest(Message, api_key=33, valid='0-2', flexible='2+', route=Route.ANY):
    """Replace all configurations of resources (KIP-133). v2 is flexible."""

    resources: List[AlterConfigsResource]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: Optional[String]
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Message, api_key=33, valid='0-2', flexible='2+'):
    """One result per resource. v2 is flexible."""

    throttle_time_ms: Int32
    responses: List[AlterConfigsResourceResponse]


class IncrementalAlterableConfig(Struct):
    name: String
    config_operation: Int8
    value: Optional[String] = v(secret=True)


class IncrementalAlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: List[IncrementalAlterableConfig]


class IncrementalAlterConfigsRequest(
    Message, api_key=44, valid='0-1', flexible='1+', route=Route.ANY
):
    """Set, delete, append to or subtract from configurations (KIP-339). v1 is flexible."""

    resources: List[IncrementalAlterConfigsResource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Message, api_key=44, valid='0-1', flexible='1+'):
    """One result per resource. v1 is flexible."""

    throttle_time_ms: Int32
    responses: List[AlterConfigsResourceResponse]


class ListConfigResourcesRequest(Message, api_key=74, valid='0-1', flexible='0+', route=Route.ANY):
    """Request the resources that have configurations (KIP-1142).

    v0 was named ListClientMetricsResources, for client metrics only (KIP-1000); v1 takes types.
    """

    resource_types: List[Int8] = v('1+', default=[])


class ConfigResource(Struct):
    resource_name: String
    resource_type: Int8 = v('1+', default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, valid='0-1', flexible='0+'):
    """Names of resources, all of client metrics in v0; v1 adds types (KIP-1142)."""

    throttle_time_ms: Int32
    error_code: Int16
    config_resources: List[ConfigResource]
