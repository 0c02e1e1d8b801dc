"""The requests of a member of a classic group, in every version that brokers support.

Called by ClassicMember and its HeartbeatSender. Pure.
"""

from __future__ import annotations

from typing import List, Mapping, Sequence, Tuple

from kafka.coordinator.classic.state_machine import Generation
from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import UnsupportedVersionError
from kafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

__all__ = [
    'PROTOCOL_TYPE',
    'heartbeat_request',
    'join_request',
    'join_seconds',
    'leave_request',
    'rebalance_seconds',
    'session_seconds',
    'sync_request',
]

#: The protocol type of consumer groups.
PROTOCOL_TYPE = 'consumer'
#: Brokers truncate reasons to this length (KIP-800).
REASON_CHARACTERS = 255
#: The first version of JoinGroup with a rebalance timeout (KIP-62). Brokers before 0.10.1 wait for
#: the session timeout instead, and reject one that is longer than this many seconds.
_HAS_REBALANCE_TIMEOUT, _LONGEST_SESSION_BEFORE = 1, 30.0
#: From this version on members can be static (KIP-345).
_STATIC_FROM = 5
#: From this version on LeaveGroup has a list of members (KIP-345).
_LEAVES_SEVERAL_FROM = 3
#: Seconds that the response to JoinGroup may take in addition to the rebalance timeout.
_GRACE = 5.0


def session_seconds(settings: GroupSettings, version: int) -> float:
    """Return the session timeout in seconds for a version of JoinGroup."""
    if version < _HAS_REBALANCE_TIMEOUT:
        return min(settings.session_timeout, _LONGEST_SESSION_BEFORE)
    return settings.session_timeout


def rebalance_seconds(settings: GroupSettings, version: int) -> float:
    """Return how long in seconds the group waits for this member in a rebalance."""
    if version < _HAS_REBALANCE_TIMEOUT:
        return session_seconds(settings, version)
    return settings.rebalance_timeout


def join_seconds(settings: GroupSettings, version: int) -> float:
    """Return the timeout in seconds for the response to JoinGroup, which the broker holds."""
    return max(settings.request_timeout, rebalance_seconds(settings, version) + _GRACE)


def join_request(
    settings: GroupSettings,
    who: Generation,
    protocols: Sequence[Tuple[str, bytes]],
    reason: str,
    version: int,
) -> JoinGroupRequest:
    """Return the JoinGroup request.

    Arguments: protocols: names of assignors and their subscriptions, the preferred one first.

    Raises UnsupportedVersionError for a static member if the version does not support it.
    """
    if settings.group_instance_id is not None and version < _STATIC_FROM:
        raise UnsupportedVersionError(
            'group %s: the brokers know no static members: group_instance_id needs 2.3'
            % settings.group_id
        )
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=_ms(session_seconds(settings, version)),
        rebalance_timeout_ms=_ms(rebalance_seconds(settings, version)),
        member_id=who.member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        reason=reason[:REASON_CHARACTERS],
    )


def sync_request(
    settings: GroupSettings, who: Generation, protocol: str, assignments: Mapping[str, bytes]
) -> SyncGroupRequest:
    """Return the SyncGroup request. Arguments: assignments: of all members, from the leader."""
    given: List[SyncGroupRequestAssignment] = [
        SyncGroupRequestAssignment(member_id=name, assignment=data)
        for name, data in assignments.items()
    ]
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=given,
    )


def heartbeat_request(settings: GroupSettings, who: Generation) -> HeartbeatRequest:
    """Return the Heartbeat request."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=settings.group_instance_id,
    )


def leave_request(
    settings: GroupSettings, who: Generation, reason: str, version: int
) -> LeaveGroupRequest:
    """Return the LeaveGroup request of a dynamic member."""
    if version < _LEAVES_SEVERAL_FROM:
        return LeaveGroupRequest(group_id=settings.group_id, member_id=who.member_id)
    leaver = MemberIdentity(member_id=who.member_id, reason=reason[:REASON_CHARACTERS])
    return LeaveGroupRequest(group_id=settings.group_id, members=[leaver])


def _ms(seconds: float) -> int:
    return min(round(seconds * 1000), 2**31 - 1)
