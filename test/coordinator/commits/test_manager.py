"""Commits and look-ups of offsets by answers that a script gives: what follows, and when."""

from __future__ import annotations

import random

import pytest

from kafka import errors
from kafka.coordinator.commits.manager import OffsetCommits
from kafka.errors import (
    CommitFailedError,
    CommitInRebalanceError,
    FencedInstanceIdError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.net.loop.tasks import Waiter
from kafka.protocol import api
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka.protocol.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from test.manual_loop import ManualLoop

P0, P1 = TopicPartition('t', 0), TopicPartition('t', 1)
WHO = ConsumerGroupMetadata('g', 3, 'me', None)


def at(offset):
    return OffsetAndMetadata(offset, '', -1)


class Session:
    def __init__(self, ranges):
        self.versions = BrokerVersions(ranges)

    def choose_version(self, request, version=None, highest=None):
        if version is not None:
            return version
        return api.choose_version(type(request), self.versions.ranges, highest)


class Broker:
    """The coordinator and every other broker: what it was asked, and what it says.

    script: for each commit or look-up {partition: code}, one code for all, an error to raise, or a
    waiter; None for 0. `known`: the partitions of t that metadata know.
    """

    def __init__(self, loop):
        self.loop = loop
        self.script = []
        self.asked = []
        self.at = []
        self.looked_up = 0
        self.known = [0, 1]
        self.forgotten = 0
        self.refreshed = 0
        self.unreachable = []
        self.ids = {}
        self.deleted_topics = frozenset()
        self.session = Session({8: (0, 10), 9: (0, 10), 3: (0, 13)})
        self.cluster = self

    versions = property(lambda self: self.session.versions)

    # -- as the pool and its metadata

    def topic_id(self, topic):
        return self.ids.get(topic, bytes(16))

    async def any_ready(self):
        return self

    def refresh(self):
        self.refreshed += 1

    async def group_link(self, group):
        if self.unreachable:
            said = self.unreachable.pop(0)
            if isinstance(said, BaseException):
                raise said
            await said
        return self

    async def any_group_link(self, group):
        return self

    def forget_coordinator(self, kind, group):
        self.forgotten += 1

    # -- as a link

    async def request(self, request, timeout=None, version=None, highest=None):
        if isinstance(request, MetadataRequest):
            self.looked_up += 1
            assert not request.allow_auto_topic_creation
            return self.metadata()
        self.asked.append((request, version))
        self.at.append(round(self.loop.time() - 1000.0, 3))
        said = self.script.pop(0) if self.script else 0
        if hasattr(said, 'wake'):
            said = await said
        if isinstance(said, BaseException):
            raise said
        answer = committed if isinstance(request, OffsetCommitRequest) else found
        return answer(request, version, said)

    def metadata(self):
        partitions = [MetadataResponsePartition(0, each, 0, -1, [], []) for each in self.known]
        topic = MetadataResponseTopic(error_code=0, name='t', partitions=partitions)
        return MetadataResponse(brokers=[], topics=[topic])

    @property
    def offsets(self):
        """What each commit was about."""
        return [
            {each.partition_index: each.committed_offset for each in request.topics[0].partitions}
            for request, _ in self.asked
        ]


def code_of(said, topic, number):
    return said.get(TopicPartition(topic or 't', number), 0) if isinstance(said, dict) else said


def committed(request, version, said):
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name if version < 10 else '',
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=code_of(said, topic.name, each.partition_index),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def found(request, version, said):
    asked = request.groups[0]
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(number, -1 if code else 10 + number, 2, 'text', code)
                for number in topic.partition_indexes
                for code in [code_of(said, topic.name, number)]
            ],
        )
        for topic in asked.topics
    ]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id='g', topics=topics)])


class NoChance(random.Random):
    def uniform(self, low, high):
        return 1.0


class Rig:
    def __init__(self, **more):
        self.loop = ManualLoop()
        self.broker = Broker(self.loop)
        self.commits = OffsetCommits(
            self.loop, self.broker, 'g', 30.0, 0.1, 1.0, NoChance(), **more
        )

    def begin(self, offsets, who=WHO, timeout=10.0, retries=True):
        task = self.loop.spawn(self.commits.commit(offsets, who, timeout, retries))
        self.loop.settle()
        return task

    def commit(self, *arguments, **more):
        """Commit, letting as much time pass as that takes."""
        return self.end(self.begin(*arguments, **more))

    def fetch(self, partitions, timeout=10.0, who=None):
        return self.end(self.loop.spawn(self.commits.fetch(partitions, timeout, who)))

    def end(self, task):
        for _ in range(400):
            self.loop.settle()
            if task.done:
                return task.result()
            due = self.loop.next_time()
            assert due is not None, 'it waits for nothing'
            self.loop.advance(max(0.0, due - self.loop.now))
        raise AssertionError('it does not end')


@pytest.fixture
def rig():
    return Rig()


# ---------------------------------------------------------------- commit


def test_a_commit_is_one_request(rig):
    rig.commit({P0: at(5), P1: at(6)})
    assert rig.broker.offsets == [{0: 5, 1: 6}]
    request, version = rig.broker.asked[0]
    assert (request.generation_id_or_member_epoch, request.member_id) == (3, 'me')
    assert version == 9  # by names: the id of the topic is not known


def test_who_finds_the_coordinator_ready_does_not_overtake_who_waited_for_it(rig):
    found = Waiter()
    rig.broker.unreachable = [found]
    tasks = [rig.begin({P0: at(offset)}) for offset in (1, 2, 3)]
    assert rig.broker.asked == []
    found.wake()
    for task in tasks:
        rig.end(task)
    assert rig.broker.offsets == [{0: 1}, {0: 2}, {0: 3}]


def test_a_commit_does_not_wait_for_the_further_tries_of_the_one_before(rig):
    rig.broker.script = [14]
    first, second = rig.begin({P0: at(1)}), rig.begin({P1: at(2)})
    assert second.done
    assert not first.done
    rig.end(first)
    assert rig.broker.offsets == [{0: 1}, {1: 2}, {0: 1}]


def test_a_commit_goes_on_when_the_one_before_cannot_be_sent(rig):
    rig.broker.unreachable = [Waiter()]
    first = rig.begin({P0: at(1)}, timeout=2.0)
    rig.commit({P1: at(2)}, timeout=10.0)
    with pytest.raises(KafkaTimeoutError):
        first.result()
    assert rig.broker.offsets == [{1: 2}]


def test_nothing_is_asked_for_no_offsets(rig):
    rig.commit({})
    assert rig.broker.asked == []


def test_topics_are_named_by_id_where_all_ids_are_known(rig):
    rig.broker.ids['t'] = b'i' * 16
    rig.commit({P0: at(5)})
    request, version = rig.broker.asked[0]
    assert (version, request.topics[0].topic_id) == (10, b'i' * 16)


def test_only_what_was_not_stored_is_tried_again(rig):
    rig.broker.script = [{P0: 14}]
    rig.commit({P0: at(5), P1: at(6)})
    assert rig.broker.offsets == [{0: 5, 1: 6}, {0: 5}]


def test_tries_are_further_and_further_apart(rig):
    rig.broker.script = [14] * 6
    rig.commit({P0: at(5)})
    assert rig.broker.at == [0.0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5]


@pytest.mark.parametrize('code', [7, 15, 16])
def test_a_coordinator_that_is_none_is_looked_up_anew(rig, code):
    rig.broker.script = [code]
    rig.commit({P0: at(5)})
    assert (len(rig.broker.asked), rig.broker.forgotten) == (2, 1)


def test_a_coordinator_that_loads_is_not_looked_up_anew(rig):
    rig.broker.script = [14]
    rig.commit({P0: at(5)})
    assert (len(rig.broker.asked), rig.broker.forgotten) == (2, 0)


@pytest.mark.parametrize(
    'error', [KafkaConnectionError('lost'), KafkaTimeoutError('late'), NoBrokersAvailable('none')]
)
def test_a_lost_request_is_made_again_and_the_coordinator_looked_up(rig, error):
    rig.broker.script = [error]
    rig.commit({P0: at(5)})
    assert (len(rig.broker.asked), rig.broker.forgotten) == (2, 1)


def test_a_coordinator_out_of_reach_is_tried_again(rig):
    rig.broker.unreachable = [KafkaConnectionError('refused')] * 2
    rig.commit({P0: at(5)})
    assert (len(rig.broker.asked), rig.broker.forgotten) == (1, 2)


@pytest.mark.parametrize(
    'error', [errors.GroupAuthorizationFailedError('g'), errors.SaslAuthenticationFailedError('x')]
)
def test_what_no_try_cures_is_raised_at_once(rig, error):
    rig.broker.unreachable = [error]
    with pytest.raises(type(error)):
        rig.commit({P0: at(5)})
    assert rig.broker.asked == []


@pytest.mark.parametrize(
    'code, kind',
    [
        (12, errors.OffsetMetadataTooLargeError),
        (22, CommitFailedError),
        (25, CommitFailedError),
        (27, CommitInRebalanceError),
        (28, errors.InvalidCommitOffsetSizeError),
        (29, errors.TopicAuthorizationFailedError),
        (30, errors.GroupAuthorizationFailedError),
        (35, UnsupportedVersionError),
        (69, CommitFailedError),
        (82, FencedInstanceIdError),
        (110, CommitFailedError),
        (113, CommitFailedError),
    ],
)
def test_what_a_broker_refuses_for_good_is_raised_at_once(rig, code, kind):
    rig.broker.script = [code]
    with pytest.raises(kind, match='group g refuses the offsets of t-0'):
        rig.commit({P0: at(5)})
    assert rig.broker.at == [0.0]


def test_a_failed_try_is_raised_where_no_other_is_wanted(rig):
    rig.broker.script = [16]
    with pytest.raises(errors.NotCoordinatorError):
        rig.commit({P0: at(5)}, retries=False)
    assert (len(rig.broker.asked), rig.broker.forgotten) == (1, 1)  # for the next call


def test_the_time_of_the_caller_bounds_all_tries(rig):
    rig.broker.script = [14] * 100
    with pytest.raises(KafkaTimeoutError, match=r't-0 in group g took longer than 2 s') as raised:
        rig.commit({P0: at(5)}, timeout=2.0)
    assert isinstance(raised.value.__cause__, errors.CoordinatorLoadInProgressError)
    assert rig.loop.now <= 1002.0
    assert len(rig.broker.asked) == 5


def test_an_answer_that_does_not_come_ends_with_the_time_of_the_caller(rig):
    rig.broker.script = [Never()]
    with pytest.raises(KafkaTimeoutError, match='took longer than 2 s'):
        rig.commit({P0: at(5)}, timeout=2.0)
    assert rig.loop.now == pytest.approx(1002.0)
    assert rig.broker.forgotten == 0  # it was given little time, that is all


class Never:
    """An answer that does not come."""

    wake = None

    def __await__(self):
        return Waiter().__await__()


def test_a_partition_that_metadata_do_not_know_either_fails_at_once(rig):
    rig.broker.known = [1]
    rig.broker.script = [{P0: 3}] * 100
    with pytest.raises(UnknownTopicOrPartitionError, match='of t-0: there is no such partition'):
        rig.commit({P0: at(5), P1: at(6)})
    assert (rig.broker.at, rig.broker.looked_up) == ([0.0], 1)


def test_a_partition_that_metadata_know_is_tried_until_the_coordinator_does(rig):
    rig.broker.script = [{P0: 3}, {P0: 3}]
    rig.commit({P0: at(5), P1: at(6)})
    assert rig.broker.offsets == [{0: 5, 1: 6}, {0: 5}, {0: 5}]
    assert rig.broker.looked_up == 2


def test_an_id_that_is_of_no_topic_any_more_has_metadata_refreshed(rig):
    rig.broker.ids['t'] = b'i' * 16
    rig.broker.script = [{P0: 100}]
    rig.commit({P0: at(5)})
    rig.broker.ids['t'] = b'j' * 16
    rig.commit({P0: at(6)})
    assert rig.broker.refreshed == 1
    sent = [request.topics[0].topic_id for request, _ in rig.broker.asked]
    assert sent == [b'i' * 16, bytes(16), b'j' * 16]


def test_a_stale_epoch_is_tried_again_where_the_next_one_can_be_told(rig):
    epochs = [3, 4]
    rig.broker.script = [113]
    rig.commit({P0: at(5)}, who=lambda: WHO._replace(generation_id=epochs.pop(0)))
    sent = [request.generation_id_or_member_epoch for request, _ in rig.broker.asked]
    assert sent == [3, 4]


def test_a_commit_of_nobody(rig):
    rig.commit({P0: at(5)}, who=None)
    request, _ = rig.broker.asked[0]
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, '')


# ---------------------------------------------------------------- one behind the other


def test_a_repeated_commit_does_not_undo_a_later_one(rig):
    """The first is told to come again; meanwhile a later one has stored a higher offset."""
    rig.broker.script = [14]
    first = rig.begin({P0: at(5), P1: at(5)})
    second = rig.begin({P0: at(9)})
    assert second.done
    rig.end(first)
    assert rig.broker.offsets == [{0: 5, 1: 5}, {0: 9}, {1: 5}]


def test_a_commit_that_was_replaced_altogether_is_done(rig):
    rig.broker.script = [14]
    first = rig.begin({P0: at(5)})
    rig.begin({P0: at(9)})
    rig.end(first)
    assert rig.broker.offsets == [{0: 5}, {0: 9}]


def test_a_repeated_commit_waits_for_a_later_one_that_has_its_own_trouble(rig):
    """Otherwise the retries could pass each other."""
    rig.broker.script = [14, 14, 14]
    first = rig.begin({P0: at(5)})
    rig.loop.advance(0.05)
    second = rig.begin({P0: at(9)})
    rig.end(first)
    assert second.done
    assert rig.broker.offsets == [{0: 5}, {0: 9}, {0: 9}, {0: 9}]


def test_a_repeated_commit_is_made_after_all_when_the_later_one_failed(rig):
    rig.broker.script = [14, 12]
    first = rig.begin({P0: at(5)})
    second = rig.begin({P0: at(9)})
    rig.end(first)
    with pytest.raises(errors.OffsetMetadataTooLargeError):
        second.result()
    assert rig.broker.offsets == [{0: 5}, {0: 9}, {0: 5}]


# ---------------------------------------------------------------- look-up


def test_offsets_come_with_text_and_epoch(rig):
    assert {each: tuple(found) for each, found in rig.fetch([P0, P1]).items()} == {
        P0: (10, 'text', 2),
        P1: (11, 'text', 2),
    }


def test_no_partitions_no_request(rig):
    assert rig.fetch([]) == {}
    assert rig.broker.asked == []


def test_an_offset_that_a_transaction_may_change_is_asked_for_until_it_does_not(rig):
    rig.broker.script = [{P0: 88}] * 3
    assert rig.fetch([P0, P1])[P0] == (10, 'text')
    asked = [request.groups[0].topics[0].partition_indexes for request, _ in rig.broker.asked]
    assert asked == [[0, 1], [0], [0], [0]]


def test_a_transaction_that_does_not_end_is_told(rig):
    rig.broker.script = [{P0: 88}] * 100
    with pytest.raises(KafkaTimeoutError, match='committed offsets of t-0 in group g') as raised:
        rig.fetch([P0, P1], timeout=3.0)
    assert isinstance(raised.value.__cause__, errors.UnstableOffsetCommitError)


def test_an_unknown_partition_has_no_offset(rig):
    rig.broker.script = [{P0: 3}]
    assert rig.fetch([P0]) == {P0: None}


@pytest.mark.parametrize('code', [7, 15, 16])
def test_a_look_up_follows_the_coordinator(rig, code):
    rig.broker.script = [code]
    rig.fetch([P0])
    assert (len(rig.broker.asked), rig.broker.forgotten) == (2, 1)


@pytest.mark.parametrize(
    'code, kind',
    [
        (25, errors.UnknownMemberIdError),
        (29, errors.TopicAuthorizationFailedError),
        (30, errors.GroupAuthorizationFailedError),
        (113, errors.StaleMemberEpochError),
    ],
)
def test_what_a_look_up_is_refused_for_good(rig, code, kind):
    rig.broker.script = [code]
    with pytest.raises(kind, match='group g does not tell the offsets of t-0'):
        rig.fetch([P0], who=WHO)
    assert rig.broker.at == [0.0]


def test_a_look_up_is_made_again_with_the_next_epoch(rig):
    epochs = [3, 4]
    rig.broker.script = [113]
    rig.fetch([P0], who=lambda: WHO._replace(generation_id=epochs.pop(0)))
    assert [request.groups[0].member_epoch for request, _ in rig.broker.asked] == [3, 4]


def test_it_tells_what_it_is(rig):
    assert repr(rig.commits) == '<OffsetCommits of group g <CommitOrder under_way=0>>'


# ---------------------------------------------------------------- ZooKeeper


def test_offsets_go_to_zookeeper_where_that_is_wanted_and_there_is_one():
    rig = Rig(is_zookeeper=True)
    rig.commit({P0: at(5)})
    assert rig.broker.asked[0][1] == 0


def test_they_go_to_the_coordinator_where_brokers_have_no_such_version():
    rig = Rig(is_zookeeper=True)
    rig.broker.session = Session({8: (1, 9), 9: (1, 9)})
    rig.commit({P0: at(5)})
    assert rig.broker.asked[0][1] == 9


def test_they_go_to_the_coordinator_where_a_broker_refuses_them():
    """KRaft brokers up to 3.9 list version 0 and answer it with 35."""
    rig = Rig(is_zookeeper=True)
    rig.broker.script = [35]
    rig.commit({P0: at(5)})
    assert [version for _, version in rig.broker.asked] == [0, 9]
    assert rig.broker.at == [0.0, 0.0]


def test_they_go_to_zookeeper_where_nobody_coordinates():
    """0.8.1 has no request for a coordinator."""
    rig = Rig()
    rig.broker.unreachable = [UnsupportedVersionError('FindCoordinator')]
    rig.commit({P0: at(5)})
    rig.commit({P0: at(6)})
    assert [version for _, version in rig.broker.asked] == [0, 0]


def test_the_requests_are_those_that_are_counted_here():
    assert {OffsetCommitRequest.api_key, OffsetFetchRequest.api_key} == {8, 9}
