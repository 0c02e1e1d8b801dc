"""What is raised from outside into a thread that waits for a loop harms nobody else.

As PyThreadState_SetAsyncExc does it, or the handler of a signal: at each point of each call.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import types

import pytest

import kafka.net
from kafka.errors import IllegalStateError
from kafka.net.loop.loop import LONGEST_WAIT, Loop
from test.leaks import collect_what_others_left
from test.raising import Interruption, Raiser, in_worker, needs_attempts, needs_points, points

NET = (os.path.dirname(os.path.abspath(kafka.net.__file__)) + os.sep,)
#: Far more than a wake-up takes, and less than the time after which a lost one is noticed.
SOON = 3

pytestmark = [
    needs_points,
    pytest.mark.filterwarnings('ignore:Exception ignored in. <function Task.__del__'),
]


@pytest.fixture(autouse=True)
def collected():
    """Let coroutines that were never begun be collected here, where that is expected."""
    yield
    gc.collect()


class Running:
    """A loop with a background thread, something that is owed, and another thread that waits."""

    def __init__(self):
        self.loop = Loop('raised-network-thread')
        self.loop.start()
        self.loop.run(returns(0), SOON)  # opens what it sleeps in
        self.other = threading.Thread(target=self._wait)
        self.other.start()

    def _wait(self):
        try:
            self.loop.wait(lambda: False, 60)
        except IllegalStateError:  # closed, or torn
            pass

    def close(self):
        began = time.monotonic()
        self.loop.close(5)
        assert time.monotonic() - began < SOON
        self.other.join(SOON)
        assert not self.other.is_alive()


def raised_at(function, at):
    """Call a function; return the raiser that raised in it at a point, None for at none."""
    raiser = Raiser(at, within=NET)
    try:
        with raiser:
            function()
    except Interruption:
        pass
    return raiser


def until(condition):
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, 'nobody was woken'
        time.sleep(0.0005)


# Not of "async def": one that is interrupted before its first statement would warn at its end,
# maybe in the middle of another test.
@types.coroutine
def returns(value):
    return value
    yield


@types.coroutine
def sleeps(loop):
    yield from loop.sleep(0.001)


def wait_for_call(loop):
    came = []
    loop.call_threadsafe(came.append, 1)
    loop.wait(lambda: came, SOON)


class First:
    """What a thread needs to be done first. Attributes: is_done; is_half_done: not mended yet."""

    is_done = is_half_done = False

    def begin(self, until):
        self.is_done = True

    def attempt(self, until):
        self.is_half_done = True
        until - time.monotonic()
        self.is_done = True
        self.is_half_done = False

    def mend(self):
        self.is_done, self.is_half_done = True, False


def wait_for_lazy_call(loop):
    """As a record does that is waited for."""
    loop.call_lazily(int)
    first = First()
    loop.wait(lambda: first.is_done, SOON, first)


CALLS = {
    'wait for a call': wait_for_call,
    'wait for a lazy call': wait_for_lazy_call,
    'wait in vain': lambda loop: loop.wait(lambda: False, 0.001),
    'wait for no time': lambda loop: loop.wait(lambda: False, 0),
    'run': lambda loop: loop.run(returns(1), SOON),
    'run for a while': lambda loop: loop.run(sleeps(loop), SOON),
    'call_threadsafe': lambda loop: loop.call_threadsafe(int),
    'call_lazily': lambda loop: loop.call_lazily(int),
}


def check_goes_on(running, where):
    """Check that other threads lose nothing, and that nothing is left behind."""
    loop = running.loop
    until(lambda: not loop._ready)  # whatever was brought was done
    assert in_worker(lambda: loop.run(returns(5), SOON)) == 5, where
    assert loop.run(returns(6), SOON) == 6, where
    loop.call_threadsafe(int)
    until(lambda: len(loop._waiting) == 1 and not loop._scheduler.tasks)  # the other one's
    assert not loop._driver_lock.locked() or loop._driver != threading.get_ident(), where


@pytest.mark.parametrize('name', CALLS)
def test_in_a_worker_thread_others_go_on_at_once(name):
    running = Running()
    try:
        counted = in_worker(lambda: raised_at(lambda: CALLS[name](running.loop), None))
        for at in points(counted.count, 20):
            raiser = in_worker(lambda at=at: raised_at(lambda: CALLS[name](running.loop), at))
            check_goes_on(running, raiser.raised_at)
        assert running.loop.interrupted_by is None
    finally:
        running.close()


@needs_attempts
def test_an_attempt_that_was_ended_is_mended_before_anything_else():
    """In a turn of another thread, and the lock is free meanwhile."""
    running = Running()
    loop, order = running.loop, []

    class Ended(First):
        def attempt(self, until):
            super().attempt(until)
            self.is_half_done = True
            loop.call_soon(order.append, 'a call')
            raise Interruption

        def mend(self):
            order.append('mended by %s' % threading.current_thread().name)
            assert not loop._driver_lock.acquire(False)  # the lock of a turn
            super().mend()

    def call():
        loop.call_lazily(int)
        with pytest.raises(Interruption):
            loop.wait(lambda: False, SOON, first)
        return True

    first = Ended()
    try:
        assert in_worker(call)
        until(lambda: len(order) == 2)
        assert order == ['mended by raised-network-thread', 'a call']
        assert not first.is_half_done
        check_goes_on(running, 'attempt')
        assert loop.interrupted_by is None
    finally:
        running.close()


@needs_attempts
def test_who_waits_for_the_same_is_woken_wherever_an_attempt_is_ended(monkeypatch):
    """The background thread takes nothing up meanwhile, or it would be first."""
    running = Running()
    loop, has_work, is_held = running.loop, Loop._has_work, threading.Event()
    monkeypatch.setattr(Loop, '_has_work', lambda *now: not is_held.is_set() and has_work(*now))

    class Taking(First):
        def attempt(self, until):
            loop.take_only(int)  # nothing is left to be done
            super().attempt(until)

    def attempt(first):
        until(lambda: not loop._ready)
        is_held.set()
        loop.call_lazily(int)
        loop.wait(lambda: first.is_done, SOON, first)

    def wait(first, is_over):
        loop.wait(lambda: first.is_done, SOON)
        is_over.set()

    try:
        count = in_worker(lambda: raised_at(lambda: attempt(Taking()), None)).count
        is_held.clear()
        for at in points(count, 60):
            first, is_over = Taking(), threading.Event()
            threading.Thread(target=wait, args=(first, is_over), daemon=True).start()
            until(lambda: len(loop._waiting) == 2)
            raiser = in_worker(lambda at=at, first=first: raised_at(lambda: attempt(first), at))
            is_held.clear()
            if not first.is_done and not first.is_half_done:  # it was ended before
                first.begin(0)
                loop.call_threadsafe(int)
            assert is_over.wait(LONGEST_WAIT / 5), raiser.raised_at
    finally:
        running.close()


@pytest.mark.parametrize('name', CALLS)
def test_in_the_main_thread_others_go_on_or_are_told(name):
    """There turns are run; a signal is held off meanwhile, but another thread may raise."""
    running = Running()
    try:
        counted = raised_at(lambda: CALLS[name](running.loop), None)
        for at in points(counted.count, 20):
            raiser = raised_at(lambda loop=running.loop: CALLS[name](loop), at)
            if running.loop.interrupted_by is None:
                check_goes_on(running, raiser.raised_at)
                continue
            loop = running.loop
            for error in (in_worker(lambda loop=loop: told(loop)), told(loop)):
                assert 'Interruption' in str(error) and error.__cause__ is loop.interrupted_by
            running.close()
            running = Running()
    finally:
        running.close()


def told(loop):
    with pytest.raises(IllegalStateError) as raised:
        loop.run(returns(1), SOON)
    return raised.value


def test_the_error_of_a_call_that_was_ended_is_not_told_by_the_log(monkeypatch, caplog):
    """The caller has learned of what ended it, and asks for nothing else."""
    collect_what_others_left()
    caplog.clear()

    async def fails():
        raise IllegalStateError('no such transaction')

    loop = Loop('raised-network-thread')
    wait = loop.wait

    def ended(done, timeout):
        assert wait(done, timeout)
        raise Interruption

    monkeypatch.setattr(loop, 'wait', ended)
    try:
        with pytest.raises(Interruption):
            loop.run(fails(), SOON)
        gc.collect()
    finally:
        monkeypatch.undo()
        loop.close(5)
    assert not caplog.records


def test_what_is_raised_after_a_turn_was_left_loses_no_call(monkeypatch):
    """A call that came while the main thread had the turn is made by the background."""
    running, made = Running(), []
    loop, pass_on = running.loop, running.loop._notify_next_driver

    def interrupted():
        monkeypatch.undo()
        raise Interruption

    def done():
        if not made:
            made.append(False)
            loop._ready.append(
                (made.append, (True,))
            )  # by another thread, which finds the turn taken
        return True

    assert pass_on == loop._notify_next_driver
    asked = iter([False])
    monkeypatch.setattr(loop, '_notify_next_driver', interrupted)
    with pytest.raises(Interruption):
        loop.wait(lambda: next(asked, True) and done(), SOON)
    until(lambda: True in made)
    running.close()
