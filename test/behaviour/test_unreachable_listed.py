"""Bootstrap answers, and the address that it lists cannot be reached: who hears of it, and what."""

from __future__ import annotations

import contextlib
import logging

import pytest

from kafka import KafkaConsumer, KafkaProducer, SimpleProducer
from kafka.client import KafkaClient
from kafka.errors import FailedPayloadsError, KafkaConnectionError, KafkaTimeoutError
from kafka.net import attempts
from kafka.net.connect import Family
from kafka.net.node_connection import WARN_EVERY, NodeConnection
from kafka.net.settings import NetSettings
from test.hostile_servers import Broker
from test.manual_loop import ManualLoop

HOST = 'nowhere.invalid'
TOLD = 'node 0 cannot be reached: nowhere.invalid:9092: DNS after'


@pytest.fixture
def broker():
    with Broker() as made:
        made.answers[3] = lambda *_: made.metadata(host=HOST, port=9092)
        made.answers[10] = lambda *_: made.coordinator(host=HOST, port=9092)
        yield made


def warnings(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


@pytest.mark.parametrize('group', [None, 'g'])
def test_a_consumer_warns_at_once(broker, caplog, group):
    with KafkaConsumer('t', bootstrap_servers=broker.address, group_id=group) as consumer:
        consumer.poll(300)
    assert [text for text in warnings(caplog) if text.startswith(TOLD)]


def test_a_producer_says_it_in_its_error(broker, caplog):
    with KafkaProducer(
        bootstrap_servers=broker.address, delivery_timeout_ms=150, request_timeout_ms=100
    ) as producer:
        with pytest.raises(KafkaTimeoutError, match=TOLD):
            producer.send('t', b'v', partition=0).get(10)
    assert len([text for text in warnings(caplog) if text.startswith(TOLD)]) == 1


def test_waiting_for_a_topic_says_why_nothing_was_learned(broker):
    with KafkaProducer(bootstrap_servers=broker.address, max_block_ms=300) as producer:
        with pytest.raises(KafkaTimeoutError, match='nowhere.invalid:9092: DNS after'):
            producer.send('other', b'v')


def test_an_old_client_says_it_in_its_error(broker):
    with contextlib.closing(KafkaClient(broker.address)) as client:
        with pytest.raises(FailedPayloadsError, match='nowhere.invalid:9092 .*: DNS: '):
            SimpleProducer(client).send_messages(b't', b'v')


class Refusing(ManualLoop):
    """A loop with names that nobody knows."""

    async def resolve(self, host, port, timeout):
        raise attempts.at_stage(KafkaConnectionError('%s cannot be resolved' % host), 'DNS')


def test_a_warning_comes_once_a_minute_for_all_connections_to_a_node(caplog):
    loop, family = Refusing(), Family()
    links = [NodeConnection(loop, NetSettings(), HOST, 9092, node, family) for node in (0, 0, None)]
    for _ in range(8):
        for link in links:
            task = loop.spawn(link.ready())
            loop.settle()
            loop.advance(link.backoff)
            loop.settle()
            assert isinstance(task.exception, KafkaConnectionError)
        loop.advance(WARN_EVERY / 4 + 0.1)
    assert len(warnings(caplog)) == 2
    assert all(text.startswith(TOLD) for text in warnings(caplog))
