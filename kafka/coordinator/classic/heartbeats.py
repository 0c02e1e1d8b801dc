"""The heartbeats of a member of a classic group: sending, retries and logging.

ClassicMember creates one sender and calls it when a heartbeat is due. A heartbeat needs no
coroutine while the coordinator is connected. Runs in the event loop.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Optional

from kafka.coordinator.classic.requests import heartbeat_request
from kafka.coordinator.classic.state_machine import (
    ClassicErrorAction,
    ClassicMembership,
    Generation,
)
from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import KafkaError, UnsupportedVersionError, for_code
from kafka.net.routes import GROUP

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['HeartbeatSender']

log = logging.getLogger(__name__)


class HeartbeatSender:
    """Sends the heartbeats of one member.

    Arguments: loop; pool; settings; membership; backoff: returns the seconds to wait after a number
    of consecutive failures; on_told: called after a response or an error, unless it is for an
    earlier identity of the member.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        settings: GroupSettings,
        membership: ClassicMembership,
        backoff: Callable[[int], float],
        on_told: Callable[[], Any],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._settings = settings
        self._membership = membership
        self._backoff = backoff
        self._on_told = on_told
        self._missed = 0  # consecutive failures

    def __repr__(self) -> str:
        return '<HeartbeatSender of %s missed=%d>' % (self._settings.group_id, self._missed)

    def send(self, now: float) -> None:
        """Send a heartbeat; without a coroutine if the coordinator is connected."""
        who, number = self._membership.who, self._membership.heartbeats.sent(now)
        link = self._pool.group_link_at_hand(self._settings.group_id)
        if link is not None:
            self._submit(link, who, number)
        else:
            self._loop.spawn(self._find_and_send(who, number))

    async def _find_and_send(self, who: Generation, number: int) -> None:
        settings = self._settings
        try:
            link = await self._loop.within(
                settings.request_timeout, self._pool.group_link(settings.group_id)
            )
        except KafkaError as error:
            self._on_outcome(None, who, number, None, error)
        else:
            self._submit(link, who, number)

    def _submit(self, link: Any, who: Generation, number: int) -> None:
        settings = self._settings
        seconds = min(settings.request_timeout, settings.session_timeout)
        call = partial(self._on_outcome, link, who, number)
        link.submit(heartbeat_request(settings, who), call, seconds)

    def _on_outcome(
        self, link: Any, who: Generation, number: int, response: Any, error: Optional[KafkaError]
    ) -> None:
        if isinstance(error, UnsupportedVersionError):
            # The coordinator has accepted this member, so it supports heartbeats. The probe takes a
            # 0.9 broker for an older one if its connection breaks meanwhile: connect again.
            link.close()
        if who != self._membership.who or not self._membership.heartbeats.counts(number):
            return
        action = ClassicErrorAction.REFIND
        if error is None:
            code = response.error_code
            action = self._membership.on_heartbeat(who, code, self._loop.time())
            error = for_code(code)()
        if action in (ClassicErrorAction.REFIND, ClassicErrorAction.RETRY):
            self._on_missed(action, error)
        else:
            self._missed = 0
        self._on_told()

    def _on_missed(self, action: ClassicErrorAction, error: KafkaError) -> None:
        """Retry soon: the coordinator was not reached, or the broker is not the coordinator."""
        settings, member, now = self._settings, self._membership, self._loop.time()
        if action is ClassicErrorAction.REFIND:
            self._pool.forget_coordinator(GROUP, settings.group_id)
        self._missed += 1
        if member.is_beating:
            member.heartbeats.failed(now, self._backoff(self._missed))
        silent = now - member.heartbeats.answered_at
        level = logging.WARNING if silent > settings.session_timeout else logging.DEBUG
        if self._missed & (self._missed - 1) == 0:
            log.log(
                level,
                'group=%s: no heartbeat was answered for %.1f s, the group may have gone on: %s',
                settings.group_id,
                silent,
                error,
            )
