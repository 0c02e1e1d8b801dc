"""
Spark's writers for DataFrames and streaming queries.

PySpark calls their methods. Columns are checked when a writer is created, on the driver before the
job; a task sends its rows by :mod:`kafka.spark.writing` and reports their number. Writers are
pickled and hold no connections; their repr shows no options, which may be secrets.

Rows are stored at least once: a task or batch that is retried writes its rows again. With
exactlyOnce tasks prepare transactions, which the driver ends in commit() and abort():
:mod:`kafka.spark.exactly_once`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from kafka.errors import IllegalStateError
from kafka.spark import exactly_once
from kafka.spark.client_options import java_names
from kafka.spark.options import SinkOptions
from kafka.spark.writing import RowLayout, SharedOutlet, layout_of, write_batches, write_rows

__all__ = ['BatchWriter', 'StoredRows', 'batch_writer', 'micro_batch_writer', 'stream_writer']

# A task has many rows at a time, so the default of producers would make needlessly many batches: 64
# KiB halve the time per row of 1000 bytes. For a broker with a smaller limit batches are split. An
# option of the program takes precedence.
_DEFAULTS = {'batch_size': 262144}
# The default of transactionalIdPrefix.
_PREFIX = 'spark-kafka-sink'
# From 4.1 on streams can be written as Arrow, too.
_HAS_ARROW_STREAMS = hasattr(datasource, 'DataSourceStreamArrowWriter')
_ArrowBase: Any = getattr(datasource, 'DataSourceStreamArrowWriter', DataSourceStreamWriter)


class StoredRows(WriterCommitMessage):  # type: ignore[misc]
    """The message of a task to the driver.

    Attributes: rows: the number of stored rows; told: what the driver needs for exactlyOnce, None
    without it.
    """

    def __init__(self, rows: int, told: Optional[exactly_once.Told] = None) -> None:
        self.rows = rows
        self.told = told

    def __repr__(self) -> str:
        return '<StoredRows %d>' % self.rows


class _Writing:
    """The part that all writers share.

    Arguments: config: options of KafkaProducer; prefix: of transactional ids, None if rows are
    stored at least once; base: the prefix of the transactional ids of one DataFrame's write.
    """

    def __init__(
        self,
        layout: RowLayout,
        config: Mapping[str, Any],
        prefix: Optional[str] = None,
        base: Optional[str] = None,
    ) -> None:
        self._layout = layout
        self._config: Dict[str, Any] = {**_DEFAULTS, **config}
        self._prefix = prefix
        self._base = base
        if prefix is not None:
            self._config.setdefault('transaction_timeout_ms', exactly_once.TIMEOUT_MS)

    def __repr__(self) -> str:
        topic = self._layout.given_topic
        place = 'the topics that rows name' if topic is None else 'topic %s' % topic
        return '<%s to %s>' % (type(self).__name__, place)

    def _store(self, write: Callable[..., int], rows: Iterable[Any]) -> StoredRows:
        """Store the rows of a task; with exactlyOnce only prepare its transaction."""
        with java_names():
            return self._stored(write, rows)

    def _stored(self, write: Callable[..., int], rows: Iterable[Any]) -> StoredRows:
        if self._prefix is None:
            return StoredRows(write(rows, self._layout, SharedOutlet(self._config), _task()))
        place = _place(self._base, self._prefix)
        settled = exactly_once.settle(place, self._config)
        outlet = exactly_once.TransactionOutlet(place, settled, self._config)
        stored = 0
        if settled.is_wanted:
            stored = write(rows, self._layout, outlet, place.partition)
        else:
            deque(rows, maxlen=0)  # Spark would replace the worker if rows were left
        return StoredRows(stored, outlet.told())

    def _commit(self, messages: Sequence[StoredRows], batch: Optional[int]) -> None:
        if self._prefix is not None:
            told = [each.told for each in messages if each.told is not None]
            with java_names():
                exactly_once.commit(told, batch, self._config)

    def _abort(self, messages: Sequence[Optional[StoredRows]], batch: Optional[int]) -> None:
        if self._prefix is not None:
            told = [None if each is None else each.told for each in messages]
            topic = self._layout.given_topic
            exactly_once.abort(told, batch, self._base, self._config, topic)


class BatchWriter(_Writing, DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a DataFrame.

    Attributes: micro_batch: inside foreachBatch the number of the micro-batch that the DataFrame
    is; otherwise None.
    """

    micro_batch: Optional[int] = None

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for a row that cannot be stored."""
        return self._store(write_batches, iterator)

    def commit(self, messages: Sequence[StoredRows]) -> None:
        """Commit the prepared transactions of tasks, with exactlyOnce."""
        self._commit(messages, self.micro_batch)

    def abort(self, messages: Sequence[Optional[StoredRows]]) -> None:
        """Abort the prepared transactions of tasks, with exactlyOnce."""
        self._abort(messages, self.micro_batch)


class _StreamWriting(_Writing):
    """The part that writers of queries share."""

    def commit(self, messages: Sequence[StoredRows], batchId: int) -> None:
        """Decide and commit a batch by the prepared transactions of tasks, with exactlyOnce."""
        self._commit(messages, batchId)

    def abort(self, messages: Sequence[Optional[StoredRows]], batchId: int) -> None:
        """Abort the prepared transactions of a batch, with exactlyOnce."""
        self._abort(messages, batchId)


class StreamRowWriter(_StreamWriting, DataSourceStreamWriter):  # type: ignore[misc]
    """Writes the batches of a query from rows, as Spark 4.0 passes them."""

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for a row that cannot be stored."""
        return self._store(write_rows, iterator)


class StreamArrowWriter(_StreamWriting, _ArrowBase):  # type: ignore[misc]
    """Writes the batches of a query from Arrow batches, as Spark passes them from 4.1 on."""

    def write(self, iterator: Iterable[Any]) -> StoredRows:
        """Store the rows of a task. Raises: UnwritableRowError for a row that cannot be stored."""
        return self._store(write_batches, iterator)


def batch_writer(options: SinkOptions, schema: Any) -> BatchWriter:
    """
    Return the writer for a DataFrame with a schema, a StructType.

    Raises: KafkaConfigurationError for columns that are not supported.
    """
    prefix = _prefix(options)
    base = None if prefix is None else exactly_once.write_base(prefix)
    return BatchWriter(_layout(options, schema), options.config, prefix, base)


def micro_batch_writer(options: SinkOptions, schema: Any, batch: int) -> BatchWriter:
    """Return the writer for a micro-batch of a query as a DataFrame (output mode update).

    With exactlyOnce its tasks belong to the query instead of a write of their own, so that a
    repeated batch is recognised. As batch_writer().
    """
    writer = BatchWriter(_layout(options, schema), options.config, _prefix(options))
    writer.micro_batch = batch
    return writer


def stream_writer(options: SinkOptions, schema: Any) -> Any:
    """Return the writer for the batches of a query; as batch_writer()."""
    writer = StreamArrowWriter if _HAS_ARROW_STREAMS else StreamRowWriter
    return writer(_layout(options, schema), options.config, _prefix(options))


def _layout(options: SinkOptions, schema: Any) -> RowLayout:
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return layout_of(columns, options.topic)


def _prefix(options: SinkOptions) -> Optional[str]:
    """Return the prefix of transactional ids, None without exactlyOnce."""
    return (options.transactional_id_prefix or _PREFIX) if options.exactly_once else None


def _task() -> Optional[int]:
    """Return the number of the partition that this task writes, None outside of tasks."""
    context = TaskContext.get()
    return None if context is None else int(context.partitionId())


def _place(base: Optional[str], prefix: str) -> exactly_once.Place:
    """Return the place of the running task in its query or write.

    Arguments: base: of the write of a DataFrame, None for a query.
    Raises: IllegalStateError outside of tasks, and if Spark does not provide the query and batch.
    """
    context = TaskContext.get()
    if context is None:
        raise IllegalStateError('exactlyOnce: rows can only be written by tasks of Spark')
    batch = None
    if base is None:
        query = context.getLocalProperty('sql.streaming.queryId')
        number = context.getLocalProperty('streaming.sql.batchId')
        if not query or number is None:
            raise IllegalStateError(
                'exactlyOnce: Spark does not provide the ids of query and batch'
            )
        base, batch = '%s-%s' % (prefix, query), int(number)
    return exactly_once.Place(base, batch, int(context.partitionId()), int(context.attemptNumber()))
