"""SASL SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): the password is proven, not sent.

The client side: the messages, the client proof, and the verification of the broker's signature,
without which a login fails. No channel binding, which no broker supports.

RFC 5802 requires that names and passwords are prepared by SASLprep; Apache Kafka stores and
compares them unprepared. The two forms differ for few texts only (ligatures, composed letters,
unusual spaces). For those the prepared form is tried first and, if the broker rejects it, the other
form on the next connection; the form that succeeded is kept in the settings.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import ClassVar, Dict, Optional, Tuple

from kafka.net.sasl.mechanism import Exchange, Mechanism, failed
from kafka.net.sasl.plain import encoded
from kafka.net.sasl.saslprep import saslprep

__all__ = ['MAX_ITERATIONS', 'MIN_ITERATIONS', 'ScramSha256', 'ScramSha512', 'client_proofs']

#: RFC 7677, section 4: with fewer iterations a malicious broker could guess the password.
MIN_ITERATIONS = 4096
#: This many take about a second: with more a malicious broker could waste processor time.
MAX_ITERATIONS = 1_000_000
NONCE_BYTES = 24
_HEADER = 'n,,'  # no channel binding, no authorization identity
_SERVER_FIRST = re.compile(
    r'r=([!-+\--~]+),s=([A-Za-z0-9+/=]+),i=([1-9][0-9]{0,9})(?:,.*)?', re.DOTALL
)
_SERVER_LAST = re.compile(r'(?:v=([A-Za-z0-9+/=]+)|e=([^,]*))(?:,.*)?', re.DOTALL)


class _Scram(Mechanism):
    """The SCRAM exchange, for any hash function."""

    hash_name: ClassVar[str]
    # Set by tests.
    nonce: Optional[str] = None

    def exchange(self) -> Exchange:
        """Send the client proof, and verify the signature of the broker."""
        user, password = self._credentials()
        nonce = self.nonce or _new_nonce()
        first = 'n=%s,r=%s' % (user.replace('=', '=3D').replace(',', '=2C'), nonce)
        answer = yield encoded(_HEADER + first)
        self.hint = 'see sasl_plain_username and sasl_plain_password'
        server_first = _text(answer)
        whole_nonce, salt, iterations = _read_first(server_first, nonce)
        last = 'c=%s,r=%s' % (_base64(_HEADER.encode('ascii')), whole_nonce)
        said = encoded('%s,%s,%s' % (first, server_first, last))
        proof, signature = client_proofs(self.hash_name, encoded(password), salt, iterations, said)
        answer = yield encoded('%s,p=%s' % (last, _base64(proof)))
        _check_last(_text(answer), signature)

    def _credentials(self) -> Tuple[str, str]:
        given = self.settings.username or '', self.settings.password or ''
        form = self.settings.form
        return given if form is not None and form.is_as_given else _prepared(*given)

    def refused(self) -> bool:
        """Switch to the other form of the password, if it differs; see the module docstring."""
        given = self.settings.username or '', self.settings.password or ''
        form = self.settings.form
        if form is None or _prepared(*given) == given:
            return False
        form.is_as_given = not form.is_as_given
        return form.is_as_given


class ScramSha256(_Scram):
    """SCRAM with SHA-256."""

    name = 'SCRAM-SHA-256'
    hash_name = 'sha256'


class ScramSha512(_Scram):
    """SCRAM with SHA-512."""

    name = 'SCRAM-SHA-512'
    hash_name = 'sha512'


MECHANISMS: Dict[str, type] = {cls.name: cls for cls in (ScramSha256, ScramSha512)}


def client_proofs(
    hash_name: str, password: bytes, salt: bytes, iterations: int, said: bytes
) -> Tuple[bytes, bytes]:
    """Return the client proof and the expected server signature.

    Arguments: said: the AuthMessage of RFC 5802, which are the messages of both sides so far.
    """
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)
    client_key = hmac.new(salted, b'Client Key', hash_name).digest()
    stored_key = hashlib.new(hash_name, client_key).digest()
    signature = hmac.new(stored_key, said, hash_name).digest()
    server_key = hmac.new(salted, b'Server Key', hash_name).digest()
    proof = bytes(a ^ b for a, b in zip(client_key, signature))
    return proof, hmac.new(server_key, said, hash_name).digest()


def _prepared(user: str, password: str) -> Tuple[str, str]:
    """Return user name and password in the form of SASLprep; unchanged if it prohibits them."""
    return _or_as_given(user, allow_unassigned=True), _or_as_given(password)


def _or_as_given(text: str, allow_unassigned: bool = False) -> str:
    try:
        return saslprep(text, allow_unassigned) or text
    except ValueError:
        return text


def _new_nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)  # without commas, which SCRAM messages reserve


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode('ascii')


def _text(answer: bytes) -> str:
    try:
        return answer.decode('utf-8')
    except UnicodeDecodeError:
        raise failed('the broker answered SCRAM with bytes that are not UTF-8') from None


def _read_first(text: str, nonce: str) -> Tuple[str, bytes, int]:
    """Return the nonce of both sides, the salt, and the number of iterations."""
    found = _SERVER_FIRST.fullmatch(text)
    if found is None:
        if text.startswith('m='):
            raise failed('the broker demands an unknown extension of SCRAM')
        raise failed('the answer of the broker to the first message of SCRAM is malformed')
    whole_nonce, salt_text, iterations = found.group(1), found.group(2), int(found.group(3))
    if not whole_nonce.startswith(nonce) or whole_nonce == nonce:
        raise failed(
            'the answer of the broker does not belong to this login (its nonce is another):'
            ' it may be the replay of an older one'
        )
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise failed(
            'the broker asks for %d iterations; %d to %d are accepted, because with few of them a'
            ' password can be guessed, and many keep a client busy'
            % (iterations, MIN_ITERATIONS, MAX_ITERATIONS)
        )
    return whole_nonce, _decoded(salt_text), iterations


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise failed('the broker sent a value that is not base64') from None


def _check_last(text: str, expected: bytes) -> None:
    found = _SERVER_LAST.fullmatch(text)
    if found is not None and found.group(2) is not None:
        raise failed('the broker refused the login by SCRAM: %s' % found.group(2)[:200])
    if found is None or not hmac.compare_digest(_decoded(found.group(1)), expected):
        raise failed(
            'the broker does not prove that it knows the password: it is another broker,'
            ' or a host on the way poses as it'
        )
