"""The request and response classes of 1.x: names, fields and bytes, and their declared messages."""

from __future__ import annotations

import io
import pickle
import struct
from importlib import import_module

import pytest

from kafka.errors import ProtocolError
from kafka.protocol import commit, fetch, group, metadata, offset, produce, struct_classes
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    DescribeGroupsResponse,
    ListPartitionReassignmentsRequest,
    SaslAuthenticateRequest,
)
from kafka.protocol.api import Request, RequestHeader, Response
from kafka.protocol.message import Message, MessageSet, PartialMessage
from kafka.protocol.types import Array, Int16, Int32, Int64, Schema, String
from kafka.protocol.versioned import MetadataRequest_v0, MetadataResponse_v0

# What 1.2.1 had: module, list, API key, fields by version.
OF_1_2_1 = [
    ('admin', 'ApiVersionRequest', 18, ['']),
    ('admin', 'ApiVersionResponse', 18, ['error_code api_versions']),
    ('admin', 'ListGroupsRequest', 16, ['']),
    ('admin', 'ListGroupsResponse', 16, ['error_code groups']),
    ('admin', 'DescribeGroupsRequest', 15, ['groups']),
    ('admin', 'DescribeGroupsResponse', 15, ['groups']),
    (
        'commit',
        'OffsetCommitRequest',
        8,
        [
            'consumer_group topics',
            'consumer_group consumer_group_generation_id consumer_id topics',
            'consumer_group consumer_group_generation_id consumer_id retention_time topics',
        ],
    ),
    ('commit', 'OffsetCommitResponse', 8, ['topics'] * 3),
    ('commit', 'OffsetFetchRequest', 9, ['consumer_group topics'] * 2),
    ('commit', 'OffsetFetchResponse', 9, ['topics'] * 2),
    ('commit', 'GroupCoordinatorRequest', 10, ['consumer_group']),
    ('commit', 'GroupCoordinatorResponse', 10, ['error_code coordinator_id host port']),
    ('fetch', 'FetchRequest', 1, ['replica_id max_wait_time min_bytes topics'] * 3),
    ('fetch', 'FetchResponse', 1, ['topics'] + ['throttle_time_ms topics'] * 2),
    (
        'group',
        'JoinGroupRequest',
        11,
        ['group session_timeout member_id protocol_type group_protocols'],
    ),
    (
        'group',
        'JoinGroupResponse',
        11,
        ['error_code generation_id group_protocol leader_id member_id members'],
    ),
    ('group', 'SyncGroupRequest', 14, ['group generation_id member_id group_assignment']),
    ('group', 'SyncGroupResponse', 14, ['error_code member_assignment']),
    ('group', 'HeartbeatRequest', 12, ['group generation_id member_id']),
    ('group', 'HeartbeatResponse', 12, ['error_code']),
    ('group', 'LeaveGroupRequest', 13, ['group member_id']),
    ('group', 'LeaveGroupResponse', 13, ['error_code']),
    ('metadata', 'MetadataRequest', 3, ['topics']),
    ('metadata', 'MetadataResponse', 3, ['brokers topics']),
    ('offset', 'OffsetRequest', 2, ['replica_id topics']),
    ('offset', 'OffsetResponse', 2, ['topics']),
    ('produce', 'ProduceRequest', 0, ['required_acks timeout topics'] * 3),
    (
        'produce',
        'ProduceResponse',
        0,
        ['topics', 'topics throttle_time_ms', 'topics thottle_time_ms'],
    ),
]


@pytest.mark.parametrize(('module', 'name', 'key', 'versions'), OF_1_2_1)
def test_lists_of_1_2_1(module, name, key, versions):
    """Each version is a class of the right name with the right fields, in a list and by itself."""
    home = import_module('kafka.protocol.' + module)
    listed = getattr(home, name)
    assert len(listed) >= len(versions)
    assert list(listed)[0] is listed[0]
    for version, fields in enumerate(versions):
        cls = listed[version]
        assert cls.__name__ == '%s_v%d' % (name, version)
        assert cls is getattr(home, cls.__name__)
        assert (cls.API_KEY, cls.API_VERSION) == (key, version)
        assert cls.SCHEMA.names == tuple(fields.split())
        if name.endswith('Request'):
            response = name.replace('Request', 'Response')
            assert cls.RESPONSE_TYPE is getattr(home, response)[version]
            assert issubclass(cls, Request)
        else:
            assert issubclass(cls, Response)


def shape(kind):
    """Return names and types of a schema as text."""
    if isinstance(kind, Schema):
        return ' '.join('%s:%s' % pair for pair in zip(kind.names, map(shape, kind.fields)))
    if isinstance(kind, Array):
        return '[%s]' % shape(kind.array_of)
    return kind.__name__ if isinstance(kind, type) else type(kind).__name__


@pytest.mark.parametrize(
    ('cls', 'fields'),
    [
        (
            DescribeGroupsResponse[0],
            (
                'groups:[error_code:Int16 group:String state:String protocol_type:String'
                ' protocol:String members:[member_id:String client_id:String client_host:String'
                ' member_metadata:Bytes member_assignment:Bytes]]'
            ),
        ),
        (
            commit.OffsetCommitRequest[1],
            (
                'consumer_group:String consumer_group_generation_id:Int32 consumer_id:String'
                ' topics:[topic:String partitions:[partition:Int32 offset:Int64 timestamp:Int64'
                ' metadata:String]]'
            ),
        ),
        (
            commit.OffsetFetchRequest[1],
            'consumer_group:String topics:[topic:String partitions:[Int32]]',
        ),
        (
            fetch.FetchRequest[0],
            (
                'replica_id:Int32 max_wait_time:Int32 min_bytes:Int32 topics:[topic:String'
                ' partitions:[partition:Int32 offset:Int64 max_bytes:Int32]]'
            ),
        ),
        (
            fetch.FetchResponse[1],
            (
                'throttle_time_ms:Int32 topics:[topics:String partitions:[partition:Int32'
                ' error_code:Int16 highwater_offset:Int64 message_set:MessageSet]]'
            ),
        ),
        (
            metadata.MetadataResponse[0],
            (
                'brokers:[node_id:Int32 host:String port:Int32] topics:[error_code:Int16'
                ' topic:String partitions:[error_code:Int16 partition:Int32 leader:Int32'
                ' replicas:[Int32] isr:[Int32]]]'
            ),
        ),
        (
            offset.OffsetRequest[0],
            (
                'replica_id:Int32 topics:[topic:String partitions:[partition:Int32 time:Int64'
                ' max_offsets:Int32]]'
            ),
        ),
        (
            produce.ProduceResponse[2],
            (
                'topics:[topic:String partitions:[partition:Int32 error_code:Int16 offset:Int64'
                ' timestamp:Int64]] thottle_time_ms:Int32'
            ),
        ),
        (
            group.JoinGroupRequest[0],
            (
                'group:String session_timeout:Int32 member_id:String protocol_type:String'
                ' group_protocols:[protocol_name:String protocol_metadata:Bytes]'
            ),
        ),
        (metadata.MetadataRequest[0], 'topics:[String]'),
    ],
)
def test_schemas_are_those_of_1_2_1(cls, fields):
    """Names and types to the last level."""
    assert shape(cls.SCHEMA) == fields


def test_constants():
    """As in 1.x."""
    assert commit.OffsetCommitRequest[2].DEFAULT_GENERATION_ID == -1
    assert commit.OffsetCommitRequest[2].DEFAULT_RETENTION_TIME == -1
    assert group.JoinGroupRequest[0].UNKNOWN_MEMBER_ID == ''
    times = offset.OffsetResetStrategy
    assert (times.LATEST, times.EARLIEST, times.NONE) == (-1, -2, 0)


def test_the_header_of_a_request_struct():
    """The bytes of 1.x's own test."""
    header = RequestHeader(commit.GroupCoordinatorRequest[0]('foo'), 4, client_id='client3')
    expected = (
        b'\x00\x0a'  # API key
        b'\x00\x00'  # API version
        b'\x00\x00\x00\x04'  # correlation id
        b'\x00\x07client3'
    )
    assert header.encode() == expected
    assert RequestHeader(commit.GroupCoordinatorRequest[0]('foo')).client_id == 'kafka-python'


def test_what_members_tell_a_group():
    """Structs that programs put into requests."""
    told = group.ProtocolMetadata(0, ['t'], b'u')
    assert told.encode() == b'\0\0\0\0\0\x01\0\x01t\0\0\0\x01u'
    given = group.MemberAssignment(0, [('t', [1])], b'')
    assert pickle.loads(pickle.dumps(given)) == given


def test_a_produce_request_takes_a_set_in_three_forms():
    """Pairs of offset and message, the bytes of a set, and a buffer with its size in front."""
    pairs = [(0, Message(b'value').encode())]
    raw = MessageSet.encode(pairs, size=False)
    of = produce.ProduceRequest[0]
    forms = [pairs, raw, io.BytesIO(MessageSet.encode(pairs))]
    encoded = {of(1, 100, [('t', [(0, form)])]).encode() for form in forms}
    assert len(encoded) == 1
    for form in forms:
        message = of(1, 100, [('t', [(0, form)])]).declared()
        assert message.topic_data[0].partition_data[0].records == raw


ENTRY = MessageSet.encode([(0, Message(b'v1', b'k1').encode())], size=False)
CUT = struct.pack('>qi', 1, 24) + Message(b'v2', b'k2').encode()[:-2]  # of more than there is


def fetched(declared):
    """Return a Fetch answer of two partitions, each with a whole entry and one that is cut off."""
    partitions = [
        Int32.encode(number) + Int16.encode(0) + Int64.encode(1234) + Int32.encode(declared)
        for number in (0, 1)
    ]
    return b''.join(
        [
            Int32.encode(1),
            String('utf-8').encode('foobar'),
            Int32.encode(2),
            partitions[0] + ENTRY + CUT,
            partitions[1] + ENTRY + CUT,
        ]
    )


@pytest.mark.parametrize('of', [bytes, io.BytesIO])
def test_a_cut_off_message_ends_a_set(of):
    """The complete ones first, then the mark."""
    response = fetch.FetchResponse[0].decode(of(fetched(len(ENTRY + CUT))))
    ((topic, partitions),) = response.topics
    assert topic == 'foobar'
    for partition in partitions:
        first, last = partition[3]
        assert first == (0, len(ENTRY) - 12, Message.decode(ENTRY[12:]))
        assert last == (None, None, PartialMessage())


def test_a_set_that_is_declared_too_short_puts_the_rest_out_of_step():
    """What follows is nonsense in the right shape, and no exception."""
    response = fetch.FetchResponse[0].decode(fetched(len(ENTRY + CUT) - 8))
    ((_, (first, second)),) = response.topics
    assert first[3][-1] == (None, None, PartialMessage())
    assert len(second) == 4
    assert second[0] != 1
    assert isinstance(second[3], list)


def test_nothing_is_judged():
    """Error codes, ids and numbers pass as they come."""
    data = metadata.MetadataResponse[0].encode(
        ([(-7, '', -1)], [(999, 't', [(-300, -1, -5, [], [2**31 - 1])])])
    )
    assert metadata.MetadataResponse[0].decode(data + b'rest').brokers == [(-7, '', -1)]


@pytest.mark.parametrize('version', [-10, 99, 'x'])
def test_a_version_that_is_not_there_is_an_index_error(version):
    """It says of what."""
    with pytest.raises(IndexError, match='MetadataRequest has no version'):
        metadata.MetadataRequest[version]


def test_a_name_that_is_not_there_is_an_attribute_error():
    """Of the module that was asked."""
    for name in ('MetadataRequest_v99', 'FetchRequest', 'Nothing'):
        with pytest.raises(AttributeError, match=r'kafka\.protocol\.metadata'):
            getattr(metadata, name)


def test_a_star_import_brings_them():
    """With what the module declares, as when all of it stood there."""
    names = {}
    exec('from kafka.protocol.commit import *\nfrom kafka.protocol.group import *', names)
    for name in ('OffsetCommitRequest', 'OffsetFetchRequest_v3', 'GroupCoordinatorRequest_v0'):
        assert names[name] is getattr(commit, name)
    for name in (
        'JoinGroupRequest',
        'HeartbeatResponse_v1',
        'ProtocolMetadata',
        'MemberAssignment',
    ):
        assert names[name] is getattr(group, name)


def test_a_declared_message_stands_for_its_versions():
    """It can be indexed, counted and walked through, as the list that it was; and is true."""
    versions = list(metadata.MetadataRequest)
    assert versions[-1] is metadata.MetadataRequest[-1] is metadata.MetadataRequest[8]
    assert len(metadata.MetadataRequest) == len(versions) == 9  # 9 brought tagged fields
    assert metadata.MetadataRequest_v3 in metadata.MetadataRequest
    assert bool(metadata.MetadataRequest) is True


@pytest.mark.parametrize('given', [None, ['a']])
def test_requests_and_their_declared_messages(given):
    """A struct becomes the declared message with equal bytes, None included."""
    request = metadata.MetadataRequest[1](given)
    assert request.declared().encode(1) == request.encode()


def test_responses_of_another_version():
    """A declared answer, whatever version it came in, gives what this class has."""
    answer = metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host='h', port=9, rack='r')],
        topics=[],
        controller_id=1,
    )
    assert metadata.MetadataResponse[0].of(answer) == metadata.MetadataResponse[0](
        [(1, 'h', 9)], []
    )
    assert metadata.MetadataResponse[1].of(answer).controller_id == 1


def test_records_of_a_declared_answer():
    """Message sets in old versions, bytes in later ones."""
    part = fetch.PartitionData(partition_index=0, error_code=0, high_watermark=5, records=ENTRY)
    answer = fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(topic='t', partitions=[part])]
    )
    ((_, ((_, _, _, old),)),) = fetch.FetchResponse[0].of(answer).topics
    assert old == [(0, len(ENTRY) - 12, Message.decode(ENTRY[12:]))]
    ((_, (later,)),) = fetch.FetchResponse[4].of(answer).topics
    assert later[-1] == ENTRY


def test_structs_of_the_simple_client_are_the_same_messages():
    """They compare with these by their values."""
    assert MetadataRequest_v0(['t']) == metadata.MetadataRequest[0](['t'])
    assert metadata.MetadataRequest[0](['t']) == MetadataRequest_v0(['t'])
    assert MetadataRequest_v0(['t']) != metadata.MetadataRequest[1](['t'])
    assert MetadataRequest_v0(['t']) != metadata.MetadataRequest[0](['u'])
    assert MetadataResponse_v0([], []) == metadata.MetadataResponse[0]([], [])


def test_requests_with_tagged_fields():
    """What never was without them has them last, as in 2.x; it has no other form."""
    request = ListPartitionReassignmentsRequest[0](100, [('t', [1], {})], {})
    assert request.encode() == b'\0\0\0\x64\x02\x02t\x02\0\0\0\x01\0\0'
    assert request.FLEXIBLE
    with pytest.raises(ValueError, match='has no declared message'):
        request.declared()


def test_new_partitions_are_grouped_as_in_2_x():
    """Count and assignment are one tuple."""
    request = CreatePartitionsRequest[0]([('t', (2, [[1], [2]]))], 100, False)
    counts = b'\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x02'
    assert request.encode() == b'\0\0\0\x01\0\x01t' + counts + b'\0\0\0\x64\0'


def test_who_expects_an_answer():
    """All but Produce with acks 0."""
    assert metadata.MetadataRequest[0]([]).expect_response()
    assert produce.ProduceRequest[0](1, 1, []).expect_response()
    assert not produce.ProduceRequest[0](0, 1, []).expect_response()


def test_secrets_are_not_shown():
    """Neither as text nor as bytes."""
    assert 'canary' not in repr(SaslAuthenticateRequest[0](b'canary'))


def test_every_class_can_be_made():
    """Of each API and version, with a schema that encodes what it decoded."""
    count = 0
    for module, stems in struct_classes_names().items():
        home = import_module('kafka.protocol.' + module)
        for stem in stems:
            for cls in getattr(home, stem + 'Request'):
                assert cls.SCHEMA is cls.SCHEMA
                assert cls.RESPONSE_TYPE.API_VERSION == cls.API_VERSION
                assert pickle.loads(pickle.dumps(cls)) is cls
                count += 1
    assert count > 100


def struct_classes_names():
    """Return the table of names."""
    return import_module('kafka.protocol.struct_names').MODULES


def test_framed_requests():
    """Length, header, body; wrong values are errors."""
    request = metadata.MetadataRequest[0](['t'])
    framed = request.framed(7, b'me')
    assert framed == (b'\0\0\0\x13\0\x03\0\0\0\0\0\x07\0\x02me\0\0\0\x01\0\x01t')
    with pytest.raises(ProtocolError):
        request.framed(2**31, 'me')
    assert struct_classes.count_of(metadata.MetadataRequest) == 9


#: What fields of single versions were called from 1.4 to 2.2: within groups, and where a name is
#: another one than now.
OF_LATER = [
    (
        'admin',
        'CreateTopicsRequest_v0',
        'create_topic_requests.configs',
        ('config_key', 'config_value'),
    ),
    (
        'admin',
        'DescribeConfigsResponse_v1',
        'resources.config_entries.config_synonyms',
        ('config_name', 'config_value', 'config_source'),
    ),
    (
        'add_partitions_to_txn',
        'AddPartitionsToTxnRequest_v0',
        '',
        ('transactional_id', 'producer_id', 'producer_epoch', 'topics'),
    ),
    (
        'add_partitions_to_txn',
        'AddPartitionsToTxnResponse_v0',
        'results.partitions',
        ('partition', 'error_code'),
    ),
    (
        'txn_offset_commit',
        'TxnOffsetCommitRequest_v2',
        'topics.partitions',
        ('partition', 'offset', 'leader_epoch', 'metadata'),
    ),
    ('find_coordinator', 'FindCoordinatorRequest_v0', '', ('consumer_group',)),
    ('commit', 'GroupCoordinatorRequest_v1', '', ('coordinator_key', 'coordinator_type')),
]


@pytest.mark.parametrize(('module', 'name', 'path', 'fields'), OF_LATER)
def test_fields_have_the_names_of_1_4_to_2_2(module, name, path, fields):
    schema = getattr(import_module('kafka.protocol.' + module), name).SCHEMA
    for step in filter(None, path.split('.')):
        schema = dict(zip(schema.names, schema.fields))[step].array_of
    assert tuple(schema.names) == fields


def test_what_requests_of_groups_say_of_nobody():
    group = import_module('kafka.protocol.group')
    assert (group.DEFAULT_GENERATION_ID, group.UNKNOWN_MEMBER_ID) == (-1, '')
