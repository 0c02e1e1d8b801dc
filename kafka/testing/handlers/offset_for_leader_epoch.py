"""OffsetForLeaderEpoch of an embedded cluster: end offsets of leader epochs (KIP-101, KIP-320)."""

from __future__ import annotations

from kafka.protocol.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import NONE
from kafka.testing.located import epoch_error, find_topic, led_partition
from kafka.testing.logs.log_settings import log_settings


@handles(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(
    call: Call[OffsetForLeaderEpochRequest],
) -> OffsetForLeaderEpochResponse:
    """Return the end offset of an epoch in each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_one(call, topic.topic, each) for each in topic.partitions],
            )
            for topic in call.request.topics
        ]
    )


def _one(
    call: Call[OffsetForLeaderEpochRequest], topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = led_partition(call, find_topic(call, topic, ZERO_UUID, False), asked.partition)
    if isinstance(partition, int):
        return EpochEndOffset(partition=asked.partition, error_code=partition)
    error = epoch_error(partition, asked.current_leader_epoch)
    if error != NONE:
        return EpochEndOffset(partition=asked.partition, error_code=error)
    # Before 2.0 leaders record their epoch with the first write, not when elected.
    if log_settings(call.state, topic).magic == 2 and call.state.release.version >= (2, 0):
        partition.log.note_epoch(partition.leader_epoch)
    epoch, end_offset = partition.log.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(
        partition=asked.partition, error_code=NONE, leader_epoch=epoch, end_offset=end_offset
    )
