"""SimpleConsumer, interrupted at any point, loses no message and commits none before its return."""

from __future__ import annotations

import itertools

import pytest

from kafka import KafkaClient, KafkaConsumer, SimpleConsumer
from kafka.consumer import base, group, partition_table_09, simple
from kafka.consumer import kafka_09 as dialect_09
from kafka.testing import Cluster
from test.consumer.modern import write
from test.raising import Interruption, Raiser, needs_points, no_raise_before_return, points

pytestmark = [pytest.mark.once, needs_points]

WITHIN = (base.__file__, simple.__file__)
MESSAGES, MOST_POINTS = 1500, 40


class Limit(Exception):
    """What a job runner raises when the time is over."""


@pytest.fixture
def consumer():
    with Cluster(version='4.4', topics={'t': 1}) as cluster:
        write(cluster, MESSAGES, linger_ms=5)
        client = KafkaClient(cluster.bootstrap)
        made = SimpleConsumer(client, 'g', 't', auto_commit_every_n=4, auto_commit_every_t=None)
        yield made
        made.stop()
        client.close()


def take(consumer):
    return consumer.get_messages(3)


def take_one(consumer):
    message = consumer.get_message()
    return [] if message is None else [message]


def iterate(consumer):
    return list(itertools.islice(consumer, 3))


@no_raise_before_return
@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError])
@pytest.mark.parametrize('read', [take, take_one, iterate])
def test_an_exception_at_any_point_loses_no_message(consumer, read, error):
    given = []
    with Raiser(within=WITHIN) as counting:
        given += [each.offset for each in read(consumer)]
    for at in points(counting.count, MOST_POINTS):
        raiser = Raiser(at, error, WITHIN)
        begun = len(given)
        try:
            with raiser:
                if read is iterate:  # what was yielded before the exception is the program's
                    for message in itertools.islice(consumer, 3):
                        given.append(message.offset)
                else:
                    given += [each.offset for each in read(consumer)]
        except error:
            pass
        assert consumer._read().get(0, 0) <= len(given), raiser.raised_at
        given += [each.offset for each in read(consumer)]
        assert given == list(range(len(given))), (raiser.raised_at, given[begun - 2 :])
        assert consumer.offsets[0] == len(given), raiser.raised_at


@pytest.mark.parametrize('every_ms', [None, 3_600_000])
def test_an_exception_behind_a_commit_leaves_none_ahead_after_stop(every_ms):
    with Cluster(version='4.4', topics={'t': 1}) as cluster:
        write(cluster, 20)
        client = KafkaClient(cluster.bootstrap)
        made = Torn(client, 'g', 't', auto_commit_every_n=10, auto_commit_every_t=every_ms)
        assert len(made.get_messages(5)) == 5
        with pytest.raises(Interruption):
            made.get_messages(10)
        made.stop()
        other = SimpleConsumer(client, 'g', 't', auto_commit=False)
        assert other.offsets == {0: 5}
        other.stop()
        client.close()


class Torn(SimpleConsumer):
    """One whose calls are interrupted once they have committed."""

    def _auto_commit(self):
        before = self.count_since_commit
        super()._auto_commit()
        if self.count_since_commit < before:
            raise Interruption


@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError])
def test_the_kafka_consumer_of_0_9_5_loses_no_message(error):
    """Tried in the functions that a message passes through without a call of Python behind it."""
    within = dialect_09.__file__, group.__file__, partition_table_09.__file__
    given = []
    with Cluster(version='4.4', topics={'t': 1}) as cluster:
        write(cluster, 300, linger_ms=5)
        options = {'bootstrap_servers': cluster.bootstrap, 'fetch_message_max_bytes': 1000}
        made = KafkaConsumer('t', dialect='0.9.5', auto_offset_reset='smallest', **options)
        try:
            with Raiser(within=within) as counting:
                given += [each.offset for each in itertools.islice(made, 2)]
            for at in points(counting.count, MOST_POINTS):
                raiser = Raiser(at, error, within)
                try:
                    with raiser:
                        for message in itertools.islice(made, 2):
                            given.append(message.offset)
                except error:
                    pass
                given += [each.offset for each in itertools.islice(made, 2)]
                assert given == list(range(len(given))), (raiser.raised_at, given[-5:])
        finally:
            made.close()
