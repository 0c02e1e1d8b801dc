"""Fetch in an embedded cluster."""

from __future__ import annotations

from typing import Any, List, Tuple

import pytest

from kafka.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from kafka.record.memory_records import MemoryRecords
from kafka.testing.errors import (
    FENCED_LEADER_EPOCH,
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kafka.testing.logs.appending import append_marker
from test.testing.data_requests import (
    TOPIC,
    batch,
    driver,
    fetch,
    fetch_request,
    message_set,
    offsets,
    produce,
    values,
)
from test.testing.drive import Driver

READ_COMMITTED = 1


@pytest.mark.parametrize('version', range(4, 18))
def test_each_version(version: int) -> None:
    cluster = driver('4.0')
    produce(cluster, batch(b'a', b'b'))
    produce(cluster, batch(b'c'))
    answer = fetch(cluster, 2, version)
    assert (answer.error_code, answer.high_watermark) == (NONE, 3)
    assert answer.last_stable_offset == 3
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert answer.aborted_transactions is None
    assert values(answer.records) == [b'c']


def test_reading_begins_with_the_batch_that_holds_the_offset() -> None:
    cluster = driver()
    produce(cluster, batch(b'a', b'b', b'c'))
    assert offsets(fetch(cluster, 1).records) == [0, 1, 2]


@pytest.mark.parametrize(('level', 'offset'), [(0, -1), (1, 1)])
def test_before_2_1_only_readers_of_committed_records_are_told_what_is_stable(
    level: int, offset: int
) -> None:
    cluster = driver('1.1')
    produce(cluster, batch(b'a'))
    assert fetch(cluster, 0, isolation_level=level).last_stable_offset == offset


@pytest.mark.parametrize('release', ['0.8.0', '0.9', '0.10.2'])
def test_reading_begins_with_the_message_in_old_formats(release: str) -> None:
    cluster = driver(release)
    produce(cluster, message_set(b'a', b'b', b'c'))
    assert offsets(fetch(cluster, 1).records) == [1, 2]


@pytest.mark.parametrize('release', ['0.8.0', '0.9', '0.10.2', '0.11', '4.4'])
@pytest.mark.parametrize('offset', [-1, 2, 1 << 40])
def test_an_offset_that_is_not_there(release: str, offset: int) -> None:
    cluster = driver(release)
    produce(cluster, batch(b'a') if release > '0.10.9' else message_set(b'a'))
    answer = fetch(cluster, offset)
    assert (answer.error_code, answer.high_watermark) == (OFFSET_OUT_OF_RANGE, -1)
    assert answer.records == b''


def test_an_offset_before_the_start_of_the_log() -> None:
    cluster = driver()
    produce(cluster, batch(b'a'))
    produce(cluster, batch(b'b'))
    cluster.state.topics[TOPIC].partitions[0].log.delete_before(1)
    assert fetch(cluster, 0).error_code == OFFSET_OUT_OF_RANGE
    assert values(fetch(cluster, 1).records) == [b'b']


# ---------------------------------------------------------------- waiting


def waiting_client(cluster: Driver, **fields: Any) -> Any:
    client = cluster.client()
    client.send(fetch_request(cluster, 17, 0, **fields), 17)
    return client


def test_at_the_end_of_the_log_it_waits_until_the_time_is_over() -> None:
    cluster = driver()
    client = waiting_client(cluster, max_wait_ms=500)
    cluster.advance(0.4)
    assert client.receive() is None
    cluster.advance(0.1)
    answer = client.receive().responses[0].partitions[0]
    assert (answer.error_code, answer.records) == (NONE, b'')


def test_it_answers_as_soon_as_something_is_written() -> None:
    cluster = driver()
    client = waiting_client(cluster, max_wait_ms=500)
    produce(cluster, batch(b'a'))
    assert values(client.receive().responses[0].partitions[0].records) == [b'a']


def test_it_waits_for_min_bytes() -> None:
    cluster = driver()
    client = waiting_client(cluster, max_wait_ms=500, min_bytes=100)
    produce(cluster, batch(b'a'))
    assert client.receive() is None
    produce(cluster, batch(b'b'))
    assert values(client.receive().responses[0].partitions[0].records) == [b'a', b'b']


def test_an_error_does_not_wait() -> None:
    client = waiting_client(driver(), max_wait_ms=500, fetch_offset=5)
    assert client.receive() is not None


def test_no_partitions_means_an_answer_at_once() -> None:
    cluster = driver()
    client = cluster.client()
    client.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[]), 17)
    assert client.receive().responses == []


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(('release', 'version'), [('0.8.2', 0), ('0.9', 1), ('0.10.2', 2)])
def test_old_versions_cut_the_first_message(release: str, version: int) -> None:
    cluster = driver(release)
    produce(cluster, message_set(b'a' * 100))
    answer = fetch(cluster, 0, version, partition_max_bytes=50)
    assert (answer.error_code, len(answer.records or b'')) == (NONE, 50)


@pytest.mark.parametrize('release', ['0.10.2', '4.4'])
def test_the_first_batch_comes_whole_from_version_3_on(release: str) -> None:
    cluster = driver(release)
    produce(cluster, message_set(b'a', magic=1) if release == '0.10.2' else batch(b'a'))
    assert values(fetch(cluster, 0, partition_max_bytes=1).records) == [b'a']


def test_a_partition_limit_of_0_on_0_8_gives_nothing() -> None:
    cluster = driver('0.8.2')
    produce(cluster, message_set(b'a'))
    answer = fetch(cluster, 0, partition_max_bytes=0)
    assert (answer.error_code, answer.records) == (NONE, b'')


def test_a_batch_behind_the_limit_is_cut_off() -> None:
    cluster = driver()
    for _ in range(2):
        produce(cluster, batch(b'a' * 100))
    one = len(cluster.state.topics[TOPIC].partitions[0].log.batches[0].data)
    answer = fetch(cluster, 0, partition_max_bytes=one + 30)
    assert len(answer.records or b'') == one + 30
    assert offsets(answer.records) == [0]


def both_partitions(cluster: Driver, **limits: int) -> List[bytes]:
    for index in (0, 1):
        produce(cluster, batch(b'%d' % index * 100), index=index)
    asked = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in (0, 1)
    ]
    topic = FetchTopic(topic_id=cluster.state.topics[TOPIC].topic_id, partitions=asked)
    response = cluster.ask(FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic], **limits), 17)
    return [each.records for each in response.responses[0].partitions]


def test_the_limit_of_the_whole_answer() -> None:
    first, second = both_partitions(driver(partitions=2), max_bytes=200)
    assert values(first) == [b'0' * 100]
    assert second == b''


def test_room_for_both_partitions() -> None:
    assert all(both_partitions(driver(partitions=2), max_bytes=1000))


# ---------------------------------------------------------------- leaders and epochs


def test_a_follower_answers_from_version_11_on() -> None:
    cluster = driver(brokers=2)
    produce(cluster, batch(b'a'))
    assert values(fetch(cluster, 0, 11, node=1).records) == [b'a']
    assert fetch(cluster, 0, 10, node=1).error_code == NOT_LEADER_OR_FOLLOWER


def test_a_node_without_replica_names_the_leader() -> None:
    cluster = Driver('4.4', brokers=2)
    cluster.state.create_topic(TOPIC, assignments=[[0]])
    response = cluster.ask(fetch_request(cluster, 17, 0), 17, node=1)
    answer = response.responses[0].partitions[0]
    assert (answer.error_code, answer.current_leader.leader_id) == (NOT_LEADER_OR_FOLLOWER, 0)
    assert [each.port for each in response.node_endpoints] == [9092]


@pytest.mark.parametrize(
    ('epoch', 'error'),
    [(-1, NONE), (0, FENCED_LEADER_EPOCH), (1, NONE), (2, UNKNOWN_LEADER_EPOCH)],
)
def test_the_leader_epoch_of_the_reader(epoch: int, error: int) -> None:
    cluster = driver(brokers=2)
    cluster.state.topics[TOPIC].partitions[0].elect([0, 1], preferred=1)
    assert fetch(cluster, node=1, current_leader_epoch=epoch).error_code == error


def test_a_log_that_diverged() -> None:
    cluster = driver(brokers=2)
    produce(cluster, batch(b'a'))
    cluster.state.topics[TOPIC].partitions[0].elect([0, 1], preferred=1)
    produce(cluster, batch(b'b'), node=1)
    answer = fetch(cluster, 2, node=1, last_fetched_epoch=0)
    assert answer.error_code == NONE and answer.records == b''
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)


def test_a_nearer_replica() -> None:
    cluster = driver(brokers=2)
    cluster.state.nodes[1].rack = 'here'
    selector = 'org.apache.kafka.common.replica.RackAwareReplicaSelector'
    cluster.state.configs[4, ''] = {'replica.selector.class': selector}
    produce(cluster, batch(b'a'))
    answer = fetch(cluster, rack_id='here')
    assert (answer.preferred_read_replica, answer.records) == (1, b'')
    assert values(fetch(cluster, node=1, rack_id='here').records) == [b'a']
    assert fetch(cluster, rack_id='elsewhere').preferred_read_replica == -1


def test_a_topic_that_is_not_there() -> None:
    cluster = driver('4.3')
    by_name, by_id = (fetch_request(cluster, version, 0) for version in (12, 17))
    cluster.state.drop_topic(TOPIC)
    for request, version, error in (
        (by_name, 12, UNKNOWN_TOPIC_OR_PARTITION),
        (by_id, 17, UNKNOWN_TOPIC_ID),
    ):
        answer = cluster.ask(request, version).responses[0].partitions[0]
        assert (answer.error_code, answer.high_watermark) == (error, -1)


# ---------------------------------------------------------------- transactions


def transactional(cluster: Driver, producer_id: int, value: bytes, sequence: int = 0) -> None:
    data = batch(
        value,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    answer = produce(cluster, data, 7, transactional_id='t%d' % producer_id)
    assert answer.error_code == NONE


def end(cluster: Driver, producer_id: int, commit: bool) -> None:
    partition = cluster.state.topics[TOPIC].partitions[0]
    assert append_marker(cluster.state, cluster.waiting, partition, producer_id, 0, commit) == NONE


def test_readers_of_committed_records_stop_at_the_open_transaction() -> None:
    cluster = driver('2.8')
    produce(cluster, batch(b'a'))
    transactional(cluster, 1, b'b')
    produce(cluster, batch(b'c'))
    answer = fetch(cluster, 0, isolation_level=READ_COMMITTED)
    assert (answer.high_watermark, answer.last_stable_offset) == (3, 1)
    assert values(answer.records) == [b'a']
    beyond = fetch(cluster, 2, isolation_level=READ_COMMITTED)
    assert (beyond.error_code, beyond.records) == (NONE, b'')
    assert values(fetch(cluster, 0).records) == [b'a', b'b', b'c']


def test_aborted_transactions_are_named() -> None:
    cluster = driver('2.8')
    transactional(cluster, 1, b'a')
    transactional(cluster, 2, b'b')
    end(cluster, 1, commit=False)
    end(cluster, 2, commit=True)
    answer = fetch(cluster, 0, isolation_level=READ_COMMITTED)
    found = answer.aborted_transactions or []
    assert [(each.producer_id, each.first_offset) for each in found] == [(1, 0)]
    assert answer.last_stable_offset == 4
    assert fetch(cluster, 3, isolation_level=READ_COMMITTED).aborted_transactions == []


def test_a_marker_lets_waiting_readers_go_on() -> None:
    cluster = driver('2.8')
    transactional(cluster, 1, b'a')
    client = cluster.client()
    client.send(fetch_request(cluster, 11, 0, isolation_level=1, max_wait_ms=9999), 11)
    assert client.receive() is None
    end(cluster, 1, commit=True)
    assert client.receive() is not None


# ---------------------------------------------------------------- older formats


@pytest.mark.parametrize(('version', 'magic'), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
@pytest.mark.parametrize('codec', [0, 1])
def test_fetchers_get_the_format_that_they_know(version: int, magic: int, codec: int) -> None:
    cluster = driver('2.8')
    produce(cluster, batch(b'a', b'b', codec=codec))
    produce(cluster, batch(b'c', codec=codec))
    for _ in range(2):
        found = []
        while len(found) < 3:  # what became larger than it was is cut off
            records = fetch(cluster, len(found), version).records
            assert {part.magic for part in MemoryRecords(records)} == {magic}
            offset = len(found)
            found += [v for o, v in zip(offsets(records), values(records)) if o >= offset]
        assert found == [b'a', b'b', b'c']


def test_wrappers_of_0_10_in_the_oldest_format() -> None:
    cluster = driver('0.10.2')
    produce(cluster, message_set(b'a', b'b', magic=1, codec=1))
    records = fetch(cluster, 1, 1).records
    assert [(part.magic, part.codec) for part in MemoryRecords(records)] == [(0, 1)]
    assert offsets(records) == [0, 1]


@pytest.mark.parametrize('first', [0, 1])
def test_0_10_gives_all_messages_the_codec_of_the_first(first: int) -> None:
    cluster = driver('0.10.2')
    for codec in (first, 1 - first):
        produce(cluster, message_set(b'a', b'b', magic=1, codec=codec))
    records = fetch(cluster, 0, 1).records
    assert [part.codec for part in MemoryRecords(records)] == [first]
    assert offsets(records) == [0, 1, 2, 3]


def test_messages_of_0_10_that_do_not_fit_are_left_out_when_they_are_converted() -> None:
    cluster = driver('0.10.2')
    produce(cluster, message_set(b'a', b'b', magic=1))
    records = fetch(cluster, 0, 1, partition_max_bytes=50).records
    assert [part.magic for part in MemoryRecords(records)] == [0]
    assert offsets(records) == [0]


@pytest.mark.parametrize(('release', 'version'), [('2.8', 4), ('2.8', 11), ('4.4', 12)])
def test_an_isolation_level_that_is_none(release: str, version: int) -> None:
    cluster = driver(release)
    response = cluster.ask(fetch_request(cluster, version, 0, isolation_level=5), version)
    assert response.error_code == (UNKNOWN_SERVER_ERROR if version >= 7 else NONE)
    answer = response.responses[0].partitions[0]
    assert (answer.error_code, answer.high_watermark) == (UNKNOWN_SERVER_ERROR, -1)


def test_a_partition_that_comes_twice_is_answered_once() -> None:
    cluster = driver()
    request = fetch_request(cluster, 17, 0)
    request.topics *= 2
    response = cluster.ask(request, 17)
    assert [len(topic.partitions) for topic in response.responses] == [1]


@pytest.mark.parametrize(('release', 'size'), [('2.8', 60), ('3.9', 0)])
def test_an_older_fetcher_and_a_batch_that_is_too_large(release: str, size: int) -> None:
    cluster = driver(release)
    produce(cluster, batch(b'a' * 100))
    records = fetch(cluster, 0, 1, partition_max_bytes=60).records
    assert len(records or b'') == size
    assert list(MemoryRecords(records)) == []


def test_older_fetchers_see_no_markers() -> None:
    cluster = driver('2.8')
    transactional(cluster, 1, b'a')
    end(cluster, 1, commit=True)
    produce(cluster, batch(b'b'))
    assert offsets(fetch(cluster, 0, 1).records) == [0, 2]


def test_zstd_has_no_older_format() -> None:
    pytest.importorskip('zstandard')
    cluster = driver('2.8')
    produce(cluster, batch(b'a', codec=4))
    assert fetch(cluster, 0, 3).error_code == UNSUPPORTED_COMPRESSION_TYPE


def test_4_0_sends_what_it_has() -> None:
    cluster = driver('4.4')
    produce(cluster, batch(b'a'))
    assert [part.magic for part in MemoryRecords(fetch(cluster, 0, 4).records)] == [2]


# ---------------------------------------------------------------- sessions


def session_fetch(
    cluster: Driver,
    session_id: int,
    epoch: int,
    asked: Tuple[Tuple[int, int], ...] = (),
    forgotten: Tuple[int, ...] = (),
    version: int = 12,
) -> FetchResponse:
    """Fetch the partitions in ``asked``, which are index and offset."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in asked
    ]
    names = {'topic': TOPIC} if version < 13 else {}
    ids = {'topic_id': cluster.state.topics[TOPIC].topic_id} if version >= 13 else {}
    request = FetchRequest(
        max_wait_ms=10,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(partitions=partitions, **names, **ids)] if partitions else [],
        forgotten_topics_data=[
            ForgottenTopic(partitions=list(forgotten), **names, **ids) for _ in forgotten[:1]
        ],
    )
    found: FetchResponse = cluster.ask(request, version)
    return found


def indexes(response: FetchResponse) -> List[int]:
    return [each.partition_index for topic in response.responses for each in topic.partitions]


BOTH = ((0, 0), (1, 0))


def test_a_session_leaves_out_what_is_not_new() -> None:
    cluster = driver(partitions=2)
    first = session_fetch(cluster, 0, 0, BOTH)
    assert first.session_id and indexes(first) == [0, 1]
    assert indexes(session_fetch(cluster, first.session_id, 1)) == []
    produce(cluster, batch(b'a'), index=1)
    assert indexes(session_fetch(cluster, first.session_id, 2)) == [1]


def test_data_come_again_until_the_offset_moves() -> None:
    cluster = driver(partitions=2)
    session_id = session_fetch(cluster, 0, 0, BOTH).session_id
    produce(cluster, batch(b'a'))
    assert indexes(session_fetch(cluster, session_id, 1)) == [0]
    assert indexes(session_fetch(cluster, session_id, 2)) == [0]
    assert indexes(session_fetch(cluster, session_id, 3, ((0, 1),))) == []


def test_partitions_can_be_forgotten() -> None:
    cluster = driver(partitions=2)
    session_id = session_fetch(cluster, 0, 0, BOTH).session_id
    session_fetch(cluster, session_id, 1, forgotten=(0,))
    produce(cluster, batch(b'a'))
    produce(cluster, batch(b'a'), index=1)
    assert indexes(session_fetch(cluster, session_id, 2)) == [1]


def test_a_session_without_partitions_is_closed() -> None:
    cluster = driver()
    session_id = session_fetch(cluster, 0, 0, ((0, 0),)).session_id
    assert session_fetch(cluster, session_id, 1, forgotten=(0,)).session_id == 0
    assert session_fetch(cluster, session_id, 2).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_is_not_there() -> None:
    answer = session_fetch(driver(), 77, 1)
    assert (answer.error_code, answer.session_id) == (FETCH_SESSION_ID_NOT_FOUND, 0)


def test_a_wrong_epoch_does_not_move_the_session() -> None:
    cluster = driver()
    session_id = session_fetch(cluster, 0, 0, ((0, 0),)).session_id
    assert session_fetch(cluster, session_id, 2).error_code == INVALID_FETCH_SESSION_EPOCH
    assert session_fetch(cluster, session_id, 1).error_code == NONE
    assert session_fetch(cluster, session_id, 1).error_code == INVALID_FETCH_SESSION_EPOCH


def test_closing_a_session() -> None:
    cluster = driver()
    session_id = session_fetch(cluster, 0, 0, ((0, 0),)).session_id
    assert session_fetch(cluster, session_id, -1, ((0, 0),)).session_id == 0
    assert session_fetch(cluster, session_id, 1).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_full_request_replaces_the_session() -> None:
    cluster = driver()
    old = session_fetch(cluster, 0, 0, ((0, 0),)).session_id
    new = session_fetch(cluster, old, 0, ((0, 0),)).session_id
    assert new not in (0, old)
    assert session_fetch(cluster, old, 1).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cluster = driver()
    session_id = session_fetch(cluster, 0, 0, ((0, 0),), version=12).session_id
    answer = session_fetch(cluster, session_id, 1, version=13)
    assert answer.error_code == FETCH_SESSION_TOPIC_ID_ERROR


def test_sessions_die_with_their_node() -> None:
    cluster = driver()
    session_id = session_fetch(cluster, 0, 0, ((0, 0),)).session_id
    cluster.state.node_died(0)
    cluster.state.node_came(0)
    assert session_fetch(cluster, session_id, 1).error_code == FETCH_SESSION_ID_NOT_FOUND
