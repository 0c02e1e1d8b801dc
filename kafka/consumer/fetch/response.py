"""FetchResponseHandler: handles Fetch responses, partition by partition.

The fetch manager passes it each response that its fetch session accepted. Records become
CompletedFetches; hints and errors change the state of the partition and the node it is fetched
from. `take()` runs under the consumer's lock, `make()` without it. Follows KIP-320 (truncation),
KIP-392 (preferred read replica) and KIP-951 (new leader in the response).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Tuple

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.error_actions import (
    FetchErrorAction,
    error_of,
    fetch_error_action,
    out_of_range,
    too_large,
)
from kafka.consumer.fetch.node_selection import NodeSelection
from kafka.consumer.fetch.session import FetchSession, FetchSettings
from kafka.consumer.partition_state import TopicPartitionState
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import KafkaError
from kafka.protocol.fetch import FetchResponse, PartitionData
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['FetchOutcome', 'FetchResponseHandler']

Parts = List[Tuple[TopicPartition, PartitionData]]


class FetchOutcome:
    """What the fetch manager has to do after a response.

    Attributes:
        fetches: CompletedFetches for the fetch buffer.
        errors: for the next poll() to raise.
        stale_topics: topics whose metadata is outdated.
        changed: partitions whose next request has changed.
        is_progress: whether the response had records or a preferred replica, or led to a reset.
        is_unsettled: whether a position has to be found or validated.
        notes: lines for the log: (whether at level INFO, text, arguments).
    """

    def __init__(self) -> None:
        self.fetches: List[CompletedFetch] = []
        self.errors: List[KafkaError] = []
        self.stale_topics: Set[str] = set()
        self.changed: Set[TopicPartition] = set()
        self.is_progress = False
        self.is_unsettled = False
        self.notes: List[Tuple[bool, str, Tuple[Any, ...]]] = []


class _HandledResponse:
    """A response that is being handled, and its outcome so far."""

    def __init__(self, node_id: int, limit: int, response: FetchResponse, now: float) -> None:
        self.node_id = node_id
        self.limit = limit
        self.response = response
        self.now = now
        self.outcome = FetchOutcome()


class FetchResponseHandler:
    """Applies Fetch responses to the state of partitions.

    Arguments: subscription; cluster; selection; settings; make: as FetchManager; backoff: returns
    the seconds to pause after a number of failures in a row.
    """

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: ClusterMetadata,
        selection: NodeSelection,
        settings: FetchSettings,
        make: Callable[..., CompletedFetch],
        backoff: Callable[[int], float],
    ) -> None:
        self._subscription = subscription
        self._cluster = cluster
        self._selection = selection
        self._settings = settings
        self._make = make
        self._backoff = backoff

    def make(
        self, node_id: int, session: FetchSession, parts: Parts
    ) -> Dict[TopicPartition, CompletedFetch]:
        """Return the CompletedFetches of a response.

        Runs without the lock, because it reads the headers of the batches.
        """
        made: Dict[TopicPartition, CompletedFetch] = {}
        for at, data in parts:
            wanted = session.asked(at)
            if data.records and not data.error_code and wanted is not None:
                made[at] = self._make(at, wanted.offset, data, token=wanted.token, node_id=node_id)
        return made

    def take(
        self,
        node_id: int,
        session: FetchSession,
        limit: int,
        response: FetchResponse,
        parts: Parts,
        made: Dict[TopicPartition, CompletedFetch],
        now: float,
    ) -> FetchOutcome:
        """Apply a response to the partitions that were requested and have not moved since.

        Runs under the consumer's lock.

        Arguments: limit: bytes requested of each partition; made: by make().
        """
        answer = _HandledResponse(node_id, limit, response, now)
        answer.outcome.is_progress = bool(made)
        for at, data in parts:
            wanted = session.asked(at)
            state = self._subscription.assignment.get(at)
            if wanted is None or state is None:
                continue
            if (state.token, state.fetch_offset) != (wanted.token, wanted.offset):
                continue  # a stale response: the position was moved meanwhile
            if data.error_code:
                self._take_error(answer, at, state, data)
            else:
                self._take_data(answer, at, state, data, made.get(at))
        answer.outcome.is_unsettled = bool(self._subscription.unsettled)
        return answer.outcome

    def _leave_alone(
        self, answer: _HandledResponse, at: TopicPartition, state: TopicPartitionState
    ) -> None:
        self._selection.leave_alone(at, state.token, answer.now, self._backoff)

    # ------------------------------------------------------------ data

    def _take_data(
        self,
        answer: _HandledResponse,
        at: TopicPartition,
        state: TopicPartitionState,
        data: PartitionData,
        fetch: Optional[CompletedFetch],
    ) -> None:
        """Apply the data of a partition without an error."""
        if data.high_watermark >= 0:
            state.highwater = data.high_watermark
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        diverging = data.diverging_epoch
        if diverging.epoch >= 0 or diverging.end_offset >= 0:
            answer.outcome.notes.append((True, 'topic=%s partition=%s: its log was cut', at))
            if not state.doubt():
                state.rewind()
                self._leave_alone(answer, at, state)
        elif fetch is not None:
            self._take_records(answer, at, state, fetch)
        elif data.preferred_read_replica >= 0:
            until = answer.now + self._settings.metadata_max_age
            self._selection.prefer(at, state, data.preferred_read_replica, until)
            answer.outcome.is_progress = True

    def _take_records(
        self,
        answer: _HandledResponse,
        at: TopicPartition,
        state: TopicPartitionState,
        fetch: CompletedFetch,
    ) -> None:
        """Add records to the fetch buffer, and let the next request continue after them."""
        if fetch.is_too_small:
            self._make_room(answer, at, state)
            return
        answer.outcome.fetches.append(fetch)
        if fetch.next_offset > fetch.fetch_offset:
            state.fetched(fetch.next_offset, fetch.next_epoch)
            self._selection.advance(answer.node_id, at, state)
        else:  # the batch cannot be read: poll() raises, and the program has to seek
            self._selection.leave_alone(at, state.token, answer.now, lambda failures: math.inf)

    def _make_room(
        self, answer: _HandledResponse, at: TopicPartition, state: TopicPartitionState
    ) -> None:
        """Raise the limit of a partition whose first message was cut off, or keep an error."""
        limit = self._selection.grown(at) or answer.limit
        if self._selection.grow(at, limit, self._settings.max_bytes):
            answer.outcome.changed.add(at)
            return
        if state.position is not None and state.position == state.fetch_offset:
            answer.outcome.errors.append(too_large(at, state.position, limit))
        self._leave_alone(answer, at, state)

    # ------------------------------------------------------------ errors

    def _take_error(
        self,
        answer: _HandledResponse,
        at: TopicPartition,
        state: TopicPartitionState,
        data: PartitionData,
    ) -> None:
        """Handle the error of a partition by the table in error_actions."""
        code, offset, outcome = data.error_code, state.fetch_offset, answer.outcome
        assert offset is not None
        reaction = fetch_error_action(code)
        text = 'topic=%s partition=%s offset=%s node=%s: error %s'
        is_shown = reaction is FetchErrorAction.OUT_OF_RANGE
        outcome.notes.append((is_shown, text, (*at, offset, answer.node_id, code)))
        if reaction is FetchErrorAction.OUT_OF_RANGE:
            if self._handle_out_of_range(answer, at, state, offset):
                return
        elif reaction is FetchErrorAction.REFRESH:
            outcome.stale_topics.add(str(at.topic))
            state.prefer(None)
            if self._take_leader_hint(answer, at, data):
                return
        elif reaction is FetchErrorAction.RAISE:
            outcome.errors.append(error_of(code, at, offset, answer.node_id))
        self._leave_alone(answer, at, state)

    def _handle_out_of_range(
        self, answer: _HandledResponse, at: TopicPartition, state: TopicPartitionState, offset: int
    ) -> bool:
        """Ask the leader, await a reset or note an error; return False if the next fetch waits."""
        if self._selection.is_follower(at, answer.node_id):
            state.prefer(None)  # the follower may only lag: fetch from the leader
            return True
        if state.position != offset:
            return False  # fetched again; the records before it have to be returned first
        if self._subscription.has_default_offset_reset_policy():
            self._subscription.need_offset_reset(at)
            answer.outcome.is_progress = True
            return True
        answer.outcome.errors.append(out_of_range(at, offset))
        return False

    def _take_leader_hint(
        self, answer: _HandledResponse, at: TopicPartition, data: PartitionData
    ) -> bool:
        """Use the new leader that an error response names; return False if it has no newer one."""
        leader = data.current_leader
        if not self._cluster.take_hint(
            str(at.topic),
            at.partition,
            leader.leader_id,
            leader.leader_epoch,
            answer.response.node_endpoints,
        ):
            return False
        self._selection.leader_told(at, answer.now)
        return True
