"""BoundedReader: reads the records of partitions between two offsets, without a group.

For pipelines and tools; Spark makes one in each of its tasks. It looks up its bounds once, and
returns records in lists, one by one, or as Arrow batches. A pickled reader contains its arguments,
not its connections. RangeFetcher fetches, in turns of the loop; everything else runs in the calling
thread.
"""

from __future__ import annotations

import numbers
from bisect import bisect_left
from functools import partial
from operator import attrgetter
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from kafka import config as options
from kafka.consumer.arrow_batches import ArrowBatches
from kafka.consumer.bounded.client import ReaderClient
from kafka.consumer.bounded.fetcher import BufferedAnswer, RangeFetcher, ReadSettings
from kafka.consumer.bounded.ranges import LATEST, Bound, OffsetRange, Wishes, as_timestamp
from kafka.consumer.deserializers import adapt_deserializer
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer_record import ConsumerRecord
from kafka.errors import (
    IllegalArgumentError,
    IllegalStateError,
    KafkaConfigurationError,
)
from kafka.internals.cleanup import clean_up
from kafka.net.client import NetworkClient
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.tasks import CoroutineCall
from kafka.record.vectors import DEFAULT_COLUMNS, ArrowMaker
from kafka.structs import TopicPartition

__all__ = ['BoundedReader']

#: Options of KafkaConsumer that a reader refuses, because they would have no effect.
_OF_GROUPS = ('group_id', 'group_instance_id', 'interceptors')
#: Declared Any, because to type checkers float is not a subclass of numbers.Real.
_REAL: Any = numbers.Real
_OFFSET = attrgetter('offset')
#: The default number of records in a list.
AT_A_TIME = 1000


class BoundedReader:
    """Read ranges of offsets: ``for record in BoundedReader('topic', bootstrap_servers=...)``.

    Arguments:
        what: a topic; or some of topics, TopicPartitions and OffsetRanges; or
            {TopicPartition or topic: (start, stop)}.
        start, stop: the bounds of topics and partitions without their own: an offset, 'earliest',
            'latest', or a time, a ``Timestamp(ms)`` or a datetime with a time zone, which means the
            first record that is not older, or the end of the log if there is no such record. The
            record at `stop` is not read. Bounds are looked up once, at the first use.
        fail_on_data_loss: whether offsets of a range that are gone are an error, because of
            retention, or because a topic was truncated or deleted; otherwise they are skipped, see
            `lost`.
        start_may_move: whether a log that begins after the start of a range counts as no loss.
        cut_off_after_ms: how long a log may end before the end of a range until that counts as data
            loss; None: the reader waits until timeout_ms.
        timeout_ms: how long a range may have no progress before that is an error.
        max_buffered_bytes: the most bytes to fetch ahead.
        client: a ReaderClient whose connections and options to use; close() leaves it open. Several
            readers may use it one after the other. Such a reader cannot be pickled.
        configs: options of KafkaConsumer, except those of groups. With isolation_level
            'read_committed' the end of a log is its last stable offset.

    Nothing is connected before the first use. Records are in order within a partition; those of
    several partitions are interleaved. Unpickling makes a new reader with the same arguments, which
    connects by itself and reads all of the ranges; bounds that were looked up stay. Not safe for
    use by several threads at once.

    Raises: KafkaConfigurationError for options; IllegalArgumentError for bounds.
    """

    _new_client = NetworkClient  # replaced in simulations

    def __init__(
        self,
        what: Any,
        start: Bound = 'earliest',
        stop: Bound = 'latest',
        *,
        fail_on_data_loss: bool = True,
        start_may_move: bool = False,
        cut_off_after_ms: Optional[float] = None,
        timeout_ms: float = 120000,
        max_buffered_bytes: int = 67108864,
        client: Optional[ReaderClient] = None,
        **configs: Any,
    ) -> None:
        self._wishes = Wishes.of(what, start, stop)
        for name, value in (
            ('cut_off_after_ms', 1 if cut_off_after_ms is None else cut_off_after_ms),
            ('timeout_ms', timeout_ms),
            ('max_buffered_bytes', max_buffered_bytes),
        ):
            if not isinstance(value, _REAL) or not value > 0:
                raise KafkaConfigurationError('%s must be more than 0, not %r' % (name, value))
        if client is not None and configs:
            raise KafkaConfigurationError("the options of a reader with a client are the client's")
        self._given = options.hidden(configs)
        config = options.resolve(options.CONSUMER, configs) if client is None else client.config
        self.config = config
        for name in _OF_GROUPS:
            if config.get(name):
                raise KafkaConfigurationError('a BoundedReader has no group: leave out %s' % name)
        self._more = {
            'fail_on_data_loss': fail_on_data_loss,
            'start_may_move': start_may_move,
            'cut_off_after_ms': cut_off_after_ms,
            'timeout_ms': timeout_ms,
            'max_buffered_bytes': max_buffered_bytes,
        }
        self.settings = _settings(config, self._more)
        self._key_deserializer = adapt_deserializer('key_deserializer', config['key_deserializer'])
        self._value_deserializer = adapt_deserializer(
            'value_deserializer', config['value_deserializer']
        )
        self._is_borrowed = client is not None
        self._client = client or ReaderClient(config, _thread_name(config), self._new_client)
        self._fetcher: Optional[RangeFetcher] = None
        self._ranges: Optional[List[OffsetRange]] = None
        self._is_closed = False
        self._reads: Optional[str] = None
        # The answer being taken, and the records of it that next() has not returned yet.
        self._parked: Optional[BufferedAnswer] = None
        self._fetch: Optional[CompletedFetch] = None
        self._ready: Iterator[ConsumerRecord] = iter(())
        self._listed: List[ConsumerRecord] = []  # the list that _ready iterates over
        # True while a call has records that it has not returned. If still True at the next call, an
        # exception ended the last one: fetch again from the end of the returned records.
        self.is_reading = False
        self._refused: Any = None  # the error of a record, while it is raised
        self._reached: Dict[TopicPartition, int] = {}
        self.ends: Dict[TopicPartition, int] = {}
        self._lost: Dict[TopicPartition, List[Tuple[int, int]]] = {}  # of earlier fetchers

    def __repr__(self) -> str:
        if self._ranges is None:
            told = '%d topics, %d partitions' % (
                len(self._wishes.topics),
                len(self._wishes.partitions),
            )
        else:
            told = '%d partitions' % len(self._ranges)
        return '<BoundedReader %s%s>' % (told, ' closed' if self._is_closed else '')

    def __reduce__(self) -> Tuple[Any, ...]:
        if self._ranges is not None:
            what: Any = list(self._ranges)
        else:
            what = {**self._wishes.partitions, **self._wishes.topics}
        if self._is_borrowed:
            raise IllegalStateError('a reader with a client of others cannot be pickled')
        return _remake, (type(self), what, {**self._more, **self._given})

    # ------------------------------------------------------------ before reading

    def ranges(self) -> List[OffsetRange]:
        """Return the ranges, as offsets, sorted by topic and partition.

        Raises: NoBrokersAvailable; KafkaTimeoutError for bounds that cannot be looked up in time,
        such as those of a partition that does not exist; TopicAuthorizationFailedError; errors of
        connecting that are not retriable.
        """
        if self._ranges is None:
            loop = self._connected()
            self._ranges = loop.run(CoroutineCall(self._resolve), None)
        return list(self._ranges)

    def _connected(self) -> EventLoop:
        if self._is_closed:
            raise IllegalStateError('the reader is closed')
        return self._client.connected()

    @property
    def _loop(self) -> Any:
        return self._client.loop

    async def _resolve(self) -> List[OffsetRange]:
        """Look up all bounds."""
        seconds = self.settings.request_timeout
        bounds = dict(self._wishes.partitions)
        for topic, both in self._wishes.topics.items():
            await self._client.pool.wait_for_topic(topic, seconds)
            for partition in self._client.pool.cluster.partitions_for_topic(topic) or ():
                bounds[TopicPartition(topic, partition)] = both
        starts = await self._offsets({each: both[0] for each, both in bounds.items()}, seconds)
        stops = await self._offsets({each: both[1] for each, both in bounds.items()}, seconds)
        return [
            OffsetRange(
                str(each.topic), each.partition, starts[each], max(starts[each], stops[each])
            )
            for each in sorted(bounds)
        ]

    async def _offsets(
        self, bounds: Mapping[TopicPartition, Bound], seconds: float
    ) -> Dict[TopicPartition, int]:
        asked = {each: as_timestamp(bound) for each, bound in bounds.items()}
        found: Dict[TopicPartition, int] = {
            each: bounds[each]  # type: ignore[misc]
            for each, timestamp in asked.items()
            if timestamp is None
        }
        wanted = {each: stamp for each, stamp in asked.items() if stamp is not None}
        for _ in range(2):
            if wanted:
                answers = await self._client.lookups.look_up(wanted, seconds)
                found.update({at: int(each[0]) for at, each in answers.items() if each is not None})
            # A time later than all records: the end of the log.
            wanted = {each: LATEST for each in wanted if each not in found}
        return found

    def _source(self) -> RangeFetcher:
        if self._fetcher is None:
            reached = self._reached
            ranges = [
                each._replace(
                    start=min(max(each.start, reached.get(TopicPartition(*each[:2]), 0)), each.stop)
                )
                for each in self.ranges()
            ]
            loop = self._connected()
            client = self._client
            self._fetcher = RangeFetcher(loop, client.pool, client.lookups, ranges, self.settings)
            loop.call_threadsafe(self._fetcher.look)
        return self._fetcher

    # ------------------------------------------------------------ records

    def __iter__(self) -> BoundedReader:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next record; raises as read()."""
        for record in self._ready:
            return record
        records, _ = self._read(AT_A_TIME)
        if not records:
            self.is_reading = False
            raise StopIteration
        ends, ready = _end_of(records), iter(records)
        # The last step, without a call: from here on records leave the iterator as returned.
        self.ends, self._listed, self._ready, self.is_reading = ends, records, ready, False
        for record in ready:
            return record
        raise StopIteration

    def read(self, max_records: int = AT_A_TIME) -> List[ConsumerRecord]:
        """Return the next records of a partition; an empty list at the end of all ranges.

        Arguments: max_records: the most records to return. Longer lists cost more per record: the
            garbage collector visits each record repeatedly while the list grows.

        Raises: CorruptRecordError, UnsupportedCodecError, and what a deserializer raised, for a
        record that cannot be returned, again with each call: skip_corrupt() skips a batch;
        OffsetOutOfRangeError for offsets that are gone; TopicAuthorizationFailedError;
        KafkaTimeoutError for a range without progress; as ranges(). IllegalArgumentError for a
        number below 1, IllegalStateError after arrow() and close().
        """
        if max_records < 1:
            raise IllegalArgumentError('max_records must be 1 or more, not %r' % (max_records,))
        records, rest = self._read(max_records)
        ends, ready = _end_of(records), iter(rest)
        # The last step, without a call: from here on the records count as returned.
        self.ends, self._listed, self._ready, self.is_reading = ends, rest, ready, False
        return records

    def begin_reading(self) -> None:
        """Begin a call that returns records; after an interrupted call, fetch its records again.

        The caller sets `ends`, and is_reading to False as its last step, or when it raises an error
        for which is_told() is True.
        """
        if self.is_reading:
            fetcher, self._parked, self._fetch = self._fetcher, None, None
            if fetcher is not None:
                fetcher.close()
                self._lost, self._fetcher = self.lost, None
        else:
            self._reached.update(self.ends)
        nothing: Iterator[ConsumerRecord] = iter(())
        self.ends, self._listed, self.is_reading, self._ready = {}, [], True, nothing

    def _read(self, max_records: int) -> Tuple[List[ConsumerRecord], List[ConsumerRecord]]:
        """Return records; unless the caller sets is_reading to False they are read again.

        Returns: the records, and the rest of the list that iteration had begun.
        """
        self._begin('records')
        rest: List[ConsumerRecord] = []
        if self._listed and not self.is_reading:
            # Iteration has returned a part of its list. Set `ends` accordingly first: an exception
            # may keep the rest from being returned.
            left: int = self._ready.__length_hint__()  # type: ignore[attr-defined]
            rest = self._listed[len(self._listed) - left :]
            self.ends = _begin_of(rest[0]) if rest else _end_of(self._listed)
        self.begin_reading()
        if rest:
            return rest[:max_records], rest[max_records:]
        try:
            return self._take(max_records), []
        except Exception as error:
            self.is_reading = not self.is_told(error)
            raise

    def is_told(self, error: BaseException) -> bool:
        """Return True if an error that is raised to the program leaves the reader's state valid.

        That is so for the error of a record and for errors of fetching, not for exceptions raised
        from outside.
        """
        refused, self._refused = self._refused, None
        fetcher = self._fetcher
        if fetcher is None:
            return error is refused
        raised, fetcher.raised = fetcher.raised, None
        return error is refused or error is raised

    def taken(self, fetch: Any, take: Callable[[], Any]) -> Any:
        """Return take(); remember its error if it is that of a record, for is_told()."""
        fetch.failed_at = None
        try:
            return take()
        except Exception as error:
            if fetch.failed_at is not None:
                self._refused = error
            raise

    def _take(self, max_records: int) -> List[ConsumerRecord]:
        records: List[ConsumerRecord] = []
        while not records and self._open_next() is not None:
            fetch = self._fetch
            assert fetch is not None and self._parked is not None
            records = self.taken(fetch, partial(fetch.take, max_records))
            stop = self._parked.state.stop
            if records and records[-1].offset >= stop:
                del records[bisect_left(list(map(_OFFSET, records)), stop) :]
                self.finish_opened()
            elif fetch.is_done:
                self.finish_opened()
        return records

    def _begin(self, what: str) -> None:
        if self._is_closed:
            raise IllegalStateError('the reader is closed')
        if self._reads not in (None, what):
            raise IllegalStateError('this reader gives %s; make another one' % self._reads)
        self._reads = what

    def _open_next(self) -> Optional[CompletedFetch]:
        """Return the fetch being taken, or open the next; None at the end of all ranges."""
        if self._fetch is None:
            parked = self.next_parked()
            if parked is not None:
                self._open(parked)
        return self._fetch

    # ------------------------------------------------------------ for arrow_batches.py

    def next_parked(self) -> Optional[BufferedAnswer]:
        """Wait for the next answer; None at the end of all ranges."""
        source = self._source()
        while True:
            parked = source.take()
            if parked is not None or source.is_over:
                return parked
            self._connected().wait(lambda: source.has_news, None)

    def another_parked(self) -> Optional[BufferedAnswer]:
        """Return the next answer if it is buffered, else None."""
        return self._source().take_parked()

    def opened(self, parked: BufferedAnswer) -> CompletedFetch:
        """Return the CompletedFetch of an answer: the open one, or a new one."""
        if self._fetch is not None and self._parked is parked:
            return self._fetch
        return self._open(parked)

    def _open(self, parked: BufferedAnswer) -> CompletedFetch:
        self._parked, self._fetch = parked, self.made(parked)
        return self._fetch

    def made(self, parked: BufferedAnswer) -> CompletedFetch:
        """Return a new CompletedFetch of an answer."""
        return CompletedFetch(
            parked.state.partition,
            parked.offset,
            parked.data,
            token=parked.token,
            node_id=parked.node_id,
            read_committed=self.settings.read_committed,
            check_crcs=self.config['check_crcs'],
            key_deserializer=self._key_deserializer,
            value_deserializer=self._value_deserializer,
        )

    def finish(self, parked: BufferedAnswer) -> None:
        """Release an answer whose records were all taken."""
        self._source().done(parked)

    def finish_opened(self) -> None:
        """Release the answer whose fetch opened() returned."""
        parked, self._parked, self._fetch = self._parked, None, None
        if parked is not None:
            self.finish(parked)

    # ------------------------------------------------------------ Arrow, skipping, closing

    def arrow(
        self,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        timestamp_unit: str = 'ms',
        max_batch_bytes: int = 2097152,
    ) -> ArrowBatches:
        """Return an iterator of pyarrow.RecordBatch, made without an object for each record.

        Arguments:
            columns: the columns, in their order: some of key, value, topic, partition, offset,
                timestamp, timestamp_type and headers; by default all except headers. Keys and
                values are bytes. Headers are null for a record without headers. timestamp is null,
                and timestamp_type -1, for records of brokers before 0.10.
            timestamp_unit: 'ms', 'us' or 'ns'; the time zone is UTC.
            max_batch_bytes: the approximate size of a batch, unless a record batch is larger.

        next() of the iterator raises as read(), and may be called again after an error. Needs the
        extra ``arrow``.

        Raises: KafkaConfigurationError for an unknown column or unit, and if deserializers are set;
            MissingArrowError; IllegalStateError after read() and close().
        """
        if self._key_deserializer is not None or self._value_deserializer is not None:
            raise KafkaConfigurationError('Arrow batches have bytes: leave out deserializers')
        maker = ArrowMaker(columns, timestamp_unit)
        self._begin('Arrow batches')
        return ArrowBatches(self, maker, max_batch_bytes)

    def skip_corrupt(self) -> int:
        """Skip the batch that could not be read, and return the offset to continue at.

        Raises: IllegalStateError unless the last call failed because of such a batch.
        """
        if self._fetch is None or self._parked is None:
            raise IllegalStateError('no batch that cannot be read was met')
        offset = self._fetch.skip_corrupt()
        self._source().seek(self._parked.state, offset)
        self.ends[self._parked.state.partition] = offset
        self.finish_opened()
        return offset

    @property
    def lost(self) -> Dict[TopicPartition, List[Tuple[int, int]]]:
        """{partition: [(first, end)]} of offsets that were gone and skipped, end exclusive."""
        found = {at: [*some] for at, some in self._lost.items()}
        if self._fetcher is not None:
            for at, some in list(self._fetcher.lost.items()):  # a copy: a turn may add to it
                found.setdefault(at, []).extend(some)
        return found

    def close(self) -> None:
        """Close the connections; may be called again."""
        self._is_closed = True
        self._ready = iter(())
        if self._fetcher is not None:
            self._fetcher.close()
        if not self._is_borrowed:
            self._client.close()

    def __enter__(self) -> BoundedReader:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(self.close, error)


def _begin_of(record: ConsumerRecord) -> Dict[TopicPartition, int]:
    """Return {partition: offset} to continue at a record."""
    return {TopicPartition(record.topic, record.partition): record.offset}


def _end_of(records: List[ConsumerRecord]) -> Dict[TopicPartition, int]:
    """Return {partition: offset} to continue after records of one partition; {} without records."""
    if not records:
        return {}
    last = records[-1]
    return {TopicPartition(last.topic, last.partition): last.offset + 1}


def _settings(config: Any, more: Dict[str, Any]) -> ReadSettings:
    cut_off_after_ms = more['cut_off_after_ms']
    return ReadSettings(
        min_bytes=config['fetch_min_bytes'],
        max_wait=config['fetch_max_wait_ms'] / 1000,
        max_bytes=config['fetch_max_bytes'],
        max_partition_bytes=config['max_partition_fetch_bytes'],
        max_buffered_bytes=more['max_buffered_bytes'],
        read_committed=config['isolation_level'] == 'read_committed',
        client_rack=config['client_rack'] or '',
        request_timeout=config['request_timeout_ms'] / 1000,
        retry_backoff=config['retry_backoff_ms'] / 1000,
        retry_backoff_max=config['retry_backoff_max_ms'] / 1000,
        timeout=more['timeout_ms'] / 1000,
        fail_on_data_loss=more['fail_on_data_loss'],
        start_may_move=more['start_may_move'],
        cut_off_after=None if cut_off_after_ms is None else cut_off_after_ms / 1000,
    )


def _remake(cls: Any, what: Any, given: Dict[str, Any]) -> Any:
    return cls(what, **given)


def _thread_name(config: Mapping[str, Any]) -> str:
    return '%s-reader' % (config['client_id'] or 'kafka-python')
