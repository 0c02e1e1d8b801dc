"""DescribeAcls, CreateAcls and DeleteAcls of an embedded cluster (KIP-140, KIP-290).

Without an authorizer (``Defaults.authorizer``) brokers answer SECURITY_DISABLED. Invalid numbers
of types, patterns, operations or permissions close the connection, as in Kafka.
"""

from __future__ import annotations

from typing import Any, List, Optional

from kafka.protocol.admin.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.kept_bytes import acl_bytes
from kafka.testing.security import acls
from kafka.testing.security.acls import Acl, AclFilter
from kafka.testing.topic_checks import Refused, refuse

_DISABLED = 'No Authorizer is configured.'
_MOST_ACLS = 100_000


@handles(DescribeAclsRequest)
def describe_acls(call: Call[DescribeAclsRequest]) -> Optional[DescribeAclsResponse]:
    """Return the ACLs that a filter matches, grouped by resource."""
    wanted = _filter(call.request)
    if _is_unread(call, wanted):
        call.close_connection()
        return None
    response = DescribeAclsResponse(
        throttle_time_ms=0, error_code=errors.NONE, error_message=_no_text(call), resources=[]
    )
    if not call.state.defaults.authorizer:
        response.error_code, response.error_message = errors.SECURITY_DISABLED, _DISABLED
        return response
    for acl in _matching(call, wanted):
        last = response.resources[-1] if response.resources else None
        if last is None or acl[:3] != (
            last.resource_type,
            last.resource_name,
            last.pattern_type,
        ):
            last = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                acls=[],
            )
            response.resources.append(last)
        last.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return response


def _is_unread(call: Call[Any], wanted: AclFilter, is_new: bool = False) -> bool:
    """Return True if brokers cannot decode a request with such a filter or ACL."""
    if call.state.release.version >= (2, 0):
        return 0 in wanted.numbers
    return is_new and acls.ANY in (wanted.operation, wanted.permission_type)


def _no_text(call: Call[Any]) -> Optional[str]:
    """Return the error message of success: '' from 2.5 on, when messages were generated."""
    return '' if call.state.release.version >= (2, 5) else None


def _filter(asked: Any) -> AclFilter:
    """Return the filter in a request or in a part of one."""
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _matching(call: Call[Any], wanted: AclFilter) -> List[Acl]:
    """Return the ACLs that a filter matches; version 0 has literal resource names only."""
    if not wanted.is_known:
        return []
    return [
        acl
        for acl in sorted(call.state.acls)
        if wanted.matches(acl) and (call.version > 0 or acl.pattern_type == acls.LITERAL)
    ]


@handles(CreateAclsRequest)
def create_acls(call: Call[CreateAclsRequest]) -> Optional[CreateAclsResponse]:
    """Create ACLs; existing ones are kept."""
    made = [_made(each) for each in call.request.creations]
    if any(_is_unread(call, AclFilter(*acl), is_new=True) for acl in made):
        call.close_connection()
        return None
    return CreateAclsResponse(throttle_time_ms=0, results=[_created(call, acl) for acl in made])


def _made(asked: AclCreation) -> Acl:
    return Acl(
        asked.resource_type,
        asked.resource_name,
        asked.resource_pattern_type,
        asked.principal,
        asked.host,
        asked.operation,
        asked.permission_type,
    )


def _created(call: Call[CreateAclsRequest], acl: Acl) -> AclCreationResult:
    code, text = errors.NONE, _no_text(call)
    try:
        _check(call, acl)
        if acl not in call.state.acls:
            call.state.kept.change(0, acl_bytes(acl))
            call.state.acls.add(acl)
    except Refused as refused:
        code, text = refused.code, refused.text
    return AclCreationResult(error_code=code, error_message=text)


def _check(call: Call[CreateAclsRequest], acl: Acl) -> None:
    """Raise Refused unless an ACL may be created."""
    code = errors.INVALID_REQUEST
    if not call.state.defaults.authorizer:
        refuse(errors.SECURITY_DISABLED, _DISABLED)
    if acl.resource_type == acls.CLUSTER and acl.resource_name != acls.CLUSTER_NAME:
        refuse(code, 'The only valid name for the CLUSTER resource is %s' % acls.CLUSTER_NAME)
    if not acl.resource_name:
        refuse(code, 'Invalid empty resource name')
    is_old = call.state.release.version < (2, 0)
    if not AclFilter(*acl).is_known:
        refuse(code, 'An ACL has an unknown number: %s' % (acl,))
    for_filters_only = acls.ANY in AclFilter(*acl).numbers or acl.pattern_type == acls.MATCH
    if for_filters_only:
        if is_old:
            refuse(code, 'ANY is for filters only')
        refuse(errors.UNKNOWN_SERVER_ERROR)  # brokers fail on it unexpectedly
    if ':' not in acl.principal:
        if call.state.release.has_zookeeper and not is_old:
            refuse(errors.UNKNOWN_SERVER_ERROR)
        refuse(
            code,
            'Could not parse principal from `%s` (no colon is present separating the'
            ' principal type from the principal name)' % acl.principal,
        )
    if not acl.host and call.state.release.version >= (4, 4):
        refuse(code, 'Host pattern cannot be null or empty')
    if len(call.state.acls) >= _MOST_ACLS:
        refuse(errors.POLICY_VIOLATION, 'There are %d ACLs' % _MOST_ACLS)


@handles(DeleteAclsRequest)
def delete_acls(call: Call[DeleteAclsRequest]) -> Optional[DeleteAclsResponse]:
    """Delete the ACLs that filters match, and return them."""
    filters = [_filter(each) for each in call.request.filters]
    if any(_is_unread(call, each) for each in filters):
        call.close_connection()
        return None
    return DeleteAclsResponse(
        throttle_time_ms=0, filter_results=[_deleted(call, each) for each in filters]
    )


def _deleted(call: Call[DeleteAclsRequest], wanted: AclFilter) -> DeleteAclsFilterResult:
    if not call.state.defaults.authorizer:
        return DeleteAclsFilterResult(
            error_code=errors.SECURITY_DISABLED, error_message=_DISABLED, matching_acls=[]
        )
    found = _matching(call, wanted)
    call.state.acls.difference_update(found)
    call.state.kept.change(sum(map(acl_bytes, found)), 0)
    return DeleteAclsFilterResult(
        error_code=errors.NONE,
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_code=errors.NONE,
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in found
        ],
    )
