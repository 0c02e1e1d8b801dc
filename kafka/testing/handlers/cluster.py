"""DescribeCluster, features and quorum of an embedded cluster (KIP-700, KIP-584, KIP-595)."""

from __future__ import annotations

from typing import Dict, List, Optional

from kafka.protocol.admin.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    FeatureUpdateKey,
    Listener,
    Node,
    ReplicaState,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.security.operations import cluster_operations
from kafka.testing.settings.features import supported_features
from kafka.testing.state import ClusterState
from kafka.testing.topic_checks import Refused, refuse

METADATA_TOPIC = '__cluster_metadata'
_BROKERS, _CONTROLLERS = 1, 2
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


@handles(DescribeClusterRequest)
def describe_cluster(call: Call[DescribeClusterRequest]) -> DescribeClusterResponse:
    """Return the brokers of the cluster."""
    request, state = call.request, call.state
    response = DescribeClusterResponse(
        throttle_time_ms=0, error_code=errors.NONE, cluster_id='', brokers=[]
    )
    if request.endpoint_type != _BROKERS:
        is_known = request.endpoint_type == _CONTROLLERS
        response.error_code = (
            errors.MISMATCHED_ENDPOINT_TYPE if is_known else errors.UNSUPPORTED_ENDPOINT_TYPE
        )
        response.error_message = 'A broker was asked for endpoints of type %d' % (
            request.endpoint_type
        )
        return response
    response.cluster_id = state.cluster_id
    response.controller_id = state.controller_id
    response.brokers = [
        DescribeClusterBroker(
            broker_id=node.node_id,
            host=node.host,
            port=node.port,
            rack=node.rack,
            is_fenced=call.version >= 2 and not node.is_alive,
        )
        for _, node in sorted(state.nodes.items())
        if node.is_alive or request.include_fenced_brokers
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


# ------------------------------------------------------------ quorum


@handles(DescribeQuorumRequest)
def describe_quorum(call: Call[DescribeQuorumRequest]) -> DescribeQuorumResponse:
    """Return the state of the quorum: the controller leads it, and all brokers are voters."""
    topics = [
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                _quorum(call, topic.topic_name, each.partition_index) for each in topic.partitions
            ],
        )
        for topic in call.request.topics
    ]
    nodes = [
        Node(
            node_id=node.node_id,
            listeners=[Listener(name='CONTROLLER', host=node.host, port=node.port)],
        )
        for node in call.state.nodes.values()
    ]
    response = DescribeQuorumResponse(error_code=errors.NONE, topics=topics)
    is_known = any(each.error_code == errors.NONE for t in topics for each in t.partitions)
    if call.version >= 2 and is_known:
        response.nodes = nodes
    return response


def _quorum(
    call: Call[DescribeQuorumRequest], name: str, index: int
) -> DescribeQuorumResponsePartitionData:
    state = call.state
    is_known = (name, index) == (METADATA_TOPIC, 0)
    end = 1 + len(state.nodes) + sum(1 + len(t.partitions) for t in state.topics.values())
    return DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_code=errors.NONE if is_known else errors.UNKNOWN_TOPIC_OR_PARTITION,
        error_message='' if is_known else 'This server does not host this topic-partition.',
        leader_id=state.controller_id if is_known else 0,
        leader_epoch=1 if is_known else 0,
        high_watermark=end if is_known else 0,
        current_voters=_voters(state, end) if is_known else [],
        observers=[],
    )


def _voters(state: ClusterState, end: int) -> List[ReplicaState]:
    now = state.timers.clock.wall_ms()
    return [
        ReplicaState(
            replica_id=node.node_id,
            log_end_offset=end if node.is_alive else 0,
            last_fetch_timestamp=now if node.is_alive else -1,
            last_caught_up_timestamp=now if node.is_alive else -1,
        )
        for _, node in sorted(state.nodes.items())
    ]


# ------------------------------------------------------------ features, registrations


@handles(UpdateFeaturesRequest)
def update_features(call: Call[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
    """Update feature levels; from 4.0 on all of them or none."""
    request = call.request
    if is_wrong_node(call):
        return _updated(errors.NOT_CONTROLLER, None, [])
    levels = dict(call.state.features)
    results = []
    for update in request.feature_updates:
        code, text = errors.NONE, None
        try:
            _update(call, levels, update)
        except Refused as refused:
            code, text = refused.code, refused.text
        if code != errors.NONE and call.state.release.version >= (4, 0):
            return _updated(code, text, [])
        results.append(
            UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=text)
        )
    if not request.validate_only and levels != call.state.features:
        call.state.features = levels
        call.state.features_epoch += 1
    text = '' if (3, 3) <= call.state.release.version < (4, 0) else None
    return _updated(errors.NONE, text, results if call.version < 2 else [])


def _updated(
    code: int, text: Optional[str], results: List[UpdatableFeatureResult]
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        throttle_time_ms=0, error_code=code, error_message=text, results=results
    )


def _update(
    call: Call[UpdateFeaturesRequest], levels: Dict[str, int], update: FeatureUpdateKey
) -> None:
    name, level = update.feature, update.max_version_level
    known = supported_features(call.state.release.name).get(name)
    if known is None and level == 0 and (3, 3) <= call.state.release.version < (4, 0):
        return
    if known is None:
        code = errors.INVALID_UPDATE_VERSION
        refuse(
            errors.INVALID_REQUEST if call.state.release.has_zookeeper else code,
            'Invalid update version %d for feature %s. Local controller does not support this'
            ' feature.' % (level, name),
        )
    if not known.lowest <= level <= known.highest:
        refuse(
            errors.INVALID_UPDATE_VERSION,
            'Invalid update version %d for feature %s. Local controller only supports versions'
            ' %d-%d' % (level, name, known.lowest, known.highest),
        )
    kind = update.upgrade_type
    if call.version == 0:
        kind = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    if not _UPGRADE <= kind <= _UNSAFE_DOWNGRADE:
        refuse(errors.INVALID_UPDATE_VERSION, 'Unknown upgrade type %d' % kind)
    now = levels.get(name, 0)
    if level < now and kind == _UPGRADE:
        refuse(
            errors.INVALID_UPDATE_VERSION,
            "Invalid update version %d for feature %s. Can't downgrade the version of this feature"
            ' without setting the upgrade type to either safe or unsafe downgrade.' % (level, name),
        )
    if level > now and kind != _UPGRADE:
        refuse(
            errors.INVALID_UPDATE_VERSION,
            "Invalid update version %d for feature %s. Can't downgrade to a newer version."
            % (level, name),
        )
    if level:
        levels[name] = level
    else:
        levels.pop(name, None)


@handles(UnregisterBrokerRequest)
def unregister_broker(call: Call[UnregisterBrokerRequest]) -> UnregisterBrokerResponse:
    """Unregister a broker: only the check of its id, since it registers again on start."""
    code, text = errors.NONE, None
    if call.request.broker_id not in call.state.nodes:
        code = errors.BROKER_ID_NOT_REGISTERED
        text = 'Broker ID %d is not currently registered' % call.request.broker_id
        text = text if call.state.release.version >= (4, 1) else ''
    return UnregisterBrokerResponse(throttle_time_ms=0, error_code=code, error_message=text)
