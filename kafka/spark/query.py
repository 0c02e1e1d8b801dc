"""The state of one streaming query: it requests offsets, and plans the micro-batches.

It stores where the query began, the ends it aims at, and the warnings it gave. Used by the readers
in stream.py; decisions are made in progress.py, requests in lookups.py. It lives on the driver, one
per start of a query; after a restart only the offsets in Spark's checkpoint remain.
"""

from __future__ import annotations

import logging
import time
from typing import (
    Any,
    Callable,
    Container,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Set,
    Tuple,
)

from kafka.errors import KafkaError
from kafka.spark.lookups import CONFIRM_PAUSE_SECONDS, CONFIRM_SECONDS, Lookups
from kafka.spark.offsets import offset_tree
from kafka.spark.options import SourceOptions
from kafka.spark.progress import (
    Loss,
    Patience,
    Plan,
    Tree,
    begin_of,
    first_end,
    listed,
    next_end,
    offsets_of,
    plan,
    went_back,
)
from kafka.spark.ranges import TaskRange, limit, split
from kafka.structs import TopicPartition

__all__ = ['Query']

log = logging.getLogger(__name__)


class Query:
    """The part that stream readers for all releases of PySpark share. Used by one thread.

    Arguments: options: a SourceOptions; lookups, clock, sleep: instead of the real ones.
    """

    def __init__(
        self,
        options: SourceOptions,
        lookups: Optional[Any] = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._lookups = Lookups(options) if lookups is None else lookups
        self._clock = clock
        self._sleep = sleep
        self._patience = Patience(options.min_offsets, options.max_delay)
        self._initial: Optional[Tree] = None
        self._latest: Optional[Dict[TopicPartition, int]] = None
        self._is_bounded = False
        self._bound: Optional[Dict[TopicPartition, int]] = None
        self._has_planned = False
        self._warned: Set[Tuple[str, Tuple[TopicPartition, ...]]] = set()
        self._deleted: Set[TopicPartition] = set()  # confirmed as deleted
        self._held: Set[TopicPartition] = set()  # missing but not deleted: a warning was given

    def __repr__(self) -> str:
        state = 'new' if self._latest is None else 'at %d partitions' % len(self._latest)
        return '<Query of %s, %s>' % (self._options.topics.kind, state)

    # ------------------------------------------------------------ offsets

    def initial(self) -> Tree:
        """Return where a new query begins; it is looked up once.

        It equals the end of a first batch without records, and no later offset: a query that
        repeats its first batch may later reach the offset at which it would begin now.
        Raises: as Lookups.starts().
        """
        if self._initial is None:
            offsets = self._starts()
            self._initial = first_end(offsets, offsets)
        return self._initial

    def _starts(self) -> Dict[TopicPartition, int]:
        """Return where all partitions begin; retried while a pattern matches no topic.

        A broker that has just started reports no topics for a while. A query that begins without
        partitions would treat all of them as new later, and read them from their beginning.
        """
        offsets: Dict[TopicPartition, int] = self._lookups.starts(self._options.start)
        if self._options.topics.pattern is not None:
            for _ in range(round(CONFIRM_SECONDS / CONFIRM_PAUSE_SECONDS)):
                if offsets:
                    break
                self._sleep(CONFIRM_PAUSE_SECONDS)
                offsets = self._lookups.starts(self._options.start)
        return offsets

    def everything(self, start: Tree) -> Tree:
        """Return the end of a batch from `start` that takes all available records.

        Raises: as Lookups.latest(); InvalidOptionError for a start of another source.
        """
        begin = offsets_of(start)
        return self._ended(start, begin, self._aim(begin))

    def worthwhile(self, start: Tree, max_offsets: Optional[int]) -> Tree:
        """Return the end of a batch from `start` within the options, `start` if none is due.

        Arguments: max_offsets: the approximate maximum of offsets, None for all.
        Raises: as everything().
        """
        begin = offsets_of(start)
        aim = self._aim(begin)
        # A bounded query gets no more records: waiting for them would leave the rest unread.
        if not self._is_bounded and not self._patience.is_due(begin, aim, self._clock()):
            aim = begin
        elif max_offsets is not None:
            new = [each for each in aim if each not in begin]
            aim = limit(begin, aim, self._earliest(new), max_offsets)
        return self._ended(start, begin, aim)

    def _ended(
        self, start: Tree, begin: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> Tree:
        return first_end(begin, end) if start == self._initial else next_end(start, end)

    def cut(self, start: Tree, end: Tree, left: Mapping[TopicPartition, int]) -> Tree:
        """Return the end of a batch that was planned up to `end` but stopped earlier.

        Arguments: left: the offsets at which partitions stopped.
        """
        return self._ended(start, begin_of(start, end), {**offsets_of(end), **left})

    def bound(self) -> None:
        """Read no further than the ends that the next call finds (Trigger.AvailableNow)."""
        self._is_bounded = True

    def latest(self) -> Optional[Tree]:
        """Return the ends that were found last, without a request; None before the first."""
        return offset_tree(self._latest) if self._latest else None

    def _aim(self, begin: Mapping[TopicPartition, int]) -> Dict[TopicPartition, int]:
        if self._bound is not None:
            return self._bound
        self._latest = self._found(begin)
        if self._is_bounded:
            self._bound = self._latest
        return self._latest

    def _found(self, begin: Mapping[TopicPartition, int]) -> Dict[TopicPartition, int]:
        """Return the ends of logs; retried while one is before the read offset.

        A partition that was read and is missing now keeps its offset unless it is confirmed as
        deleted. If no partition would remain, all of them keep their offsets, as in the JVM
        connector: after an end without partitions each topic that comes back would be read from its
        beginning.
        """
        latest: Dict[TopicPartition, int] = self._lookups.latest()
        for _ in range(self._options.retries - 1):
            if not went_back(begin, latest):
                break
            self._sleep(self._options.retry_interval_ms / 1000)
            latest = self._lookups.latest()
        deleted = self._confirmed_deleted(begin, latest)
        kept = {each: begin[each] for each in begin if each not in latest and each not in deleted}
        return {**kept, **latest} or dict(begin)

    def _confirmed_deleted(
        self, read: Iterable[TopicPartition], existing: Container[TopicPartition]
    ) -> Set[TopicPartition]:
        """Return those of the read partitions that no longer exist.

        One response without them is not sufficient: the permission to see them may be revoked for a
        while, and a broker that has just started reports no topics.
        """
        missing = {each for each in read if each not in existing}
        self._deleted &= missing
        doubtful = missing - self._deleted
        if doubtful:
            self._deleted |= self._lookups.deleted(doubtful)
        held = missing - self._deleted
        if held - self._held:
            log.warning(
                'partitions %s are missing from metadata but not known to be deleted (no'
                ' permission, or a broker just restarted): keeping their offsets',
                listed(held),
            )
        self._held = held
        return set(self._deleted)

    def _earliest(self, partitions: List[TopicPartition]) -> Dict[TopicPartition, int]:
        return self._lookups.earliest(partitions) if partitions else {}

    # ------------------------------------------------------------ ranges

    def ranges(self, start: Tree, end: Tree) -> List[TaskRange]:
        """Return the ranges for the tasks of a batch; the first batch begins where it once began.

        Raises: DataLossError when failOnDataLoss is true; as Lookups.
        """
        begin, stop = begin_of(start, end), offsets_of(end)
        if begin == stop:
            return []
        planned = self._plan(begin, stop)
        for loss in planned.losses:
            self._tell(loss)
        options = self._options
        return split(planned.ranges, options.min_partitions, options.max_records_per_partition)

    def _plan(
        self, begin: Mapping[TopicPartition, int], stop: Mapping[TopicPartition, int]
    ) -> Plan:
        """Plan a batch. Before the first one the log start offsets are checked, after a long pause.

        Later batches begin where the one before ended; the tasks detect what is lost meanwhile.
        """
        new = [each for each in stop if each not in begin]
        if self._has_planned:
            return plan(begin, stop, self._earliest(new))
        existing = set(self._lookups.partitions())
        existing.update(set(begin) - existing - self._confirmed_deleted(begin, existing))
        # Only partitions with something to read are requested: others may be invisible at the
        # moment.
        asked = [each for each in stop if each in existing and begin.get(each) != stop[each]]
        earliest = self._earliest(asked)
        new_starts = {each: earliest[each] for each in new if each in earliest}
        self._has_planned = True
        return plan(begin, stop, new_starts, earliest, existing)

    def _tell(self, loss: Loss) -> None:
        """Raise DataLossError for a loss, or log it once."""
        if self._options.fail_on_data_loss:
            raise loss.error()
        if (loss.kind, loss.partitions) not in self._warned:
            self._warned.add((loss.kind, loss.partitions))
            log.warning('kind=%s %s (failOnDataLoss is false)', loss.kind, loss.text)

    # ------------------------------------------------------------ end of a batch

    def commit(self, end: Tree) -> None:
        """Commit for the group of the option commitOffsets, if it is set.

        Retriable errors are only logged: the next batch commits these offsets too.
        Raises: KafkaError, as Lookups.commit(), for other errors.
        """
        group = self._options.commit_offsets
        if group is None:
            return
        try:
            self._lookups.commit(group, offsets_of(end))
        except KafkaError as error:
            if not error.retriable:
                raise
            log.warning(
                'group=%s offsets not committed, the next batch will retry: %s', group, error
            )

    def close(self) -> None:
        """Close the connections."""
        self._lookups.close()
