"""The loop: time-outs, calls from other threads, closing, forks, the end of the interpreter."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.net.loop import loop as loops
from kafka.net.loop.loop import Loop


@pytest.fixture
def loop():
    made = Loop('test-network-thread')
    yield made
    made.close()


async def returns(value):
    return value


def until(condition):
    """Wait for what other threads do."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def threads_named(name):
    return [each for each in threading.enumerate() if each.name == name]


def test_making_a_loop_starts_and_opens_nothing(loop):
    assert threads_named('test-network-thread') == []
    assert loop._poller._selector is None
    assert repr(loop) == '<Loop test-network-thread open tasks=0 sockets=0>'


def test_run_returns_what_the_coroutine_returns(loop):
    assert loop.run(returns(3), 1) == 3


def test_run_raises_what_the_coroutine_raises(loop):
    async def fail():
        raise KeyError('x')

    with pytest.raises(KeyError):
        loop.run(fail(), 1)


def test_a_call_without_anything_left_behind_starts_no_thread(loop):
    loop.run(loop.sleep(0.001), 1)
    assert threads_named('test-network-thread') == []


def test_an_answer_that_is_awaited_for_long_keeps_no_thread_awake(loop, monkeypatch):
    """A consumer always awaits one: neither who polls nor the background may nap meanwhile."""
    rests = []
    rest = loop._background_sleep
    monkeypatch.setattr(loop, '_background_sleep', lambda now: rests.append(rest(now)))
    loop.start()
    until(lambda: rests or loop._sleeps_until)
    loop.pending += 1
    loop.call_later(0.01, int)  # so that something is overdue where the last turn was left
    loop.wait(lambda: False, 0.001)
    turns, rested = loop._iterations, len(rests)
    loop.wait(lambda: False, 0.2)
    loop.pending -= 1
    assert loop._iterations - turns < 10
    assert len(rests) - rested < 10


def test_the_background_leaves_the_turn_to_who_was_called_to_take_it_over(loop, monkeypatch):
    """Else it is in a poll again when that one gets to look, and both hand the turn to and fro."""
    rests, rest = [], loop._background_sleep
    monkeypatch.setattr(loop, '_background_sleep', lambda now: (rests.append(now), rest(now)))
    loop.start()
    loop.pending += 1
    loop._wake_background()
    until(lambda: loop._polling)
    driver = loops.WaitingThread(lambda: False)
    loop._next_drivers.append(loops.Entry(driver))
    loop._handed_at = math.inf
    loop._poller.wake()
    until(lambda: rests and not loop._driver_lock.locked())
    turns = loop._iterations
    for count in range(len(rests), len(rests) + 3):
        loop._wake_background()
        until(lambda count=count: len(rests) > count)
    assert loop._iterations == turns
    loop._next_drivers.clear()  # it passes on without having taken it
    loop._notify_next_driver()
    until(lambda: loop._polling)
    loop.pending -= 1


def test_the_background_goes_on_when_nobody_takes_the_turn_that_was_handed_over(loop):
    """An exception may end a caller between being called and taking over."""
    loop.start()
    driver = loops.WaitingThread(lambda: False)
    loop._next_drivers.append(loops.Entry(driver))
    loop.pending += 1
    loop._notify_next_driver()
    until(lambda: loop._polling)
    assert loop._next_drivers == []
    loop.pending -= 1


def test_ctrl_c_in_close_closes_without_waiting(loop, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    loop.call_threadsafe(loop.spawn, loop.sleep(600))
    until(lambda: loop._scheduler.tasks and threads_named('test-network-thread'))
    monkeypatch.setattr(loop, 'wait', interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.close(600)
    until(lambda: not threads_named('test-network-thread'))
    assert loop._closed and not loop._scheduler.tasks


@pytest.mark.parametrize('timeout', [0.05, 0.3])
def test_the_time_out_is_kept_within_a_tenth(loop, timeout):
    began = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match='sleep took longer than'):
        loop.run(loop.sleep(30), timeout)
    assert timeout <= time.monotonic() - began < timeout * 1.1 + 5  # a busy machine
    assert loop.run(returns(1), 1) == 1
    loop.wait(lambda: not loop._scheduler.tasks, 1)
    assert not loop._scheduler.tasks  # it was cancelled


def test_wait_tells_whether_it_is_done(loop):
    assert loop.wait(lambda: True, 0) is True
    assert loop.wait(lambda: False, 0.01) is False


def test_a_threadsafe_call_needs_nobody_who_waits(loop):
    called = threading.Event()
    loop.call_threadsafe(called.set)
    assert called.wait(5)
    assert len(threads_named('test-network-thread')) == 1


def test_a_threadsafe_call_ends_the_sleep_of_a_caller(loop):
    came = []
    caller = threading.Thread(target=loop.wait, args=(lambda: came, 30))
    caller.start()
    loop.call_threadsafe(came.append, 1)
    caller.join(10)
    assert not caller.is_alive()


def test_a_lazy_call_is_made_soon(loop):
    for _ in range(3):
        called = threading.Event()
        loop.call_lazily(called.set)
        assert called.wait(5)


def test_a_lazy_call_is_made_soon_while_a_caller_sleeps(loop):
    came = []
    caller = threading.Thread(target=loop.wait, args=(lambda: len(came) == 3, 30))
    caller.start()
    for number in range(3):
        loop.call_lazily(came.append, number)
    caller.join(10)
    assert not caller.is_alive()


def test_timers_run_without_a_caller(loop):
    called = threading.Event()
    loop.call_threadsafe(loop.call_later, 0.02, called.set)
    assert called.wait(5)


def test_a_blocking_call_inside_a_callback_is_refused_at_once(loop):
    async def outer():
        loop.run(returns(1), 5)

    with pytest.raises(IllegalStateError, match='in a callback'):
        loop.run(outer(), 1)


def test_every_call_after_close_is_refused(loop):
    loop.call_threadsafe(int)
    loop.close()
    loop.close()
    assert threads_named('test-network-thread') == []
    for call in (
        lambda: loop.run(returns(1), 1),
        lambda: loop.wait(lambda: False, 1),
        lambda: loop.call_threadsafe(int),
        lambda: loop.call_lazily(int),
        loop.start,
    ):
        with pytest.raises(IllegalStateError, match='closed'):
            call()


def test_close_lets_coroutines_clean_up(loop):
    seen = []

    async def work():
        try:
            await loop.sleep(60)
        finally:
            await loop.sleep(0.01)
            seen.append('cleaned')

    loop.call_threadsafe(loop.spawn, work())
    loop.wait(lambda: loop._scheduler.tasks, 1)
    loop.close()
    assert seen == ['cleaned']


def test_close_is_bounded_by_its_time_out(loop):
    async def stubborn():
        try:
            await loop.sleep(60)
        finally:
            await loop.sleep(60)

    loop.call_threadsafe(loop.spawn, stubborn())
    began = time.monotonic()
    loop.close(0.2)
    assert time.monotonic() - began < 8


def test_close_ends_a_caller_that_waits(loop):
    raised = []

    def call():
        try:
            loop.wait(lambda: False, 60)
        except IllegalStateError as error:
            raised.append(error)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    until(lambda: len(loop._waiting) == 3)
    loop.close()
    for caller in callers:
        caller.join(5)
    assert [caller.is_alive() for caller in callers] == [False] * 3
    assert len(raised) == 3


@pytest.mark.parametrize('times', [1, 2])
def test_what_happened_before_another_thread_closed_ends_a_wait_well(loop, times):
    """It happens, and the loop is closed, after it was asked for the last time."""
    asked, told = [], []

    def done():
        if threading.current_thread() is not caller or len(asked) == times:
            return len(asked) == times
        asked.append(1)
        if len(asked) == times:
            closer = threading.Thread(target=loop.close)
            closer.start()
            closer.join(10)
        return False

    def call():
        told.append(loop.wait(done, 60))

    caller = threading.Thread(target=call)
    caller.start()
    caller.join(10)
    assert told == [True] and loop._closing


def test_close_from_a_call_of_the_loop_ends_behind_it(loop):
    loop.call_threadsafe(loop.close)
    for thread in threads_named('test-network-thread'):
        thread.join(5)
    assert threads_named('test-network-thread') == []


def test_close_from_a_call_of_the_loop_closes_what_is_open(loop):
    async def close():
        loop.spawn(loop.sleep(1000))
        loop.close()
        await loop.sleep(1000)

    with pytest.raises(KafkaError):
        loop.run(close(), 5)
    assert not loop._scheduler.tasks and loop._closed


def run_program(text, **kwargs):
    """Run a program that uses a loop; return what it printed."""
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-c', textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
        **kwargs,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ''
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork on this system')
@pytest.mark.parametrize('in_a_turn', [False, True])
def test_the_child_of_a_fork_hears_of_ctrl_c_although_its_parent_waits(in_a_turn):
    """By another thread, as that of a pool of processes; or by a callback in the turn."""
    program = """
        import os, signal, sys, threading, time, warnings
        from kafka.net.loop.loop import Loop

        warnings.simplefilter('ignore')  # Python since 3.12 warns of forks beside threads
        loop, codes = Loop(), []

        def fork():
            child = os.fork()
            if child:
                loop.call_threadsafe(codes.append, os.waitpid(child, 0)[1] >> 8)
                return
            try:
                signal.raise_signal(signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                os._exit(7)
            finally:
                os._exit(1)

        def fork_when_it_waits():
            while not loop._polling:
                time.sleep(0.001)
            fork()

        if %s:
            loop.call_soon(fork)
        else:
            threading.Thread(target=fork_when_it_waits).start()
        assert loop.wait(lambda: codes, 60)
        os._exit(codes[0])
    """ % (in_a_turn,)
    process = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(program)], stderr=subprocess.PIPE, timeout=120
    )
    assert process.returncode == 7, process.stderr


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork on this system')
def test_the_child_of_a_fork_gets_an_error_at_once_and_the_parent_goes_on():
    printed = run_program("""
        import os, sys, time
        from kafka.errors import IllegalStateError
        from kafka.net.loop.loop import Loop

        loop = Loop()
        loop.call_threadsafe(loop.spawn, loop.sleep(60))
        loop.run(loop.sleep(0.01), 1)
        child = os.fork()
        if not child:
            for call in (lambda: loop.run(loop.sleep(0), 9), lambda: loop.call_threadsafe(int)):
                began = time.monotonic()
                try:
                    call()
                except IllegalStateError as error:
                    assert 'forked' in str(error)
                    assert time.monotonic() - began < 8
                else:
                    os._exit(7)
            loop.close()
            fresh = Loop()
            fresh.run(fresh.sleep(0.01), 5)
            fresh.close()
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if sys.version_info >= (3, 9)
              else os.waitpid(child, 0)[1] >> 8)
        loop.run(loop.sleep(0.01), 1)
        loop.close()
        print('parent')
    """)
    assert printed == ['3', 'parent']


def test_the_interpreter_ends_while_work_is_pending():
    printed = run_program("""
        from kafka.net.loop.loop import Loop

        loop = Loop()
        loop.call_threadsafe(loop.spawn, loop.sleep(60))
        loop.run(loop.sleep(0.01), 1)
        print('end')
    """)
    assert printed == ['end']


@pytest.mark.skipif(os.name == 'nt', reason='signals of POSIX')
@pytest.mark.parametrize('parked', [False, True])
def test_ctrl_c_ends_a_blocked_call_and_the_loop_goes_on(parked):
    """In the one that drives, and in one that waits while another thread does."""
    printed = run_program(
        """
        import os, signal, sys, threading, time
        from kafka.net.loop.loop import Loop

        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop = Loop()
        if %r:
            over = threading.Event()
            loop.call_threadsafe(over.wait)  # in the background
            while not loop._driver_lock.locked():
                time.sleep(0.001)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            loop.run(loop.sleep(30), 30)
        except KeyboardInterrupt:
            print('interrupted', time.monotonic() - began < 20)  # of 30
        if %r:
            over.set()
        print(loop.run(loop.sleep(0.01), 30))
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        loop.close()
    """
        % (parked, parked)
    )
    assert printed == ['interrupted', 'True', 'None', 'True']


def test_a_broker_that_hangs_up_is_noticed_though_nobody_waits_for_it(loop, monkeypatch):
    """Nothing is owed: somebody looks once a second, here more often."""
    monkeypatch.setattr(loops, 'HEARTBEAT', 0.02)
    is_over = threading.Event()

    async def read(transport):
        assert await transport.recv() == b''
        is_over.set()

    with socket.create_server(('127.0.0.1', 0)) as listener:
        host, port = listener.getsockname()
        (address,) = loop.run(loop.resolve(host, port, 10), 10)
        transport = loop.run(loop.connect(address, 10), 10)
        accepted, _ = listener.accept()
        loop.call_threadsafe(lambda: loop.spawn(read(transport)))
        until(lambda: loop.pending == 0 and not loop._ready and not loop._driver_lock.locked())
        accepted.close()
        assert is_over.wait(10)


def test_calls_that_are_always_ready_do_not_keep_sockets_waiting(loop):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        host, port = listener.getsockname()
        (address,) = loop.run(loop.resolve(host, port, 10), 10)
        transport = loop.run(loop.connect(address, 10), 10)
        accepted, _ = listener.accept()
        with accepted:
            is_over = False

            def spin():
                if not is_over:
                    loop.call_soon(spin)

            loop.call_threadsafe(spin)
            accepted.sendall(b'hello')
            try:
                assert loop.run(transport.recv(), 10) == b'hello'
            finally:
                is_over = True


def test_what_happened_before_a_caller_got_the_turn_ends_its_wait(loop):
    """Another thread ended it in its last turn: no poll is begun that nobody would end."""
    answers = iter([False, True, True])
    began = time.monotonic()
    assert loop.wait(lambda: next(answers), 30)
    assert time.monotonic() - began < 15
