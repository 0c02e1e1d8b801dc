"""Promises of the documents about KafkaProducer that a comparison with its namesakes found broken.

The comparison itself is ``python -m test.promises``.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka import KafkaProducer
from kafka.testing import Cluster


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


@pytest.fixture
def producer(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as made:
        yield made


def test_headers_are_a_list_and_no_tuple(producer):
    for error in (TypeError, AssertionError):
        with pytest.raises(error, match='headers must be a list'):
            producer.send('t', b'v', headers=(('name', b'value'),))
    assert producer.send('t', b'v', headers=()).get(30).serialized_header_size == -1


def test_coroutines_of_asyncio_wait_for_records(producer):
    async def send():
        first = await producer.send('t', b'1')
        others = await asyncio.gather(*(producer.send('t', b'%d' % n) for n in range(2, 6)))
        return [metadata.offset for metadata in (first, *others)]

    assert asyncio.run(send()) == [0, 1, 2, 3, 4]


def test_programs_look_at_the_cluster_of_a_producer(producer):
    producer.partitions_for('t')
    assert {broker.nodeId for broker in producer._metadata.brokers()} == {0}
    assert producer._metadata.partitions_for_topic('t') == {0} and not producer._closed
