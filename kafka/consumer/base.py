"""Consumer, the base class of SimpleConsumer and MultiProcessConsumer (0.9.5).

Keeps the offsets of the partitions and commits them, on request, by number of messages and by time.
Subclasses fetch the messages; the client sends the requests, and may be any object with the public
methods of KafkaClient. The thread of a timer commits besides the thread of the program; a lock lets
one commit at a time.
"""

from __future__ import annotations

import atexit
import functools
import logging
import numbers
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set

from kafka.errors import (
    KafkaError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    check_error,
)
from kafka.internals.running_calls import is_in_call
from kafka.structs import OffsetCommitRequest, OffsetFetchRequest, OffsetRequest
from kafka.util import ReentrantTimer, check_number, load_topic, name_for, shown

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

log = logging.getLogger('kafka.consumer')

AUTO_COMMIT_MSG_COUNT = 100
AUTO_COMMIT_INTERVAL = 5000

FETCH_DEFAULT_BLOCK_TIMEOUT = 1
FETCH_MAX_WAIT_TIME = 100
FETCH_MIN_BYTES = 4096
FETCH_BUFFER_SIZE_BYTES = 4096
MAX_FETCH_BUFFER_SIZE_BYTES = FETCH_BUFFER_SIZE_BYTES * 8

ITER_TIMEOUT_SECONDS = 60
NO_MESSAGES_WAIT_TIME_SECONDS = 0.1
FULL_QUEUE_WAIT_TIME_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 60

# The timestamps of an OffsetRequest that mean the end and the beginning of the log.
LATEST = -1
EARLIEST = -2


class Consumer:
    """Keep and commit the offsets of a topic's partitions (0.9.5); base of the consumers.

    Arguments:
        client: a KafkaClient, or any object with its public methods.
        group: the group whose offsets are committed; None commits nothing and starts at offset 0.
        topic: str or bytes.
        partitions: the ids to consume; None means all of the topic.
        auto_commit: commit automatically, every auto_commit_every_n messages and every
            auto_commit_every_t ms; None turns either off. Every commit restarts the count.

    A program may assign to offsets, auto_commit and count_since_commit: the new value is used from
    the next call on.

    Raises: AssertionError when partitions are not all integers; TypeError for a topic or group that
    is neither str nor bytes; what the client raises for the topic's metadata or the stored offsets.
    """

    def __init__(
        self,
        client: BlockingClient,
        group: Any,
        topic: Any,
        partitions: Optional[Iterable[int]] = None,
        auto_commit: bool = True,
        auto_commit_every_n: Optional[int] = AUTO_COMMIT_MSG_COUNT,
        auto_commit_every_t: Optional[float] = AUTO_COMMIT_INTERVAL,
    ) -> None:
        self.client = client
        self.topic = name_for(client, topic)
        self.group: Any = None if group is None else name_for(client, group, 'group')
        self.offsets: Dict[int, int] = {}
        # The offsets that resets have set, and the partitions with a reset in progress. Such an
        # offset is not committed: the group would skip messages that were never returned.
        self._unread: Dict[int, int] = {}
        self._resetting: Set[int] = set()
        # The offsets before the call that is taking messages, or that was ended by an exception
        # before it returned them; None between calls.
        self._before: Optional[Dict[int, int]] = None
        self._ahead: Any = None  # the same object, once that call has committed its messages
        self.auto_commit = auto_commit
        for option, value in (
            ('auto_commit_every_n', auto_commit_every_n),
            ('auto_commit_every_t', auto_commit_every_t),
        ):
            if value is not None:
                check_number(value, option)
        self.auto_commit_every_n = auto_commit_every_n
        self.auto_commit_every_t = auto_commit_every_t
        self.count_since_commit = 0
        self.partition_info = False
        self.commit_timer: Optional[ReentrantTimer] = None
        # Serializes the commits of the timer's thread and of the program. Reentrant, because a
        # signal handler may call stop() while its own thread commits; _committing detects that.
        self.commit_lock = threading.RLock()
        self._committing = False
        self._process = os.getpid()
        load_topic(client, self.topic)
        if partitions is None:
            partitions = client.get_partition_ids_for_topic(self.topic)
        else:
            partitions = _checked_partitions(partitions)
        if auto_commit is True and auto_commit_every_t is not None:
            # A weak reference, so that the timer's thread does not keep the consumer alive.
            commit = functools.partial(_commit_unless_gone, weakref.ref(self))
            self.commit_timer = ReentrantTimer(auto_commit_every_t, commit)
        if self.group is not None:
            self.fetch_last_known_offsets(partitions)
        else:
            self.offsets.update((partition, 0) for partition in partitions)
        self._start_helpers()
        # Last, so that no thread is left running when the constructor fails.
        if self.commit_timer is not None:
            self.commit_timer.start()
        self._exit_hook = functools.partial(_stop_at_exit, weakref.ref(self))
        atexit.register(self._exit_hook)
        self._ending = weakref.finalize(self, _end_collected, self.commit_timer, self._exit_hook)
        self._ending.atexit = False

    def __repr__(self) -> str:
        return '<%s group=%s, topic=%s, partitions=%s>' % (
            type(self).__name__,
            shown(self.group),
            shown(self.topic),
            list(self.offsets),
        )

    def _start_helpers(self) -> None:
        """Start the processes of a subclass, before the timer: no fork shall copy its thread."""

    def provide_partition_info(self) -> None:
        """Return (partition, message) from now on instead of the message alone."""
        self.partition_info = True

    def fetch_last_known_offsets(self, partitions: Optional[Iterable[int]] = None) -> None:
        """Set offsets to the committed offsets of the group; 0 where it has committed nothing.

        Arguments: partitions: the ids to look up; None means all of the topic.
        Raises: ValueError without a group; the error of a partition's response, and what the client
        raises, except error 3, which old brokers return if nothing is committed.
        """
        if self.group is None:
            raise ValueError('a consumer without a group has no stored offsets')
        if partitions is None:
            partitions = self.client.get_partition_ids_for_topic(self.topic)
        else:
            _check_iterable(partitions)
        responses = self.client.send_offset_fetch_request(
            self.group,
            [OffsetFetchRequest(self.topic, partition) for partition in partitions],
            fail_on_error=False,
        )
        for response in responses:
            if (
                isinstance(response, Exception)
                or response.error != UnknownTopicOrPartitionError.errno
            ):
                check_error(response)
            self.offsets[response.partition] = 0 if response.offset == -1 else response.offset

    def commit(self, partitions: Optional[Iterable[int]] = None) -> Optional[bool]:
        """Commit the offsets of the group, if they have changed since the last commit.

        Arguments: partitions: the ids to commit; None means all except those whose offset was set
            by auto_offset_reset and has not moved since.
        Returns: True if committed; False if that failed (which is logged); None if there was
        nothing to commit, or no group.
        Raises: ValueError for a partition that is not consumed; TypeError if partitions is not
        iterable.
        """
        if self._process != os.getpid():
            self._take_over()
        with self.commit_lock:
            if self._committing or self.group is None:
                return None
            if self.count_since_commit == 0 and not self._is_ahead():
                return None
            self._committing = True
            try:
                seen = dict(self.offsets)  # first: messages taken from now on are not committed
                positions = self._read() if partitions is None else self._positions(partitions)
                return self._commit(positions, seen) if positions else None
            finally:
                self._committing = False

    def _is_ahead(self) -> bool:
        """Return True if an exception ended a call after it had committed its messages."""
        former = self._before
        return former is not None and former is self._ahead and not is_in_call('before', former)

    def _take_over(self) -> None:
        """Replace the lock in a forked process."""
        if self._process != os.getpid():
            # The parent's timer thread may have held the lock during the fork. It does not exist in
            # this process, so the lock would never be released.
            self.commit_lock, self._committing = threading.RLock(), False
            self._process = os.getpid()

    def _read(self) -> Dict[int, int]:
        """Return the offsets that may be committed."""
        # The order matters: the program may begin a call while the timer's thread is here.
        positions = dict(self.offsets)
        resetting, unread, former = set(self._resetting), self._unread, self._before
        # Only the call that takes messages may commit them, in its last steps.
        if former is not None and not is_in_call('before', former):
            positions.update(former)
        return {
            partition: offset
            for partition, offset in positions.items()
            if unread.get(partition) != offset and partition not in resetting
        }

    def _commit(self, positions: Dict[int, int], seen: Dict[int, int]) -> bool:
        """Commit offsets and reset the counter; return False, and log, if that failed.

        Arguments: seen: the offsets of all partitions before these were read.
        """
        requests = [
            OffsetCommitRequest(self.topic, partition, offset, None)
            for partition, offset in positions.items()
        ]
        former = self._before
        ahead = former if former is not None and is_in_call('before', former) else None
        if ahead is not None:
            self._ahead = ahead
        try:
            self.client.send_offset_commit_request(self.group, requests)
        except KafkaError as error:
            what = shown(self.group), shown(self.topic), error
            log.error('group=%s topic=%s: commit failed: %s', *what)
            return False
        self._ahead = ahead
        self.count_since_commit = 0
        # The program may take a message between the timer's reading of the offsets and its reset of
        # the counter: that message must not count as committed.
        for partition, offset in {**seen, **positions}.items():
            if self.offsets.get(partition) != offset:
                self.count_since_commit = 1
        return True

    def _positions(self, partitions: Optional[Iterable[int]]) -> Dict[int, int]:
        """Return the offsets of some partitions, or of all; ValueError for one not consumed."""
        if partitions is None:
            return dict(self.offsets)
        _check_iterable(partitions)
        try:
            return {partition: self.offsets[partition] for partition in partitions}
        except KeyError as error:
            raise ValueError('partition %s is not consumed' % (error,)) from None

    def _auto_commit(self) -> None:
        """Commit if auto_commit_every_n messages were returned since the last commit."""
        if (
            self.auto_commit
            and self.auto_commit_every_n is not None
            and self.count_since_commit >= self.auto_commit_every_n
        ):
            self.commit()

    def _ends_of_log(self, partitions: Iterable[int], end: int) -> Dict[int, int]:
        """Return {partition: first or end offset of its log}; end: EARLIEST or LATEST."""
        responses: List[Any] = self.client.send_offset_request(
            [OffsetRequest(self.topic, partition, end, 1) for partition in partitions]
        )
        return {response.partition: _first_offset(response) for response in responses}

    def pending(self, partitions: Optional[Iterable[int]] = None) -> int:
        """Return the number of messages between the offsets and the ends of the logs.

        Arguments: partitions: the ids to count; None means all.
        Raises: ValueError for a partition that is not consumed; what the client raises.
        """
        positions = self._positions(partitions)
        ends = self._ends_of_log(positions, LATEST)
        return sum(ends.get(partition, offset) - offset for partition, offset in positions.items())

    def stop(self) -> None:
        """Stop the automatic commits by time, with one last commit. May be called again."""
        if self.commit_timer is not None:
            self.commit_timer.stop()
            self.commit()
        elif self.auto_commit and self._is_ahead():
            self.commit()
        atexit.unregister(self._exit_hook)
        self._ending.detach()


def _checked_partitions(partitions: Any) -> Any:
    """Return the same object, or a list in place of an iterator.

    Raises: AssertionError if an item is not an integer; TypeError for a value that is not iterable.
    """
    _check_iterable(partitions)
    if isinstance(partitions, Iterator):
        partitions = list(partitions)
    if not all(isinstance(partition, numbers.Integral) for partition in partitions):
        raise AssertionError('partitions must be integers: %r' % (partitions,))
    return partitions


def _check_iterable(partitions: Any) -> None:
    if not isinstance(partitions, Iterable):
        raise TypeError('partitions must be a list of int, not %s' % type(partitions).__name__)


def _first_offset(response: Any) -> int:
    """Return the first offset of an OffsetResponse. Raises ProtocolError if it has no offset."""
    try:
        offset: int = response.offsets[0]
    except IndexError:
        raise ProtocolError('no offset in the answer: %r' % (response,)) from None
    return offset


def _commit_unless_gone(reference: Any) -> None:
    consumer = reference()
    if consumer is not None:
        consumer.commit()


def _end_collected(timer: Any, exit_hook: Any) -> None:
    """Cancel the timer of a consumer that was collected, without a commit; takes no lock."""
    if timer is not None:
        timer.cancel()
    atexit.unregister(exit_hook)


def _stop_at_exit(reference: Any) -> None:
    """Stop a consumer that still exists.

    In a forked process that has not committed anything itself this does nothing: a commit of the
    inherited offsets would overwrite what the parent has committed meanwhile.
    """
    consumer = reference()
    if consumer is not None and consumer._process == os.getpid():
        consumer.stop()
