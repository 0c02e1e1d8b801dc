"""DescribeProducers and WriteTxnMarkers of an embedded broker (KIP-664)."""

from __future__ import annotations

from typing import List

from kafka.protocol.transaction import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.located import find_topic, held_partition, led_partition
from kafka.testing.logs.appending import append_marker
from kafka.testing.logs.producer_states import ProducerState as States
from kafka.testing.state import Partition


@handles(DescribeProducersRequest)
def describe_producers(call: Call[DescribeProducersRequest]) -> DescribeProducersResponse:
    """Return the producer states of partitions, of leaders and followers."""
    return DescribeProducersResponse(
        throttle_time_ms=0,
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(call, topic.name, each) for each in topic.partition_indexes],
            )
            for topic in call.request.topics
        ],
    )


def _partition(call: Call[DescribeProducersRequest], name: str, index: int) -> PartitionResponse:
    partition = held_partition(call, find_topic(call, name, ZERO_UUID, False), index)
    if isinstance(partition, int):
        is_told = name in call.state.topics or call.state.release.has_zookeeper
        return PartitionResponse(
            partition_index=index,
            error_code=partition,
            error_message=None if is_told else 'This server does not host this topic.',
            active_producers=[],
        )
    return PartitionResponse(
        partition_index=index, error_code=errors.NONE, active_producers=_producers(partition)
    )


def _producers(partition: Partition) -> List[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=known.producer_epoch,
            last_sequence=known.last_sequence,
            last_timestamp=_last_timestamp(known),
            coordinator_epoch=known.coordinator_epoch,
            current_txn_start_offset=partition.log.open_transactions.get(producer_id, -1),
        )
        for producer_id, known in sorted(partition.producers.items())
    ]


def _last_timestamp(known: States) -> int:
    """Return the timestamp of the last record, or of the marker after it."""
    is_marked = known.coordinator_epoch >= 0 and known.first_offset < 0
    return known.modified_ms if is_marked or not known.batches else known.batches[-1].timestamp


@handles(WriteTxnMarkersRequest)
def write_txn_markers(call: Call[WriteTxnMarkersRequest]) -> WriteTxnMarkersResponse:
    """Append transaction markers, as coordinators and administrators request."""
    return WriteTxnMarkersResponse(markers=[_marked(call, each) for each in call.request.markers])


def _marked(
    call: Call[WriteTxnMarkersRequest], marker: WritableTxnMarker
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=_mark(call, marker, topic.name, index)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _mark(
    call: Call[WriteTxnMarkersRequest], marker: WritableTxnMarker, name: str, index: int
) -> int:
    partition = led_partition(call, find_topic(call, name, ZERO_UUID, False), index)
    if isinstance(partition, int):
        return partition
    return append_marker(
        call.state,
        call.broker.waiting,
        partition,
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
    )
