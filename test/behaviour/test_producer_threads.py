"""Threads that share a producer, and callbacks that call it: the turn of the loop changes hands.

Brokers that go and come back let every thread meet waiting, trying again and giving way.
"""

from __future__ import annotations

import sys
import threading
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import IllegalStateError, KafkaError
from kafka.testing import Cluster
from test.stored import stored

PARTITIONS = 3
#: So many records a thread sends at most.
MOST = 5000
#: How long anything may take that takes no time, in seconds.
BUSY = 60


class Crew:
    """Threads that work at once, and what they raised."""

    def __init__(self, *works):
        self.raised = []
        self.threads = [
            threading.Thread(target=self._run, args=(work, number))
            for number, work in enumerate(works)
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, work, number):
        try:
            work(number)
        except Exception as error:
            self.raised.append((work.__name__, error))

    def join(self):
        """Wait for all; fail if one hangs, or raise what one raised."""
        deadline = time.monotonic() + BUSY
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        hang = [thread.name for thread in self.threads if thread.is_alive()]
        assert not hang, 'these never end: %s; so far %s' % (hang, self.raised)
        for name, error in self.raised:
            raise AssertionError('%s raised' % name) from error


class Writer:
    """What the threads send, and in which order, until it is over; each of them to one partition.

    Attributes: sent: by thread, (value, future or None) in the order of sending.
    """

    def __init__(self, producer):
        self.producer = producer
        self.sent = {}
        self.places = {}
        self.is_over = threading.Event()

    def _values(self, number, topic='t'):
        mine = self.sent[number] = []
        self.places[number] = topic, number % PARTITIONS if topic == 't' else 0
        for each in range(MOST):
            if self.is_over.is_set():
                return
            value = b'%d-%d' % (number, each) + b'.' * (each % 7 * 40)
            mine.append([value, None])
            yield value, mine[-1]

    def waits_for_each(self, number):
        for value, mine in self._values(number):
            mine[1] = self.producer.send('t', value, partition=number % PARTITIONS)
            assert mine[1].get(BUSY).partition == number % PARTITIONS

    def waits_for_none(self, number):
        for value, mine in self._values(number):
            mine[1] = self.producer.send('t', value, partition=number % PARTITIONS)

    def sends_lists(self, number):
        for value, mine in self._values(number):
            mine[1] = self.producer.send_many('t', [value], partition=number % PARTITIONS)[0]

    def asks_for_nothing(self, number):
        for value, _ in self._values(number, 'unasked'):
            self.producer.send_and_forget('unasked', value)

    def flushes(self, number):
        for count, (value, mine) in enumerate(self._values(number)):
            mine[1] = self.producer.send('t', value, partition=number % PARTITIONS)
            if count % 10 == 9:
                self.producer.flush(BUSY)
                assert mine[1].is_done

    def looks(self, number):
        """Read figures and partitions."""
        while not self.is_over.wait(0.002):
            assert self.producer.metrics()['producer-metrics']
            assert self.producer.partitions_for('t') == set(range(PARTITIONS))

    def check(self, cluster):
        """Check that each record is stored once, where it was said to be, in their order."""
        there = {place: stored(cluster, *place) for place in set(self.places.values())}
        for number, sent in self.sent.items():
            log = there[self.places[number]]
            mine = [each for each in log if each.startswith(b'%d-' % number)]
            assert mine == [value for value, _ in sent]
            for value, future in sent:
                assert future is None or log[future.value.offset] == value


@pytest.fixture
def often():
    """Let threads take turns often; without the lock of the accumulator the tests fail then."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.fixture
def cluster():
    with Cluster(topics={'t': PARTITIONS, 'unasked': 1}) as made:
        yield made


def producer_on(cluster, **options):
    return KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
        **options,
    )


def come_and_go(cluster, times=4):
    """Let the only broker die, or hang, and be back again."""
    for time_ in range(times):
        time.sleep(0.1)
        leave, come = [(cluster.kill, cluster.restart), (cluster.pause, cluster.resume)][time_ % 2]
        leave(0)
        time.sleep(0.1)
        come(0)


def test_threads_share_a_producer_while_its_broker_goes_and_comes_back(cluster, often):
    with producer_on(cluster, buffer_memory=20_000, batch_size=1000, linger_ms=1) as producer:
        writer = Writer(producer)
        works = [writer.waits_for_each, writer.waits_for_none, writer.sends_lists, writer.flushes]
        crew = Crew(*works, *works[::-2], writer.asks_for_nothing, writer.looks)
        come_and_go(cluster)
        writer.is_over.set()
        crew.join()
        producer.flush(BUSY)
        assert producer._accumulator.is_empty() and not producer._accumulator.memory.used
    writer.check(cluster)


@pytest.mark.parametrize('timeout', [None, 0])
def test_a_thread_closes_while_others_send(cluster, often, timeout):
    """What was sent before is stored, or fails; who sends afterwards hears that it is closed."""
    producer = producer_on(cluster, buffer_memory=20_000, batch_size=1000)
    writer = Writer(producer)
    refused = []

    def until_closed(work):
        def go(number):
            with pytest.raises(KafkaError) as raised:
                work(number)
            refused.append(raised.value)

        return go

    works = [writer.waits_for_each, writer.waits_for_none, writer.sends_lists, writer.flushes]
    crew = Crew(*map(until_closed, works + works))
    while len(stored(cluster)) < 100:
        time.sleep(0.01)
    producer.close(timeout)
    crew.join()
    assert len(refused) == 2 * len(works)
    assert all(isinstance(error, IllegalStateError) for error in refused), refused
    producer.close()
    there = [stored(cluster, 't', partition) for partition in range(PARTITIONS)]
    for number, sent in writer.sent.items():
        assert len(sent) < MOST
        mine = there[number % PARTITIONS]
        assert len(set(mine)) == len(mine)
        for value, future in sent:
            if future is not None:
                assert future.is_done
                assert future.failed() or mine[future.value.offset] == value
                assert timeout == 0 or future.succeeded() or value not in mine


def test_a_callback_sends_the_next_record(cluster):
    """In the turn of whoever drives; nothing waits there, so a chain of records goes on."""
    with producer_on(cluster) as producer:
        over, futures = threading.Event(), []

        def go_on(_=None):
            if len(futures) == 100:
                over.set()
                return
            futures.append(producer.send('t', b'%d' % len(futures), partition=0))
            futures[-1].add_callback(go_on).add_errback(lambda error: over.set())

        go_on()
        assert over.wait(BUSY)
        assert [future.get(BUSY).offset for future in futures] == list(range(100))
    assert stored(cluster) == [b'%d' % number for number in range(100)]


def test_callbacks_that_would_wait_for_themselves_are_told(cluster):
    """flush(), get() and a send() that needs memory, in a callback: an error at once."""
    with producer_on(cluster, buffer_memory=10_000, batch_size=1000) as producer:
        raised = []

        def waits(_):
            for call in (
                lambda: producer.send('t', b'x' * 500).get(BUSY),
                producer.flush,
                lambda: [producer.send('t', b'x' * 500) for _ in range(1000)],
                lambda: producer.partitions_for('unknown'),
            ):
                with pytest.raises(KafkaError) as caught:
                    call()
                raised.append(caught.value)

        began = time.monotonic()
        future = producer.send('t', b'first').add_callback(waits)
        future.get(BUSY)
        producer.flush(BUSY)
        assert len(raised) == 4 and time.monotonic() - began < BUSY
        assert all('callback' in str(error) for error in raised), raised
        assert producer.send('t', b'last').get(BUSY)
