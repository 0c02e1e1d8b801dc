"""RangeFetcher: fetches ranges of offsets for a BoundedReader, without a group.

It sends Fetch requests within a budget of bytes, handles errors by the table of
consumer/fetch/error_actions.py, and raises or skips offsets that are not in the log any more.
look() and responses run in turns of the loop, the other methods in the reading thread; a lock
guards the state that both use.
"""

from __future__ import annotations

import enum
import random
import threading
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kafka.consumer.bounded.ranges import EARLIEST, LATEST, OffsetRange, RangeState, name_of
from kafka.consumer.fetch.error_actions import (
    FetchErrorAction,
    error_of,
    fetch_error_action,
    too_large,
)
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kafka.net.backoff import backoff_seconds
from kafka.net.routes import is_fatal
from kafka.protocol.api import ApiKey
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kafka.record.fetched_records import FetchedRecords
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool
    from kafka.offsets.lookups import OffsetLookups

__all__ = ['HINT', 'BufferedAnswer', 'RangeFetcher', 'ReadSettings']

#: The last version of Fetch that names topics; later ones use topic ids, which have to be known.
_BY_NAME = 12
#: From this version of ListOffsets on, a new leader returns an error instead of an end offset that
#: may be outdated (KIP-207, 2.2). Before, the end may be wrong for as long as replicas may lag
#: behind: 10 s. Then the time to wait is multiplied.
_ENDS_ARE_SURE = 5
_UNSURE_TIMES = 3
#: The end of errors about offsets that are gone.
HINT = '; fail_on_data_loss=False passes over them'


class ReadSettings(NamedTuple):
    """The settings of a RangeFetcher. Times are seconds.

    timeout: how long a range may have no progress before that is an error; fail_on_data_loss:
    whether offsets of a range that are gone are an error, or are skipped; start_may_move: whether a
    log that begins after the start of a range counts as no loss; cut_off_after: how long a log may
    end before the end of a range until that counts as loss, None for no limit.
    """

    min_bytes: int = 1
    max_wait: float = 0.5
    max_bytes: int = 52428800
    max_partition_bytes: int = 1048576
    max_buffered_bytes: int = 67108864
    read_committed: bool = False
    client_rack: str = ''
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    timeout: float = 120.0
    fail_on_data_loss: bool = True
    start_may_move: bool = False
    cut_off_after: Optional[float] = None


class _Doubt(enum.Enum):
    """The reasons to look up the first and end offset of a log."""

    OUT_OF_RANGE = 'the broker says that an offset is out of range'
    ENDS_EARLY = 'the log ends before the range does'


class BufferedAnswer(NamedTuple):
    """The data of a partition in a response, to be taken by the reader."""

    state: RangeState
    token: int
    offset: int
    data: PartitionData
    node_id: int
    size_bytes: int


class RangeFetcher:
    """Fetches ranges for one reader.

    Arguments: loop, pool; lookups: an OffsetLookups, for the first and end offsets of logs when
        records are gone; ranges; settings; chance: for the jitter.

    Attributes: lost: {partition: [(first, end)]} of offsets that were skipped because they are
        gone, end exclusive; raised: the error that take() raised last.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        lookups: OffsetLookups,
        ranges: Sequence[OffsetRange],
        settings: ReadSettings,
        chance: Optional[random.Random] = None,
    ) -> None:
        self.settings = settings
        self.lost: Dict[TopicPartition, List[Tuple[int, int]]] = {}
        self.raised: Optional[KafkaError] = None
        self._loop = loop
        self._pool = pool
        self._lookups = lookups
        self._chance = chance or random.Random()
        #: Guards the attributes below, held only briefly.
        self._lock = threading.RLock()
        self._states: List[RangeState] = [
            RangeState(each, settings.max_partition_bytes) for each in ranges if each.length
        ]
        self._parked: Deque[BufferedAnswer] = deque()
        self._errors: Deque[Tuple[List[RangeState], KafkaError]] = deque()
        self._asking: Dict[int, int] = {}  # node: bytes that the response in flight may have
        self._waiting: Dict[int, int] = {}  # node: number of its answers in _parked
        self._held_bytes = 0  # of the answers in _parked and those being taken
        self._is_closed = False
        self._is_refreshing = False

    def __repr__(self) -> str:
        return '<RangeFetcher %d ranges, %d left, %d answers wait>' % (
            len(self._states),
            sum(not each.is_fetched for each in self._states),
            len(self._parked),
        )

    # ------------------------------------------------------------ for the thread that reads

    @property
    def has_news(self) -> bool:
        """Whether take() has something to return or to raise, or all ranges are taken."""
        return bool(self._parked or self._errors) or self.is_over

    @property
    def is_over(self) -> bool:
        """Whether all ranges were fetched and taken."""
        # A response that completes a range advances it and is then appended to _parked. Without the
        # lock a reader could see the state in between, end, and lose the records.
        with self._lock:
            return not self._parked and not self._errors and all(s.is_fetched for s in self._states)

    def take(self) -> Optional[BufferedAnswer]:
        """Return the next answer, None if there is none yet. Raises the errors of fetching."""
        parked = self.take_parked()
        if parked is None and self._errors:
            with self._lock:
                states, error = self._errors.popleft()
                for state in states:  # retried if the reader continues
                    state.is_blocked = False
            self._loop.call_lazily(self.look)
            self.raised = error
            raise error
        return parked

    def take_parked(self) -> Optional[BufferedAnswer]:
        """Return the next answer as take(), without raising errors."""
        with self._lock:
            while self._parked:
                parked = self._parked.popleft()
                self._waiting[parked.node_id] -= 1
                if parked.token == parked.state.token:
                    break
                self._held_bytes -= parked.size_bytes
            else:
                return None
            is_last = not self._waiting[parked.node_id]
        if is_last:
            self._loop.call_lazily(self.look)
        return parked

    def done(self, parked: BufferedAnswer) -> None:
        """Release an answer that is empty, or dropped: its bytes leave the budget."""
        with self._lock:
            self._held_bytes -= parked.size_bytes
            was_blocked = parked.state.is_blocked and parked.state.token == parked.token
        if was_blocked:
            self._loop.call_lazily(self._try_again, parked.state)
        elif not self._asking and not self.is_over:
            self._loop.call_lazily(self.look)

    def seek(self, state: RangeState, offset: int) -> None:
        """Continue a range at an offset; its fetched records are dropped."""
        with self._lock:
            state.seek(offset)
        self._loop.call_lazily(self.look)

    # ------------------------------------------------------------ in turns: requests

    def close(self) -> None:
        """Send no more requests."""
        self._is_closed = True

    def look(self) -> None:
        """Send the Fetch requests that are possible now; in a turn of the loop."""
        if self._is_closed:
            return
        with self._lock:
            plans, has_leaderless = self._plan(self._loop.time())
        for node_id, states, room in plans:
            self._loop.spawn(self._fetch(node_id, states, room))
        if has_leaderless and not self._is_refreshing:
            self._is_refreshing = True
            self._loop.spawn(self._refresh())

    def _plan(self, now: float) -> Tuple[List[Tuple[int, List[RangeState], int]], bool]:
        by_node: Dict[int, List[RangeState]] = {}
        has_leaderless = False
        for state in self._states:
            if not state.may_be_asked(now):
                continue
            if state.waiting_since is None:
                state.waiting_since = now
            node_id = state.replica
            if node_id is None:
                node_id = self._pool.cluster.leader_for_partition(state.partition)
            if node_id is None or node_id == -1:
                has_leaderless = True
                self._check_waited(state, now)
            elif node_id not in self._asking and not self._waiting.get(node_id):
                by_node.setdefault(node_id, []).append(state)
        plans = []
        for node_id, states in by_node.items():
            used = self._held_bytes + sum(self._asking.values())
            room = min(self.settings.max_bytes, self.settings.max_buffered_bytes - used)
            if room <= 0:
                break
            lonely = [each for each in states if each.alone]
            states = lonely[:1] or states
            room = min(room, sum(each.limit_bytes for each in states))
            self._asking[node_id] = room
            for each in states:
                each.is_asked = True
            plans.append((node_id, states, room))
        return plans, has_leaderless

    async def _fetch(self, node_id: int, states: List[RangeState], room: int) -> None:
        with self._lock:  # token and offset must match: seek() sets one after the other
            asked = [(each, each.token, each.fetch_offset) for each in states]
        answers: Dict[TopicPartition, PartitionData] = {}
        error: Optional[KafkaError] = None
        try:
            link = self._pool.fetch_link(node_id)
            await link.ready()
            response = await link.request(self._request(asked, room), highest=_BY_NAME)
            if response.error_code:
                error = error_of(response.error_code, states[0].partition, asked[0][2], node_id)
            answers = {
                TopicPartition(topic.topic, each.partition_index): each
                for topic in response.responses
                for each in topic.partitions
            }
        except KafkaError as failure:
            error = failure
            self._pool.refresh()  # after each failure: a new leader may not be elected yet
        doubtful: List[Tuple[RangeState, int, _Doubt]] = []
        with self._lock:
            del self._asking[node_id]
            for state, token, _ in asked:
                state.is_asked = False
                if state.token != token:
                    continue
                data = answers.get(state.partition)
                if error is not None or data is None:
                    if error is not None and is_fatal(error):  # such as wrong credentials
                        self._tell(state, error)
                    self._failed(state, error)
                    continue
                doubt = self._answered(state, data, node_id, len(asked) == 1)
                if doubt is not None:
                    state.is_asked = True
                    doubtful.append((state, token, doubt))
        for state, token, doubt in doubtful:
            self._loop.spawn(self._find_out(state, token, doubt))
        self.look()

    def _request(self, asked: Sequence[Tuple[RangeState, int, int]], room: int) -> FetchRequest:
        settings = self.settings
        topics: Dict[str, List[FetchPartition]] = {}
        for state, _, offset in asked:
            epoch = self._pool.cluster.leader_epoch_for_partition(state.partition)
            topics.setdefault(str(state.partition.topic), []).append(
                FetchPartition(
                    partition=state.partition.partition,
                    current_leader_epoch=-1 if epoch is None else epoch,
                    fetch_offset=offset,
                    partition_max_bytes=state.limit_bytes,
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=int(settings.max_wait * 1000),
            min_bytes=settings.min_bytes,
            max_bytes=room,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(topic=name, partitions=each) for name, each in topics.items()],
            rack_id=settings.client_rack,
        )

    def _try_again(self, state: RangeState) -> None:
        """Fetch again, after a back-off, where a response had no records for the reader."""
        with self._lock:
            if state.is_blocked:
                state.is_blocked = False
                self._failed(state, None)

    def _tell(self, state: RangeState, error: KafkaError) -> None:
        """Keep an error for the reader; the range is not fetched again until it was raised."""
        state.is_blocked = True
        if self._errors and self._errors[-1][1] is error:
            self._errors[-1][0].append(state)
        else:
            self._errors.append(([state], error))

    # ------------------------------------------------------------ in turns: responses

    def _answered(
        self, state: RangeState, data: PartitionData, node_id: int, was_alone: bool
    ) -> Optional[_Doubt]:
        """Handle the data of a partition; return a reason to look up the log's offsets, or None."""
        reaction = fetch_error_action(data.error_code)
        if reaction is FetchErrorAction.TAKE:
            if data.records:
                self._park(state, data, node_id, was_alone)
            elif data.preferred_read_replica != -1:
                state.replica = data.preferred_read_replica
            else:
                return self._came_empty(state, data, node_id, was_alone)
            return None
        error = error_of(data.error_code, state.partition, state.fetch_offset, node_id)
        if reaction is FetchErrorAction.RAISE:
            self._tell(state, error)
        if reaction is FetchErrorAction.OUT_OF_RANGE and state.replica is None:
            return _Doubt.OUT_OF_RANGE
        # An error that does not go away may be caused by outdated metadata, such as the leader
        # epoch of a topic that was deleted and created again.
        if reaction is FetchErrorAction.REFRESH or state.failures:
            self._pool.refresh()
        self._failed(state, error)
        return None

    def _park(self, state: RangeState, data: PartitionData, node_id: int, was_alone: bool) -> None:
        records = FetchedRecords(data.records, check_crcs=False)
        behind = records.extent.next_offset or 0
        offset, size = state.fetch_offset, len(data.records or b'')
        if records.is_too_small:
            # Cut off, by a broker before 0.10.1, or because other partitions came first.
            largest = max(self.settings.max_bytes, self.settings.max_partition_bytes)
            if was_alone and state.limit_bytes >= largest:
                self._tell(state, too_large(state.partition, offset, state.limit_bytes))
            elif was_alone:
                state.limit_bytes = min(2 * state.limit_bytes, largest)
            state.alone = True
            return
        if behind > offset:
            state.advance(behind)
        else:  # the reader gets the error when it decodes, and may skip the batch
            state.is_blocked = True
        self._parked.append(BufferedAnswer(state, state.token, offset, data, node_id, size))
        self._waiting[node_id] = self._waiting.get(node_id, 0) + 1
        self._held_bytes += size

    def _came_empty(
        self, state: RangeState, data: PartitionData, node_id: int, was_alone: bool
    ) -> Optional[_Doubt]:
        end = data.high_watermark
        if self.settings.read_committed and data.last_stable_offset >= 0:
            end = data.last_stable_offset
        if end >= state.stop and was_alone:
            state.advance(state.stop)
            return None
        if end > state.fetch_offset:
            state.alone = True
        state.log_end = end
        is_all = was_alone or end <= state.fetch_offset
        if is_all and data.high_watermark < state.stop and self._is_cut_off(state, node_id):
            return _Doubt.ENDS_EARLY
        state.last_error = None
        self._check_waited(state, self._loop.time(), 'the log ends at %d so far' % end)
        return None

    def _is_cut_off(self, state: RangeState, node_id: int) -> bool:
        """Return True if a log has ended before the range for cut_off_after or longer."""
        patience, since = self.settings.cut_off_after, state.waiting_since
        if patience is None or since is None or state.replica is not None:
            return False
        versions = self._pool.link(node_id).versions
        known = versions.ranges.get(ApiKey.LIST_OFFSETS, (0, -1)) if versions else (0, -1)
        times = 1 if known[1] >= _ENDS_ARE_SURE else _UNSURE_TIMES
        return bool(self._loop.time() - since >= patience * times)

    def _failed(self, state: RangeState, error: Optional[KafkaError]) -> None:
        now, settings = self._loop.time(), self.settings
        state.replica = None
        pause = backoff_seconds(
            settings.retry_backoff,
            settings.retry_backoff_max,
            state.failures + 1,
            self._chance.uniform(0.8, 1.2),
        )
        state.fail(error, now + pause)
        self._check_waited(state, now)
        self._loop.call_later(pause + 0.001, self.look)

    def _check_waited(self, state: RangeState, now: float, why: str = 'no answer') -> None:
        """Raise KafkaTimeoutError in the reader if a range has had no progress for `timeout`.

        If its topic does not exist and fail_on_data_loss is off, the rest of the range is skipped.
        """
        if state.waiting_since is None or now - state.waiting_since < self.settings.timeout:
            return
        state.waiting_since = now
        error = state.last_error
        if isinstance(error, UnknownTopicOrPartitionError) and not self.settings.fail_on_data_loss:
            self._pass_over(state, state.stop)
            return
        self._tell(
            state,
            KafkaTimeoutError(
                '%s: nothing came of offset %d up to %d within %.3g seconds: %s'
                % (
                    name_of(state.partition),
                    state.fetch_offset,
                    state.stop,
                    self.settings.timeout,
                    error or why,
                )
            ),
        )

    async def _refresh(self) -> None:
        """Request metadata, because partitions have no known leader."""
        settings = self.settings
        topics = sorted({str(each.partition.topic) for each in self._states if not each.is_fetched})
        error: Optional[KafkaError] = None
        try:
            await self._pool.metadata(topics, settings.request_timeout)
        except KafkaError as failure:
            error = failure
        self._is_refreshing = False
        with self._lock:
            for state in self._states:
                if state.may_be_asked(self._loop.time()):
                    known = self._pool.cluster.leader_for_partition(state.partition)
                    if known is None or known == -1:
                        why = self._pool.cluster.topic_errors.get(str(state.partition.topic))
                        if why is None and known is None:
                            why = UnknownTopicOrPartitionError
                        self._failed(state, error or (None if why is None else why()))
        self.look()

    # ------------------------------------------------------------ in turns: data loss

    async def _find_out(self, state: RangeState, token: int, doubt: _Doubt) -> None:
        """Look up the first and end offset of a log; continue, or handle offsets that are gone.

        Arguments: token: of the request; if the reader has sought since, the result is ignored.
        """
        with self._lock:
            partition, offset = state.partition, state.fetch_offset
        timeout = self.settings.request_timeout
        try:
            if doubt is _Doubt.ENDS_EARLY:  # the current leader has to confirm it
                await self._pool.metadata([str(partition.topic)], timeout)
            found = [
                await self._lookups.look_up({partition: each}, timeout)
                for each in (EARLIEST, LATEST)
            ]
        except KafkaError as error:
            with self._lock:
                state.is_asked = False
                self._failed(state, error)
            return
        places = [each[partition] for each in found]
        first, last = (None if each is None else each.offset for each in places)
        with self._lock:
            state.is_asked = False
            if state.token != token:
                pass
            elif first is not None and offset < first:
                self._begins_late(state, first)
            elif last is not None and (offset > last or self._ends_early(state, doubt, last)):
                text = 'its log ends at %d: it was truncated, or the topic was created again' % last
                self._gone(state, state.stop, text)
            else:
                self._failed(state, None)
        self.look()

    def _ends_early(self, state: RangeState, doubt: _Doubt, last: int) -> bool:
        return doubt is _Doubt.ENDS_EARLY and last == state.log_end

    def _begins_late(self, state: RangeState, first: int) -> None:
        if self.settings.start_may_move and state.fetch_offset == state.start:
            state.advance(min(first, state.stop))
        else:
            self._gone(state, min(first, state.stop), 'its log begins at %d now' % first)

    def _gone(self, state: RangeState, behind: int, text: str) -> None:
        if not self.settings.fail_on_data_loss:
            self._pass_over(state, behind)
            return
        self._tell(
            state,
            OffsetOutOfRangeError(
                '%s: offsets %d to %d are gone: %s%s'
                % (name_of(state.partition), state.fetch_offset, behind - 1, text, HINT)
            ),
        )

    def _pass_over(self, state: RangeState, behind: int) -> None:
        self.lost.setdefault(state.partition, []).append((state.fetch_offset, behind))
        state.advance(behind)
