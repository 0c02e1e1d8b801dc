"""kafka.blocking.worker_processes: children that feed a queue, by every start method."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import warnings

import pytest

from kafka.blocking import worker_processes as processes
from kafka.blocking.worker_processes import Crew, Flag, check_sendable, start_method
from test.consumer import workers

METHODS = multiprocessing.get_all_start_methods()
BASIC = ['fork', 'spawn']


@pytest.fixture
def crew():
    """Return a maker of crews whose children got the arguments that are given; all are ended."""
    made = []

    def make(target, *arguments, count=1, capacity=1024, method='fork', start=True):
        flag = Flag(multiprocessing.get_context(method))
        made.append(Crew(target, lambda index: arguments, count, capacity, flag, method))
        if start:
            made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.end()


def take(feed, count):
    return [feed.get(timeout=20) for _ in range(count)]


def gone(process):
    deadline = time.monotonic() + 10
    # Not by one join(): where another thread of the crew takes the child's end first, that returns
    # a moment before the process object knows of it.
    while process.is_alive() and time.monotonic() < deadline:
        process.join(0.05)
    return not process.is_alive()


# ---------------------------------------------------------------- the start method


def chosen(monkeypatch, methods, by_program):
    monkeypatch.setattr(multiprocessing, 'get_all_start_methods', lambda: methods)
    monkeypatch.setattr(multiprocessing, 'get_start_method', lambda allow_none: by_program)
    return start_method()


@pytest.mark.parametrize(
    'methods, by_program, expected',
    [
        (['fork', 'spawn', 'forkserver'], None, 'fork'),
        (['fork', 'spawn', 'forkserver'], 'fork', 'fork'),
        (['fork', 'spawn', 'forkserver'], 'spawn', 'spawn'),
        (['fork', 'spawn', 'forkserver'], 'forkserver', 'forkserver'),
        (['spawn', 'fork', 'forkserver'], None, 'fork'),
        (['spawn', 'fork', 'forkserver'], 'spawn', 'fork'),
        (['forkserver', 'spawn', 'fork'], 'forkserver', 'fork'),
        (['forkserver', 'spawn', 'fork'], 'spawn', 'spawn'),
        (['spawn'], None, 'spawn'),
    ],
)
def test_fork_is_used_unless_the_program_has_set_another_method(
    monkeypatch, methods, by_program, expected
):
    assert chosen(monkeypatch, methods, by_program) == expected


class Unpicklable:
    def __reduce__(self):
        raise RuntimeError('not me')


def test_what_cannot_be_sent_is_named():
    check_sendable('fork', {'client': Unpicklable()})
    check_sendable('spawn', {'client': {'a': 1}})
    with pytest.raises(TypeError, match="^client cannot be sent .* 'spawn': not me"):
        check_sendable('spawn', {'topic': b't', 'client': Unpicklable()})


def test_a_class_of_the_main_program_cannot_be_sent(monkeypatch):
    class OfMain:
        pass

    OfMain.__module__, OfMain.__qualname__ = '__main__', 'OfMain'
    monkeypatch.setattr(sys.modules['__main__'], 'OfMain', OfMain, raising=False)
    main = sys.modules['__main__']
    with pytest.raises(TypeError, match='another module than the main program'):
        check_sendable('spawn', {'client': OfMain()})
    assert sys.modules['__main__'] is main


# ---------------------------------------------------------------- flags


def test_a_flag_is_set_and_cleared():
    flag = Flag(multiprocessing.get_context('fork'))
    assert (flag.is_set(), repr(flag)) == (False, '<Flag not set>')
    assert flag.wait(0) is False
    flag.set()
    assert (flag.is_set(), flag.wait(), repr(flag)) == (True, True, '<Flag set>')
    flag.clear()
    assert not flag.is_set()


# ---------------------------------------------------------------- children


@pytest.mark.parametrize('method', METHODS)
def test_what_children_send_is_got_by_every_start_method(crew, method):
    made = crew(workers.count_up, 0, 50, count=2, method=method)
    assert sorted(take(made, 100)) == sorted(2 * list(range(50)))
    assert len(made.processes) == 2
    assert all(process.daemon and process.is_alive() for process in made.processes)
    assert not made.is_starting()
    made.end()
    assert all(map(gone, made.processes))
    assert [process.exitcode for process in made.processes] == [0, 0]


@pytest.mark.parametrize('method', METHODS)
def test_a_child_knows_no_main_module_and_leaves_signals_to_its_parent(crew, method, monkeypatch):
    monkeypatch.setattr(sys.modules['__main__'], '__file__', '/no/such/program.py', raising=False)
    before = signal.signal(signal.SIGHUP, lambda *args: None)
    try:
        made = crew(workers.send_facts, method=method)
        (facts,) = take(made, 1)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert facts[0] == made.processes[0].pid
    assert facts[2:4] == (True, True)
    if method == 'fork':
        assert facts[4]  # the handler of the program was inherited
    else:
        assert facts[1] is None or 'program.py' not in facts[1]


def test_a_fork_beside_other_threads_warns_of_nothing(crew):
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            made = crew(workers.count_up, 0, 1)
            assert take(made, 1) == [0]
        assert caught == []
    finally:
        release.set()
        thread.join()


def test_items_wait_in_the_order_of_each_child_and_are_counted(crew):
    made = crew(workers.count_up, 0, 5)
    assert made.get(timeout=20) == 0
    made.put('from here')
    assert (made.qsize(), made.empty(), made.full()) == (5, False, False)
    assert made.waiting() == [1, 2, 3, 4, 'from here']
    assert take(made, 5) == [1, 2, 3, 4, 'from here']
    assert (made.qsize(), made.empty()) == (0, True)
    with pytest.raises(queue.Empty):
        made.get_nowait()
    with pytest.raises(queue.Empty):
        made.get(timeout=0.01)
    assert repr(made) == '<Crew children=1 items=0>'


def test_children_send_no_more_than_may_wait(crew):
    made = crew(workers.count_up, 0, 200, count=2, capacity=20)
    first = take(made, 1)
    deadline = time.monotonic() + 10
    while not made.full() and time.monotonic() < deadline:
        made._gather(0.05)
    made._gather(0.05)
    assert made.qsize() <= 20
    assert sorted(first + take(made, 399)) == sorted(2 * list(range(200)))


def test_a_child_that_ends_is_logged_and_started_again_with_new_arguments(crew, caplog):
    flag = Flag(multiprocessing.get_context('fork'))
    starts = iter([(0, 3), (3, 6), (6, 9)])
    made = Crew(workers.die_after, lambda index: next(starts), 1, 1024, flag, 'fork')
    with caplog.at_level(logging.ERROR):
        made.start()
        try:
            assert take(made, 6) == [0, 1, 2, 3, 4, 5]
        finally:
            made.end()
    assert 'process 0 ended with code 7, starting it again in 0 s' in caplog.text


def test_a_child_that_brings_nothing_is_started_again_after_longer_and_longer_pauses(
    crew, monkeypatch
):
    made = crew(workers.die_after, 0, 0, start=False)
    child = made._children[0]
    pauses = []
    for _ in range(12):
        made._postpone(child, 'ended')
        pauses.append(round(child.again_at - time.monotonic()))
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]


def test_a_child_killed_while_it_writes_leaves_nothing_that_others_wait_for(crew):
    made = crew(workers.count_up, 0, 100000, count=2, capacity=10**9)
    deadline = time.monotonic() + 20
    while not made._counters.sent[0] and time.monotonic() < deadline:
        time.sleep(0.001)
    victim = made.processes[0].pid
    os.kill(victim, signal.SIGKILL)  # its pipe is full by now, and nobody has read from it
    assert sorted(take(made, 200000)) == sorted(2 * list(range(100000)))
    assert made.processes[0].pid != victim


def test_a_child_cut_off_by_an_exception_is_started_again(crew, monkeypatch):
    made = crew(workers.count_up, 0, 3)
    first = made.processes[0].pid

    def interrupted():
        raise KeyboardInterrupt

    child = made._children[0]
    reader = child.reader
    monkeypatch.setattr(reader, 'recv', interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        made.get(timeout=20)
    assert take(made, 3) == [0, 1, 2]
    assert made.processes[0].pid != first


def test_a_restart_forgets_what_is_stale(crew):
    made = crew(workers.count_up, 0, 4)
    assert made.get(timeout=20) == 0
    made.put(7)
    made.restart(0, lambda item: item < 4)
    assert take(made, 5) == [7, 0, 1, 2, 3]


def test_ending_is_quick_whatever_the_children_do(crew, monkeypatch):
    monkeypatch.setattr(processes, 'LEAVE_SECONDS', 0.1)
    monkeypatch.setattr(processes, 'SIGNAL_SECONDS', 0.1)
    made = crew(workers.be_deaf)
    take(made, 1)
    started = time.monotonic()
    made.end()
    assert time.monotonic() - started < 20  # the child would live for ever
    assert gone(made.processes[0])
    assert made.processes[0].exitcode == -signal.SIGKILL
    made.end()
    with pytest.raises(queue.Empty):
        made.get()


def test_a_child_that_cannot_be_started_ends_those_that_were(crew):
    flag = Flag(multiprocessing.get_context('fork'))

    def arguments(index):
        if index == 1:
            raise OSError('no more processes')
        return (0, 1)

    made = Crew(workers.count_up, arguments, 2, 1024, flag, 'fork')
    with pytest.raises(OSError):
        made.start()
    assert gone(made.processes[0])


def test_a_thread_that_cannot_be_started_ends_the_children(crew, monkeypatch):
    start = processes.threading.Thread.start

    def fail(thread):
        if thread.name == 'kafka consumer end':
            raise RuntimeError("can't start new thread")
        start(thread)

    flag = Flag(multiprocessing.get_context('fork'))
    made = Crew(workers.count_up, lambda index: (0, 1), 1, 1024, flag, 'fork')
    monkeypatch.setattr(processes.threading.Thread, 'start', fail)
    with pytest.raises(RuntimeError):
        made.start()
    assert gone(made.processes[0])


def test_children_end_with_the_crew_that_nobody_refers_to(crew):
    flag = Flag(multiprocessing.get_context('fork'))
    made = Crew(workers.count_up, lambda index: (0, 1), 1, 1024, flag, 'fork')
    made.start()
    process = made.processes[0]
    del made
    gc.collect()
    assert gone(process)


def test_another_process_leaves_the_children_alone(crew):
    made = crew(workers.count_up, 0, 2)
    child = os.fork() if sys.version_info < (3, 12) else _fork_unwarned()
    if not child:
        made.end()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert take(made, 2) == [0, 1]
    assert made.processes[0].is_alive()


def _fork_unwarned():
    with processes._fork_unwarned():
        return os.fork()


def test_a_crew_may_have_no_children(crew):
    made = crew(workers.count_up, count=0)
    assert (made.processes, made.qsize(), made.is_starting()) == ([], 0, False)
    with pytest.raises(queue.Empty):
        made.get(timeout=0.01)


def test_a_signal_handler_may_end_everything_while_the_queue_is_waited_for(crew):
    made = crew(workers.count_up, 0, 0)
    before = signal.signal(signal.SIGALRM, lambda *args: made.end())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(queue.Empty):
            made.get()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert gone(made.processes[0])
