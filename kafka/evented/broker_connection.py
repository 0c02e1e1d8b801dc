"""BrokerConnection: a connection to one broker that advances only in its caller's calls (1.x, 2.x).

It has no thread and waits for nothing except for writes, and in the calls that say so. The socket
and the connect conversation are a SteppedSocket; blocking/request_frames.py encodes a request in
another version than that of its struct.

The states and their transitions::

    DISCONNECTED -connect()-> CONNECTING -connect()-> [HANDSHAKE -connect()->] CONNECTED
    any -close(), or an error-> DISCONNECTING -> DISCONNECTED
"""

from __future__ import annotations

import inspect
import logging
import math
import random
import time
from collections import deque, namedtuple
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from kafka import config as options
from kafka.blocking.request_frames import Expected, Framing
from kafka.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    TooManyInFlightRequests,
    UnknownError,
    UnrecognizedBrokerVersion,
)
from kafka.evented.stepped_socket import NameNotResolved, Progress, SteppedSocket
from kafka.future import Future
from kafka.internals.error_copies import unraised_copy
from kafka.internals.running_calls import is_in_call
from kafka.metrics.network_metrics import ConnectionMetrics
from kafka.net.attempts import Attempt, hint_for, stage_of, unreachable_text
from kafka.net.sasl import ClosedAtVersions
from kafka.net.tls import as_ssl_error
from kafka.protocol.frames import FrameReader
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.release import ReleaseName, release_of

__all__ = ['BrokerConnection', 'ConnectionStates', 'InFlightRequest']

log = logging.getLogger('kafka.conn')

MOST_ATTEMPTS = 10  # that are kept
WAIT_SECONDS = 0.005  # between two checks of a connection that is being established
NEVER_MS = 999999999
WARN_SECONDS = 60.0  # between two warnings that a broker cannot be reached

_COORDINATOR = 10  # API key


class ConnectionStates:
    """The states of a connection; compare by identity."""

    DISCONNECTING = '<disconnecting>'
    DISCONNECTED = '<disconnected>'
    CONNECTING = '<connecting>'
    HANDSHAKE = '<handshake>'
    CONNECTED = '<connected>'
    # States of 1.4 to 2.3, for programs that compare with them: a login is part of HANDSHAKE here.
    AUTHENTICATING = '<authenticating>'
    API_VERSIONS_SEND = '<checking_api_versions_send>'
    API_VERSIONS_RECV = '<checking_api_versions_recv>'


InFlightRequest = namedtuple(
    'InFlightRequest', ['request', 'response_type', 'correlation_id', 'future', 'timestamp']
)


def _telling(callback: Any) -> Callable[[Any], Any]:
    """Return a function that passes a connection's new state to the program's callback.

    A callback of 2.x takes node id, socket and connection, that of 1.x the connection alone.
    """
    try:
        inspect.signature(callback).bind(None, None, None)
    except (TypeError, ValueError):
        told: Callable[[Any], Any] = callback
        return told
    return lambda conn: callback(conn.config['node_id'], conn.sock, conn)


def _remade(cls: Any, host: str, port: int, afi: int, configs: Dict[str, Any]) -> Any:
    """Unpickle: create a connection with the same options, not connected."""
    return cls(host, port, afi, **configs)


class BrokerConnection:
    """A connection to one broker, driven by its caller.

    Arguments: host, port: the broker; afi: the address family, ``socket.AF_UNSPEC`` to try all
    addresses of the name, one at each attempt; configs: the options in DEFAULT_CONFIG, including
    those of security; unknown ones are ignored.

    Attributes: host: the address in use; hostname: the name as it was given; port; afi; config;
    state: one of ConnectionStates, may be assigned; in_flight_requests: deque of InFlightRequest;
    last_attempt, last_failure: epoch seconds, 0 for never; node_id: the option of that name (1.4);
    versions: {API key: (lowest, highest version)} of the broker on this connection, None until they
    are requested, as by check_version(); attempts: the attempts to connect that failed since the
    last successful one, as kafka.net.attempts.Attempt, the latest last; asks_versions: whether
    connect() requests the versions; sock: the socket, None without one.

    A request struct in a version that the broker does not serve is translated once its versions are
    known, and its response is the struct of the requested version.

    Not to be shared between threads. In a forked process it is disconnected. Its pickle holds its
    options, except callback and metrics. From 1.0.
    """

    DEFAULT_CONFIG: Dict[str, Any] = dict(options.resolve(options.CONNECTION, {}))

    def __init__(self, host: str, port: int, afi: int, **configs: Any) -> None:
        self.host = self.hostname = host
        self.port = port
        self.afi = afi
        self.config = options.resolve(options.CONNECTION, configs)
        self._socket = SteppedSocket(host, port, afi, self.config)
        self.state: Any = ConnectionStates.DISCONNECTED
        self.last_attempt: float = 0
        self.last_failure: float = 0
        self.attempts: Deque[Attempt] = deque(maxlen=MOST_ATTEMPTS)
        self.asks_versions = False
        self._failures = 0  # consecutive
        self._warned_at = -math.inf
        self._pause_ms: float = 0  # before the next attempt
        callback = self.config['state_change_callback']
        self._tell = None if callback is None else _telling(callback)
        self._is_asked = False  # whether the connect conversation requests the versions
        self._forget()
        self.in_flight_requests: Deque[Any] = deque()
        self._expected: Deque[Tuple[Any, Expected]] = deque()
        self._correlation_id = 0
        self._answering: Optional[Future] = None  # of a response read, not completed yet
        self._gives_lists = False  # recv() as in 1.3 and later
        self._early: Deque[Tuple[Any, Future]] = deque()  # responses for the next recv()
        self._given = options.hidden(configs)
        self.node_id = self.config['node_id']
        metrics = self.config['metrics']
        self._metrics: Optional[ConnectionMetrics] = None
        if metrics is not None:
            prefix = self.config['metric_group_prefix']
            self._metrics = ConnectionMetrics(metrics, prefix, self.node_id)

    #: Mark of the call that is connecting, sending or reading, or that an exception has ended
    #: midway.
    _busy: Any = None

    def _forget(self) -> None:
        """Reset the state that belongs to one socket."""
        self._frames = FrameReader(self.config['receive_message_max_bytes'])
        self._framing: Optional[Framing] = None

    def __repr__(self) -> str:
        where = self.hostname, self.host, self.port
        return '<BrokerConnection host=%s/%s port=%s>' % where

    def __reduce__(self) -> Tuple[Any, ...]:
        kept = {
            name: value
            for name, value in self._given.items()
            if name not in ('metrics', 'state_change_callback')
        }
        return _remade, (type(self), self.hostname, self.port, self.afi, kept)

    # ------------------------------------------------------------ state

    @property
    def sock(self) -> Any:
        """The socket, None without one."""
        return self._socket.sock

    @property
    def _sock(self) -> Any:
        """The socket, as an attribute of 1.x and 2.x, which programs also replace."""
        return self._socket.sock

    @_sock.setter
    def _sock(self, sock: Any) -> None:
        self._socket.sock = sock

    def connected(self) -> bool:
        """Return True if requests can be sent."""
        return self.state is ConnectionStates.CONNECTED

    def connecting(self) -> bool:
        """Return True if connect() has begun and is not done."""
        return self.state in (ConnectionStates.CONNECTING, ConnectionStates.HANDSHAKE)

    def disconnected(self) -> bool:
        """Return True if there is no connection and none is being established."""
        return self.state is ConnectionStates.DISCONNECTED

    def blacked_out(self) -> bool:
        """Return True if it is disconnected and the reconnect back-off is not over."""
        return self.disconnected() and self._backoff_ms() > 0

    def connection_delay(self) -> float:
        """Return the ms to wait until the next call can make progress (1.3)."""
        if self.disconnected():
            return self._backoff_ms()
        return 0 if self.connecting() else NEVER_MS

    def _backoff_ms(self) -> float:
        passed_ms = (time.time() - self.last_attempt) * 1000
        left: float = max(0, (self._pause_ms or self.config['reconnect_backoff_ms']) - passed_ms)
        return left

    @property
    def addresses_left(self) -> int:
        """The number of addresses of the name not tried in this round."""
        return self._socket.addresses_left

    def can_send_more(self) -> bool:
        """Return True if fewer requests are in flight than allowed."""
        most: int = self.config['max_in_flight_requests_per_connection']
        return len(self.in_flight_requests) < most

    @property
    def versions(self) -> Optional[Dict[int, Tuple[int, int]]]:
        """What the broker serves, None if that is unknown on this connection."""
        return None if self._framing is None else dict(self._framing.ranges)

    def get_api_versions(self) -> Optional[Dict[int, Tuple[int, int]]]:
        """Return what the broker serves, requesting it if needed; None if that fails (2.x)."""
        if self._framing is None:
            try:
                self.check_version()
            except KafkaError:
                return None
        return self.versions

    def requests_timed_out(self) -> bool:
        """Return True if the oldest request has exceeded request_timeout_ms (1.3)."""
        for entry in list(self.in_flight_requests)[:1]:
            sent_at = getattr(entry, 'timestamp', None)
            return sent_at is not None and self._is_late(sent_at)
        return False

    def connect_blocking(self, timeout: Optional[float] = float('inf')) -> bool:
        """Connect, within `timeout` seconds; return True on success (1.4).

        Without a time-out: within request_timeout_ms, once through all addresses of the name.
        Raises as connect().
        """
        self._gives_lists = True
        return self._connect_within(timeout)

    def _note_failure(self, error: BaseException, stage: str) -> None:
        """Record a failed attempt; the back-off grows with each one (KIP-144)."""
        stage = stage_of(error, stage)
        ip = None if stage == 'DNS' else self.host
        seconds = max(0.0, time.time() - self.last_attempt)
        where = '%s:%s' % (self.hostname, self.port)
        self.attempts.append(Attempt(where, ip, stage, seconds, error, hint_for(stage, error)))
        now, node_id = time.monotonic(), self.config['node_id']
        is_listed = isinstance(node_id, int)  # bootstrap failures are reported elsewhere
        if is_listed and now >= self._warned_at + WARN_SECONDS:
            self._warned_at = now
            log.warning('%s', unreachable_text(node_id, self.attempts, error))
        first, most = self.config['reconnect_backoff_ms'], self.config['reconnect_backoff_max_ms']
        self._pause_ms = first
        if self._failures:
            grown = min(most, first * 2 ** min(self._failures, 20))
            self._pause_ms = grown * random.uniform(0.8, 1.2)
        self._failures += 1

    def _is_late(self, since: float) -> bool:
        late: bool = time.time() > since + self.config['request_timeout_ms'] / 1000
        return late

    def _become(self, state: str) -> None:
        self.state = state
        if state is ConnectionStates.CONNECTED:
            self._failures = 0
            self._pause_ms = 0
            self._warned_at = -math.inf
            self.attempts.clear()
        if self._tell is not None:
            busy, self._busy = self._busy, None  # an error of the callback interrupts no step
            self._tell(self)
            self._busy = busy

    # ------------------------------------------------------------ connecting

    def connect(self) -> Any:
        """Start connecting, or continue; return the state.

        One step a call, without waiting except for name look-ups. Raises socket.gaierror for a name
        that cannot be resolved; ssl.SSLError for a TLS handshake that fails;
        SaslAuthenticationFailedError and similar errors for a login that is refused. If the broker
        closes the connection, the state is DISCONNECTED.
        """
        self.leave_parent()
        self.check_whole()
        busy = self._busy = object()
        try:
            if self.state is ConnectionStates.DISCONNECTED:
                self._open()
            if self.state is ConnectionStates.CONNECTING:
                self._try_to_connect()
            elif self.state is ConnectionStates.HANDSHAKE:
                self._go_on()
        except (OSError, KafkaError):
            self._busy = None
            raise
        if self._busy is busy:
            self._busy = None
        return self.state

    def check_whole(self) -> None:
        """Close a connection on which an exception from outside has interrupted a step.

        Pending requests fail, and the next connect() starts again.
        """
        mark = self._busy
        if mark is not None and not is_in_call('busy', mark):
            self._busy = None
            self.close(KafkaConnectionError('%s: the last call was interrupted' % self))

    def _connect_within(self, timeout: Optional[float]) -> bool:
        if timeout is None or timeout == float('inf'):
            timeout = self.config['request_timeout_ms'] / 1000
        ends_at = time.monotonic() + timeout
        tries = 0
        while not self.connected() and time.monotonic() < ends_at:
            if self.disconnected():
                if tries and tries >= self.addresses_left + 1:
                    break
                tries += 1
            self.connect()
            if self.connecting():
                time.sleep(min(WAIT_SECONDS, max(0, ends_at - time.monotonic())))
        return self.connected()

    def _open(self) -> None:
        self.last_attempt = time.time()
        self._is_asked = self.asks_versions
        self._forget()
        self._hand_over()
        try:
            self._socket.begin(self._is_asked)
        except NameNotResolved as error:
            self.last_failure = time.time()
            self._note_failure(error.__cause__ or error, 'DNS')
            raise
        except KafkaConnectionError as error:
            self.host = self._socket.host
            failure = self._named(error)
            self.last_failure = time.time()
            self._note_failure(failure, 'TCP')
            raise failure from error.__cause__
        self._opened()

    def _named(self, error: KafkaError) -> KafkaConnectionError:
        """Return an error of creating a socket with the connection in its text."""
        return KafkaConnectionError('%s: %s' % (self, ' '.join(map(str, error.args))))

    def _hand_over(self) -> None:
        """Pass on the attributes, which programs may have assigned since the last time."""
        target = self._socket
        target.hostname, target.port, target.afi = self.hostname, self.port, self.afi
        target.config = self.config

    def _opened(self) -> None:
        self.host = self._socket.host
        log.debug('%s: connecting', self)
        self._become(ConnectionStates.CONNECTING)

    def _try_to_connect(self) -> None:
        try:
            is_connected = self._socket.is_tcp_connected()
        except NameNotResolved as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error.__cause__)))
            raise
        except OSError as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error.strerror)))
            return
        if is_connected:
            if self._socket.is_secured or self._is_asked:
                self._become(ConnectionStates.HANDSHAKE)
            self._take(self._socket.start)
        elif self._is_late(self.last_attempt):
            self.close(KafkaConnectionError('%s: not connected in time' % self))

    def _go_on(self) -> None:
        """Advance the connect conversation if bytes have arrived."""
        if not self._socket.is_talking:  # the state was assigned
            self._become(ConnectionStates.CONNECTED)
        else:
            self._take(self._socket.step)

    def _take(self, step: Callable[[], Progress]) -> None:
        """Take a step of the conversation, which may complete it or close the connection."""
        self._hand_over()
        try:
            progress = step()
        except OSError as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error)))
        except (ClosedAtVersions, SaslAuthenticationFailedError) as error:
            self.close(error)
            raise
        except KafkaError as error:
            if self._socket.sock is None:  # the conversation needs another one: none was created
                failure = self._named(error)
                self.close(failure)
                raise failure from error.__cause__
            has_ended = self._socket.peer_ended
            self.close(error)
            if not has_ended:
                told = as_ssl_error(error)
                raise told from (error.__cause__ if told is error else error)
        else:
            self._note_progress(progress)

    def _note_progress(self, progress: Progress) -> None:
        if progress is Progress.DONE:
            if self._socket.versions is not None:
                self._learn(self._socket.versions)
            self._become(ConnectionStates.CONNECTED)
        elif progress is Progress.REOPENED:
            self._forget()
            self._opened()
        elif progress is Progress.IDLE and self._is_late(self.last_attempt):
            self.close(KafkaConnectionError('%s: no answer in time while connecting' % self))

    def _learn(self, versions: BrokerVersions) -> None:
        self._framing = Framing(versions.ranges)

    # ------------------------------------------------------------ closing

    def close(self, error: Optional[BaseException] = None) -> None:
        """Close the connection and fail every pending future, with `error` or ConnectionError.

        The next connect() connects again.
        """
        if error is None:
            error = KafkaConnectionError('%s was closed' % self)
        elif self.connecting():
            is_open = self.state is ConnectionStates.HANDSHAKE and self._socket.sock is not None
            self._note_failure(error, 'ApiVersions' if is_open else 'TCP')
        if not self.disconnected():
            log.debug('%s: closing: %s', self, error)
            self._become(ConnectionStates.DISCONNECTING)
            self._socket.close()
            self._forget()
            self.last_failure = time.time()
            self._become(ConnectionStates.DISCONNECTED)
        self._fail_all(error)

    def leave_parent(self) -> None:
        """Close a socket inherited through a fork: its responses belong to the parent."""
        if self._socket.is_inherited:
            self.close(KafkaConnectionError('%s belongs to the process that forked' % self))

    # ------------------------------------------------------------ sending

    def send(
        self, request: Any, expect_response: bool = True, blocking: Optional[bool] = None
    ) -> Future:
        """Send a request struct; return the future of its response struct.

        Arguments: expect_response: False for a request that brokers do not answer, unless the
        struct itself says so; blocking: accepted for programs of 1.3 and later, whose recv()
        returns lists.

        The future has already failed with NodeNotReadyError while it connects, ConnectionError if
        it is not connected or sending fails, TooManyInFlightRequests at the limit,
        UnsupportedVersionError for a request that the broker serves in no version. Raises
        ValueError or ProtocolError for a struct whose values cannot be sent. Writing may block
        until the system has taken the bytes, at most request_timeout_ms.
        """
        self._gives_lists = self._gives_lists or blocking is not None
        self.leave_parent()
        self.check_whole()
        future = Future()
        if self.connecting():
            return future.failure(NodeNotReadyError(str(self)))
        if not self.connected():
            return future.failure(KafkaConnectionError(str(self)))
        if not self.can_send_more():
            return future.failure(TooManyInFlightRequests(str(self)))
        asks = getattr(request, 'expect_response', None)
        is_answered = expect_response and (asks is None or asks())
        return self._send(request, is_answered, future)

    def _send(self, request: Any, expect_response: bool, future: Future) -> Future:
        correlation_id = (self._correlation_id + 1) % 2**31
        framing = self._framing or Framing(None)
        try:
            self._renew_login()
            data, expected = framing.frame(
                request, correlation_id, self.config['client_id'], int(time.time() * 1000)
            )
        except KafkaError as error:
            return future.failure(error)
        busy = self._busy = object()  # noqa: F841 - found by check_whole()
        self._correlation_id = correlation_id
        self._socket.config = self.config  # it has the time-out
        try:
            self._socket.write(data)
        except (OSError, KafkaConnectionError) as error:
            self._busy = None
            failure = KafkaConnectionError('%s: %s' % (self, error))
            self.close(failure)
            return future.failure(failure)
        if self._metrics is not None:
            self._metrics.sent(len(data))
        if not expect_response:
            self._busy = None
            return future.success(None)
        entry = InFlightRequest(request, request.RESPONSE_TYPE, correlation_id, future, time.time())
        self.in_flight_requests.append(entry)
        self._expected.append((entry, expected))
        self._busy = None
        if not expected.frames_missing:  # no frame had to be sent
            self._complete()
        return future

    def send_pending_requests(self) -> bool:
        """Return True if everything was written (1.4): send() writes at once."""
        self._gives_lists = True
        return self.connected()

    def _renew_login(self) -> None:
        """Re-authenticate if it is due, after the pending responses were read (KIP-368)."""
        renew_at = self._socket.renew_at
        if renew_at is None or time.monotonic() < renew_at:
            return
        limit = self.config['request_timeout_ms'] / 1000
        self._take_answers(time.monotonic() + limit)
        if self.in_flight_requests:
            self.close(KafkaConnectionError('%s: the login cannot be renewed' % self))
        if not self.connected():
            raise KafkaConnectionError(str(self))
        self._hand_over()
        try:
            if not self._socket.renew_login(limit):
                raise KafkaConnectionError('%s: the login is not ready in time' % self)
        except OSError as error:
            failure = KafkaConnectionError('%s: renewing the login: %s' % (self, error))
            self.close(failure)
            raise failure from error
        except KafkaError as error:
            self.close(error)
            raise

    def _take_answers(self, ends_at: float) -> None:
        """Wait for the pending responses; those for callers of recv() are kept for it."""
        while self.in_flight_requests and self.connected() and time.monotonic() < ends_at:
            answer = self._read()
            if answer is None:
                time.sleep(WAIT_SECONDS)
            elif self._gives_lists:
                self._early.append(answer)
            else:
                answer[1].success(answer[0])

    # ------------------------------------------------------------ receiving

    def recv(self) -> Any:
        """Take one step of reading, without waiting.

        Returns a response struct, after completing its future, or None. Programs that used an
        interface of 1.3 and later (connect_blocking(), ``blocking``) get a list of (response,
        future), maybe empty, and complete the futures themselves, as with these releases.

        A connection that ends, or a response that cannot be matched or decoded, closes the
        connection and fails the pending requests.
        """
        self.check_whole()
        if self._gives_lists:
            return self._recv_all()
        busy = self._busy = object()
        answer, response = self._recv_one(), None
        if answer is not None:
            response, future = answer
            future.success(response)
        self._answering = None
        if self._busy is busy:  # otherwise a callback has used the connection
            self._busy = None
        return response

    def _recv_all(self) -> List[Any]:
        answers: List[Any] = []
        while True:
            answer = self._recv_one()
            if answer is None:
                return answers
            answers.append(answer)

    def _recv_one(self) -> Optional[Tuple[Any, Future]]:
        self.leave_parent()
        if self._early:
            return self._early.popleft()
        if not self.connected():
            if not self.connecting():
                self._fail_all(KafkaConnectionError('%s is not connected' % self))
            return None
        answer = self._read()
        if answer is None and self.requests_timed_out():
            self.close(
                RequestTimedOutError(
                    '%s: no answer within %s ms' % (self, self.config['request_timeout_ms'])
                )
            )
        return answer

    def _read(self) -> Optional[Tuple[Any, Future]]:
        """Read the length, then the rest, as far as available."""
        answer = self._next_answer()
        for _ in range(2):
            if answer is not None or not self.connected():
                break
            if not self._read_some():
                break
            answer = self._next_answer()
        return answer

    def _read_some(self) -> bool:
        if self._socket.sock is None:  # the state was assigned by the program
            self.close(KafkaConnectionError('%s has no socket' % self))
            return False
        try:
            data = self._socket.receive(self._frames.missing_bytes)
        except (OSError, KafkaError) as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error)))
            return False
        if data is None:
            return False
        if not data:
            self.close(KafkaConnectionError('%s: the broker closed the connection' % self))
            return False
        self._frames.receive_data(data)
        return True

    def _next_answer(self) -> Optional[Tuple[Any, Future]]:
        try:
            frame = self._frames.next_frame()
        except KafkaError as error:
            self.close(error)
            return None
        return None if frame is None else self._take_frame(frame)

    def _take_frame(self, frame: bytes) -> Optional[Tuple[Any, Future]]:
        if not self._expected:
            self.close(CorrelationIdError('%s: an answer without a request' % self))
            return None
        entry, expected = self._expected[0]
        found = int.from_bytes(frame[:4], 'big', signed=True) if len(frame) >= 4 else None
        if found != expected.correlation_id and not self._is_excused(expected, found):
            error = CorrelationIdError(
                '%s: an answer with correlation id %s where %s was next'
                % (self, found, expected.correlation_id)
            )
            self._forget_oldest()
            entry.future.failure(error)
            self.close(error)
            return None
        expected.frames.append(frame)
        return None if expected.frames_missing else self._answer()

    def _is_excused(self, expected: Expected, found: Optional[int]) -> bool:
        """Brokers of 0.8.2 answer a request for the coordinator with correlation id 0."""
        is_old = self.config['api_version'] == (0, 8, 2)
        return is_old and found == 0 and expected.api_key == _COORDINATOR

    def _forget_oldest(self) -> Any:
        entry, _ = self._expected.popleft()
        for each in self.in_flight_requests:
            if each is entry:
                self.in_flight_requests.remove(each)
                break
        return entry

    def _answer(self) -> Optional[Tuple[Any, Future]]:
        """Return the response to the oldest request, once all its frames are there."""
        entry, expected = self._expected[0]
        if not self._gives_lists:  # programs that get lists complete the futures themselves
            self._answering = entry.future
        self._forget_oldest()
        try:
            response = expected.read()
        except (KafkaError, ValueError, TypeError, LookupError, ArithmeticError) as error:
            failure = UnknownError('%s: an answer that cannot be read: %s' % (self, error))
            failure.__cause__ = error
            entry.future.failure(failure)
            self.close(failure)
            return None
        if self._metrics is not None:
            self._count(entry, expected, response)
        return response, entry.future

    def _count(self, entry: Any, expected: Expected, response: Any) -> None:
        assert self._metrics is not None
        size = sum(len(each) for each in expected.frames)
        throttle_ms = getattr(response, 'throttle_time_ms', None)
        if throttle_ms is None:
            throttle_ms = getattr(response, 'thottle_time_ms', None)  # as 1.x spelt it
        self._metrics.answered(size, max(0.0, time.time() - entry.timestamp), throttle_ms)

    def _complete(self) -> None:
        answer = self._answer()
        if answer is not None:
            answer[1].success(answer[0])

    def _fail_all(self, error: BaseException) -> None:
        self._expected.clear()
        waiting = [getattr(entry, 'future', None) for entry in self.in_flight_requests]
        self.in_flight_requests.clear()
        answering, self._answering = self._answering, None
        for future in [*waiting, answering]:
            if future is not None and not future.is_done:
                future.failure(error)
                error = unraised_copy(error)  # for the next one

    # ------------------------------------------------------------ the broker's version

    def check_version(self, timeout: float = 2, strict: bool = False) -> ReleaseName:
        """Return the release of the broker; connect if needed, wait at most `timeout` seconds.

        The release is the newest that its versions allow. Pending responses are read first. The
        result is text, such as '0.9', that also compares as a tuple: (0, 9). strict has no effect.
        Raises NodeNotReadyError if there is no connection, UnrecognizedBrokerVersion if the broker
        does not answer.
        """
        ends_at = time.monotonic() + timeout
        if self._framing is None:
            self._ask_versions(ends_at)
        assert self._framing is not None
        return ReleaseName(release_of(self._framing.ranges))

    def _ask_versions(self, ends_at: float) -> None:
        was_connected = self.connected()
        self._take_answers(ends_at)
        asked, self.asks_versions = self.asks_versions, True
        try:
            if self.connected():
                self._ask_on_this()
            while not self.connected() and time.monotonic() < ends_at:
                if self.disconnected() and (was_connected or self._is_asked):
                    break
                self.connect()
                if self.connecting():
                    time.sleep(WAIT_SECONDS)
        except (KafkaConnectionError, OSError) as error:
            raise UnrecognizedBrokerVersion('%s: %s' % (self, error)) from error
        finally:
            self.asks_versions = asked
        if self._framing is None:
            is_reached = was_connected or self.state is ConnectionStates.HANDSHAKE
            self.close()
            kind = UnrecognizedBrokerVersion if is_reached else NodeNotReadyError
            raise kind('%s gives no answer' % self)

    def _ask_on_this(self) -> None:
        self.last_attempt = time.time()
        self._is_asked = True
        self._become(ConnectionStates.HANDSHAKE)
        self._take(self._socket.ask_versions)
