"""The data source ``kafka-py`` of PySpark, and its batch readers.

Owns what Spark asks for first: the name, the schema, and which reader or writer serves. Reading is
planned here on the driver (partitions()) and done on executors (read(); reading.py). What filters
leave to be read is pushdown.py's. Streams are in stream.py, writers in sink.py. Everything here
travels as a pickle: nothing in it is connected.
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
            ranges = self._chosen(self._ranges(lookups), lookups)
        finally:
            lookups.close()
        tasks = split(ranges, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(task) for task in tasks]

    def _ranges(self, lookups: Lookups) -> List[TaskRange]:
        """Return what lies between the limits, of each partition."""
        options = self._options
        partitions = lookups.partitions()
        assert options.end is not None
        starts = lookups.starts(options.start, partitions)
        ends = lookups.ends(options.end, partitions)
        ranges = []
        for at in partitions:
            if starts[at] > ends[at]:
                raise KafkaConfigurationError(
                    'partition %d of topic %s would be read from offset %d up to %d: the start'
                    ' (startingOffsets and its kin) is behind the end (endingOffsets and its kin)'
                    % (at.partition, str(at.topic), starts[at], ends[at])
                )
            may_move = options.start.is_earliest(at)
            ranges.append(TaskRange(str(at.topic), at.partition, starts[at], ends[at], may_move))
        return ranges

    def _chosen(self, ranges: List[TaskRange], lookups: Lookups) -> List[TaskRange]:
        """Return what is to be read of that: all."""
        return ranges

    def read(self, partition: Optional[InputPartition]) -> Iterator[Any]:
        """Yield the Arrow batches of one task, none for PySpark's task where there are none.

        PySpark 4.0 reads a partition None then, later ones one whose value is None.
        """
        task = None if partition is None else partition.value
        return read_range(task, self._options, self._columns)


class NarrowedReader(BatchReader):
    """Reads less where filters allow it (option pushdown; PySpark 4.1 and later).

    A class of its own: where filters are not pushed down PySpark refuses a reader that takes them.
    Arguments as BatchReader's.
    """

    _narrowing = Narrowing()

    def __repr__(self) -> str:
        return '<NarrowedReader of %s, %r>' % (', '.join(self._columns), self._narrowing)

    def pushFilters(self, filters: List[Any]) -> List[Any]:
        """Note what is to be read, and return the filters that Spark has to apply."""
        self._narrowing, rest = narrow(filters)
        return rest

    def _chosen(self, ranges: List[TaskRange], lookups: Lookups) -> List[TaskRange]:
        """Return what is left of ranges by the filters."""
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
        """Return the format that programs name. ``kafka`` itself Spark keeps for the JVM."""
        return 'kafka-py'

    def schema(self) -> str:
        """Return the columns of the rows, those of the JVM connector.

        Spark asks in load(), and only there knows of a stream that options are wrong before it is
        started. Raises: InvalidOptionError for what no reader takes.
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
            raise InvalidOptionError(
                'pushdown=true needs PySpark 4.1 or later: this has no filters'
            )
        return NarrowedReader(options, columns)

    def streamReader(self, schema: Any) -> Any:
        """Return the reader of a query.

        Raises: KafkaConfigurationError; PySparkNotImplementedError with the option lowLatency:
        PySpark then asks for simpleStreamReader().
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
                'lowLatency=true needs maxOffsetsPerTrigger in PySpark 4.0 and 4.1: a run with'
                ' trigger(availableNow=True) is one batch there, of at most so many offsets, and'
                ' the next run goes on; from 4.2 on a run reads all there is'
            )
        return stream.simple_reader(options, rows.columns_of(schema, options.include_headers))

    def _of_stream(self) -> SourceOptions:
        options = SourceOptions.of(self.options, True)
        if options.pushdown:
            raise InvalidOptionError(
                'pushdown=true is for batch queries: PySpark gives a stream no filters'
            )
        return options

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Return the batch writer. Raises KafkaConfigurationError."""
        if overwrite:
            raise KafkaConfigurationError("topics are appended to: write mode('append')")
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
    """Return ranges without what is before the first record as young as a time.

    A partition without one is at its end, which is looked up later than that is found: what comes
    in between is not to be passed over, so no range begins behind the end that was before. Brokers
    before 0.10.1 know no times: Spark finds the rows alone.
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
        return False  # what else was given is refused with the reader's options
    return found.lower() == 'true'
