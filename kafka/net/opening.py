"""The event loop's driver of the connect conversation (connect.py): an Opening connects a broker.

node_connection.py creates an Opening for each attempt to connect, and calls prepare_again() to
re-authenticate. Used only by the thread that runs the loop.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, TypeVar, Union

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)
from kafka.net import proxy
from kafka.net.attempts import Attempt, at_stage, given_up, hint_for, stage_of
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
    prepare_login,
)
from kafka.net.resolver import Address
from kafka.net.sasl import Mechanism
from kafka.net.secured import SecuredTransport
from kafka.net.settings import NetSettings
from kafka.protocol.session import Session

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.transport import Transport

__all__ = ['Opened', 'Opening', 'prepare_again']

log = logging.getLogger(__name__)

T = TypeVar('T')

#: Minimum seconds between two attempts to prepare a login.
LEAST_PAUSE = 0.05


class Opened(NamedTuple):
    """A connection that is ready for requests."""

    transport: Union[Transport, SecuredTransport]
    session: Session
    ip: str
    login_lifetime_ms: int  # 0: unlimited, or no login
    is_unasked: bool  # whether ApiVersions was skipped because it got no response before


async def _prepare(loop: EventLoop, settings: NetSettings, host: str) -> Mechanism:
    steps = prepare_login(settings, host, loop.wall())
    while True:
        try:
            action = next(steps)
        except StopIteration as done:
            prepared: Mechanism = done.value
            return prepared
        assert isinstance(action, RunBlocking)
        await _run_blocking(loop, settings, action)


async def _run_blocking(loop: EventLoop, settings: NetSettings, action: RunBlocking) -> None:
    await loop.blocking(action.function, settings.setup_timeout, 'the login')


async def prepare_again(
    loop: EventLoop, settings: NetSettings, host: str, ends_at: float
) -> Mechanism:
    """Return a mechanism to re-authenticate with; retry until the present login expires.

    Arguments: ends_at: time of the loop at which it expires. Raises KafkaError.
    """
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
    """Connects to a broker, trying all its addresses once.

    Arguments: loop; settings; host, port: the broker's; family: of its cluster.

    Attributes: attempts: the failed ones, in order.
    """

    def __init__(
        self, loop: EventLoop, settings: NetSettings, host: str, port: int, family: Family
    ) -> None:
        self.attempts: List[Attempt] = []
        self._loop = loop
        self._settings = settings
        self._host = host
        self._port = port
        self._family = family
        self._conversation = self._begin()
        self._transport: Union[Transport, SecuredTransport, None] = None
        self._began: Optional[float] = None  # start of the attempt in progress
        self._ip: Optional[str] = None
        self._silent_at: Optional[float] = None  # when ReceiveBytes returns None

    def __repr__(self) -> str:
        stage = self._conversation.stage
        return '<Opening %s:%s stage=%s>' % (self._host, self._port, stage)

    def _begin(self) -> ConnectConversation:
        where = self._host, self._port
        return ConnectConversation(self._settings, *where, self._family, self._wall)

    def _wall(self) -> float:
        return self._loop.wall()

    async def run(self, seconds: float) -> Opened:
        """Return a connection that is ready for requests.

        Arguments: seconds: timeout for each address, and for resolving the name.

        Raises the KafkaError of the last address if all fail; `attempts` has the errors of all.
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
                raise  # other addresses are of the same broker, which may count wrong passwords
            except KafkaError:
                if address is addresses[-1]:
                    raise
        raise KafkaConnectionError('%s has no address' % self._host)

    async def _addresses(self, seconds: float) -> List[Address]:
        url = self._settings.security.proxy
        if url is None:
            return await self._resolve(self._host, self._port, seconds)
        at = proxy.parse(url)
        return await self._resolve(at.host, at.port, seconds)

    async def _resolve(self, host: str, port: int, seconds: float) -> List[Address]:
        found: List[Address] = await self._loop.resolve(host, port, seconds)
        return found

    async def _open_again(self, address: Address, seconds: float) -> Opened:
        """Connect to one address, repeatedly if may_try_again() says so."""
        self._conversation = conversation = self._begin()
        while True:
            began = self._began = self._loop.time()
            self._ip = address.ip
            try:
                steps = conversation.connect()
                opening = self._drive(steps, address, seconds)
                established: Established = await self._loop.within(seconds, opening)
                session, _, lifetime_ms, is_unasked = established
                return Opened(self._connection, session, address.ip, lifetime_ms, is_unasked)
            except KafkaError as error:
                self._drop()
                self._note(began, address.ip, error)
                if not conversation.may_try_again(error):
                    raise
            except Exception as error:
                # An error of a mechanism that the program has registered, or a bug: handled like
                # any failed attempt, or callers that wait for the broker would retry without
                # backoff.
                log.exception('connecting to %s:%s failed', self._host, self._port)
                self._drop()
                failure = KafkaConnectionError('connecting failed: %r' % error)
                self._note(began, address.ip, failure)
                raise at_stage(failure, conversation.stage) from error
            except BaseException:
                self._drop()
                raise

    @property
    def _connection(self) -> Union[Transport, SecuredTransport]:
        assert self._transport is not None
        return self._transport

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def give_up(self) -> List[Attempt]:
        """Return all attempts; the one in progress counts as timed out."""
        if self._began is not None:
            self._note(self._began, self._ip, given_up())
        return self.attempts

    def _note(self, began: float, ip: Optional[str], error: KafkaError) -> None:
        self._began = None
        stage = stage_of(error, self._conversation.stage)
        address = '%s:%s' % (self._host, self._port)
        seconds = self._loop.time() - began
        self.attempts.append(Attempt(address, ip, stage, seconds, error, hint_for(stage, error)))

    # ------------------------------------------------------------ one connection

    async def _drive(self, steps: Steps[T], address: Address, seconds: float) -> T:
        try:
            action = next(steps)
            while True:
                try:
                    result = await self._do(action, address, seconds)
                except KafkaError as error:
                    action = steps.throw(error)
                else:
                    action = steps.send(result)
        except StopIteration as done:
            made: T = done.value
            return made

    async def _do(self, action: Action, address: Address, seconds: float) -> Any:
        """Do an action and return its result. Raises KafkaError."""
        if isinstance(action, ReceiveBytes):
            return await self._receive(action.silent_seconds, seconds)
        self._silent_at = None
        if isinstance(action, SendBytes):
            self._connection.write([action.data])
        elif isinstance(action, OpenConnection):
            self._drop()
            self._transport = await self._loop.connect(address, seconds, self._settings.socket)
            self._transport.expecting = True
        elif isinstance(action, StartTls):
            self._transport = SecuredTransport(self._connection, action.client)
        elif isinstance(action, RunBlocking):
            await _run_blocking(self._loop, self._settings, action)
        else:
            assert isinstance(action, ResolveHost)
            return (await self._resolve(self._host, self._port, seconds))[0].ip
        return None

    async def _receive(self, silent_seconds: Optional[float], seconds: float) -> Optional[bytes]:
        """Return the next bytes; None if there are none within `silent_seconds`."""
        received: bytes
        if silent_seconds is None:
            self._silent_at = None
            received = await self._connection.recv()
            return received
        now = self._loop.time()
        if self._silent_at is None:
            self._silent_at = now + min(silent_seconds, seconds / 4)
        try:
            received = await self._loop.within(self._silent_at - now, self._connection.recv())
        except KafkaTimeoutError:
            return None
        return received
