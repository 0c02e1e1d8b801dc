"""What happens for each record that a program sends: the calls that are made millions of times.

Owns send(), send_and_forget() and send_many() as far as nothing unusual is in the way: bytes for a
topic that is known. Everything else is the business of the slow ways below each, which
:mod:`kafka.producer.kafka` fills in.

The rule of this file is that nothing is done for a record that can be done for a batch, and nothing
is called that can be written here; benchmarks/producer_path.py has the figures. A topic is in
``fast`` only while its records need nothing but a place in a batch: no serializer, interceptor or
partitioner of the program's, no transaction to be checked, and the producer is open. No lock is
waited for here. Where a change is under way the slow way is taken: it is another thread's; or this
thread is in the middle of it, and a finalizer or the handler of a signal sends; or an exception has
ended it, which is repaired. So it is where there is something in the box of the topic, which may be
of the same thread: the slow ways put it into batches first. While records are deferred no topic is
in ``fast``, for the same reason.
"""

from __future__ import annotations

import time
from typing import Any, Optional, Sequence

from kafka.producer.future import FutureOfMore, FutureRecordMetadata, FutureRecords
from kafka.producer.record_accumulator import RecordAccumulator

# Looked up as module attributes would cost more than all of what they do.
_wall = time.time
_now = time.monotonic
_Future = FutureRecordMetadata
_ONLY_BYTES = {bytes}
_LISTS = (list, tuple)


class Sending:
    """The fast ways of KafkaProducer."""

    _accumulator: RecordAccumulator
    _max_block: float

    def send(
        self,
        topic: Any,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
    ) -> FutureRecordMetadata:
        """Send a record; return a future for where it is stored.

        Arguments: value, key: bytes, or what the serializers take; headers: a list of (str, bytes
        or None), or the partition (to 1.4.3); partition: None to have one chosen; timestamp_ms:
        since 1970.
        Raises: KafkaTimeoutError when topic or memory are not there within max_block_ms; ValueError
        or TypeError, which are AssertionErrors too, for what cannot be sent; IllegalStateError when
        closed, or outside of a transaction; what serializers and partitioners raise; ValueError for
        a value of None before 0.8.1, UnsupportedForMessageFormatError for headers before 0.11.
        """
        if headers is None and partition is None and timestamp_ms is None and type(value) is bytes:
            accumulator = self._accumulator
            queue = accumulator.fast.get(topic)
            if queue is not None:
                wall = _wall()
                # What makes objects, where the collector may run finalizers, is before the lock.
                size = len(value)
                is_held = True
                try:
                    if key is None:
                        future: FutureRecordMetadata = _Future()
                        with accumulator.entry as is_held:
                            if is_held and not accumulator.is_changing:
                                accumulator.is_changing = True
                                batch = queue.batch
                                room = batch.room - size - accumulator.overhead
                                if room > 0 and not queue.box:
                                    future._batch = batch
                                    future._index = index = len(batch.values)
                                    if wall >= batch.tick:
                                        accumulator.set_time(batch, wall)
                                    if batch.has_columns:
                                        batch.cut(index)
                                    batch.room = room
                                    future._value_size = size
                                    batch.put(value)
                                    accumulator.is_changing = False
                                    return future
                                accumulator.is_changing = False
                    elif type(key) is bytes:
                        place, key_size, future = queue.by_key[key], len(key), FutureOfMore()
                        with accumulator.entry as is_held:
                            if is_held and not accumulator.is_changing:
                                accumulator.is_changing = True
                                batch = place.open
                                room = batch.room - size - key_size - accumulator.overhead
                                if room > 0 and not queue.box:
                                    future._batch = batch
                                    future._index = index = len(batch.values)
                                    if wall >= batch.tick:
                                        accumulator.set_time(batch, wall)
                                    keys = batch.keys
                                    if keys is None or len(keys) != index or batch.headers:
                                        batch.set_key(index, key)
                                    else:
                                        keys.append(key)
                                    batch.room = room
                                    future._key_size = key_size
                                    future._header_size = -1
                                    future._value_size = size
                                    batch.put(value)
                                    accumulator.is_changing = False
                                    return future
                                accumulator.is_changing = False
                except RuntimeError:  # another thread has the lock: see try_lock()
                    if is_held:
                        raise
        return self._send(topic, value, key, headers, partition, timestamp_ms)

    def send_and_forget(self, topic: Any, value: Any, key: Any = None) -> None:
        """Send a record that nobody will ask about: without a future. Beyond the peers.

        That it could not be stored is logged. Arguments and errors: as send().
        """
        if key is None and type(value) is bytes:
            queue = self._accumulator.fast.get(topic)
            if (
                queue is not None
                and _now() < queue.box_until
                and len(value) <= queue.boxed_size
                and len(queue.box) < queue.most_boxed
            ):
                queue.put_in_box(value)
                if not queue.is_watched:
                    self._accumulator.watch_box(queue)
                return
        self._forget(topic, value, key)

    def send_many(
        self,
        topic: Any,
        values: Sequence[Any],
        keys: Optional[Sequence[Any]] = None,
        headers: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
    ) -> FutureRecords:
        """Send a list of records to one topic; cheaper than one by one. Beyond the peers.

        Arguments: values: of the records, serialized like those of send(); keys: as many, or None;
        headers, partition, timestamp_ms: of all of them, as send().
        Returns: a sequence of futures, which are made when looked at, with ``get()`` for all.
        Raises: as send(), before anything is sent, also for a record that is too large;
        KafkaTimeoutError when there is no memory within max_block_ms: those before it are sent.
        """
        if headers is None and partition is None and timestamp_ms is None:
            queue = self._accumulator.fast.get(topic)
            if queue is not None and _are_bytes(values):
                if keys is None or _are_bytes(keys) and len(keys) == len(values):
                    deadline = _now() + self._max_block
                    return self._put_many(queue, values, keys, (), None, None, deadline)
        return self._send_many(topic, values, keys, headers, partition, timestamp_ms)

    # ------------------------------------------------------------ the slow ways

    def _send(self, *arguments: Any) -> FutureRecordMetadata:
        raise NotImplementedError

    def _forget(self, topic: Any, value: Any, key: Any) -> None:
        raise NotImplementedError

    def _send_many(self, *arguments: Any) -> FutureRecords:
        raise NotImplementedError

    def _put_many(self, *arguments: Any) -> FutureRecords:
        raise NotImplementedError


def _are_bytes(column: Sequence[Any]) -> bool:
    return type(column) in _LISTS and set(map(type, column)) == _ONLY_BYTES
