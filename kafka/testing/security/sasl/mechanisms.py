"""The base of SASL mechanisms of an embedded broker, and PLAIN (RFC 4616, KIP-43).

An exchange processes tokens and yields the principal. SCRAM and OAUTHBEARER are in scram.py and
oauthbearer.py.
"""

from __future__ import annotations

import hmac
from typing import List, Mapping, Optional

from kafka.testing.timers import Clock

PLAIN = 'PLAIN'
SCRAM_256 = 'SCRAM-SHA-256'
SCRAM_512 = 'SCRAM-SHA-512'
OAUTHBEARER = 'OAUTHBEARER'
#: The first release with each.
SINCE = {PLAIN: (0, 10), SCRAM_256: (0, 10, 2), SCRAM_512: (0, 10, 2), OAUTHBEARER: (2, 0)}


class LoginFailed(Exception):
    """The credentials are wrong. Brokers send the text, or a generic message if it is empty."""


class LoginBroken(Exception):
    """A token on which brokers fail unexpectedly: they close the connection without a response."""


class Mechanism:
    """One exchange with one client.

    Attributes: is_complete: whether the client is authenticated; user: its name; principal: its
    principal; expires_ms: when its credentials expire, in ms since the epoch, None for never;
    is_by_token: whether a delegation token was used.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.user = ''
        self.principal = ''
        self.expires_ms: Optional[int] = None
        self.is_by_token = False

    def __repr__(self) -> str:
        return '<%s %s>' % (type(self).__name__, self.user if self.is_complete else 'unfinished')

    def step(self, token: bytes) -> bytes:
        """Process a token and return the response, which may be empty. Raises LoginFailed."""
        raise NotImplementedError

    def finish(self, user: str, principal: str = '') -> None:
        """Record the authenticated user."""
        self.is_complete = True
        self.user = user
        self.principal = principal or 'User:' + user


class Plain(Mechanism):
    """PLAIN: user and password in one token.

    Arguments: passwords: by user.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__()
        self._passwords = passwords

    def step(self, token: bytes) -> bytes:
        """Process the only token."""
        try:
            parts = self.parts(token.decode('utf-8'))
        except UnicodeDecodeError:
            raise LoginFailed from None
        if len(parts) != 3:
            raise LoginFailed
        authorized, user, password = parts
        if not user:
            raise LoginFailed('Authentication failed: username not specified')
        if not password:
            raise LoginFailed('Authentication failed: password not specified')
        known = self._passwords.get(user)
        is_right = hmac.compare_digest((known or '').encode('utf-8'), password.encode('utf-8'))
        if known is None or not is_right:
            raise LoginFailed('Authentication failed: Invalid username or password')
        if authorized not in ('', user):
            raise LoginFailed('Authentication failed: the authorization id is not the username')
        self.finish(user)
        return b''

    def parts(self, token: str) -> List[str]:
        """Return the parts of a token."""
        return token.split('\0')


class OldPlain(Plain):
    """PLAIN before 2.0, which ignored empty parts at the end."""

    def parts(self, token: str) -> List[str]:
        """Return the parts of a token."""
        return token.rstrip('\0').split('\0')


def remaining_ms(mechanism: Mechanism, clock: Clock) -> Optional[int]:
    """Return how long the credentials of a client are still valid in ms, None for no limit."""
    if mechanism.expires_ms is None:
        return None
    return max(0, mechanism.expires_ms - clock.wall_ms())
