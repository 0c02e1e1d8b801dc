"""The registry of metrics from a client's options, and reporters that fail."""

from __future__ import annotations

import pytest

from kafka import config as options
from kafka.metrics.dict_reporter import DictReporter
from kafka.metrics.reporting import HarmlessReporter, registry_of


class Failing:
    """Raises in every call."""

    def __getattr__(self, name):
        def call(*arguments):
            raise ValueError(name)

        return call


def test_what_a_reporter_raises_is_logged(caplog):
    reporter = HarmlessReporter(Failing())
    reporter.metric_change(None)
    reporter.metric_removal(None)
    reporter.configure({})
    reporter.close()
    assert caplog.text.count('of a metric reporter failed') == 4


def of_consumer(**given):
    return options.resolve(options.CONSUMER, given)


def test_options_make_the_windows():
    config = of_consumer(metrics_num_samples=5, metrics_sample_window_ms=70)
    found = registry_of(config).config
    assert (found.samples, found.time_window_ms) == (5, 70)


def test_reporters_of_the_program_and_of_the_client_are_told():
    theirs, own = DictReporter('theirs'), DictReporter('own')
    registry = registry_of(of_consumer(metric_reporters=[theirs], client_id='me'), [own])
    assert list(theirs.snapshot()) == ['theirs.kafka-metrics-count.client-id=me']
    assert list(own.snapshot()) == ['own.kafka-metrics-count.client-id=me']
    registry.close()


def test_classes_are_made_without_arguments():
    made = []

    class Reporter(DictReporter):
        def __init__(self):
            super().__init__()
            made.append(self)

    registry_of(of_consumer(metric_reporters=[Reporter]))
    assert len(made) == 1


def test_a_reporter_that_cannot_begin_is_the_mistake_of_who_makes_the_client():
    with pytest.raises(ValueError, match='init'):
        registry_of(of_consumer(metric_reporters=[Failing()]))
