"""Messages for the administration of access control lists (KIP-140)."""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Int8, Int16, Int32, Message, Route, String, Struct, v


class DescribeAclsRequest(Message, api_key=29, valid='0-3', flexible='2+', route=Route.ANY):
    """Ask for the ACLs that match a filter.

    v1 adds patterns (KIP-290), v2 is flexible, v3 knows users (KIP-373). 4.0 dropped v0.
    """

    resource_type_filter: Int8
    resource_name_filter: Optional[String]
    pattern_type_filter: Int8 = v('1+', default=3)
    principal_filter: Optional[String]
    host_filter: Optional[String]
    operation: Int8
    permission_type: Int8


class AclDescription(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = v('1+', default=3)
    acls: List[AclDescription]


class DescribeAclsResponse(Message, api_key=29, valid='0-3', flexible='2+'):
    """ACLs by resource. v1 adds patterns (KIP-290), v2 is flexible."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
    resources: List[DescribeAclsResource]


class AclCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = v('1+', default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Message, api_key=30, valid='0-3', flexible='2+', route=Route.CONTROLLER):
    """Add ACLs.

    v1 adds patterns (KIP-290), v2 is flexible, v3 knows users (KIP-373). 4.0 dropped v0.
    """

    creations: List[AclCreation]


class AclCreationResult(Struct):
    error_code: Int16
    error_message: Optional[String]


class CreateAclsResponse(Message, api_key=30, valid='0-3', flexible='2+'):
    """One result per ACL, in the order of the request. v2 is flexible."""

    throttle_time_ms: Int32
    results: List[AclCreationResult]


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: Optional[String]
    pattern_type_filter: Int8 = v('1+', default=3)
    principal_filter: Optional[String]
    host_filter: Optional[String]
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Message, api_key=31, valid='0-3', flexible='2+', route=Route.CONTROLLER):
    """Delete the ACLs that match filters.

    v1 adds patterns (KIP-290), v2 is flexible, v3 knows users (KIP-373). 4.0 dropped v0.
    """

    filters: List[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16
    error_message: Optional[String]
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = v('1+', default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    error_code: Int16
    error_message: Optional[String]
    matching_acls: List[DeleteAclsMatchingAcl]


class DeleteAclsResponse(Message, api_key=31, valid='0-3', flexible='2+'):
    """What each filter matched. v1 adds patterns (KIP-290), v2 is flexible."""

    throttle_time_ms: Int32
    filter_results: List[DeleteAclsFilterResult]
