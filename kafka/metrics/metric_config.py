"""The configuration of a metric (1.x)."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional


class MetricConfig:
    """The configuration of a metric.

    Arguments: quota: a Quota, None for no bound; samples: the number of windows, at least one;
        event_window: the number of records that fill a window; time_window_ms: the time that fills
        it; tags: of every metric.
    """

    def __init__(
        self,
        quota: Any = None,
        samples: int = 2,
        event_window: float = sys.maxsize,
        time_window_ms: float = 30000,
        tags: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.quota = quota
        self.event_window = event_window
        self.time_window_ms = time_window_ms
        self.tags: Dict[str, Any] = tags if tags else {}
        self.samples = samples

    @property
    def samples(self) -> int:
        """The number of windows; ValueError for less than one."""
        return self._samples

    @samples.setter
    def samples(self, value: int) -> None:
        if value < 1:
            raise ValueError('samples must be at least 1, not %r' % (value,))
        self._samples = value

    def __repr__(self) -> str:
        return '<MetricConfig samples=%s time_window_ms=%s>' % (self.samples, self.time_window_ms)
