"""Errors stand where clients look for them, in every version of every API."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.topics import DeleteTopicsRequest
from kafka.protocol.api import ApiKey, RequestHeader, request_class, response_class
from kafka.protocol.commit import OffsetFetchRequest
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafka.testing.calls import Call
from kafka.testing.error_answers import answer_with, error_answer, with_error
from kafka.testing.errors import FETCH_SESSION_ID_NOT_FOUND, NOT_LEADER_OR_FOLLOWER
from kafka.testing.faults import Error
from test.testing.drive import Driver
from test.testing.filled_messages import filled

CODE = 42


def codes(struct):
    """Return all error codes of a struct."""
    found = []
    for field in type(struct).fields:
        value = getattr(struct, field.name)
        if field.name in ('error_code', 'partition_error_code'):
            found.append(value)
        elif isinstance(value, list):
            found.extend(code for each in value if hasattr(each, 'fields') for code in codes(each))
    return found


@pytest.mark.parametrize('key', list(ApiKey))
def test_every_version_of_every_api_can_say_an_error(key):
    cls = request_class(key)
    for version in range(cls.min_version, cls.max_version + 1):
        request = filled(cls, version)
        data = answer_with(request, version, key, CODE).encode(version)
        read = response_class(key).decode(data, version)
        assert CODE in codes(read), version


def test_each_partition_of_a_produce_gets_the_code_and_no_offset():
    request = ProduceRequest(
        acks=1,
        timeout_ms=1,
        topic_data=[
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=7, records=b'')])
            for name in 'ab'
        ],
    )
    answer = answer_with(request, 9, ApiKey.PRODUCE, CODE)
    assert [each.name for each in answer.responses] == ['a', 'b']
    (partition,) = answer.responses[1].partition_responses
    assert (partition.index, partition.error_code, partition.base_offset) == (7, CODE, -1)


def fetch():
    partition = FetchPartition(partition=3, fetch_offset=0, partition_max_bytes=1)
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic='t', partitions=[partition])]
    )


def test_the_code_of_a_fetch_belongs_to_its_partitions():
    answer = answer_with(fetch(), 12, ApiKey.FETCH, NOT_LEADER_OR_FOLLOWER)
    assert answer.error_code == 0
    (partition,) = answer.responses[0].partitions
    assert partition.partition_index == 3
    assert partition.error_code == NOT_LEADER_OR_FOLLOWER
    assert partition.records == b''


def test_the_code_of_a_fetch_session_stands_at_the_top():
    answer = answer_with(fetch(), 12, ApiKey.FETCH, FETCH_SESSION_ID_NOT_FOUND)
    assert (answer.error_code, answer.responses) == (FETCH_SESSION_ID_NOT_FOUND, [])


def test_a_fetch_that_names_no_partition_gets_the_code_at_the_top():
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], session_id=5, session_epoch=2)
    assert answer_with(request, 12, ApiKey.FETCH, CODE).error_code == CODE


def test_topics_that_a_request_names_by_a_text_alone_come_back():
    request = DeleteTopicsRequest(topic_names=['a', 'b'], timeout_ms=1)
    answer = answer_with(request, 3, ApiKey.DELETE_TOPICS, CODE)
    assert [(each.name, each.error_code) for each in answer.responses] == [('a', CODE), ('b', CODE)]


def test_offsets_of_several_groups_get_the_code_for_each_group():
    cls = OffsetFetchRequest
    answer = answer_with(filled(cls, 8), 8, ApiKey.OFFSET_FETCH, CODE)
    assert [each.error_code for each in answer.groups] == [CODE]


@pytest.mark.parametrize('version', [0, 12])
def test_metadata_with_an_error_still_knows_the_brokers(version):
    driver = Driver(brokers=2)
    driver.state.create_topic('t')
    driver.state.control.faults.add(Error(5), 'Metadata')
    driver.state.release = driver.state.release._replace(served={3: (0, 13)})
    asked = [MetadataRequestTopic(name='t')]
    answer = driver.ask(MetadataRequest(topics=asked), version=version)
    assert [each.node_id for each in answer.brokers] == [0, 1]
    assert [(each.name, each.error_code) for each in answer.topics] == [('t', 5)]


def test_an_answer_is_given_an_error_in_all_its_places():
    answer = response_class(ApiKey.OFFSET_FETCH)
    changed = with_error(filled(answer, 8), CODE)
    assert set(codes(changed)) == {CODE}
    assert len(codes(changed)) > 1


def test_a_produce_without_acks_is_told_nothing():
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    header = RequestHeader(0, 9, 1, None)
    call = Call(None, header, request, 1, 'User:ANONYMOUS', lambda response: None)
    assert error_answer(call, CODE) is None
