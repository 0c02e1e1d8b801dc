"""One of a group's topics is deleted: the others are read on, and nothing waits for it."""

from __future__ import annotations

import time

import pytest

from kafka.errors import UnknownTopicOrPartitionError
from kafka.protocol.admin.topics import DeleteTopicsRequest
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import Cluster
from test.consumer.modern import consumer_of, poll_until, write
from test.integration.wire import Wire

#: Seconds that a busy machine takes for what takes none; the commit that was in vain took 30.
AT_ONCE = 10.0


@pytest.fixture
def cluster():
    with Cluster(
        topics={'a': 2, 'b': 2},
        group_consumer_heartbeat_interval_ms=100,
    ) as made:
        yield made


def delete(cluster, topic):
    host, port = cluster.bootstrap.split(':')
    with Wire((host, int(port))) as wire:
        wire.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_a_deleted_topic_does_not_stop_its_group(cluster, protocol):
    write(cluster, 5, 'a')
    write(cluster, 5, 'b')
    deleted = TopicPartition('b', 0)
    with consumer_of(
        cluster, 'a', 'b', group_id='g', group_protocol=protocol, auto_offset_reset='earliest'
    ) as consumer:
        poll_until(consumer, 10)
        delete(cluster, 'b')
        write(cluster, 5, 'a', start=5)
        began = time.monotonic()
        while deleted in consumer.assignment():
            consumer.poll(20)
            assert time.monotonic() - began < AT_ONCE
        write(cluster, 5, 'a', start=10)
        poll_until(consumer, 1)
        began = time.monotonic()
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.commit({deleted: OffsetAndMetadata(5, '', -1)})
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.committed(deleted)
    assert time.monotonic() - began < AT_ONCE
    assert 'b' not in cluster.state.topics
