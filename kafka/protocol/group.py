"""Group membership: the classic protocol and that of KIP-848.

The metadata inside the classic messages is in consumer_protocol.py.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import Bool, Bytes, Int16, Int32, Message, Route, String, Struct, Uuid, v

#: The identity of a consumer that is not a member yet.
DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID = -1, ''


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupRequest(
    Message, api_key=11, valid='0-9', flexible='6+', route=Route.GROUP_COORDINATOR
):
    """Join a rebalance of a classic group, with the protocols that this member supports.

    v1 adds the rebalance timeout (KIP-62). From v4 on a first request without member id is rejected
    with a member id (KIP-394). v5 adds static members (KIP-345), v6 is flexible, v8 adds a reason
    (KIP-800).
    """

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = v('1+', default=-1, ignorable=True)
    member_id: String
    group_instance_id: Optional[String] = v('5+', default=None)
    protocol_type: String
    protocols: List[JoinGroupRequestProtocol]
    reason: Optional[String] = v('8+', default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: Optional[String] = v('5+', default=None, ignorable=True)
    metadata: Bytes


class JoinGroupResponse(Message, api_key=11, valid='0-9', flexible='6+'):
    """The generation, its leader, and for the leader all members.

    v2 adds the throttle time, v5 static members (KIP-345), v6 is flexible, v7 names the protocol
    type (KIP-559), v9 can tell the leader to skip the assignment (KIP-814).
    """

    throttle_time_ms: Int32 = v('2+', default=0, ignorable=True)
    error_code: Int16
    generation_id: Int32 = v(default=-1)
    protocol_type: Optional[String] = v('7+', default=None, ignorable=True)
    protocol_name: Optional[String] = v(nullable='7+')
    leader: String
    skip_assignment: Bool = v('9+', default=False)
    member_id: String
    members: List[JoinGroupResponseMember]


class HeartbeatRequest(
    Message, api_key=12, valid='0-4', flexible='4+', route=Route.GROUP_COORDINATOR
):
    """Keep a member of a classic group alive.

    v3 adds static members (KIP-345), v4 is flexible.
    """

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Optional[String] = v('3+', default=None)


class HeartbeatResponse(Message, api_key=12, valid='0-4', flexible='4+'):
    """Whether the member is still in the group. v1 adds the throttle time, v4 is flexible."""

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16


class MemberIdentity(Struct):
    member_id: String
    group_instance_id: Optional[String] = v(default=None)
    reason: Optional[String] = v('5+', default=None, ignorable=True)


class LeaveGroupRequest(
    Message, api_key=13, valid='0-5', flexible='4+', route=Route.GROUP_COORDINATOR
):
    """Leave a classic group.

    v3 removes several members at once (KIP-345), v4 is flexible, v5 adds reasons (KIP-800).
    """

    group_id: String
    member_id: String = v('0-2', default='')
    members: List[MemberIdentity] = v('3+', default=[])


class MemberResponse(Struct):
    member_id: String
    group_instance_id: Optional[String]
    error_code: Int16


class LeaveGroupResponse(Message, api_key=13, valid='0-5', flexible='4+'):
    """An error for the whole; from v3 on one per member too.

    v1 adds the throttle time, v4 is flexible.
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16
    members: List[MemberResponse] = v('3+', default=[])


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(
    Message, api_key=14, valid='0-5', flexible='4+', route=Route.GROUP_COORDINATOR
):
    """Submit the assignments, if leader, and request the member's own.

    v3 adds static members (KIP-345), v4 is flexible, v5 repeats the chosen protocol (KIP-559).
    """

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Optional[String] = v('3+', default=None)
    protocol_type: Optional[String] = v('5+', default=None, ignorable=True)
    protocol_name: Optional[String] = v('5+', default=None, ignorable=True)
    assignments: List[SyncGroupRequestAssignment]


class SyncGroupResponse(Message, api_key=14, valid='0-5', flexible='4+'):
    """The member's assignment, still encoded.

    v1 adds the throttle time, v4 is flexible, v5 repeats the chosen protocol (KIP-559).
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16
    protocol_type: Optional[String] = v('5+', default=None, ignorable=True)
    protocol_name: Optional[String] = v('5+', default=None, ignorable=True)
    assignment: Bytes


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: List[Int32]


class ConsumerGroupHeartbeatRequest(
    Message, api_key=68, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Join, stay in or leave a KIP-848 group; null means unchanged since the last one.

    v1 adds subscriptions by regular expression, and members choose their own id (KIP-1082).
    """

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: Optional[String] = v(default=None)
    rack_id: Optional[String] = v(default=None)
    rebalance_timeout_ms: Int32 = v(default=-1)
    subscribed_topic_names: Optional[List[String]] = v(default=None)
    subscribed_topic_regex: Optional[String] = v('1+', default=None)
    server_assignor: Optional[String] = v(default=None)
    topic_partitions: Optional[List[TopicPartitions]] = v(default=None)


class Assignment(Struct):
    topic_partitions: List[TopicPartitions]


class ConsumerGroupHeartbeatResponse(Message, api_key=68, valid='0-1', flexible='0+'):
    """The member's epoch, and the assignment if it has changed.

    v1 may reject a regular expression.
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    member_id: Optional[String] = v(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Optional[Assignment] = v(default=None)


def __getattr__(name: str) -> object:
    """Return names of 1.x and 2.x: classes of single versions, and structs inside of them."""
    if name in ('ProtocolMetadata', 'MemberAssignment'):
        return getattr(import_late('kafka.protocol.group_structs'), name)
    found: object = import_late('kafka.protocol.struct_names').look_up(__name__, name)
    if name == '__all__':
        assert isinstance(found, list)
        found += ['ProtocolMetadata', 'MemberAssignment']
    return found
