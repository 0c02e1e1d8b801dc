"""What the consumers of 0.9.5 share: partitions, offsets, and when offsets are committed.

Owns the state that is committed. How messages are fetched is the subclasses' business, where
offsets are stored the client's. Any object with the client's public methods will do as client.
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

# The times that stand for the ends of a log in an OffsetRequest.
LATEST = -1
EARLIEST = -2


class Consumer:
    """Keep and commit the offsets of a topic's partitions (0.9.5); base of the consumers.

    Arguments:
        client: a KafkaClient, or any object with its public methods.
        group: the name offsets are stored under; None stores none and starts at offset 0.
        topic: str or bytes.
        partitions: the ids to consume; None means all of the topic.
        auto_commit: commit by itself, every auto_commit_every_n messages and every
            auto_commit_every_t ms, each unless None. Both, and calls of commit(), reset each other.

    All attributes are live: what a program writes to offsets, auto_commit or count_since_commit
    holds from the next call on.

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
        # Where a reset has put offsets, and of which partitions one is under way. What is still
        # there is not committed: the group would skip messages that nobody was given.
        self._unread: Dict[int, int] = {}
        self._resetting: Set[int] = set()
        # Offsets as they were before the call that is taking messages for the program, or was ended
        # by an exception before it returned them; None in between.
        self._before: Optional[Dict[int, int]] = None
        self._ahead: Any = None  # the same object, once that call has committed what it takes
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
        # Guards one commit against another, the timer's against the program's. Reentrant, because a
        # signal handler may call stop() while its own thread commits; the flag tells that apart.
        self.commit_lock = threading.RLock()
        self._committing = False
        self._process = os.getpid()
        load_topic(client, self.topic)
        if partitions is None:
            partitions = client.get_partition_ids_for_topic(self.topic)
        else:
            partitions = _checked_partitions(partitions)
        if auto_commit is True and auto_commit_every_t is not None:
            # Weakly, or the timer's thread would keep it from being collected.
            commit = functools.partial(_commit_unless_gone, weakref.ref(self))
            self.commit_timer = ReentrantTimer(auto_commit_every_t, commit)
        if self.group is not None:
            self.fetch_last_known_offsets(partitions)
        else:
            self.offsets.update((partition, 0) for partition in partitions)
        self._start_helpers()
        # Last, so that a constructor that fails leaves no thread behind.
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
        """Start what a subclass has besides the timer, whose thread no process is to inherit."""

    def provide_partition_info(self) -> None:
        """Hand out (partition, message) from now on instead of the message alone."""
        self.partition_info = True

    def fetch_last_known_offsets(self, partitions: Optional[Iterable[int]] = None) -> None:
        """Set offsets to what the group has stored; 0 where it has stored nothing.

        Arguments: partitions: the ids to ask for; None means all of the topic.
        Raises: ValueError without a group; what a partition's answer or the client reports, except
        error 3, with which old brokers say that nothing is stored.
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
        """Store the offsets of the group, if anything was consumed or sought since the last time.

        Arguments: partitions: the ids to commit; None means all but those that stand where a
            reset by auto_offset_reset has put them.
        Returns: True when stored; False when that failed (which is logged); None when there was
        nothing to store, or no group to store it for.
        Raises: ValueError for a partition that is not consumed; TypeError for what is no list.
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
                seen = dict(self.offsets)  # first: what is taken from now on is not committed
                positions = self._read() if partitions is None else self._positions(partitions)
                return self._commit(positions, seen) if positions else None
            finally:
                self._committing = False

    def _is_ahead(self) -> bool:
        """Return True if an exception has ended a call that had committed what it was to return."""
        former = self._before
        return former is not None and former is self._ahead and not is_in_call('before', former)

    def _take_over(self) -> None:
        """Make the lock this process's own, if the program has forked it."""
        if self._process != os.getpid():
            # The parent's timer, whose thread is not here, may have been committing at that moment:
            # then nobody would ever open the lock.
            self.commit_lock, self._committing = threading.RLock(), False
            self._process = os.getpid()

    def _read(self) -> Dict[int, int]:
        """Return the offsets that may be committed."""
        # In this order: the program may begin a call while the timer's thread is here.
        positions = dict(self.offsets)
        resetting, unread, former = set(self._resetting), self._unread, self._before
        # The call that takes messages commits them with its last steps; anybody else must not.
        if former is not None and not is_in_call('before', former):
            positions.update(former)
        return {
            partition: offset
            for partition, offset in positions.items()
            if unread.get(partition) != offset and partition not in resetting
        }

    def _commit(self, positions: Dict[int, int], seen: Dict[int, int]) -> bool:
        """Store some offsets and reset the counter; return whether that worked.

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
        # Sequence: the timer reads the offsets; the program takes a message; the timer resets the
        # counter. What was taken meanwhile must not count as committed.
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
        """Commit when enough messages were handed out."""
        if (
            self.auto_commit
            and self.auto_commit_every_n is not None
            and self.count_since_commit >= self.auto_commit_every_n
        ):
            self.commit()

    def _ends_of_log(self, partitions: Iterable[int], end: int) -> Dict[int, int]:
        """Ask where the logs of some partitions begin or end: {partition: offset}."""
        responses: List[Any] = self.client.send_offset_request(
            [OffsetRequest(self.topic, partition, end, 1) for partition in partitions]
        )
        return {response.partition: _first_offset(response) for response in responses}

    def pending(self, partitions: Optional[Iterable[int]] = None) -> int:
        """Return how many messages of some partitions, or of all, are not handed out yet.

        Raises: ValueError for a partition that is not consumed; what the client raises.
        """
        positions = self._positions(partitions)
        ends = self._ends_of_log(positions, LATEST)
        return sum(ends.get(partition, offset) - offset for partition, offset in positions.items())

    def stop(self) -> None:
        """Stop committing by time, after one last commit. Harmless when called again."""
        if self.commit_timer is not None:
            self.commit_timer.stop()
            self.commit()
        elif self.auto_commit and self._is_ahead():
            self.commit()
        atexit.unregister(self._exit_hook)
        self._ending.detach()


def _checked_partitions(partitions: Any) -> Any:
    """Return the very object that was given, or a list in place of an iterator.

    Raises: AssertionError when an item is no integer; TypeError for what is not iterable.
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
    """Return the first offset of an OffsetResponse; ProtocolError when it has none."""
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
    """Let the timer of a consumer that was collected end, without a commit; takes no lock."""
    if timer is not None:
        timer.cancel()
    atexit.unregister(exit_hook)


def _stop_at_exit(reference: Any) -> None:
    """Stop a consumer that still exists.

    A forked process that ends first, and has not committed anything itself, leaves that to the
    parent: the positions it inherited would undo what the parent commits meanwhile.
    """
    consumer = reference()
    if consumer is not None and consumer._process == os.getpid():
        consumer.stop()
