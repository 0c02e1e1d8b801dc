"""KIP-848 groups of the embedded broker: epochs, the hand-over of partitions, static members."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.groups import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.commit import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, TopicPartitions
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    MEMBER_ID_REQUIRED,
    NON_EMPTY_GROUP,
    NONE,
    NOT_COORDINATOR,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
)

from .drive import Driver
from .group_requests import (
    GROUP,
    Consumer,
    commit,
    commit_error,
    fetch_groups,
    fetched,
    join,
    settle,
)


def started(version='4.2', partitions=4, **settings):
    driver = Driver(version, **settings)
    driver.state.create_topic('t', partitions)
    return driver


@pytest.fixture
def driver():
    return started()


class Member:
    """A KIP-848 member that does what it is told."""

    def __init__(self, driver, member_id, **fields):
        self.driver = driver
        self.member_id = member_id
        self.epoch = 0
        self.owned = set()
        self.fields = fields

    def request(self, epoch=None, **fields):
        fields.setdefault('group_id', GROUP)
        fields.setdefault('member_id', self.member_id)
        return ConsumerGroupHeartbeatRequest(
            member_epoch=self.epoch if epoch is None else epoch, **fields
        )

    def join(self, **fields):
        wanted = {
            'rebalance_timeout_ms': 60000,
            'subscribed_topic_names': ['t'],
            'topic_partitions': [],
        }
        wanted.update(self.fields)
        wanted.update(fields)
        return self.take(self.driver.ask(self.request(0, **wanted)))

    def heartbeat(self, **fields):
        return self.take(self.driver.ask(self.request(**fields)))

    def acknowledge(self):
        """Send what it owns."""
        topics = {}
        for topic_id, index in sorted(self.owned):
            topics.setdefault(topic_id, []).append(index)
        return self.heartbeat(
            topic_partitions=[TopicPartitions(topic_id=t, partitions=p) for t, p in topics.items()]
        )

    def leave(self, epoch=-1, **fields):
        fields.setdefault('instance_id', self.fields.get('instance_id'))
        return self.driver.ask(self.request(epoch, **fields))

    def take(self, response):
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {
                    (t.topic_id, index)
                    for t in response.assignment.topic_partitions
                    for index in t.partitions
                }
        return response

    @property
    def partitions(self):
        return sorted(index for _, index in self.owned)


def settled(*members):
    """Let all heartbeat and acknowledge until nothing changes."""
    for _ in range(6):
        for member in members:
            member.acknowledge()
    return members


def described(driver, **fields):
    request = ConsumerGroupDescribeRequest(
        group_ids=[GROUP], include_authorized_operations=fields.get('operations', False)
    )
    return driver.ask(request).groups[0]


# ------------------------------------------------------------ join


def test_the_first_member_gets_everything(driver):
    member = Member(driver, 'a')
    response = member.join()
    assert (response.error_code, response.member_epoch, response.member_id) == (NONE, 1, 'a')
    assert (response.heartbeat_interval_ms, member.partitions) == (5000, [0, 1, 2, 3])


def test_a_heartbeat_tells_no_assignment_that_is_known(driver):
    member = Member(driver, 'a')
    member.join()
    assert member.heartbeat().assignment is None
    assert member.acknowledge().assignment is None


def test_a_full_request_is_told_the_assignment_again(driver):
    member = Member(driver, 'a')
    member.join()
    response = member.heartbeat(
        rebalance_timeout_ms=60000, subscribed_topic_names=['t'], topic_partitions=[]
    )
    assert len(response.assignment.topic_partitions[0].partitions) == 4


def test_joining_again_changes_nothing(driver):
    member = Member(driver, 'a')
    member.join()
    response = member.join()
    assert (response.member_epoch, member.partitions) == (1, [0, 1, 2, 3])


def test_in_version_0_the_broker_may_choose_the_member_id(driver):
    member = Member(driver, '')
    request = member.request(
        0, rebalance_timeout_ms=1, subscribed_topic_names=['t'], topic_partitions=[]
    )
    assert driver.ask(request, version=0).member_id
    assert driver.ask(request, version=1).error_code == INVALID_REQUEST


@pytest.mark.parametrize(
    'fields',
    [
        {'rebalance_timeout_ms': -1},
        {'topic_partitions': None},
        {'subscribed_topic_names': None},
        {'group_id': ''},
        {'instance_id': ''},
        {'rack_id': ''},
    ],
)
def test_a_join_must_say_everything(driver, fields):
    response = Member(driver, 'a').join(**fields)
    assert response.error_code == INVALID_REQUEST
    assert response.error_message
    assert driver.state.groups.consumers.all() == []


def test_a_subscription_may_be_empty(driver):
    member = Member(driver, 'a', subscribed_topic_names=[])
    assert (member.join().error_code, member.partitions) == (NONE, [])


def test_only_static_members_leave_for_a_while(driver):
    member = Member(driver, 'a')
    member.join()
    assert member.leave(-2).error_code == INVALID_REQUEST
    assert member.leave(-3).error_code == INVALID_REQUEST


def test_assignors_are_those_of_the_broker(driver):
    assert Member(driver, 'a').join(server_assignor='sticky').error_code == UNSUPPORTED_ASSIGNOR
    assert Member(driver, 'a').join(server_assignor='range').error_code == NONE
    assert described(driver).assignor_name == 'range'


def test_a_full_group_takes_nobody_more():
    driver = started(group_max_size=1)
    Member(driver, 'a').join()
    assert Member(driver, 'b').join().error_code == GROUP_MAX_SIZE_REACHED


def test_what_groups_take_is_given_back(driver):
    members = Member(driver, 'a'), Member(driver, 'b')
    for member in members:
        member.join()
    for member in members:
        member.leave()
    driver.advance(601)
    assert driver.state.groups.budget.used == 0


def test_what_groups_take_together_is_limited(driver):
    driver.state.groups.budget.limit = 5000
    assert Member(driver, 'a').join().error_code == NONE
    assert Member(driver, 'b').join(group_id='other').error_code == COORDINATOR_NOT_AVAILABLE
    many = ['t%d' % number for number in range(2000)]
    response = driver.ask(Member(driver, 'a').request(1, subscribed_topic_names=many))
    assert response.error_code == COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize('version', ['3.8', '3.9'])
def test_releases_before_4_0_refuse(version):
    driver = started(version)
    response = Member(driver, 'a').join(group_id=GROUP)
    assert response.error_code == UNSUPPORTED_VERSION


def test_another_broker_than_the_coordinator_refuses():
    driver = started(brokers=2)
    driver.state.moved_coordinators[GROUP] = 1
    assert Member(driver, 'a').join().error_code == NOT_COORDINATOR


# ------------------------------------------------------------ hand-over


def test_a_second_member_waits_for_the_first_to_give_back(driver):
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    assert (second.join().member_epoch, second.partitions) == (2, [])
    response = first.heartbeat()
    assert (response.member_epoch, len(first.owned)) == (1, 2)
    assert second.heartbeat().assignment is None
    assert first.acknowledge().member_epoch == 2
    second.heartbeat()
    assert sorted(first.partitions + second.partitions) == [0, 1, 2, 3]
    assert len(second.owned) == 2


def test_partitions_stay_where_they_are_when_a_member_joins(driver):
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    before = first.owned
    second.join()
    settled(first, second)
    assert first.owned < before


def test_who_does_not_give_back_in_time_is_fenced(driver):
    first, second = Member(driver, 'a', rebalance_timeout_ms=20000), Member(driver, 'b')
    first.join()
    second.join()
    first.heartbeat()
    for _ in range(5):
        driver.advance(4.1)
        response = first.heartbeat()
    assert response.error_code == UNKNOWN_MEMBER_ID
    second.heartbeat()
    assert second.partitions == [0, 1, 2, 3]


def test_a_leaver_leaves_its_partitions(driver):
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    settled(first, second)
    response = second.leave()
    assert (response.error_code, response.member_epoch) == (NONE, -1)
    first.heartbeat()
    assert (first.epoch, first.partitions) == (3, [0, 1, 2, 3])


def test_a_silent_member_is_out_after_45_seconds(driver):
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    settled(first, second)
    driver.advance(40)
    first.heartbeat()
    driver.advance(6)
    first.heartbeat()
    assert first.partitions == [0, 1, 2, 3]
    assert second.heartbeat().error_code == UNKNOWN_MEMBER_ID


def test_new_partitions_are_given_out(driver):
    member = Member(driver, 'a')
    member.join()
    topic = driver.state.topics['t']
    topic.partitions.extend(driver.state.create_topic('u', 1).partitions)
    member.heartbeat()
    assert (member.epoch, member.partitions) == (2, [0, 1, 2, 3, 4])


def test_a_topic_that_comes_later_is_given_out(driver):
    member = Member(driver, 'a', subscribed_topic_names=['u'])
    member.join()
    assert member.partitions == []
    driver.state.create_topic('u', 2)
    member.heartbeat()
    assert member.partitions == [0, 1]


def test_another_subscription_gives_another_assignment(driver):
    driver.state.create_topic('u', 2)
    member = Member(driver, 'a')
    member.join()
    member.heartbeat(subscribed_topic_names=['u'])
    assert member.owned == set()
    member.acknowledge()
    assert {topic_id for topic_id, _ in member.owned} == {driver.state.topics['u'].topic_id}


def test_from_4_3_a_new_assignment_waits_for_a_second():
    driver = started('4.3')
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    assert (second.join().member_epoch, second.partitions) == (2, [])
    assert described(driver).group_state == 'Assigning'
    driver.advance(1.0)
    settled(first, second)
    assert (first.epoch, second.epoch, len(second.owned)) == (3, 3, 2)


@pytest.mark.parametrize(('version', 'epoch'), [('4.2', 1), ('4.3', 2)])
def test_the_first_epoch(version, epoch):
    assert Member(started(version), 'a').join().member_epoch == epoch


def test_what_a_member_does_not_want_any_more_goes_before_the_next_assignment():
    driver = started('4.4')
    member = Member(driver, 'a')
    member.join()
    response = member.heartbeat(subscribed_topic_names=['unknown'])
    assert (response.member_epoch, response.assignment.topic_partitions) == (2, [])


# ------------------------------------------------------------ epochs


def test_a_later_epoch_is_fenced(driver):
    member = Member(driver, 'a')
    member.join()
    assert member.heartbeat(epoch=2).error_code == FENCED_MEMBER_EPOCH


def test_the_previous_epoch_passes_as_a_repeated_request(driver):
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    settled(first, second)
    topic_id = driver.state.topics['t'].topic_id
    owned = [TopicPartitions(topic_id=topic_id, partitions=first.partitions)]
    assert first.heartbeat(epoch=1, topic_partitions=owned).member_epoch == 2
    assert first.heartbeat(epoch=1).error_code == FENCED_MEMBER_EPOCH
    more = [TopicPartitions(topic_id=topic_id, partitions=[0, 1, 2, 3])]
    response = first.heartbeat(epoch=1, topic_partitions=more)
    assert response.error_code == FENCED_MEMBER_EPOCH


def test_unknown_groups_and_members(driver):
    nobody = Member(driver, 'nobody')
    assert nobody.heartbeat(epoch=1).error_code == GROUP_ID_NOT_FOUND
    assert nobody.leave().error_code == GROUP_ID_NOT_FOUND
    Member(driver, 'a').join()
    assert nobody.heartbeat(epoch=1).error_code == UNKNOWN_MEMBER_ID
    assert nobody.leave().error_code == UNKNOWN_MEMBER_ID


# ------------------------------------------------------------ static members


def test_a_static_member_that_left_for_a_while_keeps_its_place(driver):
    old, new = (Member(driver, name, instance_id='one') for name in 'ab')
    old.join()
    assert new.join().error_code == UNRELEASED_INSTANCE_ID
    assert old.leave(-2).member_epoch == -2
    response = new.join()
    assert (response.member_epoch, new.partitions) == (1, [0, 1, 2, 3])
    assert old.heartbeat(instance_id='one').error_code == FENCED_INSTANCE_ID
    assert old.heartbeat().error_code == UNKNOWN_MEMBER_ID


def test_a_static_member_may_come_back_under_its_own_id(driver):
    member = Member(driver, 'a', instance_id='one')
    member.join()
    member.leave(-2)
    assert (member.join().member_epoch, member.partitions) == (1, [0, 1, 2, 3])


def test_a_static_member_that_does_not_come_back_is_out(driver):
    old, other = Member(driver, 'a', instance_id='one'), Member(driver, 'b')
    old.join()
    old.leave(-2)
    driver.advance(44)
    other.join()
    assert other.partitions == []
    driver.advance(2)
    other.heartbeat()
    assert other.partitions == [0, 1, 2, 3]


# ------------------------------------------------------------ regular expressions


def test_a_regular_expression_is_matched_in_a_moment(driver):
    driver.state.create_topic('tt', 1)
    driver.state.create_topic('__consumer_offsets', 1)
    member = Member(driver, 'a', subscribed_topic_names=None, subscribed_topic_regex='t+')
    assert (member.join().error_code, member.partitions) == (NONE, [])
    driver.advance(0.05)
    member.heartbeat()
    assert len(member.owned) == 5


def test_regular_expressions_match_whole_names(driver):
    driver.state.create_topic('not', 1)
    member = Member(driver, 'a', subscribed_topic_names=None, subscribed_topic_regex='t')
    member.join()
    driver.advance(0.05)
    member.heartbeat()
    assert len(member.owned) == 4


def test_new_topics_are_matched_after_ten_seconds(driver):
    member = Member(driver, 'a', subscribed_topic_names=None, subscribed_topic_regex='t.*')
    member.join()
    driver.advance(0.05)
    member.heartbeat()
    driver.state.create_topic('tt', 1)
    driver.advance(5)
    member.heartbeat()
    driver.advance(0.05)
    member.heartbeat()
    assert len(member.owned) == 4
    driver.advance(5)
    member.heartbeat()
    driver.advance(0.05)
    member.heartbeat()
    assert len(member.owned) == 5


@pytest.mark.parametrize('pattern', ['(', '(?=a)b', '(a)\\1', '(?<!a)b'])
def test_what_re2_does_not_know_is_refused(driver, pattern):
    response = Member(driver, 'a').join(subscribed_topic_regex=pattern)
    assert response.error_code == INVALID_REGULAR_EXPRESSION


# ------------------------------------------------------------ offsets


def member_commit(driver, member_id, epoch, version=9, partition=0):
    request = commit(
        5, partition=partition, generation_id_or_member_epoch=epoch, member_id=member_id
    )
    return commit_error(driver.ask(request, version))


def test_members_commit_with_their_epoch(driver):
    Member(driver, 'a').join()
    assert member_commit(driver, 'a', 1) == NONE
    assert member_commit(driver, 'a', 1, version=8) == UNSUPPORTED_VERSION
    assert member_commit(driver, 'a', 2) == STALE_MEMBER_EPOCH
    assert member_commit(driver, 'b', 1) == UNKNOWN_MEMBER_ID
    assert member_commit(driver, '', -1) == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(('version', 'error'), [('4.2', STALE_MEMBER_EPOCH), ('4.4', NONE)])
def test_an_earlier_epoch_does_from_4_3_for_what_was_owned_then(version, error):
    driver = started(version)
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    driver.advance(1)
    settled(first, second)
    kept, gone = first.partitions[0], second.partitions[0]
    assert member_commit(driver, 'a', first.epoch - 1, partition=kept) == error
    assert member_commit(driver, 'a', first.epoch - 1, partition=gone) == STALE_MEMBER_EPOCH
    assert member_commit(driver, 'a', first.epoch, partition=gone) == NONE


def test_members_fetch_with_their_epoch(driver):
    Member(driver, 'a').join()

    def error(**fields):
        return driver.ask(fetch_groups(**fields), 9).groups[0].error_code

    assert error(member_id='a', member_epoch=1) == NONE
    assert error(member_id='a', member_epoch=2) == STALE_MEMBER_EPOCH
    assert error(member_id='b', member_epoch=1) == UNKNOWN_MEMBER_ID
    assert error() == NONE
    assert fetched(driver.ask(fetch_groups(), 9)).committed_offset == -1


def test_offsets_in_transactions_are_fenced_by_the_epoch(driver):
    Member(driver, 'a').join()
    check = driver.state.groups.check_transactional_commit
    assert check(GROUP, 1, 'a', None) == NONE
    assert check(GROUP, 0, 'a', None) == ILLEGAL_GENERATION
    assert check(GROUP, 1, 'b', None) == UNKNOWN_MEMBER_ID
    assert check(GROUP, -1, '', None) == NONE


def test_offsets_of_consumed_topics_stay(driver):
    Member(driver, 'a').join()
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name='t', partitions=partitions)]
    response = driver.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics))
    assert commit_error(response) == GROUP_SUBSCRIBED_TO_TOPIC


# ------------------------------------------------------------ administration


def test_a_group_is_described_with_what_members_have_and_shall_have(driver):
    first, second = Member(driver, 'a', rack_id='r'), Member(driver, 'b')
    first.join()
    second.join()
    first.heartbeat()
    group = described(driver, operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ('Reconciling', 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ('uniform', 3400)
    member = group.members[1]
    assert (member.member_id, member.member_epoch, member.member_type) == ('b', 2, 1)
    assert member.assignment.topic_partitions == []
    (target,) = member.target_assignment.topic_partitions
    assert (target.topic_name, len(target.partitions)) == ('t', 2)
    assert group.members[0].rack_id == 'r'
    settled(first, second)
    assert described(driver).group_state == 'Stable'


def test_an_unknown_or_classic_group_is_not_described(driver):
    assert described(driver).error_code == GROUP_ID_NOT_FOUND
    settle(Consumer(driver))
    assert described(driver).error_code == GROUP_ID_NOT_FOUND


def test_the_classic_description_does_not_know_it(driver):
    Member(driver, 'a').join()
    group = driver.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups[0]
    assert (group.error_code, group.group_state) == (GROUP_ID_NOT_FOUND, 'Dead')


def test_it_is_listed_with_its_type(driver):
    Member(driver, 'a').join()
    (listed,) = driver.ask(ListGroupsRequest(types_filter=['consumer'])).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        GROUP,
        'consumer',
        'Stable',
        'consumer',
    )


def test_it_is_deleted_when_it_is_empty(driver):
    member = Member(driver, 'a')
    member.join()

    def delete():
        return driver.ask(DeleteGroupsRequest(groups_names=[GROUP])).results[0].error_code

    assert delete() == NON_EMPTY_GROUP
    member.leave()
    assert described(driver).group_state == 'Empty'
    assert delete() == NONE
    assert described(driver).error_code == GROUP_ID_NOT_FOUND


def test_a_group_with_members_does_not_change_its_kind(driver):
    Member(driver, 'a').join()
    assert driver.ask(join(), version=3).error_code == INCONSISTENT_GROUP_PROTOCOL
    assert driver.ask(join(), version=9).error_code == MEMBER_ID_REQUIRED
    other = join(group='classic')
    driver.ask(other, version=3)
    assert Member(driver, 'a').join(group_id='classic').error_code == GROUP_ID_NOT_FOUND


def test_an_empty_group_does(driver):
    member = Member(driver, 'a')
    member.join()
    member_commit(driver, 'a', 1)
    member.leave()
    assert driver.ask(join(), version=3).error_code == NONE
    assert driver.state.offsets.fetch(GROUP, 't', 0).offset == 5
