"""What one broker was told to fetch, and what it has yet to be told: a fetch session (KIP-227).

Owns: which partitions are wanted of a broker, which of them a request has to name, the id and the
epoch of the session, and the order in which partitions have their turn. Does not own: what is
wanted and why (node_selection.py), requests and answers themselves (manager.py). Pure.

A broker that keeps a session knows what was asked before, so that a request names only what is new
or no longer the same, and an answer only what is news. The cost of both is that of the changes, not
that of all partitions. Where there is no session (brokers before Fetch v7, or a broker that has no
room for one) each request names everything.

One request at a time: plan(), then on_response() or on_error(), then the next plan().
"""

from __future__ import annotations

import enum
from typing import Collection, Dict, List, NamedTuple, Optional, Tuple

from kafka.errors import IllegalStateError
from kafka.protocol.wire import ZERO_UUID
from kafka.structs import TopicPartition

__all__ = ['TRANSITIONS', 'FetchSession', 'Outcome', 'Plan', 'State', 'Wanted']

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

_NOT_FOUND = 70  # FETCH_SESSION_ID_NOT_FOUND
_OF_SESSIONS = frozenset([70, 71, 106])


class State(enum.Enum):
    """How far the session is."""

    NEW = 'new'  # the next request names everything
    ASKED_ALL = 'asked for everything'
    OPEN = 'open'  # the next request names what has changed
    ASKED_CHANGES = 'asked for what has changed'
    CLOSED = 'closed'


TRANSITIONS: Dict[State, List[State]] = {
    State.NEW: [State.ASKED_ALL, State.CLOSED],
    State.ASKED_ALL: [State.OPEN, State.NEW, State.CLOSED],
    State.OPEN: [State.ASKED_CHANGES, State.ASKED_ALL, State.CLOSED],
    State.ASKED_CHANGES: [State.OPEN, State.NEW, State.CLOSED],
    State.CLOSED: [],
}


class Outcome(enum.Enum):
    """What an answer as a whole is good for."""

    TAKEN = 'taken'  # its partitions count
    EMPTY = 'empty'  # the broker throttles and said nothing: ask again for everything
    START_OVER = 'start over'  # the session is not what was thought: ask again at once
    FAILED = 'failed'  # an error that is not about sessions: ask again later


class Wanted(NamedTuple):
    """What is asked for a partition.

    Attributes: offset: to begin with; max_bytes; leader_epoch: of its leader as far as is known, -1
    for no check; topic_id: 16 zero bytes if it is not known; token: the asker's own, which brokers
    are not told.
    """

    offset: int
    max_bytes: int
    leader_epoch: int = -1
    topic_id: bytes = ZERO_UUID
    token: int = 0


class Plan(NamedTuple):
    """What the next request says.

    Attributes: partitions: those to be named, in this order; forgotten: those that the broker shall
    no longer think of; by_id: whether topics are named by their ids (v13 and later).
    """

    session_id: int
    epoch: int
    partitions: List[Tuple[TopicPartition, Wanted]]
    forgotten: List[Tuple[TopicPartition, bytes]]
    by_id: bool


class FetchSession:
    """What one broker is asked for. Arguments: uses_sessions: False to name everything always."""

    def __init__(self, uses_sessions: bool = True) -> None:
        self.state = State.NEW
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._uses_sessions = uses_sessions
        self._by_id = False  # how topics are named in the session
        # What is wanted, in the order in which partitions have their turn.
        self._wanted: Dict[TopicPartition, Wanted] = {}
        # What the broker was told with the last request and before.
        self._told: Dict[TopicPartition, Wanted] = {}
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

    def want(self, partition: TopicPartition, wanted: Wanted) -> None:
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

    def latest(self, partition: TopicPartition) -> Optional[Wanted]:
        """Return what is wanted of a partition now; None: nothing."""
        return self._wanted.get(partition)

    def served(self, partition: TopicPartition) -> None:
        """Let a partition that gave records have its next turn behind all others.

        Within a session the broker does the same by itself.
        """
        wanted = self._wanted.pop(partition, None)
        if wanted is not None:
            self._wanted[partition] = wanted

    def asked(self, partition: TopicPartition) -> Optional[Wanted]:
        """Return what the broker was asked for a partition with the last request, None: nothing."""
        return self._told.get(partition)

    def topic_of(self, topic_id: bytes) -> Optional[str]:
        """Return the name of a topic that was asked for by its id."""
        return self._names.get(topic_id)

    @property
    def is_asked(self) -> bool:
        """Whether an answer is waited for."""
        return self.state in (State.ASKED_ALL, State.ASKED_CHANGES)

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

    def plan(self, has_sessions: bool, by_id: bool, at_most: Optional[int] = None) -> Plan:
        """Return what the next request has to say.

        Arguments: has_sessions: whether the broker knows of them (Fetch v7 and later); by_id:
        whether topics are to be named by their ids, which all have then; at_most: so many
        partitions where there is no session, None for all.
        """
        if not (has_sessions and self._uses_sessions):
            return self._plan_all(NO_SESSION, FINAL_EPOCH, by_id, at_most)
        if self.state is State.NEW or by_id != self._by_id:
            return self._plan_all(self.session_id, FIRST_EPOCH, by_id, None)
        self._move(State.ASKED_CHANGES)
        return self._plan_changes()

    def _plan_all(self, session_id: int, epoch: int, by_id: bool, at_most: Optional[int]) -> Plan:
        self._move(State.ASKED_ALL)
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
        return Plan(session_id, epoch, partitions, [], by_id)

    def _plan_changes(self) -> Plan:
        partitions: List[Tuple[TopicPartition, Wanted]] = []
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
        return Plan(self.session_id, self.epoch, partitions, forgotten, self._by_id)

    def close(self) -> Optional[int]:
        """End it; return the id of the session that the broker is to be told to end, if any."""
        if self.state is not State.CLOSED:
            self._move(State.CLOSED)
        session_id, self.session_id = self.session_id, NO_SESSION
        return session_id or None

    # ------------------------------------------------------------ answers

    def on_response(
        self,
        error_code: int,
        session_id: int,
        partitions: Collection[TopicPartition],
        is_throttled: bool = False,
    ) -> Outcome:
        """Take note of an answer; return what it is good for.

        Arguments: error_code, session_id: of the answer as a whole; partitions: all it tells of;
        is_throttled: whether the broker asked to be left alone for a while.
        """
        was_all = self.state is State.ASKED_ALL
        if error_code:
            self._start_over(NO_SESSION if error_code == _NOT_FOUND else self.session_id)
            return Outcome.START_OVER if error_code in _OF_SESSIONS else Outcome.FAILED
        if was_all and not partitions and self._told and is_throttled:
            self._start_over(session_id)
            return Outcome.EMPTY
        if not self._is_consistent(was_all, partitions):
            self._start_over(session_id or self.session_id)
            return Outcome.START_OVER
        if session_id == NO_SESSION:  # none was made, or the broker has ended it
            self._start_over(NO_SESSION)
        elif was_all or session_id == self.session_id:
            self._go_on(session_id, was_all)
        else:
            self._start_over(session_id)
            return Outcome.START_OVER
        return Outcome.TAKEN

    def _is_consistent(self, was_all: bool, partitions: Collection[TopicPartition]) -> bool:
        """Tell whether an answer is about what was asked: all of it, or nothing else."""
        if was_all and len(partitions) != len(self._told):
            return False
        return all(partition in self._told for partition in partitions)

    def _go_on(self, session_id: int, was_all: bool) -> None:
        self.session_id = session_id
        if was_all:
            self.epoch = 1
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        self._move(State.OPEN)

    def on_error(self) -> None:
        """Take note that a request got no answer: whether the broker has seen it is unknown."""
        self._start_over(self.session_id)

    def _start_over(self, session_id: int) -> None:
        """Name everything in the next request, which ends the old session if there is one."""
        self.session_id = session_id
        self.epoch = FIRST_EPOCH
        self._move(State.NEW)

    def _move(self, state: State) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'a fetch session that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state


def _is_news(wanted: Wanted, told: Optional[Wanted]) -> bool:
    return told is None or wanted[:4] != told[:4]  # all but the token
