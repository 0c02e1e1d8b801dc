"""What to do about each error code of a partition in a Fetch response, and the errors to raise.

The table is used by consumers, bounded readers and evented clients. Follows the error codes of the
protocol guide, KIP-320, KIP-392 and KIP-516. Pure.
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
    """What to do about an error code. None of them moves the position."""

    TAKE = 'take'  # its records count
    OUT_OF_RANGE = 'out of range'  # to the leader, then the reset policy, or tell the caller
    REFRESH = 'refresh'  # metadata, then whoever leads now
    RETRY = 'retry'  # the same broker again, after back-off
    RAISE = 'raise'  # tell the caller, and try again


#: A code that is not in the table follows its class if that is retriable; others are raised.
ROWS: Dict[Optional[int], FetchErrorAction] = {
    # The log of the broker says more.
    UnknownError.errno: FetchErrorAction.RETRY,
    0: FetchErrorAction.TAKE,
    OffsetOutOfRangeError.errno: FetchErrorAction.OUT_OF_RANGE,
    # The log of the broker is damaged; damage on the way would have ended the connection.
    CorruptRecordError.errno: FetchErrorAction.RAISE,
    # It may have been created or deleted a moment ago.
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
    """Return what to do about an error code."""
    row = ROWS.get(code)
    if row is not None:
        return row
    error = errors.error_for_code(code)
    if error.refresh_metadata:
        return FetchErrorAction.REFRESH
    return FetchErrorAction.RETRY if error.retriable else FetchErrorAction.RAISE


def error_of(code: int, partition: TopicPartition, offset: int, node_id: int) -> KafkaError:
    """Return the error for a row that says RAISE."""
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
    """Return the error for a position that the partition does not have, without reset policy."""
    error = errors.OffsetOutOfRangeError({partition: offset})
    error.advice = (
        'seek() to an offset that the log has, as beginning_offsets() and end_offsets() tell it, or'
        ' let auto_offset_reset be earliest or latest'
    )
    return error


def too_large(partition: TopicPartition, offset: int, limit: int) -> KafkaError:
    """Return the error for a first message that the largest limit cuts off (1.2.1).

    Arguments: limit: bytes that were asked for.
    """
    return errors.RecordTooLargeError(
        'topic %s, partition %d: the message at offset %d is larger than %d bytes, the most that '
        'may be fetched; raise fetch_max_bytes and max_partition_fetch_bytes, or seek behind it'
        % (str(partition.topic), partition.partition, offset, limit),
        {partition: offset},
        limit,
    )


def merged(found: List[KafkaError]) -> List[KafkaError]:
    """Return errors of one answer with those of one kind that name topics or places as one."""
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
