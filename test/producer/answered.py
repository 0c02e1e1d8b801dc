"""A transactional producer's state with a coordinator whose answers a test gives."""

from __future__ import annotations

import pytest

from kafka.producer.transaction_calls import GroupMember
from kafka.producer.transaction_errors import CallKind
from kafka.producer.transaction_state import TransactionState
from kafka.protocol.transaction import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.producer.numbered import PLACE, Batch, answer

OTHER = TopicPartition('t', 1)
OFFSETS = {TopicPartition('in', 0): OffsetAndMetadata(5, 'note', 3)}
MEMBER = GroupMember('g', 7, 'm', 'i')


class Producer(TransactionState):
    """A state with a coordinator whose answers a test gives."""

    def __init__(self, transactional_id='pay', **brokers):
        super().__init__(transactional_id)
        self.set_brokers(**{'v2': True, **brokers})

    def ask(self, is_flushed=True):
        """Return the call that is needed now."""
        return self.needs(is_flushed)

    def respond(self, code=0, **fields):
        """Answer the call that is needed; return the step."""
        ask = self.ask()
        return self.on_answer(ask, RESPONSES[ask.kind](ask, code, **fields))

    def lose(self):
        """Let the call that is needed get no answer."""
        return self.on_call_lost(self.ask())

    def initialized(self, producer_id=7, epoch=0):
        """Get a producer id."""
        operation = self.initialize()
        self.respond(producer_id=producer_id, producer_epoch=epoch)
        operation.tell()
        return self

    def begun(self):
        """Begin a transaction, and send a batch in it."""
        self.initialized()
        self.begin()
        self.store()
        return self

    def store(self, place=PLACE, code=0, count=1):
        """Send a batch, have its partition added where that is needed, and answer it."""
        batch = Batch(count, place)
        if not self.may_send(batch):
            assert self.respond().backoff_ms == 0
        self.stamp(batch)
        return batch, self.on_produced(batch, answer(code, 0))


def _init(ask, code, producer_id=7, producer_epoch=1):
    given = (producer_id, producer_epoch) if not code else (-1, -1)
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=code, producer_id=given[0], producer_epoch=given[1]
    )


def _added(ask, code, codes=None):
    topics = ask.request.v3_and_below_topics
    return AddPartitionsToTxnResponse(
        throttle_time_ms=0,
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=(codes or {}).get(index, code)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _offsets(ask, code, codes=None):
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=(codes or {}).get(each.partition_index, code),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in ask.request.topics
        ],
    )


RESPONSES = {
    CallKind.INIT_PRODUCER_ID: _init,
    CallKind.ADD_PARTITIONS: _added,
    CallKind.ADD_OFFSETS: lambda ask, code: AddOffsetsToTxnResponse(
        throttle_time_ms=0, error_code=code
    ),
    CallKind.COMMIT_OFFSETS: _offsets,
    CallKind.END: lambda ask, code, producer_id=-1, producer_epoch=-1: EndTxnResponse(
        throttle_time_ms=0,
        error_code=code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    ),
}


@pytest.fixture
def v2():
    """Return a producer of transactions of version 2."""
    return Producer()


@pytest.fixture
def v1():
    """Return a producer of transactions of version 1, on brokers that can raise epochs."""
    return Producer(v2=False)


@pytest.fixture
def old():
    """Return a producer on brokers before 2.5."""
    return Producer(v2=False, raises_epoch=False, may_fence=False)
