"""What a client knows of its cluster: the calls of 1.x to 3.x, merging, epochs, hints."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka.cluster import Broker, ClusterMetadata
from kafka.errors import (
    InvalidTopicError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.fetch import NodeEndpoint
from kafka.protocol.find_coordinator import FindCoordinatorResponse
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.structs import BrokerMetadata, TopicPartition

BROKERS = {0: 'a', 1: 'b'}


class Clock:
    """A clock that is moved by hand."""

    now = 50.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cluster(clock):
    return ClusterMetadata(clock)


def partition(number, leader=0, epoch=5, error=0):
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[0, 1],
        isr_nodes=[0],
        offline_replicas=[],
    )


def topic(name, *partitions, error=0, topic_id=bytes(16), internal=False):
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=internal,
        partitions=list(partitions),
    )


def answer(*topics, brokers=BROKERS, controller=0):
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=9092, rack='r' + host)
            for node, host in brokers.items()
        ],
        cluster_id='c',
        controller_id=controller,
        topics=list(topics),
    )


def struct_of(version):
    """Return an answer as programs of 1.x and 2.x make it: a struct of one version."""
    part = (0, 0, 0, [0, 1], [0], *([[1]] if version == 5 else []))
    topics = [(0, 't', *([True] if version else []), [part])]
    brokers = [(0, 'a', 9092, *(['r'] if version else []))]
    values = [brokers, 'c', 0, topics]
    if version < 2:
        del values[1]
    if version < 1:
        del values[1]
    return MetadataResponse[version](*([0] if version >= 3 else []), *values)


def test_nothing_is_known_at_first(cluster):
    assert cluster.brokers() == set()
    assert cluster.topics() == set()
    assert cluster.partitions_for_topic('t') is None
    assert cluster.available_partitions_for_topic('t') is None
    assert cluster.leader_for_partition(TopicPartition('t', 0)) is None
    assert cluster.leader_epoch_for_partition(TopicPartition('t', 0)) is None
    assert cluster.partitions_for_broker(0) is None
    assert cluster.coordinator_for_group('g') is None
    assert cluster.controller is None
    assert cluster.ttl() == 0
    assert str(cluster) == 'Cluster(brokers: 0, topics: 0, groups: 0)'


def test_a_broker_is_what_1_3_to_2_x_had():
    broker = Broker(3, 'h', 9092, 'r')
    assert isinstance(broker, BrokerMetadata)
    node_id, host, port, rack = broker
    assert (broker.nodeId, broker.node_id, broker.host, broker.port) == (3, node_id, host, port)
    assert broker.rack == rack == 'r'
    assert repr(broker) == "BrokerMetadata(nodeId=3, host='h', port=9092, rack='r')"
    assert broker._asdict() == {'nodeId': 3, 'host': 'h', 'port': 9092, 'rack': 'r'}
    assert broker._replace(rack=None) == Broker(3, 'h', 9092) == (3, 'h', 9092, None)
    assert pickle.loads(pickle.dumps(broker)) == copy.copy(broker) == broker
    assert type(copy.copy(broker)) is Broker


@pytest.mark.parametrize('version', range(6))
def test_the_structs_of_each_version_are_taken(cluster, version):
    response = struct_of(version)
    for found in (response, type(response).decode(response.encode())):
        cluster.update_metadata(found)
        rack = 'r' if version else None
        assert cluster.brokers() == {(0, 'a', 9092, rack)}
        assert cluster.controller_id == (0 if version else -1)
        assert cluster.cluster_id == ('c' if version >= 2 else None)
        assert cluster.topics() == (set() if version else {'t'})
        assert cluster.topics(exclude_internal_topics=False) == {'t'}
        assert cluster.leader_for_partition(TopicPartition('t', 0)) == 0
        assert cluster.partition('t', 0).replicas == (0, 1)
        assert cluster.partition('t', 0).offline_replicas == ((1,) if version == 5 else ())


def test_a_struct_without_brokers_is_a_failed_update(cluster):
    future = cluster.request_update()
    cluster.update_metadata(MetadataResponse[0]([], []))
    assert isinstance(future.exception, MetadataEmptyBrokerList)


def test_an_answer_is_taken_over(cluster):
    cluster.update_metadata(
        answer(topic('t', partition(0), partition(1, -1, error=5)), topic('i', internal=True))
    )
    assert cluster.brokers() == {(0, 'a', 9092, 'ra'), (1, 'b', 9092, 'rb')}
    assert cluster.broker_metadata(1).rack == 'rb'
    assert cluster.controller == (0, 'a', 9092, 'ra')
    assert cluster.cluster_id == 'c'
    assert cluster.topics() == {'t'}
    assert cluster.topics(exclude_internal_topics=False) == {'t', 'i'}
    assert cluster.partitions_for_topic('t') == {0, 1}
    assert cluster.available_partitions_for_topic('t') == {0}
    assert cluster.leader_for_partition(TopicPartition('t', 0)) == 0
    assert cluster.leader_for_partition(TopicPartition('t', 1)) == -1
    assert cluster.leader_epoch_for_partition(TopicPartition('t', 0)) == 5
    assert cluster.partitions_for_broker(0) == {TopicPartition('t', 0)}
    assert str(cluster) == 'Cluster(brokers: 2, topics: 2, groups: 0)'


def test_a_replica_that_is_down_is_no_error_of_the_partition(cluster):
    cluster.update_metadata(answer(topic('t', partition(0, 1, error=9))))
    assert cluster.leader_for_partition(TopicPartition('t', 0)) == 1


def test_one_topic_with_an_error_fails_the_update_and_changes_nothing(cluster):
    cluster.update_metadata(answer(topic('t', partition(0))))
    future = cluster.request_update()
    cluster.update_metadata(answer(topic('t', error=3)))
    assert isinstance(future.exception, UnknownTopicOrPartitionError)
    assert future.exception.args == ('t',)
    assert cluster.topics() == {'t'}


def test_an_answer_without_brokers_is_a_failure(cluster):
    future = cluster.request_update()
    cluster.update_metadata(answer(brokers={}))
    assert isinstance(future.exception, MetadataEmptyBrokerList)
    with pytest.raises(MetadataEmptyBrokerList):
        cluster.merge(answer(brokers={}), 12)


def test_an_update_that_was_asked_for_ends_in_its_future(cluster):
    heard = []
    cluster.add_listener(heard.append)
    cluster.add_listener(heard.append)  # is called once all the same
    future = cluster.request_update()
    assert cluster.request_update() is future
    cluster.update_metadata(answer())
    assert future.value is cluster
    assert heard == [cluster]
    cluster.remove_listener(heard.append)
    cluster.update_metadata(answer())
    assert heard == [cluster]
    with pytest.raises(KeyError):
        cluster.remove_listener(heard.append)
    assert cluster.request_update() is not future


def test_the_time_to_the_next_refresh(clock, cluster):
    cluster.update_metadata(answer())
    assert cluster.ttl() == 300000
    clock.now += 100
    assert cluster.ttl() == 200000
    cluster.request_update()
    assert cluster.ttl() == 0
    cluster.failed_update(KeyError())
    assert cluster.ttl() == 100
    clock.now += 0.06
    assert cluster.ttl() == pytest.approx(40)


def test_answers_about_some_topics_are_merged_and_whole_ones_replace(cluster):
    cluster.replace(answer(topic('a', partition(0)), topic('b', partition(0))), 12)
    assert cluster.merge(answer(topic('b', partition(0, 1, 6))), 12).is_news
    assert cluster.topics() == {'a', 'b'}
    assert cluster.leader_for_partition(('b', 0)) == 1
    cluster.replace(answer(topic('b', partition(0, 1, 6))), 12)
    assert cluster.topics() == {'b'}


def test_the_same_answer_is_no_news(cluster):
    assert cluster.replace(answer(topic('a', partition(0))), 12).is_news
    assert not cluster.replace(answer(topic('a', partition(0))), 12).is_news


@pytest.mark.parametrize('version, leader', [(12, 0), (8, 1)])
def test_an_older_epoch_is_ignored_where_epochs_are_right(cluster, version, leader):
    cluster.replace(answer(topic('t', partition(0, 0, 5))), 12)
    cluster.merge(answer(topic('t', partition(0, 1, 4))), version)
    assert cluster.leader_for_partition(('t', 0)) == leader


@pytest.mark.parametrize(
    'topic_id, between, known',
    [(bytes(16), 5, 2), (b'i' * 16, 5, 6), (bytes(16), 6, 6)],
    ids=['nothing newer is told', 'the topic has an id', 'meanwhile the newer one is told'],
)
def test_an_older_epoch_is_believed_when_nothing_else_is_told(
    cluster, clock, topic_id, between, known
):
    """Brokers before 2.8 have no ids, by which a topic that was made anew could be known."""

    def told(epoch):
        cluster.replace(answer(topic('t', partition(0, epoch=epoch), topic_id=topic_id)), 9)
        return cluster.leader_epoch_for_partition(('t', 0))

    assert [told(6), told(2)] == [6, 6]
    clock.now += 29
    assert told(between) == 6
    clock.now += 2
    assert told(2) == known


@pytest.mark.parametrize(
    'gone',
    [[], [topic('t', error=3)], [topic('t', partition(0, epoch=1))]],
    ids=['the topic is not listed', 'the topic is unknown', 'it has fewer partitions'],
)
def test_nothing_is_kept_of_older_epochs_of_what_is_gone(cluster, gone):
    for epoch in (6, 2):
        some = topic('t', partition(0, epoch=1), partition(1, epoch=epoch))
        cluster.replace(answer(some, topic('u', partition(0, epoch=epoch))), 9)
    assert set(cluster._older) == {('t', 1), ('u', 0)}
    cluster.replace(answer(*gone, topic('u', partition(0, epoch=2))), 9)
    assert set(cluster._older) == {('u', 0)}


def test_an_epoch_that_cannot_be_trusted_is_not_kept(cluster):
    cluster.replace(answer(topic('t', partition(0, 0, 5))), 8)
    assert cluster.leader_epoch_for_partition(('t', 0)) == -1


def test_a_topic_that_was_made_anew_begins_with_epochs_anew(cluster):
    cluster.replace(answer(topic('t', partition(0, 0, 5), topic_id=b'1' * 16)), 12)
    assert cluster.topic_id('t') == b'1' * 16
    assert cluster.topic_of_id(b'1' * 16) == 't'
    update = cluster.merge(answer(topic('t', partition(0, 1, 0), topic_id=b'2' * 16)), 12)
    assert update.recreated_topics == {'t'}
    assert cluster.leader_for_partition(('t', 0)) == 1
    assert cluster.topic_of_id(b'1' * 16) is None


@pytest.mark.parametrize('code', [3, 29])
@pytest.mark.parametrize('take', ['merge', 'replace'])
def test_the_id_of_a_topic_goes_with_it(cluster, take, code):
    cluster.replace(answer(topic('t', partition(0), topic_id=b'1' * 16)), 12)
    getattr(cluster, take)(answer(topic('t', error=code)), 12)
    assert cluster.topic_id('t') == bytes(16)
    assert cluster.topic_of_id(b'1' * 16) is None
    assert cluster.deleted_topics == ({'t'} if code == 3 else set())


def test_a_topic_is_deleted_until_it_is_there_again_or_nobody_asks(cluster):
    there, gone = answer(topic('t', partition(0))), answer(topic('t', error=3))
    cluster.replace(gone, 12)
    assert not cluster.deleted_topics  # it was never there
    cluster.replace(there, 12)
    cluster.merge(gone, 12)
    cluster.merge(gone, 12)
    assert cluster.deleted_topics == {'t'}
    cluster.merge(there, 12)
    assert not cluster.deleted_topics
    cluster.merge(gone, 12)
    cluster.replace(answer(topic('u', partition(0))), 12)
    assert not cluster.deleted_topics


def test_errors_of_topics_are_kept_until_they_are_gone(cluster):
    cluster.replace(
        answer(
            topic('no', error=29),
            topic('bad name', error=17),
            topic('none', error=3),
            topic('ok', partition(0)),
        ),
        12,
    )
    assert cluster.unauthorized_topics == {'no'}
    assert cluster.invalid_topics == {'bad name'}
    assert cluster.topic_errors == {
        'no': TopicAuthorizationFailedError,
        'bad name': InvalidTopicError,
        'none': UnknownTopicOrPartitionError,
    }
    assert cluster.topics() == {'ok'}
    cluster.merge(answer(topic('no', partition(0))), 12)
    assert cluster.unauthorized_topics == set()
    assert 'no' not in cluster.topic_errors


def test_a_topic_in_the_making_keeps_what_was_known(cluster):
    cluster.replace(answer(topic('t', partition(0))), 12)
    cluster.merge(answer(topic('t', error=5)), 12)
    assert cluster.partitions_for_topic('t') == {0}
    assert cluster.topic_errors['t'] is LeaderNotAvailableError


def test_what_was_handed_out_does_not_change(cluster):
    cluster.replace(answer(topic('t', partition(0))), 12)
    before = cluster.partitions_for_topic('t'), cluster.brokers(), cluster.partitions_for_broker(0)
    copies = [set(each) for each in before]
    cluster.replace(answer(topic('t', partition(0), partition(1)), brokers={5: 'x'}), 12)
    assert list(before) == copies


# ---------------------------------------------------------------- coordinators


def coordinator(node=1, host='b', port=9092, error=0):
    return FindCoordinatorResponse(error_code=error, node_id=node, host=host, port=port)


def test_the_coordinator_of_a_group_is_noted(cluster):
    cluster.update_metadata(answer())
    assert cluster.add_group_coordinator('g', coordinator()) is True
    assert cluster.coordinator_for_group('g') == 1
    assert cluster.coordinator(0, 'g') == 1
    assert str(cluster) == 'Cluster(brokers: 2, topics: 0, groups: 1)'


def test_a_coordinator_elsewhere_than_its_broker_is_not_believed(cluster):
    cluster.update_metadata(answer())
    assert cluster.add_group_coordinator('g', coordinator(host='other')) is False
    assert cluster.coordinator_for_group('g') is None


def test_an_error_leaves_no_coordinator(cluster):
    assert cluster.add_group_coordinator('g', coordinator(error=15)) is False
    assert cluster.coordinator_for_group('g') == -1
    assert cluster.coordinator(0, 'g') is None


def test_a_coordinator_that_is_no_broker_yet_becomes_one(cluster):
    assert cluster.add_group_coordinator('g', coordinator(7, 'z')) is True
    assert cluster.broker_metadata(7) == (7, 'z', 9092, None)


def test_a_coordinator_that_is_gone_is_forgotten(cluster):
    cluster.replace(answer(), 12)
    cluster.set_coordinator(1, 'tx', 1)
    cluster.set_coordinator(0, 'g', 0)
    cluster.replace(answer(brokers={0: 'a'}), 12)
    assert cluster.coordinator(1, 'tx') is None
    assert cluster.coordinator(0, 'g') == 0
    cluster.forget_coordinator(0, 'g')
    assert cluster.coordinator(0, 'g') is None


# ---------------------------------------------------------------- hints (KIP-951)


@pytest.mark.parametrize(
    'leader, epoch, is_news', [(1, 6, True), (1, 5, False), (-1, 6, False), (9, 6, False)]
)
def test_a_hint_is_taken_if_it_is_newer_and_of_use(cluster, leader, epoch, is_news):
    cluster.replace(answer(topic('t', partition(0, 0, 5))), 12)
    assert cluster.take_hint('t', 0, leader, epoch) is is_news
    assert cluster.leader_for_partition(('t', 0)) == (1 if is_news else 0)
    assert cluster.take_hint('other', 0, 1, 9) is False


def test_a_hint_may_bring_the_address_along(cluster):
    cluster.replace(answer(topic('t', partition(0, 0, 5))), 12)
    end = NodeEndpoint(node_id=9, host='z', port=1, rack='r')
    assert cluster.take_hint('t', 0, 9, 6, [end]) is True
    assert cluster.broker_metadata(9) == (9, 'z', 1, 'r')
    assert cluster.partitions_for_broker(9) == {TopicPartition('t', 0)}


# ---------------------------------------------------------------- before the first answer


def test_servers_stand_for_brokers_until_there_are_some(cluster):
    cluster.set_bootstrap([('x', 1), ('y', 2)])
    assert {broker.host for broker in cluster.brokers()} == {'x', 'y'}
    assert cluster.is_bootstrap('bootstrap-0')
    assert isinstance(cluster.broker_metadata('bootstrap-1'), Broker)
    cluster.replace(answer(), 12)
    assert {broker.host for broker in cluster.brokers()} == {'a', 'b'}
    assert not cluster.is_bootstrap(0)


def test_configs_are_kept_and_others_ignored():
    cluster = ClusterMetadata(retry_backoff_ms=5, something_else=1)
    assert cluster.config['retry_backoff_ms'] == 5
    assert 'something_else' not in cluster.config
