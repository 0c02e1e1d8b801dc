"""What was returned of a topic outlasts another subscription; on a cluster in memory."""

from __future__ import annotations

import pytest

from kafka import ConsumerRebalanceListener, TopicPartition
from kafka.testing import MemoryCluster
from test.consumer.written_logs import write
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

A, B = TopicPartition('a', 0), TopicPartition('b', 0)
RECORDS = 10


@pytest.fixture
def cluster():
    with MemoryCluster(version='4.4', seed=1, topics={'a': 1, 'b': 1}) as made:
        for _ in range(RECORDS):
            put(made, 'a')
        yield made


@pytest.fixture(params=['range', 'cooperative-sticky', 'consumer'])
def how(request):
    return request.param


def put(cluster, topic):
    write(cluster.state.topics[topic].partitions[0].log, b'value')
    cluster.waiting.touch(('partition', topic, 0))


def member(cluster, how='range', **options):
    """Return a member that has its own commits in time only at a rebalance or the end."""
    if how == 'consumer':
        options['group_protocol'] = how
    else:
        options['partition_assignment_strategy'] = [how]
    options = {'group_id': 'g', 'auto_commit_interval_ms': 3_600_000, **options}
    options.setdefault('auto_offset_reset', 'earliest')
    return SimConsumer.of(cluster, [], **options)


def stored(cluster, partition=A):
    other = SimConsumer.of(cluster, [], group_id='g')
    try:
        return other.committed(partition)
    finally:
        other.close(autocommit=False)


def poll_for(consumer, seconds, **options):
    """Poll for a while; return the offsets that come, by topic."""
    found = {}
    for _ in range(seconds):
        for partition, records in consumer.poll(timeout_ms=1000, **options).items():
            found.setdefault(partition.topic, []).extend(each.offset for each in records)
    return found


def read_some(consumer, count):
    """Poll until so many records came, one at a time."""
    while count:
        count -= len(consumer.poll(timeout_ms=1000, max_records=1))


class Committing(ConsumerRebalanceListener):
    """One that commits by itself what goes, without saying which."""

    def __init__(self, consumer=None):
        self.consumer = consumer
        self.told = []

    def on_partitions_revoked(self, revoked):
        self.told += [(each, self.consumer.position(each)) for each in sorted(revoked)]
        self.consumer.commit()

    def on_partitions_assigned(self, assigned):
        pass


@pytest.mark.parametrize('reset', ['earliest', 'latest'])
def test_a_topic_that_is_subscribed_again_goes_on_where_it_was_left(cluster, how, reset):
    """Also with records that came meanwhile, where the reset would leave them out."""
    made = member(cluster, how, auto_offset_reset=reset)
    made.subscribe(['a'])
    if reset == 'latest':
        assert poll_for(made, 10) == {}
        put(cluster, 'a')
        assert poll_for(made, 1) == {'a': [RECORDS]}
    else:
        assert poll_for(made, 10) == {'a': [*range(RECORDS)]}
    made.subscribe(['b'])
    assert made.assignment() == set()
    assert poll_for(made, 10) == {}
    assert made.assignment() == {B}
    put(cluster, 'a')
    made.subscribe(['a', 'b'])
    assert poll_for(made, 10) == {'a': [RECORDS + 1 if reset == 'latest' else RECORDS]}
    made.close()


def test_a_topic_that_is_subscribed_again_at_once_was_never_away(cluster, how):
    made = member(cluster, how)
    made.subscribe(['a'])
    read_some(made, 3)
    made.subscribe(['b'])
    made.subscribe(['a', 'b'])
    assert made.assignment() == {A}
    assert poll_for(made, 5) == {'a': [*range(3, RECORDS)]}
    made.close()


def test_nothing_is_returned_of_a_topic_that_is_not_subscribed_any_more(cluster, how):
    made = member(cluster, how)
    made.subscribe(['a'])
    read_some(made, 3)
    made.subscribe(['b'])
    with pytest.raises(StopIteration):
        made.config['consumer_timeout_ms'] = 10_000
        next(made)
    made.close()


def test_a_listener_that_commits_what_goes_commits_it_also_then(cluster, how):
    made = member(cluster, how, enable_auto_commit=False)
    listener = Committing(made)
    made.subscribe(['a'], listener=listener)
    read_some(made, 3)
    made.subscribe(['b'], listener=listener)
    poll_for(made, 10)
    assert (A, 3) in listener.told
    assert stored(cluster) == 3
    made.close()


@pytest.mark.parametrize('ends', ['close', 'unsubscribe'])
def test_what_was_returned_is_committed_by_who_does_not_poll_again(cluster, how, ends):
    made = member(cluster, how)
    made.subscribe(['a'])
    read_some(made, 3)
    made.subscribe(['b'])
    getattr(made, ends)()
    assert stored(cluster) == 3
    made.close()


def test_unsubscribe_commits_what_was_returned_if_that_is_automatic(cluster, how):
    for is_automatic, offset in ((False, None), (True, 3)):
        made = member(cluster, how, enable_auto_commit=is_automatic)
        made.subscribe(['a'])
        read_some(made, 3)
        made.unsubscribe()
        assert stored(cluster) == offset
        made.close()


def test_without_a_member_the_partitions_go_at_once_and_are_committed(cluster):
    """As on brokers of 0.8, which store offsets and know no groups."""
    made = member(cluster, api_version=(0, 8, 2))
    made.subscribe(['a'])
    read_some(made, 3)
    made.subscribe(['b'])
    assert stored(cluster) == 3
    assert made.assignment() == set()
    made.close()


def test_another_pattern_keeps_what_was_returned(cluster, how):
    made = member(cluster, how)
    made.subscribe(pattern='a')
    read_some(made, 3)
    made.subscribe(pattern='b')
    poll_for(made, 15)
    assert made.assignment() == {B}
    assert stored(cluster) == 3
    made.subscribe(pattern='[ab]')
    assert poll_for(made, 15) == {'a': [*range(3, RECORDS)]}
    made.close()


def test_marks_of_a_partition_go_with_its_assignment(cluster):
    """Others may have gone on from there meanwhile."""
    made = member(cluster)
    made.assign([A])
    (records,) = made.poll(timeout_ms=1000).values()
    made.task_done(records[2])
    made.assign([B])
    assert stored(cluster) == 3
    other = member(cluster)
    other.assign([A])
    other.seek(A, 7)
    other.close()
    made.assign([A])
    made.close()
    assert stored(cluster) == 7


def test_pauses_outlast_a_rebalance(cluster, how):
    """Also for who gives all back and gets it again; resuming all that is paused means all."""
    made = member(cluster, how)
    made.subscribe(['a', 'b'])
    read_some(made, 3)
    made.pause(A)
    made.enforce_rebalance()
    assert poll_for(made, 10) == {}
    assert made.paused() == {A}
    assert made.assignment() == {A, B}
    made.resume(*made.paused())
    assert poll_for(made, 5) == {'a': [*range(3, RECORDS)]}
    made.close()


def test_what_is_paused_can_be_resumed_in_the_middle_of_a_rebalance(cluster):
    made = member(cluster)
    made.subscribe(['a'])
    read_some(made, 3)
    made.pause(A)
    other = member(cluster)
    other.subscribe(['a'])
    other.poll(timeout_ms=1000)  # joins, and the others have to
    while made.assignment():
        made.poll(timeout_ms=1)
    assert made.paused() == {A}
    made.resume(*made.paused())
    assert made.paused() == set()
    other.close()
    assert poll_for(made, 20) == {'a': [*range(3, RECORDS)]}
    with pytest.raises(KeyError):
        made.resume(B)
    made.close()
