"""ListOffsets in an embedded cluster."""

from __future__ import annotations

from typing import List

import pytest

from kafka.protocol.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka.record.default_records import encode_batch
from kafka.testing.errors import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
)
from test.testing.data_requests import NOW, TOPIC, batch, driver, list_offsets, message_set, produce
from test.testing.drive import Driver


@pytest.mark.parametrize('version', range(1, 12))
def test_both_ends_in_each_version(version: int) -> None:
    cluster = driver('4.4')
    produce(cluster, batch(b'a', b'b'))
    for timestamp, offset in ((-1, 2), (-2, 0)):
        answer = list_offsets(cluster, timestamp, version)
        assert (answer.error_code, answer.offset, answer.timestamp) == (NONE, offset, -1)
        assert answer.leader_epoch == (0 if version >= 4 else -1)


def test_an_empty_log_has_the_epoch_of_its_leader() -> None:
    answer = list_offsets(driver(), -2)
    assert (answer.offset, answer.leader_epoch) == (0, 0)


@pytest.mark.parametrize(('since', 'offset'), [(0, 0), (0, 0), (5, 1), (6, 2), (10, 2), (11, -1)])
def test_the_first_record_at_a_time(since: int, offset: int) -> None:
    cluster = driver()
    data = [(NOW + delta, None, b'a', ()) for delta in (0, 5, 10)]
    produce(cluster, encode_batch(data))
    answer = list_offsets(cluster, NOW + since)
    assert answer.offset == offset
    assert answer.timestamp == (-1 if offset < 0 else NOW + 5 * offset)


def test_a_time_in_a_later_batch() -> None:
    cluster = driver()
    for delta in (0, 10, 5, 20):
        produce(cluster, batch(b'a', at=NOW + delta))
    assert [list_offsets(cluster, NOW + since).offset for since in (1, 10, 11, 20)] == [1, 1, 3, 3]


def test_what_was_deleted_is_not_found() -> None:
    cluster = driver()
    for delta in (20, 0, 10):
        produce(cluster, batch(b'a', at=NOW + delta))
    cluster.state.topics[TOPIC].partitions[0].log.delete_before(1)
    assert list_offsets(cluster, NOW + 5).offset == 2
    assert list_offsets(cluster, -2).offset == 1
    assert list_offsets(cluster, -3).offset == 2


def test_the_largest_timestamp() -> None:
    cluster = driver()
    assert list_offsets(cluster, -3).offset == -1
    for delta in (0, 10, 5):
        produce(cluster, batch(b'a', at=NOW + delta))
    answer = list_offsets(cluster, -3)
    assert (answer.offset, answer.timestamp) == (1, NOW + 10)


@pytest.mark.parametrize(('timestamp', 'offset'), [(-4, 0), (-5, -1), (-6, -1)])
def test_nothing_is_tiered(timestamp: int, offset: int) -> None:
    cluster = driver()
    produce(cluster, batch(b'a'))
    assert list_offsets(cluster, timestamp).offset == offset


@pytest.mark.parametrize(('timestamp', 'version'), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_special_times_have_their_versions(timestamp: int, version: int) -> None:
    answer = list_offsets(driver(), timestamp, version)
    assert (answer.error_code, answer.offset) == (UNSUPPORTED_VERSION, -1)


@pytest.mark.parametrize('timestamp', [-3, -4, -5])
def test_before_3_0_they_are_times_like_any_other(timestamp: int) -> None:
    cluster = driver('2.8')
    produce(cluster, batch(b'a', at=NOW))
    produce(cluster, batch(b'a', at=NOW + 1))
    answer = list_offsets(cluster, timestamp)
    assert (answer.offset, answer.timestamp) == (0, NOW)


def test_an_isolation_level_that_is_none() -> None:
    assert list_offsets(driver(), -1, isolation_level=5).error_code == UNKNOWN_SERVER_ERROR


def test_readers_of_committed_records_see_a_shorter_log() -> None:
    cluster = driver('2.8')
    produce(cluster, batch(b'a'))
    data = batch(b'b', transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    produce(cluster, data, transactional_id='t')
    assert list_offsets(cluster, -1).offset == 2
    assert list_offsets(cluster, -1, isolation_level=1).offset == 1
    assert list_offsets(cluster, NOW + 1, isolation_level=1).offset == -1


@pytest.mark.parametrize(('epoch', 'error'), [(0, FENCED_LEADER_EPOCH), (2, UNKNOWN_LEADER_EPOCH)])
def test_the_leader_epoch_of_the_reader(epoch: int, error: int) -> None:
    cluster = driver(brokers=2)
    cluster.state.topics[TOPIC].partitions[0].elect([0, 1], preferred=1)
    assert list_offsets(cluster, -1, node=1, current_leader_epoch=epoch).error_code == error


def test_only_the_leader_answers() -> None:
    cluster = driver(brokers=2)
    assert list_offsets(cluster, -1, node=1).error_code == NOT_LEADER_OR_FOLLOWER
    assert list_offsets(cluster, -1, node=1, replica_id=-2).error_code == NONE


@pytest.mark.parametrize(('release', 'answers'), [('2.3', 1), ('2.8', 2), ('4.4', 1)])
def test_a_partition_twice(release: str, answers: int) -> None:
    cluster = driver(release)
    asked = [ListOffsetsPartition(partition_index=0, timestamp=-1) for _ in range(2)]
    topic = ListOffsetsTopic(name=TOPIC, partitions=asked)
    answer = cluster.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]))
    assert [each.error_code for each in answer.topics[0].partitions] == (
        [INVALID_REQUEST] * answers
    )


def test_a_topic_that_is_not_there() -> None:
    assert list_offsets(Driver(), -1).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_times_in_formats_without() -> None:
    cluster = driver('0.10.2')
    cluster.state.topics[TOPIC].configs['message.format.version'] = '0.9.0'
    produce(cluster, message_set(b'a', magic=1))
    assert list_offsets(cluster, NOW).error_code == UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert list_offsets(cluster, -1).offset == 1


def test_messages_without_time_in_a_log_with_times() -> None:
    cluster = driver('0.10.2')
    produce(cluster, message_set(b'a', magic=0), 1)
    assert list_offsets(cluster, NOW).offset == -1


# ---------------------------------------------------------------- version 0


@pytest.mark.parametrize('release', ['0.8.0', '0.9', '0.10.2'])
@pytest.mark.parametrize(
    ('timestamp', 'most', 'offsets'),
    [
        (-1, 1, [2]),
        (-1, 5, [2, 0]),
        (-2, 5, [0]),
        (0, 5, []),
        (NOW, 5, [2, 0]),
        (NOW - 1, 5, []),
        (-1, 0, []),
    ],
)
def test_starts_of_segments(release: str, timestamp: int, most: int, offsets: List[int]) -> None:
    cluster = driver(release)
    produce(cluster, message_set(b'a', b'b'))
    answer = list_offsets(cluster, timestamp, 0, max_num_offsets=most)
    assert (answer.error_code, answer.old_style_offsets) == (NONE, offsets)


@pytest.mark.parametrize(('timestamp', 'offsets'), [(-1, [0]), (-2, [0]), (NOW, [0]), (0, [])])
def test_an_empty_log_is_one_segment(timestamp: int, offsets: List[int]) -> None:
    answer = list_offsets(driver('0.8.2'), timestamp, 0, max_num_offsets=5)
    assert answer.old_style_offsets == offsets


def test_the_end_of_a_log_counts_as_now() -> None:
    cluster = driver('0.8.2')
    produce(cluster, message_set(b'a', b'b'))
    cluster.advance(10)
    answer = list_offsets(cluster, NOW + 5000, 0, max_num_offsets=5)
    assert answer.old_style_offsets == [0]
