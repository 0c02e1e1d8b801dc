"""KafkaProtocol against the declared messages of the same layouts, and against arbitrary bytes."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka.codec import gzip_encode
from kafka.errors import (
    BufferUnderflowError,
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    ProtocolError,
    UnsupportedCodecError,
)
from kafka.protocol import (
    KafkaProtocol,
    commit,
    create_message,
    find_coordinator,
    list_offsets,
    metadata,
    produce,
)
from kafka.protocol import fetch as fetch_messages
from kafka.structs import (
    FetchRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetRequest,
    ProduceRequest,
)

DOCUMENTED = (BufferUnderflowError, ProtocolError)
DOCUMENTED_FOR_SETS = (
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    ProtocolError,
    UnsupportedCodecError,
)
ID = b'\x00\x00\x00\x02'  # correlation id, not looked at

names = st.text(min_size=1, max_size=12)
partitions = st.integers(0, 2**31 - 1)
topics = st.dictionaries(
    names, st.lists(partitions, min_size=1, max_size=4, unique=True), max_size=3
)
int16, int32 = st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
quick = settings(max_examples=40, deadline=None)


def body(request):
    """Return what stands behind the header of a request of the client ``b'me'``."""
    assert struct.unpack('>i', request[:4]) == (len(request) - 4,)
    return request[4 + 8 + 2 + 2 :]


def flat(topics):
    return [(topic.encode(), p) for topic, numbers in topics.items() for p in numbers]


def same(request, declared_class, version=0):
    """Return a request as the declared message, which must encode to the same bytes."""
    declared = declared_class.decode(body(request), version)
    assert declared.encode(version) == body(request)
    return declared


# --- requests -----------------------------------------------------------------------------------


@quick
@given(topics, int16, int32)
def test_produce_request(topics, acks, timeout):
    payloads = [ProduceRequest(t, p, [create_message(t)]) for t, p in flat(topics)]
    request = KafkaProtocol.encode_produce_request(b'me', 1, payloads, acks, timeout)
    declared = same(request, produce.ProduceRequest)
    assert (declared.acks, declared.timeout_ms) == (acks, timeout)
    found = {t.name: [p.index for p in t.partition_data] for t in declared.topic_data}
    assert found == topics
    for topic in declared.topic_data:
        message_set = KafkaProtocol._encode_message_set([create_message(topic.name.encode())])
        assert [bytes(p.records) for p in topic.partition_data] == (
            [message_set] * len(topic.partition_data)
        )


@quick
@given(topics, int32, int32, int32, int64)
def test_fetch_request(topics, max_wait_time, min_bytes, max_bytes, offset):
    payloads = [FetchRequest(t, p, offset, max_bytes) for t, p in flat(topics)]
    request = KafkaProtocol.encode_fetch_request(b'me', 1, payloads, max_wait_time, min_bytes)
    declared = same(request, fetch_messages.FetchRequest)
    assert (declared.replica_id, declared.max_wait_ms) == (-1, max_wait_time)
    assert declared.min_bytes == min_bytes
    assert {t.topic: [p.partition for p in t.partitions] for t in declared.topics} == topics
    for topic in declared.topics:
        for partition in topic.partitions:
            assert (partition.fetch_offset, partition.partition_max_bytes) == (offset, max_bytes)


@quick
@given(topics, int64, int32)
def test_offset_request(topics, time, max_offsets):
    payloads = [OffsetRequest(t, p, time, max_offsets) for t, p in flat(topics)]
    request = KafkaProtocol.encode_offset_request(b'me', 1, payloads)
    declared = same(request, list_offsets.ListOffsetsRequest)
    assert declared.replica_id == -1
    assert {t.name: [p.partition_index for p in t.partitions] for t in declared.topics} == topics
    for topic in declared.topics:
        for partition in topic.partitions:
            assert (partition.timestamp, partition.max_num_offsets) == (time, max_offsets)


@quick
@given(st.lists(names, max_size=4), names)
def test_requests_to_any_broker(topics, group):
    named = [topic.encode() for topic in topics]
    request = KafkaProtocol.encode_metadata_request(b'me', 1, named)
    assert [t.name for t in same(request, metadata.MetadataRequest).topics] == topics
    request = KafkaProtocol.encode_consumer_metadata_request(b'me', 1, group.encode())
    assert same(request, find_coordinator.FindCoordinatorRequest).key == group


@quick
@given(topics, names, int64, st.none() | names)
def test_offset_commit_request(topics, group, offset, note):
    stored = None if note is None else note.encode()
    payloads = [OffsetCommitRequest(t, p, offset, stored) for t, p in flat(topics)]
    request = KafkaProtocol.encode_offset_commit_request(b'me', 1, group.encode(), payloads)
    declared = same(request, commit.OffsetCommitRequest)
    assert declared.group_id == group
    assert {t.name: [p.partition_index for p in t.partitions] for t in declared.topics} == topics
    for topic in declared.topics:
        for partition in topic.partitions:
            assert partition.committed_offset == offset
            assert partition.committed_metadata == note


@quick
@given(topics, names, st.booleans())
def test_offset_fetch_request(topics, group, from_kafka):
    payloads = [OffsetFetchRequest(t, p) for t, p in flat(topics)]
    request = KafkaProtocol.encode_offset_fetch_request(
        b'me', 1, group.encode(), payloads, from_kafka
    )
    declared = same(request, commit.OffsetFetchRequest, int(from_kafka))
    assert declared.group_id == group
    assert {t.name: t.partition_indexes for t in declared.topics} == topics


# --- answers ------------------------------------------------------------------------------------


def answer(topics, topic_class, partition_class, fields, **names_of):
    """Return (topic, partition object) pairs and the list of declared topics that holds them."""
    rows, declared = [], []
    for topic, numbers in topics.items():
        items = [partition_class(**{names_of['index']: n, **fields}) for n in numbers]
        declared.append(topic_class(**{names_of['name']: topic, names_of['items']: items}))
        rows += [(topic.encode(), item) for item in items]
    return rows, declared


@quick
@given(topics, int16, int64)
def test_produce_response(topics, error, offset):
    rows, declared = answer(
        topics,
        produce.TopicProduceResponse,
        produce.PartitionProduceResponse,
        {'error_code': error, 'base_offset': offset},
        index='index',
        name='name',
        items='partition_responses',
    )
    data = produce.ProduceResponse(responses=declared).encode(0)
    assert list(KafkaProtocol.decode_produce_response(ID + data)) == [
        (topic, row.index, error, offset) for topic, row in rows
    ]


@quick
@given(topics, int16, int64, names)
def test_fetch_response(topics, error, end, value):
    message_set = KafkaProtocol._encode_message_set([create_message(value.encode())])
    rows, declared = answer(
        topics,
        fetch_messages.FetchableTopicResponse,
        fetch_messages.PartitionData,
        {'error_code': error, 'high_watermark': end, 'records': message_set},
        index='partition_index',
        name='topic',
        items='partitions',
    )
    data = fetch_messages.FetchResponse(responses=declared).encode(0)
    found = list(KafkaProtocol.decode_fetch_response(ID + data))
    assert [f[:4] for f in found] == [
        (topic, row.partition_index, error, end) for topic, row in rows
    ]
    for response in found:
        assert list(response.messages) == [(0, create_message(value.encode()))]


@quick
@given(topics, int16, st.lists(int64, max_size=4))
def test_offset_response(topics, error, offsets):
    rows, declared = answer(
        topics,
        list_offsets.ListOffsetsTopicResponse,
        list_offsets.ListOffsetsPartitionResponse,
        {'error_code': error, 'old_style_offsets': offsets},
        index='partition_index',
        name='name',
        items='partitions',
    )
    data = list_offsets.ListOffsetsResponse(topics=declared).encode(0)
    assert list(KafkaProtocol.decode_offset_response(ID + data)) == [
        (topic, row.partition_index, error, tuple(offsets)) for topic, row in rows
    ]


@quick
@given(topics, int16, int64, st.none() | names)
def test_responses_about_stored_offsets(topics, error, offset, note):
    keys = {'index': 'partition_index', 'name': 'name', 'items': 'partitions'}
    rows, declared = answer(
        topics,
        commit.OffsetCommitResponseTopic,
        commit.OffsetCommitResponsePartition,
        {'error_code': error},
        **keys,
    )
    data = commit.OffsetCommitResponse(topics=declared).encode(0)
    assert list(KafkaProtocol.decode_offset_commit_response(ID + data)) == [
        (topic, row.partition_index, error) for topic, row in rows
    ]

    rows, declared = answer(
        topics,
        commit.OffsetFetchResponseTopic,
        commit.OffsetFetchResponsePartition,
        {'error_code': error, 'committed_offset': offset, 'metadata': note},
        **keys,
    )
    data = commit.OffsetFetchResponse(topics=declared).encode(0)
    stored = None if note is None else note.encode()
    assert list(KafkaProtocol.decode_offset_fetch_response(ID + data)) == [
        (topic, row.partition_index, offset, stored, error) for topic, row in rows
    ]


@quick
@given(topics, int16, st.lists(int32, max_size=3), names)
def test_metadata_response(topics, error, nodes, host):
    rows, declared = answer(
        topics,
        lambda **fields: metadata.MetadataResponseTopic(error_code=error, **fields),
        metadata.MetadataResponsePartition,
        {'error_code': error, 'leader_id': 7, 'replica_nodes': nodes, 'isr_nodes': nodes[:1]},
        index='partition_index',
        name='name',
        items='partitions',
    )
    brokers = [metadata.MetadataResponseBroker(node_id=n, host=host, port=n) for n in nodes]
    data = metadata.MetadataResponse(brokers=brokers, topics=declared).encode(0)
    found = KafkaProtocol.decode_metadata_response(ID + data)
    assert found.brokers == [(node, host.encode(), node) for node in nodes]
    assert [(t.topic, t.error) for t in found.topics] == [(t.encode(), error) for t in topics]
    assert [partition for topic in found.topics for partition in topic.partitions] == [
        (topic, row.partition_index, 7, tuple(nodes), tuple(nodes[:1]), error)
        for topic, row in rows
    ]


@quick
@given(int16, int32, names, int32)
def test_consumer_metadata_response(error, node, host, port):
    declared = find_coordinator.FindCoordinatorResponse(
        error_code=error, node_id=node, host=host, port=port
    )
    found = KafkaProtocol.decode_consumer_metadata_response(ID + declared.encode(0))
    assert found == (error, node, host.encode(), port)


# --- bytes that no broker sends -------------------------------------------------------------------

DECODERS = [
    KafkaProtocol.decode_produce_response,
    KafkaProtocol.decode_fetch_response,
    KafkaProtocol.decode_offset_response,
    KafkaProtocol.decode_offset_commit_response,
    KafkaProtocol.decode_offset_fetch_response,
    KafkaProtocol.decode_metadata_response,
    KafkaProtocol.decode_consumer_metadata_response,
]


def taken_apart(decode, data):
    """Decode everything there is to decode."""
    decoded = decode(data)
    for response in decoded if not isinstance(decoded, tuple) else ():
        if hasattr(response, 'messages'):
            try:
                list(response.messages)
            except DOCUMENTED_FOR_SETS:
                pass


def stretched(data):
    """Strategy for bytes that are nearly `data`: some replaced, the end cut off or extended."""
    changes = st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)

    def change(changes, end, tail):
        changed = bytearray(data)
        for position, value in changes:
            changed[position] = value
        return bytes(changed[:end]) + tail

    return st.builds(change, changes, st.integers(0, len(data)), st.binary(max_size=8))


SET = KafkaProtocol._encode_message_set([create_message(b'v1', b'k1'), create_message(b'v2')])
FETCHED = b''.join(
    [
        ID,
        b'\x00\x00\x00\x01' + b'\x00\x01t' + b'\x00\x00\x00\x01',
        b'\x00\x00\x00\x03' + b'\x00\x00' + struct.pack('>q', 30),
        struct.pack('>i', len(SET)) + SET,
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(DECODERS), st.binary(max_size=80) | stretched(FETCHED))
@example(KafkaProtocol.decode_metadata_response, ID + b'\x7f\xff\xff\xff' * 8)
@example(KafkaProtocol.decode_metadata_response, ID + b'\xff\xff\xff\xff' * 8)
@example(KafkaProtocol.decode_produce_response, ID + b'\x00\x00\x00\x01\x80\x00' + b'\x00' * 20)
def test_any_bytes_decode_or_raise_what_is_documented(decode, data):
    try:
        taken_apart(decode, data)
    except DOCUMENTED:
        pass


@pytest.mark.parametrize('decode', DECODERS)
def test_number_of_items_beyond_the_bytes_is_not_believed(decode):
    """At once, that is: no list of two thousand million items is begun."""
    with pytest.raises(DOCUMENTED):
        taken_apart(decode, ID + b'\x7f\xff\xff\xff' + b'\x00' * 6)


@pytest.mark.parametrize('decode', DECODERS[:-1])
def test_negative_number_of_items_is_malformed(decode):
    with pytest.raises(ProtocolError):
        taken_apart(decode, ID + b'\xff\xff\xff\xff' * 3)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | stretched(SET))
def test_any_message_set_decodes_or_raises_what_is_documented(data):
    try:
        list(KafkaProtocol._decode_message_set_iter(data))
    except DOCUMENTED_FOR_SETS:
        pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | stretched(SET[12:]))
def test_any_message_decodes_or_raises_what_is_documented(data):
    try:
        list(KafkaProtocol._decode_message(data, 0))
    except (BufferUnderflowError, *DOCUMENTED_FOR_SETS):
        pass


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 255), st.binary(max_size=60) | stretched(gzip_encode(SET)))
def test_any_compressed_message_decodes_or_raises_what_is_documented(attributes, value):
    """The CRC is right, so what is inside gets looked at."""
    rest = bytes([0, attributes]) + b'\xff\xff\xff\xff' + struct.pack('>i', len(value)) + value
    try:
        list(KafkaProtocol._decode_message(struct.pack('>I', zlib.crc32(rest)) + rest, 0))
    except DOCUMENTED_FOR_SETS:
        pass
