"""The registry of metrics of a KafkaProducer, from its options, and reporters that may fail.

Owns which options make it and that a mistake of a program's reporter stops nothing; the figures are
those of :mod:`kafka.metrics.producer_metrics`.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Mapping

from kafka.metrics.metric_config import MetricConfig
from kafka.metrics.metrics import Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.producer_metrics import ProducerMetrics

log = logging.getLogger(__name__)


def figures_of(
    config: Mapping[str, Any], in_flight: Callable[[], float], metadata_age: Callable[[], float]
) -> ProducerMetrics:
    """Return what a producer records into; arguments: its options, the rest as ProducerMetrics."""
    windows = MetricConfig(
        samples=config['metrics_num_samples'],
        time_window_ms=config['metrics_sample_window_ms'],
    )
    reporters = [
        HarmlessReporter(each() if isinstance(each, type) else each)
        for each in config['metric_reporters']
    ]
    registry = Metrics(windows, reporters)
    compresses = config['compression_type'] is not None
    return ProducerMetrics(registry, config['client_id'], in_flight, metadata_age, compresses)


class HarmlessReporter(AbstractMetricsReporter):
    """Stands between the sender and a reporter of the program: what that raises is logged."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def __repr__(self) -> str:
        return '<HarmlessReporter for a %s>' % type(self._reporter).__name__

    def init(self, metrics: Any) -> None:
        """Pass it on; an error is the program's, which is just making a producer."""
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
        except Exception:
            # Nothing else stands before the coroutine that sends.
            log.exception('%s() of a metric reporter failed', method)
