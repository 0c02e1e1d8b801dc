"""What is raised from outside into a thread that waits in a client ends that call and nothing else.

At each point of the loop's code, in a thread other than the main one, and at random with
PyThreadState_SetAsyncExc, as job runners limit times. The broker is an embedded one.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter

import pytest

import kafka
from kafka import KafkaConsumer, KafkaProducer, SimpleClient, SimpleProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.testing import Cluster
from test.raising import Interruption, Raiser, in_worker, needs_points, points, raise_in
from test.stored import stored

ROOM = os.path.dirname(os.path.abspath(kafka.__file__)) + os.sep
NET = ROOM + 'net' + os.sep
WAITING = (NET, os.path.join(ROOM, 'producer', 'future.py'))
ENDING = (NET, *(os.path.join(ROOM, 'producer', name) for name in ('kafka.py', 'engine.py')))
READING = (NET, os.path.join(ROOM, 'consumer', 'engine.py'))
#: Seconds within which everything goes on.
SOON = 10


class JobTimeout(Exception):
    """As a job runner raises it."""


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 1, 'u': 1}) as running:
        yield running


@pytest.fixture
def producer(cluster):
    made = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    yield made
    made.close(SOON)


def raised_at(function, at, within):
    raiser = Raiser(at, within=within)
    try:
        with raiser:
            function()
    except Interruption:
        pass
    return raiser


def at_each_point(function, within, most, check):
    """Raise at points of a call in another thread; check what is left after each."""
    counted = in_worker(lambda: raised_at(function, None, within))
    assert counted.count
    for at in points(counted.count, most):
        raiser = in_worker(lambda at=at: raised_at(function, at, within))
        check(raiser.raised_at)


def check_sends(producer):
    """Return a check that each thread can send, and that nothing is left."""

    def check(where):
        assert in_worker(lambda: producer.send('t', b'after').get(SOON)), where
        assert producer.send('t', b'after').get(SOON), where
        producer.flush(SOON)
        assert len(producer) == 0, where
        assert producer._loop.interrupted_by is None

    return check


@needs_points
@pytest.mark.parametrize('topic', ['t', 'u'])
def test_every_thread_can_send_after_one_was_ended_in_get(producer, topic):
    futures = []

    def call():
        futures.append(producer.send(topic, b'v'))
        futures[-1].get(SOON)

    at_each_point(call, WAITING, 40, check_sends(producer))
    # A call that was ended in send() has no future.
    assert [future.get(0).topic for future in futures if future.is_done].count(topic) >= 30


@needs_points
def test_every_thread_can_send_after_one_was_ended_in_flush(producer):
    def call():
        for _ in range(3):
            producer.send('t', b'v')
        producer.flush(SOON)

    at_each_point(call, ENDING, 40, check_sends(producer))


@needs_points
def test_what_is_ended_in_close_is_closed_by_that_call_or_the_next_one(cluster):
    def closed(at):
        """Raise at a point of close(); return the raiser and the producer."""
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, api_version=(2, 8))
        producer.send('t', b'v')
        return raised_at(lambda: producer.close(SOON), at, ENDING), producer

    count = in_worker(lambda: closed(None))[0].count
    for at in range(1, count + 1):
        raiser, producer = in_worker(lambda at=at: closed(at))
        began = time.monotonic()
        producer.close(SOON)
        assert time.monotonic() - began < SOON
        loop = producer._loop
        assert loop._closed, raiser.raised_at
        loop._thread.join(SOON)
        assert not loop._thread.is_alive(), raiser.raised_at


@needs_points
def test_a_consumer_reads_on_after_its_thread_was_ended_in_poll(cluster, producer, request):
    place = TopicPartition('u', 0)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset='earliest')
    request.addfinalizer(consumer.close)
    consumer.assign([place])
    consumer.poll(SOON * 1000)
    consumer.seek_to_end(place)
    consumer.position(place)  # where the end is now, and not where it is behind the next record
    seen = []

    def read(_):
        producer.send('u', b'next').get(SOON)
        end = time.monotonic() + SOON
        before = len(seen)
        while len(seen) == before:
            assert time.monotonic() < end
            seen.extend(in_worker(lambda: consumer.poll(1000)).get(place, ()))

    read(None)
    at_each_point(lambda: consumer.poll(1), READING, 40, read)
    offsets = [record.offset for record in seen]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))


def test_time_limits_at_random_end_the_calls_that_they_hit_and_no_others(cluster):
    """Dramatiq, RQ and others raise like this; 2 s of it."""
    random_numbers = random.Random(5)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    is_over = threading.Event()
    limited, stored, failures = [], [], []

    def work():
        while not is_over.is_set():
            try:
                try:
                    stored.append(producer.send('t', b'v').get(SOON))
                    producer.flush(SOON)
                except (Interruption, JobTimeout):
                    limited.append(1)
                except KafkaError as error:
                    failures.append(error)
            except (Interruption, JobTimeout):  # the next one, in a handler
                limited.append(1)

    def guarded():
        while not is_over.is_set():
            try:
                work()
            except (Interruption, JobTimeout):
                pass

    threads = [threading.Thread(target=guarded, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        time.sleep(random_numbers.uniform(0.005, 0.05))
        kind = random_numbers.choice([Interruption, JobTimeout])
        raise_in(random_numbers.choice(threads).ident, kind)
    is_over.set()
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()
    assert limited and stored and not failures
    check_sends(producer)('at random')
    producer.close(SOON)


@needs_points
@pytest.mark.parametrize('error', [JobTimeout, Interruption, MemoryError])
def test_an_asynchronous_producer_of_0_9_5_goes_on_after_an_exception(cluster, error):
    """What a call took is sent; a call that was ended may have been taken or not."""
    taken = []

    def send(raiser, value):
        try:
            with raiser:
                producer.send_messages('t', value)
            taken.append(value)
        except error:
            pass
        return raiser

    client = SimpleClient(cluster.bootstrap)
    producer = SimpleProducer(client, async_send=True)
    producer.send_messages('t', b'first')
    for at in points(send(Raiser(None, error), b'counted').count, 40):
        send(Raiser(at, error), b'hit at %d' % at)
        producer.send_messages('t', b'after %d' % at)
        taken.append(b'after %d' % at)
    producer.stop()
    client.close()
    found = Counter(stored(cluster, 't'))
    assert not set(taken) - set(found)
    assert max(found.values()) == 1
