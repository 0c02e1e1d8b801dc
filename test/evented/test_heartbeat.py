"""The clock of heartbeats that programs of 1.x found."""

from __future__ import annotations

import pytest

from kafka.evented import heartbeat as module
from kafka.evented.heartbeat import Heartbeat


class Clock:
    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, 'time', made)
    return made


@pytest.fixture
def heartbeat(clock):
    return Heartbeat(heartbeat_interval_ms=3000, session_timeout_ms=10000, anything=1)


def test_the_first_is_due_an_interval_after_the_start(clock, heartbeat):
    assert (heartbeat.ttl(), heartbeat.should_heartbeat()) == (3.0, False)
    clock.now += 3
    assert (heartbeat.ttl(), heartbeat.should_heartbeat()) == (0.0, True)


def test_the_next_is_due_an_interval_after_the_last(clock, heartbeat):
    clock.now += 5
    heartbeat.sent_heartbeat()
    assert heartbeat.ttl() == 3.0


def test_a_session_ends_when_the_coordinator_was_not_heard_of(clock, heartbeat):
    clock.now += 10
    assert not heartbeat.session_expired()
    clock.now += 0.1
    assert heartbeat.session_expired()
    heartbeat.received_heartbeat()
    assert not heartbeat.session_expired()


def test_joining_begins_a_new_session(clock, heartbeat):
    clock.now += 50
    heartbeat.reset_session_timeout()
    assert not heartbeat.session_expired()
    assert heartbeat.ttl() == 3.0


def test_an_interval_above_the_session_is_refused():
    with pytest.raises(AssertionError, match='must not exceed'):
        Heartbeat(heartbeat_interval_ms=31000)


def test_defaults():
    made = Heartbeat()
    assert (made.interval, made.timeout) == (3.0, 30.0)
    assert made.config == {'heartbeat_interval_ms': 3000, 'session_timeout_ms': 30000}
