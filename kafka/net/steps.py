"""What stands between a connected socket and the first request, as steps without a socket.

Owns the order of proxy, TLS, login and the question for versions on a connection that its caller
drives (evented/stepped_socket.py, blocking.py): bytes in, bytes out. Does not own: the socket, time
limits, and what any of the steps says (proxy.py, tls.py, sasl/, protocol/probe.py).
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Generator, Optional

from kafka.net import proxy, sasl
from kafka.net.failures import TlsError
from kafka.net.loop.helpers import Work
from kafka.net.sasl.login import LoggedIn, Login
from kafka.net.security import SecuritySettings
from kafka.net.tls import TlsClient
from kafka.protocol.frames import FrameReader
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.probe import (
    OLD_RELEASES,
    SILENCE,
    SILENT_SECONDS,
    ProbeStep,
    probe_versions,
)
from kafka.protocol.session import (
    NEED_DATA,
    ConnectionClosed,
    Event,
    Role,
    SendData,
    Session,
)

__all__ = ['Reopen', 'Steps', 'VersionQuestion']

# Sent the bytes that have come, b'' at the end of the stream; yields None when it needs more, or
# what another thread does for it, which is to be waited for: then nothing is sent.
Taking = Generator[Optional[Work], bytes, Any]


class Reopen(Exception):
    """The next step needs another connection to the same broker; no failure."""


class VersionQuestion:
    """The question what a broker serves, which may take several connections (probe.py).

    Attributes: versions: None until it is answered; is_inferred: whether it had to be guessed;
    silent_at: monotonic deadline after which a missing answer counts as SILENCE: the driver then
    sends b''; None: as long as the caller has patience.
    """

    def __init__(self, client_id: Optional[str]) -> None:
        self.versions: Optional[BrokerVersions] = None
        self.is_inferred = False
        self.silent_at: Optional[float] = None
        self._probe = probe_versions(client_id)
        self._step: Optional[ProbeStep] = None

    def ask(self, write: Callable[[bytes], None], frame: Callable[[], Taking]) -> Taking:
        """Ask on a connection. Raises Reopen; KafkaError as probe_versions()."""
        step = next(self._probe) if self._step is None else self._step
        while True:
            if step.data:
                write(step.data)
            self.silent_at = time.monotonic() + SILENT_SECONDS if step.may_be_silent else None
            answer: Optional[bytes] = yield from frame()
            was_silent = self.silent_at is not None and time.monotonic() >= self.silent_at
            self.silent_at = None
            try:
                step = self._probe.send(SILENCE if answer is None and was_silent else answer)
            except StopIteration as done:
                self.versions = done.value.versions
                self.is_inferred = done.value.release is not None
                if done.value.connected:
                    return
                raise Reopen from None
            if step.reconnect:
                self._step = step
                raise Reopen


class Steps:
    """The steps on one socket, and afterwards the way of the bytes through TLS.

    Arguments: security: None for nothing; host, port: of the broker, as they were given;
    client_id; write: takes bytes for the socket.

    Attributes: versions: as a login learned them; renew_at: when to log in again, None for never.
    """

    def __init__(
        self,
        security: Optional[SecuritySettings],
        host: str,
        port: int,
        client_id: Optional[str],
        write: Callable[[bytes], None],
    ) -> None:
        self._security = security
        self._host = host
        self._port = port
        self._client_id = client_id
        self._write_raw = write
        self._tls: Optional[TlsClient] = None
        self._frames = FrameReader()
        self.versions: Optional[BrokerVersions] = None
        self.renew_at: Optional[float] = None

    def take(self, address: str, is_bare: bool, question: Optional[VersionQuestion]) -> Taking:
        """Do all the steps.

        Arguments: address: of the broker, for proxies that look up no names; is_bare: log in as at
        0.9; question: what is to be asked at the end, None for nothing.
        """
        security = self._security
        if security is not None and security.proxy is not None:
            is_named = proxy.resolves_names(security.proxy)
            yield from self._pass_proxy(security.proxy, self._host if is_named else address)
        if security is not None and security.tls is not None:
            yield from self._begin_tls(security)
        if security is not None and security.sasl is not None:
            yield from self.log_in(is_bare)
        elif question is not None and question.versions is None:
            yield from question.ask(self.write, self._frame)

    def ask(self, question: VersionQuestion) -> Taking:
        """Ask on a connection that is open. Raises as VersionQuestion.ask()."""
        yield from question.ask(self.write, self._frame)

    def _pass_proxy(self, url: str, host: str) -> Taking:
        steps = proxy.handshake(url, host, self._port)
        data = next(steps)
        while True:
            if data:
                self._write_raw(data)
            received = yield None
            try:
                data = steps.send(received)
            except StopIteration:
                return

    def _begin_tls(self, security: SecuritySettings) -> Taking:
        self._tls = tls = TlsClient(security.context(), self._host)
        while not self._shakes(tls):
            tls.receive((yield None))

    def _shakes(self, tls: TlsClient) -> bool:
        try:
            is_done = tls.handshake()
        except TlsError:
            try:
                self._flush(tls)  # an alert tells the broker why it failed
            except OSError:
                pass  # it is gone; what it did before is what matters
            raise
        self._flush(tls)
        return is_done

    def log_in(self, is_bare: bool = False) -> Taking:
        """Log in, for the first time or once more. Raises KafkaError with ``stage``."""
        security = self._security
        assert security is not None and security.sasl is not None
        session = Session(Role.CLIENT, self._client_id)
        if is_bare:
            session.adopt(BrokerVersions(OLD_RELEASES['0.9']))
        elif self.versions is not None:
            session.adopt(self.versions)
        mechanism = sasl.mechanism(security.sasl, self._host, time.time())
        if sasl.takes_time(mechanism):
            work = Work(partial(sasl.prepare, mechanism))
            yield work
            work.check()
        log_in: Callable[..., Login] = sasl.authenticate_bare if is_bare else sasl.authenticate
        steps = log_in(session, mechanism)
        data = next(steps)
        while True:
            self.write(data)
            event = yield from self._event(session)
            try:
                data = steps.send(event)
            except StopIteration as done:
                result: LoggedIn = done.value
                break
        if result.unsent:
            self.write(result.unsent)
        self.versions = session.versions
        seconds = sasl.renewal_seconds(result.lifetime_ms)
        self.renew_at = None if seconds is None else time.monotonic() + seconds

    def _event(self, session: Session) -> Generator[Optional[Work], bytes, Optional[Event]]:
        """Return the answer to a step of the login, None if the broker has closed."""
        while True:
            event = session.next_event()
            if isinstance(event, SendData):
                self.write(event.data)
            elif isinstance(event, ConnectionClosed):
                return None
            elif event is not NEED_DATA:
                return event
            else:
                session.receive_data((yield from self._plain()))

    def _plain(self) -> Generator[Optional[Work], bytes, bytes]:
        """Return the next bytes, decrypted; b'' at the end of the stream."""
        while True:
            raw = yield None
            data = self.opened(raw)
            if data or not raw:
                return data

    def _frame(self) -> Generator[Optional[Work], bytes, Optional[bytes]]:
        """Return the next frame, None if the broker has closed."""
        while True:
            frame = self._frames.next_frame()
            if frame is not None:
                return frame
            data = yield from self._plain()
            if not data:
                return None
            self._frames.receive_data(data)

    # ------------------------------------------------------------ bytes

    def write(self, data: bytes) -> None:
        """Send bytes, encrypted if there is TLS."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._tls.outgoing()
        self._write_raw(data)

    def opened(self, raw: bytes) -> bytes:
        """Return what can be decrypted now that these bytes have come. Raises TlsError."""
        tls = self._tls
        if tls is None:
            return raw
        tls.receive(raw)
        pieces = list(iter(tls.read, b''))
        self._flush(tls)
        return b''.join(pieces)

    def say_goodbye(self) -> None:
        """End the encrypted conversation, if there is one; the peer's goodbye is not waited for."""
        if self._tls is not None:
            self._tls.close()
            self._flush(self._tls)

    def _flush(self, tls: TlsClient) -> None:
        data = tls.outgoing()
        if data:
            self._write_raw(data)

    @property
    def is_encrypted(self) -> bool:
        """Whether bytes go through TLS."""
        return self._tls is not None

    @property
    def is_ended(self) -> bool:
        """Whether the peer has ended the encrypted conversation."""
        return self._tls is not None and self._tls.is_ended
