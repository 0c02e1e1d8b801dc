"""One connection to one broker: opened when it is needed, with pipelined requests.

Made by the Pool, one for each node and purpose; used only by the thread that runs its loop. How a
connection is opened is connect.py; which broker gets which request is decided by the Pool.

The states and their transitions are the table TRANSITIONS. A caller that needs the broker awaits
ready(), which connects; all callers that come meanwhile wait for the same attempt, and all get its
error. The next attempt is made when a caller asks again, after the backoff of KIP-580, which a
success resets.

Requests are sent in the order in which they were given, at most ``max_in_flight`` at once, none
while the broker throttles the client (KIP-219) or a login is renewed (KIP-368). A request without a
response in time closes the connection and fails all that are in flight: responses come in order, so
none of the others can be waited for any longer.
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
#: So many failed attempts are kept.
MAX_ATTEMPTS = 10
#: Seconds without a request after which a broker may be about to close the connection.
IDLE_LONG = 10.0

#: With TLS and without.
AnyTransport = Union[Transport, SecuredTransport]


class ConnectionState(enum.Enum):
    """How far the connection to a broker is."""

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
    """When a broker may be connected again, and how long an attempt may take (KIP-580, KIP-601).

    Arguments: settings; chance: for the jitter.

    Attributes: failures: attempts in a row that failed; until: when the next one may be made.
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
        """Begin a backoff, as after so many failures in a row."""
        settings = self._settings
        longest = max(settings.reconnect_backoff, settings.reconnect_backoff_max)
        jitter = self._chance.uniform(0.8, 1.2)
        seconds = backoff_seconds(settings.reconnect_backoff, longest, failures, jitter)
        self.until = now + seconds

    def setup_seconds(self) -> float:
        """Return how long an attempt may take: longer after each failure."""
        jitter = self._chance.uniform(0.8, 1.2) if self.failures else 1.0
        settings = self._settings
        longest = max(settings.setup_timeout, settings.setup_timeout_max)
        return backoff_seconds(settings.setup_timeout, longest, self.failures + 1, jitter)


#: Called in the loop with the response and None, or with None and the error.
OnResponse = Callable[[Any, Optional[KafkaError]], Any]


class ResponseCallback:
    """Takes the place of a request's Waiter where a call is to be made."""

    __slots__ = ('_call', '_loop')

    def __init__(self, loop: EventLoop, call: OnResponse) -> None:
        self._loop = loop
        self._call = call

    def wake(self, response: Any) -> None:
        """Make the call with the response, soon."""
        self._loop.call_soon(self._call, response, None)

    def fail(self, error: KafkaError) -> None:
        """Make the call with the error, soon."""
        self._loop.call_soon(self._call, None, error)


class InFlightRequest:
    """A request without a response yet. Arguments: answer: a Waiter or what takes its place."""

    __slots__ = ('answer', 'deadline', 'message', 'timeout')

    def __init__(self, message: Message, answer: Any, deadline: float, timeout: float) -> None:
        self.message = message
        self.answer = answer
        self.deadline = deadline
        self.timeout = timeout


class QueuedRequest:
    """A place in the queue of requests. counts: whether it will be in flight."""

    __slots__ = ('counts', 'waiter')

    def __init__(self, counts: bool) -> None:
        self.counts = counts
        self.waiter: Waiter[None] = Waiter()


class PreparedRequest(Protocol):
    """A request that was encoded beforehand but for its records.

    Attributes: request: which the response is decoded for if it has another shape than expected;
    version.
    """

    request: Any
    version: int

    def encode(self, correlation_id: int, records: Any) -> bytes:
        """Return the frame of a request."""

    def read(self, data: bytes, correlation_id: int) -> Any:
        """Return what the response says; None for bytes of another shape than expected."""


class PreparedResponse(Protocol):
    """Takes what comes of a PreparedRequest."""

    def sent(self) -> Any:
        """The request was given to the system."""

    def take(self, found: Any) -> Any:
        """Take what PreparedRequest.read() returned; called at once."""

    def wake(self, response: Any) -> Any:
        """Take the response, which had to be decoded."""

    def fail(self, error: KafkaError) -> Any:
        """Take the error that came in place of a response."""


class NodeConnection:
    """The connection to one broker, for the thread that runs its loop.

    Arguments: loop; settings; host, port; node_id: None for a bootstrap server; family: of its
    cluster; chance: for the jitter; on_ready: called with this object when the broker's versions
    are known; on_lost: called with it when a connection ended that had been ready.

    Attributes: state; attempts: the last ones that failed; throttled_until; last_used and
    last_attempt: times of the loop; session: None while not connected; ip: of the last connection,
    None before the first.
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
        self._slept = False  # whether what is in flight was sent after a long pause
        # Whether the versions were not asked for (connect.py) and no response has come yet.
        self._is_unproven = False
        self._transport: Any = None  # AnyTransport in READY and RENEWING
        self._connecting: Optional[Task[None]] = None
        self._opening: Optional[Opening] = None
        self._in_flight: Deque[InFlightRequest] = deque()
        self._queue: Deque[QueuedRequest] = deque()  # in order
        self._steps: Optional[Waiter[Optional[Event]]] = None  # of a login that is renewed
        self._pump_timer: Optional[Timer] = None
        # The prepared request whose response comes next, if its bytes may be recognized.
        self._made: Optional[Tuple[PreparedRequest, int, PreparedResponse]] = None
        self._deadline = Alarm(loop, self._look_at_deadlines)  # one does for all requests
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
        """Note an attempt that was connected and failed after that, at a stage of its own."""
        seconds = self._loop.time() - began
        address, hint = '%s:%s' % (self.host, self.port), hint_for(stage, error)
        self.attempts.append(Attempt(address, self.ip, stage, seconds, error, hint))

    # ------------------------------------------------------------ state

    @property
    def is_ready(self) -> bool:
        """Whether requests are sent, now or in their order."""
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
        """How many requests have no response yet, sent or not."""
        return len(self._in_flight) + len(self._queue)

    @property
    def in_flight(self) -> int:
        """How many requests were sent and not answered."""
        return len(self._in_flight)

    @property
    def versions(self) -> Optional[BrokerVersions]:
        """What the broker serves; None while not connected."""
        return self.session.versions if self.session is not None else None

    @property
    def backoff(self) -> float:
        """Seconds until it may be connected again; 0 for now."""
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
        """Send a request and return its response; connects if need be.

        Arguments: timeout: seconds from sending to the response; None for that of the settings;
        version, highest: as Session.choose_version().

        Raises what ready() raises; KafkaTimeoutError when no response came in time, and
        KafkaConnectionError when the connection broke first: whether the broker acted is unknown
        then; UnsupportedVersionError and ProtocolError for what cannot be sent to this broker.
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
        """Do as request(), without a coroutine where the request can be sent at once.

        Arguments: call: called later in the loop with the response and None, or with None and what
        request() would raise. Never raises.
        """
        what = message, ResponseCallback(self._loop, call), timeout, version
        if self.can_send:
            self._put_or_fail(*what)
        else:  # queued now: later requests come after it
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
        except Exception as error:  # no caller would get it
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
        """Send a request without a response (Produce with acks=0); connects if need be.

        Returns when the system has taken it. Raises as request() before the response.
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
        """Return when a queued request may be sent: after those before it, not while throttled."""
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
        """Wake the first of the queue if it may be sent; it stays in the queue until it is."""
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
        """Return True if submit_made() may be called: nothing is in flight, queued or throttled."""
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
        """Send a prepared request where is_free() is true; sleep until the response is there.

        The fast path of a lone send().get(): the response is recognized by its bytes, and if
        nothing else happens before it, no other part of the connection ever knew of the request. In
        every other case it is in flight like any request: a response of another shape or in several
        pieces, a time-out and the end of the connection are handled as for those.

        Arguments: answer: takes in the loop what comes, unless that is returned; timeout: seconds
        from sending to the response; until: when to stop sleeping, in the time of the loop; a time
        that is over for no sleep.
        Returns: what the template has read of the response, if nothing else has happened; else
        None.
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
            # The work that can be done while the broker is at work is done now.
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
                self._in_flight.append(
                    InFlightRequest(template.request, answer, now + timeout, timeout)
                )
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

    def _take_made(self, made: Tuple[PreparedRequest, int, PreparedResponse], data: bytes) -> bool:
        """Take the next bytes if they are the response of a prepared request; return True then."""
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

        Waits for the backoff, then makes one attempt, or waits for the one under way.
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
        """Log why a node that brokers list cannot be reached: at once, then each minute."""
        now, warned_at = self._loop.time(), self._family.warned_at
        if self.node_id is not None and now >= warned_at.get(self.node_id, -math.inf) + WARN_EVERY:
            warned_at[self.node_id] = now
            log.warning('%s', unreachable_text(self.node_id, self.attempts, error))

    def _take_over(self, opened: Opened) -> None:
        """Begin to send requests on a connection that was opened."""
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
            # Of bytes that came together with the last response of the handshake.
            self._take_events(NEED_DATA if self.session is None else self.session.next_event())
        except KafkaError as error:
            self._broke(transport, error)

    def _broke(self, transport: AnyTransport, error: KafkaError) -> None:
        if self._transport is transport:
            self._lose(error)

    def _arrived(self, data: bytes) -> None:
        session, transport = self.session, self._transport
        made, self._made = self._made, None
        if session is None or (made is not None and self._take_made(made, data)):
            return
        try:
            self._take_events(session.take(data))
        except KafkaError as error:
            self._broke(transport, error)

    def _take_events(self, event: Event) -> None:
        """Handle an event and those that follow. Raises KafkaError when the connection is over."""
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
            for each in self._in_flight:  # the broker reads them after that
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
        """Log in again on the same connection, before the login expires (KIP-368)."""
        session, transport = self.session, self._transport
        if self.state is not ConnectionState.READY or session is None:
            return
        try:
            login = await prepare_again(self._loop, self._settings, self.host, ends_at)
            if self._transport is not transport:
                return  # it was lost meanwhile, and the next connection logs in
            self._move(ConnectionState.RENEWING)
            transport.expecting = True
            lifetime_ms = await self._loop.within(
                self._settings.request_timeout,
                self._drive_login(log_in(authenticate(session, login))),
            )
        except Exception as error:  # also what a mechanism that the program registered raises
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
        """Log in on the session of the link, which goes on taking responses to requests."""
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
        """End a connection that failed; each request that waits gets the error."""
        if not self.is_ready:
            return
        # A broker closes idle connections, and its FIN may cross the next request.
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
        self._made = None
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
        self._wake_all()  # they check again, and connect

    def _wake_all(self) -> None:
        for place in self._queue:
            place.waiter.wake()

    def close(self) -> None:
        """Close for good; requests that wait get Cancelled."""
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

    Raises KafkaConnectionError if it is lost already: bytes that came with the last response of the
    handshake, or right after it, may end it before the coroutines that wait for it go on.
    """
    session: Optional[Session] = connection.session
    if session is None:
        raise KafkaConnectionError('%r was lost as soon as it was ready' % (connection,))
    return session


def closed_text(host: str, port: int, event: ConnectionClosed) -> str:
    """Return the text of the error for a broker that closed a connection."""
    text = '%s:%s closed the connection' % (host, port)
    if event.inside_frame:
        return text + ' in the middle of an answer'
    if event.unanswered:
        return '%s while %s waited for an answer' % (
            text,
            ', '.join(sorted({type(each).__name__ for each in event.unanswered})),
        )
    return text
