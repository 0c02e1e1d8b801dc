"""One broker: connected when it is needed, asked in a pipeline, left alone while it has to be.

Owns: when it is connected and when again (back-off), which requests are in flight, time-outs,
throttling, renewing of logins, idle closing. Does not own: the stages of a connection (connect.py),
which broker is asked what (pool.py).

The states and the moves between them are the table TRANSITIONS (link_parts.py). Whoever needs the
broker calls ready(), which connects; all who call meanwhile wait for the same try, and all get its
error. The next try is made when somebody asks again, after the back-off: ``min(max, base * 2^(n -
1) * uniform(0.8, 1.2))`` with n failures in a row (KIP-580), which begins anew with a success.

Requests are sent in the order in which they were given, at most ``max_in_flight`` at once, none
while the broker has to be left alone (KIP-219) or a login is renewed (KIP-368). A request that is
not answered in time closes the connection and fails all that are in flight: their answers come in
order, so none can be waited for any longer.
"""

from __future__ import annotations

import logging
import math
import random
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Optional

from kafka.errors import (
    Cancelled,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
)
from kafka.internals.error_copies import unraised_copy
from kafka.net.attempts import Attempt, hint_for, unreachable_text
from kafka.net.connect import AskBroker, Family, SendBytes, Steps, log_in
from kafka.net.link_parts import (
    IDLE_LONG,
    TRANSITIONS,
    Answer,
    LinkState,
    OnAnswer,
    Pending,
    Place,
    backoff_seconds,
    closed_text,
)
from kafka.net.loop.tasks import Alarm, Task, Timer, Waiter
from kafka.net.made_requests import MadeRequests
from kafka.net.opening import Opened, Opening, prepare_again
from kafka.net.sasl import authenticate, is_step, renewal_seconds
from kafka.net.settings import NetSettings
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

__all__ = ['BrokerLink']

log = logging.getLogger(__name__)

#: Seconds between two warnings that a node cannot be reached.
WARN_EVERY = 60.0
#: So many failed tries are kept.
MAX_ATTEMPTS = 10


class BrokerLink(MadeRequests):
    """One broker, for turns of its loop only.

    Arguments: loop; settings; host, port; node_id: None for a bootstrap server; family: of its
    cluster; chance: for the jitter; on_ready: called with the link when its versions are known;
    on_lost: called with it when a connection ended that had been ready.

    Attributes: state; attempts: the last tries that failed; throttled_until; last_used and
    last_attempt: times of the loop; session: of the connection, None without one; ip: of the last
    connection, None before the first.
    """

    def __init__(
        self,
        loop: Any,
        settings: NetSettings,
        host: str,
        port: int,
        node_id: Optional[int] = None,
        family: Optional[Family] = None,
        chance: Optional[random.Random] = None,
        on_ready: Optional[Callable[[BrokerLink], Any]] = None,
        on_lost: Optional[Callable[[BrokerLink], Any]] = None,
    ) -> None:
        self.host = host
        self.port = port
        self.node_id = node_id
        self.state = LinkState.DISCONNECTED
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
        self._failures = 0
        self._slept = False  # whether what is in flight was sent after a long pause
        self._is_unproven = (
            False  # whether the connection was opened unasked and nothing was answered
        )
        self._next_attempt = -math.inf
        self._transport: Any = None
        self._connecting: Optional[Task[None]] = None
        self._opening: Optional[Opening] = None
        self._in_flight: Deque[Pending] = deque()
        self._queue: Deque[Place] = deque()  # who wants to send, in order
        self._steps: Optional[Waiter[Optional[Event]]] = None  # of a login that is renewed
        self._pump_timer: Optional[Timer] = None
        self._deadline = Alarm(loop, self._look_at_deadlines)  # one does for all requests
        self._idle_timer: Optional[Timer] = None
        self._renewal_timer: Optional[Timer] = None

    def __repr__(self) -> str:
        return '<BrokerLink %s %s:%s %s in_flight=%d queued=%d>' % (
            'bootstrap' if self.node_id is None else 'node %s' % self.node_id,
            self.host,
            self.port,
            self.state.value,
            len(self._in_flight),
            len(self._queue),
        )

    def note(self, stage: str, began: float, error: KafkaError) -> None:
        """Note a try that got as far as this and failed behind it, at a stage of its own."""
        seconds = self._loop.time() - began
        address, hint = '%s:%s' % (self.host, self.port), hint_for(stage, error)
        self.attempts.append(Attempt(address, self.ip, stage, seconds, error, hint))

    # ------------------------------------------------------------ what others look at

    @property
    def is_ready(self) -> bool:
        """Whether requests flow, if not now then when their turn comes."""
        return self.state in (LinkState.READY, LinkState.RENEWING)

    @property
    def can_send(self) -> bool:
        """Whether a request would be sent at once."""
        return (
            self.state is LinkState.READY
            and len(self._in_flight) < self._settings.max_in_flight
            and not self._queue
            and self._loop.time() >= self.throttled_until
        )

    @property
    def load(self) -> int:
        """How many requests wait here, sent or not."""
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
        if self.state is not LinkState.DISCONNECTED:
            return 0.0
        seconds: float = self._next_attempt - self._loop.time()
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

        Arguments: timeout: seconds from sending to the answer; None for that of the settings;
        version, highest: as Session.choose_version().

        Raises what ready() raises; KafkaTimeoutError when no answer came in time, and
        KafkaConnectionError when the connection broke first: whether the broker acted is unknown
        then; UnsupportedVersionError and ProtocolError for what cannot be sent to this broker.
        """
        if not self.can_send:
            await self._turn_to_send(Place(counts=True))
        answer: Waiter[Any] = Waiter()
        self._put(message, answer, timeout, version, highest)
        return await answer

    def submit(
        self,
        message: Message,
        call: OnAnswer,
        timeout: Optional[float] = None,
        version: Optional[int] = None,
    ) -> None:
        """Do as request(), without a coroutine where the request can be sent at once.

        Arguments: call: called in a later turn with the response and None, or with None and what
        request() would raise. Never raises.
        """
        what = message, Answer(self._loop, call), timeout, version
        if self.can_send:
            self._put_or_fail(*what)
        else:  # its place is taken now: who comes next is behind it
            place = Place(counts=True)
            self._queue.append(place)
            self._loop.spawn(self._submit_later(place, *what))

    async def _submit_later(
        self, place: Place, message: Message, answer: Answer, *how: Any
    ) -> None:
        try:
            await self._turn_to_send(place)
        except KafkaError as error:
            answer.fail(error)
        else:
            self._put_or_fail(message, answer, *how)

    def _put_or_fail(
        self, message: Message, answer: Answer, timeout: Optional[float], version: Optional[int]
    ) -> None:
        try:
            self._put(message, answer, timeout, version, None)
        except KafkaError as error:
            answer.fail(error)
        except Exception as error:  # nobody else would hear of it
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
        """Send a request whose turn it is."""
        assert self.session is not None
        data = self.session.send(message, version=version, highest=highest)
        now = self._loop.time()
        timeout = timeout or self._settings.request_timeout
        if not self._in_flight:
            self._slept = now - self.last_used >= IDLE_LONG
        self.last_used = now
        self._in_flight.append(Pending(message, answer, now + timeout, timeout))
        self._transport.expecting = True
        self._deadline.set(now + timeout)
        try:
            self._transport.write([data])
        except KafkaConnectionError as error:
            self._lose(error)

    async def send(
        self, message: Message, version: Optional[int] = None, highest: Optional[int] = None
    ) -> None:
        """Send a request that is not answered (Produce with acks=0); connects if need be.

        Returns when the system has taken it. Raises as request(), but for the answer.
        """
        if not self.can_send:
            await self._turn_to_send(Place(counts=False))
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

    async def _turn_to_send(self, place: Place) -> None:
        """Return when it is the turn of a place: behind those before it, and not too early."""
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
            self.state is LinkState.READY
            and (not counts or len(self._in_flight) < self._settings.max_in_flight)
            and self._loop.time() >= self.throttled_until
        )

    def _pump(self) -> None:
        """Let the first of the queue go if it may; it keeps its place until it does."""
        if not self._queue:
            return
        first = self._queue[0]
        if not self.is_ready or self._may_send(first.counts):
            first.waiter.wake()
        elif self.state is LinkState.READY:
            wait = self.throttled_until - self._loop.time()
            if wait > 0 and (self._pump_timer is None or not self._pump_timer.waits):
                self._pump_timer = self._loop.call_later(wait, self._pump)

    # ------------------------------------------------------------ connecting

    async def ready(self) -> None:
        """Return when the broker is connected and its versions are known.

        Waits for the back-off, then makes one round of tries, or waits for the one under way.
        Raises the error of that round; IllegalStateError after close().
        """
        if self.is_ready:
            return
        if self.state is LinkState.CLOSED:
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
        self._move(LinkState.CONNECTING)
        self.last_attempt = self._loop.time()
        opening = Opening(self._loop, self._settings, self.host, self.port, self._family)
        self._opening = opening
        try:
            opened = await opening.run(self._setup_seconds())
        except KafkaError as error:
            self._opening = None
            self.attempts.extend(opening.attempts)
            self._failures += 1
            self._back_off(self._failures)
            self._warn(error)
            if self.state is LinkState.CONNECTING:
                self._move(LinkState.DISCONNECTED)
            raise
        except BaseException:
            if self.state is LinkState.CONNECTING:
                self._move(LinkState.DISCONNECTED)
            raise
        self._opening = None
        self._take_over(opened)

    def _warn(self, error: KafkaError) -> None:
        """Log why a node that brokers list cannot be reached: at once, then each minute."""
        now, warned_at = self._loop.time(), self._family.warned_at
        if self.node_id is not None and now >= warned_at.get(self.node_id, -math.inf) + WARN_EVERY:
            warned_at[self.node_id] = now
            log.warning('%s', unreachable_text(self.node_id, self.attempts, error))

    def _setup_seconds(self) -> float:
        """Return how long a try may take: longer after each failure (KIP-601)."""
        part = self._chance.uniform(0.8, 1.2) if self._failures else 1.0
        settings = self._settings
        longest = max(settings.setup_timeout, settings.setup_timeout_max)
        return backoff_seconds(settings.setup_timeout, longest, self._failures + 1, part)

    def _back_off(self, failures: int) -> None:
        settings = self._settings
        longest = max(settings.reconnect_backoff, settings.reconnect_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        seconds = backoff_seconds(settings.reconnect_backoff, longest, failures, part)
        self._next_attempt = self._loop.time() + seconds

    def _take_over(self, opened: Opened) -> None:
        """Begin with requests on a connection that is ready."""
        self._move(LinkState.READY)
        self._failures = 0
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

    def _move(self, state: LinkState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'a broker that is %s cannot become %s' % (self.state.value, state.value)
            )
        self.state = state

    # ------------------------------------------------------------ answers

    def _listen(self, transport: Any) -> None:
        try:
            transport.listen(self._arrived, partial(self._broke, transport))
            # Of what came together with the last answer before.
            self._take_events(NEED_DATA if self.session is None else self.session.next_event())
        except KafkaError as error:
            self._broke(transport, error)

    def _broke(self, transport: Any, error: KafkaError) -> None:
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
        """Take an event, and what else has come. Raises KafkaError when the connection is over."""
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
            for each in self._in_flight:  # the broker reads them afterwards
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
        is_idle = not self.load and self.state is LinkState.READY
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
        """Log in once more on the same connection, before the login ends (KIP-368)."""
        session, transport = self.session, self._transport
        if self.state is not LinkState.READY or session is None:
            return
        try:
            login = await prepare_again(self._loop, self._settings, self.host, ends_at)
            if self._transport is not transport:
                return  # it was lost meanwhile, and whoever connects logs in
            self._move(LinkState.RENEWING)
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
            self._move(LinkState.READY)
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
        """End a connection that failed; everybody who waits for an answer hears of it."""
        if not self.is_ready:
            return
        # A broker closes what nobody uses, and its word may cross the next request.
        was_left = self._slept or not self._in_flight
        self._disconnect(error)
        if not was_left or not isinstance(error, KafkaConnectionError):
            self._back_off(1)
        if self._on_lost is not None:
            self._on_lost(self)

    def _disconnect(self, error: Optional[KafkaError] = None) -> None:
        if self.is_ready:
            self._move(LinkState.DISCONNECTED)
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
        self._wake_all()  # they look again, and connect

    def _wake_all(self) -> None:
        for place in self._queue:
            place.waiter.wake()

    def close(self) -> None:
        """Close for good; who waits gets Cancelled."""
        if self.state is LinkState.CLOSED:
            return
        if self._connecting is not None:
            self._connecting.cancel()
            if self._opening is not None:
                self.attempts.extend(self._opening.give_up())
        self.state = LinkState.CLOSED
        for place in self._queue:
            place.waiter.fail(Cancelled('%r was closed' % self))
        self._disconnect()
