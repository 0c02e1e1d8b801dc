"""SCRAM-SHA-256 and SCRAM-SHA-512 of an embedded broker (RFC 5802, RFC 7677, KIP-84).

Also for delegation tokens (KIP-48), with the token id as user and the HMAC as password, which a
client indicates with the extension ``tokenauth``. Channel binding is ignored, as in Kafka.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Optional

from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed, Mechanism
from kafka.testing.security.scram import HASHES, NUMBERS, SALT_BYTES, ScramCredential, digest
from kafka.testing.security.tokens import password_text

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

# A name in which comma and equals sign are written as =2C and =3D.
_NAME = r'(?:[^\x00,=]|=2C|=3D)+'
_FIRST = re.compile(
    r'n,(?:a=(?P<authorized>%s))?,(?:m=[^,]*,)?n=(?P<name>%s),r=(?P<nonce>[!-+\--~]+)'
    r'(?P<extensions>(?:,[A-Za-z]+=[^\x00,]+)*)' % (_NAME, _NAME)
)
_LAST = re.compile(
    r'(?P<unproven>c=[A-Za-z0-9+/=]*,r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]=[^\x00,]+)*)'
    r',p=(?P<proof>[A-Za-z0-9+/=]+)'
)
_BY_TOKEN = re.compile(r',tokenauth=true(?:,|$)', re.IGNORECASE)


class Scram(Mechanism):
    """One login.

    Arguments: name: of the mechanism; state: has the credentials.
    """

    def __init__(self, name: str, state: ClusterState) -> None:
        super().__init__()
        self._name = name
        self._state = state
        self._credential: Optional[ScramCredential] = None
        self._user = ''
        self._owner = ''
        self._nonce = ''
        self._messages = ''

    def step(self, token: bytes) -> bytes:
        """Process the first token, then the last."""
        try:
            text = token.decode('utf-8')
        except UnicodeDecodeError:
            raise LoginFailed from None
        if self.is_complete:
            raise LoginFailed
        return self._last(text) if self._credential is not None else self._first(text)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise LoginFailed
        self._user = _unescaped(found.group('name'))
        if _BY_TOKEN.search(found.group('extensions')):
            self._credential = self._of_token()
        else:
            credentials = self._state.scram.get(self._user, {})
            self._credential = credentials.get(NUMBERS[self._name])
        if self._credential is None:
            raise LoginFailed  # the client does not learn that the user is unknown
        if _unescaped(found.group('authorized') or '') not in ('', self._user):
            raise LoginFailed('Authentication failed: the authorization id is not the username')
        own = base64.b64encode(self._state.chance.getrandbits(144).to_bytes(18, 'big'))
        self._nonce = found.group('nonce') + own.decode('ascii')
        salt = base64.b64encode(self._credential.salt).decode('ascii')
        answer = 'r=%s,s=%s,i=%d' % (self._nonce, salt, self._credential.iterations)
        bare = text[text.index(',', 2) + 1 :]
        self._messages = '%s,%s' % (bare, answer)
        return answer.encode('utf-8')

    def _of_token(self) -> Optional[ScramCredential]:
        tokens = self._state.tokens
        token = None if tokens is None else tokens.get(self._user)
        if token is None:
            return None
        self._owner = '%s:%s' % token.owner
        self.expires_ms = token.expires_ms
        self.is_by_token = True
        salt = self._state.chance.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, 'big')
        return ScramCredential.of(self._name, password_text(token), salt)

    def _last(self, text: str) -> bytes:
        found = _LAST.fullmatch(text)
        credential = self._credential
        assert credential is not None
        if found is None or found.group('nonce') != self._nonce:
            raise LoginFailed
        said = ('%s,%s' % (self._messages, found.group('unproven'))).encode('utf-8')
        try:
            proof = base64.b64decode(found.group('proof'), validate=True)
        except (binascii.Error, ValueError):
            raise LoginBroken from None
        stored_key = credential.stored_key(self._name)
        signature = digest(self._name, stored_key, said)
        if len(proof) != len(signature):
            raise LoginBroken
        key = bytes(a ^ b for a, b in zip(proof, signature))
        shown = hashlib.new(HASHES[self._name], key).digest()
        if not hmac.compare_digest(shown, stored_key):
            raise LoginFailed
        self.finish(self._user, self._owner)
        server_key = credential.server_key(self._name)
        return b'v=' + base64.b64encode(digest(self._name, server_key, said))


def _unescaped(name: str) -> str:
    return name.replace('=2C', ',').replace('=3D', '=')
