"""A real broker with every kind of listener: TLS with client certificates, SASL by each mechanism.

Owns its settings, certificates, users and ACLs. The plain listener is there to watch it by, and to
make users and topics; who comes by it may do everything.
"""

from __future__ import annotations

import os
import time

import pytest

from kafka.net.loop.loop import Loop
from kafka.net.pool import Pool
from kafka.net.sasl import AbstractTokenProvider
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from kafka.testing.security.certificates import make_certificate
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from servers.brokers import HOST
from servers.cluster import Cluster, free_ports
from test.integration import kerberos
from test.integration.authority import Authority, broker_certificate
from test.integration.zookeeper import ZooKeeper, put_acl, put_user

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
RENEWAL_MS = 20_000  # a busy broker may take a second, which is what renewals leave it
SECONDS = 60
#: A listener whose certificate has expired; releases before cannot have one of its own.
EXPIRED, HAS_EXPIRED = 'EXPIRED', (0, 11)
NAMES = ('SSL', 'SASL_PLAINTEXT', 'SASL_SSL', EXPIRED)

# A topic, and its twin that may be looked at; a transactional id.
FORBIDDEN, READ_ONLY, FORBIDDEN_ID = 'forbidden', 'read-only', 'forbidden-id'
#: Who may not use these, and who may not produce idempotently; names of certificates.
MALLORY, OSCAR = 'mallory', 'oscar'
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5  # types of resources
ANY, ALL, READ, WRITE, IDEMPOTENT_WRITE = 1, 2, 3, 4, 12
DENY, ALLOW = 2, 3
EVERYBODY = '*'
HAS_ACL_API = (0, 11)
CLASSES = (
    ((2, 4), 'kafka.security.auth.SimpleAclAuthorizer'),
    ((99,), 'kafka.security.authorizer.AclAuthorizer'),
)

#: Mechanism -> the column of the release table that counts its tests.
COLUMN = {
    'PLAIN': 'PLAIN',
    **dict.fromkeys(SCRAM, 'SCRAM'),
    'OAUTHBEARER': 'OAUTHBEARER',
    'GSSAPI': 'GSSAPI',
}


def by(name, *values):
    """A parameter (or several) for the releases that have a mechanism, counted as its test."""
    since = dict(SINCE).get(name, (0, 9))
    return pytest.param(
        name,
        *values,
        marks=[
            pytest.mark.releases(since='.'.join(map(str, since))),
            pytest.mark.column(COLUMN[name]),
        ],
    )


class Provider(AbstractTokenProvider):
    """Makes tokens that nobody has signed, as brokers take them for tests."""

    def __init__(self, seconds=600):
        self.seconds = seconds

    def token(self):
        return unsigned_token('alice', int((time.time() + self.seconds) * 1000))


class SecuredCluster(Cluster):
    """One broker.

    Arguments: release: of servers; folder: for certificates; realm: kerberos.Realm, or None.

    Attributes: authority; ca_file: knows the broker; certificate, key: alice's; stranger: a
    certificate and a key that the broker does not know; late: alice's, expired; mechanisms: what
    one logs in by.
    """

    def __init__(self, release, folder, realm=None):
        super().__init__(release)
        self.realm = realm
        self._files = str(folder)
        self._has_acls = False
        self.authority = Authority(folder)
        self.ca_file = self.authority.certificate
        self.certificate, self.key = self.authority.sign('alice')
        self.late = self.authority.sign('alice', days=-1, file='late')
        self.others = {name: self.authority.sign(name) for name in (MALLORY, OSCAR)}
        self.stranger = make_certificate(self._files, 'stranger', hosts=())
        self.mechanisms = [name for name, since in SINCE if self.release.version >= since]
        if realm is not None:
            self.mechanisms.append('GSSAPI')
        self._own = dict(zip(NAMES, free_ports(len(NAMES))))
        if self.release.version < HAS_EXPIRED:
            del self._own[EXPIRED]
        self._make_stores()

    def at(self, protocol, host='localhost'):
        """Return where a listener is."""
        return '%s:%d' % (host, self._own[protocol])

    def options(self, protocol, mechanism='', user='alice', password=None, **more):
        """Return what a client is told to use a listener."""
        if mechanism == 'GSSAPI':
            if self.realm is None:
                pytest.skip(kerberos.missing())
            pytest.importorskip('gssapi')
        if mechanism == 'OAUTHBEARER':
            more.setdefault('sasl_oauth_token_provider', Provider())
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

    def _start_broker(self, node):
        if self.release.has_zookeeper:
            with ZooKeeper(self.zookeeper) as zookeeper:
                self._prepare(zookeeper)
        super()._start_broker(node)

    def _prepare(self, zookeeper):
        """Write down what the broker is to find."""
        if SCRAM[0] in self.mechanisms:
            for user, password in (*PASSWORDS.items(), (ODD_USER, ODD_PASSWORD)):
                put_user(zookeeper, user, password, SCRAM)
        if self.release.version < HAS_ACL_API:
            put_acl(zookeeper, FORBIDDEN, 'User:CN=alice', 'All')
            put_acl(zookeeper, READ_ONLY, 'User:CN=' + MALLORY, 'Describe')

    # ------------------------------------------------------------ ACLs

    def set_acls(self):
        """Make the topics, and say what MALLORY and OSCAR may not do: once for all tests."""
        if self._has_acls:
            return
        self._has_acls = True
        for name in (FORBIDDEN, READ_ONLY):
            self.create_topic(name, 1)
        if self.release.version < HAS_ACL_API:
            return  # it found them at its start
        kinds = (TOPIC, CLUSTER, TRANSACTIONAL_ID)
        self._create_acls(
            *(_acl(kind, 'kafka-cluster' if kind == CLUSTER else '*', EVERYBODY) for kind in kinds),
            _acl(TOPIC, FORBIDDEN, 'CN=' + MALLORY, DENY),
            _acl(TOPIC, READ_ONLY, 'CN=' + MALLORY, DENY, WRITE),
            _acl(TRANSACTIONAL_ID, FORBIDDEN_ID, 'CN=' + MALLORY, DENY),
            _acl(CLUSTER, 'kafka-cluster', 'CN=' + OSCAR, DENY, IDEMPOTENT_WRITE),
            _acl(TOPIC, '*', 'CN=' + OSCAR, DENY, WRITE),  # who may write may do that too (KIP-679)
        )

    def deny(self, kind, name, who=MALLORY, operation=ALL):
        """Forbid somebody something from now on; brokers hear of it soon. Since HAS_ACL_API."""
        self._create_acls(_acl(kind, name, 'CN=' + who, DENY, operation))

    def grant(self, kind, name, who=MALLORY):
        """Take back all that was denied of it; brokers hear of it soon."""
        everything = DeleteAclsFilter(
            resource_type_filter=kind,
            resource_name_filter=name,
            principal_filter='User:CN=' + who,
            host_filter=None,
            operation=ANY,
            permission_type=DENY,
        )
        answer = self._ask(DeleteAclsRequest(filters=[everything]))
        assert {each.error_code for each in answer.filter_results} == {0}, answer

    def _create_acls(self, *creations):
        answer = self._ask(CreateAclsRequest(creations=list(creations)))
        assert {each.error_code for each in answer.results} == {0}, answer

    def _ask(self, request):
        loop = Loop()
        pool = Pool(loop, NetSettings(servers=parse_servers(self.bootstrap)))

        async def ask():
            await pool.bootstrap(SECONDS)
            return await pool.send(request)

        try:
            return loop.run(ask(), 2 * SECONDS)
        finally:
            loop.call_threadsafe(pool.close)
            loop.close()

    # ------------------------------------------------------------ settings

    def _make_stores(self):
        certificate, key = broker_certificate(self.authority)
        self._store = self.authority.store(certificate, key, STORE_PASSWORD)
        self.broker_certificate = certificate
        expired = broker_certificate(self.authority, -1, 'expired')
        self._expired_store = self.authority.store(*expired, STORE_PASSWORD)
        self.authority.run(
            *('keytool', '-importcert', '-noprompt', '-alias', 'authority', '-file', self.ca_file),
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
        here = ','.join('%s://%s' % (name, self.at(name, HOST)) for name in self._own)
        told = ','.join('%s://%s' % (name, self.at(name)) for name in self._own)
        added = {
            'listeners': '%s,%s' % (own['listeners'], here),
            'advertised.listeners': '%s,%s' % (own['advertised.listeners'], told),
            'ssl.keystore.type': 'PKCS12',
            'ssl.keystore.location': self._store,
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
            'authorizer.class.name': self._authorizer(),
            'super.users': 'User:ANONYMOUS',
            'allow.everyone.if.no.acl.found': 'true',
        }
        if EXPIRED in self._own:
            protocols = {'PLAINTEXT': 'PLAINTEXT', **dict(zip(NAMES, NAMES)), EXPIRED: 'SSL'}
            pairs = ','.join('%s:%s' % pair for pair in protocols.items())
            first = own.get('listener.security.protocol.map')
            if first is not None:
                del protocols['PLAINTEXT']
                pairs = first + ',' + ','.join('%s:%s' % pair for pair in protocols.items())
            added['listener.security.protocol.map'] = pairs
            added['listener.name.expired.ssl.keystore.location'] = self._expired_store
            added['listener.name.expired.ssl.client.auth'] = 'none'
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

    def _authorizer(self):
        if not self.release.has_zookeeper:
            return 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
        return next(name for until, name in CLASSES if self.release.version < until)

    def _java(self, name, options, main_class, *arguments):
        if name.startswith('broker'):
            if self.release.version < SETS_MODULES:
                options = [*options, '-Djava.security.auth.login.config=jaas.conf']
            if self.realm is not None:
                # Releases before 2.1 ask the JVM's own classes for the realm of short names.
                options = [
                    *(*options, '-Djava.security.krb5.conf=' + self.realm.conf),
                    *('--add-exports', 'java.security.jgss/sun.security.krb5=ALL-UNNAMED'),
                ]
        if name.startswith('format') and self.release.version >= FORMATS_USERS:
            for user, password in (*PASSWORDS.items(), (ODD_USER, ODD_PASSWORD)):
                for each in SCRAM:
                    told = '%s=[name=%s,password=%s]' % (each, user, password)
                    arguments = (*arguments, '--add-scram', told)
        return super()._java(name, options, main_class, *arguments)


def _acl(kind, name, principal, permission=ALLOW, operation=ALL):
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        principal='User:' + principal,
        host='*',
        operation=operation,
        permission_type=permission,
    )
