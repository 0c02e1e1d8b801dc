"""What becomes part of a transaction before its end: partitions, and offsets of groups."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.errors import IllegalStateError
from kafka.producer.transaction_errors import CallKind
from kafka.producer.transaction_state import FIRST_BACKOFF_MS
from kafka.producer.transaction_table import TxnState
from kafka.protocol.transaction import AddPartitionsToTxnResponse
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.producer.answered import MEMBER, OFFSETS, OTHER, old, v1, v2
from test.producer.numbered import PLACE, Batch

__all__ = ['old', 'v1', 'v2']  # fixtures


# ---------------------------------------------------------------- adding partitions


@pytest.mark.parametrize(('codes', 'state'), [
    ({0: 29}, TxnState.ABORTABLE_ERROR),
    ({0: 29, 1: 55}, TxnState.ABORTABLE_ERROR),
    ({0: 55, 1: 55}, TxnState.ABORTABLE_ERROR),
    ({0: 3, 1: 55}, TxnState.IN_TRANSACTION),
    ({0: 3, 1: 3}, TxnState.IN_TRANSACTION),
    ({0: 3, 1: 29}, TxnState.ABORTABLE_ERROR),
    ({0: 16, 1: 16}, TxnState.IN_TRANSACTION),
    ({0: 90, 1: 90}, TxnState.FATAL_ERROR),
    ({0: 49, 1: 49}, TxnState.FATAL_ERROR),
    ({0: 59, 1: 59}, TxnState.ABORTABLE_ERROR),
])  # fmt: skip
def test_answers_to_adding_partitions(v1, codes, state):
    v1.initialized()
    v1.begin()
    v1.note_partition(PLACE)
    v1.note_partition(OTHER)
    v1.respond(codes=codes)
    assert v1.state is state
    assert not v1.may_send(Batch())


def test_forgotten_producer_is_fatal_without_a_new_epoch(old):
    old.initialized()
    old.begin()
    old.note_partition(PLACE)
    old.respond(59)
    assert old.is_fatal


def test_first_partition_waits_shortly_for_the_last_transaction(v1):
    v1.initialized()
    v1.begin()
    v1.note_partition(PLACE)
    assert v1.respond(51).backoff_ms == FIRST_BACKOFF_MS
    v1.respond()
    v1.note_partition(OTHER)
    assert v1.respond(51).backoff_ms is None


def test_partition_missing_in_the_answer_is_an_error(v1):
    v1.initialized()
    v1.begin()
    v1.note_partition(PLACE)
    empty = AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=[])
    v1.on_answer(v1.ask(), empty)
    assert v1.state is TxnState.ABORTABLE_ERROR
    assert 'says nothing about t-0' in str(v1.error)


# ---------------------------------------------------------------- offsets


def test_v1_adds_the_group_once_and_commits_its_offsets(v1):
    v1.initialized()
    v1.begin()
    operation = v1.send_offsets(OFFSETS, MEMBER)
    assert v1.send_offsets(dict(OFFSETS), MEMBER) is operation  # a repeated call
    assert v1.ask().kind is CallKind.ADD_OFFSETS
    v1.respond()
    ask = v1.ask()
    assert (ask.kind, ask.highest, ask.key, ask.is_of_group) == (
        CallKind.COMMIT_OFFSETS, 4, 'g', True,
    )  # fmt: skip
    request = ask.request
    partition = request.topics[0].partitions[0]
    assert (partition.committed_offset, partition.committed_metadata) == (5, 'note')
    assert partition.committed_leader_epoch == 3
    assert (request.generation_id_or_member_epoch, request.member_id) == (7, 'm')
    v1.respond()
    operation.tell()
    v1.send_offsets({TopicPartition('in', 1): OffsetAndMetadata(1, '')}, MEMBER)
    assert v1.ask().kind is CallKind.COMMIT_OFFSETS


def test_v2_commits_offsets_without_adding_the_group(v2):
    v2.initialized()
    v2.begin()
    v2.send_offsets(OFFSETS, MEMBER)
    assert (v2.ask().kind, v2.ask().lowest) == (CallKind.COMMIT_OFFSETS, 5)
    v2.respond()
    v2.commit()
    assert v2.ask().kind is CallKind.END  # it is not empty


def test_old_brokers_are_not_told_the_member(old):
    old.initialized()
    old.begin()
    old.send_offsets(OFFSETS, MEMBER)
    old.respond()
    request = old.ask().request
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, '')


def test_only_offsets_that_failed_for_a_while_are_sent_again(v2):
    v2.initialized()
    v2.begin()
    offsets = {TopicPartition('in', i): OffsetAndMetadata(i, '') for i in range(3)}
    operation = v2.send_offsets(offsets, MEMBER)
    assert v2.respond(codes={1: 3}).backoff_ms is None
    assert [p.partition_index for p in v2.ask().request.topics[0].partitions] == [1]
    assert v2.respond(7).refinds
    v2.respond()
    operation.tell()


@pytest.mark.parametrize('code', [22, 25, 82, 30, 120])
def test_group_that_moved_on_costs_the_transaction(v2, code):
    v2.initialized()
    v2.begin()
    operation = v2.send_offsets(OFFSETS, MEMBER)
    v2.respond(code)
    with pytest.raises(errors.kafka_errors[code]):
        operation.tell()
    assert v2.state is TxnState.ABORTABLE_ERROR


def test_no_offsets_ask_nobody(v2):
    v2.initialized()
    v2.begin()
    v2.send_offsets({}, MEMBER).tell()
    assert v2.ask() is None


def test_offsets_belong_into_a_transaction(v2):
    v2.initialized()
    with pytest.raises(IllegalStateError, match='open transaction'):
        v2.send_offsets(OFFSETS, MEMBER)


def test_what_was_to_be_added_is_given_up_when_the_transaction_is_aborted(v1):
    v1.initialized()
    v1.begin()
    v1.note_partition(PLACE)
    operation = v1.send_offsets(OFFSETS, MEMBER)
    v1.abort()
    assert operation.is_done
    with pytest.raises(errors.TransactionAbortedError, match='aborted'):
        operation.tell()
