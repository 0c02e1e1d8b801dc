"""Coroutines, what they wait for, and timers, on a clock that is moved by hand."""

from __future__ import annotations

import gc
import logging
import math

import pytest

from kafka.errors import Cancelled, IllegalStateError, KafkaTimeoutError
from kafka.net.loop.tasks import Alarm, CoroutineCall, Event, TaskCancelled, Waiter
from test.leaks import collect_what_others_left
from test.manual_loop import ManualLoop


@pytest.fixture
def loop():
    return ManualLoop()


async def returns(value):
    return value


async def raises(error):
    raise error


def test_a_coroutine_begins_after_its_maker_has_returned(loop):
    task = loop.spawn(returns(3))
    assert not task.done
    with pytest.raises(IllegalStateError, match='returns is not done'):
        task.result()
    loop.settle()
    assert task.result() == 3
    assert repr(task) == '<Task returns done>'


def test_a_coroutine_awaits_another(loop):
    async def sum_of_two():
        return await loop.spawn(returns(1)) + await loop.spawn(returns(2))

    task = loop.spawn(sum_of_two())
    loop.settle()
    assert task.result() == 3


def test_an_error_reaches_who_awaits(loop):
    async def outer():
        try:
            await loop.spawn(raises(KeyError('x')))
        except KeyError as error:
            return error.args

    task = loop.spawn(outer())
    loop.settle()
    assert task.result() == ('x',)


def test_an_error_that_nobody_asks_for_is_logged(loop, caplog):
    loop.spawn(raises(KeyError('forgotten')))
    loop.settle()
    gc.collect()
    assert 'raises failed, and no caller took the error' in caplog.text
    assert 'forgotten' in caplog.text


def test_an_error_that_was_asked_for_is_not_logged(loop, caplog):
    collect_what_others_left()
    caplog.clear()
    task = loop.spawn(raises(KeyError('x')))
    loop.settle()
    assert isinstance(task.exception, KeyError)
    del task
    gc.collect()
    assert caplog.text == ''


def test_a_waiter_is_woken_once(loop):
    waiter = Waiter()

    async def wait():
        return await waiter

    task = loop.spawn(wait())
    loop.settle()
    assert waiter.wake(1) is True
    assert waiter.wake(2) is False
    assert waiter.fail(KeyError()) is False
    loop.settle()
    assert task.result() == 1


def test_a_waiter_that_was_woken_before_does_not_park(loop):
    waiter = Waiter()
    waiter.fail(KeyError('early'))

    async def wait():
        await waiter

    task = loop.spawn(wait())
    loop.settle()
    assert isinstance(task.exception, KeyError)


def test_a_cancelled_coroutine_may_clean_up_and_its_waiters_hear_of_it(loop):
    seen = []

    async def sleep():
        try:
            await loop.sleep(10)
        except TaskCancelled:
            seen.append('cleaned')
            raise

    async def outer(task):
        await task

    task = loop.spawn(sleep())
    waiting = loop.spawn(outer(task))
    loop.advance(1)
    assert task.cancel() is True
    loop.settle()
    assert seen == ['cleaned']
    assert isinstance(task.exception, Cancelled)
    assert isinstance(waiting.exception, Cancelled)
    assert task.cancel() is False
    assert loop.next_time() is None  # the timer of the sleep is gone


def test_cancelling_before_the_first_step_runs_nothing(loop):
    seen = []

    async def run():
        seen.append(1)

    task = loop.spawn(run())
    task.cancel()
    loop.settle()
    assert seen == []
    assert isinstance(task.exception, Cancelled)


def test_cancelling_a_task_that_was_just_woken_cancels_it(loop):
    waiter = Waiter()

    async def wait():
        await waiter
        await loop.sleep(5)

    task = loop.spawn(wait())
    loop.settle()
    waiter.wake()
    task.cancel()
    loop.settle()
    assert isinstance(task.exception, Cancelled)


def test_except_exception_does_not_swallow_a_cancellation(loop):
    async def stubborn():
        try:
            await loop.sleep(10)
        except Exception:
            return 'swallowed'

    task = loop.spawn(stubborn())
    loop.advance(1)
    task.cancel()
    loop.settle()
    assert isinstance(task.exception, Cancelled)


def test_within_cancels_what_takes_too_long(loop):
    async def outer():
        try:
            await loop.within(2, loop.sleep(10))
        except KafkaTimeoutError:
            return loop.time()

    task = loop.spawn(outer())
    loop.advance(20)
    assert task.result() == 1002
    assert not loop.tasks


def test_within_passes_results_and_errors(loop):
    good = loop.spawn(loop.within(1, returns(1)))
    bad = loop.spawn(loop.within(1, raises(KeyError())))
    loop.settle()
    assert good.result() == 1
    assert isinstance(bad.exception, KeyError)


def test_cancelling_the_outer_of_within_cancels_the_inner(loop):
    outer = loop.spawn(loop.within(5, loop.sleep(10)))
    loop.advance(1)
    outer.cancel()
    loop.settle()
    assert not loop.tasks


def test_gather_keeps_the_order(loop):
    async def after(seconds, value):
        await loop.sleep(seconds)
        return value

    task = loop.spawn(loop.gather(after(2, 'a'), after(1, 'b')))
    loop.advance(3)
    assert task.result() == ['a', 'b']


def test_gather_cancels_the_rest_at_an_error(loop):
    task = loop.spawn(loop.gather(raises(KeyError()), loop.sleep(10)))
    loop.advance(1)
    assert isinstance(task.exception, KeyError)
    assert not loop.tasks


def test_an_event_lets_all_go_on(loop):
    event = Event()
    tasks = [loop.spawn(event.wait()) for _ in range(3)]
    loop.settle()
    tasks[1].cancel()
    loop.settle()
    assert repr(event) == '<Event clear, 2 wait>'
    event.set()
    loop.settle()
    assert [task.done for task in tasks] == [True] * 3
    event.clear()
    assert not event.is_set


def test_timers_run_in_order_and_only_once(loop):
    seen = []
    loop.call_later(2, seen.append, 'b')
    loop.call_later(1, seen.append, 'a')
    loop.call_later(2, seen.append, 'c')
    loop.call_later(3, seen.append, 'never').cancel()
    loop.advance(5)
    assert seen == ['a', 'b', 'c']


def test_cancelled_timers_do_not_pile_up(loop):
    for _ in range(5000):
        loop.call_later(1000, print).cancel()
    assert len(loop.timers) < 2000


def test_an_alarm_calls_once_at_the_earliest_of_its_times(loop):
    calls = []
    alarm = Alarm(loop, lambda: calls.append(loop.time()))
    began = loop.time()
    for seconds in (3.0, 2.0, 5.0):
        alarm.set(began + seconds)
    loop.advance(10.0)
    assert calls == [began + 2.0]


def test_an_alarm_may_be_set_again_in_its_call_and_after_it_was_cancelled(loop):
    calls = []
    alarm = Alarm(loop, lambda: (calls.append(loop.time()), alarm.set(loop.time() + 1.0)))
    began = loop.time()
    alarm.set(began + 1.0)
    loop.advance(2.0)
    alarm.cancel()
    loop.advance(2.0)
    assert calls == [began + 1.0, began + 2.0]
    alarm.set(began - 1.0)  # what is over is due at once
    loop.advance(0.0)
    assert len(calls) == 3


def test_an_alarm_that_is_never_to_be_made_keeps_the_time_it_has(loop):
    calls = []
    alarm = Alarm(loop, lambda: calls.append(loop.time()))
    alarm.set(math.inf)
    loop.advance(100.0)
    assert calls == []
    alarm.set(loop.time() + 1.0)
    alarm.set(math.inf)
    loop.advance(1.0)
    assert len(calls) == 1


def test_a_call_that_fails_is_logged_and_the_next_is_made(loop, caplog):
    seen = []
    loop.call_soon(int, 'x')
    loop.call_soon(seen.append, 1)
    with caplog.at_level(logging.ERROR):
        loop.settle()
    assert seen == [1]
    assert 'invalid literal' in caplog.text


def test_an_interrupt_inside_a_coroutine_ends_that_one_and_is_passed_on(loop):
    async def interrupted():
        raise KeyboardInterrupt

    task, other = loop.spawn(interrupted()), loop.spawn(returns(1))
    with pytest.raises(KeyboardInterrupt):
        loop.settle()
    loop.settle()
    assert isinstance(task.exception, Cancelled)
    assert other.result() == 1


async def doubled(number):
    return 2 * number


def test_a_call_of_a_coroutine_is_made_with_its_first_step(loop):
    made = []

    async def note(number):
        made.append(number)
        await loop.sleep(1)
        return await doubled(number)

    task = loop.spawn(CoroutineCall(note, 4))
    assert made == [] and task.name.endswith('note')
    loop.settle()
    assert made == [4] and not task.done
    loop.advance(1)
    assert task.result() == 8


def test_a_call_of_a_coroutine_may_be_awaited(loop):
    async def wait():
        return await CoroutineCall(doubled, 4)

    task = loop.spawn(wait())
    loop.settle()
    assert task.result() == 8


@pytest.mark.parametrize('end', ['forgotten', 'closed', 'cancelled'])
def test_a_call_that_is_not_made_shows_no_warning(loop, end):
    """pytest would fail: a coroutine that was never awaited warns of it."""
    call = CoroutineCall(doubled, 4)
    if end == 'closed':
        call.close()
    elif end == 'cancelled':
        task = loop.spawn(call)
        task.cancel()
        loop.settle()
        with pytest.raises(Cancelled):
            task.result()
    del call
    gc.collect()
