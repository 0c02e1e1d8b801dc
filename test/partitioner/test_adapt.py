"""Partitioners of three eras are asked in their own way."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.partitioner import Murmur2Partitioner, Partitioner, RoundRobinPartitioner
from kafka.partitioner.adapt import Question, adapt, is_default
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.sticky import StickyPartitioner

ASKED = Question('t', 'key', b'key', 'value', b'value', (0, 1, 2), (0, 2), 'cluster')


def test_objects_of_0_9_5():
    assert adapt(Murmur2Partitioner([9])).choose(ASKED) == Murmur2Partitioner([0, 1, 2]).partition(
        b'key'
    )


def test_classes_of_0_9_5_are_made_for_each_topic():
    adapted = adapt(RoundRobinPartitioner)
    assert [adapted.choose(ASKED) for _ in range(4)] == [0, 1, 2, 0]
    assert adapted.choose(ASKED._replace(topic='u')) == 0


def test_callables_of_1_x():
    seen = []
    adapted = adapt(lambda key, everything, available: seen.append((key, everything, available)))
    adapted.choose(ASKED)
    assert seen == [(b'key', [0, 1, 2], [0, 2])] and adapted.on_new_batch is None


class Third:
    """A partitioner of 3.0."""

    def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
        return topic, key, serialized_key, value, serialized_value, cluster

    def on_new_batch(self, topic, cluster, prev_partition):
        return prev_partition


@pytest.mark.parametrize('partitioner', [Third, Third()])
def test_classes_and_objects_of_3_0(partitioner):
    adapted = adapt(partitioner)
    assert adapted.choose(ASKED) == ('t', 'key', b'key', 'value', b'value', 'cluster')
    assert adapted.on_new_batch('t', 'cluster', 2) == 2


def test_the_default_of_each_era_is_known():
    for default in (None, DefaultPartitioner, DefaultPartitioner(), StickyPartitioner()):
        assert is_default(default)

    class Mine(DefaultPartitioner):
        """May choose otherwise."""

    assert not is_default(Mine()) and not is_default(Third())


def test_what_is_none():
    with pytest.raises(KafkaConfigurationError, match='partitioner must be'):
        adapt(5)


def test_what_derives_from_the_class_of_3_0():
    class Last(Partitioner):
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
            return cluster

    assert adapt(Last).choose(ASKED) == adapt(Last()).choose(ASKED) == 'cluster'
    with pytest.raises(TypeError, match='abstract'):
        Partitioner()
