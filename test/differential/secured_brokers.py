"""Clusters on which one logs in, real and embedded, with ACLs and delegation tokens; the way in.

Owns users and passwords, the settings of both kinds of clusters, and the login of a connection.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple, Type

from kafka.protocol.api import ApiKey, encode_request
from kafka.testing import Cluster
from kafka.testing.releases import BrokerRelease, broker_release
from servers.cluster import HOST, Process, free_ports
from servers.cluster import Cluster as RealCluster
from servers.releases import Release
from test.differential.script import framed, request_of, served_versions
from test.testing.security.sasl.clients import plain

ADMIN = 'admin'
#: Of PLAIN, by user; none of them has one for SCRAM.
PASSWORDS = {name: name + '-secret' for name in (ADMIN, 'alice', 'bob', 'carol', 'dave')}
TOKEN_SECRET = 'secret of all tokens'
SUPER_USERS = ('User:ANONYMOUS', 'User:' + ADMIN)
#: The first release whose ACLs the protocol can change (KIP-140).
SINCE = (0, 11)
PLAIN_ONLY = ('PLAIN',)
MECHANISMS = ('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER')
OAUTHBEARER_SINCE = (2, 0)
#: The first release that takes login modules among its settings; before there is a file.
SETS_MODULES = (2, 0)
_JAAS_FILE = 'jaas.conf'
_MODULES = {
    'PLAIN': 'plain.PlainLoginModule required %s;'
    % ' '.join('user_%s="%s"' % each for each in PASSWORDS.items()),
    'SCRAM-SHA-256': 'scram.ScramLoginModule required;',
    'SCRAM-SHA-512': 'scram.ScramLoginModule required;',
    'OAUTHBEARER': 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="x";',
}


def greeting(release: BrokerRelease, user: str) -> Callable[[Callable[[bytes], bytes]], None]:
    """Return what logs a connection in: it gets a function that sends a frame and reads one."""
    token = plain(user, PASSWORDS[user])

    def log_in(exchange: Callable[[bytes], bytes]) -> None:
        # Before 1.0 the token is a frame of its own (KIP-152).
        with_frames = bool(served_versions(ApiKey.SASL_AUTHENTICATE, release))
        hello = request_of(ApiKey.SASL_HANDSHAKE, {'mechanism': 'PLAIN'}, 0)
        exchange(framed(encode_request(hello, int(with_frames), 1, 'login')))
        if with_frames:
            asked = request_of(ApiKey.SASL_AUTHENTICATE, {'auth_bytes': token}, 0)
            answer = exchange(framed(encode_request(asked, 0, 2, 'login')))
            if answer[4:6] != b'\0\0':
                raise ConnectionRefusedError('%s cannot log in' % user)
        else:
            exchange(framed(token))

    return log_in


def _known(mechanisms: Sequence[str], version: Tuple[int, ...]) -> List[str]:
    """Return those of the mechanisms that a release has."""
    return [each for each in mechanisms if each != 'OAUTHBEARER' or version >= OAUTHBEARER_SINCE]


def embedded(
    kind: Type[Cluster], release: str, mechanisms: Sequence[str] = PLAIN_ONLY, **settings: Any
) -> Cluster:
    """Return an embedded cluster of a kind, not started."""
    cluster = kind(
        version=release,
        sasl=PASSWORDS,
        mechanisms=_known(mechanisms, broker_release(release).version),
        authorizer=True,
        super_users=SUPER_USERS,
        delegation_token_secret=TOKEN_SECRET,
        **settings,
    )
    # An embedded cluster knows its users by every mechanism, a real one these by PLAIN.
    cluster.state.scram.clear()
    return cluster


class SecuredCluster(RealCluster):
    """One real broker with a second listener, on which clients log in.

    Arguments: release: from 0.11 on; mechanisms: by which they do.
    """

    def __init__(self, release: Release, mechanisms: Sequence[str] = PLAIN_ONLY) -> None:
        super().__init__(release)
        self._mechanisms = _known(mechanisms, release.version)
        self._sasl_port = 0

    @property
    def sasl_address(self) -> Tuple[str, int]:
        """Host and port of that listener."""
        return HOST, self._sasl_port

    def _server_properties(self, node: int) -> str:
        (self._sasl_port,) = free_ports(1)
        self.settings = {
            **self._listeners(node),
            **self._logins(),
            'authorizer.class.name': self._authorizer(),
            'super.users': ';'.join(SUPER_USERS),
            # The second name since 3.0; what a release does not know it overlooks.
            'delegation.token.master.key': TOKEN_SECRET,
            'delegation.token.secret.key': TOKEN_SECRET,
        }
        return super()._server_properties(node)

    def _listeners(self, node: int) -> Dict[str, str]:
        places = 'PLAINTEXT://%s:%d,LOGIN://%s:%d' % (
            HOST,
            self.ports[node],
            *self.sasl_address,
        )
        protocols = 'PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT'
        if self.release.has_zookeeper:
            listeners = places
        else:
            listeners = '%s,CONTROLLER://%s:%d' % (places, HOST, self._own_ports[node])
            protocols += ',CONTROLLER:PLAINTEXT'
        return {
            'listeners': listeners,
            'advertised.listeners': places,
            'listener.security.protocol.map': protocols,
        }

    def _logins(self) -> Dict[str, str]:
        enabled = ','.join(self._mechanisms)
        if self.release.version < SETS_MODULES:
            return {'sasl.enabled.mechanisms': enabled}
        prefix = 'listener.name.login.'
        modules = {
            '%s%s.sasl.jaas.config' % (prefix, each.lower()): _module(each)
            for each in self._mechanisms
        }
        return {prefix + 'sasl.enabled.mechanisms': enabled, **modules}

    def _authorizer(self) -> str:
        if not self.release.has_zookeeper:
            return 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
        if self.release.version >= (2, 4):
            return 'kafka.security.authorizer.AclAuthorizer'
        return 'kafka.security.auth.SimpleAclAuthorizer'

    def _java(self, name: str, options: List[str], main_class: str, *arguments: str) -> Process:
        if self.release.version < SETS_MODULES and name.startswith('broker'):
            modules = dict.fromkeys(map(_module, self._mechanisms))  # both SCRAMs have the same
            self._write(_JAAS_FILE, 'KafkaServer {\n%s\n};\n' % '\n'.join(modules))
            options = [*options, '-Djava.security.auth.login.config=' + _JAAS_FILE]
        return super()._java(name, options, main_class, *arguments)


def _module(mechanism: str) -> str:
    return 'org.apache.kafka.common.security.' + _MODULES[mechanism]
