"""What a loop sleeps in: epoll where there is one, a selector elsewhere, and both alike."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time

import pytest

from kafka.net.loop.selector import READ, WRITE, Poller

KINDS = {
    'as it comes': None,
    'poll': getattr(selectors, 'PollSelector', None),
    'select': selectors.SelectSelector,
}
#: Seconds that a busy machine takes for what takes none.
BUSY = 30


@pytest.fixture(params=[kind for kind in KINDS if kind == 'as it comes' or KINDS[kind]])
def poller(request, monkeypatch):
    if KINDS[request.param] is not None:
        monkeypatch.setattr(selectors, 'DefaultSelector', KINDS[request.param])
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def on_ready(events):
    raise AssertionError('the poller calls nobody')


def test_what_is_ready_is_told_with_what_was_registered(poller, pair):
    ours, theirs = pair
    poller.register(ours, READ, on_ready)
    assert poller.sockets == 1 and poller.poll(0) == []
    theirs.send(b'x')
    assert poller.poll(BUSY) == [(on_ready, READ)] == poller.poll(None)
    poller.modify(ours, READ | WRITE, on_ready)
    assert poller.poll(BUSY) == [(on_ready, READ | WRITE)]
    poller.modify(ours, WRITE, print)
    assert poller.poll(BUSY) == [(print, WRITE)]
    poller.unregister(ours)
    assert poller.sockets == 0 and poller.poll(0) == []


def test_is_only_tells_of_one_and_takes_nothing_away(poller, pair):
    ours, theirs = pair
    poller.register(ours, READ, on_ready)
    began = time.monotonic()
    assert not poller.is_only(ours.fileno(), 0) and not poller.is_only(ours.fileno(), 0.05)
    assert time.monotonic() - began >= 0.05
    theirs.send(b'x')
    assert poller.is_only(ours.fileno(), BUSY) and poller.is_only(ours.fileno(), 0)
    assert not poller.is_only(theirs.fileno(), BUSY)
    assert poller.poll(BUSY) == [(on_ready, READ)]
    poller.modify(ours, READ | WRITE, on_ready)
    assert not poller.is_only(ours.fileno(), BUSY)


def test_is_only_is_false_when_somebody_wakes_it(poller, pair):
    ours, theirs = pair
    poller.register(ours, READ, on_ready)
    theirs.send(b'x')
    assert poller.is_only(ours.fileno(), BUSY)
    poller.wake()
    end = time.monotonic() + BUSY
    while poller.is_only(ours.fileno(), BUSY):  # what was sent here may take a moment
        assert time.monotonic() < end
    assert len(poller.poll(BUSY)) == 2


def test_the_end_of_a_stream_is_something_to_read(poller, pair):
    ours, theirs = pair
    poller.register(ours, READ, on_ready)
    theirs.close()
    assert poller.poll(BUSY) == [(on_ready, READ)]


def test_a_connection_that_was_reset_shows_where_it_is_waited_for(poller):
    with socket.create_server(('127.0.0.1', 0)) as server:
        with socket.create_connection(server.getsockname()) as ours:
            theirs, _ = server.accept()
            ours.send(b'never read')
            time.sleep(0.05)
            theirs.close()  # with something unread: a reset
            poller.register(ours, READ, on_ready)
            ((call, events),) = poller.poll(BUSY)
            assert call is on_ready and events == READ


def test_it_sleeps_as_long_as_it_is_told(poller):
    began = time.monotonic()
    assert poller.poll(0.0301) == []
    assert 0.03 <= time.monotonic() - began < BUSY
    assert poller.poll(-1.0) == []


def test_another_thread_wakes_it_before_and_while_it_sleeps(poller):
    poller.open()
    poller.wake()
    ((call, events),) = poller.poll(BUSY)
    call(events)
    assert poller.poll(0) == []
    threading.Timer(0.05, poller.wake).start()
    assert len(poller.poll(BUSY)) == 1


def test_a_descriptor_that_is_used_again_is_the_new_one(poller):
    for _ in range(3):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            poller.register(ours, READ, on_ready)
            theirs.send(b'x')
            assert poller.poll(BUSY) == [(on_ready, READ)]
            poller.unregister(ours)


def test_closing_leaves_no_descriptor(pair):
    before = len(os.listdir('/proc/self/fd')) if os.path.exists('/proc/self/fd') else 0
    made = Poller()
    made.register(pair[0], READ, on_ready)
    made.close()
    made.close()
    assert made.sockets == 0
    if before:
        assert len(os.listdir('/proc/self/fd')) == before
