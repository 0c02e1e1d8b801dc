"""Memory is given out first come, first served; the pool of 1.x hands out empty buffers."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.producer.buffer import BufferMemory, SimpleBufferPool


def test_memory_is_taken_until_there_is_none():
    memory = BufferMemory(100)
    assert memory.take(60) and not memory.take(41) and memory.take(40)
    assert memory.used == 100


def test_who_comes_first_gets_what_is_given_back_first():
    memory = BufferMemory(100)
    memory.spend(memory.queue_up(100))
    large, small = memory.queue_up(80), memory.queue_up(10)
    memory.release(50)
    assert not large.granted and not small.granted, 'a small one must not overtake'
    memory.release(50)
    assert large.granted and small.granted
    assert memory.used == 90


def test_nobody_overtakes_those_who_wait():
    memory = BufferMemory(100)
    memory.take(50)
    waiting = memory.queue_up(60)
    assert not memory.take(10)
    memory.leave(waiting)
    assert memory.take(10)


def test_a_ticket_that_nobody_has_any_more_gives_its_bytes_back():
    """As that of a call which an exception has ended before it knew its ticket."""
    memory = BufferMemory(100)
    granted = memory.queue_up(100)
    waiting, behind = memory.queue_up(50), memory.queue_up(80)
    del waiting
    memory.forget_abandoned()
    assert memory.waiting == 1 and memory.used == 100
    del granted
    memory.forget_abandoned()
    assert behind.granted and memory.used == 80


def test_bytes_that_were_spent_are_the_batchs():
    memory = BufferMemory(100)
    ticket = memory.queue_up(60)
    memory.spend(ticket)
    memory.leave(ticket)
    assert memory.used == 60


def test_what_must_not_wait_may_exceed_the_total():
    memory = BufferMemory(100)
    memory.take(90)
    ticket = memory.exceed(50)
    assert ticket.granted and memory.used == 140
    memory.leave(ticket)
    assert memory.used == 90


def test_memory_is_counted_anew():
    memory = BufferMemory(100)
    memory.take(70)
    ticket, waiting = memory.queue_up(30), memory.queue_up(40)
    memory.used = -5
    memory.recount(20)
    assert waiting.granted and ticket.granted and memory.used == 90


def test_who_gives_up_lets_others_pass_and_gives_back():
    memory = BufferMemory(100)
    memory.take(50)
    large, small = memory.queue_up(60), memory.queue_up(10)
    memory.leave(large)
    assert small.granted and memory.used == 60
    memory.leave(small)
    assert memory.used == 50 and memory.waiting == 0
    memory.leave(small)  # once more changes nothing
    assert memory.used == 50


def test_what_is_in_use_already_may_exceed_the_total():
    memory = BufferMemory(100)
    memory.adjust(130)
    waiting = memory.queue_up(1)
    assert not waiting.granted
    memory.release(40)
    assert memory.used == 91


def test_more_cannot_be_given_back_than_was_taken():
    with pytest.raises(IllegalStateError):
        BufferMemory(100).release(1)


def test_a_buffer_that_is_used_again_is_empty():
    pool = SimpleBufferPool(1000, 1000)
    buf = pool.allocate(1000, 1000)
    buf.write(b'1234')
    pool.deallocate(buf)
    assert pool.allocate(1000, 1000).read() == b''


def test_a_pool_without_free_buffers_times_out():
    pool = SimpleBufferPool(10, 10)
    pool.allocate(10, 0)
    with pytest.raises(KafkaTimeoutError):
        pool.allocate(10, 1)
    assert pool.queued() == 0


def test_reprs_say_how_much_is_used():
    memory = BufferMemory(100)
    memory.take(7)
    assert '7 of 100' in repr(memory)
    assert 'waits' in repr(memory.queue_up(200))
    assert '2 left' in repr(SimpleBufferPool(20, 10))
