"""Who is asked for a transactional producer, how often, and what blocking calls do meanwhile."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    UnsupportedVersionError,
)
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.producer.transaction_driver import GROUP, TRANSACTION, TransactionDriver
from kafka.producer.transaction_errors import CallKind
from kafka.producer.transaction_state import TransactionState
from kafka.producer.transaction_table import TxnState
from kafka.protocol.api import ApiKey
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.manual_loop import ManualLoop
from test.producer.answered import RESPONSES
from test.producer.numbered import Batch, answer

NEWEST = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.INIT_PRODUCER_ID: (0, 6),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.END_TXN: (0, 5),
}
KINDS = {
    'InitProducerIdRequest': CallKind.INIT_PRODUCER_ID,
    'AddPartitionsToTxnRequest': CallKind.ADD_PARTITIONS,
    'AddOffsetsToTxnRequest': CallKind.ADD_OFFSETS,
    'TxnOffsetCommitRequest': CallKind.COMMIT_OFFSETS,
    'EndTxnRequest': CallKind.END,
}


class TimedLoop(ManualLoop):
    """Lets time pass while somebody waits."""

    def run(self, coroutine, timeout):
        task, end = self.spawn(coroutine), self.now + timeout
        self.settle()
        while not task.done:
            due = self.next_time()
            if due is None or due > end:
                self.now = end
                task.cancel()
                self.settle()
                raise KafkaTimeoutError('too late')
            self.advance(due - self.now)
        return task.result()


class Pool:
    """A coordinator that answers as the test says: codes, errors, or 0 when nothing is said."""

    def __init__(self):
        self.versions = BrokerVersions(NEWEST)
        self.features = {'transaction.version': 2}
        self.script = []
        self.unreachable = []
        self.asked = []
        self.forgotten = []
        self.looked_up = []

    async def any_ready(self):
        if self.unreachable:
            raise self.unreachable.pop(0)
        return self

    async def coordinator(self, kind, key):
        self.looked_up.append((kind, key))
        return (await self.any_ready()) and 1

    def link(self, node):
        return self

    async def ready(self):
        pass

    def forget_coordinator(self, kind, key):
        self.forgotten.append((kind, key))

    def finalized_features(self):
        return self.features

    async def request(self, request, timeout, highest):
        self.asked.append((request, highest))
        said = self.script.pop(0) if self.script else 0
        if isinstance(said, KafkaError):
            raise said
        kind = KINDS[type(request).__name__]
        fields = {'producer_id': 7, 'producer_epoch': 1}
        ask = type('Ask', (), {'request': request})
        with_id = kind in (CallKind.INIT_PRODUCER_ID, CallKind.END) and not said
        return RESPONSES[kind](ask, said, **(fields if with_id else {}))


class Rig:
    """A driver and all it needs."""

    def __init__(self, transactional_id='pay'):
        self.loop = TimedLoop()
        self.pool = Pool()
        self.pokes = 0
        self.accumulator = RecordAccumulator(
            AccumulatorConfig(), lambda: None, lambda done, timeout: done()
        )
        self.state = TransactionState(transactional_id)
        self.driver = TransactionDriver(
            self.loop, self.pool, self.state, self.accumulator, self.poke, max_block=10.0
        )

    def poke(self):
        self.pokes += 1

    @property
    def asked(self):
        """The names of the requests that were made."""
        return [type(request).__name__ for request, _ in self.pool.asked]

    def begun(self):
        """Begin a transaction with a batch in it."""
        self.driver.init_transactions()
        self.driver.begin_transaction()
        batch = Batch()
        self.state.stamp(batch)
        self.state.on_produced(batch, answer(0, 0))
        self.pool.asked.clear()
        return self


@pytest.fixture
def rig():
    """Return a driver with a coordinator that answers well."""
    return Rig()


def test_transaction_from_beginning_to_end(rig):
    rig.begun().driver.commit_transaction()
    assert rig.asked == ['EndTxnRequest']
    assert rig.pool.asked[0][1] == 5
    assert rig.pool.looked_up[-1] == (TRANSACTION, 'pay')
    assert rig.state.state is TxnState.READY
    assert rig.pokes


def test_cluster_without_the_feature_gets_version_1(rig):
    rig.pool.features = {'transaction.version': 1}
    rig.driver.init_transactions()
    assert not rig.state.is_v2


def test_a_connection_that_closes_before_it_is_asked_is_found_anew(rig):
    versions, rig.pool.versions = rig.pool.versions, None
    rig.loop.call_later(1.0, lambda: setattr(rig.pool, 'versions', versions))
    rig.driver.init_transactions()
    assert rig.asked == ['InitProducerIdRequest']
    assert set(rig.pool.forgotten) == {(TRANSACTION, 'pay')}


@pytest.mark.parametrize(('ranges', 'raises', 'fences', 'remembered'), [
    ({ApiKey.PRODUCE: (0, 3), ApiKey.INIT_PRODUCER_ID: (0, 0)}, False, False, 1),
    ({ApiKey.PRODUCE: (0, 8), ApiKey.INIT_PRODUCER_ID: (0, 3)}, True, False, 5),
    ({**NEWEST}, True, True, 5),
])  # fmt: skip
def test_what_brokers_can_is_read_from_their_versions(rig, ranges, raises, fences, remembered):
    rig.pool.versions = BrokerVersions(ranges)
    rig.driver.init_transactions()
    assert rig.state._raises_epoch is raises
    assert rig.state._may_fence is fences
    assert rig.state.sequences.most_in_flight == remembered


def test_retriable_codes_are_tried_again_with_growing_pauses(rig):
    rig.pool.script = [51, 51, 51]
    start = rig.loop.now
    rig.driver.init_transactions()
    assert rig.asked == ['InitProducerIdRequest'] * 4
    assert 0.5 < rig.loop.now - start < 1.0  # 0.1, 0.2 and 0.4 s, each a fifth more or less
    assert rig.pool.forgotten == []


def test_coordinator_that_moved_is_looked_up_again(rig):
    rig.pool.script = [16]
    rig.driver.init_transactions()
    assert rig.pool.forgotten == [(TRANSACTION, 'pay')]


def test_lost_answer_means_the_same_call_again(rig):
    rig.begun().pool.script = [KafkaConnectionError('gone'), KafkaTimeoutError('late'), 51]
    rig.driver.commit_transaction()
    assert rig.asked == ['EndTxnRequest'] * 4
    requests = [request for request, _ in rig.pool.asked]
    assert all(request == requests[0] for request in requests)
    assert requests[0].committed


def test_broker_that_cannot_be_reached_is_waited_for(rig):
    rig.pool.unreachable = [NoBrokersAvailable('nobody'), KafkaConnectionError('refused')]
    rig.driver.init_transactions()
    assert rig.asked == ['InitProducerIdRequest']


def test_wait_that_ends_early_leaves_the_operation_going(rig):
    rig.begun().pool.script = [51] * 30
    with pytest.raises(KafkaTimeoutError, match=r'commit_transaction\(\) took longer.*it goes on'):
        rig.driver.commit_transaction()
    with pytest.raises(IllegalStateError, match=r'commit_transaction\(\) was called before'):
        rig.driver.abort_transaction()
    rig.pool.script.clear()
    rig.driver.commit_transaction()
    rig.driver.begin_transaction()
    assert {request.committed for request, _ in rig.pool.asked} == {True}


def test_verbs_are_bounded(rig):
    rig.pool.unreachable = [NoBrokersAvailable('nobody')] * 1000
    start = rig.loop.now
    with pytest.raises(KafkaTimeoutError, match='10 s'):
        rig.driver.init_transactions()
    assert rig.loop.now - start == pytest.approx(10.0)


def test_fenced_producer_hears_it_from_every_verb(rig):
    rig.begun().pool.script = [90]
    for verb in ('commit_transaction', 'abort_transaction', 'begin_transaction'):
        with pytest.raises(errors.ProducerFencedError):
            getattr(rig.driver, verb)()
    with pytest.raises(errors.ProducerFencedError):
        rig.driver.init_transactions()


def test_broker_without_transactions_is_named(rig):
    rig.pool.versions = BrokerVersions({ApiKey.PRODUCE: (0, 2)})
    with pytest.raises(UnsupportedVersionError, match='InitProducerId.*the broker has none'):
        rig.driver.init_transactions()


@pytest.mark.parametrize(('kind', 'state'), [
    (errors.TransactionalIdAuthorizationFailedError, TxnState.FATAL_ERROR),
    (errors.SaslAuthenticationFailedError, TxnState.FATAL_ERROR),
    (errors.InvalidRequestError, TxnState.ABORTABLE_ERROR),
])  # fmt: skip
def test_refusal_to_name_a_coordinator_surfaces(rig, kind, state):
    rig.pool.unreachable = [kind('no')]
    with pytest.raises(kind):
        rig.driver.init_transactions()
    assert rig.state.state is state


def test_abort_does_not_give_up_where_nobody_names_a_coordinator(rig):
    rig.begun().pool.unreachable = [errors.GroupAuthorizationFailedError('no')] * 3
    start = rig.loop.now
    rig.driver.abort_transaction()
    assert rig.loop.now - start > 0.3


def test_offsets_go_to_the_coordinator_of_the_group(rig):
    rig.begun()
    offsets = {TopicPartition('in', 0): OffsetAndMetadata(5, '')}
    rig.driver.send_offsets_to_transaction(offsets, 'readers')
    assert rig.asked == ['TxnOffsetCommitRequest']
    assert rig.pool.looked_up[-1] == (GROUP, 'readers')
    rig.pool.script = [7]
    rig.driver.send_offsets_to_transaction({TopicPartition('in', 1): (5, '')}, 'readers')
    assert rig.pool.forgotten == [(GROUP, 'readers')]


def test_group_metadata_is_told(rig):
    rig.begun()
    metadata = type('M', (), {'group_id': 'g', 'generation_id': 3, 'member_id': 'm'})()
    rig.driver.send_offsets_to_transaction({('in', 0): OffsetAndMetadata(5, '')}, metadata)
    request, _ = rig.pool.asked[0]
    assert (request.group_id, request.generation_id_or_member_epoch) == ('g', 3)


@pytest.mark.parametrize(('offsets', 'group'), [
    ({'in': OffsetAndMetadata(5, '')}, 'g'),
    ({TopicPartition('in', 0): 5}, 'g'),
    ({TopicPartition('in', 0): OffsetAndMetadata(5, '')}, 7),
    ({}, None),
    (5, 'g'),
    (None, 'g'),
    ([TopicPartition('in', 0)], 'g'),
    ({TopicPartition('in', '0'): OffsetAndMetadata(5, '')}, 'g'),
    ({TopicPartition('in', 0): OffsetAndMetadata('5', '')}, 'g'),
    ({TopicPartition('in', 0): OffsetAndMetadata(True, '')}, 'g'),
    ({TopicPartition('in', 0): OffsetAndMetadata(5, b'')}, 'g'),
    ({TopicPartition('in', 0): OffsetAndMetadata(5, '', 'new')}, 'g'),
])  # fmt: skip
def test_offsets_of_a_wrong_type_are_refused_before_anything_is_sent(rig, offsets, group):
    rig.begun()
    with pytest.raises(TypeError):
        rig.driver.send_offsets_to_transaction(offsets, group)
    assert rig.asked == []


@pytest.mark.parametrize(('offsets', 'group', 'text'), [
    ({TopicPartition('in', 0): OffsetAndMetadata(-1, '')}, 'g', 'the offset must be at'),
    ({TopicPartition('in', 0): OffsetAndMetadata(2**63, '')}, 'g', 'below 2..63, not'),
    ({TopicPartition('in', 0): OffsetAndMetadata(5, '', 2**31)}, 'g', 'the leader epoch must be'),
    ({TopicPartition('in', -1): OffsetAndMetadata(5, '')}, 'g', 'partition -1 of topic in'),
    ({TopicPartition('in', 0): OffsetAndMetadata(5, '')}, '', 'group must be a group id'),
])  # fmt: skip
def test_offsets_that_no_request_can_carry_do_not_end_the_producer(rig, offsets, group, text):
    rig.begun()
    with pytest.raises(ValueError, match=text):
        rig.driver.send_offsets_to_transaction(offsets, group)
    assert rig.asked == []
    rig.driver.commit_transaction()


def test_nothing_lingers_while_a_transaction_ends(rig):
    rig.begun().pool.script = [51] * 30
    with pytest.raises(KafkaTimeoutError):
        rig.driver.commit_transaction()
    assert rig.accumulator.is_urgent
    rig.pool.script.clear()
    rig.driver.commit_transaction()
    rig.loop.settle()
    assert not rig.accumulator.is_urgent


def test_mistake_of_the_state_ends_the_producer_and_no_one_waits(rig, caplog):
    rig.driver.init_transactions()
    rig.driver.begin_transaction()

    def broken(*_):
        raise ZeroDivisionError('mistake')

    rig.state.needs = broken
    with pytest.raises(KafkaError, match='mistake'):
        rig.driver.commit_transaction()
    assert rig.state.is_fatal
    assert 'end by a mistake' in caplog.text


def test_idempotent_producer_asks_anybody():
    rig = Rig(None)
    assert not rig.state.may_send(Batch())
    rig.loop.settle()
    assert rig.asked == ['InitProducerIdRequest']
    assert rig.pool.looked_up == []
    assert rig.state.may_send(Batch())


def test_closed_driver_asks_no_more(rig):
    rig.begun().driver.close()
    rig.loop.settle()
    rig.driver.wake()
    rig.loop.settle()
    assert rig.asked == []
