"""
The execution of a task of the sink: rows of Spark are stored as records of Kafka.

It finds the columns (layout_of, on the driver as well), reads Arrow batches and rows of Spark, and
reports rows that cannot be stored. Records are built and sent by :mod:`kafka.producer.arrow_rows`,
or :mod:`kafka.producer.rows` for other input; :mod:`kafka.spark.sink` plans and commits.

Columns, types and checks are those of the JVM connector: columns are found by name, others are
ignored; headers are written whenever there is a column headers. Rows of a task for the same
partition keep their order. Slices of some thousand rows are sent at a time, so that the cost per
row is that of the producer. Results are checked after each slice: the first record that failed ends
the task.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from itertools import accumulate, islice
from operator import itemgetter
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from kafka.errors import IllegalStateError, KafkaConfigurationError, KafkaError
from kafka.producer import KafkaProducer
from kafka.producer.arrow_rows import ArrowRows, send_arrow_rows
from kafka.producer.future import FutureRecords
from kafka.producer.rows import RowRefusedError, Rows, send_rows
from kafka.record.vector_encoder import as_binary
from kafka.record.vectors import has_numpy, pyarrow
from kafka.spark import clients
from kafka.spark.client_options import in_java

__all__ = [
    'RowLayout',
    'SharedOutlet',
    'UnwritableRowError',
    'layout_of',
    'write_batches',
    'write_rows',
]

_TEXT, _BYTES = 'string', 'binary'
_HEADERS = 'array<struct<key:string,value:binary>>'
_TYPES = {
    'topic': (_TEXT,),
    'key': (_TEXT, _BYTES),
    'value': (_TEXT, _BYTES),
    'headers': (_HEADERS,),
    'partition': ('int',),
}
#: The maximum number of rows sent at a time; fewer if they are large.
_MOST_ROWS = 10000
_MOST_BYTES = 4 << 20


class UnwritableRowError(KafkaError):
    """A row of a task was not stored, so the task fails; the message names the row and the
    reason."""


class NullTopicError(UnwritableRowError, IllegalStateError):
    """A row has no topic, and the option topic is not set."""


class RowLayout(NamedTuple):
    """The indices of a record's fields in a row of Spark; None: no record has the field.

    ``given_topic`` is the topic of all rows, from the option; None if there is a column topic.
    """

    value: int
    key: Optional[int] = None
    headers: Optional[int] = None
    partition: Optional[int] = None
    topic: Optional[int] = None
    given_topic: Optional[str] = None


def layout_of(columns: Sequence[Tuple[str, str]], topic: Optional[str]) -> RowLayout:
    """
    Find the fields of a record among columns.

    Arguments: columns: (name, type), in Spark's notation; topic: the option, None if not set.
    Raises: KafkaConfigurationError for a column that is missing, repeated, or of another type.
    """
    at = {name: index for index, (name, _) in enumerate(columns)}
    for index, (name, _) in enumerate(columns):
        if at[name] != index:
            raise KafkaConfigurationError(
                "there are two columns '%s', which Spark does not pass to Python: drop one" % name
            )
    if topic is not None:
        at.pop('topic', None)
    elif 'topic' not in at:
        raise KafkaConfigurationError(
            "the topic to write to is missing: set the option topic, or add a column 'topic' of"
            ' type'
            ' string (columns: %s)' % _names(columns)
        )
    if 'value' not in at:
        raise KafkaConfigurationError(
            "the column 'value', of type string or binary, is missing (columns: %s)"
            % _names(columns)
        )
    for name, allowed in _TYPES.items():
        if name in at:
            found = columns[at[name]][1]
            if found.lower() not in allowed:  # the names of fields are compared without case
                raise KafkaConfigurationError(
                    "the column '%s' has the type %s; it must be %s"
                    % (name, found, ' or '.join(allowed))
                )
    return RowLayout(**{name: at[name] for name in _TYPES if name in at}, given_topic=topic)


def _names(columns: Sequence[Tuple[str, str]]) -> str:
    return ', '.join(name for name, _ in columns) or 'none'


def write_batches(
    batches: Iterable[Any], layout: RowLayout, outlet: Any, task: Optional[int] = None
) -> int:
    """
    Send the Arrow batches of a task and wait until they are stored; return the number of rows.

    Arguments: outlet: a SharedOutlet or a TransactionOutlet; task: the number of its partition, for
    messages of errors.
    Raises: UnwritableRowError; errors of a producer that cannot be created.
    """
    with _Task(layout, outlet, task) as writes:
        for batch in batches:
            rows = batch.num_rows
            most = max(1, min(_MOST_ROWS, rows * _MOST_BYTES // max(1, batch.nbytes)))
            for start in range(0, rows, most):
                writes.put_arrow(batch.slice(start, most), layout)
    return writes.rows


def write_rows(
    rows: Iterable[Sequence[Any]],
    layout: RowLayout,
    outlet: Any,
    task: Optional[int] = None,
) -> int:
    """
    Send the rows of a task, tuples, and wait until they are stored; return their number.

    For versions of Spark without Arrow here. Arguments and errors: as write_batches().
    """
    left = iter(rows)
    with _Task(layout, outlet, task) as writes:
        while True:
            some = list(islice(left, _MOST_ROWS))
            if not some:
                break
            writes.put(*_of_rows(some, layout))
    return writes.rows


#: How long a task waits for results after flush(), which normally waits for all of them.
_SECONDS_TO_END = 30.0


class SharedOutlet:
    """The producer that all tasks of the process share; records are stored at least once.

    Arguments: config: options of KafkaProducer.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._loan: Optional[clients.ProducerLoan] = None

    def producer(self, topic: str) -> KafkaProducer:
        """Return the producer, which is the same for all topics.

        Raises: errors of a producer that cannot be created.
        """
        if self._loan is None:
            self._loan = clients.producer(self._config)
        return self._loan.producer

    def finish(self) -> None:
        """Return the producer to the cache; call it when all rows are stored."""
        loan, self._loan = self._loan, None
        if loan is not None:
            loan.give_back()

    def give_up(self) -> None:
        """Return the producer to the cache after a failure; the pending rows will be written
        again."""
        loan, self._loan = self._loan, None
        if loan is not None:
            loan.give_up()


class _Task:
    """The rows that a task has sent, and their results. Attributes: rows: how many were sent.

    As a context manager: after a block without error all rows are stored; after an error no row of
    the task is waiting any more, so that a second attempt does not queue after it.
    """

    def __init__(self, layout: RowLayout, outlet: Any, task: Optional[int]) -> None:
        self._topic = layout.given_topic
        # Rows without a key may come between rows with one, and must keep their order relative to
        # those for the same partition, as in the JVM connector.
        self._is_mixed = layout.key is not None or layout.partition is not None
        self._outlet = outlet
        self._task = task
        self._producer: Optional[KafkaProducer] = None
        # Rows without a result: row numbers in the order of the task, and the records. Their size
        # is limited by buffer_memory.
        self._waiting: Deque[Tuple[str, Sequence[int], FutureRecords]] = deque()
        self.rows = 0

    def __enter__(self) -> _Task:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        is_stored = False
        try:
            if error is None:
                if self._producer is not None:
                    self._producer.flush()
                    self._finish()
                self._outlet.finish()
                is_stored = True
        finally:
            if not is_stored:
                self._outlet.give_up()

    def put_arrow(self, batch: Any, layout: RowLayout) -> None:
        """Send the rows of an Arrow batch. Raises: UnwritableRowError."""
        columns = batch.columns
        self._check_texts(columns, layout)
        topic = self._topic
        if layout.topic is not None:
            topic = _only_topic(columns[layout.topic])
        if topic is not None and batch.num_rows:
            rows = _arrow_rows(columns, layout)
            places = range(self.rows, self.rows + batch.num_rows)
            if self._send(
                topic, functools.partial(self._send_arrow, topic=topic, rows=rows), places
            ):
                self._sent(batch.num_rows)
                return
        self.put(*_of_arrow(columns, layout))

    def put(self, rows: Rows, topics: Optional[Sequence[Optional[str]]]) -> None:
        """Send some rows, to the topics that they name. Raises: UnwritableRowError."""
        count = len(rows.values)
        numbers = range(self.rows, self.rows + count)
        if topics is not None and None in topics:
            self._refuse_null(numbers[topics.index(None)])
        if rows.headers is not None and None in rows.headers:
            self._refuse_header(numbers[rows.headers.index(None)])
        for topic, wanted in _by_topic(topics or [self._topic or ''] * min(count, 1)):
            some = rows
            places: Sequence[int] = numbers
            if wanted is not None:
                some = Rows._make(column and _picked(column, wanted) for column in rows)
                places = [numbers[each] for each in wanted]
            self._send(topic, functools.partial(self._send_rows, topic=topic, rows=some), places)
        self._sent(count)

    def _send_arrow(
        self, producer: KafkaProducer, topic: str, rows: ArrowRows
    ) -> Optional[FutureRecords]:
        if self._is_mixed and rows.keys is None and rows.partitions is None:
            place = _some_partition(producer, topic)
            ones = pyarrow().array([place] * len(rows.values), pyarrow().int32())
            rows = rows._replace(partitions=ones)
        return send_arrow_rows(producer, topic, rows)

    def _send_rows(self, producer: KafkaProducer, topic: str, rows: Rows) -> FutureRecords:
        if self._is_mixed:
            nothing = [None] * len(rows.values)
            pairs = list(zip(rows.keys or nothing, rows.partitions or nothing))
            if (None, None) in pairs:
                place = _some_partition(producer, topic)
                chosen = [place if each == (None, None) else each[1] for each in pairs]
                rows = rows._replace(partitions=chosen)
        return send_rows(producer, topic, rows)

    def _sent(self, count: int) -> None:
        self.rows += count
        self._look()

    def _send(
        self,
        topic: str,
        send: Callable[[KafkaProducer], Optional[FutureRecords]],
        places: Sequence[int],
    ) -> bool:
        """Send rows of a topic; return False if this way of sending does not support them."""
        self._producer = self._outlet.producer(topic)
        try:
            records = send(self._producer)
        except RowRefusedError as error:
            raise self._error(places[error.index], topic, error.reason) from error.reason
        except (KafkaError, ValueError, TypeError) as error:
            raise self._error(places[0], topic, error) from error
        if records is not None:
            self._waiting.append((topic, places, records))
        return records is not None

    def _look(self) -> None:
        """Remove stored rows. Raises: UnwritableRowError for a row that failed."""
        waiting = self._waiting
        while waiting and waiting[0][2].is_done:
            topic, places, records = waiting.popleft()
            failure = records.failure()
            if failure is not None:
                number, error = failure
                raise self._error(places[number], topic, error) from error

    def _finish(self) -> None:
        """Wait for rows after flush(), which returns early if the producer is closed meanwhile.

        Raises: UnwritableRowError for a row that failed.
        """
        self._look()
        while self._waiting:
            topic, places, records = self._waiting[0]
            try:
                records.get(_SECONDS_TO_END)
            except KafkaError as error:
                if not records.is_done:
                    raise self._error(places[0], topic, error) from error
            self._look()

    def _error(self, row: int, topic: str, error: Exception) -> UnwritableRowError:
        text = str(error) if isinstance(error, KafkaError) else repr(error)
        if self._task is not None:  # to_kafka() has options with Python names
            text = in_java(text)
        return UnwritableRowError(
            '%s, for topic %s, was not stored: %s' % (self._place(row), topic, text)
        )

    def _place(self, row: int) -> str:
        task = 'the data' if self._task is None else "Spark's partition %d" % self._task
        return 'row %d of %s (counted from 0)' % (row, task)

    def _check_texts(self, columns: Sequence[Any], layout: RowLayout) -> None:
        """Refuse topics and names of headers that are not UTF-8: Spark's strings may be any
        bytes."""
        checked = []
        if layout.topic is not None:
            topics = columns[layout.topic]
            checked.append(('a topic', topics, topics))
        if layout.headers is not None:
            headers = columns[layout.headers]
            checked.append(('the name of a header', headers, headers.flatten().flatten()[0]))
        for what, column, texts in checked:
            try:
                texts.validate(full=True)
            except pyarrow().ArrowInvalid:
                row = self._place(self.rows + _unreadable(column))
                raise UnwritableRowError('%s: %s is not UTF-8 text' % (row, what)) from None

    def _refuse_null(self, row: int) -> None:
        raise NullTopicError(
            '[KAFKA_NULL_TOPIC_IN_DATA] %s has a null topic: give each row a topic, or set the'
            ' option topic' % self._place(row)
        )

    def _refuse_header(self, row: int) -> None:
        raise UnwritableRowError(
            '%s has a header without a name: its struct or its key is null' % self._place(row)
        )


def _some_partition(producer: KafkaProducer, topic: str) -> int:
    """Return a partition for rows that may go to any, preferably one with a leader."""
    partitions = producer.partitions_for(topic)
    available = producer._metadata.available_partitions_for_topic(topic)
    place: int = random.choice(sorted(available or partitions))
    return place


def _by_topic(topics: Sequence[Any]) -> Iterable[Tuple[str, Optional[Sequence[int]]]]:
    """Return for each topic the indices of its rows; None: all rows."""
    if len(set(topics)) <= 1:
        return [(topic, None) for topic in topics[:1]]
    numbers: Dict[str, List[int]] = {}
    for number, topic in enumerate(topics):
        numbers.setdefault(topic, []).append(number)
    return list(numbers.items())


def _picked(column: Sequence[Any], numbers: Sequence[int]) -> Sequence[Any]:
    return [column[numbers[0]]] if len(numbers) == 1 else itemgetter(*numbers)(column)


# ------------------------------------------------------------ out of Arrow


def _arrow_rows(columns: Sequence[Any], layout: RowLayout) -> ArrowRows:
    """Return the rows as Arrow columns."""
    keys, headers, partitions = [
        None if each is None else _unless_null(columns[each])
        for each in (layout.key, layout.headers, layout.partition)
    ]
    return ArrowRows(
        as_binary(columns[layout.value]),
        None if keys is None else as_binary(keys),
        partitions,
        headers,
    )


def _unreadable(column: Any) -> int:
    """Return the number of the first row in which a text is not UTF-8."""
    for number in range(len(column)):
        try:
            column[number].as_py()
        except UnicodeDecodeError:
            return number
    return 0


def _unless_null(column: Any) -> Any:
    return None if column.null_count == len(column) else column


def _only_topic(column: Any) -> Optional[str]:
    """Return the topic of all rows, None if there are several, or nulls."""
    found = column.unique().to_pylist()
    return found[0] if len(found) == 1 else None


def _of_arrow(
    columns: Sequence[Any], layout: RowLayout
) -> Tuple[Rows, Optional[Sequence[Optional[str]]]]:
    """Return the rows of an Arrow batch as lists, and their topics unless the option is set."""
    keys = None if layout.key is None else _binaries(columns[layout.key])
    headers = partitions = topics = None
    if layout.headers is not None:
        headers = _arrow_headers(columns[layout.headers])
    if layout.partition is not None:
        column = _unless_null(columns[layout.partition])
        partitions = None if column is None else column.to_pylist()
    if layout.topic is not None:
        topics = _topics(columns[layout.topic])
    values = columns[layout.value]
    return Rows(_binaries(values) or [None] * len(values), keys, headers, partitions), topics


def _binaries(column: Any) -> Optional[List[Optional[bytes]]]:
    """Return a column of text or bytes as bytes; None if all are null."""
    if column.null_count == len(column):
        return None
    column = as_binary(column)
    if has_numpy():  # to_pylist() of older releases creates a scalar object per value
        found: List[Optional[bytes]] = column.to_numpy(zero_copy_only=False).tolist()
        return found
    return list(column.to_pylist())


def _topics(column: Any) -> List[Optional[str]]:
    """Return a column of topics; faster for few distinct ones."""
    encoded = column.dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    places = encoded.indices.fill_null(len(names) - 1).to_pylist()
    return list(map(names.__getitem__, places))


def _arrow_headers(column: Any) -> Optional[List[Any]]:
    """Return the headers of each row; None for a row with a header without a name."""
    if column.null_count == len(column):
        return None
    names, contents = column.flatten().flatten()
    pairs = list(zip(names.to_pylist(), _binaries(contents) or [None] * len(names)))
    sizes = column.value_lengths().fill_null(0).to_pylist()
    ends = list(accumulate(sizes))
    found: List[Any] = [pairs[end - size : end] for size, end in zip(sizes, ends)]
    if names.null_count:
        return [None if None in map(itemgetter(0), some) else some for some in found]
    return found


# ------------------------------------------------------------ out of rows


def _of_rows(
    rows: Sequence[Sequence[Any]], layout: RowLayout
) -> Tuple[Rows, Optional[Sequence[Optional[str]]]]:
    """Return rows of Spark by columns, and their topics unless the option is set."""
    columns = list(zip(*rows))
    headers = partitions = topics = None
    if layout.headers is not None and any(columns[layout.headers]):
        headers = list(map(_row_headers, columns[layout.headers]))
    if layout.partition is not None and set(columns[layout.partition]) != {None}:
        partitions = columns[layout.partition]
    if layout.topic is not None:
        topics = columns[layout.topic]
    keys = None if layout.key is None else list(map(_as_bytes, columns[layout.key]))
    values = list(map(_as_bytes, columns[layout.value]))
    return Rows(values, keys, headers, partitions), topics


def _as_bytes(field: Any) -> Optional[bytes]:
    """Return text, bytes or a bytearray, which Spark 4.0 uses for both, as bytes."""
    if field is None or type(field) is bytes:
        return field
    return field.encode('utf-8') if isinstance(field, str) else bytes(field)


def _row_headers(headers: Any) -> Any:
    if any(header is None or header[0] is None for header in headers or ()):
        return None
    return [(header[0], _as_bytes(header[1])) for header in headers or ()]
