"""Security settings of connections: TLS, SASL, proxy.

Values and their validation: files are not read, connections not opened and mechanisms not imported
here. tls.py, sasl/ and proxy.py use the settings. Names and options are those of 1.x to 3.x for all
clients; the table of options is in kafka/config. Secrets are never shown, but a pickle contains
them, because it transfers the configuration to other processes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.config import hidden
from kafka.config.kinds import Unfit
from kafka.config.secrets import hide, hide_key, hide_login
from kafka.config.security_table import SECURITY
from kafka.errors import InvalidOptionError, KafkaConfigurationError
from kafka.internals.lazy_imports import LateModule
from kafka.net import proxy as proxies
from kafka.net import tls
from kafka.net.mechanisms import check_mechanism

if TYPE_CHECKING:
    import ssl
else:
    ssl = LateModule('ssl')  # see tls.py

__all__ = ['OPTIONS', 'SaslSettings', 'SecuritySettings', 'TlsSettings']

log = logging.getLogger(__name__)

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

#: The options, with their defaults.
OPTIONS: Dict[str, Any] = {name: option.default for name, option in SECURITY.items()}


# Mechanisms that need user name and password.
_WITH_PASSWORD = ('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512')

Text = Union[str, bytes]


class TlsSettings(NamedTuple):
    """How connections are encrypted and authenticated.

    If ``context`` is given, it is used unchanged and the other fields are ignored. ``cafile``,
    ``certfile``, ``keyfile`` and ``crlfile`` are paths of PEM files, or PEM text; ``certfile`` may
    contain the key too. ``password`` of the key is a string, or a callable that returns it.
    """

    context: Optional[ssl.SSLContext] = None
    check_hostname: bool = True
    cafile: Optional[Text] = None
    certfile: Optional[Text] = None
    keyfile: Optional[Text] = None
    password: Any = None
    crlfile: Optional[Text] = None
    ciphers: Optional[str] = None

    def __repr__(self) -> str:
        if self.context is not None:
            return '<TlsSettings with a context of the program>'
        return '<TlsSettings cafile=%s certfile=%s check_hostname=%s>' % (
            tls.shown_file(self.cafile),
            tls.shown_file(self.certfile),
            self.check_hostname,
        )


class PasswordForm:
    """The form of the password that a client's brokers have accepted (scram.py); mutable."""

    def __init__(self) -> None:
        self.is_as_given = False

    def __repr__(self) -> str:
        return '<PasswordForm is_as_given=%s>' % self.is_as_given


class SaslSettings(NamedTuple):
    """How a client logs in.

    ``options`` are all given options, for mechanisms that the program registers.
    """

    mechanism: str
    username: Optional[str] = None
    password: Optional[str] = None
    kerberos_service_name: str = 'kafka'
    kerberos_domain_name: Optional[str] = None
    kerberos_name: Any = None
    token_provider: Any = None
    is_encrypted: bool = False  # whether the connection uses TLS
    options: Mapping[str, Any] = {}
    form: Optional[PasswordForm] = None

    def __repr__(self) -> str:
        return '<SaslSettings mechanism=%s username=%s>' % (self.mechanism, self.username)


class SecuritySettings:
    """Security settings of the connections of one client; immutable.

    Attributes: protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; tls: TlsSettings, None without
    TLS; sasl: SaslSettings, None without a login; proxy: the URL of a proxy (proxy.py), or None.
    """

    def __init__(
        self,
        protocol: str = PLAINTEXT,
        tls: Optional[TlsSettings] = None,
        sasl: Optional[SaslSettings] = None,
        proxy: Optional[str] = None,
    ) -> None:
        self.protocol = protocol
        self.tls = tls
        self.sasl = sasl
        self.proxy = proxy
        self._context: Optional[ssl.SSLContext] = None

    def __repr__(self) -> str:
        parts = [repr(each) for each in (self.tls, self.sasl) if each is not None]
        if self.proxy is not None:
            parts.append('proxy=' + proxies.shown(self.proxy))
        return '<SecuritySettings %s>' % ' '.join([self.protocol, *parts])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecuritySettings):
            return NotImplemented
        return self._parts() == other._parts()

    __hash__ = object.__hash__

    def __reduce__(self) -> Tuple[Any, ...]:
        if self.tls is not None and self.tls.context is not None:
            raise KafkaConfigurationError(
                'a client with an ssl_context cannot be pickled, because no SSLContext can:'
                ' give ssl_cafile, ssl_certfile and so on instead'
            )
        return type(self), (self.protocol, self.tls, self.sasl, self.proxy)

    def __deepcopy__(self, _: Any) -> SecuritySettings:
        return self  # immutable

    def _parts(self) -> Tuple[Any, ...]:
        sasl = None if self.sasl is None else self.sasl._replace(form=None)
        return self.protocol, self.tls, sasl, self.proxy

    @property
    def is_plain(self) -> bool:
        """Whether connections use neither TLS nor SASL nor a proxy."""
        return self.tls is None and self.sasl is None and self.proxy is None

    @property
    def uses_gssapi(self) -> bool:
        """Whether the mechanism is GSSAPI: its login to 0.9 brokers has no preceding requests."""
        return self.sasl is not None and self.sasl.mechanism == 'GSSAPI'

    def context(self) -> ssl.SSLContext:
        """Return the context of TLS connections, created at the first call.

        Constructors call it to validate the options. Raises KafkaConfigurationError with the option
        and the file that cannot be used.
        """
        assert self.tls is not None
        if self._context is None:
            self._context = tls.make_context(self.tls)
        return self._context

    @classmethod
    def of_keywords(cls, who: str, options: Mapping[str, Any]) -> Optional[SecuritySettings]:
        """Return the settings from keyword arguments of a blocking client, None without any.

        The argument ``security`` may be SecuritySettings in place of all others.
        Arguments: who: the function that was called, for error texts. Raises TypeError for unknown
        arguments.
        """
        if not options:
            return None
        rest = dict(options)
        is_made = 'security' in rest
        settings = rest.pop('security', None)
        unknown = set(rest) - set(OPTIONS)
        if unknown:
            raise TypeError('%s has no argument %s' % (who, ', '.join(sorted(unknown))))
        if not is_made:
            settings = cls.from_options(rest)
        elif rest:
            raise TypeError('%s: security stands for all of %s' % (who, ', '.join(sorted(rest))))
        if settings is None:
            return None
        if not isinstance(settings, SecuritySettings):
            raise TypeError('%s: security must be SecuritySettings' % who)
        if settings.tls is not None:
            settings.context()  # raises now if a file cannot be used
        return None if settings.is_plain else settings

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> SecuritySettings:
        """Return the settings from options; those that do not concern security are ignored.

        Raises KafkaConfigurationError for values that are invalid or contradict each other. Files
        are not read yet, see context().
        """
        given = {name: options.get(name, default) for name, default in OPTIONS.items()}
        protocol = _protocol(given['security_protocol'])
        return cls(
            protocol,
            _tls_settings(given) if protocol.endswith('SSL') else None,
            _sasl_settings(given, protocol, options) if protocol.startswith('SASL') else None,
            _proxy(given, protocol),
        )


def _protocol(value: Any) -> str:
    try:
        return str(SECURITY['security_protocol'].kind.convert(value))
    except Unfit as error:
        hint = ': %s' % error if str(error) else ''
        raise InvalidOptionError(
            'security_protocol must be one of %s, not %r%s' % (', '.join(PROTOCOLS), value, hint)
        ) from None


def _tls_settings(given: Mapping[str, Any]) -> TlsSettings:
    context = given['ssl_context']
    if context is not None:
        if not isinstance(context, ssl.SSLContext):
            raise InvalidOptionError(
                'ssl_context must be an ssl.SSLContext, not %s' % type(context).__name__
            )
        if context.verify_mode == ssl.CERT_NONE:
            log.warning('The ssl_context given checks no certificate: any host can pose as broker')
        return TlsSettings(context=context)
    for name in ('ssl_cafile', 'ssl_certfile', 'ssl_keyfile', 'ssl_crlfile'):
        if not isinstance(given[name], (str, bytes, type(None))) and not hasattr(
            given[name], '__fspath__'
        ):
            raise InvalidOptionError(
                '%s must be a path or PEM text, not %s' % (name, type(given[name]).__name__)
            )
    if given['ssl_keyfile'] and not given['ssl_certfile']:
        raise InvalidOptionError('ssl_keyfile needs ssl_certfile')
    if not given['ssl_check_hostname']:
        log.warning('ssl_check_hostname is off: any host with a certificate can pose as broker')
    return TlsSettings(
        None,
        bool(given['ssl_check_hostname']),
        given['ssl_cafile'],
        hide_key(given['ssl_certfile']),
        hide_key(given['ssl_keyfile']),
        hide(given['ssl_password']),
        given['ssl_crlfile'],
        given['ssl_ciphers'],
    )


def _sasl_settings(
    given: Mapping[str, Any], protocol: str, options: Mapping[str, Any]
) -> SaslSettings:
    mechanism = given['sasl_mechanism']
    if not isinstance(mechanism, str) or not mechanism:
        raise InvalidOptionError(
            'security_protocol=%s needs a sasl_mechanism, such as PLAIN or SCRAM-SHA-512; got %r'
            % (protocol, mechanism)
        )
    mechanism = check_mechanism(mechanism)
    user, password = given['sasl_plain_username'], given['sasl_plain_password']
    if mechanism in _WITH_PASSWORD:
        for name, value in (('sasl_plain_username', user), ('sasl_plain_password', password)):
            if not isinstance(value, str) or not value:
                raise InvalidOptionError(
                    'sasl_mechanism=%s needs %s, a text that is not empty' % (mechanism, name)
                )
    if mechanism == 'PLAIN' and not protocol.endswith('SSL'):
        log.warning('SASL PLAIN without TLS: the password is sent in the clear')
    provider = given['sasl_oauth_token_provider']
    if mechanism == 'OAUTHBEARER' and not callable(getattr(provider, 'token', None)):
        raise InvalidOptionError(
            'sasl_mechanism=OAUTHBEARER needs a sasl_oauth_token_provider, an AbstractTokenProvider'
            ' with token() and maybe extensions(), not %s' % type(provider).__name__
        )
    return SaslSettings(
        mechanism,
        user,
        hide(password),
        given['sasl_kerberos_service_name'],
        given['sasl_kerberos_domain_name'],
        given['sasl_kerberos_name'],
        given['sasl_oauth_token_provider'],
        protocol.endswith('SSL'),
        hidden(options),
        PasswordForm(),
    )


def _proxy(given: Mapping[str, Any], protocol: str) -> Optional[str]:
    if given['sasl_mechanism'] is not None and not protocol.startswith('SASL'):
        log.warning('sasl_mechanism is of no effect with security_protocol=%s', protocol)
    url = given['proxy_url'] if given['proxy_url'] is not None else given['socks5_proxy']
    if url is not None:
        proxies.parse(url)
    return hide_login(url)  # type: ignore[no-any-return]
