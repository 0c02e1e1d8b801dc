"""The SASL login of one connection, and the SASL settings that all logins of a cluster share.

A state machine of the allowed requests (KIP-43, KIP-152), the lifetime of a login and its renewal
on the connection (KIP-368). Called by handlers/sasl.py, which makes the responses, and by
connection.py, which reads the frames; the mechanisms are in the other modules of this folder.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from kafka.protocol.api import ApiKey
from kafka.protocol.wire import Message
from kafka.testing.security.sasl.mechanisms import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_256,
    SCRAM_512,
    SINCE,
    LoginBroken,
    LoginFailed,
    Mechanism,
    OldPlain,
    Plain,
    remaining_ms,
)
from kafka.testing.security.sasl.oauthbearer import OAuthBearer
from kafka.testing.security.sasl.scram import Scram
from kafka.testing.security.scram import NUMBERS, SALT_BYTES, ScramCredential

if TYPE_CHECKING:
    from kafka.testing.calls import Call
    from kafka.testing.connection import Connection
    from kafka.testing.releases import BrokerRelease
    from kafka.testing.state import ClusterState

#: The minimal interval of re-authentications, in seconds.
RENEW_SECONDS = 1.0
#: The largest frame before a login ...
MAX_TOKEN_BYTES = 524288
#: ... and after it (``socket.request.max.bytes``).
MAX_REQUEST_BYTES = 104857600
_USUAL = (PLAIN, SCRAM_256, SCRAM_512)


class Sasl:
    """The SASL settings of a cluster; ``repr`` does not show passwords.

    Arguments: state: of the cluster; passwords: by user; mechanisms: those that brokers offer.
    """

    def __init__(
        self, state: ClusterState, passwords: Mapping[str, str], mechanisms: Iterable[str]
    ) -> None:
        self.mechanisms = list(mechanisms)
        self._state = state
        self._passwords = dict(passwords)
        for user, password in self._passwords.items():
            for name in self.mechanisms:
                if name in NUMBERS:
                    salt = state.chance.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, 'big')
                    credential = ScramCredential.of(name, password, salt)
                    state.scram.setdefault(user, {})[NUMBERS[name]] = credential

    def __repr__(self) -> str:
        return '<Sasl %s, %d users>' % (','.join(self.mechanisms), len(self._passwords))

    def begin(self, name: str) -> Mechanism:
        """Return a new exchange of one of the offered mechanisms."""
        if name == PLAIN:
            if self._state.release.version < (2, 0):
                return OldPlain(self._passwords)
            return Plain(self._passwords)
        if name == OAUTHBEARER:
            return OAuthBearer(self._state.timers.clock)
        return Scram(name, self._state)


def chosen_mechanisms(release: BrokerRelease, wanted: Optional[Iterable[str]]) -> List[str]:
    """Return the mechanisms that brokers offer, by default those with passwords.

    Raises ValueError for an unknown mechanism, or one that the release does not have; TypeError
    for a string.
    """
    if release.version < (0, 10):
        raise ValueError(
            'Kafka %s has no SASL that an embedded broker can do: 0.9 has GSSAPI only, 0.10 PLAIN'
            % release.name
        )
    if isinstance(wanted, str):
        raise TypeError('mechanisms must be a list of names, not the text %r' % wanted)
    names = [each for each in _USUAL if SINCE[each] <= release.version]
    names = names if wanted is None else list(wanted)
    for name in names:
        if name not in SINCE:
            raise ValueError(
                'no SASL mechanism of embedded brokers: %r; there are %s' % (name, ', '.join(SINCE))
            )
        if SINCE[name] > release.version:
            raise ValueError('Kafka %s has no SASL mechanism %s' % (release.name, name))
    if not names:
        raise ValueError('mechanisms must not be empty')
    return names


def and_close(data: bytes, connection: Connection, go_on: Callable[[bytes], None]) -> None:
    """Send a response and close the connection."""
    go_on(data)
    connection.close()


class Stage(enum.Enum):
    """The stages of a login."""

    FRESH = 'fresh'  # connected
    TOLD = 'told'  # has received the API versions
    STEPPING = 'stepping'  # has selected a mechanism; its tokens follow
    DONE = 'done'
    OVER = 'over'  # about to be disconnected


class Move(enum.Enum):
    """The events that change the stage."""

    TELL = 'tell versions'
    AGREE = 'agree on a mechanism'
    FINISH = 'finish'
    FAIL = 'fail'


TRANSITIONS: Dict[Stage, Dict[Move, Stage]] = {
    Stage.FRESH: {Move.TELL: Stage.TOLD, Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.TOLD: {Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.STEPPING: {Move.FINISH: Stage.DONE, Move.FAIL: Stage.OVER},
    # Re-authentication (KIP-368).
    Stage.DONE: {Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.OVER: {Move.FAIL: Stage.OVER},
}


class Verdict(enum.Enum):
    """What happens to a request."""

    PASS = 'pass'
    CLOSE = 'close'  # close the connection, without a response
    REFUSE = 'refuse'  # respond with ILLEGAL_SASL_STATE, and close


class Login:
    """The login of one connection.

    Arguments: state: of the cluster.
    Attributes: principal: that of the client, None until it is known; has_bare_tokens: whether
    tokens come without request headers now; by_token: whether the login is by delegation token.
    """

    def __init__(self, state: ClusterState) -> None:
        self.principal: Optional[str] = None
        self.has_bare_tokens = False
        self.by_token = False
        self._state = state
        self._stage = Stage.FRESH
        self._name = ''
        self._mechanism: Optional[Mechanism] = None
        self._is_other_mechanism = False
        self._ends_at: Optional[float] = None
        self._renewed_at: Optional[float] = None

    def __repr__(self) -> str:
        return '<Login %s %s %s>' % (self._stage.value, self._name, self.principal)

    @property
    def sasl(self) -> Sasl:
        """The SASL settings of the cluster."""
        assert self._state.sasl is not None
        sasl: Sasl = self._state.sasl
        return sasl

    @property
    def is_done(self) -> bool:
        """Whether the client is logged in, and not in the middle of a re-authentication."""
        return self._stage is Stage.DONE

    @property
    def is_renewal(self) -> bool:
        """Whether the client has logged in before on this connection."""
        return self.principal is not None

    @property
    def max_frame_bytes(self) -> int:
        """The largest request that is accepted now."""
        return MAX_REQUEST_BYTES if self._stage is Stage.DONE else MAX_TOKEN_BYTES

    def _move(self, move: Move) -> None:
        after = TRANSITIONS[self._stage].get(move)
        if after is None:
            raise AssertionError('cannot %s in stage %s' % (move.value, self._stage.value))
        self._stage = after

    # ------------------------------------------------------------ allowed requests

    def judge(self, api_key: int) -> Verdict:
        """Return what happens to a request in the current stage."""
        if self._stage is Stage.DONE:
            may_stay = api_key == ApiKey.SASL_HANDSHAKE and self.may_renew
            return Verdict.CLOSE if self.is_expired and not may_stay else Verdict.PASS
        if self._stage is Stage.STEPPING:
            is_step = api_key == ApiKey.SASL_AUTHENTICATE
            return Verdict.PASS if is_step else Verdict.REFUSE
        if self._stage is Stage.OVER:
            return Verdict.CLOSE
        if api_key == ApiKey.SASL_HANDSHAKE:
            return Verdict.PASS
        is_asking = api_key == ApiKey.API_VERSIONS
        return Verdict.PASS if is_asking and self._may_ask_versions else Verdict.CLOSE

    @property
    def _may_ask_versions(self) -> bool:
        return self._stage is Stage.FRESH or self._state.release.version < (1, 0)

    def told_versions(self) -> None:
        """Record that the client has received the API versions."""
        if self._stage is Stage.FRESH:
            self._move(Move.TELL)

    def refuse(self, call: Call[Any], response: Message) -> None:
        """Answer a call that ends the login, after a delay, and close the connection."""
        call.deliveries.append(and_close)
        self._state.timers.later(
            self.failure_seconds, lambda: call.respond(response) if call.is_waiting else None
        )

    # ------------------------------------------------------------ lifetime

    @property
    def is_expired(self) -> bool:
        """Whether the lifetime of the login is over."""
        return self._ends_at is not None and self._now() > self._ends_at

    @property
    def may_renew(self) -> bool:
        """Whether the client may re-authenticate: if logins expire, at most once a second."""
        recent = self._renewed_at is not None and self._now() < self._renewed_at + RENEW_SECONDS
        return self._ends_at is not None and not recent

    def _now(self) -> float:
        return self._state.timers.clock.monotonic()

    def _lifetime_ms(self, mechanism: Mechanism) -> int:
        """Return the lifetime of a login from now on in ms, 0 for no limit."""
        limit = self._state.defaults.connections_max_reauth_ms
        if self._state.release.version < (2, 2):
            return 0
        left = remaining_ms(mechanism, self._state.timers.clock)
        if left is None:
            return limit
        # Without a limit releases before 3.3 ignored the end of a token as well.
        return min(left, limit) if limit or self._state.release.version < (3, 3) else left

    @property
    def failure_seconds(self) -> float:
        """The delay in seconds of the response to a failed login."""
        delay_ms = self._state.defaults.failed_authentication_delay_ms
        return delay_ms / 1000 if self._state.release.version >= (2, 1) else 0.0

    # ------------------------------------------------------------ steps

    def agree(self, name: str, is_bare: bool) -> bool:
        """Select the mechanism of a client; return True if brokers offer it.

        Arguments: is_bare: whether its tokens come without request headers.
        """
        if name not in self.sasl.mechanisms:
            self.fail()
            return False
        self._is_other_mechanism = self.is_renewal and name != self._name
        if self.is_renewal:
            self._renewed_at = self._now()
        else:
            self._name = name
        self._mechanism = self.sasl.begin(name)
        self.has_bare_tokens = is_bare
        self._move(Move.AGREE)
        return True

    def step(self, token: bytes) -> Tuple[bytes, int]:
        """Process a token; return response bytes and the lifetime in ms, 0 for none or not done.

        Raises LoginFailed with the message for the client; LoginBroken.
        """
        mechanism = self._mechanism
        assert mechanism is not None
        if self._is_other_mechanism:
            self.fail()
            raise LoginBroken
        try:
            answer = mechanism.step(token)
            if mechanism.is_complete and self.principal not in (None, mechanism.principal):
                raise LoginFailed('The principal may not change, it was %s' % self.principal)
        except LoginFailed as failed:
            self.fail()
            raise LoginFailed(
                str(failed)
                or 'Authentication failed due to invalid credentials with SASL mechanism %s'
                % self._name
            ) from None
        if not mechanism.is_complete:
            return answer, 0
        return answer, self._finish(mechanism)

    def _finish(self, mechanism: Mechanism) -> int:
        self._move(Move.FINISH)
        self.has_bare_tokens = False
        self.principal = mechanism.principal
        self.by_token = mechanism.is_by_token
        self._mechanism = None
        lifetime_ms = self._lifetime_ms(mechanism)
        if lifetime_ms:
            self._ends_at = self._now() + lifetime_ms / 1000
        return lifetime_ms

    def fail(self) -> None:
        """Record that the login has failed."""
        self._move(Move.FAIL)
