"""poll_arrow(): what poll() hands out, as Arrow record batches.

Owns this one verb of a modern consumer. How records become columns is kafka.record.vectors's; what
is owed before records are handed out is polling.py's.
"""

from __future__ import annotations

from functools import partial
from typing import Any, List, Optional, Sequence

from kafka.consumer.call_checks import seconds_of
from kafka.consumer.hand_out import HandOut
from kafka.consumer.polling import Polling
from kafka.errors import KafkaConfigurationError, ProtocolError
from kafka.record.record_columns import RecordColumns
from kafka.record.vectors import DEFAULT_COLUMNS, ArrowMaker, has_numpy

__all__ = ['ArrowPolling']

_FAR = (1 << 63) - 1


class ArrowPolling(Polling):
    """A base of the modern KafkaConsumer, of no use alone."""

    def poll_arrow(
        self,
        timeout_ms: Any = 0,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        timestamp_unit: str = 'ms',
    ) -> Any:
        """Return records that have come as a pyarrow.RecordBatch, as soon as there are any.

        They are those of one answer about one partition, up to max_partition_fetch_bytes of them:
        max_poll_records counts nothing here, nor do interceptors. Positions move as by poll().

        Arguments: timeout_ms: how long to wait for some, in ms; columns: of key, value, topic,
            partition, offset, timestamp, timestamp_type and headers, in this order; all but the
            headers. Keys and values are bytes; headers are null for a record without any;
            timestamp_unit: 'ms', 'us' or 'ns', the zone is UTC.
        Returns: None when the time is over, never a batch without rows.
        Raises: as poll(); ProtocolError for a record whose time does not fit the unit, as poll()
            does for one that cannot be read; KafkaConfigurationError for a column or unit that
            there is not and where deserializers are set; MissingArrowError, an ImportError, without
            the extra ``arrow``.
        """
        seconds = seconds_of(timeout_ms, 0.0)
        if self.config['key_deserializer'] or self.config['value_deserializer']:
            raise KafkaConfigurationError('Arrow batches have bytes: leave out deserializers')
        maker = ArrowMaker(columns, timestamp_unit)
        with self._guard:
            hand_out = self._begin_hand_out()
            batch = self._poll_arrow(self._now() + seconds, maker, hand_out)
        hand_out.is_open = False  # the last step, as in poll()
        return batch

    def _poll_arrow(self, deadline: float, maker: ArrowMaker, hand_out: HandOut) -> Any:
        engine, has_waited = self._engine, False
        while True:
            self._attend()
            self._hand_out = hand_out
            hand_out.is_open = True
            batch = self._take_arrow(maker)
            while batch is not None and not batch.num_rows:
                batch = self._take_arrow(maker)
            if batch is not None:
                return batch
            hand_out.is_open = False
            left = deadline - self._now()
            if left <= 0 and has_waited:
                return None
            has_waited = True
            engine.wait(self._has_news, max(0.0, min(left, self._until_commit())))

    def _take_arrow(self, maker: ArrowMaker) -> Any:
        """Take what is parked of one partition; None when nothing is."""
        engine = self._engine
        held = self._take_held(None) if self._held else None
        if held is not None:
            partition, token, records, end, epoch = held
            columns = _columns_of(records)
            try:
                batch = maker.of_columns(str(partition.topic), partition.partition, columns)
            except ProtocolError:  # fetched again, they tell their place
                self._put_back()
                return None
            self._move_on(partition, token, end, epoch, bool(records), self._hand_out)
            return batch
        fetch = engine.fetcher.take()
        if fetch is None:
            return None
        try:
            batch = self._taken(fetch, lambda: take_arrow(fetch, maker))
        except Exception as error:
            self._hand_out.is_open, self._refused = self._refused is not error, None
            raise
        end, epoch, has_rows = fetch.position, fetch.last_epoch, batch.num_rows > 0
        if not self._move_on(fetch.partition, fetch.token, end, epoch, has_rows, self._hand_out):
            return self._take_arrow(maker)  # it was moved meanwhile, and this is not what is wanted
        return batch


def take_arrow(fetch: Any, maker: ArrowMaker) -> Any:
    """Return what is left of a CompletedFetch, or the next records of it, as an Arrow batch.

    Raises: as CompletedFetch.take_made().
    """
    topic, number = str(fetch.partition.topic), fetch.partition.partition
    raw = fetch.undecoded() if has_numpy() else None
    if raw is not None and raw.headers:
        maker.add(topic, number, fetch.position, _FAR, raw)
        try:
            made = maker.make()
        except ProtocolError:  # which the careful way tells with its place
            pass
        else:
            fetch.pass_over()
            return made
    made = fetch.take_made(partial(maker.of_columns, topic, number))
    if made is None:
        made = maker.of_columns(topic, number, RecordColumns([], [], 0, None, []))
    return made


def _columns_of(records: List[Any]) -> RecordColumns:
    """Return records, of one partition, that were made already."""
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
