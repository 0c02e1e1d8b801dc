"""The execution of a task: it reads a range of offsets as Arrow batches for Spark.

It converts columns to those of Spark. Fetching and decoding are done by the bounded reader
(kafka/consumer/bounded/reader.py), connections come from clients.py.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Any, Dict, Generator, List, Optional, Sequence, Tuple

from kafka.consumer.bounded.fetcher import HINT
from kafka.consumer.bounded.ranges import OffsetRange
from kafka.consumer.bounded.reader import BoundedReader
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError, ProtocolError
from kafka.record.vectors import WITHOUT_TIMES, pyarrow
from kafka.spark import rows
from kafka.spark.client_options import java_names
from kafka.spark.clients import reader_client
from kafka.spark.options import SourceOptions
from kafka.spark.progress import DataLossError
from kafka.spark.ranges import TaskRange
from kafka.structs import TopicPartition

__all__ = ['as_rows', 'read_at_most', 'read_range']

log = logging.getLogger(__name__)

#: The approximate size of a batch. Spark passes batches on unchanged.
BATCH_BYTES = 2097152
#: The amount that a task fetches ahead from one partition.
MOST_BUFFERED = 33554432
#: How long a log may end before a requested range. Ranges consist of existing offsets, so the log
#: was truncated, unless a new leader does not know its high watermark yet.
CUT_OFF_AFTER_MS = 5000
_WITHOUT_TIMES = "request the other columns: .schema('key binary, value binary, offset bigint')"


def read_range(
    task: Optional[TaskRange], options: SourceOptions, columns: Sequence[str]
) -> Generator[Any, None, None]:
    """Yield the records of a range as pyarrow.RecordBatch, in their order.

    Arguments: task: None for nothing; columns: the requested ones, by the names of rows.COLUMNS.
    Raises: as BoundedReader; DataLossError if offsets are gone and failOnDataLoss is set.
    """
    if task is None or task.start >= task.stop:
        return
    what = OffsetRange(task.topic, task.partition, task.start, task.stop)
    with java_names(), reader_client(options.config) as client, BoundedReader(
        [what],
        fail_on_data_loss=options.fail_on_data_loss,
        start_may_move=task.start_may_move,
        cut_off_after_ms=min(CUT_OFF_AFTER_MS, options.poll_timeout_ms),
        timeout_ms=options.poll_timeout_ms,
        max_buffered_bytes=MOST_BUFFERED,
        client=client,
    ) as reader:
        batches = reader.arrow(
            rows.plain_names(columns), timestamp_unit='us', max_batch_bytes=BATCH_BYTES
        )
        try:
            for batch in batches:
                yield as_rows(batch, columns)
        except OffsetOutOfRangeError as error:
            text = str(error.args[0]).replace(HINT, '')
            raise DataLossError('COULD_NOT_READ_OFFSET_RANGE', text) from error
        except ProtocolError as error:
            if error.args and WITHOUT_TIMES in str(error.args[0]):
                error.args = (str(error.args[0]).replace(WITHOUT_TIMES, _WITHOUT_TIMES),)
            raise
        except KafkaTimeoutError as error:
            text = '%s (kafkaConsumer.pollTimeoutMs is %d)' % (
                error.args[0],
                options.poll_timeout_ms,
            )
            raise KafkaTimeoutError(text) from error
        for partition, gaps in reader.lost.items():
            for first, behind in gaps:
                log.warning(
                    'topic=%s partition=%d offsets %d to %d are gone and were skipped'
                    ' (failOnDataLoss is false)',
                    partition.topic,
                    partition.partition,
                    first,
                    behind - 1,
                )


def read_at_most(
    tasks: Sequence[TaskRange], options: SourceOptions, columns: Sequence[str], most_bytes: int
) -> Tuple[List[Any], Dict[TopicPartition, int]]:
    """Return Arrow batches of ranges, one after the other, and the offsets where reading stopped.

    Arguments: tasks: those of one partition in order; columns: as for read_range(); most_bytes:
    reading stops at this size, which is exceeded by one batch at most.
    Raises: as read_range().
    """
    names = tuple(columns) if 'offset' in columns else (*columns, 'offset')
    found: List[Any] = []
    left: Dict[TopicPartition, int] = {}
    size = 0
    for task in tasks:
        reached = task.start
        if size < most_bytes:
            with closing(read_range(task, options, names)) as batches:
                for batch in batches:
                    reached = batch.column(names.index('offset'))[-1].as_py() + 1
                    found.append(batch.select(list(columns)))
                    size += batch.nbytes
                    if size >= most_bytes:
                        break
                else:
                    reached = task.stop
        if reached < task.stop:
            left.setdefault(TopicPartition(task.topic, task.partition), reached)
    return found, left


def as_rows(batch: Any, columns: Sequence[str]) -> Any:
    """Return a batch with Spark's names, in which each record has a time.

    Records of brokers before 0.10 have none; they get -1 ms, as in Java's clients.
    """
    pa = pyarrow()
    arrays = list(batch.columns)
    for index, name in enumerate(columns):
        if name == 'timestamp' and arrays[index].null_count:
            arrays[index] = arrays[index].fill_null(pa.scalar(-1000, arrays[index].type))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
