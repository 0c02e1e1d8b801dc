"""OffsetCommit, OffsetFetch and OffsetDelete of the embedded broker, release by release."""

from __future__ import annotations

import pytest

from kafka.protocol.commit import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from kafka.protocol.group import MemberIdentity
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
    UNSUPPORTED_VERSION,
)

from ..drive import Driver
from ..group_requests import (
    GROUP,
    Consumer,
    commit,
    commit_error,
    fetch,
    fetch_groups,
    fetched,
    leave,
    settle,
)

NOW_MS = 1_600_000_000_000  # when the virtual clock begins


def started(version='4.4', **settings):
    driver = Driver(version, **settings)
    driver.state.create_topic('t', 1)
    return driver


def member_commit(consumer, offset=5, **changed):
    fields = {
        'generation_id_or_member_epoch': consumer.generation,
        'member_id': consumer.member_id,
    }
    fields.update(changed)
    return commit(offset, **fields)


@pytest.fixture
def driver():
    return started()


# ------------------------------------------------------------ every version


@pytest.mark.parametrize('version', range(2, 10))
def test_a_commit_of_any_version_is_stored(driver, version):
    assert commit_error(driver.ask(commit(7, metadata='m'), version)) == NONE
    stored = driver.state.offsets.fetch(GROUP, 't', 0)
    assert (stored.offset, stored.metadata) == (7, 'm')


@pytest.mark.parametrize('version', range(1, 8))
def test_an_offset_is_fetched_in_any_version(driver, version):
    driver.ask(commit(7, metadata='m'), 9)
    found = fetched(driver.ask(fetch('t'), version))
    assert (found.committed_offset, found.metadata, found.error_code) == (7, 'm', NONE)


@pytest.mark.parametrize('version', [8, 9])
def test_an_offset_is_fetched_for_a_group_among_others(driver, version):
    driver.ask(commit(7), 9)
    response = driver.ask(fetch_groups(), version)
    assert (response.groups[0].group_id, response.groups[0].error_code) == (GROUP, NONE)
    assert fetched(response).committed_offset == 7


def test_version_10_names_topics_by_id(driver):
    topic_id = driver.state.topics['t'].topic_id
    assert commit_error(driver.ask(commit(7, topic_id=topic_id), 10)) == NONE
    response = driver.ask(fetch_groups(topic_id=topic_id), 10)
    assert response.groups[0].topics[0].topic_id == topic_id
    assert fetched(response).committed_offset == 7
    response = driver.ask(fetch_groups(topic=None), 10)
    assert response.groups[0].topics[0].topic_id == topic_id


def test_an_unknown_topic_id_is_told_so(driver):
    wrong = b'x' * 16
    response = driver.ask(commit(7, topic_id=wrong), 10)
    assert (commit_error(response), response.topics[0].topic_id) == (UNKNOWN_TOPIC_ID, wrong)
    found = fetched(driver.ask(fetch_groups(topic_id=wrong), 10))
    assert (found.committed_offset, found.error_code) == (-1, UNKNOWN_TOPIC_ID)


def test_the_leader_epoch_is_kept_from_version_6(driver):
    request = commit(7)
    request.topics[0].partitions[0].committed_leader_epoch = 3
    driver.ask(request, 6)
    assert fetched(driver.ask(fetch('t'), 5)).committed_leader_epoch == 3
    assert fetched(driver.ask(fetch('t'), 4)).committed_leader_epoch == -1


# ------------------------------------------------------------ ZooKeeper


@pytest.mark.parametrize('version', ['0.8.1', '0.8.2', '0.9', '2.8'])
def test_version_0_is_stored_in_zookeeper_by_any_broker(version):
    driver = started(version, brokers=2)
    for node in (0, 1):
        assert commit_error(driver.ask(commit(7 + node, metadata='m'), 0, node=node)) == NONE
        found = fetched(driver.ask(fetch('t'), 0, node=1 - node))
        assert (found.committed_offset, found.metadata, found.error_code) == (7 + node, '', NONE)


def test_zookeeper_and_coordinator_do_not_share_offsets():
    driver = started('0.9')
    driver.ask(commit(7), 0)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1
    driver.ask(commit(9), 2)
    assert fetched(driver.ask(fetch('t'), 0)).committed_offset == 7


def test_version_0_says_3_where_nothing_is_stored():
    found = fetched(started('0.9').ask(fetch('t'), 0))
    assert (found.committed_offset, found.error_code) == (-1, UNKNOWN_TOPIC_OR_PARTITION)


def test_zookeeper_takes_no_offsets_of_unknown_topics():
    assert commit_error(started('0.8.1').ask(commit(7, topic='u'), 0)) == UNKNOWN_TOPIC_OR_PARTITION


def test_zookeeper_has_no_place_for_a_group_without_name():
    driver = started('2.8')
    assert commit_error(driver.ask(commit(7, group=''), 0)) == UNKNOWN_SERVER_ERROR
    assert fetched(driver.ask(fetch('t', group=''), 0)).error_code == UNKNOWN_SERVER_ERROR


def test_brokers_without_zookeeper_refuse_version_0():
    driver = started('3.9')
    assert commit_error(driver.ask(commit(7), 0)) == UNSUPPORTED_VERSION
    assert fetched(driver.ask(fetch('t'), 0)).error_code == UNSUPPORTED_VERSION
    assert fetched(driver.ask(fetch('unknown'), 0)).error_code == UNSUPPORTED_VERSION


# ------------------------------------------------------------ who may commit


def test_another_broker_than_the_coordinator_refuses():
    driver = started('2.8', brokers=2)
    other = 1 - driver.state.coordinator_of(GROUP)
    assert commit_error(driver.ask(commit(7), 2, node=other)) == NOT_COORDINATOR
    assert fetched(driver.ask(fetch('t'), 1, node=other)).error_code == NOT_COORDINATOR
    response = driver.ask(fetch('t'), 2, node=other)
    assert (response.error_code, response.topics) == (NOT_COORDINATOR, [])


def test_each_group_has_its_own_error_from_version_8():
    driver = started('4.4', brokers=2)
    other = 1 - driver.state.coordinator_of(GROUP)
    response = driver.ask(fetch_groups(), 8, node=other)
    assert (response.groups[0].error_code, response.groups[0].topics) == (NOT_COORDINATOR, [])


@pytest.mark.parametrize(
    ('version', 'request_version', 'error'),
    [
        ('0.8.2', 1, NONE),
        ('0.9', 1, ILLEGAL_GENERATION),
        ('2.8', 8, ILLEGAL_GENERATION),
        ('3.9', 9, ILLEGAL_GENERATION),
        ('4.4', 8, ILLEGAL_GENERATION),
        ('4.4', 9, GROUP_ID_NOT_FOUND),
    ],
)
def test_a_generation_of_an_unknown_group(version, request_version, error):
    request = commit(7, generation_id_or_member_epoch=5, member_id='nobody')
    assert commit_error(started(version).ask(request, request_version)) == error


@pytest.mark.parametrize('version', ['0.9', '2.3', '4.4'])
def test_members_commit_with_their_generation(version):
    driver = started(version)
    consumer = Consumer(driver)
    settle(consumer)
    assert commit_error(driver.ask(member_commit(consumer), 2)) == NONE
    wrong = member_commit(consumer, generation_id_or_member_epoch=9)
    assert commit_error(driver.ask(wrong, 2)) == ILLEGAL_GENERATION
    unknown = member_commit(consumer, member_id='nobody')
    assert commit_error(driver.ask(unknown, 2)) == UNKNOWN_MEMBER_ID
    assert commit_error(driver.ask(commit(5), 2)) == UNKNOWN_MEMBER_ID


def test_an_empty_group_takes_commits_without_generation(driver):
    consumer = Consumer(driver)
    settle(consumer)
    driver.ask(leave(MemberIdentity(member_id=consumer.member_id)))
    assert commit_error(driver.ask(commit(5), 9)) == NONE


@pytest.mark.parametrize(
    ('version', 'simple'), [('2.3', REBALANCE_IN_PROGRESS), ('4.4', UNKNOWN_MEMBER_ID)]
)
def test_nobody_commits_before_the_sync(version, simple):
    driver = started(version)
    consumer = Consumer(driver)
    consumer.join()
    assert commit_error(driver.ask(member_commit(consumer), 2)) == REBALANCE_IN_PROGRESS
    assert commit_error(driver.ask(commit(5), 2)) == simple


def test_the_old_generation_commits_while_others_join(driver):
    consumer = Consumer(driver)
    settle(consumer)
    Consumer(driver).join()
    assert commit_error(driver.ask(member_commit(consumer), 2)) == NONE


def test_a_commit_counts_as_a_heartbeat(driver):
    consumer = Consumer(driver)
    settle(consumer)
    driver.advance(6)
    driver.ask(member_commit(consumer), 2)
    driver.advance(6)
    assert consumer.heartbeat() == NONE


# ------------------------------------------------------------ what may be committed


@pytest.mark.parametrize('version', ['0.8.2', '0.9', '4.4'])
def test_metadata_has_a_limit(version):
    """What is refused is not stored, but by 0.8.2."""
    driver = started(version)
    best = 1 if version == '0.8.2' else 2
    assert commit_error(driver.ask(commit(7, metadata='x' * 4096), best)) == NONE
    too_long = commit(8, metadata='x' * 4097)
    assert commit_error(driver.ask(too_long, best)) == OFFSET_METADATA_TOO_LARGE
    assert driver.state.offsets.fetch(GROUP, 't', 0).offset == (8 if version == '0.8.2' else 7)


@pytest.mark.parametrize(('version', 'metadata'), [('0.9', None), ('0.10.0', ''), ('4.4', '')])
def test_null_metadata_is_stored_as_empty_from_0_10(version, metadata):
    driver = started(version)
    driver.ask(commit(7, metadata=None), 2)
    assert fetched(driver.ask(fetch('t'), 1)).metadata == metadata


def test_a_generation_of_a_group_of_offsets_is_of_an_unknown_member(driver):
    driver.ask(commit(7), 2)
    request = commit(7, generation_id_or_member_epoch=5, member_id='nobody')
    assert commit_error(driver.ask(request, 9)) == UNKNOWN_MEMBER_ID


def test_an_unknown_partition_is_told_by_0_8_2_only():
    for version, error in (('0.8.2', UNKNOWN_TOPIC_OR_PARTITION), ('0.9', NONE)):
        asked = OffsetFetchRequestTopic(name='t', partition_indexes=[7])
        response = started(version).ask(OffsetFetchRequest(group_id=GROUP, topics=[asked]), 1)
        assert fetched(response).error_code == error


@pytest.mark.parametrize(
    ('version', 'error'), [('0.8.2', NONE), ('0.9', UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_a_commit_for_an_unknown_topic(version, error):
    assert commit_error(started(version).ask(commit(7, topic='u'), 1)) == error


@pytest.mark.parametrize(
    ('version', 'error'), [('0.9', NONE), ('1.1', NONE), ('2.0', UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_unknown_partitions_are_noticed_from_2_0(version, error):
    assert commit_error(started(version).ask(commit(7, partition=1), 2)) == error


def test_unknown_topics_are_found_before_the_group_is_asked(driver):
    request = commit(7, topic='u', generation_id_or_member_epoch=5, member_id='nobody')
    assert commit_error(driver.ask(request, 8)) == UNKNOWN_TOPIC_OR_PARTITION


def test_nothing_more_is_stored_when_memory_is_used_up(driver):
    driver.state.offsets._used = 10**12
    assert commit_error(driver.ask(commit(7), 2)) == COORDINATOR_NOT_AVAILABLE


# ------------------------------------------------------------ fetch


def test_nothing_stored_is_minus_one_without_error(driver):
    found = fetched(driver.ask(fetch('t'), 1))
    assert (found.committed_offset, found.metadata, found.error_code) == (-1, '', NONE)


@pytest.mark.parametrize(
    ('version', 'error'), [('0.8.2', UNKNOWN_TOPIC_OR_PARTITION), ('0.9', NONE), ('4.4', NONE)]
)
def test_an_unknown_topic_in_a_fetch(version, error):
    found = fetched(started(version).ask(fetch('unknown'), 1))
    assert (found.committed_offset, found.error_code) == (-1, error)


@pytest.mark.parametrize('version', range(2, 8))
def test_no_topics_mean_all_from_version_2(driver, version):
    driver.state.create_topic('u', 1)
    driver.ask(commit(7), 2)
    driver.ask(commit(8, topic='u'), 2)
    driver.ask(commit(9, group='other'), 2)
    response = driver.ask(fetch(), version)
    assert [(t.name, t.partitions[0].committed_offset) for t in response.topics] == [
        ('t', 7),
        ('u', 8),
    ]


def test_an_empty_list_of_topics_means_none(driver):
    driver.ask(commit(7), 2)
    assert driver.ask(OffsetFetchRequest(group_id=GROUP, topics=[]), 5).topics == []


def test_partitions_come_in_the_order_asked(driver):
    asked = OffsetFetchRequestTopic(name='t', partition_indexes=[4, 0])
    response = driver.ask(OffsetFetchRequest(group_id=GROUP, topics=[asked]), 5)
    assert [each.partition_index for each in response.topics[0].partitions] == [4, 0]


def test_offsets_that_a_transaction_may_change_are_unstable(driver):
    driver.ask(commit(7), 2)
    driver.state.offsets.add_pending(1, GROUP, 't', 0, 9, -1, '', NOW_MS)
    found = fetched(driver.ask(fetch('t', require_stable=True), 7))
    assert (found.committed_offset, found.error_code) == (-1, UNSTABLE_OFFSET_COMMIT)
    assert fetched(driver.ask(fetch('t'), 7)).committed_offset == 7
    driver.state.offsets.end_pending(1, True)
    assert fetched(driver.ask(fetch('t', require_stable=True), 7)).committed_offset == 9


def test_unstable_offsets_are_among_all_topics(driver):
    driver.state.offsets.add_pending(1, GROUP, 't', 0, 9, -1, '', NOW_MS)
    response = driver.ask(fetch_groups(topic=None, require_stable=True), 9)
    assert fetched(response).error_code == UNSTABLE_OFFSET_COMMIT
    assert driver.ask(fetch_groups(topic=None), 9).groups[0].topics == []


# ------------------------------------------------------------ retention


def test_offsets_of_groups_that_never_had_members_age():
    driver = started('2.8')
    driver.ask(commit(7), 8)
    driver.advance(7 * 86400 - 1)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == 7
    driver.advance(600)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1


def test_offsets_of_members_age_from_when_the_last_has_gone(driver):
    consumer = Consumer(driver)
    settle(consumer)
    driver.ask(member_commit(consumer), 2)
    for _ in range(20):
        driver.advance(9)
        consumer.heartbeat()
    driver.ask(leave(MemberIdentity(member_id=consumer.member_id)))
    driver.advance(7 * 86400 - 1)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == 5
    driver.advance(600)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1


def test_versions_2_to_4_may_say_how_long(driver):
    """Brokers look every ten minutes."""
    driver.ask(commit(7, retention_time_ms=60000), 4)
    driver.advance(599)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == 7
    driver.advance(2)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1


def test_offsets_go_with_their_topic(driver):
    driver.ask(commit(7), 2)
    driver.state.drop_topic('t')
    driver.state.create_topic('t', 1)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1


# ------------------------------------------------------------ delete


def deletion(topic='t', group=GROUP, partition=0):
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
            )
        ],
    )


def test_offsets_of_an_idle_group_can_be_deleted(driver):
    driver.ask(commit(7), 2)
    response = driver.ask(deletion())
    assert (response.error_code, commit_error(response)) == (NONE, NONE)
    assert fetched(driver.ask(fetch('t'), 1)).committed_offset == -1


def test_deleting_offsets_of_no_group(driver):
    response = driver.ask(deletion())
    assert (response.error_code, response.topics) == (GROUP_ID_NOT_FOUND, [])


def test_deleting_offsets_of_an_unknown_topic(driver):
    driver.ask(commit(7), 2)
    response = driver.ask(deletion(topic='u'))
    assert (response.error_code, commit_error(response)) == (NONE, UNKNOWN_TOPIC_OR_PARTITION)


def test_offsets_of_consumed_topics_stay(driver):
    driver.state.create_topic('u', 1)
    settle(Consumer(driver))
    assert commit_error(driver.ask(deletion())) == GROUP_SUBSCRIBED_TO_TOPIC
    assert commit_error(driver.ask(deletion(topic='u'))) == NONE


def test_offsets_of_members_that_are_no_consumers_stay(driver):
    settle(Consumer(driver, protocol_type='other'))
    assert driver.ask(deletion()).error_code == NON_EMPTY_GROUP
