"""A call is answered once, now or later, or not at all."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.protocol.api import RequestHeader
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.testing.calls import HANDLERS, Call, handles
from test.testing.drive import Driver


def made(answers, driver=None):
    broker = (driver or Driver()).brokers[0]
    return Call(
        broker,
        RequestHeader(3, 5, 1, 'me'),
        MetadataRequest(topics=[]),
        7,
        'User:x',
        answers.append,
    )


def response():
    return MetadataResponse(brokers=[], topics=[])


def test_a_second_answer_is_a_mistake():
    answers = []
    call = made(answers)
    call.respond(response())
    assert not call.is_waiting
    with pytest.raises(IllegalStateError, match='answered already'):
        call.respond(response())
    assert len(answers) == 1


def test_none_is_an_answer_too():
    answers = []
    made(answers).respond(None)
    assert answers == [None]


def test_changes_are_made_in_their_order():
    answers = []
    call = made(answers)

    def change(name):
        def rename(answer):
            answer.cluster_id = (answer.cluster_id or '') + name
            return answer

        return rename

    call.changes.extend([change('a'), change('b')])
    call.respond(response())
    assert answers[0].cluster_id == 'ab'


def test_a_dropped_call_tells_those_who_keep_it_once():
    told = []
    call = made([])
    call.when_dropped(lambda: told.append(1))
    call.drop()
    call.drop()
    assert told == [1]
    assert not call.is_waiting


def test_waiting_without_time_is_one_attempt():
    attempts = []
    call = made([])
    assert call.wait(0, ['k'], lambda last: attempts.append(last) or response()) is not None
    assert attempts == [True]


def test_waiting_is_not_needed_for_what_is_there():
    assert made([]).wait(5, ['k'], lambda last: response()) is not None


def test_waiting_ends_with_a_touch():
    driver, answers, there = Driver(), [], []
    call = made(answers, driver)
    assert call.wait(5, ['k'], lambda last: response() if there else None) is None
    there.append(1)
    driver.waiting.touch('k')
    assert len(answers) == 1


def test_a_handler_is_registered_by_its_request(monkeypatch):
    monkeypatch.delitem(HANDLERS, 3)

    def answer(call):
        return None

    assert handles(MetadataRequest)(answer) is answer
    assert HANDLERS[3] is answer


def test_a_call_shows_what_it_is():
    assert repr(made([])) == '<Call MetadataRequest v5 to node 0>'
    assert made([]).version == 5
