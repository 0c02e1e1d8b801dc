"""LagListener: a StreamingQueryListener that keeps the lag of the queries of a session.

PySpark calls it; lag.py reads the reports.
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
    """Keeps the lag of the queries of a session: ``spark.streams.addListener(it)``.

    Arguments: report: called with each Lag, in the thread in which PySpark calls the listener.
    """

    def __init__(self, report: Optional[Callable[[Lag], None]] = None) -> None:
        self._report = report
        self._lock = threading.RLock()  # of _lags, which PySpark's thread writes
        self._lags: Dict[str, List[Lag]] = {}

    def __repr__(self) -> str:
        return '<LagListener of %d queries>' % len(self._lags)

    def lags(self) -> List[Lag]:
        """Return the last lag of each source of each running query."""
        with self._lock:
            return [lag for some in self._lags.values() for lag in some]

    def onQueryStarted(self, event: Any) -> None:
        """Do nothing: there is no lag yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Store the lag after a micro-batch."""
        found = lags_of(json.loads(event.progress.json), _UNKNOWING)
        with self._lock:
            self._lags[str(event.progress.runId)] = found
        if self._report is not None:
            for lag in found:
                self._report(lag)

    def onQueryIdle(self, event: Any) -> None:
        """Do nothing: the lag is unchanged."""

    def onQueryTerminated(self, event: Any) -> None:
        """Remove a query that has ended."""
        with self._lock:
            self._lags.pop(str(event.runId), None)
