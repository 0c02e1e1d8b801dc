"""The data source ``kafka-py`` of PySpark, and its batch readers.

PySpark asks it for the schema, and for a reader or writer. A batch is planned on the driver
(partitions()) and read on executors (read(); reading.py). Filters are handled by pushdown.py,
streams by stream.py, writers are in sink.py. All objects are pickled and hold no connections.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Sequence

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kafka.errors import InvalidOptionError, KafkaConfigurationError, UnsupportedVersionError
from kafka.spark import rows, sink, stream
from kafka.spark.lookups import Lookups
from kafka.spark.options import Limit, SinkOptions, SourceOptions
from kafka.spark.pushdown import Narrowing, narrow
from kafka.spark.ranges import TaskRange, split
from kafka.spark.reading import read_range
from kafka.spark.update_mode import BATCH_OPTION
from kafka.structs import TopicPartition

__all__ = ['KafkaDataSource']


class RangePartition(InputPartition):  # type: ignore[misc]
    """The partition of one task. Attributes: value: a TaskRange."""


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """Reads the records between two limits, once.

    Arguments: options: a SourceOptions; columns: those of the rows.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns

    def __repr__(self) -> str:
        return '<BatchReader of %s>' % (', '.join(self._columns))

    def partitions(self) -> List[InputPartition]:
        """Look up the limits, and split the offsets between them into tasks.

        Raises: as Lookups; KafkaConfigurationError if the end is before the start.
        """
        options = self._options
        lookups = Lookups(options)
        try:
            ranges = self._chosen(self._ranges(lookups), lookups)
        finally:
            lookups.close()
        tasks = split(ranges, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(task) for task in tasks]

    def _ranges(self, lookups: Lookups) -> List[TaskRange]:
        """Return the ranges between the limits, by partition."""
        options = self._options
        partitions = lookups.partitions()
        assert options.end is not None
        starts = lookups.starts(options.start, partitions)
        ends = lookups.ends(options.end, partitions)
        ranges = []
        for at in partitions:
            if starts[at] > ends[at]:
                raise KafkaConfigurationError(
                    'partition %d of topic %s would be read from offset %d to %d: the start'
                    ' (startingOffsets or similar) is after the end (endingOffsets or similar)'
                    % (at.partition, str(at.topic), starts[at], ends[at])
                )
            may_move = options.start.is_earliest(at)
            ranges.append(TaskRange(str(at.topic), at.partition, starts[at], ends[at], may_move))
        return ranges

    def _chosen(self, ranges: List[TaskRange], lookups: Lookups) -> List[TaskRange]:
        """Return the ranges to be read: all of them."""
        return ranges

    def read(self, partition: Optional[InputPartition]) -> Iterator[Any]:
        """Yield the Arrow batches of one task; none for the task of an empty query.

        That one has the partition None in PySpark 4.0, later a partition whose value is None.
        """
        task = None if partition is None else partition.value
        return read_range(task, self._options, self._columns)


class NarrowedReader(BatchReader):
    """Reads less where filters allow it (option pushdown; PySpark 4.1 and later).

    A separate class, because PySpark refuses a reader with pushFilters() if filter pushdown is
    disabled. Arguments as for BatchReader.
    """

    _narrowing = Narrowing()

    def __repr__(self) -> str:
        return '<NarrowedReader of %s, %r>' % (', '.join(self._columns), self._narrowing)

    def pushFilters(self, filters: List[Any]) -> List[Any]:
        """Store what remains to be read, and return the filters that Spark has to apply."""
        self._narrowing, rest = narrow(filters)
        return rest

    def _chosen(self, ranges: List[TaskRange], lookups: Lookups) -> List[TaskRange]:
        """Return the ranges that remain after filtering."""
        found = []
        for each in ranges:
            if self._narrowing.takes(each.topic, each.partition):
                start, stop = self._narrowing.cut(each.start, each.stop)
                if start < stop:
                    found.append(each._replace(start=start, stop=stop))
        since = self._narrowing.since_ms
        return found if since is None else _young(found, since, lookups)


class KafkaDataSource(DataSource):  # type: ignore[misc]
    """Reads and writes Kafka: ``spark.read.format('kafka-py')``."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format. Spark reserves ``kafka`` for the JVM connector."""
        return 'kafka-py'

    def schema(self) -> str:
        """Return the columns of the rows, those of the JVM connector.

        Spark calls it in load(), the only call before the start of a stream, so options are checked
        here. Raises: InvalidOptionError for options that no reader accepts.
        """
        SourceOptions.check(self.options)
        return rows.ddl(_has_headers(self.options))

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the batch reader. Raises KafkaConfigurationError."""
        options = SourceOptions.of(self.options, False)
        columns = rows.columns_of(schema, options.include_headers)
        if not options.pushdown:
            return BatchReader(options, columns)
        if not hasattr(DataSourceReader, 'pushFilters'):
            raise InvalidOptionError('pushdown=true needs PySpark 4.1 or later')
        return NarrowedReader(options, columns)

    def streamReader(self, schema: Any) -> Any:
        """Return the reader of a query.

        Raises: KafkaConfigurationError; with the option lowLatency PySparkNotImplementedError, upon
        which PySpark calls simpleStreamReader().
        """
        options = self._of_stream()
        if options.low_latency:
            raise PySparkNotImplementedError(
                errorClass='NOT_IMPLEMENTED', messageParameters={'feature': 'streamReader'}
            )
        return stream.stream_reader(options, rows.columns_of(schema, options.include_headers))

    def simpleStreamReader(self, schema: Any) -> Any:
        """Return the reader of a query with lowLatency. Raises KafkaConfigurationError."""
        options = self._of_stream()
        if options.max_offsets is None and not stream.TAKES_LIMITS:
            raise InvalidOptionError(
                'lowLatency=true needs maxOffsetsPerTrigger in PySpark 4.0 and 4.1, where a run'
                ' with'
                ' trigger(availableNow=True) is one batch of at most this number of offsets, and'
                ' the'
                ' next run continues; from 4.2 on a run reads all available records'
            )
        return stream.simple_reader(options, rows.columns_of(schema, options.include_headers))

    def _of_stream(self) -> SourceOptions:
        options = SourceOptions.of(self.options, True)
        if options.pushdown:
            raise InvalidOptionError(
                'pushdown=true is for batch queries: PySpark passes no filters to a stream'
            )
        return options

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Return the batch writer. Raises KafkaConfigurationError."""
        if overwrite:
            raise KafkaConfigurationError("topics can only be appended to: use mode('append')")
        options = SinkOptions.of(self.options, False)
        batch = next(
            (text for name, text in self.options.items() if name.lower() == BATCH_OPTION), None
        )
        if batch is None:
            return sink.batch_writer(options, schema)
        return sink.micro_batch_writer(options, schema, int(batch))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Return the writer of a query. Raises KafkaConfigurationError."""
        return sink.stream_writer(SinkOptions.of(self.options, True), schema)


def _young(ranges: List[TaskRange], since_ms: int, lookups: Lookups) -> List[TaskRange]:
    """Return ranges without the records before the first one at or after a time.

    A partition without such a record is skipped up to its end, which is looked up later: records
    that arrive in between must not be skipped, so no range begins after the end that was found
    first. Brokers before 0.10.1 have no lookup by time: there Spark alone filters the rows.
    """
    partitions = [TopicPartition(each.topic, each.partition) for each in ranges]
    ends = lookups.latest(partitions)
    limit = Limit('timestamp', timestamp=since_ms, is_lenient=True)
    try:
        firsts = lookups.starts(limit, partitions)
    except UnsupportedVersionError:
        return ranges
    found = []
    for at, each in zip(partitions, ranges):
        start = max(each.start, min(firsts[at], ends[at]))
        if start < each.stop:
            found.append(each._replace(start=start))
    return found


def _has_headers(options: Mapping[str, str]) -> bool:
    found: Optional[str] = next(
        (value for name, value in options.items() if name.lower() == 'includeheaders'), None
    )
    if found is None or found.lower() not in ('true', 'false'):
        return False  # other values are refused with the reader's options
    return found.lower() == 'true'
