"""DeleteTopics of an embedded cluster (KIP-4, KIP-516)."""

from __future__ import annotations

from collections import Counter
from typing import List, NoReturn, Optional

from kafka.protocol.admin.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafka.protocol.wire import ZERO_UUID, Message
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.handlers.create_topics import LONGEST_MS, is_wrong_node
from kafka.testing.state import ClusterState, Topic
from kafka.testing.topic_checks import Refused, refuse


@handles(DeleteTopicsRequest)
def delete_topics(call: Call[DeleteTopicsRequest]) -> Optional[Message]:
    """Delete topics; the response has one result for each request.

    With ``delete.topic.enable=false`` brokers before 2.1 send REQUEST_TIMED_OUT, after that time.
    """
    response = DeleteTopicsResponse(responses=_results(call))
    if not any(each.error_code == errors.REQUEST_TIMED_OUT for each in response.responses):
        return response
    seconds = min(max(0, call.request.timeout_ms), LONGEST_MS) / 1000
    return call.wait(seconds, (), lambda last: response if last else None)


def _is_enabled(state: ClusterState) -> bool:
    chosen = state.defaults.delete_topic_enable
    return state.release.version >= (1, 0) if chosen is None else chosen


def _results(call: Call[DeleteTopicsRequest]) -> List[DeletableTopicResult]:
    wanted = list(call.request.topics)
    if call.version < 6:
        wanted = [DeleteTopicState(name=n, topic_id=ZERO_UUID) for n in call.request.topic_names]
    counts = Counter((each.name, each.topic_id) for each in wanted)
    if call.state.release.has_zookeeper:
        # A topic that is named twice is answered twice since messages are generated (2.4).
        found = {place: _result(call, *place, is_twice=False) for place in counts}
        if call.state.release.version < (2, 4):
            return list(found.values())
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
        if not _is_enabled(call.state):
            _refuse_disabled(call)
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


def _refuse_disabled(call: Call[DeleteTopicsRequest]) -> NoReturn:
    if call.state.release.version < (2, 1):
        refuse(errors.REQUEST_TIMED_OUT)
    text = 'Topic deletion is disabled.'
    refuse(errors.INVALID_REQUEST if call.version < 3 else errors.TOPIC_DELETION_DISABLED, text)


def _found(call: Call[DeleteTopicsRequest], asked: DeleteTopicState) -> Topic:
    state = call.state
    if asked.name is not None and asked.topic_id != ZERO_UUID:
        refuse(errors.INVALID_REQUEST, 'Topic name and topic ID can not both be specified.')
    if asked.name is None and asked.topic_id == ZERO_UUID:
        if state.release.has_zookeeper:
            refuse(errors.TOPIC_AUTHORIZATION_FAILED)  # as for the id of a hidden topic
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
