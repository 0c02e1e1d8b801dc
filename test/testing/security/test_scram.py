"""What a broker keeps of a password."""

from __future__ import annotations

import base64

import pytest

from kafka.testing.security.scram import MECHANISMS, NUMBERS, ScramCredential, digest

#: The example of RFC 7677.
SALT = base64.b64decode('W22ZaJ0SNY7soEsUEjb6gQ==')
SAID = (
    b'n=user,r=rOprNGfwEbeRWgbNEkqO,'
    b'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,'
    b'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0'
)


def test_the_keys_are_those_of_the_rfc():
    name = 'SCRAM-SHA-256'
    credential = ScramCredential.of(name, 'pencil', SALT)
    signature = digest(name, credential.stored_key(name), SAID)
    proof = bytes(a ^ b for a, b in zip(credential.client_key(name), signature))
    assert base64.b64encode(proof) == b'dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ='
    proven = digest(name, credential.server_key(name), SAID)
    assert base64.b64encode(proven) == b'6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='


@pytest.mark.parametrize('name', NUMBERS)
def test_a_credential_is_not_shown(name):
    credential = ScramCredential.of(name, 'secret', b'salt')
    assert repr(credential) == '<ScramCredential, 4096 iterations>'
    assert MECHANISMS[NUMBERS[name]] == name
