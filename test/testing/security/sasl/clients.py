"""The client's side of logins: what it sends, and one that walks through a whole login."""

from __future__ import annotations

import base64
import hashlib
import hmac

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

HASHES = {'SCRAM-SHA-256': 'sha256', 'SCRAM-SHA-512': 'sha512'}


def plain(user, password, authorized=''):
    """Return the token of PLAIN."""
    return ('%s\0%s\0%s' % (authorized, user, password)).encode('utf-8')


class ScramClient:
    """What a client of SCRAM says, as RFC 5802 has it."""

    def __init__(self, mechanism, user, password, extensions='', header='n,,', nonce='fyko+d2lbb'):
        self.hash = HASHES[mechanism]
        self.password = password
        self.header = header
        name = user.replace('=', '=3D').replace(',', '=2C')
        self.bare = 'n=%s,r=%s%s' % (name, nonce, extensions)

    def first(self):
        """Return the first token."""
        return (self.header + self.bare).encode('utf-8')

    def last(self, answer):
        """Return the second token."""
        server_first = answer.decode('utf-8')
        fields = dict(each.split('=', 1) for each in server_first.split(','))
        salted = hashlib.pbkdf2_hmac(
            self.hash,
            self.password.encode('utf-8'),
            base64.b64decode(fields['s']),
            int(fields['i']),
        )
        binding = base64.b64encode(self.header.encode('utf-8')).decode('ascii')
        unproven = 'c=%s,r=%s' % (binding, fields['r'])
        said = ','.join([self.bare, server_first, unproven]).encode('utf-8')
        key = self.mac(salted, b'Client Key')
        signature = self.mac(hashlib.new(self.hash, key).digest(), said)
        proof = bytes(a ^ b for a, b in zip(key, signature))
        self.expected = b'v=' + base64.b64encode(self.mac(self.mac(salted, b'Server Key'), said))
        return ('%s,p=%s' % (unproven, base64.b64encode(proof).decode('ascii'))).encode('utf-8')

    def mac(self, key, data):
        """Return an HMAC."""
        return hmac.new(key, data, self.hash).digest()


def log_in(asking, user, password, mechanism='PLAIN', extensions=''):
    """Log in by ``asking(request)``; return the last answer."""
    asking(SaslHandshakeRequest(mechanism=mechanism))
    if mechanism == 'PLAIN':
        return asking(SaslAuthenticateRequest(auth_bytes=plain(user, password)))
    client = ScramClient(mechanism, user, password, extensions)
    answer = asking(SaslAuthenticateRequest(auth_bytes=client.first()))
    if answer.error_code:
        return answer
    answer = asking(SaslAuthenticateRequest(auth_bytes=client.last(answer.auth_bytes)))
    assert answer.error_code or answer.auth_bytes == client.expected
    return answer
