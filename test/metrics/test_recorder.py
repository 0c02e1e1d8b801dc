"""What recorders of all clients share: noting much, recording it seldom."""

from __future__ import annotations

import threading
import time

import pytest

from kafka.metrics import Metrics
from kafka.metrics.gathered import GatheredSum, gather
from kafka.metrics.recorder import MOST_NOTED, Recorder, put


class Counting(Recorder):
    """Adds numbers up."""

    def __init__(self):
        super().__init__(Metrics(), 'me')
        self.recorded = []
        rows = [('total', GatheredSum, 'of all')]
        self.whole = self._sensor('whole', 'numbers', rows)
        self.part = self._sensor('part', 'numbers', rows, {'topic': 't', 'partition': '0'})
        self._measure('asked', 'numbers', 'when looked at', lambda: 7)

    def note(self, number):
        self._note(number)

    def _record(self, noted, now):
        self.recorded.append(len(noted))
        put(self.whole, gather(noted), now)


@pytest.fixture
def recorder(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, 'time', lambda: clock[0])
    made = Counting()
    made.clock = clock
    made.note(0)  # which begins the time
    made.recorded.clear()
    yield made
    made.metrics.close()


def test_little_is_recorded_when_it_is_asked_for(recorder):
    recorder.note(3)
    recorder.note(4)
    assert recorder.recorded == []
    assert recorder.snapshot()['numbers']['total'] == 7
    assert recorder.recorded == [2]


def test_a_figure_has_what_another_thread_is_just_recording(recorder, monkeypatch):
    record, told = recorder._record, []
    asks = threading.Thread(target=lambda: told.append(recorder.snapshot()['numbers']['total']))

    def record_while_somebody_asks(noted, now):
        asks.start()
        asks.join(0.1)
        record(noted, now)

    monkeypatch.setattr(recorder, '_record', record_while_somebody_asks)
    recorder.note(3)
    recorder.settle()
    asks.join(10)
    assert told == [3]


def test_a_figure_is_not_measured_while_another_thread_records(recorder):
    """All statistics of a recorder have its lock: to be measured they record what was noted."""
    assert recorder.whole.lock is recorder.part.lock is recorder._settling


def test_much_is_recorded_some_hundred_at_a_time(recorder):
    for _ in range(2 * MOST_NOTED + 5):
        recorder.note(1)
    assert recorder.recorded == [MOST_NOTED, MOST_NOTED]


def test_what_is_old_is_recorded(recorder):
    """In the window of time that it happened in: one has 30 s."""
    recorder.note(1)
    recorder.clock[0] += 4.9
    recorder.note(1)
    assert recorder.recorded == []
    recorder.clock[0] += 0.2
    recorder.note(1)
    assert recorder.recorded == [3]


def test_a_clock_that_goes_back_holds_nothing_up(recorder):
    recorder.clock[0] -= 100
    recorder.note(1)
    assert recorder.recorded == [1]


def test_nothing_is_lost_between_threads(recorder):
    def note():
        for _ in range(3000):
            recorder.note(1)
            if not recorder._noted:
                recorder.settle()

    threads = [threading.Thread(target=note) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert recorder.snapshot()['numbers']['total'] == 9000


def test_parts_have_groups_of_their_own(recorder):
    recorder.note(5)
    found = recorder.snapshot()
    assert found['numbers'] == {'total': 5, 'asked': 7}
    assert found['numbers.t.0'] == {'total': 0}


def test_removed_sensors_take_their_metrics_along(recorder):
    recorder._remove({'part': recorder.part})
    assert 'numbers.t.0' not in recorder.snapshot()
