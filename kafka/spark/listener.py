"""LagListener: tells a program how far its streaming queries are behind.

Owns what PySpark calls, and the last lag of each query that runs. Does not own what a report says
(lag.py).
"""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List, Optional

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming import StreamingQueryListener

from kafka.spark.lag import Lag, lags_of

__all__ = ['LagListener']


#: Before 4.2 sources in Python cannot report the ends of logs: PySpark shows the end of the batch.
_UNKNOWING = '' if hasattr(DataSourceStreamReader, 'reportLatestOffset') else 'PythonMicroBatch'


class LagListener(StreamingQueryListener):  # type: ignore[misc]
    """Knows how far the queries of a session are behind: ``spark.streams.addListener(it)``.

    Arguments: report: is called with each Lag, in the thread in which PySpark tells of it.
    """

    def __init__(self, report: Optional[Callable[[Lag], None]] = None) -> None:
        self._report = report
        self._lock = threading.RLock()  # of _lags, which PySpark's thread writes
        self._lags: Dict[str, List[Lag]] = {}

    def __repr__(self) -> str:
        return '<LagListener of %d queries>' % len(self._lags)

    def lags(self) -> List[Lag]:
        """Return the last lag of each source of each query that runs."""
        with self._lock:
            return [lag for some in self._lags.values() for lag in some]

    def onQueryStarted(self, event: Any) -> None:
        """Note nothing yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Note the lag after a micro-batch."""
        found = lags_of(json.loads(event.progress.json), _UNKNOWING)
        with self._lock:
            self._lags[str(event.progress.runId)] = found
        if self._report is not None:
            for lag in found:
                self._report(lag)

    def onQueryIdle(self, event: Any) -> None:
        """Note nothing new."""

    def onQueryTerminated(self, event: Any) -> None:
        """Forget a query that has ended."""
        with self._lock:
            self._lags.pop(str(event.runId), None)
