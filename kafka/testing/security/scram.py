"""SCRAM credentials of an embedded cluster: what brokers store of a password (RFC 5802, KIP-84).

The credentials are in ``state.scram``, by user and number of the mechanism; the exchange of a login
is in :mod:`kafka.testing.security.sasl.scram`.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

#: By their numbers in requests.
MECHANISMS = {1: 'SCRAM-SHA-256', 2: 'SCRAM-SHA-512'}
NUMBERS = {name: number for number, name in MECHANISMS.items()}
HASHES = {'SCRAM-SHA-256': 'sha256', 'SCRAM-SHA-512': 'sha512'}
FEWEST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
SALT_BYTES = 20


class ScramCredential(NamedTuple):
    """What a broker stores of a password; ``repr`` does not show it."""

    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return '<ScramCredential, %d iterations>' % self.iterations

    @classmethod
    def of(cls, mechanism: str, password: str, salt: bytes) -> ScramCredential:
        """Return the credential of a password, with the smallest number of iterations."""
        salted = hashlib.pbkdf2_hmac(
            HASHES[mechanism], password.encode('utf-8'), salt, FEWEST_ITERATIONS
        )
        return cls(FEWEST_ITERATIONS, salt, salted)

    def client_key(self, mechanism: str) -> bytes:
        """Return the key with which a client proves that it knows the password."""
        return digest(mechanism, self.salted_password, b'Client Key')

    def server_key(self, mechanism: str) -> bytes:
        """Return the key with which the broker proves that it knows the user."""
        return digest(mechanism, self.salted_password, b'Server Key')

    def stored_key(self, mechanism: str) -> bytes:
        """Return the hash with which a client's key is compared."""
        return hashlib.new(HASHES[mechanism], self.client_key(mechanism)).digest()


def digest(mechanism: str, key: bytes, data: bytes) -> bytes:
    """Return the HMAC with the hash of a mechanism."""
    return hmac.new(key, data, HASHES[mechanism]).digest()
