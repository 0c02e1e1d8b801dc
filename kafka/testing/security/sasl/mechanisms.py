"""What a SASL mechanism is to an embedded broker, and PLAIN (RFC 4616, KIP-43).

Owns the common shape: tokens in, tokens out, and who it is in the end. SCRAM and OAUTHBEARER have
modules of their own.
"""

from __future__ import annotations

import hmac
from typing import List, Mapping, Optional

from kafka.testing.timers import Clock

PLAIN = 'PLAIN'
SCRAM_256 = 'SCRAM-SHA-256'
SCRAM_512 = 'SCRAM-SHA-512'
OAUTHBEARER = 'OAUTHBEARER'
#: With the first release that has each.
SINCE = {PLAIN: (0, 10), SCRAM_256: (0, 10, 2), SCRAM_512: (0, 10, 2), OAUTHBEARER: (2, 0)}


class LoginFailed(Exception):
    """A client is not who it says. Brokers tell it the text, or nothing in particular if none."""


class LoginBroken(Exception):
    """A token at which brokers stumble: they close the connection without a word."""


class Mechanism:
    """One exchange of one client.

    Attributes: is_complete: whether it is known who the client is; user: who; expires_ms: until
    when, in ms since the epoch, None for ever; is_by_token: whether by a delegation token.
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
        """Take a token and return the answer, empty for none. Raises LoginFailed."""
        raise NotImplementedError

    def finish(self, user: str, principal: str = '') -> None:
        """Note who the client is."""
        self.is_complete = True
        self.user = user
        self.principal = principal or 'User:' + user


class Plain(Mechanism):
    """User and password in one token.

    Arguments: passwords: by user.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        super().__init__()
        self._passwords = passwords

    def step(self, token: bytes) -> bytes:
        """Take the only token there is."""
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
        """Return what a token is made of."""
        return token.split('\0')


class OldPlain(Plain):
    """PLAIN before 2.0, which overlooked what is empty at the end."""

    def parts(self, token: str) -> List[str]:
        """Return what a token is made of."""
        return token.rstrip('\0').split('\0')


def remaining_ms(mechanism: Mechanism, clock: Clock) -> Optional[int]:
    """Return how long what a client has shown is still good, None for ever."""
    if mechanism.expires_ms is None:
        return None
    return max(0, mechanism.expires_ms - clock.wall_ms())
