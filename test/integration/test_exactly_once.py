"""Consume, transform, produce on brokers: with the calls of both clients, and with ExactlyOnce.

What is copied is read by confluent-kafka, which sees committed records only; what was committed for
the group is asked by it too. Members that are killed meanwhile are chaos_groups.py's.
"""

from __future__ import annotations

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaError, ProducerFencedError
from kafka.exactly_once import ExactlyOnce
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.consuming import take, until, values
from test.integration.judges import BrokerOffsets
from test.integration.oracles import Confluent

pytestmark = [
    pytest.mark.integration,
    pytest.mark.releases(since='0.11'),
    pytest.mark.column('transactions consumed'),
]

VALUES = [b'%d' % n for n in range(100)]


@pytest.fixture
def source(topic, fill):
    """A topic with 0 to 99 in partition 0."""
    fill({topic: {0: VALUES}})
    return topic


@pytest.fixture
def target(cluster, new_name):
    name = new_name()
    cluster.create_topic(name, 1)
    return name


@pytest.fixture
def producer(cluster, new_name):
    """Return a function that makes a producer of transactions, closed at the end."""
    made = []

    def give(name=None):
        made.append(
            KafkaProducer(
                bootstrap_servers=cluster.bootstrap,
                transactional_id=name or new_name(),
                max_block_ms=60000,
            )
        )
        return made[-1]

    yield give
    for each in made:
        each.close(timeout=30)


@pytest.fixture
def member(consume, source, group):
    """Return a function that makes a member of the group that reads the source."""

    def give(**options):
        return consume(
            source,
            group_id=group,
            enable_auto_commit=False,
            isolation_level='read_committed',
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
            **{'max_poll_records': 10, **options},
        )

    return give


def copied(cluster, target, count):
    return [value for _, value in Confluent(cluster).read(target, count, seconds=60)]


def stored(cluster, group, topic):
    return BrokerOffsets(cluster).stored(group, topic, [0]).get(0)


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    cluster, member, producer, source, target, group
):
    consumer, writer = member(), producer()
    writer.init_transactions()
    place = TopicPartition(source, 0)
    for end, wanted in (('abort', None), ('commit', 10)):
        records = take(consumer, 10, max_records=10)
        writer.begin_transaction()
        for each in records:
            writer.send(target, each.value, partition=0)
        offsets = {place: OffsetAndMetadata(records[-1].offset + 1, '')}
        writer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        if end == 'commit':
            writer.commit_transaction()
        else:
            writer.abort_transaction()
            consumer.seek(place, 0)
        until(lambda wanted=wanted: stored(cluster, group, source) == wanted, consumer)
    assert consumer.committed(place) == 10
    assert copied(cluster, target, 10) == VALUES[:10]


@pytest.mark.releases(since='2.5', some=('2.8.2', '4.4.0'))
def test_a_member_that_the_group_has_left_behind_cannot_commit_its_transaction(
    member, producer, source, target
):
    """KIP-447: the generation goes with the offsets."""
    old, writer = member(max_poll_interval_ms=1500), producer()
    writer.init_transactions()
    records = take(old, 10, max_records=10)
    who = old.group_metadata()
    new = member()
    until(lambda: new.assignment(), new)
    take(new, 10, max_records=10)
    writer.begin_transaction()
    writer.send(target, b'zombie', partition=0)
    with pytest.raises(KafkaError):
        offsets = {TopicPartition(source, 0): OffsetAndMetadata(records[-1].offset + 1, '')}
        writer.send_offsets_to_transaction(offsets, who)
        writer.commit_transaction()
    writer.abort_transaction()


def test_the_helper_copies_everything_once(cluster, member, producer, source, target, group):
    with ExactlyOnce(member(), producer()) as loop:
        count = 0
        while count < 100:
            count += loop.step(
                lambda records: [(target, each.value, None, None, 0) for each in records]
            )
    assert copied(cluster, target, 100) == VALUES
    assert loop.committed >= 10
    assert stored(cluster, group, source) == 100


def test_the_helper_begins_again_with_what_failed(cluster, member, producer, source, target):
    failures = []

    def transform(records):
        if records[0].value == b'50' and len(failures) < 2:
            failures.append(values(records))
            raise ValueError('of the program')
        return [(target, each.value, None, None, 0) for each in records]

    with ExactlyOnce(member(), producer()) as loop:
        count = 0
        while count < 100:
            try:
                count += loop.step(transform)
            except ValueError:
                pass
    assert failures == [VALUES[50:60]] * 2
    assert copied(cluster, target, 100) == VALUES
    assert loop.aborted == 2


def test_the_helper_of_a_fenced_program_ends_and_its_heir_goes_on(
    cluster, member, producer, source, target, new_name
):
    name = new_name()
    older = ExactlyOnce(member(), producer(name))

    def copy(records):
        return [(target, each.value, None, None, 0) for each in records]

    count = 0
    while count < 30:
        count += older.step(copy)
    newer_producer = producer(name)
    newer_producer.init_transactions()
    with pytest.raises((ProducerFencedError, KafkaError)):
        for _ in range(20):
            older.step(copy)
    with pytest.raises(KafkaError):
        older.step(copy)
    older._consumer.close()
    with ExactlyOnce(member(), newer_producer) as newer:
        total = count
        while total < 100:
            total += newer.step(copy)
    assert copied(cluster, target, 100) == VALUES
