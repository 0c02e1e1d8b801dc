"""Offsets in requests of every version, and out of every answer."""

from __future__ import annotations

import pytest

from kafka.coordinator.commits.messages import (
    commit_request,
    committed_codes,
    fetch_request,
    fetched,
    highest_version,
    topic_ids,
)
from kafka.protocol import api
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition('a', 0), TopicPartition('a', 1), TopicPartition('b', 0)
ID = bytes(range(16))
WHO = ConsumerGroupMetadata('g', 7, 'member', 'instance')
OFFSETS = {A1: OffsetAndMetadata(11, 'text', 4), A0: OffsetAndMetadata(10, None, None)}


def sent(request, version):
    """Return a request as the broker reads it."""
    data = api.encode_request(request, version, 1, 'me')
    return api.decode_request(data)[-1]


def read(response, version):
    """Return an answer as it looks when it came over the wire."""
    data = api.encode_response(response, version, 1)
    return api.decode_response(type(response), data, version)[1]


@pytest.mark.parametrize('version', range(11))
def test_a_commit_says_in_each_version_what_that_can_carry(version):
    request = sent(commit_request('g', OFFSETS, WHO, {'a': ID}, version), version)
    (topic,) = request.topics
    assert request.group_id == 'g'
    assert (topic.name, topic.topic_id) == (('', ID) if version >= 10 else ('a', bytes(16)))
    assert [
        (each.partition_index, each.committed_offset, each.committed_metadata)
        for each in topic.partitions
    ] == [(0, 10, ''), (1, 11, 'text')]
    epochs = [each.committed_leader_epoch for each in topic.partitions]
    assert epochs == ([-1, 4] if version >= 6 else [-1, -1])
    member = request.generation_id_or_member_epoch, request.member_id
    assert member == ((7, 'member') if version >= 1 else (-1, ''))
    assert request.group_instance_id == ('instance' if version >= 7 else None)


def test_a_commit_outside_of_a_membership_names_no_instance():
    who = ConsumerGroupMetadata('g', group_instance_id='instance')
    request = commit_request('g', OFFSETS, who, {}, 7)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, '')
    assert request.group_instance_id is None


@pytest.mark.parametrize('version', range(11))
def test_each_version_of_an_answer_to_a_commit_is_read(version):
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name='a',
                topic_id=ID,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=0, error_code=0),
                    OffsetCommitResponsePartition(partition_index=1, error_code=27),
                ],
            )
        ]
    )
    assert committed_codes(read(response, version), {'a': ID}) == {A0: 0, A1: 27}


@pytest.mark.parametrize('version', range(11))
def test_a_look_up_asks_in_each_version_for_the_same(version):
    member = WHO if version >= 9 else None
    request = sent(fetch_request('g', [A1, A0], member, {'a': ID}, version), version)
    asked = request.groups[0] if version >= 8 else request
    assert asked.group_id == 'g'
    assert asked.topics[0].partition_indexes == [0, 1]
    assert request.require_stable is (version >= 7)
    if version >= 9:
        assert (asked.member_id, asked.member_epoch) == ('member', 7)
    if version >= 10:
        assert asked.topics[0].topic_id == ID


@pytest.mark.parametrize('who', [None, ConsumerGroupMetadata('g', group_instance_id='instance')])
def test_a_look_up_of_nobody_names_no_member(who):
    asked = sent(fetch_request('g', [A0], who, {}, 9), 9).groups[0]
    assert (asked.member_id, asked.member_epoch) == (None, -1)


def answer_to_fetch(version):
    if version < 8:
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name='a',
                    partitions=[
                        OffsetFetchResponsePartition(0, 10, 4 if version >= 5 else -1, 'x', 0),
                        OffsetFetchResponsePartition(1, -1, -1, '', 0),
                    ],
                )
            ]
        )
    topic = OffsetFetchResponseTopics(
        name='a',
        topic_id=ID,
        partitions=[
            OffsetFetchResponsePartitions(0, 10, 4, 'x', 0),
            OffsetFetchResponsePartitions(1, -1, -1, None, 0),
        ],
    )
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id='g', topics=[topic])])


@pytest.mark.parametrize('version', range(11))
def test_each_version_of_the_answer_to_a_look_up_is_read(version):
    answer = fetched(read(answer_to_fetch(version), version), 'g', {'a': ID})
    assert answer.codes == {A0: 0, A1: 0}
    assert answer.offsets[A1] is None
    assert tuple(answer.offsets[A0]) == (10, 'x', 4 if version >= 5 else -1)


@pytest.mark.parametrize('version', [2, 7, 8, 10])
def test_the_error_of_the_whole_is_read_wherever_it_stands(version):
    response = OffsetFetchResponse(error_code=14)
    if version >= 8:
        group = OffsetFetchResponseGroup(group_id='g', topics=[], error_code=14)
        response = OffsetFetchResponse(groups=[group])
    assert fetched(read(response, version), 'g', {}).error_code == 14


def test_ids_are_used_only_where_all_are_known():
    assert topic_ids([A0, B0], {'a': ID, 'b': bytes(16)}.__getitem__) == {'a': ID}
    assert highest_version([A0], {'a': ID}) is None
    assert highest_version([A0, B0], {'a': ID}) == 9


def test_no_version_of_the_messages_is_left_untested():
    assert (OffsetCommitRequest.max_version, OffsetFetchRequest.max_version) == (10, 10)
