"""What each part of a Fetch answer does to its partition.

Owns: which parts still count, and what records, hints and errors do to the state of a partition and
to who is asked for it next. Does not own: the table of errors (error_actions.py), where partitions
are asked for (node_selection.py), what an answer as a whole is good for (session.py), who hears
of it (manager.py). Follows KIP-320, KIP-392 and KIP-951. Pure.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.error_actions import (
    Reaction,
    error_of,
    out_of_range,
    reaction_to,
    too_large,
)
from kafka.consumer.fetch.node_selection import Places
from kafka.consumer.fetch.request import FetchSettings
from kafka.consumer.fetch.session import FetchSession
from kafka.consumer.partition_state import TopicPartitionState
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import KafkaError
from kafka.protocol.fetch import FetchResponse, PartitionData
from kafka.structs import TopicPartition

__all__ = ['FetchedParts', 'News']

Parts = List[Tuple[TopicPartition, PartitionData]]


class News:
    """What an answer leads to, for the driver.

    Attributes: parked: fetches for the program; errors: for its next poll; stale_topics: whose
    metadata is too old; changed: partitions of which something else is to be asked; is_progress:
    whether the broker had anything to say; is_unsettled: whether a position has to be found or
    validated; notes: for the log, as whether it is shown by default, text and arguments.
    """

    def __init__(self) -> None:
        self.parked: List[CompletedFetch] = []
        self.errors: List[KafkaError] = []
        self.stale_topics: Set[str] = set()
        self.changed: Set[TopicPartition] = set()
        self.is_progress = False
        self.is_unsettled = False
        self.notes: List[Tuple[bool, str, Tuple[Any, ...]]] = []


class _Answer:
    """The answer that is being taken."""

    def __init__(self, node_id: int, limit: int, response: FetchResponse, now: float) -> None:
        self.node_id = node_id
        self.limit = limit
        self.response = response
        self.now = now
        self.news = News()


class FetchedParts:
    """Takes the parts of answers.

    Arguments: subscription; cluster; places; settings; make: as Fetching; backoff: a function of
    the number of failures in a row that returns seconds.
    """

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: Any,
        places: Places,
        settings: FetchSettings,
        make: Callable[..., CompletedFetch],
        backoff: Callable[[int], float],
    ) -> None:
        self._subscription = subscription
        self._cluster = cluster
        self._places = places
        self._settings = settings
        self._make = make
        self._backoff = backoff

    def make(
        self, node_id: int, session: FetchSession, parts: Parts
    ) -> Dict[TopicPartition, CompletedFetch]:
        """Return the records of an answer, made without the lock: heads of batches are read."""
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
    ) -> News:
        """Take what an answer says of each partition, if it was asked and still counts.

        Arguments: limit: bytes that were asked of each partition; made: by make(). Under the
        consumer's lock.
        """
        answer = _Answer(node_id, limit, response, now)
        answer.news.is_progress = bool(made)
        for at, data in parts:
            wanted = session.asked(at)
            state = self._subscription.assignment.get(at)
            if wanted is None or state is None:
                continue
            if (state.token, state.fetch_offset) != (wanted.token, wanted.offset):
                continue  # it was moved meanwhile
            if data.error_code:
                self._take_error(answer, at, state, data)
            else:
                self._take_data(answer, at, state, data, made.get(at))
        answer.news.is_unsettled = bool(self._subscription.unsettled)
        return answer.news

    def _leave_alone(self, answer: _Answer, at: TopicPartition, state: TopicPartitionState) -> None:
        self._places.leave_alone(at, state.token, answer.now, self._backoff)

    # ------------------------------------------------------------ data

    def _take_data(
        self,
        answer: _Answer,
        at: TopicPartition,
        state: TopicPartitionState,
        data: PartitionData,
        fetch: Optional[CompletedFetch],
    ) -> None:
        """Take what a partition has."""
        if data.high_watermark >= 0:
            state.highwater = data.high_watermark
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        diverging = data.diverging_epoch
        if diverging.epoch >= 0 or diverging.end_offset >= 0:
            answer.news.notes.append((True, 'topic=%s partition=%s: its log was cut', at))
            if not state.doubt():
                state.rewind()
                self._leave_alone(answer, at, state)
        elif fetch is not None:
            self._take_records(answer, at, state, fetch)
        elif data.preferred_read_replica >= 0:
            until = answer.now + self._settings.metadata_max_age
            self._places.prefer(at, state, data.preferred_read_replica, until)
            answer.news.is_progress = True

    def _take_records(
        self,
        answer: _Answer,
        at: TopicPartition,
        state: TopicPartitionState,
        fetch: CompletedFetch,
    ) -> None:
        """Park records for the program, and ask for what comes behind them."""
        if fetch.is_too_small:
            self._make_room(answer, at, state)
            return
        answer.news.parked.append(fetch)
        if fetch.next_offset > fetch.fetch_offset:
            state.fetched(fetch.next_offset, fetch.next_epoch)
            self._places.advance(answer.node_id, at, state)
        else:  # what begins here cannot be read: the program hears of it, and moves the position
            self._places.leave_alone(at, state.token, answer.now, lambda failures: math.inf)

    def _make_room(self, answer: _Answer, at: TopicPartition, state: TopicPartitionState) -> None:
        """Ask for more of a partition whose first message was cut off, or tell the program."""
        limit = self._places.grown(at) or answer.limit
        if self._places.grow(at, limit, self._settings.max_bytes):
            answer.news.changed.add(at)
            return
        if state.position is not None and state.position == state.fetch_offset:
            answer.news.errors.append(too_large(at, state.position, limit))
        self._leave_alone(answer, at, state)

    # ------------------------------------------------------------ errors

    def _take_error(
        self,
        answer: _Answer,
        at: TopicPartition,
        state: TopicPartitionState,
        data: PartitionData,
    ) -> None:
        """Do what the table says about an error."""
        code, offset, news = data.error_code, state.fetch_offset, answer.news
        assert offset is not None
        reaction = reaction_to(code)
        text = 'topic=%s partition=%s offset=%s node=%s: error %s'
        is_shown = reaction is Reaction.OUT_OF_RANGE
        news.notes.append((is_shown, text, (*at, offset, answer.node_id, code)))
        if reaction is Reaction.OUT_OF_RANGE:
            if self._is_moved(answer, at, state, offset):
                return
        elif reaction is Reaction.REFRESH:
            news.stale_topics.add(str(at.topic))
            state.prefer(None)
            if self._is_told_who_leads(answer, at, data):
                return
        elif reaction is Reaction.RAISE:
            news.errors.append(error_of(code, at, offset, answer.node_id))
        self._leave_alone(answer, at, state)

    def _is_moved(
        self, answer: _Answer, at: TopicPartition, state: TopicPartitionState, offset: int
    ) -> bool:
        """Do something about an offset that is out of range; False if it stays as it is."""
        if self._places.is_follower(at, answer.node_id):
            state.prefer(None)  # it may only lag: the leader knows
            return True
        if state.position != offset:
            return False  # asked again; first what comes before it has to be handed out
        if self._subscription.has_default_offset_reset_policy():
            self._subscription.need_offset_reset(at)
            answer.news.is_progress = True
            return True
        answer.news.errors.append(out_of_range(at, offset))
        return False

    def _is_told_who_leads(self, answer: _Answer, at: TopicPartition, data: PartitionData) -> bool:
        """Take the leader that a broker names with its refusal; False if that is no news."""
        leader = data.current_leader
        if not self._cluster.take_hint(
            *at, leader.leader_id, leader.leader_epoch, answer.response.node_endpoints
        ):
            return False
        self._places.leader_told(at, answer.now)
        return True
