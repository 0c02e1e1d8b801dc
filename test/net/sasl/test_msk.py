"""The signed request of AWS_MSK_IAM; the signatures are those that botocore makes."""

from __future__ import annotations

import json
import sys
import types

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.failures import SaslError
from kafka.net.sasl import mechanism
from kafka.net.sasl.login import prepare
from kafka.net.sasl.msk import signed_request
from test.net.sasl.logins import settings

HOST, REGION = 'b-1.example.kafka.eu-west-1.amazonaws.com', 'eu-west-1'
NOW = 1700000000.0
#: Without and with the token of a session, by SigV4QueryAuth of botocore 1.43.
SIGNED = '821c7f792fb9612186aa0d25d290e12cf1ae73399e805c3d8697fae71b650482'
SIGNED_WITH_TOKEN = '44ae26a109355f7ebadcdf02dd56b958533e601a27cc3a6fc865e5cadc24d552'


@pytest.mark.parametrize(
    ('token', 'signature'), [(None, SIGNED), ('tok/en+x==', SIGNED_WITH_TOKEN)]
)
def test_the_signature_is_that_of_version_4(token, signature):
    request = signed_request(HOST, REGION, 'AKID', 'SECRET', token, NOW)
    assert request.pop('x-amz-signature') == signature
    assert request.pop('x-amz-security-token', None) == token
    assert request.pop('user-agent').startswith('kafka-evergreen/')
    assert request == {
        'version': '2020_10_22',
        'host': HOST,
        'action': 'kafka-cluster:Connect',
        'x-amz-algorithm': 'AWS4-HMAC-SHA256',
        'x-amz-credential': 'AKID/20231114/eu-west-1/kafka-cluster/aws4_request',
        'x-amz-date': '20231114T221320Z',
        'x-amz-expires': '900',
        'x-amz-signedheaders': 'host',
    }


class Session:
    """Stands for botocore's session, which asks the environment."""

    keys = types.SimpleNamespace(access_key='AKID', secret_key='SECRET', token=None)
    region = REGION

    def get_credentials(self):
        frozen = self.keys
        return frozen and types.SimpleNamespace(get_frozen_credentials=lambda: frozen)

    def get_config_variable(self, name):
        assert name == 'region'
        return self.region


@pytest.fixture
def botocore(monkeypatch):
    module = types.ModuleType('botocore.session')
    module.Session = type('Session', (Session,), {})
    monkeypatch.setitem(sys.modules, 'botocore', types.ModuleType('botocore'))
    monkeypatch.setitem(sys.modules, 'botocore.session', module)
    return module.Session


def made(protocol='SASL_SSL'):
    return mechanism(settings('AWS_MSK_IAM', protocol=protocol), HOST, NOW)


def test_the_token_is_the_request_as_json(botocore):
    token = next(made().exchange())
    assert json.loads(token)['x-amz-signature'] == SIGNED
    assert b' ' not in token


def test_the_exchange_is_over_after_one_answer(botocore):
    steps = made().exchange()
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(b'{"version":"2020_10_22","request-id":"x"}')


def test_without_tls_nothing_is_sent(botocore):
    with pytest.raises(KafkaConfigurationError, match='SASL_SSL'):
        made('SASL_PLAINTEXT').prepare()


@pytest.mark.parametrize(('name', 'what'), [('keys', 'keys'), ('region', 'region')])
def test_what_botocore_does_not_find_is_named(botocore, name, what):
    setattr(botocore, name, None)
    with pytest.raises(SaslError, match='botocore finds no %s' % what):
        made().prepare()


def test_what_botocore_raises_is_named_without_its_text(botocore):
    def get_credentials(session):
        raise RuntimeError('the program for keys wrote: SECRET')

    botocore.get_credentials = get_credentials
    with pytest.raises(SaslError, match='AWS_MSK_IAM failed: RuntimeError') as caught:
        prepare(made())
    assert 'SECRET' not in str(caught.value)
    assert 'SECRET' in str(caught.value.__cause__)


def test_without_botocore_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'botocore', None)
    monkeypatch.setitem(sys.modules, 'botocore.session', None)
    with pytest.raises(KafkaConfigurationError, match=r'pip install kafka-evergreen\[msk\]'):
        made().prepare()
