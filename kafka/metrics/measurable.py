"""The source of a metric's value (1.x)."""

from __future__ import annotations

from typing import Any, Callable


class AbstractMeasurable:
    """An object that can be measured; base class for custom ones."""

    def measure(self, config: Any, now: float) -> float:
        """Return the present value. config: the MetricConfig; now: ms since 1970."""
        raise NotImplementedError


class AnonMeasurable(AbstractMeasurable):
    """A function that is measured. Arguments: measure_fn: called with config and now."""

    def __init__(self, measure_fn: Callable[[Any, float], Any]) -> None:
        self._measure_fn = measure_fn

    def measure(self, config: Any, now: float) -> float:
        """Return the result of the function, as float."""
        return float(self._measure_fn(config, now))
