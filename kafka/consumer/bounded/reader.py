"""BoundedReader: the records of partitions between two offsets, without a group.

For pipelines and tools; Spark makes one in each of its tasks. Looks its bounds up once, and returns
records in lists, one by one, or as Arrow batches. A pickled reader is its description, never a
connection. RangeFetcher fetches, in turns of the loop; everything else runs in the calling thread.
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
from kafka.record.vectors import DEFAULT_COLUMNS, ArrowMaker
from kafka.structs import TopicPartition

__all__ = ['BoundedReader']

#: Options of consumers that mean nothing here, so that nobody believes they do.
_OF_GROUPS = ('group_id', 'group_instance_id', 'interceptors')
#: Any, as float is no subclass of it to type checkers.
_REAL: Any = numbers.Real
_OFFSET = attrgetter('offset')
#: Records in a list, if nobody says how many.
AT_A_TIME = 1000


class BoundedReader:
    """Read ranges of offsets: ``for record in BoundedReader('topic', bootstrap_servers=...)``.

    Arguments:
        what: a topic; or some of topics, TopicPartitions and OffsetRanges; or
            {TopicPartition or topic: (start, stop)}.
        start, stop: for what has no bounds of its own: an offset, 'earliest', 'latest', or a time,
            a ``Timestamp(ms)`` or a datetime with a zone, which means the first record that is not
            older, or the end of the log where there is none. `stop` itself is not read. They are
            looked up once, at the first use.
        fail_on_data_loss: whether it is an error when offsets of a range are gone, by retention, or
            because a topic was cut off or deleted; else they are passed over, see `lost`.
        start_may_move: whether a log that begins behind the start of a range by now is no loss.
        cut_off_after_ms: for how long a log may end before a range does until that is loss of data;
            by None it is waited for, until timeout_ms.
        timeout_ms: for how long a range may get nothing before that is an error.
        max_buffered_bytes: how much is fetched ahead at most.
        client: whose connections and options to use; it stays open. Readers use it one after the
            other. Such a reader is no pickle.
        configs: options of KafkaConsumer, but for those of groups. With isolation_level
            'read_committed' the end of a log is where its first open transaction begins.

    Nothing is connected before the first use. Records come in order within a partition; those of
    several partitions come mixed. A reader pickles as its description: the copy connects by itself
    and reads all of the ranges, with the offsets that were looked up if they were. Not safe for use
    by several threads at once.

    Raises: KafkaConfigurationError for options; IllegalArgumentError for bounds.
    """

    _new_client = NetworkClient  # where the simulation puts its own

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
        # What is being taken, and the records of it that next() has still to hand out.
        self._parked: Optional[BufferedAnswer] = None
        self._fetch: Optional[CompletedFetch] = None
        self._ready: Iterator[ConsumerRecord] = iter(())
        self._listed: List[ConsumerRecord] = []  # all of them
        # True while a call holds records it has not returned. If still True at the next call, an
        # exception ended the last one: fetch again from the end of what was returned.
        self.is_reading = False
        self._refused: Any = None  # what was raised about a record, on its way to the program
        self._reached: Dict[TopicPartition, int] = {}
        self.ends: Dict[TopicPartition, int] = {}
        self._lost: Dict[TopicPartition, List[Tuple[int, int]]] = {}  # by fetchers before

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
        """Return what is read, as offsets, sorted by topic and partition.

        Raises: NoBrokersAvailable; KafkaTimeoutError for what cannot be looked up in time, such as
        bounds of a partition that does not exist; TopicAuthorizationFailedError; and what
        connecting fails with for good.
        """
        if self._ranges is None:
            loop = self._connected()
            self._ranges = loop.run(self._resolve(), None)
        return list(self._ranges)

    def _connected(self) -> EventLoop:
        if self._is_closed:
            raise IllegalStateError('the reader is closed')
        return self._client.connected()

    @property
    def _loop(self) -> Any:
        return self._client.loop

    async def _resolve(self) -> List[OffsetRange]:
        """Look all bounds up."""
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
            # No record is as young as that: the end of the log.
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
        # The last step, without a call: from here on the iterator is the program's.
        self.ends, self._listed, self._ready, self.is_reading = ends, records, ready, False
        for record in ready:
            return record
        raise StopIteration

    def read(self, max_records: int = AT_A_TIME) -> List[ConsumerRecord]:
        """Return the next records of a partition; none at the end of all.

        Arguments: max_records: how many at most. Longer lists are dearer: the collector of garbage
            looks at each record again and again while a list of them grows.

        Raises: CorruptRecordError, UnsupportedCodecError, and what a deserializer raised, for a
        record that cannot be handed out, again with each call: skip_corrupt() gets over a batch;
        OffsetOutOfRangeError for offsets that are gone; TopicAuthorizationFailedError;
        KafkaTimeoutError for a range that gets nothing; as ranges(). IllegalArgumentError for a
        number below 1, IllegalStateError after arrow() and close().
        """
        if max_records < 1:
            raise IllegalArgumentError('max_records must be 1 or more, not %r' % (max_records,))
        records, rest = self._read(max_records)
        ends, ready = _end_of(records), iter(rest)
        # The last step, without a call: from here on they are the program's.
        self.ends, self._listed, self._ready, self.is_reading = ends, rest, ready, False
        return records

    def begin_reading(self) -> None:
        """Begin a call that returns records; what an exception kept from the program comes again.

        The call sets ends, and is_reading to False as its last step, or when it raises what leaves
        everything in its place.
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
        """Return records for a call that ends by is_reading = False; else they come again.

        Returns: also what is left of the list that iteration had begun.
        """
        self._begin('records')
        rest: List[ConsumerRecord] = []
        if self._listed and not self.is_reading:
            # Iteration has returned a part of its list. An exception may keep the rest from the
            # program.
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
        """Return True if an error, on its way to the program, leaves everything in its place.

        Such are those about a record and those of fetching, not what is raised from outside.
        """
        refused, self._refused = self._refused, None
        fetcher = self._fetcher
        if fetcher is None:
            return error is refused
        raised, fetcher.raised = fetcher.raised, None
        return error is refused or error is raised

    def taken(self, fetch: Any, take: Callable[[], Any]) -> Any:
        """Take something of a fetch, and note an error that is about a record."""
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
        """Return what is being taken, or begin with the next; None at the end of all."""
        if self._fetch is None:
            parked = self.next_parked()
            if parked is not None:
                self._open(parked)
        return self._fetch

    # ------------------------------------------------------------ for arrow_batches.py

    def next_parked(self) -> Optional[BufferedAnswer]:
        """Wait for the next answer; None at the end of all."""
        source = self._source()
        while True:
            parked = source.take()
            if parked is not None or source.is_over:
                return parked
            self._connected().wait(lambda: source.has_news, None)

    def another_parked(self) -> Optional[BufferedAnswer]:
        """Return the next answer if it is there."""
        return self._source().take_parked()

    def opened(self, parked: BufferedAnswer) -> CompletedFetch:
        """Return an answer as something to be taken record by record, begun or new."""
        if self._fetch is not None and self._parked is parked:
            return self._fetch
        return self._open(parked)

    def _open(self, parked: BufferedAnswer) -> CompletedFetch:
        self._parked, self._fetch = parked, self.made(parked)
        return self._fetch

    def made(self, parked: BufferedAnswer) -> CompletedFetch:
        """Return an answer as something to be taken, new."""
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
        """Note that an answer is used up."""
        self._source().done(parked)

    def finish_opened(self) -> None:
        """Note the same of what opened() returned."""
        parked, self._parked, self._fetch = self._parked, None, None
        if parked is not None:
            self.finish(parked)

    # ------------------------------------------------------------ what else there is

    def arrow(
        self,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        timestamp_unit: str = 'ms',
        max_batch_bytes: int = 2097152,
    ) -> ArrowBatches:
        """Return an iterator of pyarrow.RecordBatch, made without an object for each record.

        Arguments:
            columns: of key, value, topic, partition, offset, timestamp, timestamp_type and headers,
                in this order; all but the headers. Keys and values are bytes. Headers are null for
                a record without any. timestamp is null, and timestamp_type -1, for records of
                brokers before 0.10.
            timestamp_unit: 'ms', 'us' or 'ns'; the zone is UTC.
            max_batch_bytes: about how large a batch gets, unless one of Kafka's is larger.

        Its next() raises as read(), and goes on after an error. Needs the extra ``arrow``.

        Raises: KafkaConfigurationError for a column or unit that there is not and where
            deserializers are set; MissingArrowError; IllegalStateError after read() and close().
        """
        if self._key_deserializer is not None or self._value_deserializer is not None:
            raise KafkaConfigurationError('Arrow batches have bytes: leave out deserializers')
        maker = ArrowMaker(columns, timestamp_unit)
        self._begin('Arrow batches')
        return ArrowBatches(self, maker, max_batch_bytes)

    def skip_corrupt(self) -> int:
        """Give up the batch that could not be read, and return the offset from which on to read.

        Raises IllegalStateError when the last call did not fail with such a batch.
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
        """{partition: [(first, behind the last)]} of offsets that were gone and passed over."""
        found = {at: [*some] for at, some in self._lost.items()}
        if self._fetcher is not None:
            for at, some in list(self._fetcher.lost.items()):  # at once: a turn may add to it
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
    """Return where reading goes on with a record."""
    return {TopicPartition(record.topic, record.partition): record.offset}


def _end_of(records: List[ConsumerRecord]) -> Dict[TopicPartition, int]:
    """Return where reading goes on behind some records of a partition."""
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
