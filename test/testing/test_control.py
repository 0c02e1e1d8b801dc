"""Tests see requests and answer them instead of brokers."""

from __future__ import annotations

import sys

import pytest

from kafka.protocol.api import ApiKey
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka.protocol.wire import Struct
from kafka.testing.control import LATER, Received, RequestLog, held_bytes
from test.testing.drive import Driver


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def control(driver):
    return driver.state.control


def entry(number):
    return Received(0.0, 0, number, ApiKey.METADATA, 0, None, MetadataRequest(topics=[]))


def own(call):
    return MetadataResponse(brokers=[], topics=[], cluster_id='mine')


def test_every_request_is_logged(driver, control):
    driver.advance(2.5)
    driver.ask(MetadataRequest(topics=[]), version=4)
    driver.ask(FindCoordinatorRequest(coordinator_keys=['g']))
    first, second = control.requests.entries()
    assert (first.at, first.node, first.connection) == (2.5, 0, 1)
    assert (first.api, first.version, first.client_id) == (ApiKey.METADATA, 4, 'driver')
    assert first.request == MetadataRequest(topics=[])
    assert second.api == ApiKey.FIND_COORDINATOR


def test_the_log_is_bounded_in_number():
    log = RequestLog(max_requests=3)
    for number in range(10):
        log.add(entry(number), 1)
    assert [each.connection for each in log.entries()] == [7, 8, 9]


def test_the_log_is_bounded_in_bytes():
    log = RequestLog(max_bytes=100)
    for number in range(10):
        log.add(entry(number), 40)
    assert [each.connection for each in log.entries()] == [8, 9]
    log.add(entry(10), 1000)
    assert log.entries() == []


def size_in_memory(value):
    """Return what sys.getsizeof says of all that a value holds."""
    size = sys.getsizeof(value)
    if isinstance(value, list):
        return size + sum(map(size_in_memory, value))
    if isinstance(value, Struct):
        return size + sum(size_in_memory(getattr(value, f.name)) for f in type(value).fields)
    return size


@pytest.mark.parametrize('count', [1, 20, 1000])
@pytest.mark.parametrize('name', ['', 'abc', 'x' * 200])
def test_what_a_request_holds_in_memory_is_estimated(count, name):
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for _ in range(count)])
    size = len(request.encode(9))
    request = MetadataRequest.decode(request.encode(9), 9)
    assert size_in_memory(request) < held_bytes(request, size + 20) * 1.6
    assert held_bytes(request, size + 20) < 2 * size_in_memory(request) + 40 * 256


def test_the_log_can_begin_anew():
    log = RequestLog()
    log.add(entry(1), 40)
    log.clear()
    assert log.entries() == []
    assert repr(log) == '<RequestLog of 0 requests, 0 bytes>'


@pytest.mark.parametrize('api', ['Metadata', 'METADATA', 3, ApiKey.METADATA, MetadataRequest])
def test_a_function_answers_instead_of_the_broker(driver, control, api):
    control.set_handler(api, own)
    assert driver.ask(MetadataRequest(topics=[])).cluster_id == 'mine'
    control.set_handler(api, None)
    assert driver.ask(MetadataRequest(topics=[])).cluster_id == driver.state.cluster_id


def test_a_function_that_returns_none_leaves_it_to_the_broker(driver, control):
    seen = []
    control.set_handler('Metadata', seen.append)
    assert driver.ask(MetadataRequest(topics=[])).cluster_id == driver.state.cluster_id
    assert [type(call.request) for call in seen] == [MetadataRequest]


def test_a_function_may_answer_by_itself(driver, control):
    control.set_handler('Metadata', lambda call: call.respond(own(call)))
    assert driver.ask(MetadataRequest(topics=[])).cluster_id == 'mine'


def test_a_function_may_answer_later(driver, control):
    calls = []
    control.set_handler('Metadata', lambda call: calls.append(call) or LATER)
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert client.receive() is None
    calls[0].respond(own(calls[0]))
    assert client.receive().cluster_id == 'mine'


def test_what_is_no_response_is_a_failure(driver, control):
    control.set_handler('Metadata', lambda call: b'bytes')
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert client.wire.is_closed
    assert isinstance(control.failures[0], TypeError)


def test_a_function_may_close_the_connection(driver, control):
    control.set_handler('Metadata', lambda call: call.close_connection())
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert client.wire.is_closed
    assert not control.failures


def test_what_a_function_raises_closes_the_connection_and_is_kept(driver, control):
    def check(call):
        raise AssertionError('not what the test expects')

    control.set_handler('Metadata', check)
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    assert client.wire.is_closed
    assert str(control.failures[0]) == 'not what the test expects'


@pytest.mark.parametrize('api', ['Nonsense', 999, None, object()])
def test_an_api_that_there_is_not_cannot_be_controlled(control, api):
    with pytest.raises(ValueError, match='unknown API'):
        control.set_handler(api, own)


def test_what_is_no_function_cannot_answer(control):
    with pytest.raises(TypeError, match='must be a function'):
        control.set_handler('Metadata', 'answer')
