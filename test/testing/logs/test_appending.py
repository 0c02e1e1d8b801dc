"""Appending to partitions, and the limit of memory."""

from __future__ import annotations

import logging
import struct
import tracemalloc

import pytest

from kafka.record.default_records import DefaultRecordBatch
from kafka.testing.errors import INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR, NONE
from kafka.testing.logs.appending import AppendedAt, append, append_marker
from kafka.testing.logs.partition_log import Batch
from kafka.testing.state import Partition
from test.testing.data_requests import NOW, TOPIC, batch, driver, produce
from test.testing.drive import Driver


def partition_of(cluster: Driver, index: int = 0) -> Partition:
    return cluster.state.topics[TOPIC].partitions[index]


def write(cluster: Driver, size: int, index: int = 0) -> object:
    data = batch(b'a' * size)
    partition = partition_of(cluster, index)
    return append(cluster.state, cluster.waiting, partition, [Batch(0, 0, NOW, 2, data)])


def total(cluster: Driver) -> int:
    return sum(partition.log.size_bytes for partition in cluster.state.partitions())


def test_nothing_to_append() -> None:
    cluster = driver()
    assert append(cluster.state, cluster.waiting, partition_of(cluster), []) == AppendedAt(-1)


def test_all_logs_together_stay_below_the_limit() -> None:
    cluster = driver(partitions=2, log_bytes_limit=100_000)
    for turn in range(300):
        write(cluster, 1000, turn % 2)
        assert total(cluster) <= 100_000
    assert total(cluster) > 50_000
    log = partition_of(cluster).log
    assert 0 < log.start_offset < log.end_offset == 150


def test_the_largest_log_loses_its_oldest_batches() -> None:
    cluster = driver(partitions=2, log_bytes_limit=100_000)
    for _ in range(5):
        write(cluster, 1000, 1)
    for _ in range(200):
        write(cluster, 1000, 0)
    assert partition_of(cluster, 1).log.start_offset == 0
    assert partition_of(cluster, 0).log.start_offset > 100


def test_small_batches_take_more_than_their_bytes() -> None:
    """The limit is of the memory, not of what clients count."""
    cluster = driver(log_bytes_limit=1_000_000)
    partition = partition_of(cluster)
    data = batch(b'a')
    tracemalloc.start()
    try:
        for number in range(6000):
            stored = Batch(0, 0, NOW + number, 2, bytes(bytearray(data)))
            append(cluster.state, cluster.waiting, partition, [stored])
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 500_000 < current < peak < 1_100_000
    assert partition.log.end_offset == 6000


def test_what_was_deleted_is_told(caplog: pytest.LogCaptureFixture) -> None:
    cluster = driver(log_bytes_limit=100_000)
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            write(cluster, 1000)
    start = partition_of(cluster).log.start_offset
    assert start > 0
    assert 'topic=spam partition=0' in caplog.text
    assert 'before offset %d, since all logs together reached log_bytes_limit=100000' % start in (
        caplog.text
    )


def test_compacted_topics_keep_what_they_have_and_refuse_more() -> None:
    cluster = driver(partitions=1, log_bytes_limit=100_000)
    cluster.state.create_topic('compacted', assignments=[[0]])
    topic = cluster.state.topics['compacted']
    topic.configs['cleanup.policy'] = 'compact'
    stored = Batch(0, 0, NOW, 2, batch(b'a' * 1000, key=b'k'))

    def keep() -> object:
        return append(cluster.state, cluster.waiting, topic.partitions[0], [stored])

    for _ in range(40):
        assert keep() == AppendedAt(topic.partitions[0].log.end_offset - 1)
    for _ in range(40):
        write(cluster, 1000)
    assert partition_of(cluster).log.start_offset > 0
    answers = [keep() for _ in range(80)]
    assert answers[-1] == KAFKA_STORAGE_ERROR
    log = topic.partitions[0].log
    assert log.start_offset == 0
    assert log.memory_bytes <= 100_000
    cluster.state.topics[TOPIC].partitions[0].log.delete_before(1 << 40)
    log.roll(NOW)
    log.replace(0, [log.batches[-1]])
    assert keep() != KAFKA_STORAGE_ERROR


def test_a_set_that_is_larger_than_the_limit() -> None:
    cluster = driver(log_bytes_limit=10_000)
    write(cluster, 100)
    assert write(cluster, 20_000) == KAFKA_STORAGE_ERROR
    assert partition_of(cluster).log.end_offset == 1
    assert produce(cluster, batch(b'a' * 20_000)).error_code == KAFKA_STORAGE_ERROR


def test_a_marker_as_real_brokers_write_it() -> None:
    cluster = driver('2.8')
    partition = partition_of(cluster)
    data = batch(b'a', transactional=True, producer_id=1, producer_epoch=3, base_sequence=0)
    produce(cluster, data, transactional_id='t')
    assert partition.log.last_stable_offset == 0
    assert append_marker(cluster.state, cluster.waiting, partition, 1, 3, True, 9) == NONE
    assert partition.log.last_stable_offset == 2
    marker = DefaultRecordBatch(partition.log.batches[-1].data)
    assert marker.header.attributes == 48
    assert (marker.producer_id, marker.producer_epoch, marker.base_sequence) == (1, 3, -1)
    (record,) = marker
    assert record.key == b'\x00\x00\x00\x01'
    assert struct.unpack('>hi', record.value or b'') == (0, 9)


def test_a_marker_of_an_old_epoch() -> None:
    cluster = driver('2.8')
    partition = partition_of(cluster)
    assert append_marker(cluster.state, cluster.waiting, partition, 1, 3, True) == NONE
    error = append_marker(cluster.state, cluster.waiting, partition, 1, 2, True)
    assert error == INVALID_PRODUCER_EPOCH
    assert partition.log.end_offset == 1
