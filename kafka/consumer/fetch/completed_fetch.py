"""CompletedFetch: the records of one partition in a Fetch response.

It keeps the position in the bytes, makes ConsumerRecords, calls deserializers, and raises errors
that name topic, partition and offset. The fetch manager and bounded readers make it; the polling
thread takes the records.

Records are decoded when they are taken, about a thousand at a time, and no Python code runs for
each of them unless there are deserializers.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import repeat
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

from kafka.codec import DEFAULT_LIMIT_BYTES
from kafka.consumer.deserializers import adapt_deserializer
from kafka.consumer_record import ConsumerRecord, LazyRecords, RecentRecords, make_records
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaError,
    ProtocolError,
    UnsupportedCodecError,
)
from kafka.protocol.fetch import PartitionData
from kafka.record.fetched_records import FetchedRecords, RawRecords
from kafka.record.record_columns import RecordColumns
from kafka.structs import TopicPartition

# Each record gets a copy.
_NO_HEADERS: List[Any] = []

#: Columns, in the order of the fields of a ConsumerRecord.
Fields = Sequence[Iterable[Any]]


class CompletedFetch:
    """
    The records of one partition in a fetch response.

    Attributes:
        partition; fetch_offset: the requested partition and offset.
        token: that of the partition's state when the request was made.
        node_id: the broker that responded.
        size_bytes: the size of the batches in the response.
        next_offset: the offset of the next fetch, according to the headers of the batches.
        next_epoch: leader epoch of the last batch, -1 if unknown.
        position: the offset of the next record to return.
        last_epoch: leader epoch of the last record that was returned, -1 if unknown.
        is_done: whether neither records nor offsets to skip are left.
        is_too_small: whether the first batch is incomplete: brokers before 0.10.1 cut it off if it
            is larger than the limit of the partition; from any other broker it is not a batch.
        recent: the RecentRecords of a caller that takes lists repeatedly, or None.
        failed_at: the offset at which the last take() met an error, None if it met none.
        refused: (offset, error) met after the records just returned; the next take() raises it. It
            is kept because an exception raised from outside, while a deserializer runs, would not
            be raised again for the same record.
    """

    def __init__(
        self,
        partition: TopicPartition,
        fetch_offset: int,
        data: PartitionData,
        *,
        token: int,
        node_id: int,
        read_committed: bool = False,
        check_crcs: bool = True,
        key_deserializer: Any = None,
        value_deserializer: Any = None,
        max_decompressed_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        """
        Read the headers of the batches.

        ``data`` is the partition's data in the response. With ``read_committed`` False, records of
        aborted transactions are returned too. Deserializers are of any release, or adapted already.
        ``max_decompressed_bytes`` is the most bytes that a batch may expand to. Raises
        ``KafkaConfigurationError`` for a deserializer that is not one.
        """
        aborted = data.aborted_transactions or ()
        self._make_records = partial(
            FetchedRecords,
            data.records,
            aborted=[(t.producer_id, t.first_offset) for t in aborted] if read_committed else None,
            check_crcs=check_crcs,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        self._records = self._make_records()
        self.partition = partition
        self.fetch_offset = self.position = fetch_offset
        self.token = token
        self.node_id = node_id
        self.size_bytes = 0 if data.records is None else len(data.records)
        extent = self._records.extent
        self.next_offset = max(fetch_offset, extent.next_offset or 0)
        self.next_epoch = extent.next_epoch
        self.last_epoch = -1
        self.is_done = not self.size_bytes
        self.is_too_small = self._records.is_too_small
        self.failed_at: Optional[int] = None
        self.refused: Optional[Tuple[Optional[int], BaseException]] = None
        self.is_put_off = False  # whether the fetches of other partitions are taken first, once
        self.recent: Optional[RecentRecords] = None
        self._deserializers = (
            adapt_deserializer('key_deserializer', key_deserializer),
            adapt_deserializer('value_deserializer', value_deserializer),
        )
        # The decoded records, and the number of them that were taken.
        self._columns: Optional[RecordColumns] = None
        self._index = 0

    def __repr__(self) -> str:
        return '<CompletedFetch %r:%s at %d of %d to %d%s>' % (
            self.partition.topic,
            self.partition.partition,
            self.position,
            self.fetch_offset,
            self.next_offset,
            ' done' if self.is_done else '',
        )

    # ------------------------------------------------------------ taking

    def take(self, max_records: Optional[int] = None) -> List[ConsumerRecord]:
        """
        Return the next records, at most ``max_records``; an empty list only if none is left.

        The position moves after them, and after the last one past offsets without records. If a
        record cannot be returned, the records before it are returned and the next call raises: what
        a deserializer raised; ``CorruptRecordError`` for a wrong checksum, invalid framing, or a
        batch that expands beyond the limit; ``UnsupportedCodecError``. The position stays at that
        record, and each call raises again until the caller seeks, or calls :meth:`skip_corrupt`.
        """
        taken: List[ConsumerRecord] = []
        self.failed_at = None
        if self.refused is not None:
            self._raise_refused(*self.refused)
        room = sys.maxsize if max_records is None else max_records
        while room > 0:
            columns = self._ahead(bool(taken), room)
            if columns is None:
                break
            fields, count, error = self._fields(columns)
            if self.recent is None or self._deserializers != (None, None):
                records = make_records(fields)
            else:  # without deserializers records hold only bytes, of known size
                records = self.recent.make(fields, count, _size_of(columns, fields))
            if not records and not taken and error is not None:
                self.failed_at = columns.offsets[0]
                raise error
            if records:
                self._move(columns, len(records))
                taken = taken + records if taken else records
            if error is not None:
                self.refused = columns.offsets[len(records)], error
                return taken
            room -= len(records)
        self._settle()
        return taken

    def take_lazily(self, max_records: int) -> Optional[LazyRecords]:
        """
        Return the next records as LazyRecords, each made when iterated; None if none is left.

        There are at most ``max_records`` and about a thousand. Position and errors as in
        :meth:`take`; the position moves after all of them at once.
        """
        self.failed_at = None
        if self.refused is not None:
            self._raise_refused(*self.refused)
        columns, taken = self._ahead(False, max_records), None
        if columns is not None:
            fields, count, error = self._fields(columns)
            if error is not None and not count:
                self.failed_at = columns.offsets[0]
                raise error
            taken = LazyRecords(fields, columns.offsets[:count], columns.leader_epoch)
            self._move(columns, count)
            if error is not None:
                self.refused = columns.offsets[count], error
                return taken
        self._settle()
        return taken

    def take_made(self, make: Callable[[RecordColumns], Any]) -> Any:
        """
        Return the result of ``make`` for the next records, about a thousand; None if none is left.

        ``make`` gets columns whose keys and values are bytes: nothing is deserialized. Position and
        errors as in :meth:`take`: if ``make`` raises ``ProtocolError``, records are taken up to the
        first for which it does.
        """
        self.failed_at = made = None
        columns = self._ahead(False, sys.maxsize)
        if columns is not None:
            made, count = self._made(make, columns)
            self._move(columns, count)
        self._settle()
        return made

    def _made(
        self, make: Callable[[RecordColumns], Any], columns: RecordColumns
    ) -> Tuple[Any, int]:
        """Return make() of the most records for which it does not raise, and their number.

        Raises: ProtocolError if it raises for the first record already.
        """
        possible, refused = 0, len(columns.values)
        try:
            return make(columns), refused
        except ProtocolError as error:
            made, failure = None, error
        while refused - possible > 1:
            middle = (possible + refused) // 2
            try:
                made, possible = make(columns.part(0, middle)), middle
            except ProtocolError as error:
                refused, failure = middle, error
        if not possible:
            self.failed_at = columns.offsets[0]
            raise failure
        return made, possible

    def _raise_refused(self, offset: Optional[int], error: BaseException) -> None:
        """Raise the error that the last call met after the records it returned."""
        self.failed_at, self.refused = offset, None
        raise error

    def undecoded(self) -> Optional[RawRecords]:
        """
        Return the decompressed batches; the position stays until :meth:`pass_over`.

        None if records were taken before, for magic 0 and 1, and if a batch cannot be read:
        :meth:`take` and :meth:`take_made` then raise the error. A batch may begin before the
        position.
        """
        if self.is_done or self._columns is not None or self._records.error is not None:
            return None
        try:
            return self._make_records().raw(self.position)
        except KafkaError:
            return None

    def pass_over(self) -> None:
        """Move the position after all batches, once those of :meth:`undecoded` were read."""
        self.position = max(self.position, self.next_offset)
        self.last_epoch, self.is_done = self.next_epoch, True

    def skip_corrupt(self) -> int:
        """
        Skip the batch that cannot be read, and return the offset to fetch next.

        That is after the batch, never after one that can be read. It may be inside the batch if its
        header is corrupt; the next fetch then meets the batch again. The batches after it are
        dropped and the fetch is done: seek to the offset. Raises ``IllegalStateError`` if the next
        batch is not unreadable.
        """
        if not self._is_used_up() or self._records.error is None:
            raise IllegalStateError('nothing that cannot be read is next in %r' % self)
        self.position = max(self.position + 1, self._records.behind_error())
        self.next_offset, self.next_epoch, self.is_done = self.position, -1, True
        return self.position

    def shed(self) -> bool:
        """
        If the next batch cannot be read, release all bytes except those of that batch.

        Returns whether that is so; ``size_bytes`` is then the size of the batch. The batches after
        it are not needed: a program that continues after it fetches them again.
        """
        if not self._is_used_up() or self._records.error is None:
            return False
        self.size_bytes = self._records.shed()
        self._make_records = partial(FetchedRecords, None)
        self._columns, self._index = None, 0
        return True

    def _is_used_up(self) -> bool:
        return self._columns is None or self._index >= len(self._columns.values)

    def _ahead(self, has_some: bool, room: int) -> Optional[RecordColumns]:
        """Return the next records, at most ``room``; None after the last.

        Raises: the error of a batch that cannot be read; returns None instead if ``has_some``.
        """
        while not self.is_done:
            if self._is_used_up():
                try:
                    columns = self._records.read()
                except KafkaError as error:
                    if has_some:
                        return None
                    raise self._located(error) from error
                if columns is None:
                    return None
                self._columns, self._index = columns.since(self.position), 0
                continue
            assert self._columns is not None
            if not self._index and room >= len(self._columns.values):
                return self._columns
            return self._columns.part(self._index, self._index + room)
        return None

    def _move(self, columns: RecordColumns, count: int) -> None:
        self._index += count
        self.position = columns.offsets[count - 1] + 1
        self.last_epoch = columns.leader_epoch

    def _settle(self) -> None:
        """Move past the offsets without records at the end if no record is left."""
        if self._is_used_up() and not self.is_done and not self._records.has_more():
            self.position = max(self.position, self.next_offset)
            self._columns = None
            self.is_done = True

    def _located(self, error: KafkaError) -> KafkaError:
        """Return the error of a batch that cannot be read, with its place."""
        self.failed_at = offset = max(self.position, self._records.offset)
        kind = type(error) if isinstance(error, UnsupportedCodecError) else CorruptRecordError
        return kind(
            'cannot read the records at offset %d of partition %s of topic %r, as node %s sent '
            'them: %s; skip_corrupt() goes on without them'
            % (offset, self.partition.partition, self.partition.topic, self.node_id, error)
        )

    # ------------------------------------------------------------ making records

    def _fields(self, columns: RecordColumns) -> Tuple[Fields, int, Optional[Exception]]:
        """
        Return the 13 columns of records, the number of records, and an error or None.

        They end before the first record that a deserializer refuses; the error is what it raised.
        """
        count = len(columns.values)
        headers: Iterable[Any] = map(list.copy, repeat(_NO_HEADERS, count))
        if columns.headers is not None:
            headers = map(list, columns.headers)
        keys: Iterable[Any] = repeat(None, count) if columns.keys is None else columns.keys
        values: Iterable[Any] = columns.values
        error: Optional[Exception] = None
        read_key, read_value = self._deserializers
        if read_key is not None or read_value is not None:
            headers = list(headers)
            if read_key is not None:
                keys, error = self._deserialized(read_key, headers, keys, count)
                count = len(keys)
            if read_value is not None:
                some = columns.values[:count]
                values, failure = self._deserialized(read_value, headers, some, count)
                error, count = failure or error, len(values)
        fields: Fields = (
            repeat(self.partition.topic),
            repeat(self.partition.partition),
            columns.offsets,
            repeat(None) if columns.timestamps is None else columns.timestamps,
            repeat(columns.timestamp_type),
            keys,
            values,
            headers,
            repeat(None) if columns.checksums is None else columns.checksums,
            repeat(-1) if columns.keys is None else _sizes(columns.keys),
            _sizes(columns.values) if columns.value_sizes is None else columns.value_sizes,
            repeat(-1) if columns.header_sizes is None else columns.header_sizes,
            repeat(columns.leader_epoch),
        )
        return fields, count, error

    def _deserialized(
        self, deserializer: Any, headers: Iterable[Any], data: Iterable[Any], count: int
    ) -> Tuple[List[Any], Optional[Exception]]:
        """Return a deserialized column, up to the first failure, and the error or None."""
        done: List[Any] = []
        add = done.append
        try:
            for value in deserializer.over(self.partition.topic, headers, data):
                add(value)
        except Exception as error:
            return done, error
        if len(done) < count:  # map() ended: it takes a StopIteration of a deserializer for its own
            return done, RuntimeError('a deserializer raised StopIteration')
        return done, None


def _size_of(columns: RecordColumns, fields: Fields) -> int:
    """Return the size of all keys, values and headers in bytes; a bit less, as None counts -1."""
    size: int = sum(fields[10])
    if columns.keys is not None:
        size += sum(fields[9])
    if columns.header_sizes is not None:
        size += sum(columns.header_sizes)
    return size


def _sizes(column: Iterable[Optional[bytes]]) -> List[int]:
    """Return the lengths of fields, -1 for None."""
    try:
        return list(map(len, column))  # type: ignore[arg-type]
    except TypeError:
        return [-1 if field is None else len(field) for field in column]
