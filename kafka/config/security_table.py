"""The options of secured connections: TLS, SASL, proxies.

Rows of the option table, see ``option.py``. Their dependencies are checked in
:mod:`kafka.net.security`.
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
        'Whether connections are encrypted (SSL) and authenticated (SASL).',
    ),
    Option(
        'ssl_context',
        TLS_CONTEXT,
        None,
        ALL,
        'An ssl.SSLContext that is used unchanged, instead of all other ``ssl_`` options.',
        java=None,
    ),
    Option(
        'ssl_check_hostname',
        FLAG,
        True,
        ALL,
        "Whether a broker's certificate must match its host name.",
        java='ssl.endpoint.identification.algorithm',
    ),
    Option(
        'ssl_cafile',
        FILE,
        None,
        ALL,
        'The trusted certificate authorities; None: those of the system.',
        java='ssl.truststore.location',
        dotted=('ssl.ca.location', 'ssl.ca.pem', 'ssl.truststore.certificates'),
    ),
    Option(
        'ssl_certfile',
        FILE,
        None,
        ALL,
        'The certificate of this client, with its intermediate certificates.',
        java='ssl.keystore.certificate.chain',
        dotted=('ssl.certificate.location', 'ssl.certificate.pem', 'ssl.keystore.location'),
    ),
    Option(
        'ssl_keyfile',
        FILE,
        None,
        ALL,
        'The private key of this client, if it is not in ssl_certfile.',
        java='ssl.keystore.key',
        dotted=('ssl.key.location', 'ssl.key.pem'),
    ),
    Option(
        'ssl_password',
        KEY_PASSWORD,
        None,
        ALL,
        'The password of the private key.',
        java='ssl.key.password',
        since='1.3',
    ),
    Option(
        'ssl_crlfile',
        FILE,
        None,
        ALL,
        'The list of revoked certificates (CRL).',
        java=None,
        dotted=('ssl.crl.location',),
    ),
    Option(
        'ssl_ciphers',
        text(),
        None,
        ALL,
        'The allowed ciphers, in the syntax of OpenSSL.',
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
        'The SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM,'
        ' or one added with register_sasl_mechanism().',
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
        'The service name of the brokers, for GSSAPI.',
        since='1.3.5',
    ),
    Option(
        'sasl_kerberos_domain_name',
        text(),
        None,
        ALL,
        "The host in the service principal. None: the broker's.",
        java=None,
        since='1.4.4',
    ),
    Option(
        'sasl_kerberos_name',
        anything('text, a gssapi.Name, or None'),
        None,
        ALL,
        'The whole service principal, instead of service name and host.',
        java=None,
        since='2.1',
    ),
    Option(
        'sasl_oauth_token_provider',
        anything('an AbstractTokenProvider, or None'),
        None,
        ALL,
        'Provides tokens for OAUTHBEARER: ``token()``, and optionally ``extensions()``.',
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
        'The proxy for connections: ``socks5://``, ``socks5h://`` or ``http://``.',
        java=None,
        since='3.0',
    ),
    Option(
        'socks5_proxy',
        PROXY,
        None,
        ALL,
        'The same under its name in 2.x.',
        java=None,
        since='2.1',
    ),
)

SECURITY: Table = {**_TLS, **_SASL, **_PROXIES}
