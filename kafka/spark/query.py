"""The course of one streaming query: asks brokers where it is to go, and plans its micro-batches.

Owns what a reader of a query remembers: where it began, which end is aimed at, what was warned of.
Does not own: the decisions (progress.py), requests (lookups.py), what PySpark calls (stream.py).
Lives on the driver, one for each start of a query; a restart knows only what Spark's checkpoint
hands back.
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
    """What the stream readers of all releases of PySpark do. Used by one thread.

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
        self._deleted: Set[TopicPartition] = set()  # confirmed, and not seen since
        self._held: Set[TopicPartition] = set()  # missing, not deleted: warned of

    def __repr__(self) -> str:
        state = 'new' if self._latest is None else 'at %d partitions' % len(self._latest)
        return '<Query of %s, %s>' % (self._options.topics.kind, state)

    # ------------------------------------------------------------ where it goes

    def initial(self) -> Tree:
        """Return where a new query begins: looked up once, however often it is asked.

        It looks like the end of a first batch without records, and like no later offset: a query
        that repeats its first batch may come later to where it would begin now.
        Raises: as Lookups.starts().
        """
        if self._initial is None:
            offsets = self._starts()
            self._initial = first_end(offsets, offsets)
        return self._initial

    def _starts(self) -> Dict[TopicPartition, int]:
        """Return where all partitions begin; asked again while a pattern matches no topic.

        A broker that has just started names no topics for a while. A query that begins without any
        takes all of them for new later, and reads them from their beginning.
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
        """Return the end of a batch from `start` that takes all there is.

        Raises: as Lookups.latest(); InvalidOptionError for a start that is none of this source.
        """
        begin = offsets_of(start)
        return self._ended(start, begin, self._aim(begin))

    def worthwhile(self, start: Tree, max_offsets: Optional[int]) -> Tree:
        """Return the end of a batch from `start` that keeps to the options, `start` if none is due.

        Arguments: max_offsets: about how many it takes at most, None for all.
        Raises: as everything().
        """
        begin = offsets_of(start)
        aim = self._aim(begin)
        # With a bound there is no more to come: waiting for it would leave the rest unread.
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
        """Return the end of a batch that was to go to `end`, and has left some partitions before.

        Arguments: left: where it has left them.
        """
        return self._ended(start, begin_of(start, end), {**offsets_of(end), **left})

    def bound(self) -> None:
        """Read no further than to the ends that the next call finds (Trigger.AvailableNow)."""
        self._is_bounded = True

    def latest(self) -> Optional[Tree]:
        """Return the ends that were found last, without asking for them; None before that."""
        return offset_tree(self._latest) if self._latest else None

    def _aim(self, begin: Mapping[TopicPartition, int]) -> Dict[TopicPartition, int]:
        if self._bound is not None:
            return self._bound
        self._latest = self._found(begin)
        if self._is_bounded:
            self._bound = self._latest
        return self._latest

    def _found(self, begin: Mapping[TopicPartition, int]) -> Dict[TopicPartition, int]:
        """Return where logs end; asked again while one seems to end before what was read.

        A partition that was read and is missing now keeps its offset unless it is deleted for
        certain. Where nothing would be left all of them do, as with the JVM connector: an end
        without partitions would have every topic that comes back read from its begin.
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
        """Return which of the partitions that were read do not exist any more.

        That they are missing in one answer is no proof: the right to see them may be taken away for
        a while, and a broker that has just started names no topics.
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

    # ------------------------------------------------------------ what is read

    def ranges(self, start: Tree, end: Tree) -> List[TaskRange]:
        """Return what the tasks of a batch read; of the first batch from where it once began.

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
        """Plan a batch. Before the first one logs are looked at: the query may have rested long.

        Later each batch begins where one has just ended; what goes meanwhile, the tasks notice.
        """
        new = [each for each in stop if each not in begin]
        if self._has_planned:
            return plan(begin, stop, self._earliest(new))
        existing = set(self._lookups.partitions())
        existing.update(set(begin) - existing - self._confirmed_deleted(begin, existing))
        # Where nothing is read nothing is asked: the partition may be one that cannot be seen now.
        asked = [each for each in stop if each in existing and begin.get(each) != stop[each]]
        earliest = self._earliest(asked)
        new_starts = {each: earliest[each] for each in new if each in earliest}
        self._has_planned = True
        return plan(begin, stop, new_starts, earliest, existing)

    def _tell(self, loss: Loss) -> None:
        """Fail for what is lost, or warn of it once. Raises DataLossError."""
        if self._options.fail_on_data_loss:
            raise loss.error()
        if (loss.kind, loss.partitions) not in self._warned:
            self._warned.add((loss.kind, loss.partitions))
            log.warning('kind=%s %s (failOnDataLoss is false)', loss.kind, loss.text)

    # ------------------------------------------------------------ when it is done

    def commit(self, end: Tree) -> None:
        """Commit for the group of the option commitOffsets, if it is set.

        What may pass is only warned of: the next batch commits what this one should have.
        Raises: KafkaError, as Lookups.commit(), when it is no use trying again.
        """
        group = self._options.commit_offsets
        if group is None:
            return
        try:
            self._lookups.commit(group, offsets_of(end))
        except KafkaError as error:
            if not error.retriable:
                raise
            log.warning('group=%s offsets not committed, for now: %s', group, error)

    def close(self) -> None:
        """Close the connections."""
        self._lookups.close()
