"""Other consumers of this process that are members of the same group.

Called by the thread that polls a consumer, and by the garbage collector; no locks. Two members of
one group in one process are legal, and share the partitions. But one that is not polled any more,
such as that of a notebook cell which was run again, keeps its share, or holds up the rebalance that
the other waits for. That is logged once for each group.
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

#: How often it is checked, in seconds, and for how long after subscribe().
_CHECK_SECONDS, _WATCH_SECONDS = 3.0, 60.0
#: How long another consumer may go without a poll while this one waits for partitions, and while it
#: has some: a program may take its time for a batch of records.
_IDLE_SECONDS, _IDLE_SECONDS_OF_SHARE = 3.0, 30.0

_Group = Tuple[str, str]

# By id, which is used again only after the entry is gone. Each step on it is atomic.
_watches: Dict[int, weakref.ReferenceType[SiblingWatch]] = {}
_told: Set[_Group] = set()


class SiblingWatch:
    """What one consumer shows to the others of its process, and its check of them.

    Arguments: member: of the engine, None without membership; group_id; servers: the option
    bootstrap_servers; guard: the single-thread guard of the consumer.

    Attributes: next_at: when check() is due, in seconds of the loop, infinite for never; polled_at:
    when this consumer was polled last; guard; member; group: its id and servers; pid: of the
    process that made it.
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
        """Hide from the other consumers."""
        _watches.pop(id(self), None)

    def begin(self, now: float) -> None:
        """Make checks due for a while from now on: this consumer joins its group."""
        if self.member is not None:
            self.next_at, self._ends_at = now + _CHECK_SECONDS, now + _WATCH_SECONDS

    def check(self, now: float, has_share: bool) -> None:
        """Log once that another consumer of the group has not polled for long.

        Arguments: now: in seconds of the loop; has_share: whether this consumer has partitions.
        """
        self.next_at = now + _CHECK_SECONDS if now < self._ends_at else math.inf
        patience = _IDLE_SECONDS_OF_SHARE if has_share else _IDLE_SECONDS
        idle = [
            other.polled_at
            for other in self._siblings()
            # A consumer inside poll() is not idle, however long that waits.
            if now - other.polled_at > patience and not other.guard.is_used()
        ]
        if idle and self.group not in _told:
            _told.add(self.group)
            log.warning(
                'group=%s: another KafkaConsumer of this process is a member of this group, is not'
                ' closed, and has not polled for %.0f s. Members share the partitions: until that'
                ' one polls, is closed or has missed its max_poll_interval_ms, this one gets only a'
                ' part of the records, or none. Call close() on consumers that are not used any'
                ' more; a notebook cell that is run again leaves one behind while anything refers'
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
