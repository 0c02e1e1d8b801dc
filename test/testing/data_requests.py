"""Requests that write and read records on an embedded cluster, for tests."""

from __future__ import annotations

from typing import Any, List, Optional

from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords
from test.testing.drive import Driver

TOPIC = 'spam'
NOW = 1_600_000_000_000  # ms, when a virtual clock begins


def batch(*values: bytes, key: Optional[bytes] = None, at: int = NOW, **settings: Any) -> bytes:
    """Return a batch of magic 2 with these values."""
    return encode_batch([(at, key, value, ()) for value in values], **settings)


def message_set(*values: bytes, magic: int = 0, at: int = NOW, **settings: Any) -> bytes:
    """Return a message set with these values, as producers send it."""
    messages = [(offset, at, None, value) for offset, value in enumerate(values)]
    return encode_message_set(messages, magic=magic, **settings)


def driver(version: str = '4.4', brokers: int = 1, partitions: int = 1, **settings: Any) -> Driver:
    """Return a cluster with a topic whose partition 0 is led by node 0."""
    made = Driver(version, brokers, **settings)
    nodes = list(range(brokers))
    made.state.create_topic(TOPIC, assignments=[nodes] * partitions)
    return made


def produce_request(
    cluster: Driver, data: Optional[bytes], version: int, index: int = 0, **fields: Any
) -> ProduceRequest:
    """Return a request that writes to a partition."""
    fields.setdefault('acks', 1)
    topic = TopicProduceData(partition_data=[PartitionProduceData(index=index, records=data)])
    if version >= 13:
        topic.topic_id = cluster.state.topics[TOPIC].topic_id
    else:
        topic.name = TOPIC
    return ProduceRequest(timeout_ms=1000, topic_data=[topic], **fields)


def produce(
    cluster: Driver,
    data: Optional[bytes],
    version: Optional[int] = None,
    index: int = 0,
    node: int = 0,
    **fields: Any,
) -> PartitionProduceResponse:
    """Write to a partition and return what is said of it."""
    chosen = best(cluster, 0) if version is None else version
    request = produce_request(cluster, data, chosen, index, **fields)
    found: PartitionProduceResponse = (
        cluster.ask(request, chosen, node).responses[0].partition_responses[0]
    )
    return found


def fetch_request(cluster: Driver, version: int, offset: int, **fields: Any) -> FetchRequest:
    """Return a request that reads partition 0; fields are the partition's or the request's."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    for name in list(fields):
        if hasattr(asked, name):
            setattr(asked, name, fields.pop(name))
    topic = FetchTopic(partitions=[asked])
    if version >= 13:
        topic.topic_id = cluster.state.topics[TOPIC].topic_id
    else:
        topic.topic = TOPIC
    fields.setdefault('max_wait_ms', 100)
    fields.setdefault('min_bytes', 1)
    return FetchRequest(topics=[topic], **fields)


def fetch(
    cluster: Driver, offset: int = 0, version: Optional[int] = None, node: int = 0, **fields: Any
) -> PartitionData:
    """Read partition 0 and return what is said of it."""
    chosen = best(cluster, 1) if version is None else version
    request = fetch_request(cluster, chosen, offset, **fields)
    found: PartitionData = cluster.ask(request, chosen, node).responses[0].partitions[0]
    return found


def list_offsets(
    cluster: Driver, timestamp: int, version: Optional[int] = None, node: int = 0, **fields: Any
) -> ListOffsetsPartitionResponse:
    """Look for a time in partition 0 and return what is said of it."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    for name in list(fields):
        if hasattr(asked, name):
            setattr(asked, name, fields.pop(name))
    topic = ListOffsetsTopic(name=TOPIC, partitions=[asked])
    fields.setdefault('replica_id', -1)
    request = ListOffsetsRequest(topics=[topic], **fields)
    found: ListOffsetsPartitionResponse = (
        cluster.ask(request, version, node).topics[0].partitions[0]
    )
    return found


def best(cluster: Driver, api_key: int) -> int:
    """Return the newest version of an API that the cluster serves."""
    return cluster.state.release.served[api_key][1]


def values(records: Any) -> List[Optional[bytes]]:
    """Return the values of all records in some bytes."""
    return [record.value for part in MemoryRecords(records) for record in part]


def offsets(records: Any) -> List[int]:
    """Return the offsets of all records in some bytes."""
    return [record.offset for part in MemoryRecords(records) for record in part]
