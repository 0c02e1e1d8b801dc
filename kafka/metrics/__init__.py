"""Metrics of clients: metrics, sensors, quotas, reporters (1.x)."""

from __future__ import annotations

from kafka.metrics.compound_stat import NamedMeasurable
from kafka.metrics.dict_reporter import DictReporter
from kafka.metrics.kafka_metric import KafkaMetric
from kafka.metrics.measurable import AnonMeasurable
from kafka.metrics.metric_config import MetricConfig
from kafka.metrics.metric_name import MetricName
from kafka.metrics.metrics import Metrics
from kafka.metrics.quota import Quota

__all__ = [
    'AnonMeasurable', 'DictReporter', 'KafkaMetric', 'MetricConfig', 'MetricName', 'Metrics',
    'NamedMeasurable', 'Quota',
]  # fmt: skip
