"""Values without key and future: in which order they come out of their box, and that all do."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from kafka.errors import IllegalStateError
from kafka.partitioner.sticky import UniformSticky
from kafka.producer.buffer import Ticket
from kafka.producer.fire_and_forget import FireAndForgetQueue
from kafka.producer.future import future_of
from kafka.producer.kafka import KafkaProducer
from kafka.producer.topic_queue import NO_BATCH, TopicQueue
from test.producer.test_record_accumulator import VALUE, Machine


def test_what_is_in_the_box_goes_before_what_comes_later():
    machine = Machine(linger=0.0)
    assert machine.accumulator.open_box(machine.topic, machine.now, machine.now) is None
    for n in range(3):
        machine.topic.put_in_box(b'box%d' % n)
    assert machine.topic.batch is NO_BATCH
    machine.append(b'later', partition=None)
    assert machine.topic.box_until == 0.0 and machine.topic.batch is not NO_BATCH
    batch = machine.take()
    assert batch.values == [b'box0', b'box1', b'box2', b'later']
    assert batch.timestamp_of(0) == 100000


def test_the_sender_empties_the_box():
    machine = Machine(linger=0.0)
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    assert machine.plan().next_at == 100.001, 'what comes in the meantime wakes nobody'
    machine.topic.put_in_box(b'v')
    assert not machine.accumulator.is_empty()
    machine.now = 100.001
    assert machine.ready() == [0] and machine.take().values == [b'v']
    assert machine.plan().next_at != 100.001


def test_a_box_waits_for_memory_like_everything_else():
    machine = Machine(buffer_memory=1000, linger=0.0)
    machine.append()
    first = machine.take()
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    for _ in range(30):
        machine.topic.put_in_box(VALUE)
    machine.plan()
    assert len(machine.topic.box) == 30
    ticket = machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    assert isinstance(ticket, Ticket)
    count = 0
    batches = [first]
    while count < 30:
        while batches:
            machine.done(batches.pop())
        machine.plan()
        batch = machine.take()
        if batch is not None:
            count += batch.record_count
            batches.append(batch)
        elif ticket.granted:
            ticket = machine.accumulator.open_box(machine.topic, machine.now, machine.now, ticket)
            if ticket is None:
                ticket = Ticket(0)
    assert count == 30 and not machine.topic.box


def test_a_box_that_is_emptied_while_close_looks_is_waited_for():
    """close() asks in one thread whether all is sent; the sender empties the box in another."""
    machine = Machine(linger=0.0)
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.topic.put_in_box(b'v')

    class Boxed(dict):
        def __iter__(self):
            if machine.topic.box:
                machine.accumulator._boxes.topics = dict(self.items())
                machine.plan()
                assert not machine.topic.box
            return super().__iter__()

    machine.accumulator._boxes.topics = Boxed(machine.accumulator._boxes.topics)
    assert not machine.accumulator.is_empty()
    assert machine.take().values == [b'v']


def test_flush_takes_what_is_in_the_box():
    machine = Machine()
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.topic.put_in_box(b'v')
    (batch,) = machine.accumulator.begin_flush(machine.now)
    assert batch.values == [b'v']


def full(count=3):
    """Return a machine without memory, and with some values in its box."""
    machine = Machine(buffer_memory=1000, linger=0.0)
    machine.append(VALUE * 11)
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    for n in range(count):
        machine.topic.put_in_box(b'box%d' % n)
    machine.now += 1.0
    return machine


def test_what_is_sent_behind_a_box_waits_for_memory_with_it():
    machine = full()
    tickets = [machine.append(b'later', partition=None)]
    tickets.append(machine.accumulator.append_many(machine.many([b'more']), machine.now))
    assert all(isinstance(ticket, Ticket) for ticket in tickets)
    for ticket in tickets:
        machine.accumulator.leave(ticket)
    assert machine.accumulator.memory.waiting == 0, 'nobody waits for places that nobody has'
    machine.done(machine.take())
    batch, index = machine.append(b'later', partition=None)
    assert batch.values == [b'box0', b'box1', b'box2', b'later'] and index == 3


def test_without_memory_the_sender_does_not_look_again_and_again():
    machine = full()
    assert machine.plan().next_at > machine.now


def test_a_value_that_comes_behind_the_last_look_is_not_forgotten():
    machine = Machine(linger=0.0)
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.now += 1.0
    machine.plan()  # the box is empty and over
    machine.topic.put_in_box(b'late')  # by a thread that was about to
    assert not machine.topic.is_watched
    wakes = machine.wakes
    machine.accumulator.watch_box(machine.topic)
    assert machine.wakes > wakes and not machine.accumulator.is_empty()
    assert machine.ready() == [0]
    machine.done(machine.take())
    assert machine.accumulator.is_empty()


def test_a_value_that_comes_behind_the_end_is_refused():
    machine = Machine()
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.topic.put_in_box(b'1')
    machine.accumulator.close()
    assert [(t.topic, n) for t, n in machine.accumulator.drop_boxes()] == [('t', 1)]
    machine.topic.put_in_box(b'2')
    assert not machine.topic.is_watched and machine.accumulator.is_empty()
    with pytest.raises(IllegalStateError):
        machine.accumulator.watch_box(machine.topic)


class PutMeanwhile(list):
    """A box into which another thread puts a value right behind the look how many there are."""

    def __len__(self):
        count = super().__len__()
        self.append(b'late')
        return count


def test_a_value_that_comes_while_boxes_are_dropped_is_neither_counted_nor_lost():
    machine = Machine()
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    box = machine.topic.box = PutMeanwhile([b'1', b'2'])
    box.insert(0, b'0')
    assert [count for _, count in machine.accumulator.drop_boxes()] == [3]
    assert b'0' not in box and b'late' in box and not machine.topic.is_watched


def test_sweeping_tells_when_there_is_no_memory():
    machine = full()
    ticket = machine.accumulator.sweep(machine.now)
    assert not ticket.granted
    machine.done(machine.take())
    assert ticket.granted and machine.accumulator.sweep(machine.now, ticket) is None
    assert machine.take().values == [b'box0', b'box1', b'box2']
    assert machine.accumulator.sweep(machine.now) is None


def test_many_boxes_are_emptied_before_another_is_opened():
    """Else each topic would hold a box full beyond the memory while the loop is held up."""
    machine = Machine()
    accumulator = machine.accumulator
    topics = [accumulator.topic('topic-%d' % n) for n in range(20)]
    for topic in topics:
        accumulator.update(topic, [0], [0])
        assert accumulator.open_box(topic, machine.now, machine.now) is None
        topic.put_in_box(VALUE)
    assert sum(len(topic.box) for topic in topics) <= 6
    machine.append()
    assert accumulator.sweep(machine.now) is None
    assert sum(len(batch.values) for batch in accumulator.begin_flush(machine.now)) == 21


@pytest.mark.parametrize('memory', [2000, 100_000, 33554432])
def test_a_box_holds_a_part_of_the_memory_at_most(memory):
    topic = Machine(buffer_memory=memory, record_size=min(memory, 1048576) - 34).topic
    assert 1 <= topic.most_boxed <= 1000
    assert topic.boxed_size * topic.most_boxed <= max(memory / 8, topic.boxed_size)


class Quick(KafkaProducer):
    """The quick way alone, with a box that stays open."""

    def __init__(self, topic):
        self._accumulator = SimpleNamespace(fast={'t': topic})
        self.refused = []
        topic.box_until, topic.is_watched = math.inf, True

    def _forget(self, topic, value, key):
        self.refused.append(value)


def test_the_quick_way_ends_where_the_box_is_full():
    topic = Machine(buffer_memory=33554432).topic
    quick = Quick(topic)
    for _ in range(3000):
        quick.send_and_forget('t', b'x' * 1024)
    assert len(topic.box) == 1000 and len(quick.refused) == 2000


def test_the_quick_way_takes_nothing_larger_than_a_record_may_be():
    topic = Machine(record_size=66).topic
    quick = Quick(topic)
    quick.send_and_forget('t', b'x' * 67)
    quick.send_and_forget('t', b'x' * 66)
    assert [len(value) for value in topic.box] == [66]


class Whole(Quick):
    """The quick ways, and of the slow ones what puts records into batches and boxes."""

    def __init__(self, machine):
        self._machine, self._accumulator = machine, machine.accumulator
        self._accumulator.fast['t'] = machine.topic

    def _begin_batch(self, queue, value, key):
        return self._send(queue.topic, value, key, None, None, None)

    def _send(self, topic, value, key, *more):
        partition = None if key is None else 0
        return future_of(*self._machine.append(value, partition, key=key), -1, len(value), -1)

    def _forget(self, topic, value, key):
        self._accumulator.open_box(self._machine.topic, self._machine.now, self._machine.now)
        self._machine.topic.put_in_box(value)


@pytest.mark.parametrize('key', [None, b'k'])
def test_no_quick_send_of_a_thread_overtakes_what_it_has_put_into_the_box(key):
    machine = Machine()
    producer = Whole(machine)
    producer.send('t', b'0', key)
    producer.send_and_forget('t', b'1')
    producer.send('t', b'2', key)
    producer.send('t', b'3', key)
    producer.send_and_forget('t', b'4')
    machine.accumulator.begin_flush(machine.now)
    assert list(machine.take().values) == [b'0', b'1', b'2', b'3', b'4']


def test_no_quick_send_overtakes_what_a_thread_was_about_to_put_into_the_box():
    """Between its look at the box and that, a record of another thread begins a batch."""
    machine = Machine()
    producer = Whole(machine)
    machine.accumulator.open_box(machine.topic, machine.now, machine.now)
    machine.append(b'of another', partition=None)
    machine.topic.put_in_box(b'1')
    producer.send('t', b'2')
    machine.accumulator.begin_flush(machine.now)
    assert list(machine.take().values) == [b'of another', b'1', b'2']


class Interruption(BaseException):
    """Raised from outside."""


class Interrupted(list):
    """Takes values, and is left by an exception before anybody has noted that."""

    def __iadd__(self, values):
        super().__iadd__(values)
        raise Interruption


@pytest.mark.parametrize('is_taken', [False, True])
def test_what_is_swept_when_an_exception_comes_is_neither_lost_nor_doubled(is_taken):
    """Python 3.8 and 3.9 may raise between any two byte codes."""
    machine = Machine()
    accumulator, topic = machine.accumulator, machine.topic
    machine.append(b'0', partition=None)
    (batch,) = accumulator.incomplete
    topic.box += [b'1', b'2']
    batch.values = Interrupted(batch.values)
    if not is_taken:
        del batch.values  # raises as soon as somebody looks
    with pytest.raises(Interruption if is_taken else AttributeError):
        accumulator.open_box(topic, machine.now, machine.now)
    batch.values = [b'0', b'1', b'2'] if is_taken else [b'0']
    topic.box.append(b'3')  # of another thread
    accumulator.settle()
    assert topic.box == ([b'3'] if is_taken else [b'1', b'2', b'3'])
    accumulator.begin_flush(machine.now)
    assert list(machine.take().values) == [b'0', b'1', b'2', b'3']


def queue_of(values, **limits):
    """Return the queue of all boxes, and a topic whose box is watched and has these values."""
    boxes = FireAndForgetQueue(**{'buffer_memory': 1 << 20, 'record_size': 1024, **limits})
    topic = TopicQueue('t', UniformSticky(16384, True))
    boxes.fit(topic)
    boxes.watch(topic)
    for value in values:
        topic.put_in_box(value)
    return boxes, topic


def test_a_box_is_unwatched_once_it_is_empty():
    boxes, topic = queue_of([b'v'])
    assert not boxes.unwatch(topic)
    assert topic.is_watched and list(boxes.topics) == [topic]
    topic.box.clear()
    assert boxes.unwatch(topic)
    assert not topic.is_watched and not boxes.topics


def test_values_that_are_in_no_batch_return_to_their_box_in_order():
    boxes, topic = queue_of([b'1', b'2', b'3'])
    (group,) = boxes.take_out(topic, 10).groups
    assert group.values == [b'1', b'2', b'3'] and list(group.ends) == [11, 22, 33]
    topic.put_in_box(b'4')
    group.position = 1
    boxes.restore(topic)
    assert topic.box == [b'2', b'3', b'4']
    boxes.restore(topic)
    assert topic.box == [b'2', b'3', b'4']


def test_dropped_values_are_counted_and_their_boxes_not_watched_any_more():
    boxes, topic = queue_of([b'1', b'2'])
    assert boxes.drop() == [(topic, 2)]
    assert not topic.box and not topic.is_watched and not boxes.topics
    assert boxes.drop() == []


@pytest.mark.parametrize('memory, record, most, size', [(800, 5, 20, 5), (1, 5000, 1, 1024)])
def test_a_box_takes_an_eighth_of_the_memory_but_at_least_one_value(memory, record, most, size):
    boxes, topic = queue_of([], buffer_memory=memory, record_size=record)
    assert (topic.most_boxed, topic.boxed_size) == (most, size)
    assert repr(boxes) == '<FireAndForgetQueue of 1 topics>'
