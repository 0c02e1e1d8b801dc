"""The conversation from opening a connection to a broker to the first request, without a socket.

Proxy, TLS, SASL (KIP-43, KIP-152), ApiVersions (KIP-35, KIP-511) and renewing a login (KIP-368), as
generators. Four drivers run them: the event loop (opening.py, and broker.py to renew a login),
blocking sockets (blocking.py, kafka/conn.py) and the sockets of the evented clients, which never
wait (evented/stepped_socket.py).

A generator yields actions and is sent their results; an action that fails is answered by throwing
its KafkaError or OSError into the generator. A driver is a loop::

    action = next(steps)
    while True:                       # until StopIteration, which carries the result
        try:
            result = do(action)
        except (OSError, KafkaError) as error:
            action = steps.throw(error)
        else:
            action = steps.send(result)

An exception that ends the generator ends the connection too; the driver closes the socket.
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
    # A blocking client without security asks for versions by this module, and needs none of them.
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

# A release from this one on serves what later ones up to 4.4 serve too (KIP-896): if the option
# api_version names one, brokers are not asked. 4.0 dropped versions of the releases before 2.1.
_OBEYED_FROM = (2, 1)
_UNKNOWN_FROM = (*map(int, NEWEST.split('.')), math.inf)


# ---------------------------------------------------------------- actions


class OpenConnection(NamedTuple):
    """Connect to the broker, or to its proxy if there is one; close the connection before."""


class ResolveHost(NamedTuple):
    """Look up the broker's name. Result: an IP address as text."""


class SendBytes(NamedTuple):
    """Send bytes, through TLS once it has started. They may contain secrets: never log them."""

    data: bytes

    def __repr__(self) -> str:
        return '<SendBytes %d>' % len(self.data)


class ReceiveBytes(NamedTuple):
    """Wait for bytes, at least one. Result: the bytes, decrypted; b'' at the end of the stream.

    ``silent_seconds``: how long the broker may stay silent, counted from the first of consecutive
    ReceiveBytes that have it; the result is None then. None: as long as the driver has time.
    """

    silent_seconds: Optional[float] = None


class StartTls(NamedTuple):
    """Send and receive through TLS from now on; the handshake is done."""

    client: tls.TlsClient


class RunBlocking(NamedTuple):
    """Call a function that may block, in another thread. No result; what it raises is thrown."""

    function: Callable[[], Any]


class AskBroker(NamedTuple):
    """Send a request of a login on a session. Result: the event of its response.

    None if the broker has closed the connection. Only log_in() yields it.
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

    Arguments: host: the broker's name as it was given; wall: seconds since the epoch.
    """
    assert settings.security.sasl is not None
    mechanism = sasl.mechanism(settings.security.sasl, host, wall)
    if sasl.takes_time(mechanism):
        yield RunBlocking(partial(sasl.prepare, mechanism))
    return mechanism


def log_in(login: sasl.Login) -> Steps[int]:
    """Log in, or renew a login (KIP-368); return its lifetime in ms, 0 for ever.

    Arguments: login: of kafka.net.sasl. Raises as that.
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
    """Find out what a broker serves, of which nothing is known (protocol/probe.py).

    On a connection without unread responses. Arguments: reconnect: opens another connection.
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
    """Do a step of the probe; None if the broker closes the connection, SILENCE."""
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
    """Return True if the peer broke the connection, which means the same as closing it."""
    return isinstance(error, ConnectionError) or isinstance(error.__cause__, ConnectionError)


# ---------------------------------------------------------------- the whole


class _AskLower(KafkaConnectionError):
    """A version of ApiVersions was not answered: the next connection asks in a lower one."""


class Family:
    """What the brokers of one cluster have in common, learned from the first of them.

    Attributes: lists_versions: whether they answer ApiVersions, so that others need not be probed;
    None: not known; versions_version: the highest version of ApiVersions that was answered, which
    the next connection begins with; is_mute: whether they answered no version of it, but other
    requests.
    """

    def __init__(self) -> None:
        self.lists_versions: Optional[bool] = None
        self.versions_version = VERSIONS_TRIED[0]
        self.is_mute = False
        self.warned_at: Dict[Any, float] = {}  # of each node that cannot be reached

    def __repr__(self) -> str:
        return '<Family lists_versions=%s>' % self.lists_versions


class VersionsAsked(enum.Enum):
    """When a connection asks for the versions of its broker.

    A login asks in version 0, which lists no features.
    """

    ALWAYS = 'also after a login'
    WITHOUT_LOGIN = 'unless a login has asked'
    BY_LOGIN = 'only by a login'


class Established(NamedTuple):
    """A connection that is ready for requests."""

    session: Session
    versions: Optional[BrokerVersions]  # None: nobody asked
    lifetime_ms: int  # of the login; 0: for ever, or there was none
    is_unasked: bool  # whether the broker was not asked for its versions, after it did not answer


class ConnectConversation:
    """All tries to connect to one address of a broker; connect() is one of them.

    Arguments: settings; host, port: the broker's as they were given; family: of its cluster; wall:
    returns seconds since the epoch, for logins; asks: when to ask for the broker's versions.

    Attributes: stage: how far it is, one of kafka.net.attempts.STAGES.
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
        self._logins = 0  # that were refused
        # The family is told once it is known to work: a proxy may take and close connections while
        # the broker behind it restarts.
        self._version = family.versions_version  # of ApiVersions, to ask in
        self._is_mute = family.is_mute
        # Versions of ApiVersions that were not answered, each with whether the broker was silent.
        self._tried: List[Tuple[int, bool]] = []

    def __repr__(self) -> str:
        return '<ConnectConversation %s:%s stage=%s>' % (self._host, self._port, self.stage)

    def may_try_again(self, error: KafkaError) -> bool:
        """Return True if connect() may get further on another connection, after this error.

        It goes another way there: a lower version of ApiVersions, another form of the login.
        """
        if isinstance(error, _AskLower):
            return True
        if isinstance(error, VersionsUnanswered) and self._settings.api_version:
            self._is_mute = True
            return True
        self._logins += 1
        return self._logins < sasl.MOST_LOGINS and self._may_log_in_otherwise(error)

    def _may_log_in_otherwise(self, error: KafkaError) -> bool:
        if getattr(error, 'login_again', False):
            return True
        if not self._security.uses_gssapi:
            return False
        if isinstance(error, sasl.ClosedAtVersions):
            self._family.lists_versions = False  # 0.9 takes nothing but tokens there
            return True
        return False

    def connect(self) -> Steps[Established]:
        """Connect, through the proxy and TLS, log in, and ask for versions, as the settings say.

        Raises KafkaError, most with ``stage``; what the driver throws.
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
        """Ask on a connection that is open, and on others if need be. Raises KafkaError."""
        self.stage = 'ApiVersions'
        return (yield from self._probe()).versions

    def renew_login(self, versions: BrokerVersions) -> Steps[int]:
        """Log in once more on an open connection without unread responses (KIP-368).

        Returns the lifetime of the login in ms, 0 for ever. Raises KafkaError.
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
        """Connect, through the proxy and in TLS where that is wanted."""
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
        steps = proxy.handshake(url, host, int(self._port))  # blocking clients take text too
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
        """Send a flight of the handshake and return what comes, b'' if the peer ends or resets."""
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
        """Tell the broker why the handshake failed, if it still listens."""
        if alert:
            try:
                yield SendBytes(alert)
            except (OSError, KafkaConnectionError):
                pass

    # ------------------------------------------------------------ the login

    @property
    def _is_bare(self) -> bool:
        """Whether brokers take the tokens of GSSAPI at once, without being asked anything."""
        return self._settings.release is not None or self._family.lists_versions is False

    def _log_in_bare(self, session: Session) -> Steps[None]:
        """Log in at a broker of 0.9."""
        session.adopt(BrokerVersions(dict(OLD_RELEASES[self._settings.release or '0.9'])))
        try:
            yield from self._log_in(session, sasl.authenticate_bare)
        except KafkaError:
            self._family.lists_versions = None  # next time it is asked
            raise

    def _log_in(
        self, session: Session, login: Callable[[Session, sasl.Mechanism], sasl.Login]
    ) -> Steps[int]:
        """Log in on a session that nothing else uses; return the lifetime in ms, 0 for ever."""
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
        """Send a step of the login and return its response, None if the broker closes."""
        try:
            yield SendBytes(data)
            event = yield from self._next_event(session, ReceiveBytes())
        except (OSError, KafkaConnectionError) as error:
            if not _is_reset(error):
                raise
            return None
        return event if event is not None and sasl.is_step(event) else None

    def _next_event(self, session: Session, receive: ReceiveBytes) -> Steps[Optional[Event]]:
        """Return the next event of a session, None if the broker was silent for too long."""
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
        """Find out what the broker serves, in the way that its cluster understands.

        A release before 0.10 that the option api_version names is what an old broker is taken for.
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
                self._family.lists_versions = None  # next time it is probed
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
        """Tell the family what a probe finds, before a connection that follows may fail."""
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
        else:  # the login has asked the same
            self._family.versions_version = 0

    def _ask(self, session: Session) -> Steps[None]:
        """Ask for the versions. Raises _AskLower where another version is to be tried."""
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
