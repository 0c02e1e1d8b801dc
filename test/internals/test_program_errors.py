"""What the log says of an exception in a callback: the program's frames, once."""

from __future__ import annotations

import logging

from kafka.future import Future
from kafka.metrics.reporting import HarmlessReporter


def broken(*_):
    raise ValueError('of the program')


class Reporter:
    metric_change = staticmethod(broken)


def check(caplog):
    (record,) = caplog.records
    text = logging.Formatter().format(record)
    assert text.count('ValueError: of the program') == 1 and 'in broken' in text
    assert 'kafka/' not in text.partition('Traceback')[2]


def test_the_error_of_a_callback_is_logged_without_frames_of_the_package(caplog):
    Future().add_callback(broken).success(1)
    check(caplog)


def test_the_error_of_a_reporter_is_logged_without_frames_of_the_package(caplog):
    HarmlessReporter(Reporter()).metric_change(None)
    check(caplog)


def test_a_callback_that_cannot_be_called_is_logged_by_its_message(caplog):
    Future().add_callback(lambda: None).success(1)
    text = logging.Formatter().format(caplog.records[0])
    assert 'positional argument' in text and 'kafka/' not in text.partition('Traceback')[2]
