"""The connect conversation: everything between opening a connection and its first request.

Proxy, TLS, SASL (KIP-43, KIP-152), ApiVersions (KIP-35, KIP-511) and re-authentication (KIP-368) as
generators that do no input or output. Four drivers run them: the event loop (opening.py, and
node_connection.py to re-authenticate), blocking sockets (blocking.py, kafka/conn.py) and the
non-blocking sockets of the evented clients (evented/stepped_socket.py).

A generator yields actions and is sent their results. If an action fails, the driver throws its
KafkaError or OSError into the generator. A driver is a loop::

    action = next(steps)
    while True:                       # until StopIteration, which carries the result
        try:
            result = do(action)
        except (OSError, KafkaError) as error:
            action = steps.throw(error)
        else:
            action = steps.send(result)

If the generator ends with an exception, the driver closes the socket.
"""

from __future__ import annotations

import enum
import math
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

from kafka.errors import KafkaConnectionError, KafkaError, ProtocolError
from kafka.internals.lazy_imports import LateModule
from kafka.net.failures import TlsError
from kafka.protocol.frames import DEFAULT_MAX_FRAME_BYTES, FrameReader
from kafka.protocol.negotiation import BrokerVersions, usable_versions
from kafka.protocol.probe import (
    OLD_RELEASES,
    SILENCE,
    SILENT_SECONDS,
    VERSIONS_TRIED,
    Probe,
    ProbeResult,
    ProbeStep,
    VersionsUnanswered,
    probe_versions,
    unanswered_text,
    versions_to_try,
)
from kafka.protocol.release_ranges import NEWEST, client_ranges
from kafka.protocol.session import (
    NEED_DATA,
    ConnectionClosed,
    Event,
    Role,
    SendData,
    Session,
    VersionsNegotiated,
)

if TYPE_CHECKING:
    from kafka.net import proxy, sasl, tls
    from kafka.net.settings import NetSettings
else:
    # A blocking client without security uses this module for ApiVersions only: it needs none of
    # these.
    proxy, sasl, tls = map(LateModule, ('kafka.net.proxy', 'kafka.net.sasl', 'kafka.net.tls'))

__all__ = [
    'Action',
    'AskBroker',
    'ConnectConversation',
    'Established',
    'Family',
    'OpenConnection',
    'ReceiveBytes',
    'ResolveHost',
    'RunBlocking',
    'SendBytes',
    'StartTls',
    'Steps',
    'VersionsAsked',
    'ask_versions',
    'log_in',
    'prepare_login',
]

T = TypeVar('T')

# If the option api_version names this release or a later one, ApiVersions is not sent: all later
# brokers, up to 4.4, support versions that this release supports. 4.0 removed versions of releases
# before 2.1 (KIP-896).
_OBEYED_FROM = (2, 1)
_UNKNOWN_FROM = (*map(int, NEWEST.split('.')), math.inf)


# ---------------------------------------------------------------- actions


class OpenConnection(NamedTuple):
    """Close the connection, if there is one, and connect to the broker, or to its proxy."""


class ResolveHost(NamedTuple):
    """Resolve the broker's name. Result: an IP address as text."""


class SendBytes(NamedTuple):
    """Send bytes, encrypted after StartTls. They may contain secrets: never log them."""

    data: bytes

    def __repr__(self) -> str:
        return '<SendBytes %d>' % len(self.data)


class ReceiveBytes(NamedTuple):
    """Wait for at least one byte. Result: the bytes, decrypted; b'' at the end of the stream.

    ``silent_seconds``: after this time without bytes, counted from the first of consecutive
    ReceiveBytes with this field, the result is None. If None, only the driver's timeout applies.
    """

    silent_seconds: Optional[float] = None


class StartTls(NamedTuple):
    """Encrypt and decrypt from now on: the handshake is complete."""

    client: tls.TlsClient


class RunBlocking(NamedTuple):
    """Call a function that may block in another thread. No result; its exception is thrown."""

    function: Callable[[], Any]


class AskBroker(NamedTuple):
    """Send a login request on a session. Result: the event of its response.

    None if the broker has closed the connection. Only log_in() yields this.
    """

    data: bytes

    def __repr__(self) -> str:
        return '<AskBroker %d>' % len(self.data)


Action = Union[
    OpenConnection, ResolveHost, SendBytes, ReceiveBytes, StartTls, RunBlocking, AskBroker
]
Steps = Generator[Action, Any, T]


# ---------------------------------------------------------------- logging in


def prepare_login(settings: NetSettings, host: str, wall: float) -> Steps[sasl.Mechanism]:
    """Return a mechanism that is ready to log in.

    Arguments: host: the broker's name, not resolved; wall: seconds since the epoch.
    """
    assert settings.security.sasl is not None
    mechanism = sasl.mechanism(settings.security.sasl, host, wall)
    if sasl.takes_time(mechanism):
        yield RunBlocking(partial(sasl.prepare, mechanism))
    return mechanism


def log_in(login: sasl.Login) -> Steps[int]:
    """Log in or re-authenticate (KIP-368); return the session lifetime in ms, 0 for unlimited.

    Arguments: login: a generator of kafka.net.sasl. Raises the same errors as that.
    """
    event: Optional[Event] = None
    while True:
        try:
            data = login.send(event)
        except StopIteration as done:
            result: sasl.LoggedIn = done.value
            if result.unsent:
                yield SendBytes(result.unsent)
            return result.lifetime_ms
        event = yield AskBroker(data)


# ---------------------------------------------------------------- versions


def _open_connection() -> Steps[None]:
    yield OpenConnection()


def ask_versions(
    probe: Probe,
    reconnect: Callable[[], Steps[None]] = _open_connection,
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
) -> Steps[ProbeResult]:
    """Find out which API versions an unknown broker supports (protocol/probe.py).

    On a connection without outstanding responses. Arguments: reconnect: opens another connection.
    Raises as probe_versions().
    """
    frames = FrameReader(max_frame_bytes)
    response: Optional[bytes] = None
    while True:
        try:
            step = probe.send(response)
        except StopIteration as done:
            result: ProbeResult = done.value
            break
        if step.reconnect:
            yield from reconnect()
            frames = FrameReader(max_frame_bytes)
        response = yield from _next_frame(step, frames)
    if not result.connected:
        yield from reconnect()
    return result


def _next_frame(step: ProbeStep, frames: FrameReader) -> Steps[Optional[bytes]]:
    """Do a step of the probe and return the response.

    None if the broker closes the connection, SILENCE if it does not respond in time.
    """
    receive = ReceiveBytes(SILENT_SECONDS if step.may_be_silent else None)
    try:
        if step.data:
            yield SendBytes(step.data)
        while True:
            frame = frames.next_frame()
            if frame is not None:
                return frame
            data = yield receive
            if not data:
                return SILENCE if data is None else None
            frames.receive_data(data)
    except (OSError, KafkaConnectionError) as error:
        if not _is_reset(error):
            raise
        return None


def _is_reset(error: BaseException) -> bool:
    """Return True if the peer reset the connection, which is handled like closing it."""
    return isinstance(error, ConnectionError) or isinstance(error.__cause__, ConnectionError)


# ---------------------------------------------------------------- the whole


class _AskLower(KafkaConnectionError):
    """The broker did not respond to a version of ApiVersions: reconnect and try a lower one."""


class Family:
    """Properties that all brokers of a cluster share, learned from the first connection.

    Attributes: lists_versions: whether they respond to ApiVersions, so that other brokers need no
    probe; None if unknown; versions_version: the version of ApiVersions that the next connection
    tries first: the highest one that got a response; is_mute: whether they respond to other
    requests, but to no version of ApiVersions.
    """

    def __init__(self) -> None:
        self.lists_versions: Optional[bool] = None
        self.versions_version = VERSIONS_TRIED[0]
        self.is_mute = False
        self.warned_at: Dict[Any, float] = {}  # time of the last warning, by unreachable node

    def __repr__(self) -> str:
        return '<Family lists_versions=%s>' % self.lists_versions


class VersionsAsked(enum.Enum):
    """When a connection sends ApiVersions.

    A login sends version 0, whose response has no features.
    """

    ALWAYS = 'also after a login'
    WITHOUT_LOGIN = 'unless a login has asked'
    BY_LOGIN = 'only by a login'


class Established(NamedTuple):
    """A connection that is ready for requests."""

    session: Session
    versions: Optional[BrokerVersions]  # None: ApiVersions was not sent
    lifetime_ms: int  # of the login; 0: unlimited, or no login
    is_unasked: bool  # whether ApiVersions was skipped because it got no response before


class ConnectConversation:
    """The attempts to connect to one address of a broker; each connect() is one attempt.

    Arguments: settings; host, port: the broker's, not resolved; family: of its cluster; wall:
    returns seconds since the epoch, for logins; asks: when to send ApiVersions.

    Attributes: stage: the present stage, one of kafka.net.attempts.STAGES.
    """

    def __init__(
        self,
        settings: NetSettings,
        host: str,
        port: int,
        family: Family,
        wall: Callable[[], float],
        asks: VersionsAsked = VersionsAsked.ALWAYS,
    ) -> None:
        self.stage = 'DNS'
        self._settings = settings
        self._security = settings.security
        self._host = host
        self._port = port
        self._family = family
        self._wall = wall
        self._asks = asks
        self._failures = 0
        # Copied to the family only when it is known to work: a proxy may accept and close
        # connections while the broker behind the proxy restarts.
        self._version = family.versions_version  # version of ApiVersions to send
        self._is_mute = family.is_mute
        # Versions of ApiVersions without a response; True if the broker kept the connection open.
        self._tried: List[Tuple[int, bool]] = []

    def __repr__(self) -> str:
        return '<ConnectConversation %s:%s stage=%s>' % (self._host, self._port, self.stage)

    def may_try_again(self, error: KafkaError) -> bool:
        """Return True if connect() may succeed on another connection after this error.

        It then uses a lower version of ApiVersions, or another form of the login.
        """
        if isinstance(error, _AskLower):
            return True
        if isinstance(error, VersionsUnanswered) and self._settings.api_version:
            self._is_mute = True
            return True
        self._failures += 1
        return self._failures < sasl.MOST_LOGINS and self._may_log_in_otherwise(error)

    def _may_log_in_otherwise(self, error: KafkaError) -> bool:
        if getattr(error, 'login_again', False):
            return True
        if not self._security.uses_gssapi:
            return False
        if isinstance(error, sasl.ClosedAtVersions):
            self._family.lists_versions = False  # a 0.9 broker accepts only tokens before the login
            return True
        return False

    def connect(self) -> Steps[Established]:
        """Connect through proxy and TLS, log in and send ApiVersions, as configured.

        Raises KafkaError, usually with ``stage``; and whatever the driver throws.
        """
        yield from self._open()
        session = self._new_session()
        versions: Optional[BrokerVersions] = None
        lifetime_ms = 0
        known = self._settings.api_version
        obeys = known is not None and _OBEYED_FROM <= known < _UNKNOWN_FROM
        logs_in = self._security.sasl is not None
        if known is not None and (obeys or self._is_mute):
            session.adopt(BrokerVersions(usable_versions(client_ranges(known))))
            if logs_in:
                lifetime_ms = yield from self._log_in(session, sasl.authenticate)
        elif not logs_in:
            if self._asks is not VersionsAsked.BY_LOGIN:
                self.stage = 'ApiVersions'
                yield from self._learn(session)
        elif self._security.uses_gssapi and self._is_bare:
            yield from self._log_in_bare(session)
        else:
            lifetime_ms = yield from self._log_in(session, sasl.authenticate)
            if self._asks is VersionsAsked.ALWAYS:
                yield from self._ask_after_login(session)
        if logs_in or known is not None or self._asks is not VersionsAsked.BY_LOGIN:
            versions = session.versions
        return Established(session, versions, lifetime_ms, self._is_mute and not obeys)

    def ask_versions(self) -> Steps[BrokerVersions]:
        """Probe the versions on an open connection, and on others if necessary.

        Raises KafkaError.
        """
        self.stage = 'ApiVersions'
        return (yield from self._probe()).versions

    def renew_login(self, versions: BrokerVersions) -> Steps[int]:
        """Re-authenticate on an open connection without outstanding responses (KIP-368).

        Returns the session lifetime in ms, 0 for unlimited. Raises KafkaError.
        """
        session = self._new_session()
        session.adopt(versions)
        return (yield from self._log_in(session, sasl.authenticate))

    def _new_session(self) -> Session:
        return Session(
            Role.CLIENT,
            self._settings.client_id,
            max_frame_bytes=self._settings.max_frame_bytes,
        )

    # ------------------------------------------------------------ up to the broker

    def _open(self) -> Steps[None]:
        """Open a connection, through the proxy and with TLS if they are configured."""
        self.stage = 'TCP'
        yield OpenConnection()
        if self._security.proxy is not None:
            yield from self._pass_proxy(self._security.proxy)
        if self._security.tls is not None:
            yield from self._start_tls()

    def _pass_proxy(self, url: str) -> Steps[None]:
        self.stage = 'proxy'
        host = self._host
        if not proxy.resolves_names(url):
            host = yield ResolveHost()
        steps = proxy.handshake(
            url, host, int(self._port)
        )  # the port of a blocking client may be text
        try:
            data = next(steps)
            while True:
                if data:
                    yield SendBytes(data)
                data = steps.send((yield ReceiveBytes()))
        except StopIteration:
            return

    def _start_tls(self) -> Steps[None]:
        self.stage = 'TLS'
        client = tls.TlsClient(self._security.context(), self._host)
        try:
            while not client.handshake():
                client.receive((yield from self._tls_response(client.outgoing())))
        except TlsError:
            yield from self._send_alert(client.outgoing())
            raise
        finished = client.outgoing()
        if finished:
            yield SendBytes(finished)
        yield StartTls(client)

    def _tls_response(self, data: bytes) -> Steps[bytes]:
        """Send a flight of the TLS handshake and return the received bytes.

        b'' if the peer closes or resets the connection.
        """
        try:
            if data:
                yield SendBytes(data)
            received: bytes = yield ReceiveBytes()
        except (OSError, KafkaConnectionError) as error:
            if not _is_reset(error):
                raise
            return b''
        return received

    def _send_alert(self, alert: bytes) -> Steps[None]:
        """Send the TLS alert of a failed handshake; ignore a connection that is closed already."""
        if alert:
            try:
                yield SendBytes(alert)
            except (OSError, KafkaConnectionError):
                pass

    # ------------------------------------------------------------ the login

    @property
    def _is_bare(self) -> bool:
        """Whether GSSAPI tokens are sent without a preceding request, as to 0.9 brokers."""
        return self._settings.release is not None or self._family.lists_versions is False

    def _log_in_bare(self, session: Session) -> Steps[None]:
        """Log in to a 0.9 broker."""
        session.adopt(BrokerVersions(dict(OLD_RELEASES[self._settings.release or '0.9'])))
        try:
            yield from self._log_in(session, sasl.authenticate_bare)
        except KafkaError:
            self._family.lists_versions = None  # the next attempt sends ApiVersions again
            raise

    def _log_in(
        self, session: Session, login: Callable[[Session, sasl.Mechanism], sasl.Login]
    ) -> Steps[int]:
        """Log in on a session without other requests.

        Returns the session lifetime in ms, 0 for unlimited.
        """
        self.stage = 'SASL'
        mechanism = yield from prepare_login(self._settings, self._host, self._wall())
        steps = log_in(login(session, mechanism))
        result: Any = None
        while True:
            try:
                action = steps.send(result)
            except StopIteration as done:
                lifetime_ms: int = done.value
                return lifetime_ms
            if isinstance(action, AskBroker):
                result = yield from self._login_response(session, action.data)
            else:
                result = yield action

    def _login_response(self, session: Session, data: bytes) -> Steps[Optional[Event]]:
        """Send a login request and return its response.

        None if the broker closes the connection.
        """
        try:
            yield SendBytes(data)
            event = yield from self._next_event(session, ReceiveBytes())
        except (OSError, KafkaConnectionError) as error:
            if not _is_reset(error):
                raise
            return None
        return event if event is not None and sasl.is_step(event) else None

    def _next_event(self, session: Session, receive: ReceiveBytes) -> Steps[Optional[Event]]:
        """Return the next event of a session, None if the broker did not respond in time."""
        while True:
            event = session.next_event()
            if event is NEED_DATA:
                data: Optional[bytes] = yield receive
                if data is None:
                    return None
                session.receive_data(data)
            elif isinstance(event, SendData):
                yield SendBytes(event.data)
            else:
                return event

    # ------------------------------------------------------------ the versions

    def _learn(self, session: Session) -> Steps[None]:
        """Find out the versions of the broker: by ApiVersions, or by the probe.

        If the option api_version names a release before 0.10, a broker of a cluster without
        ApiVersions is taken for that release.
        """
        release = self._settings.release
        if release is not None and self._family.lists_versions is False:
            session.adopt(BrokerVersions(dict(OLD_RELEASES[release])))
        elif self._family.lists_versions:
            try:
                yield from self._ask(session)
            except _AskLower:
                raise
            except KafkaError:
                self._family.lists_versions = None  # the next attempt uses the probe
                raise
        else:
            session.adopt((yield from self._probe()).versions)

    def _probe(self) -> Steps[ProbeResult]:
        settings = self._settings
        probe = probe_versions(settings.client_id, settings.release, self._version)
        result = yield from ask_versions(
            self._noting(probe), self._reopen, settings.max_frame_bytes
        )
        return result

    def _noting(self, probe: Probe) -> Probe:
        """Record the result of a probe in the family, before a reconnect can fail."""
        result = yield from probe
        self._family.lists_versions = result.release is None
        if result.release is None:
            self._family.versions_version = result.asked_version
        return result

    def _reopen(self) -> Steps[None]:
        yield from self._open()
        self.stage = 'ApiVersions'

    def _ask_after_login(self, session: Session) -> Steps[None]:
        self.stage = 'ApiVersions'
        if self._version > 0:
            yield from self._ask(session)
        else:  # the login has already sent version 0
            self._family.versions_version = 0

    def _ask(self, session: Session) -> Steps[None]:
        """Send ApiVersions. Raises _AskLower if a lower version is to be tried."""
        version = self._version
        lower = versions_to_try(version - 1)
        event: Optional[Event] = None
        was_silent = False
        try:
            yield SendBytes(session.negotiate(version))
            receive = ReceiveBytes(SILENT_SECONDS if lower else None)
            event = yield from self._next_event(session, receive)
            was_silent = event is None
        except (OSError, KafkaConnectionError) as error:
            if not _is_reset(error):
                raise
        if isinstance(event, VersionsNegotiated):
            self._family.versions_version = version
            return
        if event is not None and not isinstance(event, ConnectionClosed):
            raise ProtocolError('the broker answered ApiVersions with something else')
        self._tried.append((version, was_silent))
        text = unanswered_text(self._tried)
        if not lower:
            told = '; this port may want TLS' if self._security.is_plain else ''
            raise VersionsUnanswered(text + told)
        self._version = lower[0]
        raise _AskLower(text)
