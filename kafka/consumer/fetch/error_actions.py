"""The table of actions for the error codes of partitions in Fetch responses, and their errors.

Used by consumers, bounded readers and evented clients. Follows the error codes of the protocol
guide, KIP-320, KIP-392 and KIP-516. Pure.
"""

from __future__ import annotations

import enum
from typing import Dict, List, Optional

from kafka import errors
from kafka.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    InconsistentTopicIdError,
    KafkaError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from kafka.structs import TopicPartition

__all__ = [
    'ROWS',
    'FetchErrorAction',
    'error_of',
    'out_of_range',
    'fetch_error_action',
    'too_large',
]


class FetchErrorAction(enum.Enum):
    """The action for an error code. None but OUT_OF_RANGE changes where reading goes on."""

    TAKE = 'take'  # no error: take the records
    OUT_OF_RANGE = 'out of range'  # ask the leader, then apply the reset policy or raise
    REFRESH = 'refresh'  # refresh the metadata, then ask the current leader
    RETRY = 'retry'  # ask the same broker again, after a back-off
    RAISE = 'raise'  # raise the error to the caller, and retry


#: A code that is not in the table follows its class if that is retriable; others are raised.
ROWS: Dict[Optional[int], FetchErrorAction] = {
    # An unexpected error of the broker, which writes the details to its own log.
    UnknownError.errno: FetchErrorAction.RETRY,
    0: FetchErrorAction.TAKE,
    OffsetOutOfRangeError.errno: FetchErrorAction.OUT_OF_RANGE,
    # The log of the broker is corrupt; corruption on the way would have ended the connection.
    CorruptRecordError.errno: FetchErrorAction.RAISE,
    # The topic may have been created or deleted a moment ago.
    UnknownTopicOrPartitionError.errno: FetchErrorAction.REFRESH,
    # From version 12 on the response may name the leader.
    NotLeaderForPartitionError.errno: FetchErrorAction.REFRESH,
    # From brokers up to 2.5.
    ReplicaNotAvailableError.errno: FetchErrorAction.REFRESH,
    TopicAuthorizationFailedError.errno: FetchErrorAction.RAISE,
    KafkaStorageError.errno: FetchErrorAction.REFRESH,
    # The known leader epoch is outdated.
    FencedLeaderEpochError.errno: FetchErrorAction.REFRESH,
    # The broker does not know yet that it is the leader.
    UnknownLeaderEpochError.errno: FetchErrorAction.RETRY,
    # zstd, fetched with a version below 10.
    UnsupportedCompressionTypeError.errno: FetchErrorAction.RAISE,
    # A new leader does not know its high watermark yet.
    OffsetNotAvailableError.errno: FetchErrorAction.REFRESH,
    # The topic was deleted, or created again with another id.
    UnknownTopicIdError.errno: FetchErrorAction.REFRESH,
    InconsistentTopicIdError.errno: FetchErrorAction.REFRESH,
}


def fetch_error_action(code: int) -> FetchErrorAction:
    """Return the action for an error code."""
    row = ROWS.get(code)
    if row is not None:
        return row
    error = errors.error_for_code(code)
    if error.refresh_metadata:
        return FetchErrorAction.REFRESH
    return FetchErrorAction.RETRY if error.retriable else FetchErrorAction.RAISE


def error_of(code: int, partition: TopicPartition, offset: int, node_id: int) -> KafkaError:
    """Return the error to raise for an error code of a partition."""
    if code == TopicAuthorizationFailedError.errno:
        return TopicAuthorizationFailedError({partition.topic})
    kind = errors.for_code(code)
    return kind(
        'topic %s, partition %d, offset %d: node %d does not give the records: %s'
        % (
            str(partition.topic),
            partition.partition,
            offset,
            node_id,
            kind.description or 'it does not say why',
        )
    )


def out_of_range(partition: TopicPartition, offset: Optional[int]) -> KafkaError:
    """Return the error for a position that is out of range, without a reset policy."""
    error = errors.OffsetOutOfRangeError({partition: offset})
    error.advice = (
        'seek() to an offset that the log has, as beginning_offsets() and end_offsets() tell it, or'
        ' let auto_offset_reset be earliest or latest'
    )
    return error


def too_large(partition: TopicPartition, offset: int, limit: int) -> KafkaError:
    """Return the error for a first message that the largest limit cuts off (1.2.1).

    Arguments: limit: the bytes that were requested.
    """
    return errors.RecordTooLargeError(
        'topic %s, partition %d: the message at offset %d is larger than %d bytes, the most that '
        'may be fetched; raise fetch_max_bytes and max_partition_fetch_bytes, or seek to the next '
        'offset' % (str(partition.topic), partition.partition, offset, limit),
        {partition: offset},
        limit,
    )


def merged(found: List[KafkaError]) -> List[KafkaError]:
    """Merge the errors of one response: one error per class that has a set or dict of topics."""
    merged_sets: Dict[type, KafkaError] = {}
    others: List[KafkaError] = []
    for error in found:
        kind = type(error)
        value = error.args[0] if len(error.args) == 1 else None
        if not isinstance(value, (set, dict)):
            others.append(error)
        elif kind in merged_sets:
            merged_sets[kind].args[0].update(value)
        else:
            merged_sets[kind] = error
    return [*merged_sets.values(), *others]
