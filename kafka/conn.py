"""KafkaConnection: a blocking connection to one broker, the socket of the 0.9.5 client.

Connects, reads frames, applies time-outs, closes; requests the broker's versions when they are
first needed, with the connect conversation (kafka/net/connect.py). Requests of old versions are
recognised, and translated by protocol/translation.py if a broker dropped those versions; all other
bytes pass unchanged. A secured connection is a SecuredSocket (kafka/net/blocking.py). Thread-local:
each thread has a socket of its own.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Deque,
    NamedTuple,
    NoReturn,
    Optional,
    Tuple,
    Type,
    Union,
)

from kafka.errors import CorrelationIdError, FrameError, KafkaConnectionError, KafkaError
from kafka.internals.lazy_imports import import_late
from kafka.net.addresses import (
    DEFAULT_KAFKA_PORT,
    MAX_PORT,
    collect_hosts,
    get_ip_port_afi,
)
from kafka.net.arguments import check_types, security_of
from kafka.net.idle_check import IdleCheck
from kafka.protocol.api import ApiKey
from kafka.protocol.frames import DEFAULT_MAX_FRAME_BYTES, FrameReader
from kafka.protocol.frames import frame as framed
from kafka.protocol.negotiation import BrokerVersions, Ranges
from kafka.protocol.probe import VERSIONS_TRIED, Probe, ProbeResult, probe_versions
from kafka.protocol.session import ResponseReceived, Role, Session, is_answered
from kafka.protocol.translation import (
    OldRequest,
    Translation,
    Translator,
    Unread,
    parse_old_request,
)
from kafka.protocol.unwritten import Unwritten

if TYPE_CHECKING:
    from kafka.evented.broker_connection import BrokerConnection, ConnectionStates, InFlightRequest
    from kafka.net.connect import Steps
    from kafka.net.security import SecuritySettings

__all__ = [
    'BrokerConnection',
    'ConnectionStates',
    'DEFAULT_KAFKA_PORT',
    'DEFAULT_SOCKET_TIMEOUT_SECONDS',
    'InFlightRequest',
    'KafkaConnection',
    'collect_hosts',
    'get_ip_port_afi',
]

log = logging.getLogger(__name__)
DEFAULT_SOCKET_TIMEOUT_SECONDS = 120

MAX_READ_BYTES = 4096
MAX_FRAME_BYTES = 2**31 - 1  # the largest value of the length field

# The maximum number of pending responses that are remembered, more than any client has at once. The
# limit is for programs that send unrecognised requests without a response.
MAX_WAITING = 1000


class _Waiting(NamedTuple):
    """A request whose response was not read yet."""

    correlation_id: Optional[int]  # None: the bytes were too short for an id
    recognised: bool  # False: it may be a request without a response
    translation: Optional[Translation]  # None: the response passes unchanged


class _Closer:
    """Closes the socket of a connection that is garbage-collected, or left open by a thread.

    No other code can in the latter case: the socket belongs to the state of the connection in that
    thread, and a thread such as a commit timer does not know that it opened a socket.
    """

    def __init__(self, sock: Any) -> None:
        self.sock = sock  # None: it was closed normally

    def __del__(self) -> None:
        if self.sock is not None:
            try:
                self.sock.close()
            except OSError:
                pass


class KafkaConnection(threading.local):
    """A blocking connection to one broker, connected by the constructor.

    Arguments:
        host, port: the broker; the host is passed to ``socket.create_connection`` unchanged.
        timeout: seconds for connecting, each send and each 4 KiB (or less) of a response; None:
            no limit.
        options: the security options, as in 1.x to 3.x: kafka.net.security.OPTIONS.

    Raises kafka.errors.KafkaConnectionError if it cannot connect, TypeError or ValueError, naming
    the argument, for an invalid one.

    The object is thread-local: every other thread that uses it gets a connection of its own,
    opened at that moment. After any error of the connection the socket is closed; the next use
    connects again.

    A request of an old version (Produce 0-2, Fetch 0-3, ListOffsets 0, Metadata 0, OffsetCommit
    0-1, OffsetFetch 0-1, ConsumerMetadata 0) is recognised in send(): if the broker no longer
    serves it, or serves Produce and Fetch with record batches, it is sent in a later version, and
    recv() returns the response in the layout of the old one. All other bytes pass unchanged.

    From 0.9.5.
    """

    def __init__(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        **options: Any,
    ) -> None:
        super().__init__()
        check_types(host, port, timeout)
        security = security_of('KafkaConnection', options)
        self._assign(host, port, timeout, security)
        self.reinit()

    def _assign(
        self, host: str, port: int, timeout: Optional[float], security: Optional[SecuritySettings]
    ) -> None:
        self._security = security
        self.host = host
        self.port = port
        self.timeout = timeout
        self._sock: Any = None
        self._process = 0  # id of the process that owns the socket
        self.is_asked: Any = None  # mark of a client's call that waits for a response
        self.ahead_bytes = 0  # bytes per read, beyond the frame; 0: as in 0.9.5
        self._closer: Optional[_Closer] = None
        self._idle: Optional[IdleCheck] = None  # of the socket
        # The versions inferred from an old broker's behaviour, since it has no ApiVersions: kept
        # until an error, because the probe costs connections and the broker may be replaced after
        # an error.
        self._inferred: Optional[BrokerVersions] = None
        self._client_id: Optional[str] = None
        self._versions_version = VERSIONS_TRIED[0]  # of ApiVersions, for the next probe
        self._remarks = {''}  # warnings already logged
        self._forget()

    def _forget(self) -> None:
        """Reset the state that belongs to one connection."""
        # True while bytes are sent or read; it stays True if an exception has interrupted that.
        self._is_busy = False
        self._has_answered = False
        self._reader = FrameReader()
        self._session = Session(Role.CLIENT)
        self._translator: Optional[Translator] = None
        self._waiting: Deque[_Waiting] = deque(maxlen=MAX_WAITING)
        self._read_early: Deque[bytes] = deque()  # responses that arrived during the version probe

    def __repr__(self) -> str:
        return '<KafkaConnection host=%s port=%s>' % (self.host, self.port)

    def __reduce__(self) -> Tuple[Any, ...]:
        # Copies, deep ones and those for other processes, are made as by copy().
        return _unconnected, (type(self), self.host, self.port, self.timeout, self._security)

    # ------------------------------------------------------------ public

    def send(self, request_id: int, payload: bytes) -> None:
        """Send one request, length prefix included; connect first if necessary.

        Arguments: request_id: for the log only; payload: the bytes.

        Raises TypeError if payload is not bytes; KafkaConnectionError if the connection fails;
        UnsupportedVersionError if the broker serves neither this old request nor a later version of
        it; ChecksumError or ProtocolError for a damaged message set with acks=0, since no response
        could report it; UnsupportedCodecError if a message set needs a codec that is not installed.
        """
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError('payload must be bytes, not %s' % type(payload).__name__)
        if log.isEnabledFor(logging.DEBUG):
            log.debug('About to send %d bytes to %s, request %s', len(payload), self, request_id)
        self.get_connected_socket()
        passes = self._translator is not None and self._translator.passes(payload)
        old = None if passes else parse_old_request(payload)
        if old is not None:
            self._send_old(old, payload)
            return
        self._is_busy = True
        self._write(payload)
        correlation_id = int.from_bytes(payload[8:12], 'big', signed=True)
        self._waiting.append(_Waiting(correlation_id, passes, None))
        self._is_busy = False

    def send_unwritten(self, request_id: int, request: Unwritten) -> None:
        """Send a request that was not encoded yet; as send() does with its bytes."""
        self.get_connected_socket()
        translator = self._translator or self._learn_for(request.old)
        if translator.raises(request.old):
            self._send_old(request.old, b'')
        else:
            self.send(request_id, request.write())

    def recv(self, request_id: int) -> bytes:
        """Read one response and return its body, without the length.

        Arguments: request_id: for the log only.

        Raises KafkaConnectionError if the connection fails, times out or is closed by the broker,
        FrameError (a KafkaConnectionError) for bytes that no broker sends; UnsupportedCodecError or
        ProtocolError if fetched records cannot be decoded.
        """
        answer = self.recv_unread(request_id)
        return answer.write() if isinstance(answer, Unread) else answer

    def recv_unread(self, request_id: int) -> Union[bytes, Unread]:
        """Read one response as recv(), but return a translated one before it is encoded."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug('Reading a response from %s, request %s', self, request_id)
        if self._is_inherited():
            self.close()
            raise KafkaConnectionError(
                'Kafka @ %s:%s answers the process that asked: this one was forked meanwhile'
                % (self.host, self.port)
            )
        return self._next_answer()

    def _next_answer(self) -> Union[bytes, Unread]:
        first = self._waiting[0] if self._waiting else None
        if first is not None and first.translation is not None and not first.translation.requests:
            self._waiting.popleft()
            return first.translation.unread([])
        if self._is_busy:
            self._raise_connection_error(InterruptedError('the last request was interrupted'))
        self._is_busy = True
        frame = self._next_frame()
        translation = self._whose(frame)
        if translation is None:
            self._is_busy = False
            return frame
        return self._finish(translation, frame)

    def ask(self, request_id: int, request: Union[bytes, Unwritten]) -> Union[bytes, Unread]:
        """Send one request and read its response: send() or send_unwritten(), and recv_unread().

        If the call is interrupted, the caller has to close the connection: a response may still
        come.
        """
        if isinstance(request, Unwritten):
            self.send_unwritten(request_id, request)
            return self._next_answer()
        translator = self._translator
        if (
            translator is None
            or self._sock is None
            or self._waiting
            or self._read_early
            or self._is_busy
            or self._process != os.getpid()
            or not translator.passes(request)
            or log.isEnabledFor(logging.DEBUG)
            or self._is_ended()
        ):
            self.send(request_id, request)
            return self.recv_unread(request_id)
        # Fast path: nothing is pending and there will be a response (benchmarks/simple.py --only
        # default).
        self._is_busy = True
        try:
            self._sock.sendall(request)
            frame = self._read_frame(self.ahead_bytes or MAX_READ_BYTES)
        except OSError as error:
            self._raise_connection_error(error)
        if frame[:4] != request[8:12]:
            self._fail_answer(frame, int.from_bytes(request[8:12], 'big', signed=True))
        self._is_busy = False
        return frame

    def api_versions(self) -> Ranges:
        """Return what the broker serves, {api key: (lowest, highest version)}; probe it if needed.

        Versions that a broker lists but refuses are left out: Produce below 3 from 4.0 on, and
        offsets in ZooKeeper if there is none. Raises KafkaConnectionError, FrameError (a
        KafkaConnectionError) if the broker gives no usable response.
        """
        if self._translator is None:
            self.get_connected_socket()
            self._learn()
        return MappingProxyType(self._session.versions.ranges)

    def get_connected_socket(self) -> Any:
        """Return the socket; connect first if necessary. Raises KafkaConnectionError."""
        if self._is_busy or self._is_inherited():  # part of a request or response may be on it
            self.close()
        elif self._sock is not None and not self._waiting and self._is_ended():
            log.debug('%s was closed by the broker while it was idle: connecting again', self)
            self.close()
            self._inferred = None
        if self._sock is None:
            self._connect()
        elif self._security is not None and not self._waiting:
            self._renew_login()
        return self._sock

    def close(self) -> None:
        """Close the connection. The object can still be used: the next use connects again."""
        inherited = self._is_inherited()
        sock, self._sock = self._sock, None
        self._idle = None
        if self._closer is not None:
            self._closer.sock = None
        self._forget()
        if sock is None:
            return
        try:
            if not inherited:  # it would end the parent's connection
                sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was broken already
        try:
            sock.close()
        except OSError:
            pass

    def reinit(self) -> None:
        """Close the connection if there is one, and connect. Raises KafkaConnectionError."""
        self.close()
        self._connect()

    def copy(self) -> KafkaConnection:
        """Return an object for the same broker with the same options, not connected."""
        return _unconnected(type(self), self.host, self.port, self.timeout, self._security)

    # ------------------------------------------------------------ the socket

    def _is_inherited(self) -> bool:
        """Return True if the socket was inherited through a fork: responses would get mixed up."""
        return self._sock is not None and self._process != os.getpid()

    def _is_ended(self) -> bool:
        """Return True if the broker has closed the connection while it was idle."""
        return self._idle is not None and self._idle.is_ended()

    def _connect(self) -> None:
        log.debug('Connecting to %s:%s', self.host, self.port)
        self._forget()
        if str(self.port).isdecimal() and int(self.port) > MAX_PORT:
            # The resolver would take it modulo 65536, and so reach the port of another program.
            raise KafkaConnectionError(
                'Unable to connect to Kafka at %s:%s: ports end at %d'
                % (self.host, self.port, MAX_PORT)
            )
        try:
            self._sock = self._opened()
        except (OSError, OverflowError, UnicodeError) as error:
            # The last two: a port beyond 65535, a host that is not a valid name.
            raise KafkaConnectionError(
                'Kafka @ %s:%s went away or was never there: %s: %s'
                % (self.host, self.port, _stage_of(error), error)
            ) from error
        self._process = os.getpid()
        self._idle = IdleCheck(self._sock)
        self._closer = _Closer(self._sock)

    def _opened(self) -> Any:
        if self._security is None:
            return socket.create_connection((self.host, self.port), self.timeout)
        where = self.host, self.port, self.timeout, self._client_id
        return import_late('kafka.net.blocking').open_secured(self._security, *where)

    def _renew_login(self) -> None:
        try:
            self._sock.renew_login()
        except KafkaError:
            self.close()
            raise

    def _expect(self, asked_bytes: int) -> None:
        """Accept larger frames if the program has requested more than is usual."""
        limit = min(DEFAULT_MAX_FRAME_BYTES + asked_bytes, MAX_FRAME_BYTES)
        self._reader.max_frame_bytes = max(self._reader.max_frame_bytes, limit)

    def _write(self, data: bytes) -> None:
        try:
            self._sock.sendall(data)
        except OSError as error:
            self._raise_connection_error(error)

    def _next_frame(self) -> bytes:
        """Return the next frame, which may have been read already."""
        if self._read_early:
            return self._read_early.popleft()
        if self._sock is None:
            self.get_connected_socket()
        try:
            # If only one response is pending, it can be read with its length: no other follows it.
            alone = MAX_READ_BYTES if len(self._waiting) == 1 else 0
            return self._read_frame(self.ahead_bytes or alone)
        except OSError as error:
            self._raise_connection_error(error)

    def _read_frame(self, ahead_bytes: int) -> bytes:
        """Read one frame. Raises OSError, FrameError.

        Arguments: ahead_bytes: bytes per read, whichever frames they belong to; 0: no more than
        this frame.
        """
        reader, recv = self._reader, self._sock.recv
        started, wanted = 0.0, 0
        try:
            frame = reader.next_frame() if reader.inside_frame else None
            while frame is None:
                most = ahead_bytes or min(reader.missing_bytes, MAX_READ_BYTES)
                if wanted <= 0:
                    started = time.monotonic()
                    wanted = most if most < MAX_READ_BYTES else MAX_READ_BYTES
                data = recv(most)
                if not data:
                    raise ConnectionResetError(
                        'the broker closed the connection%s'
                        % (' in the middle of a response' if reader.inside_frame else '')
                    )
                frame = reader.take(data)
                if frame is not None:
                    break
                wanted -= len(data)
                if wanted > 0 and self.timeout is not None:
                    # The socket's own time-out starts again with each byte received.
                    if time.monotonic() - started > self.timeout:
                        raise socket.timeout('an answer came too slowly')
        except FrameError as error:
            self._fail_frame(error)
        self._has_answered = True
        return frame

    def _raise_connection_error(self, error: Optional[OSError] = None) -> NoReturn:
        """Close the connection and raise the error. The name is of 0.9.5: programs use it."""
        cause = '' if error is None else ': %s' % (error,)
        if isinstance(error, (ConnectionError, socket.timeout)) and not self._has_answered:
            cause += '; it has answered nothing yet: does the port want TLS, or a login'
            cause += ' (security_protocol)?' if self._security is None else '?'
        self.close()
        self._inferred = None
        raise KafkaConnectionError(
            'Kafka @ %s:%s went away%s' % (self.host, self.port, cause)
        ) from error

    def _fail_answer(self, frame: bytes, due: Optional[int]) -> NoReturn:
        """Refuse a frame that is not the response to the oldest request."""
        found = int.from_bytes(frame[:4], 'big', signed=True) if len(frame) >= 4 else None
        self._fail_frame(
            CorrelationIdError('a response has correlation id %s where %s was next' % (found, due))
        )

    def _fail_frame(self, error: KafkaError) -> NoReturn:
        self.close()
        self._inferred = None
        raise FrameError(
            '%s:%s: %s' % (self.host, self.port, ' '.join(map(str, error.args)))
        ) from error

    # ------------------------------------------------------------ old requests

    def _send_old(self, old: OldRequest, payload: bytes) -> None:
        """Send an old request, or its translation; `payload` is the request as encoded."""
        translation = self._translate(old)
        if old.header.api_key == ApiKey.FETCH:
            self._expect(old.asked_bytes)
        if translation is not None:
            payload = b''
            version, correlation_id = translation.version, old.header.correlation_id
            for each in translation.requests:
                data = self._session.send(each, version=version, correlation_id=correlation_id)
                payload = payload + data if payload else data
        self._is_busy = True
        if payload:
            self._write(payload)
        if is_answered(old.message):
            self._waiting.append(_Waiting(old.header.correlation_id, True, translation))
        self._is_busy = False

    def _translate(self, old: OldRequest) -> Optional[Translation]:
        if self._translator is None and not old.needs_versions:
            return None
        translation = self._learn_for(old).translate(old, int(time.time() * 1000))
        if translation is not None and translation.remark not in self._remarks:
            self._remarks.add(translation.remark)
            log.warning('%s: %s', self, translation.remark)
        return translation

    def _whose(self, frame: bytes) -> Optional[Translation]:
        """Return the translation of the request that a frame answers, None if it passes unchanged.

        Raises FrameError if it is not the response to the old request that is next.
        """
        whole = len(frame) >= 4
        correlation_id = int.from_bytes(frame[:4], 'big', signed=True) if whole else None
        while self._waiting:
            entry = self._waiting.popleft()
            if entry.recognised:
                # A translated one has several responses, which the session checks.
                if entry.translation is None and entry.correlation_id != correlation_id:
                    self._fail_answer(frame, entry.correlation_id)
                return entry.translation
            # An unrecognised request may have been one without a response.
            if entry.correlation_id == correlation_id or not any(
                later.recognised and later.correlation_id == correlation_id
                for later in self._waiting
            ):
                return None
        return None

    def _finish(self, translation: Translation, frame: bytes) -> Unread:
        """Read the remaining responses of a translated request, and combine them."""
        responses = []
        for number in range(len(translation.requests)):
            if number:
                frame = self._next_frame()
            try:
                event = self._session.receive_frame(frame)
            except KafkaError as error:
                self._fail_frame(error)
            if not isinstance(event, ResponseReceived):
                self._fail_frame(FrameError('what came is no answer to a request'))
            responses.append(event.response)
        self._is_busy = False
        return translation.unread(responses)

    # ------------------------------------------------------------ versions

    def _learn_for(self, old: OldRequest) -> Translator:
        """Learn what the broker serves, with the client id of a request."""
        self._client_id = old.header.client_id
        translator = self._learn()
        self._session.client_id = old.header.client_id
        return translator

    def _learn(self) -> Translator:
        """Learn what the broker serves, unless it is known for this connection."""
        if self._translator is None:
            versions = self._inferred if self._inferred is not None else self._probe()
            self._session.adopt(versions)
            self._translator = Translator(versions.ranges)
        return self._translator

    def _probe(self) -> BrokerVersions:
        self._is_busy = True
        probe = probe_versions(self._client_id, highest=self._versions_version)
        # Imported late: a client whose requests are served by all brokers never probes.
        connect: Any = import_late('kafka.net.connect')
        try:
            versions = self._drive(connect, connect.ask_versions(self._noting(probe))).versions
        except KafkaConnectionError:
            self.close()
            raise
        except KafkaError as error:
            if self._sock is None:  # an error of connecting again, such as a refused login
                raise
            self._fail_frame(error)
        except OSError as error:
            self._raise_connection_error(error)
        self._is_busy = False
        return versions

    def _noting(self, probe: Probe) -> Probe:
        """Store the result of a probe at once, since a connection that follows may fail."""
        result = yield from probe
        if result.release is not None:
            self._inferred = result.versions
        else:
            self._versions_version = result.asked_version
        return result

    def _drive(self, connect: Any, steps: Steps[ProbeResult]) -> ProbeResult:
        """Perform the actions of a conversation until it ends. Raises OSError, KafkaError."""
        action = next(steps)
        while True:
            # Separately, because a mock of the socket may raise StopIteration too.
            try:
                result = self._do(connect, action)
            except (OSError, KafkaError) as error:
                try:
                    action = steps.throw(error)
                except StopIteration as done:
                    return _found(done)
                continue
            try:
                action = steps.send(result)
            except StopIteration as done:
                return _found(done)

    def _do(self, connect: Any, action: Any) -> Optional[bytes]:
        """Perform an action and return its result. Raises OSError, KafkaError."""
        if isinstance(action, connect.ReceiveBytes):
            return self._probe_response(action.silent_seconds)
        if isinstance(action, connect.SendBytes):
            self._sock.sendall(action.data)
        else:
            assert isinstance(action, connect.OpenConnection)
            self._reconnect()
        return None

    def _probe_response(self, silent_seconds: Optional[float]) -> Optional[bytes]:
        """Return the next response to the probe as received, None if the broker is silent."""
        if silent_seconds is not None:
            limit = silent_seconds if self.timeout is None else self.timeout / 4
            self._sock.settimeout(min(silent_seconds, limit))
        try:
            while True:
                data = self._read_frame(self.ahead_bytes)
                # The responses to earlier requests, which were not read yet, come first.
                if len(self._read_early) < len(self._waiting) and data[:1] < b'\x80':
                    self._read_early.append(data)
                else:
                    return framed(data)
        except socket.timeout:
            if silent_seconds is None:
                raise
            return None
        finally:
            if silent_seconds is not None and self._sock is not None:
                self._sock.settimeout(self.timeout)

    def _reconnect(self) -> None:
        """Connect again, keeping the responses already received; the others are lost."""
        early = self._read_early
        waiting = list(self._waiting)[: len(early)]
        self.reinit()
        self._is_busy = True  # reinit() has reset it, but the probe continues
        self._read_early.extend(early)
        self._waiting.extend(waiting)


def __getattr__(name: str) -> object:
    """Import the connection of 1.x, which this module also exported, on first access."""
    if name in ('BrokerConnection', 'ConnectionStates', 'InFlightRequest'):
        return getattr(import_late('kafka.evented.broker_connection'), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))


def _found(done: StopIteration) -> ProbeResult:
    result: ProbeResult = done.value
    return result


def _stage_of(error: Exception) -> str:
    """Return the stage of connecting in which an error of the socket occurred."""
    return 'DNS' if isinstance(error, (socket.gaierror, UnicodeError)) else 'TCP'


def _unconnected(
    cls: Type[KafkaConnection],
    host: str,
    port: int,
    timeout: Optional[float],
    security: Optional[SecuritySettings] = None,
) -> KafkaConnection:
    make: Any = cls.__new__  # it keeps the arguments, with which other threads will connect
    options = {} if security is None else {'security': security}
    connection: KafkaConnection = make(cls, host, port, timeout, **options)
    connection._assign(host, port, timeout, security)
    return connection
