"""The creation of a client's metrics registry from its options, and a guard for reporters.

Errors of a program's reporter are logged and do not affect the client. The metrics are defined in
:mod:`kafka.metrics.producer_metrics` and :mod:`kafka.metrics.consumer_metrics`.
"""

from __future__ import annotations

import logging
from typing import Any, Iterable, Mapping

from kafka.internals.program_errors import log_program_error
from kafka.metrics.metric_config import MetricConfig
from kafka.metrics.metrics import Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter

__all__ = ['HarmlessReporter', 'registry_of']

log = logging.getLogger(__name__)


def registry_of(config: Mapping[str, Any], own: Iterable[AbstractMetricsReporter] = ()) -> Metrics:
    """Return the registry of a client. Arguments: its options; own: additional reporters.

    Raises errors of a program's reporter while it is created.
    """
    windows = MetricConfig(
        samples=config['metrics_num_samples'],
        time_window_ms=config['metrics_sample_window_ms'],
        tags={'client-id': config['client_id']},
    )
    theirs = [
        HarmlessReporter(each() if isinstance(each, type) else each)
        for each in config['metric_reporters']
    ]
    return Metrics(windows, [*theirs, *own])


class HarmlessReporter(AbstractMetricsReporter):
    """A wrapper of a program's reporter: exceptions of the reporter are logged."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def __repr__(self) -> str:
        return '<HarmlessReporter for a %s>' % type(self._reporter).__name__

    def init(self, metrics: Any) -> None:
        """Pass it on; an error is raised to the program, which is creating a client."""
        self._reporter.init(metrics)

    def metric_change(self, metric: Any) -> None:
        """Pass it on."""
        self._tell('metric_change', metric)

    def metric_removal(self, metric: Any) -> None:
        """Pass it on."""
        self._tell('metric_removal', metric)

    def configure(self, configs: Any) -> None:
        """Pass it on."""
        self._tell('configure', configs)

    def close(self) -> None:
        """Pass it on."""
        self._tell('close')

    def _tell(self, method: str, *arguments: Any) -> None:
        try:
            getattr(self._reporter, method)(*arguments)
        except Exception as error:
            # There is no other handler between this call and the event loop.
            log_program_error(log, error, '%s() of a metric reporter failed', method)
