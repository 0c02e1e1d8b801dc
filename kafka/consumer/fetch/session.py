"""Fetch sessions (KIP-227): the partitions fetched from one broker, and the requests for them.

A FetchSession keeps the partitions in the order in which they are served, the id and epoch of the
session, and what the broker was told last; from it follow the FetchRequest to send and the
partitions of the response. Node selection adds and removes partitions; the fetch manager sends the
requests. Runs in turns of the loop. Pure.

A broker that keeps a session remembers the last request, so a request names only new and changed
partitions, and a response only those with news: both cost as much as the changes, not as all
partitions. Without a session (brokers before Fetch v7, or with no room for one) each request names
everything.

One request at a time: plan(), then on_response() or on_error(), then the next plan().
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

    NEW = 'new'  # the next request names everything
    ASKED_ALL = 'asked for everything'
    OPEN = 'open'  # the next request names what has changed
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

    TAKEN = 'taken'  # its partitions count
    EMPTY = 'empty'  # the broker throttles and said nothing: ask again for everything
    START_OVER = 'start over'  # the session is not what was thought: ask again at once
    FAILED = 'failed'  # an error that is not about sessions: ask again later


class WantedPartition(NamedTuple):
    """The request for a partition.

    Attributes: offset: to begin with; max_bytes; leader_epoch: of its leader as far as is known, -1
    for no check; topic_id: 16 zero bytes if it is not known; token: that of the
    partition's state; not sent.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    topic_id: bytes = ZERO_UUID
    token: int = 0


class FetchRequestData(NamedTuple):
    """The contents of the next request.

    Attributes: partitions: to be named, in this order; forgotten: to be removed from the session;
    by_id: whether topics are named by their ids (v13 and later).
    """

    session_id: int
    epoch: int
    partitions: List[Tuple[TopicPartition, WantedPartition]]
    forgotten: List[Tuple[TopicPartition, bytes]]
    by_id: bool


class FetchSession:
    """The partitions fetched from one broker. Arguments: uses_sessions: whether there are any."""

    def __init__(self, uses_sessions: bool = True) -> None:
        self.state = FetchSessionState.NEW
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._uses_sessions = uses_sessions
        self._by_id = False  # how topics are named in the session
        # What is wanted, in the order in which partitions have their turn.
        self._wanted: Dict[TopicPartition, WantedPartition] = {}
        # What the broker was told with the last request and before.
        self._told: Dict[TopicPartition, WantedPartition] = {}
        self._changed: Dict[TopicPartition, None] = {}  # where the two may differ
        self._names: Dict[bytes, str] = {}
        self._nameless: Dict[TopicPartition, None] = {}  # wanted, of topics without id

    def __repr__(self) -> str:
        return '<FetchSession %d epoch=%d %s, %d partitions>' % (
            self.session_id,
            self.epoch,
            self.state.value,
            len(self._wanted),
        )

    def __len__(self) -> int:
        return len(self._wanted)

    # ------------------------------------------------------------ what is wanted

    def want(self, partition: TopicPartition, wanted: WantedPartition) -> None:
        """Ask for a partition from now on, or ask for something else of it."""
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
        """Ask for a partition no more."""
        if self._wanted.pop(partition, None) is not None:
            self._changed[partition] = None
            self._nameless.pop(partition, None)

    def wanted(self) -> List[TopicPartition]:
        """Return all that is wanted, what has its turn next first."""
        return list(self._wanted)

    def latest(self, partition: TopicPartition) -> Optional[WantedPartition]:
        """Return what is wanted of a partition now; None: nothing."""
        return self._wanted.get(partition)

    def served(self, partition: TopicPartition) -> None:
        """Let a partition that gave records have its next turn behind all others.

        Within a session the broker does the same by itself.
        """
        wanted = self._wanted.pop(partition, None)
        if wanted is not None:
            self._wanted[partition] = wanted

    def asked(self, partition: TopicPartition) -> Optional[WantedPartition]:
        """Return what the broker was asked for a partition with the last request, None: nothing."""
        return self._told.get(partition)

    def topic_of(self, topic_id: bytes) -> Optional[str]:
        """Return the name of a topic that was asked for by its id."""
        return self._names.get(topic_id)

    @property
    def is_asked(self) -> bool:
        """Whether an answer is waited for."""
        return self.state in (FetchSessionState.ASKED_ALL, FetchSessionState.ASKED_CHANGES)

    @property
    def is_outdated(self) -> bool:
        """Whether something is wanted that the broker was not asked."""
        for partition in self._changed:
            wanted = self._wanted.get(partition)
            if wanted is not None and _is_news(wanted, self._told.get(partition)):
                return True
        return False

    @property
    def all_have_ids(self) -> bool:
        """Whether all that is wanted may be named by id."""
        return not self._nameless

    # ------------------------------------------------------------ requests

    def plan(
        self, has_sessions: bool, by_id: bool, at_most: Optional[int] = None
    ) -> FetchRequestData:
        """Return what the next request has to say.

        Arguments: has_sessions: whether the broker knows of them (Fetch v7 and later); by_id:
        whether topics are to be named by their ids, which all have then; at_most: so many
        partitions where there is no session, None for all.
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
                self.served(partition)  # or the others would never be named
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
            # Where the session goes by names, one made anew would be forgotten by its name.
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
        """End it; return the id of the session that the broker is to be told to end, if any."""
        if self.state is not FetchSessionState.CLOSED:
            self._move(FetchSessionState.CLOSED)
        session_id, self.session_id = self.session_id, NO_SESSION
        return session_id or None

    # ------------------------------------------------------------ answers

    def on_response(
        self,
        error_code: int,
        session_id: int,
        partitions: Collection[TopicPartition],
        is_throttled: bool = False,
    ) -> FetchSessionOutcome:
        """Take note of an answer; return what it is good for.

        Arguments: error_code, session_id: of the answer as a whole; partitions: all it tells of;
        is_throttled: whether the broker asked to be left alone for a while.
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
        if session_id == NO_SESSION:  # none was made, or the broker has ended it
            self._start_over(NO_SESSION)
        elif was_all or session_id == self.session_id:
            self._go_on(session_id, was_all)
        else:
            self._start_over(session_id)
            return FetchSessionOutcome.START_OVER
        return FetchSessionOutcome.TAKEN

    def _is_consistent(self, was_all: bool, partitions: Collection[TopicPartition]) -> bool:
        """Return True if an answer is about what was asked: all of it, or nothing else."""
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
        """Take note that a request got no answer: whether the broker has seen it is unknown."""
        self._start_over(self.session_id)

    def _start_over(self, session_id: int) -> None:
        """Name everything in the next request, which ends the old session if there is one."""
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
    return told is None or wanted[:4] != told[:4]  # all but the token


#: The first versions of Fetch that limit an answer as a whole (KIP-74; from then on a limit lets
#: the first batch pass), and that have sessions; the last that names topics.
LIMITS_ALL = 3
HAS_SESSIONS = 7
LAST_WITH_NAMES = 12


class FetchSettings(NamedTuple):
    """The options of a consumer for fetching; times in seconds, sizes in bytes.

    Attributes: max_wait: brokers wait so long for min_bytes; below request_timeout; idle_wait: and
    so long after they have waited in vain for a while, unless that is less; max_bytes: of an
    answer; max_partition_bytes: of a partition in it; max_buffered_bytes: of all that is fetched
    ahead, everywhere; metadata_max_age: for so long a nearer replica is asked.
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
        """How much is usually asked of a partition."""
        return min(self.max_partition_bytes, self.max_bytes)


def fetch_request(
    plan: FetchRequestData,
    settings: FetchSettings,
    max_bytes: int,
    max_wait: float,
    partition_limit: Optional[int] = None,
) -> FetchRequest:
    """Return the request that says what a plan says.

    Arguments: max_bytes: of the answer; max_wait: seconds; partition_limit: bytes of those
    partitions that are asked for as usual, None for those of the settings.
    """
    usual = settings.partition_limit
    topics: List[FetchTopic] = []
    last: Optional[Tuple[object, bytes]] = None
    # The order is who has its turn first: a topic that has its turn twice is named twice.
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
    """Yield the partitions of a response and their data; topics of an unknown id have no name."""
    for topic in response.responses:
        name = topic.topic or session.topic_of(topic.topic_id) or ''
        for data in topic.partitions:
            yield TopicPartition(name, data.partition_index), data
