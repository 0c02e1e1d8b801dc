"""The iterator of Arrow batches that BoundedReader.arrow() returns.

It joins the fetch responses of several partitions into one Arrow batch. Responses that cannot be
converted as a whole (magic 0 and 1, corrupt batches, numpy not installed) are converted a thousand
records at a time. kafka.record.vectors makes columns of records. Runs in the thread of the reader.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, List, Optional

from kafka.consumer.bounded.fetcher import BufferedAnswer
from kafka.errors import KafkaError, ProtocolError
from kafka.record.record_columns import RecordColumns
from kafka.record.vectors import ArrowMaker, has_numpy

__all__ = ['ArrowBatches']


class ArrowBatches:
    """Iterates over the Arrow batches of a BoundedReader; can be continued after an error.

    Arguments: reader; maker: an ArrowMaker; max_bytes: the approximate size of a batch.

    Attributes: schema: the pyarrow.Schema of all batches.
    """

    def __init__(self, reader: Any, maker: ArrowMaker, max_bytes: int) -> None:
        self.schema = maker.schema
        self._reader = reader
        self._maker = maker
        self._max_bytes = max_bytes
        #: Responses to convert a thousand records at a time.
        self._careful: Deque[BufferedAnswer] = deque()
        self._is_open = False  # whether the first of them has been opened in the reader

    def __repr__(self) -> str:
        return '<ArrowBatches of %r>' % self._reader

    def __iter__(self) -> ArrowBatches:
        return self

    def __next__(self) -> Any:
        """Return the next pyarrow.RecordBatch, never an empty one."""
        reader = self._reader
        if reader.is_reading:  # an exception ended the last call: its records are fetched again
            self._careful.clear()
            self._is_open = False
            self._maker.drop()
        reader.begin_reading()
        try:
            batch = self._next()
        except KafkaError as error:
            reader.is_reading = not reader.is_told(error)
            raise
        reader.is_reading = False  # the last step: from here on the batch counts as returned
        if batch is None:
            raise StopIteration
        return batch

    def _next(self) -> Optional[Any]:
        while True:
            if self._careful:
                batch = self._by_columns()
            else:
                batch = self._by_batches()
                if batch is None and not self._careful:
                    return None
            if batch is not None and batch.num_rows:
                return batch

    def _by_batches(self) -> Optional[Any]:
        """Return an Arrow batch of whole responses.

        None at the end of all ranges, and if a response was moved to _careful instead.
        """
        added: List[BufferedAnswer] = []
        maker, last = self._maker, 0
        # Responses are added while another one of the last one's size still fits.
        while maker.size_bytes + last <= self._max_bytes:
            reader, before = self._reader, maker.size_bytes
            parked = reader.another_parked() if added else reader.next_parked()
            if parked is None:
                break
            if not self._add(parked):
                self._careful.append(parked)
                break
            added.append(parked)
            last = maker.size_bytes - before
        if not added:
            return None
        try:
            batch = maker.make()
        except ProtocolError:
            self._careful.extendleft(reversed(added))
            return None
        for parked in added:
            self._reader.ends[parked.state.partition] = self._reader.made(parked).next_offset
            self._reader.finish(parked)
        return batch

    def _add(self, parked: BufferedAnswer) -> bool:
        """Add all batches of a response to the maker; return False if that is not possible."""
        raw = self._reader.made(parked).undecoded() if has_numpy() else None
        if raw is None:
            return False
        place, stop = parked.state.partition, parked.state.stop
        self._maker.add(str(place.topic), place.partition, parked.offset, stop, raw)
        return True

    def _by_columns(self) -> Optional[Any]:
        """Return an Arrow batch of the next records of the first response in _careful, or None."""
        parked = self._careful[0]
        if parked.token != parked.state.token:  # skip_corrupt() was called
            self._careful.popleft()
            if not self._is_open:
                self._reader.finish(parked)
            self._is_open = False
            return None
        self._is_open = True
        fetch = self._reader.opened(parked)
        place, stop = parked.state.partition, parked.state.stop

        def make(columns: RecordColumns) -> Any:
            kept = columns.part(0, sum(map(stop.__gt__, columns.offsets)))
            return self._maker.of_columns(str(place.topic), place.partition, kept)

        batch = self._reader.taken(fetch, lambda: fetch.take_made(make))
        if batch is None or not batch.num_rows:
            self._careful.popleft()
            self._is_open = False
            self._reader.finish_opened()
            return None
        self._reader.ends[place] = fetch.position
        return batch
