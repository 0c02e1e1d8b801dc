"""Guards of the APIs that describe, create, change and delete topics.

Topics without DESCRIBE are left out of lists; if a request names them, they are
TOPIC_AUTHORIZATION_FAILED whether they exist or not.
"""

from __future__ import annotations

from typing import Any, List, Optional

from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.guards.cluster import cluster_operations
from kafka.testing.guards.rules import (
    Answer,
    authorized_operations,
    change_response,
    changed,
    guards,
    may_cluster,
    may_topic,
    refuse_by_code,
    refuse_items,
    refuse_topics,
    refused,
    split,
    topic_code,
    topic_name,
)
from kafka.testing.security import acls


@guards(MetadataRequest)
def metadata(call: Call[MetadataRequest]) -> None:
    """Leave out or refuse topics without DESCRIBE, or without CREATE if they would be created."""
    request = call.request
    is_for_all = request.topics is None or (not request.topics and call.version == 0)
    denied: List[MetadataResponseTopic] = []
    is_empty = False
    if not is_for_all:
        allowed, hidden = split(
            request.topics or [],
            lambda each: may_topic(call, acls.DESCRIBE, _name_of(call, each)),
        )
        allowed, uncreatable = split(allowed, lambda each: _may_be_created(call, each))
        denied = [_denied(call, each) for each in [*uncreatable, *hidden]]
        is_empty = not allowed
        if denied:
            call.request = changed(request, topics=allowed)

    def change(response: MetadataResponse) -> None:
        found = [] if is_empty else response.topics
        if is_for_all:
            found, unseen = split(found, lambda each: may_topic(call, acls.DESCRIBE, each.name))
            if (0, 10, 0) <= call.state.release.version < (0, 10, 1):
                denied.extend(map(_without_right, unseen))  # no other release names them here
        if request.include_topic_authorized_operations:
            for each in found:
                if each.name is not None:
                    operations = authorized_operations(call, acls.TOPIC, each.name)
                    each.topic_authorized_operations = operations
        response.topics = found + denied
        if request.include_cluster_authorized_operations and call.version <= 10:
            response.cluster_authorized_operations = cluster_operations(call)

    change_response(call, change)


def _name_of(call: Call[Any], asked: Any) -> Optional[str]:
    return topic_name(call, asked.name, asked.topic_id)


def _may_be_created(call: Call[MetadataRequest], asked: MetadataRequestTopic) -> bool:
    """Return True if a topic exists, may be created, or would not be created anyway."""
    state, name = call.state, asked.name
    if name is None or asked.topic_id != ZERO_UUID or name in state.topics:
        return True
    if not (state.defaults.auto_create_topics and call.request.allow_auto_topic_creation):
        return True
    if may_cluster(call, acls.CREATE):
        return True
    return state.release.version >= (2, 0) and call.may(acls.CREATE, acls.TOPIC, name)


def _denied(call: Call[MetadataRequest], asked: MetadataRequestTopic) -> MetadataResponseTopic:
    code = topic_code(call, acls.DESCRIBE, _name_of(call, asked))
    return _without_right(asked, code or errors.TOPIC_AUTHORIZATION_FAILED)


def _without_right(
    asked: Any, code: int = errors.TOPIC_AUTHORIZATION_FAILED
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code, name=asked.name, topic_id=asked.topic_id, partitions=[]
    )


@guards(DescribeTopicPartitionsRequest)
def describe_topic_partitions(call: Call[DescribeTopicPartitionsRequest]) -> Answer:
    """Leave out or refuse topics without DESCRIBE."""
    if call.request.topics:
        response = refuse_topics(call, 'topics', 'topics', acls.DESCRIBE)
        if response is not None:
            return response

    def change(response: Any) -> None:
        allowed, denied = split(
            response.topics, lambda each: may_topic(call, acls.DESCRIBE, each.name)
        )
        response.topics = allowed
        for each in allowed:
            each.topic_authorized_operations = authorized_operations(call, acls.TOPIC, each.name)
        if call.request.topics:
            response.topics = allowed + denied

    change_response(call, change)
    return None


@guards(CreateTopicsRequest)
def create_topics(call: Call[CreateTopicsRequest]) -> Answer:
    """Require CREATE on the cluster or, since KIP-277, on the topic."""
    release = call.state.release.version
    may_all = may_cluster(call, acls.CREATE)
    if release < (2, 0) and not may_all:
        return refused(call, errors.CLUSTER_AUTHORIZATION_FAILED)
    response = refuse_items(
        call,
        'topics',
        'topics',
        errors.TOPIC_AUTHORIZATION_FAILED,
        lambda each: may_all or call.may(acls.CREATE, acls.TOPIC, each.name),
    )
    if call.version >= 5:
        change_response(call, lambda answer: _hide_configs(call, answer))
    return response


def _hide_configs(call: Call[CreateTopicsRequest], response: Any) -> None:
    """Leave out the configs of new topics without DESCRIBE_CONFIGS (KIP-525)."""
    has_zookeeper = call.state.release.has_zookeeper
    for each in response.topics:
        is_denied = each.error_code == errors.TOPIC_AUTHORIZATION_FAILED
        if is_denied and has_zookeeper:
            each.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
        elif each.error_code == errors.NONE and not call.may(
            acls.DESCRIBE_CONFIGS, acls.TOPIC, each.name
        ):
            each.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
            each.num_partitions = each.replication_factor = -1
            each.configs = []
            if has_zookeeper:
                each.topic_id = ZERO_UUID


@guards(DeleteTopicsRequest)
def delete_topics(call: Call[DeleteTopicsRequest]) -> Answer:
    """Require DELETE on topics; the name for an id is returned only with DESCRIBE."""
    if call.version < 6:
        return refuse_by_code(
            call, 'topic_names', 'responses', lambda name: topic_code(call, acls.DELETE, name)
        )
    response = refuse_topics(call, 'topics', 'responses', acls.DELETE)
    change_response(call, lambda answer: _name_deleted(call, answer))
    return response


def _name_deleted(call: Call[DeleteTopicsRequest], response: Any) -> None:
    """Return the name of a refused topic id only to clients with DESCRIBE."""
    for each in response.responses:
        if each.error_code == errors.TOPIC_AUTHORIZATION_FAILED and not each.name:
            topic = call.state.topic_by_id(each.topic_id)
            is_seen = topic is not None and may_topic(call, acls.DESCRIBE, topic.name)
            each.name = topic.name if topic is not None and is_seen else None


@guards(CreatePartitionsRequest)
def create_partitions(call: Call[CreatePartitionsRequest]) -> Answer:
    """Require ALTER on topics."""
    return refuse_topics(call, 'topics', 'results', acls.ALTER)
