"""Old requests that are not about records, and the rules that decide what is translated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import UnsupportedVersionError
from kafka.protocol import api
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.frames import frame
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.probe import OLD_RELEASES
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.translation import Translator, parse_old_request

# What 4.4.0 serves, of the APIs in question.
NEW = {0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6)}
NOW = 1_700_000_000_000


def old(message, version=0):
    """Parse the bytes that an old program would send, correlation id 5."""
    parsed = parse_old_request(frame(api.encode_request(message, version, 5, 'kafka-python')))
    assert parsed is not None
    assert parsed.message == message
    return parsed


def translate(message, version=0, ranges=NEW):
    return Translator(ranges).translate(old(message, version), NOW)


def answer(translation, message, version, *responses):
    """Return the old answer, read in the old layout."""
    data = translation.answer([on_the_wire(r, translation.version) for r in responses])
    correlation_id, response = api.decode_response(
        api.response_class(message.api_key), data, version
    )
    assert correlation_id == 5
    return response


def on_the_wire(message, version):
    return type(message).decode(message.encode(version), version)


# ---------------------------------------------------------------- what counts as old

METADATA = (
    b'\x00\x00\x00\x1b'  # length
    b'\x00\x03\x00\x00'  # Metadata, version 0
    b'\x00\x00\x00\x05'  # correlation id
    b'\x00\x06client'  # client id
    b'\x00\x00\x00\x01'  # one topic
    b'\x00\x05topic'
)


def test_a_well_formed_old_request_is_recognised():
    parsed = parse_old_request(METADATA)
    assert tuple(parsed.header) == (3, 0, 5, 'client')
    assert parsed.message == MetadataRequest(topics=[MetadataRequestTopic(name='topic')])


@pytest.mark.parametrize('kind', [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_will_do(kind):
    assert parse_old_request(kind(METADATA)) is not None


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'test payload',
        METADATA[:-1],
        METADATA + b'\x00',
        METADATA[4:],
        b'\x00\x00\x00\x1a' + METADATA[4:-1],  # the body ends early, the length agrees
        b'\x00\x00\x00\x1c' + METADATA[4:] + b'\x00',  # too long, the length agrees
        METADATA.replace(b'\x00\x03\x00\x00', b'\x00\x03\x00\x01'),  # a later version
        METADATA.replace(b'\x00\x03\x00\x00', b'\x00\x03\xff\xff'),  # an impossible version
        METADATA.replace(b'\x00\x03\x00\x00', b'\x00\x63\x00\x00'),  # an unknown API
        METADATA.replace(b'topic', b'topi\xff'),  # a name that no broker accepts
    ],
)
def test_everything_else_is_not_recognised(data):
    assert parse_old_request(data) is None


@given(st.binary(max_size=60))
def test_no_bytes_are_an_error(data):
    parse_old_request(data)
    parse_old_request(frame(data))


@given(st.sampled_from(sorted(NEW)), st.integers(0, 3), st.binary(max_size=60))
def test_no_body_is_an_error(key, version, body):
    start = key.to_bytes(2, 'big') + version.to_bytes(2, 'big') + b'\x00\x00\x00\x05\x00\x01c'
    parse_old_request(frame(start + body))


# ---------------------------------------------------------------- what is translated

REQUESTS = [
    (ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 2),
    (FetchRequest(max_wait_ms=1, min_bytes=1, topics=[]), 3),
    (ListOffsetsRequest(replica_id=-1, topics=[]), 0),
    (MetadataRequest(topics=[]), 0),
    (OffsetCommitRequest(group_id='g', topics=[]), 1),
    (OffsetFetchRequest(group_id='g', topics=[]), 1),
    (FindCoordinatorRequest(key='g'), 0),
]


@pytest.mark.parametrize(('message', 'last'), REQUESTS)
def test_a_broker_that_serves_the_version_gets_the_bytes_as_they_are(message, last):
    for version in range(last + 1):
        assert translate(message, version, {message.api_key: (0, last)}) is None


EVERY_VERSION = [(message, v) for message, last in REQUESTS for v in range(last + 1)]


@given(
    st.sampled_from(EVERY_VERSION),
    st.dictionaries(st.integers(0, 10), st.tuples(st.integers(0, 3), st.integers(0, 9))),
)
def test_what_passes_by_its_first_bytes_goes_as_it_is(case, ranges):
    message, version = case
    payload = frame(api.encode_request(message, version, 5, 'kafka-python'))
    translator = Translator(ranges)
    if translator.passes(payload):
        assert translator.translate(parse_old_request(payload), NOW) is None


@pytest.mark.parametrize(('message', 'version'), [c for c in EVERY_VERSION if c[0].api_key > 1])
def test_what_a_broker_serves_passes_by_its_first_bytes(message, version):
    payload = frame(api.encode_request(message, version, 5, 'kafka-python'))
    translator = Translator({message.api_key: (version, version)})
    assert translator.passes(payload)
    assert not translator.passes(payload + b'x')
    assert not translator.passes(payload[:7])
    assert not Translator({message.api_key: (version + 1, version + 2)}).passes(payload)


@pytest.mark.parametrize('message', [message for message, _ in REQUESTS[:2]])
def test_requests_with_records_are_always_looked_at(message):
    payload = frame(api.encode_request(message, 0, 5, 'kafka-python'))
    assert not Translator({0: (0, 2), 1: (0, 3)}).passes(payload)


@pytest.mark.parametrize(('message', 'last'), REQUESTS)
def test_an_api_that_the_broker_lacks_is_an_error_that_names_it(message, last):
    with pytest.raises(
        UnsupportedVersionError, match=type(message).__name__ + '.*does not support'
    ):
        translate(message, 0, {})


@pytest.mark.parametrize(
    ('release', 'message', 'version'),
    [
        ('0.8.0', OffsetCommitRequest(group_id='g', topics=[]), 0),
        ('0.8.1', OffsetFetchRequest(group_id='g', topics=[]), 1),
        ('0.9', ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 2),
    ],
)
def test_a_version_that_an_older_broker_lacks_is_an_error(release, message, version):
    """0.8 and 0.9 would answer in the layout of their own version, or close."""
    with pytest.raises(UnsupportedVersionError, match='in version %d' % version):
        translate(message, version, OLD_RELEASES[release])


def test_produce_and_fetch_are_raised_where_the_broker_keeps_magic_2():
    """0.11 still serves the old versions, by converting each time."""
    produce, fetch = REQUESTS[0][0], REQUESTS[1][0]
    assert translate(produce, 0, {0: (0, 2)}) is None
    assert translate(produce, 0, {0: (0, 3)}) is not None
    assert translate(fetch, 0, {1: (0, 3)}) is None
    assert translate(fetch, 0, {1: (0, 4)}).version == 4


def test_topics_are_always_named_never_numbered():
    fetch = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
    assert translate(fetch, 0).version == 12
    assert translate(OffsetCommitRequest(group_id='g', topics=[])).version == 9
    assert translate(OffsetFetchRequest(group_id='g', topics=[])).version == 7


def test_only_requests_that_may_have_been_dropped_need_the_brokers_versions():
    needs = {m.api_key for m, _ in REQUESTS if old(m).needs_versions}
    assert needs == {0, 1, 2, 8, 9}


def test_a_fetch_tells_how_many_bytes_it_asks_for():
    parts = [
        FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=size)
        for p, size in enumerate((1000, 500, -1))
    ]
    topics = [FetchTopic(topic='t', partitions=parts), FetchTopic(topic='s', partitions=parts)]
    assert old(FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics)).asked_bytes == 3000
    assert old(MetadataRequest(topics=[])).asked_bytes == 0


def test_repr_tells_what_becomes_of_the_request():
    translation = translate(ListOffsetsRequest(replica_id=-1, topics=[]))
    assert repr(translation) == '<Translation of LIST_OFFSETS v0 to 1 requests of v11>'


# ---------------------------------------------------------------- Metadata, FindCoordinator


def test_the_empty_list_of_topics_becomes_null():
    """Empty meant all topics in version 0 and means none since."""
    translation = translate(MetadataRequest(topics=[]), ranges={3: (1, 9)})
    assert translation.requests == [MetadataRequest(topics=None)]
    assert translation.requests[0].allow_auto_topic_creation


def test_named_topics_and_the_whole_answer_survive():
    request = MetadataRequest(topics=[MetadataRequestTopic(name='t')])
    translation = translate(request, ranges={3: (1, 12)})
    assert (translation.requests, translation.version) == ([request], 12)
    response = MetadataResponse(
        throttle_time_ms=3,
        brokers=[MetadataResponseBroker(node_id=1, host='h', port=9, rack='r')],
        cluster_id='c',
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name='t',
                topic_id=b'0123456789abcdef',
                is_internal=True,
                partitions=[
                    MetadataResponsePartition(
                        error_code=9,
                        partition_index=0,
                        leader_id=1,
                        leader_epoch=4,
                        replica_nodes=[1, 2],
                        isr_nodes=[1],
                        offline_replicas=[2],
                    )
                ],
            )
        ],
    )
    assert answer(translation, request, 0, response) == MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host='h', port=9)],
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name='t',
                partitions=[
                    MetadataResponsePartition(
                        error_code=9,
                        partition_index=0,
                        leader_id=1,
                        replica_nodes=[1, 2],
                        isr_nodes=[1],
                    )
                ],
            )
        ],
    )


def test_the_coordinator_is_found_in_the_last_version_that_asks_for_one():
    request = FindCoordinatorRequest(key='g')
    translation = translate(request, ranges={10: (1, 6)})
    assert (translation.requests, translation.version) == ([request], 3)
    response = FindCoordinatorResponse(error_message='NONE', node_id=1, host='h', port=9)
    got = answer(translation, request, 0, response)
    assert (got.error_code, got.node_id, got.host, got.port) == (0, 1, 'h', 9)


# ---------------------------------------------------------------- ListOffsets


def list_offsets(timestamp, max_num_offsets=5):
    part = ListOffsetsPartition(
        partition_index=3, timestamp=timestamp, max_num_offsets=max_num_offsets
    )
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name='t', partitions=[part])])


def found(offset, error_code=0):
    part = ListOffsetsPartitionResponse(
        partition_index=3, error_code=error_code, offset=offset, timestamp=77, leader_epoch=2
    )
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name='t', partitions=[part])])


def offsets(request, *responses):
    translation = translate(request)
    assert len(translation.requests) == len(responses)
    (topic,) = answer(translation, request, 0, *responses).topics
    (part,) = topic.partitions
    assert (topic.name, part.partition_index) == ('t', 3)
    return part.error_code, part.old_style_offsets


@pytest.mark.parametrize('special', [-1, -2])
def test_both_ends_of_the_log_are_one_question_and_exact(special):
    translation = translate(list_offsets(special))
    (request,) = translation.requests
    assert request.topics[0].partitions == [
        ListOffsetsPartition(partition_index=3, timestamp=special)
    ]
    assert offsets(list_offsets(special), found(42)) == (0, [42])


def test_a_time_needs_both_ends_as_well():
    times = [r.topics[0].partitions[0].timestamp for r in translate(list_offsets(9)).requests]
    assert times == [9, -2, -1]


def test_a_time_within_the_log_gives_the_first_message_not_before_it():
    assert offsets(list_offsets(9), found(20), found(10), found(30)) == (0, [20])


def test_a_time_after_the_last_message_gives_the_end():
    assert offsets(list_offsets(9), found(-1), found(10), found(30)) == (0, [30])


def test_a_time_before_the_first_message_gives_nothing():
    assert offsets(list_offsets(9), found(10), found(10), found(30)) == (0, [])


@pytest.mark.parametrize('most', [0, -1])
def test_who_asks_for_no_offsets_gets_none(most):
    assert offsets(list_offsets(-1, most), found(42)) == (0, [])


def test_errors_come_through_with_no_offsets():
    """43: a log of before 0.10 has no timestamps."""
    assert offsets(list_offsets(-1), found(-1, error_code=6)) == (6, [])
    answers = found(-1, error_code=43), found(10), found(30)
    assert offsets(list_offsets(9), *answers) == (43, [])


def test_a_partition_that_the_broker_left_out_is_an_unknown_error():
    assert offsets(list_offsets(-1), ListOffsetsResponse(topics=[])) == (-1, [])


# ---------------------------------------------------------------- stored offsets


def commit_request(**fields):
    part = OffsetCommitRequestPartition(
        partition_index=3, committed_offset=42, committed_metadata='meta', **fields
    )
    topic = OffsetCommitRequestTopic(name='t', partitions=[part])
    return OffsetCommitRequest(group_id='g', topics=[topic])


def test_a_commit_to_zookeeper_becomes_one_without_membership():
    (request,) = translate(commit_request()).requests
    assert request == commit_request()
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, '')


def test_a_commit_of_version_1_keeps_membership_and_loses_timestamps():
    asked = commit_request(commit_timestamp=5)
    asked.generation_id_or_member_epoch, asked.member_id = 7, 'm'
    (request,) = translate(asked, 1).requests
    assert (request.generation_id_or_member_epoch, request.member_id) == (7, 'm')
    assert request.topics == commit_request().topics


@pytest.mark.parametrize('code', [0, 16, 25, 111])
def test_the_answer_to_a_commit_comes_through_with_any_error_code(code):
    part = OffsetCommitResponsePartition(partition_index=3, error_code=code)
    topic = OffsetCommitResponseTopic(name='t', partitions=[part])
    response = OffsetCommitResponse(topics=[topic])
    assert answer(translate(commit_request()), commit_request(), 0, response) == response


FETCH_OFFSETS = OffsetFetchRequest(
    group_id='g', topics=[OffsetFetchRequestTopic(name='t', partition_indexes=[3])]
)
RANGES_OF_5 = {9: (2, 10)}  # a broker that has dropped version 1 too


def stored(offset, metadata='', error_code=0, top=0):
    part = OffsetFetchResponsePartition(
        partition_index=3, committed_offset=offset, metadata=metadata, error_code=error_code
    )
    topics = [OffsetFetchResponseTopic(name='t', partitions=[part])]
    return OffsetFetchResponse(topics=topics, error_code=top)


def fetched(version, response):
    translation = translate(FETCH_OFFSETS, version, RANGES_OF_5)
    (topic,) = answer(translation, FETCH_OFFSETS, version, response).topics
    (part,) = topic.partitions
    return part.committed_offset, part.metadata, part.error_code


def test_stored_offsets_are_asked_for_by_the_last_version_for_one_group():
    translation = translate(FETCH_OFFSETS)
    assert (translation.requests, translation.version) == ([FETCH_OFFSETS], 7)


@pytest.mark.parametrize('version, metadata', [(0, ''), (1, 'meta')])
def test_a_stored_offset_comes_with_its_metadata_except_from_zookeeper(version, metadata):
    assert fetched(version, stored(42, 'meta')) == (42, metadata, 0)
    assert fetched(version, stored(42, None)) == (42, '', 0)


def test_none_stored_was_error_3_in_zookeeper_and_only_there():
    assert fetched(0, stored(-1)) == (-1, '', 3)
    assert fetched(1, stored(-1)) == (-1, '', 0)


@pytest.mark.parametrize('version', [0, 1])
def test_errors_of_fetched_offsets_come_through(version):
    assert fetched(version, stored(-1, error_code=29)) == (-1, '', 29)
    assert fetched(version, stored(-1, top=14)) == (-1, '', 14)


@pytest.mark.parametrize('version', [0, 1])
def test_an_error_for_the_whole_group_becomes_one_for_each_partition(version):
    assert fetched(version, OffsetFetchResponse(topics=[], error_code=16)) == (-1, '', 16)
    assert fetched(version, OffsetFetchResponse(topics=[])) == (-1, '', -1)
