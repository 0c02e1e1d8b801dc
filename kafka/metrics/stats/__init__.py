"""The statistics that values are recorded into (1.x)."""

from __future__ import annotations

from kafka.metrics.stats.avg import Avg
from kafka.metrics.stats.count import Count
from kafka.metrics.stats.histogram import Histogram
from kafka.metrics.stats.max_stat import Max
from kafka.metrics.stats.min_stat import Min
from kafka.metrics.stats.percentile import Percentile
from kafka.metrics.stats.percentiles import Percentiles
from kafka.metrics.stats.rate import Rate
from kafka.metrics.stats.sensor import Sensor
from kafka.metrics.stats.total import Total

__all__ = [
    'Avg', 'Count', 'Histogram', 'Max', 'Min', 'Percentile', 'Percentiles', 'Rate', 'Sensor',
    'Total',
]  # fmt: skip
