"""What is taken out of requests before they are kept."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kafka.protocol.admin.tokens import ExpireDelegationTokenRequest
from kafka.protocol.admin.users import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest
from kafka.testing.security.secrets import without_secrets


def test_a_request_without_secrets_stays_itself():
    request = MetadataRequest(topics=None)
    assert without_secrets(request) is request


@pytest.mark.parametrize(
    ('request_', 'field'),
    [
        (SaslAuthenticateRequest(auth_bytes=b'x'), 'auth_bytes'),
        (ExpireDelegationTokenRequest(hmac=b'x', expiry_time_period_ms=7), 'hmac'),
    ],
)
def test_secret_bytes_are_taken_out_of_a_copy(request_, field):
    kept = without_secrets(request_)
    assert (getattr(kept, field), getattr(request_, field)) == (b'', b'x')


def test_credentials_are_taken_out_and_the_rest_stays():
    change = ScramCredentialUpsertion(
        name='alice', mechanism=1, iterations=4096, salt=b'salt', salted_password=b'salted'
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[change])
    (kept,) = without_secrets(request).upsertions
    assert (kept.name, kept.iterations, kept.salt, kept.salted_password) == (
        'alice',
        4096,
        b'',
        b'',
    )
    assert change.salted_password == b'salted'


@pytest.mark.parametrize(
    ('name', 'value', 'kept'),
    [
        ('retention.ms', '1', '1'),
        ('ssl.keystore.password', 'hunter2', '<hidden>'),
        ('listener.name.x.plain.sasl.jaas.config', 'hunter2', '<hidden>'),
        ('ssl.key.password', None, None),
    ],
)
def test_of_settings_the_passwords_are_taken_out(name, value, kept):
    config = AlterableConfig(name=name, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name='0', configs=[config])
    request = AlterConfigsRequest(resources=[resource], validate_only=False)
    assert without_secrets(request).resources[0].configs[0].value == kept
