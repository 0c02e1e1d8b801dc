"""A statistic with several values, each a metric of its own (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stat import AbstractStat


class AbstractCompoundStat(AbstractStat):
    """A statistic of which several metrics are made."""

    def stats(self) -> List[NamedMeasurable]:
        """Return the values that become metrics."""
        raise NotImplementedError


class NamedMeasurable:
    """A value of a compound statistic, and its name. Attributes: name, stat."""

    def __init__(self, metric_name: Any, measurable_stat: Any) -> None:
        self.name = metric_name
        self.stat = measurable_stat

    def __repr__(self) -> str:
        return '<NamedMeasurable %r>' % (self.name,)
