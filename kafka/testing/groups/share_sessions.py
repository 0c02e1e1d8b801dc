"""Share sessions of one broker (KIP-932): the partitions and the epoch of each member.

Called by handlers/share_fetch.py, which reads and acknowledges.
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

#: The limit of partitions in all sessions of a broker, since they take memory.
_MOST_PARTITIONS = 100_000

#: A topic id and a partition number.
TopicPartition = Tuple[bytes, int]


class SessionKey(NamedTuple):
    """Group and member of a session."""

    group_id: str
    member_id: str


class ShareSession:
    """One session. ``connection_id`` is that of the connection with which it ends."""

    def __init__(self, key: SessionKey, connection_id: int) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = 1
        #: In the order of requests; the value is True if the last response had an error for it.
        self.partitions: Dict[TopicPartition, bool] = {}

    def __repr__(self) -> str:
        return '<ShareSession %s %s epoch=%d, %d partitions>' % (
            *self.key,
            self.epoch,
            len(self.partitions),
        )

    def advance(self) -> None:
        """Increment the epoch; 1 follows the highest one."""
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1

    def wanted(self) -> List[TopicPartition]:
        """Return the partitions in the order of this fetch, which rotates with the epoch."""
        wanted = list(self.partitions)
        turn = (self.epoch - 1) % len(wanted) if wanted else 0
        return wanted[turn:] + wanted[:turn]


class ShareSessions:
    """All sessions of one broker. Arguments: limit: the maximum number of sessions."""

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
        """Open or continue the session of a fetch; return the session or an error code."""
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
        """Return the session with an epoch (any for the final one), or an error code."""
        session = self._sessions.get(key)
        if session is None:
            return SHARE_SESSION_NOT_FOUND
        if epoch not in (FINAL_EPOCH, session.epoch):
            return INVALID_SHARE_SESSION_EPOCH
        return session

    def acknowledge(self, key: SessionKey, epoch: int) -> Union[ShareSession, int]:
        """Continue the session of a ShareAcknowledge; return the session or an error code."""
        if epoch == FIRST_EPOCH:
            return INVALID_SHARE_SESSION_EPOCH
        found = self.known(key, epoch)
        if not isinstance(found, int) and epoch != FINAL_EPOCH:
            found.advance()
        return found

    def end(self, key: SessionKey) -> Optional[ShareSession]:
        """Remove a session; return it, None if it does not exist."""
        return self._sessions.pop(key, None)

    def has_group(self, group_id: str) -> bool:
        """Return True if members of a group have sessions here."""
        return any(each.group_id == group_id for each in self._sessions)

    def end_with(self, connection_id: int) -> List[ShareSession]:
        """Remove the sessions of a connection that has ended; return them."""
        found = [each for each in self._sessions.values() if each.connection_id == connection_id]
        for each in found:
            del self._sessions[each.key]
        return found
