"""
Writers of Spark: what the data source hands out when a DataFrame or a query is written.

Owns which class that is and what Spark calls on it. Columns are checked when a writer is made, on
the driver before the job; a task sends its rows by :mod:`kafka.spark.writing` and tells how many.
Writers travel as pickles and hold nothing that is connected; they show no options, which have
secrets.

What is stored is stored when the task ends, at least once: a task or batch that is tried again
writes its rows again. commit() and abort() are where transactions will end; they have nothing to do
so far, and exactlyOnce is refused.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Optional

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from kafka.errors import KafkaConfigurationError
from kafka.spark.options import SinkOptions
from kafka.spark.writing import Layout, layout_of, write_batches, write_rows

__all__ = ['BatchWriter', 'StoredRows', 'batch_writer', 'stream_writer']

# Tasks have many rows at once, for which the default of producers means more batches than need be:
# a third of the time for each row of 100 bytes. Who gives an option has what he gives.
_DEFAULTS = {'batch_size': 65536}
# From 4.1 on streams are written as Arrow, too.
_HAS_ARROW_STREAMS = hasattr(datasource, 'DataSourceStreamArrowWriter')
_ArrowBase: Any = getattr(datasource, 'DataSourceStreamArrowWriter', DataSourceStreamWriter)


class StoredRows(WriterCommitMessage):  # type: ignore[misc]
    """What a task tells the driver. Attributes: rows: how many it has stored."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return '<StoredRows %d>' % self.rows


class _Writing:
    """What all writers have. Arguments: config: options of KafkaProducer."""

    def __init__(self, layout: Layout, config: Mapping[str, Any]) -> None:
        self._layout = layout
        self._config: Dict[str, Any] = {**_DEFAULTS, **config}

    def __repr__(self) -> str:
        topic = self._layout.given_topic
        place = 'the topics that rows name' if topic is None else 'topic %s' % topic
        return '<%s to %s>' % (type(self).__name__, place)

    def _write_batches(self, batches: Iterable[Any]) -> StoredRows:
        return StoredRows(write_batches(batches, self._layout, self._config, _task()))

    def _write_rows(self, rows: Iterable[Any]) -> StoredRows:
        return StoredRows(write_rows(rows, self._layout, self._config, _task()))


class BatchWriter(_Writing, DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a DataFrame."""

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for one that cannot be."""
        return self._write_batches(iterator)


class StreamRowWriter(_Writing, DataSourceStreamWriter):  # type: ignore[misc]
    """Writes the batches of a query where Spark hands out rows, in 4.0."""

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for one that cannot be."""
        return self._write_rows(iterator)


class StreamArrowWriter(_Writing, _ArrowBase):  # type: ignore[misc]
    """Writes the batches of a query where Spark hands out Arrow, from 4.1 on."""

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for one that cannot be."""
        return self._write_batches(iterator)


def batch_writer(options: SinkOptions, schema: Any) -> BatchWriter:
    """
    Return what writes a DataFrame of a schema, a StructType.

    Raises: KafkaConfigurationError for columns that records cannot be made of, and for options that
    are not there yet.
    """
    return BatchWriter(*_plan(options, schema))


def stream_writer(options: SinkOptions, schema: Any) -> Any:
    """Return what writes the batches of a query; as batch_writer()."""
    writer = StreamArrowWriter if _HAS_ARROW_STREAMS else StreamRowWriter
    return writer(*_plan(options, schema))


def _plan(options: SinkOptions, schema: Any) -> Any:
    if options.exactly_once:
        raise KafkaConfigurationError(
            'exactlyOnce: writing exactly once is not there yet; without it rows are stored at'
            ' least once'
        )
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return layout_of(columns, options.topic), options.config


def _task() -> Optional[int]:
    """Return the number of the partition that this task writes, None outside of tasks."""
    context = TaskContext.get()
    return None if context is None else int(context.partitionId())
