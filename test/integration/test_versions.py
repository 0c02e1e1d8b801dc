"""Every version of the core calls that a release accepts, asked and answered in full.

The declarations are compared with Apache Kafka's own descriptions elsewhere; here a broker of that
day reads what is encoded and writes what is decoded.
"""

from __future__ import annotations

import pytest

from kafka.protocol.api import ApiKey
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.wire import ZERO_UUID
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords
from test.integration.fixtures import retry
from test.integration.wire import Wire, write

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.10')]


#: A coordinator loads, is not available, or is another one.
NOT_YET = (14, 15, 16)


@pytest.fixture
def wire(cluster):
    with Wire(cluster.address(0)) as connected:
        yield connected


@pytest.fixture
def versions(cluster):
    """Return a function: API key -> the versions that this release serves and this package has."""
    with Wire(cluster.address(0)) as connected:
        listed = connected.ask(ApiVersionsRequest(), 0).api_keys
    ranges = {one.api_key: range(one.min_version, one.max_version + 1) for one in listed}

    def of(request_class):
        own = range(request_class.min_version, request_class.max_version + 1)
        found = [version for version in ranges[request_class.api_key] if version in own]
        if request_class is ProduceRequest and 12 in found:
            found = [version for version in found if version >= 3]  # listed, but not served
        if not cluster.release.has_zookeeper and request_class in (
            OffsetCommitRequest,
            OffsetFetchRequest,
        ):
            found = [version for version in found if version >= 1]  # version 0 is ZooKeeper's
        return found

    return of


@pytest.fixture
def topic_id(wire, versions, topic):
    """The topic's id, or zeros where the release has none."""
    if 10 not in versions(MetadataRequest):
        return ZERO_UUID
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    (found,) = wire.ask(asked, 10).topics
    return found.topic_id


def test_api_versions_in_every_version(wire, versions):
    for version in versions(ApiVersionsRequest):
        response = wire.ask(
            ApiVersionsRequest(client_software_name='evergreen', client_software_version='1'),
            version,
        )
        assert response.error_code == 0
        assert {0, 1, 2, 3, 18} <= {one.api_key for one in response.api_keys}


def test_metadata_in_every_version(cluster, wire, versions, topic):
    for version in versions(MetadataRequest):
        response = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version)
        assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(0, *cluster.address(0))]
        (found,) = response.topics
        assert (found.error_code, found.name) == (0, topic)
        assert sorted(p.partition_index for p in found.partitions) == [0, 1]
        assert {(p.leader_id, tuple(p.isr_nodes)) for p in found.partitions} == {(0, (0,))}


def test_produce_in_every_version(wire, versions, topic, topic_id):
    for base, version in enumerate(versions(ProduceRequest)):
        if version < 3:
            records = encode_message_set([(0, 0, b'key', b'value')], magic=version // 2)
        else:
            records = encode_batch([(0, b'key', b'value', [])])
        data = [PartitionProduceData(index=0, records=records)]
        named = TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)
        response = wire.ask(ProduceRequest(acks=-1, timeout_ms=10000, topic_data=[named]), version)
        ((answer,),) = [found.partition_responses for found in response.responses]
        assert (version, answer.error_code, answer.base_offset) == (version, 0, base)


def test_fetch_in_every_version(cluster, wire, versions, topic, topic_id):
    if 3 in versions(ProduceRequest):
        write(cluster, topic, encode_batch([(5, b'key', b'value', [])]), 3)
    else:
        write(cluster, topic, encode_message_set([(0, 5, b'key', b'value')], magic=1), 2)
    for version in versions(FetchRequest):
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=4096)
        named = FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])
        response = wire.ask(FetchRequest(max_wait_ms=100, min_bytes=1, topics=[named]), version)
        ((answer,),) = [found.partitions for found in response.responses]
        assert (version, answer.error_code, answer.high_watermark) == (version, 0, 1)
        ((record,),) = MemoryRecords(answer.records)
        assert (record.offset, record.key, record.value) == (0, b'key', b'value')


def test_list_offsets_in_every_version(wire, versions, topic):
    for version in versions(ListOffsetsRequest):
        asked = [ListOffsetsPartition(partition_index=1, timestamp=-1)]
        response = wire.ask(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
            ),
            version,
        )
        ((answer,),) = [found.partitions for found in response.topics]
        assert (version, answer.partition_index, answer.error_code) == (version, 1, 0)
        assert (answer.old_style_offsets if version == 0 else [answer.offset]) == [0]


@pytest.fixture
def group(cluster, new_name):
    """A group whose coordinator is there: asking for it makes the topic of the offsets."""
    name = new_name()

    def ask():
        with Wire(cluster.address(0)) as connected:
            assert connected.ask(FindCoordinatorRequest(key=name), 0).error_code == 0

    retry(ask, AssertionError)
    return name


def test_find_coordinator_in_every_version(cluster, wire, versions, group):
    for version in versions(FindCoordinatorRequest):
        if version < 4:
            answer = wire.ask(FindCoordinatorRequest(key=group), version)
        else:
            request = FindCoordinatorRequest(coordinator_keys=[group])
            (answer,) = wire.ask(request, version).coordinators
        assert (version, answer.error_code, answer.node_id) == (version, 0, 0)
        assert (answer.host, answer.port) == cluster.address(0)


def test_offset_commit_and_fetch_in_every_version(wire, versions, topic, topic_id, group):
    def commit(version):
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=version, committed_metadata='m'
        )
        named = OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[partition])
        response = wire.ask(OffsetCommitRequest(group_id=group, topics=[named]), version)
        ((answer,),) = [found.partitions for found in response.topics]
        return answer.error_code

    def commit_first():
        """A coordinator that was just found may not have read yet what it has: it says 14."""
        assert commit(versions(OffsetCommitRequest)[0]) not in NOT_YET

    retry(commit_first, AssertionError)
    for version in versions(OffsetCommitRequest):
        assert (version, commit(version)) == (version, 0)
    last = versions(OffsetCommitRequest)[-1]
    for version in versions(OffsetFetchRequest):
        if version == 0:
            continue  # ZooKeeper's offsets, which are others
        if version < 8:
            asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
            response = wire.ask(OffsetFetchRequest(group_id=group, topics=asked), version)
        else:
            topics = [
                OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])
            ]
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]
            )
            (response,) = wire.ask(request, version).groups
        ((answer,),) = [found.partitions for found in response.topics]
        assert (version, answer.error_code, answer.committed_offset) == (version, 0, last)
        assert answer.metadata == 'm'


@pytest.mark.releases(until='4.3')
def test_a_version_that_is_too_new_is_answered_with_35_in_the_first_layout(cluster):
    """KIP-511: ApiVersions alone is answered whatever its version, as version 0 with error 35."""
    with Wire(cluster.address(0)) as connected:
        listed = connected.ask(ApiVersionsRequest(), 0).api_keys
        (highest,) = [one.max_version for one in listed if one.api_key == ApiKey.API_VERSIONS]
        newest = ApiVersionsRequest.max_version
        assert highest < newest
        assert connected.ask_as(ApiVersionsRequest(), newest, 0).error_code == 35
