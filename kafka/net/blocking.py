"""Secured connections for those who block: by way of a proxy, behind TLS, logged in.

Owns the driving of the steps of steps.py over a blocking socket, within one time limit for all of
them, and which of their failures another connection may mend. What is said on the connection
afterwards is its user's business.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Optional

from kafka.errors import KafkaError, SaslAuthenticationFailedError
from kafka.net import proxy
from kafka.net.failures import ProxyError, SaslError, TlsError
from kafka.net.idle_check import is_at_end
from kafka.net.sasl.login import MOST_LOGINS, ClosedAtVersions
from kafka.net.security import SecuritySettings
from kafka.net.steps import Steps, Taking

__all__ = ['SecuredSocket', 'open_secured']

READ_BYTES = 64 * 1024


class SecuredSocket:
    """What a blocking connection uses as its socket.

    Arguments: sock: connected; security; host, port: of the broker, as they were given; client_id;
    ends_at: until when the steps of connecting may take, in monotonic seconds; None for ever.

    Errors of TLS are OSErrors here, as those of the socket below.
    """

    def __init__(
        self,
        sock: Any,
        security: SecuritySettings,
        host: str,
        port: int,
        client_id: Optional[str],
        ends_at: Optional[float],
    ) -> None:
        self.host = host
        self._sock = sock
        self._steps = Steps(security, host, port, client_id, sock.sendall)
        self._timeout: Optional[float] = None
        self._ends_at = ends_at
        self._opened = b''  # decrypted, and not asked for yet
        self._has_read = False

    def __repr__(self) -> str:
        told = 'TLS' if self._steps.is_encrypted else 'without TLS'
        return '<SecuredSocket host=%s %s>' % (self.host, told)

    # ------------------------------------------------------------ as a socket

    def sendall(self, data: Any) -> None:
        """Send everything. Raises OSError."""
        try:
            self._steps.write(data)
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error

    def recv(self, size: int) -> bytes:
        """Return what has come, at most `size` bytes; empty at the end. Raises OSError."""
        if not self._steps.is_encrypted:
            data: bytes = self._sock.recv(size)
            return data
        try:
            while not self._opened and not self._steps.is_ended:
                self._opened = self._steps.opened(self._sock.recv(READ_BYTES))
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error
        data, self._opened = self._opened[:size], self._opened[size:]
        self._has_read = self._has_read or bool(data)
        return data

    def has_ended(self) -> bool:
        """Return True if the peer has closed the connection; for when it is ready to be read.

        No answer may be awaited. Behind TLS what came may be a session ticket, which ends nothing.
        """
        if not self._steps.is_encrypted:
            return is_at_end(self._sock)
        try:
            self._opened += self._steps.opened(self._sock.recv(READ_BYTES))
        except (OSError, TlsError):
            return True
        return self._steps.is_ended

    def shutdown(self, how: int) -> None:
        """End the conversation. Raises OSError."""
        if self._steps.is_encrypted:
            self._sock.setblocking(False)  # a goodbye is not worth waiting for
            self._steps.say_goodbye()
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def settimeout(self, timeout: Optional[float]) -> None:
        """Limit each call."""
        self._timeout = timeout
        self._sock.settimeout(timeout)

    def fileno(self) -> int:
        """Return the number of the socket's file."""
        number: int = self._sock.fileno()
        return number

    def _explained(self, error: OSError) -> OSError:
        """Say what it may mean that a connection breaks before anything was read from it."""
        if self._has_read or not self._steps.is_encrypted:
            return error
        return ConnectionResetError(
            '%s; so does a broker that demands a certificate, see ssl_certfile' % error
        )

    # ------------------------------------------------------------ connecting

    def take_steps(self, address: str, is_bare: bool) -> None:
        """Pass the proxy, begin TLS, log in, as far as that is wanted.

        Arguments: as those of Steps.take(). Raises OSError; KafkaError with ``stage``.
        """
        self._drive(self._steps.take(address, is_bare, None))

    def renew_login(self) -> None:
        """Log in once more if it is time; no answer may be outstanding (KIP-368).

        Raises KafkaError.
        """
        renew_at = self._steps.renew_at
        if renew_at is None or time.monotonic() < renew_at:
            return
        self._ends_at = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            self._drive(self._steps.log_in())
        except OSError as error:
            raise SaslError(
                'the connection broke while the login was renewed: %s' % error
            ) from error
        self._sock.settimeout(self._timeout)

    def _drive(self, steps: Taking) -> None:
        """Take steps to their end, within the time limit."""
        self._limit()
        try:
            work = next(steps)
            while True:
                if work is not None:
                    if not work.wait(self._limit()):
                        raise socket.timeout('timed out')
                    work = next(steps)
                    continue
                received = self._received()
                self._limit()
                work = steps.send(received)
        except StopIteration:
            return

    def _received(self) -> bytes:
        """Return what has come; a broken connection says as much as a closed one, to the steps."""
        self._limit()
        try:
            data: bytes = self._sock.recv(READ_BYTES)
        except ConnectionError:
            return b''
        return data

    def _limit(self) -> Optional[float]:
        """Give the next call what is left of the time, and return it: seconds, None for ever."""
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
    """Connect to a broker as its settings say, within `timeout` seconds.

    Raises OSError where there is no connection; KafkaError with ``stage`` for what comes after.
    """
    ends_at = None if timeout is None else time.monotonic() + timeout
    is_bare = False
    for _ in range(MOST_LOGINS - 1):
        try:
            return _opened(security, host, port, ends_at, timeout, client_id, is_bare)
        except ClosedAtVersions:
            if not security.uses_gssapi:
                raise
            is_bare = True
        except SaslAuthenticationFailedError as error:
            if not error.login_again:
                raise
    return _opened(security, host, port, ends_at, timeout, client_id, is_bare)


def _opened(
    security: SecuritySettings,
    host: str,
    port: int,
    ends_at: Optional[float],
    timeout: Optional[float],
    client_id: Optional[str],
    is_bare: bool,
) -> SecuredSocket:
    raw = _connected(security.proxy, host, port, ends_at)
    sock = SecuredSocket(raw, security, host, int(port), client_id, ends_at)
    try:
        sock.take_steps(_address_of(security.proxy, host, port), is_bare)
        sock.settimeout(timeout)
    except KafkaError as error:
        sock.close()
        error.args = ('%s:%s: %s' % (host, port, words(error)),)
        raise
    except BaseException:
        sock.close()
        raise
    return sock


def _address_of(url: Optional[str], host: str, port: int) -> str:
    """Return what a proxy is told of a broker: an address if it looks up no names."""
    if url is None or proxy.resolves_names(url):
        return host
    return str(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0][4][0])


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
    """Return what an error says, without its class."""
    return ' '.join(map(str, error.args))
