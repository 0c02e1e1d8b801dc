"""Secured connections of blocking clients: proxy, TLS and SASL login.

open_secured() drives the connect conversation (connect.py) over a blocking socket, with one timeout
for all of it, and tries again on another connection if the conversation asks for that.
kafka/conn.py calls it and uses the SecuredSocket as its socket. Not thread-safe: a connection is
used by one thread at a time.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from typing import Any, Optional, TypeVar

from kafka.errors import KafkaError
from kafka.net import proxy
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
from kafka.net.failures import ProxyError, SaslError, TlsError
from kafka.net.idle_check import is_at_end
from kafka.net.loop.executor import Work
from kafka.net.sasl import renewal_seconds
from kafka.net.secured import TransportLayer
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings
from kafka.protocol.negotiation import BrokerVersions

__all__ = ['SecuredSocket', 'open_secured']

T = TypeVar('T')

READ_BYTES = 64 * 1024


class SecuredSocket:
    """The socket of a secured blocking connection.

    Arguments: conversation: the connect conversation that connect() runs; url: of the proxy, None
    to connect to host and port directly; ends_at: deadline of connecting, in monotonic seconds,
    None for no deadline.

    TLS errors are raised as OSErrors, like those of the underlying socket.
    """

    def __init__(
        self,
        conversation: ConnectConversation,
        url: Optional[str],
        host: str,
        port: int,
        ends_at: Optional[float],
    ) -> None:
        self.host = host
        self._conversation = conversation
        self._url = url
        self._port = port
        self._sock: Any = None
        self._layer = TransportLayer(_not_connected)
        self._timeout: Optional[float] = None
        self._ends_at = ends_at
        self._opened = b''  # decrypted, not yet returned by recv()
        self._has_read = False
        self._versions: Optional[BrokerVersions] = None  # from the ApiVersions of the login
        self._renew_at: Optional[float] = None  # when to log in again, None: never

    def __repr__(self) -> str:
        told = 'TLS' if self._layer.is_encrypted else 'without TLS'
        return '<SecuredSocket host=%s %s>' % (self.host, told)

    # ------------------------------------------------------------ as a socket

    def sendall(self, data: Any) -> None:
        """Send everything. Raises OSError."""
        try:
            self._layer.write(data)
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error

    def recv(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; b'' at the end of the stream. Raises OSError."""
        if not self._layer.is_encrypted:
            data: bytes = self._sock.recv(size)
            return data
        try:
            while not self._opened and not self._layer.is_ended:
                self._opened = self._layer.decrypt(self._sock.recv(READ_BYTES))
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error
        data, self._opened = self._opened[:size], self._opened[size:]
        self._has_read = self._has_read or bool(data)
        return data

    def has_ended(self) -> bool:
        """Return True if the peer has closed the connection. Called when the socket is readable.

        Only while no response is outstanding. With TLS the socket may be readable because of a
        session ticket, which does not end the connection.
        """
        if not self._layer.is_encrypted:
            return is_at_end(self._sock)
        try:
            self._opened += self._layer.decrypt(self._sock.recv(READ_BYTES))
        except (OSError, TlsError):
            return True
        return self._layer.is_ended

    def shutdown(self, how: int) -> None:
        """Send a TLS close_notify, then shut down the socket. Raises OSError."""
        if self._layer.is_encrypted:
            self._sock.setblocking(False)  # do not wait to send the close_notify
            self._layer.close()
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        if self._sock is not None:
            self._sock.close()

    def settimeout(self, timeout: Optional[float]) -> None:
        """Set the timeout in seconds of each call, None for no timeout."""
        self._timeout = timeout
        self._sock.settimeout(timeout)

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        number: int = self._sock.fileno()
        return number

    def _explained(self, error: OSError) -> OSError:
        """Add a hint to the error of a connection that breaks before anything was read from it."""
        if self._has_read or not self._layer.is_encrypted:
            return error
        return ConnectionResetError(
            '%s; so does a broker that demands a certificate, see ssl_certfile' % error
        )

    # ------------------------------------------------------------ connecting

    def connect(self) -> None:
        """Connect through the proxy, do the TLS handshake and log in, as configured.

        Raises OSError; KafkaError with ``stage``.
        """
        established: Established = self._drive(self._conversation.connect())
        self._versions = established.versions
        self._renew_later(established.lifetime_ms)

    def renew_login(self) -> None:
        """Re-authenticate if it is time (KIP-368). No response may be outstanding.

        Raises KafkaError.
        """
        if self._renew_at is None or time.monotonic() < self._renew_at:
            return
        assert self._versions is not None
        self._ends_at = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            self._renew_later(self._drive(self._conversation.renew_login(self._versions)))
        except OSError as error:
            raise SaslError(
                'the connection broke while the login was renewed: %s' % error
            ) from error
        self._sock.settimeout(self._timeout)

    def _renew_later(self, lifetime_ms: int) -> None:
        seconds = renewal_seconds(lifetime_ms)
        self._renew_at = None if seconds is None else time.monotonic() + seconds

    def _drive(self, steps: Steps[T]) -> T:
        """Do the actions of a conversation until it ends; return its result."""
        try:
            action = next(steps)
            while True:
                try:
                    result = self._do(action)
                except (OSError, KafkaError) as error:
                    action = steps.throw(error)
                else:
                    action = steps.send(result)
        except StopIteration as done:
            made: T = done.value
            return made

    def _do(self, action: Action) -> Any:
        """Do an action and return its result. Raises OSError, KafkaError."""
        if isinstance(action, OpenConnection):
            self._sock = _connected(self._url, self.host, self._port, self._ends_at)
            self._layer = TransportLayer(self._sock.sendall)
            return None
        left = self._limit()
        if isinstance(action, ReceiveBytes):
            return self._received()
        if isinstance(action, SendBytes):
            self._layer.write(action.data)
        elif isinstance(action, StartTls):
            self._layer.start_tls(action.client)
        elif isinstance(action, RunBlocking):
            work = Work(action.function)
            if not work.wait(left):
                raise socket.timeout('timed out')
            work.check()
        else:
            assert isinstance(action, ResolveHost)
            found = socket.getaddrinfo(self.host, self._port, 0, socket.SOCK_STREAM)
            return str(found[0][4][0])
        return None

    def _received(self) -> bytes:
        """Return the next decrypted bytes; b'' if the broker has closed or reset the connection."""
        while True:
            self._limit()
            try:
                raw: bytes = self._sock.recv(READ_BYTES)
            except ConnectionError:
                raw = b''
            self._limit()
            data = self._layer.decrypt(raw)
            if data or not raw:
                return data

    def _limit(self) -> Optional[float]:
        """Set the socket timeout to the seconds until the deadline; return them, or None.

        Raises socket.timeout after the deadline.
        """
        if self._ends_at is None:
            return None
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise socket.timeout('timed out')
        self._sock.settimeout(left)
        return left


def open_secured(
    security: SecuritySettings,
    host: str,
    port: int,
    timeout: Optional[float],
    client_id: Optional[str] = None,
) -> SecuredSocket:
    """Connect to a broker with the given security settings, within `timeout` seconds.

    Raises OSError if the TCP connection cannot be opened, KafkaError with ``stage`` if a later
    stage fails.
    """
    ends_at = None if timeout is None else time.monotonic() + timeout
    conversation = ConnectConversation(
        NetSettings(client_id=client_id, security=security),
        host,
        port,
        Family(),
        time.time,
        VersionsAsked.BY_LOGIN,
    )
    while True:
        sock = SecuredSocket(conversation, security.proxy, host, port, ends_at)
        try:
            sock.connect()
            sock.settimeout(timeout)
        except KafkaError as error:
            sock.close()
            if conversation.may_try_again(error):
                continue
            error.args = ('%s:%s: %s' % (host, port, words(error)),)
            raise
        except BaseException:
            sock.close()
            raise
        return sock


def _not_connected(_: bytes) -> None:
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))


def _connected(url: Optional[str], host: str, port: int, ends_at: Optional[float]) -> Any:
    left = None if ends_at is None else max(0.001, ends_at - time.monotonic())
    if url is None:
        return socket.create_connection((host, port), left)
    address = proxy.parse(url)
    try:
        return socket.create_connection((address.host, address.port), left)
    except OSError as error:
        raise ProxyError('no connection to the proxy %s: %s' % (address.shown, error)) from error


def words(error: KafkaError) -> str:
    """Return the text of an error, without the description of its class."""
    return ' '.join(map(str, error.args))
