"""A real broker with SASL and an authorizer, beside the listener by which it is watched."""

from __future__ import annotations

from typing import Dict, List, Tuple

from servers.brokers import HOST
from servers.cluster import Cluster, Process, free_ports
from servers.releases import releases

MODULES = 'org.apache.kafka.common.security.'
#: The first release that takes login modules among its settings; before there is a file.
SETS_MODULES = (2, 0)
STANDARD = 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
ACL_AUTHORIZER = 'kafka.security.authorizer.AclAuthorizer'
SIMPLE = 'kafka.security.auth.SimpleAclAuthorizer'
JAAS = 'jaas.conf'


class SecuredCluster(Cluster):
    """One broker; ``sasl_address`` is where one logs in.

    Arguments: release: such as 2.8.2, from 0.11 on; passwords: of PLAIN, by user, of whom admin is
    a super user; token_secret: of delegation tokens.
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
        plain = MODULES + 'plain.PlainLoginModule required %s;' % ' '.join(
            'user_%s="%s"' % each for each in self._passwords.items()
        )
        version = self.release.version
        login = 'listener.name.login.'
        self.settings = {
            'listeners': places + controller,
            'advertised.listeners': places,
            'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT'
            + (',CONTROLLER:PLAINTEXT' if kraft else ''),
            'authorizer.class.name': STANDARD
            if kraft
            else ACL_AUTHORIZER
            if version >= (2, 4)
            else SIMPLE,
            'super.users': 'User:ANONYMOUS;User:admin',
        }
        if version >= (1, 1):
            name = 'delegation.token.%s.key' % ('secret' if version >= (3, 0) else 'master')
            self.settings[name] = self._token_secret
        if version < SETS_MODULES:
            self.settings['sasl.enabled.mechanisms'] = 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512'
            scram = MODULES + 'scram.ScramLoginModule required;'
            self._write(JAAS, 'KafkaServer {\n%s\n%s\n};\n' % (plain, scram))
        else:
            scram = MODULES + 'scram.ScramLoginModule required;'
            self.settings.update(
                {
                    login + 'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512'
                    ',OAUTHBEARER',
                    login + 'plain.sasl.jaas.config': plain,
                    login + 'scram-sha-256.sasl.jaas.config': scram,
                    login + 'scram-sha-512.sasl.jaas.config': scram,
                    login + 'oauthbearer.sasl.jaas.config': MODULES
                    + 'oauthbearer.OAuthBearerLoginModule required'
                    ' unsecuredLoginStringClaim_sub="x";',
                }
            )
        return super()._server_properties(node)

    def _java(self, name: str, options: List[str], main_class: str, *arguments: str) -> Process:
        if self.release.version < SETS_MODULES and name.startswith('broker'):
            options = [*options, '-Djava.security.auth.login.config=' + JAAS]
        return super()._java(name, options, main_class, *arguments)
