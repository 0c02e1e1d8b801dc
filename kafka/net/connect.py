"""The way to a broker that is ready: name, TCP, proxy, TLS, login, versions.

Owns the order of the stages and what is told of a failure. Does not own: what the stages do (their
modules), when it is tried again and what flows afterwards (broker.py).
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Tuple

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    SaslAuthenticationFailedError,
)
from kafka.net import proxy
from kafka.net.attempts import Attempt, at_stage, given_up, hint_for, stage_of
from kafka.net.resolver import Address
from kafka.net.sasl import (
    LoggedIn,
    Login,
    Mechanism,
    authenticate,
    authenticate_bare,
    is_step,
    mechanism,
    prepare,
    takes_time,
)
from kafka.net.sasl.login import MOST_LOGINS, ClosedAtVersions
from kafka.net.secured import start_tls
from kafka.net.settings import NetSettings
from kafka.protocol.frames import FrameReader
from kafka.protocol.negotiation import BrokerVersions, usable_versions
from kafka.protocol.probe import (
    OLD_RELEASES,
    SILENCE,
    SILENT_SECONDS,
    VERSIONS_TRIED,
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

__all__ = ['Family', 'Opened', 'Opening', 'next_event', 'prepare_again']

log = logging.getLogger(__name__)

#: Seconds between two tries to prepare a login, at least.
LEAST_PAUSE = 0.05


#: What a release from this one on serves, later ones up to 4.4 serve too (KIP-896): if the option
#: api_version names one, brokers are not asked. 4.0 has dropped versions of the releases before.
_OBEYED_FROM = (2, 1)
_UNKNOWN_FROM = (*map(int, NEWEST.split('.')), math.inf)


class _AskLower(KafkaConnectionError):
    """A version of ApiVersions was not answered: the next connection asks in a lower one."""


class Family:
    """What the brokers of one cluster have in common, learned from the first of them.

    Attributes: lists_versions: whether they answer ApiVersions, so that others need not be probed;
    None: not known; versions_version: the highest version of ApiVersions that was answered, which
    is where the next connection begins; is_mute: whether they answered no version of it, and other
    requests.
    """

    def __init__(self) -> None:
        self.lists_versions: Optional[bool] = None
        self.versions_version = VERSIONS_TRIED[0]
        self.is_mute = False
        self.warned_at: Dict[Any, float] = {}  # of each node that cannot be reached

    def __repr__(self) -> str:
        return '<Family lists_versions=%s>' % self.lists_versions


class Opened(NamedTuple):
    """A connection that is ready for requests."""

    transport: Any
    session: Session
    ip: str
    login_lifetime_ms: int  # 0: for ever, or no login
    is_unasked: bool  # whether the broker was not asked for its versions, after it did not answer


async def next_event(transport: Any, session: Session) -> Event:
    """Return the next event of a session, reading what it takes; write what it wants sent."""
    while True:
        event = session.next_event()
        if event is NEED_DATA:
            session.receive_data(await transport.recv())
        elif isinstance(event, SendData):
            transport.write([event.data])
        else:
            return event


async def _prepare(loop: Any, settings: NetSettings, host: str) -> Mechanism:
    """Return what logs in, ready to begin; what takes time is done in another thread."""
    assert settings.security.sasl is not None
    login = mechanism(settings.security.sasl, host, loop.wall())
    if takes_time(login):
        await loop.blocking(partial(prepare, login), settings.setup_timeout, 'the login')
    return login


async def prepare_again(loop: Any, settings: NetSettings, host: str, ends_at: float) -> Mechanism:
    """Return what renews a login; tries until that login ends. Raises KafkaError."""
    pause = max(settings.reconnect_backoff, LEAST_PAUSE)
    longest = max(pause, settings.reconnect_backoff_max)
    while True:
        try:
            return await _prepare(loop, settings, host)
        except KafkaError as error:
            if not error.retriable or loop.time() + pause >= ends_at:
                raise
        await loop.sleep(pause)
        pause = min(2 * pause, longest)


class Opening:
    """One round of tries to connect to a broker, over all its addresses.

    Arguments: loop; settings; host, port: the broker's; family: of its cluster.

    Attributes: attempts: those that failed, in their order.
    """

    def __init__(
        self, loop: Any, settings: NetSettings, host: str, port: int, family: Family
    ) -> None:
        self.attempts: List[Attempt] = []
        self._loop = loop
        self._settings = settings
        self._security = settings.security
        self._host = host
        self._port = port
        self._family = family
        self._stage = 'DNS'
        self._transport: Any = None
        self._began: Optional[float] = None  # the attempt that is under way
        self._ip: Optional[str] = None
        self._logins = 0  # that were refused at this address
        # What the family is not told before it is known to work: a proxy may take and close
        # connections while the broker behind it restarts.
        self._version = family.versions_version  # of ApiVersions, to ask in
        self._is_mute = family.is_mute
        # Versions of ApiVersions that were not answered, each with whether the broker was silent.
        self._tried: List[Tuple[int, bool]] = []

    def __repr__(self) -> str:
        return '<Opening %s:%s stage=%s>' % (self._host, self._port, self._stage)

    async def run(self, seconds: float) -> Opened:
        """Return a connection that is ready.

        Arguments: seconds: how long each address may take, and the look-up.

        Raises the KafkaError of the last address when none works; `attempts` has them all.
        """
        began = self._began = self._loop.time()
        try:
            addresses = await self._addresses(seconds)
        except KafkaError as error:
            self._note(began, None, error)
            raise
        for address in addresses:
            try:
                return await self._open_again(address, seconds)
            except SaslAuthenticationFailedError:
                raise  # the other addresses are the same broker, which counts wrong passwords
            except KafkaError:
                if address is addresses[-1]:
                    raise
        raise KafkaConnectionError('%s has no address' % self._host)

    async def _addresses(self, seconds: float) -> List[Address]:
        url = self._security.proxy
        if url is None:
            return await self._resolve(self._host, self._port, seconds)
        at = proxy.parse(url)
        return await self._resolve(at.host, at.port, seconds)

    async def _resolve(self, host: str, port: int, seconds: float) -> List[Address]:
        found: List[Address] = await self._loop.resolve(host, port, seconds)
        return found

    async def _open_again(self, address: Address, seconds: float) -> Opened:
        """Open, and again where a login that was refused may go otherwise now."""
        self._logins, self._tried = 0, []
        self._version, self._is_mute = self._family.versions_version, self._family.is_mute
        for _ in range(MOST_LOGINS + len(VERSIONS_TRIED) + 1):
            began = self._began = self._loop.time()
            self._ip = address.ip
            try:
                opened: Opened = await self._loop.within(seconds, self._open(address, seconds))
                return opened
            except KafkaError as error:
                self._drop()
                self._note(began, address.ip, error)
                if isinstance(error, _AskLower):
                    continue
                if isinstance(error, VersionsUnanswered) and self._settings.api_version:
                    self._is_mute = True
                    continue
                self._logins += 1
                if self._logins >= MOST_LOGINS or not self._may_go_otherwise(error):
                    raise
            except Exception as error:
                # Of a mechanism that the program registered, or a mistake here: a failed try as
                # any other, or those who wait for the broker would try again without a pause.
                log.exception('connecting to %s:%s failed', self._host, self._port)
                self._drop()
                failure = KafkaConnectionError('connecting failed: %r' % error)
                self._note(began, address.ip, failure)
                raise at_stage(failure, self._stage) from error
            except BaseException:
                self._drop()
                raise
        raise KafkaConnectionError('%s:%s was given up' % (self._host, self._port))

    def _may_go_otherwise(self, error: KafkaError) -> bool:
        if getattr(error, 'login_again', False):
            return True
        if not self._security.uses_gssapi:
            return False
        if isinstance(error, ClosedAtVersions):
            self._family.lists_versions = False  # those of 0.9 take nothing but tokens there
            return True
        return False

    async def _open(self, address: Address, seconds: float) -> Opened:
        await self._dial(address, seconds)
        session = self._new_session()
        lifetime_ms = 0
        known = self._settings.api_version
        obeys = known is not None and _OBEYED_FROM <= known < _UNKNOWN_FROM
        if known is not None and (obeys or self._is_mute):
            session.adopt(BrokerVersions(usable_versions(client_ranges(known))))
            if self._security.sasl is not None:
                lifetime_ms = await self._log_in(session, authenticate)
        elif self._security.sasl is None:
            self._stage = 'ApiVersions'
            await self._learn(session, address, seconds)
        elif self._security.uses_gssapi and self._is_bare:
            await self._log_in_bare(session)
        else:
            lifetime_ms = await self._log_in(session, authenticate)
            self._stage = 'ApiVersions'
            if self._version > 0:
                await self._ask(session, seconds)
            else:  # the login has asked the same
                self._family.versions_version = 0
        is_unasked = self._is_mute and not obeys
        return Opened(self._transport, session, address.ip, lifetime_ms, is_unasked)

    @property
    def _is_bare(self) -> bool:
        """Whether brokers take the tokens of GSSAPI at once, without being asked anything."""
        return self._settings.release is not None or self._family.lists_versions is False

    def _new_session(self) -> Session:
        return Session(
            Role.CLIENT,
            self._settings.client_id,
            max_frame_bytes=self._settings.max_frame_bytes,
        )

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def give_up(self) -> List[Attempt]:
        """Return all attempts, with the one that is under way as one that took too long."""
        if self._began is not None:
            self._note(self._began, self._ip, given_up())
        return self.attempts

    def _note(self, began: float, ip: Optional[str], error: KafkaError) -> None:
        self._began = None
        stage = stage_of(error, self._stage)
        address = '%s:%s' % (self._host, self._port)
        seconds = self._loop.time() - began
        self.attempts.append(Attempt(address, ip, stage, seconds, error, hint_for(stage, error)))

    # ------------------------------------------------------------ up to the broker

    async def _dial(self, address: Address, seconds: float) -> None:
        """Connect, through the proxy and in TLS where that is wanted."""
        self._stage = 'TCP'
        self._transport = await self._loop.connect(address, seconds, self._settings.socket)
        self._transport.expecting = True
        if self._security.proxy is not None:
            await self._pass_proxy(self._security.proxy, seconds)
        if self._security.tls is not None:
            self._stage = 'TLS'
            self._transport = await start_tls(self._transport, self._security.context(), self._host)

    async def _pass_proxy(self, url: str, seconds: float) -> None:
        self._stage = 'proxy'
        host = self._host
        if not proxy.resolves_names(url):
            host = (await self._resolve(host, self._port, seconds))[0].ip
        steps = proxy.handshake(url, host, self._port)
        try:
            data = next(steps)
            while True:
                if data:
                    self._transport.write([data])
                data = steps.send(await self._transport.recv())
        except StopIteration:
            return

    # ------------------------------------------------------------ the login

    async def _log_in_bare(self, session: Session) -> None:
        """Log in at a broker of 0.9."""
        session.adopt(BrokerVersions(dict(OLD_RELEASES[self._settings.release or '0.9'])))
        try:
            await self._log_in(session, authenticate_bare)
        except KafkaError:
            self._family.lists_versions = None  # next time it is asked
            raise

    async def _log_in(self, session: Session, log_in: Callable[[Session, Mechanism], Login]) -> int:
        """Log in; return how long that lasts, in ms, 0 for ever."""
        self._stage = 'SASL'
        login = await _prepare(self._loop, self._settings, self._host)
        steps = log_in(session, login)
        answer: Optional[Event] = None
        while True:
            try:
                data = steps.send(answer)
            except StopIteration as done:
                logged_in: LoggedIn = done.value
                if logged_in.unsent:
                    self._transport.write([logged_in.unsent])
                return logged_in.lifetime_ms
            answer = await self._answer_to_step(session, data)

    async def _answer_to_step(self, session: Session, data: bytes) -> Optional[Event]:
        """Send a step of the login and return its answer, None if the broker closes."""
        try:
            self._transport.write([data])
            event = await next_event(self._transport, session)
        except KafkaConnectionError as error:
            if isinstance(error.__cause__, ConnectionError):
                return None
            raise
        return event if is_step(event) else None

    # ------------------------------------------------------------ the versions

    async def _learn(self, session: Session, address: Address, seconds: float) -> None:
        """Find out what the broker serves, in the way that its cluster understands.

        A release before 0.10 that the option api_version tells is what an old broker is taken for.
        """
        release = self._settings.release
        if release is not None and self._family.lists_versions is False:
            session.adopt(BrokerVersions(dict(OLD_RELEASES[release])))
        elif self._family.lists_versions:
            try:
                await self._ask(session, seconds)
            except _AskLower:
                raise
            except KafkaError:
                self._family.lists_versions = None  # next time it is probed
                raise
        else:
            result = await self._probe(address, seconds)
            session.adopt(result.versions)
            self._family.lists_versions = result.release is None
            if result.release is None:
                self._family.versions_version = result.asked_version
            if not result.connected:
                self._drop()
                await self._dial(address, seconds)

    async def _ask(self, session: Session, seconds: float) -> None:
        """Ask for the versions. Raises _AskLower where another version is to be tried."""
        version = self._version
        lower = versions_to_try(version - 1)
        self._transport.write([session.negotiate(version)])
        limit = min(SILENT_SECONDS, seconds / 4) if lower else seconds
        was_silent = False
        try:
            event = await self._loop.within(limit, next_event(self._transport, session))
        except KafkaTimeoutError:
            if not lower:
                raise
            was_silent = True
        except KafkaConnectionError as error:
            if not isinstance(error.__cause__, ConnectionError):
                raise
        else:
            if isinstance(event, VersionsNegotiated):
                self._family.versions_version = version
                return
            if not isinstance(event, ConnectionClosed):
                raise ProtocolError('the broker answered ApiVersions with something else')
        self._tried.append((version, was_silent))
        text = unanswered_text(self._tried)
        if not lower:
            told = '; this port may want TLS' if self._security.is_plain else ''
            raise VersionsUnanswered(text + told)
        self._version = lower[0]
        raise _AskLower(text)

    async def _probe(self, address: Address, seconds: float) -> ProbeResult:
        """Ask a broker of which nothing is known (probe.py)."""
        frames = FrameReader(self._settings.max_frame_bytes)
        probe: Generator[ProbeStep, Optional[bytes], ProbeResult]
        highest = self._version
        probe = probe_versions(self._settings.client_id, self._settings.release, highest)
        answer: Optional[bytes] = None
        while True:
            try:
                step = probe.send(answer)
            except StopIteration as done:
                result: ProbeResult = done.value
                return result
            if step.reconnect:
                self._drop()
                await self._dial(address, seconds)
                self._stage = 'ApiVersions'
                frames = FrameReader(self._settings.max_frame_bytes)
            if not step.may_be_silent:
                answer = await self._answer_to(step, frames)
                continue
            try:
                limit = min(SILENT_SECONDS, seconds / 4)
                answer = await self._loop.within(limit, self._answer_to(step, frames))
            except KafkaTimeoutError:
                answer = SILENCE

    async def _answer_to(self, step: ProbeStep, frames: FrameReader) -> Optional[bytes]:
        """Do a step of the probe; None if the broker closes the connection."""
        try:
            if step.data:
                self._transport.write([step.data])
            while True:
                frame = frames.next_frame()
                if frame is not None:
                    return frame
                data = await self._transport.recv()
                if not data:
                    return None
                frames.receive_data(data)
        except KafkaConnectionError as error:
            if isinstance(error.__cause__, ConnectionError):
                return None
            raise
