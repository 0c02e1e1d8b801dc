"""SimpleConsumer: the consumer of 0.9.5 that fetches given partitions in the caller's thread.

It keeps a queue of fetched messages, and two positions of each partition: the offset of the next
message to return (``offsets``) and of the next one to fetch (``fetch_offsets``).
"""

from __future__ import annotations

import logging
import numbers
import sys
import time
from collections import deque
from itertools import repeat
from operator import attrgetter, lt
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from kafka.consumer.base import (
    AUTO_COMMIT_INTERVAL,
    AUTO_COMMIT_MSG_COUNT,
    EARLIEST,
    FETCH_BUFFER_SIZE_BYTES,
    FETCH_DEFAULT_BLOCK_TIMEOUT,
    FETCH_MAX_WAIT_TIME,
    FETCH_MIN_BYTES,
    ITER_TIMEOUT_SECONDS,
    LATEST,
    MAX_FETCH_BUFFER_SIZE_BYTES,
    NO_MESSAGES_WAIT_TIME_SECONDS,
    Consumer,
)
from kafka.errors import (
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    KafkaError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    check_error,
)
from kafka.internals.running_calls import is_in_call
from kafka.protocol.message import PartialMessage
from kafka.structs import FetchRequest
from kafka.util import check_number, shown, whole_number

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

log = logging.getLogger('kafka.consumer.simple')

# A fetch that keeps failing is repeated at once this often, then after pauses (0.9.5 never paused).
QUICK_RETRIES = 3
FIRST_PAUSE_SECONDS = 0.01
# max_bytes and max_wait_ms are int32 on the wire.
LARGEST_BUFFER_BYTES = 2**31 - 1
LONGEST_WAIT_MS = 2**31 - 1


class FetchContext:
    """A context manager that sets how long fetches inside a with block wait (0.9.5).

    Arguments: consumer: its fetch_max_wait_time and fetch_min_bytes are set, and restored at the
    end; block: whether to wait for the first byte, or to take the available messages; timeout:
    seconds to wait, 1 for 0 or None.
    """

    def __init__(self, consumer: SimpleConsumer, block: Any, timeout: Optional[float]) -> None:
        self.consumer = consumer
        self.block = block
        self.timeout = (timeout or FETCH_DEFAULT_BLOCK_TIMEOUT) * 1000

    def __enter__(self) -> FetchContext:
        consumer = self.consumer
        self._before = consumer.fetch_max_wait_time, consumer.fetch_min_bytes
        if self.block:
            consumer.fetch_max_wait_time = self.timeout
            consumer.fetch_min_bytes = 1
        else:
            consumer.fetch_min_bytes = 0
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.consumer.fetch_max_wait_time, self.consumer.fetch_min_bytes = self._before


class _Backlog(deque):  # type: ignore[type-arg]
    """Fetched (partition, message) pairs, with methods of the Queue that 0.9.5 kept them in."""

    def qsize(self) -> int:
        return len(self)

    def empty(self) -> bool:
        return not self


class SimpleConsumer(Consumer):
    """Consume all or some partitions of a topic (0.9.5).

    Arguments: client, group, topic, auto_commit, partitions, auto_commit_every_n and
    auto_commit_every_t as Consumer; note that auto_commit comes fourth.
        fetch_size_bytes: fetch_min_bytes, how many bytes a fetch waits for unless the arguments of
            a call say otherwise.
        buffer_size: how many bytes to request of each partition.
        max_buffer_size: the limit to which that is raised, within a fetch, for a larger message;
            None for no limit.
        iter_timeout: iteration ends after this number of seconds without a message; None for never.
        auto_offset_reset: where to continue if the offset is out of range: 'largest' or 'smallest';
            anything else raises OffsetOutOfRangeError.

    Messages are OffsetAndMessage(offset, Message) tuples; with provide_partition_info() they are
    returned as (partition, message). While a broker is unavailable its partitions have no messages,
    which is logged as a warning; the next call requests them again.

    Raises: ValueError if buffer_size is above max_buffer_size; TypeError naming an argument that
    is not a number; otherwise as Consumer.
    """

    def __init__(
        self,
        client: BlockingClient,
        group: Any,
        topic: Any,
        auto_commit: bool = True,
        partitions: Optional[Iterable[int]] = None,
        auto_commit_every_n: Optional[int] = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: Optional[float] = AUTO_COMMIT_INTERVAL,
        fetch_size_bytes: int = FETCH_MIN_BYTES,
        buffer_size: int = FETCH_BUFFER_SIZE_BYTES,
        max_buffer_size: Optional[int] = MAX_FETCH_BUFFER_SIZE_BYTES,
        iter_timeout: Optional[float] = None,
        auto_offset_reset: str = 'largest',
    ) -> None:
        settings = checked_settings(
            fetch_size_bytes, buffer_size, max_buffer_size, iter_timeout, auto_offset_reset
        )
        self.buffer_size: int = settings['buffer_size']
        self.max_buffer_size: Optional[int] = settings['max_buffer_size']
        self.fetch_max_wait_time: float = FETCH_MAX_WAIT_TIME
        self.fetch_min_bytes: int = settings['fetch_size_bytes']
        self.iter_timeout = iter_timeout
        self.auto_offset_reset = auto_offset_reset
        self.queue = _Backlog()
        self._has_raised = False  # whether get_messages() raised last, and put back its messages
        super().__init__(
            client,
            group,
            topic,
            partitions=partitions,
            auto_commit=auto_commit,
            auto_commit_every_n=auto_commit_every_n,
            auto_commit_every_t=auto_commit_every_t,
        )
        self.fetch_offsets: Dict[int, int] = dict(self.offsets)

    # ------------------------------------------------------------ positions

    def reset_partition_offset(self, partition: int) -> Optional[int]:
        """Seek to the end or the beginning of a partition's log, as auto_offset_reset says.

        Returns: the offset; None if the request failed (which is logged; the position stays).
        Raises: with any other auto_offset_reset, the exception that is being handled, or
        OffsetOutOfRangeError outside an except block.
        """
        if self.auto_offset_reset == 'largest':
            end = LATEST
        elif self.auto_offset_reset == 'smallest':
            end = EARLIEST
        elif sys.exc_info()[0] is not None:
            raise
        else:
            raise OffsetOutOfRangeError(
                'auto_offset_reset %r gives partition %r no offset'
                % (self.auto_offset_reset, partition)
            )
        try:
            offset = self._end_of_log(partition, end)
        except KafkaError as error:
            log.error('topic=%s partition=%s: no reset: %s', shown(self.topic), partition, error)
            return None
        self.offsets[partition] = self.fetch_offsets[partition] = offset
        return offset

    def _end_of_log(self, partition: int, end: int) -> int:
        for offset in self._ends_of_log([partition], end).values():
            return offset
        raise ProtocolError('no answer about the offsets of partition %r' % (partition,))

    def seek(
        self, offset: int, whence: Optional[int] = None, partition: Optional[int] = None
    ) -> None:
        """Set the position, and drop the messages that were fetched and not returned.

        Arguments: offset: a number of messages; whence: None for the offset itself, 0 to count from
        the beginning of the log, 1 from the current position, 2 from the end; partition: None for
        all. With whence 0 or 2, an offset for all partitions is divided among them.
        Raises: ValueError for another whence, or whence 1 for a partition that is not consumed;
        TypeError if offset or partition is not an int; what the client raises.
        """
        offset = whole_number(offset, 'offset')
        self._put_back()
        partitions = list(self.offsets)
        if partition is not None:
            partitions = [whole_number(partition, 'partition')]
        if whence is None:
            self.offsets.update((p, offset) for p in partitions)
        elif whence == 1:
            self.offsets.update((p, o + offset) for p, o in self._positions(partitions).items())
        elif whence in (0, 2):
            shares = dict(zip(partitions, _shares(offset, len(partitions))))
            ends = self._ends_of_log(shares, EARLIEST if whence == 0 else LATEST) if shares else {}
            self.offsets.update((p, end + shares[p]) for p, end in ends.items() if p in shares)
        else:
            raise ValueError('whence must be None, 0, 1 or 2, not %r' % (whence,))
        self.fetch_offsets = dict(self.offsets)
        for each in partitions:
            self._unread.pop(each, None)
        self.queue.clear()
        self.count_since_commit += 1
        if self.auto_commit:
            self.commit()

    # ------------------------------------------------------------ returning messages

    def get_messages(
        self, count: int = 1, block: Any = True, timeout: Optional[float] = 0.1
    ) -> List[Any]:
        """Return up to count messages.

        Arguments: count: the most messages to return; block: True to wait for all of them, an int
        to wait for that many, False not to wait: it fetches until a fetch has no messages; timeout:
        seconds for the whole call, None for no limit.
        Raises: UnknownTopicOrPartitionError, ConsumerFetchSizeTooSmall for a message larger than
        max_buffer_size, OffsetOutOfRangeError, and any other error of a broker or the client.
        """
        count = whole_number(count, 'count')
        if not isinstance(block, bool):
            block = whole_number(block, 'block')
        deadline = _deadline(timeout)
        taken: List[Tuple[int, Any]] = []
        self._put_back()
        before = self._before = dict(self.offsets)  # noqa: F841 - found by is_in_call()
        told, self._has_raised = self._has_raised, True
        try:
            self._collect(taken, count, block, timeout, deadline)
        except KafkaError as error:
            # If the last call raised too, the messages taken before the error are returned, so that
            # a lasting error of one partition does not block the others forever.
            if not (told and taken):
                self.queue.extendleft(reversed(taken))
                self._before = None
                raise
            log.error('topic=%s: still cannot be fetched: %s', shown(self.topic), error)
        self._has_raised = False
        for partition, message in dict(taken).items():  # the last message of each partition
            self.offsets[partition] = message.offset + 1
        self.count_since_commit += len(taken)
        found = taken if self.partition_info else [message for _, message in taken]
        self._auto_commit()
        self._before = None  # last: after an exception before this the messages are fetched again
        return found

    def _put_back(self) -> None:
        """Undo a call that an exception ended before it returned: fetch its messages again."""
        former = self._before
        if former is None or is_in_call('before', former):
            return
        self.offsets.update(former)
        self.queue.clear()
        self.fetch_offsets = dict(self.offsets)
        self._before = None

    def _collect(
        self,
        taken: List[Tuple[int, Any]],
        count: int,
        block: Any,
        wait: Optional[float],
        deadline: Optional[float],
    ) -> None:
        """Move up to count pairs from the queue to taken; fetch more as block allows."""
        pop = self.queue.popleft
        while len(taken) < count:
            if not self.queue:
                blocking = block is True or block > len(taken)
                self._fill(blocking, wait, deadline)
                if not self.queue:
                    return
                if deadline is not None:
                    wait = deadline - time.monotonic()
                if wait is not None and wait <= 0:
                    # That was the last fetch of this call.
                    count = min(count, len(taken) + len(self.queue))
            for _ in range(min(len(self.queue), count - len(taken))):
                taken.append(pop())

    def get_message(
        self,
        block: bool = True,
        timeout: Optional[float] = 0.1,
        get_partition_info: Optional[bool] = None,
    ) -> Any:
        """Return the next message, or None.

        Arguments: block: whether to wait for a message, or fetch only once; timeout: seconds to
        wait, None forever; get_partition_info: True for (partition, message), False for the
        message, None as set by provide_partition_info().
        Raises: as get_messages.
        """
        if self._before is not None:
            self._put_back()
        if not self.queue:
            self._fill(block, timeout, _deadline(timeout))
            if not self.queue:
                return None
        if get_partition_info is None:
            get_partition_info = self.partition_info
        partition, message = pair = self.queue[0]
        before = self._before = {partition: message.offset}  # noqa: F841 - as in get_messages()
        self.queue.popleft()
        self.offsets[partition] = message.offset + 1
        self.count_since_commit += 1
        self._auto_commit()
        self._before = None
        return pair if get_partition_info else message

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages; end after iter_timeout seconds without a message, if it is set."""
        self._put_back()
        while True:
            if type(self).get_message is _GET_MESSAGE and 'get_message' not in vars(self):
                # As get_message(), without the cost of a call: benchmarks/simple.py --only consume.
                while self.queue:
                    partition, message = pair = self.queue[0]
                    before = self._before = {partition: message.offset}  # noqa: F841 - as above
                    self.queue.popleft()
                    self.offsets[partition] = message.offset + 1
                    self.count_since_commit = count = self.count_since_commit + 1
                    every = self.auto_commit_every_n
                    if self.auto_commit and every is not None and count >= every:
                        self._auto_commit()
                    self._before = None
                    yield pair if self.partition_info else message
            endless = self.iter_timeout is None
            message = self.get_message(True, ITER_TIMEOUT_SECONDS if endless else self.iter_timeout)
            if message is not None:
                yield message
            elif endless:
                time.sleep(NO_MESSAGES_WAIT_TIME_SECONDS)
            else:
                return

    # ------------------------------------------------------------ fetching

    def _fill(self, block: Any, wait: Optional[float], deadline: Optional[float]) -> None:
        """Fetch until the queue has messages or the deadline has passed; once if not block.

        Arguments: wait: the seconds that the first fetch may take.
        """
        while True:
            until = deadline if block else time.monotonic() + self.fetch_max_wait_time / 1000
            with FetchContext(self, block, wait):
                fruitful = self._fetch(until)
            if self.queue or not block:
                return
            if deadline is not None:
                wait = deadline - time.monotonic()
                if wait <= 0:
                    return
            if not fruitful:
                # The brokers did not get to wait for messages: do not fetch in a tight loop.
                pause = NO_MESSAGES_WAIT_TIME_SECONDS
                time.sleep(pause if wait is None else min(pause, wait))

    def _fetch(self, deadline: Optional[float]) -> bool:
        """Fetch all partitions once, retry those that need it, and queue the messages.

        Partitions that still fail when the deadline has passed are left out.
        Returns: whether every partition was fetched.
        """
        sizes = dict.fromkeys(self.fetch_offsets, self.buffer_size)
        outcome = _Outcome(fruitful=bool(sizes))
        while sizes:
            outcome.again, outcome.failed = {}, False
            responses = self.client.send_fetch_request(
                [
                    FetchRequest(self.topic, partition, self.fetch_offsets[partition], size)
                    for partition, size in sizes.items()
                ],
                max_wait_time=int(min(self.fetch_max_wait_time, LONGEST_WAIT_MS)),
                min_bytes=self.fetch_min_bytes,
                fail_on_error=False,
            )
            for response in responses:
                self._accept(response, sizes, outcome)
            sizes = outcome.again
            if outcome.failed and not self._may_retry(outcome, deadline):
                what = shown(self.topic), list(sizes)
                log.warning('topic=%s partitions=%s cannot be fetched', *what)
                return False
        return outcome.fruitful

    def _may_retry(self, outcome: _Outcome, deadline: Optional[float]) -> bool:
        """Pause before a retry, longer after many; return False if the deadline has passed."""
        outcome.tries += 1
        if outcome.tries == 1:
            return True
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return False
        if outcome.tries > QUICK_RETRIES:
            pause = FIRST_PAUSE_SECONDS * 2 ** min(outcome.tries - QUICK_RETRIES - 1, 10)
            pause = min(pause, NO_MESSAGES_WAIT_TIME_SECONDS)
            time.sleep(pause if left is None else min(pause, left))
        return True

    def _accept(self, response: Any, sizes: Dict[int, int], outcome: _Outcome) -> None:
        """Handle the response of one partition: queue its messages, or schedule a retry."""
        if isinstance(response, FailedPayloadsError):
            partition = response.payload.partition
            outcome.again[partition] = sizes.get(partition, self.buffer_size)
            outcome.failed = True
            return
        try:
            check_error(response)
        except UnknownTopicOrPartitionError:
            self.client.reset_topic_metadata(self.topic)
            raise
        except NotLeaderForPartitionError:
            # The next fetch loads the metadata with the new leader.
            self.client.reset_topic_metadata(self.topic)
            outcome.fruitful = False
            return
        except OffsetOutOfRangeError:
            partition = response.partition
            what = shown(self.topic), partition
            log.warning('topic=%s partition=%s: offset out of range', *what)
            self._resetting.add(partition)
            try:
                offset = self.reset_partition_offset(partition)
                if offset is not None:
                    self._unread[partition] = offset
            finally:  # last: from here on _unread keeps the timer from committing this offset
                self._resetting.discard(partition)
            outcome.again[partition] = sizes.get(partition, self.buffer_size)
            outcome.failed = True
            return
        if response.partition in self.fetch_offsets:
            self._queue_messages(response, sizes, outcome)

    def _queue_messages(self, response: Any, sizes: Dict[int, int], outcome: _Outcome) -> None:
        partition = response.partition
        size = sizes.get(partition, self.buffer_size)
        messages, is_cut_off = _without_partial(response.messages)
        complete: List[Any] = []
        try:
            complete.extend(messages)  # those before an error stay
            if is_cut_off:
                self._grow(partition, size, not complete, outcome)
        except ConsumerFetchSizeTooSmall:
            outcome.again[partition] = self._larger(size)
        finally:
            self._append(partition, complete)

    def _append(self, partition: int, messages: List[Any]) -> None:
        """Queue the messages from the requested offset on, and set the next offset to fetch."""
        wanted = self.fetch_offsets[partition]
        offsets = list(map(_offset_of, messages))
        if _are_in_order(offsets, wanted):
            # All at once, which is faster: benchmarks/simple.py --only consume.
            self.queue.extend(zip(repeat(partition), messages))
            self.fetch_offsets[partition] = offsets[-1] + 1
            return
        for message, offset in zip(messages, offsets):
            # A compressed set may begin with messages before the requested one.
            if offset >= wanted:
                self.queue.append((partition, message))
                wanted = offset + 1
        self.fetch_offsets[partition] = wanted

    def _grow(self, partition: int, size: int, is_alone: bool, outcome: _Outcome) -> None:
        """Request a message that was cut off again with a larger buffer, as 1.x did.

        If complete messages come before it and the buffer is at its maximum, the next fetch begins
        with it instead.
        """
        if is_alone:
            raise ConsumerFetchSizeTooSmall('the first message takes more than %d bytes' % size)
        limit = self.max_buffer_size
        if size < (MAX_FETCH_BUFFER_SIZE_BYTES if limit is None else limit):
            outcome.again[partition] = self._larger(size)

    def _larger(self, size: int) -> int:
        """Return the next buffer size; re-raise the error being handled if it is at the limit."""
        limit = LARGEST_BUFFER_BYTES if self.max_buffer_size is None else self.max_buffer_size
        if size >= limit:
            raise
        return min(max(size * 2, 1), limit)


# Iteration inlines this method, unless a program has replaced it.
_GET_MESSAGE = SimpleConsumer.get_message
_offset_of = attrgetter('offset')


def checked_settings(
    fetch_size_bytes: Any = FETCH_MIN_BYTES,
    buffer_size: Any = FETCH_BUFFER_SIZE_BYTES,
    max_buffer_size: Any = MAX_FETCH_BUFFER_SIZE_BYTES,
    iter_timeout: Any = None,
    auto_offset_reset: Any = 'largest',
) -> Dict[str, Any]:
    """Return the options that only SimpleConsumer has, by name.

    Raises: TypeError naming an argument that is not a number, or for an unknown argument;
    ValueError if buffer_size is above max_buffer_size.
    """
    buffer_size = whole_number(buffer_size, 'buffer_size')
    fetch_size_bytes = whole_number(fetch_size_bytes, 'fetch_size_bytes')
    if iter_timeout is not None:
        check_number(iter_timeout, 'iter_timeout')
    if max_buffer_size is not None:
        max_buffer_size = whole_number(max_buffer_size, 'max_buffer_size')
        if buffer_size > max_buffer_size:
            raise ValueError(
                'buffer_size (%d) is above max_buffer_size (%d)' % (buffer_size, max_buffer_size)
            )
    return {
        'fetch_size_bytes': fetch_size_bytes,
        'buffer_size': buffer_size,
        'max_buffer_size': max_buffer_size,
        'iter_timeout': iter_timeout,
        'auto_offset_reset': auto_offset_reset,
    }


class _Outcome:
    """The outcome of a fetch of all partitions.

    again: {partition to fetch again: buffer size}; failed: whether one of them had no response or
    an offset out of range; tries: how often that was so; fruitful: whether every partition was
    fetched.
    """

    __slots__ = ('again', 'failed', 'fruitful', 'tries')

    def __init__(self, fruitful: bool) -> None:
        self.again: Dict[int, int] = {}
        self.failed = False
        self.fruitful = fruitful
        self.tries = 0


def _without_partial(messages: Any) -> Tuple[Any, bool]:
    """Return messages without a partial last one, and whether it was there.

    Message sets decoded in the way of 1.x are lists that may end with a PartialMessage.
    """
    if isinstance(messages, list) and messages:
        if isinstance(getattr(messages[-1], 'message', None), PartialMessage):
            return messages[:-1], True
    return messages, False


def _deadline(timeout: Any) -> Optional[float]:
    if timeout is None:
        return None
    if not isinstance(timeout, numbers.Real):
        raise TypeError('timeout must be seconds or None, not %s' % type(timeout).__name__)
    if timeout != timeout:
        raise ValueError('timeout must be seconds or None, not NaN')
    return time.monotonic() + float(timeout)


def _are_in_order(offsets: List[Any], wanted: int) -> bool:
    """Return True if there are offsets, they are increasing, and none is below the wanted one."""
    return bool(offsets) and offsets[0] >= wanted and all(map(lt, offsets, offsets[1:]))


def _shares(offset: int, count: int) -> List[int]:
    """Divide an offset among partitions; the first ones get one more if there is a remainder."""
    if not count:
        return []
    share, rest = divmod(offset, count)
    return [share + 1] * rest + [share] * (count - rest)
