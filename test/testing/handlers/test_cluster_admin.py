"""Brokers, replicas, features: told and changed as brokers of each era do it."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.cluster import (
    AddRaftVoterRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    FeatureUpdateKey,
    Listener,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.admin.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.metadata import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kafka.testing import errors
from test.testing.drive import Driver


def every_version(driver, request):
    low, high = driver.state.release.served[request.api_key]
    return [driver.ask(request, version) for version in range(low, high + 1)]


@pytest.mark.parametrize('release', ['2.8', '3.9', '4.4'])
def test_every_version_describes_the_cluster(release):
    driver = Driver(release, brokers=2)
    for response in every_version(driver, DescribeClusterRequest(True)):
        assert response.cluster_id == driver.state.cluster_id
        assert [each.broker_id for each in response.brokers] == [0, 1]
        assert response.cluster_authorized_operations > 0


def test_dead_brokers_are_fenced():
    driver = Driver(brokers=2)
    driver.state.node_died(1)
    request = DescribeClusterRequest(False, include_fenced_brokers=True)
    fenced = {each.broker_id: each.is_fenced for each in driver.ask(request).brokers}
    assert fenced == {0: False, 1: True}
    assert len(driver.ask(DescribeClusterRequest(False)).brokers) == 1


def test_brokers_do_not_tell_of_controllers():
    response = Driver().ask(DescribeClusterRequest(False, endpoint_type=2))
    assert response.error_code == errors.MISMATCHED_ENDPOINT_TYPE
    response = Driver().ask(DescribeClusterRequest(False, endpoint_type=9))
    assert response.error_code == errors.UNSUPPORTED_ENDPOINT_TYPE


@pytest.mark.parametrize('release', ['1.0', '2.8', '4.4'])
def test_every_version_describes_directories(release):
    driver = Driver(release)
    driver.state.create_topic('t', 2)
    for response in every_version(driver, DescribeLogDirsRequest(None)):
        [directory] = response.results
        assert [len(topic.partitions) for topic in directory.topics] == [2]
    asked = DescribableLogDirTopic(topic='t', partitions=[1, 7])
    [directory] = driver.ask(DescribeLogDirsRequest([asked])).results
    assert [each.partition_index for each in directory.topics[0].partitions] == [1]


def test_brokers_with_zookeeper_name_all_topics_when_some_are_asked_for():
    asked = DescribableLogDirTopic(topic='t', partitions=[0])
    named = []
    for release in ('2.8', '4.4'):
        driver = Driver(release)
        driver.state.create_topic('t')
        driver.state.create_topic('other')
        [directory] = driver.ask(DescribeLogDirsRequest([asked])).results
        named.append([(each.name, len(each.partitions)) for each in directory.topics])
    internal = [('__consumer_offsets', 0), ('__transaction_state', 0)]
    assert named == [[('t', 1), ('other', 0), *internal], [('t', 1)]]


def test_replicas_stay_in_the_only_directory():
    driver = Driver()
    driver.state.create_topic('t')
    path = driver.ask(DescribeLogDirsRequest(None)).results[0].log_dir

    def codes(path, version):
        topic = AlterReplicaLogDirTopic(name='t', partitions=[0, 5])
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path=path, topics=[topic])])
        [result] = driver.ask(request, version).results
        return [each.error_code for each in result.partitions]

    for version in (1, 2):
        assert codes(path, version) == [errors.NONE, errors.REPLICA_NOT_AVAILABLE]
        assert codes('/other', version) == [errors.LOG_DIR_NOT_FOUND] * 2


def elect(driver, kind=0, partitions=(0,), version=None, topic='t'):
    asked = [TopicPartitions(topic=topic, partitions=list(partitions))]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
    [result] = driver.ask(request, version).replica_election_results
    return [each.error_code for each in result.partition_result]


@pytest.mark.parametrize('release', ['2.2', '2.8', '4.4'])
def test_the_preferred_leader_is_elected(release):
    driver = Driver(release, brokers=2)
    partition = driver.state.create_topic('t', assignments=[[1, 0]]).partitions[0]
    low, high = driver.state.release.served[ElectLeadersRequest.api_key]
    for version in range(low, high + 1):
        partition.elect([0, 1], preferred=0)
        assert elect(driver, version=version) == [errors.NONE]
        assert partition.leader == 1
        assert elect(driver, version=version) == [errors.ELECTION_NOT_NEEDED]


def test_a_dead_preferred_leader_is_not_elected():
    driver = Driver(brokers=2)
    driver.state.create_topic('t', assignments=[[1, 0]])
    driver.state.node_died(1)
    assert elect(driver) == [errors.PREFERRED_LEADER_NOT_AVAILABLE]
    assert elect(driver, partitions=[7]) == [errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert elect(driver, topic='none') == [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_an_unclean_election_takes_any_replica_that_lives():
    driver = Driver(brokers=2)
    partition = driver.state.create_topic('t', assignments=[[1, 0]]).partitions[0]
    assert elect(driver, kind=1) == [errors.ELECTION_NOT_NEEDED]
    partition.isr = [1]
    driver.state.node_died(1)
    assert partition.leader == -1
    assert elect(driver, kind=1) == [errors.NONE]
    assert (partition.leader, partition.isr) == (0, [0])


def test_an_election_of_all_tells_only_what_changed():
    driver = Driver(brokers=2)
    driver.state.create_topic('t', assignments=[[1, 0], [0, 1]])
    driver.state.topics['t'].partitions[0].elect([0, 1], preferred=0)
    response = driver.ask(ElectLeadersRequest(topic_partitions=None))
    [result] = response.replica_election_results
    assert [each.partition_id for each in result.partition_result] == [0]


def move(driver, replicas, topic='t', index=0, **options):
    asked = ReassignablePartition(partition_index=index, replicas=replicas)
    topics = [ReassignableTopic(name=topic, partitions=[asked])]
    response = driver.ask(AlterPartitionReassignmentsRequest(topics=topics, **options))
    return response.responses[0].partitions[0].error_code


@pytest.mark.parametrize('release', ['2.4', '4.4'])
def test_partitions_move(release):
    driver = Driver(release, brokers=3)
    partition = driver.state.create_topic('t', assignments=[[0]]).partitions[0]
    assert move(driver, [2, 1]) == errors.NONE
    assert (partition.replicas, partition.leader) == ([2, 1], 2)
    assert driver.ask(ListPartitionReassignmentsRequest()).topics == []


def test_a_move_to_a_dead_broker_waits_and_can_be_cancelled():
    driver = Driver(brokers=2)
    driver.state.create_topic('t', assignments=[[0]])
    driver.state.node_died(1)
    assert move(driver, [0, 1]) == errors.NONE
    [topic] = driver.ask(ListPartitionReassignmentsRequest()).topics
    assert topic.partitions[0].adding_replicas == [1]
    assert move(driver, None) == errors.NONE
    assert move(driver, None) == errors.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize('release', ['2.8', '4.4'])
@pytest.mark.parametrize(
    'replicas, options, expected',
    [
        ([], {}, errors.INVALID_REPLICA_ASSIGNMENT),
        ([0, 0], {}, errors.INVALID_REPLICA_ASSIGNMENT),
        ([9], {}, errors.INVALID_REPLICA_ASSIGNMENT),
        ([0], {'topic': 'none'}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ([0], {'index': 3}, errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_bad_moves_are_refused(release, replicas, options, expected):
    driver = Driver(release, brokers=2)
    driver.state.create_topic('t', assignments=[[0]])
    assert move(driver, replicas, **options) == expected


def test_a_move_may_have_to_keep_the_number_of_copies():
    driver = Driver(brokers=2)
    driver.state.create_topic('t', assignments=[[0]])
    options = {'allow_replication_factor_change': False}
    assert move(driver, [0, 1], **options) == errors.INVALID_REPLICATION_FACTOR
    assert move(driver, [1], **options) == errors.NONE


def pages(driver, limit, *names):
    cursor, found = None, []
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        response = driver.ask(request)
        found.append([(each.name, len(each.partitions)) for each in response.topics])
        cursor = response.next_cursor
        if cursor is None:
            return found


def test_partitions_are_described_page_by_page():
    driver = Driver()
    driver.state.create_topic('a', 3)
    driver.state.create_topic('b', 2)
    assert pages(driver, 2) == [[('a', 2)], [('a', 1), ('b', 1)], [('b', 1)]]
    assert pages(driver, 2000) == [[('a', 3), ('b', 2)]]
    assert pages(driver, 2000, 'none') == [[('none', 0)]]
    cursor = Cursor(topic_name='a', partition_index=-5)
    response = driver.ask(DescribeTopicPartitionsRequest(topics=[], cursor=cursor))
    assert len(response.topics[0].partitions) == 3


def test_the_quorum_has_all_brokers():
    driver = Driver(brokers=2)

    def ask(name):
        partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
        topic = DescribeQuorumRequestTopicData(topic_name=name, partitions=partitions)
        responses = every_version(driver, DescribeQuorumRequest([topic]))
        return responses[-1].topics[0].partitions[0]

    assert [each.replica_id for each in ask('__cluster_metadata').current_voters] == [0, 1]
    assert ask('t').error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_features_are_listed_and_updated():
    driver = Driver('4.4')

    def level(name):
        response = driver.ask(ApiVersionsRequest('x', '1'), 4)
        found = {each.name: each.max_version_level for each in response.finalized_features}
        return found.get(name, 0)

    def update(name, level, kind=1):
        key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        return driver.ask(UpdateFeaturesRequest(feature_updates=[key])).error_code

    assert level('transaction.version') == 2
    assert update('transaction.version', 1) == errors.INVALID_UPDATE_VERSION
    assert update('transaction.version', 0, kind=2) == errors.NONE
    assert level('transaction.version') == 0
    assert update('transaction.version', 3) == errors.INVALID_UPDATE_VERSION
    assert update('no.such', 1) == errors.INVALID_UPDATE_VERSION


@pytest.mark.parametrize('release', ['2.7', '3.9'])
def test_older_versions_answer_for_each_feature(release):
    driver = Driver(release)
    key = FeatureUpdateKey(feature='x', max_version_level=1)
    for response in every_version(driver, UpdateFeaturesRequest(feature_updates=[key])):
        assert [each.feature for each in response.results] == ['x']
        assert response.results[0].error_code != errors.NONE


def test_only_known_brokers_are_unregistered():
    driver = Driver()
    assert driver.ask(UnregisterBrokerRequest(0)).error_code == errors.NONE
    assert driver.ask(UnregisterBrokerRequest(9)).error_code == errors.BROKER_ID_NOT_REGISTERED


def test_voters_stay_as_they_are():
    driver = Driver()
    for version in (0, 1):
        request = AddRaftVoterRequest(None, 1, 7, b'x' * 16, [])
        assert driver.ask(request, version).error_code == errors.INVALID_REQUEST
    request = AddRaftVoterRequest(None, 1, 7, b'x' * 16, [Listener('CONTROLLER', 'h', 1)])
    assert driver.ask(request).error_code == errors.UNSUPPORTED_VERSION
    request = RemoveRaftVoterRequest('other', 7, b'x' * 16)
    assert driver.ask(request).error_code == errors.INCONSISTENT_CLUSTER_ID
    request = RemoveRaftVoterRequest(driver.state.cluster_id, 7, b'x' * 16)
    assert driver.ask(request).error_code == errors.UNSUPPORTED_VERSION


def test_only_known_controllers_are_unregistered():
    driver = Driver()
    codes = [driver.ask(UnregisterControllerRequest(node)).error_code for node in (0, 9)]
    assert codes == [errors.NONE, errors.CONTROLLER_ID_NOT_REGISTERED]


def test_a_partition_named_twice_is_elected_once():
    driver = Driver('2.8', brokers=2)
    driver.state.create_topic('t', assignments=[[1, 0]])
    assert elect(driver, partitions=(0, 0)) == [errors.ELECTION_NOT_NEEDED]
