"""Messages for the administration of consumer groups.

In the order of the protocol guide. The offsets of groups are in commit.py, share groups in
share.py.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Message,
    Route,
    String,
    Struct,
    Uuid,
    v,
)


class DescribeGroupsRequest(
    Message, api_key=15, valid='0-6', flexible='5+', route=Route.GROUP_COORDINATOR
):
    """Request the members of classic groups.

    v3 can request authorized operations (KIP-430), v5 is flexible.
    """

    groups: List[String]
    include_authorized_operations: Bool = v('3+', default=False)


class DescribedGroupMember(Struct):
    member_id: String
    group_instance_id: Optional[String] = v('4+', default=None, ignorable=True)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Struct):
    error_code: Int16
    error_message: Optional[String] = v('6+', default=None)
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: List[DescribedGroupMember]
    authorized_operations: Int32 = v('3+', default=-0x80000000)


class DescribeGroupsResponse(Message, api_key=15, valid='0-6', flexible='5+'):
    """Groups with members, their metadata and assignments, still encoded.

    v1 adds the throttle time, v3 authorized operations (KIP-430), v4 static members (KIP-345), v5
    is flexible, v6 adds error messages and an error for unknown groups (KIP-1043).
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    groups: List[DescribedGroup]


class ListGroupsRequest(Message, api_key=16, valid='0-5', flexible='3+', route=Route.BROKER):
    """Request the groups that a broker coordinates.

    v3 is flexible, v4 filters by state (KIP-518), v5 by type (KIP-848).
    """

    states_filter: List[String] = v('4+', default=[])
    types_filter: List[String] = v('5+', default=[])


class ListedGroup(Struct):
    group_id: String
    protocol_type: String
    group_state: String = v('4+', default='', ignorable=True)
    group_type: String = v('5+', default='', ignorable=True)


class ListGroupsResponse(Message, api_key=16, valid='0-5', flexible='3+'):
    """Groups and their protocol types.

    v1 adds the throttle time, v3 is flexible, v4 adds states (KIP-518), v5 types (KIP-848).
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16
    groups: List[ListedGroup]


class DeleteGroupsRequest(
    Message, api_key=42, valid='0-3', flexible='2+', route=Route.GROUP_COORDINATOR
):
    """Delete groups without members, with their offsets (KIP-229).

    v2 is flexible.
    """

    groups_names: List[String]


class DeletableGroupResult(Struct):
    group_id: String
    error_code: Int16
    error_message: Optional[String] = v('3+', default=None, ignorable=True)


class DeleteGroupsResponse(Message, api_key=42, valid='0-3', flexible='2+'):
    """One error code per group.

    v1 only changed when brokers throttle, v2 is flexible, v3 adds error messages.
    """

    throttle_time_ms: Int32
    results: List[DeletableGroupResult]


class ConsumerGroupDescribeRequest(
    Message, api_key=69, valid='0-1', flexible='0+', route=Route.GROUP_COORDINATOR
):
    """Request the members of KIP-848 groups."""

    group_ids: List[String]
    include_authorized_operations: Bool


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: List[Int32]


class Assignment(Struct):
    topic_partitions: List[TopicPartitions]


class Member(Struct):
    member_id: String
    instance_id: Optional[String] = v(default=None)
    rack_id: Optional[String] = v(default=None)
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: List[String]
    subscribed_topic_regex: Optional[String] = v(default=None)
    assignment: Assignment
    target_assignment: Assignment
    member_type: Int8 = v('1+', default=-1, ignorable=True)


class DescribedConsumerGroup(Struct):
    error_code: Int16
    error_message: Optional[String] = v(default=None)
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: List[Member]
    authorized_operations: Int32 = v(default=-0x80000000)


class ConsumerGroupDescribeResponse(Message, api_key=69, valid='0-1', flexible='0+'):
    """Groups with members, their assignments and target assignments.

    v1 adds the type of each member, classic or not (KIP-1099).
    """

    throttle_time_ms: Int32
    groups: List[DescribedConsumerGroup]
