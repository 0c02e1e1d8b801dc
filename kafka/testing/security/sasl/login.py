"""The way of one connection to a principal over SASL, and what all of a cluster's logins share.

Owns what may be said when (KIP-43, KIP-152), how long a login lasts and how it is renewed on the
connection (KIP-368). Answers are made in handlers/sasl.py, frames in connection.py; mechanisms are
the neighbours here.
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

#: A login is renewed no more often than that, in seconds.
RENEW_SECONDS = 1.0
#: Before a login no frame is longer ...
MAX_TOKEN_BYTES = 524288
#: ... and afterwards none than ``socket.request.max.bytes``.
MAX_REQUEST_BYTES = 104857600
_USUAL = (PLAIN, SCRAM_256, SCRAM_512)


class Sasl:
    """How clients of a cluster log in. Passwords are not shown.

    Arguments: state: of the cluster; passwords: by user; mechanisms: that are offered.
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
        """Return a new exchange of a mechanism that is offered."""
        if name == PLAIN:
            if self._state.release.version < (2, 0):
                return OldPlain(self._passwords)
            return Plain(self._passwords)
        if name == OAUTHBEARER:
            return OAuthBearer(self._state.timers.clock)
        return Scram(name, self._state)


def chosen_mechanisms(release: BrokerRelease, wanted: Optional[Iterable[str]]) -> List[str]:
    """Return the mechanisms that brokers offer; without a wish those with passwords.

    Raises ValueError for one that there is not, or not in this release; TypeError for a text.
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
    """Send an answer and close the connection."""
    go_on(data)
    connection.close()


class Stage(enum.Enum):
    """How far a client is."""

    FRESH = 'fresh'  # connected
    TOLD = 'told'  # knows the versions
    STEPPING = 'stepping'  # has named a mechanism, whose tokens follow
    DONE = 'done'
    OVER = 'over'  # is about to be disconnected


class Move(enum.Enum):
    """What brings it further."""

    TELL = 'tell versions'
    AGREE = 'agree on a mechanism'
    FINISH = 'finish'
    FAIL = 'fail'


TRANSITIONS: Dict[Stage, Dict[Move, Stage]] = {
    Stage.FRESH: {Move.TELL: Stage.TOLD, Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.TOLD: {Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.STEPPING: {Move.FINISH: Stage.DONE, Move.FAIL: Stage.OVER},
    # Once more, while it lasts (KIP-368).
    Stage.DONE: {Move.AGREE: Stage.STEPPING, Move.FAIL: Stage.OVER},
    Stage.OVER: {Move.FAIL: Stage.OVER},
}


class Verdict(enum.Enum):
    """What becomes of a request."""

    PASS = 'pass'
    CLOSE = 'close'  # the connection, without an answer
    REFUSE = 'refuse'  # as not in its place, and close


class Login:
    """One connection's login.

    Arguments: state: of the cluster.
    Attributes: principal: who the client is, None until that is known; has_bare_tokens: whether
    tokens come without headers now; by_token: whether a delegation token was shown.
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
        """How clients log in."""
        assert self._state.sasl is not None
        sasl: Sasl = self._state.sasl
        return sasl

    @property
    def is_done(self) -> bool:
        """Whether the client is logged in, and not about to be once more."""
        return self._stage is Stage.DONE

    @property
    def is_renewal(self) -> bool:
        """Whether the client has logged in before on this connection."""
        return self.principal is not None

    @property
    def max_frame_bytes(self) -> int:
        """How long a request may be."""
        return MAX_REQUEST_BYTES if self._stage is Stage.DONE else MAX_TOKEN_BYTES

    def _move(self, move: Move) -> None:
        after = TRANSITIONS[self._stage].get(move)
        if after is None:
            raise AssertionError('cannot %s in stage %s' % (move.value, self._stage.value))
        self._stage = after

    # ------------------------------------------------------------ what may be said

    def judge(self, api_key: int) -> Verdict:
        """Say what becomes of a request that has come."""
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
        """Note that the client knows the versions."""
        if self._stage is Stage.FRESH:
            self._move(Move.TELL)

    def refuse(self, call: Call[Any], response: Message) -> None:
        """Answer a call that ends the login, after a while, and close the connection."""
        call.deliveries.append(and_close)
        self._state.timers.later(
            self.failure_seconds, lambda: call.respond(response) if call.is_waiting else None
        )

    # ------------------------------------------------------------ how long it lasts

    @property
    def is_expired(self) -> bool:
        """Whether the login has ended."""
        return self._ends_at is not None and self._now() > self._ends_at

    @property
    def may_renew(self) -> bool:
        """Whether the client may log in once more: where logins end, once in a second."""
        recent = self._renewed_at is not None and self._now() < self._renewed_at + RENEW_SECONDS
        return self._ends_at is not None and not recent

    def _now(self) -> float:
        return self._state.timers.clock.monotonic()

    def _lifetime_ms(self, mechanism: Mechanism) -> int:
        """Return how long the login lasts from now on, 0 for ever."""
        limit = self._state.defaults.connections_max_reauth_ms
        if self._state.release.version < (2, 2):
            return 0
        left = remaining_ms(mechanism, self._state.timers.clock)
        if left is None:
            return limit
        # Without a limit older brokers did not look at the end of a token either.
        return min(left, limit) if limit or self._state.release.version < (3, 3) else left

    @property
    def failure_seconds(self) -> float:
        """How long the answer to a login that failed waits, before the connection closes."""
        delay_ms = self._state.defaults.failed_authentication_delay_ms
        return delay_ms / 1000 if self._state.release.version >= (2, 1) else 0.0

    # ------------------------------------------------------------ steps

    def agree(self, name: str, is_bare: bool) -> bool:
        """Take the mechanism that a client names; tell whether it is offered.

        Arguments: is_bare: whether its tokens come without headers.
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
        """Take a token; return the answer and how many ms the login lasts, 0 for ever or not yet.

        Raises LoginFailed, with the text for the client; LoginBroken.
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
        """Note that nothing will come of it."""
        self._move(Move.FAIL)
