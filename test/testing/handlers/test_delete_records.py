"""DeleteRecords in an embedded cluster."""

from __future__ import annotations

from typing import Tuple

import pytest

from kafka.protocol.admin.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka.testing.errors import (
    INVALID_TOPIC_EXCEPTION,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from test.testing.data_requests import TOPIC, batch, driver, fetch, produce, values
from test.testing.drive import Driver


def delete(
    cluster: Driver, offset: int, topic: str = TOPIC, version: int = 2, node: int = 0
) -> Tuple[int, int]:
    """Return error and low watermark."""
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        timeout_ms=1000, topics=[DeleteRecordsTopic(name=topic, partitions=[asked])]
    )
    answer = cluster.ask(request, version, node).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.fixture
def cluster() -> Driver:
    """Two batches of two records."""
    made = driver(brokers=2)
    produce(made, batch(b'a', b'b'))
    produce(made, batch(b'c', b'd'))
    return made


@pytest.mark.parametrize('version', range(3))
def test_the_log_begins_later(cluster: Driver, version: int) -> None:
    assert delete(cluster, 2, version=version) == (NONE, 2)
    answer = fetch(cluster, 2)
    assert answer.log_start_offset == 2
    assert values(answer.records) == [b'c', b'd']


def test_the_middle_of_a_batch(cluster: Driver) -> None:
    assert delete(cluster, 1) == (NONE, 1)
    assert fetch(cluster, 0).error_code == OFFSET_OUT_OF_RANGE
    assert values(fetch(cluster, 1).records) == [b'a', b'b', b'c', b'd']


def test_everything(cluster: Driver) -> None:
    assert delete(cluster, -1) == (NONE, 4)
    assert fetch(cluster, 4).high_watermark == 4


def test_what_is_gone_already(cluster: Driver) -> None:
    delete(cluster, 2)
    assert delete(cluster, 1) == (NONE, 2)


@pytest.mark.parametrize('offset', [5, -2])
def test_an_offset_that_is_not_there(cluster: Driver, offset: int) -> None:
    assert delete(cluster, offset) == (OFFSET_OUT_OF_RANGE, -1)


def test_only_the_leader_does_it(cluster: Driver) -> None:
    assert delete(cluster, 1, node=1) == (NOT_LEADER_OR_FOLLOWER, -1)


def test_a_topic_that_is_not_there(cluster: Driver) -> None:
    assert delete(cluster, 1, topic='eggs') == (UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_compacted_topic(cluster: Driver) -> None:
    cluster.state.topics[TOPIC].configs['cleanup.policy'] = 'compact'
    assert delete(cluster, 1) == (POLICY_VIOLATION, -1)


def test_an_internal_topic(cluster: Driver) -> None:
    cluster.state.create_topic('__consumer_offsets', assignments=[[0]])
    assert delete(cluster, 0, topic='__consumer_offsets') == (INVALID_TOPIC_EXCEPTION, -1)
