"""Fetch requests: what of a plan goes where, in every version."""

from __future__ import annotations

import pytest

from kafka.consumer.fetch.session import (
    FetchRequestData,
    FetchSession,
    FetchSettings,
    WantedPartition,
    ending_request,
    fetch_request,
    parts_of,
)
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafka.structs import TopicPartition

A0, A1, B0 = TopicPartition('a', 0), TopicPartition('a', 1), TopicPartition('b', 0)
ID_A, ID_B = b'a' * 16, b'b' * 16
SETTINGS = FetchSettings()


def plan(partitions, forgotten=(), by_id=False):
    return FetchRequestData(
        7, 3, [(at, wanted) for at, wanted in partitions], list(forgotten), by_id
    )


def test_neighbours_of_a_topic_share_its_name_and_the_order_stays():
    wanted = WantedPartition(0, 100)
    request = fetch_request(plan([(A0, wanted), (B0, wanted), (A1, wanted)]), SETTINGS, 1000, 0.5)
    assert [(t.topic, [p.partition for p in t.partitions]) for t in request.topics] == [
        ('a', [0]),
        ('b', [0]),
        ('a', [1]),
    ]
    request = fetch_request(plan([(A0, wanted), (A1, wanted)]), SETTINGS, 1000, 0.5)
    assert [len(topic.partitions) for topic in request.topics] == [2]


@pytest.mark.parametrize('version', range(19))
def test_every_version_can_be_written(version):
    wanted = WantedPartition(5, 100, 2, ID_A)
    forgotten = [(B0, ID_B)] if version >= 7 else []
    settings = SETTINGS._replace(read_committed=True, client_rack='r', min_bytes=3)
    request = fetch_request(plan([(A0, wanted)], forgotten), settings, 1000, 0.25)
    read = FetchRequest.decode(request.encode(version), version)
    assert (read.max_wait_ms, read.min_bytes) == (250, 3)
    (topic,) = read.topics
    assert (topic.topic, topic.topic_id) == (('a', bytes(16)) if version <= 12 else ('', ID_A))
    (part,) = topic.partitions
    assert (part.fetch_offset, part.partition_max_bytes) == (5, 100)
    assert part.current_leader_epoch == (2 if version >= 9 else -1)
    if version >= 3:
        assert read.max_bytes == 1000
    if version >= 4:
        assert read.isolation_level == 1
    if version >= 7:
        assert (read.session_id, read.session_epoch) == (7, 3)
        assert read.forgotten_topics_data[0].partitions == [0]
    if version >= 11:
        assert read.rack_id == 'r'


def test_what_is_forgotten_is_named_by_topic():
    request = fetch_request(plan([], [(A0, ID_A), (A1, ID_A), (B0, ID_B)]), SETTINGS, 1, 0)
    found = [(t.topic, t.topic_id, t.partitions) for t in request.forgotten_topics_data]
    assert found == [('a', ID_A, [0, 1]), ('b', ID_B, [0])]


def test_another_limit_is_for_those_alone_that_have_the_usual_one():
    usual, grown = WantedPartition(0, SETTINGS.partition_limit), WantedPartition(0, 5 << 20)
    request = fetch_request(plan([(A0, usual), (A1, grown)]), SETTINGS, 1, 0, 65536)
    assert [p.partition_max_bytes for p in request.topics[0].partitions] == [65536, 5 << 20]


def test_no_partition_is_asked_for_more_than_an_answer_may_bring():
    assert FetchSettings(max_bytes=10, max_partition_bytes=20).partition_limit == 10


def test_an_end_asks_for_nothing():
    request = ending_request(9)
    assert (request.session_id, request.session_epoch, request.topics) == (9, -1, [])
    assert request.max_wait_ms == 0


def test_parts_are_named_by_name_or_by_id():
    session = FetchSession()
    session.want(A0, WantedPartition(0, 1, topic_id=ID_A))

    def part(index):
        return PartitionData(partition_index=index, error_code=0, high_watermark=0, records=b'')

    response = FetchResponse(
        responses=[
            FetchableTopicResponse(topic='b', partitions=[part(0)]),
            FetchableTopicResponse(topic_id=ID_A, partitions=[part(0), part(1)]),
            FetchableTopicResponse(topic_id=ID_B, partitions=[part(4)]),
        ]
    )
    found = [at for at, _ in parts_of(response, session)]
    assert found == [B0, A0, A1, TopicPartition('', 4)]
