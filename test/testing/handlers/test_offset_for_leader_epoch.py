"""OffsetForLeaderEpoch in an embedded cluster."""

from __future__ import annotations

from typing import Any, Tuple

import pytest

from kafka.protocol.fetch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka.testing.errors import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from test.testing.data_requests import TOPIC, batch, driver, produce
from test.testing.drive import Driver


def ask(
    cluster: Driver, epoch: int, current: int = -1, version: int = 4, node: int = 1
) -> Tuple[int, int, int]:
    """Return error, epoch and end."""
    asked: Any = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    asked.current_leader_epoch = current
    topic = OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])
    request = OffsetForLeaderEpochRequest(topics=[topic])
    answer = cluster.ask(request, version, node).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.fixture
def cluster() -> Driver:
    """Two records of epoch 0, led by node 0, and one of epoch 1, led by node 1."""
    made = driver('2.8', brokers=2)
    produce(made, batch(b'a', b'b'))
    made.state.topics[TOPIC].partitions[0].elect([0, 1], preferred=1)
    produce(made, batch(b'c'), node=1)
    return made


def test_an_epoch_that_is_over(cluster: Driver) -> None:
    assert ask(cluster, 0) == (NONE, 0, 2)


def test_the_epoch_of_now(cluster: Driver) -> None:
    assert ask(cluster, 1) == (NONE, 1, 3)


@pytest.mark.parametrize('epoch', [-1, 2])
def test_an_epoch_that_nobody_knows(cluster: Driver, epoch: int) -> None:
    assert ask(cluster, epoch) == (NONE, -1, -1)


def test_an_epoch_in_which_nothing_was_written(cluster: Driver) -> None:
    partition = cluster.state.topics[TOPIC].partitions[0]
    partition.elect([0, 1], preferred=0)
    partition.elect([0, 1], preferred=1)
    assert partition.leader_epoch == 3
    assert ask(cluster, 2) == (NONE, 1, 3)
    assert ask(cluster, 3) == (NONE, 3, 3)


def test_an_empty_log() -> None:
    assert ask(driver(), 0, node=0) == (NONE, 0, 0)
    assert ask(driver('1.1'), 0, node=0, version=0) == (NONE, -1, -1)


@pytest.mark.parametrize('version', range(5))
def test_each_version(cluster: Driver, version: int) -> None:
    assert ask(cluster, 0, version=version) == (NONE, 0 if version else -1, 2)


def test_the_epoch_of_who_asks(cluster: Driver) -> None:
    assert ask(cluster, 0, current=0)[0] == FENCED_LEADER_EPOCH
    assert ask(cluster, 0, current=2)[0] == UNKNOWN_LEADER_EPOCH


def test_only_the_leader_answers(cluster: Driver) -> None:
    assert ask(cluster, 0, node=0) == (NOT_LEADER_OR_FOLLOWER, -1, -1)


def test_a_topic_that_is_not_there() -> None:
    assert ask(Driver(), 0, node=0) == (UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_formats_without_epochs() -> None:
    cluster = driver('1.1')
    cluster.state.topics[TOPIC].configs['message.format.version'] = '0.10.2'
    produce(cluster, batch(b'a'))
    assert ask(cluster, 0, version=0, node=0) == (NONE, -1, -1)
