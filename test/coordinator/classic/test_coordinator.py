"""Members of classic groups on the embedded broker: whole rebalances, in all versions."""

from __future__ import annotations

import pytest

from kafka.errors import (
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    InvalidSessionTimeoutError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafka.protocol.admin.topics import CreatePartitionsRequest, CreatePartitionsTopic
from kafka.testing.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    LEADER_NOT_AVAILABLE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.faults import Delay, DropRequest, DropResponse, Error, Hang
from test.coordinator.group_world import World

RELEASES = ['0.9.0.1', '0.10.0.1', '0.11.0.3', '2.8.2', '4.4.0']
ALL = [0, 1, 2, 3]
COOPERATIVE = ['cooperative-sticky']


@pytest.fixture
def world():
    with World() as made:
        yield made


def shares(*readers):
    return sorted(sorted(each.partition for each in reader.owned) for reader in readers)


def alone(world, **how):
    """Return the only member of a group, which is stable and was told of nothing since."""
    reader = world.reader(**how)
    world.settle()
    reader.told.clear()
    world.cluster.forget_requests()
    return reader


# ---------------------------------------------------------------- whole rebalances


@pytest.mark.parametrize('release', RELEASES)
@pytest.mark.parametrize('assignors', [(), COOPERATIVE])
def test_two_members_share_a_topic_and_one_gets_all_when_the_other_leaves(release, assignors):
    with World(release) as world:
        first = world.reader(assignors=assignors)
        world.settle()
        assert shares(first) == [ALL]
        second = world.reader(assignors=assignors)
        world.settle()
        assert [len(share) for share in shares(first, second)] == [2, 2]
        second.leave()
        world.until(lambda: first.owned and shares(first) == [ALL], 5)
        world.settle(first)


@pytest.mark.parametrize('release', RELEASES)
def test_a_member_that_dies_is_missed_after_the_session_time_out(release):
    with World(release) as world:
        first, second = world.reader(), world.reader()
        world.settle()
        second.polls, second.is_stale = False, True
        second.close()
        world.run(6)
        assert len(first.owned) == 2
        world.until(lambda: shares(first) == [ALL], 20)


def test_an_eager_member_is_told_in_order(world):
    first = world.reader()
    world.settle()
    assert first.told == [('revoke', []), ('assign', ALL)]
    world.reader()
    world.settle()
    assert first.told[2:] == [('revoke', ALL), ('assign', [0, 1])]
    assert [step.commits for step in first.steps] == [True, False, True, False]


def test_a_cooperative_member_only_hears_of_what_moves(world):
    first = world.reader(assignors=COOPERATIVE)
    world.settle()
    second = world.reader(assignors=COOPERATIVE)
    world.settle()
    world.run(2)
    told = [each for each, step in zip(first.told, first.steps) if step.tells]
    assert told == [('assign', ALL), ('revoke', [2, 3]), ('assign', []), ('assign', [])]
    assert second.told[0] == ('assign', [])
    assert shares(first, second) == [[0, 1], [2, 3]]
    commits = [step for step in first.steps if not step.tells]
    assert all(step.commits and step.owned for step in commits)


def test_a_cooperative_member_says_what_it_owns_and_an_eager_one_nothing(world):
    eager, cooperative = world.reader(), world.reader(assignors=COOPERATIVE, start=False)
    world.settle(eager)
    eager.subscription.subscription = set()
    eager.leave()
    cooperative.start()
    world.settle(cooperative)
    cooperative.subscribe('t', 'u')
    world.settle(cooperative)
    world.run(1)
    metadata = [each.protocols[0].metadata for each in world.requests('JOIN_GROUP')]
    assert metadata[0].count(b't') == 1
    assert b'\x00\x01t\x00\x00\x00\x04' in metadata[-1]  # its four partitions


def test_nothing_is_sent_before_the_first_poll(world):
    reader = world.reader(polls=False)
    world.run(5)
    assert world.requests('JOIN_GROUP') == world.requests('FIND_COORDINATOR') == []
    reader.polls = True
    world.settle()


def test_the_rest_of_the_first_join_needs_no_poll_but_the_steps(world):
    reader = world.reader()
    world.until(lambda: world.requests('JOIN_GROUP'))
    reader.polls = False
    world.run(8)
    assert reader.member.step.kind.value == 'assign'
    assert world.requests('HEARTBEAT')


def test_the_program_hears_of_each_change(world):
    reader = world.reader()
    world.settle()
    assert reader.changes >= len(reader.steps)


def test_identity_and_states(world):
    reader = world.reader(group_instance_id='one')
    before = reader.member.identity()
    assert (before.group_id, before.generation_id, before.state) == ('g', -1, '<unjoined>')
    world.until(lambda: reader.member.step is not None)
    assert reader.member.identity().state == '<rebalancing>'
    assert not reader.member.is_stable
    world.settle()
    after = reader.member.identity()
    assert (after.generation_id, after.state, after.group_instance_id) == (1, '<stable>', 'one')
    assert after.member_id.startswith('one-')
    assert reader.member.rebalances == 1


# ---------------------------------------------------------------- reasons of rebalances


def test_a_changed_subscription_is_taken_to_the_group(world):
    world.cluster.create_topic('u', 2)
    reader = alone(world)
    reader.subscribe('t', 'u')
    world.until(lambda: not reader.member.is_stable)
    world.settle()
    assert {each.topic for each in reader.owned} == {'t', 'u'}


def test_new_partitions_of_a_topic_of_any_member_are_noticed_by_the_leader():
    with World(topics={'t': 4, 'u': 2}) as world:
        leader = world.reader('t')
        world.settle()
        other = world.reader('u')
        world.settle()
        grown = CreatePartitionsTopic(name='u', count=3, assignments=None)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=1000, validate_only=False)
        world.loop.run(other.pool.send(request), 10)
        leader.pool.refresh()
        world.until(lambda: len(other.owned) == 3)
        world.settle()


def test_a_topic_that_is_made_after_the_group_is_read(world):
    reader = world.reader('t', 'later', net={'allow_auto_create_topics': False})
    world.settle()
    world.cluster.create_topic('later', 2)
    reader.pool.refresh()
    world.until(lambda: len(reader.owned) == 6)


def test_a_topic_that_is_made_by_being_asked_about_is_read_at_once(world):
    reader = world.reader('fresh')
    world.settle()
    assert [what for what, _ in reader.told] == ['revoke', 'assign']
    assert {each.topic for each in reader.owned} == {'fresh'}


@pytest.mark.parametrize('times', [3, 12])
def test_a_topic_that_is_being_made_is_asked_about_until_it_is(world, times):
    asks_about_topics = lambda call: call.request.topics  # noqa: E731
    world.cluster.faults.add(
        Error(LEADER_NOT_AVAILABLE), 'Metadata', times=times, where=asks_about_topics
    )
    reader = world.reader()
    world.until(lambda: len(reader.owned) == 4, 20)
    # Soon enough it is waited for, and else another rebalance brings it.
    assert reader.member.rebalances == (1 if times == 3 else 2)


def test_the_leader_takes_the_topics_of_others_into_interest_and_lets_go_of_them():
    with World(topics={'t': 4, 'u': 2}) as world:
        leader = world.reader('t')
        world.settle()
        other = world.reader('u')
        world.settle()
        assert sorted(leader.pool.topics.topics()) == ['t', 'u']
        other.leave()
        world.until(lambda: leader.pool.topics.topics() == ['t'], 5)


def test_who_asks_for_a_rebalance_gets_one_with_the_reason_told_to_the_broker(world):
    reader = alone(world)
    world.loop.call_soon(reader.member.rejoin, 'because ' * 50)
    world.until(lambda: reader.member.rebalances == 2)
    (request,) = world.requests('JOIN_GROUP')
    assert request.reason == ('because ' * 50)[:255]


@pytest.mark.parametrize(
    ('error', 'lost', 'keeps_id'),
    [
        (IllegalGenerationError(), True, True),
        (UnknownMemberIdError(), True, False),
        (RebalanceInProgressError(), False, True),
    ],
)
def test_what_a_commit_was_refused_with_counts(world, error, lost, keeps_id):
    reader = alone(world)
    before = reader.member.identity()
    world.loop.call_soon(reader.member.commit_refused, error, before)
    world.until(lambda: reader.member.rebalances == 2)
    assert reader.told == [('lose' if lost else 'revoke', ALL), ('assign', ALL)]
    joined = world.requests('JOIN_GROUP')[0].member_id
    assert joined == (before.member_id if keeps_id else '')


def test_what_a_commit_of_a_former_self_was_refused_with_counts_for_nothing(world):
    reader = alone(world)
    before = reader.member.identity()._replace(generation_id=0)
    world.loop.call_soon(reader.member.commit_refused, UnknownMemberIdError(), before)
    world.loop.call_soon(reader.member.commit_refused, ValueError('no code'), None)
    world.run(1)
    assert reader.member.is_stable


# ---------------------------------------------------------------- what brokers answer


@pytest.mark.parametrize(
    'code', [COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR]
)
@pytest.mark.parametrize('api', ['JoinGroup', 'SyncGroup', 'FindCoordinator'])
def test_a_coordinator_that_is_not_ready_is_asked_again(world, api, code):
    world.cluster.faults.add(Error(code), api, times=3)
    reader = world.reader()
    world.settle()
    assert reader.told == [('revoke', []), ('assign', ALL)]


@pytest.mark.parametrize('fault', [DropRequest(), DropResponse(), Hang()])
@pytest.mark.parametrize('api', ['JoinGroup', 'SyncGroup', 'FindCoordinator', 'Heartbeat'])
def test_a_call_that_gets_no_answer_is_made_again(world, api, fault):
    world.cluster.faults.add(fault, api, times=2)
    reader = world.reader(request_timeout=5.0, rebalance_timeout=5.0, net={'request_timeout': 5.0})
    world.settle(seconds=120)
    world.run(20)
    assert reader.member.is_stable
    assert shares(reader) == [ALL]


@pytest.mark.parametrize(
    ('code', 'told'),
    [
        (ILLEGAL_GENERATION, [('lose', ALL), ('assign', ALL)]),
        (UNKNOWN_MEMBER_ID, [('lose', ALL), ('assign', ALL)]),
        (REBALANCE_IN_PROGRESS, [('revoke', ALL), ('assign', ALL)]),
    ],
)
def test_what_a_heartbeat_is_answered_with_counts(world, code, told):
    reader = alone(world)
    world.cluster.faults.add(Error(code), 'Heartbeat', times=1)
    world.until(lambda: reader.member.rebalances == 2)
    assert reader.told == told


@pytest.mark.parametrize('code', [ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS])
def test_what_sync_is_answered_with_counts(world, code):
    world.cluster.faults.add(Error(code), 'SyncGroup', times=1)
    reader = world.reader()
    world.settle()
    assert reader.told == [('revoke', []), ('assign', ALL)]


def test_the_coordinator_may_move_without_a_rebalance():
    with World(brokers=3) as world:
        reader = alone(world)
        old = world.cluster.coordinator('g')
        world.cluster.move_coordinator('g', (old + 1) % 3)
        world.run(10)
        assert reader.told == []
        assert {each.node for each in world.cluster.requests if each.api.name == 'HEARTBEAT'} == {
            old,
            (old + 1) % 3,
        }


def test_a_coordinator_that_dies_costs_no_partition():
    with World(brokers=3) as world:
        reader = alone(world)
        world.cluster.kill(world.cluster.coordinator('g'))
        world.run(30)
        assert reader.member.is_stable
        assert [what for what, _ in reader.told if what == 'lose'] == []
        assert len(reader.owned) == 4


def test_a_parked_join_holds_no_heartbeat_and_no_metadata_up(world):
    reader = alone(world)
    world.cluster.faults.add(Delay(4.0), 'JoinGroup', times=1)
    world.loop.call_soon(reader.member.rejoin, 'because')
    world.run(2)
    assert reader.member.identity().state == '<rebalancing>'
    began = world.loop.time()
    world.loop.run(reader.pool.metadata(['t']), 3)
    assert world.loop.time() - began < 1
    world.settle()


# ---------------------------------------------------------------- errors


def test_who_is_not_allowed_is_told_and_tries_again_with_each_poll(world):
    fault = world.cluster.faults.add(Error(GROUP_AUTHORIZATION_FAILED), 'JoinGroup', times=None)
    reader = world.reader()
    world.until(lambda: len(reader.errors) > 20)
    assert {type(each) for each in reader.errors} == {GroupAuthorizationFailedError}
    assert 'READ' in str(reader.errors[0])
    assert 2 <= len(world.requests('JOIN_GROUP')) < 15  # with back-off
    reader.polls = False
    world.run(5)
    world.cluster.forget_requests()
    world.run(5)
    assert world.requests('JOIN_GROUP') == []  # nobody polls
    fault.remove()
    reader.polls = True
    world.settle()
    assert reader.member.error is None


def test_who_may_not_find_the_coordinator_is_told(world):
    world.cluster.faults.add(Error(GROUP_AUTHORIZATION_FAILED), 'FindCoordinator', times=2)
    reader = world.reader()
    world.settle()
    assert {type(each) for each in reader.errors} == {GroupAuthorizationFailedError}


def test_what_nothing_cures_is_told_with_each_poll_until_the_member_leaves(world):
    world.cluster.faults.add(Error(GROUP_MAX_SIZE_REACHED), 'JoinGroup', times=1)
    reader = world.reader()
    world.until(lambda: len(reader.errors) > 20)
    assert len(world.requests('JOIN_GROUP')) <= 2
    reader.leave()
    reader.polls = True
    world.settle()


def test_a_session_time_out_that_the_broker_does_not_take_is_told(world):
    reader = world.reader(session_timeout=0.001)
    world.until(lambda: reader.errors)
    assert isinstance(reader.errors[0], InvalidSessionTimeoutError)
    assert 'session_timeout_ms=1:' in str(reader.errors[0])


def test_brokers_before_0_10_1_get_a_session_time_out_that_they_take(caplog):
    with World('0.9.0.1') as world:
        world.reader(session_timeout=45.0)
        world.settle()
        assert {each.session_timeout_ms for each in world.requests('JOIN_GROUP')} == {30000}
    assert caplog.text.count('session_timeout_ms is 30000 here') == 1


def test_brokers_without_groups_are_told_of():
    with World('0.8.2.2') as world:
        reader = world.reader()
        world.until(lambda: reader.errors)
        assert isinstance(reader.errors[0], UnsupportedVersionError)


def test_a_broker_that_was_taken_for_an_older_one_is_looked_at_again(world):
    reader = alone(world)
    world.run(5)  # until it has sent one
    link = reader.pool.group_link_at_hand('g')
    link.session.versions.ranges.pop(12)  # Heartbeat
    world.run(10)
    assert reader.pool.group_link_at_hand('g') is not link
    assert reader.told == []
    assert world.requests('HEARTBEAT')


def test_brokers_without_static_members_are_told_of():
    with World('0.11.0.3') as world:
        reader = world.reader(group_instance_id='one')
        world.until(lambda: reader.errors)
        assert isinstance(reader.errors[0], UnsupportedVersionError)
        assert 'group_instance_id needs 2.3' in str(reader.errors[0])
