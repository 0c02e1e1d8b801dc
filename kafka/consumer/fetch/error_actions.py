"""What a consumer does about each error code of a partition in a Fetch answer: the one table of it.

Owns the table, and the errors that callers get for its rows. It does not own what an answer as a
whole is good for (session.py), nor the doing (manager.py). Follows the error codes of the
protocol guide, KIP-320, KIP-392 and KIP-516; pure.
"""

from __future__ import annotations

import enum
from typing import Dict, List

from kafka import errors
from kafka.errors import KafkaError, TopicAuthorizationFailedError
from kafka.structs import TopicPartition

__all__ = ['ROWS', 'Reaction', 'error_of', 'out_of_range', 'reaction_to', 'too_large']


class Reaction(enum.Enum):
    """What a row of the table says. The position stays where it is in every case."""

    TAKE = 'take'  # its records count
    OUT_OF_RANGE = 'out of range'  # to the leader, then the reset policy, or tell the caller
    REFRESH = 'refresh'  # metadata, then whoever leads now
    RETRY = 'retry'  # the same broker again, after back-off
    RAISE = 'raise'  # tell the caller, and try again


#: The table. A code that is not here: as its class says if that is retriable, else it is raised.
ROWS: Dict[int, Reaction] = {
    # UNKNOWN_SERVER_ERROR: the broker's log says more.
    -1: Reaction.RETRY,
    0: Reaction.TAKE,
    1: Reaction.OUT_OF_RANGE,
    # CORRUPT_MESSAGE: the log itself is damaged; a lie of the network ends the connection.
    2: Reaction.RAISE,
    # UNKNOWN_TOPIC_OR_PARTITION: it may have been made or deleted a moment ago.
    3: Reaction.REFRESH,
    # NOT_LEADER_OR_FOLLOWER: from v12 on the answer may say who leads.
    6: Reaction.REFRESH,
    # REPLICA_NOT_AVAILABLE: of brokers up to 2.5.
    9: Reaction.REFRESH,
    # TOPIC_AUTHORIZATION_FAILED
    29: Reaction.RAISE,
    # KAFKA_STORAGE_ERROR
    56: Reaction.REFRESH,
    # FENCED_LEADER_EPOCH: what is known of the leader is too old.
    74: Reaction.REFRESH,
    # UNKNOWN_LEADER_EPOCH: the broker has not heard yet that it leads.
    75: Reaction.RETRY,
    # UNSUPPORTED_COMPRESSION_TYPE: zstd, asked for with a version below 10.
    76: Reaction.RAISE,
    # OFFSET_NOT_AVAILABLE: a new leader does not know its high watermark yet.
    78: Reaction.REFRESH,
    # UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID: deleted, or made anew under another id.
    100: Reaction.REFRESH,
    103: Reaction.REFRESH,
}


def reaction_to(code: int) -> Reaction:
    """Return what is done about a code."""
    row = ROWS.get(code)
    if row is not None:
        return row
    error = errors.error_for_code(code)
    if error.refresh_metadata:
        return Reaction.REFRESH
    return Reaction.RETRY if error.retriable else Reaction.RAISE


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


def out_of_range(partition: TopicPartition, offset: int) -> KafkaError:
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
