"""What the public calls of a modern consumer have in common.

Owns the state that they share: the engine, the guard against a second thread, the records that
iteration has under way, and the exact position that follows from them.
"""

from __future__ import annotations

import itertools
from collections import deque
from types import FrameType
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from kafka.consumer.call_checks import ConsumerClosedError
from kafka.consumer.engine import Engine
from kafka.consumer.hand_out import HandOut, has_lost
from kafka.consumer.one_thread import OneThread
from kafka.consumer_record import LazyRecords, RecentRecords
from kafka.errors import IllegalStateError, WakeupError
from kafka.future import Future
from kafka.structs import ConsumerRecord, OffsetAndMetadata, TopicPartition

__all__ = ['NOTHING', 'Course', 'ListedRecords', 'Shell']

#: An iterator that is used up, for iteration that has nothing under way.
NOTHING: Iterator[Any] = iter(())


class ListedRecords:
    """Records that are all there, beside those that are made when they are asked for.

    Attributes: iterator: over the records, for one pass.
    """

    __slots__ = ('_records', 'iterator')

    def __init__(self, records: List[ConsumerRecord]) -> None:
        self._records = records
        self.iterator = iter(records)

    def left(self) -> int:
        """Return how many were not asked for yet."""
        hint: int = self.iterator.__length_hint__()  # type: ignore[attr-defined]
        return hint

    def last(self, without: int = 0) -> Optional[Tuple[int, Optional[int]]]:
        """Return offset and leader epoch of the one that was handed out last; None before that.

        Arguments: without: so many that were asked for last were not handed out.
        """
        place = len(self._records) - self.left() - 1 - without
        if place < 0:
            return None
        record = self._records[place]
        return record.offset, record.leader_epoch


class Course(NamedTuple):
    """The records of one partition that iteration hands out now."""

    partition: TopicPartition
    token: int  # of the partition's state when they were taken
    records: Union[LazyRecords, ListedRecords]
    end: int  # the position behind them, behind what is skipped too
    epoch: int
    moves: int = -1  # of the state: if that was not moved since, what was handed out stands


class Shell:
    """A base of the modern KafkaConsumer, of no use alone."""

    config: Any
    _engine: Engine

    def __init__(self) -> None:
        self._guard = OneThread()
        self._closed = False
        self._closing: Any = None  # the mark of the call of close() that is under way
        self._wakes = False
        self._course: Optional[Course] = None
        # Whether the record that iteration asked for last was lost on its way to the program.
        self._is_cut = False
        self._hand_out = HandOut()  # of the last call that handed out records
        self._recent = RecentRecords()
        # Taken from fetches, then held back by pause(): by partition, with the token.
        self._held: Dict[TopicPartition, Tuple[int, List[ConsumerRecord], int, int]] = {}
        # What is behind the records that were marked as done, by partition.
        self._done: Dict[TopicPartition, OffsetAndMetadata] = {}
        # Of commits in the background, in the order of the calls: the outcome, an empty list until
        # it is known, and what is called with it.
        self._under_way: Deque[Tuple[List[Any], Future, Callable[[Any, Any], Any]]] = deque()
        # The same of those that are not begun: a turn puts them under way.
        self._asked: List[Tuple[List[Any], Future, Callable[[Any, Any], Any]]] = []
        # Commits are numbered in the order of their calls; the newest that each partition knows of.
        self._commit_numbers = itertools.count(1)
        self._noted: Dict[TopicPartition, int] = {}
        # What follows of those that ended, for the thread that polls.
        self._ended: Deque[Tuple[Future, Callable[[], Any]]] = deque()
        # The one of them that is being told; it is told again if an exception came before it was.
        self._telling: Any = None

    def _check_open(self) -> None:
        if self._closed:
            raise ConsumerClosedError('the consumer is closed')

    def _default_timeout(self) -> float:
        timeout: float = self.config['request_timeout_ms'] / 1000
        return timeout

    def _now(self) -> float:
        now: float = self._engine.loop.time()
        return now

    # ------------------------------------------------------------ iteration under way

    _messages: Iterator[Any]
    #: Of the call that took the last record, where the interpreter may raise right before a return.
    _last_next: Optional[FrameType] = None

    def _sync(self) -> None:
        """Bring positions to what was handed out; every call that needs them begins with it.

        That is the last record of the partition that iteration is in. What a call had taken that an
        exception ended comes back.
        """
        if self._hand_out.is_open:
            if self._hand_out.is_running():
                return  # a callback of that call: nothing is amiss
            self._put_back()
        if self._last_next is not None and has_lost(self._last_next):
            self._messages, self._is_cut = NOTHING, True
        course = self._course
        if self._is_cut:
            self._sync_cut(course)
        elif course is None:
            return
        elif course.records.left():
            last = course.records.last()
            if last is not None:
                self._move_course(course, last[0] + 1, last[1])
        else:
            self._course = None
            has_records = course.records.last() is not None
            self._move_course(course, course.end, course.epoch, has_records)

    def _sync_cut(self, course: Optional[Course]) -> None:
        """Do the same where the last record did not get to the program."""
        last = None if course is None else course.records.last(without=1)
        if course is not None and last is not None:
            self._move_course(course, last[0] + 1, last[1])
        self._hand_out = HandOut()
        self._hand_out.is_open = True
        self._last_next, self._is_cut = None, False
        self._put_back()

    def _put_back(self) -> None:
        """Undo what an interrupted call has taken: all that is not handed out is fetched again.

        It may be interrupted itself: the next call finds the same, and does it once more.
        """
        engine = self._engine
        with engine.lock:
            self._hand_out.put_back()
        self._messages, self._course = NOTHING, None
        self._held.clear()
        engine.fetcher.forget()
        engine.nudge_if_open()
        self._hand_out = HandOut()

    def _move_on(
        self,
        partition: TopicPartition,
        token: int,
        offset: int,
        epoch: Optional[int],
        has_records: bool = True,
        hand_out: Optional[HandOut] = None,
    ) -> bool:
        """Move a position behind records, or behind what is passed over without any.

        Arguments: hand_out: by which it can be put back.
        Returns: False if it was moved otherwise meanwhile, or is not assigned.
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

    def _move_course(
        self, course: Course, offset: int, epoch: Optional[int], has_records: bool = True
    ) -> None:
        """Move the position of a course behind what was handed out of it.

        A turn may have dropped what was fetched ahead, as the log of a new leader is shorter: what
        is to be fetched begins behind what was handed out then, and not where the course began.
        """
        if self._move_on(course.partition, course.token, offset, epoch, has_records):
            return
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(course.partition)
            if state is not None and state.moves == course.moves and state.has_valid_position:
                if self._move_on(course.partition, state.token, offset, epoch, has_records):
                    state.rewind()

    def _moves_of(self, partition: TopicPartition, token: int) -> int:
        """Return how often the position was moved, as of the records that were taken; else -1."""
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(partition)
            return state.moves if state is not None and state.token == token else -1

    def _counts(self, partition: TopicPartition, token: int) -> bool:
        """Tell whether what was taken of a partition may still be handed out."""
        engine = self._engine
        with engine.lock:
            state = engine.subscription.assignment.get(partition)
            return state is not None and state.token == token

    def _begin_hand_out(self) -> HandOut:
        """Begin a call that returns records."""
        if self._closed:
            self._check_open()  # raises
        self._stop_course()
        if self._hand_out.is_open:  # of a call that this one is made inside of, by a callback
            self._put_back()
        return HandOut()

    def _stop_course(self) -> None:
        """Let go of the records that iteration has under way; they are handed out later."""
        self._sync()
        course = self._course
        if course is None or self._hand_out.is_open:
            return
        # While they are drained they are in no place, and look as if they were handed out.
        hand_out = HandOut()
        hand_out.is_open = True
        self._hand_out, self._messages = hand_out, NOTHING
        rest = list(course.records.iterator)
        if rest:
            self._held[course.partition] = course.token, rest, course.end, course.epoch
        self._course = None
        hand_out.is_open = False

    # ------------------------------------------------------------ waking up

    def wakeup(self) -> None:
        """End the call of poll(), poll_arrow() or iteration that waits, from any thread.

        That call raises WakeupError, or the next one if none is under way. Nothing is lost. Others,
        as commit(), go on to their end or to their own time-out.
        """
        self._wakes = True
        try:
            if not self._closed:
                self._engine.loop.call_threadsafe(lambda: None)
        except IllegalStateError:
            if not self._closed:  # else its thread has closed it meanwhile
                raise

    def _check_wakeup(self) -> None:
        if self._wakes:
            self._wakes = False
            raise WakeupError('wakeup() was called')
