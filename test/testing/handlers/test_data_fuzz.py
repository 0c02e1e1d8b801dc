"""Damaged requests for records never end in anything but an answer or a closed connection."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.protocol.admin.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka.protocol.fetch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka.protocol.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from test.testing.data_requests import (
    TOPIC,
    batch,
    best,
    driver,
    fetch_request,
    message_set,
    produce,
    produce_request,
)
from test.testing.drive import Driver

RELEASES = ('0.8.0', '0.9', '0.10.2', '0.11', '2.8', '4.4')


def cluster_of(release: str) -> Driver:
    cluster = driver(release, partitions=2)
    for codec in (0, 1):
        old = best(cluster, 0) < 3
        data = message_set(b'a', b'b', codec=codec) if old else batch(b'a', b'b', codec=codec)
        produce(cluster, data)
    return cluster


def requests(cluster: Driver) -> List[Any]:
    """Return one of each kind that the release has, with versions."""
    served = cluster.state.release.served
    old = best(cluster, 0) < 3
    data = message_set(b'a', b'b', codec=1) if old else batch(b'a', b'b', key=b'k')
    found: List[Any] = []
    for version in {served[0][0], served[0][1]}:
        found.append((produce_request(cluster, data, version), version))
        found.append((produce_request(cluster, message_set(b'a', b'b'), version), version))
    for version in {served[1][0], served[1][1], min(7, served[1][1])}:
        found.append((fetch_request(cluster, version, 1), version))
    for version in {served[2][0], served[2][1]}:
        asked = [ListOffsetsPartition(partition_index=0, timestamp=5)]
        topics = [ListOffsetsTopic(name=TOPIC, partitions=asked)]
        found.append((ListOffsetsRequest(replica_id=-1, topics=topics), version))
    if 23 in served:
        epochs = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        by_topic = [OffsetForLeaderTopic(topic=TOPIC, partitions=epochs)]
        found.append((OffsetForLeaderEpochRequest(topics=by_topic), served[23][1]))
        places = [DeleteRecordsPartition(partition_index=0, offset=1)]
        records = [DeleteRecordsTopic(name=TOPIC, partitions=places)]
        found.append((DeleteRecordsRequest(topics=records, timeout_ms=5), served[21][1]))
    return found


CLUSTERS: Dict[str, Tuple[Driver, List[Any]]] = {}


def known(release: str) -> Tuple[Driver, List[Any]]:
    if release not in CLUSTERS:
        cluster = cluster_of(release)
        CLUSTERS[release] = cluster, requests(cluster)
    return CLUSTERS[release]


@pytest.mark.parametrize('release', RELEASES)
@settings(max_examples=150, deadline=None)
@given(
    which=st.integers(0, 30),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damaged_requests(release: str, which: int, changes: List[Tuple[int, int]]) -> None:
    cluster, sent = known(release)
    request, version = sent[which % len(sent)]
    client = cluster.client()
    frame = bytearray(client.session.send(request, version=version))
    for place, value in changes:
        frame[14 + place % (len(frame) - 14)] = value  # behind the header
    client.connection.receive_data(bytes(frame))
    cluster.advance(1)
    assert not cluster.state.control.failures
    client.connection.close()
