"""Log of the rebalances of one member, with their reasons and a warning if there are too many.

Created by both kinds of members. Runs in the event loop.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Deque, Mapping

from kafka.coordinator.classic.state_machine import Reason
from kafka.errors import KafkaError

__all__ = ['RebalanceLog']

log = logging.getLogger(__name__)

#: A warning is logged if more than MANY rebalances begin within WITHIN seconds.
MANY, WITHIN = 5, 60.0

_CURES: Mapping[str, str] = {
    Reason.GROUP.value: 'other members join, leave or stop answering: read their logs, or the'
    ' log of the coordinator, which names them',
    Reason.ANOTHER.value: 'other members join, leave or stop answering while the group rebalances',
    Reason.GENERATION.value: 'the group does not wait for this member: raise session_timeout_ms'
    ' and max_poll_interval_ms, or make listeners faster',
    Reason.UNKNOWN.value: 'the coordinator gets no heartbeat of this member in time: raise'
    ' session_timeout_ms, or look for long pauses of the program or the network',
    Reason.LATE.value: 'the program takes too long between two polls: raise max_poll_interval_ms'
    ' or lower max_poll_records',
    Reason.SUBSCRIPTION.value: 'the program changes its topics, or a pattern matches topics that'
    ' come and go',
    Reason.PARTITIONS.value: 'topics of the group are made, deleted or enlarged all the time',
    Reason.FOREIGN.value: 'the leader of the group assigns topics that this member did not ask'
    ' for: check its assignor',
}


class RebalanceLog:
    """Logs the rebalances of one member. Arguments: group_id."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._times: Deque[float] = deque(maxlen=MANY + 1)
        self._is_warned = False
        self._failures = 0

    def began(self, now: float, generation: int, reason: str) -> None:
        """Log the start of a rebalance. Arguments: generation: the previous one, -1 without one."""
        log.info('group=%s generation=%d: rebalance: %s', self._group_id, generation, reason)
        if reason == Reason.FOLLOW_UP.value:
            return  # the second half of the one before
        self._times.append(now)
        if len(self._times) <= MANY or now - self._times[0] > WITHIN:
            self._is_warned = False
        elif not self._is_warned:
            self._is_warned = True
            log.warning(
                'group=%s: %d rebalances within %.0f s, the last one because: %s%s',
                self._group_id,
                len(self._times),
                now - self._times[0],
                reason,
                '; ' + _CURES[reason] if reason in _CURES else '',
            )

    def joined(self, generation: int, partitions: int) -> None:
        """Log the end of a rebalance."""
        self._failures = 0
        log.debug('group=%s generation=%d: %d partitions', self._group_id, generation, partitions)

    def failed(self, what: str, error: KafkaError) -> None:
        """Count a request that has to be repeated; log the 1st, 2nd, 4th ... consecutive one."""
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:
            log.warning(
                'group=%s: %s failed %d times, and goes on: %s',
                self._group_id,
                what,
                self._failures,
                error,
            )
