"""The options of a consumer for its membership, and the kinds of rebalance steps.

Used by both group protocols. Names, types and defaults of the options are in the option table.
Pure.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional

__all__ = ['GroupSettings', 'StepKind']


class GroupSettings(NamedTuple):
    """What the options of a consumer mean for its membership; times in seconds."""

    group_id: str
    group_instance_id: Optional[str] = None
    session_timeout: float = 45.0
    #: How long members may take for a rebalance, and the longest pause between two polls.
    rebalance_timeout: float = 300.0
    heartbeat_interval: float = 3.0
    request_timeout: float = 30.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    client_rack: str = ''
    #: Of a KIP-848 group: 'uniform', 'range', None for what the broker prefers.
    remote_assignor: Optional[str] = None


class StepKind(enum.Enum):
    """What the thread that polls has to do."""

    REVOKE = 'revoke'  # commit if it is automatic, tell the listener, then stop reading
    LOSE = 'lose'  # others may own them by now: no commit; tell the listener, stop reading
    ASSIGN = 'assign'  # read the new ones too, tell the listener, then begin with them
