"""Commits of one partition: the short way to bytes and back says what the long ways say."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaError
from kafka.protocol import KafkaProtocol
from kafka.protocol.api import decode_request, encode_response
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka.protocol.single_partition import commit_request, read_committed
from kafka.protocol.versioned import OffsetCommitResponse_v0
from kafka.structs import OffsetCommitRequest as CommitPayload
from kafka.structs import OffsetCommitResponse as Committed


@pytest.mark.parametrize('partition, offset', [(0, 0), (7, 2**63 - 1), (-1, -1)])
def test_what_is_written_is_the_declared_request(partition, offset):
    framed = commit_request(5, b'client', 'gruppe\xe4'.encode(), b't', partition, offset)
    assert int.from_bytes(framed[:4], 'big') == len(framed) - 4
    header, message = decode_request(framed[4:])
    assert header == (8, 0, 5, 'client')
    part = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=None
    )
    topics = [OffsetCommitRequestTopic(name='t', partitions=[part])]
    assert message == OffsetCommitRequest(group_id='gruppe\xe4', topics=topics)


@pytest.mark.parametrize(
    'wrong',
    [
        (2**31, b'c', b'g', b't', 0, 0),
        (1, b'c' * 40000, b'g', b't', 0, 0),
        (1, b'c', b'g', b't' * 40000, 0, 0),
        (1, b'c', b'g', b't', 2**31, 0),
        (1, b'c', b'g', b't', 0, 2**63),
        (1, b'c', b'g', b't', '0', 0),
    ],
)
def test_what_cannot_be_packed_is_left_to_the_long_way(wrong):
    assert commit_request(*wrong) is None


def answer(*topics):
    """Return the declared answer: (name, [(partition, error), ...]) for each topic."""
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=p, error_code=error)
                    for p, error in partitions
                ],
            )
            for name, partitions in topics
        ]
    )
    return encode_response(response, 0, 9)


def test_the_answer_about_one_partition_is_read():
    assert read_committed(answer(('t\xe4', [(3, 35)])), 4) == ('t\xe4'.encode(), 3, 35)


@pytest.mark.parametrize(
    'data',
    [
        b'',
        answer(),
        answer(('t', [])),
        answer(('t', [(0, 0), (1, 0)])),
        answer(('t', [(0, 0)]), ('u', [(0, 0)])),
        answer(('t', [(0, 0)])) + b'\0',
        answer(('t', [(0, 0)]))[:-1],
        b'\0\0\0\x09\0\0\0\x01\xff\xff\0\0\0\x01\0\0\0\x05\0\0',  # a name of length -1
    ],
)
def test_any_other_answer_is_left_to_the_long_way(data):
    assert read_committed(data, 4) is None


@pytest.mark.parametrize('size', range(len(answer(('t', [(0, 0)])))))
def test_a_cut_off_answer_is_an_error_in_both_forms(size):
    data = answer(('t', [(0, 0)]))[:size]
    with pytest.raises(KafkaError):
        list(KafkaProtocol.decode_offset_commit_response(data))
    with pytest.raises(KafkaError):
        OffsetCommitResponse_v0.decode(data[4:])


def test_both_forms_read_the_answer():
    data = answer(('t', [(3, 35)]))
    assert list(KafkaProtocol.decode_offset_commit_response(data)) == [Committed(b't', 3, 35)]
    assert OffsetCommitResponse_v0.decode(data[4:]).topics == [('t', [(3, 35)])]


@pytest.mark.parametrize('metadata', [None, b'', b'meta'])
@pytest.mark.parametrize('client', [b'client', None, b'\xff'])
@pytest.mark.parametrize('topic', [b't', b'\xff'])
def test_the_encoder_of_0_9_writes_the_same_on_either_way(metadata, client, topic):
    class Long(KafkaProtocol):
        """What a program has made of the class: the short way is not taken for it."""

    def encoded(protocol):
        payloads = [CommitPayload(topic, 3, 2**40, metadata)]
        return protocol.encode_offset_commit_request(client, 5, b'g', payloads)

    assert encoded(KafkaProtocol) == encoded(Long)


def test_a_replaced_header_is_written(monkeypatch):
    monkeypatch.setattr(
        KafkaProtocol, '_encode_message_header', classmethod(lambda cls, *args: b'header')
    )
    payloads = [CommitPayload(b't', 3, 4, None)]
    assert b'header' in KafkaProtocol.encode_offset_commit_request(b'c', 5, b'g', payloads)
