"""Java's options of TLS and SASL, ``kafka.ssl.*`` and ``kafka.sasl.*``, converted to our options.

It converts stores of certificates (PEM as a file or as text; JKS and PKCS12 are formats of Java,
and refused with an alternative), sasl.jaas.config, whose login modules correspond to mechanisms,
and the identity provider of OAUTHBEARER. Shaded classes are recognised by the last part of their
names. Names of librdkafka are accepted if they are unambiguous. No file is read here, and no error
shows a secret. jaas.py parses the syntax of JAAS; the dependencies of options are checked in
kafka/net/security.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Match, Tuple

from kafka.config.secrets import is_pem, shown
from kafka.errors import InvalidOptionError, KafkaConfigurationError
from kafka.net.sasl.oidc import ClientCredentials
from kafka.spark.jaas import NAME as JAAS
from kafka.spark.jaas import LoginModule, parse_jaas

__all__ = ['Credentials', 'is_of_security', 'read_security']

PREFIX = 'kafka.'

#: Options that are used unchanged, and our names of them.
_DIRECT = {
    'ssl.ca.location': 'ssl_cafile',
    'ssl.ca.pem': 'ssl_cafile',
    'ssl.cafile': 'ssl_cafile',
    'ssl.certfile': 'ssl_certfile',
    'ssl.certificate.location': 'ssl_certfile',
    'ssl.certificate.pem': 'ssl_certfile',
    'ssl.key.location': 'ssl_keyfile',
    'ssl.key.pem': 'ssl_keyfile',
    'ssl.keyfile': 'ssl_keyfile',
    'ssl.key.password': 'ssl_password',
    'ssl.password': 'ssl_password',
    'ssl.crl.location': 'ssl_crlfile',
    'ssl.crlfile': 'ssl_crlfile',
    'ssl.ciphers': 'ssl_ciphers',
    'sasl.mechanism': 'sasl_mechanism',
    'sasl.mechanisms': 'sasl_mechanism',
    'sasl.username': 'sasl_plain_username',
    'sasl.plain.username': 'sasl_plain_username',
    'sasl.password': 'sasl_plain_password',
    'sasl.plain.password': 'sasl_plain_password',
    'sasl.kerberos.service.name': 'sasl_kerberos_service_name',
    'sasl.kerberos.domain.name': 'sasl_kerberos_domain_name',
}

#: Choices that only a JVM offers, or the times of renewals, which our clients choose themselves.
_NEUTRAL = re.compile(
    r'ssl\.(keymanager\.algorithm|trustmanager\.algorithm|secure\.random\.implementation)\Z'
    r'|sasl\.kerberos\.(kinit\.cmd|min\.time\.before\.relogin|ticket\.renew\.[a-z.]+)\Z'
    r'|sasl\.login\.(connect\.timeout|read\.timeout|retry\.backoff|retry\.backoff\.max)\.ms\Z'
    r'|sasl\.login\.refresh\.[a-z.]+\Z'
    r'|sasl\.oauthbearer\.(clock\.skew\.seconds|expected\.(audience|issuer)|header\.urlencode'
    r'|jwks\.endpoint\.[a-z.]+|(scope|sub)\.claim\.name)\Z'
)

_CLASSES = 'Java classes are not supported'
_REFUSED = {
    'ssl.provider': _CLASSES,
    'ssl.engine.factory.class': _CLASSES,
    'sasl.login.class': _CLASSES,
    'security.providers': _CLASSES,
    'sasl.oauthbearer.jwt.retriever.class': _CLASSES,
    'sasl.oauthbearer.jwt.validator.class': _CLASSES,
}

#: Callback handlers whose task our mechanisms perform themselves, without their packages.
_HANDLERS = {
    'OAuthBearerLoginCallbackHandler': 'OAUTHBEARER',
    'OAuthBearerSaslClientCallbackHandler': 'OAUTHBEARER',
    'IAMClientCallbackHandler': 'AWS_MSK_IAM',
}

_STORES = {'truststore': 'certificates', 'keystore': 'certificate.chain'}
_PEM_ENDINGS = ('.pem', '.crt', '.cer', '.cert')
_PEM = re.compile(r'-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----', re.DOTALL)
_TO_PEM = {
    'truststore': 'keytool -exportcert -rfc -keystore FILE -alias NAME writes a certificate of it'
    ' as PEM; without one, the authorities of the system are trusted',
    'keystore': 'openssl pkcs12 -in FILE.p12 -out FILE.pem converts it to PEM; keytool'
    ' -importkeystore converts a JKS to FILE.p12',
}

_TOKEN_URL = 'sasl.oauthbearer.token.endpoint.url'
#: Other options for the content of the login module: those of Kafka 4.1, then those of librdkafka.
_CREDENTIALS = {
    'sasl.oauthbearer.client.credentials.client.id': 'clientId',
    'sasl.oauthbearer.client.credentials.client.secret': 'clientSecret',
    'sasl.oauthbearer.scope': 'scope',
    'sasl.oauthbearer.client.id': 'clientId',
    'sasl.oauthbearer.client.secret': 'clientSecret',
}

_OURS = frozenset((
    *_DIRECT, *_REFUSED, *_CREDENTIALS, _TOKEN_URL, 'sasl.jaas.config',
    'sasl.client.callback.handler.class', 'sasl.login.callback.handler.class',
    'ssl.endpoint.identification.algorithm', 'ssl.check.hostname', 'ssl.cipher.suites',
    'ssl.protocol', 'ssl.enabled.protocols', 'ssl.keystore.key',
    *('ssl.%s.%s' % (store, each) for store, text in _STORES.items()
      for each in ('type', 'location', 'password', text)),
))  # fmt: skip

Given = Mapping[str, str]
Found = Dict[str, Any]


class Credentials(ClientCredentials):
    """Client credentials that compare equal for the same client: configurations are used as
    keys."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Credentials):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.token_endpoint_url, self.client_id))


def is_of_security(name: str) -> bool:
    """Return True if read_security() handles a name, given without ``kafka.``."""
    return name in _OURS or bool(_NEUTRAL.match(name))


def read_security(given: Given) -> Found:
    """Return the corresponding options of this package.

    Arguments: given: texts by names for which is_of_security() is true. Raises InvalidOptionError.
    """
    for name, why in _REFUSED.items():
        if name in given:
            raise _refused(name, given[name], 'left out', why)
    found: Found = {}
    for name, ours in _DIRECT.items():
        if name in given:
            _put(found, ours, name, pem(given[name]))
    _read_stores(given, found)
    _read_tls(given, found)
    _read_login(given, found)
    return found


def _put(found: Found, ours: str, name: str, value: Any) -> None:
    """Store a value that several options may give, if they do not contradict each other."""
    if found.get(ours, value) != value:
        raise InvalidOptionError(
            '%s%s contradicts another option with the same meaning: give one of them'
            % (PREFIX, name)
        )
    found[ours] = value


def _refused(name: str, text: str, allowed: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(
        '%s%s must be %s, not %s: %s' % (PREFIX, name, allowed, shown(text), why)
    )


# ---------------------------------------------------------------- TLS


def _read_stores(given: Given, found: Found) -> None:
    for store, text_name in _STORES.items():
        location, text = 'ssl.%s.location' % store, 'ssl.%s.%s' % (store, text_name)
        if location not in given and text not in given:
            continue
        _check_store(given, store)
        if location in given and text in given:
            raise InvalidOptionError(
                '%s%s and %s%s exclude each other' % (PREFIX, location, PREFIX, text)
            )
        name = location if location in given else text
        ours = 'ssl_cafile' if store == 'truststore' else 'ssl_certfile'
        _put(found, ours, name, pem(given[name]))
    if 'ssl.keystore.key' in given:
        _put(found, 'ssl_keyfile', 'ssl.keystore.key', pem(given['ssl.keystore.key']))


def _check_store(given: Given, store: str) -> None:
    """Raise unless a store is PEM, by its type or the extension of its name."""
    name, location = 'ssl.%s.type' % store, given.get('ssl.%s.location' % store, '')
    is_named_so = not location or location.lower().endswith(_PEM_ENDINGS)
    kind = given.get(name, 'PEM' if is_named_so else '')
    if kind.upper() != 'PEM':
        if name not in given:
            kind = 'left out, which means JKS'
        raise InvalidOptionError(
            '%s%s must be PEM, not %s: formats of Java are not supported, %s'
            % (PREFIX, name, kind[:40], _TO_PEM[store])
        )
    password = 'ssl.%s.password' % store
    if password in given:
        raise InvalidOptionError(
            '%s%s must be left out: PEM has none%s'
            % (PREFIX, password, '' if store == 'truststore' else ', see kafka.ssl.key.password')
        )


def pem(text: str) -> str:
    """Return PEM text for OpenSSL, with the line breaks that it lost in an option; else
    unchanged."""
    blocks = list(_PEM.finditer(text)) if is_pem(text) else []
    return '\n'.join(map(_with_lines, blocks)) or text


def _with_lines(match: Match[str]) -> str:
    label, body = match.groups()
    if ':' in body:  # an old key with headers, whose line breaks must stay
        return match.group()
    letters = re.sub(r'\s+', '', body)
    lines = [letters[at : at + 64] for at in range(0, len(letters), 64)]
    return '\n'.join(['-----BEGIN %s-----' % label, *lines, '-----END %s-----' % label])


def _read_tls(given: Given, found: Found) -> None:
    for name in ('ssl.endpoint.identification.algorithm', 'ssl.check.hostname'):
        if name in given:
            answers = {'https': True, '': False, 'true': True, 'false': False}
            if given[name].lower() not in answers:
                raise _refused(name, given[name], 'https or empty', 'other checks do not exist')
            _put(found, 'ssl_check_hostname', name, answers[given[name].lower()])
    ciphers = given.get('ssl.cipher.suites')
    if ciphers:
        if ciphers.startswith(('TLS_', 'SSL_')):
            why = 'names of Java are not supported, see openssl ciphers'
            raise _refused('ssl.cipher.suites', ciphers, 'ciphers as OpenSSL writes them', why)
        _put(found, 'ssl_ciphers', 'ssl.cipher.suites', ciphers.replace(',', ':'))
    for name in ('ssl.protocol', 'ssl.enabled.protocols'):
        asked = [each.strip() for each in given.get(name, 'TLS').split(',')]
        if name == 'ssl.enabled.protocols' and name in given:
            is_fit = 'TLSv1.2' in asked
        else:
            is_fit = set(asked) <= {'TLS', 'TLSv1.2', 'TLSv1.3'}
        if not is_fit:
            why = 'the best protocol that both sides support is used, and none older than that'
            raise _refused(name, given[name], 'TLSv1.2,TLSv1.3', why)


# ---------------------------------------------------------------- logins


def _read_login(given: Given, found: Found) -> None:
    credentials = {ours: given[name] for name, ours in _CREDENTIALS.items() if name in given}
    if 'sasl.jaas.config' in given:
        module = parse_jaas(given['sasl.jaas.config'])
        if module.name not in _MODULES:
            raise InvalidOptionError(
                '%s: unknown login module %s, use one of %s'
                % (JAAS, module.class_name[:100], ', '.join(sorted(_MODULES)))
            )
        mechanisms, read = _MODULES[module.name]
        _settle_mechanism(module, mechanisms, found)
        credentials = {**credentials, **read(module, found)}
    _check_handlers(given, found)
    is_oauth = str(found.get('sasl_mechanism', '')).upper() == 'OAUTHBEARER'
    if is_oauth or _TOKEN_URL in given or credentials:
        _read_provider(given, credentials, found)


def _settle_mechanism(module: LoginModule, allowed: Tuple[str, ...], found: Found) -> None:
    mechanism = found.get('sasl_mechanism')
    if mechanism is None and len(allowed) == 1:
        found['sasl_mechanism'] = allowed[0]
    elif mechanism is None or mechanism.upper() not in allowed:
        raise InvalidOptionError(
            '%ssasl.mechanism must be %s with %s, not %s'
            % (PREFIX, ' or '.join(allowed), module.name, shown(mechanism))
        )


def _check_handlers(given: Given, found: Found) -> None:
    for name in ('sasl.client.callback.handler.class', 'sasl.login.callback.handler.class'):
        text = given.get(name)
        mechanism = _HANDLERS.get(text.rpartition('.')[2]) if text else None
        if text and (mechanism is None or found.get('sasl_mechanism') != mechanism):
            known = ', '.join('%s for %s' % each for each in sorted(_HANDLERS.items()))
            raise _refused(name, text, 'left out', '%s, except %s' % (_CLASSES, known))


def _options_of(module: LoginModule, taken: str, neutral: str = '', **why: str) -> Dict[str, str]:
    """Return the accepted options; others are refused unless they have no effect.

    Arguments: taken, neutral: names, separated by spaces; why: by names that are refused, the
    alternative.
    """
    known = taken.split()
    for name in module.options:
        if name not in known and name not in neutral.split() and not name.startswith('user_'):
            more = ': ' + why[name] if name in why else ''
            raise InvalidOptionError(
                '%s: the options of %s must be %s, not %s%s'
                % (JAAS, module.name, ', '.join(known) or 'no options', name[:40], more)
            )
    return {name: module.options[name] for name in known if name in module.options}


def _read_password(module: LoginModule, found: Found) -> Dict[str, str]:
    why = 'delegation tokens are not supported'
    options = _options_of(module, 'username password', 'serviceName', tokenauth=why)
    for name in ('username', 'password'):
        if not options.get(name):
            raise InvalidOptionError('%s: %s needs %s' % (JAAS, module.name, name))
        _put(found, 'sasl_plain_' + name, 'sasl.jaas.config', str(options[name]))
    return {}


def _read_kerberos(module: LoginModule, found: Found) -> Dict[str, str]:
    neutral = (
        'useTicketCache renewTGT doNotPrompt debug storeKey refreshKrb5Config useKeyTab'
        ' isInitiator clearPass'
    )
    key_table = 'name the file in KRB5_CLIENT_KTNAME, on all machines'
    cache = 'name the cache in KRB5CCNAME, on all machines'
    options = _options_of(
        module,
        'serviceName',
        neutral,
        keyTab=key_table,
        principal='it is that of the tickets, or the first one in the file of KRB5_CLIENT_KTNAME',
        ticketCache=cache,
    )
    if 'serviceName' in options:
        name = str(options['serviceName'])
        _put(found, 'sasl_kerberos_service_name', 'sasl.jaas.config', name)
    return {}


def _read_iam(module: LoginModule, found: Found) -> Dict[str, str]:
    why = 'set it in the environment, as AWS_PROFILE, AWS_ROLE_ARN and so on'
    names = ('awsProfileName', 'awsRoleArn', 'awsRoleSessionName', 'awsStsRegion')
    refused = dict.fromkeys(names, why)
    _options_of(module, '', 'awsDebugCreds awsMaxRetries awsMaxBackOffTimeMs', **refused)
    return {}


def _read_oauth(module: LoginModule, found: Found) -> Dict[str, str]:
    extensions = [name for name in module.options if name.startswith('extension_')]
    why = {'unsecuredLoginStringClaim_sub': 'unsigned tokens are for tests'}
    return _options_of(module, ' '.join(['clientId clientSecret scope', *extensions]), '', **why)


def _read_provider(given: Given, credentials: Dict[str, str], found: Found) -> None:
    """Create the token provider from the client credentials and the URL of the token endpoint."""
    mechanism = found.setdefault('sasl_mechanism', 'OAUTHBEARER')
    if mechanism.upper() != 'OAUTHBEARER':
        raise InvalidOptionError(
            '%ssasl.oauthbearer.* are for OAUTHBEARER, not for sasl.mechanism %s'
            % (PREFIX, shown(mechanism))
        )
    extensions = {
        name[len('extension_') :]: str(value)
        for name, value in credentials.items()
        if name.startswith('extension_')
    }
    try:
        found['sasl_oauth_token_provider'] = Credentials(
            given.get(_TOKEN_URL, ''),
            str(credentials.get('clientId', '')),
            str(credentials.get('clientSecret', '')),
            credentials.get('scope'),
            extensions,
        )
    except KafkaConfigurationError as error:
        text = str(error.args[0]).replace('token_endpoint_url', PREFIX + _TOKEN_URL)
        text = text.replace('client_id', 'clientId of %s' % JAAS)
        raise InvalidOptionError(
            text.replace('client_secret', 'clientSecret of %s' % JAAS)
        ) from None


#: Login modules by the last part of their names: their mechanisms, and the parsers of options.
_MODULES: Mapping[str, Tuple[Tuple[str, ...], Callable[[LoginModule, Found], Dict[str, str]]]] = {
    'PlainLoginModule': (('PLAIN',), _read_password),
    'ScramLoginModule': (('SCRAM-SHA-256', 'SCRAM-SHA-512'), _read_password),
    'OAuthBearerLoginModule': (('OAUTHBEARER',), _read_oauth),
    'Krb5LoginModule': (('GSSAPI',), _read_kerberos),
    'IAMLoginModule': (('AWS_MSK_IAM',), _read_iam),
}
