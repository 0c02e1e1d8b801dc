"""Produce requests made beforehand: the bytes of both ends are those of the encoders."""

from __future__ import annotations

import pytest

from kafka.protocol.api import encode_request, encode_response
from kafka.protocol.frames import frame
from kafka.protocol.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka.protocol.produce_template import FIRST_VERSION, ProduceTemplate
from kafka.protocol.wire import ZERO_UUID

VERSIONS = range(FIRST_VERSION, ProduceRequest.max_version + 1)
TOPIC_ID = bytes(range(16))
STORED = (5000000000, 1700000000000, 17)


def template(version, client_id='me', partition=3):
    return ProduceTemplate('topic', partition, ids(version), version, -1, 30000, client_id)


def ids(version):
    return TOPIC_ID if version > 12 else ZERO_UUID


def answer(version, correlation_id=7, stored=STORED, throttle=0, nodes=(), more=(), **fields):
    base, time, start = stored
    result = PartitionProduceResponse(
        **{
            'index': 3,
            'error_code': 0,
            'base_offset': base,
            'log_append_time_ms': time,
            'log_start_offset': start,
            **fields,
        }
    )
    topic = TopicProduceResponse(
        name='topic' if version < 13 else '',
        topic_id=ids(version),
        partition_responses=[result, *more],
    )
    response = ProduceResponse(
        responses=[topic], throttle_time_ms=throttle, node_endpoints=list(nodes)
    )
    return frame(encode_response(response, version, correlation_id))


@pytest.mark.parametrize('client_id', ['me', '', None, 'ä' * 100])
@pytest.mark.parametrize('version', VERSIONS)
def test_a_request_is_what_the_encoder_makes(version, client_id):
    made = template(version, client_id)
    for number, size in enumerate([70, 0, 1, 126, 127, 128, 70, 16382, 16383, 100000]):
        records = bytes([number]) * size
        data = PartitionProduceData(index=3, records=records)
        topic = TopicProduceData(name='topic', topic_id=ids(version), partition_data=[data])
        request = ProduceRequest(None, acks=-1, timeout_ms=30000, topic_data=[topic])
        expected = frame(encode_request(request, version, 2**31 - 1 - number, client_id))
        assert made.encode(2**31 - 1 - number, records) == expected
        assert made.encode(2**31 - 1 - number, bytearray(records)) == expected


@pytest.mark.parametrize('stored', [STORED, (0, -1, 0), (2**63 - 1, -1, -1), (-1, -1, -1)])
@pytest.mark.parametrize('version', VERSIONS)
def test_the_answer_that_all_is_stored_is_read(version, stored):
    assert template(version).read(answer(version, stored=stored), 7) == stored


@pytest.mark.parametrize('version', VERSIONS)
def test_other_answers_are_not(version):
    made, good = template(version), answer(version)
    others = [
        b'',
        good[:-1],
        good + b'\0',
        good + good,
        answer(version, correlation_id=8),
        answer(version, throttle=1),
        answer(version, index=2),
        answer(version, error_code=6),
        answer(version, more=[PartitionProduceResponse(index=4, error_code=0, base_offset=1)]),
    ]
    if version >= 8:
        others.append(answer(version, error_message='why'))
        wrong = BatchIndexAndErrorMessage(batch_index=0)
        others.append(answer(version, record_errors=[wrong]))
    if version >= 10:
        others.append(answer(version, current_leader=LeaderIdAndEpoch(1, 2)))
        others.append(answer(version, nodes=[NodeEndpoint(1, 'host', 9092)]))
    assert [each for each in others if made.read(each, 7) is not None] == []


@pytest.mark.parametrize('version', VERSIONS)
def test_a_byte_that_differs_is_noticed_but_in_the_numbers(version):
    made, good = template(version), answer(version)
    unnoticed = [
        place
        for place in range(len(good))
        if made.read(good[:place] + bytes([good[place] ^ 0x40]) + good[place + 1 :], 7) is not None
    ]
    assert len(unnoticed) == 24 and unnoticed == list(range(unnoticed[0], unnoticed[0] + 24))


def test_a_template_has_no_records_of_its_own_and_says_what_it_is_for():
    made = template(13)
    (topic,) = made.request.topic_data
    assert topic.partition_data[0].records == b''
    assert repr(made) == '<ProduceTemplate topic-3, version 13>'
