"""The group settings of a consumer, and the kinds of rebalance steps.

Used by both group protocols. Names, types and defaults of the options are in the option table.
Pure.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional

__all__ = ['GroupSettings', 'StepKind']


class GroupSettings(NamedTuple):
    """The settings of a member from the options of its consumer; times in seconds."""

    group_id: str
    group_instance_id: Optional[str] = None
    session_timeout: float = 45.0
    #: Time limit of a member for a rebalance, and the longest interval between two polls.
    rebalance_timeout: float = 300.0
    heartbeat_interval: float = 3.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    client_rack: str = ''
    #: The server-side assignor of a KIP-848 group: 'uniform', 'range', None for the default.
    remote_assignor: Optional[str] = None


class StepKind(enum.Enum):
    """What the polling thread has to do in a rebalance step."""

    REVOKE = 'revoke'  # commit if commits are automatic, call the listener, then stop fetching
    LOSE = 'lose'  # other members may own them by now: no commit; call the listener, stop fetching
    ASSIGN = 'assign'  # add the new partitions, call the listener, then start fetching them
