"""Which APIs have guards."""

from __future__ import annotations

from kafka.protocol.api import ApiKey
from kafka.testing import guards, handlers
from kafka.testing.calls import HANDLERS
from kafka.testing.guards.rules import GUARDS

handlers.load()
guards.load()

#: Nobody is refused here.
OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.FETCH}
OPEN |= {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
OPEN |= {ApiKey.DESCRIBE_DELEGATION_TOKEN}
OPEN |= {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def test_every_api_has_a_guard_or_a_reason():
    missing = {key for key in HANDLERS if key not in GUARDS} - OPEN
    assert {ApiKey(key).name for key in missing} == set()
