"""What a consumer may not read is told by each call, and it reads on when it may.

By both protocols; brokers, network and clock are in memory: test_consumer_permissions.py has real
brokers.
"""

from __future__ import annotations

import pytest

from kafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import MemoryCluster
from test.consumer.modern import SECONDS, poll_until
from test.simulation.copier import SimProducer, create_topic
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

ME = 'ANONYMOUS'
#: Far below what calls are given: who is refused needs not wait.
AT_ONCE = 10
#: Seconds between heartbeats of KIP-848, as the embedded brokers want it.
HEARTBEAT = 5
OPEN = TopicPartition('open', 0)
#: Releases, each with a protocol of its groups.
BOTH = [('0.9.0', 'classic'), ('2.8', 'classic'), ('4.4', 'classic'), ('4.4', 'consumer')]


@pytest.fixture(params=BOTH, ids='-'.join)
def protocol(request):
    return request.param


@pytest.fixture
def cluster(protocol):
    # A member of a group of the new protocol is refused with a heartbeat.
    heartbeat = {'group_consumer_heartbeat_interval_ms': 200}
    with MemoryCluster(version=protocol[0], authorizer=True, **heartbeat) as made:
        for name in ('open', 'seen', 'hidden'):
            create_topic(made, name)
        made.allow(ME, 'Write', 'Read', 'Describe', topic='open')
        made.allow(ME, 'Describe', topic='seen')
        made.allow(ME, 'Read', 'Describe', group='own')
        yield made


@pytest.fixture
def consume(cluster, protocol):
    made = []

    def give(*topics, **options):
        options = {
            'auto_offset_reset': 'earliest',
            'heartbeat_interval_ms': 200,
            'group_protocol': protocol[1],
            **options,
        }
        made.append(SimConsumer.of(cluster, [], *topics, **options))
        return made[-1]

    yield give
    for consumer in made:
        consumer.close(timeout_ms=1000)


def write_one(cluster, topic):
    cluster.allow(ME, 'Write', 'Describe', 'Read', topic=topic)
    with SimProducer.of(cluster, [], enable_idempotence=False) as producer:
        producer.send(topic, b'7', partition=0).get(SECONDS)


@pytest.fixture
def now(cluster):
    """Return the clock that all have, in seconds."""
    return cluster.timers.clock.monotonic


@pytest.fixture
def refused(now):
    """Return a function that makes each call twice: all are refused at once.

    And not one by a group that went on.
    """

    def check(kind, *calls):
        for call in calls:
            for _ in range(2):
                began = now()
                with pytest.raises(kind) as caught:
                    call()
                assert now() - began < AT_ONCE
                assert not isinstance(caught.value, CommitFailedError)
        return caught.value

    return check


@pytest.fixture
def read_on(now):
    """Return a function that polls, whatever is still refused, until a record comes."""

    def read(consumer, kind):
        deadline = now() + SECONDS
        while now() < deadline:
            try:
                return poll_until(consumer, 1)[0].value
            except kind:
                consumer._engine.wait(lambda: False, 0.01)  # a program would sleep as well
        raise AssertionError('it was told to the end')

    return read


@pytest.mark.parametrize('topic', ['seen', 'hidden'])
def test_a_subscribed_topic_that_may_not_be_read(cluster, consume, topic, refused, read_on):
    consumer = consume(topic, consumer_timeout_ms=SECONDS * 1000)
    kind = TopicAuthorizationFailedError
    error = refused(kind, lambda: consumer.poll(SECONDS * 1000), lambda: next(consumer))
    assert error.args == ({topic},)
    write_one(cluster, topic)
    assert read_on(consumer, kind) == b'7'


@pytest.mark.parametrize('topic', ['seen', 'hidden'])
def test_an_assigned_topic_that_may_not_be_read(cluster, consume, topic, refused, read_on):
    consumer = consume()
    consumer.assign([TopicPartition(topic, 0)])
    kind = TopicAuthorizationFailedError
    error = refused(kind, lambda: consumer.poll(SECONDS * 1000))
    assert error.args == ({topic},)
    write_one(cluster, topic)
    assert read_on(consumer, kind) == b'7'


def test_offsets_of_a_topic_that_may_not_be_seen(consume, refused):
    consumer, hidden = consume(group_id='own'), TopicPartition('hidden', 0)
    consumer.assign([hidden])
    refused(
        TopicAuthorizationFailedError,
        lambda: consumer.position(hidden),
        lambda: consumer.end_offsets([hidden]),
        lambda: consumer.beginning_offsets([hidden]),
        lambda: consumer.partitions_for_topic('hidden'),
        lambda: consumer.commit({hidden: OffsetAndMetadata(1, '')}),
    )


def test_others_are_read_while_one_topic_of_a_member_may_not_be(cluster, consume, refused, read_on):
    """Each poll tells of it; who goes on polling all the same gets the others' records."""
    write_one(cluster, 'open')
    consumer = consume('open', 'hidden', group_id='own')
    refused(TopicAuthorizationFailedError, lambda: consumer.poll(SECONDS * 1000))
    consumer.subscribe(['open'])
    assert read_on(consumer, TopicAuthorizationFailedError) == b'7'


@pytest.mark.parametrize('protocol', [('4.4', 'consumer')], ids='-'.join)
def test_other_topics_come_soon_after_what_may_not_be_read(cluster, consume, refused, now):
    """Also if the coordinator has said so and nobody has polled since."""
    write_one(cluster, 'open')
    consumer = consume('hidden', group_id='own')
    refused(TopicAuthorizationFailedError, lambda: consumer.poll(SECONDS * 1000))
    engine = consumer._engine
    assert engine.wait(lambda: engine.member.errors, SECONDS)
    began = now()
    consumer.subscribe(['open'])
    assert poll_until(consumer, 1)[0].value == b'7'
    assert now() - began < HEARTBEAT / 2


def test_other_topics_come_soon_after_what_may_not_be_fetched(cluster, consume, refused):
    """Also if a broker has said so, and said it again since the program polled."""
    write_one(cluster, 'open')
    consumer = consume('seen')
    refused(TopicAuthorizationFailedError, lambda: consumer.poll(SECONDS * 1000))
    engine = consumer._engine
    assert engine.wait(lambda: engine.fetcher.errors, SECONDS)
    consumer.subscribe(['open'])
    assert poll_until(consumer, 1)[0].value == b'7'


@pytest.mark.parametrize('protocol', [('4.4', 'consumer')], ids='-'.join)
@pytest.mark.parametrize(('forbidden', 'told'), [((), {'a', 'b'}), (('b', 'c'), {'b'})])
def test_what_the_coordinator_denies_is_told_as_far_as_it_is_known(consume, forbidden, told):
    consumer = consume('a', 'b', group_id='own')
    engine = consumer._engine
    engine.pool.cluster.unauthorized_topics = set(forbidden)
    for topics in ({'a', 'b'}, {'b', 'c'}):
        engine.member.errors.append(TopicAuthorizationFailedError(topics))
        error = engine.next_error()
        assert error is None if 'c' in topics else error.args == (told,)


def test_a_group_that_may_not_be_joined(cluster, consume, refused, read_on):
    write_one(cluster, 'open')
    consumer = consume('open', group_id='theirs', consumer_timeout_ms=SECONDS * 1000)
    kind = GroupAuthorizationFailedError
    error = refused(
        kind,
        lambda: consumer.poll(SECONDS * 1000),
        lambda: next(consumer),
        lambda: consumer.committed(OPEN),
        lambda: consumer.commit({OPEN: OffsetAndMetadata(1, '')}),
    )
    assert 'theirs' in str(error)
    cluster.allow(ME, 'Read', 'Describe', group='theirs')
    assert read_on(consumer, kind) == b'7'
    consumer.commit()
    assert consumer.committed(OPEN) == 1


def test_offsets_of_a_group_that_may_not_be_used_by_who_assigns_itself(
    cluster, consume, refused, read_on
):
    consumer = consume(group_id='theirs')
    consumer.assign([OPEN])
    kind = GroupAuthorizationFailedError
    refused(
        kind,
        lambda: consumer.poll(SECONDS * 1000),
        lambda: consumer.position(OPEN),
        lambda: consumer.committed(OPEN),
        lambda: consumer.commit({OPEN: OffsetAndMetadata(1, '')}),
    )
    future = consumer.commit_async({OPEN: OffsetAndMetadata(1, '')})
    for _ in range(100):
        consumer._engine.wait(lambda: False, 0.01)  # as between polls
        with pytest.raises(kind):
            consumer.poll(50)
        if future.is_done:
            break
    assert isinstance(future.exception, kind)
    write_one(cluster, 'open')
    cluster.allow(ME, 'Read', 'Describe', group='theirs')
    assert read_on(consumer, kind) == b'7'


def test_a_group_that_a_member_may_not_use_any_more(cluster, consume, refused, now):
    write_one(cluster, 'open')
    consumer = consume('open', group_id='own')
    assert len(poll_until(consumer, 1)) == 1
    cluster.deny(ME, 'All', group='own')
    refused(
        GroupAuthorizationFailedError,
        lambda: consumer.commit(),
        lambda: consumer.poll(SECONDS * 1000),
    )
    began = now()
    consumer.close()
    assert now() - began < AT_ONCE


def test_an_error_that_is_told_again_and_again_does_not_grow(consume):
    consumer, depths = consume('open', group_id='theirs'), []
    for _ in range(3):
        with pytest.raises(GroupAuthorizationFailedError) as caught:
            consumer.poll(SECONDS * 1000)
        depths.append(len(caught.traceback))
    assert depths[1] == depths[2]


def test_a_commit_for_a_topic_that_may_only_be_seen(consume, refused):
    consumer = consume(group_id='own')
    consumer.assign([OPEN])
    seen = TopicPartition('seen', 0)
    refused(
        TopicAuthorizationFailedError,
        lambda: consumer.commit({seen: OffsetAndMetadata(1, '')}),
    )
    consumer.commit({OPEN: OffsetAndMetadata(0, '')})
    assert consumer.committed(OPEN) == 0
