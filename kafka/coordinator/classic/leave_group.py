"""LeaveGroup of a member of a classic group.

Owns how a dynamic member says that it is gone, and what is logged when nobody hears it. Does not
own: when it leaves, and what becomes of its membership (coordinator.py).
"""

from __future__ import annotations

import logging
from typing import Any

from kafka.coordinator.classic.requests import leave_request
from kafka.coordinator.classic.state_machine import Who
from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import KafkaError
from kafka.protocol.api import choose_version
from kafka.protocol.group import LeaveGroupRequest

__all__ = ['say_goodbye']

log = logging.getLogger(__name__)


async def say_goodbye(
    loop: Any, pool: Any, settings: GroupSettings, who: Who, reason: str, timeout: float
) -> None:
    """Tell the coordinator within so many seconds that a member is gone; raises nothing of brokers.

    A static member says nothing: it comes back, or is missed after its session time-out. Nor does
    one that the group has given no id.
    """
    if not who.member_id or settings.group_instance_id is not None:
        return
    try:
        await loop.within(timeout, _say(pool, settings, who, reason))
    except KafkaError as error:
        log.info(
            'group=%s: the coordinator was not told that %s leaves, and notices it after'
            ' session_timeout_ms=%d: %s',
            settings.group_id,
            who.member_id,
            round(settings.session_timeout * 1000),
            error,
        )


async def _say(pool: Any, settings: GroupSettings, who: Who, reason: str) -> None:
    link = await pool.group_link(settings.group_id)
    version = choose_version(LeaveGroupRequest, link.versions.ranges)
    await link.request(leave_request(settings, who, reason, version), None, version)
