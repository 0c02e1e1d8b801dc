"""Closing a producer with acks=0: before connections end, brokers are asked what they answer."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaProducer
from kafka.testing import Cluster
from kafka.testing.faults import Delay, Hang
from test.stored import stored


@pytest.fixture(params=['0.9', '4.4'])
def cluster(request):
    with Cluster(version=request.param, brokers=2, topics={'t': 2}) as running:
        yield running


def seconds_of_closing(cluster, *timeout, **options):
    """Send a record to each partition, and return how long closing takes behind that."""
    options = {'acks': 0, 'enable_idempotence': False, **options}
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, **options)
    for partition in (0, 1):
        producer.send('t', b'v', partition=partition).get(30)
    began = time.monotonic()
    producer.close(*timeout)
    return time.monotonic() - began


def test_each_leader_has_read_the_records_when_close_returns(cluster):
    faults = [cluster.faults.add(Delay(0.5), 'ListOffsets', node=node) for node in (0, 1)]
    assert seconds_of_closing(cluster) >= 0.5
    assert [each.hits for each in faults] == [1, 1]
    assert stored(cluster, 't', 0) == stored(cluster, 't', 1) == [b'v']


def test_a_broker_that_does_not_answer_is_waited_for_as_for_any_answer(cluster, caplog):
    cluster.faults.add(Hang(), 'ListOffsets', times=None)
    assert 0.4 <= seconds_of_closing(cluster, request_timeout_ms=500) < 5
    assert 'acks=0' in caplog.text


def test_no_longer_than_close_was_told_to(cluster):
    cluster.faults.add(Hang(), 'ListOffsets', times=None)
    assert 0.4 <= seconds_of_closing(cluster, 0.5) < 5
    assert seconds_of_closing(cluster, 0) < 5


def test_a_broker_that_is_gone_is_not_waited_for(cluster):
    cluster.faults.add(Hang(), 'ListOffsets', times=None)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=0, enable_idempotence=False)
    for partition in (0, 1):
        producer.send('t', b'v', partition=partition).get(30)
    for node in (0, 1):
        cluster.kill(node)
    began = time.monotonic()
    producer.close()
    assert time.monotonic() - began < 10


def test_nothing_is_asked_where_records_are_answered(cluster):
    fault = cluster.faults.add(Hang(), 'ListOffsets')
    assert seconds_of_closing(cluster, acks=1) < 5
    assert not fault.hits
