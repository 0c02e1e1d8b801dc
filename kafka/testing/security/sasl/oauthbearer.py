"""OAUTHBEARER of an embedded broker (RFC 7628, KIP-255), with unsigned tokens.

Accepts what Kafka's own validator for development accepts: a JWT with algorithm ``none`` whose
``sub`` is the user, with an expiry. Any client can make such a token.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Dict

from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed, Mechanism
from kafka.testing.timers import Clock

_FIRST = re.compile(
    r'n,(?:a=(?P<authorized>[^\x00,\x01]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01'
)
_BEARER = re.compile(r'(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.A-Za-z0-9]+=*)')
_MOST_SECONDS = 1e15
_GO_ON = b'\x01'
_REFUSED = b'{"status":"invalid_token"}'


class OAuthBearer(Mechanism):
    """One login. Arguments: clock: for the expiry of tokens."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._reason = ''

    def step(self, token: bytes) -> bytes:
        """Process the token; a bad one is reported in a response, which the client confirms."""
        if self._reason and bytes(token) == _GO_ON:
            raise LoginFailed(self._reason)
        self._reason = ''
        try:
            found = _FIRST.fullmatch(token.decode('utf-8'))
        except UnicodeDecodeError:
            raise LoginFailed from None
        if found is None:
            raise LoginFailed
        pairs = dict(each.split('=', 1) for each in found.group('pairs').split('\x01') if each)
        bearer = _BEARER.fullmatch(pairs.get('auth', ''))
        if bearer is None:
            raise LoginFailed
        if bearer.group('scheme').lower() != 'bearer':
            raise LoginBroken
        try:
            claims = self._checked(bearer.group('token'))
        except ValueError as error:
            self._reason = '{"status":"invalid_token"}: %s' % error
            return _REFUSED
        user = claims['sub']
        if (found.group('authorized') or user) != user:
            raise LoginFailed('Authentication failed: the authorization id is not the username')
        self.expires_ms = int(claims['exp'] * 1000)
        self.finish(user)
        return b''

    def _checked(self, token: str) -> Dict[str, Any]:
        """Return the claims of a token. Raises ValueError with the reason if it is invalid."""
        parts = token.split('.')
        if len(parts) != 3:
            raise ValueError('a token has three parts')
        header, claims = _decoded(parts[0]), _decoded(parts[1])
        if header.get('alg') != 'none' or parts[2]:
            raise ValueError('only tokens without signature are taken')
        user: Any = claims.get('sub')
        end: Any = claims.get('exp')
        start: Any = claims.get('iat')
        if not isinstance(user, str) or not user.strip():
            raise ValueError('the claim sub is not a name')
        if not _is_seconds(end) or not _is_seconds(0 if start is None else start):
            raise ValueError('the claims exp and iat are seconds')
        now = self._clock.wall_ms() / 1000
        if start is not None and not start <= now <= end:
            raise ValueError('the token is not yet good, or no longer')
        if end <= now:
            raise ValueError('the token has ended')
        return claims


def _is_seconds(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) < _MOST_SECONDS


def _decoded(part: str) -> Dict[str, Any]:
    try:
        text = base64.urlsafe_b64decode(part + '=' * (-len(part) % 4))
        value = json.loads(text.decode('utf-8'))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError('a part of the token cannot be read') from None
    if not isinstance(value, dict):
        raise ValueError('a part of the token is not an object')
    return value


def unsigned_token(user: str, expires_ms: int, issued_ms: int = 0) -> str:
    """Return an unsigned token of a user; times in ms since the epoch."""
    claims: Dict[str, Any] = {'sub': user, 'exp': expires_ms / 1000}
    if issued_ms:
        claims['iat'] = issued_ms / 1000
    parts = [json.dumps(each).encode('utf-8') for each in ({'alg': 'none'}, claims)]
    encoded = [base64.urlsafe_b64encode(each).rstrip(b'=').decode('ascii') for each in parts]
    return '%s.%s.' % tuple(encoded)
