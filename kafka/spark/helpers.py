"""Producing and consuming on the driver: records to a DataFrame, and a DataFrame to records.

Two functions without a data source, which therefore work on PySpark 3.5 as well. All records are
held in the memory of the driver: for small topics, tests and notebooks. Use the format ``kafka-py``
for larger ones.
"""

from __future__ import annotations

from typing import Any, Iterator, Optional

from kafka.consumer.bounded.ranges import Bound
from kafka.consumer.bounded.reader import BoundedReader
from kafka.record.vectors import pyarrow
from kafka.spark import rows
from kafka.spark.reading import as_rows
from kafka.spark.writing import SharedOutlet, layout_of, write_batches

__all__ = ['read_kafka', 'to_kafka']

#: The number of rows that are sent at a time.
_SLICE = 10000


def read_kafka(
    spark: Any,
    what: Any,
    start: Bound = 'earliest',
    stop: Bound = 'latest',
    *,
    include_headers: bool = False,
    **configs: Any,
) -> Any:
    """
    Return records as a DataFrame, with the columns of the JVM connector.

    Arguments: spark: a SparkSession; what, start, stop: what to read, as for BoundedReader, such as
    a topic; include_headers: whether to add the column headers; configs: options of KafkaConsumer,
    by their names in Python.
    Raises: as BoundedReader.
    """
    columns = (*rows.COLUMNS, rows.HEADERS) if include_headers else tuple(rows.COLUMNS)
    names = rows.plain_names(columns)
    with BoundedReader(what, start, stop, **configs) as reader:
        batches = reader.arrow(names, timestamp_unit='us')
        found = [as_rows(batch, columns) for batch in batches]
    if not found:
        return spark.createDataFrame([], rows.ddl(include_headers))
    table = pyarrow().Table.from_batches(found)
    return spark.createDataFrame(table if _takes_arrow(spark) else table.to_pandas())


def to_kafka(frame: Any, topic: Optional[str] = None, **configs: Any) -> int:
    """
    Write a DataFrame, and return how many rows are stored.

    Arguments: frame: with the columns of the format: value, and optionally key, topic, partition,
    headers; topic: of all rows, None if there is a column topic; configs: options of KafkaProducer,
    by their names in Python.
    The producer is kept for the next call with the same options, as in foreachBatch().
    Raises: KafkaConfigurationError for columns that are not supported; UnwritableRowError
    with the row's position; as KafkaProducer.
    """
    columns = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    layout = layout_of(columns, topic)
    return write_batches(_batches_of(frame), layout, SharedOutlet(configs))


def _batches_of(frame: Any) -> Iterator[Any]:
    if hasattr(frame, 'toArrow'):
        table = frame.toArrow()
    else:
        table = pyarrow().Table.from_pandas(frame.toPandas(), preserve_index=False)
    return iter(table.to_batches(max_chunksize=_SLICE))


def _takes_arrow(spark: Any) -> bool:
    return not str(spark.version).startswith('3.')
