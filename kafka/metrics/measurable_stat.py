"""A statistic that can be measured (1.x)."""

from __future__ import annotations

from kafka.metrics.measurable import AbstractMeasurable
from kafka.metrics.stat import AbstractStat


class AbstractMeasurableStat(AbstractStat, AbstractMeasurable):
    """A statistic with one value."""
