"""Java's options about TLS and logins: what they become, what is refused; and nothing leaks."""

from __future__ import annotations

import pickle
from typing import Any, Dict

import pytest

from kafka.errors import InvalidOptionError
from kafka.spark.security_options import Credentials, is_of_security, pem, read_security

PACKAGE = 'org.apache.kafka.common.security.'
PLAIN = PACKAGE + 'plain.PlainLoginModule required username="u" password="canary";'
SCRAM = 'kafkashaded.%sscram.ScramLoginModule required username=u password="canary";' % PACKAGE
OAUTH = PACKAGE + 'oauthbearer.OAuthBearerLoginModule required '
KERBEROS = 'com.sun.security.auth.module.Krb5LoginModule required '
IAM = 'software.amazon.msk.auth.iam.IAMLoginModule required'
URL = 'sasl.oauthbearer.token.endpoint.url'

CERTIFICATE = '-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----' % ('A' * 64)
KEY = '-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----' % ('K' * 64)

READ: Dict[str, Any] = {
    'nothing': ({}, {}),
    'a truststore file': (
        {'ssl.truststore.type': 'PEM', 'ssl.truststore.location': '/ca'},
        {'ssl_cafile': '/ca'},
    ),
    'a file whose name says what it is': (
        {'ssl.truststore.location': '/ca.crt'},
        {'ssl_cafile': '/ca.crt'},
    ),
    'a truststore as text': (
        {'ssl.truststore.type': 'pem', 'ssl.truststore.certificates': CERTIFICATE},
        {'ssl_cafile': CERTIFICATE},
    ),
    'a keystore file, with the key in it': (
        {'ssl.keystore.type': 'PEM', 'ssl.keystore.location': '/c', 'ssl.key.password': 'canary'},
        {'ssl_certfile': '/c', 'ssl_password': 'canary'},
    ),
    'a keystore as text': (
        {'ssl.keystore.certificate.chain': CERTIFICATE, 'ssl.keystore.key': KEY},
        {'ssl_certfile': CERTIFICATE, 'ssl_keyfile': KEY},
    ),
    'names of librdkafka': (
        {'ssl.ca.location': '/a', 'ssl.certificate.location': '/c', 'ssl.key.location': '/k'},
        {'ssl_cafile': '/a', 'ssl_certfile': '/c', 'ssl_keyfile': '/k'},
    ),
    'no check of names': (
        {'ssl.endpoint.identification.algorithm': ''},
        {'ssl_check_hostname': False},
    ),
    'a check of names': (
        {'ssl.endpoint.identification.algorithm': 'HTTPS'},
        {'ssl_check_hostname': True},
    ),
    'no check, by our own name': ({'ssl.check.hostname': 'false'}, {'ssl_check_hostname': False}),
    'a check, by our own name': ({'ssl.check.hostname': 'true'}, {'ssl_check_hostname': True}),
    'protocols': (
        {'ssl.protocol': 'TLSv1.3', 'ssl.enabled.protocols': 'TLSv1.2, TLSv1.3'},
        {},
    ),
    'ciphers': ({'ssl.cipher.suites': 'ECDHE+AESGCM,CHACHA20'},
                {'ssl_ciphers': 'ECDHE+AESGCM:CHACHA20'}),
    'what JVMs alone choose': (
        {'ssl.keymanager.algorithm': 'PKIX', 'sasl.kerberos.kinit.cmd': '/bin/kinit',
         'sasl.login.refresh.window.factor': '0.8', 'sasl.oauthbearer.clock.skew.seconds': '3'},
        {},
    ),
    'PLAIN': (
        {'sasl.mechanism': 'PLAIN', 'sasl.jaas.config': PLAIN},
        {'sasl_mechanism': 'PLAIN', 'sasl_plain_username': 'u', 'sasl_plain_password': 'canary'},
    ),
    'PLAIN, said by the module alone': (
        {'sasl.jaas.config': PLAIN},
        {'sasl_mechanism': 'PLAIN', 'sasl_plain_username': 'u', 'sasl_plain_password': 'canary'},
    ),
    'a password without JAAS': (
        {'sasl.mechanism': 'PLAIN', 'sasl.username': 'u', 'sasl.password': 'canary'},
        {'sasl_mechanism': 'PLAIN', 'sasl_plain_username': 'u', 'sasl_plain_password': 'canary'},
    ),
    'SCRAM, shaded': (
        {'sasl.mechanism': 'SCRAM-SHA-512', 'sasl.jaas.config': SCRAM},
        {'sasl_mechanism': 'SCRAM-SHA-512', 'sasl_plain_username': 'u',
         'sasl_plain_password': 'canary'},
    ),
    'Kerberos': (
        {'sasl.jaas.config': KERBEROS + 'useTicketCache=true serviceName="k";'},
        {'sasl_mechanism': 'GSSAPI', 'sasl_kerberos_service_name': 'k'},
    ),
    'Amazon': (
        {'sasl.mechanism': 'AWS_MSK_IAM', 'sasl.jaas.config': IAM + ';',
         'sasl.client.callback.handler.class':
             'software.amazon.msk.auth.iam.IAMClientCallbackHandler'},
        {'sasl_mechanism': 'AWS_MSK_IAM'},
    ),
}  # fmt: skip

STORE = {'ssl.truststore.location': '/ca.jks'}
REFUSED: Dict[str, Any] = {
    'a JKS by default': (STORE, 'kafka.ssl.truststore.type must be PEM, not left out.*keytool'),
    'a JKS': ({**STORE, 'ssl.truststore.type': 'JKS'}, 'must be PEM, not JKS'),
    'a PKCS12': (
        {'ssl.keystore.location': '/k', 'ssl.keystore.type': 'PKCS12'},
        'kafka.ssl.keystore.type must be PEM, not PKCS12.*openssl pkcs12',
    ),
    'a password of a truststore': (
        {'ssl.truststore.location': '/ca.pem', 'ssl.truststore.password': 'canary'},
        'kafka.ssl.truststore.password must be left out',
    ),
    'a password of a keystore': (
        {'ssl.keystore.location': '/c.pem', 'ssl.keystore.password': 'canary'},
        'kafka.ssl.keystore.password must be left out.*kafka.ssl.key.password',
    ),
    'a store twice': (
        {'ssl.truststore.location': '/ca.pem', 'ssl.truststore.certificates': CERTIFICATE},
        'exclude each other',
    ),
    'a certificate in two ways': (
        {'ssl.truststore.location': '/ca.pem', 'ssl.ca.location': '/other'},
        'contradicts another option',
    ),
    'another check of names': (
        {'ssl.endpoint.identification.algorithm': 'LDAPS'},
        'must be https or empty',
    ),
    'ciphers of Java': (
        {'ssl.cipher.suites': 'TLS_AES_128_GCM_SHA256'},
        'as OpenSSL writes them',
    ),
    'an old protocol': ({'ssl.protocol': 'TLSv1.1'}, 'kafka.ssl.protocol must be TLSv1.2,TLSv1.3'),
    'one protocol alone': ({'ssl.enabled.protocols': 'TLSv1.3'}, 'kafka.ssl.enabled.protocols'),
    'a provider': ({'ssl.provider': 'BC'}, 'kafka.ssl.provider must be left out'),
    'an engine': ({'ssl.engine.factory.class': 'x.Y'}, 'Java classes are not supported'),
    'providers': ({'security.providers': 'x.Y'}, 'kafka.security.providers'),
    'a class that logs in': ({'sasl.login.class': 'x.Y'}, 'kafka.sasl.login.class'),
    'an unknown module': (
        {'sasl.jaas.config': 'x.MyLoginModule required password="canary";'},
        'unknown login module x.MyLoginModule.*PlainLoginModule',
    ),
    'SCRAM without a mechanism': (
        {'sasl.jaas.config': SCRAM},
        'kafka.sasl.mechanism must be SCRAM-SHA-256 or SCRAM-SHA-512 with ScramLoginModule',
    ),
    'a module of another mechanism': (
        {'sasl.mechanism': 'GSSAPI', 'sasl.jaas.config': PLAIN},
        'kafka.sasl.mechanism must be PLAIN with PlainLoginModule',
    ),
    'a password twice': (
        {'sasl.jaas.config': PLAIN, 'sasl.password': 'other-canary'},
        'kafka.sasl.jaas.config contradicts',
    ),
    'no password': (
        {'sasl.jaas.config': PACKAGE + 'plain.PlainLoginModule required username=canary;'},
        'PlainLoginModule needs password',
    ),
    'a token of delegation': (
        {'sasl.mechanism': 'SCRAM-SHA-256', 'sasl.jaas.config': SCRAM[:-1] + ' tokenauth=true;'},
        'not tokenauth: delegation tokens',
    ),
    'a key table': (
        {'sasl.jaas.config': KERBEROS + 'useKeyTab=true keyTab="/canary";'},
        'not keyTab: .*KRB5_CLIENT_KTNAME',
    ),
    'a service with two names': (
        {'sasl.kerberos.service.name': 'a', 'sasl.jaas.config': KERBEROS + 'serviceName=b;'},
        'kafka.sasl.jaas.config contradicts',
    ),
    'a profile of Amazon': (
        {'sasl.jaas.config': IAM + ' awsProfileName="canary";'},
        'IAMLoginModule must be no options, not awsProfileName: .*AWS_PROFILE',
    ),
    'a handler': (
        {'sasl.mechanism': 'PLAIN', 'sasl.client.callback.handler.class': 'x.Handler'},
        'kafka.sasl.client.callback.handler.class must be left out',
    ),
    'a handler of another mechanism': (
        {'sasl.mechanism': 'PLAIN', 'sasl.login.callback.handler.class':
            PACKAGE + 'oauthbearer.OAuthBearerLoginCallbackHandler'},
        'kafka.sasl.login.callback.handler.class must be left out',
    ),
    'a token without a place to get it': (
        {'sasl.jaas.config': OAUTH + 'clientId=i clientSecret=canary;'},
        'kafka.sasl.oauthbearer.token.endpoint.url must be https',
    ),
    'a place that is not safe': (
        {URL: 'http://idp', 'sasl.jaas.config': OAUTH + 'clientId=i clientSecret=canary;'},
        'kafka.sasl.oauthbearer.token.endpoint.url must be https',
    ),
    'a place to get a token for nobody': (
        {'sasl.mechanism': 'OAUTHBEARER', URL: 'https://idp'},
        'clientId of kafka.sasl.jaas.config must be text',
    ),
    'a client without a secret': (
        {URL: 'https://idp', 'sasl.jaas.config': OAUTH + 'clientId=i;'},
        'clientSecret of kafka.sasl.jaas.config must be text',
    ),
    'OAUTHBEARER by itself': (
        {'sasl.mechanism': 'OAUTHBEARER'},
        'kafka.sasl.oauthbearer.token.endpoint.url must be https',
    ),
    'a token that nobody signed': (
        {'sasl.jaas.config': OAUTH + 'unsecuredLoginStringClaim_sub="canary";'},
        'not unsecuredLoginStringClaim_sub',
    ),
    'a place for tokens of another mechanism': (
        {'sasl.mechanism': 'PLAIN', URL: 'https://idp'},
        'are for OAUTHBEARER, not for sasl.mechanism',
    ),
}  # fmt: skip


@pytest.mark.parametrize('what', READ)
def test_options_of_java_become_ours(what: str) -> None:
    given, expected = READ[what]
    assert all(map(is_of_security, given))
    assert read_security(given) == expected


@pytest.mark.parametrize('what', REFUSED)
def test_what_cannot_be_is_refused_by_name_and_shows_no_secret(what: str) -> None:
    given, text = REFUSED[what]
    assert all(map(is_of_security, given))
    with pytest.raises(InvalidOptionError, match=text) as caught:
        read_security(given)
    assert 'canary' not in str(caught.value)


def oauth(more: str = '', url: str = 'https://idp/token') -> Credentials:
    module = OAUTH + 'clientId="i" clientSecret="canary"%s;' % more
    found = read_security({URL: url, 'sasl.jaas.config': module})
    assert found['sasl_mechanism'] == 'OAUTHBEARER'
    provider = found['sasl_oauth_token_provider']
    assert isinstance(provider, Credentials)
    return provider


def test_a_client_of_an_identity_provider_gets_its_tokens_there() -> None:
    provider = oauth(' scope="s" extension_logicalCluster="lkc-1"')
    assert (provider.token_endpoint_url, provider.client_id) == ('https://idp/token', 'i')
    assert provider.extensions() == {'logicalCluster': 'lkc-1'}
    assert 'canary' not in repr(provider)


def test_who_it_is_may_stand_outside_of_jaas() -> None:
    found = read_security({
        'sasl.mechanism': 'OAUTHBEARER',
        URL: 'https://idp/token',
        'sasl.oauthbearer.client.credentials.client.id': 'i',
        'sasl.oauthbearer.client.credentials.client.secret': 'canary',
        'sasl.login.callback.handler.class':
            'x.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler',
    })  # fmt: skip
    assert found['sasl_oauth_token_provider'] == oauth()


def test_credentials_are_equal_if_they_are_of_one_client_so_that_clients_are_shared() -> None:
    assert oauth() == oauth() == pickle.loads(pickle.dumps(oauth()))
    assert hash(oauth()) == hash(oauth())
    assert oauth() != oauth(' scope="s"')
    assert oauth() != oauth(url='https://other/token')
    assert oauth() != 'i'


def test_pem_text_gets_the_lines_back_that_it_lost_in_an_option() -> None:
    body = 'M' * 130
    text = '-----BEGIN CERTIFICATE----- %s -----END CERTIFICATE-----' % body
    begin, end = '-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----'
    lines = [begin, 'M' * 64, 'M' * 64, 'MM', end]
    assert pem(text) == '\n'.join(lines)
    assert pem(text + ' ' + text) == '\n'.join(lines + lines)


def test_pem_text_with_lines_and_a_path_stay_as_they_are() -> None:
    headers = '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\n\nMM\n-----END RSA PRIVATE KEY-----'
    for text in (CERTIFICATE, CERTIFICATE + '\n' + KEY, headers, '/etc/ca.pem', '-----BEGIN X'):
        assert pem(text) == text


def test_other_names_are_not_about_security() -> None:
    for name in ('client.id', 'security.protocol', 'ssl.other', 'sasl', 'bootstrap.servers'):
        assert not is_of_security(name)
