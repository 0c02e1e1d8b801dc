"""SteppedSocket: a socket that is connected step by step, in calls of its BrokerConnection.

It drives the connect conversation (net/connect.py) without waiting, tries the addresses of the
broker one after the other, and sends and receives bytes. It blocks only for name look-ups, for
writes, and for the responses of a re-authentication. One thread at a time.
"""

from __future__ import annotations

import enum
import errno
import logging
import os
import socket
import time
from typing import Any, List, Mapping, Optional, Tuple

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net import proxy
from kafka.net.addresses import MAX_PORT
from kafka.net.connect import (
    Action,
    ConnectConversation,
    Established,
    Family,
    OpenConnection,
    ReceiveBytes,
    ResolveHost,
    RunBlocking,
    SendBytes,
    StartTls,
    Steps,
    VersionsAsked,
)
from kafka.net.loop.executor import Work
from kafka.net.sasl import renewal_seconds
from kafka.net.secured import TransportLayer
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.protocol.negotiation import BrokerVersions

__all__ = ['NameNotResolved', 'Progress', 'SteppedSocket']

log = logging.getLogger('kafka.conn')

#: Raised by SteppedSocket.begin() for a name that cannot be resolved.
NameNotResolved = socket.gaierror

READ_BYTES = 256 * 1024  # of encrypted bytes per read

# Results of connect_ex() while it continues; 10022 is that of Windows.
_UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, 10022)

Address = Tuple[int, str, int]


class Progress(enum.Enum):
    """The result of a step of SteppedSocket."""

    IDLE = 'nothing has come'
    MOVED = 'waits for more'
    REOPENED = 'goes on once another socket is connected'
    DONE = 'ready for requests'


class SteppedSocket:
    """The socket of one BrokerConnection, and the conversation that makes it ready for requests.

    Arguments: host, port: the broker; afi: the address family, ``socket.AF_UNSPEC`` to try all
    addresses of the name, one at each begin(); config: the options of the connection, read when
    they are needed, except those of security.

    Attributes: hostname, port, afi, config: the arguments, which the connection may replace; host:
    the address in use; sock: the socket, None without one; versions: of the
    broker, from its login or from ask_versions(), None if unknown; renew_at: when to log in again,
    monotonic seconds, None for never; is_secured; peer_ended: whether the last step was about a
    broker that closed the connection or did not answer in time.
    """

    def __init__(self, host: str, port: int, afi: int, config: Mapping[str, Any]) -> None:
        self.host = self.hostname = host
        self.port = port
        self.afi = afi
        self.config = config
        self.sock: Any = None
        self.versions: Optional[BrokerVersions] = None
        self.renew_at: Optional[float] = None
        self.peer_ended = False
        security = SecuritySettings.from_options(config)
        if security.tls is not None:
            security.context()  # raise errors in the options now, not while connecting
        self._security = security
        self.is_secured = not security.is_plain
        self._addresses: List[Address] = []
        self._process = 0  # id of the process that owns the socket
        self._target: Any = None  # the address the socket connects to
        self._family = Family()
        self._conversation: Optional[ConnectConversation] = None
        self._forget()

    def __repr__(self) -> str:
        return '<SteppedSocket host=%s/%s port=%s>' % (self.hostname, self.host, self.port)

    def _forget(self) -> None:
        """Reset the state that belongs to one connection."""
        self.versions = None
        self.renew_at = None
        self._steps: Optional[Steps[Any]] = None  # the running conversation
        self._work: Optional[Work] = None  # blocking work that the conversation waits for
        self._silent_at: Optional[float] = None  # when the broker counts as silent
        self._layer = TransportLayer(self._write_raw)

    # ------------------------------------------------------------ state

    @property
    def addresses_left(self) -> int:
        """The number of addresses of the name not tried in this round."""
        return len(self._addresses)

    @property
    def is_talking(self) -> bool:
        """True while a conversation is running."""
        return self._steps is not None

    @property
    def is_inherited(self) -> bool:
        """True if the socket was inherited through a fork: its responses belong to the parent."""
        return self.sock is not None and self._process != os.getpid()

    # ------------------------------------------------------------ connecting

    def begin(self, asks: bool) -> None:
        """Start to connect to the next address.

        Arguments: asks: whether to request the broker's versions if no login does.
        Raises NameNotResolved; KafkaConnectionError if no socket can be created.
        """
        self.close()
        self._converse(VersionsAsked.WITHOUT_LOGIN if asks else VersionsAsked.BY_LOGIN)
        self._steps = self._connecting()
        next(self._steps)  # OpenConnection
        self._open_socket()

    def ask_versions(self) -> Progress:
        """Start to request the versions on a ready connection; continue with step()."""
        self.peer_ended = False
        self._converse(VersionsAsked.WITHOUT_LOGIN)
        self._steps = self._asking()
        return self._go_on(None)

    def _converse(self, asks: VersionsAsked) -> None:
        if self._family.lists_versions:
            self._family = Family()  # an older broker may have replaced this one
        self._conversation = ConnectConversation(
            NetSettings(client_id=self.config['client_id'], security=self._security),
            self.hostname,
            self.port,
            self._family,
            time.time,
            asks,
        )

    def _connecting(self) -> Steps[None]:
        assert self._conversation is not None
        established: Established = yield from self._conversation.connect()
        self.versions = established.versions
        self._renew_later(established.lifetime_ms)

    def _asking(self) -> Steps[None]:
        assert self._conversation is not None
        self.versions = yield from self._conversation.ask_versions()

    def _renew_later(self, lifetime_ms: int) -> None:
        seconds = renewal_seconds(lifetime_ms)
        self.renew_at = None if seconds is None else time.monotonic() + seconds

    def is_tcp_connected(self) -> bool:
        """Return True once start() may be called. Raises OSError, NameNotResolved."""
        try:
            code = self.sock.connect_ex(self._target)
        except socket.gaierror as error:
            told = 'the name of %s:%s cannot be resolved' % (self.hostname, self.port)
            raise socket.gaierror(error.args[0], told) from error
        except OSError as error:
            code = error.errno
        if code in (0, errno.EISCONN):
            return True
        if code not in _UNDER_WAY:
            raise OSError(code, os.strerror(code) if isinstance(code, int) else code)
        return False

    def start(self) -> Progress:
        """Take the first steps on a connected socket. Raises as step()."""
        self.peer_ended = False
        return self._go_on(None)

    def step(self) -> Progress:
        """Take the next steps if the broker has sent bytes. Raises OSError, KafkaError."""
        if self._work is not None:
            if not self._work.is_done:
                return Progress.IDLE
            return self._end_work(self._work)
        try:
            raw = self.sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            if self._silent_at is None or time.monotonic() < self._silent_at:
                return Progress.IDLE
            self.peer_ended = True
            return self._go_on(None)
        except OSError as error:
            self._log('', error)
            raw = b''
        self.peer_ended = not raw
        try:
            data = self._layer.decrypt(raw)
        except (OSError, KafkaError) as error:
            return self._go_on(None, error)
        return self._go_on(data) if data or not raw else Progress.MOVED

    def _end_work(self, work: Work) -> Progress:
        self.peer_ended = False
        self._work = None
        try:
            work.check()
        except (OSError, KafkaError) as error:
            return self._go_on(None, error)
        return self._go_on(None)

    def _go_on(self, result: Any, error: Optional[Exception] = None) -> Progress:
        """Pass a result or an error to the conversation; perform its actions until it must wait."""
        assert self._steps is not None
        try:
            action = self._steps.send(result) if error is None else self._steps.throw(error)
            while not self._waits_for(action):
                if isinstance(action, OpenConnection):
                    return self._reopen()
                action = self._do(self._steps, action)
        except StopIteration:
            self._steps = None
            return Progress.DONE
        except KafkaError as failure:
            assert self._conversation is not None
            if not self._conversation.may_try_again(failure):
                raise
            self._steps = self._connecting()
            next(self._steps)  # OpenConnection
            return self._reopen()
        return Progress.MOVED

    def _waits_for(self, action: Action) -> bool:
        """Return True for an action that step() completes later, and start waiting for it."""
        if isinstance(action, RunBlocking):
            self._work = Work(action.function)
            return True
        seconds = action.silent_seconds if isinstance(action, ReceiveBytes) else None
        if seconds is None:
            self._silent_at = None
        elif self._silent_at is None:
            self._silent_at = time.monotonic() + seconds
        return isinstance(action, ReceiveBytes)

    def _do(self, steps: Steps[Any], action: Action) -> Action:
        """Perform an action that needs no waiting; return the next one."""
        result = None
        try:
            if isinstance(action, SendBytes):
                self._layer.write(action.data)
            elif isinstance(action, StartTls):
                self._layer.start_tls(action.client)
            else:
                assert isinstance(action, ResolveHost)
                result = self.host
        except (OSError, KafkaError) as error:
            return steps.throw(error)
        return steps.send(result)

    # ------------------------------------------------------------ sockets and addresses

    def _reopen(self) -> Progress:
        """Open another socket to the same address; the conversation continues once it is connected.

        Raises KafkaConnectionError if no socket can be created.
        """
        self._drop()
        if self.afi == socket.AF_UNSPEC and not self._names_stay():
            family = socket.AF_INET6 if ':' in self.host else socket.AF_INET
            self._addresses.insert(0, (family, self.host, self.port))
        self._layer = TransportLayer(self._write_raw)
        self._open_socket()
        return Progress.REOPENED

    def _open_socket(self) -> None:
        family, self.host, port = self._next_address()
        try:
            self.sock = sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise KafkaConnectionError('cannot create a socket: %s' % error) from error
        self._process = os.getpid()
        for option in self._socket_options():
            sock.setsockopt(*option)
        sock.setblocking(False)
        self._target = self._at_proxy() or (self.host, port)

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
        if self._security.proxy is None:
            return None
        address = proxy.parse(self._security.proxy)
        return address.host, address.port

    def _next_address(self) -> Address:
        if not 0 <= int(self.port) <= MAX_PORT:  # the system would take it modulo 65536
            told = '%s:%s: ports end at %d' % (self.hostname, self.port, MAX_PORT)
            raise socket.gaierror(socket.EAI_SERVICE, told)
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
                where = self.hostname, self.port, error.args[-1]
                told = 'the name of %s:%s cannot be resolved: %s' % where
                raise socket.gaierror(error.args[0], told) from error
            self._addresses = [(each[0], str(each[4][0]), int(each[4][1])) for each in found]
        return self._addresses.pop(0)

    def _names_stay(self) -> bool:
        """Return True if the proxy resolves the name of the broker."""
        url = self._security.proxy
        return url is not None and proxy.resolves_names(url)

    # ------------------------------------------------------------ bytes

    def write(self, data: bytes) -> None:
        """Write all bytes, blocking at most request_timeout_ms.

        Raises OSError, KafkaConnectionError.
        """
        self._layer.write(data)

    def _write_raw(self, data: bytes) -> None:
        sock = self.sock
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
        """Make socket calls block; a socket that a program replaced may not support time-outs."""
        limit = getattr(self.sock, 'settimeout', None)
        if limit is None:
            self.sock.setblocking(True)
        else:
            limit(seconds)

    def receive(self, most: int) -> Optional[bytes]:
        """Return received bytes, b'' at the end of the stream, None if there are none.

        Arguments: most: the maximum number of bytes, without TLS. Raises OSError, KafkaError.
        """
        layer = self._layer
        if not layer.is_encrypted:
            try:
                plain: bytes = self.sock.recv(most)
            except (BlockingIOError, InterruptedError):
                return None
            return plain
        while True:
            try:
                raw = self.sock.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return None
            data = layer.decrypt(raw)
            if data or not raw or layer.is_ended:
                return data

    # ------------------------------------------------------------ renewing a login

    def renew_login(self, seconds: float) -> bool:
        """Re-authenticate, waiting at most `seconds` for each response (KIP-368).

        No response may be pending. Returns False if what the login needs is not there in time, such
        as a token; then the connection has to be closed. Raises OSError, KafkaError.
        """
        assert self._conversation is not None and self.versions is not None
        steps = self._conversation.renew_login(self.versions)
        try:
            action = next(steps)
            while True:
                if isinstance(action, RunBlocking):
                    work = Work(action.function)
                    if not work.wait(seconds):
                        return False
                    work.check()
                    action = steps.send(None)
                elif isinstance(action, ReceiveBytes):
                    action = steps.send(self._await_bytes(seconds))
                else:
                    action = self._do(steps, action)
        except StopIteration as done:
            self._renew_later(done.value)
            return True

    def _await_bytes(self, seconds: float) -> bytes:
        while True:
            self._set_waiting(seconds)
            try:
                raw: bytes = self.sock.recv(READ_BYTES)
            finally:
                self.sock.setblocking(False)
            data = self._layer.decrypt(raw)
            if data or not raw:
                return data

    # ------------------------------------------------------------ closing

    def close(self) -> None:
        """Close the socket and drop the conversation. Raises nothing."""
        self._drop()
        self._forget()

    def _drop(self) -> None:
        sock, self.sock = self.sock, None
        if sock is not None:
            try:
                sock.close()
            except OSError as error:  # it was broken already
                self._log('closing the socket: ', error)

    def _log(self, what: str, error: OSError) -> None:
        """Log an error that ends nothing but the socket, in the name of the connection."""
        where = self.hostname, self.host, self.port
        log.debug('<BrokerConnection host=%s/%s port=%s>: %s%s', *where, what, error)
