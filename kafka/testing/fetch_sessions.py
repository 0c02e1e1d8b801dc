"""Fetch sessions of one broker (KIP-227): what a client asked for before and need not repeat.

Owns which partitions a fetch means, the ids and epochs of sessions, and which partitions an
incremental answer leaves out. Reading is the fetch handler's business.
"""

from __future__ import annotations

import random
from typing import Callable, Dict, List, NamedTuple, Tuple, Union

from kafka.protocol.fetch import FetchPartition, FetchRequest, PartitionData
from kafka.testing.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
)

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
#: As ``max.incremental.fetch.session.cache.slots``.
SLOTS = 1000
#: As ``min.incremental.fetch.session.eviction.ms``, in seconds.
EVICTION_SECONDS = 120.0

_MAX_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """One partition of a fetch: its topic by name, or by id from v13 on."""

    topic: str
    topic_id: bytes
    asked: FetchPartition

    @property
    def key(self) -> Tuple[str, bytes, int]:
        """What names the partition in a session."""
        return self.topic, self.topic_id, self.asked.partition


class _Cached:
    """One partition of a session, and what its client knows of it."""

    __slots__ = ('high_watermark', 'start_offset', 'wanted')

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.high_watermark = -1
        self.start_offset = -1


class _Session:
    def __init__(self, session_id: int, by_id: bool, now: float) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.made = self.used = now
        self.partitions: Dict[Tuple[str, bytes, int], _Cached] = {}


class OpenFetch:
    """A fetch that was let in.

    Attributes: partitions: what is to be read, in this order.
    """

    def __init__(
        self,
        partitions: List[Wanted],
        finish: Callable[[List[Tuple[Wanted, PartitionData]]], int],
        keeps: Callable[[Wanted, PartitionData], bool],
    ) -> None:
        self.partitions = partitions
        self._finish = finish
        self._keeps = keeps

    def finish(
        self, found: List[Tuple[Wanted, PartitionData]]
    ) -> Tuple[int, List[Tuple[Wanted, PartitionData]]]:
        """Return the id of the session for the answer, and what of the partitions goes into it."""
        kept = [each for each in found if self._keeps(*each)]
        return self._finish(kept), kept


class FetchSessions:
    """All sessions of one broker.

    Arguments: chance: where ids come from; now: tells the time in seconds that never go back.
    """

    def __init__(self, chance: random.Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._sessions: Dict[int, _Session] = {}

    def __repr__(self) -> str:
        return '<FetchSessions: %d>' % len(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int) -> Union[OpenFetch, int]:
        """Let a fetch in; return the code of an error where its session is not as it thinks."""
        wanted = wanted_partitions(request)
        if version < 7 or (request.session_id, request.session_epoch) == (NO_SESSION, FINAL_EPOCH):
            return _without_session(wanted)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH:
                return _without_session(wanted)
            return OpenFetch(wanted, lambda found: self._make(found, version >= 13), _always)
        return self._go_on(request, wanted, version >= 13)

    # ------------------------------------------------------------ full

    def _make(self, found: List[Tuple[Wanted, PartitionData]], by_id: bool) -> int:
        """Make a session of what was answered; return its id, NO_SESSION if there is no room."""
        now = self._now()
        if len(self._sessions) >= SLOTS:
            oldest = min(self._sessions.values(), key=lambda session: session.used)
            if now - oldest.used < EVICTION_SECONDS:
                return NO_SESSION
            del self._sessions[oldest.session_id]
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._chance.randrange(1, 2**31)
        session = self._sessions[session_id] = _Session(session_id, by_id, now)
        for wanted, data in found:
            cached = session.partitions[wanted.key] = _Cached(wanted)
            _note(cached, data)
        return session_id

    # ------------------------------------------------------------ incremental

    def _go_on(
        self, request: FetchRequest, wanted: List[Wanted], by_id: bool
    ) -> Union[OpenFetch, int]:
        session = self._sessions.get(request.session_id)
        if session is None:
            return FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return FETCH_SESSION_TOPIC_ID_ERROR
        for each in wanted:
            cached = session.partitions.get(each.key)
            if cached is None:
                session.partitions[each.key] = _Cached(each)
            else:
                cached.wanted = each
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic, topic.topic_id, index), None)
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        session.used = self._now()
        if not session.partitions:
            del self._sessions[session.session_id]
            return _without_session([])
        partitions = [cached.wanted for cached in session.partitions.values()]

        def keeps(each: Wanted, data: PartitionData) -> bool:
            cached = session.partitions.get(each.key)
            return cached is None or _note(cached, data)

        def finish(found: List[Tuple[Wanted, PartitionData]]) -> int:
            for each, data in found:
                if data.records and each.key in session.partitions:
                    # It had its turn; the others come first next time.
                    session.partitions[each.key] = session.partitions.pop(each.key)
            return session.session_id

        return OpenFetch(partitions, finish, keeps)


def wanted_partitions(request: FetchRequest) -> List[Wanted]:
    """Return the partitions that a request names."""
    found = (
        Wanted(topic.topic, topic.topic_id, asked)
        for topic in request.topics
        for asked in topic.partitions
    )
    # Of a partition that comes twice the last counts, in the place of the first.
    return list({each.key: each for each in found}.values())


def _always(each: Wanted, data: PartitionData) -> bool:
    return True


def _without_session(wanted: List[Wanted]) -> OpenFetch:
    return OpenFetch(wanted, lambda found: NO_SESSION, _always)


def _note(cached: _Cached, data: PartitionData) -> bool:
    """Note what a client is told of a partition; return whether that is news."""
    is_news = (
        bool(data.records)
        or data.error_code != NONE
        or cached.high_watermark != data.high_watermark
        or cached.start_offset != data.log_start_offset
        or data.preferred_read_replica != -1
        or data.diverging_epoch.epoch != -1
    )
    cached.start_offset = data.log_start_offset
    # An error is told once more when it is over.
    cached.high_watermark = -1 if data.error_code != NONE else data.high_watermark
    return is_news
