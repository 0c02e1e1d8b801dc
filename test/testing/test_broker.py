"""A broker survives its handlers and knows its connections."""

from __future__ import annotations

import pytest

from kafka.protocol.metadata import MetadataRequest
from kafka.testing.calls import HANDLERS
from test.testing.drive import Driver


@pytest.fixture
def driver():
    return Driver()


def test_a_handler_that_raises_costs_its_connection_only(driver, monkeypatch):
    error = ZeroDivisionError('1 / 0')

    def fail(call):
        raise error

    good = driver.client()
    with monkeypatch.context() as patch:
        patch.setitem(HANDLERS, 3, fail)
        bad = driver.client()
        bad.send(MetadataRequest(topics=[]))
    assert bad.wire.is_closed
    assert list(driver.state.control.failures) == [error]
    good.send(MetadataRequest(topics=[]))
    assert good.receive().topics == []


def test_a_response_that_does_not_fit_its_version_is_a_failure(driver, monkeypatch):
    original = HANDLERS[3]

    def wrong(call):
        response = original(call)
        response.topics = None
        return response

    monkeypatch.setitem(HANDLERS, 3, wrong)
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert client.wire.is_closed
    assert len(driver.state.control.failures) == 1


def test_failures_are_kept_up_to_a_bound(driver, monkeypatch):
    def fail(call):
        raise ValueError('again')

    monkeypatch.setitem(HANDLERS, 3, fail)
    for _ in range(200):
        driver.client().send(MetadataRequest(topics=[]))
    assert len(driver.state.control.failures) == 100


def test_connections_are_forgotten_when_they_end(driver):
    broker = driver.brokers[0]
    clients = [driver.client() for _ in range(3)]
    assert repr(broker) == '<Broker %r, 3 connections>' % (broker.node,)
    clients[0].connection.close()
    assert len(broker._connections) == 2
    broker.close_connections()
    assert all(each.wire.is_closed for each in clients)
    assert broker._connections == {}


def test_closing_a_connection_that_is_gone_is_nothing(driver):
    driver.brokers[0].close_connection(99)
