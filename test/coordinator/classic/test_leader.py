"""The leader of a classic group and the topics that it has assigned; on a cluster in memory."""

from __future__ import annotations

from kafka import TopicPartition
from kafka.testing import MemoryCluster
from test.simulation.reader import SimConsumer


def test_a_static_leader_that_comes_back_late_notices_a_partition_that_was_added():
    """The group keeps the assignment that it made before (KIP-814)."""
    with MemoryCluster(version='4.4', seed=1, topics={'t': 1}) as cluster:
        made = SimConsumer.of(
            cluster,
            [],
            't',
            group_id='g',
            group_instance_id='one',
            max_poll_interval_ms=6000,
            session_timeout_ms=60_000,
            metadata_max_age_ms=30_000,
        )
        for _ in range(2):
            made.poll(timeout_ms=1000)
        made._engine.wait(lambda: False, 10)  # in which it is late
        topic = cluster.state.topics['t']
        cluster.state.add_partition(topic, list(topic.partitions[0].replicas))
        for _ in range(60):
            made.poll(timeout_ms=1000)
        assert made.assignment() == {TopicPartition('t', 0), TopicPartition('t', 1)}
        made.close()
