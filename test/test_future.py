"""Futures: completion, callbacks, and two threads at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future, drive_coroutine


def test_new_future_is_pending():
    future = Future()
    assert (future.is_done, future.succeeded(), future.failed()) == (False, False, False)
    assert (future.value, future.exception) == (None, None)
    assert future.retriable() is False
    assert repr(future) == '<Future pending>'


def test_success_keeps_the_value_and_returns_the_future():
    future = Future()
    assert future.success(7) is future
    assert (future.is_done, future.succeeded(), future.failed()) == (True, True, False)
    assert (future.value, future.exception) == (7, None)
    assert repr(future) == '<Future value 7>'


def test_failure_keeps_the_exception_and_returns_the_future():
    future, error = Future(), KafkaError('no')
    assert future.failure(error) is future
    assert (future.is_done, future.succeeded(), future.failed()) == (True, False, True)
    assert future.exception is error
    assert future.value is None
    assert repr(future) == '<Future failed: %r>' % error


def test_failure_makes_an_instance_of_a_class():
    assert type(Future().failure(KafkaError).exception) is KafkaError


@pytest.mark.parametrize('wrong', [None, 'text', 5, int])
def test_failing_with_what_is_no_exception_is_an_assertion_error(wrong):
    future = Future()
    with pytest.raises(AssertionError, match='exception'):
        future.failure(wrong)
    assert future.is_done is False


@pytest.mark.parametrize('first', ['success', 'failure'])
@pytest.mark.parametrize('second', ['success', 'failure'])
def test_completing_twice_is_an_assertion_error(first, second):
    error = KafkaError('once')
    future = getattr(Future(), first)(error)
    with pytest.raises(AssertionError):
        getattr(future, second)(KafkaError('twice'))
    assert error in (future.value, future.exception)


def test_exception_that_is_falsy_counts_as_none():
    class Falsy(Exception):
        def __bool__(self):
            return False

    future = Future().failure(Falsy())
    assert (future.succeeded(), future.failed()) == (True, False)


def test_retriable_is_what_the_exception_says():
    assert Future().failure(KafkaTimeoutError()).retriable() is True
    assert Future().failure(KafkaError()).retriable() is False
    assert Future().failure(ValueError()).retriable() is False


# --- callbacks ----------------------------------------------------------------------------------


def test_callbacks_get_their_own_arguments_and_the_value_in_order_of_registration():
    future, calls = Future(), []

    def note(*args, **kwargs):
        calls.append((args, kwargs))

    assert future.add_callback(note, 1, a=2) is future
    assert future.add_errback(note, 'never') is future
    assert future.add_both(note, 'both') is future
    assert calls == []
    future.success('value')
    assert calls == [((1, 'value'), {'a': 2}), (('both', 'value'), {})]
    future.add_callback(note, 'late')
    future.add_errback(note, 'never')
    assert calls[2:] == [(('late', 'value'), {})]


def test_errbacks_get_the_exception():
    future, calls, error = Future(), [], KafkaError('no')
    future.add_callback(calls.append)
    future.add_errback(lambda *args: calls.append(args), 1)
    future.add_both(calls.append)
    future.failure(error)
    future.add_errback(calls.append)
    future.add_callback(calls.append)
    assert calls == [(1, error), error, error]


def test_chained_future_is_completed_in_the_same_way():
    value, error = Future(), Future()
    Future().chain(value).success(5)
    failed = KafkaError('no')
    Future().chain(error).failure(failed)
    assert value.value == 5
    assert error.exception is failed


def test_callback_that_raises_is_logged_and_the_next_one_runs(caplog):
    future, calls = Future(), []
    future.add_callback(lambda value: 1 / 0)
    future.add_callback(calls.append)
    future.success(3)
    assert calls == [3]
    assert 'ZeroDivisionError' in caplog.text


def test_errors_of_callbacks_can_be_let_through(monkeypatch, caplog):
    monkeypatch.setattr(Future, 'error_on_callbacks', True)
    future = Future().add_callback(lambda value: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        future.success(3)
    assert 'ZeroDivisionError' in caplog.text


def test_callback_may_add_another_one():
    future, calls = Future(), []
    future.add_callback(lambda value: future.add_callback(calls.append))
    future.success(1)
    assert calls == [1]


def test_no_callback_is_lost_or_run_twice_between_two_threads():
    for _ in range(50):
        future, calls, ready = Future(), [], threading.Barrier(2)

        def add(future=future, calls=calls, ready=ready):
            ready.wait(10)
            for number in range(20):
                future.add_callback(lambda value, number=number: calls.append(number))

        thread = threading.Thread(target=add)
        thread.start()
        ready.wait(10)
        future.success(None)
        thread.join(10)
        assert sorted(calls) == list(range(20))


def test_what_is_no_exception_is_refused_as_in_each_era():
    for error in (AssertionError, TypeError):
        with pytest.raises(error, match='not with'):
            Future().failure('text')


def test_coroutines_of_asyncio_wait_for_it():
    async def wait():
        done, failed, later = Future().success(5), Future().failure(KeyError('x')), Future()
        assert await done == 5
        with pytest.raises(KeyError):
            await failed
        thread = threading.Thread(target=later.success, args=(7,))
        asyncio.get_running_loop().call_soon(thread.start)
        assert await later == 7
        thread.join()
        cancelled = asyncio.ensure_future(_wait(Future()))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(wait())


async def _wait(future):
    return await future


def test_a_future_that_outlives_its_loop_completes_without_a_word(caplog):
    future = Future()

    async def give_up():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future, 0.001)

    asyncio.run(give_up())
    future.success(5)
    assert not caplog.records


def test_awaiting_outside_of_asyncio_says_so():
    with pytest.raises(RuntimeError):
        _wait(Future()).send(None)


def test_a_coroutine_may_be_driven_without_asyncio():
    future, seen = Future(), []

    async def run():
        seen.append(await future)
        with pytest.raises(KeyError):
            await Future()
        with pytest.raises(TypeError, match='only futures'):
            await asyncio.sleep(0)

    def wait(awaited):
        if awaited is not future:
            raise KeyError(awaited)
        awaited.success(5)

    drive_coroutine(run(), wait)
    assert seen == [5]
    with pytest.raises(RuntimeError):
        _wait(Future()).send(None)
