"""Requests that were made beforehand, to a broker that is asked nothing else meanwhile.

Owns the short way of those from bytes to bytes: the answer is recognized and not decoded. Who has
the turn may sleep until it is there, if nothing else happens before, and then nobody ever knew of
the request. All else is as with any other request: it is in flight like those, and an answer of
another shape, one that comes in pieces, a time-out and the end of the connection go the way of all.
Part of :class:`kafka.net.broker.BrokerLink`.
"""

from __future__ import annotations

from typing import Any, Deque, Optional, Protocol, Tuple

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.link_parts import IDLE_LONG, LinkState, Pending
from kafka.net.loop.tasks import Alarm
from kafka.protocol.session import Session

__all__ = ['MadeAnswer', 'MadeRequests', 'Template']


class Template(Protocol):
    """What is made beforehand.

    Attributes: request: that the answer is read for if its shape is another; version.
    """

    request: Any
    version: int

    def encode(self, correlation_id: int, records: Any) -> bytes:
        """Return the frame of a request."""

    def read(self, data: bytes, correlation_id: int) -> Any:
        """Return what the answer says; None for whatever is not the one that is expected."""


class MadeAnswer(Protocol):
    """Who waits for the answer."""

    def sent(self) -> Any:
        """Hear that the request was given to the system."""

    def take(self, found: Any) -> Any:
        """Take what the template has read; called at once."""

    def wake(self, response: Any) -> Any:
        """Take the response, which had to be decoded."""

    def fail(self, error: KafkaError) -> Any:
        """Take the error that was there instead."""


class MadeRequests:
    """The part of a link that sends what was made beforehand."""

    session: Optional[Session]
    last_used: float
    state: LinkState
    throttled_until: float
    _loop: Any
    _transport: Any
    _slept: bool
    _in_flight: Deque[Pending]
    _queue: Deque[Any]
    _deadline: Alarm

    #: The answer that is expected next, if it may be recognized.
    _made: Optional[Tuple[Template, int, MadeAnswer]] = None

    def _lose(self, error: KafkaError) -> None:
        raise NotImplementedError

    def _pump(self) -> None:
        raise NotImplementedError

    def _arrived(self, data: bytes) -> None:
        raise NotImplementedError

    def is_free(self, now: float) -> bool:
        """Tell whether submit_made() may be called: nothing waits here for anything."""
        if self._in_flight or self._queue or self.state is not LinkState.READY:
            return False
        return now >= self.throttled_until

    def submit_made(
        self, template: Template, records: Any, answer: MadeAnswer, timeout: float, until: float
    ) -> Any:
        """Send a request, where is_free says that this may be done, and sleep until it is answered.

        Arguments: answer: told in a turn what came, but for what is returned; timeout: seconds from
        sending to the answer; until: when to sleep no longer, in the time of the loop; one that is
        over for not at all.
        Returns: what the template has read of the answer, if that is all that has happened; None
        else.
        """
        session, transport, loop = self.session, self._transport, self._loop
        assert session is not None
        correlation_id = session.number()
        frame = template.encode(correlation_id, records)
        error: Optional[KafkaConnectionError] = None
        try:
            transport.write((frame,))
        except KafkaConnectionError as broken:
            error = broken
        now = loop.time()
        data: Optional[bytes] = None
        found: Any = None
        try:
            # All that can be done while the broker is at work is done then.
            answer.sent()
            until = min(until, now + timeout)
            if error is None and transport.descriptor is not None and now < until:
                if loop.is_only(transport, until):
                    data = transport.receive()
                    found = template.read(data or b'', correlation_id)
        finally:
            if found is None:
                session.expect(correlation_id, template.request, template.version)
                self._made = template, correlation_id, answer
                self._slept = now - self.last_used >= IDLE_LONG
                self.last_used = now
                self._in_flight.append(Pending(template.request, answer, now + timeout, timeout))
                transport.expecting = True
                self._deadline.set(now + timeout)
        if found is not None:
            self._slept = False
            self.last_used = loop.time()
        elif error is not None:
            self._lose(error)
        elif data is not None:
            self._arrived(data)
        return found

    def _take_made(self, made: Tuple[Template, int, MadeAnswer], data: bytes) -> bool:
        """Take the bytes that came next if they are the answer that is expected; tell whether."""
        template, correlation_id, answer = made
        session, in_flight = self.session, self._in_flight
        found = template.read(data, correlation_id)
        if found is None or session is None or not in_flight or in_flight[0].answer is not answer:
            return False
        in_flight.popleft()
        session.was_answered()
        if not in_flight:
            self._transport.expecting = False
        self.last_used = self._loop.time()
        self._slept = False
        if self._queue:
            self._pump()
        answer.take(found)
        return True
