"""Who may produce idempotently and in transactions."""

from __future__ import annotations

import pytest

from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka.testing.security import acls
from test.testing.guards.people import CLUSTER, GROUP, TOPIC, TRANSACTION, People, codes


@pytest.fixture
def people(request):
    people = People(getattr(request, 'param', '4.4'))
    people.state.create_topic('mine')
    people.state.create_topic('theirs')
    return people


def begun(people, user='bob', transactional_id='x'):
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    return people.ask_as(user, request)


@pytest.mark.parametrize(
    ('people', 'code'), [('2.7', 31), ('2.8', 0), ('4.4', 0)], indirect=['people']
)
def test_who_may_write_somewhere_may_do_so_idempotently(people, code):
    assert begun(people, transactional_id=None).error_code == 31
    people.allow('bob', acls.WRITE, TOPIC, 'mine')
    assert begun(people, transactional_id=None).error_code == code
    people.allow('bob', acls.IDEMPOTENT_WRITE, CLUSTER)
    assert begun(people, transactional_id=None).error_code == 0


def test_a_transaction_needs_a_right_to_write_under_its_id(people):
    assert begun(people).error_code == 53
    people.allow('bob', acls.DESCRIBE, TRANSACTION, 'x')
    assert begun(people).error_code == 53
    people.allow('bob', acls.WRITE, TRANSACTION, 'x')
    assert begun(people).error_code == 0


def in_transaction(people):
    """Begin a transaction; return who writes in it."""
    people.allow('bob', acls.WRITE, TRANSACTION, 'x')
    found = begun(people)
    return {'producer_id': found.producer_id, 'producer_epoch': found.producer_epoch}


def add(people, producer, *names):
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id='x',
        v3_and_below_producer_id=producer['producer_id'],
        v3_and_below_producer_epoch=producer['producer_epoch'],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=n, partitions=[0]) for n in names],
    )
    found = people.ask_as('bob', request, 3).results_by_topic_v3_and_below
    return {
        topic.name: each.partition_error_code
        for topic in found
        for each in topic.results_by_partition
    }


def test_topics_are_added_all_or_none(people):
    producer = in_transaction(people)
    people.allow('bob', acls.WRITE, TOPIC, 'mine')
    assert add(people, producer, 'mine', 'theirs') == {'mine': 55, 'theirs': 29}
    assert add(people, producer, 'mine') == {'mine': 0}
    people.state.acls.clear()
    assert add(people, producer, 'mine') == {'mine': 53}


def test_groups_and_offsets_of_a_transaction_need_rights_of_their_own(people):
    producer = in_transaction(people)
    added = AddOffsetsToTxnRequest(transactional_id='x', group_id='g', **producer)
    part = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=''
    )
    topics = [
        TxnOffsetCommitRequestTopic(name=name, partitions=[part]) for name in ('mine', 'theirs')
    ]
    commit = TxnOffsetCommitRequest(transactional_id='x', group_id='g', topics=topics, **producer)
    assert codes(people.ask_as('bob', added)) == codes(people.ask_as('bob', commit, 3)) == {30}
    people.allow('bob', acls.READ, GROUP, 'g')
    people.allow('bob', acls.READ, TOPIC, 'mine')
    assert codes(people.ask_as('bob', added)) == {0}
    found = people.ask_as('bob', commit, 3).topics
    assert {each.name: each.partitions[0].error_code for each in found} == {'mine': 0, 'theirs': 29}
    people.state.acls.clear()
    assert codes(people.ask_as('bob', added)) == codes(people.ask_as('bob', commit, 3)) == {53}


def test_a_transaction_is_ended_by_who_may_write_under_its_id(people):
    producer = in_transaction(people)
    request = EndTxnRequest(transactional_id='x', committed=True, **producer)
    assert people.ask_as('eve', request).error_code == 53
    assert people.ask_as('bob', request).error_code != 53


def test_transactions_are_shown_to_who_may_describe_them(people):
    people.allow('bob', acls.WRITE, TOPIC, '*')
    add(people, in_transaction(people), 'mine', 'theirs')
    described = DescribeTransactionsRequest(transactional_ids=['x'])
    listed = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    assert codes(people.ask_as('eve', described)) == {53}
    assert people.ask_as('eve', listed).transaction_states == []
    people.allow('eve', acls.DESCRIBE, TRANSACTION, 'x')
    people.allow('eve', acls.DESCRIBE, TOPIC, 'mine')
    (found,) = people.ask_as('eve', described).transaction_states
    assert [each.topic for each in found.topics] == ['mine']
    found = people.ask_as('eve', listed).transaction_states
    assert [each.transactional_id for each in found] == ['x']


@pytest.mark.parametrize(
    ('people', 'code'), [('3.7', 31), ('3.8', 0), ('4.4', 0)], indirect=['people']
)
def test_who_may_alter_the_cluster_may_write_markers(people, code):
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name='mine', partition_indexes=[0])],
        coordinator_epoch=0,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    assert codes(people.ask_as('bob', request)) == {31}
    people.allow('bob', acls.ALTER, CLUSTER)
    assert codes(people.ask_as('bob', request)) == {code}
    people.allow('bob', acls.CLUSTER_ACTION, CLUSTER)
    assert codes(people.ask_as('bob', request)) == {0}
