"""KafkaProtocol in the form of 1.x, and how a call tells which form it means."""

from __future__ import annotations

import pytest

from kafka.errors import ChecksumError
from kafka.protocol import KafkaProtocol, create_gzip_message, create_message
from kafka.protocol.later import MessagesLater
from kafka.protocol.message import Message, MessageSet, PartialMessage
from kafka.protocol.versioned import (
    FetchRequest_v0,
    FetchResponse_v0,
    GroupCoordinatorRequest_v0,
    GroupCoordinatorResponse_v0,
    MetadataRequest_v0,
    OffsetCommitRequest_v0,
    OffsetCommitResponse_v0,
    OffsetFetchRequest_v0,
    OffsetFetchRequest_v1,
    OffsetFetchResponse_v0,
    OffsetRequest_v0,
    OffsetRequest_v1,
    OffsetResponse_v0,
    OffsetResponse_v1,
    ProduceRequest_v0,
    ProduceResponse_v0,
)
from kafka.record.columns import Columns
from kafka.record.conversion import MessageSet as MessageSetOfRecords
from kafka.structs import (
    ConsumerMetadataResponse,
    FetchRequestPayload,
    ListOffsetRequestPayload,
    ListOffsetResponsePayload,
    OffsetCommitRequestPayload,
    OffsetCommitResponsePayload,
    OffsetFetchRequestPayload,
    OffsetFetchResponsePayload,
    OffsetRequestPayload,
    OffsetResponsePayload,
    ProduceRequestPayload,
    ProduceResponsePayload,
)

PRODUCE = ProduceRequestPayload('t', 1, [create_message(b'v')])
FETCH = FetchRequestPayload('t', 1, 7, 4096)
OFFSET = OffsetRequestPayload('t', 1, -1, 2)
COMMIT = OffsetCommitRequestPayload('t', 1, 42, 'meta')
STORED = OffsetFetchRequestPayload('t', 1)


def message_set(*values):
    """Return the bytes of a set whose messages have these values and the offsets 0, 1 …"""
    return MessageSet.encode([(n, Message(v).encode()) for n, v in enumerate(values)], size=False)


# --- encoders -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'request_, expected',
    [
        (KafkaProtocol.encode_metadata_request(), MetadataRequest_v0([])),
        (KafkaProtocol.encode_metadata_request(['t']), MetadataRequest_v0(['t'])),
        (KafkaProtocol.encode_metadata_request(('t',)), MetadataRequest_v0(['t'])),
        (KafkaProtocol.encode_metadata_request(payloads=['t']), MetadataRequest_v0(['t'])),
        (
            KafkaProtocol.encode_fetch_request([FETCH], 5, 6),
            FetchRequest_v0(-1, 5, 6, [('t', [(1, 7, 4096)])]),
        ),
        (
            KafkaProtocol.encode_fetch_request(payloads=[FETCH]),
            FetchRequest_v0(-1, 100, 4096, [('t', [(1, 7, 4096)])]),
        ),
        (
            KafkaProtocol.encode_offset_request([OFFSET]),
            OffsetRequest_v0(-1, [('t', [(1, -1, 2)])]),
        ),
        (
            KafkaProtocol.encode_list_offset_request([ListOffsetRequestPayload('t', 1, -1)]),
            OffsetRequest_v1(-1, [('t', [(1, -1)])]),
        ),
        (
            KafkaProtocol.encode_offset_commit_request('g', [COMMIT]),
            OffsetCommitRequest_v0('g', [('t', [(1, 42, 'meta')])]),
        ),
        (
            KafkaProtocol.encode_offset_commit_request(group='g', payloads=[COMMIT]),
            OffsetCommitRequest_v0('g', [('t', [(1, 42, 'meta')])]),
        ),
        (
            KafkaProtocol.encode_offset_fetch_request('g', [STORED]),
            OffsetFetchRequest_v0('g', [('t', [1])]),
        ),
        (
            KafkaProtocol.encode_offset_fetch_request('g', [STORED], True),
            OffsetFetchRequest_v1('g', [('t', [1])]),
        ),
        (
            KafkaProtocol.encode_consumer_metadata_request('g'),
            GroupCoordinatorRequest_v0('g'),
        ),
        (
            KafkaProtocol.encode_consumer_metadata_request(payloads='g'),
            GroupCoordinatorRequest_v0('g'),
        ),
    ],
)
def test_without_ids_an_encoder_returns_a_request_struct(request_, expected):
    assert request_ == expected


def test_produce_request_carries_the_messages_as_a_set():
    for request in (
        KafkaProtocol.encode_produce_request([PRODUCE], -1, 5),
        KafkaProtocol.encode_produce_request(payloads=[PRODUCE], acks=-1, timeout=5),
    ):
        assert request == ProduceRequest_v0(-1, 5, [('t', [(1, message_set(b'v'))])])


@pytest.mark.parametrize('acks', [2, -2, None, 'all'])
def test_acks_that_1_x_does_not_know_are_a_value_error(acks):
    with pytest.raises(ValueError, match='acks'):
        KafkaProtocol.encode_produce_request([PRODUCE], acks=acks)


def test_acks_of_0_9_5_are_written_as_given():
    encoded = KafkaProtocol.encode_produce_request(b'c', 1, [], acks=2)
    assert encoded[4 + 8 + 3 : 4 + 8 + 5] == b'\x00\x02'


@pytest.mark.parametrize(
    'call',
    [
        lambda: KafkaProtocol.encode_produce_request(b'c', 3, []),
        lambda: KafkaProtocol.encode_produce_request(b'c', 3),
        lambda: KafkaProtocol.encode_fetch_request(client_id=b'c', correlation_id=3, payloads=[]),
        lambda: KafkaProtocol.encode_offset_request(None, 3, []),
        lambda: KafkaProtocol.encode_metadata_request(b'c', 3, [b't']),
        lambda: KafkaProtocol.encode_metadata_request(b'c', correlation_id=3, topics=[b't']),
        lambda: KafkaProtocol.encode_consumer_metadata_request(b'c', 3, b'g'),
        lambda: KafkaProtocol.encode_offset_commit_request(b'c', 3, b'g', []),
        lambda: KafkaProtocol.encode_offset_commit_request(
            client_id=b'c', correlation_id=3, group=b'g', payloads=[]
        ),
        lambda: KafkaProtocol.encode_offset_fetch_request(b'c', 3, b'g', []),
        lambda: KafkaProtocol.encode_offset_fetch_request(b'c', 3, b'g', [], True),
    ],
)
def test_with_ids_an_encoder_returns_bytes(call):
    encoded = call()
    assert encoded[:4] == (len(encoded) - 4).to_bytes(4, 'big')
    assert encoded[8:12] == b'\x00\x00\x00\x03'


@pytest.mark.parametrize(
    'call',
    [
        lambda: KafkaProtocol.encode_produce_request([FETCH]),
        lambda: KafkaProtocol.encode_fetch_request([('t', 1)]),
        lambda: KafkaProtocol.encode_metadata_request('t'),
        lambda: KafkaProtocol.encode_offset_commit_request('g', [STORED]),
    ],
)
def test_wrong_payload_is_a_type_error(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    'call, error, named',
    [
        (lambda: KafkaProtocol.encode_produce_request([PRODUCE], 1, None), TypeError, 'timeout'),
        (
            lambda: KafkaProtocol.encode_produce_request([PRODUCE._replace(partition='1')]),
            TypeError,
            'partition',
        ),
        (lambda: KafkaProtocol.encode_fetch_request([FETCH], None), TypeError, 'max_wait_time'),
        (lambda: KafkaProtocol.encode_fetch_request([FETCH], 1, '1'), TypeError, 'min_bytes'),
        (
            lambda: KafkaProtocol.encode_fetch_request([FETCH._replace(offset=1.5)]),
            TypeError,
            'offset',
        ),
        (
            lambda: KafkaProtocol.encode_fetch_request([FETCH._replace(max_bytes=None)]),
            TypeError,
            'max_bytes',
        ),
        (
            lambda: KafkaProtocol.encode_offset_request([OFFSET._replace(time=None)]),
            TypeError,
            'time',
        ),
        (
            lambda: KafkaProtocol.encode_offset_request([OFFSET._replace(max_offsets='1')]),
            TypeError,
            'max_offsets',
        ),
        (
            lambda: KafkaProtocol.encode_offset_commit_request('g', [COMMIT._replace(metadata=5)]),
            TypeError,
            'metadata',
        ),
        (lambda: KafkaProtocol.encode_offset_commit_request(None, [COMMIT]), TypeError, 'group'),
        (lambda: KafkaProtocol.encode_offset_fetch_request([], [STORED]), TypeError, 'group'),
        (lambda: KafkaProtocol.encode_consumer_metadata_request(5), TypeError, 'group'),
        (lambda: KafkaProtocol.encode_metadata_request([5]), TypeError, 'topics'),
        (lambda: KafkaProtocol.encode_metadata_request([b'\xff']), ValueError, 'topics'),
        (lambda: KafkaProtocol.encode_metadata_request(['x' * 2**15]), ValueError, 'topics'),
    ],
)
def test_wrong_argument_is_named_before_anything_is_sent(call, error, named):
    with pytest.raises(error, match=named):
        call()


@pytest.mark.parametrize('topic', ['t', b't'])
def test_partition_that_comes_twice_is_an_assertion_error(topic):
    with pytest.raises(AssertionError):
        KafkaProtocol.encode_fetch_request([FETCH, FETCH._replace(topic=topic)])


def test_replaced_method_takes_effect_in_both_forms(monkeypatch):
    monkeypatch.setattr(
        KafkaProtocol, '_encode_message_set', classmethod(lambda cls, messages: b'replaced')
    )
    assert KafkaProtocol.encode_produce_request([PRODUCE]).topics == [('t', [(1, b'replaced')])]
    payload = ProduceRequestPayload(b't', 1, [])
    assert b'replaced' in KafkaProtocol.encode_produce_request(b'c', 1, [payload])


# --- decoders -----------------------------------------------------------------------------------


def test_struct_becomes_a_list_of_payload_tuples():
    assert KafkaProtocol.decode_produce_response(
        ProduceResponse_v0([('t', [(0, 0, 5), (1, 6, -1)]), ('u', [(0, 0, 7)])])
    ) == [
        ProduceResponsePayload('t', 0, 0, 5),
        ProduceResponsePayload('t', 1, 6, -1),
        ProduceResponsePayload('u', 0, 0, 7),
    ]
    assert KafkaProtocol.decode_offset_response(OffsetResponse_v0([('t', [(0, 0, [9, 4])])])) == [
        OffsetResponsePayload('t', 0, 0, (9, 4))
    ]
    assert KafkaProtocol.decode_list_offset_response(
        OffsetResponse_v1([('t', [(0, 0, 77, 4)])])
    ) == [ListOffsetResponsePayload('t', 0, 0, 77, 4)]
    assert KafkaProtocol.decode_offset_commit_response(
        OffsetCommitResponse_v0([('t', [(0, 12)])])
    ) == [OffsetCommitResponsePayload('t', 0, 12)]
    assert KafkaProtocol.decode_offset_fetch_response(
        OffsetFetchResponse_v0([('t', [(0, 42, '', 0)])])
    ) == [OffsetFetchResponsePayload('t', 0, 42, '', 0)]
    assert KafkaProtocol.decode_consumer_metadata_response(
        GroupCoordinatorResponse_v0(0, 1, 'h', 9)
    ) == ConsumerMetadataResponse(0, 1, 'h', 9)


def test_metadata_response_is_returned_as_it_is():
    response = object()
    assert KafkaProtocol.decode_metadata_response(response) is response


def test_bytes_are_decoded_as_by_0_9_5():
    data = b'\x00\x00\x00\x01' + ProduceResponse_v0([('t', [(0, 0, 5)])]).encode()
    assert list(KafkaProtocol.decode_produce_response(data)) == [
        ProduceResponsePayload(b't', 0, 0, 5)
    ]


@pytest.mark.parametrize('wrong', ['text', 5, None, object(), []])
def test_decoder_of_neither_is_a_type_error(wrong):
    with pytest.raises(TypeError, match='bytes'):
        list(KafkaProtocol.decode_produce_response(wrong))


def fetched(data):
    (response,) = KafkaProtocol.decode_fetch_response(FetchResponse_v0([('t', [(1, 0, 9, data)])]))
    assert response[:4] == ('t', 1, 0, 9)
    assert isinstance(response.messages, list)
    return response.messages


def test_fetched_messages_are_message_objects():
    (one, two) = fetched(message_set(b'a', b'b'))
    assert (one.offset, one.message.value, one.message.key) == (0, b'a', None)
    assert (two.offset, two.message.value) == (1, b'b')
    assert isinstance(one.message, Message)
    assert repr(one.message).startswith('Message(crc=')
    assert one.message.crc == Message.decode(Message(b'a').encode()).crc
    assert fetched(b'') == fetched(None) == []


def test_compressed_messages_come_with_the_offsets_inside():
    wrapper = KafkaProtocol._encode_message_set([create_gzip_message([(b'a', b'k'), (b'b', None)])])
    found = fetched(wrapper)
    assert [(m.offset, m.message.key, m.message.value) for m in found] == [
        (0, b'k', b'a'),
        (0, None, b'b'),
    ]
    triples = MessageSet.decode(wrapper, bytes_to_read=len(wrapper))
    assert list(KafkaProtocol.decode_message_set(triples)) == found


def test_message_that_is_cut_off_is_a_partial_message_at_the_end():
    data = message_set(b'a', b'b')
    whole, partial = fetched(data[:-1])
    assert whole.message.value == b'a'
    assert isinstance(partial.message, PartialMessage)
    (only,) = fetched(data[:10])
    assert isinstance(only.message, PartialMessage)
    triples = MessageSet.decode(data[:-1], bytes_to_read=len(data) - 1)
    last = list(KafkaProtocol.decode_message_set(triples))[-1]
    assert isinstance(last.message, PartialMessage)


def test_message_that_cannot_be_read_raises_when_it_is_the_first():
    data = bytearray(message_set(b'a', b'b'))
    data[-1] ^= 1
    assert [m.message.value for m in fetched(bytes(data))] == [b'a']
    with pytest.raises(ChecksumError):
        fetched(bytes(data[len(data) // 2 :]))


# --- without the bytes in between ---------------------------------------------------------------


def later(*values):
    """Return messages as a producer passes them to a client that may take them so."""
    return MessagesLater(
        values, [None] * len(values), 0, None, lambda: list(map(create_message, values))
    )


def test_messages_that_may_wait_become_a_set_when_the_request_is_encoded():
    payload = ProduceRequestPayload('t', 1, later(b'v', b'w'))
    request = KafkaProtocol.encode_produce_request([payload])
    (topic,) = request.unwritten().topic_data
    assert topic.partition_data[0].records is payload.messages
    assert payload.messages._made is None
    first = KafkaProtocol._encode_message_set(payload.messages)
    assert request.encode() == ProduceRequest_v0(1, 1000, [('t', [(1, first)])]).encode()


@pytest.mark.parametrize(
    'payload, timeout',
    [
        (ProduceRequestPayload('t', 2**31, later(b'v')), 5),
        (ProduceRequestPayload('t', True, later(b'v')), 5),
        (ProduceRequestPayload('t', 1, later(b'v')), 2**31),
    ],
)
def test_messages_of_an_unusual_request_do_not_wait(payload, timeout):
    request = KafkaProtocol.encode_produce_request([payload], timeout=timeout)
    ((_, ((_, records),)),) = request.topics
    assert isinstance(records, bytes)


def test_messages_do_not_wait_where_their_encoder_is_replaced(monkeypatch):
    monkeypatch.setattr(
        KafkaProtocol, '_encode_message_set', classmethod(lambda cls, messages: b'replaced')
    )
    payload = ProduceRequestPayload('t', 1, later(b'v'))
    assert KafkaProtocol.encode_produce_request([payload]).topics == [('t', [(1, b'replaced')])]


def test_answer_that_was_not_written_gives_the_same_messages():
    columns = [Columns([3, 5], None, [b'a', b'b']), Columns(range(6, 7), [b'k'], [None])]
    unwritten = MessageSetOfRecords(b'', 7, 7, columns)
    assert fetched(unwritten) == fetched(unwritten.data)
    assert [m.offset for m in fetched(unwritten)] == [3, 5, 6]
    fragment = MessageSetOfRecords(message_set(b'a')[:9], 0, 0)
    (only,) = fetched(fragment)
    assert isinstance(only.message, PartialMessage)
