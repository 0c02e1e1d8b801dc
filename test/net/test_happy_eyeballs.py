"""Several servers are tried at intervals, and the first that answers is taken."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError
from kafka.net.happy_eyeballs import first_of
from test.manual_loop import ManualLoop


@pytest.fixture
def loop():
    return ManualLoop()


def attempt(loop, began, name, seconds, error=None):
    async def run():
        began.append((name, loop.time()))
        await loop.sleep(seconds)
        if error is not None:
            raise error
        return name

    return run


def test_the_first_attempt_that_succeeds_is_taken(loop):
    began, now = [], loop.time()
    attempts = [
        attempt(loop, began, 'slow', 50),
        attempt(loop, began, 'bad', 0.1, KafkaTimeoutError()),
        attempt(loop, began, 'ok', 1),
    ]
    task = loop.spawn(first_of(loop, attempts, 2))
    loop.advance(10)
    assert task.result() == 'ok'
    assert [(name, round(at - now, 1)) for name, at in began] == [
        ('slow', 0.0),
        ('bad', 2.0),
        ('ok', 2.1),
    ]
    assert not loop.tasks  # the slow one was cancelled


def test_of_several_errors_one_that_is_not_retriable_is_raised(loop):
    attempts = [
        attempt(loop, [], 'denied', 0, SaslAuthenticationFailedError('x')),
        attempt(loop, [], 'late', 0, KafkaTimeoutError()),
    ]
    task = loop.spawn(first_of(loop, attempts, 1))
    loop.advance(10)
    with pytest.raises(SaslAuthenticationFailedError):
        task.result()
