"""A token provider for OAUTHBEARER: the client credentials grant of OAuth 2 (RFC 6749, 4.4).

Requests a token, validates the response, and caches the token until shortly before it expires. The
trust in the endpoint is limited: https only, no redirects, and a response of at most 64 KiB within
a time limit.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from kafka.config.secrets import hide
from kafka.errors import KafkaConfigurationError
from kafka.net.failures import SaslError
from kafka.net.sasl.oauth import AbstractTokenProvider

__all__ = ['ClientCredentials']

MAX_ANSWER_BYTES = 64 * 1024
#: The fraction of the lifetime of a token after which it is replaced.
RENEW_AT = 0.8
#: Seconds for which a token of unknown lifetime is cached.
UNKNOWN_SECONDS = 60.0


class ClientCredentials(AbstractTokenProvider):
    """Provides tokens that an identity provider issues for a client id and secret.

    Arguments:
        token_endpoint_url: URL of the token endpoint, https only.
        client_id, client_secret: credentials of the client.
        scope: of the token, None for the default of the provider.
        extensions: SASL extensions for brokers (KIP-342).
        timeout: seconds for a request.
        cafile: PEM file with the certificate authorities of the endpoint, None for those of the
            system.
        ssl_context: in place of cafile, for other TLS settings.

    Thread-safe. A token is requested if none is cached, or after 80 % of its lifetime.
    Raises KafkaConfigurationError for invalid arguments.
    """

    def __init__(
        self,
        token_endpoint_url: str,
        client_id: str,
        client_secret: str,
        scope: Optional[str] = None,
        extensions: Optional[Mapping[str, str]] = None,
        timeout: float = 10.0,
        cafile: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        super().__init__()
        _check(token_endpoint_url, client_id, client_secret, timeout)
        self.token_endpoint_url = token_endpoint_url
        self.client_id = client_id
        self.timeout = timeout
        self._secret = hide(client_secret)
        self._scope = scope
        self._extensions = dict(extensions or {})
        self._cafile = cafile
        self._ssl_context = ssl_context
        self._forget()

    def _forget(self) -> None:
        # Guards the fields below: one thread requests a token, the others wait for it.
        self._asking = threading.Lock()
        self._token = ''
        self._renew_at = 0.0

    def __repr__(self) -> str:
        return '<ClientCredentials client_id=%s at %s>' % (self.client_id, self._host)

    def __getstate__(self) -> Dict[str, Any]:
        if self._ssl_context is not None:
            raise KafkaConfigurationError('an ssl_context cannot be pickled: give cafile instead')
        left_out = ('_asking', '_token', '_renew_at')
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    @property
    def _host(self) -> str:
        return urlsplit(self.token_endpoint_url).hostname or ''

    def token(self) -> str:
        """Return a token. Raises SaslError if the identity provider does not issue one."""
        if not self._asking.acquire(timeout=2 * self.timeout):
            raise SaslError('%s has not answered another thread for a long time' % self._host)
        try:
            if not self._token or time.monotonic() >= self._renew_at:
                began = time.monotonic()
                token, seconds = self._ask()
                self._token = hide(token)
                self._renew_at = began + RENEW_AT * seconds
            return self._token
        finally:
            self._asking.release()

    def extensions(self) -> Dict[str, str]:
        """Return the SASL extensions for brokers."""
        return dict(self._extensions)

    def _ask(self) -> Tuple[str, float]:
        """Request a token; return it and its lifetime in seconds."""
        fields = {'grant_type': 'client_credentials'}
        if self._scope:
            fields['scope'] = self._scope
        # RFC 6749, section 2.3.1: both are form-urlencoded, then joined.
        login = '%s:%s' % (quote(self.client_id, safe=''), quote(self._secret, safe=''))
        request = urllib.request.Request(
            self.token_endpoint_url,
            data=urlencode(fields).encode('ascii'),
            headers={
                'Accept': 'application/json',
                'Authorization': 'Basic ' + base64.b64encode(login.encode('ascii')).decode('ascii'),
                'Content-Type': 'application/x-www-form-urlencoded',
            },
        )
        deadline = time.monotonic() + self.timeout
        try:
            with self._opener().open(request, timeout=self.timeout) as response:
                answer = self._read(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error, deadline) from None  # the text of its cause has the URL
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, 'reason', error)
            raise SaslError('no token of %s: %s' % (self._host, reason)) from error
        return self._read_token(answer)

    def _opener(self) -> urllib.request.OpenerDirector:
        context = self._ssl_context or ssl.create_default_context(cafile=self._cafile)
        return urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _NoRedirects()
        )

    def _read(self, response: Any, deadline: float) -> bytes:
        """Return the body of a response, within the limits of size and time."""
        parts: List[bytes] = []
        size = 0
        while True:
            part = response.read1(MAX_ANSWER_BYTES)
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise SaslError('the answer of %s is longer than any token' % self._host)
            if not part:
                return b''.join(parts)
            if time.monotonic() > deadline:
                raise SaslError('the answer of %s took longer than allowed' % self._host)
            parts.append(part)

    def _refused(self, error: urllib.error.HTTPError, deadline: float) -> SaslError:
        """Return the error of a rejected request, with only those fields that RFC 6749 defines."""
        try:
            told = json.loads(self._read(error, deadline))
        except (ValueError, OSError, http.client.HTTPException, SaslError):
            told = {}
        words = [told.get(key) for key in ('error', 'error_description')] if _is_map(told) else []
        text = ': '.join(each[:200] for each in words if isinstance(each, str))
        return SaslError(
            'no token of %s for client_id %s: status %d%s'
            % (self._host, self.client_id, error.code, ', ' + text if text else '')
        )

    def _read_token(self, answer: bytes) -> Tuple[str, float]:
        try:
            told = json.loads(answer)
        except ValueError:
            told = None
        token = told.get('access_token') if _is_map(told) else None
        if not isinstance(token, str) or not token:
            # The response is not shown: it may contain a secret.
            raise SaslError('%s did not answer with an access_token in JSON' % self._host)
        lasts = told.get('expires_in')
        if isinstance(lasts, str) and lasts.isdecimal():
            lasts = int(lasts)
        if isinstance(lasts, (int, float)) and not isinstance(lasts, bool) and lasts > 0:
            return token, float(lasts)
        return token, _lasts(token)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _lasts(token: str) -> float:
    """Return the lifetime of a JWT in seconds, according to its claims."""
    parts = token.split('.')
    if len(parts) != 3:
        return UNKNOWN_SECONDS
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + '=' * (-len(parts[1]) % 4)))
        return max(0.0, float(claims['exp']) - time.time())
    except (ValueError, KeyError, TypeError, binascii.Error):
        return UNKNOWN_SECONDS


def _check(url: Any, client_id: Any, client_secret: Any, timeout: Any) -> None:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme != 'https' or not parts.hostname:
        raise KafkaConfigurationError('token_endpoint_url must be https://host..., nothing else')
    if parts.username is not None or parts.password is not None:
        raise KafkaConfigurationError('token_endpoint_url has no room for a login: see client_id')
    for name, value in (('client_id', client_id), ('client_secret', client_secret)):
        if not isinstance(value, str) or not value:
            raise KafkaConfigurationError('%s must be text that is not empty' % name)
    if not isinstance(timeout, (int, float)) or not 0 < timeout < 3600:
        raise KafkaConfigurationError('timeout must be seconds, not %r' % (timeout,))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the client secret must not be sent to another server."""

    def redirect_request(self, *_: Any) -> None:
        """Return None: do not follow the redirect."""
        return None
