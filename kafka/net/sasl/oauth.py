"""SASL OAUTHBEARER (RFC 7628, KIP-255, KIP-342): login with a token of an identity provider.

The mechanism, and the interface of token providers. oidc.py has a provider that requests tokens
from an identity provider.
"""

from __future__ import annotations

import abc
import re
from typing import Any, Dict, Mapping, Tuple

from kafka.config.secrets import hide
from kafka.errors import InvalidOptionError, KafkaError
from kafka.net.failures import SaslError
from kafka.net.sasl.mechanism import Exchange, Mechanism

__all__ = ['AbstractTokenProvider', 'OAuthBearer']

_TOKEN = re.compile(r'[!-~]+')
_KEY = re.compile(r'[A-Za-z]+')
_VALUE = re.compile(r'[!-~ \t\r\n]*')
_NO_MORE = b'\x01'  # RFC 7628: the client's response to an error of the broker


class AbstractTokenProvider(abc.ABC):
    """Base class of token providers (from 1.4.6 on)."""

    def __init__(self, **config: Any) -> None:  # noqa: B027  takes any, as in 1.4.6
        pass

    @abc.abstractmethod
    def token(self) -> str:
        """Return a token that is valid now. Called for each login; must not block indefinitely."""

    def extensions(self) -> Dict[str, str]:
        """Return the SASL extensions for brokers, by name (KIP-342)."""
        return {}


class OAuthBearer(Mechanism):
    """A login with a token of a provider."""

    name = 'OAUTHBEARER'
    _token = ''
    _extensions: Mapping[str, str] = {}

    def prepare(self) -> None:
        """Get a token. Raises SaslError if the provider fails, KafkaConfigurationError."""
        self._token, self._extensions = _provided(self.settings.token_provider)

    def exchange(self) -> Exchange:
        """Send the token; the response to a rejected token has the reason."""
        if not self._token:
            self.prepare()
        parts = ['n,,', 'auth=Bearer ' + self._token]
        parts += ['%s=%s' % each for each in self._extensions.items()]
        self.hint = 'see sasl_oauth_token_provider'
        answer = yield '\x01'.join([*parts, '', '']).encode('ascii')
        if answer:
            self.hint = 'its answer: %s' % answer[:300].decode('utf-8', 'replace')
            yield _NO_MORE


def _provided(provider: Any) -> Tuple[str, Mapping[str, str]]:
    name = type(provider).__name__
    try:
        token = provider.token()
        extensions = provider.extensions() if hasattr(provider, 'extensions') else {}
    except KafkaError:
        raise
    except Exception as error:
        # The texts of HTTP libraries contain URLs and forms, which have secrets.
        kind = type(error).__name__
        raise SaslError(
            '%s, the provider of tokens, failed with %s (its text is in __cause__)' % (name, kind)
        ) from error
    if isinstance(token, bytes):
        token = token.decode('ascii', 'replace')
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidOptionError(
            '%s.token() must return a token, text of ASCII without spaces' % name
        )
    for key, value in (extensions or {}).items():
        if not _KEY.fullmatch(key) or key == 'auth' or not _VALUE.fullmatch(value):
            raise InvalidOptionError(
                '%s.extensions() must return {letters: printable ASCII}, see that of %r'
                % (name, key)
            )
    return hide(token), extensions or {}
