"""KafkaProtocol of 2.x: structs out, structs in, whatever the pieces."""

from __future__ import annotations

import pytest

from kafka.errors import CorrelationIdError, KafkaError, KafkaProtocolError
from kafka.protocol.api import RequestHeader
from kafka.protocol.commit import GroupCoordinatorRequest, GroupCoordinatorResponse
from kafka.protocol.frames import frame
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.produce import ProduceRequest

NOBODY = MetadataResponse[0]([], [])


def answer(correlation_id, response):
    return frame(correlation_id.to_bytes(4, 'big') + response.encode())


@pytest.mark.parametrize('size', [1, 3, 1000])
def test_answers_come_whole_whatever_the_pieces(size):
    protocol = KafkaProtocol(client_id='me', ident='node 1')
    request = MetadataRequest[0](['t'])
    assert [protocol.send_request(request), protocol.send_request(request)] == [1, 2]
    first, second = (
        frame(RequestHeader(request, number, 'me').encode() + request.encode()) for number in (1, 2)
    )
    assert protocol.send_bytes() == first + second
    assert protocol.send_bytes() == b''
    data = answer(1, NOBODY) + answer(2, NOBODY)
    found = []
    for at in range(0, len(data), size):
        found += protocol.receive_bytes(data[at : at + size])
    assert found == [(1, NOBODY), (2, NOBODY)]
    assert not protocol.in_flight_requests


def test_correlation_ids_may_be_given_and_go_on_from_there():
    protocol = KafkaProtocol()
    assert protocol.send_request(MetadataRequest[0]([]), correlation_id=40) == 40
    assert protocol.send_request(MetadataRequest[0]([])) == 41


def test_what_is_not_answered_is_not_waited_for():
    protocol = KafkaProtocol()
    protocol.send_request(ProduceRequest[0](0, 1, []))
    assert protocol.send_bytes()
    assert not protocol.in_flight_requests


def test_an_answer_to_something_else():
    protocol = KafkaProtocol(ident='node 1')
    with pytest.raises(CorrelationIdError, match='node 1: .*unexpected'):
        protocol.receive_bytes(answer(1, NOBODY))
    protocol.send_request(MetadataRequest[0]([]))
    with pytest.raises(CorrelationIdError, match='7, expected 1'):
        protocol.receive_bytes(answer(7, NOBODY))


@pytest.mark.parametrize('version, is_taken', [((0, 8, 2), True), ((0, 9), False)])
def test_brokers_of_0_8_2_answer_for_coordinators_with_0(version, is_taken):
    protocol = KafkaProtocol(api_version=version)
    protocol.send_request(GroupCoordinatorRequest[0]('group'))
    response = GroupCoordinatorResponse[0](0, 1, 'host', 9092)
    if is_taken:
        assert protocol.receive_bytes(answer(0, response)) == [(1, response)]
    else:
        with pytest.raises(CorrelationIdError):
            protocol.receive_bytes(answer(0, response))


@pytest.mark.parametrize('body', [b'', b'\x7f\xff\xff\xff', b'\0\0\0\1\0'])
def test_an_answer_that_cannot_be_read(body):
    protocol = KafkaProtocol()
    protocol.send_request(MetadataRequest[0]([]))
    with pytest.raises(KafkaProtocolError, match='MetadataRequest_v0 that cannot be read'):
        protocol.receive_bytes(frame(b'\0\0\0\1' + body))


def test_a_length_that_is_none_is_refused():
    with pytest.raises(KafkaError, match='HTTP'):
        KafkaProtocol().receive_bytes(b'HTTP/1.1 400 Bad Request')


def test_a_request_that_cannot_be_sent_changes_nothing():
    protocol = KafkaProtocol()
    with pytest.raises(ValueError):
        protocol.send_request(ProduceRequest[0](2**20, 1, []))
    assert (protocol.send_bytes(), len(protocol.in_flight_requests)) == (b'', 0)
    assert protocol.send_request(MetadataRequest[0]([])) == 1
