"""Reading through a share group: acquisitions, acknowledgements, sessions, waiting."""

from __future__ import annotations

import pytest

from kafka.testing.errors import (
    INVALID_RECORD_STATE,
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.share_partition import ACCEPT, REJECT, RELEASE, RENEW
from kafka.testing.logs.appending import append, append_marker
from kafka.testing.logs.partition_log import Batch
from test.testing.data_requests import NOW, TOPIC, batch
from test.testing.share_members import (
    ShareMember,
    acquired,
    codes,
    reader,
    set_config,
    started,
    values,
    write,
)


def test_a_member_gets_records_and_the_right_to_deal_with_them():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y')
    response = member.fetch()
    assert acquired(response) == {0: [(0, 1, 1)]}
    assert values(response) == [(0, b'x'), (1, b'y')]
    assert response.acquisition_lock_timeout_ms == 30000


def test_two_members_of_a_partition_get_different_records():
    cluster = started()
    first, second = reader(cluster, 'a'), reader(cluster, 'b')
    write(cluster, b'x')
    write(cluster, b'y')
    assert values(first.fetch(max_records=1)) == [(0, b'x')]
    assert values(second.fetch(max_records=1)) == [(1, b'y')]


def test_a_group_begins_at_the_end_of_the_log_unless_told_otherwise():
    cluster = started(reset='latest')
    write(cluster, b'old')
    member = reader(cluster)
    assert values(member.fetch()) == []
    write(cluster, b'new')
    assert values(member.fetch()) == [(1, b'new')]


def test_a_group_may_begin_at_a_time():
    cluster = started(reset='by_duration:PT1H')
    write(cluster, b'old', at=cluster.timers.clock.wall_ms() - 7200000)
    write(cluster, b'new', at=cluster.timers.clock.wall_ms())
    assert values(reader(cluster).fetch()) == [(1, b'new')]


def test_released_records_come_again_to_another_member():
    cluster = started()
    first, second = reader(cluster, 'a'), reader(cluster, 'b')
    write(cluster, b'x')
    first.fetch()
    assert codes(first.acknowledge((0, 0, RELEASE))) == [NONE]
    assert acquired(second.fetch()) == {0: [(0, 0, 2)]}


def test_accepted_and_rejected_records_do_not_come_again():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y')
    member.fetch()
    assert codes(member.acknowledge((0, 1, ACCEPT, REJECT))) == [NONE]
    assert values(member.fetch()) == []


def test_acknowledgements_travel_with_the_next_fetch():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    member.fetch()
    write(cluster, b'y')
    response = member.fetch((0, 0, ACCEPT))
    assert codes(response) == [NONE]
    assert values(response) == [(1, b'y')]
    assert codes(member.fetch((0, 0, ACCEPT), (5, 5, ACCEPT))) == [INVALID_REQUEST]


def test_whoever_waits_gets_what_comes_back_by_time():
    cluster = started()
    first, second = reader(cluster, 'a'), reader(cluster, 'b')
    write(cluster, b'x')
    first.fetch()
    before = cluster.timers.clock.monotonic()
    assert acquired(second.fetch(max_wait_ms=60000)) == {0: [(0, 0, 2)]}
    assert 29 < cluster.timers.clock.monotonic() - before <= 30


def test_the_time_is_a_setting_of_the_group():
    cluster = started()
    set_config(cluster, 'share.record.lock.duration.ms', '15000')
    member = reader(cluster)
    write(cluster, b'x')
    assert member.fetch().acquisition_lock_timeout_ms == 15000
    cluster.advance(16)
    assert codes(member.acknowledge((0, 0, ACCEPT))) == [INVALID_RECORD_STATE]


def test_the_number_of_deliveries_is_a_setting_of_the_group():
    cluster = started()
    set_config(cluster, 'share.delivery.count.limit', '2')
    member = reader(cluster)
    write(cluster, b'x')
    for _ in range(2):
        assert acquired(member.fetch())
        member.acknowledge((0, 0, RELEASE))
    assert values(member.fetch()) == []


def test_a_fetch_waits_for_records():
    cluster = started()
    member = reader(cluster)
    before = cluster.timers.clock.monotonic()
    cluster.timers.later(0.5, lambda: None)
    assert member.fetch(max_wait_ms=2000).responses[0].partitions[0].acquired_records == []
    assert cluster.timers.clock.monotonic() - before == pytest.approx(2)


def test_a_mode_that_nobody_knows_is_an_error():
    member = reader(started())
    assert member.fetch(share_acquire_mode=7).error_code == UNKNOWN_SERVER_ERROR


def test_who_wants_no_bytes_waits_for_none():
    cluster = started()
    member = reader(cluster)
    before = cluster.timers.clock.monotonic()
    assert acquired(member.fetch(min_bytes=0, max_wait_ms=5000)) == {0: []}
    assert cluster.timers.clock.monotonic() == before


def test_who_leaves_the_group_keeps_what_its_session_has():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    member.fetch()
    member.leave()
    assert codes(member.acknowledge((0, 0, ACCEPT))) == [NONE]


def test_a_group_that_stored_nothing_begins_anew_with_its_next_session():
    cluster = started(reset='latest')
    member = reader(cluster)
    member.fetch()
    member.fetch(epoch=-1, indexes=())
    write(cluster, b'x')
    other = reader(cluster, 'b')
    other.fetch()
    write(cluster, b'y')
    assert values(other.fetch()) == [(1, b'y')]


def test_only_news_are_told_after_the_first_fetch():
    cluster = started(partitions=2)
    member = reader(cluster)
    assert acquired(member.fetch(indexes=(0, 1))) == {0: [], 1: []}
    write(cluster, b'x', index=1)
    assert acquired(member.fetch(indexes=())) == {1: [(0, 0, 1)]}


def test_partitions_can_be_forgotten():
    cluster = started(partitions=2)
    member = reader(cluster)
    member.fetch(indexes=(0, 1))
    write(cluster, b'x', index=1)
    assert acquired(member.fetch(indexes=(), forget=[1])) == {}


def test_partitions_have_their_turns():
    cluster = started(partitions=2)
    member = reader(cluster)
    member.fetch(indexes=(0, 1))
    for index in (0, 1):
        write(cluster, b'x', index=index)
    first = acquired(member.fetch(indexes=(), max_records=1))
    assert sorted(first.items()) in ([(0, [(0, 0, 1)])], [(1, [(0, 0, 1)])])
    assert acquired(member.fetch(indexes=(), max_records=1)).keys() != first.keys()


@pytest.mark.parametrize('version', [1, 2])
def test_records_that_are_rather_large_come_one_batch_at_a_time(version):
    cluster = started()
    member = reader(cluster)
    for _ in range(2):
        write(cluster, bytes(1000))
    assert len(values(member.fetch(max_bytes=500, version=version))) == 1


# ------------------------------------------------------------ sessions


def test_a_session_goes_on_from_epoch_to_epoch():
    cluster = started()
    member = reader(cluster)
    assert member.fetch(epoch=1).error_code == SHARE_SESSION_NOT_FOUND
    member.fetch()
    assert member.fetch(epoch=2).error_code == INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=1).error_code == NONE
    assert member.acknowledge((0, 0, ACCEPT), epoch=1).error_code == INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge((0, 0, ACCEPT), epoch=0).error_code == INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge((0, 0, ACCEPT), epoch=2).error_code == NONE


def test_the_first_fetch_of_a_session_acknowledges_nothing():
    cluster = started()
    assert reader(cluster).fetch((0, 0, ACCEPT)).error_code == INVALID_REQUEST


@pytest.mark.parametrize(('version', 'count'), [('4.1', 1), ('4.2', 2), ('4.4', 2)])
def test_the_end_of_a_session_gives_back_what_its_member_had(version, count):
    cluster = started(version)
    cluster.state.features['share.version'] = 1
    first, second = reader(cluster, 'a'), reader(cluster, 'b')
    write(cluster, b'x', b'y')
    write(cluster, b'z')
    first.fetch()
    response = first.fetch((0, 0, ACCEPT), epoch=-1)
    assert (response.error_code, codes(response)) == (NONE, [NONE])
    assert [each[:1] + each[2:] for each in acquired(second.fetch())[0]][0] == (1, count)
    assert first.fetch(epoch=-1).error_code == SHARE_SESSION_NOT_FOUND


def test_the_end_of_a_connection_gives_back_what_was_acquired_over_it():
    cluster = started()
    first, second = reader(cluster, 'a'), reader(cluster, 'b')
    write(cluster, b'x')
    first.fetch()
    connection = cluster._clients.pop(0).connection
    assert values(second.fetch()) == []
    connection.receive_data(b'')
    assert acquired(second.fetch()) == {0: [(0, 0, 2)]}


def test_there_are_only_so_many_sessions():
    cluster = started()
    member = reader(cluster)
    member.fetch()
    cluster.state.share_sessions[0]._limit = 1
    before = cluster.timers.clock.monotonic()
    other = ShareMember(cluster, 'b')
    assert other.fetch(max_wait_ms=700).error_code == SHARE_SESSION_LIMIT_REACHED
    assert cluster.timers.clock.monotonic() - before == pytest.approx(0.7)


@pytest.mark.parametrize('member_id', ['', None, 37 * 'x'])
def test_a_member_id_must_be_a_name(member_id):
    cluster = started()
    assert reader(cluster).fetch(member_id=member_id).error_code == INVALID_REQUEST


def test_a_group_id_must_be_there():
    cluster = started()
    assert reader(cluster).fetch(group_id=None).error_code == INVALID_REQUEST


def test_a_release_without_share_groups_refuses():
    cluster = started('4.1')
    assert ShareMember(cluster).fetch().error_code == UNSUPPORTED_VERSION
    assert ShareMember(cluster).acknowledge((0, 0, ACCEPT)).error_code == UNSUPPORTED_VERSION


# ------------------------------------------------------------ acknowledgements that mean nothing


@pytest.mark.parametrize(
    'told',
    [
        [(5, 2, ACCEPT)],
        [(0, 1)],
        [(0, 0, 9)],
        [(0, 0, -1)],
        [(0, 2, ACCEPT, ACCEPT)],
        [(3, 4, ACCEPT), (0, 1, ACCEPT)],
        [(0, 0, RENEW)],
    ],
)
def test_an_acknowledgement_must_make_sense(told):
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y')
    member.fetch()
    assert codes(member.acknowledge(*told)) == [INVALID_REQUEST]


def test_acknowledging_in_a_topic_that_is_gone_is_an_error():
    cluster = started()
    member = reader(cluster)
    member.fetch()
    assert codes(member.acknowledge((0, 0, ACCEPT), topic_id=b'\x07' * 16)) == [UNKNOWN_TOPIC_ID]


def test_acknowledging_where_nothing_was_read_is_an_error():
    cluster = started()
    member = reader(cluster)
    member.fetch(indexes=())
    assert codes(member.acknowledge((0, 0, ACCEPT))) == [UNKNOWN_TOPIC_OR_PARTITION]


def test_renewing_takes_a_word_at_the_top():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    member.fetch()
    cluster.advance(20)
    assert codes(member.acknowledge((0, 0, RENEW), is_renew_ack=True)) == [NONE]
    cluster.advance(20)
    assert codes(member.acknowledge((0, 0, ACCEPT))) == [NONE]


def test_a_fetch_that_renews_fetches_nothing():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x')
    member.fetch()
    limits = {'max_wait_ms': 0, 'min_bytes': 0, 'max_bytes': 0, 'max_records': 0}
    assert member.fetch((0, 0, RENEW), is_renew_ack=True, epoch=1).error_code == INVALID_REQUEST
    write(cluster, b'y')
    response = member.fetch((0, 0, RENEW), is_renew_ack=True, **limits)
    assert (codes(response), values(response)) == ([NONE], [])


# ------------------------------------------------------------ leaders, transactions, isolation


def test_another_broker_names_the_leader():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators['queue'] = 1
    member = reader(cluster, node=1)
    (topic,) = member.fetch().responses
    (part,) = topic.partitions
    assert part.error_code == NOT_LEADER_OR_FOLLOWER
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (0, 0)


def test_a_topic_that_is_unknown_is_an_error_at_once():
    cluster = started()
    member = reader(cluster)
    cluster.state.drop_topic(TOPIC)
    other = cluster.state.create_topic(TOPIC, 1)
    before = cluster.timers.clock.monotonic()
    assert codes(member.fetch()) == [UNKNOWN_SERVER_ERROR]
    cluster.state.drop_topic(TOPIC)
    cluster.state.topics[TOPIC] = other  # for the id that the member asks with
    assert codes(member.fetch(indexes=())) == [UNKNOWN_TOPIC_ID]
    assert cluster.timers.clock.monotonic() == before


def test_before_4_4_a_topic_that_is_unknown_spoils_the_whole_fetch():
    cluster = started('4.3')
    member = reader(cluster)
    member.fetch()
    cluster.state.drop_topic(TOPIC)
    cluster.state.create_topic(TOPIC, 1)
    assert member.fetch().error_code == UNKNOWN_SERVER_ERROR


def test_a_group_of_which_nobody_knows_reads_nothing():
    cluster = started()
    assert codes(ShareMember(cluster, group_id='none').fetch()) == [UNKNOWN_SERVER_ERROR]


def _transaction(cluster, commit):
    partition = cluster.state.topics[TOPIC].partitions[0]
    append_marker(cluster.state, cluster.waiting, partition, 7, 0, commit)


@pytest.mark.parametrize(
    ('level', 'read'), [('read_uncommitted', [b'x', b'y']), ('read_committed', [b'y'])]
)
def test_records_of_aborted_transactions_are_for_those_who_want_them(level, read):
    cluster = started()
    set_config(cluster, 'share.isolation.level', level)
    member = reader(cluster)
    write_transactional(cluster, b'x')
    _transaction(cluster, commit=False)
    write(cluster, b'y')
    response = member.fetch()
    got = {n for first, last, _ in acquired(response)[0] for n in range(first, last + 1)}
    assert [value for offset, value in values(response) if offset in got and offset != 1] == read


def test_records_of_open_transactions_are_for_those_who_want_them():
    cluster = started()
    set_config(cluster, 'share.isolation.level', 'read_committed')
    member = reader(cluster)
    write_transactional(cluster, b'x')
    assert values(member.fetch()) == []
    _transaction(cluster, commit=True)
    assert values(member.fetch())[0] == (0, b'x')


def write_transactional(cluster, value):
    data = batch(value, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    made = Batch(0, 0, NOW, 2, data, 7, 0, 0, is_transactional=True)
    append(cluster.state, cluster.waiting, cluster.state.topics[TOPIC].partitions[0], [made])


def test_a_row_may_be_of_no_length_at_all():
    cluster = started()
    member = reader(cluster)
    write(cluster, b'x', b'y')
    write(cluster, b'z')
    assert acquired(member.fetch(batch_size=-5)) == {0: [(0, 1, 1), (2, 2, 1)]}


def test_another_leader_offers_again_what_was_only_acquired():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators['queue'] = 1
    member = reader(cluster, node=1)
    member.node = 0
    write(cluster, b'x', b'y')
    member.fetch()
    assert codes(member.acknowledge((0, 0, RELEASE))) == [NONE]
    assert acquired(member.fetch()) == {0: [(0, 0, 2)]}
    cluster.state.topics[TOPIC].partitions[0].elect([1])
    assert codes(member.fetch()) == [NOT_LEADER_OR_FOLLOWER]
    assert codes(member.acknowledge((0, 0, ACCEPT))) == [UNKNOWN_TOPIC_OR_PARTITION]
    other = ShareMember(cluster, 'b', node=1)
    assert acquired(other.fetch()) == {0: [(0, 0, 2), (1, 1, 1)]}


def test_a_broker_that_dies_stores_nothing():
    cluster = started(brokers=2)
    cluster.state.moved_coordinators['queue'] = 1
    member = reader(cluster, node=1)
    member.node = 0
    write(cluster, b'x')
    member.fetch()
    cluster.brokers[0].close_connections()
    cluster.state.node_died(0)
    cluster.advance(1)
    assert acquired(ShareMember(cluster, 'b', node=1).fetch()) == {0: [(0, 0, 1)]}
