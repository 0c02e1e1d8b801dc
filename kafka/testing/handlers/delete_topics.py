"""DeleteTopics of an embedded cluster (KIP-4, KIP-516)."""

from __future__ import annotations

from collections import Counter
from typing import List, Optional

from kafka.protocol.admin.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import is_wrong_node
from kafka.testing.state import Topic
from kafka.testing.topic_checks import Refused, refuse


@handles(DeleteTopicsRequest)
def delete_topics(call: Call[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete topics; one result for each that was asked for."""
    return DeleteTopicsResponse(responses=_results(call))


def _results(call: Call[DeleteTopicsRequest]) -> List[DeletableTopicResult]:
    wanted = list(call.request.topics)
    if call.version < 6:
        wanted = [DeleteTopicState(name=n, topic_id=ZERO_UUID) for n in call.request.topic_names]
    counts = Counter((each.name, each.topic_id) for each in wanted)
    if call.state.release.has_zookeeper:
        # What is named twice is answered twice.
        found = {place: _result(call, *place, is_twice=False) for place in counts}
        return [found[each.name, each.topic_id] for each in wanted]
    return [_result(call, *place, is_twice=count > 1) for place, count in counts.items()]


def _result(
    call: Call[DeleteTopicsRequest], name: Optional[str], topic_id: bytes, is_twice: bool
) -> DeletableTopicResult:
    asked = DeleteTopicState(name=name, topic_id=topic_id)
    zookeeper = call.state.release.has_zookeeper
    try:
        if is_wrong_node(call):
            refuse(errors.NOT_CONTROLLER)
        if is_twice:
            refuse(errors.INVALID_REQUEST, 'Duplicate topic name or id.')
        topic = _found(call, asked)
    except Refused as refused:
        return DeletableTopicResult(
            name=asked.name,
            topic_id=asked.topic_id,
            error_code=refused.code,
            error_message=None if zookeeper else refused.text,
        )
    _delete(call, topic)
    return DeletableTopicResult(
        name=topic.name,
        topic_id=asked.topic_id if zookeeper else topic.topic_id,
        error_code=errors.NONE,
        error_message=None,
    )


def _found(call: Call[DeleteTopicsRequest], asked: DeleteTopicState) -> Topic:
    state = call.state
    if asked.name is not None and asked.topic_id != ZERO_UUID:
        refuse(errors.INVALID_REQUEST, 'Topic name and topic ID can not both be specified.')
    if asked.name is None and asked.topic_id == ZERO_UUID:
        if state.release.has_zookeeper:
            refuse(errors.TOPIC_AUTHORIZATION_FAILED)  # it is taken for the id of a hidden topic
        refuse(errors.INVALID_REQUEST, 'Neither topic name nor id were specified.')
    if asked.name is None:
        topic = state.topic_by_id(asked.topic_id)
        return topic or refuse(errors.UNKNOWN_TOPIC_ID, 'This server does not host this topic ID.')
    return state.topics.get(asked.name) or refuse(
        errors.UNKNOWN_TOPIC_OR_PARTITION, 'This server does not host this topic-partition.'
    )


def _delete(call: Call[DeleteTopicsRequest], topic: Topic) -> None:
    call.state.drop_topic(topic.name)
    for partition in topic.partitions:
        call.broker.waiting.touch(('partition', topic.name, partition.index))
