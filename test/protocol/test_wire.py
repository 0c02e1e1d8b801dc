"""What a declared message can do, and what its bytes look like."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka.errors import ProtocolError
from kafka.protocol.admin.tokens import RenewDelegationTokenRequest
from kafka.protocol.admin.users import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.fetch import (
    DivergingEpoch,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka.protocol.metadata import Cursor, DescribeTopicPartitionsRequest, MetadataRequest
from kafka.protocol.metadata import TopicRequest as TopicToDescribe
from kafka.protocol.primitives import Pieces
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.sasl import SaslAuthenticateRequest
from kafka.protocol.schema import ZERO_UUID


def heartbeat(**changes):
    return HeartbeatRequest(
        **{'group_id': 'g', 'generation_id': 7, 'member_id': 'm', **changes},
    )


# --- bytes --------------------------------------------------------------------------------------


def test_a_classic_version_looks_like_this():
    assert heartbeat(group_instance_id=None).encode(3) == b''.join(
        [
            b'\x00\x01g',  # group_id
            b'\x00\x00\x00\x07',  # generation_id
            b'\x00\x01m',  # member_id
            b'\xff\xff',  # group_instance_id: null
        ]
    )


@pytest.mark.parametrize('version', [4, 12])
def test_records_in_pieces_are_written_as_they_are(version):
    pieces = [b'first', bytearray(b'second')]

    def response(records):
        partitions = [PartitionData(3, 0, 5, records=records)]
        topic = FetchableTopicResponse(topic='t', partitions=partitions)
        return FetchResponse(responses=[topic])

    parts = response(Pieces(pieces)).encode_parts(version)
    assert b''.join(parts) == response(b'firstsecond').encode(version)
    assert all(any(part is piece for part in parts) for piece in pieces)
    with pytest.raises(ProtocolError):
        response('text').encode_parts(version)


def test_a_flexible_version_looks_like_this():
    assert heartbeat(group_instance_id='i').encode(4) == b''.join(
        [
            b'\x02g',  # group_id: its length plus 1
            b'\x00\x00\x00\x07',  # generation_id
            b'\x02m',  # member_id
            b'\x02i',  # group_instance_id
            b'\x00',  # no tagged fields
        ]
    )


def test_tagged_fields_are_written_by_tag_and_only_when_they_say_something():
    request = FetchRequest(max_wait_ms=1, min_bytes=2, topics=[])
    start = b''.join(
        [
            b'\x00\x00\x00\x01',  # max_wait_ms
            b'\x00\x00\x00\x02',  # min_bytes
            b'\x7f\xff\xff\xff',  # max_bytes
            b'\x00',  # isolation_level
            b'\x00\x00\x00\x00',  # session_id
            b'\xff\xff\xff\xff',  # session_epoch
            b'\x01',  # topics: none
            b'\x01',  # forgotten_topics_data: none
            b'\x01',  # rack_id: empty
        ]
    )
    assert request.encode(15) == start + b'\x00'
    request.replica_state.replica_id = 5
    request.cluster_id = 'c'
    request.unknown_tags = {40: b'new'}
    assert request.encode(15) == start + b''.join(
        [
            b'\x03',  # three tagged fields
            b'\x00\x02' + b'\x02c',  # cluster_id: tag 0, 2 bytes
            b'\x01\x0d' + b'\x00\x00\x00\x05' + b'\xff' * 8 + b'\x00',  # replica_state
            b'\x28\x03' + b'new',  # tag 40, which this declaration doesn't know
        ]
    )


def test_a_nullable_struct_has_a_byte_before_it():
    topic = TopicToDescribe('t')
    request = DescribeTopicPartitionsRequest(topics=[topic], response_partition_limit=9)
    start = b'\x02' + b'\x02t\x00' + b'\x00\x00\x00\x09'  # topics, response_partition_limit
    assert request.encode(0) == start + b'\xff' + b'\x00'
    request.cursor = Cursor('t', 3)
    assert request.encode(0) == start + b'\x01' + b'\x02t\x00\x00\x00\x03\x00' + b'\x00'


def test_an_unknown_tagged_field_comes_back_as_it_was():
    data = heartbeat().encode(4)[:-1] + b'\x01' + b'\x63\x03abc'
    request = HeartbeatRequest.decode(data, 4)
    assert request.unknown_tags == {99: b'abc'}
    assert request.encode(4) == data
    assert request != heartbeat()


# --- records ------------------------------------------------------------------------------------


def fetched(records):
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=5, records=records)
    topics = [FetchableTopicResponse(topic='t', partitions=[partition])]
    return FetchResponse(responses=topics)


def test_records_are_views_into_what_was_decoded():
    data = bytearray(fetched(b'records').encode(0))
    records = FetchResponse.decode(data, 0).responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records == b'records'
    data[-1:] = b'X'
    assert bytes(records) == b'recordX'


def test_records_are_written_from_any_buffer():
    for records in (b'abc', bytearray(b'abc'), memoryview(b'abc'), memoryview(b'xabcx')[1:4]):
        topic = TopicProduceData(name='t', partition_data=[PartitionProduceData(0, records)])
        request = ProduceRequest(acks=1, timeout_ms=2, topic_data=[topic])
        assert request.encode(0) == b''.join(
            [
                b'\x00\x01',  # acks
                b'\x00\x00\x00\x02',  # timeout_ms
                b'\x00\x00\x00\x01' + b'\x00\x01t',  # one topic: its name
                b'\x00\x00\x00\x01' + b'\x00\x00\x00\x00',  # one partition: its index
                b'\x00\x00\x00\x03' + b'abc',  # records
            ]
        )


def test_null_records_are_none():
    assert FetchResponse.decode(fetched(None).encode(0), 0) == fetched(None)


@pytest.mark.parametrize('wrap', [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_can_be_decoded(wrap):
    for version in (3, 4):
        assert HeartbeatRequest.decode(wrap(heartbeat().encode(version)), version) == heartbeat()


def test_a_body_may_begin_behind_something_else():
    data = b'header' + heartbeat().encode(4)
    assert HeartbeatRequest.decode_from(data, 6, 4) == heartbeat()


# --- construction -------------------------------------------------------------------------------


def test_fields_are_given_by_name_or_in_the_order_of_the_declaration():
    assert HeartbeatRequest('g', 7, 'm') == heartbeat()
    assert HeartbeatRequest('g', 7, member_id='m', group_instance_id='i') == heartbeat(
        group_instance_id='i'
    )


@pytest.mark.parametrize(
    'values, named, words',
    [
        ((), {}, 'HeartbeatRequest needs group_id'),
        (('g',), {'member_id': 'm'}, 'HeartbeatRequest needs generation_id'),
        (('g', 7, 'm'), {'groop': 1}, 'unexpected keyword argument .groop'),
        (('g', 7, 'm'), {'group_id': 'g'}, 'multiple values for argument .group_id'),
        (('g', 7, 'm', 'i', 'x'), {}, 'takes from 1 to 5 positional arguments but 6 were given'),
    ],
)
def test_wrong_arguments_are_refused_by_name(values, named, words):
    with pytest.raises(TypeError, match=words):
        HeartbeatRequest(*values, **named)


def test_only_declared_fields_can_be_set():
    with pytest.raises(AttributeError):
        heartbeat().groop_id = 'typo'


def test_default_lists_and_structs_are_made_anew_each_time():
    one, other = (FetchRequest(max_wait_ms=1, min_bytes=1, topics=[]) for _ in range(2))
    one.forgotten_topics_data.append('changed')
    one.replica_state.replica_id = 5
    assert other.forgotten_topics_data == []
    assert other.replica_state.replica_id == -1


def test_absent_structs_are_made_anew_each_time_when_read():
    for version in (4, 12):
        data = fetched(None)
        data.responses[0].partitions *= 2
        first, second = FetchResponse.decode(data.encode(version), version).responses[0].partitions
        first.current_leader.leader_id = 1
        first.diverging_epoch = DivergingEpoch(epoch=2, end_offset=3)
        assert second.current_leader == LeaderIdAndEpoch()
        assert second.diverging_epoch == DivergingEpoch(-1, -1)


def test_lists_may_be_given_as_any_sequence():
    topics = [
        FetchTopic('t', partitions=(FetchPartition(1, fetch_offset=2, partition_max_bytes=3),))
    ]
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=tuple(topics))
    assert FetchRequest.decode(request.encode(4), 4).topics[0].partitions[0].fetch_offset == 2


def test_messages_can_be_copied_and_pickled():
    for made in (copy.deepcopy(heartbeat()), pickle.loads(pickle.dumps(heartbeat()))):
        assert made == heartbeat()


# --- equality and repr --------------------------------------------------------------------------


def test_messages_are_equal_when_their_fields_are():
    assert heartbeat() == heartbeat()
    assert heartbeat() != heartbeat(generation_id=8)
    assert heartbeat() != 'something else'
    assert FetchTopic('t', partitions=[]) != ListOffsetsTopic('t', partitions=[])


def test_messages_can_not_be_hashed_because_they_can_change():
    with pytest.raises(TypeError, match='unhashable'):
        hash(heartbeat())


def test_repr_shows_every_field():
    assert repr(heartbeat()) == (
        "HeartbeatRequest(group_id='g', generation_id=7, member_id='m', group_instance_id=None)"
    )


def test_repr_names_unknown_tags_without_their_bytes():
    request = heartbeat()
    request.unknown_tags = {9: b'payload'}
    assert repr(request).endswith('group_instance_id=None, unknown_tags=[9])')


def test_repr_never_shows_secrets_or_records():
    upsertion = ScramCredentialUpsertion('user', 1, 4096, salt=b'canary', salted_password=b'canary')
    for message in (
        SaslAuthenticateRequest(auth_bytes=b'canary'),
        AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]),
        RenewDelegationTokenRequest(hmac=b'canary', renew_period_ms=1),
        fetched(b'canary'),
    ):
        assert 'canary' not in repr(message)
    assert repr(SaslAuthenticateRequest(b'x')) == 'SaslAuthenticateRequest(auth_bytes=<hidden>)'
    assert 'records=<6 bytes>' in repr(fetched(b'canary'))


# --- versions that can't carry a value ----------------------------------------------------------


def test_a_value_that_a_version_can_not_carry_is_refused_by_name():
    with pytest.raises(ProtocolError, match=r'HeartbeatRequest.group_instance_id .* version 2'):
        heartbeat(group_instance_id='i').encode(2)


def test_the_default_is_no_value():
    assert heartbeat(group_instance_id=None).encode(2) == heartbeat().encode(2)


def test_an_ignorable_value_is_dropped():
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=9, timestamp=-1)
    topics = [ListOffsetsTopic('t', partitions=[partition])]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    read = ListOffsetsRequest.decode(request.encode(1), 1)
    assert read.topics[0].partitions[0].current_leader_epoch == -1


def test_unknown_tags_need_a_flexible_version():
    request = heartbeat()
    request.unknown_tags = {9: b''}
    with pytest.raises(ProtocolError, match=r'HeartbeatRequest.unknown_tags .* version 3'):
        request.encode(3)


def test_an_unknown_tag_may_not_repeat_a_declared_one():
    request = FetchRequest(max_wait_ms=1, min_bytes=2, topics=[], cluster_id='c')
    request.unknown_tags = {0: b''}
    with pytest.raises(ProtocolError, match='repeats a declared tag'):
        request.encode(12)


def test_absent_fields_read_as_their_default():
    request = FetchRequest.decode(FetchRequest(max_wait_ms=1, min_bytes=1, topics=[]).encode(0), 0)
    assert (request.max_bytes, request.session_epoch, request.rack_id) == (0x7FFFFFFF, -1, '')
    topic = FetchTopic.fields[1]
    assert (topic.name, topic.default) == ('topic_id', ZERO_UUID)


# --- what a class tells about itself ------------------------------------------------------------


def test_a_class_knows_its_key_versions_and_route():
    assert HeartbeatRequest.api_key == 12
    assert (HeartbeatRequest.min_version, HeartbeatRequest.max_version) == (0, 4)
    assert HeartbeatRequest.flexible_from == 4
    assert HeartbeatRequest.route.name == 'GROUP_COORDINATOR'
    assert [HeartbeatRequest.is_flexible(version) for version in (3, 4)] == [False, True]


def test_the_code_can_be_read():
    assert 'message.group_id = data[pos:stop].decode' in HeartbeatRequest.decode_source(0)
    assert 'raw = message.group_id' in HeartbeatRequest.encode_source(0)


def test_the_latest_client_tells_its_software():
    request = ApiVersionsRequest('kafka-evergreen', '1.0')
    assert ApiVersionsRequest.decode(request.encode(3), 3) == request
    assert MetadataRequest(topics=None).encode(1) == b'\xff\xff\xff\xff'


@pytest.mark.parametrize('version', [None, '0', 0.5])
def test_a_version_that_is_no_integer_is_named(version):
    for call in (
        lambda: MetadataRequest(topics=[]).encode(version),
        lambda: MetadataRequest.decode(b'', version),
        lambda: MetadataRequest.encode_source(version),
    ):
        with pytest.raises(TypeError, match='version must be an int'):
            call()


def test_unknown_tags_are_changed_by_assigning_them():
    """All messages without any share one empty mapping."""
    request = heartbeat()
    for change in (
        lambda: request.unknown_tags.update({9: b''}),
        lambda: request.unknown_tags.setdefault(9, b''),
        lambda: request.unknown_tags.__setitem__(9, b''),
    ):
        with pytest.raises(TypeError, match='assign a new dict'):
            change()
    assert heartbeat().unknown_tags == {}
