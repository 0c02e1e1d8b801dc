"""Requests made beforehand: recognized answers, and all others as those of other requests."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.net.node_connection import ConnectionState
from kafka.producer.producer_batch import ProducerBatch
from kafka.protocol.produce_template import ProduceTemplate
from kafka.structs import TopicPartition
from kafka.testing.faults import Cut, DropResponse, Error, Hang, Slow, Throttle
from test.net.test_node_connection import ASK, Sim


class Answer:
    """Keeps what came. Attributes: outcomes: (how, what); is_sent."""

    def __init__(self):
        self.outcomes = []
        self.is_sent = False

    def sent(self):
        assert not self.is_sent
        self.is_sent = True

    def take(self, found):
        self.outcomes.append(('taken', found))

    def wake(self, response):
        self.outcomes.append(('decoded', response))

    def fail(self, error):
        self.outcomes.append(('failed', error))


@pytest.fixture
def sim():
    made = Sim()
    made.loop.run(made.link.ready(), 10)
    yield made
    made.stop()


def records(value=b'v'):
    batch = ProducerBatch(TopicPartition('t', 0), 0.0, 1000, None)
    batch.values.append(value)
    batch.set_time(0, 1600000000000)
    batch.close()
    return batch.encode(2)


def template(sim, version=12):
    return ProduceTemplate('t', 0, bytes(16), version, -1, 30000, sim.link.session.client_id)


def submit(sim, timeout=5.0, made=None):
    answer = Answer()
    assert sim.link.is_free(sim.loop.time())
    slept = sim.link.submit_made(made or template(sim), records(), answer, timeout, 0.0)
    assert slept is None and answer.is_sent
    return answer


def outcome(sim, answer):
    assert sim.loop.wait(lambda: answer.outcomes, 60)
    ((how, what),) = answer.outcomes
    return how, what


def goes_on(sim):
    """The link has nothing in flight, and serves others and the like."""
    assert sim.ask().brokers and sim.link.in_flight == 0 and not sim.link._transport.expecting
    # The network in memory cuts what it likes, and then the answer is decoded.
    return 'taken' in [outcome(sim, submit(sim))[0] for _ in range(5)]


@pytest.mark.parametrize('version', [5, 8, 9, 12])
def test_the_answer_that_is_expected_is_taken_at_once(sim, version):
    made = template(sim, version)
    for number in range(3):
        how, (offset, _, start) = outcome(sim, submit(sim, made=made))
        assert (how, offset, start) == ('taken', number, 0)
    assert goes_on(sim)


def test_a_link_that_is_busy_or_has_to_leave_the_broker_alone_is_not_free(sim):
    answer = submit(sim)
    assert not sim.link.is_free(sim.loop.time())
    outcome(sim, answer)
    sim.link.throttled_until = sim.loop.time() + 1
    assert not sim.link.is_free(sim.loop.time())
    assert sim.link.is_free(sim.loop.time() + 1)


def test_it_is_answered_in_its_turn_among_others(sim):
    first = submit(sim)
    others = []
    for _ in range(3):
        sim.link.submit(ASK, lambda *came: others.append((came, len(first.outcomes))))
    assert sim.loop.wait(lambda: len(others) == 3, 60)
    assert [(error, before) for (_, error), before in others] == [(None, 1)] * 3
    assert outcome(sim, first)[0] in ('taken', 'decoded') and goes_on(sim)


def test_an_answer_with_an_error_is_decoded(sim):
    sim.cluster.faults.add(Error(6), 'Produce', times=1)
    how, response = outcome(sim, submit(sim))
    assert how == 'decoded'
    assert response.responses[0].partition_responses[0].error_code == 6
    assert goes_on(sim)


def test_an_answer_that_throttles_is_decoded_and_obeyed(sim):
    sim.cluster.faults.add(Throttle(2000), 'Produce', times=1)
    how, response = outcome(sim, submit(sim))
    assert (how, response.throttle_time_ms) == ('decoded', 2000)
    assert not sim.link.is_free(sim.loop.time() + 1) and sim.link.is_free(sim.loop.time() + 2.1)


def test_an_answer_that_comes_in_pieces_is_decoded(sim):
    sim.cluster.faults.add(Slow(100), 'Produce', times=1)
    assert outcome(sim, submit(sim))[0] == 'decoded'
    assert goes_on(sim)


@pytest.mark.parametrize(
    'fault, error',
    [
        (Hang(), KafkaTimeoutError),
        (DropResponse(), KafkaConnectionError),
        (Cut(10), KafkaConnectionError),
    ],
)
def test_without_an_answer_it_fails_as_others_do(sim, fault, error):
    sim.cluster.faults.add(fault, 'Produce', times=1)
    began = sim.loop.time()
    answer = submit(sim, timeout=3.0)
    how, came = outcome(sim, answer)
    assert how == 'failed' and isinstance(came, error) and sim.loop.time() - began < 3.5
    sim.loop.run(sim.link.ready(), 10)
    assert goes_on(sim) and len(answer.outcomes) == 1


def test_a_connection_that_is_over_fails_it(sim):
    sim.link._transport._sock.close()
    how, came = outcome(sim, submit(sim))
    assert how == 'failed' and isinstance(came, KafkaConnectionError)
    sim.loop.run(sim.link.ready(), 10)
    assert goes_on(sim)


def sleep(sim, answer, seconds=60.0, timeout=5.0):
    """Submit one and sleep; return what the answer says, None if it is told."""

    async def submit_in_turn():
        assert sim.link.is_free(sim.loop.time())
        until = sim.loop.time() + seconds
        return sim.link.submit_made(template(sim), records(), answer, timeout, until)

    return sim.loop.run(submit_in_turn(), 60)


def test_who_sleeps_is_given_the_answer_and_nobody_knew_of_the_request(sim):
    given = []
    for _ in range(10):  # the network in memory cuts what it likes, and then it is told
        answer = Answer()
        found = sleep(sim, answer)
        assert answer.is_sent
        if found is None:
            outcome(sim, answer)
        else:
            given.append(found[0])
            assert not answer.outcomes and sim.link.in_flight == 0
            assert not sim.link._transport.expecting and sim.link._made is None
            assert sim.link.last_used == sim.loop.time()
    assert len(given) >= 5 and given == sorted(set(given))
    assert goes_on(sim)


@pytest.mark.parametrize(
    'fault, how',
    [
        (Error(6), 'decoded'),
        (Throttle(2000), 'decoded'),
        (Hang(), 'failed'),
        (DropResponse(), 'failed'),
        (Cut(10), 'failed'),
    ],
    ids=['an error', 'throttled', 'no answer', 'lost', 'cut'],
)
def test_who_sleeps_is_told_of_anything_else(sim, fault, how):
    sim.cluster.faults.add(fault, 'Produce', times=1)
    began, answer = sim.loop.time(), Answer()
    assert sleep(sim, answer, timeout=3.0) is None
    assert outcome(sim, answer)[0] == how and sim.loop.time() - began < 3.5
    if how == 'failed':
        sim.loop.run(sim.link.ready(), 10)
    else:
        sim.loop.wait(lambda: sim.link.is_free(sim.loop.time()), 5)
    assert goes_on(sim) and len(answer.outcomes) == 1


def test_who_sleeps_goes_on_when_anything_happens_and_the_answer_is_told(sim):
    sim.cluster.faults.add(Slow(100), 'Produce', times=1)
    called, answer = [], Answer()
    sim.loop.call_later(0.05, called.append, 1)
    assert sleep(sim, answer) is None
    assert not called and not answer.outcomes and sim.link.in_flight == 1
    outcome(sim, answer)
    assert called and goes_on(sim)


def test_who_sleeps_wakes_at_the_end_of_the_time(sim):
    sim.cluster.faults.add(Hang(), 'Produce', times=1)
    began, answer = sim.loop.time(), Answer()
    assert sleep(sim, answer, seconds=0.5, timeout=3.0) is None
    assert sim.loop.time() - began <= 0.5 and sim.link.in_flight == 1 and not answer.outcomes
    assert outcome(sim, answer)[0] == 'failed' and 3.0 <= sim.loop.time() - began < 3.5


class Ended(Exception):
    """Ends a call in the middle."""


def end(sim, monkeypatch, owner, name):
    """Send a request, with an exception in place of a call in it; return the answer."""

    def fail(*arguments):
        raise Ended(name)

    answer = Answer()
    assert not sim.link.is_submitting(answer)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail)
        with pytest.raises(Ended):
            sleep(sim, answer)
    assert sim.link.is_submitting(answer) and not sim.link.in_flight
    return answer


def test_a_request_that_was_ended_while_it_sleeps_is_in_flight_once_it_is_resumed(sim, monkeypatch):
    answer = end(sim, monkeypatch, sim.loop, 'is_only')
    assert sim.link.resume_made(template(sim), 5.0) and sim.link.in_flight == 1
    assert not sim.link.is_submitting(answer)
    assert outcome(sim, answer)[0] in ('taken', 'decoded') and goes_on(sim)


def test_a_response_that_was_received_is_taken_when_it_is_resumed(sim, monkeypatch):
    answer = end(sim, monkeypatch, ProduceTemplate, 'read')
    assert not answer.outcomes
    assert sim.link.resume_made(template(sim), 5.0)
    assert [how for how, _ in answer.outcomes] == ['taken'] and goes_on(sim)


def test_a_request_that_was_not_written_closes_the_connection_when_it_is_resumed(sim, monkeypatch):
    answer = end(sim, monkeypatch, type(sim.link._transport), 'write')
    assert not sim.link.resume_made(template(sim), 5.0)
    assert sim.link.state is ConnectionState.DISCONNECTED and not answer.outcomes
    sim.loop.run(sim.link.ready(), 10)
    assert goes_on(sim)
