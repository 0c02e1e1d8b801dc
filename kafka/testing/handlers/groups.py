"""Classic group APIs of an embedded cluster, and those that administrators use for all groups.

Membership follows the protocol guide, KIP-345 and KIP-394; the others KIP-222, KIP-229, KIP-518,
KIP-848 and KIP-1043. The groups are in :mod:`kafka.testing.groups.registry`, the coordinator check
is in group_checks.py.
"""

from __future__ import annotations

from typing import Any, Optional

from kafka.protocol.admin.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.wire import Message
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.group_checks import is_coordinator
from kafka.testing.groups.classic_group import ClassicGroup
from kafka.testing.groups.group_members import JoinCall, Member, join_refusal
from kafka.testing.groups.group_states import GroupState
from kafka.testing.security.operations import group_operations

CLIENT_HOST = '/127.0.0.1'


@handles(JoinGroupRequest)
def join_group(call: Call[JoinGroupRequest]) -> None:
    """Process a JoinGroup; the group answers it, perhaps much later."""
    request = call.request

    def reply(response: Message) -> None:
        # Meanwhile the client may have disconnected, or the coordinator moved.
        if not is_coordinator(call, request.group_id):
            response = join_refusal(call.version, NOT_COORDINATOR, request.member_id, -1)
        if call.is_waiting:
            call.respond(response)

    if request.group_id and not is_coordinator(call, request.group_id):
        call.respond(join_refusal(call.version, NOT_COORDINATOR, request.member_id, -1))
        return
    client_id = call.header.client_id
    call.state.groups.join(JoinCall(request, call.version, client_id or '', CLIENT_HOST, reply))


@handles(SyncGroupRequest)
def sync_group(call: Call[SyncGroupRequest]) -> None:
    """Process a SyncGroup; the group answers it once the leader's SyncGroup has arrived."""
    request = call.request
    refusal = SyncGroupResponse(error_code=NOT_COORDINATOR, assignment=b'')

    def reply(response: Message) -> None:
        if call.is_waiting:
            call.respond(response if is_coordinator(call, request.group_id) else refusal)

    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        # KIP-559 made them mandatory, although the protocol allows null.
        refusal = SyncGroupResponse(error_code=INCONSISTENT_GROUP_PROTOCOL, assignment=b'')
        call.respond(refusal)
    elif is_coordinator(call, request.group_id) or not request.group_id:
        call.state.groups.sync(request, reply)
    else:
        call.respond(refusal)


@handles(HeartbeatRequest)
def heartbeat(call: Call[HeartbeatRequest]) -> HeartbeatResponse:
    """Process a Heartbeat."""
    if call.state.release.version < (0, 9):  # no groups yet, only their messages
        return HeartbeatResponse(error_code=UNKNOWN_SERVER_ERROR)
    if call.request.group_id and not is_coordinator(call, call.request.group_id):
        return HeartbeatResponse(error_code=NOT_COORDINATOR)
    return HeartbeatResponse(error_code=call.state.groups.heartbeat(call.request))


@handles(LeaveGroupRequest)
def leave_group(call: Call[LeaveGroupRequest]) -> LeaveGroupResponse:
    """Remove members from a group."""
    request, groups = call.request, call.state.groups
    error = groups.leave_error(request.group_id)
    if not error and not is_coordinator(call, request.group_id):
        error = NOT_COORDINATOR
    if error:
        return LeaveGroupResponse(error_code=error)
    if call.version < 3:
        return LeaveGroupResponse(
            error_code=groups.leave(request.group_id, request.member_id, None)
        )
    return LeaveGroupResponse(
        error_code=NONE,
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=groups.leave(request.group_id, each.member_id, each.group_instance_id),
            )
            for each in request.members
        ],
    )


# ------------------------------------------------------------ administration


@handles(DescribeGroupsRequest)
def describe_groups(call: Call[DescribeGroupsRequest]) -> DescribeGroupsResponse:
    """Return groups with their members."""
    return DescribeGroupsResponse(groups=[_described(call, name) for name in call.request.groups])


def _described(call: Call[DescribeGroupsRequest], group_id: str) -> DescribedGroup:
    if not is_coordinator(call, group_id):
        return _described_as(group_id, '', error=NOT_COORDINATOR)
    groups = call.state.groups
    group = groups.get(group_id)
    if group is not None:
        described = _described_group(call, group)
    elif groups.has_only_offsets(group_id):
        described = _described_as(group_id, GroupState.EMPTY.value)
    else:
        described = _described_as(group_id, GroupState.DEAD.value)
        if call.version >= 6:  # KIP-1043
            described.error_code = GROUP_ID_NOT_FOUND
            described.error_message = 'Group %s not found.' % group_id
    if call.request.include_authorized_operations and not described.error_code:
        described.authorized_operations = group_operations(call, group_id)
    return described


def _described_as(group_id: str, state: str, error: int = NONE) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        group_id=group_id,
        group_state=state,
        protocol_type='',
        protocol_data='',
        members=[],
    )


def _described_group(call: Call[DescribeGroupsRequest], group: ClassicGroup) -> DescribedGroup:
    # Metadata and assignments are returned for stable groups only.
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        error_code=NONE,
        group_id=group.group_id,
        group_state=_state_name(call, group),
        protocol_type=group.protocol_type or '',
        protocol_data=protocol or '',
        members=[_described_member(call, each, protocol) for each in group.members.values()],
    )


def _described_member(
    call: Call[Any], member: Member, protocol: Optional[str]
) -> DescribedGroupMember:
    tells = protocol is not None or call.state.release.version >= (4, 0)
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b'' if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment if tells else b'',
    )


def _state_name(call: Call[Any], group: ClassicGroup) -> str:
    if group.state is GroupState.COMPLETING_REBALANCE and call.state.release.version < (1, 1):
        return 'AwaitingSync'
    return group.state.value


@handles(ListGroupsRequest)
def list_groups(call: Call[ListGroupsRequest]) -> ListGroupsResponse:
    """Return the groups that this broker coordinates."""
    request, groups = call.request, call.state.groups
    listed = (
        [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or '',
                group_state=_state_name(call, group),
                group_type=group.group_type,
            )
            for group in groups.all()
        ]
        + [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=group.group_type,
            )
            for group in groups.newer()
        ]
        + [
            ListedGroup(
                group_id=name,
                protocol_type='',
                group_state=GroupState.EMPTY.value,
                group_type=ClassicGroup.group_type,
            )
            for name in groups.offset_groups()
        ]
    )
    states = {each.lower() for each in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    return ListGroupsResponse(
        error_code=NONE,
        groups=[
            each
            for each in listed
            if is_coordinator(call, each.group_id)
            and (not states or each.group_state.lower() in states)
            and (not types or each.group_type.lower() in types)
        ],
    )


@handles(DeleteGroupsRequest)
def delete_groups(call: Call[DeleteGroupsRequest]) -> DeleteGroupsResponse:
    """Delete groups that have no members."""
    groups = call.state.groups
    return DeleteGroupsResponse(
        throttle_time_ms=0,
        results=[
            DeletableGroupResult(
                group_id=name,
                error_code=groups.delete(name) if is_coordinator(call, name) else NOT_COORDINATOR,
            )
            for name in call.request.groups_names
        ],
    )
