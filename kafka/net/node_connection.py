"""One connection to one broker: opened on demand, with pipelined requests.

Created by BrokerConnections, one per node and purpose; used only by the thread that runs its loop.
connect.py opens the connection; the Pool decides which broker gets which request.

The states and their transitions are the table TRANSITIONS. A caller that needs the broker awaits
ready(), which connects; concurrent callers wait for the same attempt, and all get its error. The
next attempt is made at the next call, after the backoff of KIP-580, which a success resets.

Requests are sent in the order of the calls, at most ``max_in_flight`` at a time, and none while the
broker throttles the client (KIP-219) or the client re-authenticates (KIP-368). If a request times
out, the connection is closed and all requests in flight fail: responses arrive in order, so no
later response can be received without the missing one.
"""

from __future__ import annotations

import enum
import logging
import math
import random
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, List, Optional, Protocol, Tuple, Union

from kafka.errors import (
    Cancelled,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
)
from kafka.internals.error_copies import unraised_copy
from kafka.net.attempts import Attempt, hint_for, unreachable_text
from kafka.net.backoff import backoff_seconds
from kafka.net.connect import AskBroker, Family, SendBytes, Steps, log_in
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.tasks import Alarm, Task, Timer, Waiter
from kafka.net.opening import Opened, Opening, prepare_again
from kafka.net.sasl import authenticate, is_step, renewal_seconds
from kafka.net.secured import SecuredTransport
from kafka.net.settings import NetSettings
from kafka.net.transport import Transport
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.session import (
    NEED_DATA,
    ConnectionClosed,
    Event,
    ResponseReceived,
    SendData,
    Session,
)
from kafka.protocol.wire import Message

__all__ = [
    'IDLE_LONG',
    'TRANSITIONS',
    'WARN_EVERY',
    'ConnectionState',
    'NodeConnection',
    'OnResponse',
    'PreparedRequest',
    'PreparedResponse',
    'session_of',
]

log = logging.getLogger(__name__)

#: Seconds between two warnings that a node cannot be reached.
WARN_EVERY = 60.0
#: The number of failed attempts that are kept.
MAX_ATTEMPTS = 10
#: Seconds without a request after which the broker may be closing the idle connection.
IDLE_LONG = 10.0

#: With TLS and without.
AnyTransport = Union[Transport, SecuredTransport]


class ConnectionState(enum.Enum):
    """The states of the connection to a broker."""

    DISCONNECTED = 'disconnected'
    CONNECTING = 'connecting'
    READY = 'ready'
    RENEWING = 'renewing its login'
    CLOSED = 'closed'

    __hash__ = object.__hash__


TRANSITIONS: Dict[ConnectionState, List[ConnectionState]] = {
    ConnectionState.DISCONNECTED: [ConnectionState.CONNECTING, ConnectionState.CLOSED],
    ConnectionState.CONNECTING: [
        ConnectionState.READY,
        ConnectionState.DISCONNECTED,
        ConnectionState.CLOSED,
    ],
    ConnectionState.READY: [
        ConnectionState.RENEWING,
        ConnectionState.DISCONNECTED,
        ConnectionState.CLOSED,
    ],
    ConnectionState.RENEWING: [
        ConnectionState.READY,
        ConnectionState.DISCONNECTED,
        ConnectionState.CLOSED,
    ],
    ConnectionState.CLOSED: [],
}


class ReconnectBackoff:
    """Backoff between attempts to connect, and the timeout of an attempt (KIP-580, KIP-601).

    Arguments: settings; chance: random numbers for the jitter.

    Attributes: failures: number of consecutive failed attempts; until: the earliest time of the
    next one.
    """

    __slots__ = ('_chance', '_settings', 'failures', 'until')

    def __init__(self, settings: NetSettings, chance: random.Random) -> None:
        self.failures = 0
        self.until = -math.inf
        self._settings = settings
        self._chance = chance

    def __repr__(self) -> str:
        return '<ReconnectBackoff failures=%d>' % self.failures

    def wait_from(self, now: float, failures: int) -> None:
        """Start the backoff that follows a number of consecutive failures."""
        settings = self._settings
        longest = max(settings.reconnect_backoff, settings.reconnect_backoff_max)
        jitter = self._chance.uniform(0.8, 1.2)
        seconds = backoff_seconds(settings.reconnect_backoff, longest, failures, jitter)
        self.until = now + seconds

    def setup_seconds(self) -> float:
        """Return the timeout of an attempt in seconds, which grows with each failure (KIP-601)."""
        jitter = self._chance.uniform(0.8, 1.2) if self.failures else 1.0
        settings = self._settings
        longest = max(settings.setup_timeout, settings.setup_timeout_max)
        return backoff_seconds(settings.setup_timeout, longest, self.failures + 1, jitter)


#: Called in the loop with the response and None, or with None and the error.
OnResponse = Callable[[Any, Optional[KafkaError]], Any]


class ResponseCallback:
    """Replaces the Waiter of a request if a function is to be called with the response."""

    __slots__ = ('_call', '_loop')

    def __init__(self, loop: EventLoop, call: OnResponse) -> None:
        self._loop = loop
        self._call = call

    def wake(self, response: Any) -> None:
        """Schedule the call with the response."""
        self._loop.call_soon(self._call, response, None)

    def fail(self, error: KafkaError) -> None:
        """Schedule the call with the error."""
        self._loop.call_soon(self._call, None, error)


class InFlightRequest:
    """A request that was sent and has no response yet.

    Arguments: answer: a Waiter, ResponseCallback or PreparedResponse.
    """

    __slots__ = ('answer', 'deadline', 'message', 'timeout')

    def __init__(self, message: Message, answer: Any, deadline: float, timeout: float) -> None:
        self.message = message
        self.answer = answer
        self.deadline = deadline
        self.timeout = timeout


class QueuedRequest:
    """A place in the queue of requests. counts: whether the request expects a response."""

    __slots__ = ('counts', 'waiter')

    def __init__(self, counts: bool) -> None:
        self.counts = counts
        self.waiter: Waiter[None] = Waiter()


class PreparedRequest(Protocol):
    """A request that was encoded in advance except for its records.

    Attributes: request: the message, needed to decode a response that read() does not recognize;
    version.
    """

    request: Any
    version: int

    def encode(self, correlation_id: int, records: Any) -> bytes:
        """Return the frame of the request."""

    def read(self, data: bytes, correlation_id: int) -> Any:
        """Return the content of the response; None if the bytes do not have the expected layout."""


class PreparedResponse(Protocol):
    """Receives the outcome of a PreparedRequest.

    Attributes: found: the result that submit_made() returns, from when the response is read.
    """

    found: Any

    def sent(self) -> Any:
        """The request was written to the socket."""

    def take(self, found: Any) -> Any:
        """Handle the result of PreparedRequest.read(); called without a delay."""

    def wake(self, response: Any) -> Any:
        """Handle a response that was decoded because read() did not recognize it."""

    def fail(self, error: KafkaError) -> Any:
        """Handle an error in place of a response."""


class NodeConnection:
    """The connection to one broker, for the thread that runs its loop.

    Arguments: loop; settings; host, port; node_id: None for a bootstrap server; family: of its
    cluster; chance: random numbers for the jitter; on_ready: called with this object when the
    broker's versions are known; on_lost: called with it when a connection that was ready has ended.

    Attributes: state; attempts: the last failed ones; throttled_until, last_used and last_attempt:
    times of the loop; session: None while not connected; ip: of the last connection, None before
    the first.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: NetSettings,
        host: str,
        port: int,
        node_id: Optional[int] = None,
        family: Optional[Family] = None,
        chance: Optional[random.Random] = None,
        on_ready: Optional[Callable[[NodeConnection], Any]] = None,
        on_lost: Optional[Callable[[NodeConnection], Any]] = None,
    ) -> None:
        self.host = host
        self.port = port
        self.node_id = node_id
        self.state = ConnectionState.DISCONNECTED
        self.attempts: Deque[Attempt] = deque(maxlen=MAX_ATTEMPTS)
        self.throttled_until = -math.inf
        self.last_used = -math.inf
        self.last_attempt = -math.inf
        self.session: Optional[Session] = None
        self.ip: Optional[str] = None
        self._loop = loop
        self._settings = settings
        self._family = family or Family()
        self._chance = chance or random.Random()
        self._on_ready = on_ready
        self._on_lost = on_lost
        self._backoff = ReconnectBackoff(settings, self._chance)
        self._slept = False  # whether the requests in flight were sent after a long pause
        # Whether ApiVersions was skipped (connect.py) and no response has been received yet.
        self._is_unproven = False
        self._transport: Any = None  # AnyTransport in READY and RENEWING
        self._connecting: Optional[Task[None]] = None
        self._opening: Optional[Opening] = None
        self._in_flight: Deque[InFlightRequest] = deque()
        self._queue: Deque[QueuedRequest] = deque()  # in the order of the calls
        self._steps: Optional[Waiter[Optional[Event]]] = None  # for the response to a login request
        self._pump_timer: Optional[Timer] = None
        # The prepared request whose response is next, if it may be recognized by its bytes.
        self._made: Optional[Tuple[PreparedRequest, int, PreparedResponse]] = None
        # The response that submit_made() has neither read nor added to those in flight; the number
        # and size of its request, and how many bytes were sent at once; whether that was completed;
        # what was received and is not handled yet: see Transport.receive_into().
        self._submitting: Optional[PreparedResponse] = None
        self._submitted: Tuple[int, int, List[int]] = 0, 0, []
        self._is_written = False
        self._received: Optional[List[bytes]] = None
        self._deadline = Alarm(loop, self._look_at_deadlines)  # one timer for all requests
        self._idle_timer: Optional[Timer] = None
        self._renewal_timer: Optional[Timer] = None

    def __repr__(self) -> str:
        return '<NodeConnection %s %s:%s %s in_flight=%d queued=%d>' % (
            'bootstrap' if self.node_id is None else 'node %s' % self.node_id,
            self.host,
            self.port,
            self.state.value,
            len(self._in_flight),
            len(self._queue),
        )

    def note(self, stage: str, began: float, error: KafkaError) -> None:
        """Record a failed attempt whose stage is after those of connecting, such as Metadata."""
        seconds = self._loop.time() - began
        address, hint = '%s:%s' % (self.host, self.port), hint_for(stage, error)
        self.attempts.append(Attempt(address, self.ip, stage, seconds, error, hint))

    # ------------------------------------------------------------ state

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent or queued without connecting."""
        return self.state in (ConnectionState.READY, ConnectionState.RENEWING)

    @property
    def can_send(self) -> bool:
        """Whether a request would be sent at once."""
        return (
            self.state is ConnectionState.READY
            and len(self._in_flight) < self._settings.max_in_flight
            and not self._queue
            and self._loop.time() >= self.throttled_until
        )

    @property
    def load(self) -> int:
        """The number of requests without a response, in flight or queued."""
        return len(self._in_flight) + len(self._queue)

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return len(self._in_flight)

    @property
    def versions(self) -> Optional[BrokerVersions]:
        """The API versions of the broker; None while not connected."""
        return self.session.versions if self.session is not None else None

    @property
    def backoff(self) -> float:
        """Seconds until the next attempt to connect is allowed; 0 if it is allowed now."""
        if self.state is not ConnectionState.DISCONNECTED:
            return 0.0
        seconds: float = self._backoff.until - self._loop.time()
        return max(0.0, seconds)

    # ------------------------------------------------------------ requests

    async def request(
        self,
        message: Message,
        timeout: Optional[float] = None,
        version: Optional[int] = None,
        highest: Optional[int] = None,
    ) -> Any:
        """Send a request and return its response; connect if necessary.

        Arguments: timeout: seconds from sending to the response; None for that of the settings;
        version, highest: as Session.choose_version().

        Raises the errors of ready(); KafkaTimeoutError if no response is received in time, and
        KafkaConnectionError if the connection breaks before: it is then unknown whether the broker
        has handled the request; UnsupportedVersionError and ProtocolError if the request cannot be
        encoded for this broker.
        """
        if not self.can_send:
            await self._turn_to_send(QueuedRequest(counts=True))
        answer: Waiter[Any] = Waiter()
        self._put(message, answer, timeout, version, highest)
        return await answer

    def submit(
        self,
        message: Message,
        call: OnResponse,
        timeout: Optional[float] = None,
        version: Optional[int] = None,
    ) -> None:
        """Send a request like request(), without a coroutine if it can be sent at once.

        Arguments: call: called later in the loop with the response and None, or with None and the
        error that request() would raise. Never raises.
        """
        what = message, ResponseCallback(self._loop, call), timeout, version
        if self.can_send:
            self._put_or_fail(*what)
        else:  # queued now rather than in the coroutine, so that later requests are sent after it
            place = QueuedRequest(counts=True)
            self._queue.append(place)
            self._loop.spawn(self._submit_later(place, *what))

    async def _submit_later(
        self, place: QueuedRequest, message: Message, answer: ResponseCallback, *how: Any
    ) -> None:
        try:
            await self._turn_to_send(place)
        except KafkaError as error:
            answer.fail(error)
        else:
            self._put_or_fail(message, answer, *how)

    def _put_or_fail(
        self,
        message: Message,
        answer: ResponseCallback,
        timeout: Optional[float],
        version: Optional[int],
    ) -> None:
        try:
            self._put(message, answer, timeout, version, None)
        except KafkaError as error:
            answer.fail(error)
        except Exception as error:  # there is no caller to raise it to
            log.exception('%r cannot send a request', self)
            answer.fail(KafkaError('sending failed: %r' % error))

    def _put(
        self,
        message: Message,
        answer: Any,
        timeout: Optional[float],
        version: Optional[int],
        highest: Optional[int],
    ) -> None:
        """Send a request now."""
        assert self.session is not None
        data = self.session.send(message, version=version, highest=highest)
        now = self._loop.time()
        timeout = timeout or self._settings.request_timeout
        if not self._in_flight:
            self._slept = now - self.last_used >= IDLE_LONG
        self.last_used = now
        self._in_flight.append(InFlightRequest(message, answer, now + timeout, timeout))
        self._transport.expecting = True
        self._deadline.set(now + timeout)
        try:
            self._transport.write([data])
        except KafkaConnectionError as error:
            self._lose(error)

    async def send(
        self, message: Message, version: Optional[int] = None, highest: Optional[int] = None
    ) -> None:
        """Send a request that has no response (Produce with acks=0); connect if necessary.

        Returns when the request is in the socket buffer. Raises the errors of request() up to that
        point.
        """
        if not self.can_send:
            await self._turn_to_send(QueuedRequest(counts=False))
        assert self.session is not None
        data = self.session.send(message, version=version, highest=highest)
        self.last_used = self._loop.time()
        timeout = self._settings.request_timeout
        try:
            self._transport.write([data])
            await self._loop.within(timeout, self._transport.send([]))
        except KafkaError as error:
            self._lose(error)
            raise

    async def _turn_to_send(self, place: QueuedRequest) -> None:
        """Return when a queued request may be sent: it is the first one and not throttled."""
        if place not in self._queue:
            self._queue.append(place)
        try:
            while True:
                if not self.is_ready:
                    await self.ready()
                if self._queue[0] is place and self._may_send(place.counts):
                    return
                place.waiter = Waiter()
                self._pump()
                await place.waiter
        finally:
            self._queue.remove(place)
            if self._queue:
                self._loop.call_soon(self._pump)

    def _may_send(self, counts: bool) -> bool:
        return (
            self.state is ConnectionState.READY
            and (not counts or len(self._in_flight) < self._settings.max_in_flight)
            and self._loop.time() >= self.throttled_until
        )

    def _pump(self) -> None:
        """Wake the first queued request if it may be sent; it is removed when it is sent."""
        if not self._queue:
            return
        first = self._queue[0]
        if not self.is_ready or self._may_send(first.counts):
            first.waiter.wake()
        elif self.state is ConnectionState.READY:
            wait = self.throttled_until - self._loop.time()
            if wait > 0 and (self._pump_timer is None or not self._pump_timer.waits):
                self._pump_timer = self._loop.call_later(wait, self._pump)

    # ------------------------------------------------------------ prepared requests

    def is_free(self, now: float) -> bool:
        """Return True if submit_made() may be called.

        The connection is ready and not throttled, with no request in flight or queued.
        """
        if self._in_flight or self._queue or self.state is not ConnectionState.READY:
            return False
        return now >= self.throttled_until

    def submit_made(
        self,
        template: PreparedRequest,
        records: Any,
        answer: PreparedResponse,
        timeout: float,
        until: float,
    ) -> Any:
        """Send a prepared request if is_free() is true; block until the response is received.

        The fast path of a lone send().get(). The response is recognized by its bytes; if no other
        event occurs before it, the request is never added to those in flight. In every other case
        it is in flight like any other request: a response with an unexpected layout or in several
        pieces, a timeout and a lost connection are handled as usual.

        Arguments: answer: gets the outcome later in the loop, unless the result is returned;
        timeout: seconds from sending to the response; until: when to stop waiting, in the time of
        the loop; a time in the past for no waiting.
        Returns: the result of ``template.read()``, if the response was the first event; otherwise
        None.
        """
        session, transport, loop = self.session, self._transport, self._loop
        assert session is not None
        correlation_id = session.number()
        frame = template.encode(correlation_id, records)
        noted: List[int] = []
        self._is_written, self._submitted = False, (correlation_id, len(frame), noted)
        self._submitting = answer
        error: Optional[KafkaConnectionError] = None
        try:
            transport.write((frame,), noted)
            self._is_written = True
        except KafkaConnectionError as broken:
            error = broken
        now = loop.time()
        found: Any = None
        # Do the remaining work of the caller while the broker handles the request.
        answer.sent()
        until = now + timeout if until > now + timeout else until
        if error is None and now < until and loop.is_only(transport, until):
            received: List[bytes] = []
            self._received = received
            try:
                transport.receive_into(received)
            except KafkaConnectionError as broken:
                error = broken
            if error is None and len(received) == 1:
                answer.found = found = template.read(received[0], correlation_id)
        if found is not None:
            self._submitting = self._received = None
            self._slept = False
            self.last_used = loop.time()
            return found
        self._expect_made(template, correlation_id, answer, now, timeout)
        if self._received:
            loop.call_soon(self._take_received)
        if error is not None:
            loop.call_soon(self._broke, transport, error)
        self._submitting = None
        return None

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS: then resume_made() cannot always save it."""
        return self._transport is not None and self._transport.is_encrypted

    def _expect_made(
        self,
        template: PreparedRequest,
        correlation_id: int,
        answer: PreparedResponse,
        now: float,
        timeout: float,
    ) -> None:
        """Add a prepared request to those in flight; it is the only one. May be repeated."""
        session_of(self).expect(correlation_id, template.request, template.version)
        self._made = template, correlation_id, answer
        self._slept = now - self.last_used >= IDLE_LONG
        self.last_used = now
        self._in_flight.clear()
        self._in_flight.append(InFlightRequest(template.request, answer, now + timeout, timeout))
        self._transport.expecting = True
        self._deadline.set(now + timeout)

    def end_made(self, answer: PreparedResponse) -> bool:
        """End a submit_made() that an exception has ended; return False if bytes were sent."""
        if not self.is_submitting(answer):
            return True
        is_begun = self._is_written or self._submitted[2] or self._is_torn
        if answer.found is None and is_begun:
            return False
        self._submitting = self._received = None
        return True

    @property
    def _is_torn(self) -> bool:
        """Whether the connection was lost or cannot be used: see Transport.is_torn."""
        return self._transport is None or self._transport.is_torn

    def is_submitting(self, answer: PreparedResponse) -> bool:
        """Return True if an exception has ended submit_made() when it was half done."""
        return self._submitting is answer

    def resume_made(self, template: PreparedRequest, timeout: float) -> bool:
        """Complete a submit_made() that an exception has ended, in a later turn.

        If the request was written it is in flight then, as any other. Returns: False if it was not,
        or only a part of it, or if bytes of TLS are lost: the connection is closed then, and the
        answer is not called.
        """
        answer, (correlation_id, size, noted) = self._submitting, self._submitted
        is_written = self._is_written or noted == [size]
        is_lost = self.session is None or self._is_torn
        if answer is None or not is_written or is_lost:
            self._in_flight.clear()
            self._lose(KafkaConnectionError('an exception was raised in the thread that used it'))
            self._submitting = None
            return False
        self._expect_made(template, correlation_id, answer, self._loop.time(), timeout)
        self._take_received()
        self._submitting = None
        return True

    def _take_received(self) -> None:
        received, self._received = self._received, None
        for each in received or ():
            self._arrived(each)

    def _take_made(self, made: Tuple[PreparedRequest, int, PreparedResponse], data: bytes) -> bool:
        """Handle received bytes if they are the response to a prepared request.

        Returns False if they are not.
        """
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

    # ------------------------------------------------------------ connecting

    async def ready(self) -> None:
        """Return when the broker is connected and its versions are known.

        Makes one attempt after the backoff, or waits for the attempt in progress.
        Raises the error of that attempt; IllegalStateError after close().
        """
        if self.is_ready:
            return
        if self.state is ConnectionState.CLOSED:
            raise IllegalStateError('%r' % self)
        if self._connecting is None:
            self._connecting = self._loop.spawn(self._connect())
            self._connecting.add_done_callback(self._connected)
        await self._connecting

    def _connected(self, task: Task[None]) -> None:
        if self._connecting is task:
            self._connecting = None

    async def _connect(self) -> None:
        if self.backoff:
            await self._loop.sleep(self.backoff)
        self._move(ConnectionState.CONNECTING)
        self.last_attempt = self._loop.time()
        opening = Opening(self._loop, self._settings, self.host, self.port, self._family)
        self._opening = opening
        try:
            opened = await opening.run(self._backoff.setup_seconds())
        except KafkaError as error:
            self._opening = None
            self.attempts.extend(opening.attempts)
            self._backoff.failures += 1
            self._backoff.wait_from(self._loop.time(), self._backoff.failures)
            self._warn(error)
            if self.state is ConnectionState.CONNECTING:
                self._move(ConnectionState.DISCONNECTED)
            raise
        except BaseException:
            if self.state is ConnectionState.CONNECTING:
                self._move(ConnectionState.DISCONNECTED)
            raise
        self._opening = None
        self._take_over(opened)

    def _warn(self, error: KafkaError) -> None:
        """Log why a listed node cannot be reached: at the first failure, then once a minute."""
        now, warned_at = self._loop.time(), self._family.warned_at
        if self.node_id is not None and now >= warned_at.get(self.node_id, -math.inf) + WARN_EVERY:
            warned_at[self.node_id] = now
            log.warning('%s', unreachable_text(self.node_id, self.attempts, error))

    def _take_over(self, opened: Opened) -> None:
        """Start to use an opened connection for requests."""
        self._move(ConnectionState.READY)
        self._backoff.failures = 0
        self._family.warned_at.pop(self.node_id, None)
        self._transport, self.session, self.ip = opened.transport, opened.session, opened.ip
        self._is_unproven = opened.is_unasked
        self._transport.expecting = False
        self.throttled_until = -math.inf
        self.last_used = self._loop.time()
        self._watch_idle()
        self._renew_in(opened.login_lifetime_ms)
        self._wake_all()
        if self._on_ready is not None:
            self._on_ready(self)
        self._listen(opened.transport)

    def _move(self, state: ConnectionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'a broker that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state

    # ------------------------------------------------------------ responses

    def _listen(self, transport: AnyTransport) -> None:
        try:
            transport.listen(self._arrived, partial(self._broke, transport))
            # Handle bytes that were received together with the last response of the handshake.
            self._take_events(NEED_DATA if self.session is None else self.session.next_event())
        except KafkaError as error:
            self._broke(transport, error)

    def _broke(self, transport: AnyTransport, error: KafkaError) -> None:
        if self._transport is transport:
            self._lose(error)

    def _arrived(self, data: bytes) -> None:
        if self._received is not None:
            self._take_received()  # these came before
        session, transport = self.session, self._transport
        made, self._made = self._made, None
        if session is None or (made is not None and self._take_made(made, data)):
            return
        try:
            self._take_events(session.take(data))
        except KafkaError as error:
            self._broke(transport, error)

    def _take_events(self, event: Event) -> None:
        """Handle an event and those after it. Raises KafkaError if the connection has ended."""
        session = self.session
        while event is not NEED_DATA:
            if isinstance(event, ResponseReceived):
                self._take(event)
            elif isinstance(event, SendData):
                self._transport.write([event.data])
            elif isinstance(event, ConnectionClosed):
                raise KafkaConnectionError(closed_text(self.host, self.port, event))
            elif is_step(event) and self._steps is not None:
                self._steps.wake(event)
            if session is None or session is not self.session:
                return
            event = session.next_event()

    def _take(self, event: ResponseReceived) -> None:
        pending = self._in_flight.popleft()
        if not self._in_flight:
            self._transport.expecting = False
        if self._is_unproven:
            self._is_unproven, self._family.is_mute = False, True
        now = self._loop.time()
        self.last_used = now
        self._slept = False
        if event.client_throttles:
            seconds = event.throttle_time_ms / 1000
            self.throttled_until = max(self.throttled_until, now + seconds)
            for each in self._in_flight:  # the broker does not read them before the throttle ends
                each.deadline = max(each.deadline, now + seconds + each.timeout)
        pending.answer.wake(event.response)
        if self._queue:
            self._pump()

    # ------------------------------------------------------------ time-outs

    def _look_at_deadlines(self) -> None:
        if not self._in_flight:
            return
        first = min(self._in_flight, key=lambda each: each.deadline)
        if first.deadline > self._loop.time():
            self._deadline.set(first.deadline)
            return
        text = '%s:%s did not answer %s within %.3g seconds'
        told = self.host, self.port, type(first.message).__name__, first.timeout
        self._lose(KafkaTimeoutError(text % told))

    def _watch_idle(self) -> None:
        if self._settings.idle_timeout < math.inf:
            seconds = self.last_used + self._settings.idle_timeout - self._loop.time()
            self._idle_timer = self._loop.call_later(seconds, self._look_at_idle)

    def _look_at_idle(self) -> None:
        if not self.is_ready:
            return
        is_idle = not self.load and self.state is ConnectionState.READY
        if is_idle and self._loop.time() >= self.last_used + self._settings.idle_timeout:
            self._disconnect()
        else:
            if not is_idle:
                self.last_used = self._loop.time()
            self._watch_idle()

    # ------------------------------------------------------------ renewing a login

    def _renew_in(self, lifetime_ms: int) -> None:
        seconds = renewal_seconds(lifetime_ms, self._chance.uniform(0.85, 0.95))
        if seconds is not None:
            ends_at = self._loop.time() + lifetime_ms / 1000
            self._renewal_timer = self._loop.call_later(
                seconds, lambda: self._loop.spawn(self._renew(ends_at))
            )

    async def _renew(self, ends_at: float) -> None:
        """Re-authenticate on the same connection, before the session expires (KIP-368)."""
        session, transport = self.session, self._transport
        if self.state is not ConnectionState.READY or session is None:
            return
        try:
            login = await prepare_again(self._loop, self._settings, self.host, ends_at)
            if self._transport is not transport:
                return  # the connection was lost: the next one logs in
            self._move(ConnectionState.RENEWING)
            transport.expecting = True
            lifetime_ms = await self._loop.within(
                self._settings.request_timeout,
                self._drive_login(log_in(authenticate(session, login))),
            )
        except Exception as error:  # any error of a mechanism that the program has registered too
            if self._transport is transport:
                self._lose(
                    error
                    if isinstance(error, KafkaError)
                    else KafkaConnectionError('the login could not be renewed: %r' % error)
                )
            return
        if self._transport is transport:
            self._move(ConnectionState.READY)
            transport.expecting = bool(self._in_flight)
            self._renew_in(lifetime_ms)
            self._pump()

    async def _drive_login(self, steps: Steps[int]) -> int:
        """Send the login requests on the session, which still receives responses to requests."""
        event: Optional[Event] = None
        while True:
            try:
                action = steps.send(event)
            except StopIteration as done:
                lifetime_ms: int = done.value
                return lifetime_ms
            event = None
            if isinstance(action, SendBytes):
                self._transport.write([action.data])
                continue
            assert isinstance(action, AskBroker)
            response: Waiter[Optional[Event]] = Waiter()
            self._steps = response
            self._transport.write([action.data])
            event = await response

    # ------------------------------------------------------------ the end of a connection

    def _lose(self, error: KafkaError) -> None:
        """Disconnect after an error, which all requests in flight fail with."""
        if not self.is_ready:
            return
        # If the broker closed an idle connection, its FIN may have crossed the next request: that
        # is not a failure of the broker, so there is no backoff.
        was_left = self._slept or not self._in_flight
        self._disconnect(error)
        if not was_left or not isinstance(error, KafkaConnectionError):
            self._backoff.wait_from(self._loop.time(), 1)
        if self._on_lost is not None:
            self._on_lost(self)

    def _disconnect(self, error: Optional[KafkaError] = None) -> None:
        if self.is_ready:
            self._move(ConnectionState.DISCONNECTED)
        transport, self._transport, self.session = self._transport, None, None
        self._made = self._received = None
        self._deadline.cancel()
        for timer in (self._idle_timer, self._renewal_timer):
            if timer is not None:
                timer.cancel()
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.wake(None)
        if transport is not None:
            transport.close()
        pending, self._in_flight = self._in_flight, deque()
        for each in pending:
            failure = error or Cancelled('%r was closed' % self)
            each.answer.fail(unraised_copy(failure))
        self._wake_all()  # queued requests check the state and connect

    def _wake_all(self) -> None:
        for place in self._queue:
            place.waiter.wake()

    def close(self) -> None:
        """Close permanently; requests in flight or queued fail with Cancelled."""
        if self.state is ConnectionState.CLOSED:
            return
        if self._connecting is not None:
            self._connecting.cancel()
            if self._opening is not None:
                self.attempts.extend(self._opening.give_up())
        self.state = ConnectionState.CLOSED
        for place in self._queue:
            place.waiter.fail(Cancelled('%r was closed' % self))
        self._disconnect()


def session_of(connection: NodeConnection) -> Session:
    """Return the session of a NodeConnection that has become ready.

    Raises KafkaConnectionError if the connection is lost: bytes received with the last response of
    the handshake, or right after it, may end it before the coroutines that wait for it are resumed.
    """
    session: Optional[Session] = connection.session
    if session is None:
        raise KafkaConnectionError('%r was lost as soon as it was ready' % (connection,))
    return session


def closed_text(host: str, port: int, event: ConnectionClosed) -> str:
    """Return the error text for a connection that the broker has closed."""
    text = '%s:%s closed the connection' % (host, port)
    if event.inside_frame:
        return text + ' in the middle of an answer'
    if event.unanswered:
        return '%s while %s waited for an answer' % (
            text,
            ', '.join(sorted({type(each).__name__ for each in event.unanswered})),
        )
    return text
