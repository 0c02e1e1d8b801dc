"""KIP-848 groups of the embedded broker: epochs, the hand-over of partitions, static members."""

from __future__ import annotations

import pytest

from kafka.protocol.group import TopicPartitions
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
)

from ..consumer_group_members import Member, described, settled, started
from ..group_requests import (
    GROUP,
)


@pytest.fixture
def driver():
    return started()


# ------------------------------------------------------------ join


def test_the_first_member_gets_everything(driver):
    member = Member(driver, 'a')
    response = member.join()
    assert (response.error_code, response.member_epoch, response.member_id) == (NONE, 1, 'a')
    assert (response.heartbeat_interval_ms, member.partitions) == (5000, [0, 1, 2, 3])


def test_a_group_may_have_times_of_its_own(driver):
    driver.state.configs[32, GROUP] = {
        'consumer.heartbeat.interval.ms': '7000',
        'consumer.session.timeout.ms': '60000',
    }
    member = Member(driver, 'a')
    assert member.join().heartbeat_interval_ms == 7000
    driver.advance(59)
    assert member.heartbeat().error_code == NONE
    driver.advance(61)
    assert member.heartbeat().error_code == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ('version', 'error'),
    [('4.0', FENCED_MEMBER_EPOCH), ('4.1', FENCED_MEMBER_EPOCH), ('4.2', NONE), ('4.4', NONE)],
)
def test_a_member_may_join_again_since_4_2(version, error):
    driver = started(version)
    first, second = Member(driver, 'a'), Member(driver, 'b')
    first.join()
    second.join()
    for _ in range(4):
        driver.advance(1.1)
        settled(first, second)
    assert first.join().error_code == error


@pytest.mark.parametrize(('version', 'shown'), [('4.2', 2), ('4.3', 4)])
def test_what_is_to_be_given_back_is_described_as_assigned_since_4_3(version, shown):
    driver = started(version)
    first = Member(driver, 'a')
    first.join()
    Member(driver, 'b').join()
    driver.advance(1.1)
    Member(driver, 'b').heartbeat(epoch=0, rebalance_timeout_ms=1, topic_partitions=[])
    first.heartbeat()
    (member,) = [each for each in described(driver).members if each.member_id == 'a']
    (topic,) = member.assignment.topic_partitions
    assert len(topic.partitions) == shown


@pytest.mark.parametrize(('version', 'is_anew'), [('4.3', False), ('4.4', True)])
def test_another_preferred_assignor_assigns_anew_since_4_4(version, is_anew):
    driver = started(version)
    member = Member(driver, 'a')
    member.join(server_assignor='uniform')
    epoch = described(driver).group_epoch
    member.heartbeat(server_assignor='range')
    group = described(driver)
    assert (group.assignor_name, group.group_epoch > epoch) == ('range', is_anew)


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


@pytest.mark.parametrize(
    ('version', 'epoch', 'partitions'), [('4.3', 2, []), ('4.4', 4, [0, 1, 2, 3])]
)
def test_from_4_4_who_joins_an_empty_group_does_not_wait(version, epoch, partitions):
    driver = started(version)
    former, member = Member(driver, 'a'), Member(driver, 'b')
    former.join()
    former.leave()
    assert (member.join().member_epoch, member.partitions) == (epoch, partitions)


def test_also_from_4_4_who_joins_others_waits_for_a_second():
    driver = started('4.4')
    first, second, third = (Member(driver, name) for name in 'abc')
    first.join()
    second.join()
    second.leave()
    assert (third.join().member_epoch, third.partitions) == (2, [])


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


def test_a_member_that_takes_the_place_of_another_leaves_its_own(driver):
    first, second = (Member(driver, name, instance_id=name) for name in 'ab')
    for each in (first, second):
        each.join()
    second.leave(-2)
    assert first.join(instance_id='b').error_code == NONE
    epoch = described(driver).group_epoch
    driver.advance(40)
    first.heartbeat()
    driver.advance(40)  # longer than the session of what it was
    assert described(driver).group_epoch == epoch
    assert [each.instance_id for each in described(driver).members] == ['b']
    first.leave(-1, instance_id='b')
    driver.advance(601)
    assert driver.state.groups.budget.used == 0


def test_an_instance_id_that_a_member_has_given_up_is_free(driver):
    member = Member(driver, 'a', instance_id='i')
    member.join()
    assert member.join(instance_id='j').error_code == NONE
    assert Member(driver, 'b', instance_id='i').join().error_code == NONE
    assert [each.instance_id for each in described(driver).members] == ['j', 'i']


def test_nobody_leaves_for_another_instance(driver):
    first, second = (Member(driver, name, instance_id=name) for name in 'ab')
    first.join()
    second.join()
    assert first.leave(-2, instance_id='b').error_code == FENCED_INSTANCE_ID
    assert first.leave(-1, instance_id='c').error_code == UNKNOWN_MEMBER_ID


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


def test_another_expression_counts_when_it_has_been_matched(driver):
    driver.state.create_topic('u', 2)
    member = Member(driver, 'a', subscribed_topic_names=None, subscribed_topic_regex='t')
    member.join()
    driver.advance(0.05)
    member.heartbeat()
    epoch = described(driver).group_epoch
    member.heartbeat(subscribed_topic_regex='u')
    assert (member.owned, described(driver).group_epoch) == (set(), epoch)
    driver.advance(0.05)
    member.acknowledge()
    member.acknowledge()
    assert (member.partitions, described(driver).group_epoch) == ([0, 1], epoch + 1)


def test_an_expression_of_another_member_is_matched_after_ten_seconds(driver):
    driver.state.create_topic('u', 2)
    first = Member(driver, 'a', subscribed_topic_names=None, subscribed_topic_regex='t')
    first.join()
    driver.advance(0.05)
    first.heartbeat()
    second = Member(driver, 'b', subscribed_topic_names=None, subscribed_topic_regex='u')
    second.join()
    driver.advance(4)
    second.heartbeat()
    driver.advance(0.05)
    assert second.heartbeat().assignment is None
    driver.advance(7)
    second.heartbeat()
    driver.advance(0.05)
    second.heartbeat()
    assert second.partitions == [0, 1]


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
