"""What an executor does for a range: fetch it, and give it to Spark as Arrow batches.

Owns the columns as Spark wants them. Fetching and decoding are the bounded reader's
(kafka/consumer/reader.py), connections clients.py's.
"""

from __future__ import annotations

import logging
from typing import Any, Iterator, Optional, Sequence

from kafka.consumer.ranges import OffsetRange
from kafka.consumer.reader import BoundedReader
from kafka.record.vectors import pyarrow
from kafka.spark import rows
from kafka.spark.clients import reader_client
from kafka.spark.options import SourceOptions
from kafka.spark.ranges import TaskRange

__all__ = ['as_rows', 'read_range']

log = logging.getLogger(__name__)

#: About how large a batch gets. Spark passes batches on as they are.
BATCH_BYTES = 2097152
#: How much of one partition a task fetches ahead.
MOST_BUFFERED = 33554432


def read_range(
    task: Optional[TaskRange], options: SourceOptions, columns: Sequence[str]
) -> Iterator[Any]:
    """Yield the records of a range as pyarrow.RecordBatch, in their order.

    Arguments: task: None for nothing; columns: those wanted, by the names of rows.COLUMNS.
    Raises: as BoundedReader; OffsetOutOfRangeError when offsets are gone and failOnDataLoss is set.
    """
    if task is None or task.start >= task.stop:
        return
    what = OffsetRange(task.topic, task.partition, task.start, task.stop)
    with reader_client(options.config) as client, BoundedReader(
        [what],
        fail_on_data_loss=options.fail_on_data_loss,
        timeout_ms=options.poll_timeout_ms,
        max_buffered_bytes=MOST_BUFFERED,
        client=client,
    ) as reader:
        batches = reader.arrow(
            rows.plain_names(columns), timestamp_unit='us', max_batch_bytes=BATCH_BYTES
        )
        for batch in batches:
            yield as_rows(batch, columns)
        for partition, gaps in reader.lost.items():
            for first, behind in gaps:
                log.warning(
                    'topic=%s partition=%d offsets %d to %d are gone and were passed over'
                    ' (failOnDataLoss is false)',
                    partition.topic,
                    partition.partition,
                    first,
                    behind - 1,
                )


def as_rows(batch: Any, columns: Sequence[str]) -> Any:
    """Return a batch with Spark's names, where a record always has a time.

    Records of brokers before 0.10 have none; Java's clients say -1 ms of them, and so do the rows.
    """
    pa = pyarrow()
    arrays = list(batch.columns)
    for index, name in enumerate(columns):
        if name == 'timestamp' and arrays[index].null_count:
            arrays[index] = arrays[index].fill_null(pa.scalar(-1000, arrays[index].type))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
