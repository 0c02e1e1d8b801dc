"""A socket that is opened step by step, each time its user calls; the base of BrokerConnection.

Owns: the socket and the states of a connection, addresses tried one after the other, the steps up
to the first request (net/steps.py) and what their failures mean, closing. Does not own: requests
and their answers (broker_connection.py).

The states and who moves them::

    DISCONNECTED -connect()-> CONNECTING -connect()-> [HANDSHAKE -connect()->] CONNECTED
    any -close(), or an error-> DISCONNECTING -> DISCONNECTED
"""

from __future__ import annotations

import errno
import inspect
import logging
import math
import os
import random
import socket
import time
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

from kafka import config as options
from kafka.blocking.request_frames import Framing
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafka.internals.running_calls import is_in_call
from kafka.net import proxy
from kafka.net.addresses import MAX_PORT
from kafka.net.attempts import Attempt, hint_for, stage_of, unreachable_text
from kafka.net.loop.helpers import Work
from kafka.net.sasl.login import MOST_LOGINS, ClosedAtVersions
from kafka.net.security import SecuritySettings
from kafka.net.steps import Reopen, Steps, Taking, VersionQuestion
from kafka.net.tls import as_ssl_error
from kafka.protocol.frames import FrameReader
from kafka.protocol.negotiation import BrokerVersions

__all__ = ['ConnectionStates', 'NameNotResolved', 'SteppedSocket']

#: What connect() raises for a name that cannot be looked up.
NameNotResolved = socket.gaierror

log = logging.getLogger('kafka.conn')

READ_BYTES = 256 * 1024  # at once, of encrypted bytes
MOST_ATTEMPTS = 10  # that are remembered
WAIT_SECONDS = 0.005  # between two looks at a connection that is being made
NEVER_MS = 999999999
WARN_SECONDS = 60.0  # between two warnings that a broker cannot be reached

# What connect_ex() says while it goes on; 10022 is Windows'.
_UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, 10022)

Address = Tuple[int, str, int]


class ConnectionStates:
    """The states of a connection; compare by identity."""

    DISCONNECTING = '<disconnecting>'
    DISCONNECTED = '<disconnected>'
    CONNECTING = '<connecting>'
    HANDSHAKE = '<handshake>'
    CONNECTED = '<connected>'
    # Of 1.4 to 2.3, for programs that ask for them: a login is part of HANDSHAKE here.
    AUTHENTICATING = '<authenticating>'
    API_VERSIONS_SEND = '<checking_api_versions_send>'
    API_VERSIONS_RECV = '<checking_api_versions_recv>'


def _telling(callback: Any) -> Callable[[Any], Any]:
    """Return what tells a program of a connection's new state.

    That of 2.x takes node id, socket and connection, that of 1.x the connection alone.
    """
    try:
        inspect.signature(callback).bind(None, None, None)
    except (TypeError, ValueError):
        told: Callable[[Any], Any] = callback
        return told
    return lambda conn: callback(conn.config['node_id'], conn._sock, conn)


class SteppedSocket:
    """A connection to one broker up to the point where requests can be sent.

    Attributes: attempts: those to connect that failed since the last one that went well, as
    kafka.net.attempts.Attempt, the latest at the end.
    """

    def __init__(self, host: str, port: int, afi: int, **configs: Any) -> None:
        self.host = self.hostname = host
        self.port = port
        self.afi = afi
        self.config = options.resolve(options.CONNECTION, configs)
        security = SecuritySettings.from_options(self.config)
        if security.tls is not None:
            security.context()  # what cannot be used is told now
        self._security = None if security.is_plain else security
        self.state: Any = ConnectionStates.DISCONNECTED
        self.last_attempt: float = 0
        self.last_failure: float = 0
        self.attempts: Deque[Attempt] = deque(maxlen=MOST_ATTEMPTS)
        self._failures = 0  # one after the other
        self._warned_at = -math.inf
        self._pause_ms: float = 0  # before the next attempt
        callback = self.config['state_change_callback']
        self._tell = None if callback is None else _telling(callback)
        self.asks_versions = False  # whether that is one of the steps of connecting
        self._addresses: List[Address] = []
        self._sock: Any = None
        self._process = 0  # whose the socket is
        self._target: Any = None  # what the socket connects to
        self._question: Optional[VersionQuestion] = None
        self._logins = 0
        self._is_bare = False
        self._forget()

    #: Mark of the call that connects, sends or reads now, or was ended by an exception within.
    _busy: Any = None

    def _forget(self) -> None:
        """Forget what belongs to one socket."""
        self._steps: Optional[Steps] = None
        self._taking: Optional[Taking] = None
        self._work: Optional[Work] = None  # what the steps wait for, besides bytes
        self._frames = FrameReader(self.config['receive_message_max_bytes'])
        self._framing: Optional[Framing] = None

    def __repr__(self) -> str:
        where = self.hostname, self.host, self.port
        return '<BrokerConnection host=%s/%s port=%s>' % where

    # ------------------------------------------------------------ looking

    def connected(self) -> bool:
        """Tell whether requests can be sent."""
        return self.state is ConnectionStates.CONNECTED

    def connecting(self) -> bool:
        """Tell whether connect() has begun and is not done."""
        return self.state in (ConnectionStates.CONNECTING, ConnectionStates.HANDSHAKE)

    def disconnected(self) -> bool:
        """Tell whether there is no connection and none under way."""
        return self.state is ConnectionStates.DISCONNECTED

    def blacked_out(self) -> bool:
        """Tell whether it is disconnected and too early for another attempt."""
        return self.disconnected() and self._backoff_ms() > 0

    def connection_delay(self) -> float:
        """Return how many ms to wait before it is worth calling (1.3)."""
        if self.disconnected():
            return self._backoff_ms()
        return 0 if self.connecting() else NEVER_MS

    def _backoff_ms(self) -> float:
        passed_ms = (time.time() - self.last_attempt) * 1000
        left: float = max(0, (self._pause_ms or self.config['reconnect_backoff_ms']) - passed_ms)
        return left

    @property
    def addresses_left(self) -> int:
        """How many addresses of the name have not been tried in this round."""
        return len(self._addresses)

    def _note_failure(self, error: BaseException, stage: str) -> None:
        """Remember an attempt that failed; the next one is made later each time (KIP-144)."""
        stage = stage_of(error, stage)
        ip = None if stage == 'DNS' else self.host
        seconds = max(0.0, time.time() - self.last_attempt)
        where = '%s:%s' % (self.hostname, self.port)
        self.attempts.append(Attempt(where, ip, stage, seconds, error, hint_for(stage, error)))
        now, node_id = time.monotonic(), self.config['node_id']
        is_listed = isinstance(node_id, int)  # by a broker: those of the program are told otherwise
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

    def _become(self, state: Any) -> None:
        self.state = state
        if state is ConnectionStates.CONNECTED:
            self._failures = 0
            self._pause_ms = 0
            self._warned_at = -math.inf
            self.attempts.clear()
        if self._tell is not None:
            busy, self._busy = self._busy, None  # what the program raises there parts no step
            self._tell(self)
            self._busy = busy

    # ------------------------------------------------------------ connecting

    def connect(self) -> Any:
        """Begin to connect, or go on with it; return the state.

        One step a call, without waiting, but for names that have to be looked up. Raises
        socket.gaierror for a name that cannot be; ssl.SSLError for a TLS handshake that fails;
        SaslAuthenticationFailedError and its kin for a login that is refused. A broker that closes
        leaves it disconnected.
        """
        self._leave_parent()
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
        """Close a connection on which an exception from outside has left a step half done.

        Then what waits for an answer fails, and the next connect() begins again.
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
        self._logins = 0
        self._question = None
        if self.asks_versions:
            self._question = VersionQuestion(self.config['client_id'])
        self._open_socket()

    def _open_socket(self) -> None:
        family, self.host, port = self._next_address()
        log.debug('%s: connecting', self)
        self._forget()
        try:
            self._sock = sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            failure = KafkaConnectionError('%s: cannot create a socket: %s' % (self, error))
            self.last_failure = time.time()
            self._note_failure(failure, 'TCP')
            raise failure from error
        self._process = os.getpid()
        for option in self._socket_options():
            sock.setsockopt(*option)
        sock.setblocking(False)
        self._target = self._at_proxy() or (self.host, port)
        self._become(ConnectionStates.CONNECTING)

    def _socket_options(self) -> List[Any]:
        chosen = list(self.config['socket_options'] or ())
        for name, number in (
            ('receive_buffer_bytes', socket.SO_RCVBUF),
            ('send_buffer_bytes', socket.SO_SNDBUF),
        ):
            if self.config[name] is not None:
                chosen.append((socket.SOL_SOCKET, number, self.config[name]))
        return chosen

    def _at_proxy(self) -> Optional[Tuple[str, int]]:
        if self._security is None or self._security.proxy is None:
            return None
        address = proxy.parse(self._security.proxy)
        return address.host, address.port

    def _next_address(self) -> Address:
        if not 0 <= int(self.port) <= MAX_PORT:  # which the system would take modulo 65536
            told = '%s:%s: ports end at %d' % (self.hostname, self.port, MAX_PORT)
            error = socket.gaierror(socket.EAI_SERVICE, told)
            self.last_failure = time.time()
            self._note_failure(error, 'DNS')
            raise error
        if self.afi != socket.AF_UNSPEC or self._names_stay():
            return (
                socket.AF_INET if self.afi == socket.AF_UNSPEC else self.afi,
                self.hostname,
                self.port,
            )
        if not self._addresses:
            try:
                found = socket.getaddrinfo(self.hostname, self.port, 0, socket.SOCK_STREAM)
            except socket.gaierror as error:
                self.last_failure = time.time()
                self._note_failure(error, 'DNS')
                raise socket.gaierror(
                    error.args[0],
                    'the name of %s:%s cannot be resolved: %s'
                    % (self.hostname, self.port, error.args[-1]),
                ) from error
            self._addresses = [(each[0], str(each[4][0]), int(each[4][1])) for each in found]
        return self._addresses.pop(0)

    def _names_stay(self) -> bool:
        """Tell whether the name of the broker is for a proxy to look up."""
        security = self._security
        return (
            security is not None
            and security.proxy is not None
            and proxy.resolves_names(security.proxy)
        )

    def _try_to_connect(self) -> None:
        try:
            code = self._sock.connect_ex(self._target)
        except socket.gaierror as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error)))
            raise socket.gaierror(
                error.args[0], 'the name of %s:%s cannot be resolved' % (self.hostname, self.port)
            ) from error
        except OSError as error:
            code = error.errno
        if code in (0, errno.EISCONN):
            self._start_steps()
        elif code not in _UNDER_WAY:
            reason = os.strerror(code) if isinstance(code, int) else code
            self.close(KafkaConnectionError('%s: %s' % (self, reason)))
        elif self._is_late(self.last_attempt):
            self.close(KafkaConnectionError('%s: not connected in time' % self))

    def _start_steps(self) -> None:
        client_id = self.config['client_id']
        self._steps = Steps(self._security, self.hostname, self.port, client_id, self._write_raw)
        if self._security is None and self._question is None:
            self._become(ConnectionStates.CONNECTED)
            return
        self._become(ConnectionStates.HANDSHAKE)
        self._advance(self._steps.take(self.host, self._is_bare, self._question))

    def _advance(self, taking: Taking) -> None:
        """Take the first steps, as far as they go without anything from the broker."""
        self._taking = taking
        self._step(None)

    def _go_on(self) -> None:
        """Take a step if bytes have come."""
        if self._taking is None:  # the state was assigned
            self._become(ConnectionStates.CONNECTED)
            return
        if self._work is not None:
            if self._work.is_done:
                self._step(None)
            else:
                self._look_at_the_clock()
            return
        try:
            data = self._sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            self._look_at_the_clock()
            return
        except OSError as error:
            log.debug('%s: %s', self, error)
            data = b''
        self._step(data)

    def _look_at_the_clock(self) -> None:
        silent_at = None if self._question is None else self._question.silent_at
        if silent_at is not None and time.monotonic() >= silent_at:
            self._step(b'')  # which counts as an answer; another connection follows
        elif self._is_late(self.last_attempt):
            self.close(KafkaConnectionError('%s: no answer in time while connecting' % self))

    def _step(self, data: Optional[bytes]) -> None:
        """Take a step. Arguments: data: that has come; None for another reason to go on."""
        assert self._taking is not None
        try:
            self._work = self._taking.send(data)  # type: ignore[arg-type]  # None starts it
        except StopIteration:
            self._be_connected()
        except Reopen:
            self._reopen()
        except OSError as error:
            self.close(KafkaConnectionError('%s: %s' % (self, error)))
        except (ClosedAtVersions, SaslAuthenticationFailedError) as error:
            self._log_in_again(error)
        except KafkaError as error:
            self.close(error)
            if data != b'':
                told = as_ssl_error(error)
                raise told from (error.__cause__ if told is error else error)

    def _be_connected(self) -> None:
        assert self._steps is not None
        self._taking = None
        found = self._steps.versions
        if found is None and self._question is not None:
            found = self._question.versions
        if found is not None:
            self._learn(found)
        self._become(ConnectionStates.CONNECTED)

    def _learn(self, versions: BrokerVersions) -> None:
        self._framing = Framing(versions.ranges)

    def _reopen(self) -> None:
        """Go on with the steps on another socket, to the same address."""
        self._drop_socket()
        if self.afi == socket.AF_UNSPEC and not self._names_stay():
            family = socket.AF_INET6 if ':' in self.host else socket.AF_INET
            self._addresses.insert(0, (family, self.host, self.port))
        self._open_socket()

    def _log_in_again(self, error: KafkaError) -> None:
        """Try another login where the refusal says that it may go otherwise."""
        is_old = isinstance(error, ClosedAtVersions) and self._uses_gssapi()
        self._logins += 1
        if self._logins < MOST_LOGINS and (is_old or getattr(error, 'login_again', False)):
            self._is_bare = self._is_bare or is_old
            self._reopen()
            return
        self.close(error)
        raise error

    def _uses_gssapi(self) -> bool:
        return self._security is not None and self._security.uses_gssapi

    # ------------------------------------------------------------ bytes

    def _write(self, data: bytes) -> None:
        if self._steps is None:
            self._write_raw(data)
        else:
            self._steps.write(data)

    def _write_raw(self, data: bytes) -> None:
        """Write all bytes, waiting for the system at most as long as a request may take."""
        sock = self._sock
        if sock is None:
            raise KafkaConnectionError('there is no socket')
        self._set_waiting(self.config['request_timeout_ms'] / 1000)
        try:
            rest = memoryview(data)
            while rest:
                sent = sock.send(rest)
                if not sent:
                    raise ConnectionResetError('nothing more can be written')
                rest = rest[sent:]
        finally:
            sock.setblocking(False)

    def _set_waiting(self, seconds: float) -> None:
        """Let calls of the socket wait; one that a program brought may know no limits."""
        limit = getattr(self._sock, 'settimeout', None)
        if limit is None:
            self._sock.setblocking(True)
        else:
            limit(seconds)

    # ------------------------------------------------------------ closing

    def close(self, error: Optional[BaseException] = None) -> None:
        """Close the connection and fail every future that waits, with `error` or ConnectionError.

        The next connect() connects again.
        """
        if error is None:
            error = KafkaConnectionError('%s was closed' % self)
        elif self.connecting():
            is_open = self.state is ConnectionStates.HANDSHAKE
            self._note_failure(error, 'ApiVersions' if is_open else 'TCP')
        if not self.disconnected():
            log.debug('%s: closing: %s', self, error)
            self._become(ConnectionStates.DISCONNECTING)
            self._drop_socket()
            self._forget()
            self.last_failure = time.time()
            self._become(ConnectionStates.DISCONNECTED)
        self._fail_all(error)

    def _fail_all(self, error: BaseException) -> None:
        """Tell what waits for answers that none will come."""
        raise NotImplementedError

    def _drop_socket(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            try:
                sock.close()
            except OSError as error:
                log.debug('%s: closing the socket: %s', self, error)

    def _leave_parent(self) -> None:
        """Give up a socket that came with a fork: its answers belong to the parent."""
        if self._sock is not None and self._process != os.getpid():
            self.close(KafkaConnectionError('%s belongs to the process that forked' % self))
