"""TxnOffsetCommit of an embedded cluster: offsets that a transaction commits (KIP-447)."""

from __future__ import annotations

from typing import Optional

from kafka.protocol.transaction import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.group_checks import is_coordinator
from kafka.testing.state import Topic
from kafka.testing.transactions.coordinator import fenced_code, transactions_of

#: From this version on the request adds the group to the transaction (KIP-890).
_ADDS_GROUP = 5


@handles(TxnOffsetCommitRequest)
def txn_offset_commit(call: Call[TxnOffsetCommitRequest]) -> TxnOffsetCommitResponse:
    """Keep offsets until the transaction ends."""
    error = _error(call)
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=[_committed(call, topic, error) for topic in call.request.topics],
    )


def _error(call: Call[TxnOffsetCommitRequest]) -> int:
    """Return the error code that applies to all partitions."""
    request = call.request
    if not request.group_id and call.state.release.version >= (2, 0):
        return errors.INVALID_GROUP_ID
    if not is_coordinator(call, request.group_id):
        return errors.NOT_COORDINATOR
    return _transaction_error(call) or call.state.groups.check_transactional_commit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
    )


def _transaction_error(call: Call[TxnOffsetCommitRequest]) -> int:
    request = call.request
    transactions = transactions_of(call.broker)
    identity = request.transactional_id, request.producer_id, request.producer_epoch
    if call.version >= _ADDS_GROUP:
        return fenced_code(transactions.add(*identity, groups=[request.group_id]), newest=False)
    if call.state.release.version < (3, 7):
        found = transactions.get(request.transactional_id)
        is_old = (
            found is not None
            and found.producer_id == request.producer_id
            and found.producer_epoch > request.producer_epoch
        )
        return errors.INVALID_PRODUCER_EPOCH if is_old else errors.NONE
    error = transactions.check(*identity)
    if error == errors.CONCURRENT_TRANSACTIONS:
        return errors.COORDINATOR_NOT_AVAILABLE  # the error at which old clients retry
    if error != errors.NONE:
        return fenced_code(error, newest=False)
    if transactions.has_group(request.transactional_id, request.group_id):
        return errors.NONE
    return errors.TRANSACTION_ABORTABLE if call.version >= 4 else errors.INVALID_TXN_STATE


def _committed(
    call: Call[TxnOffsetCommitRequest], asked: TxnOffsetCommitRequestTopic, error: int
) -> TxnOffsetCommitResponseTopic:
    state = call.state
    by_id = call.version >= 6
    topic = state.topic_by_id(asked.topic_id) if by_id else state.topics.get(asked.name)
    unknown = errors.UNKNOWN_TOPIC_ID if by_id else errors.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponseTopic(
        name=asked.name,
        topic_id=asked.topic_id,
        partitions=[
            TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index,
                error_code=_commit(call, topic, each, error, unknown),
            )
            for each in asked.partitions
        ],
    )


def _commit(
    call: Call[TxnOffsetCommitRequest],
    topic: Optional[Topic],
    asked: TxnOffsetCommitRequestPartition,
    error: int,
    unknown: int,
) -> int:
    if topic is None:
        return unknown
    if topic.partition(asked.partition_index) is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if error:
        return error
    metadata = asked.committed_metadata or ''
    if len(metadata) > call.state.defaults.offset_metadata_max_bytes:
        return errors.OFFSET_METADATA_TOO_LARGE
    group = call.request.group_id
    if not call.state.offsets.has_room_for_pending(group, topic.name, metadata):
        return errors.COORDINATOR_NOT_AVAILABLE
    call.state.offsets.add_pending(
        call.request.producer_id,
        group,
        topic.name,
        asked.partition_index,
        asked.committed_offset,
        asked.committed_leader_epoch,
        metadata,
        call.state.timers.clock.wall_ms(),
    )
    return errors.NONE
