"""KafkaProtocol of 0.9.5: its requests and answers, bytes split by field."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib

import pytest

import kafka.protocol
import kafka.protocol.legacy
from kafka.errors import (
    ConsumerFetchSizeTooSmall,
    ProtocolError,
)
from kafka.protocol import (
    KafkaProtocol,
    create_message,
)
from kafka.structs import (
    BrokerMetadata,
    ConsumerMetadataResponse,
    FetchRequest,
    Message,
    MetadataResponse,
    OffsetAndMessage,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetRequest,
    OffsetResponse,
    PartitionMetadata,
    ProduceRequest,
    ProduceResponse,
    TopicMetadata,
)


def entry(message, offset=0):
    return struct.pack('>qi', offset, len(message)) + message


def message(value, key=None, attributes=0):
    sized = [
        struct.pack('>i', -1) if f is None else struct.pack('>i', len(f)) + f for f in (key, value)
    ]
    body = b'\x00' + bytes([attributes]) + b''.join(sized)
    return struct.pack('>I', zlib.crc32(body)) + body


# --- requests -----------------------------------------------------------------------------------


def test_header_split_by_field():
    assert KafkaProtocol._encode_message_header(b'client_id', 4, 10) == b''.join(
        [
            b'\x00\x0a',  # API key
            b'\x00\x00',  # API version
            b'\x00\x00\x00\x04',  # correlation id
            b'\x00\x09' + b'client_id',
        ]
    )


def framed(*parts):
    body = b''.join(parts)
    return struct.pack('>i', len(body)) + body


def test_produce_request_split_by_field():
    request = KafkaProtocol.encode_produce_request(
        client_id=b'me',
        correlation_id=2,
        payloads=[
            ProduceRequest(b'topic1', 0, [create_message(b'a'), create_message(b'b')]),
            ProduceRequest(b'topic2', 1, [create_message(b'c')]),
            ProduceRequest(b'topic1', 5, ()),
        ],
        acks=2,
        timeout=100,
    )
    two = entry(message(b'a')) + entry(message(b'b'))
    one = entry(message(b'c'))
    assert request == framed(
        b'\x00\x00' + b'\x00\x00' + b'\x00\x00\x00\x02',  # key, version, correlation id
        b'\x00\x02' + b'me',
        b'\x00\x02',  # acks as given
        b'\x00\x00\x00\x64',  # timeout, ms
        b'\x00\x00\x00\x02',  # topics
        b'\x00\x06' + b'topic1',
        b'\x00\x00\x00\x02',  # partitions
        b'\x00\x00\x00\x00' + struct.pack('>i', len(two)) + two,
        b'\x00\x00\x00\x05' + b'\x00\x00\x00\x00',
        b'\x00\x06' + b'topic2',
        b'\x00\x00\x00\x01',
        b'\x00\x00\x00\x01' + struct.pack('>i', len(one)) + one,
    )


def test_fetch_request_split_by_field():
    request = KafkaProtocol.encode_fetch_request(
        b'me', 3, [FetchRequest(b't', 1, 2**40, 1024)], max_wait_time=2, min_bytes=100
    )
    assert request == framed(
        b'\x00\x01' + b'\x00\x00' + b'\x00\x00\x00\x03' + b'\x00\x02' + b'me',
        b'\xff\xff\xff\xff',  # replica id: a client
        b'\x00\x00\x00\x02',  # longest wait, ms
        b'\x00\x00\x00\x64',  # fewest bytes
        b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x01',
        b'\x00\x00\x00\x01',  # partition
        b'\x00\x00\x01\x00\x00\x00\x00\x00',  # offset
        b'\x00\x00\x04\x00',  # most bytes
    )


def test_offset_request_split_by_field():
    request = KafkaProtocol.encode_offset_request(b'me', 4, [OffsetRequest(b't', 3, -1, 1)])
    assert request == framed(
        b'\x00\x02' + b'\x00\x00' + b'\x00\x00\x00\x04' + b'\x00\x02' + b'me',
        b'\xff\xff\xff\xff',  # replica id: a client
        b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x01',
        b'\x00\x00\x00\x03',  # partition
        b'\xff\xff\xff\xff\xff\xff\xff\xff',  # time: the latest
        b'\x00\x00\x00\x01',  # most offsets
    )


def test_metadata_request_split_by_field():
    head = b'\x00\x03' + b'\x00\x00' + b'\x00\x00\x00\x04' + b'\x00\x03' + b'cid'
    everything = framed(head, b'\x00\x00\x00\x00')
    named = framed(head, b'\x00\x00\x00\x02', b'\x00\x02t1', b'\x00\x02t2')
    assert KafkaProtocol.encode_metadata_request(b'cid', 4) == everything
    assert KafkaProtocol.encode_metadata_request(b'cid', 4, [b't1', b't2']) == named
    assert KafkaProtocol.encode_metadata_request(b'cid', 4, payloads=[b't1', b't2']) == named
    assert KafkaProtocol.encode_metadata_request(b'cid', 4, [b't3'], []) == everything


def test_consumer_metadata_request_split_by_field():
    assert KafkaProtocol.encode_consumer_metadata_request(
        client_id=b'cid', correlation_id=9, payloads=b'group'
    ) == framed(
        b'\x00\x0a' + b'\x00\x00' + b'\x00\x00\x00\x09' + b'\x00\x03' + b'cid',
        b'\x00\x05' + b'group',
    )


def test_offset_commit_request_split_by_field():
    request = KafkaProtocol.encode_offset_commit_request(
        client_id=b'cid',
        correlation_id=42,
        group=b'g',
        payloads=[
            OffsetCommitRequest(b't', 0, 123, None),
            OffsetCommitRequest(b't', 1, 234, b'\xff not text'),
        ],
    )
    assert request == framed(
        b'\x00\x08' + b'\x00\x00' + b'\x00\x00\x00\x2a' + b'\x00\x03' + b'cid',
        b'\x00\x01g',
        b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x02',
        b'\x00\x00\x00\x00' + struct.pack('>q', 123) + b'\xff\xff',  # metadata: null
        b'\x00\x00\x00\x01' + struct.pack('>q', 234) + b'\x00\x0a' + b'\xff not text',
    )


@pytest.mark.parametrize('from_kafka, version', [(False, b'\x00\x00'), (True, b'\x00\x01')])
def test_offset_fetch_request_split_by_field(from_kafka, version):
    request = KafkaProtocol.encode_offset_fetch_request(
        b'cid', 42, b'g', [OffsetFetchRequest(b't', 5)], from_kafka=from_kafka
    )
    assert request == framed(
        b'\x00\x09' + version + b'\x00\x00\x00\x2a' + b'\x00\x03' + b'cid',
        b'\x00\x01g',
        b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x01' + b'\x00\x00\x00\x05',
    )


def test_partition_twice_is_an_assertion_error():
    twice = [FetchRequest(b't', 0, 0, 1), FetchRequest(b't', 0, 5, 1)]
    with pytest.raises(AssertionError):
        KafkaProtocol.encode_fetch_request(b'me', 1, twice)


@pytest.mark.parametrize(
    'encode, argument',
    [
        (lambda: KafkaProtocol.encode_metadata_request('me', 1), 'client_id'),
        (lambda: KafkaProtocol.encode_metadata_request(b'me', 'x'), 'correlation_id'),
        (lambda: KafkaProtocol.encode_metadata_request(b'me', 1, ['t']), 'topics'),
        (lambda: KafkaProtocol.encode_produce_request(b'me', 1, acks='all'), 'acks'),
        (lambda: KafkaProtocol.encode_produce_request(b'me', 1, timeout='1'), 'timeout'),
        (lambda: KafkaProtocol.encode_fetch_request(b'me', 1, min_bytes=None), 'min_bytes'),
        (
            lambda: KafkaProtocol.encode_fetch_request(b'me', 1, [FetchRequest('t', 0, 0, 1)]),
            'topic',
        ),
        (
            lambda: KafkaProtocol.encode_fetch_request(b'me', 1, [FetchRequest(b't', '0', 0, 1)]),
            'partition',
        ),
        (lambda: KafkaProtocol.encode_offset_fetch_request(b'me', 1, 'g', []), 'group'),
        (lambda: KafkaProtocol.encode_consumer_metadata_request(b'me', 1, 'g'), 'the group'),
        (
            lambda: KafkaProtocol.encode_offset_commit_request(
                b'me', 1, b'g', [OffsetCommitRequest(b't', 0, 1, 'text')]
            ),
            'metadata',
        ),
    ],
)
def test_wrong_type_is_a_type_error_that_names_the_argument(encode, argument):
    with pytest.raises(TypeError, match=argument):
        encode()


@pytest.mark.parametrize(
    'encode, argument',
    [
        (lambda: KafkaProtocol.encode_metadata_request(b'me', 2**31), 'correlation_id'),
        (lambda: KafkaProtocol.encode_metadata_request(b'x' * 32768, 1), 'client_id'),
        (lambda: KafkaProtocol.encode_produce_request(b'me', 1, acks=2**15), 'acks'),
        (
            lambda: KafkaProtocol.encode_fetch_request(b'me', 1, [FetchRequest(b't', 0, 2**63, 1)]),
            'offset',
        ),
        (
            lambda: KafkaProtocol.encode_produce_request(
                b'me', 1, [ProduceRequest(b't', 0, [Message(0, 999, None, b'v')])]
            ),
            'message',
        ),
    ],
)
def test_value_out_of_range_is_a_protocol_error_that_names_it(encode, argument):
    with pytest.raises(ProtocolError, match=argument):
        encode()


# --- answers ------------------------------------------------------------------------------------

ID = b'\x00\x00\x00\x02'  # correlation id, not looked at


def test_produce_response_split_by_field():
    answer = b''.join(
        [
            ID,
            b'\x00\x00\x00\x02',  # topics
            b'\x00\x02t1',
            b'\x00\x00\x00\x01',  # partitions
            b'\x00\x00\x00\x00' + b'\x00\x00' + struct.pack('>q', 10),  # partition, error, offset
            b'\x00\x02t2',
            b'\x00\x00\x00\x02',
            b'\x00\x00\x00\x00' + b'\x00\x00' + struct.pack('>q', 20),
            b'\x00\x00\x00\x01' + b'\xff\xff' + struct.pack('>q', -1),
        ]
    )
    assert list(KafkaProtocol.decode_produce_response(answer)) == [
        ProduceResponse(b't1', 0, 0, 10),
        ProduceResponse(b't2', 0, 0, 20),
        ProduceResponse(b't2', 1, -1, -1),
    ]


def fetch_answer(message_set, topic=b't'):
    return b''.join(
        [
            ID,
            b'\x00\x00\x00\x01' + struct.pack('>h', len(topic)) + topic + b'\x00\x00\x00\x01',
            b'\x00\x00\x00\x03' + b'\x00\x00' + struct.pack('>q', 30),  # partition, error, end
            struct.pack('>i', len(message_set)) + message_set,
        ]
    )


def test_fetch_response_split_by_field():
    (found,) = KafkaProtocol.decode_fetch_response(fetch_answer(entry(message(b'v1'), 29)))
    assert found[:4] == (b't', 3, 0, 30)
    assert list(found.messages) == [OffsetAndMessage(29, Message(0, 0, None, b'v1'))]


def test_error_in_a_message_appears_only_while_iterating_over_the_messages():
    (found,) = KafkaProtocol.decode_fetch_response(fetch_answer(b'\x00' * 30))
    with pytest.raises(ProtocolError):
        list(found.messages)
    (found,) = KafkaProtocol.decode_fetch_response(fetch_answer(entry(message(b'v1'))[:-1]))
    with pytest.raises(ConsumerFetchSizeTooSmall):
        list(found.messages)


def test_message_set_may_be_null():
    answer = fetch_answer(b'')[:-4] + b'\xff\xff\xff\xff'
    (found,) = KafkaProtocol.decode_fetch_response(answer)
    assert list(found.messages) == []


def test_offset_response_split_by_field():
    answer = b''.join(
        [
            ID,
            b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x02',
            b'\x00\x00\x00\x02' + b'\x00\x00',  # partition, error
            b'\x00\x00\x00\x02' + struct.pack('>qq', 9, 4),
            b'\x00\x00\x00\x04' + b'\x00\x03',
            b'\x00\x00\x00\x00',
        ]
    )
    assert list(KafkaProtocol.decode_offset_response(answer)) == [
        OffsetResponse(b't', 2, 0, (9, 4)),
        OffsetResponse(b't', 4, 3, ()),
    ]


def test_metadata_response_split_by_field():
    answer = b''.join(
        [
            ID,
            b'\x00\x00\x00\x02',  # brokers
            b'\x00\x00\x00\x02' + b'\x00\x02b2' + b'\x00\x00\x23\x85',  # node, host, port
            b'\x00\x00\x00\x00' + b'\x00\x02b0' + b'\x00\x00\x23\x84',
            b'\x00\x00\x00\x02',  # topics
            b'\x00\x00' + b'\x00\x02t1',
            b'\x00\x00\x00\x02',
            b'\x00\x00' + b'\x00\x00\x00\x00' + b'\x00\x00\x00\x02',  # error, partition, leader
            b'\x00\x00\x00\x02' + b'\x00\x00\x00\x02\x00\x00\x00\x00',  # replicas
            b'\x00\x00\x00\x01' + b'\x00\x00\x00\x02',  # in sync
            b'\x00\x05' + b'\x00\x00\x00\x01' + b'\xff\xff\xff\xff',
            b'\x00\x00\x00\x00' + b'\x00\x00\x00\x00',
            b'\x00\x03' + b'\x00\x02t2' + b'\x00\x00\x00\x00',
        ]
    )
    found = KafkaProtocol.decode_metadata_response(answer)
    assert found == MetadataResponse(
        [BrokerMetadata(2, b'b2', 9093), BrokerMetadata(0, b'b0', 9092)],
        [
            TopicMetadata(
                b't1',
                0,
                [
                    PartitionMetadata(b't1', 0, 2, (2, 0), (2,), 0),
                    PartitionMetadata(b't1', 1, -1, (), (), 5),
                ],
            ),
            TopicMetadata(b't2', 3, []),
        ],
    )
    assert isinstance(found.topics[0].partitions, list)


@pytest.mark.parametrize(('offset', 'error'), [('x', TypeError), (2**63, ProtocolError)])
def test_an_offset_that_is_none_is_named(offset, error):
    with pytest.raises(error, match='offset'):
        list(KafkaProtocol._decode_message(b'12345678', offset))


@pytest.mark.parametrize('payloads', [5, [5], [('t', 0)]])
def test_payloads_that_are_none_are_named(payloads):
    with pytest.raises(TypeError, match='payloads must be tuples with topic and partition'):
        KafkaProtocol.encode_fetch_request(b'me', 1, payloads)


@pytest.mark.parametrize('messages', [None, 5, [5], b'bytes'])
def test_messages_that_are_none_are_named(messages):
    with pytest.raises(TypeError, match='messages must be'):
        KafkaProtocol.encode_produce_request(b'me', 1, [ProduceRequest(b't', 0, messages)])


def test_payloads_of_another_request_are_named():
    with pytest.raises(TypeError, match="payloads.* 'time'"):
        KafkaProtocol.encode_offset_request(b'me', 1, [FetchRequest(b't', 0, 0, 1)])


def test_a_topic_without_name_is_refused():
    answer = (
        struct.pack('>ii', 4, 0)  # correlation id, no brokers
        + struct.pack('>ihhi', 1, 3, -1, 0)  # one topic: error 3, null name, no partitions
    )
    with pytest.raises(ProtocolError, match='name of a topic is null'):
        KafkaProtocol.decode_metadata_response(answer)


def test_consumer_metadata_response_split_by_field():
    answer = ID + b'\x00\x00' + b'\x00\x00\x00\x01' + b'\x00\x04host' + b'\x00\x00\x23\x84'
    found = KafkaProtocol.decode_consumer_metadata_response(answer)
    assert found == ConsumerMetadataResponse(0, 1, b'host', 9092)


def test_offset_commit_response_split_by_field():
    answer = b''.join(
        [
            ID,
            b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x02',
            b'\x00\x00\x00\x02' + b'\x00\x00',
            b'\x00\x00\x00\x04' + b'\x00\x03',
        ]
    )
    assert list(KafkaProtocol.decode_offset_commit_response(answer)) == [
        OffsetCommitResponse(b't', 2, 0),
        OffsetCommitResponse(b't', 4, 3),
    ]


def test_offset_fetch_response_split_by_field():
    answer = b''.join(
        [
            ID,
            b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x02',
            b'\x00\x00\x00\x02' + struct.pack('>q', 4) + b'\x00\x04meta' + b'\x00\x00',
            b'\x00\x00\x00\x04' + struct.pack('>q', -1) + b'\x00\x00' + b'\x00\x03',
        ]
    )
    assert list(KafkaProtocol.decode_offset_fetch_response(answer)) == [
        OffsetFetchResponse(b't', 2, 4, b'meta', 0),
        OffsetFetchResponse(b't', 4, -1, b'', 3),
    ]


def test_answers_need_bytes():
    with pytest.raises(TypeError, match='data must be bytes, not str'):
        list(KafkaProtocol.decode_produce_response('text'))


def test_bytes_behind_an_answer_are_ignored():
    """An answer of version 1 is one of version 0 with the throttle time behind it."""
    answer = ID + b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x01'
    answer += b'\x00\x00\x00\x02' + b'\x00\x00' + struct.pack('>q', 5) + b'\x00\x00\x00\x63'
    assert list(KafkaProtocol.decode_produce_response(answer)) == [ProduceResponse(b't', 2, 0, 5)]


# --- the package ----------------------------------------------------------------------------------


def test_names_of_the_package_are_those_of_the_module():
    for name in kafka.protocol.__all__:
        assert getattr(kafka.protocol, name) is getattr(kafka.protocol.legacy, name)
        assert name in dir(kafka.protocol)
    assert kafka.protocol.ALL_CODECS == (0, 1, 2)
    assert kafka.protocol.ATTRIBUTE_CODEC_MASK == 3
    with pytest.raises(AttributeError, match='no_such_name'):
        kafka.protocol.no_such_name  # noqa: B018 - the look-up is the test


def test_declared_messages_do_without_this_module():
    code = 'import sys, kafka.protocol.api; sys.exit("kafka.protocol.legacy" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code]).returncode == 0
