"""A statistic that gives several figures, each a metric of its own (1.x)."""

from __future__ import annotations

from typing import Any, List

from kafka.metrics.stat import AbstractStat


class AbstractCompoundStat(AbstractStat):
    """A statistic that several metrics are made of."""

    def stats(self) -> List[NamedMeasurable]:
        """Return what is to become metrics."""
        raise NotImplementedError


class NamedMeasurable:
    """A figure of a compound statistic, and what it is called. Attributes: name, stat."""

    def __init__(self, metric_name: Any, measurable_stat: Any) -> None:
        self.name = metric_name
        self.stat = measurable_stat

    def __repr__(self) -> str:
        return '<NamedMeasurable %r>' % (self.name,)
