"""A MessageQueue does with many items what a Queue does with one after the other."""

from __future__ import annotations

import threading
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.blocking.message_queue import End, MessageQueue

STOP = -1
ITEMS = [('t', number) for number in range(5)]
STOPPED = [*ITEMS[:2], (STOP, None), *ITEMS[2:]]


@given(st.integers(0, 6), st.integers(0, 6))
def test_as_many_are_put_as_there_is_room_for(size, before):
    queue, one_by_one = MessageQueue(size), Queue(size)
    for number in range(before if not size else min(size, before)):
        queue.put(number)
        one_by_one.put(number)
    for item in ITEMS:
        if not one_by_one.full():
            one_by_one.put(item)
    assert queue.put_all(ITEMS) == one_by_one.qsize() - len(range(min(before, size or before)))
    assert list(queue.queue) == list(one_by_one.queue)
    assert queue.unfinished_tasks == one_by_one.unfinished_tasks


@pytest.mark.parametrize('most', range(7))
def test_what_is_there_is_taken_in_order(most):
    queue = MessageQueue()
    queue.put_all(ITEMS)
    assert queue.take(most, STOP) == ITEMS[:most]
    assert list(queue.queue) == ITEMS[most:]


def test_nothing_behind_the_mark_is_taken():
    queue = MessageQueue()
    queue.put_all(STOPPED)
    assert queue.take(9, STOP) == STOPPED[:3]
    assert queue.take(9, STOP) == ITEMS[2:]
    assert queue.take(9, STOP) == []


def test_putting_wakes_who_waits_for_an_item():
    queue = MessageQueue()
    found = []
    threads = [threading.Thread(target=lambda: found.append(queue.get())) for _ in range(2)]
    for thread in threads:
        thread.start()
    queue.put_all(ITEMS[:2])
    for thread in threads:
        thread.join(10)
    assert sorted(found) == ITEMS[:2]


def test_taking_wakes_who_waits_for_room():
    queue = MessageQueue(1)
    queue.put(ITEMS[0])
    thread = threading.Thread(target=queue.put, args=(ITEMS[1],))
    thread.start()
    assert queue.take(1, STOP) == ITEMS[:1]
    thread.join(10)
    assert list(queue.queue) == ITEMS[1:2]


def test_who_waits_for_the_end_lets_go_of_the_queue():
    queue = MessageQueue()
    end = End(queue.mutex)
    thread = threading.Thread(target=lambda: (queue.put(ITEMS[0]), end.set()))
    with queue.mutex, queue.mutex:
        assert end.wait(0) is False
        thread.start()
        assert end.wait(10) is True
        assert end.wait() is True
    thread.join(10)
    assert list(queue.queue) == ITEMS[:1]
