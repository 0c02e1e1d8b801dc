"""Fetch sessions (KIP-227): the partitions fetched from one broker, and the requests for them.

A FetchSession keeps the partitions in the order in which they are served, the id and epoch of the
session, and the partitions that the broker knows from earlier requests. It makes the contents of
the next FetchRequest and validates the response. Node selection adds and removes partitions; the
fetch manager sends the requests. Runs in turns of the loop.

A broker that keeps a session remembers the requested partitions, so a request names only new and
changed partitions, and a response only those with records or changes: both cost as much as the
changes, not as all partitions. Without a session (brokers before Fetch v7, or without a free slot
in their cache of sessions) each request names all partitions.

One request at a time: plan(), then on_response() or on_error(), then the next plan(). Pure.
"""

from __future__ import annotations

import enum
from typing import Collection, Dict, Iterable, List, NamedTuple, Optional, Tuple

from kafka.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    IllegalStateError,
    InvalidFetchSessionEpochError,
)
from kafka.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.structs import TopicPartition

__all__ = [
    'FetchRequestData',
    'FetchSession',
    'FetchSessionOutcome',
    'FetchSessionState',
    'FetchSettings',
    'HAS_SESSIONS',
    'LAST_WITH_NAMES',
    'LIMITS_ALL',
    'TRANSITIONS',
    'WantedPartition',
    'ending_request',
    'fetch_request',
    'parts_of',
]

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

_NOT_FOUND = FetchSessionIdNotFoundError.errno
_OF_SESSIONS = frozenset(
    [
        FetchSessionIdNotFoundError.errno,
        InvalidFetchSessionEpochError.errno,
        FetchSessionTopicIdError.errno,
    ]
)


class FetchSessionState(enum.Enum):
    """The states of a fetch session."""

    NEW = 'new'  # the next request names all partitions
    ASKED_ALL = 'asked for everything'
    OPEN = 'open'  # the next request names changed partitions
    ASKED_CHANGES = 'asked for what has changed'
    CLOSED = 'closed'


TRANSITIONS: Dict[FetchSessionState, List[FetchSessionState]] = {
    FetchSessionState.NEW: [FetchSessionState.ASKED_ALL, FetchSessionState.CLOSED],
    FetchSessionState.ASKED_ALL: [
        FetchSessionState.OPEN,
        FetchSessionState.NEW,
        FetchSessionState.CLOSED,
    ],
    FetchSessionState.OPEN: [
        FetchSessionState.ASKED_CHANGES,
        FetchSessionState.ASKED_ALL,
        FetchSessionState.CLOSED,
    ],
    FetchSessionState.ASKED_CHANGES: [
        FetchSessionState.OPEN,
        FetchSessionState.NEW,
        FetchSessionState.CLOSED,
    ],
    FetchSessionState.CLOSED: [],
}


class FetchSessionOutcome(enum.Enum):
    """What to do with a response as a whole."""

    TAKEN = 'taken'  # handle its partitions
    EMPTY = 'empty'  # empty because the broker throttles: request all partitions again
    START_OVER = 'start over'  # the session is not the expected one: request all again at once
    FAILED = 'failed'  # an error that is not about sessions: request all again later


class WantedPartition(NamedTuple):
    """The request for a partition.

    Attributes: offset: the fetch offset; max_bytes; leader_epoch: the known one, for the broker to
    check, -1 for no check; topic_id: 16 zero bytes if it is not known; token: that of the
    partition's state, not sent.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    topic_id: bytes = ZERO_UUID
    token: int = 0


class FetchRequestData(NamedTuple):
    """The contents of the next request.

    Attributes: session_id; epoch; partitions: to name, in this order; forgotten: to remove from the
    session, with their topic ids; by_id: whether topics are named by their ids (v13 and later).
    """

    session_id: int
    epoch: int
    partitions: List[Tuple[TopicPartition, WantedPartition]]
    forgotten: List[Tuple[TopicPartition, bytes]]
    by_id: bool


class FetchSession:
    """The partitions fetched from one broker.

    Arguments: uses_sessions: whether to use fetch sessions if the broker supports them.
    """

    def __init__(self, uses_sessions: bool = True) -> None:
        self.state = FetchSessionState.NEW
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._uses_sessions = uses_sessions
        self._by_id = False  # how topics are named in the session
        # The partitions to fetch, in the order in which they are served.
        self._wanted: Dict[TopicPartition, WantedPartition] = {}
        # The partitions that the broker knows from the last request and the session.
        self._told: Dict[TopicPartition, WantedPartition] = {}
        self._changed: Dict[TopicPartition, None] = {}  # in which the two may differ
        self._names: Dict[bytes, str] = {}
        self._nameless: Dict[TopicPartition, None] = {}  # those in _wanted without a topic id

    def __repr__(self) -> str:
        return '<FetchSession %d epoch=%d %s, %d partitions>' % (
            self.session_id,
            self.epoch,
            self.state.value,
            len(self._wanted),
        )

    def __len__(self) -> int:
        return len(self._wanted)

    # ------------------------------------------------------------ partitions

    def want(self, partition: TopicPartition, wanted: WantedPartition) -> None:
        """Add a partition, or change its request."""
        if self._wanted.get(partition) == wanted:
            return
        self._wanted[partition] = wanted
        self._changed[partition] = None
        if wanted.topic_id == ZERO_UUID:
            self._nameless[partition] = None
        else:
            self._nameless.pop(partition, None)
            self._names[wanted.topic_id] = str(partition.topic)

    def drop(self, partition: TopicPartition) -> None:
        """Remove a partition."""
        if self._wanted.pop(partition, None) is not None:
            self._changed[partition] = None
            self._nameless.pop(partition, None)

    def wanted(self) -> List[TopicPartition]:
        """Return the partitions, in the order in which they are served."""
        return list(self._wanted)

    def latest(self, partition: TopicPartition) -> Optional[WantedPartition]:
        """Return the next request for a partition, or None."""
        return self._wanted.get(partition)

    def served(self, partition: TopicPartition) -> None:
        """Move a partition whose records were received to the end of the order.

        Within a session the broker does the same by itself.
        """
        wanted = self._wanted.pop(partition, None)
        if wanted is not None:
            self._wanted[partition] = wanted

    def asked(self, partition: TopicPartition) -> Optional[WantedPartition]:
        """Return the request for a partition that the broker has, or None."""
        return self._told.get(partition)

    def topic_of(self, topic_id: bytes) -> Optional[str]:
        """Return the name of a topic that was requested by its id, or None."""
        return self._names.get(topic_id)

    @property
    def is_asked(self) -> bool:
        """Whether a request is in flight."""
        return self.state in (FetchSessionState.ASKED_ALL, FetchSessionState.ASKED_CHANGES)

    @property
    def is_outdated(self) -> bool:
        """Whether the broker has no or another request for one of the partitions."""
        for partition in self._changed:
            wanted = self._wanted.get(partition)
            if wanted is not None and _is_news(wanted, self._told.get(partition)):
                return True
        return False

    @property
    def all_have_ids(self) -> bool:
        """Whether the topics of all partitions have known ids."""
        return not self._nameless

    # ------------------------------------------------------------ requests

    def plan(
        self, has_sessions: bool, by_id: bool, at_most: Optional[int] = None
    ) -> FetchRequestData:
        """Return the contents of the next request.

        Arguments: has_sessions: whether the broker supports sessions (Fetch v7 and later); by_id:
        whether to name topics by their ids, which all must have then; at_most: the most partitions
        to name without a session, None for all.
        """
        if not (has_sessions and self._uses_sessions):
            return self._plan_all(NO_SESSION, FINAL_EPOCH, by_id, at_most)
        if self.state is FetchSessionState.NEW or by_id != self._by_id:
            return self._plan_all(self.session_id, FIRST_EPOCH, by_id, None)
        self._move(FetchSessionState.ASKED_CHANGES)
        return self._plan_changes()

    def _plan_all(
        self, session_id: int, epoch: int, by_id: bool, at_most: Optional[int]
    ) -> FetchRequestData:
        self._move(FetchSessionState.ASKED_ALL)
        self._by_id = by_id
        partitions = list(self._wanted.items())
        if at_most is not None and at_most < len(partitions):
            partitions = partitions[: max(1, at_most)]
            for partition, _ in partitions:
                self.served(partition)  # otherwise the rest would never be named
        self._told = dict(partitions)
        self._changed.clear()
        self._names = {
            wanted.topic_id: str(partition.topic)
            for partition, wanted in partitions
            if wanted.topic_id != ZERO_UUID
        }
        return FetchRequestData(session_id, epoch, partitions, [], by_id)

    def _plan_changes(self) -> FetchRequestData:
        partitions: List[Tuple[TopicPartition, WantedPartition]] = []
        forgotten: List[Tuple[TopicPartition, bytes]] = []
        told = self._told
        for partition in self._changed:
            wanted, before = self._wanted.get(partition), told.get(partition)
            # A topic created again has another id. With names (before v13) the old one must not be
            # forgotten: the broker would remove the new partition of the same name.
            if before is not None and (
                wanted is None or self._by_id and wanted.topic_id != before.topic_id
            ):
                forgotten.append((partition, before.topic_id))
                del told[partition]
                before = None
            if wanted is None:
                continue
            told[partition] = wanted
            if _is_news(wanted, before):
                partitions.append((partition, wanted))
        self._changed.clear()
        return FetchRequestData(self.session_id, self.epoch, partitions, forgotten, self._by_id)

    def close(self) -> Optional[int]:
        """Close it; return the id of the session that the broker has to end, or None."""
        if self.state is not FetchSessionState.CLOSED:
            self._move(FetchSessionState.CLOSED)
        session_id, self.session_id = self.session_id, NO_SESSION
        return session_id or None

    # ------------------------------------------------------------ responses

    def on_response(
        self,
        error_code: int,
        session_id: int,
        partitions: Collection[TopicPartition],
        is_throttled: bool = False,
    ) -> FetchSessionOutcome:
        """Handle a response; return what to do with it.

        Arguments: error_code, session_id: of the response as a whole; partitions: all partitions
        in it; is_throttled: whether it has a throttle time.
        """
        was_all = self.state is FetchSessionState.ASKED_ALL
        if error_code:
            self._start_over(NO_SESSION if error_code == _NOT_FOUND else self.session_id)
            return (
                FetchSessionOutcome.START_OVER
                if error_code in _OF_SESSIONS
                else FetchSessionOutcome.FAILED
            )
        if was_all and not partitions and self._told and is_throttled:
            self._start_over(session_id)
            return FetchSessionOutcome.EMPTY
        if not self._is_consistent(was_all, partitions):
            self._start_over(session_id or self.session_id)
            return FetchSessionOutcome.START_OVER
        if session_id == NO_SESSION:  # the broker made no session, or has ended it
            self._start_over(NO_SESSION)
        elif was_all or session_id == self.session_id:
            self._go_on(session_id, was_all)
        else:
            self._start_over(session_id)
            return FetchSessionOutcome.START_OVER
        return FetchSessionOutcome.TAKEN

    def _is_consistent(self, was_all: bool, partitions: Collection[TopicPartition]) -> bool:
        """Return True if a response has all partitions of a full request, and no others."""
        if was_all and len(partitions) != len(self._told):
            return False
        return all(partition in self._told for partition in partitions)

    def _go_on(self, session_id: int, was_all: bool) -> None:
        self.session_id = session_id
        if was_all:
            self.epoch = 1
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        self._move(FetchSessionState.OPEN)

    def on_error(self) -> None:
        """Handle a request without a response: the broker may have received it or not."""
        self._start_over(self.session_id)

    def _start_over(self, session_id: int) -> None:
        """Name all partitions in the next request, which ends the old session if there is one."""
        self.session_id = session_id
        self.epoch = FIRST_EPOCH
        self._move(FetchSessionState.NEW)

    def _move(self, state: FetchSessionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'a fetch session that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state


def _is_news(wanted: WantedPartition, told: Optional[WantedPartition]) -> bool:
    return told is None or wanted[:4] != told[:4]  # without the token, which is not sent


#: The first version of Fetch with max_bytes for the whole response (KIP-74; from then on the first
#: batch is complete even if it exceeds a limit), the first with sessions, and the last that names
#: topics.
LIMITS_ALL = 3
HAS_SESSIONS = 7
LAST_WITH_NAMES = 12


class FetchSettings(NamedTuple):
    """The options of a consumer for fetching; times in seconds, sizes in bytes.

    Attributes: max_wait: how long brokers wait for min_bytes; below request_timeout; idle_wait: how
    long they wait at most after several waits without records, no effect if less than max_wait;
    max_bytes: of a response; max_partition_bytes: of a partition in it; max_buffered_bytes: of all
    records fetched ahead, from all brokers; metadata_max_age: how long a preferred read replica is
    used.
    """

    min_bytes: int = 1
    max_wait: float = 0.5
    idle_wait: float = 0.0
    max_bytes: int = 52428800
    max_partition_bytes: int = 1048576
    max_buffered_bytes: int = 67108864
    check_crcs: bool = True
    read_committed: bool = False
    client_rack: str = ''
    use_sessions: bool = True
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    request_timeout: float = 30.0
    metadata_max_age: float = 300.0

    @property
    def partition_limit(self) -> int:
        """The usual limit of a partition, in bytes."""
        return min(self.max_partition_bytes, self.max_bytes)


def fetch_request(
    plan: FetchRequestData,
    settings: FetchSettings,
    max_bytes: int,
    max_wait: float,
    partition_limit: Optional[int] = None,
) -> FetchRequest:
    """Return the FetchRequest for the contents in `plan`.

    Arguments: max_bytes: of the response; max_wait: seconds; partition_limit: bytes, for partitions
    with the usual limit, None for the limit of the settings.
    """
    usual = settings.partition_limit
    topics: List[FetchTopic] = []
    last: Optional[Tuple[object, bytes]] = None
    # Partitions are named in the order in which they are served, so a topic may be named twice.
    for (topic, index), wanted in plan.partitions:
        if (topic, wanted.topic_id) != last:
            last = topic, wanted.topic_id
            topics.append(FetchTopic(topic=str(topic), topic_id=wanted.topic_id, partitions=[]))
        topics[-1].partitions.append(_part(index, wanted, usual, partition_limit))
    return FetchRequest(
        max_wait_ms=int(max_wait * 1000),
        min_bytes=settings.min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(settings.read_committed),
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=topics,
        forgotten_topics_data=_forgotten(plan),
        rack_id=settings.client_rack,
    )


def _part(
    index: int, wanted: WantedPartition, usual: int, partition_limit: Optional[int]
) -> FetchPartition:
    limit = wanted.max_bytes
    if partition_limit is not None and limit == usual:
        limit = partition_limit
    return FetchPartition(
        partition=index,
        current_leader_epoch=wanted.leader_epoch,
        fetch_offset=wanted.offset,
        partition_max_bytes=limit,
    )


def _forgotten(plan: FetchRequestData) -> List[ForgottenTopic]:
    topics: List[ForgottenTopic] = []
    for (topic, index), topic_id in plan.forgotten:
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, topic_id):
            topics.append(ForgottenTopic(topic=str(topic), topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(index)
    return topics


def ending_request(session_id: int) -> FetchRequest:
    """Return the request that ends a session and fetches nothing."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=FINAL_EPOCH,
        topics=[],
    )


def parts_of(
    response: FetchResponse, session: FetchSession
) -> Iterable[Tuple[TopicPartition, PartitionData]]:
    """Yield the partitions of a response and their data; the name is '' for an unknown topic id."""
    for topic in response.responses:
        name = topic.topic or session.topic_of(topic.topic_id) or ''
        for data in topic.partitions:
            yield TopicPartition(name, data.partition_index), data
