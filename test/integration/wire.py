"""One connection to a real broker for the declared messages, without session or client.

Owns: framing a request, reading one answer, and the few requests that the tests on formats and
versions share. The version is always the caller's: these tests are about versions.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time

from kafka.protocol.api import decode_response, encode_request, response_class
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.record.memory_records import MemoryRecords


class Wire:
    """A socket to one broker; use it as a context manager."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, 120)  # machines may stand still for long
        self.ids = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, request, version):
        """Send a request in that version and return the response, every byte of it read."""
        return self.ask_as(request, version, version)

    def ask_as(self, request, version, answered):
        """Send a request in one version and read the response in the layout of another."""
        number = next(self.ids)
        data = encode_request(request, version, number, 'wire')
        self.socket.sendall(struct.pack('>i', len(data)) + data)
        (size,) = struct.unpack('>i', self._exactly(4))
        answer = self._exactly(size)
        found, response = decode_response(response_class(request.api_key), answer, answered)
        assert found == number
        return response

    def _exactly(self, size):
        data = b''
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, 'the broker closed the connection'
            data += more
        return data


def write(cluster, topic, records, version):
    """Append encoded records to partition 0 by that version of Produce; return the base offset."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    with Wire(cluster.address(0)) as wire:
        ((answer,),) = [topic.partition_responses for topic in wire.ask(request, version).responses]
    assert answer.error_code == 0
    return answer.base_offset


def read(cluster, topic, count, version, seconds=20):
    """Return ``count`` records of partition 0 by that version of Fetch, and their magics."""
    found, magics, at = [], [], 0
    deadline = time.monotonic() + seconds
    with Wire(cluster.address(0)) as wire:
        while len(found) < count and time.monotonic() < deadline:
            partition = FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                topics=[FetchTopic(topic=topic, partitions=[partition])],
            )
            ((answer,),) = [topic.partitions for topic in wire.ask(request, version).responses]
            assert answer.error_code == 0
            for batch in MemoryRecords(answer.records):
                magics.append(batch.magic)
                for record in batch:
                    if record.offset >= at:
                        found.append(record)
                        at = record.offset + 1
    assert len(found) == count
    return found, sorted(set(magics))


def end_of(wire, topic, partition, isolation=0):
    """Return the end of a log: 0 for readers of everything, 1 for those of committed records.

    -1 where the broker does not say. From 0.11 on.
    """
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    answer = wire.ask(request, 2).topics[0].partitions[0]
    return answer.offset if answer.error_code == 0 else -1


def coordinator_of(cluster, transactional_id):
    """Return the node that coordinates a transactional id, -1 where nobody says so yet."""
    request = FindCoordinatorRequest(key=transactional_id, key_type=1)
    with Wire(cluster.address(cluster.nodes[0])) as wire:
        return wire.ask(request, 1).node_id
