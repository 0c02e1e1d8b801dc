"""Clients ask which metrics are wanted, and send them when it is time."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from kafka.testing.errors import (
    INVALID_REQUEST,
    NONE,
    TELEMETRY_TOO_LARGE,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_SUBSCRIPTION_ID,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kafka.testing.telemetry import MAX_BYTES
from test.testing.drive import Driver

CLIENT = b'\7' * 16
INTERVAL = 300


@pytest.fixture
def driver():
    return Driver(client_telemetry=True)


def get(driver, client_id=CLIENT, node=0):
    return driver.ask(GetTelemetrySubscriptionsRequest(client_instance_id=client_id), node=node)


def push(driver, subscription_id, client_id=CLIENT, metrics=b'otlp', kind=0, terminating=False):
    request = PushTelemetryRequest(
        client_instance_id=client_id,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=kind,
        metrics=metrics,
    )
    return driver.ask(request).error_code


def subscribe(driver, name, **settings):
    made = [
        IncrementalAlterableConfig(name=key.replace('_', '.'), value=v, config_operation=0)
        for key, v in settings.items()
    ]
    resource = IncrementalAlterConfigsResource(resource_type=16, resource_name=name, configs=made)
    answer = driver.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    assert answer.responses[0].error_code == NONE


@pytest.mark.parametrize('number', [0, 1])
def test_a_client_without_an_id_gets_one(driver, number):
    answer = get(driver, number.to_bytes(16, 'big'))
    assert answer.error_code == NONE
    assert answer.client_instance_id not in (bytes(16), bytes(15) + b'\1')


def test_nothing_is_wanted_unless_somebody_subscribed(driver):
    answer = get(driver)
    assert answer.client_instance_id == CLIENT
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300000)
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert (answer.telemetry_max_bytes, answer.delta_temporality) == (MAX_BYTES, True)


def test_what_all_subscriptions_want_is_wanted_at_the_shortest_interval(driver):
    subscribe(driver, 'a', metrics='m.one,m.two', interval_ms='5000')
    subscribe(driver, 'b', metrics='m.three', interval_ms='2000')
    subscribe(driver, 'other', metrics='m.four', interval_ms='1000', match='client_id=nobody')
    answer = get(driver)
    assert sorted(answer.requested_metrics) == ['m.one', 'm.three', 'm.two']
    assert answer.push_interval_ms == 2000


def test_a_star_wants_all_metrics(driver):
    subscribe(driver, 'a', metrics='m.one')
    subscribe(driver, 'b', metrics='*')
    assert get(driver).requested_metrics == ['*']


@pytest.mark.parametrize(
    'match, fits',
    [
        ('client_id=driver', True),
        ('client_id=dri', False),
        ('client_id=dr.*,client_software_name=lib', True),
        ('client_software_name=lib,client_software_version=2.*', False),
        ('client_source_address=127.0.0.1', True),
        ('client_instance_id=BwcHBwcHBwcHBwcHBwcHBw', True),
    ],
)
def test_subscriptions_are_for_the_clients_that_they_match(driver, match, fits):
    subscribe(driver, 'a', metrics='m', match=match)
    driver.ask(ApiVersionsRequest(client_software_name='lib', client_software_version='1.0'))
    assert get(driver).requested_metrics == (['m'] if fits else [])


def test_who_asks_again_too_early_is_throttled(driver):
    get(driver)
    early = get(driver)
    assert (early.error_code, early.client_instance_id) == (THROTTLING_QUOTA_EXCEEDED, bytes(16))
    driver.advance(INTERVAL)
    assert get(driver).error_code == NONE


def test_metrics_are_taken_once_in_an_interval(driver):
    subscription_id = get(driver).subscription_id
    driver.advance(1)
    assert push(driver, subscription_id) == NONE
    assert push(driver, subscription_id) == THROTTLING_QUOTA_EXCEEDED
    driver.advance(INTERVAL)
    assert push(driver, subscription_id) == NONE


def test_the_last_metrics_come_at_any_time_and_nothing_behind_them(driver):
    subscription_id = get(driver).subscription_id
    assert push(driver, subscription_id) == NONE
    assert push(driver, subscription_id, terminating=True) == NONE
    driver.advance(INTERVAL)
    assert push(driver, subscription_id) == INVALID_REQUEST


def test_who_has_an_old_subscription_may_ask_at_once(driver):
    subscription_id = get(driver).subscription_id
    subscribe(driver, 'a', metrics='m')
    assert push(driver, subscription_id) == UNKNOWN_SUBSCRIPTION_ID
    answer = get(driver)
    assert (answer.error_code, answer.requested_metrics) == (NONE, ['m'])
    assert answer.subscription_id != subscription_id


@pytest.mark.parametrize(
    'options, error',
    [
        ({'client_id': bytes(16)}, INVALID_REQUEST),
        ({'kind': 5}, UNSUPPORTED_COMPRESSION_TYPE),
        ({'metrics': bytes(MAX_BYTES)}, NONE),
        ({'metrics': bytes(MAX_BYTES + 1)}, TELEMETRY_TOO_LARGE),
        ({'kind': 4}, NONE),
    ],
)
def test_what_is_sent_is_checked(driver, options, error):
    assert push(driver, get(driver).subscription_id, **options) == error


def test_each_broker_knows_its_own_clients():
    driver = Driver(brokers=2, client_telemetry=True)
    assert [get(driver, node=node).error_code for node in (0, 1)] == [NONE, NONE]


@pytest.mark.parametrize('release, keys', [('3.6', []), ('3.7', [71, 72]), ('4.4', [71, 72])])
def test_the_apis_are_listed_where_metrics_are_received(release, keys):
    for is_on in (False, True):
        answer = Driver(release, client_telemetry=is_on).ask(ApiVersionsRequest(), version=0)
        listed = [each.api_key for each in answer.api_keys if each.api_key in (71, 72)]
        assert listed == (keys if is_on else [])


def test_who_receives_no_metrics_does_not_know_the_requests():
    client = Driver(client_telemetry=False).client()
    client.session.adopt(BrokerVersions({71: (0, 0)}))
    client.send(GetTelemetrySubscriptionsRequest(client_instance_id=CLIENT))
    assert client.wire.is_closed


def test_clients_beyond_the_limit_are_forgotten(driver, monkeypatch):
    monkeypatch.setattr('kafka.testing.telemetry.MOST_CLIENTS', 2)
    for number in (5, 6, 7):
        get(driver, bytes([number]) * 16)
    errors = [get(driver, bytes([number]) * 16).error_code for number in (7, 5)]
    assert errors == [THROTTLING_QUOTA_EXCEEDED, NONE]
