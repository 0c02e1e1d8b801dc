"""DeleteRecords of an embedded cluster: moves log start offsets (KIP-107)."""

from __future__ import annotations

from kafka.protocol.admin.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import (
    INVALID_TOPIC_EXCEPTION,
    NONE,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
)
from kafka.testing.located import find_topic, led_partition
from kafka.testing.logs.log_settings import log_settings

#: Means the high watermark.
END = -1


@handles(DeleteRecordsRequest)
def delete_records(call: Call[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Move the log start offsets of partitions."""
    return DeleteRecordsResponse(
        throttle_time_ms=0,
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_one(call, topic.name, each) for each in topic.partitions],
            )
            for topic in call.request.topics
        ],
    )


def _one(
    call: Call[DeleteRecordsRequest], name: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1, error_code=NONE
    )
    topic = find_topic(call, name, ZERO_UUID, False)
    partition = led_partition(call, topic, asked.partition_index)
    if not isinstance(topic, int) and topic.is_internal:
        result.error_code = INVALID_TOPIC_EXCEPTION
    elif isinstance(partition, int):
        result.error_code = partition
    elif not log_settings(call.state, name).is_deleted:
        result.error_code = POLICY_VIOLATION
    else:
        end = partition.high_watermark
        offset = end if asked.offset == END else asked.offset
        if not 0 <= offset <= end:
            result.error_code = OFFSET_OUT_OF_RANGE
        else:
            partition.log.delete_before(offset)
            call.broker.waiting.touch(('partition', name, partition.index))
            result.low_watermark = partition.log.start_offset
    return result
