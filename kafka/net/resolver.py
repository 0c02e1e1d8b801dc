"""Names of hosts: looked up in a thread of their own, since the system's look-up blocks.

Owns: the look-up, its limits, and what an address is. Does not own: which address is tried when
(broker.py).
"""

from __future__ import annotations

import socket
import threading
from typing import Any, List, NamedTuple, Tuple

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.attempts import at_stage
from kafka.net.tasks import Scheduler, Waiter

__all__ = ['Address', 'Resolver', 'literal']

#: So many look-ups at once; more than that hang only where the name server does.
MAX_LOOKUPS = 16


class Address(NamedTuple):
    """Where to connect to."""

    family: int
    sockaddr: Tuple[Any, ...]

    @property
    def ip(self) -> str:
        """The address as text."""
        return str(self.sockaddr[0])


def literal(host: str, port: int) -> List[Address]:
    """Return the address that a host is, written out; nothing for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return [Address(family, (host, port) if family == socket.AF_INET else (host, port, 0, 0))]
    return []


class Resolver:
    """Looks names up for one loop.

    Arguments: loop: whose turns get the answers.
    """

    def __init__(self, loop: Scheduler) -> None:
        self._loop: Any = loop
        self._running = 0

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host, in the order the system gives them.

        Raises KafkaConnectionError, with the stage DNS, for a name that is not known, and
        KafkaTimeoutError when the answer takes longer than `timeout` seconds.
        """
        known = literal(host, port)
        if known:
            return known
        if self._running >= MAX_LOOKUPS:
            text = '%d look-ups of names hang, %s has to wait' % (self._running, host)
            raise at_stage(KafkaConnectionError(text), 'DNS')
        answer: Waiter[List[Address]] = Waiter()
        self._running += 1
        thread = threading.Thread(
            target=self._look_up, args=(host, port, answer), name='kafka-resolver', daemon=True
        )
        thread.start()
        late = at_stage(
            KafkaTimeoutError('no address of %s came within %.3g seconds' % (host, timeout)), 'DNS'
        )
        timer = self._loop.call_later(timeout, answer.fail, late)
        try:
            return await answer
        finally:
            timer.cancel()

    def _look_up(self, host: str, port: int, answer: Waiter[List[Address]]) -> None:
        found: List[Address] = []
        error = None
        try:
            for family, _, _, _, sockaddr in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
                address = Address(family, sockaddr)
                if address not in found:
                    found.append(address)
        except (OSError, UnicodeError) as cause:
            error = at_stage(
                KafkaConnectionError('%s cannot be resolved: %s' % (host, cause)), 'DNS'
            )
            error.__cause__ = cause
        try:
            self._loop.call_threadsafe(self._take, answer, found, error)
        except IllegalStateError:  # closed meanwhile: nobody waits
            pass

    def _take(self, answer: Waiter[List[Address]], found: List[Address], error: Any) -> None:
        self._running -= 1
        if error is not None:
            answer.fail(error)
        else:
            answer.wake(found)
