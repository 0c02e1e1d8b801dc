"""Produce requests of all versions, and what answers to them are about."""

from __future__ import annotations

import uuid

import pytest

from kafka.errors import UnsupportedVersionError
from kafka.producer.produce_request import (
    ProduceVersions,
    SenderSettings,
    answers_of,
    magic_of,
    produce_request,
)
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.structs import TopicPartition

IDS = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in 'ab'}
ALL = (0, 99)


class Batch:
    def __init__(self, topic, partition, encoded):
        self.topic_partition = TopicPartition(topic, partition)
        self.encoded = encoded


def request(version, **settings):
    batches = [Batch('a', 0, b'1'), Batch('b', 0, b'2'), Batch('a', 3, b'3')]
    return produce_request(batches, version, SenderSettings(**settings), 'mine', IDS.__getitem__)


def test_batches_of_a_topic_stand_together():
    made = request(12, acks=-1, request_timeout=2.5)
    assert (made.transactional_id, made.acks, made.timeout_ms) == ('mine', -1, 2500)
    assert [
        (topic.name, [(data.index, data.records) for data in topic.partition_data])
        for topic in made.topic_data
    ] == [('a', [(0, b'1'), (3, b'3')]), ('b', [(0, b'2')])]


@pytest.mark.parametrize(('version', 'ids'), [(12, [ZERO_UUID] * 2), (13, list(IDS.values()))])
def test_ids_are_told_where_names_are_not(version, ids):
    assert [topic.topic_id for topic in request(version).topic_data] == ids


def test_answers_are_about_what_was_sent_by_id_or_by_name():
    parts = [PartitionProduceResponse(index, 0, 7) for index in range(3)]
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(topic_id=IDS['a'], partition_responses=parts[:2]),
            TopicProduceResponse(name='b', partition_responses=parts[2:]),
            TopicProduceResponse(topic_id=uuid.uuid4(), partition_responses=parts[:1]),
        ]
    )
    found = answers_of(request(13), response)
    assert found == {('a', 0): parts[0], ('a', 1): parts[1], ('b', 2): parts[2], ('', 0): parts[0]}


@pytest.mark.parametrize(('version', 'magic'), [(0, 0), (1, 0), (2, 1), (3, 2), (13, 2)])
def test_the_format_of_records_goes_by_the_version(version, magic):
    assert magic_of(version) == magic


def test_topics_without_an_id_are_sent_by_name():
    versions, ranges = ProduceVersions(), {0: (3, 13)}
    assert [versions.choose(1, ranges, ALL, each) for each in (True, False, True)] == [13, 12, 13]


def test_a_broker_that_has_other_versions_by_now_is_asked_in_those():
    versions = ProduceVersions()
    assert versions.choose(1, {0: (0, 7)}, ALL, True) == 7
    assert versions.choose(2, {0: (0, 5)}, ALL, True) == 5
    assert versions.choose(1, {0: (0, 9)}, ALL, True) == 9


def test_what_a_producer_needs_is_not_done_without():
    with pytest.raises(UnsupportedVersionError, match='needs Produce 3, the broker has 2'):
        ProduceVersions().choose(1, {0: (0, 2)}, (3, 99), True)
