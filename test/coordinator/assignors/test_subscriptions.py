"""What members tell their group, in all versions of the bytes and as objects of all eras."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.coordinator.assignors.subscriptions import (
    GroupSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    read_members,
    shown_to_assignors,
)
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.errors import ProtocolError
from kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from test.coordinator.assignors.groups import member

FULL = GroupSubscription('m', None, ['t', 'u'], [('t', 0), ('t', 2), ('u', 1)], 7, 'a', b'x', 3)


def upstream(version):
    message = ConsumerProtocolSubscription(
        topics=['t', 'u'],
        user_data=b'x',
        owned_partitions=[
            TopicPartition(topic='t', partitions=[0, 2]),
            TopicPartition(topic='u', partitions=[1]),
        ],
        generation_id=7,
        rack_id='a',
    )
    return version.to_bytes(2, 'big') + message.encode(version)


@pytest.mark.parametrize(
    'version, known',
    [
        (0, FULL._replace(owned=[], generation=-1, rack=None, version=0)),
        (1, FULL._replace(generation=-1, rack=None, version=1)),
        (2, FULL._replace(rack=None, version=2)),
        (3, FULL),
    ],
)
def test_each_version_has_the_bytes_of_the_declaration(version, known):
    assert decode_subscription(upstream(version), 'm') == known
    assert encode_subscription(known) == upstream(version)


def test_a_newer_version_is_read_with_the_newest_known_layout():
    read = decode_subscription(b'\x00\x09' + upstream(3)[2:] + b'more', 'm')
    assert read == FULL._replace(version=9)


def test_the_version_grows_with_what_there_is_to_tell():
    versions = [
        encode_subscription(wanted)[1]
        for wanted in (
            member('m', 't'),
            member('m', 't', 't0'),
            member('m', 't', 't0', 5),
            member('m', 't', rack='a'),
        )
    ]
    assert versions == [0, 1, 2, 3]


def test_topics_are_sorted_because_members_are_compared_by_bytes():
    assert encode_subscription(member('m', 'ba')) == encode_subscription(member('m', 'ab'))


@pytest.mark.parametrize('cut', range(len(upstream(3))))
def test_bytes_that_end_too_early_name_the_member(cut):
    with pytest.raises(ProtocolError, match="member 'joe'"):
        decode_subscription(upstream(3)[:cut], 'joe')


@pytest.mark.parametrize(
    'data',
    [
        b'\x00\x00\x7f\xff\xff\xff',  # a great many topics
        b'\x00\x00\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00',  # one without name
        b'\x00\x00\x00\x00\x00\x01\x00\x01\xff\x00\x00\x00\x00',  # one that is no text
    ],
)
def test_bytes_that_are_no_subscription(data):
    with pytest.raises(ProtocolError, match='cannot be read'):
        decode_subscription(data, 'm')


def test_an_assignment_has_the_bytes_of_the_declaration():
    message = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic='t', partitions=[0, 2])], user_data=b''
    )
    encoded = encode_assignment([('t', 2), ('t', 0)])
    assert encoded == b'\x00\x00' + message.encode(0)
    assert decode_assignment(encoded) == [('t', 0), ('t', 2)]


def test_a_member_that_got_no_bytes_got_nothing():
    assert decode_assignment(b'') == []


def test_bytes_that_are_no_assignment():
    with pytest.raises(ProtocolError, match='leader of the group'):
        decode_assignment(b'\x00\x00\x00')


def test_members_are_sorted_by_instance_then_by_id():
    """KIP-345: those with one come first."""
    members = shown_to_assignors(
        [
            member('b', 't'),
            member('z', 't', group_instance_id='2'),
            member('a', 't'),
            member('y', 't', group_instance_id='3'),
        ]
    )
    assert [each.member_id for each in read_members(members)] == ['z', 'y', 'a', 'b']


def test_assignors_of_1_x_see_a_dict_of_structs():
    members = shown_to_assignors([FULL])
    assert isinstance(members, dict)
    assert members['m'] == ConsumerProtocolMemberMetadata(3, ['t', 'u'], b'x')
    with pytest.raises(KeyError):
        members['nobody']


def test_assignors_of_3_0_see_a_list_of_members():
    members = shown_to_assignors([FULL._replace(group_instance_id='i')])
    (only,) = members
    assert only is members[0]
    assert (only.member_id, only.group_instance_id) == ('m', 'i')
    metadata = only.metadata
    assert (metadata.topics, metadata.user_data) == (['t', 'u'], b'x')
    assert (metadata.generation_id, metadata.rack_id) == (7, 'a')
    assert [(each.topic, each.partitions) for each in metadata.owned_partitions] == [
        ('t', [0, 2]),
        ('u', [1]),
    ]


def test_what_is_shown_reads_as_it_was():
    named = FULL._replace(group_instance_id='i')
    assert read_members(shown_to_assignors([named])) == [named]


def test_members_as_3_0_lists_them_can_be_read():
    told = SimpleNamespace(topics=['t'], user_data=b'', owned_partitions=None, generation_id=None)
    listed = [SimpleNamespace(member_id='m', group_instance_id=None, metadata=told)]
    assert read_members(listed) == [GroupSubscription('m', topics=['t'], user_data=b'', owned=[])]
