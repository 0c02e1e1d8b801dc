"""Jobs of Spark over a Kafka topic, each told as an outcome that another connector's compares with.

Owns what is compared: rows as plain tuples in the order of (topic, partition, offset), the schema,
the batches of a stream, and what went wrong. A job never raises for what Spark raises: an error is
an outcome as well. Which connector runs it is said by the format. Knows no tests.
"""

from __future__ import annotations

import re
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from test.spark import topics

STREAM_SECONDS = 90
#: A stream of which nothing came for so long is at its end.
QUIET_SECONDS = 8

Row = Tuple[Any, ...]
Range = Tuple[str, int, int, int]  # topic, partition, first offset, the one after the last


class Failure(NamedTuple):
    """An error: its class in Python, its condition, the classes of Java, and its text."""

    name: str
    condition: Optional[str]
    java: Tuple[str, ...]
    text: str


class Outcome(NamedTuple):
    """What a job brought: the schema as JSON, its rows or, for a stream, those of each batch."""

    schema: Optional[str] = None
    rows: Tuple[Row, ...] = ()
    batches: Tuple[Tuple[Row, ...], ...] = ()
    ranges: Tuple[Range, ...] = ()
    failure: Optional[Failure] = None


def read(spark: Any, connector: str, options: Mapping[str, str]) -> Outcome:
    """Read topics in a batch: the schema and the rows."""
    try:
        frame = spark.read.format(connector).options(**options).load()
        schema = frame.schema.json()
        return Outcome(schema, rows=in_order(frame))
    except Exception as error:  # whatever it is, it is what is compared
        return Outcome(failure=failure(error))


def tasks(spark: Any, connector: str, options: Mapping[str, str]) -> Outcome:
    """Read topics in a batch and tell the range of each task that had records."""
    from pyspark.sql.functions import spark_partition_id  # late: only jobs need PySpark

    try:
        frame = spark.read.format(connector).options(**options).load()
        columns = [spark_partition_id(), 'topic', 'partition', 'offset']
        found: Dict[int, List[Tuple[str, int, int]]] = {}
        for task, *place in frame.select(*columns).collect():
            found.setdefault(task, []).append(tuple(place))
        ranges = [(*min(each), max(each)[2] + 1) for each in found.values()]
        return Outcome(ranges=tuple(sorted(ranges)))
    except Exception as error:
        return Outcome(failure=failure(error))


def executors(spark: Any) -> int:
    """Return how many processes run tasks, the driver's not counted. Of classic sessions."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def write(
    spark: Any,
    connector: str,
    query: str,
    options: Mapping[str, str],
    mode: Optional[str] = 'append',
) -> Outcome:
    """Write what a query of SQL brings."""
    try:
        writer = spark.sql(query).write.format(connector).options(**options)
        (writer if mode is None else writer.mode(mode)).save()
        return Outcome()
    except Exception as error:
        return Outcome(failure=failure(error))


def stream(
    spark: Any,
    connector: str,
    options: Mapping[str, str],
    checkpoint: str,
    trigger: Optional[Mapping[str, Any]] = None,
) -> Outcome:
    """Read topics in a stream until there is no more: the schema, and the rows of each batch."""
    batches: List[Tuple[Row, ...]] = []

    def take(frame: Any, _: int) -> None:
        batches.append(in_order(frame))

    try:
        frame = spark.readStream.format(connector).options(**options).load()
        _run(frame.writeStream.foreachBatch(take), checkpoint, trigger)
        return Outcome(frame.schema.json(), batches=tuple(batches))
    except Exception as error:
        return Outcome(batches=tuple(batches), failure=failure(error))


def pipe(
    spark: Any,
    source: str,
    source_options: Mapping[str, str],
    columns: Sequence[str],
    sink: str,
    sink_options: Mapping[str, str],
    checkpoint: str,
) -> Outcome:
    """Read topics in a stream by one connector and write them by another, until the end."""
    try:
        frame = spark.readStream.format(source).options(**source_options).load()
        writer = frame.selectExpr(*columns).writeStream.format(sink).options(**sink_options)
        _run(writer, checkpoint, None)
        return Outcome()
    except Exception as error:
        return Outcome(failure=failure(error))


def changing(
    spark: Any,
    connector: str,
    options: Mapping[str, str],
    checkpoint: str,
    count: int,
    change: Tuple[str, str, str],
    error: Optional[str],
) -> Outcome:
    """Read a stream; change its topic once so many rows have come, without a stop; read the rest.

    Arguments: change: what topics.change() takes; error: what it is to fail with; without one the
    stream is read until nothing has come for some time.
    """
    batches: List[Tuple[Row, ...]] = []
    read: List[float] = []  # when

    def take(frame: Any, _: int) -> None:
        batches.append(in_order(frame))
        read.append(time.monotonic())

    try:
        frame = spark.readStream.format(connector).options(**options).load()
        writer = frame.writeStream.foreachBatch(take).option('checkpointLocation', checkpoint)
        query = writer.trigger(processingTime='0 seconds').start()
        try:
            _await(query, lambda: sum(map(len, batches)) >= count)
            topics.change(*change)
            read.append(time.monotonic())
            quiet = STREAM_SECONDS if error else QUIET_SECONDS
            _await(query, lambda: time.monotonic() - read[-1] > quiet)
        finally:
            query.stop()
        return Outcome(frame.schema.json(), batches=tuple(batches))
    except Exception as failed:
        return Outcome(batches=tuple(batches), failure=failure(failed))


def _await(query: Any, is_over: Callable[[], bool]) -> None:
    """Wait for something while a query runs; raises what that fails with."""
    end = time.monotonic() + STREAM_SECONDS
    while not is_over():
        if query.awaitTermination(1):
            raise RuntimeError('the stream has ended')
        if time.monotonic() > end:
            raise TimeoutError('nothing comes after %d s' % STREAM_SECONDS)


def _run(writer: Any, checkpoint: str, trigger: Optional[Mapping[str, Any]]) -> None:
    writer = writer.option('checkpointLocation', checkpoint)
    query = writer.trigger(**(trigger or {'availableNow': True})).start()
    try:
        if not query.awaitTermination(STREAM_SECONDS):
            raise TimeoutError('the stream goes on after %d s' % STREAM_SECONDS)
    finally:
        query.stop()


def in_order(frame: Any) -> Tuple[Row, ...]:
    """Return the rows of a frame as tuples, in the order of their places."""
    rows = [tuple(map(plain, row)) for row in frame.collect()]
    names = frame.columns
    place = [names.index(each) for each in ('topic', 'partition', 'offset') if each in names]
    return tuple(sorted(rows, key=lambda row: [row[index] for index in place] or repr(row)))


def plain(value: Any) -> Any:
    """Return a value of a row without the types of PySpark: bytes, tuples, and what there is."""
    if isinstance(value, bytearray):  # 4.0
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    return value


def failure(error: BaseException) -> Failure:
    """Describe an error of Spark; Java's stack is no part of the text."""
    condition = getattr(error, 'getCondition', lambda: None)()
    text = re.split(r'\n\s*(?:JVM stacktrace|at [\w.$/]+\()', str(error))[0]
    causes = list(
        _causes(getattr(error, '_origin', None) or getattr(error, 'java_exception', None))
    )
    names = tuple(name for name, _ in causes)
    texts = [text, *(said for _, said in causes if said not in text)]
    return Failure(type(error).__name__, condition, names, '\n'.join(texts))


def _causes(origin: Any) -> Any:
    while origin is not None:
        said = str(origin.getMessage()).split('\nDriver stacktrace')[0]
        yield origin.getClass().getName(), said
        origin = origin.getCause()
