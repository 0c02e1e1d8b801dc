"""send_and_forget() on an embedded broker: what cannot be stored is told in the log, or raised."""

from __future__ import annotations

import pytest

from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError
from kafka.testing import Cluster


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


def test_what_exceeds_max_request_size_is_not_sent_however_small(cluster, caplog):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, max_request_size=500) as producer:
        producer.send('t', b'the topic is known').get(20)
        for size in (600, 400, 600):
            producer.send_and_forget('t', b'x' * size)
        producer.flush(20)
    assert cluster.state.topics['t'].partitions[0].log.end_offset == 2
    lost = [
        each.getMessage()
        for each in caplog.records
        if 'a record without a future' in each.getMessage()
    ]
    assert len(lost) == 2 and all('max_request_size is 500' in each for each in lost)


def test_it_is_raised_where_that_is_wanted(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, max_request_size=500, raise_on_too_large=True
    ) as producer:
        for _ in range(2):
            with pytest.raises(MessageSizeTooLargeError):
                producer.send_and_forget('t', b'x' * 600)
            producer.send('t', b'the topic is known').get(20)
