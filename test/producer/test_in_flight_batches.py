"""Batches that were taken to be sent: each gets an outcome, and what each answer does with it."""

from __future__ import annotations

import random

import pytest

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NotLeaderForPartitionError,
)
from kafka.producer.in_flight_batches import InFlightBatches
from kafka.producer.produce_request import produce_request
from kafka.producer.producer_batch import BatchState
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka.protocol.wire import ZERO_UUID
from test.producer.sending_by_hand import NODE, Rig

NOT_LEADER = NotLeaderForPartitionError.errno


class Taken:
    """Batches that a test takes itself from the queue of partition 0."""

    def __init__(self, **settings):
        self.rig = Rig(**settings)
        self.rig.loop.call_soon = lambda *call: None  # no sender runs
        self.pokes = []
        self.in_flight = InFlightBatches(
            self.rig.loop,
            self.rig.pool,
            self.rig.accumulator,
            self.rig.state,
            self.rig.settings,
            None,
            random.Random(1),
            lambda: self.pokes.append(1),
        )

    def take(self, value=b'v'):
        """Return the future of a record and its batch, which is taken."""
        future = self.rig.send(value)
        queue = self.rig.topic.queue(0)
        return future, self.rig.accumulator.take(queue)

    def launch(self, value=b'v'):
        """Return the same of one that is on the wire."""
        future, batch = self.take(value)
        assert self.in_flight.prepare(batch, 2, self.rig.loop.now)
        self.in_flight.requests[NODE] = 1
        return future, batch

    def respond(self, batch, response=None, error=None):
        settings = self.rig.settings
        request = produce_request([batch], 9, settings, None, lambda topic: ZERO_UUID)
        now = self.rig.loop.now
        self.in_flight.on_response(NODE, now, request, [batch], response, error)


def response_with(code, offset=-1):
    answer = PartitionProduceResponse(index=0, error_code=code, base_offset=offset)
    topic = TopicProduceResponse(name='t', partition_responses=[answer])
    return ProduceResponse(responses=[topic])


@pytest.fixture
def taken():
    return Taken()


def test_a_batch_is_on_the_wire_from_its_launch_to_its_answer(taken):
    future, batch = taken.launch()
    assert list(taken.in_flight.batches) == [batch] and batch.state is BatchState.IN_FLIGHT
    assert repr(taken.in_flight) == '<InFlightBatches 1 batches, in 1 requests>'
    taken.respond(batch, response_with(0, 7))
    assert not taken.in_flight.batches and taken.in_flight.requests == {NODE: 0}
    assert future.get(0).offset == 7
    assert taken.rig.accumulator.is_empty()


def test_the_answer_of_a_single_batch_needs_no_response_object(taken):
    future, batch = taken.launch()
    taken.in_flight.on_stored(NODE, 0.0, taken.rig.loop.now, batch, (5, -1, 0))
    assert future.get(0).offset == 5
    assert taken.rig.accumulator.is_empty() and not taken.in_flight.batches


def test_a_retriable_error_queues_the_batch_again(taken):
    future, batch = taken.launch()
    taken.respond(batch, response_with(NOT_LEADER))
    assert not future.is_done and not taken.in_flight.batches
    assert taken.rig.accumulator.peek(taken.rig.topic.queue(0)) is batch
    assert batch.not_before > taken.rig.loop.now
    assert taken.rig.pool.refreshed == 1 and taken.pokes


def test_a_batch_that_was_taken_and_not_sent_is_queued_again(taken):
    future, batch = taken.take()
    taken.in_flight.recover()
    assert taken.rig.accumulator.peek(taken.rig.topic.queue(0)) is batch
    assert not future.is_done


def test_what_is_on_the_wire_is_not_touched_by_a_recovery(taken):
    _, batch = taken.launch()
    taken.in_flight.recover()
    assert batch.state is BatchState.IN_FLIGHT and list(taken.in_flight.batches) == [batch]


def test_batches_of_a_request_that_was_not_sent_are_queued_again(taken):
    _, batch = taken.launch()
    batches = [batch]
    taken.in_flight.not_sent(batches, ValueError('broken'), taken.rig.loop.now)
    assert batches == [] and not taken.in_flight.batches
    assert taken.rig.accumulator.peek(taken.rig.topic.queue(0)) is batch


def test_a_fault_while_an_answer_is_read_fails_its_batch(taken, caplog):
    future, batch = taken.launch()
    taken.respond(batch, response='no response')
    with pytest.raises(KafkaError, match='not understood'):
        future.get(0)
    assert 'was not understood' in caplog.text
    assert taken.rig.accumulator.is_empty()


def test_a_batch_without_answer_in_time_fails_and_its_memory_is_kept_until_the_answer(taken):
    future, batch = taken.launch()
    taken.rig.loop.now += taken.rig.settings.delivery_timeout
    taken.in_flight.expire(taken.rig.loop.now)
    with pytest.raises(KafkaTimeoutError, match='they may be stored'):
        future.get(0)
    assert not taken.rig.accumulator.is_empty()
    taken.respond(batch, error=KafkaConnectionError('lost'))
    assert taken.rig.accumulator.is_empty()


def test_a_time_out_names_why_the_leader_could_not_be_reached(taken):
    future, _ = taken.take()
    taken.in_flight.recover()
    taken.in_flight.unreachable[NODE] = KafkaConnectionError('refused'), 'node 1 refuses'
    taken.rig.loop.now += taken.rig.settings.delivery_timeout
    taken.in_flight.expire(taken.rig.loop.now)
    with pytest.raises(KafkaTimeoutError, match='they were never sent; node 1 refuses') as raised:
        future.get(0)
    assert str(raised.value.__cause__) == str(KafkaConnectionError('refused'))


def test_a_batch_that_cannot_be_encoded_fails_and_lets_the_next_go(taken, monkeypatch):
    future, batch = taken.take()

    def encode(*arguments):
        raise NotImplementedError('no such codec')

    monkeypatch.setattr(type(batch), 'encode', encode)
    assert not taken.in_flight.prepare(batch, 2, taken.rig.loop.now)
    with pytest.raises(KafkaError, match='no such codec'):
        future.get(0)
    assert taken.pokes and taken.rig.accumulator.is_empty()
