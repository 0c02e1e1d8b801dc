"""Transactions go as brokers of each era let them."""

from __future__ import annotations

import pytest

from kafka.protocol.commit import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TopicRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka.testing import errors
from kafka.testing.logs.appending import append
from kafka.testing.transactions.transaction import LAST_EPOCH, S
from test.testing.drive import Driver
from test.testing.handlers.transactional import batch_of

V1, V2 = 4, 5  # of EndTxn


class Producer:
    """A producer with a transactional id that talks to its coordinator."""

    def __init__(self, driver, name='id', partitions=2):
        self.driver = driver
        self.name = name
        self.node = driver.state.coordinator_of(name)
        self.id, self.epoch = -1, -1
        if 't' not in driver.state.topics:
            driver.state.create_topic('t', partitions)

    def init(self, *, expected=None, timeout_ms=60000, version=None):
        request = InitProducerIdRequest(self.name, timeout_ms)
        if expected is not None:
            request.producer_id, request.producer_epoch = expected
        response = self.driver.ask(request, version, self.node)
        if response.error_code == errors.NONE:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        return response.error_code

    def add(self, *indexes, topic='t', version=None, verify_only=False):
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))]
        low, high = self.driver.state.release.served[AddPartitionsToTxnRequest.api_key]
        version = min(high, 3) if version is None else version
        if version < 4:
            request = AddPartitionsToTxnRequest(self.name, self.id, self.epoch, topics)
            response = self.driver.ask(request, version, self.node)
            [result] = response.results_by_topic_v3_and_below
        else:
            one = AddPartitionsToTxnTransaction(
                self.name, self.id, self.epoch, verify_only=verify_only, topics=topics
            )
            response = self.driver.ask(
                AddPartitionsToTxnRequest(transactions=[one]), version, self.node
            )
            [result] = response.results_by_transaction[0].topic_results
        codes = [each.partition_error_code for each in result.results_by_partition]
        return codes[0] if len(codes) == 1 else codes

    def end(self, commit, version=V1, epoch=None):
        epoch = self.epoch if epoch is None else epoch
        request = EndTxnRequest(self.name, self.id, epoch, commit)
        response = self.driver.ask(request, version, self.node)
        if response.error_code == errors.NONE and version >= V2:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        return response.error_code

    def add_offsets(self, group='g'):
        request = AddOffsetsToTxnRequest(self.name, self.id, self.epoch, group)
        return self.driver.ask(request, None, self.node).error_code

    def commit_offset(self, offset, group='g', version=4, topic='t', **fields):
        asked = TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=[TxnOffsetCommitRequestPartition(0, offset, committed_metadata='')],
        )
        if version >= 6:
            asked.name, asked.topic_id = '', self.driver.state.topics[topic].topic_id
        request = TxnOffsetCommitRequest(
            self.name, group, self.id, self.epoch, topics=[asked], **fields
        )
        node = self.driver.state.coordinator_of(group)
        return self.driver.ask(request, version, node).topics[0].partitions[0].error_code

    def write(self, index=0, base_sequence=0, epoch=None):
        """Append a transactional record as a leader does."""
        epoch = self.epoch if epoch is None else epoch
        return append(
            self.driver.state,
            self.driver.waiting,
            self.driver.state.topics['t'].partitions[index],
            [batch_of(self.id, epoch, base_sequence)],
        )

    @property
    def state(self):
        return self.driver.state.transactions.get(self.name).state

    def log(self, index=0):
        return self.driver.state.topics['t'].partitions[index].log


def begun(release='4.4', **settings):
    driver = Driver(release, **settings)
    producer = Producer(driver)
    assert producer.init() == errors.NONE
    return driver, producer


# ------------------------------------------------------------ InitProducerId


@pytest.mark.parametrize('release', ['0.11', '2.8', '4.4'])
def test_every_version_gives_ids(release):
    driver = Driver(release)
    low, high = driver.state.release.served[InitProducerIdRequest.api_key]
    seen = set()
    for version in range(low, high + 1):
        response = driver.ask(InitProducerIdRequest(None, 0), version)
        assert (response.error_code, response.producer_epoch) == (errors.NONE, 0)
        seen.add(response.producer_id)
    assert len(seen) == high - low + 1


def test_a_transactional_id_keeps_its_producer_id():
    _, producer = begun()
    first = producer.id
    assert producer.init() == errors.NONE
    assert (producer.id, producer.epoch) == (first, 1)


@pytest.mark.parametrize(
    'name, timeout_ms, expected, code',
    [
        ('', 1000, None, errors.INVALID_REQUEST),
        ('id', 0, None, errors.INVALID_TRANSACTION_TIMEOUT),
        ('id', 900001, None, errors.INVALID_TRANSACTION_TIMEOUT),
        ('id', 1000, (5, -1), errors.INVALID_REQUEST),
        ('id', 1000, (-1, 5), errors.INVALID_REQUEST),
    ],
)
def test_bad_requests_for_ids_are_refused(name, timeout_ms, expected, code):
    assert Producer(Driver(), name).init(timeout_ms=timeout_ms, expected=expected) == code


def test_only_the_coordinator_answers():
    driver = Driver(brokers=2)
    producer = Producer(driver)
    producer.node = 1 - producer.node
    assert producer.init() == errors.NOT_COORDINATOR
    assert producer.add(0) == errors.NOT_COORDINATOR
    assert producer.end(True) == errors.NOT_COORDINATOR
    assert producer.add_offsets() == errors.NOT_COORDINATOR


def test_a_producer_raises_its_own_epoch():
    _, producer = begun()
    assert producer.init(expected=(producer.id, 0)) == errors.NONE
    assert producer.epoch == 1
    assert producer.init(expected=(producer.id, 0)) == errors.NONE
    assert producer.epoch == 1


@pytest.mark.parametrize(
    'version, code', [(3, errors.INVALID_PRODUCER_EPOCH), (4, errors.PRODUCER_FENCED)]
)
def test_a_producer_that_was_replaced_is_fenced(version, code):
    driver, old = begun()
    new = Producer(driver)
    new.init()
    assert old.init(expected=(old.id, 0), version=version) == code


def test_a_new_producer_aborts_what_the_old_one_left():
    driver, old = begun()
    old.add(0)
    old.write()
    new = Producer(driver)
    assert new.init() == errors.CONCURRENT_TRANSACTIONS
    driver.advance(0)
    assert new.init() == errors.NONE
    assert new.epoch == old.epoch + 2
    assert old.log().aborted[0].producer_id == old.id
    assert old.add(1) == errors.PRODUCER_FENCED
    assert old.end(True) == errors.PRODUCER_FENCED
    assert old.write(base_sequence=1) == errors.INVALID_PRODUCER_EPOCH


# ------------------------------------------------------------ partitions


@pytest.mark.parametrize('release', ['0.11', '2.8', '4.4'])
def test_every_version_adds_and_ends(release):
    driver, producer = begun(release)
    low, high = driver.state.release.served[AddPartitionsToTxnRequest.api_key]
    lowest, highest = driver.state.release.served[EndTxnRequest.api_key]
    for version in range(low, high + 1):
        assert producer.add(0, 1, version=version) == [errors.NONE] * 2
        for end in range(lowest, highest + 1):
            driver.advance(0)
            assert producer.add(0) == errors.NONE
            assert producer.end(True, end) == errors.NONE
        driver.advance(0)
        assert producer.state is S.COMPLETE_COMMIT


def test_nothing_is_added_beside_an_unknown_partition():
    _, producer = begun()
    assert producer.add(0, 9) == [
        errors.OPERATION_NOT_ATTEMPTED,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.state is S.EMPTY


@pytest.mark.parametrize(
    'version, fenced', [(1, errors.INVALID_PRODUCER_EPOCH), (2, errors.PRODUCER_FENCED)]
)
def test_only_the_owner_adds(version, fenced):
    _, producer = begun()
    producer.epoch = 5
    assert producer.add(0, version=version) == fenced
    producer.id = 99
    assert producer.add(0, version=version) == errors.INVALID_PRODUCER_ID_MAPPING
    producer.name = 'other'
    assert producer.add(0, version=version) == errors.INVALID_PRODUCER_ID_MAPPING


def test_nothing_is_added_while_markers_are_written():
    driver, producer = begun()
    producer.add(0)
    producer.end(True)
    assert producer.add(0) == errors.CONCURRENT_TRANSACTIONS
    driver.advance(0)
    assert producer.add(0) == errors.NONE


def test_brokers_ask_whether_a_partition_is_in():
    _, producer = begun()
    producer.add(0)
    assert producer.add(0, version=4, verify_only=True) == errors.NONE
    assert producer.add(1, version=4, verify_only=True) == errors.TRANSACTION_ABORTABLE
    assert producer.add(1, version=5, verify_only=True) == errors.TRANSACTION_ABORTABLE


def check_write(producer, version, index=0):
    transactions = producer.driver.state.transactions
    return transactions.check_write(producer.name, producer.id, producer.epoch, 't', index, version)


def test_writing_adds_a_partition_from_produce_12_on():
    _, producer = begun()
    assert check_write(producer, 12) == errors.NONE
    assert producer.state is S.ONGOING
    assert producer.add(0, version=4, verify_only=True) == errors.NONE


def test_writing_below_produce_12_needs_the_partition_since_3_6():
    _, producer = begun()
    assert check_write(producer, 11) == errors.TRANSACTION_ABORTABLE
    assert check_write(producer, 10) == errors.INVALID_TXN_STATE
    producer.add(0)
    assert check_write(producer, 11) == errors.NONE
    assert check_write(begun('3.5')[1], 9) == errors.NONE


def test_writing_with_an_old_epoch_is_refused():
    _, producer = begun()
    producer.epoch = 7
    assert check_write(producer, 12) == errors.INVALID_PRODUCER_EPOCH
    producer.id = 70
    assert check_write(producer, 12) == errors.INVALID_PRODUCER_ID_MAPPING
    producer.name = None
    assert check_write(producer, 12) == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# ------------------------------------------------------------ the end


@pytest.mark.parametrize('version, raised', [(V1, 0), (V2, 1)])
@pytest.mark.parametrize('commit', [True, False])
def test_markers_end_a_transaction(version, raised, commit):
    driver, producer = begun()
    producer.add(0)
    producer.write()
    assert producer.log().last_stable_offset == 0
    assert producer.end(commit, version) == errors.NONE
    driver.advance(0)
    log = producer.log()
    assert (log.last_stable_offset, len(log.aborted)) == (2, 0 if commit else 1)
    assert log.batches[-1].producer_epoch == raised
    assert producer.epoch == raised
    assert producer.log(1).end_offset == 0


def test_the_first_outcome_holds_in_v1():
    driver, producer = begun()
    producer.add(0)
    producer.end(True)
    assert producer.end(True) == errors.CONCURRENT_TRANSACTIONS
    assert producer.end(False) == errors.INVALID_TXN_STATE
    driver.advance(0)
    assert producer.end(True) == errors.NONE
    assert producer.end(False) == errors.INVALID_TXN_STATE


def test_the_first_outcome_holds_in_v2():
    driver, producer = begun()
    producer.add(0)
    producer.end(True, V2)
    assert producer.end(True, V2, epoch=0) == errors.CONCURRENT_TRANSACTIONS
    assert producer.end(False, V2, epoch=0) == errors.INVALID_TXN_STATE
    driver.advance(0)
    assert producer.end(True, V2, epoch=0) == errors.NONE
    assert producer.epoch == 1
    assert producer.end(False, V2, epoch=0) == errors.INVALID_TXN_STATE


def test_an_empty_transaction_cannot_be_ended_in_v1():
    _, producer = begun()
    assert producer.end(True) == errors.INVALID_TXN_STATE
    assert producer.end(False) == errors.INVALID_TXN_STATE


def test_aborting_an_empty_transaction_raises_the_epoch_in_v2():
    driver, producer = begun()
    assert producer.end(True, V2) == errors.INVALID_TXN_STATE
    assert producer.end(False, V2) == errors.NONE
    driver.advance(0)
    assert (producer.epoch, producer.state) == (1, S.COMPLETE_ABORT)
    assert producer.end(False, V2) == errors.NONE
    assert producer.epoch == 2


@pytest.mark.parametrize(
    'version, code', [(1, errors.INVALID_PRODUCER_EPOCH), (2, errors.PRODUCER_FENCED)]
)
def test_fencing_is_called_by_its_name_from_version_2_on(version, code):
    _, producer = begun()
    assert producer.end(True, version, epoch=9) == code


@pytest.mark.parametrize('release', ['0.11', '2.4', '2.8'])
def test_before_2_5_an_end_with_a_later_epoch_is_refused_and_blocks_the_transaction(release):
    driver, producer = begun(release)
    version = 2 if release == '2.8' else 0
    fenced = errors.PRODUCER_FENCED if version else errors.INVALID_PRODUCER_EPOCH
    producer.add(0)
    assert producer.end(True, version, epoch=producer.epoch + 1) == fenced
    driver.advance(1)
    later = errors.CONCURRENT_TRANSACTIONS if release != '2.8' else errors.NONE
    assert producer.end(True, version) == later
    if release == '2.4':
        assert producer.init() == errors.CONCURRENT_TRANSACTIONS


def test_used_up_epochs_give_a_new_id_at_the_end_in_v2():
    driver, producer = begun()
    old = producer.id
    driver.state.transactions.get('id').producer_epoch = producer.epoch = LAST_EPOCH
    producer.add(0)
    assert producer.end(True, V2) == errors.NONE
    assert (producer.id != old, producer.epoch) == (True, 0)
    driver.advance(0)
    assert producer.add(0) == errors.NONE


def test_a_marker_waits_for_a_leader():
    driver, producer = begun(brokers=1)
    producer.add(0, 1)
    producer.write(0)
    producer.log()
    leader = driver.state.topics['t'].partitions[0].leader
    driver.state.topics['t'].partitions[0].leader = -1
    producer.end(True)
    driver.advance(5)
    assert producer.state is S.PREPARE_COMMIT
    driver.state.topics['t'].partitions[0].leader = leader
    driver.advance(1)
    assert producer.state is S.COMPLETE_COMMIT


def test_markers_of_deleted_topics_are_left_out():
    driver, producer = begun()
    producer.add(0)
    driver.state.drop_topic('t')
    producer.end(True)
    driver.advance(0)
    assert producer.state is S.COMPLETE_COMMIT


# ------------------------------------------------------------ time


@pytest.mark.parametrize('ms, seconds, ends', [(None, 59, 0), (None, 70.1, 1), (500, 60.6, 1)])
def test_a_late_transaction_is_aborted(ms, seconds, ends):
    driver, producer = begun(transaction_abort_interval_ms=ms)
    producer.add(0)
    driver.advance(seconds)
    assert producer.state is (S.COMPLETE_ABORT if ends else S.ONGOING)


def test_a_late_producer_comes_back_with_its_epoch():
    driver, producer = begun()
    producer.add(0)
    driver.advance(80)
    assert producer.add(0) == errors.PRODUCER_FENCED
    assert producer.end(True) == errors.PRODUCER_FENCED
    assert producer.end(True, V2) == errors.INVALID_TXN_STATE
    assert producer.init(expected=(producer.id, 0)) == errors.NONE
    assert producer.epoch == 1


def test_a_late_producer_may_abort_in_v2():
    driver, producer = begun()
    producer.add(0)
    driver.advance(80)
    assert producer.end(False, V2) == errors.NONE
    assert producer.epoch == 1


def test_an_unused_id_is_forgotten_after_a_week():
    driver, producer = begun()
    driver.advance(7 * 24 * 3600 + 1)
    assert producer.add(0) == errors.INVALID_PRODUCER_ID_MAPPING


# ------------------------------------------------------------ offsets


def fetched(driver, stable):
    group = OffsetFetchRequestGroup(
        group_id='g', topics=[OffsetFetchRequestTopics(name='t', partition_indexes=[0])]
    )
    request = OffsetFetchRequest(groups=[group], require_stable=stable)
    [answer] = driver.ask(request, 9).groups
    partition = answer.topics[0].partitions[0]
    return partition.committed_offset, partition.error_code


@pytest.mark.parametrize('commit, offset', [(True, 5), (False, -1)])
@pytest.mark.parametrize('version', [4, 5])
def test_offsets_hold_when_the_transaction_commits(version, commit, offset):
    driver, producer = begun()
    if version < 5:
        assert producer.add_offsets() == errors.NONE
    assert producer.commit_offset(5, version=version) == errors.NONE
    assert fetched(driver, False) == (-1, errors.NONE)
    assert fetched(driver, True)[1] == errors.UNSTABLE_OFFSET_COMMIT
    producer.end(commit, version)
    driver.advance(0)
    assert fetched(driver, True) == (offset, errors.NONE)


@pytest.mark.parametrize('release', ['0.11', '2.8', '3.6', '4.4'])
def test_every_version_commits_offsets(release):
    driver, producer = begun(release)
    producer.add_offsets()
    low, high = driver.state.release.served[TxnOffsetCommitRequest.api_key]
    for version in range(low, high + 1):
        assert producer.commit_offset(version, version=version) == errors.NONE


@pytest.mark.parametrize(
    'version, code', [(3, errors.INVALID_TXN_STATE), (4, errors.TRANSACTION_ABORTABLE)]
)
def test_a_group_must_be_added_first(version, code):
    _, producer = begun()
    assert producer.commit_offset(1, version=version) == code


def test_members_of_the_past_are_refused():
    _, producer = begun()
    code = producer.commit_offset(1, version=5, generation_id_or_member_epoch=4, member_id='m')
    assert code == errors.UNKNOWN_MEMBER_ID


def test_offsets_of_unknown_topics_are_refused():
    _, producer = begun()
    assert producer.commit_offset(1, version=5, topic='x') == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offset(1, version=5, group='') == errors.INVALID_GROUP_ID


def test_offsets_with_an_old_epoch_are_refused():
    for release, version in (('2.8', 3), ('4.4', 5)):
        driver, producer = begun(release)
        Producer(driver).init()
        code = producer.commit_offset(1, version=version)
        assert code == errors.INVALID_PRODUCER_EPOCH


def describe(driver, name):
    return driver.ask(DescribeTransactionsRequest([name])).transaction_states[0]


def test_transactions_are_described():
    driver, producer = begun()
    producer.add(1)
    producer.add_offsets('g')
    found = describe(driver, 'id')
    assert (found.error_code, found.transaction_state) == (errors.NONE, 'Ongoing')
    assert (found.producer_id, found.transaction_timeout_ms) == (producer.id, 60000)
    assert [(each.topic, each.partitions) for each in found.topics] == [
        ('__consumer_offsets', [3]),
        ('t', [1]),
    ]
    assert describe(driver, 'none').error_code == errors.TRANSACTIONAL_ID_NOT_FOUND
    assert describe(driver, '').error_code == errors.INVALID_REQUEST


def listed(driver, states=(), ids=(), version=None, **filters):
    request = ListTransactionsRequest(list(states), list(ids), **filters)
    return [each.transactional_id for each in driver.ask(request, version).transaction_states]


def test_transactions_are_listed_through_filters():
    driver = Driver()
    one, two = Producer(driver, 'a.1'), Producer(driver, 'b.1')
    assert [one.init(), two.init()] == [errors.NONE] * 2
    two.add(0)
    driver.advance(1)
    assert [listed(driver, version=version) for version in range(3)] == [['a.1', 'b.1']] * 3
    assert listed(driver, ['Ongoing']) == ['b.1']
    assert listed(driver, ids=[one.id]) == ['a.1']
    assert listed(driver, duration_filter=500) == ['a.1', 'b.1']
    assert listed(driver, duration_filter=5000) == ['a.1']  # it never began
    assert listed(driver, transactional_id_pattern='a.*') == ['a.1']
    assert listed(driver, ['Sleeping']) == []


@pytest.mark.parametrize('pattern', ['(', '(?=a)', '(' * 200 + ')' * 200])
def test_bad_patterns_are_refused(pattern):
    response = Driver().ask(ListTransactionsRequest([], [], transactional_id_pattern=pattern))
    assert response.error_code == errors.INVALID_REGULAR_EXPRESSION


def test_producers_are_described():
    driver, producer = begun()
    producer.add(0)
    producer.write()
    asked = [TopicRequest('t', [0, 9]), TopicRequest('x', [0])]
    topics = driver.ask(DescribeProducersRequest(asked)).topics
    [found] = topics[0].partitions[0].active_producers
    numbers = found.producer_id, found.last_sequence, found.current_txn_start_offset
    assert numbers == (producer.id, 0, 0)
    unknown = {each.partitions[-1].error_code for each in topics}
    assert unknown == {errors.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize('release', ['0.11', '3.9', '4.4'])
def test_administrators_end_hanging_transactions(release):
    driver, producer = begun(release)
    low, high = driver.state.release.served[WriteTxnMarkersRequest.api_key]
    for version in range(low, high + 1):
        producer.write(base_sequence=version - low)
        topic = WritableTxnMarkerTopic('t', [0, 9])
        marker = WritableTxnMarker(producer.id, producer.epoch, False, [topic], 0)
        [result] = driver.ask(WriteTxnMarkersRequest([marker]), version).markers
        assert [each.error_code for each in result.topics[0].partitions] == [
            errors.NONE,
            errors.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert producer.log().open_transactions == {}


def test_ids_do_not_grow_without_limit(monkeypatch):
    monkeypatch.setattr('kafka.testing.transactions.coordinator._MOST_IDS', 2)
    driver = Driver()
    for name in 'abc':
        assert Producer(driver, name).init() == errors.NONE
        driver.advance(1)
    assert [each.transactional_id for each in driver.state.transactions.all] == ['b', 'c']


def test_releases_1_0_and_1_1_looked_for_the_topic_only():
    driver, producer = begun('1.1')
    assert producer.add(0, 9) == [errors.NONE] * 2
    assert producer.add(0, topic='x') == errors.UNKNOWN_TOPIC_OR_PARTITION
    producer.end(True, 0)
    driver.advance(0)
    assert producer.state is S.COMPLETE_COMMIT
