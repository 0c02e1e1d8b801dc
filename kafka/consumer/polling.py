"""poll() and iteration of a modern consumer.

Owns the one place where records are handed out: what is owed before that (steps of a rebalance,
errors, callbacks, automatic commits), how many records are taken from which fetch, and how long is
waited. Does not own: fetching (consumer/fetch/manager.py), decoding
(consumer/fetch/completed_fetch.py).
"""

from __future__ import annotations

import logging
import math
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from kafka.consumer.call_checks import check_whole, seconds_of
from kafka.consumer.hand_out import HandOut
from kafka.consumer.partition_state import is_suspended
from kafka.consumer.rebalancing import Rebalancing
from kafka.consumer.shell import Course, ListedRecords
from kafka.consumer.siblings import SiblingWatch
from kafka.coordinator.commits.schedule import AutoCommitState
from kafka.errors import (
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from kafka.structs import ConsumerGroupMetadata, ConsumerRecord, TopicPartition

__all__ = ['Polling']

log = logging.getLogger(__name__)

# Iteration takes as many records at once as it handed out in this time, so that a program that is
# slow with each record takes part in its group all the same.
_COURSE_SECONDS = 1.0
#: And never more; so many are decoded together.
_COURSE_RECORDS = 1000
#: The longest wait at a stretch: until then some other thread may have closed the consumer.
_LONG = 3600.0

#: Records of a partition, with its token, the position behind them and the epoch of that.
_Taken = Tuple[TopicPartition, int, List[ConsumerRecord], int, int]


class Polling(Rebalancing):
    """A base of the modern KafkaConsumer, of no use alone."""

    _pid: int  # of the process that made it
    _most: float  # records in a poll
    _course_began = 0.0
    _course_size = 0
    _reads_committed = False
    _failed: Any = None  # the fetch with what could not be handed out last
    _refused: Any = None  # the error of that, on its way to the program
    _told_of: Any = None  # the record of which the log has told that it could not be
    _siblings: SiblingWatch
    #: Who it was to its group when it last handed out records.
    _handed_as: Optional[ConsumerGroupMetadata] = None
    #: Whether it has begun to read, as the consumer of its era.
    _has_polled = False

    def poll(
        self, timeout_ms: Any = 0, max_records: Any = None, update_offsets: bool = True
    ) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Return records that have come, by partition, as soon as there are any (1.0).

        Arguments: timeout_ms: how long to wait for one, in ms; max_records: how many at most, None
            for the option max_poll_records (1.3); update_offsets: not looked at (2.0).
        Returns: {TopicPartition: [ConsumerRecord, ...]}, {} when the time is over.
        Raises: WakeupError; IllegalStateError when closed, and while another thread is inside;
            NoOffsetForPartitionError, OffsetOutOfRangeError, LogTruncationError without a policy
            for resets; TopicAuthorizationFailedError, GroupAuthorizationFailedError, InvalidTopic-
            Error; CorruptRecordError for what cannot be read, naming its place, again and again
            until somebody seeks or calls skip_corrupt(), and between what has come of other
            partitions is handed out; what a deserializer raises, likewise;
            FencedInstanceIdError and other ends of a membership; ArgumentValueError,
            ArgumentTypeError for arguments. Both of the former have an attribute ``failed_at``,
            (TopicPartition, offset).
        """
        seconds = seconds_of(timeout_ms, 0.0)
        most = self._most if max_records is None else check_whole(max_records, 'max_records', 1)
        with self._guard:
            hand_out = self._begin_hand_out()
            began, figures = self._now(), self._engine.figures
            try:
                records = self._poll(began + seconds, most, hand_out)
            finally:
                if figures is not None:
                    figures.polled(began, self._now())
            if records and self._interceptors:
                records = self._shown(records)  # which come again where one raises
        hand_out.is_open = False  # the last step: from here on they are the program's
        return records

    def _poll(
        self, deadline: float, most: float, hand_out: HandOut
    ) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Wait until there are records; {} at the deadline."""
        engine, has_waited = self._engine, False
        while True:
            self._attend()
            self._hand_out = hand_out  # also where a listener has polled meanwhile
            hand_out.is_open = True
            records = self._take(most)
            if records:
                return records
            hand_out.is_open = False
            left, pause = deadline - self._now(), self._until_commit()
            if left <= 0 and has_waited:
                return records
            has_waited = True
            if not engine.wait(self._has_news, max(0.0, min(left, pause))) and left <= pause:
                return records

    def _has_news(self) -> bool:
        if self._wakes or self._ended or self._engine.has_news():
            return True
        forbidden, invalid = self._refused_topics()
        return bool(forbidden or invalid)

    def _until_commit(self) -> float:
        """Return the seconds until something is due that only this thread does."""
        # A wait is part of a poll: the program lives.
        longest: float = min(_LONG, self.config['max_poll_interval_ms'] / 2000)
        auto, next_at = self._auto, self._siblings.next_at
        if auto is not None and auto.state is not AutoCommitState.UNDER_WAY:
            next_at = min(next_at, auto.next_at)
        if next_at == math.inf:
            return longest
        return min(longest, max(0.001, next_at - self._now()))

    def _attend(self) -> None:
        """Do what is owed before records are handed out; raise what has to be raised."""
        engine = self._engine
        self._has_polled = True
        self._check_wakeup()
        if self._pid != os.getpid():  # what a fork has taken along is the parent's
            engine.nudge()  # raises
        if not engine.has_begun:
            engine.loop.call_threadsafe(engine.search)
        member = engine.member
        if member is not None and engine.subscription.partitions_auto_assigned():
            now = engine.loop.time()
            member.polled(now)
            watch = self._siblings
            watch.polled_at = now
            if now >= watch.next_at:
                watch.check(now, member.is_stable and bool(engine.subscription.assignment))
            who = member.identity()
            if who.generation_id >= 0:  # else what it has was handed out as whoever it was before
                self._handed_as = who
            self._do_steps()
        if self._ended or self._telling is not None:
            self._tell_ended()  # of commits that failed, too, before what fails is raised here
        error = engine.next_error()
        if error is not None:
            # It may stand, and be raised by every poll: each adds to its traceback.
            raise error.with_traceback(None)
        self._check_topics()
        self._commit_if_due()

    def _check_topics(self) -> None:
        """Raise, each time, what brokers said about topics that are to be read."""
        forbidden, invalid = self._refused_topics()
        if forbidden or invalid:
            self._engine.loop.call_threadsafe(self._engine.pool.refresh)
        if forbidden:
            raise TopicAuthorizationFailedError(forbidden)
        if invalid:
            raise InvalidTopicError(', '.join(sorted(invalid)))

    def _refused_topics(self) -> Tuple[Set[str], Set[str]]:
        """Return what is to be read and may not be, and what has a name that none can have."""
        engine, cluster = self._engine, self._engine.pool.cluster
        unauthorized, invalid = cluster.unauthorized_topics, cluster.invalid_topics
        if not unauthorized and not invalid:
            return unauthorized, invalid
        with engine.lock:
            wanted = engine.subscription.topics()
        return wanted & unauthorized, wanted & invalid

    # ------------------------------------------------------------ taking

    def _take(self, most: float) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Take up to so many records; an error comes behind the records before it."""
        found: List[_Taken] = []
        count = 0
        while count < most:
            try:
                some = self._take_some(None if most == math.inf else int(most - count))
            except Exception as error:
                refused, self._refused = self._refused, None
                if refused is not error:
                    raise  # from outside: what was taken comes again
                if count:  # the next call raises it, before anything else
                    fetch = self._failed
                    fetch.is_put_off, fetch.refused = False, (fetch.failed_at, error)
                    break
                self._hand_out.is_open = False
                raise
            if some is None:
                break
            found.append(some)
            count += len(some[2])
        records: Dict[TopicPartition, List[ConsumerRecord]] = {}
        for partition, token, taken, end, epoch in found:
            has_moved = self._move_on(partition, token, end, epoch, bool(taken), self._hand_out)
            if has_moved and taken:
                self._count(partition, len(taken))
                if partition in records:
                    records[partition] += taken
                else:
                    records[partition] = taken
        return records

    def _take_some(self, most: Optional[int]) -> Optional[_Taken]:
        """Take records of one partition; None when nothing is parked."""
        if self._held:
            held = self._take_held(most)
            if held is not None:
                return held
        fetch = self._engine.fetcher.take()
        if fetch is None:
            return None
        fetch.recent = self._recent
        taken: List[Any] = self._taken(fetch, lambda: fetch.take(most))
        return fetch.partition, fetch.token, taken, fetch.position, fetch.last_epoch

    def _taken(self, fetch: Any, take: Callable[[], Any]) -> Any:
        """Take something of a fetch, and give the fetch back unless it is emptied."""
        engine = self._engine
        fetch.failed_at = None
        try:
            taken = take()
        except Exception as error:
            if fetch.failed_at is None:
                raise  # it is not about a record, but came from outside
            self._failed = fetch
            engine.fetcher.put_off(fetch)
            self._locate(error, fetch)
            self._refused = error
            raise
        if fetch.is_done:
            engine.fetcher.done(fetch)
        else:
            engine.fetcher.put_back(fetch)
        return taken

    def _locate(self, error: Any, fetch: Any) -> None:
        """Let an error say where it was; the text of what a program's code raised stays."""
        partition, offset = fetch.partition, fetch.failed_at
        if getattr(error, 'failed_at', None) == (partition, offset):
            return  # it is raised by the call after the one that met it
        if not isinstance(error, KafkaError):
            text = 'raised for the record at offset %d of partition %d of topic %r'
            note = text % (offset, partition.partition, str(partition.topic))
            error.__notes__ = [*getattr(error, '__notes__', ()), note]  # shown from 3.11 on
            if self._told_of != (partition, offset):
                self._told_of = partition, offset
                log.error('%s was %s: seek behind it to go on without it', _name(error), note)
        error.failed_at = partition, offset

    def _take_held(self, most: Optional[int]) -> Optional[_Taken]:
        """Take records that iteration had under way when something else was called."""
        engine = self._engine
        for partition, (token, records, end, epoch) in list(self._held.items()):
            with engine.lock:
                state = engine.subscription.assignment.get(partition)
                is_stale = state is None or state.token != token
                waits = state is not None and is_suspended(state)
            if is_stale:
                del self._held[partition]
            elif not waits:
                if most is None or len(records) <= most:
                    del self._held[partition]
                    return partition, token, records, end, epoch
                taken, rest = records[:most], records[most:]
                self._held[partition] = token, rest, end, epoch
                last = taken[-1]
                return partition, token, taken, last.offset + 1, _known(last.leader_epoch)
        return None

    def _count(self, partition: TopicPartition, records: int) -> None:
        """Let the figures have what is handed out."""
        engine = self._engine
        if engine.figures is not None:
            with engine.lock:
                state = engine.subscription.assignment.get(partition)
                lag = None if state is None else state.lag(self._reads_committed)
            engine.figures.consumed(partition, records, lag)

    def _shown(
        self, records: Dict[TopicPartition, List[ConsumerRecord]]
    ) -> Dict[TopicPartition, List[ConsumerRecord]]:
        """Return what the interceptors make of records."""
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

    def _refill(self) -> None:
        """Let iteration go on with the next records, at least one; called behind the last ones.

        Raises: StopIteration after consumer_timeout_ms without any, and when closed; Illegal-
            StateError (an AssertionError) where it would wait for ever, as nothing is to be read.
        """
        if self._closed:
            raise StopIteration
        with self._guard:
            self._check_aim()
            hand_out = self._begin_hand_out()
            began, figures = self._now(), self._engine.figures
            deadline = began + self.config['consumer_timeout_ms'] / 1000
            most = self._course_length()
            try:
                records = self._next_course(deadline, most, hand_out)
            finally:
                if figures is not None:
                    figures.polled(began, self._now())
        if records is None:
            raise StopIteration
        hand_out.is_open = False  # behind all else: what leaves the iterator counts as handed out
        self._messages = records

    def _check_aim(self) -> None:
        subscription = self._engine.subscription
        if (
            subscription.subscription is None
            and not subscription.assignment
            and self.config['consumer_timeout_ms'] == math.inf
        ):
            raise IllegalStateError('nothing is to be read: subscribe() or assign() first')

    def _course_length(self) -> int:
        """Return how many records iteration takes at once."""
        now, most = self._now(), int(min(self._most, _COURSE_RECORDS))
        if self._course_size:
            if 'max_poll_records' not in self.config.given:
                most = _COURSE_RECORDS  # its default bounds lists
            seconds = max(now - self._course_began, 1e-6)
            allowed = self._course_size * _COURSE_SECONDS / seconds
            most = max(1, min(most, int(allowed)))
        self._course_began = now
        return most

    def _next_course(
        self, deadline: float, most: int, hand_out: HandOut
    ) -> Optional[Iterator[ConsumerRecord]]:
        """Return an iterator over records of one partition; None at the deadline."""
        engine, has_waited = self._engine, False
        while True:
            self._attend()
            self._hand_out = hand_out
            hand_out.is_open = True
            course = self._take_course(most)
            if course is not None:
                if not self._counts(course.partition, course.token):
                    continue
                records = self._begin_course(course)
                if self._course_size:
                    return records
                continue
            hand_out.is_open = False
            left = deadline - self._now()
            if left <= 0 and has_waited:
                return None
            has_waited = True
            engine.wait(self._has_news, max(0.0, min(left, self._until_commit())))

    def _take_course(self, most: int) -> Optional[Course]:
        """Take records of one partition for iteration; None when nothing is parked."""
        if self._held:
            held = self._take_held(most)
            if held is not None:
                partition, token, records, end, epoch = held
                return Course(partition, token, ListedRecords(records), end, epoch)
        fetch = self._engine.fetcher.take()
        if fetch is None:
            return None
        try:
            lazy: Any = self._taken(fetch, lambda: fetch.take_lazily(most))
        except Exception as error:
            self._hand_out.is_open, self._refused = self._refused is not error, None
            raise
        taken = ListedRecords([]) if lazy is None else lazy
        return Course(fetch.partition, fetch.token, taken, fetch.position, fetch.last_epoch)

    def _begin_course(self, course: Course) -> Iterator[ConsumerRecord]:
        records = course.records
        if self._interceptors:
            found = list(records.iterator)
            if found:
                shown = self._shown({course.partition: found})  # they come again where one raises
                found = shown.get(course.partition, [])
            records = ListedRecords(found)
            course = course._replace(records=records)
        self._course_size = records.left()
        if self._course_size:
            self._count(course.partition, self._course_size)
            moves = self._moves_of(course.partition, course.token)
            self._course = course._replace(moves=moves)
        else:  # no records but what is passed over
            self._move_on(course.partition, course.token, course.end, course.epoch, False)
        return records.iterator


def _name(error: BaseException) -> str:
    return type(error).__name__


def _known(epoch: Optional[int]) -> int:
    return -1 if epoch is None else epoch
