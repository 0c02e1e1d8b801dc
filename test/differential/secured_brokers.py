"""Clusters on which one logs in with SASL/PLAIN, with ACLs and delegation tokens; the way in.

Owns users and passwords, the settings of real and embedded clusters, and the login of a connection.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, List, Tuple, Type

from kafka.protocol.api import ApiKey, encode_request
from kafka.testing import Cluster
from kafka.testing.releases import BrokerRelease
from servers.cluster import HOST, Process, free_ports
from servers.cluster import Cluster as RealCluster
from test.differential.script import request_of, served_versions

ADMIN = 'admin'
PASSWORDS = {ADMIN: 'admin-secret', 'alice': 'alice-secret'}
SECRET = 'secret of all tokens'
SUPER_USERS = ('User:ANONYMOUS', 'User:admin')
#: The first release whose ACLs the protocol can change (KIP-140).
SINCE = (0, 11)
_JAAS = """KafkaServer {
  org.apache.kafka.common.security.plain.PlainLoginModule required
  username="admin" password="admin-secret" %s;
};
""" % ' '.join('user_%s="%s"' % each for each in PASSWORDS.items())


def greeting(release: BrokerRelease, user: str) -> Callable[[Callable[[bytes], bytes]], None]:
    """Return what logs a connection in: it gets a function that sends a frame and reads one."""
    token = b'\0%s\0%s' % (user.encode(), PASSWORDS[user].encode())

    def log_in(exchange: Callable[[bytes], bytes]) -> None:
        # Before 1.0 the token is a frame of its own (KIP-152).
        with_frames = bool(served_versions(ApiKey.SASL_AUTHENTICATE, release))
        hello = request_of(ApiKey.SASL_HANDSHAKE, {'mechanism': 'PLAIN'}, 0)
        exchange(_framed(encode_request(hello, int(with_frames), 1, 'login')))
        if with_frames:
            asked = request_of(ApiKey.SASL_AUTHENTICATE, {'auth_bytes': token}, 0)
            answer = exchange(_framed(encode_request(asked, 0, 2, 'login')))
            if answer[4:6] != b'\0\0':
                raise ConnectionRefusedError('%s cannot log in' % user)
        else:
            exchange(_framed(token))

    return log_in


def _framed(data: bytes) -> bytes:
    return struct.pack('>i', len(data)) + data


def embedded(kind: Type[Cluster], release: str, **settings: Any) -> Cluster:
    """Return an embedded cluster of a kind, not started."""
    return kind(
        version=release,
        sasl=PASSWORDS,
        mechanisms=['PLAIN'],
        authorizer=True,
        super_users=SUPER_USERS,
        delegation_token_secret=SECRET,
        **settings,
    )


class SecuredCluster(RealCluster):
    """One real broker with a second listener, on which clients log in."""

    sasl_port = 0

    @property
    def sasl_address(self) -> Tuple[str, int]:
        """Host and port of that listener."""
        return HOST, self.sasl_port

    def _server_properties(self, node: int) -> str:
        """Add what makes the broker ask; later lines win."""
        (self.sasl_port,) = free_ports(1)
        text = super()._server_properties(node)
        own = dict(line.split('=', 1) for line in text.splitlines() if '=' in line[1:])
        mine = 'SASL_PLAINTEXT://%s:%d' % self.sasl_address
        added = {
            name: '%s,%s' % (own[name], mine) for name in ('listeners', 'advertised.listeners')
        }
        security_map = own.get('listener.security.protocol.map')
        if security_map:
            added['listener.security.protocol.map'] = (
                security_map + ',SASL_PLAINTEXT:SASL_PLAINTEXT'
            )
        added['sasl.enabled.mechanisms'] = 'PLAIN'
        added['authorizer.class.name'] = self._authorizer()
        added['super.users'] = ';'.join(SUPER_USERS)
        added['delegation.token.master.key'] = added['delegation.token.secret.key'] = SECRET
        return text + ''.join('\n%s=%s' % item for item in added.items()) + '\n'

    def _authorizer(self) -> str:
        if not self.release.has_zookeeper:
            return 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
        if self.release.version >= (2, 4):
            return 'kafka.security.authorizer.AclAuthorizer'
        return 'kafka.security.auth.SimpleAclAuthorizer'

    def _java(self, name: str, options: List[str], main_class: str, *arguments: str) -> Process:
        if name.startswith('broker'):
            self._write('jaas.conf', _JAAS)
            options = [*options, '-Djava.security.auth.login.config=jaas.conf']
        return super()._java(name, options, main_class, *arguments)
