"""A real broker with every kind of listener: TLS with client certificates, SASL by each mechanism.

Owns its settings, certificates and users. The plain listener is there to watch it by, and to make
users and topics.
"""

from __future__ import annotations

import os
import subprocess

from kafka.testing.security.certificates import make_certificate
from servers.brokers import HOST
from servers.cluster import Cluster, free_ports

MODULES = 'org.apache.kafka.common.security.'
PASSWORDS = {'admin': 'admin-secret', 'alice': 'alice-secret'}
#: A password that SASLprep would write otherwise: a ligature and a soft hyphen.
ODD_USER, ODD_PASSWORD = 'odd', 'o\ufb03ce\u00ad-secret'
SCRAM = ('SCRAM-SHA-256', 'SCRAM-SHA-512')
STORE_PASSWORD = 'store-secret'
SETS_MODULES = (2, 0)  # the first release that takes login modules among its settings
SINCE = (('PLAIN', (0, 10)), *((name, (0, 10, 2)) for name in SCRAM), ('OAUTHBEARER', (2, 0)))
FORMATS_USERS = (3, 5)
RENEWS = (2, 2)
RENEWAL_MS = 4000
SECONDS = 60
NAMES = ('SSL', 'SASL_PLAINTEXT', 'SASL_SSL')


def _run(*command):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout.decode(errors='replace')


class SecuredCluster(Cluster):
    """One broker.

    Arguments: release: of servers; folder: for certificates; realm: kerberos.Realm, or None.

    Attributes: ca_file: knows the broker; certificate, key: alice's; stranger: a certificate and a
    key that the broker does not know; mechanisms: what one logs in by.
    """

    def __init__(self, release, folder, realm=None):
        super().__init__(release)
        self.realm = realm
        self._files = str(folder)
        self.ca_file, self._key = make_certificate(self._files, 'localhost')
        self.certificate, self.key = make_certificate(self._files, 'alice', hosts=())
        self.stranger = make_certificate(self._files, 'stranger', hosts=())
        self.mechanisms = [name for name, since in SINCE if self.release.version >= since]
        if realm is not None:
            self.mechanisms.append('GSSAPI')
        self._own = dict(zip(NAMES, free_ports(3)))
        self._make_stores()

    def at(self, protocol, host='localhost'):
        """Return where a listener is."""
        return '%s:%d' % (host, self._own[protocol])

    def options(self, protocol, mechanism='', user='alice', password=None, **more):
        """Return what a client is told to use a listener."""
        found = {'security_protocol': protocol, **more}
        if protocol.endswith('SSL'):
            found.setdefault('ssl_cafile', self.ca_file)
        if protocol == 'SSL':
            found.setdefault('ssl_certfile', self.certificate)
            found.setdefault('ssl_keyfile', self.key)
        if mechanism:
            found['sasl_mechanism'] = mechanism
        if mechanism == 'PLAIN' or mechanism in SCRAM:
            found['sasl_plain_username'] = user
            found['sasl_plain_password'] = PASSWORDS.get(user) if password is None else password
        return found

    def start(self):
        super().start()
        if self.release.has_zookeeper and SCRAM[0] in self.mechanisms:
            for user, password in (*PASSWORDS.items(), (ODD_USER, ODD_PASSWORD)):
                config = ','.join('%s=[password=%s]' % (name, password) for name in SCRAM)
                done = self.run_tool(
                    'kafka.admin.ConfigCommand',
                    *('--zookeeper', self.zookeeper, '--alter', '--entity-type', 'users'),
                    *('--entity-name', user, '--add-config', config),
                )
                assert done.returncode == 0, done.stderr

    # ------------------------------------------------------------ settings

    def _make_stores(self):
        _run(
            *('openssl', 'pkcs12', '-export', '-in', self.ca_file, '-inkey', self._key),
            *('-out', self._path('broker.p12'), '-passout', 'pass:' + STORE_PASSWORD),
            *('-name', 'broker'),
        )
        _run(
            *('keytool', '-importcert', '-noprompt', '-alias', 'alice', '-file', self.certificate),
            *('-keystore', self._path('trust.p12'), '-storetype', 'PKCS12'),
            *('-storepass', STORE_PASSWORD),
        )

    def _path(self, name):
        return os.path.join(self._files, name)

    def _modules(self):
        """Return the login modules, {mechanism: text}."""
        users = ' '.join('user_%s="%s"' % each for each in PASSWORDS.items())
        scram = MODULES + 'scram.ScramLoginModule required;'
        found = {
            'PLAIN': MODULES + 'plain.PlainLoginModule required %s;' % users,
            **dict.fromkeys(SCRAM, scram),
            'OAUTHBEARER': MODULES + 'oauthbearer.OAuthBearerLoginModule required'
            ' unsecuredLoginStringClaim_sub="x";',
        }
        if self.realm is not None:
            found['GSSAPI'] = (
                'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true'
                ' storeKey=true keyTab="%s" principal="kafka/localhost";' % self.realm.service_keys
            )
        return {name: found[name] for name in self.mechanisms}

    def _server_properties(self, node):
        text = super()._server_properties(node)
        own = dict(line.split('=', 1) for line in text.splitlines() if '=' in line[1:])
        here = ','.join('%s://%s' % (name, self.at(name, HOST)) for name in NAMES)
        told = ','.join('%s://%s' % (name, self.at(name)) for name in NAMES)
        added = {
            'listeners': '%s,%s' % (own['listeners'], here),
            'advertised.listeners': '%s,%s' % (own['advertised.listeners'], told),
            'ssl.keystore.type': 'PKCS12',
            'ssl.keystore.location': self._path('broker.p12'),
            'ssl.keystore.password': STORE_PASSWORD,
            'ssl.key.password': STORE_PASSWORD,
            'ssl.truststore.type': 'PKCS12',
            'ssl.truststore.location': self._path('trust.p12'),
            'ssl.truststore.password': STORE_PASSWORD,
            'ssl.client.auth': 'required',
            'zookeeper.session.timeout.ms': '30000',  # a test waits for no fail-over
            'listener.name.sasl_ssl.ssl.client.auth': 'none',
            'sasl.enabled.mechanisms': ','.join(self.mechanisms),
            'sasl.kerberos.service.name': 'kafka',
        }
        if 'listener.security.protocol.map' in own:
            pairs = ','.join('%s:%s' % (name, name) for name in NAMES)
            added['listener.security.protocol.map'] = '%s,%s' % (
                own['listener.security.protocol.map'],
                pairs,
            )
        if self.release.version < SETS_MODULES:
            modules = '\n'.join(sorted(set(self._modules().values())))
            self._write('jaas.conf', 'KafkaServer {\n%s\n};\n' % modules)
        else:
            for name, module in self._modules().items():
                for listener in ('sasl_plaintext', 'sasl_ssl'):
                    key = 'listener.name.%s.%s.sasl.jaas.config' % (listener, name.lower())
                    added[key] = module
        if self.release.version >= RENEWS:
            name = 'listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms'
            added[name] = str(RENEWAL_MS)
        return text + ''.join('\n%s=%s' % item for item in added.items()) + '\n'

    def _java(self, name, options, main_class, *arguments):
        if name.startswith('broker'):
            if self.release.version < SETS_MODULES:
                options = [*options, '-Djava.security.auth.login.config=jaas.conf']
            if self.realm is not None:
                options = [*options, '-Djava.security.krb5.conf=' + self.realm.conf]
        if name.startswith('format') and self.release.version >= FORMATS_USERS:
            for user, password in (*PASSWORDS.items(), (ODD_USER, ODD_PASSWORD)):
                for each in SCRAM:
                    told = '%s=[name=%s,password=%s]' % (each, user, password)
                    arguments = (*arguments, '--add-scram', told)
        return super()._java(name, options, main_class, *arguments)
