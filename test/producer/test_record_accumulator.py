"""When batches are full, ready and over, how much memory they hold, and in which order they go."""

from __future__ import annotations

import threading

import pytest

from kafka.errors import IllegalStateError, KafkaError
from kafka.producer import record_accumulator
from kafka.producer.buffer import Ticket
from kafka.producer.producer_batch import BATCH_BYTES, BatchState
from kafka.producer.record_accumulator import OBJECT_BYTES, AccumulatorConfig, RecordAccumulator

VALUE = b'v' * 90  # 100 bytes with what a record of the new format needs


class Machine:
    """An accumulator and a clock that is moved by hand; every partition is led by node 1."""

    def __init__(self, partitions=1, **limits):
        self.now = 100.0
        self.wakes = 0
        self.leaders = {}
        self.limits = AccumulatorConfig(**{'batch_size': 1000, 'linger': 1.0, **limits})
        self.accumulator = RecordAccumulator(self.limits, self.woken, lambda done, timeout: done())
        self.topic = self.accumulator.topic('t')
        self.accumulator.update(self.topic, range(partitions), range(partitions))

    def woken(self):
        self.wakes += 1

    def append(self, value=VALUE, partition=0, key=None, headers=(), timestamp=None, ticket=None):
        return self.accumulator.append(
            self.topic, partition, key, value, headers, timestamp, self.now, self.now, ticket
        )

    def many(self, values, keys=None, partition=None, headers=()):
        sizes = [len(v or b'') for v in values]
        if keys is not None:
            sizes = [size + len(k or b'') for size, k in zip(sizes, keys)]
        return self.accumulator.prepare_many(
            self.topic, partition, keys, values, sizes, headers, int(self.now * 1000)
        )

    def plan(self):
        return self.accumulator.ready(self.now, lambda tp: self.leaders.get(tp.partition, 1))

    def ready(self):
        return [
            queue.topic_partition.partition
            for queues in self.plan().by_node.values()
            for queue in queues
        ]

    def take(self, partition=0):
        batch = self.accumulator.take(self.topic.queue(partition))
        if batch is not None:
            batch.move(BatchState.IN_FLIGHT)
        return batch

    def done(self, batch):
        batch.succeed(0)
        self.accumulator.finish(batch)


def test_a_batch_is_full_when_the_next_record_would_not_stay_below_its_size():
    machine = Machine()
    batches = [machine.append()[0] for _ in range(10)]
    assert len(set(batches[:9])) == 1 and batches[9] is not batches[0]
    assert batches[0].state is BatchState.CLOSED and batches[9].state is BatchState.OPEN


def test_places_count_up_in_each_batch():
    machine = Machine()
    assert [machine.append()[1] for _ in range(11)] == [*range(9), 0, 1]


def test_the_first_record_always_fits_and_goes_alone():
    machine = Machine(batch_size=0)
    first, second = machine.append()[0], machine.append()[0]
    assert first is not second and first.state is second.state is BatchState.CLOSED
    assert machine.ready() == [0]


def test_a_batch_lingers_and_then_is_ready():
    machine = Machine()
    machine.append()
    assert machine.ready() == [] and machine.plan().next_at == 101.0
    machine.now = 101.0
    assert machine.ready() == [0]


def test_a_full_batch_does_not_linger():
    machine = Machine()
    for _ in range(10):
        machine.append()
    assert machine.ready() == [0]


def test_flushing_ends_the_lingering_of_what_is_there():
    machine = Machine()
    batch, _ = machine.append()
    assert machine.accumulator.begin_flush(machine.now) == [batch]
    assert machine.ready() == [0]
    machine.done(machine.take())
    machine.append()
    assert machine.ready() == []


def test_closing_ends_lingering_and_refuses_records():
    machine = Machine()
    machine.append()
    machine.accumulator.close()
    assert machine.ready() == [0]
    with pytest.raises(IllegalStateError, match='closed'):
        machine.append()
    with pytest.raises(IllegalStateError, match='closed'):
        machine.accumulator.append_many(machine.many([VALUE]), machine.now)


def test_closing_without_sending_leaves_what_lingers():
    machine = Machine()
    machine.append()
    machine.accumulator.close(sends_rest=False)
    assert machine.ready() == []


def test_the_sender_is_woken_once_until_it_looks():
    machine = Machine()
    machine.append()
    machine.append()
    assert machine.wakes == 1
    machine.plan()
    machine.append()
    assert machine.wakes == 2


@pytest.mark.parametrize(
    ('linger', 'is_ended', 'wakes'), [(0.0, False, 0), (1.0, False, 1), (0.0, True, 1)]
)
def test_a_flush_wakes_the_sender_unless_it_was_woken_for_all(linger, is_ended, wakes):
    machine = Machine(linger=linger)

    def end():
        raise KeyboardInterrupt

    if is_ended:
        machine.accumulator._wake = end
        with pytest.raises(KeyboardInterrupt):
            machine.append()
        machine.accumulator._wake = machine.woken
    else:
        machine.append()
    before = machine.wakes
    machine.accumulator.begin_flush(machine.now)
    assert machine.wakes == before + wakes


def test_who_leads_decides_where_and_nobody_leads_some():
    machine = Machine(partitions=4, linger=0.0)
    machine.leaders = {0: 1, 1: 2, 2: -1, 3: None}
    for partition in range(4):
        machine.append(partition=partition)
    plan = machine.plan()
    assert {n: [q.topic_partition.partition for q in qs] for n, qs in plan.by_node.items()} == {
        1: [0],
        2: [1],
    }
    assert plan.leaderless == ['t', 't']


def test_batches_come_in_the_order_in_which_they_were_opened():
    machine = Machine(linger=0.0)
    numbers = [machine.append()[0].number for _ in range(30)]
    taken = []
    while True:
        batch = machine.take()
        if batch is None:
            break
        taken.append(batch.number)
    assert taken == sorted(set(numbers))
    assert machine.ready() == []


def test_batches_that_come_back_keep_their_order():
    machine = Machine(linger=0.0)
    for _ in range(40):
        machine.append()
    batches = [machine.take() for _ in range(4)]
    for batch in (batches[2], batches[0], batches[1]):
        batch.move(BatchState.CLOSED)
        machine.accumulator.put_back(batch)
    assert [machine.take() for _ in range(3)] == batches[:3]


def test_a_batch_that_backs_off_is_not_ready():
    machine = Machine(linger=0.0)
    machine.append()
    batch = machine.take()
    batch.move(BatchState.CLOSED)
    batch.not_before = 100.5
    machine.accumulator.put_back(batch)
    assert machine.ready() == [] and machine.plan().next_at == 100.5
    machine.now = 100.5
    assert machine.ready() == [0]


def test_in_order_means_one_batch_of_a_partition_at_a_time():
    machine = Machine(linger=0.0, ordered=True, partitions=2)
    for _ in range(20):
        machine.append()
    machine.append(partition=1)
    batch = machine.take()
    assert machine.ready() == [1]
    machine.done(batch)
    assert machine.ready() == [0, 1]


def test_memory_is_held_until_the_outcome():
    machine = Machine(linger=0.0)
    machine.append()
    assert machine.accumulator.memory.used == 1000
    batch = machine.take()
    assert machine.accumulator.memory.used == 100 + BATCH_BYTES + OBJECT_BYTES
    machine.done(batch)
    assert machine.accumulator.memory.used == 0 and machine.accumulator.is_empty()


def test_who_finds_no_memory_gets_a_ticket_and_goes_on_with_it():
    machine = Machine(buffer_memory=1000, partitions=2)
    machine.append()
    ticket = machine.append(partition=1)
    assert isinstance(ticket, Ticket) and not ticket.granted
    assert machine.ready() == [0], 'what holds the memory must not linger'
    machine.done(machine.take())
    assert ticket.granted
    batch, index = machine.append(partition=1, ticket=ticket)
    assert batch.topic_partition.partition == 1 and machine.accumulator.memory.used == 1000


def test_a_ticket_that_is_not_needed_any_more_is_given_back():
    machine = Machine(buffer_memory=1000, partitions=2)
    machine.append()
    tickets = [machine.append(partition=1) for _ in range(2)]
    machine.done(machine.take())
    machine.append(partition=1, ticket=tickets[0])
    machine.append(partition=1, ticket=tickets[1])
    assert machine.accumulator.memory.waiting == 0
    machine.accumulator.leave(tickets[1])
    assert machine.accumulator.memory.used == 1000


def test_who_gives_up_lets_those_behind_know():
    machine = Machine(buffer_memory=2000)
    first = machine.append(b'x' * 1500)[0]
    large = machine.append(b'x' * 1400, partition=0)
    small = machine.append(b'x' * 200, partition=0)
    assert not large.granted and not small.granted and first.reserved
    wakes = machine.wakes
    machine.accumulator.leave(large)
    assert machine.wakes > wakes, 'who waits looks after a turn of the loop, and none is due'


@pytest.mark.parametrize('is_many', [False, True])
def test_the_sender_hears_of_a_batch_that_was_closed_by_what_finds_no_memory(is_many):
    machine = Machine(batch_size=100, buffer_memory=150, linger=60.0)
    machine.append(b'x' * 50)
    assert not machine.plan().by_node
    wakes = machine.wakes
    if is_many:
        ticket = machine.accumulator.append_many(machine.many([b'x' * 80], partition=0), 100.0)
    else:
        ticket = machine.append(b'x' * 80)
    assert not ticket.granted and machine.wakes == wakes + 1
    assert machine.ready() == [0]


def test_many_records_are_not_doubled_where_the_rest_of_them_is_deferred(monkeypatch):
    monkeypatch.setattr(record_accumulator, '_MAY_KEEP_LOCK', False)  # the test has the lock
    machine = Machine(batch_size=300, buffer_memory=1200, linger=0.0)
    accumulator = machine.accumulator
    values = [b'%03d' % number + b'x' * 77 for number in range(30)]
    many = machine.many(values, partition=0)
    ticket = accumulator.append_many(many, machine.now)
    assert 0 < many.groups[-1].position < 30
    accumulator.memory.total *= 10
    with accumulator.lock:
        accumulator.is_changing = True
        assert accumulator.append_many(many, machine.now, ticket) is None
        accumulator.is_changing = False
    accumulator.settle()
    found = []
    while machine.ready():
        batch = machine.take()
        found += batch.values
        batch.succeed()
        accumulator.finish(batch)
    assert found == values and sum(part.size for part in many.placed) == 30


def test_the_sender_does_not_look_while_somebody_notes_that_it_was_woken():
    machine = Machine()
    with machine.accumulator.lock:
        looks = machine.accumulator._looks
        looking = threading.Thread(target=machine.plan)
        looking.start()
        looking.join(0.1)
        assert machine.accumulator._looks == looks
    looking.join()


def test_small_records_count_with_what_the_interpreter_needs():
    machine = Machine(linger=0.0)
    for _ in range(90):
        machine.append(b'')
    batch = machine.take()
    assert batch.reserved >= 90 * OBJECT_BYTES


def test_times_are_those_of_the_milliseconds():
    machine = Machine()
    for now in (100.0, 100.0004, 100.002, 100.0021):
        machine.now = now
        batch, index = machine.append()
    machine.append(timestamp=5)
    machine.append()
    times = [batch.timestamp_of(n) for n in range(6)]
    assert times == [100000, 100000, 100002, 100002, 5, 100002]


def test_keys_and_headers_stand_beside_their_values():
    machine = Machine(linger=0.0)
    machine.append(b'a')
    machine.append(b'b', key=b'k')
    machine.append(b'c', headers=[('h', b'x')])
    machine.append(None, key=b'l')
    machine.append(b'd')
    batch = machine.take()
    assert batch.values == [b'a', b'b', b'c', None, b'd']
    assert batch.keys == [None, b'k', None, b'l', None]
    assert batch.headers == [(), (), [('h', b'x')], (), ()]


def test_without_a_partition_a_batch_is_filled_before_another_is_begun():
    machine = Machine(partitions=3)
    batches = [machine.append(partition=None)[0] for _ in range(27)]
    assert [batches.count(batch) for batch in dict.fromkeys(batches)] == [9, 9, 9]


def test_what_lingered_too_long_stays_with_its_partition():
    machine = Machine(partitions=30, linger=0.0)
    partitions = set()
    for _ in range(5):
        batch, _ = machine.append(partition=None)
        partitions.add(batch.topic_partition.partition)
        machine.done(machine.take(batch.topic_partition.partition))
    assert len(partitions) == 1


# --- many ---------------------------------------------------------------------------------------


def contents(machine, partitions):
    found = {}
    for partition in range(partitions):
        rows = []
        while True:
            batch = machine.take(partition)
            if batch is None:
                break
            keys = batch.keys or [None] * batch.record_count
            rows += zip(keys, batch.values)
        found[partition] = rows
    return found


@pytest.mark.parametrize('sizes', [[90] * 50, [n * 7 % 150 for n in range(50)], [5000, 1, 5000]])
def test_many_go_where_they_would_go_one_by_one(sizes):
    values = [b'%d' % n + b'v' * size for n, size in enumerate(sizes)]
    bulk, single = Machine(), Machine()
    many = bulk.many(values, partition=0)
    assert bulk.accumulator.append_many(many, bulk.now) is None
    ones = [single.append(value) for value in values]
    places = [(p.batch.number, p.start + n) for p in many.placed for n in range(p.size)]
    assert places == [(batch.number, index) for batch, index in ones]
    assert contents(bulk, 1) == contents(single, 1)
    assert bulk.accumulator.memory.used == single.accumulator.memory.used


def test_many_with_keys_keep_the_order_of_each_key():
    machine = Machine(partitions=4)
    keys = [b'k%d' % (n % 7) for n in range(200)]
    values = [b'%d' % n for n in range(200)]
    many = machine.many(values, keys)
    assert machine.accumulator.append_many(many, machine.now) is None
    found = contents(machine, 4)
    for partition, rows in found.items():
        assert rows == [
            (key, value)
            for key, value in zip(keys, values)
            if machine.topic.by_key[key].topic_partition.partition == partition
        ]
    assert sum(map(len, found.values())) == 200
    assert sorted(n for part in many.placed for n in part.numbers) == list(range(200))


def test_many_with_some_keys():
    machine = Machine(partitions=4)
    keys = [None, b'a', None, b'b']
    assert machine.accumulator.append_many(machine.many([b'1', b'2', b'3', b'4'], keys), 0) is None
    rows = [row for rows in contents(machine, 4).values() for row in rows]
    assert sorted(rows, key=lambda row: row[1]) == list(zip(keys, [b'1', b'2', b'3', b'4']))


def test_many_with_headers_and_a_batch_that_has_none_yet():
    machine = Machine(linger=0.0)
    machine.append(b'a')
    machine.accumulator.append_many(machine.many([b'b', b'c'], headers=[('h', None)]), machine.now)
    machine.append(b'd')
    assert machine.take().headers == [(), [('h', None)], [('h', None)], ()]


def test_many_go_on_where_memory_ended():
    machine = Machine(buffer_memory=3000, linger=0.0)
    many = machine.many([VALUE] * 100, partition=0)
    ticket, taken, waits = None, 0, 0
    while True:
        ticket = machine.accumulator.append_many(many, machine.now, ticket)
        if ticket is None:
            break
        waits += 1
        while not ticket.granted:
            batch = machine.take()
            taken += batch.record_count
            machine.done(batch)
    while True:
        batch = machine.take()
        if batch is None:
            break
        taken += batch.record_count
        machine.done(batch)
    assert taken == 100 == sum(part.size for part in many.placed) and waits > 1
    assert machine.accumulator.memory.used == 0


# --- ends ---------------------------------------------------------------------------------------


def test_what_waits_too_long_is_taken_out():
    machine = Machine(delivery_timeout=10.0)
    old, _ = machine.append()
    machine.now = 105.0
    for _ in range(12):
        machine.append()
    assert machine.accumulator.expired(109.9) == []
    assert machine.accumulator.expired(110.0) == [old]
    assert old.state is BatchState.CLOSED
    old.fail(KafkaError())
    machine.accumulator.finish(old)
    assert old not in machine.accumulator.incomplete


def test_an_open_batch_expires_too():
    machine = Machine(delivery_timeout=10.0, linger=100.0)
    batch, _ = machine.append()
    assert machine.plan().next_at == 110.0
    assert machine.accumulator.expired(110.0) == [batch]
    batch.fail(KafkaError())
    machine.accumulator.finish(batch)
    assert machine.accumulator.memory.used == 0 and machine.plan().next_at is None


def test_what_is_on_the_wire_is_left_to_the_sender():
    machine = Machine(delivery_timeout=10.0)
    machine.append()
    machine.take()
    assert machine.accumulator.expired(200.0) == []


def test_pieces_take_the_place_of_their_batch():
    machine = Machine(linger=0.0)
    for _ in range(20):
        machine.append()
    batch = machine.take()
    pieces = batch.split(400)
    machine.accumulator.replace(batch, pieces)
    assert [machine.take() for _ in pieces] == pieces
    assert batch not in machine.accumulator.incomplete
    for piece in pieces:
        machine.done(piece)
    machine.done(machine.take())
    machine.done(machine.take())
    assert machine.accumulator.memory.used == 0 and machine.accumulator.is_empty()


def test_some_batches_can_be_taken_out():
    machine = Machine(partitions=2)
    for partition in (0, 1, 0, 1):
        machine.append(partition=partition)
    removed = machine.accumulator.remove_waiting(lambda b: b.topic_partition.partition == 1)
    assert [batch.record_count for batch in removed] == [2]
    for batch in removed:
        batch.fail(KafkaError())
        machine.accumulator.finish(batch)
    assert len(machine.accumulator.incomplete) == 1


def test_what_shrinks_gets_more_room_and_loses_it_when_it_was_too_large():
    machine = Machine(compressed=True, linger=0.0, buffer_memory=100_000)
    counts = []
    for _ in range(20):
        while not machine.topic.queue(0).waiting:
            machine.append()
        batch = machine.take()
        counts.append(batch.record_count)
        batch.encode(2, 1)
        machine.accumulator.encoded(batch)
        machine.done(batch)
    assert counts[0] == 9 and counts[-1] > 30
    batch = machine.append()[0]
    for _ in range(3):
        machine.append()
    machine.take()
    machine.accumulator.replace(batch, batch.split(100))
    assert machine.topic.ratio == 1.0


def test_topics_change():
    machine = Machine(partitions=2)
    machine.topic.by_key[b'k']
    machine.accumulator.update(machine.topic, {2, 0, 1}, {2})
    assert machine.topic.partitions == (0, 1, 2) and machine.topic.available == (2,)
    assert not machine.topic.by_key
    assert machine.append(partition=None)[0].topic_partition.partition == 2


def test_reprs():
    machine = Machine()
    machine.append()
    assert '1 batches, 1000 of' in repr(machine.accumulator)
    assert 'one open' in repr(machine.topic.queue(0)) and 't of 1' in repr(machine.topic)


def test_pieces_are_as_old_as_what_they_stand_for():
    machine = Machine(batch_size=1000, delivery_timeout=10.0)
    old, _ = machine.append()
    batch = machine.take()
    machine.now += 5
    machine.append()
    machine.accumulator.replace(batch, [batch] if batch.record_count > 1 else batch.split(50))
    machine.now += 5.5
    assert [piece.created_at for piece in machine.accumulator.expired(machine.now)] == [100.0]


def test_a_ratio_falls_slowly_and_rises_at_once():
    machine = Machine(compressed=True)
    batch, _ = machine.append()
    machine.take()
    batch.raw_size = 1000
    for size, ratio in ((100, 0.775), (100, 0.60625), (900, 0.9)):
        batch.encoded = bytearray(size)
        machine.accumulator.encoded(batch)
        assert machine.topic.ratio == pytest.approx(ratio)


def test_a_choice_that_others_have_filled_stays_the_choice():
    """What they brought is not what records without key have had of their share."""
    machine = Machine(partitions=2)
    for partition in (0, 1):
        machine.append(b'k' * 800, partition=partition)
    batch, _ = machine.append(b'v' * 400, partition=None)
    assert machine.topic.sticky.partition == batch.topic_partition.partition
    assert batch.record_count == 0 and batch.values == [b'v' * 400]
