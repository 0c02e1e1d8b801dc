"""Share sessions of one broker (KIP-932): which partitions a member reads here, and its epoch.

Owns the sessions by group and member. What is then read or acknowledged is in
handlers/share_fetch.py.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from kafka.testing.errors import (
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)

FIRST_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1

#: All sessions of a broker know at most so many partitions, so that nobody fills the memory.
_MOST_PARTITIONS = 100_000

#: A topic id and a number.
TopicPartition = Tuple[bytes, int]


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


class ShareSession:
    """One session. ``connection_id`` is of the connection with which it ends."""

    def __init__(self, key: SessionKey, connection_id: int) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = 1
        #: In the order in which they came; whether its client was told an error last.
        self.partitions: Dict[TopicPartition, bool] = {}

    def __repr__(self) -> str:
        return '<ShareSession %s %s epoch=%d, %d partitions>' % (
            *self.key,
            self.epoch,
            len(self.partitions),
        )

    def advance(self) -> None:
        """Go on to the next epoch."""
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1

    def wanted(self) -> List[TopicPartition]:
        """Return the partitions in the order in which they have their turn now."""
        wanted = list(self.partitions)
        turn = (self.epoch - 1) % len(wanted) if wanted else 0
        return wanted[turn:] + wanted[:turn]


class ShareSessions:
    """All sessions of one broker. Arguments: limit: how many there may be."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: Dict[SessionKey, ShareSession] = {}

    def __repr__(self) -> str:
        return '<ShareSessions: %d>' % len(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self,
        key: SessionKey,
        connection_id: int,
        epoch: int,
        wanted: Iterable[TopicPartition],
        forgotten: Iterable[TopicPartition],
        acknowledges: bool,
    ) -> Union[ShareSession, int]:
        """Let a fetch in; return its session or the code of an error."""
        if epoch == FIRST_EPOCH:
            if acknowledges:
                return INVALID_REQUEST
            self._sessions.pop(key, None)
            session = ShareSession(key, connection_id)
            session.partitions = dict.fromkeys(wanted, False)
            if len(self._sessions) >= self._limit or self._is_full(session):
                return SHARE_SESSION_LIMIT_REACHED
            self._sessions[key] = session
            return session
        found = self.known(key, epoch)
        if isinstance(found, int) or epoch == FINAL_EPOCH:
            return found
        for each in wanted:
            found.partitions.setdefault(each, False)
        if self._is_full(found):
            del self._sessions[key]
            return SHARE_SESSION_LIMIT_REACHED
        for each in forgotten:
            found.partitions.pop(each, None)
        found.advance()
        return found

    def _is_full(self, session: ShareSession) -> bool:
        if len(session.partitions) < _MOST_PARTITIONS // self._limit:
            return False
        others = sum(len(each.partitions) for each in self._sessions.values())
        return others + len(session.partitions) > _MOST_PARTITIONS

    def known(self, key: SessionKey, epoch: int) -> Union[ShareSession, int]:
        """Return a session that is in an epoch or shall end, or the code of an error."""
        session = self._sessions.get(key)
        if session is None:
            return SHARE_SESSION_NOT_FOUND
        if epoch not in (FINAL_EPOCH, session.epoch):
            return INVALID_SHARE_SESSION_EPOCH
        return session

    def acknowledge(self, key: SessionKey, epoch: int) -> Union[ShareSession, int]:
        """Let acknowledgements in; return their session or the code of an error."""
        if epoch == FIRST_EPOCH:
            return INVALID_SHARE_SESSION_EPOCH
        found = self.known(key, epoch)
        if not isinstance(found, int) and epoch != FINAL_EPOCH:
            found.advance()
        return found

    def end(self, key: SessionKey) -> Optional[ShareSession]:
        """Forget a session; return it, None if there was none."""
        return self._sessions.pop(key, None)

    def has_group(self, group_id: str) -> bool:
        """Tell whether members of a group have sessions here."""
        return any(each.group_id == group_id for each in self._sessions)

    def end_with(self, connection_id: int) -> List[ShareSession]:
        """Forget the sessions of a connection that has ended; return them."""
        found = [each for each in self._sessions.values() if each.connection_id == connection_id]
        for each in found:
            del self._sessions[each.key]
        return found
