"""FetchCollector: takes records from the fetch buffer and moves the positions of their partitions.

poll(), poll_arrow() and iteration of a modern consumer call it, in the thread that is inside the
consumer. It remembers the records that the last call took, so that the next call can put them back
if an exception kept the last one from returning them, and the records that iteration has not
returned yet. The states of partitions are read and changed under the engine's lock. Named after
FetchCollector of the Java client.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from kafka.consumer.engine import Engine
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.hand_out import NOTHING, HandOut, Iteration, has_lost
from kafka.consumer.partition_state import is_suspended
from kafka.consumer_record import LazyRecords, RecentRecords
from kafka.errors import KafkaError, ProtocolError
from kafka.record.record_columns import RecordColumns
from kafka.record.vectors import ArrowMaker, has_numpy
from kafka.structs import ConsumerRecord, TopicPartition

__all__ = ['FetchCollector', 'IteratedRecords', 'ListedRecords', 'take_arrow']

log = logging.getLogger(__name__)

_FAR = (1 << 63) - 1

#: A partition, its token, records, the position after them, and the leader epoch of that position.
_Taken = Tuple[TopicPartition, int, List[ConsumerRecord], int, int]
Records = Dict[TopicPartition, List[ConsumerRecord]]


class ListedRecords:
    """A list of records with the interface of LazyRecords, which makes records on request.

    Attributes: iterator: over the records, for one pass.
    """

    __slots__ = ('_records', 'iterator')

    def __init__(self, records: List[ConsumerRecord]) -> None:
        self._records = records
        self.iterator = iter(records)

    def left(self) -> int:
        """Return the number of records that were not taken from the iterator yet."""
        hint: int = self.iterator.__length_hint__()  # type: ignore[attr-defined]
        return hint

    def last(self, without: int = 0) -> Optional[Tuple[int, Optional[int]]]:
        """Return offset and leader epoch of the last record that was returned; None if none was.

        Arguments: without: the number of records taken from the iterator last that were not
            returned.
        """
        place = len(self._records) - self.left() - 1 - without
        if place < 0:
            return None
        record = self._records[place]
        return record.offset, record.leader_epoch


class IteratedRecords(NamedTuple):
    """The records of one partition that iteration is returning."""

    partition: TopicPartition
    token: int  # of the partition's state when they were taken
    records: Union[LazyRecords, ListedRecords]
    end: int  # the position after them, and after offsets without records that follow
    epoch: int  # the leader epoch of the last record, -1 if unknown
    moves: int = -1  # of the state when they were taken: if it has changed, the program sought


class FetchCollector:
    """Takes records of completed fetches, for the thread inside the consumer.

    Arguments:
        engine: the engine of the consumer, built or not.
        iteration: the state of __next__().
        interceptors: those with a method on_consume() are called with the records.
        read_committed: the isolation level, for the lag.

    Attributes:
        hand_out: that of the last call that takes records.
        iterated: the records that iteration is returning; None between partitions.
        held: records that iteration took and did not return before another call: {partition:
            (token, records, the position after them, its leader epoch)}.
        failed: the fetch with the last record that could not be returned.
    """

    def __init__(
        self,
        engine: Engine,
        iteration: Iteration,
        interceptors: Sequence[Any] = (),
        read_committed: bool = False,
    ) -> None:
        self._engine = engine
        self._iteration = iteration
        self._interceptors = interceptors
        self._read_committed = read_committed
        self.hand_out = HandOut()
        self.iterated: Optional[IteratedRecords] = None
        self.held: Dict[TopicPartition, Tuple[int, List[ConsumerRecord], int, int]] = {}
        self.failed: Optional[CompletedFetch] = None
        self._refused: Optional[Exception] = None  # the error of that record, while it is raised
        self._logged: Any = None  # partition and offset of the last record whose error was logged
        self._recent = RecentRecords()

    def __repr__(self) -> str:
        return '<FetchCollector %r, %d held>' % (self.hand_out, len(self.held))

    # ------------------------------------------------------------ exact positions

    def sync(self) -> None:
        """Set positions after the last returned records; every call that needs positions begins so.

        Iteration does not move the position with each record: the position of its partition is set
        here. Records that an interrupted call had taken are put back.
        """
        if self.hand_out.is_open:
            if self.hand_out.is_running():
                return  # called by a callback inside that call, which was not interrupted
            self.put_back()
        iteration = self._iteration
        if iteration.last_next is not None and has_lost(iteration.last_next):
            iteration.records, iteration.is_cut = NOTHING, True
        iterated = self.iterated
        if iteration.is_cut:
            self._sync_cut(iterated)
        elif iterated is None:
            return
        elif iterated.records.left():
            last = iterated.records.last()
            if last is not None:
                self._move_iterated(iterated, last[0] + 1, last[1])
        else:
            self.iterated = None
            has_records = iterated.records.last() is not None
            self._move_iterated(iterated, iterated.end, iterated.epoch, has_records)

    def _sync_cut(self, iterated: Optional[IteratedRecords]) -> None:
        """As sync(), if an exception kept the last record of iteration from being returned."""
        last = None if iterated is None else iterated.records.last(without=1)
        if iterated is not None and last is not None:
            self._move_iterated(iterated, last[0] + 1, last[1])
        self.hand_out = HandOut()
        self.hand_out.is_open = True
        self._iteration.last_next, self._iteration.is_cut = None, False
        self.put_back()

    def put_back(self) -> None:
        """Undo an interrupted call: fetch the records that it did not return again.

        May be interrupted itself: the next call finds the same state and repeats it.
        """
        engine = self._engine
        with engine.lock:
            self.hand_out.put_back()
        self._iteration.records, self.iterated = NOTHING, None
        self.held.clear()
        engine.fetcher.forget()
        engine.nudge_if_open()
        self.hand_out = HandOut()

    def _move_on(
        self,
        partition: TopicPartition,
        token: int,
        offset: int,
        epoch: Optional[int],
        has_records: bool = True,
        hand_out: Optional[HandOut] = None,
    ) -> bool:
        """Move a position past records, or past offsets without records.

        Arguments: hand_out: where the former place is noted, to be able to move back.
        Returns: False if the token has changed, by a seek or reset, or it is not assigned any more.
        """
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(partition)
            if state is None or state.token != token:
                return False
            if hand_out is not None:
                hand_out.append((partition, state, state.place()))
            move = state.consumed if has_records else state.passed_over
            move(offset, -1 if epoch is None else epoch)
            return True

    def _move_iterated(
        self,
        iterated: IteratedRecords,
        offset: int,
        epoch: Optional[int],
        has_records: bool = True,
    ) -> None:
        """Move the position past the records that iteration has returned."""
        if self._move_on(iterated.partition, iterated.token, offset, epoch, has_records):
            return
        # A turn of the loop may have dropped the records fetched ahead, because the log of a new
        # leader is shorter. Fetching then continues after the returned records, not at their start.
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(iterated.partition)
            if state is not None and state.moves == iterated.moves and state.has_valid_position:
                if self._move_on(iterated.partition, state.token, offset, epoch, has_records):
                    state.rewind()

    def _moves_of(self, partition: TopicPartition, token: int) -> int:
        """Return TopicPartitionState.moves; -1 if the token has changed since."""
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(partition)
            return state.moves if state is not None and state.token == token else -1

    def is_current(self, partition: TopicPartition, token: int) -> bool:
        """Return True if records taken with this token may still be returned."""
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(partition)
            return state is not None and state.token == token

    def begin(self) -> None:
        """Begin a call that returns records: hold back those of iteration, undo an interruption."""
        self.stop_iterating()
        # sync() has left it open: a callback inside another call of this thread calls this one.
        if self.hand_out.is_open:
            self.put_back()

    def stop_iterating(self) -> None:
        """Move the remaining records of iteration to `held`; a later call returns them."""
        self.sync()
        iterated = self.iterated
        if iterated is None or self.hand_out.is_open:
            return
        # list() empties the iterator, which counts as returning the records: an open HandOut lets
        # the next call put them back if an exception comes in between.
        hand_out = HandOut()
        hand_out.is_open = True
        self.hand_out, self._iteration.records = hand_out, NOTHING
        rest = list(iterated.records.iterator)
        if rest:
            self.held[iterated.partition] = iterated.token, rest, iterated.end, iterated.epoch
        self.iterated = None
        hand_out.is_open = False

    def forget_held(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the held records of partitions that were sought or are not read any more."""
        for partition in partitions:
            self.held.pop(partition, None)

    # ------------------------------------------------------------ lists, for poll()

    def collect(self, most: float) -> Records:
        """Take up to `most` records, math.inf for no limit.

        Raises: the error of a record that cannot be returned, if no record comes before it in this
            call; otherwise the next call raises it.
        """
        found: List[_Taken] = []
        count = 0
        while count < most:
            try:
                some = self._next_of_one_partition(None if most == math.inf else int(most - count))
            except Exception as error:
                refused, self._refused = self._refused, None
                if refused is not error:
                    raise  # from outside: the next call puts back the records taken so far
                if count:  # kept for the next call, which raises it before anything else
                    fetch: Any = self.failed
                    fetch.is_put_off, fetch.refused = False, (fetch.failed_at, error)
                    break
                self.hand_out.is_open = False
                raise
            if some is None:
                break
            found.append(some)
            count += len(some[2])
        records: Records = {}
        for partition, token, taken, end, epoch in found:
            has_moved = self._move_on(partition, token, end, epoch, bool(taken), self.hand_out)
            if has_moved and taken:
                self._count(partition, len(taken))
                if partition in records:
                    records[partition] += taken
                else:
                    records[partition] = taken
        return records

    def _next_of_one_partition(self, most: Optional[int]) -> Optional[_Taken]:
        """Take records of one partition; None if nothing is buffered."""
        if self.held:
            held = self._next_held(most)
            if held is not None:
                return held
        fetch = self._engine.fetcher.next_fetch()
        if fetch is None:
            return None
        fetch.recent = self._recent
        taken: List[Any] = self._take_or_put_back(fetch, lambda: fetch.take(most))
        return fetch.partition, fetch.token, taken, fetch.position, fetch.last_epoch

    def _take_or_put_back(self, fetch: Any, take: Callable[[], Any]) -> Any:
        """Call take(), and put the fetch back into the buffer unless it is empty then."""
        engine = self._engine
        fetch.failed_at = None
        try:
            taken = take()
        except Exception as error:
            if fetch.failed_at is None:
                raise  # not the error of a record, but raised from outside
            self.failed = fetch
            engine.fetcher.put_off(fetch)
            self._locate(error, fetch)
            self._refused = error
            raise
        if fetch.is_done:
            engine.fetcher.done(fetch)
        else:
            engine.fetcher.put_back(fetch)
        return taken

    def _locate(self, error: Any, fetch: CompletedFetch) -> None:
        """Set `failed_at` of the error of a record to (TopicPartition, offset).

        An error raised by the program's own code, such as a deserializer, also gets a note and is
        logged once; its text stays.
        """
        partition, offset = fetch.partition, fetch.failed_at
        if getattr(error, 'failed_at', None) == (partition, offset):
            return  # raised again, by the call after the one that met it
        if not isinstance(error, KafkaError):
            text = 'raised for the record at offset %d of partition %d of topic %r'
            note = text % (offset, partition.partition, str(partition.topic))
            error.__notes__ = [*getattr(error, '__notes__', ()), note]  # shown from 3.11 on
            if self._logged != (partition, offset):
                self._logged = partition, offset
                name = type(error).__name__
                log.error('%s was %s: seek to the next offset to continue without it', name, note)
        error.failed_at = partition, offset

    def _next_held(self, most: Optional[int]) -> Optional[_Taken]:
        """Take held records of a partition that is neither paused nor held by a rebalance."""
        engine = self._engine
        for partition, (token, records, end, epoch) in list(self.held.items()):
            with engine.lock:
                state = engine.subscription.assignment.get(partition)
                is_stale = state is None or state.token != token
                waits = state is not None and is_suspended(state)
            if is_stale:
                del self.held[partition]
            elif not waits:
                if most is None or len(records) <= most:
                    del self.held[partition]
                    return partition, token, records, end, epoch
                taken, rest = records[:most], records[most:]
                self.held[partition] = token, rest, end, epoch
                last = taken[-1]
                return partition, token, taken, last.offset + 1, _known(last.leader_epoch)
        return None

    def _count(self, partition: TopicPartition, records: int) -> None:
        """Record the number of returned records, and the lag, in the metrics."""
        engine = self._engine
        if engine.figures is not None:
            with engine.lock:
                state = engine.subscription.assignment.get(partition)
                lag = None if state is None else state.lag(self._read_committed)
            engine.figures.consumed(partition, records, lag)

    def intercepted(self, records: Records) -> Records:
        """Return the records as changed by the interceptors' on_consume().

        Raises: TypeError if an interceptor does not return a dict; what an interceptor raises.
        """
        for interceptor in self._interceptors:
            if hasattr(interceptor, 'on_consume'):
                records = interceptor.on_consume(records)
                if not isinstance(records, dict):
                    raise TypeError(
                        '%s.on_consume() must return a dict of lists by TopicPartition, not %s'
                        % (type(interceptor).__name__, type(records).__name__)
                    )
        return records

    # ------------------------------------------------------------ iteration

    def take_for_iteration(self, most: int) -> Optional[IteratedRecords]:
        """Take up to `most` records of one partition for iteration; None if nothing is buffered.

        Raises: the error of a record that cannot be returned.
        """
        if self.held:
            held = self._next_held(most)
            if held is not None:
                partition, token, records, end, epoch = held
                return IteratedRecords(partition, token, ListedRecords(records), end, epoch)
        fetch = self._engine.fetcher.next_fetch()
        if fetch is None:
            return None
        try:
            lazy: Any = self._take_or_put_back(fetch, lambda: fetch.take_lazily(most))
        except Exception as error:
            self.hand_out.is_open, self._refused = self._refused is not error, None
            raise
        taken = ListedRecords([]) if lazy is None else lazy
        return IteratedRecords(
            fetch.partition, fetch.token, taken, fetch.position, fetch.last_epoch
        )

    def iterate_over(self, iterated: IteratedRecords) -> Tuple[int, Iterator[ConsumerRecord]]:
        """Continue iteration with these records; return their number and an iterator over them."""
        records = iterated.records
        if self._interceptors:
            found = list(records.iterator)
            if found:
                # If an interceptor raises, the open HandOut lets the next call put them back.
                shown = self.intercepted({iterated.partition: found})
                found = shown.get(iterated.partition, [])
            records = ListedRecords(found)
            iterated = iterated._replace(records=records)
        size = records.left()
        partition, token = iterated.partition, iterated.token
        if size:
            self._count(partition, size)
            self.iterated = iterated._replace(moves=self._moves_of(partition, token))
        else:  # nothing but offsets without records
            self._move_on(partition, token, iterated.end, iterated.epoch, False)
        return size, records.iterator

    # ------------------------------------------------------------ Arrow, for poll_arrow()

    def collect_arrow(self, maker: ArrowMaker) -> Any:
        """Take the next records of one partition as a RecordBatch; None if nothing is buffered.

        Raises: the error of a record that cannot be returned.
        """
        engine = self._engine
        held = self._next_held(None) if self.held else None
        if held is not None:
            partition, token, records, end, epoch = held
            columns = _columns_of(records)
            try:
                batch = maker.of_columns(str(partition.topic), partition.partition, columns)
            except ProtocolError:  # after they are fetched again, the error names their offset
                self.put_back()
                return None
            self._move_on(partition, token, end, epoch, bool(records), self.hand_out)
            return batch
        fetch = engine.fetcher.next_fetch()
        if fetch is None:
            return None
        try:
            batch = self._take_or_put_back(fetch, lambda: take_arrow(fetch, maker))
        except Exception as error:
            self.hand_out.is_open, self._refused = self._refused is not error, None
            raise
        end, epoch, has_rows = fetch.position, fetch.last_epoch, batch.num_rows > 0
        if not self._move_on(fetch.partition, fetch.token, end, epoch, has_rows, self.hand_out):
            return self.collect_arrow(maker)  # moved meanwhile: these records are stale
        return batch


def take_arrow(fetch: CompletedFetch, maker: ArrowMaker) -> Any:
    """Return all records of a CompletedFetch, or its next ones, as a pyarrow.RecordBatch.

    Raises: as CompletedFetch.take_made().
    """
    topic, number = str(fetch.partition.topic), fetch.partition.partition
    raw = fetch.undecoded() if has_numpy() else None
    if raw is not None and raw.headers:
        maker.add(topic, number, fetch.position, _FAR, raw)
        try:
            made = maker.make()
        except ProtocolError:  # take_made() below raises it with the offset
            pass
        else:
            fetch.pass_over()
            return made
    made = fetch.take_made(partial(maker.of_columns, topic, number))
    if made is None:
        made = maker.of_columns(topic, number, RecordColumns([], [], 0, None, []))
    return made


def _columns_of(records: List[Any]) -> RecordColumns:
    """Return the columns of a list of records, all of one partition."""
    kind: Optional[int] = records[0].timestamp_type if records else None
    has_times = records and records[0].timestamp is not None
    return RecordColumns(
        [each.offset for each in records],
        [each.timestamp for each in records] if has_times else None,
        kind,
        [each.key for each in records],
        [each.value for each in records],
        [tuple(each.headers) for each in records],
    )


def _known(epoch: Optional[int]) -> int:
    return -1 if epoch is None else epoch
