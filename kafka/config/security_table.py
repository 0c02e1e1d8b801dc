"""The options that say how connections are secured: TLS, logins, proxies.

Rows of the option table, see ``option.py``. Which of them need each other, and what is made of
them, is told in :mod:`kafka.net.security`.
"""

from __future__ import annotations

from kafka.config.kinds import (
    FILE,
    FLAG,
    KEY_PASSWORD,
    PROXY,
    SECRET,
    TLS_CONTEXT,
    anything,
    choice,
    text,
)
from kafka.config.option import Option, Table, table

__all__ = ['SECURITY']

ALL = 'PCAKNT'

_TLS: Table = table(
    Option(
        'security_protocol',
        choice(
            ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'],
            fold=str.upper,
            meant={'TLS': 'SSL', 'SASL_TLS': 'SASL_SSL', 'SASL': 'SASL_SSL'},
        ),
        'PLAINTEXT',
        ALL,
        'Whether connections are encrypted (SSL) and begin with a login (SASL).',
    ),
    Option(
        'ssl_context',
        TLS_CONTEXT,
        None,
        ALL,
        'Used as it is, in place of all other ``ssl_`` options.',
        java=None,
    ),
    Option(
        'ssl_check_hostname',
        FLAG,
        True,
        ALL,
        "Whether a broker's certificate has to be for its host name.",
        java='ssl.endpoint.identification.algorithm',
    ),
    Option(
        'ssl_cafile',
        FILE,
        None,
        ALL,
        'Whom to believe; None: whom the system believes.',
        java='ssl.truststore.location',
        dotted=('ssl.ca.location', 'ssl.ca.pem', 'ssl.truststore.certificates'),
    ),
    Option(
        'ssl_certfile',
        FILE,
        None,
        ALL,
        'The certificate of this client, and those it was made with.',
        java='ssl.keystore.certificate.chain',
        dotted=('ssl.certificate.location', 'ssl.certificate.pem', 'ssl.keystore.location'),
    ),
    Option(
        'ssl_keyfile',
        FILE,
        None,
        ALL,
        'Its key, if that is not in ssl_certfile.',
        java='ssl.keystore.key',
        dotted=('ssl.key.location', 'ssl.key.pem'),
    ),
    Option(
        'ssl_password',
        KEY_PASSWORD,
        None,
        ALL,
        'The password of the key.',
        java='ssl.key.password',
        since='1.3',
    ),
    Option(
        'ssl_crlfile',
        FILE,
        None,
        ALL,
        'Certificates that were called back.',
        java=None,
        dotted=('ssl.crl.location',),
    ),
    Option(
        'ssl_ciphers',
        text(),
        None,
        ALL,
        'The ciphers that may be used, as OpenSSL writes them.',
        java='ssl.cipher.suites',
        since='1.4.7',
    ),
)

_SASL: Table = table(
    Option(
        'sasl_mechanism',
        text(),
        None,
        ALL,
        'How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM, or'
        ' a name that was registered.',
        dotted=('sasl.mechanisms',),
        since='1.3',
    ),
    Option(
        'sasl_plain_username',
        text(empty=True),
        None,
        ALL,
        'The user, for PLAIN and SCRAM.',
        java=None,
        dotted=('sasl.username',),
        since='1.3',
    ),
    Option(
        'sasl_plain_password',
        SECRET,
        None,
        ALL,
        'The password, for PLAIN and SCRAM.',
        java=None,
        dotted=('sasl.password', 'sasl.jaas.config'),
        since='1.3',
    ),
    Option(
        'sasl_kerberos_service_name',
        text(),
        'kafka',
        ALL,
        'The service that brokers are known as, for GSSAPI.',
        since='1.3.5',
    ),
    Option(
        'sasl_kerberos_domain_name',
        text(),
        None,
        ALL,
        'The host in the name of the service. None: that of the broker.',
        java=None,
        since='1.4.4',
    ),
    Option(
        'sasl_kerberos_name',
        anything('text, a gssapi.Name, or None'),
        None,
        ALL,
        'The whole name of the service, in place of these two.',
        java=None,
        since='2.1',
    ),
    Option(
        'sasl_oauth_token_provider',
        anything('an AbstractTokenProvider, or None'),
        None,
        ALL,
        'Gives tokens for OAUTHBEARER: ``token()``, and if it likes ``extensions()``.',
        java=None,
        since='1.4.6',
    ),
)

_PROXIES: Table = table(
    Option(
        'proxy_url',
        PROXY,
        None,
        ALL,
        'A proxy to go through: ``socks5://``, ``socks5h://`` or ``http://``.',
        java=None,
        since='3.0',
    ),
    Option(
        'socks5_proxy',
        PROXY,
        None,
        ALL,
        'The same under its name of 2.x.',
        java=None,
        since='2.1',
    ),
)

SECURITY: Table = {**_TLS, **_SASL, **_PROXIES}
