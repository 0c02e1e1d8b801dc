"""SiblingWatch: a warning about another, idle consumer of the same group in this process.

Two members of one group in one process are legal, and share the partitions. But a consumer that is
not polled any more, such as that of a notebook cell that was run again, keeps its partitions, or
delays the rebalance that the other consumer waits for. That is logged once for each group. Called
by the thread that polls a consumer, and by the garbage collector; no locks.
"""

from __future__ import annotations

import logging
import math
import os
import weakref
from typing import Any, Dict, Iterator, Optional, Set, Tuple

from kafka.consumer.one_thread import OneThread
from kafka.coordinator.member import Member

__all__ = ['SiblingWatch']

log = logging.getLogger(__name__)

#: The interval of the checks, and for how long after subscribe() they are made, in seconds.
_CHECK_SECONDS, _WATCH_SECONDS = 3.0, 60.0
#: How long another consumer may go without a poll while this one has no partitions, and while it
#: has some, in seconds: a program may need time for a batch of records.
_IDLE_SECONDS, _IDLE_SECONDS_OF_SHARE = 3.0, 30.0

_Group = Tuple[str, str]

# By id(), which is reused only after the entry was removed. Each operation on it is atomic.
_watches: Dict[int, weakref.ReferenceType[SiblingWatch]] = {}
_told: Set[_Group] = set()


class SiblingWatch:
    """The entry of one consumer in the list of its process, and its check of the other entries.

    Arguments: member: of the engine, None without a group; group_id; servers: the option
    bootstrap_servers; guard: the single-thread guard of the consumer.

    Attributes: next_at: the loop's time in seconds when check() is due, infinity for never;
    polled_at: the time of the last poll() of this consumer; guard; member; group: group_id and
    servers; pid: the process that made it.
    """

    def __init__(
        self, member: Optional[Member], group_id: Any, servers: Any, guard: OneThread
    ) -> None:
        self.next_at = math.inf
        self.polled_at = -math.inf
        self.member = member
        self.guard = guard
        self.group: _Group = (str(group_id), repr(servers))
        self.pid = os.getpid()
        self._ends_at = -math.inf
        if member is not None:
            key = id(self)
            _watches[key] = weakref.ref(self, lambda _: _watches.pop(key, None))

    def __repr__(self) -> str:
        return '<SiblingWatch group=%s>' % self.group[0]

    def close(self) -> None:
        """Remove the entry of this consumer."""
        _watches.pop(id(self), None)

    def begin(self, now: float) -> None:
        """Start the checks for _WATCH_SECONDS, when this consumer joins its group."""
        if self.member is not None:
            self.next_at, self._ends_at = now + _CHECK_SECONDS, now + _WATCH_SECONDS

    def check(self, now: float, has_share: bool) -> None:
        """Log once if another consumer of the group has not polled for long.

        Arguments: now: the loop's time in seconds; has_share: whether this consumer has partitions.
        """
        self.next_at = now + _CHECK_SECONDS if now < self._ends_at else math.inf
        patience = _IDLE_SECONDS_OF_SHARE if has_share else _IDLE_SECONDS
        idle = [
            other.polled_at
            for other in self._siblings()
            # A consumer inside poll() is not idle, however long the poll takes.
            if now - other.polled_at > patience and not other.guard.is_used()
        ]
        if idle and self.group not in _told:
            _told.add(self.group)
            log.warning(
                'group=%s: another KafkaConsumer of this process is a member of this group, is not'
                ' closed, and has not polled for %.0f s. Members share the partitions: until that'
                ' one polls, is closed or has missed its max_poll_interval_ms, this one gets only a'
                ' part of the records, or none. Call close() on consumers that are not used any'
                ' more; a notebook cell that is run again leaves one open while anything refers'
                ' to it',
                self.group[0],
                now - min(idle),
            )

    def _siblings(self) -> Iterator[SiblingWatch]:
        for reference in list(_watches.values()):
            other = reference()
            if (
                other is not None
                and other is not self
                and other.group == self.group
                and other.pid == self.pid
                and other.member is not None
                and other.member.identity().generation_id >= 0
            ):
                yield other
