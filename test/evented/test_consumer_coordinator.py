"""ConsumerCoordinator over the evented client, on embedded brokers: groups, offsets, names."""

from __future__ import annotations

import threading
import time

import pytest

from kafka import errors
from kafka.consumer.subscription_state import ConsumerRebalanceListener, SubscriptionState
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.evented.client import KafkaClient
from kafka.evented.consumer_coordinator import ConsumerCoordinator
from kafka.metrics import Metrics
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import Cluster
from kafka.testing.errors import (
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.faults import Error

GROUPS = ['0.9.0.1', '0.10.2.2', '2.8.2', '4.4.0']
OFFSETS = ['0.8.1.1', '0.8.2.2', *GROUPS]
P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.heard = []

    def on_partitions_revoked(self, revoked):
        self.heard.append(('revoked', sorted(revoked)))

    def on_partitions_assigned(self, assigned):
        self.heard.append(('assigned', sorted(assigned)))


def release(version):
    numbers = tuple(int(part) for part in version.split('.'))
    return numbers[:3] if numbers < (0, 10) else numbers


class Member:
    """A coordinator with its client."""

    def __init__(self, cluster, version, subscribe=True, **configs):
        self.client = KafkaClient(
            bootstrap_servers=cluster.bootstrap, api_version=release(version)[:3]
        )
        self.subscription = SubscriptionState()
        self.listener = Listener()
        configs.setdefault('group_id', 'g')
        self.coordinator = ConsumerCoordinator(
            self.client,
            self.subscription,
            Metrics(),
            'consumer',
            api_version=release(version),
            retry_backoff_ms=10,
            heartbeat_interval_ms=20,
            session_timeout_ms=6000,
            **configs,
        )
        if subscribe:
            self.subscription.subscribe(topics=['t'], listener=self.listener)
            self.client.poll(future=self.client.set_topics(['t']))

    def poll_until(self, done, seconds=20):
        ends_at = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < ends_at
            self.client.poll(timeout_ms=10)

    def close(self):
        self.coordinator.close()
        self.client.close()


@pytest.fixture
def member_of():
    made, clusters = [], {}

    def make(version, **configs):
        if version not in clusters:
            clusters[version] = Cluster(version=version, topics={'t': 2})
            clusters[version].start()
        made.append(Member(clusters[version], version, **configs))
        made[-1].cluster = clusters[version]
        return made[-1]

    yield make
    try:
        for each in made:
            each.close()
    finally:
        for each in clusters.values():
            each.stop()


@pytest.fixture
def member(member_of):
    return member_of('4.4.0')


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize('version', GROUPS)
def test_a_member_joins_and_gets_its_assignment(member_of, version):
    member = member_of(version)
    coordinator = member.coordinator
    assert (coordinator.generation, coordinator.member_id) == (-1, '')
    assert coordinator.coordinator_id is None
    assert coordinator.need_rejoin()
    coordinator.ensure_active_group()
    assert not coordinator.need_rejoin()
    assert coordinator.generation >= 1
    assert coordinator.member_id
    assert coordinator.coordinator_id == 0
    assert member.subscription.assigned_partitions() == {P0, P1}
    assert member.listener.heard == [('revoked', []), ('assigned', [P0, P1])]


@pytest.mark.parametrize('version', GROUPS)
def test_two_members_share_and_one_that_leaves_gives_back(member_of, version):
    first = member_of(version)
    first.coordinator.ensure_active_group()
    second = member_of(version)
    thread = threading.Thread(target=second.coordinator.ensure_active_group)
    thread.start()
    first.poll_until(first.coordinator.need_rejoin)  # its heartbeat hears of it
    first.coordinator.ensure_active_group()
    thread.join(20)
    assert first.coordinator.generation == second.coordinator.generation
    shares = [each.subscription.assigned_partitions() for each in (first, second)]
    assert sorted(map(sorted, shares)) == [[P0], [P1]]
    second.coordinator.close()
    first.poll_until(first.coordinator.need_rejoin)
    first.coordinator.ensure_active_group()
    assert first.subscription.assigned_partitions() == {P0, P1}


def test_a_pattern_finds_topics(member_of):
    member = member_of('4.4.0', subscribe=False)
    member.subscription.subscribe(pattern='t')
    member.client.poll(future=member.client.set_topics([]))
    assert member.subscription.subscription == {'t'}
    member.coordinator.ensure_active_group()
    assert member.subscription.assigned_partitions() == {P0, P1}


def test_new_partitions_let_it_join_again(member):
    member.coordinator.ensure_active_group()
    member.cluster.create_topic('u', 1)
    member.subscription.change_subscription(['t', 'u'])
    member.client.poll(future=member.client.set_topics(['t', 'u']))
    assert member.coordinator.need_rejoin()
    member.coordinator.ensure_active_group()
    assert TopicPartition('u', 0) in member.subscription.assigned_partitions()


def test_a_program_replaces_what_new_metadata_does(member, monkeypatch):
    seen = []
    monkeypatch.setattr(member.coordinator, '_handle_metadata_update', seen.append)
    member.client.poll(future=member.client.cluster.request_update())
    assert set(seen) == {member.client.cluster}


def test_without_groups_everything_is_assigned(member_of):
    member = member_of('0.8.2.2')
    assert member.subscription.assigned_partitions() == {P0, P1}


def test_a_listener_that_raises_is_logged(member, caplog):
    def refuse(partitions):
        raise ZeroDivisionError

    member.listener.on_partitions_assigned = refuse
    member.coordinator.ensure_active_group()
    assert 'on_partitions_assigned() of the listener of group g failed' in caplog.text
    assert member.subscription.assigned_partitions() == {P0, P1}


@pytest.mark.parametrize('code', [NOT_COORDINATOR, REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION])
@pytest.mark.parametrize('api', ['JOIN_GROUP', 'SYNC_GROUP'])
def test_passing_errors_of_joining_are_survived(member, api, code):
    member.cluster.faults.add(Error(code), api)
    member.coordinator.ensure_active_group()
    assert member.subscription.assigned_partitions() == {P0, P1}


def test_an_error_that_stays_is_raised(member):
    member.cluster.faults.add(Error(GROUP_AUTHORIZATION_FAILED), 'JOIN_GROUP')
    with pytest.raises(errors.GroupAuthorizationFailedError, match='group g'):
        member.coordinator.ensure_active_group()
    member.coordinator.ensure_active_group()


@pytest.mark.parametrize('code', [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS])
def test_a_heartbeat_tells_when_to_join_again(member, code):
    member.coordinator.ensure_active_group()
    member_id = member.coordinator.member_id
    member.cluster.faults.add(Error(code), 'HEARTBEAT')
    member.poll_until(member.coordinator.need_rejoin)
    if code == UNKNOWN_MEMBER_ID:  # the broker would let a new member wait for the old one
        assert member.coordinator.member_id == ''
        return
    assert member.coordinator.member_id == member_id
    member.coordinator.ensure_active_group()
    assert member.subscription.assigned_partitions() == {P0, P1}


def test_heartbeats_follow_the_coordinator(member):
    member.coordinator.ensure_active_group()
    member.cluster.faults.add(Error(NOT_COORDINATOR), 'HEARTBEAT')
    member.poll_until(lambda: member.coordinator.coordinator_id is None)
    member.coordinator.ensure_coordinator_known()
    member.cluster.forget_requests()
    member.poll_until(lambda: any(each.api.name == 'HEARTBEAT' for each in member.cluster.requests))
    assert not member.coordinator.need_rejoin()


def test_a_session_goes_on_while_heartbeats_are_answered(member):
    """In one of some tries: on a machine that stands still none is answered in time."""
    for _ in range(20):
        member.coordinator.ensure_active_group()
        member.coordinator.heartbeat.timeout = 0.1
        ends_at = time.monotonic() + 0.3
        member.poll_until(lambda ends_at=ends_at: time.monotonic() > ends_at)
        if member.coordinator.coordinator_id == 0:
            return
    pytest.fail('the session ends every time')


def test_heartbeats_end_with_close(member):
    member.coordinator.ensure_active_group()
    member.coordinator.close()
    member.cluster.forget_requests()
    member.client.poll(timeout_ms=60)
    assert [each.api.name for each in member.cluster.requests] == []
    assert member.coordinator.generation == -1


# ---------------------------------------------------------------- offsets


@pytest.mark.parametrize('version', OFFSETS)
def test_offsets_are_committed_and_found(member_of, version):
    member = member_of(version, subscribe=False)
    member.subscription.assign_from_user([P0, P1])
    coordinator = member.coordinator
    assert coordinator.fetch_committed_offsets([P0, P1]) == {}
    coordinator.commit_offsets_sync({P0: OffsetAndMetadata(5, 'text', -1)})
    assert coordinator.fetch_committed_offsets([P0, P1])[P0].offset == 5
    coordinator.refresh_committed_offsets_if_needed()
    assert member.subscription.assignment[P0].committed.offset == 5
    assert member.subscription.assignment[P1].committed is None
    assert not member.subscription.needs_fetch_committed_offsets
    coordinator.commit_offsets_sync({})


@pytest.mark.parametrize('version', GROUPS)
def test_a_member_commits_as_one(member_of, version):
    member = member_of(version)
    member.coordinator.ensure_active_group()
    member.coordinator.commit_offsets_sync({P0: OffsetAndMetadata(7, '', -1)})
    assert member.coordinator.fetch_committed_offsets([P0])[P0].offset == 7


def test_a_commit_that_does_not_wait_tells_by_its_callback(member):
    member.coordinator.ensure_active_group()
    heard = []
    offsets = {P0: OffsetAndMetadata(7, '', -1)}
    future = member.coordinator.commit_offsets_async(offsets, lambda *what: heard.append(what))
    assert heard == []
    member.client.poll(future=future)
    assert future.succeeded()
    assert heard == [(offsets, True)]
    assert member.subscription.assignment[P0].committed.offset == 7


def test_one_that_cannot_be_sent_fails_in_a_later_poll(member_of):
    heard = []
    member = member_of('4.4.0', default_offset_commit_callback=lambda *what: heard.append(what))
    future = member.coordinator.commit_offsets_async({P0: OffsetAndMetadata(7, '', -1)})
    assert not future.is_done
    member.client.poll(future=future)
    assert isinstance(future.exception, errors.NodeNotReadyError)
    assert isinstance(heard[0][1], errors.NodeNotReadyError)


@pytest.mark.parametrize('code', [UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS])
def test_a_commit_hears_that_the_group_moved_on(member, code):
    member.coordinator.ensure_active_group()
    member.cluster.faults.add(Error(code), 'OFFSET_COMMIT')
    with pytest.raises(errors.CommitFailedError):
        member.coordinator.commit_offsets_sync({P0: OffsetAndMetadata(7, '', -1)})
    assert member.coordinator.need_rejoin()
    assert bool(member.coordinator.member_id) is (code != UNKNOWN_MEMBER_ID)


def test_a_commit_follows_the_coordinator(member):
    member.coordinator.ensure_active_group()
    member.cluster.faults.add(Error(NOT_COORDINATOR), 'OFFSET_COMMIT')
    member.coordinator.commit_offsets_sync({P0: OffsetAndMetadata(7, '', -1)})
    assert member.coordinator.fetch_committed_offsets([P0])[P0].offset == 7


def test_what_was_read_is_committed_by_interval_and_at_the_end(member_of):
    member = member_of('4.4.0', auto_commit_interval_ms=20)
    member.coordinator.ensure_active_group()
    member.subscription.seek(P0, 3)
    member.poll_until(lambda: member.coordinator.fetch_committed_offsets([P0]))
    member.subscription.seek(P0, 4)
    member.coordinator._auto_commit_task.disable()
    member.coordinator.close()
    assert member.coordinator.fetch_committed_offsets([P0])[P0].offset == 4


def test_nothing_is_committed_by_itself_where_that_is_off_or_there_is_no_group(member_of):
    assert member_of('4.4.0', enable_auto_commit=False).coordinator._auto_commit_task is None
    assert member_of('4.4.0', group_id=None).coordinator._auto_commit_task is None


# ---------------------------------------------------------------- names


def test_what_members_tell_is_structs_of_1_x(member):
    assert member.coordinator.protocol_type() == 'consumer'
    assert member.coordinator.group_protocols() == [
        (name, ConsumerProtocolMemberMetadata(0, ['t'], b'')) for name in ('range', 'roundrobin')
    ]


def test_without_a_subscription_there_is_nothing_to_tell(member_of):
    member = member_of('4.4.0', subscribe=False)
    with pytest.raises(AssertionError):
        member.coordinator.group_protocols()


def test_other_assignors(member_of):
    member = member_of('4.4.0', assignors=(RoundRobinPartitionAssignor,))
    member.coordinator.ensure_active_group()
    assert member.coordinator.protocol == 'roundrobin'


def test_defaults_and_options_that_are_not_known(member_of):
    config = member_of('4.4.0', no_such_option=1).coordinator.config
    assert (config['auto_commit_interval_ms'], config['enable_auto_commit']) == (5000, True)
    assert 'no_such_option' not in config
    assert ConsumerCoordinator.DEFAULT_CONFIG['group_id'] == 'kafka-python-default-group'
    assert ConsumerCoordinator.DEFAULT_CONFIG['api_version'] == (0, 9)
