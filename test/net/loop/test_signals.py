"""Signals while turns are run: noted, and told behind them."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from kafka.net.loop import signals as module
from kafka.net.loop.loop import Loop
from kafka.net.loop.signals import PostponedSignals
from test.raising import Interruption, Raiser, needs_points

pytestmark = pytest.mark.skipif(os.name == 'nt', reason='signals of POSIX')


@pytest.fixture
def handler():
    """Set a handler that notes its calls; return the notes."""
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    yield calls
    signal.signal(signal.SIGINT, before)


def test_the_handler_is_called_behind_and_not_inside(handler):
    woken = []
    postponed = PostponedSignals(lambda: woken.append(1))
    postponed.begin()
    signal.raise_signal(signal.SIGINT)
    assert postponed.is_due
    assert (handler, woken) == ([], [1])
    postponed.end()
    assert handler == [signal.SIGINT]
    assert not postponed.is_due


def test_nothing_came_nothing_is_told(handler):
    before = signal.getsignal(signal.SIGINT)
    postponed = PostponedSignals(int)
    postponed.begin()
    postponed.end()
    assert handler == []
    assert signal.getsignal(signal.SIGINT) is before


def test_what_the_handler_raises_goes_to_the_caller():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        postponed = PostponedSignals(int)
        postponed.begin()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            postponed.end()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_a_program_sets_between_two_waits_is_the_one_that_is_told(handler, several):
    calls, postponed = [], PostponedSignals(int)
    postponed.begin()
    postponed.end()
    signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    postponed.begin()
    signal.raise_signal(signal.SIGTERM)
    postponed.end()
    assert calls == [signal.SIGTERM] and not several and not handler


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        postponed = PostponedSignals(int)
        postponed.begin()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        postponed.end()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_was_set_meanwhile_stays(handler):
    postponed = PostponedSignals(int)
    postponed.begin()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    postponed.end()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize('first', [0, 1])
def test_the_last_of_several_who_leave_in_any_order_puts_the_handler_back(handler, first):
    """Greenlets do: each polls in a turn of a loop of its own."""
    before = signal.getsignal(signal.SIGINT)
    both = [PostponedSignals(int), PostponedSignals(int)]
    both[0].begin()
    both[1].begin()
    signal.raise_signal(signal.SIGINT)
    assert [each.is_due for each in both] == [False, True]
    both[first].end()
    signal.raise_signal(signal.SIGINT)
    both[not first].end()
    assert handler == [signal.SIGINT] * (2 if first else 1)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_is_put_back_too_late_calls_that_of_the_program(handler):
    before = signal.getsignal(signal.SIGINT)
    postponed = PostponedSignals(int)
    postponed.begin()
    stale = signal.signal(signal.SIGINT, signal.SIG_IGN)
    postponed.end()
    signal.signal(signal.SIGINT, stale)
    signal.raise_signal(signal.SIGINT)
    assert handler == [signal.SIGINT]
    signal.signal(signal.SIGINT, before)


def test_other_threads_touch_nothing(handler):
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def run():
        postponed = PostponedSignals(int)
        postponed.begin()
        seen.append(signal.getsignal(signal.SIGINT))
        postponed.end()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.fixture
def several():
    """Set handlers of several signals that note their calls; return the notes."""
    calls = []
    numbers = [signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM]
    before = {
        number: signal.signal(number, lambda number, frame: calls.append(number))
        for number in numbers
    }
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_signal_is_told_once(several):
    before = signal.getsignal(signal.SIGTERM)
    postponed = PostponedSignals(int)
    postponed.begin()
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGTERM):
        signal.raise_signal(number)
    assert several == []
    postponed.end()
    assert sorted(several) == sorted([signal.SIGTERM, signal.SIGUSR1])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_handler_that_raises_keeps_no_other_from_being_told(several):
    def fail(number, frame):
        raise OSError('mine')

    signal.signal(signal.SIGALRM, fail)
    for first, second in (
        (signal.SIGALRM, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGALRM),
    ):
        del several[:]
        postponed = PostponedSignals(int)
        postponed.begin()
        signal.raise_signal(first)
        signal.raise_signal(second)
        with pytest.raises(OSError, match='mine'):
            postponed.end()
        assert several == [signal.SIGTERM]
        assert not postponed.is_due


def test_a_signal_that_comes_while_its_handler_is_stood_in_for_is_the_programs(
    handler, monkeypatch
):
    def set_and_raise(number, what, real=module._set):
        real(number, what)
        if what is module._note and number == signal.SIGINT and not handler:
            signal.raise_signal(number)

    monkeypatch.setattr(module, '_set', set_and_raise)
    monkeypatch.setattr(module, '_programs', {})  # as in the first call of a program
    postponed = PostponedSignals(int)
    postponed.begin()
    postponed.end()
    assert handler == [signal.SIGINT]


def test_ctrl_c_works_after_another_signal_has_ended_a_call_that_was_about_to_wait(
    handler, several, monkeypatch
):
    def fail(number, frame):
        raise OSError('mine')

    def set_and_raise(number, what, real=module._set):
        real(number, what)
        if what is module._note and number == signal.SIGINT:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGTERM, fail)
    loop = Loop()
    with monkeypatch.context() as patched:
        patched.setattr(module, '_set', set_and_raise)
        with pytest.raises(OSError, match='mine'):
            loop.wait(lambda: False, 1)
    assert signal.getsignal(signal.SIGINT) is before
    signal.raise_signal(signal.SIGINT)
    assert handler == [signal.SIGINT]
    loop.close()


def test_a_call_that_was_kept_from_its_end_holds_no_signal_off(handler):
    """What is raised into the main thread from outside may come just before that."""
    before = signal.getsignal(signal.SIGINT)
    postponed = PostponedSignals(int)
    postponed.begin()
    del postponed
    signal.raise_signal(signal.SIGINT)
    assert handler == [signal.SIGINT]
    following = PostponedSignals(int)
    following.begin()
    following.end()
    assert signal.getsignal(signal.SIGINT) is before


@needs_points
@pytest.mark.skipif(
    sys.version_info < (3, 10), reason='before 3.10 an exception may come before a try statement'
)
def test_a_signal_that_was_noted_is_told_although_another_one_raises_meanwhile(handler):
    """As a time limit that ends the call in the moment after SIGTERM came."""

    def end(at):
        handler.clear()
        postponed, raiser = PostponedSignals(int), Raiser(at)
        postponed.begin()
        signal.raise_signal(signal.SIGINT)
        try:
            with raiser:
                postponed.end()
        except Interruption:
            pass
        return raiser

    for at in range(end(None).count):
        where = end(at).raised_at
        # One that is ended as it is called would be so without being put off.
        assert handler == [signal.SIGINT] or where.endswith('_tell'), where
