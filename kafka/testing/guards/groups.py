"""Guards of the group APIs: membership, descriptions and offsets."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional

from kafka.protocol.admin.groups import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.api import ApiKey
from kafka.protocol.commit import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.group import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.share import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from kafka.protocol.streams import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.guards.rules import (
    Answer,
    authorized_operations,
    change_response,
    guards,
    may_cluster,
    may_topic,
    refuse_items,
    refuse_topics,
    refused,
)
from kafka.testing.security import acls

_DENIED = errors.GROUP_AUTHORIZATION_FAILED
_REFUSALS = {
    _DENIED,
    errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    errors.CLUSTER_AUTHORIZATION_FAILED,
}
#: Key types of FindCoordinator.
_GROUP, _TRANSACTION, _SHARE = range(3)


#: The feature that an API needs; without it the API is unsupported, whatever the ACLs.
_FEATURES: Dict[int, str] = {
    **dict.fromkeys((ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE), ''),
    **dict.fromkeys(
        (
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ),
        'share.version',
    ),
    **dict.fromkeys(
        (ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE), 'streams.version'
    ),
}


def _is_unsupported(call: Call[Any]) -> bool:
    feature = _FEATURES[call.header.api_key]
    if not feature:
        return call.state.release.version < (4, 0)
    return call.state.features.get(feature, 0) == 0


def _may(call: Call[Any], operation: int, group: str) -> bool:
    return call.may(operation, acls.GROUP, group)


@guards(
    JoinGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
)
def member(call: Call[Any]) -> Answer:
    """Require READ on the group."""
    return None if _may(call, acls.READ, call.request.group_id) else _unjoined(call, _DENIED)


def _unjoined(call: Call[Any], code: int) -> Any:
    """Return the refusal of a member, with the values that brokers send without a member."""
    response = refused(call, code)
    if hasattr(response, 'member_epoch'):
        response.member_epoch = 0
    if isinstance(call.request, JoinGroupRequest) and call.version >= 7:
        response.protocol_name = None
    return response


@guards(SyncGroupRequest)
def sync(call: Call[SyncGroupRequest]) -> Answer:
    """Require READ on the group, unless mandatory fields are missing (KIP-559)."""
    request = call.request
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return None
    return member(call)


@guards(ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest)
def heartbeat(call: Call[Any]) -> Answer:
    """Require READ on the group, and DESCRIBE on the subscribed topics."""
    if _is_unsupported(call):
        return None
    return member(call) or _undescribed(call, call.request.subscribed_topic_names or ())


@guards(StreamsGroupHeartbeatRequest)
def streams_heartbeat(call: Call[StreamsGroupHeartbeatRequest]) -> Answer:
    """Require READ on the group, and DESCRIBE on the topics of the topology."""
    if _is_unsupported(call):
        return None
    topology = call.request.topology
    names: List[str] = []
    for each in topology.subtopologies or () if topology is not None else ():
        names += [*each.source_topics, *each.repartition_sink_topics]
        names += [topic.name for topic in each.repartition_source_topics]
        names += [topic.name for topic in each.state_changelog_topics]
    return member(call) or _undescribed(call, names)


def _undescribed(call: Call[Any], names: Iterable[str]) -> Answer:
    if all(may_topic(call, acls.DESCRIBE, name) for name in names):
        return None
    return _unjoined(call, errors.TOPIC_AUTHORIZATION_FAILED)


# ---------------------------------------------------------------- lookups and descriptions


@guards(FindCoordinatorRequest)
def find_coordinator(call: Call[FindCoordinatorRequest]) -> Answer:
    """Require DESCRIBE on groups and transactional ids, CLUSTER_ACTION for share groups."""
    request = call.request
    kind = request.key_type
    if call.version == 0 or kind == _GROUP:
        resource, code = acls.GROUP, _DENIED
    elif kind == _TRANSACTION:
        resource, code = acls.TRANSACTIONAL_ID, errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif kind == _SHARE and call.version >= 6:
        resource, code = acls.CLUSTER, errors.CLUSTER_AUTHORIZATION_FAILED
    else:
        return None

    def is_allowed(key: str) -> bool:
        if resource == acls.CLUSTER:
            return may_cluster(call, acls.CLUSTER_ACTION)
        return call.may(acls.DESCRIBE, resource, key)

    if call.version >= 4:
        response = refuse_items(call, 'coordinator_keys', 'coordinators', code, is_allowed)
        change_response(call, _leave_nowhere)
        return response
    change_response(call, _leave_nowhere)
    return None if is_allowed(request.key) else refused(call, code)


def _leave_nowhere(response: Any) -> None:
    """Remove the address from responses with an error."""
    for each in response.coordinators:
        if each.error_code in _REFUSALS:
            each.node_id, each.host, each.port, each.error_message = -1, '', -1, ''
    if response.error_code in _REFUSALS:
        response.node_id, response.host, response.port = -1, '', -1


@guards(DescribeGroupsRequest)
def describe_groups(call: Call[DescribeGroupsRequest]) -> Answer:
    """Require DESCRIBE on groups."""
    return _describe(call, 'groups')


@guards(ConsumerGroupDescribeRequest, ShareGroupDescribeRequest, StreamsGroupDescribeRequest)
def describe_by_ids(call: Call[Any]) -> Answer:
    """Require DESCRIBE on groups, and on the topics of their members."""
    if _is_unsupported(call):
        return None
    response = _describe(call, 'group_ids')
    if response is None:
        change_response(call, lambda answer: _hide_groups(call, answer))
    return response


def _hide_groups(call: Call[Any], response: Any) -> None:
    for group in response.groups:
        if group.error_code == errors.NONE and not all(
            may_topic(call, acls.DESCRIBE, name) for name in _topics_of(group)
        ):
            group.error_code = errors.TOPIC_AUTHORIZATION_FAILED
            group.error_message = (
                'The group has topics that the client is not authorized to describe'
            )
            group.members = []


def _topics_of(group: Any) -> Iterable[str]:
    """Yield the topics in the description of a group."""
    topology = getattr(group, 'topology', None)
    for each in topology.subtopologies or () if topology is not None else ():
        yield from each.source_topics
    for each in group.members:
        yield from getattr(each, 'subscribed_topic_names', None) or ()
        for assignment in (each.assignment, getattr(each, 'target_assignment', None)):
            for topic in getattr(assignment, 'topic_partitions', ()):
                yield topic.topic_name


def _describe(call: Call[Any], asked: str) -> Answer:
    response = refuse_items(
        call, asked, 'groups', _DENIED, lambda name: _may(call, acls.DESCRIBE, name)
    )
    change_response(call, _forget_epochs)
    if response is None and getattr(call.request, 'include_authorized_operations', False):
        change_response(call, lambda answer: _tell_operations(call, answer))
    return response


def _forget_epochs(response: Any) -> None:
    for group in response.groups:
        if group.error_code == _DENIED and hasattr(group, 'group_epoch'):
            group.group_epoch = group.assignment_epoch = 0


def _tell_operations(call: Call[Any], response: Any) -> None:
    for group in response.groups:
        if group.error_code == errors.NONE:
            operations = authorized_operations(call, acls.GROUP, group.group_id)
            group.authorized_operations = operations


@guards(ListGroupsRequest)
def list_groups(call: Call[ListGroupsRequest]) -> Answer:
    """Require DESCRIBE on the cluster, or leave out groups without DESCRIBE (KIP-231)."""
    if may_cluster(call, acls.DESCRIBE):
        return None
    if call.state.release.version < (2, 1):
        return refused(call, errors.CLUSTER_AUTHORIZATION_FAILED)

    def change(response: Any) -> None:
        groups = response.groups
        response.groups = [each for each in groups if _may(call, acls.DESCRIBE, each.group_id)]

    change_response(call, change)
    return None


@guards(DeleteGroupsRequest)
def delete_groups(call: Call[DeleteGroupsRequest]) -> Answer:
    """Require DELETE on groups."""
    return refuse_items(
        call,
        'groups_names',
        'results',
        _DENIED,
        lambda name: _may(call, acls.DELETE, name),
    )


# ---------------------------------------------------------------- offsets


@guards(OffsetCommitRequest)
def offset_commit(call: Call[OffsetCommitRequest]) -> Answer:
    """Require READ on the group and on topics."""
    return member(call) or refuse_topics(call, 'topics', 'topics', acls.READ)


@guards(OffsetDeleteRequest)
def offset_delete(call: Call[OffsetDeleteRequest]) -> Answer:
    """Require DELETE on the group and READ on topics."""
    if not _may(call, acls.DELETE, call.request.group_id):
        return refused(call, _DENIED)
    return refuse_topics(call, 'topics', 'topics', acls.READ)


@guards(OffsetFetchRequest)
def offset_fetch(call: Call[OffsetFetchRequest]) -> Answer:
    """Require DESCRIBE on groups and topics; if all topics are requested, others are left out."""
    request = call.request
    if call.version >= 8:
        return _fetch_of_groups(call)
    # Before 1.0 brokers required READ.
    operation = acls.READ if call.state.release.version < (1, 0) else acls.DESCRIBE
    if not _may(call, operation, request.group_id):
        response = refused(call, _DENIED)
        if call.version >= 2:
            response.topics = []
        return response
    if request.topics is not None:
        return refuse_topics(call, 'topics', 'topics', acls.DESCRIBE)
    change_response(call, lambda response: _hide_topics(call, response))
    return None


def _hide_topics(call: Call[Any], answer: Any) -> None:
    """Leave out topics without DESCRIBE."""
    answer.topics = [
        each for each in answer.topics if may_topic(call, acls.DESCRIBE, topic_of(call, each))
    ]


def topic_of(call: Call[Any], told: Any) -> Optional[str]:
    """Return the name of a topic in a response."""
    topic = call.state.topic_by_id(told.topic_id) if not told.name else None
    return told.name or (None if topic is None else topic.name)


def _fetch_of_groups(call: Call[OffsetFetchRequest]) -> Answer:
    response = _refuse_groups(call)
    if response is not None:
        return response
    asked_all = {each.group_id for each in call.request.groups if each.topics is None}

    def change(answer: Any) -> None:
        for group in answer.groups:
            if group.error_code == errors.NONE and group.group_id in asked_all:
                _hide_topics(call, group)
            elif group.error_code == errors.NONE:
                _refuse_offsets(call, group)

    change_response(call, change)
    return None


def _refuse_groups(call: Call[Any]) -> Answer:
    """Require DESCRIBE on each group whose offsets are requested."""
    response = refuse_items(
        call,
        'groups',
        'groups',
        _DENIED,
        lambda group: _may(call, acls.DESCRIBE, group.group_id),
    )
    change_response(call, _leave_out_topics)
    return response


def _leave_out_topics(response: Any) -> None:
    for group in response.groups:
        if group.error_code == _DENIED:
            group.topics = []


def _refuse_offsets(call: Call[Any], group: Any) -> None:
    """Replace the offsets of topics without DESCRIBE by the error code."""
    for topic in group.topics:
        if not may_topic(call, acls.DESCRIBE, topic_of(call, topic)):
            for each in topic.partitions:
                each.committed_offset, each.committed_leader_epoch, each.metadata = -1, -1, ''
                each.error_code = errors.TOPIC_AUTHORIZATION_FAILED


# ---------------------------------------------------------------- share groups


@guards(ShareFetchRequest, ShareAcknowledgeRequest)
def share(call: Call[Any]) -> Answer:
    """Require READ on the group; the handler checks the topics."""
    if _is_unsupported(call) or _may(call, acls.READ, call.request.group_id):
        return None
    response = refused(call, _DENIED)
    response.error_code, response.responses = _DENIED, []
    return response


@guards(DescribeShareGroupOffsetsRequest)
def describe_share_offsets(call: Call[DescribeShareGroupOffsetsRequest]) -> Answer:
    """Require DESCRIBE on groups and on topics."""
    if _is_unsupported(call):
        return None
    response = _refuse_groups(call)
    if response is None:
        change_response(call, lambda answer: _refuse_share_offsets(call, answer))
    return response


def _refuse_share_offsets(call: Call[Any], response: Any) -> None:
    for group in response.groups:
        for topic in group.topics:
            if not may_topic(call, acls.DESCRIBE, topic.topic_name):
                for each in topic.partitions:
                    each.start_offset = -1
                    each.error_code = errors.TOPIC_AUTHORIZATION_FAILED


@guards(AlterShareGroupOffsetsRequest)
def alter_share_offsets(call: Call[AlterShareGroupOffsetsRequest]) -> Answer:
    """Require READ on the group and on topics."""
    response = None if _is_unsupported(call) else member(call)
    return response or refuse_topics(call, 'topics', 'responses', acls.READ, name='topic_name')


@guards(DeleteShareGroupOffsetsRequest)
def delete_share_offsets(call: Call[DeleteShareGroupOffsetsRequest]) -> Answer:
    """Require DELETE on the group and READ on topics."""
    if _is_unsupported(call):
        return None
    if not _may(call, acls.DELETE, call.request.group_id):
        return refused(call, _DENIED)
    return refuse_topics(call, 'topics', 'responses', acls.READ, name='topic_name')
