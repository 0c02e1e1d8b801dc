"""Tokens of an identity provider, which is a web server of this machine behind TLS."""

from __future__ import annotations

import base64
import json
import pickle
import ssl
import threading
import time

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.failures import SaslError
from kafka.net.sasl import oidc
from kafka.net.sasl.oidc import ClientCredentials
from test.net.sasl.identity_provider import Provider, token


def test_the_request_is_that_of_the_rfc():
    with Provider(token(access_token='abc', expires_in=60)) as provider:
        assert provider.client(scope='kafka write').token() == 'abc'
    ((headers, body),) = provider.asked
    assert body == b'grant_type=client_credentials&scope=kafka+write'
    assert headers['Content-Type'] == 'application/x-www-form-urlencoded'
    login = base64.b64decode(headers['Authorization'].split(' ')[1])
    assert login == b'me%3Ayou:Canary%2Fof%20a%20secret'


def test_a_token_is_kept_for_four_fifths_of_its_life(monkeypatch):
    now = [1000.0]
    with Provider(token(access_token='abc', expires_in=100)) as provider:
        client = provider.client()
        monkeypatch.setattr(oidc.time, 'monotonic', lambda: now[0])
        client.token()
        now[0] += 79
        client.token()
        assert len(provider.asked) == 1
        now[0] += 2
        client.token()
        assert len(provider.asked) == 2


def jwt(**claims):
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()
    return 'e30.%s.' % part


@pytest.mark.parametrize(
    ('made', 'least', 'most'),
    [
        (lambda: jwt(exp=int(time.time()) + 7200), 7000, 7200),
        (lambda: jwt(sub='x'), 60, 60),
        (lambda: 'opaque', 60, 60),
        (lambda: 'a.b.c', 60, 60),
        (lambda: jwt(exp=1), 0, 0),
    ],
    ids=['jwt', 'jwt without exp', 'opaque', 'no jwt', 'over'],
)
def test_a_token_without_a_life_is_asked_itself(made, least, most):
    with Provider(token(access_token=made())) as provider:
        _, seconds = provider.client()._ask()
    assert least <= seconds <= most


def test_threads_ask_once():
    with Provider(token(access_token='abc', expires_in='100')) as provider:
        client = provider.client()
        threads = [threading.Thread(target=client.token) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(provider.asked) == 1


def refused(answer, match, **options):
    with Provider(answer) as provider:
        client = provider.client(**options)
        with pytest.raises(SaslError, match=match) as caught:
            client.token()
    assert caught.value.stage == 'SASL'
    assert 'Canary' not in str(caught.value) + repr(client)
    return provider


def test_a_refusal_is_told_in_the_words_of_the_rfc():
    body = json.dumps({'error': 'invalid_client', 'error_description': 'no', 'x': 'Canary'})
    refused((401, {}, body.encode()), 'status 401, invalid_client: no')


@pytest.mark.parametrize('body', [b'', b'<html>', b'[]', b'{"error": 5}'])
def test_a_refusal_without_words_is_told_by_its_status(body):
    refused((500, {}, body), 'status 500$')


@pytest.mark.parametrize(
    'body', [b'', b'{}', b'[]', b'"abc"', b'{"access_token": 5}', b'{"access_token": ""}', b'\xff']
)
def test_an_answer_without_a_token_is_not_shown(body):
    refused((200, {}, body), 'did not answer with an access_token')


@pytest.mark.parametrize('status', [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status):
    provider = refused((status, {'Location': 'https://127.0.0.1:1/Canary'}, b''), str(status))
    assert len(provider.asked) == 1


def test_a_long_answer_is_not_read_to_its_end():
    refused((200, {}, b'{"access_token": "%s"}' % (b'x' * 70_000)), 'longer than any token')


def test_an_answer_that_trickles_in_is_given_up():
    def slow(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1000):
            try:
                handler.wfile.write(b' ')
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.02)

    began = time.monotonic()
    refused(slow, 'took longer than allowed', timeout=0.3)
    assert time.monotonic() - began < 10  # of 20


def test_a_certificate_that_is_not_trusted_is_refused():
    refused(token(access_token='abc'), 'CERTIFICATE_VERIFY_FAILED|certificate', cafile=None)


@pytest.mark.parametrize(
    'url',
    ['http://idp/token', 'file:///etc/passwd', 'ftp://x', 'https://', '', None, 5, 'https://u:p@x'],
)
def test_only_https_without_a_login_is_taken(url):
    with pytest.raises(KafkaConfigurationError, match='token_endpoint_url'):
        ClientCredentials(url, 'me', 'secret')


@pytest.mark.parametrize('arguments', [('', 'x'), ('x', ''), (None, 'x'), ('x', b'y')])
def test_who_asks_is_text(arguments):
    with pytest.raises(KafkaConfigurationError, match='client_(id|secret) must be text'):
        ClientCredentials('https://idp', *arguments)


@pytest.mark.parametrize('timeout', [0, -1, None, 'x', float('nan'), float('inf')])
def test_the_time_limit_is_a_number_of_seconds(timeout):
    with pytest.raises(KafkaConfigurationError, match='timeout must be seconds'):
        ClientCredentials('https://idp', 'me', 'secret', timeout=timeout)


def test_a_provider_goes_to_other_processes_without_its_token():
    with Provider(token(access_token='abc', expires_in=60)) as provider:
        client = provider.client(extensions={'cluster': 'x'})
        client.token()
        copied = pickle.loads(pickle.dumps(client))
        assert copied.token() == 'abc' and copied.extensions() == {'cluster': 'x'}
        assert len(provider.asked) == 2
    with pytest.raises(KafkaConfigurationError, match='ssl_context'):
        pickle.dumps(provider.client(ssl_context=ssl.create_default_context()))
