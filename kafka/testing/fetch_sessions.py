"""Fetch sessions of one broker (KIP-227): partitions that clients need not repeat.

Called by handlers/fetch.py, which reads the partitions. Has the ids and epochs of sessions, and
decides which partitions an incremental response leaves out.
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
#: The default of ``max.incremental.fetch.session.cache.slots``.
SLOTS = 1000
#: The default of ``min.incremental.fetch.session.eviction.ms``, in seconds.
EVICTION_SECONDS = 120.0

_MAX_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """One partition of a fetch: its topic by name, or by id from v13 on."""

    topic: str
    topic_id: bytes
    asked: FetchPartition

    @property
    def key(self) -> Tuple[str, bytes, int]:
        """The key of the partition in a session."""
        return self.topic, self.topic_id, self.asked.partition


class _Cached:
    """One partition of a session, with the values that its client has received."""

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
    """A fetch whose session is valid.

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
        """Return the session id of the response, and the partitions that it includes."""
        kept = [each for each in found if self._keeps(*each)]
        return self._finish(kept), kept


class FetchSessions:
    """All sessions of one broker.

    Arguments: chance: the source of ids; now: returns monotonic seconds.
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
        """Open or continue the session of a fetch; return the fetch or an error code."""
        wanted = wanted_partitions(request)
        if version < 7 or (request.session_id, request.session_epoch) == (NO_SESSION, FINAL_EPOCH):
            return _without_session(wanted)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH:
                return _without_session(wanted)
            return OpenFetch(wanted, lambda found: self._make(found, version >= 13), _always)
        return self._go_on(request, wanted, version >= 13)

    # ------------------------------------------------------------ full fetches

    def _make(self, found: List[Tuple[Wanted, PartitionData]], by_id: bool) -> int:
        """Create a session from a full response; return its id, NO_SESSION if the cache is full."""
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

    # ------------------------------------------------------------ incremental fetches

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
                    # Partitions that returned records move to the end, so that others come first.
                    session.partitions[each.key] = session.partitions.pop(each.key)
            return session.session_id

        return OpenFetch(partitions, finish, keeps)


def wanted_partitions(request: FetchRequest) -> List[Wanted]:
    """Return the partitions in a request."""
    found = (
        Wanted(topic.topic, topic.topic_id, asked)
        for topic in request.topics
        for asked in topic.partitions
    )
    # Of a partition that is named twice the last entry counts, in the place of the first.
    return list({each.key: each for each in found}.values())


def _always(each: Wanted, data: PartitionData) -> bool:
    return True


def _without_session(wanted: List[Wanted]) -> OpenFetch:
    return OpenFetch(wanted, lambda found: NO_SESSION, _always)


def _note(cached: _Cached, data: PartitionData) -> bool:
    """Record what a client receives of a partition; return True if it has changed."""
    is_news = (
        bool(data.records)
        or data.error_code != NONE
        or cached.high_watermark != data.high_watermark
        or cached.start_offset != data.log_start_offset
        or data.preferred_read_replica != -1
        or data.diverging_epoch.epoch != -1
    )
    cached.start_offset = data.log_start_offset
    # After an error the partition is returned once more.
    cached.high_watermark = -1 if data.error_code != NONE else data.high_watermark
    return is_news
