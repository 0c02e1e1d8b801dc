"""A real broker with SASL and an authorizer, beside the listener by which it is watched."""

from __future__ import annotations

from typing import Dict, Tuple

from servers.brokers import HOST
from servers.cluster import Cluster, free_ports
from servers.releases import releases

MODULES = 'org.apache.kafka.common.security.'
STANDARD = 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
ACL_AUTHORIZER = 'kafka.security.authorizer.AclAuthorizer'


class SecuredCluster(Cluster):
    """One broker; ``sasl_address`` is where one logs in.

    Arguments: release: such as 2.8.2, from 2.4 on; passwords: of PLAIN, by user, of whom admin is a
    super user; token_secret: of delegation tokens.
    """

    def __init__(self, release: str, passwords: Dict[str, str], token_secret: str) -> None:
        super().__init__(releases()[release])
        self._passwords = passwords
        self._token_secret = token_secret
        (self._sasl_port,) = free_ports(1)

    @property
    def sasl_address(self) -> Tuple[str, int]:
        """Where one logs in."""
        return HOST, self._sasl_port

    def _server_properties(self, node: int) -> str:
        kraft = not self.release.has_zookeeper
        places = 'PLAINTEXT://%s:%d,LOGIN://%s:%d' % (
            HOST,
            self.ports[node],
            HOST,
            self._sasl_port,
        )
        controller = ',CONTROLLER://%s:%d' % (HOST, self._own_ports[node]) if kraft else ''
        users = ' '.join('user_%s="%s"' % each for each in self._passwords.items())
        secret = 'delegation.token.%s.key' % (
            'secret' if self.release.version >= (3, 0) else 'master'
        )
        login = 'listener.name.login.'
        self.settings = {
            'listeners': places + controller,
            'advertised.listeners': places,
            'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT'
            + (',CONTROLLER:PLAINTEXT' if kraft else ''),
            login + 'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
            login + 'plain.sasl.jaas.config': MODULES
            + 'plain.PlainLoginModule required %s;' % users,
            login + 'scram-sha-256.sasl.jaas.config': MODULES + 'scram.ScramLoginModule required;',
            login + 'scram-sha-512.sasl.jaas.config': MODULES + 'scram.ScramLoginModule required;',
            login + 'oauthbearer.sasl.jaas.config': MODULES
            + 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="x";',
            'authorizer.class.name': STANDARD if kraft else ACL_AUTHORIZER,
            'super.users': 'User:ANONYMOUS;User:admin',
            secret: self._token_secret,
        }
        return super()._server_properties(node)
