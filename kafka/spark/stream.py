"""The stream readers of the data source, for both levels of PySpark's API.

From 4.2 on PySpark passes the start of a batch and its limit (LimitedReader). Before, a reader has
to know both (SelfLimitedReader): it learns the start from partitions(), which PySpark calls for the
last batch when a query restarts. The base class decides which one is used. LowLatencyReader works
with both: it reads on the driver, so that no task has to be started for a batch. The state of a
query is in query.py, reading in reading.py. PySpark uses one instance on the driver, and sends
pickled copies to the executors.
"""

from __future__ import annotations

import inspect
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)

from kafka.spark.options import SourceOptions
from kafka.spark.progress import Tree
from kafka.spark.query import Query
from kafka.spark.ranges import TaskRange
from kafka.spark.reading import read_at_most, read_range

__all__ = [
    'TAKES_LIMITS',
    'LowLatencyReader',
    'SelfLimitedReader',
    'simple_reader',
    'stream_reader',
]

#: The maximum number of offsets in a batch of the LowLatencyReader without maxOffsetsPerTrigger:
#: the driver holds them all in memory.
MOST_AT_ONCE = 10000
#: The approximate maximum of bytes in such a batch.
MOST_BYTES = 33554432

#: Whether PySpark passes a limit for each batch to the reader (4.2 and later).
TAKES_LIMITS = 'limit' in inspect.signature(DataSourceStreamReader.latestOffset).parameters


class _Reader(DataSourceStreamReader):  # type: ignore[misc]
    """The part that the readers share.

    Arguments: options: a SourceOptions; columns: those of the rows.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._query = Query(options)

    def __repr__(self) -> str:
        return '<%s of %s, %r>' % (type(self).__name__, ', '.join(self._columns), self._query)

    def initialOffset(self) -> Tree:
        """Return where a new query begins."""
        return self._query.initial()

    def partitions(self, start: Tree, end: Tree) -> List[InputPartition]:
        """Split a batch into tasks. Raises: as Query.ranges()."""
        return [InputPartition(each) for each in self._query.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the Arrow batches of one task."""
        return read_range(partition.value, self._options, self._columns)

    def commit(self, end: Tree) -> None:
        """Commit the offsets of a finished batch. PySpark calls it when it plans the next batch."""
        self._query.commit(end)

    def stop(self) -> None:
        """Close the connections."""
        self._query.close()


class SelfLimitedReader(_Reader):
    """Limits batches by itself (PySpark 4.0 and 4.1).

    PySpark does not report that a trigger is AvailableNow: such a run is one batch of all available
    records, or of maxOffsetsPerTrigger.
    """

    _position: Optional[Tree] = None

    def latestOffset(self) -> Tree:
        """Return the end of the next batch."""
        start = self.initialOffset() if self._position is None else self._position
        return self._query.worthwhile(start, self._options.max_offsets)

    def partitions(self, start: Tree, end: Tree) -> List[InputPartition]:
        """Split a batch into tasks, and remember its end."""
        found = super().partitions(start, end)
        self._position = end
        return found


if TAKES_LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    class LimitedReader(_Reader, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """Gets a limit for each batch (PySpark 4.2 and later)."""

        def getDefaultReadLimit(self) -> ReadLimit:
            """Return the limit that PySpark passes for each trigger, except those that read all."""
            options = self._options
            if options.max_offsets is not None:
                return ReadMaxRows(options.max_offsets)
            if options.min_offsets is not None:
                return ReadMinRows(options.min_offsets)
            return ReadAllAvailable()

        def latestOffset(self, start: Tree, limit: ReadLimit) -> Tree:
            """Return the end of the batch that begins at `start`."""
            if isinstance(limit, ReadAllAvailable):
                return self._query.everything(start)
            max_offsets = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            return self._query.worthwhile(start, max_offsets)

        def reportLatestOffset(self) -> Optional[Tree]:
            """Return the ends of the logs as found for the last batch."""
            return self._query.latest()

        def prepareForTriggerAvailableNow(self) -> None:
            """Read up to the present ends, in batches, and no further."""
            self._query.bound()

else:
    SupportsTriggerAvailableNow = object


class LowLatencyReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads on the driver, which takes less time than tasks for a small batch (option lowLatency).

    Arguments: options: a SourceOptions; columns: those of the rows.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._query = Query(options)
        self._turn = -1

    def __repr__(self) -> str:
        return '<LowLatencyReader of %s, %r>' % (', '.join(self._columns), self._query)

    def initialOffset(self) -> Tree:
        """Return where a new query begins."""
        return self._query.initial()

    def read(self, start: Tree) -> Tuple[Iterator[Any], Tree]:
        """Return the Arrow batches of a batch from `start`, and its end.

        They are collected in a list because PySpark copies the iterator.
        """
        end = self._query.worthwhile(start, self._options.max_offsets or MOST_AT_ONCE)
        tasks = self._in_turn(self._query.ranges(start, end))
        batches, left = read_at_most(tasks, self._options, self._columns, MOST_BYTES)
        if left:
            end = self._query.cut(start, end, left)
        return iter(batches), end

    def _in_turn(self, tasks: List[TaskRange]) -> List[TaskRange]:
        """Return tasks in an order that starts with another partition each time.

        Otherwise a partition with more records than fit into a batch would block the others
        forever.
        """
        places = sorted({(each.topic, each.partition) for each in tasks})
        self._turn += 1
        first = places[self._turn % len(places)] if places else ('', 0)
        return [each for each in tasks if each[:2] >= first] + [
            each for each in tasks if each[:2] < first
        ]

    def readBetweenOffsets(self, start: Tree, end: Tree) -> Iterator[Any]:
        """Return the Arrow batches of a batch again, in a task, after a restart of the query."""
        try:
            tasks = self._query.ranges(start, end)
            return (
                batch for each in tasks for batch in read_range(each, self._options, self._columns)
            )
        finally:
            self._query.close()

    def commit(self, end: Tree) -> None:
        """Commit the offsets of a finished batch. PySpark calls it when it plans the next batch."""
        self._query.commit(end)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to the present ends, in batches, and no further."""
        self._query.bound()


def stream_reader(options: SourceOptions, columns: Sequence[str]) -> Any:
    """Return the reader for the installed PySpark; arguments as for its class."""
    return (LimitedReader if TAKES_LIMITS else SelfLimitedReader)(options, columns)


def simple_reader(options: SourceOptions, columns: Sequence[str]) -> LowLatencyReader:
    """Return the reader that reads on the driver; arguments as for LowLatencyReader."""
    return LowLatencyReader(options, columns)
