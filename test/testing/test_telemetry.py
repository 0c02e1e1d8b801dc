"""What is wanted of a client, and when it may ask and send."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.testing.errors import NONE, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID
from kafka.testing.telemetry import MetricsClient, Subscription, subscription_of

ABOUT = {'client_id': 'me', 'client_software_name': 'lib'}
NOW = 1_600_000_000_000


def pushed(subscription_id, terminating=False):
    return SimpleNamespace(
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=0,
        metrics=b'',
    )


@pytest.mark.parametrize(
    'settings, wanted',
    [
        ([], Subscription((), 300000)),
        ([{'metrics': 'a, b'}, {'metrics': 'b,c'}], Subscription(('a', 'b', 'c'), 300000)),
        ([{'metrics': 'a', 'interval.ms': '100'}], Subscription(('a',), 100)),
        ([{'metrics': 'a,*'}], Subscription(('*',), 300000)),
        ([{'metrics': 'a', 'match': 'client_id=me'}], Subscription(('a',), 300000)),
        ([{'metrics': 'a', 'match': 'client_id=m'}], Subscription((), 300000)),
        ([{'metrics': 'a', 'match': 'client_id=m.,client_software_name=x'}],)
        + (Subscription((), 300000),),
        ([{'metrics': 'a', 'match': 'client_id=('}], Subscription((), 300000)),
        ([{'metrics': 'a', 'match': 'nothing=x'}], Subscription((), 300000)),
    ],
)
def test_subscriptions(settings, wanted):
    assert subscription_of(ABOUT, settings) == wanted


def test_clients_and_settings_have_subscriptions_of_their_own():
    settings = [{'metrics': 'a'}]
    ids = {
        MetricsClient(b'1', ABOUT, settings).subscription_id,
        MetricsClient(b'2', ABOUT, settings).subscription_id,
        MetricsClient(b'1', ABOUT, [{'metrics': 'b'}]).subscription_id,
    }
    assert len(ids) == 3
    assert all(-(2**31) <= each < 2**31 for each in ids)


def test_who_was_told_of_another_subscription_may_ask_once():
    client = MetricsClient(b'1', ABOUT, [])
    assert client.ask(NOW) == NONE
    assert client.push(NOW, pushed(client.subscription_id + 1)) == UNKNOWN_SUBSCRIPTION_ID
    assert client.ask(NOW) == NONE
    assert client.ask(NOW) == THROTTLING_QUOTA_EXCEEDED
