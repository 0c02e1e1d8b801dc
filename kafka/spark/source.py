"""The data source ``kafka-py`` of PySpark, and its batch reader.

Owns what Spark asks for first: the name, the schema, and which reader or writer serves. Reading is
planned here on the driver (partitions()) and done on executors (read(); reading.py). Streams are in
stream.py, writers in sink.py. Everything here travels as a pickle: nothing in it is connected.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Sequence

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kafka.errors import KafkaConfigurationError
from kafka.spark import rows, sink, stream
from kafka.spark.lookups import Lookups
from kafka.spark.options import SinkOptions, SourceOptions
from kafka.spark.ranges import TaskRange, split
from kafka.spark.reading import read_range

__all__ = ['KafkaDataSource']


class RangePartition(InputPartition):  # type: ignore[misc]
    """What one task reads. Attributes: value: a TaskRange."""


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """Reads what there is between two limits, once.

    Arguments: options: a SourceOptions; columns: those of the rows.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns

    def __repr__(self) -> str:
        return '<BatchReader of %s>' % (', '.join(self._columns))

    def partitions(self) -> List[InputPartition]:
        """Look the limits up, and cut what lies between them into tasks.

        Raises: as Lookups; KafkaConfigurationError where reading would end before it begins.
        """
        options = self._options
        lookups = Lookups(options)
        try:
            partitions = lookups.partitions()
            assert options.end is not None
            starts = lookups.starts(options.start, partitions)
            ends = lookups.ends(options.end, partitions)
        finally:
            lookups.close()
        ranges = []
        for at in partitions:
            if starts[at] > ends[at]:
                raise KafkaConfigurationError(
                    'partition %d of topic %s would be read from offset %d up to %d: the start'
                    ' (startingOffsets and its kin) is behind the end (endingOffsets and its kin)'
                    % (at.partition, str(at.topic), starts[at], ends[at])
                )
            ranges.append(TaskRange(str(at.topic), at.partition, starts[at], ends[at]))
        tasks = split(ranges, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(task) for task in tasks]

    def read(self, partition: Optional[InputPartition]) -> Iterator[Any]:
        """Yield the Arrow batches of one task, none for PySpark's task where there are none.

        PySpark 4.0 reads a partition None then, later ones one whose value is None.
        """
        task = None if partition is None else partition.value
        return read_range(task, self._options, self._columns)


class KafkaDataSource(DataSource):  # type: ignore[misc]
    """Reads and writes Kafka: ``spark.read.format('kafka-py')``."""

    @classmethod
    def name(cls) -> str:
        """Return the format that programs name. ``kafka`` itself Spark keeps for the JVM."""
        return 'kafka-py'

    def schema(self) -> str:
        """Return the columns of the rows, those of the JVM connector."""
        return rows.ddl(_has_headers(self.options))

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the batch reader. Raises KafkaConfigurationError."""
        options = SourceOptions.of(self.options, False)
        return BatchReader(options, rows.columns_of(schema, options.include_headers))

    def streamReader(self, schema: Any) -> Any:
        """Return the reader of a query. Raises KafkaConfigurationError."""
        options = SourceOptions.of(self.options, True)
        return stream.stream_reader(options, rows.columns_of(schema, options.include_headers))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Return the batch writer. Raises KafkaConfigurationError."""
        if overwrite:
            raise KafkaConfigurationError("topics are appended to: write mode('append')")
        return sink.batch_writer(SinkOptions.of(self.options, False), schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Return the writer of a query. Raises KafkaConfigurationError."""
        return sink.stream_writer(SinkOptions.of(self.options, True), schema)


def _has_headers(options: Mapping[str, str]) -> bool:
    found: Optional[str] = next(
        (value for name, value in options.items() if name.lower() == 'includeheaders'), None
    )
    if found is None or found.lower() not in ('true', 'false'):
        return False  # what else was given is refused with the reader's options
    return found.lower() == 'true'
