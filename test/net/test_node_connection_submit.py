"""Requests that are given to a link without a coroutine: their order, their outcomes."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import ProduceRequest
from kafka.testing.faults import Hang
from test.net.test_node_connection import ASK, Sim


@pytest.fixture
def sim():
    made = Sim()
    yield made
    made.stop()


def submitted(sim, *requests, **arguments):
    """Give requests to the link at once; return the outcomes, as they come, once all are there."""
    outcomes = []
    for request in requests:
        sim.link.submit(request, lambda *outcome: outcomes.append(outcome), **arguments)
    assert outcomes == [], 'called before submit() has returned'
    assert sim.loop.wait(lambda: len(outcomes) == len(requests), 60)
    return outcomes


def numbered(number):
    return MetadataRequest(topics=None, include_topic_authorized_operations=bool(number % 2))


def test_requests_without_coroutines_keep_their_order_beyond_the_limit(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.forget_requests()
    outcomes = submitted(sim, *map(numbered, range(30)))
    assert all(response.brokers and error is None for response, error in outcomes)
    came = [each.request.include_topic_authorized_operations for each in sim.asked()]
    assert came == [bool(number % 2) for number in range(30)]


def test_a_request_without_coroutine_connects(sim):
    ((response, error),) = submitted(sim, ASK)
    assert response.brokers and error is None


def test_who_asks_once_the_pause_is_over_does_not_overtake_who_waits_for_that(sim):
    """The time may be over between two calls of one turn."""
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.forget_requests()
    sim.link.throttled_until = sim.loop.time() + 1
    outcomes = []
    sim.link.submit(numbered(0), lambda *outcome: outcomes.append(outcome))
    sim.link.throttled_until = sim.loop.time()
    sim.link.submit(numbered(1), lambda *outcome: outcomes.append(outcome))
    assert sim.loop.wait(lambda: len(outcomes) == 2, 60)
    came = [each.request.include_topic_authorized_operations for each in sim.asked()]
    assert came == [False, True]


@pytest.mark.parametrize('is_ready', [True, False])
def test_what_cannot_be_sent_is_told_and_the_link_goes_on(sim, is_ready, caplog):
    if is_ready:
        sim.loop.run(sim.link.ready(), 10)
    refused, mistaken, good = submitted(
        sim, MetadataRequest(topics=[5]), ProduceRequest(acks=1, timeout_ms='x', topic_data=5), ASK
    )
    assert refused[0] is mistaken[0] is None
    assert isinstance(refused[1], KafkaError) and isinstance(mistaken[1], KafkaError)
    assert good[0].brokers and good[1] is None


def test_without_an_answer_the_error_is_told(sim):
    sim.loop.run(sim.link.ready(), 10)
    sim.cluster.faults.add(Hang(), 'Metadata', times=1)
    outcomes = submitted(sim, ASK, ASK, timeout=3)
    assert [type(error) for _, error in outcomes] == [KafkaTimeoutError] * 2
