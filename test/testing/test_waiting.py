"""Calls wait for keys, for their time, or until their connection ends."""

from __future__ import annotations

import gc
import weakref

import pytest

from kafka.protocol.api_versions import ApiVersionsResponse
from kafka.protocol.metadata import MetadataRequest
from kafka.testing.calls import HANDLERS
from test.testing.drive import Driver

ANSWER = ApiVersionsResponse(error_code=0, api_keys=[])


class FakeBroker:
    def __init__(self):
        self.failures = []

    def note_failure(self, call, error):
        self.failures.append(error)
        call.drop()


class FakeCall:
    def __init__(self):
        self.broker = FakeBroker()
        self.answers = []
        self.is_waiting = True
        self.dropped = []

    def respond(self, response):
        self.answers.append(response)
        self.is_waiting = False

    def when_dropped(self, callback):
        self.dropped.append(callback)

    def drop(self):
        self.is_waiting = False
        for callback in self.dropped:
            callback()


@pytest.fixture
def driver():
    return Driver()


def test_a_touched_key_lets_its_calls_try_again(driver):
    call, ready = FakeCall(), []
    driver.waiting.add(call, 10, ['k'], lambda last: ANSWER if ready else None)
    driver.waiting.touch('k')
    assert call.answers == []
    ready.append(1)
    driver.waiting.touch('other')
    assert call.answers == []
    driver.waiting.touch('k')
    assert call.answers == [ANSWER]


def test_the_last_attempt_comes_when_time_is_over(driver):
    call = FakeCall()
    driver.waiting.add(call, 10, ['k'], lambda last: ANSWER if last else None)
    driver.advance(9.9)
    assert call.answers == []
    driver.advance(0.1)
    assert call.answers == [ANSWER]


def test_a_call_of_several_keys_is_answered_once(driver):
    call = FakeCall()
    driver.waiting.add(call, 10, ['k', 'l'], lambda last: ANSWER)
    driver.waiting.touch('k')
    driver.waiting.touch('l')
    driver.advance(20)
    assert call.answers == [ANSWER]
    assert driver.waiting._by_key == {}


def test_nothing_is_kept_of_an_answered_call(driver):
    driver.waiting.add(FakeCall(), 1e9, ['k'], lambda last: ANSWER)
    driver.waiting.touch('k')
    assert driver.waiting._by_key == {}
    assert driver.timers.next_time() is None


def test_nothing_is_kept_under_other_keys_of_an_answered_call(driver):
    driver.waiting.add(FakeCall(), 1e9, ['k', 'l'], lambda last: ANSWER)
    driver.waiting.touch('l')
    assert driver.waiting._by_key == {}


def test_what_is_touched_together_is_tried_once_at_the_end(driver):
    """A fetch of two partitions, to which one request writes, has the records of both."""
    call, there, tried = FakeCall(), [], []

    def attempt(last):
        tried.append(list(there))
        return ANSWER if there else None

    driver.waiting.add(call, 10, ['k', 'l'], attempt)
    with pytest.raises(ValueError), driver.waiting.together():
        for key in 'kl':
            there.append(key)
            driver.waiting.touch(key)
        raise ValueError
    assert tried == [['k', 'l']]
    assert call.answers == [ANSWER]
    driver.waiting.touch('k')
    assert driver.waiting._by_key == {}


class CountingCall(FakeCall):
    """Counts how often anybody looks at any of them."""

    looks = 0

    @property
    def is_waiting(self):
        CountingCall.looks += 1
        return self._is_waiting

    @is_waiting.setter
    def is_waiting(self, value):
        self._is_waiting = value


def test_that_many_wait_for_one_key_costs_each_of_them_nothing(driver):
    """One that left was looked for among all others, which took 8 s with 20,000."""
    calls = [CountingCall() for _ in range(1000)]
    for call in calls:
        driver.waiting.add(call, 0.5, ['k'], lambda last: ANSWER if last else None)
    before = CountingCall.looks
    driver.advance(1)
    assert all(call.answers == [ANSWER] for call in calls)
    assert CountingCall.looks - before < 10 * len(calls)


def test_nothing_is_kept_of_a_call_whose_connection_ended(driver):
    call = FakeCall()
    driver.waiting.add(call, 1e9, ['k'], lambda last: None)
    call.drop()
    assert driver.waiting._by_key == {}
    assert driver.timers.next_time() is None


def test_an_attempt_may_touch_its_own_key(driver):
    call = FakeCall()

    def attempt(last):
        driver.waiting.touch('k')
        return ANSWER

    driver.waiting.add(call, 10, ['k'], attempt)
    driver.waiting.touch('k')
    assert call.answers == [ANSWER]


def test_what_an_attempt_raises_hits_its_own_call_and_no_other(driver):
    bad, good, error = FakeCall(), FakeCall(), ValueError('no')

    def fail(last):
        raise error

    driver.waiting.add(bad, 10, ['k'], fail)
    driver.waiting.add(good, 10, ['k'], lambda last: ANSWER)
    driver.waiting.touch('k')
    assert (bad.broker.failures, bad.is_waiting) == ([error], False)
    assert good.answers == [ANSWER]


def test_a_client_that_leaves_takes_its_waiting_call_along(driver, monkeypatch):
    monkeypatch.setitem(HANDLERS, 3, lambda call: call.wait(1e9, ['k'], lambda last: None))
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert list(driver.waiting._by_key) == ['k']
    client.connection.close()
    assert driver.waiting._by_key == {}


def test_an_answered_call_holds_nothing_that_holds_it(driver, monkeypatch):
    """Calls that waited for data stayed in memory until the collector came by."""
    calls = []

    def handle(call):
        calls.append(weakref.ref(call))
        return call.wait(1e9, ['k'], lambda last: ANSWER if driver.waiting._by_key else None)

    monkeypatch.setitem(HANDLERS, 3, handle)
    client = driver.client()
    gc.disable()
    try:
        client.send(MetadataRequest(topics=[]), 0)
        driver.waiting.touch('k')
        assert driver.waiting._by_key == {}
        assert calls[0]() is None
    finally:
        gc.enable()
