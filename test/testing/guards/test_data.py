"""Who may write, read and look for records."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.share import FetchPartition as FetchedPartition
from kafka.protocol.share import FetchTopic as FetchedTopic
from kafka.protocol.share import ShareFetchRequest
from kafka.protocol.transaction import DescribeProducersRequest
from kafka.protocol.transaction import TopicRequest as ProducersOf
from kafka.testing.security import acls
from test.testing.data_requests import batch as one_batch
from test.testing.guards.people import CLUSTER, GROUP, TOPIC, TRANSACTION, People, codes

TOPICS = ['mine', 'theirs', 'nowhere']


def batch(producer_id=-1, is_transactional=False):
    """Return a batch of one record."""
    rest = {'producer_epoch': 0, 'base_sequence': 0} if producer_id >= 0 else {}
    return one_batch(b'x', producer_id=producer_id, transactional=is_transactional, **rest)


@pytest.fixture
def people(request):
    people = People(getattr(request, 'param', '4.4'))
    people.state.create_topic('mine')
    people.state.create_topic('theirs')
    return people


def produce(people, user='bob', records=None, acks=1, transactional_id=None, version=9):
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=100,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=0, records=records or batch())],
            )
            for name in TOPICS
        ],
    )
    response = people.ask_as(user, request, version)
    return response and {
        topic.name: each.error_code
        for topic in response.responses
        for each in topic.partition_responses
    }


def test_one_writes_where_one_may(people):
    people.allow('bob', acls.WRITE, TOPIC, 'mine')
    assert produce(people) == {'mine': 0, 'theirs': 29, 'nowhere': 29}
    assert people.state.topics['mine'].partitions[0].log.end_offset == 1
    assert people.state.topics['theirs'].partitions[0].log.end_offset == 0


def test_whether_there_is_a_topic_is_told_to_who_may_write_to_it(people):
    people.allow('bob', acls.WRITE, TOPIC, '*')
    assert produce(people) == {'mine': 0, 'theirs': 0, 'nowhere': 3}


def test_without_acknowledgement_the_connection_closes_and_what_may_be_is_written(people):
    people.allow('bob', acls.WRITE, TOPIC, 'mine')
    people.state.create_topic('nowhere')
    assert produce(people, acks=0) is None
    assert people.state.topics['mine'].partitions[0].log.end_offset == 1
    assert people._known['bob'].connection.is_closed


def test_an_unknown_id_is_no_question_of_rights(people):
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=100,
        topic_data=[
            TopicProduceData(
                topic_id=topic_id,
                partition_data=[PartitionProduceData(index=0, records=batch())],
            )
            for topic_id in (people.state.topics['mine'].topic_id, b'\1' * 16)
        ],
    )
    response = people.ask_as('bob', request, 13)
    found = {t.topic_id[:1]: t.partition_responses[0].error_code for t in response.responses}
    assert found[b'\1'] == 100
    assert sorted(found.values()) == [29, 100]


@pytest.mark.parametrize(
    ('people', 'version', 'code'),
    [('2.7', 8, 31), ('2.8', 9, 0), ('4.4', 9, 0)],
    indirect=['people'],
)
def test_before_2_8_idempotence_needs_a_right_of_its_own(people, version, code):
    people.allow('bob', acls.WRITE, TOPIC, '*')
    assert produce(people, records=batch(7), version=version)['mine'] == code
    people.allow('bob', acls.IDEMPOTENT_WRITE, CLUSTER)
    assert produce(people, records=batch(8), version=version)['mine'] == 0


def test_transactions_need_a_right_to_their_id(people):
    people.allow('bob', acls.WRITE, TOPIC, '*')
    records = batch(7, is_transactional=True)
    assert set(produce(people, records=records, transactional_id='x').values()) == {53}
    people.allow('bob', acls.WRITE, TRANSACTION, 'x')
    assert 53 not in produce(people, records=records, transactional_id='x').values()


def fetch(people, user='bob', replica_id=-1, names=TOPICS, **values):
    request = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            FetchTopic(
                topic=name,
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
            )
            for name in names
        ],
        forgotten_topics_data=[],
        **values,
    )
    versions = people.state.release.served[1]
    response = people.ask_as(user, request, min(12, versions[1]))
    return response.session_id, {
        topic.topic: each.error_code for topic in response.responses for each in topic.partitions
    }


def test_one_reads_what_one_may(people):
    people.allow('bob', acls.READ, TOPIC, 'mine')
    assert fetch(people)[1] == {'mine': 0, 'theirs': 29, 'nowhere': 29}
    assert fetch(people, 'root')[1] == {'mine': 0, 'theirs': 0, 'nowhere': 3}


def test_a_right_that_is_lost_is_lost_within_a_session(people):
    people.allow('bob', acls.READ, TOPIC, 'mine')
    session, found = fetch(people, names=['mine'], session_epoch=0)
    assert found == {'mine': 0}
    people.state.acls.clear()
    assert fetch(people, names=[], session_id=session, session_epoch=1)[1] == {'mine': 29}


def test_followers_are_brokers(people):
    people.allow('bob', acls.READ, TOPIC, '*')
    assert set(fetch(people, replica_id=1)[1].values()) == {29}
    people.allow('bob', acls.CLUSTER_ACTION, CLUSTER)
    assert 29 not in fetch(people, replica_id=1)[1].values()


@pytest.mark.parametrize('people', ['0.11'], indirect=True)
def test_followers_of_0_11_have_to_read_topics_too(people):
    people.allow('bob', acls.READ, TOPIC, 'mine')
    assert set(fetch(people, replica_id=1)[1].values()) == {31}
    people.allow('bob', acls.CLUSTER_ACTION, CLUSTER)
    assert fetch(people, replica_id=1)[1] == {'mine': 0, 'theirs': 3, 'nowhere': 3}


def list_offsets(name):
    part = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsTopic(name=name, partitions=[part])]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)


def epochs(name):
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=name, partitions=[part])]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def delete_records(name):
    part = DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [DeleteRecordsTopic(name=name, partitions=[part])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=1)


def producers(name):
    return DescribeProducersRequest(topics=[ProducersOf(name=name, partition_indexes=[0])])


@pytest.mark.parametrize(
    ('request_of', 'operation'),
    [
        (list_offsets, acls.DESCRIBE),
        (epochs, acls.DESCRIBE),
        (delete_records, acls.DELETE),
        (producers, acls.READ),
    ],
)
def test_each_question_needs_its_own_right(people, request_of, operation):
    people.allow('bob', operation, TOPIC, 'mine')
    assert codes(people.ask_as('bob', request_of('mine'))) == {0}
    assert codes(people.ask_as('bob', request_of('theirs'))) == {29}
    assert codes(people.ask_as('bob', request_of('nowhere'))) == {29}
    assert codes(people.ask_as('root', request_of('nowhere'))) == {3}


@pytest.mark.parametrize('people', ['2.0'], indirect=True)
def test_before_2_1_epochs_were_for_brokers(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, '*')
    assert codes(people.ask_as('bob', epochs('mine'))) == {31}


@pytest.mark.parametrize('people', ['0.11'], indirect=True)
def test_before_1_0_what_one_may_not_see_is_unknown(people):
    people.allow('bob', acls.DESCRIBE, TOPIC, 'mine')
    assert produce(people, version=3) == {'mine': 29, 'theirs': 3, 'nowhere': 3}


def test_share_groups_read_what_one_may(people):
    topic_ids = [people.state.topics[name].topic_id for name in ('mine', 'theirs')]
    people.allow('bob', acls.READ, GROUP, 'g')
    people.allow('bob', acls.READ, TOPIC, 'mine')
    part = FetchedPartition(partition_index=0, acknowledgement_batches=[])
    request = ShareFetchRequest(
        group_id='g',
        member_id='A' * 22,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        max_records=10,
        batch_size=10,
        topics=[FetchedTopic(topic_id=each, partitions=[part]) for each in topic_ids],
        forgotten_topics_data=[],
    )
    found = people.ask_as('bob', request)
    codes_of = {each.topic_id: each.partitions[0].error_code for each in found.responses}
    assert (found.error_code, codes_of[topic_ids[1]]) == (0, 29)
    assert codes_of.get(topic_ids[0]) != 29
    assert people.ask_as('eve', request).error_code == 30
