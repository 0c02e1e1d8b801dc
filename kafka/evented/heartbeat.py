"""Heartbeat: when the next heartbeat of a member is due, with the interface of 1.x.

Used by base_coordinator.py. The members of KafkaConsumer have a state machine of their own
(coordinator/classic/state_machine.py).
"""

from __future__ import annotations

import math
import time
from typing import Any, Dict

from kafka.errors import InvalidOptionError

__all__ = ['Heartbeat']


class Heartbeat:
    """Measures the time since heartbeats (1.x). Returned times are in seconds.

    Arguments: heartbeat_interval_ms; session_timeout_ms; others are ignored.
    Raises InvalidOptionError, an AssertionError, if the interval exceeds the time-out.

    Attributes: config; interval, timeout: seconds; last_send, last_receive, last_reset: seconds
    since the epoch, minus infinity for never.
    """

    DEFAULT_CONFIG: Dict[str, Any] = {'heartbeat_interval_ms': 3000, 'session_timeout_ms': 30000}

    def __init__(self, **configs: Any) -> None:
        self.config = {
            name: configs.get(name, default) for name, default in self.DEFAULT_CONFIG.items()
        }
        if self.config['heartbeat_interval_ms'] > self.config['session_timeout_ms']:
            raise InvalidOptionError(
                'heartbeat_interval_ms=%(heartbeat_interval_ms)r must not exceed'
                ' session_timeout_ms=%(session_timeout_ms)r' % self.config
            )
        self.interval: float = self.config['heartbeat_interval_ms'] / 1000
        self.timeout: float = self.config['session_timeout_ms'] / 1000
        self.last_send = -math.inf
        self.last_receive = -math.inf
        self.last_reset = time.time()

    def ttl(self) -> float:
        """Return the seconds until the next heartbeat is due, 0 for now."""
        return max(0.0, max(self.last_send, self.last_reset) + self.interval - time.time())

    def should_heartbeat(self) -> bool:
        """Return True if a heartbeat is due."""
        return self.ttl() == 0

    def session_expired(self) -> bool:
        """Return True if the coordinator has not answered within the session time-out."""
        return time.time() - max(self.last_receive, self.last_reset) > self.timeout

    def sent_heartbeat(self) -> None:
        """Record that a heartbeat was sent now."""
        self.last_send = time.time()

    def received_heartbeat(self) -> None:
        """Record that the coordinator answered now."""
        self.last_receive = time.time()

    def reset_session_timeout(self) -> None:
        """Restart the session time-out, as after joining."""
        self.last_reset = time.time()
