"""Requests and responses of 1.x: fields, bytes, and both ways through the declared messages."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaError, ProtocolError
from kafka.protocol import commit, versioned
from kafka.protocol.versioned import (
    FetchRequest_v0,
    GroupCoordinatorRequest_v0,
    GroupCoordinatorResponse_v0,
    MetadataRequest_v0,
    MetadataResponse_v0,
    OffsetCommitRequest_v0,
    OffsetCommitResponse_v0,
    OffsetFetchRequest_v0,
    OffsetFetchRequest_v1,
    OffsetFetchResponse_v1,
    OffsetRequest_v0,
    OffsetRequest_v1,
    OffsetResponse_v0,
    OffsetResponse_v1,
    ProduceRequest_v0,
    ProduceResponse_v0,
    Request,
)

EXAMPLES = [
    ProduceRequest_v0(1, 1000, [('t', [(0, b'set'), (1, b'')])]),
    ProduceResponse_v0([('t', [(0, 6, 42)])]),
    FetchRequest_v0(-1, 100, 4096, [('t', [(0, 7, 4096)]), ('u', [(1, 8, 1)])]),
    OffsetRequest_v0(-1, [('t', [(0, -1, 1)])]),
    OffsetResponse_v0([('t', [(0, 0, [9, 4])])]),
    OffsetRequest_v1(-1, [('t', [(0, 77)])]),
    OffsetResponse_v1([('t', [(0, 0, 77, 4)])]),
    MetadataRequest_v0(['t', 'u']),
    MetadataResponse_v0([(0, 'host', 9092)], [(0, 't', [(9, 0, 1, [1, 2], [1])])]),
    OffsetCommitRequest_v0('g', [('t', [(0, 42, 'metadata'), (1, 43, None)])]),
    OffsetCommitResponse_v0([('t', [(0, 0)])]),
    OffsetFetchRequest_v0('g', [('t', [0, 1])]),
    OffsetFetchResponse_v1([('t', [(0, 42, '', 0)])]),
    GroupCoordinatorRequest_v0('g'),
    GroupCoordinatorResponse_v0(0, 1, 'host', 9092),
]


@pytest.mark.parametrize('example', EXAMPLES, ids=lambda example: type(example).__name__)
def test_what_is_encoded_is_decoded(example):
    assert type(example).decode(example.encode()) == example


def test_every_request_knows_its_response():
    requests = [c for c in vars(versioned).values() if isinstance(c, type) and c is not Request]
    requests = [c for c in requests if issubclass(c, Request)]
    assert len(requests) == 9
    for request in requests:
        assert request.RESPONSE_TYPE.API_KEY == request.API_KEY
        assert request.RESPONSE_TYPE.API_VERSION == request.API_VERSION


def test_envelope_has_length_key_version_number_and_client():
    assert GroupCoordinatorRequest_v0('client3').framed(4, 'client3') == (
        b'\x00\x00\x00\x1a'  # length
        b'\x00\x0a'  # key
        b'\x00\x00'  # version
        b'\x00\x00\x00\x04'  # correlation id
        b'\x00\x07client3'  # client
        b'\x00\x07client3'  # group
    )
    request = OffsetFetchRequest_v1('g', [])
    assert request.framed(4, b'c') == request.framed(4, 'c')


@pytest.mark.parametrize(
    'topics',
    [
        [('t', [(3, 42, None)])],
        [('t\u00e4', [(-1, 2**63 - 1, None)])],
        [('', [(0, 0, None)])],
        [(b't', [(0, 1, None)])],
        [('t', [(0, 1, 'metadata')])],
        [('t', [(0, 1, None), (1, 2, None)])],
        [('t', [(0, 1, None)]), ('u', [(0, 1, None)])],
        [],
        None,
    ],
)
@pytest.mark.parametrize('client_id', ['client', b'client', None])
def test_commit_is_written_as_it_is_declared(topics, client_id):
    """One partition has a way of its own."""
    request = OffsetCommitRequest_v0('group', topics)
    assert request.framed(7, client_id) == super(type(request), request).framed(7, client_id)


@pytest.mark.parametrize(
    ('fields', 'error'),
    [
        (('g', [('t', [(2**31, 1, None)])]), ProtocolError),
        (('g', [('t', [(0, 2**63, None)])]), ProtocolError),
        (('g', [('t', [(0, '1', None)])]), ProtocolError),
        (('g', [('t' * 2**15, [(0, 1, None)])]), ProtocolError),
        (('g', [('\ud800', [(0, 1, None)])]), ProtocolError),
        ((None, [('t', [(0, 1, None)])]), ProtocolError),
        (('g', [('t', [(0, 1)])]), ValueError),
        (('g', [(7, [(0, 1, None)])]), ProtocolError),
    ],
)
def test_commit_that_cannot_be_written_says_what_is_wrong(fields, error):
    with pytest.raises(error):
        OffsetCommitRequest_v0(*fields).framed(7, 'client')


def test_answer_to_a_commit_is_read_as_it_is_declared():
    """One partition has a way of its own; whatever else the bytes are."""
    good = OffsetCommitResponse_v0([('t\u00e4', [(3, 16)])]).encode()
    two = OffsetCommitResponse_v0([('t', [(3, 16), (4, 0)])]).encode()
    none = OffsetCommitResponse_v0([('t', [])]).encode()
    cut = [good[:end] for end in range(len(good))]
    changed = [good[:at] + b'\xff' + good[at + 1 :] for at in range(len(good))]
    for data in [good, two, none, b'', good + b'\x00', *cut, *changed]:
        assert outcome(OffsetCommitResponse_v0.decode, data) == outcome(declared_committed, data)


def declared_committed(data):
    return OffsetCommitResponse_v0.of(commit.OffsetCommitResponse.decode(data, 0))


def outcome(decode, data):
    try:
        return decode(data)
    except KafkaError as error:
        return repr(error)


def test_names_may_be_bytes():
    assert MetadataRequest_v0([b't']).encode() == MetadataRequest_v0(['t']).encode()


def test_fields_are_attributes_given_positionally_or_by_name():
    assert FetchRequest_v0(-1, 5, 6, []).max_wait_time == 5
    assert OffsetRequest_v0(topics=[], replica_id=-1) == OffsetRequest_v0(-1, [])
    assert repr(MetadataRequest_v0(['a', 'b'])) == "MetadataRequest_v0(topics=['a', 'b'])"
    assert hash(MetadataRequest_v0(['a'])) == hash(MetadataRequest_v0(['a']))


def test_wrong_number_of_fields_is_a_value_error():
    with pytest.raises(ValueError, match='topics'):
        FetchRequest_v0(-1, 5)


def test_unknown_field_is_a_type_error():
    with pytest.raises(TypeError, match='topic'):
        MetadataRequest_v0(topic='t')


def test_item_of_another_shape_is_a_value_error():
    with pytest.raises(ValueError, match='partition'):
        FetchRequest_v0(-1, 5, 6, [('t', [(0, 7)])]).encode()


def test_value_that_does_not_fit_is_a_protocol_error():
    with pytest.raises(ProtocolError):
        FetchRequest_v0(-1, 2**40, 6, []).encode()
