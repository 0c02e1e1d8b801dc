"""ProducerBatch: a batch of records for one partition, with its state, encoded bytes and outcome.

A batch has the records in columns, a state that changes according to TRANSITIONS, the bytes that
:mod:`kafka.record` encodes once, and the outcome that all futures of its records read. Encoded
bytes can get other sequence numbers (KIP-98), and a batch that is too large is split. Queued by
:mod:`kafka.producer.record_accumulator`.

Locks: while a batch is OPEN its columns are guarded by the lock of the accumulator, which must be
held to append and to close. From CLOSED on the columns do not change, and state and bytes are used
by the sender only. ``is_done`` is set last: a thread that sees it set also sees the outcome.
"""

from __future__ import annotations

import contextlib
import enum
import struct
from bisect import bisect_right
from itertools import repeat
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from kafka import codec as codecs
from kafka.errors import IllegalStateError, KafkaError, UnsupportedForMessageFormatError
from kafka.producer.future import FutureRecordMetadata, RecordMetadata
from kafka.producer.sequence_numbers import place_of
from kafka.record import default_records
from kafka.record.crc32c import crc32c
from kafka.record.legacy_records import encode_message_set
from kafka.structs import TopicPartition

Headers = Sequence[Tuple[str, Optional[bytes]]]
#: A callback of a future: the future, whether it is an errback, and the function.
Call = Tuple[FutureRecordMetadata, bool, Callable[[Any], Any]]

# Offsets in the header of a batch of magic 2: producer id, epoch and base sequence; and the CRC.
_STAMP_INTO = struct.Struct('>qhi').pack_into
_STAMP_AT = 43
_CRC_INTO = struct.Struct('>I').pack_into
_CRC_AT = 17
_new = tuple.__new__  # makes a NamedTuple without its own __new__, a Python function
#: Bytes of a message of magic 0 and 1 besides key and value.
MESSAGE_BYTES = (26, 34)
#: Approximate bytes of a small record of magic 2 besides key and value, and of the batch header.
RECORD_BYTES = 10
BATCH_BYTES = default_records.HEADER.size


class BatchState(enum.Enum):
    """The states of a batch."""

    OPEN = 'open'  # accepts records
    CLOSED = 'closed'  # waits to be sent, for the first time or again
    IN_FLIGHT = 'in flight'  # sent, not answered
    DONE = 'done'  # stored
    FAILED = 'failed'  # its futures have failed
    SPLIT = 'split'  # replaced by smaller batches

    __hash__ = object.__hash__


TRANSITIONS: Dict[BatchState, Tuple[BatchState, ...]] = {
    BatchState.OPEN: (BatchState.CLOSED,),
    BatchState.CLOSED: (BatchState.IN_FLIGHT, BatchState.FAILED, BatchState.SPLIT),
    BatchState.IN_FLIGHT: (BatchState.CLOSED, BatchState.DONE, BatchState.FAILED, BatchState.SPLIT),
    BatchState.DONE: (),
    BatchState.FAILED: (),
    BatchState.SPLIT: (),
}


class Stamp(NamedTuple):
    """The timestamp (ms) of the records from index ``start`` on."""

    start: int
    timestamp: int


class ProducerBatch:
    """Records for one partition that are sent, and succeed or fail, together.

    Arguments:
        topic_partition: its destination.
        created_at: monotonic seconds.
        room: its limit in bytes, record headers included.
        wait: blocks until a condition holds, for futures: (condition, seconds) -> bool.

    Attributes: state; is_done; calls: the pending callbacks; record_count; attempts: how often it
    was sent; not_before: monotonic seconds, end of the back-off; last_error: of the last failed
    attempt; reserved: bytes of buffer_memory that it holds; encoded; pieces: the batches that have
    replaced it, as (index of the first record, batch); is_unasked: whether some of its records have
    no future.
    """

    __slots__ = (
        '_error',
        '_parent',
        '_record_errors',
        '_wait',
        'attempts',
        'base_offset',
        'base_sequence',
        'calls',
        'created_at',
        'encoded',
        'has_columns',
        'headers',
        'is_done',
        'is_told',
        'is_transactional',
        'is_unasked',
        'keys',
        'last_error',
        'last_sent_at',
        'log_append_time',
        'log_start_offset',
        'magic',
        'not_before',
        'number',
        'pieces',
        'pieces_left',
        'producer_epoch',
        'producer_id',
        'put',
        'raw_size',
        'record_count',
        'records',
        'reserved',
        'room',
        'stamps',
        'state',
        'tick',
        'topic_partition',
        'values',
        'was_split',
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        created_at: float,
        room: int,
        wait: Callable[[Callable[[], bool], Optional[float]], bool],
    ) -> None:
        self.topic_partition = topic_partition
        self.created_at = created_at
        self.room = room
        self._wait = wait
        self.state = BatchState.OPEN
        self.values: List[Optional[bytes]] = []
        #: Columns that are made when a record has such a field; the rest of a shorter one is None.
        self.keys: Optional[List[Optional[bytes]]] = None
        self.headers: Optional[List[Headers]] = None
        self.has_columns = False
        self.stamps: List[Stamp] = []
        #: Wall time in seconds from which on records need a new timestamp.
        self.tick = 0.0
        self.put = self.values.append
        self.record_count = 0
        #: The uncompressed bytes after the batch header, if the records arrived encoded.
        self.records: Optional[memoryview] = None
        self.reserved = 0
        self.raw_size = 0
        self.attempts = 0
        self.not_before = 0.0
        self.last_error: Optional[KafkaError] = None
        #: Its place in the order of all batches of the producer; pieces take that of their batch.
        self.number: Tuple[int, ...] = ()
        self.last_sent_at = created_at
        self.magic = 2
        self.encoded: Optional[bytearray] = None
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.is_transactional = False
        self.is_unasked = False
        self.was_split = False
        self.is_done = self.is_told = False
        self.base_offset = self.log_append_time = self.log_start_offset = -1
        self.pieces: Optional[List[Tuple[int, ProducerBatch]]] = None
        self.pieces_left = 0
        self._parent: Optional[ProducerBatch] = None
        self._error: Optional[KafkaError] = None
        self._record_errors: Mapping[int, KafkaError] = {}
        self.calls: List[Call] = []

    def __repr__(self) -> str:
        return '<ProducerBatch %s %s, %d records%s>' % (
            self.place,
            self.state.value,
            self.record_count or len(self.values),
            '' if self.base_sequence < 0 else ', sequence %d' % self.base_sequence,
        )

    @property
    def place(self) -> str:
        """Topic and partition, for messages."""
        return place_of(self.topic_partition)

    def move(self, state: BatchState) -> None:
        """Change the state. Raises IllegalStateError, which names both, if that is not allowed."""
        if state not in TRANSITIONS[self.state]:
            raise self._no_way_to(state)
        self.state = state

    def _no_way_to(self, state: BatchState) -> IllegalStateError:
        return IllegalStateError(
            'a batch for %s cannot go from %s to %s' % (self.place, self.state.value, state.value)
        )

    # ------------------------------------------------------------ while it is open

    def set_time(self, index: int, timestamp: int) -> None:
        """Set the timestamp (ms) of the records from an index on."""
        if not self.stamps or self.stamps[-1].timestamp != timestamp:
            self.stamps.append(_new(Stamp, (index, timestamp)))

    def set_key(self, index: int, key: bytes) -> None:
        """Set the key of the record that is appended at an index."""
        self.cut(index)
        if self.keys is None:
            self.keys = []
            self.has_columns = True
        if len(self.keys) < index:
            self.keys.extend(repeat(None, index - len(self.keys)))
        self.keys.append(key)

    def set_headers(self, index: int, headers: Headers) -> None:
        """Set the headers of the record that is appended at an index."""
        if self.headers is None:
            self.headers = []
            self.has_columns = True
        if len(self.headers) < index:
            self.headers.extend(repeat((), index - len(self.headers)))
        self.headers.append(headers)

    def cut(self, index: int) -> None:
        """Remove keys and headers from an index on, left by an append that Ctrl-C interrupted."""
        if self.keys is not None:
            del self.keys[index:]
        if self.headers is not None:
            del self.headers[index:]

    def close(self) -> None:
        """Accept no more records; the caller holds the lock of the accumulator.

        May be called again after an exception in the middle of it.
        """
        if self.state is not BatchState.OPEN:
            self.move(BatchState.CLOSED)
        count = self.record_count = len(self.values)
        if self.keys is not None:
            self.keys.extend(repeat(None, count - len(self.keys)))
            del self.keys[count:]
        if self.headers is not None:
            self.headers.extend(repeat((), count - len(self.headers)))
            del self.headers[count:]
        raw_size = self.raw_size - self.room + BATCH_BYTES
        self.state = BatchState.CLOSED
        self.raw_size = raw_size
        self.room = -1

    def fill(self, records: memoryview, columns: Sequence[Any], timestamp: int) -> None:
        """Set encoded records as the whole content, and close; as close().

        Arguments: records: the bytes after the header of magic 2; columns: their values, keys and
        headers, as sequences; timestamp: ms, of all records.
        """
        self.records = records
        self.values, self.keys, self.headers = columns
        self.set_time(0, timestamp)
        self.move(BatchState.CLOSED)
        self.room = -1
        self.record_count = len(self.values)

    # ------------------------------------------------------------ bytes

    @property
    def size(self) -> int:
        """The encoded size in bytes; before encoding, an estimate without compression."""
        return len(self.encoded) if self.encoded is not None else self.raw_size

    def encode(self, magic: int, codec: int = 0, compresslevel: Optional[int] = None) -> bytearray:
        """Return its bytes; encode the records unless they are encoded for this magic already.

        Raises: UnsupportedForMessageFormatError for headers in magic 0 and 1; what the encoders of
        kafka.record raise.
        """
        if self.encoded is not None and self.magic == magic:
            return self.encoded
        self.magic = magic
        if magic == 2 and not codec:
            encoded = self.encode_single()
            if encoded is not None:
                return encoded
        if magic < 2:
            self.encoded = bytearray(self._encode_messages(magic, codec, compresslevel))
        else:
            self.encoded = default_records.encode_column_batch(
                self.values,
                self.keys,
                self.headers,
                self.stamps,
                records=self.records,
                codec=codec,
                compresslevel=compresslevel,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                transactional=self.is_transactional,
            )
        return self.encoded

    def encode_single(self) -> Optional[bytearray]:
        """Encode a batch of one record in magic 2 without compression, as encode().

        Return None if it has more records, headers, or values that are not bytes, if it is
        transactional, or was encoded before.
        """
        if self.record_count != 1:
            return None
        (value,) = self.values
        key = None if self.keys is None else self.keys[0]
        if type(value) is not bytes or (key is not None and type(key) is not bytes):
            return None
        if self.headers is not None or self.records is not None or self.is_transactional:
            return None
        if self.encoded is not None:
            return None
        try:
            self.encoded = default_records.encode_single(
                key,
                value,
                self.stamps[0].timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
            )
        except struct.error:  # encode_column_batch() raises an error that names the field
            return None
        self.magic = 2
        return self.encoded

    def _encode_messages(self, magic: int, codec: int, compresslevel: Optional[int]) -> bytes:
        if self.headers is not None and any(self.headers):
            raise UnsupportedForMessageFormatError(
                'records for %s have headers, which brokers before 0.11 cannot store' % self.place
            )
        count = self.record_count
        keys = self.keys or [None] * count
        messages = list(zip(range(count), self._timestamps(), keys, self.values))
        return encode_message_set(messages, magic, codec, compresslevel)

    def _timestamps(self) -> List[int]:
        times: List[int] = []
        ends = [stamp.start for stamp in self.stamps[1:]] + [self.record_count]
        for stamp, end in zip(self.stamps, ends):
            times += [stamp.timestamp] * (end - stamp.start)
        return times

    def restamp(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Set producer id, epoch and sequence (-1: none); updates encoded bytes and their CRC."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        same_kind = self.is_transactional == is_transactional
        self.is_transactional = is_transactional
        if self.encoded is None or self.magic < 2:
            return
        if not same_kind:
            flag = default_records.TRANSACTIONAL_MASK
            low = default_records.ATTRIBUTES_POS + 1
            self.encoded[low] = self.encoded[low] & ~flag | (flag if is_transactional else 0)
        _STAMP_INTO(self.encoded, _STAMP_AT, producer_id, producer_epoch, base_sequence)
        with memoryview(self.encoded) as view:
            crc = crc32c(view[default_records.ATTRIBUTES_POS :])
        _CRC_INTO(self.encoded, _CRC_AT, crc)

    def split(self, limit: int) -> List[ProducerBatch]:
        """Split the batch; return smaller batches with its records in order, which replace it.

        Arguments: limit: the size of a piece in bytes, except that it has at least one record.
        Their sequence numbers are consecutive; the creation time is kept, attempts begin at 0.
        """
        pieces: List[Tuple[int, ProducerBatch]] = []
        start = 0
        for end in _cuts(self._sizes(), limit):
            pieces.append((start, self._piece(start, end)))
            start = end
        self.pieces_left = len(pieces)
        self._stand_aside(pieces)
        for future, wants_error, call in self._taken_calls():
            future._add(wants_error, call)
        return [piece for _, piece in pieces]

    def stand_for(self, batch: ProducerBatch, index: int) -> None:
        """Replace this batch, whose only record is in another one now, at an index.

        The other batch has no outcome yet, and gets none meanwhile. May be called again after an
        exception.
        """
        if not self.pieces:
            self._stand_aside([(-index, batch)])
            self.values = []
        with contextlib.suppress(IndexError):  # no more, or add_call() took the last back
            # Atomic: an exception neither loses a callback nor lets it be called twice.
            batch.calls.extend(map(self.calls.pop, repeat(0)))

    def _stand_aside(self, pieces: List[Tuple[int, ProducerBatch]]) -> None:
        if BatchState.SPLIT not in TRANSITIONS[self.state]:
            raise self._no_way_to(BatchState.SPLIT)
        self.encoded = self.records = None
        # The pieces first: a thread that sees the state can read them.
        self.pieces = pieces
        self.state = BatchState.SPLIT

    def _sizes(self) -> List[int]:
        keys = self.keys or repeat(None)
        headers = self.headers or repeat(())
        return [
            MESSAGE_BYTES[1]
            + len(value or b'')
            + len(key or b'')
            + sum(len(name) + len(content or b'') for name, content in some)
            for value, key, some in zip(self.values, keys, headers)
        ]

    def _piece(self, start: int, end: int) -> ProducerBatch:
        piece = ProducerBatch(self.topic_partition, self.created_at, 0, self._wait)
        piece.values = list(self.values[start:end])
        piece.keys = self.keys and list(self.keys[start:end])
        piece.headers = self.headers and list(self.headers[start:end])
        for stamp in self.stamps:
            if stamp.start <= start:
                piece.stamps = [Stamp(0, stamp.timestamp)]
            elif stamp.start < end:
                piece.stamps.append(Stamp(stamp.start - start, stamp.timestamp))
        piece.close()
        piece.was_split = True
        piece.is_unasked = self.is_unasked
        piece.number = (*self.number, start)
        piece._parent = self
        if self.base_sequence >= 0:
            sequence = (self.base_sequence + start) % 2**31
            piece.restamp(self.producer_id, self.producer_epoch, sequence, self.is_transactional)
        return piece

    # ------------------------------------------------------------ the outcome

    @property
    def is_stored(self) -> bool:
        """Whether all of its records are stored; False if it was split, also for stored pieces."""
        return self.state is BatchState.DONE

    @property
    def has_outcome(self) -> bool:
        """Whether all of its records have an outcome, also those in its pieces."""
        if self.is_done or not self.pieces:
            return self.is_done
        return all(piece.has_outcome for _, piece in self.pieces)

    def succeed(
        self,
        base_offset: int = -1,
        log_append_time: int = -1,
        log_start_offset: int = -1,
        tells: bool = True,
    ) -> None:
        """Note that it is stored, and call the callbacks, unless `tells` is False."""
        if self.state is not BatchState.IN_FLIGHT:
            self.move(BatchState.DONE)
        # Before the state: an exception that comes between them leaves no outcome without offset.
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.state = BatchState.DONE
        self.finish_futures(tells)

    def fail(self, error: KafkaError, record_errors: Optional[Mapping[int, Any]] = None) -> None:
        """Fail it, and call the callbacks.

        Arguments: error: of all records, except those in record_errors; record_errors: by index.
        """
        if self.state is not BatchState.FAILED:  # else an exception interrupted an earlier call
            self.move(BatchState.FAILED)
        self._error = error
        self._record_errors = record_errors or {}
        self.finish_futures()

    def finish_futures(self, tells: bool = True) -> None:
        """Release the records and call the callbacks; the outcome is set already.

        Arguments: tells: False leaves the callbacks to complete().
        """
        # The timestamps are kept, for the futures.
        self.values = []
        self.put = self.values.append
        self.keys = self.headers = self.encoded = self.records = None
        self.is_done = True
        if tells and (self.calls or self._parent is not None):
            self._tell(self._taken_calls())
        self.is_told = True

    def _taken_calls(self) -> Iterator[Call]:
        """Remove and yield the pending callbacks one by one, so that each runs once."""
        while self.calls:
            try:
                yield self.calls.pop(0)
            except IndexError:  # add_call() took the last back
                return

    def complete(self) -> None:
        """Call the callbacks of an outcome that were not called yet."""
        if not self.is_done or self.calls:
            self.finish_futures()

    def _tell(self, calls: Iterable[Call]) -> None:
        """Call the callbacks; the last piece of a split batch finishes that batch."""
        for future, wants_error, call in calls:
            future._tell(wants_error, call)
        parent = self._parent
        if parent is not None:
            parent.pieces_left -= 1
            if not parent.pieces_left:
                parent.finish_futures()

    def add_call(
        self, future: FutureRecordMetadata, wants_error: bool, call: Callable[[Any], Any]
    ) -> bool:
        """Keep a callback until there is an outcome; return False if there is one already."""
        batch, entry = self, (future, wants_error, call)
        while not batch.is_done:
            if not batch.pieces:
                # Without a lock: a finalizer could run in a thread that holds it. The outcome is
                # set before the callbacks are taken: if it arrives meanwhile, one of the two
                # threads removes the entry.
                batch.calls.append(entry)
                if not batch.is_done and not batch.pieces:
                    return True
                try:
                    batch.calls.remove(entry)
                except ValueError:
                    return True
            batch, _ = future._place()
        return False

    def abandon(self, error: KafkaError) -> None:
        """Fail without callbacks, which belong to the parent; called in the child of a fork."""
        self.calls = []
        self._error = error
        self.is_done = True

    def wait_for(self, condition: Callable[[], bool], timeout: Optional[float]) -> bool:
        """Block until a condition holds; return whether it does.

        Arguments: timeout: seconds, or None. Raises TypeError for anything else.
        """
        if timeout is not None and not isinstance(timeout, (int, float)):
            raise TypeError('timeout must be a number of seconds or None, not %r' % (timeout,))
        return self._wait(condition, timeout)

    def piece_of(self, index: int) -> Tuple[ProducerBatch, int]:
        """Return the piece that has the record of an index, and its index there."""
        assert self.pieces is not None
        at = bisect_right([start for start, _ in self.pieces], index) - 1
        start, piece = self.pieces[at]
        return piece, index - start

    def error_of(self, index: int) -> Optional[KafkaError]:
        """Return the error of the record at an index, None if it has not failed."""
        return self._record_errors.get(index, self._error)

    def timestamp_of(self, index: int) -> int:
        """Return the timestamp (ms) of the record at an index, as it was sent."""
        for stamp in reversed(self.stamps):
            if stamp.start <= index:
                return stamp.timestamp
        return -1

    def metadata_of(
        self, index: int, key_size: int, value_size: int, header_size: int
    ) -> RecordMetadata:
        """Return the metadata of the stored record at an index."""
        topic, partition = self.topic_partition
        timestamp = self.log_append_time
        if timestamp == -1:
            timestamp = self.stamps[0][1] if len(self.stamps) == 1 else self.timestamp_of(index)
        metadata: RecordMetadata = _new(
            RecordMetadata,
            (
                topic,
                partition,
                self.topic_partition,
                self.base_offset + index if self.base_offset >= 0 else -1,
                timestamp,
                None,
                key_size,
                value_size,
                header_size,
            ),
        )
        if self.log_start_offset >= 0:
            metadata.log_start_offset = self.log_start_offset
        return metadata


def _cuts(sizes: Sequence[int], limit: int) -> List[int]:
    """Return the ends of pieces of at most ``limit`` bytes, or of one record that is larger."""
    cuts: List[int] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if total + size > limit and index > start:
            cuts.append(index)
            start, total = index, 0
        total += size
    cuts.append(len(sizes))
    return cuts


class FailedBatch(ProducerBatch):
    """The batch of the future of a record that was not accepted: it has failed already."""

    __slots__ = ()

    def __init__(self, topic_partition: TopicPartition, error: KafkaError, timestamp: int) -> None:
        super().__init__(topic_partition, 0.0, 0, _never)
        self.stamps.append(Stamp(0, timestamp))
        self.close()
        self.fail(error)


def _never(condition: Callable[[], bool], timeout: Optional[float]) -> bool:
    return condition()


def compression_of(name: Optional[str]) -> int:
    """Return the codec number of a compression_type, 0 for None.

    Raises: ValueError for an unknown name.
    """
    for number, known in codecs.CODEC_NAMES.items():
        if name == known or name is None and not number:
            return number
    raise ValueError('there is no codec %r: none, gzip, snappy, lz4 and zstd are known' % name)
