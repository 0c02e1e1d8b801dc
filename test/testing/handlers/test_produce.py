"""Produce in an embedded cluster."""

from __future__ import annotations

import struct

import pytest

from kafka.record.crc32c import crc32c
from kafka.record.default_records import encode_batch
from kafka.record.memory_records import MemoryRecords
from kafka.testing.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_REQUIRED_ACKS,
    INVALID_TIMESTAMP,
    INVALID_TOPIC_EXCEPTION,
    MESSAGE_TOO_LARGE,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from test.testing.data_requests import (
    NOW,
    TOPIC,
    batch,
    best,
    driver,
    fetch,
    message_set,
    offsets,
    produce,
    produce_request,
    values,
)
from test.testing.drive import Driver


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize('version', range(3, 14))
def test_each_version_with_a_batch(version: int) -> None:
    cluster = driver('4.4')
    assert produce(cluster, batch(b'a', b'b'), version).base_offset == 0
    answer = produce(cluster, batch(b'c'), version)
    assert (answer.error_code, answer.base_offset) == (NONE, 2)
    assert answer.log_append_time_ms == -1
    assert answer.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize(
    ('release', 'version'), [('0.8.0', 0), ('0.9', 1), ('0.10.2', 2), ('0.11', 2), ('3.9', 0)]
)
@pytest.mark.parametrize('codec', [0, 1])
def test_message_sets_of_old_producers(release: str, version: int, codec: int) -> None:
    cluster = driver(release)
    assert produce(cluster, message_set(b'a', b'b', codec=codec), version).base_offset == 0
    assert produce(cluster, message_set(b'c', codec=codec), version).base_offset == 2
    records = fetch(cluster).records
    assert values(records) == [b'a', b'b', b'c']
    assert offsets(records) == [0, 1, 2]


@pytest.mark.parametrize('release', ['0.8.2', '0.9', '0.10.0', '0.10.2'])
def test_an_empty_set_gets_offset_minus_one(release: str) -> None:
    answer = produce(driver(release), b'')
    assert (answer.error_code, answer.base_offset) == (NONE, -1)


@pytest.mark.parametrize(('release', 'error'), [('2.3', CORRUPT_MESSAGE), ('4.4', INVALID_RECORD)])
def test_two_batches_for_a_partition(release: str, error: int) -> None:
    assert produce(driver(release), batch(b'a') + batch(b'b')).error_code == error


def test_two_batches_close_the_connection_on_0_11() -> None:
    cluster = driver('0.11')
    client = cluster.client()
    client.send(produce_request(cluster, batch(b'a') + batch(b'b'), 3), 3)
    assert client.connection.is_closed


@pytest.mark.parametrize(('release', 'error'), [('2.3', CORRUPT_MESSAGE), ('4.4', INVALID_RECORD)])
def test_a_base_offset_other_than_0(release: str, error: int) -> None:
    assert produce(driver(release), batch(b'a', base_offset=1)).error_code == error


@pytest.mark.parametrize('release', ['0.11', '2.3', '4.4'])
def test_a_wrong_crc_of_a_batch(release: str) -> None:
    assert produce(driver(release), damaged(batch(b'a'))).error_code == CORRUPT_MESSAGE


@pytest.mark.parametrize('release', ['0.8.0', '0.9', '0.10.2'])
def test_a_wrong_crc_of_a_message(release: str) -> None:
    assert produce(driver(release), damaged(message_set(b'a'))).error_code == CORRUPT_MESSAGE


@pytest.mark.parametrize('release', ['0.8.2', '0.9', '0.10.2'])
def test_magic_2_where_nobody_knows_it(release: str) -> None:
    assert produce(driver(release), batch(b'a')).error_code == CORRUPT_MESSAGE


def test_magic_1_is_refused_from_version_3_on() -> None:
    assert produce(driver('4.4'), message_set(b'a', magic=1)).error_code == INVALID_RECORD


def test_a_count_that_is_not_that_of_the_records() -> None:
    data = bytearray(batch(b'a', b'b'))
    # Last offset delta and count of three, and a CRC for that.
    struct.pack_into('>i', data, 23, 2)
    struct.pack_into('>i', data, 57, 3)
    struct.pack_into('>I', data, 17, crc32c(bytes(data[21:])))
    assert produce(driver('4.4'), bytes(data)).error_code == INVALID_RECORD


def test_a_control_batch_from_a_client() -> None:
    data = batch(b'a', control=True, transactional=True, producer_id=1, producer_epoch=0)
    answer = produce(driver('4.4'), data, transactional_id='t')
    assert answer.error_code == INVALID_RECORD


def test_zstd_needs_version_7() -> None:
    data = bytearray(batch(b'a'))
    data[22] |= 4
    answer = produce(driver('2.1'), bytes(data), 6)
    assert answer.error_code == UNSUPPORTED_COMPRESSION_TYPE


def test_an_unknown_codec() -> None:
    data = bytearray(batch(b'a'))
    data[22] |= 7
    struct.pack_into('>I', data, 17, crc32c(bytes(data[21:])))
    assert produce(driver('4.4'), bytes(data)).error_code == UNKNOWN_SERVER_ERROR


def test_a_batch_above_the_topics_limit() -> None:
    cluster = driver('4.4')
    cluster.state.topics[TOPIC].configs['max.message.bytes'] = '100'
    assert produce(cluster, batch(b'a' * 30)).error_code == NONE
    assert produce(cluster, batch(b'a' * 100)).error_code == MESSAGE_TOO_LARGE


def test_a_message_above_the_limit_of_0_8() -> None:
    answer = produce(driver('0.8.2'), message_set(b'a' * 1_000_100))
    assert answer.error_code == MESSAGE_TOO_LARGE


@pytest.mark.parametrize(('release', 'error'), [('2.8', NONE), ('4.3', INVALID_TIMESTAMP)])
def test_a_timestamp_20_hours_ahead(release: str, error: int) -> None:
    ahead = NOW + 20 * 3600 * 1000
    assert produce(driver(release), batch(b'a', at=ahead)).error_code == error


def test_bad_timestamps_are_named_from_version_8_on() -> None:
    cluster = driver('4.4')
    ahead = NOW + 20 * 3600 * 1000
    data = encode_batch([(NOW, None, b'a', ()), (ahead, None, b'b', ())])
    answer = produce(cluster, data)
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert 'is out of range' in (answer.record_errors[0].batch_index_error_message or '')
    assert answer.error_message
    assert fetch(cluster).high_watermark == 0


@pytest.mark.parametrize(('release', 'error'), [('2.3', CORRUPT_MESSAGE), ('4.4', INVALID_RECORD)])
def test_a_compacted_topic_needs_keys(release: str, error: int) -> None:
    cluster = driver(release)
    cluster.state.topics[TOPIC].configs['cleanup.policy'] = 'compact'
    assert produce(cluster, batch(b'a')).error_code == error
    assert produce(cluster, batch(b'a', key=b'k')).error_code == NONE


@pytest.mark.parametrize('release', ['0.10.2', '2.8', '4.4'])
def test_log_append_time(release: str) -> None:
    cluster = driver(release)
    cluster.state.topics[TOPIC].configs['message.timestamp.type'] = 'LogAppendTime'
    cluster.advance(5)
    data = message_set(b'a', magic=1) if release == '0.10.2' else batch(b'a')
    assert produce(cluster, data).log_append_time_ms == NOW + 5000
    records = fetch(cluster).records
    assert records is not None
    found = next(iter(MemoryRecords(records)))
    assert found.timestamp_type == 1
    assert [record.timestamp for record in found] == [NOW + 5000]


def test_a_topic_that_compresses() -> None:
    cluster = driver('4.4')
    cluster.state.topics[TOPIC].configs['compression.type'] = 'gzip'
    produce(cluster, batch(b'a', b'b'))
    records = fetch(cluster).records
    assert records is not None and records[22] & 7 == 1
    assert values(records) == [b'a', b'b']


@pytest.mark.parametrize('release', ['0.8.2', '0.9', '0.10.0', '2.3', '4.3'])
def test_acks_0_gets_no_answer_and_an_error_closes(release: str) -> None:
    cluster = driver(release)
    old = best(cluster, 0) < 3
    data = message_set(b'a') if old else batch(b'a')
    client = cluster.client()
    version = best(cluster, 0)
    client.send(produce_request(cluster, data, version, acks=0), version)
    assert not client.wire.written and not client.connection.is_closed
    client.send(produce_request(cluster, damaged(data), version, acks=0), version)
    assert client.connection.is_closed
    assert fetch(cluster).high_watermark == 1


@pytest.mark.parametrize('acks', [2, -2])
@pytest.mark.parametrize('release', ['0.9', '2.8', '4.4'])
def test_other_acks_are_refused_from_0_9_on(release: str, acks: int) -> None:
    data = message_set(b'a') if release == '0.9' else batch(b'a')
    answer = produce(driver(release), data, acks=acks)
    assert (answer.error_code, answer.base_offset) == (INVALID_REQUIRED_ACKS, -1)


def test_acks_2_on_0_8_times_out_and_keeps_the_data() -> None:
    cluster = driver('0.8.2')
    assert produce(cluster, message_set(b'a'), acks=2).error_code == REQUEST_TIMED_OUT
    assert cluster.timers.clock.monotonic() == 1.0
    assert fetch(cluster).high_watermark == 1


def test_acks_2_on_0_8_with_two_replicas() -> None:
    assert produce(driver('0.8.2', brokers=2), message_set(b'a'), acks=2).error_code == NONE


def test_too_few_replicas_in_sync() -> None:
    cluster = driver('4.4', brokers=2)
    cluster.state.topics[TOPIC].configs['min.insync.replicas'] = '2'
    assert produce(cluster, batch(b'a'), acks=-1).error_code == NONE
    cluster.state.node_died(1)
    assert produce(cluster, batch(b'b'), acks=-1).error_code == NOT_ENOUGH_REPLICAS
    assert produce(cluster, batch(b'c'), acks=1).base_offset == 1


@pytest.mark.parametrize(('release', 'error'), [('2.8', NOT_ENOUGH_REPLICAS), ('3.9', NONE)])
def test_more_replicas_in_sync_than_there_are(release: str, error: int) -> None:
    cluster = driver(release)
    cluster.state.topics[TOPIC].configs['min.insync.replicas'] = '2'
    assert produce(cluster, batch(b'a'), acks=-1).error_code == error


def test_a_broker_that_does_not_lead_names_the_one_that_does() -> None:
    cluster = driver('4.4', brokers=2)
    request = produce_request(cluster, batch(b'a'), 13)
    response = cluster.ask(request, 13, node=1)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (0, 0)
    assert [(each.node_id, each.port) for each in response.node_endpoints] == [(0, 9092)]


def test_a_topic_that_is_not_there() -> None:
    cluster = Driver('4.3')
    cluster.state.create_topic(TOPIC)
    by_name, by_id = (produce_request(cluster, batch(b'a'), version) for version in (12, 13))
    cluster.state.drop_topic(TOPIC)
    for request, version, error in (
        (by_name, 12, UNKNOWN_TOPIC_OR_PARTITION),
        (by_id, 13, UNKNOWN_TOPIC_ID),
    ):
        answer = cluster.ask(request, version).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (error, -1)


@pytest.mark.parametrize('release', ['0.8.2', '2.8', '4.4'])
def test_nobody_writes_to_internal_topics(release: str) -> None:
    cluster = driver(release)
    version = min(12, best(cluster, 0))
    request = produce_request(cluster, batch(b'a'), version)
    request.topic_data[0].name = '__consumer_offsets'
    answer = cluster.ask(request, version).responses[0].partition_responses[0]
    assert answer.error_code == INVALID_TOPIC_EXCEPTION


def test_a_partition_that_is_not_there() -> None:
    assert produce(driver('4.4'), batch(b'a'), index=9).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_transactional_batch_without_transactional_id() -> None:
    data = batch(b'a', transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    answer = produce(driver('4.3'), data, 11)
    assert answer.error_code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_before_2_1_the_id_alone_says_what_is_transactional() -> None:
    cluster = driver('1.1')
    assert produce(cluster, batch(b'a', transactional=True)).error_code == NONE
    assert fetch(cluster, isolation_level=1).last_stable_offset == 1


@pytest.mark.parametrize('release', ['0.11', '1.1'])
def test_before_2_1_garbage_closes_the_connection(release: str) -> None:
    cluster = driver(release)
    client = cluster.client()
    client.send(produce_request(cluster, bytes(70), 3), 3)
    assert client.connection.is_closed


def sequenced(base: int, *found: bytes, epoch: int = 0) -> bytes:
    return batch(*found, producer_id=7, producer_epoch=epoch, base_sequence=base)


def test_a_repeated_batch_is_answered_as_the_first_time() -> None:
    cluster = driver('4.4')
    for base in range(5):
        produce(cluster, sequenced(base, b'%d' % base))
    again = produce(cluster, sequenced(1, b'1'))
    assert (again.error_code, again.base_offset) == (NONE, 1)
    assert fetch(cluster).high_watermark == 5


def test_a_gap_in_the_sequence() -> None:
    cluster = driver('4.4')
    produce(cluster, sequenced(0, b'a'))
    assert produce(cluster, sequenced(2, b'c')).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_request_of_nothing() -> None:
    cluster = driver('4.4')
    request = produce_request(cluster, b'', 13)
    request.topic_data = []
    assert cluster.ask(request, 13).responses == []


@pytest.mark.parametrize('cut', [1, 11, 16, 20, 60])
def test_a_cut_off_batch(cut: int) -> None:
    assert produce(driver('4.4'), batch(b'a')[:cut]).error_code == INVALID_RECORD


@pytest.mark.parametrize('size', [-1, 0, 5, 13])
def test_a_batch_of_an_impossible_size(size: int) -> None:
    data = bytearray(batch(b'a'))
    struct.pack_into('>i', data, 8, size)
    assert produce(driver('4.4'), bytes(data)).error_code == CORRUPT_MESSAGE
