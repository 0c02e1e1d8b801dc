"""Secured connections for those who block: by way of a proxy, behind TLS, logged in.

Owns the driving of the generators of proxy.py and sasl/ and of tls.TlsClient over a blocking
socket, within one time limit for all of it. What is said on the connection afterwards is its user's
business.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Callable, Generator, Optional

from kafka.errors import KafkaError, SaslAuthenticationFailedError
from kafka.net import proxy, sasl
from kafka.net.failures import ProxyError, SaslError, TlsError
from kafka.net.sasl.login import ClosedAtVersions
from kafka.net.security import SaslSettings, SecuritySettings
from kafka.net.tls import TlsClient
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.probe import OLD_RELEASES
from kafka.protocol.session import (
    NEED_DATA,
    ConnectionClosed,
    Event,
    Role,
    SendData,
    Session,
)

__all__ = ['SecuredSocket', 'open_secured']

READ_BYTES = 64 * 1024
GSSAPI = 'GSSAPI'
MOST_TRIES = 3  # logins of which the one before tells that another may go otherwise


class SecuredSocket:
    """What a blocking connection uses as its socket.

    Arguments: sock: connected; host: the broker's name as it was given; ends_at: until when the
    steps of connecting may take, in monotonic seconds; None for ever.

    Errors of TLS are OSErrors here, as those of the socket below.
    """

    def __init__(self, sock: Any, host: str, ends_at: Optional[float]) -> None:
        self.host = host
        self._sock = sock
        self._timeout: Optional[float] = None
        self._ends_at = ends_at
        self._tls: Optional[TlsClient] = None
        self._has_read = False
        self._sasl: Optional[SaslSettings] = None
        self._client_id: Optional[str] = None
        self._versions: Optional[BrokerVersions] = None
        self._renew_at: Optional[float] = None

    def __repr__(self) -> str:
        return '<SecuredSocket host=%s %s>' % (self.host, self._tls or 'without TLS')

    # ------------------------------------------------------------ as a socket

    def sendall(self, data: Any) -> None:
        """Send everything. Raises OSError."""
        if self._tls is None:
            self._sock.sendall(data)
            return
        try:
            self._tls.write(data)
            self._flush()
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error

    def recv(self, size: int) -> bytes:
        """Return what has come, at most `size` bytes; empty at the end. Raises OSError."""
        if self._tls is None:
            data: bytes = self._sock.recv(size)
            return data
        try:
            while True:
                data = self._tls.read(size)
                if data or self._tls.is_ended:
                    self._has_read = self._has_read or bool(data)
                    return data
                self._flush()
                self._tls.receive(self._sock.recv(READ_BYTES))
        except TlsError as error:
            raise ConnectionAbortedError(words(error)) from error
        except ConnectionError as error:
            raise self._explained(error) from error

    def shutdown(self, how: int) -> None:
        """End the conversation. Raises OSError."""
        if self._tls is not None:
            self._tls.close()
            self._sock.setblocking(False)  # a goodbye is not worth waiting for
            self._flush()
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

    def _flush(self) -> None:
        assert self._tls is not None
        data = self._tls.outgoing()
        if data:
            self._sock.sendall(data)

    def _explained(self, error: OSError) -> OSError:
        """Say what it may mean that a connection breaks before anything was read from it."""
        if self._has_read:
            return error
        return ConnectionResetError(
            '%s; so does a broker that demands a certificate, see ssl_certfile' % error
        )

    # ------------------------------------------------------------ connecting

    def _limit(self) -> None:
        """Give the next call what is left of the time."""
        if self._ends_at is not None:
            left = self._ends_at - time.monotonic()
            if left <= 0:
                raise socket.timeout('timed out')
            self._sock.settimeout(left)

    def pass_proxy(self, url: str, port: int) -> None:
        """Let a proxy connect to the broker. Raises ProxyError, OSError."""
        host = self.host
        if not proxy.resolves_names(url):
            host = str(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0][4][0])
        steps = proxy.handshake(url, host, port)
        data = next(steps)
        while True:
            self._limit()
            if data:
                self._sock.sendall(data)
            received = self._sock.recv(READ_BYTES)
            try:
                data = steps.send(received)
            except StopIteration:
                return

    def begin_tls(self, security: SecuritySettings) -> None:
        """Encrypt what follows. Raises TlsError, OSError."""
        self._tls = tls = TlsClient(security.context(), self.host)
        while True:
            try:
                is_done = tls.handshake()
            except TlsError:
                self._send_alert()
                raise
            self._limit()
            try:
                self._flush()
                if is_done:
                    return
                tls.receive(self._sock.recv(READ_BYTES))
            except ConnectionError:
                tls.receive(b'')  # a reset is as much of an answer as closing

    def _send_alert(self) -> None:
        """Tell the broker why, as far as it can be told."""
        try:
            self._limit()
            self._flush()
        except OSError:
            pass  # it is gone

    def log_in(self, settings: SaslSettings, client_id: Optional[str]) -> None:
        """Log in. Raises what sasl.authenticate() does; OSError."""
        self._sasl, self._client_id = settings, client_id
        session = Session(Role.CLIENT, client_id)
        self._log_in(session, sasl.authenticate)
        self._versions = session.versions

    def log_in_bare(self, settings: SaslSettings, client_id: Optional[str]) -> None:
        """Log in at a broker of 0.9. Raises what sasl.authenticate_bare() does; OSError."""
        session = Session(Role.CLIENT, client_id)
        session.adopt(BrokerVersions(OLD_RELEASES['0.9']))
        self._sasl = settings
        self._log_in(session, sasl.authenticate_bare)

    def renew_login(self) -> None:
        """Log in once more if it is time; no answer may be outstanding (KIP-368).

        Raises KafkaError.
        """
        if self._renew_at is None or time.monotonic() < self._renew_at:
            return
        assert self._versions is not None
        session = Session(Role.CLIENT, self._client_id)
        session.adopt(self._versions)
        self._ends_at = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            self._log_in(session, sasl.authenticate)
        except OSError as error:
            raise SaslError(
                'the connection broke while the login was renewed: %s' % error
            ) from error
        self._sock.settimeout(self._timeout)

    def _log_in(
        self, session: Session, log_in: Callable[[Session, sasl.Mechanism], sasl.Login]
    ) -> None:
        assert self._sasl is not None
        mechanism = sasl.mechanism(self._sasl, self.host, time.time())
        sasl.prepare(mechanism)
        result = self._drive(log_in(session, mechanism), session)
        if result.unsent:
            self.sendall(result.unsent)
        seconds = sasl.renewal_seconds(result.lifetime_ms)
        self._renew_at = None if seconds is None else time.monotonic() + seconds

    def _drive(
        self, steps: Generator[bytes, Optional[Event], sasl.LoggedIn], session: Session
    ) -> sasl.LoggedIn:
        data = next(steps)
        while True:
            self._limit()
            self.sendall(data)
            try:
                data = steps.send(self._next_step(session))
            except StopIteration as done:
                result: sasl.LoggedIn = done.value
                return result

    def _next_step(self, session: Session) -> Optional[Event]:
        """Return the answer to a step of the login, None if the broker has closed."""
        while True:
            event = session.next_event()
            if isinstance(event, SendData):
                self.sendall(event.data)
            elif isinstance(event, ConnectionClosed):
                return None
            elif event is not NEED_DATA:
                return event
            else:
                self._limit()
                try:
                    session.receive_data(self.recv(READ_BYTES))
                except ConnectionResetError:
                    return None


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
    log_in = SecuredSocket.log_in
    for _ in range(MOST_TRIES - 1):
        try:
            return _opened(security, host, port, ends_at, timeout, client_id, log_in)
        except ClosedAtVersions:
            if security.sasl is None or security.sasl.mechanism != GSSAPI:
                raise
            log_in = SecuredSocket.log_in_bare
        except SaslAuthenticationFailedError as error:
            if not error.login_again:
                raise
    return _opened(security, host, port, ends_at, timeout, client_id, log_in)


def _opened(
    security: SecuritySettings,
    host: str,
    port: int,
    ends_at: Optional[float],
    timeout: Optional[float],
    client_id: Optional[str],
    log_in: Callable[[SecuredSocket, SaslSettings, Optional[str]], None],
) -> SecuredSocket:
    raw = _connected(security.proxy, host, port, ends_at)
    sock = SecuredSocket(raw, host, ends_at)
    try:
        if security.proxy is not None:
            sock.pass_proxy(security.proxy, int(port))
        if security.tls is not None:
            sock.begin_tls(security)
        if security.sasl is not None:
            log_in(sock, security.sasl, client_id)
        sock.settimeout(timeout)
    except KafkaError as error:
        sock.close()
        error.args = ('%s:%s: %s' % (host, port, words(error)),)
        raise
    except BaseException:
        sock.close()
        raise
    return sock


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
