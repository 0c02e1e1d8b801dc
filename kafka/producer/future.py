"""Futures of sent records, and RecordMetadata.

A future of KafkaProducer holds only a batch and an index in it, so that it costs next to nothing
until it is read: the outcome of a record is in its batch (:mod:`kafka.producer.producer_batch`),
and the batch refers to a future only when it has a callback. The interface is that of 1.x to 3.x.
"""

from __future__ import annotations

import functools
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    overload,
)

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future
from kafka.internals.error_copies import unraised_copy
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.producer_batch import ProducerBatch

_F = TypeVar('_F', bound='FutureRecordMetadata')


class _Fields(NamedTuple):
    topic: Any
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: Optional[int]
    checksum: Optional[int] = None
    serialized_key_size: int = -1
    serialized_value_size: int = -1
    serialized_header_size: int = -1


class RecordMetadata(_Fields):
    """Where a record was stored, in the layout of 1.4.4 to 2.0 (earlier ones are a prefix of it).

    Attributes: offset: -1 with acks=0; timestamp: ms since the epoch, that of the record, or of the
    broker for a topic with LogAppendTime; checksum: None; serialized_..._size: bytes, -1 without
    key, value or headers; log_start_offset: where the log begins, -1 if unknown (2.0).

    Also built from (TopicPartition, base offset, timestamp, relative offset), as in 1.x.
    """

    log_start_offset: int = -1

    def __new__(cls, *args: Any, **kwargs: Any) -> RecordMetadata:
        """Take the fields in order or by name, or the arguments of 1.x."""
        if args and isinstance(args[0], TopicPartition):
            return cls._of_offset(*args, **kwargs)
        return super().__new__(cls, *args, **kwargs)

    @classmethod
    def _of_offset(
        cls,
        topic_partition: TopicPartition,
        base_offset: int,
        timestamp: Optional[int] = None,
        relative_offset: Optional[int] = None,
    ) -> RecordMetadata:
        offset = base_offset
        if relative_offset is not None and base_offset != -1:
            offset += relative_offset
        topic, partition = topic_partition
        return cls(topic, partition, topic_partition, offset, timestamp)

    def __repr__(self) -> str:
        return 'RecordMetadata(topic=%s, partition=%s, offset=%s)' % (
            self.topic,
            self.partition,
            self.offset,
        )

    __str__ = __repr__


class FutureProduceResult(Future):
    """The outcome of a batch (1.x). Attributes: topic_partition."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__()
        self.topic_partition = topic_partition
        self._event = threading.Event()
        self.add_both(lambda _: self._event.set())

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is done; return True if it is. Arguments: timeout: seconds."""
        return self._event.wait(timeout)


class FutureRecordMetadata(Future):
    """The outcome of one record: its RecordMetadata, or the error why it was not stored.

    Attributes: is_done, value, exception; relative_offset: its index in the batch; timestamp_ms.
    For the producer: batch and index: where the record was put at first; value_size, key_size,
    header_size: bytes, -1 if absent.

    Callbacks run in the thread that runs the loop, in the order in which they were added; one that
    is added to a future that is done runs at once. An exception of a callback is logged.
    """

    #: False here, even if a program sets it for Future: the callbacks of other records come after.
    error_on_callbacks = False

    # Made without __init__ and without a lock, which would cost time for each record.
    __slots__ = ('batch', 'index', '_own_error', 'value_size')

    batch: ProducerBatch
    index: int
    value_size: int
    key_size: int = -1
    header_size: int = -1
    _own_error: BaseException  # set when exception is first read

    __init__ = object.__init__

    def __repr__(self) -> str:
        state, place = 'pending', self._place_if_done()
        if place is not None:
            error = place[0].error_of(place[1])
            state = 'failed: %r' % error if error else repr(self.value)
        return '<FutureRecordMetadata %s>' % state

    def _place(self) -> Tuple[ProducerBatch, int]:
        """Return the batch that has the record now, after splits, and the index there."""
        batch, index = self.batch, self.index
        while batch.pieces:
            batch, index = batch.piece_of(index)
        return batch, index

    def _place_if_done(self) -> Optional[Tuple[ProducerBatch, int]]:
        """Return the batch with the outcome of the record, and the index there; None before."""
        batch, index = self._place()
        if not batch.is_done:
            return None
        # A batch that was split meanwhile is done as well, and has no outcome of its own.
        return self._place() if batch.pieces else (batch, index)

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        """Whether the record was stored or has failed."""
        batch = self.batch  # fast: read after each turn of the loop while a thread waits
        return self._place()[0].is_done if batch.pieces else batch.is_done

    @property
    def exception(self) -> Optional[BaseException]:
        """Why the record was not stored; None while it is pending, and if it is stored.

        Each future has an error object of its own; those of a batch are equal.
        """
        place = self._place_if_done()
        error = None if place is None else place[0].error_of(place[1])
        if error is None:
            return None
        try:
            return self._own_error
        except AttributeError:
            self._own_error = unraised_copy(error)
            return self._own_error

    @property
    def value(self) -> Optional[RecordMetadata]:
        """Where the record was stored; None before, and if it has failed."""
        place = self._place_if_done()
        if place is None or place[0].error_of(place[1]) is not None:
            return None
        batch, index = place
        return batch.metadata_of(index, self.key_size, self.value_size, self.header_size)

    @property
    def relative_offset(self) -> int:
        """The index of the record in its batch."""
        return self._place()[1]

    @property
    def timestamp_ms(self) -> int:
        """The timestamp of the record, by default the time of send()."""
        batch, index = self._place()
        return batch.timestamp_of(index)

    def get(self, timeout: Optional[float] = None) -> RecordMetadata:
        """Wait for the record to be stored; return its RecordMetadata.

        Arguments: timeout: seconds; None waits for at most delivery_timeout_ms.
        Raises: the error because of which it was not stored; KafkaTimeoutError after ``timeout``,
        while it is still pending.
        """
        batch, index = self.batch, self.index
        if batch.pieces:
            batch, index = self._place()
        if not batch.is_done:
            # The condition is checked after each turn of the loop.
            if not batch.wait_for(
                lambda: batch.is_done or (batch.pieces is not None and self.is_done), timeout
            ):
                raise KafkaTimeoutError(
                    'the record for %s was not acknowledged within %s seconds; it may still be'
                    % (batch.place, timeout)
                )
        if batch.pieces:  # checked after is_done: see _place_if_done()
            batch, index = self._place()
        error = batch.error_of(index)
        if error is not None:
            # A copy: traceback and context of an exception grow each time it is raised.
            raise unraised_copy(error).with_traceback(None)
        return batch.metadata_of(index, self.key_size, self.value_size, self.header_size)

    def _complete(self, value: Any, exception: Any) -> Any:
        raise AssertionError('the future of a record is completed by its batch')

    def _add(self, wants_error: bool, call: Callable[[Any], Any]) -> None:
        if not self.batch.add_call(self, wants_error, call):
            self._run(wants_error, call)


class FutureOfMore(FutureRecordMetadata):
    """The future of a record with a key or headers.

    FutureRecordMetadata has no slots for their sizes, so that other records do not pay for them.
    """

    __slots__ = ('header_size', 'key_size')

    key_size: int
    header_size: int


def future_of(
    batch: ProducerBatch, index: int, key_size: int, value_size: int, header_size: int
) -> FutureRecordMetadata:
    """Return the future of a record in a batch; sizes are in bytes, -1 for absent fields."""
    if key_size == header_size == -1:
        future: FutureRecordMetadata = FutureRecordMetadata()
    else:
        future = FutureOfMore()
        future.key_size = key_size
        future.header_size = header_size
    future.batch = batch
    future.index = index
    future.value_size = value_size
    return future


class Placed(NamedTuple):
    """Records of one call in one batch: ``size`` records from index ``start`` on.

    ``numbers`` are the positions of the records in the call; None: those after the previous Placed.
    """

    batch: ProducerBatch
    start: int
    size: int
    numbers: Optional[Sequence[int]] = None


class FutureRecords(Sequence[FutureRecordMetadata]):
    """The outcomes of the records of one send_many(), in the order of the call.

    A sequence of futures, which are made on access. Not in other clients.
    """

    def __init__(
        self,
        placed: List[Placed],
        value_sizes: Sequence[int],
        key_sizes: Optional[Sequence[int]] = None,
        header_size: int = -1,
    ) -> None:
        self._placed = placed
        self._count = len(value_sizes)
        self._value_sizes = value_sizes
        self._key_sizes = key_sizes
        self._header_size = header_size
        self._ordered: Optional[List[Tuple[ProducerBatch, int]]] = None

    def __repr__(self) -> str:
        done = sum(part.size for part in self._placed if part.batch.has_outcome)
        return '<%s %d of %d done>' % (type(self).__name__, done, self._count)

    def __len__(self) -> int:
        return self._count

    @property
    def is_done(self) -> bool:
        """Whether each record was stored or has failed."""
        return all(part.batch.is_done or part.batch.has_outcome for part in self._placed)

    @overload
    def __getitem__(self, index: int) -> FutureRecordMetadata: ...
    @overload
    def __getitem__(self, index: slice) -> List[FutureRecordMetadata]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return the future of one record, or a list of futures for a slice."""
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        number = range(self._count)[index]
        if self._ordered is None:
            self._ordered = _in_order(self._placed, self._count)
        batch, place = self._ordered[number]
        return future_of(
            batch,
            place,
            -1 if self._key_sizes is None else self._key_sizes[number],
            self._value_sizes[number],
            self._header_size,
        )

    def __iter__(self) -> Iterator[FutureRecordMetadata]:
        return map(self.__getitem__, range(self._count))

    def get(self, timeout: Optional[float] = None) -> List[RecordMetadata]:
        """Wait for all records to be stored; return their RecordMetadata.

        Arguments: timeout: seconds for all together; None waits for at most delivery_timeout_ms.
        Raises: the error of the first record that was not stored; KafkaTimeoutError after
        ``timeout``, while any is still pending.
        """
        if not self.is_done:
            batch = self._placed[0].batch  # wait_for() is the same for all batches of a producer
            if not batch.wait_for(lambda: self.is_done, timeout):
                raise KafkaTimeoutError(
                    '%r after %s seconds; the others may still be stored' % (self, timeout)
                )
        return [future.get() for future in self]

    def exception(self) -> Optional[KafkaError]:
        """Return the first error among the records that are done, None if there is none."""
        found = self.failure()
        return None if found is None else found[1]

    def failure(self) -> Optional[Tuple[int, KafkaError]]:
        """Return the position and the error of a failed record, None if there is none."""
        begin = 0
        for part in self._placed:
            if not part.batch.is_stored and part.batch.has_outcome:
                for number, index in enumerate(range(part.start, part.start + part.size)):
                    batch, place = part.batch, index
                    while batch.pieces:
                        batch, place = batch.piece_of(place)
                    error = batch.error_of(place)
                    if error is not None:
                        numbers = part.numbers
                        at = begin + number if numbers is None else int(numbers[number])
                        return at, unraised_copy(error)
            begin += part.size
        return None

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecords:
        """Call ``f(*args, metadata, **kwargs)`` for each record once it is stored."""
        call = functools.partial(f, *args, **kwargs)
        for future in self:
            future.add_callback(call)
        return self

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecords:
        """Call ``f(*args, error, **kwargs)`` for each record that fails."""
        call = functools.partial(f, *args, **kwargs)
        for future in self:
            future.add_errback(call)
        return self


def _in_order(placed: Sequence[Placed], count: int) -> List[Tuple[ProducerBatch, int]]:
    """Return batch and index of each record, in the order of the call."""
    ordered: List[Any] = [None] * count
    number = 0
    for part in placed:
        places = range(part.start, part.start + part.size)
        if part.numbers is None:
            ordered[number : number + part.size] = [(part.batch, place) for place in places]
            number += part.size
        else:
            for each, place in zip(part.numbers, places):
                ordered[each] = (part.batch, place)
    return ordered


def header_size(headers: Sequence[Tuple[str, Optional[bytes]]]) -> int:
    """Return the total size of names and values in bytes, -1 without headers."""
    if not headers:
        return -1
    return sum(len(name.encode('utf-8')) + len(content or b'') for name, content in headers)
