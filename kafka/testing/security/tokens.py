"""Delegation tokens of an embedded cluster (KIP-48, KIP-373).

Their lifetimes, renewers, and HMACs, which are their passwords. Called by handlers/tokens.py, and
by sasl/scram.py for logins with a token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Tuple

from kafka.testing import errors
from kafka.testing.state import text_id
from kafka.testing.topic_checks import refuse

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

#: ``delegation.token.max.lifetime.ms`` and ``delegation.token.expiry.time.ms``.
MOST_LIFETIME_MS = 7 * 24 * 3600 * 1000
FIRST_EXPIRY_MS = 24 * 3600 * 1000
_MOST_TOKENS = 10_000


class Principal(NamedTuple):
    """The type and name of a principal."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Return the principal of a text such as ``User:alice``."""
        kind, _, name = text.partition(':')
        return cls(kind, name)


class Token:
    """One token. Times are in ms since the epoch."""

    def __init__(
        self,
        token_id: str,
        password: bytes,
        owner: Principal,
        requester: Principal,
        renewers: Tuple[Principal, ...],
        issued_ms: int,
        last_ms: int,
    ) -> None:
        self.token_id = token_id
        self.password = password
        self.owner = owner
        self.requester = requester
        self.renewers = renewers
        self.issued_ms = issued_ms
        self.last_ms = last_ms
        self.expires_ms = min(last_ms, issued_ms + FIRST_EXPIRY_MS)

    def __repr__(self) -> str:
        return '<Token %s of %s:%s>' % (self.token_id, *self.owner)

    def may_renew(self, who: Principal) -> bool:
        """Return True if a principal may renew or expire the token."""
        return who in (self.owner, self.requester, *self.renewers)


class Tokens:
    """All tokens of a cluster. Arguments: secret: the key of the HMACs."""

    def __init__(self, state: ClusterState, secret: str) -> None:
        self._state = state
        self._secret = secret.encode('utf-8')
        self._by_id: Dict[str, Token] = {}

    def __repr__(self) -> str:
        return '<Tokens, %d>' % len(self._by_id)

    def get(self, token_id: str) -> Optional[Token]:
        """Return a token by its id, None if it does not exist or has expired."""
        self._forget_expired()
        return self._by_id.get(token_id)

    def by_id(self) -> Dict[str, Token]:
        """Return all tokens by id, including expired ones."""
        return dict(self._by_id)

    def take_back(self, token: Token) -> None:
        """Restore a token that was read from disk."""
        self._by_id[token.token_id] = token

    def password_of(self, token_id: str) -> bytes:
        """Return the password of a token: the HMAC of its id with the secret."""
        return hmac.new(self._secret, token_id.encode('utf-8'), hashlib.sha512).digest()

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Tuple[Principal, ...],
        lifetime_ms: int,
    ) -> Token:
        """Create a token; a lifetime of 0 or less means the longest one. Raises Refused."""
        self._forget_expired()
        if len(self._by_id) >= _MOST_TOKENS:
            refuse(errors.POLICY_VIOLATION)
        now_ms = self._state.timers.clock.wall_ms()
        token_id = text_id(self._state.new_uuid())
        longest = MOST_LIFETIME_MS if lifetime_ms <= 0 else min(lifetime_ms, MOST_LIFETIME_MS)
        password = self.password_of(token_id)
        token = Token(token_id, password, owner, requester, renewers, now_ms, now_ms + longest)
        self._by_id[token_id] = token
        return token

    def renew(self, who: Principal, password: bytes, period_ms: int) -> int:
        """Renew a token and return its new expiry in ms since the epoch. Raises Refused."""
        token = self._owned(who, password)
        most_ms = MOST_LIFETIME_MS if self._state.release.has_zookeeper else FIRST_EXPIRY_MS
        period_ms = FIRST_EXPIRY_MS if period_ms < 0 else min(period_ms, most_ms)
        token.expires_ms = min(token.last_ms, self._state.timers.clock.wall_ms() + period_ms)
        return token.expires_ms

    def expire(self, who: Principal, password: bytes, period_ms: int) -> int:
        """Set the expiry of a token, now if the period is negative; return it. Raises Refused."""
        token = self._owned(who, password)
        now_ms = self._state.timers.clock.wall_ms()
        if period_ms < 0:
            del self._by_id[token.token_id]
            return now_ms
        token.expires_ms = min(token.last_ms, now_ms + period_ms)
        return token.expires_ms

    def of(
        self, owners: Optional[List[Principal]], is_seen: Callable[[Token], bool]
    ) -> List[Token]:
        """Return the tokens of owners, None for all, for which ``is_seen`` returns True."""
        self._forget_expired()
        return [
            token
            for _, token in sorted(self._by_id.items())
            if (owners is None or token.owner in owners) and is_seen(token)
        ]

    def _owned(self, who: Principal, password: bytes) -> Token:
        # Expired tokens are found too, until tokens are next created or listed.
        for token in self._by_id.values():
            if hmac.compare_digest(token.password, bytes(password)):
                if not token.may_renew(who):
                    refuse(errors.DELEGATION_TOKEN_OWNER_MISMATCH)
                if token.expires_ms < self._state.timers.clock.wall_ms():
                    refuse(errors.DELEGATION_TOKEN_EXPIRED)
                return token
        return refuse(errors.DELEGATION_TOKEN_NOT_FOUND)

    def _forget_expired(self) -> None:
        now_ms = self._state.timers.clock.wall_ms()
        for token in [each for each in self._by_id.values() if each.expires_ms < now_ms]:
            del self._by_id[token.token_id]


def password_text(token: Token) -> str:
    """Return the password with which a client logs in over SCRAM."""
    return base64.b64encode(token.password).decode('ascii')
