"""The modern KafkaConsumer reads on brokers: polling, iteration, positions, pauses, deserializers.

What is read was written by confluent-kafka. Groups are test_consumer_groups.py's, offsets that are
stored or looked up test_consumer_offsets.py's, formats, codecs and transactions
test_consumer_records.py's.
"""

from __future__ import annotations

import functools
import threading
import time

import pytest

from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition
from test.integration.consuming import SECONDS, nothing_comes, offsets, places, take, values
from test.timing import within

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.8')]

NUMBERS = {0: [b'%d' % n for n in range(100)], 1: [b'%d' % n for n in range(100, 200)]}


@pytest.fixture
def filled(topic, fill):
    """A topic with 0 to 99 in partition 0 and 100 to 199 in partition 1."""
    fill({topic: NUMBERS})
    return topic


def both(topic):
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


# --- polling and iteration ----------------------------------------------------------------------


def test_assigned_partitions_bring_every_record_once_and_in_order(consume, filled):
    consumer = consume()
    consumer.assign(both(filled))
    found = take(consumer, 200)
    assert (values(found, 0), values(found, 1)) == (NUMBERS[0], NUMBERS[1])
    assert offsets(found, 0) == offsets(found, 1) == list(range(100))
    assert {each.topic for each in found} == {filled}
    assert nothing_comes(consumer)


def test_a_partition_that_is_not_assigned_brings_nothing(consume, filled):
    consumer = consume()
    consumer.assign(both(filled)[1:])
    assert values(take(consumer, 100)) == NUMBERS[1]
    assert nothing_comes(consumer)


def test_subscribed_topics_are_read_whole_where_there_is_no_group(consume, filled):
    consumer = consume(filled)
    assert sorted(values(take(consumer, 200)), key=int) == NUMBERS[0] + NUMBERS[1]
    assert consumer.assignment() == set(both(filled))
    assert consumer.subscription() == {filled}


def test_what_is_written_later_comes_when_the_broker_has_it(consume, filled, fill):
    consumer = consume(filled)
    take(consumer, 200)
    for n in range(5):
        fill({filled: {n % 2: [b'late %d' % n]}})
        assert values(take(consumer, 1)) == [b'late %d' % n]


def test_poll_returns_at_most_max_poll_records_and_the_rest_later(consume, filled):
    consumer = consume(filled, max_poll_records=7)
    found, deadline = [], time.monotonic() + SECONDS
    while len(found) < 200 and time.monotonic() < deadline:
        came = [each for records in consumer.poll(200).values() for each in records]
        assert len(came) <= 7
        found += came
    assert sorted(values(found), key=int) == NUMBERS[0] + NUMBERS[1]
    assert offsets(found, 0) == offsets(found, 1) == list(range(100))


def test_max_records_of_a_call_bounds_that_call(consume, filled):
    consumer = consume()
    consumer.assign(both(filled)[:1])
    assert offsets(take(consumer, 3, max_records=1), 0) == [0, 1, 2]
    assert offsets(take(consumer, 97), 0) == list(range(3, 100))


def test_poll_waits_as_long_as_it_was_told_and_no_longer(consume, filled):
    consumer = consume()
    consumer.assign(both(filled))
    take(consumer, 200)
    for seconds in (0, 0.3, 1.5):
        poll = functools.partial(consumer.poll, seconds * 1000)
        assert within(seconds * 0.95, seconds + 1, poll) == {}


def test_iteration_brings_every_record_and_ends_after_consumer_timeout_ms(consume, filled, fill):
    consumer = consume(filled, consumer_timeout_ms=1500)
    found = list(consumer)
    assert sorted(values(found), key=int) == NUMBERS[0] + NUMBERS[1]
    began = time.monotonic()
    assert list(consumer) == []
    assert 1.4 <= time.monotonic() - began < 5
    fill({filled: {0: [b'more']}})
    assert next(consumer).value == b'more'


def test_iteration_and_polls_may_be_mixed(consume, filled):
    consumer = consume(consumer_timeout_ms=5000)
    consumer.assign(both(filled)[:1])
    first = [next(consumer) for _ in range(10)]
    polled = take(consumer, 20, max_records=5)
    rest = [next(consumer) for _ in range(70)]
    assert offsets(first + polled + rest, 0) == list(range(100))


def test_the_position_follows_the_last_record_that_iteration_gave(consume, filled):
    consumer = consume(consumer_timeout_ms=5000)
    (place, _) = both(filled)
    consumer.assign([place])
    for offset in range(30):
        assert consumer.position(place) == offset
        assert next(consumer).offset == offset


def test_iteration_obeys_a_seek_between_two_records(consume, filled):
    consumer = consume(consumer_timeout_ms=5000)
    (place, _) = both(filled)
    consumer.assign([place])
    assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
    consumer.seek(place, 50)
    assert [next(consumer).offset for _ in range(3)] == [50, 51, 52]


@pytest.mark.releases(since='0.11')  # before, whoever asks for a topic creates it
def test_a_topic_that_appears_later_is_read_then(consume, cluster, fill, new_name):
    name = new_name()
    consumer = consume(metadata_max_age_ms=500, allow_auto_create_topics=False)
    consumer.subscribe([name])
    assert nothing_comes(consumer)
    cluster.create_topic(name, 2)
    fill({name: {1: [b'there']}})
    assert values(take(consumer, 1)) == [b'there']


def test_a_pattern_takes_the_topics_that_match_at_their_beginning(consume, cluster, fill, new_name):
    names = ['%s-%s' % (new_name(), end) for end in ('a', 'b')]
    other = 'not-%s' % names[0]
    for name in [*names, other]:
        cluster.create_topic(name, 2)
        fill({name: {0: [name.encode()]}})
    consumer = consume(metadata_max_age_ms=500)
    consumer.subscribe(pattern='(%s)$' % '|'.join(names))
    assert sorted(values(take(consumer, 2))) == sorted(name.encode() for name in names)
    assert nothing_comes(consumer)
    assert consumer.subscription() == set(names)


def test_a_topic_that_matches_a_pattern_later_is_read_then(consume, cluster, fill, new_name):
    name = new_name()
    consumer = consume(metadata_max_age_ms=500)
    consumer.subscribe(pattern='^%s-.*' % name)
    assert nothing_comes(consumer, 0.3)
    cluster.create_topic(name + '-new', 2)
    fill({name + '-new': {0: [b'v']}})
    assert values(take(consumer, 1)) == [b'v']


def test_topics_and_partitions_are_told(consume, filled, new_name):
    consumer = consume()
    assert filled in consumer.topics()
    assert consumer.partitions_for_topic(filled) == {0, 1}
    consumer.assign(both(filled))
    take(consumer, 200)
    assert consumer.highwater(both(filled)[0]) == 100
    assert 'consumer-fetch-manager-metrics' in consumer.metrics()


# --- positions, pauses --------------------------------------------------------------------------


def test_seek_takes_effect_with_the_next_poll(consume, filled):
    consumer = consume()
    (place, _) = both(filled)
    consumer.assign([place])
    take(consumer, 5, max_records=5)
    for offset in (90, 0, 42):
        consumer.seek(place, offset)
        assert consumer.position(place) == offset
        assert offsets(take(consumer, 4, max_records=4), 0) == list(range(offset, offset + 4))
        assert consumer.position(place) == offset + 4


def test_seek_to_beginning_and_end(consume, filled, fill):
    consumer = consume()
    partitions = both(filled)
    consumer.assign(partitions)
    take(consumer, 200)
    consumer.seek_to_beginning(partitions[1])
    assert values(take(consumer, 100)) == NUMBERS[1]
    consumer.seek_to_beginning()
    assert [consumer.position(each) for each in partitions] == [0, 0]
    take(consumer, 200)
    consumer.seek_to_beginning()
    consumer.seek_to_end()
    assert [consumer.position(each) for each in partitions] == [100, 100]
    fill({filled: {0: [b'new']}})
    assert values(take(consumer, 1)) == [b'new']


def test_a_paused_partition_brings_nothing_and_loses_nothing(consume, filled):
    consumer = consume(max_poll_records=10)
    first, second = both(filled)
    consumer.assign([first, second])
    found = take(consumer, 10)
    consumer.pause(first)
    assert consumer.paused() == {first}
    before = consumer.position(first)
    more = take(consumer, 100 - consumer.position(second))
    assert {each.partition for each in more} <= {1}
    assert nothing_comes(consumer)
    assert consumer.position(first) == before
    consumer.resume(first)
    assert consumer.paused() == set()
    found += more + take(consumer, 100 - before)
    assert offsets(found, 0) == offsets(found, 1) == list(range(100))


def test_a_seek_on_a_paused_partition_counts_when_it_goes_on(consume, filled):
    consumer = consume()
    (place, _) = both(filled)
    consumer.assign([place])
    take(consumer, 2, max_records=2)
    consumer.pause(place)
    consumer.seek(place, 97)
    assert nothing_comes(consumer)
    consumer.resume(place)
    assert offsets(take(consumer, 3), 0) == [97, 98, 99]


def test_a_new_assignment_replaces_the_old_one(consume, filled):
    consumer = consume()
    first, second = both(filled)
    consumer.assign([first])
    take(consumer, 10, max_records=10)
    consumer.assign([second])
    assert consumer.assignment() == {second}
    assert values(take(consumer, 100)) == NUMBERS[1]
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    consumer.subscribe([filled])
    assert len(take(consumer, 200)) == 200


def test_both_partitions_come_even_if_an_answer_holds_one_record(consume, filled):
    consumer = consume(fetch_max_bytes=300, max_partition_fetch_bytes=300)
    consumer.assign(both(filled))
    seen = set()
    for _ in range(90):
        seen |= {each.partition for each in consumer.poll(100)}
        if seen == {0, 1}:
            return
    raise AssertionError(seen)


# --- deserializers ------------------------------------------------------------------------------


def test_deserializers_make_keys_and_values(consume, topic, fill):
    fill({topic: {0: [(b'k', b'1'), (None, b'2'), (b'l', None)]}})
    consumer = consume(
        key_deserializer=lambda data: data and data.decode(),
        value_deserializer=lambda data: data and int(data),
    )
    consumer.assign([TopicPartition(topic, 0)])
    assert [(r.key, r.value) for r in take(consumer, 3)] == [('k', 1), (None, 2), ('l', None)]


@pytest.mark.parametrize('how', ['poll', 'next'])
def test_what_a_deserializer_refuses_is_not_passed_over(consume, topic, fill, how):
    """The records before it come, it raises again each time, and a seek behind it goes on."""
    fill({topic: {0: [b'0', b'1', b'two', b'3']}})
    place = TopicPartition(topic, 0)
    consumer = consume(value_deserializer=int, consumer_timeout_ms=20000)
    consumer.assign([place])
    found = []

    def go_on():
        if how == 'next':
            found.append(next(consumer))
        else:
            found.extend(r for records in consumer.poll(1000).values() for r in records)

    def go_on_until_it_raises():
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            go_on()

    for _ in range(2):
        with pytest.raises(ValueError, match='two'):
            go_on_until_it_raises()
        assert values(found) == [0, 1]
        assert consumer.position(place) == 2
    consumer.seek(place, 3)
    while len(found) < 3:
        go_on()
    assert values(found) == [0, 1, 3]


# --- threads, the end ---------------------------------------------------------------------------


def test_a_second_thread_that_polls_is_refused_and_the_first_goes_on(consume, filled):
    consumer = consume(filled)
    take(consumer, 200)
    came, begun = [], threading.Event()

    def poll():
        begun.set()
        came.append(consumer.poll(3000))

    thread = threading.Thread(target=poll)
    thread.start()
    begun.wait(SECONDS)
    time.sleep(0.3)
    try:
        with pytest.raises(RuntimeError):
            consumer.poll(0)
    finally:
        thread.join()
    assert came == [{}]
    consumer.seek_to_beginning()
    assert len(take(consumer, 200)) == 200


def test_wakeup_ends_a_poll_of_another_thread(consume, filled):
    consumer = consume(filled)
    take(consumer, 200)
    timer = threading.Timer(0.5, consumer.wakeup)
    timer.start()
    began = time.monotonic()
    try:
        consumer.poll(30000)
    except RuntimeError:
        pass  # the era that has it raises
    finally:
        timer.join()
    assert time.monotonic() - began < 10
    consumer.seek_to_beginning()
    assert len(take(consumer, 200)) == 200


def test_a_closed_consumer_says_so_and_may_be_closed_again(consume, filled):
    consumer = consume(filled)
    take(consumer, 200)
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError):
        consumer.poll(0)
    with pytest.raises(StopIteration):
        next(consumer)


def test_ways_to_say_what_is_read_cannot_be_mixed(consume, filled):
    consumer = consume(filled)
    with pytest.raises(IllegalStateError):
        consumer.assign(both(filled))
    consumer.unsubscribe()
    consumer.assign(both(filled))
    with pytest.raises(IllegalStateError):
        consumer.subscribe([filled])
    with pytest.raises((AssertionError, ValueError)):
        consumer.seek(TopicPartition(filled, 7), 0)
    take(consumer, 200)


def test_two_consumers_do_not_disturb_each_other(consume, filled):
    one, two = consume(filled), consume(filled, max_poll_records=3)
    found = take(one, 100, max_records=1)
    other = take(two, 200)
    found += take(one, 100)
    assert sorted(places(found)) == sorted(places(other))
