"""ProducerEngine on the manual loop, by itself and under a second face that has callbacks."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from kafka import config as options
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError, PurgedError
from kafka.net.client import NetworkClient
from kafka.net.settings import NetSettings
from kafka.producer.engine import OVERHEAD, ProducerEngine
from kafka.producer.plain_state import PlainState
from kafka.producer.transaction_state import TransactionState
from kafka.testing.memory import MemoryCluster
from test.manual_loop import ManualLoop
from test.simulation.loop import SimLoop
from test.stored import stored


class CallbackProducer:
    """A face in the style of confluent_kafka's Producer, without threads.

    Nothing waits but flush(). ``on_delivery(error, metadata)`` is called by poll() and flush().
    """

    def __init__(self, cluster, **configs):
        configs.update(bootstrap_servers=cluster.bootstrap, client_id='callbacks')
        config = options.resolve(options.PRODUCER, configs)
        self.loop = SimLoop(cluster)
        self.engine = ProducerEngine(
            NetworkClient(NetSettings.from_options(config), loop=self.loop), config
        )
        self.engine.begin()
        self._unplaced = {}  # records of topics whose partitions are not known yet

    def produce(self, topic, value, on_delivery):
        queue = self.engine.known_queue(topic)
        if topic not in self._unplaced and queue.partitions:
            return self._append(queue, value, on_delivery)
        if topic not in self._unplaced:
            self.loop.spawn(self._find(topic))
        self._unplaced.setdefault(topic, []).append((value, on_delivery))

    async def _find(self, topic):
        try:
            queue = await self.engine.topic_queue(topic, self.engine.max_block)
        except KafkaError as error:
            for _, on_delivery in self._unplaced.pop(topic):
                on_delivery(error, None)
        else:
            for value, on_delivery in self._unplaced.pop(topic):
                self._append(queue, value, on_delivery)

    def _append(self, queue, value, on_delivery):
        future = self.engine.append(queue, None, None, value)
        if future is None:
            raise BufferError('buffer_memory is used up')
        future.add_callback(lambda metadata: on_delivery(None, metadata))
        future.add_errback(lambda error: on_delivery(error, None))

    def poll(self):
        return self.loop.step()

    def flush(self, seconds):
        self.loop.wait(lambda: not self._unplaced, seconds)
        self.engine.begin_flush()
        return self.loop.wait(self.engine.is_empty, seconds)

    def close(self):
        self.engine.close()
        self.engine.end(5.0, IllegalStateError('closed'), lambda lost: None)


@pytest.fixture
def cluster():
    with MemoryCluster(
        version='4.4', brokers=2, seed=1, topics={'t': 1, 'u': 3}, auto_create_topics=False
    ) as made:
        yield made


@pytest.fixture
def make(cluster):
    made = []

    def give(**configs):
        made.append(CallbackProducer(cluster, **configs))
        return made[-1]

    yield give
    for producer in made:
        producer.close()


class Deliveries:
    """What a face has called back."""

    def __init__(self):
        self.errors, self.places = [], []

    def __call__(self, error, metadata):
        if error is not None:
            self.errors.append(error)
        else:
            self.places.append((metadata.topic, metadata.partition, metadata.offset))


def test_a_face_with_callbacks_whose_constructor_waits_for_nothing(make, cluster):
    threads, told = threading.active_count(), Deliveries()
    producer = make()
    assert not cluster.requests and not producer.loop.transports
    for number in range(20):
        producer.produce('t', b'%d' % number, told)
    assert not told.places and not cluster.requests
    while len(told.places) < 20:
        assert producer.poll()
    assert told.places == [('t', 0, offset) for offset in range(20)] and not told.errors
    assert stored(cluster) == [b'%d' % number for number in range(20)]
    assert threading.active_count() == threads


def test_flush_of_a_face_with_callbacks_sends_what_lingers(make):
    producer, told = make(linger_ms=600_000, delivery_timeout_ms=700_000), Deliveries()
    for topic in ('t', 'u', 't'):
        producer.produce(topic, b'v', told)
    producer.loop.wait(lambda: False, 60.0)
    assert not told.places and not producer.engine.is_empty()
    began = producer.loop.time()
    assert producer.flush(60.0) and producer.loop.time() - began < 10.0
    assert sorted(topic for topic, _, _ in told.places) == ['t', 't', 'u']


def test_a_topic_that_is_absent_is_told_to_the_callbacks(make):
    producer, told = make(max_block_ms=2000), Deliveries()
    for _ in range(2):
        producer.produce('absent', b'v', told)
    producer.flush(60.0)
    assert [type(error) for error in told.errors] == [KafkaTimeoutError] * 2
    assert 2.0 <= producer.loop.time() < 4.0


@pytest.fixture
def engine(make):
    """Return an engine that knows the topic ``t``; its records linger."""
    producer = make(
        linger_ms=600_000, delivery_timeout_ms=700_000, buffer_memory=2500, batch_size=500
    )
    producer.loop.run(producer.engine.topic_queue('t', 30.0), 30.0)
    return producer.engine


def test_append_returns_none_where_memory_is_used_up(engine):
    queue = engine.known_queue('t')
    futures = [engine.append(queue, 0, None, b'v' * 1000) for _ in range(3)]
    assert futures[0] is not None and futures[-1] is None
    assert engine.accumulator.memory.waiting == 0
    engine.begin_flush()
    assert engine.loop.wait(engine.is_empty, 60.0)
    assert engine.append(queue, 0, None, b'v') is not None


def test_append_says_what_a_record_has(engine):
    queue = engine.known_queue('t')
    future = engine.append(queue, 0, b'key', None, [('h', b'1')], 5)
    engine.begin_flush()
    engine.loop.wait(engine.is_empty, 60.0)
    metadata = future.get(0)
    assert (metadata.timestamp, metadata.serialized_key_size) == (5, 3)
    assert (metadata.serialized_value_size, metadata.serialized_header_size) == (-1, 2)


def test_purge_fails_what_waits(engine):
    future = engine.append(engine.known_queue('t'), None, None, b'v')
    engine.loop.call_soon(engine.purge, True, False)
    assert engine.loop.wait(engine.is_empty, 1.0)
    assert isinstance(future.exception, PurgedError)


@pytest.mark.parametrize('sends_rest', [True, False])
def test_a_closed_engine_takes_nothing_and_sends_the_rest_if_it_is_to(engine, sends_rest, cluster):
    queue, lost = engine.known_queue('t'), []
    future = engine.append(queue, None, None, b'v')
    engine.close(sends_rest)
    with pytest.raises(IllegalStateError):
        engine.append(queue, None, None, b'w')
    assert engine.loop.wait(engine.is_empty, 10.0) is sends_rest
    engine.end(5.0, IllegalStateError('ended'), lost.append)
    assert lost == ([] if sends_rest else [1])
    assert stored(cluster) == ([b'v'] if sends_rest else [])
    assert future.succeeded() is sends_rest and not engine.loop.transports


def test_what_is_lost_is_told_although_the_network_cannot_be_closed(engine, monkeypatch):
    lost = []
    future = engine.append(engine.known_queue('t'), None, None, b'v')

    def close(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.network, 'close', close)
    with pytest.raises(KeyboardInterrupt):
        engine.end(5.0, IllegalStateError('ended'), lost.append)
    assert lost == [1] and 'ended' in str(future.exception)


def test_an_abandoned_engine_fails_its_futures_without_a_callback(engine):
    future, told = engine.append(engine.known_queue('t'), None, None, b'v'), []
    future.add_errback(told.append)
    engine.abandon(IllegalStateError('of the parent'))
    assert 'of the parent' in str(future.exception) and not told


def test_settle_returns_when_brokers_have_read_what_they_do_not_answer(make, cluster):
    producer = make(acks=0)
    producer.produce('t', b'v', lambda error, metadata: None)
    producer.flush(30.0)
    producer.loop.run(producer.engine.settle(), 30.0)
    assert stored(cluster) == [b'v']


# ------------------------------------------------------------ blocking


def test_a_topic_can_be_waited_for(make):
    engine = make().engine
    assert engine.wait_for_queue('u', time.monotonic() + 30.0).partitions == (0, 1, 2)
    with pytest.raises(KafkaTimeoutError, match='the partitions of topic absent are not known'):
        engine.wait_for_queue('absent', time.monotonic() + 1.0)


def test_memory_can_be_waited_for(engine):
    queue, accumulator = engine.known_queue('t'), engine.accumulator
    engine.append(queue, 0, None, b'v' * 1000)

    def attempt(now, ticket):
        return accumulator.append(queue, 0, None, b'w' * 1500, (), None, 1.0, now, ticket)

    with pytest.raises(KafkaTimeoutError, match='no room in buffer_memory'):
        engine.append_waiting(attempt, time.monotonic() - 1.0)
    assert accumulator.memory.waiting == 0
    batch, index = engine.append_waiting(attempt, time.monotonic() + 30.0)
    assert index == 0 and batch.values == [b'w' * 1500]


def test_a_condition_can_be_waited_for_but_not_inside_a_call(engine):
    assert engine.wait(lambda: True, 1.0) and not engine.wait(lambda: False, 1.0)
    engine.accumulator.check_send = lambda: engine.wait(lambda: True, 1.0)
    with pytest.raises(IllegalStateError, match='inside send'):
        engine.append(engine.known_queue('t'), None, None, b'v')


def test_refresh_returns_when_new_metadata_is_there(engine, cluster):
    before = engine.pool.cluster.refreshed_at
    engine.refresh(time.monotonic() + 30.0)
    assert engine.pool.cluster.refreshed_at > before


# ------------------------------------------------------------ which parts there are


def unstarted(**configs):
    """Return the engine of these options, without a network."""
    config = options.resolve(options.PRODUCER, configs)
    return ProducerEngine(
        NetworkClient(NetSettings.from_options(config), loop=ManualLoop()), config
    )


def test_options_make_the_parts():
    plain, whole = unstarted(enable_idempotence=False), unstarted(transactional_id='x')
    assert isinstance(plain.state, PlainState) and plain.transactions is None
    assert isinstance(whole.state, TransactionState) and whole.transactions is not None
    assert plain.accumulator.check_send is None and whole.accumulator.check_send is not None


def test_options_make_the_limits():
    engine = unstarted(max_block_ms=1500, max_request_size=1000, buffer_memory=5000)
    assert (engine.max_block, engine.largest_record) == (1.5, 1000)
    assert engine.accumulator.limits.record_size == 1000 - OVERHEAD


def test_options_make_the_registry_of_metrics():
    engine = unstarted(metrics_num_samples=5, metrics_sample_window_ms=70)
    found = engine.metrics.metrics.config
    assert (found.samples, found.time_window_ms) == (5, 70)
    assert unstarted(metrics_enabled=False).metrics is None


def test_the_engine_keeps_no_object_of_the_program():
    """A serializer may be a method of the face, which could not be collected then."""

    class Serializer:
        def serialize(self, topic, data):
            return data

    serializer = Serializer()
    engine = unstarted(value_serializer=serializer, partitioner=serializer.serialize)
    there = weakref.ref(serializer)
    del serializer
    gc.collect()
    assert there() is None and engine.is_empty()
