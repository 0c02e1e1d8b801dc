"""The structs of 1.x that members of a group tell each other."""

from __future__ import annotations

from kafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.structs import TopicPartition


def test_the_bytes_of_a_subscription():
    told = ConsumerProtocolMemberMetadata(0, ['t', 'uv'], b'x')
    encoded = told.encode()
    assert encoded == (
        b'\x00\x00'  # version
        b'\x00\x00\x00\x02'  # two topics
        b'\x00\x01t'
        b'\x00\x02uv'
        b'\x00\x00\x00\x01x'  # user data
    )
    assert ConsumerProtocolMemberMetadata.decode(encoded) == told


def test_the_bytes_of_an_assignment():
    got = ConsumerProtocolMemberAssignment(0, [('t', [0, 3])], b'')
    encoded = got.encode()
    assert encoded == (
        b'\x00\x00'  # version
        b'\x00\x00\x00\x01'  # one topic
        b'\x00\x01t'
        b'\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03'  # partitions 0 and 3
        b'\x00\x00\x00\x00'  # user data
    )
    assert ConsumerProtocolMemberAssignment.decode(encoded) == got


def test_the_partitions_of_an_assignment():
    got = ConsumerProtocolMemberAssignment(0, [('t', [0, 3]), ('u', [1])], b'')
    assert got.partitions() == [
        TopicPartition('t', 0),
        TopicPartition('t', 3),
        TopicPartition('u', 1),
    ]


def test_what_3_0_added_is_not_compared():
    one, two = (ConsumerProtocolMemberMetadata(0, ['t'], b'') for _ in range(2))
    one.generation_id = 5
    assert one == two
    assert (two.topics, two.owned_partitions, two.generation_id, two.rack_id) == (
        ['t'],
        (),
        -1,
        None,
    )


def test_the_names_of_the_protocol():
    assert ConsumerProtocol.PROTOCOL_TYPE == 'consumer'
    assert ConsumerProtocol.ASSIGNMENT_STRATEGIES == ('range', 'roundrobin')
    assert ConsumerProtocol.METADATA is ConsumerProtocolMemberMetadata
    assert ConsumerProtocol.ASSIGNMENT is ConsumerProtocolMemberAssignment
