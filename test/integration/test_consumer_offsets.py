"""The modern KafkaConsumer and offsets on brokers: committed, looked up, reset, out of range.

What was committed is read by confluent-kafka, or by ZooKeeper's own shell where it keeps it.
"""

from __future__ import annotations

import time

import pytest

from kafka import SimpleConsumer
from kafka.errors import (
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedVersionError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.consuming import (
    nothing_comes,
    offsets,
    take,
    until,
    values,
)
from test.integration.documented import start
from test.integration.judges import BrokerOffsets, offsets_of
from test.integration.oracles import Confluent

STORES_IN_KAFKA = pytest.mark.releases(since='0.8.2')
pytestmark = [pytest.mark.integration]

VALUES = [b'%d' % n for n in range(200)]


@pytest.fixture
def place(topic, fill):
    """Partition 0, with 0 to 199 in it."""
    fill({topic: {0: VALUES}})
    return TopicPartition(topic, 0)


@pytest.fixture
def member(consume, place, group):
    """Return a function that makes a consumer of the partition which commits for the group."""

    def give(**options):
        options.setdefault('enable_auto_commit', False)
        consumer = consume(group_id=group, **options)
        consumer.assign([place])
        return consumer

    return give


@pytest.fixture
def stored(cluster, place, group):
    """Return a function that tells what others see as committed, None for nothing."""

    def tell(partition=0):
        return BrokerOffsets(cluster).stored(group, place.topic, [partition]).get(partition)

    return tell


# --- commits ------------------------------------------------------------------------------------


@STORES_IN_KAFKA
def test_a_commit_stores_how_far_records_were_handed_out(member, place, stored):
    consumer = member()
    assert consumer.committed(place) is None
    assert stored() is None
    take(consumer, 7, max_records=7)
    consumer.commit()
    assert (stored(), consumer.committed(place)) == (7, 7)
    take(consumer, 13, max_records=13)
    assert (stored(), consumer.committed(place)) == (7, 7)
    consumer.commit()
    assert stored() == 20


@STORES_IN_KAFKA
def test_the_next_consumer_goes_on_where_the_last_one_committed(member, place):
    first = member()
    assert values(take(first, 180, max_records=20)) == VALUES[:180]
    first.commit()
    first.close()
    second = member()
    assert second.position(place) == 180
    assert values(take(second, 20)) == VALUES[180:]
    assert nothing_comes(second)


@STORES_IN_KAFKA
def test_a_commit_of_chosen_offsets_with_text(member, place, stored, topic):
    consumer = member()
    other = TopicPartition(topic, 1)
    text = 'read by λ'
    consumer.commit({place: OffsetAndMetadata(42, text), other: OffsetAndMetadata(0, '')})
    assert (stored(0), stored(1)) == (42, 0)
    found = consumer.committed(place, metadata=True)
    assert (found.offset, found.metadata) == (42, text)
    assert consumer.committed(other) == 0


@STORES_IN_KAFKA
def test_a_commit_in_the_background_tells_its_callback_and_its_future(member, place, stored):
    consumer = member()
    told = []
    take(consumer, 5, max_records=5)
    offsets_told = {place: OffsetAndMetadata(3, 'three')}
    future = consumer.commit_async(offsets_told, lambda *what: told.append(what))
    until(lambda: told and future.is_done, consumer)
    assert future.succeeded()
    ((offsets_there, answer),) = told
    assert offsets_there == offsets_told
    assert not isinstance(answer, Exception)
    assert stored() == 3


@STORES_IN_KAFKA
def test_commits_in_the_background_are_stored_in_their_order(member, place, stored):
    consumer = member()
    done = []
    for offset in range(1, 51):
        commit = {place: OffsetAndMetadata(offset, '')}
        consumer.commit_async(commit, lambda where, _: done.append(where[place].offset))
    until(lambda: len(done) == 50, consumer)
    assert done == list(range(1, 51))
    assert stored() == 50


@pytest.mark.releases(since='0.8.2')
def test_text_that_is_too_long_is_refused_and_nothing_stored(cluster, member, place, stored):
    """By 0.8.2 it is refused, too, and the offset stored all the same."""
    consumer = member()
    with pytest.raises(KafkaError) as caught:
        consumer.commit({place: OffsetAndMetadata(1, 'x' * 10_000)})
    assert caught.value.errno == 12
    assert stored() == (1 if cluster.release.version < (0, 9) else None)
    consumer.commit({place: OffsetAndMetadata(2, 'x' * 100)})
    assert stored() == 2


@pytest.mark.releases(since='2.1')
def test_the_epoch_of_the_leader_is_stored_with_the_offset(member, place):
    consumer = member()
    take(consumer, 5, max_records=5)
    consumer.commit()
    assert consumer.committed(place, metadata=True).leader_epoch == 0
    consumer.commit({place: OffsetAndMetadata(3, 'x', 0)})
    assert consumer.committed(place, metadata=True) == OffsetAndMetadata(3, 'x', 0)


def test_without_a_group_nothing_can_be_committed(consume, place):
    consumer = consume()
    consumer.assign([place])
    take(consumer, 5, max_records=5)
    for verb in (consumer.commit, consumer.commit_async, lambda: consumer.committed(place)):
        with pytest.raises((IllegalStateError, AssertionError)):
            verb()


# --- automatic commits --------------------------------------------------------------------------


@STORES_IN_KAFKA
@pytest.mark.parametrize('is_automatic', [True, False], ids=['automatic', 'manual'])
def test_close_commits_what_was_handed_out_if_that_is_automatic(member, stored, is_automatic):
    consumer = member(enable_auto_commit=is_automatic)
    take(consumer, 12, max_records=12)
    consumer.close()
    assert stored() == (12 if is_automatic else None)


@STORES_IN_KAFKA
@pytest.mark.parametrize('reset', ['earliest', 'latest'])
def test_where_a_reset_led_is_not_committed_before_something_was_read(member, place, stored, reset):
    consumer = member(enable_auto_commit=True, auto_offset_reset=reset)
    assert consumer.position(place) == (0 if reset == 'earliest' else len(VALUES))
    assert consumer.commit() is False
    consumer.close()
    assert stored() is None


@STORES_IN_KAFKA
def test_where_the_program_sought_is_committed_without_a_record_read(member, place, stored):
    consumer = member(enable_auto_commit=True)
    consumer.seek_to_end(place)
    assert consumer.position(place) == len(VALUES)
    consumer.close()
    assert stored() == len(VALUES)


@STORES_IN_KAFKA
def test_close_may_be_told_not_to_commit(member, stored):
    consumer = member(enable_auto_commit=True)
    take(consumer, 12, max_records=12)
    consumer.close(autocommit=False)
    assert stored() is None


@STORES_IN_KAFKA
def test_automatic_commits_come_with_time_and_polls(member, place, stored):
    consumer = member(enable_auto_commit=True, auto_commit_interval_ms=100)
    take(consumer, 30, max_records=30)
    consumer.pause(place)
    until(lambda: consumer.committed(place) == 30, consumer)
    assert stored() == 30


KILLED = """
    import sys, time
    from kafka import KafkaConsumer
    hosts, topic, group, how = sys.argv[1:]
    consumer = KafkaConsumer(topic, bootstrap_servers=hosts, group_id=group,
        auto_offset_reset='earliest', auto_commit_interval_ms=50, max_poll_records=10)
    count = 0
    while not count:
        if how == 'iterate':
            for count, _ in enumerate(consumer, 1):
                if count == 10:
                    break
        else:
            count = sum(map(len, consumer.poll(1000).values()))
    print(count, flush=True)
    time.sleep(60)  # it works on what it got
    """


@STORES_IN_KAFKA
@pytest.mark.parametrize('how', ['poll', 'iterate'])
def test_what_was_handed_out_last_is_not_committed_before_the_next_poll(
    cluster, consume, place, group, stored, tmp_path, how
):
    """Kill -9 while it works on its first records: the next member gets them once more."""
    arguments = (cluster.bootstrap, place.topic, group, how)
    with start(tmp_path, KILLED, *arguments) as running:
        try:
            assert running.stdout.readline() == b'10\n'
            time.sleep(1)
            committed = stored()
        finally:
            running.kill()
    # Iteration commits between two records; the tenth is not done. 0 is where it began.
    assert (committed or 0) <= (9 if how == 'iterate' else 0)
    consumer = consume(group_id=group)
    consumer.assign([place])
    assert offsets(take(consumer, 200 - (committed or 0)), 0)[0] == (committed or 0)


# --- offsets of the 0.9.5 tower -----------------------------------------------------------------


@pytest.mark.releases(since='0.8.1')
def test_offsets_of_the_0_9_5_consumers_and_back(cluster, client, consume, place, group):
    """Both store where the brokers of 0.8.1 do: in ZooKeeper, as long as there is one."""
    options = {'api_version': (0, 8, 1)} if cluster.release.has_zookeeper else {}

    def old():
        return SimpleConsumer(client, group, place.topic, partitions=[0], auto_commit=False)

    def new():
        consumer = consume(group_id=group, enable_auto_commit=False, **options)
        consumer.assign([place])
        return consumer

    def seen():
        return offsets_of(cluster).stored(group, place.topic, [0])

    simple = old()
    assert [m.message.value for m in simple.get_messages(50, timeout=20)] == VALUES[:50]
    simple.commit()
    assert seen() == {0: 50}
    modern = new()
    assert values(take(modern, 60, max_records=20)) == VALUES[50:110]
    modern.commit()
    modern.close()
    assert seen() == {0: 110}
    simple = old()
    assert [m.message.value for m in simple.get_messages(40, timeout=20)] == VALUES[110:150]
    simple.commit()
    assert new().position(place) == 150


@pytest.mark.releases(since='0.8.1')
def test_offsets_of_the_0_9_5_dialect_of_the_same_class(cluster, consume, place, group):
    from kafka import KafkaConsumer  # late, as above

    options = {'api_version': (0, 8, 1)} if cluster.release.has_zookeeper else {}
    old = KafkaConsumer(
        place.topic.encode(),
        bootstrap_servers=[cluster.bootstrap],
        group_id=group,
        auto_offset_reset='smallest',
    )
    try:
        for _ in range(30):
            old.task_done(old.next())
        old.commit()
    finally:
        old.close()
    modern = consume(group_id=group, enable_auto_commit=False, **options)
    modern.assign([place])
    assert values(take(modern, 170)) == VALUES[30:]


# --- where to begin -----------------------------------------------------------------------------


@pytest.mark.parametrize('policy', ['earliest', 'latest', 'smallest', 'largest'])
def test_where_it_begins_without_a_committed_offset(consume, place, fill, policy):
    consumer = consume(auto_offset_reset=policy)
    consumer.assign([place])
    wanted = 0 if policy in ('earliest', 'smallest') else 200
    assert consumer.position(place) == wanted
    fill({place.topic: {0: [b'new']}})
    assert values(take(consumer, 201 - wanted))[-1] == b'new'


@STORES_IN_KAFKA
def test_without_a_policy_and_an_offset_it_is_an_error_until_a_seek(member, place):
    consumer = member(auto_offset_reset='none')
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError):
            until(lambda: False, consumer, seconds=20)
    consumer.seek(place, 150)
    assert values(take(consumer, 50)) == VALUES[150:]


@pytest.mark.parametrize(('policy', 'begins'), [('earliest', 0), ('latest', 200)])
def test_a_position_out_of_range_is_reset_by_policy(consume, place, fill, policy, begins):
    consumer = consume(auto_offset_reset=policy)
    consumer.assign([place])
    consumer.seek(place, 5000)
    found = until(lambda: consumer.position(place) <= 200, consumer)[0]
    fill({place.topic: {0: [b'new']}})
    found += take(consumer, 201 - begins - len(found))
    assert offsets(found, 0) == list(range(begins, 201))


def test_a_position_out_of_range_is_an_error_without_a_policy(consume, place):
    consumer = consume(auto_offset_reset='none')
    consumer.assign([place])
    consumer.seek(place, 5000)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        until(lambda: False, consumer, seconds=20)
    assert caught.value.args[0] == {place: 5000}
    consumer.seek(place, 190)
    assert values(take(consumer, 10)) == VALUES[190:]


@pytest.mark.releases(since='0.11')
def test_records_that_were_deleted_are_out_of_range(cluster, member, place):
    from confluent_kafka import TopicPartition as Place  # late: only runs on brokers need it
    from confluent_kafka.admin import AdminClient

    consumer = member()
    take(consumer, 20, max_records=20)
    consumer.commit()
    consumer.close()
    admin = AdminClient(Confluent(cluster).config)
    for future in admin.delete_records([Place(place.topic, 0, 100)]).values():
        assert future.result(30).low_watermark == 100
    consumer = member()
    assert consumer.beginning_offsets([place]) == {place: 100}
    assert values(take(consumer, 100)) == VALUES[100:]


# --- looking up ---------------------------------------------------------------------------------


def test_where_partitions_begin_and_end(consume, place):
    other = TopicPartition(place.topic, 1)
    consumer = consume()
    assert consumer.beginning_offsets([place, other]) == {place: 0, other: 0}
    assert consumer.end_offsets([place, other]) == {place: 200, other: 0}


def test_a_position_is_settled_without_a_poll(consume, place):
    consumer = consume()
    consumer.assign([place])
    consumer.seek_to_end(place)
    assert consumer.position(place) == 200
    consumer.seek_to_beginning(place)
    assert consumer.position(place) == 0


@pytest.mark.releases(since='0.10.1')
def test_offsets_for_times(cluster, consume, topic):
    from confluent_kafka import Producer  # late, as above

    producer = Producer(Confluent(cluster).config)
    for n in range(10):
        producer.produce(topic, b'%d' % n, partition=n % 2, timestamp=1_000_000 + 1000 * n)
    assert producer.flush(30) == 0
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = consume()

    def look_up(times):
        found = consumer.offsets_for_times(times)
        return {place: each and (each.offset, each.timestamp) for place, each in found.items()}

    assert look_up({first: 1_002_000}) == {first: (1, 1_002_000)}
    assert look_up({first: 1_002_001}) == {first: (2, 1_004_000)}
    assert look_up({first: 0, second: 1_009_000}) == {
        first: (0, 1_000_000),
        second: (4, 1_009_000),
    }
    assert look_up({first: 2_000_000, second: 1_008_000}) == {first: None, second: (4, 1_009_000)}
    assert look_up({}) == {}
    with pytest.raises(ValueError):
        consumer.offsets_for_times({first: -1})


@pytest.mark.releases(until='0.10.0')
def test_releases_without_an_index_of_times_say_so(consume, place):
    with pytest.raises(UnsupportedVersionError):
        consume().offsets_for_times({place: 0})


@pytest.mark.releases(since='0.10.1')
def test_a_duration_as_policy_begins_where_that_was(cluster, consume, topic):
    from confluent_kafka import Producer  # late, as above

    now = int(time.time() * 1000)
    producer = Producer(Confluent(cluster).config)
    for minutes in (180, 61, 59, 1):
        producer.produce(topic, b'%d' % minutes, partition=0, timestamp=now - minutes * 60_000)
    assert producer.flush(30) == 0
    consumer = consume(auto_offset_reset='by_duration:PT1H')
    consumer.assign([TopicPartition(topic, 0)])
    assert values(take(consumer, 2)) == [b'59', b'1']
