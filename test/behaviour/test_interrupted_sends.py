"""An exception at any point of a sending call leaves the producer whole.

Raised as the handler of a signal, another thread (``PyThreadState_SetAsyncExc``) or a lack of
memory raises: afterwards each record whose send() returned is stored once, the one of the call that
was ended once or not at all, flush() returns, the memory counts return to zero, and the producer
can be used on. KAFKA_RAISE=all tries each point instead of some of each call.
"""

from __future__ import annotations

import contextlib

import pytest

from kafka.net.client import NetworkClient
from kafka.producer import record_accumulator
from kafka.producer.future import FutureRecords
from kafka.producer.producer_batch import BatchState
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.testing import MemoryCluster
from test.raising import PACKAGE, Interruption, Raiser, needs_points, points
from test.simulation.copier import SimProducer
from test.simulation.producer import UntracedLoop
from test.stored import stored

# Turns of the loop are left out: exceptions of signals and of other threads are kept from them.
WITHIN = [PACKAGE + each for each in ('producer/', 'partitioner/')]
MOST = 14  # points of each call

pytestmark = [pytest.mark.once, needs_points]


class Producer(SimProducer):
    def _new_client(self, settings, *arguments):
        return NetworkClient(settings, loop=UntracedLoop(*self._world))


class Model:
    """A producer on a broker in memory, and the values of the records it has futures for."""

    def __init__(self, cluster, **options):
        self.cluster = cluster
        options = {'linger_ms': 0, 'api_version': (2, 8), **options}
        self.producer = Producer.of(cluster, [], **options)
        if 'transactional_id' in options:
            self.producer.init_transactions()
            self.producer.begin_transaction()
        self.is_transactional = 'transactional_id' in options
        self.kept = []
        self.torn = set()
        self.count = 0

    def value(self, size=0):
        self.count += 1
        return b'%d.' % self.count + b'x' * size

    def values(self, count, size=0):
        return [self.value(size) for _ in range(count)]

    def keep(self, values, futures):
        self.kept += zip(values, futures)

    def send(self, size=0, **more):
        value = self.value(size)
        self.keep([value], [self.producer.send('t', value, **more)])

    def forget(self, count=1, size=0):
        for value in self.values(count, size):
            self.producer.send_and_forget('t', value)
            self.kept.append((value, None))

    def many(self, count, size=0, **more):
        values = self.values(count, size)
        self.keep(values, self.producer.send_many('t', values, **more))

    def check(self):
        """Flush, and compare what is stored with what was returned."""
        self.send(key=b'k')
        self.send()
        self.many(2, keys=[b'a', b'k'])
        self.forget()
        self.producer.flush(60)
        accumulator = self.producer._accumulator
        assert accumulator.memory.used == 0
        assert not accumulator.incomplete and accumulator.is_empty()
        if self.is_transactional:
            self.producer.commit_transaction()
            self.producer.begin_transaction()
        found = [value for partition in (0, 1) for value in stored(self.cluster, 't', partition)]
        found = [value for value in found if value[:1].isdigit()]
        assert len(found) == len(set(found)), 'a record is stored twice'
        lost = {value for value, _ in self.kept} - set(found)
        assert not lost, 'records are lost'
        for _, future in self.kept:
            assert future is None or future.get(0).offset >= 0
        self.kept = []


def fill(model):
    """Take all memory."""
    while model.producer._accumulator.memory.used < 1200:
        model.send(150, partition=0)


SMALL = {'batch_size': 200}
CALLS = {
    'the first record of a batch': ({}, None, lambda m: m.send()),
    'another record of a batch': ({}, lambda m: m.send(), lambda m: m.send()),
    'a key': ({}, lambda m: m.send(key=b'k'), lambda m: m.send(key=b'k')),
    'a new key': ({}, lambda m: m.send(key=b'k'), lambda m: m.send(key=b'l%d' % m.count)),
    'headers': ({}, lambda m: m.send(), lambda m: m.send(key=b'k', headers=[('h', b'1')])),
    'a partition': ({}, None, lambda m: m.send(partition=1)),
    'a timestamp': ({}, lambda m: m.send(), lambda m: m.send(timestamp_ms=5)),
    'compression': ({'compression_type': 'gzip'}, lambda m: m.send(), lambda m: m.send(90)),
    'closing a batch': (SMALL, lambda m: m.send(60), lambda m: m.send(150)),
    'closing a full batch': (
        SMALL,
        lambda m: m.send(60, partition=0),
        lambda m: m.send(300, partition=0),
    ),
    'waiting for memory': ({**SMALL, 'buffer_memory': 1400}, fill, lambda m: m.send(300)),
    'serializers': ({'value_serializer': bytes}, None, lambda m: m.send(key=b'k')),
    'no future': ({}, None, lambda m: m.forget(2)),
    'no future, full box': (SMALL, lambda m: m.forget(20, 50), lambda m: (m.send(), m.forget())),
    'many': ({}, lambda m: m.send(), lambda m: m.many(3)),
    'many of many batches': (SMALL, lambda m: m.send(), lambda m: m.many(12, 50)),
    'many with keys': (SMALL, None, lambda m: m.many(8, 50, keys=[b'%d' % n for n in range(8)])),
    'many, waiting for memory': ({**SMALL, 'buffer_memory': 1400}, fill, lambda m: m.many(9, 90)),
    'a transaction': ({'transactional_id': 'x'}, None, lambda m: m.send()),
    'flush': ({}, lambda m: (m.send(), m.forget(3)), lambda m: m.producer.flush(60)),
    'flush, many batches': (SMALL, lambda m: m.forget(20, 50), lambda m: m.producer.flush(60)),
    'get': ({}, lambda m: m.send(), lambda m: m.kept[-1][1].get(60)),
    'how many wait': ({}, lambda m: m.send(), lambda m: len(m.producer)),
}  # fmt: skip


def run_with(model, before, call, at, error=Interruption):
    """Make a call that is ended at a point; return the raiser."""
    if before is not None:
        before(model)
    raiser = Raiser(at, error, WITHIN)
    try:
        with raiser:
            call(model)
    except error:
        assert raiser.raised_at is not None
    return raiser


@pytest.mark.parametrize('name', CALLS)
def test_a_call_that_an_exception_ends_leaves_the_producer_whole(name):
    options, before, call = CALLS[name]
    with MemoryCluster(topics={'t': 2}, version='2.8') as cluster:
        model = Model(cluster, **options)
        model.check()
        count = run_with(model, before, call, None).count
        model.check()
        assert count > 0 or name == 'get'
        for at in points(count, MOST):
            raiser = run_with(model, before, call, at)
            try:
                model.check()
            except BaseException as error:
                raise AssertionError('raised at point %d, %s' % (at, raiser.raised_at)) from error
        model.send()
        model.producer.close(60)
        model.kept[-1][1].get(0)


def test_a_ticket_of_a_call_that_was_ended_is_given_up():
    """Also where the exception came before the call had its ticket."""
    with MemoryCluster(topics={'t': 2}, version='2.8') as cluster:
        model = Model(cluster, buffer_memory=1400, batch_size=200)
        accumulator = model.producer._accumulator
        model.check()
        fill(model)
        queue, now = accumulator.topic('t'), model.producer._loop.time()
        ticket = accumulator.append(queue, 0, None, b'v' * 900, (), None, 5.0, now)
        assert not ticket.granted and accumulator.memory.waiting == 1
        del ticket
        model.send(1000, partition=0)
        model.check()
        model.producer.close(60)


def accumulator_of(**limits):
    accumulator = RecordAccumulator(
        AccumulatorConfig(**limits), lambda: None, lambda done, timeout: done()
    )
    accumulator.update(accumulator.topic('t'), [0], [0])
    return accumulator, accumulator.topic('t')


def each_point(call):
    """Call with a Raiser for each point of what that runs in; first with one that only counts."""
    raiser = Raiser(None, within=WITHIN)
    call(raiser)
    for at in range(raiser.count):
        raiser = Raiser(at, within=WITHIN)
        try:
            call(raiser)
        except BaseException as error:
            raise AssertionError('raised at point %d, %s' % (at, raiser.raised_at)) from error


def test_a_record_that_is_placed_later_is_told_of_wherever_an_exception_came(monkeypatch):
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', False)  # the test has the lock

    def place(raiser):
        accumulator, topic = accumulator_of()
        accumulator.append(topic, 0, None, b'x', (), None, 1.0, 1.0)
        with accumulator.lock:
            accumulator.is_changing = True
            many = accumulator.prepare_many(topic, 0, None, [b'a', b'b'], [1, 1], (), 1)
            accumulator.append_many(many, 1.0)
            accumulator.is_changing = False
        futures, told = FutureRecords(many.placed, [1, 1]), []
        futures.add_callback(lambda metadata: told.append(metadata.offset))
        with contextlib.suppress(Interruption), raiser:
            accumulator.settle()
        accumulator.settle()
        assert not futures.is_done
        batch = accumulator.take(topic.queue(0))
        assert list(batch.values) == [b'x', b'a', b'b']
        batch.move(BatchState.IN_FLIGHT)
        batch.succeed(5)
        accumulator.finish(batch)
        assert futures.is_done and futures.failure() is None and '2 of 2 done' in repr(futures)
        assert [each.offset for each in futures.get(0)] == told == [6, 7]
        assert accumulator.memory.used == 0

    each_point(place)


def test_a_split_batch_is_queued_once_wherever_an_exception_came():
    def split(raiser):
        accumulator, topic = accumulator_of(batch_size=1000)
        for number in range(8):
            accumulator.append(topic, 0, None, b'%d' % number * 100, (), None, 1.0, 1.0)
        batch = accumulator.take(topic.queue(0))
        batch.encode(2)
        batch.move(BatchState.IN_FLIGHT)
        pieces = batch.split(300)
        with contextlib.suppress(Interruption), raiser:
            accumulator.replace(batch, pieces)
        accumulator.replace(batch, pieces)
        found = []
        while True:
            piece = accumulator.take(topic.queue(0))
            if piece is None:
                break
            found += piece.values
            piece.move(BatchState.IN_FLIGHT)
            piece.succeed()
            accumulator.finish(piece)
        assert found == [b'%d' % number * 100 for number in range(8)]
        assert accumulator.memory.used == 0 and accumulator.is_empty() and batch.is_done

    each_point(split)


def test_a_split_batch_is_queued_once_where_tables_are_repaired_before():
    accumulator, topic = accumulator_of(batch_size=1000)
    for number in range(8):
        accumulator.append(topic, 0, None, b'%d' % number * 100, (), None, 1.0, 1.0)
    batch = accumulator.take(topic.queue(0))
    batch.move(BatchState.IN_FLIGHT)
    pieces = batch.split(300)
    accumulator.is_changing = True  # a call of another thread was ended
    accumulator.replace(batch, pieces)
    assert list(topic.queue(0).waiting) == pieces == accumulator.incomplete
    assert accumulator.memory.used == sum(piece.reserved for piece in pieces) > 0


def test_leaving_the_queue_for_memory_gives_it_back_wherever_an_exception_came():
    def leave(raiser):
        accumulator, topic = accumulator_of(batch_size=100, buffer_memory=100)
        accumulator.append(topic, 0, None, b'x' * 50, (), None, 1.0, 1.0)
        ticket = accumulator.append(topic, 0, None, b'x' * 80, (), None, 1.0, 1.0)
        batch = accumulator.take(topic.queue(0))
        batch.move(BatchState.IN_FLIGHT)
        batch.succeed()
        accumulator.finish(batch)
        assert ticket.granted
        with contextlib.suppress(Interruption), raiser:
            accumulator.leave(ticket)
        del ticket
        accumulator.settle()
        accumulator.ready(1.0, lambda place: 1)
        assert accumulator.memory.used == accumulator.memory.waiting == 0

    each_point(leave)


@pytest.mark.parametrize('is_inside', [False, True])
def test_no_call_that_was_ended_keeps_the_lock(is_inside):
    """Also where it had to find out first whether the change that is under way is its own."""

    def send(raiser):
        accumulator, topic = accumulator_of()
        many = accumulator.prepare_many(topic, 0, None, [b'a'], [1], (), 1)
        accumulator.is_changing = is_inside
        for call in (
            lambda: accumulator.append(topic, 0, None, b'x', (), None, 1.0, 1.0),
            lambda: accumulator.append_many(many, 1.0),
            lambda: accumulator.open_box(topic, 1.0, 1.0),
            lambda: accumulator.watch_box(topic),
            accumulator.check_outside,
        ):
            with contextlib.suppress(Interruption), raiser:
                call()
            assert not accumulator.is_mine()

    each_point(send)


@pytest.mark.parametrize('options', [{}, {'compression_type': 'gzip', 'batch_size': 200}])
def test_want_of_memory_in_a_turn_of_the_sender_loses_nothing(options):
    """Raised at each point of what the sender does with the accumulator."""
    within = [PACKAGE + 'producer/' + each for each in ('record_acc', 'sender', 'topic_q', 'alone')]

    def sends(model):
        model.many(5, 60)
        model.producer.send('t', model.value())

    with MemoryCluster(topics={'t': 2}, version='2.8') as cluster:
        model = Model(cluster, retry_backoff_ms=1, **options)
        model.check()
        sends(model)
        with Raiser(None, within=within) as counting:
            model.producer._engine.sender.look()
        model.check()
        for at in points(counting.count, MOST):
            sends(model)
            with contextlib.suppress(MemoryError), Raiser(at, MemoryError, within) as raiser:
                model.producer._engine.sender.look()
            try:
                model.check()
            except BaseException as error:
                raise AssertionError('raised at point %d, %s' % (at, raiser.raised_at)) from error
        model.producer.close(60)
