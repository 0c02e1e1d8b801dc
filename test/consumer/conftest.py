"""Fixtures of the consumers' tests."""

from __future__ import annotations

import pytest

from kafka.consumer import kafka as names_09
from kafka.consumer import kafka_09 as dialect_09
from kafka.consumer import simple
from test.consumer.helpers import Clock
from test.consumer.helpers_09 import Factory, TopicsClient


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(simple, 'time', made)
    return made


@pytest.fixture
def clock_09(monkeypatch):
    """The time of 0.9.5's KafkaConsumer."""
    made = Clock()
    monkeypatch.setattr(dialect_09, 'time', made)
    return made


@pytest.fixture
def install(monkeypatch):
    """Return a function that puts clients in place of the ones that KafkaConsumer makes.

    It does so where programs of 0.9.5 do.
    """

    def put(*clients):
        factory = Factory(*clients)
        monkeypatch.setattr(names_09, 'KafkaClient', factory)
        return factory

    return put


@pytest.fixture
def serve(clock_09, install):
    """Return a function that makes such a client, with messages from..to of each partition."""

    def give(*logs, **options):
        client = TopicsClient(clock_09, *logs, **options)
        install(client)
        return client

    return give
