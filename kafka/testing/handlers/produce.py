"""Produce of an embedded cluster: all versions and kinds of acknowledgement.

Checks the request and answers it. Records are validated in
:mod:`kafka.testing.logs.produced_batches` and appended in :mod:`kafka.testing.logs.appending`.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

from kafka.protocol.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka.protocol.wire import Message
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.located import find_topic, leader_endpoints, led_partition
from kafka.testing.logs.appending import append
from kafka.testing.logs.log_settings import log_settings
from kafka.testing.logs.partition_log import Batch
from kafka.testing.logs.produced_batches import RefusedRecords, Rules, produced_batches
from kafka.testing.state import Partition, Topic
from kafka.testing.transactions.transactional_writes import transaction_error

ALL = -1
_INTERNAL = ('__consumer_offsets', '__transaction_state')
_ADMIN_CLIENT = '__admin_client'
_TRANSACTIONAL_AT = 22  # offset of the attributes' low byte in a batch
_TRANSACTIONAL_MASK = 0x10


class _Result(NamedTuple):
    """The result for one partition."""

    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    start_offset: int = -1
    text: Optional[str] = None
    record_errors: Sequence[Tuple[int, str]] = ()
    leader: Optional[Tuple[int, int]] = None  # if another broker leads the partition
    lacks_replicas: bool = False  # appended, but acks wants more replicas


class _CloseConnection(Exception):
    """The request is one that this release cannot decode."""


@handles(ProduceRequest)
def produce(call: Call[ProduceRequest]) -> Optional[Message]:
    """Append records, and respond as ``acks`` says."""
    request = call.request
    is_out_of_place = _is_out_of_place(call)
    try:
        with call.broker.waiting.together():
            results = [
                (topic, [_one(call, topic, each, is_out_of_place) for each in topic.partition_data])
                for topic in request.topic_data
            ]
    except _CloseConnection:
        call.close_connection()
        return None
    everything = [result for _, found in results for result in found]
    if request.acks == 0:
        if any(result.error != NONE for result in everything):
            call.close_connection()  # the only way to report an error
        else:
            call.respond(None)
        return None
    if not any(result.lacks_replicas for result in everything):
        return _response(call, results)
    late = [(topic, [_timed_out(result) for result in found]) for topic, found in results]
    response = _response(call, late)
    return call.wait(request.timeout_ms / 1000, (), lambda last: response if last else None)


def _timed_out(result: _Result) -> _Result:
    """Return the result of 0.8 with fewer replicas than ``acks``: a time-out after the append."""
    return result._replace(error=REQUEST_TIMED_OUT) if result.lacks_replicas else result


# ---------------------------------------------------------------- one partition


def _is_out_of_place(call: Call[ProduceRequest]) -> bool:
    """Return True if a transactional batch is in a request without a transactional id."""
    return (
        call.version >= 3
        and call.state.release.version >= (2, 1)  # before, the id alone decided
        and call.request.transactional_id is None
        and _is_transactional(call.request)
    )


def _one(
    call: Call[ProduceRequest],
    asked: TopicProduceData,
    data: PartitionProduceData,
    is_out_of_place: bool,
) -> _Result:
    request, state = call.request, call.state
    by_id = call.version >= 13
    topic = find_topic(call, asked.name, asked.topic_id, by_id)
    if is_out_of_place:
        return _Result(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    name = asked.name if isinstance(topic, int) else topic.name
    if name in _INTERNAL and call.header.client_id != _ADMIN_CLIENT:
        return _Result(INVALID_TOPIC_EXCEPTION)
    if isinstance(topic, int) and state.release.version >= (0, 10):
        return _Result(topic)
    if not _are_acks_valid(request.acks, state.release.version):
        return _Result(INVALID_REQUIRED_ACKS)
    if isinstance(topic, int):
        return _Result(topic)
    rules = Rules(
        release=state.release.version,
        api_version=call.version,
        settings=log_settings(state, topic.name),
        now_ms=state.timers.clock.wall_ms(),
        topic=topic.name,
        partition=data.index,
    )
    partition = led_partition(call, topic, data.index)
    if isinstance(partition, int):
        return _elsewhere(topic, data.index, partition)
    try:
        batches = produced_batches(bytes(data.records or b''), rules)
    except RefusedRecords as refused:
        if refused.closes:
            raise _CloseConnection from None
        is_early = refused.is_early
        if rules.release < (2, 4):  # before 2.4 only unexpected errors have the log start offset
            is_early = refused.error != UNKNOWN_SERVER_ERROR
        start = -1 if is_early else partition.log.start_offset
        return _Result(refused.error, -1, -1, start, refused.text, refused.record_errors[:3])
    return _appended(call, partition, batches, rules)


def _are_acks_valid(acks: int, release: Tuple[int, ...]) -> bool:
    return release < (0, 9) or acks in (ALL, 0, 1)


def _is_transactional(request: ProduceRequest) -> bool:
    """Return True if a request of v3 or later has a transactional batch."""
    return any(
        len(data.records or b'') > _TRANSACTIONAL_AT
        and (data.records or b'')[_TRANSACTIONAL_AT] & _TRANSACTIONAL_MASK
        for topic in request.topic_data
        for data in topic.partition_data
    )


def _elsewhere(topic: Topic, index: int, error: int) -> _Result:
    partition = topic.partition(index)
    if error != NOT_LEADER_OR_FOLLOWER or partition is None:
        return _Result(error)
    return _Result(error, leader=(partition.leader, partition.leader_epoch))


def _appended(
    call: Call[ProduceRequest], partition: Partition, batches: List[Batch], rules: Rules
) -> _Result:
    acks, log = call.request.acks, partition.log
    least = rules.settings.min_insync_replicas
    if rules.release >= (3, 7):
        least = min(least, len(partition.replicas))  # at most the replication factor
    if acks == ALL and len(partition.isr) < least:
        return _Result(NOT_ENOUGH_REPLICAS, start_offset=log.start_offset)
    error = transaction_error(call, partition, batches)
    if error != NONE:
        return _Result(error)
    done = append(call.state, call.broker.waiting, partition, batches)
    if isinstance(done, int):
        if done == KAFKA_STORAGE_ERROR:
            return _Result(done if call.version >= 4 else NOT_LEADER_OR_FOLLOWER)
        return _Result(done, start_offset=log.start_offset)
    append_time_ms = done.append_time_ms
    if batches and rules.settings.has_append_time and rules.settings.magic:
        append_time_ms = max(append_time_ms, rules.now_ms)
    return _Result(
        NONE,
        done.base_offset,
        append_time_ms,
        log.start_offset,
        lacks_replicas=acks > max(1, len(partition.isr)),
    )


# ---------------------------------------------------------------- response


def _response(
    call: Call[ProduceRequest], results: Sequence[Tuple[TopicProduceData, List[_Result]]]
) -> ProduceResponse:
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _partition_response(call, data, result)
                    for data, result in zip(topic.partition_data, found)
                ],
            )
            for topic, found in results
        ]
    )
    if call.version >= 10:
        leaders = [each.leader for _, found in results for each in found if each.leader]
        response.node_endpoints = leader_endpoints(
            call, [leader for leader, _ in leaders], NodeEndpoint
        )
    return response


def _partition_response(
    call: Call[ProduceRequest], data: PartitionProduceData, result: _Result
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=data.index,
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.append_time_ms,
        log_start_offset=result.start_offset,
    )
    if result.record_errors:
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in result.record_errors
        ]
    response.error_message = result.text
    if call.version >= 10 and result.leader is not None:
        leader_id, epoch = result.leader
        response.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
    return response
