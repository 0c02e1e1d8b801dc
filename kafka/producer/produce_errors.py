"""Table of the reactions of a producer to the error codes of Produce responses.

A row decides what happens to a batch, and with which error its records fail. What depends on the
order of batches is decided elsewhere: rows with ``SEQUENCE`` by
:mod:`kafka.producer.sequence_numbers`, the effect of an error on a transaction by
:mod:`kafka.producer.transaction_state`. Follows the error codes of the protocol guide, KIP-98,
KIP-360, KIP-467 and KIP-890.

A producer is one of three kinds. A *plain* one has no producer id, so that a retry may store a
record twice. An *idempotent* one has a producer id, and a *transactional* one a transactional id as
well. Pure.
"""

from __future__ import annotations

import enum
from typing import Dict, Mapping, NamedTuple, Optional

from kafka import errors
from kafka.errors import KafkaError
from kafka.protocol.produce import PartitionProduceResponse

MOST_SHOWN = 300  # characters of an error message of a broker


class ProducerKind(enum.Enum):
    """How a producer guards against duplicates."""

    PLAIN = 'plain'
    IDEMPOTENT = 'idempotent'
    TRANSACTIONAL = 'transactional'


class ProduceReaction(enum.Enum):
    """The entries of the table."""

    DONE = 'done'  # stored
    RETRY = 'retry'  # the same request to the same node, after back-off
    REFRESH = 'refresh'  # refresh metadata, then send to the new leader
    SPLIT = 'split'  # into smaller batches; fail a batch of one record
    FAIL = 'fail'  # fail the batch and go on
    ABORTABLE = 'abortable'  # fail, and the open transaction can only be aborted
    FATAL = 'fatal'  # fail, and the producer can only be closed
    SEQUENCE = 'sequence'  # depends on the other batches of that partition


class ProduceAction(enum.Enum):
    """What the sender does with a batch."""

    DONE = 'done'  # complete its futures
    RETRY = 'retry'  # queue it again, unless its time or its retries are used up
    SPLIT = 'split'  # replace it by smaller ones
    FAIL = 'fail'  # fail its futures
    IGNORE = 'ignore'  # its futures were failed before; nothing is left to do


class ProduceVerdict(NamedTuple):
    """What the sender does with one batch of a Produce response.

    error: why it failed or is retried, None if it is done; refresh_metadata: whether to look up the
    leader again; base_offset: -1 if the response has none; record_errors: by index, for records
    with an error of their own (the others get ``error``).
    """

    action: ProduceAction
    error: Optional[KafkaError] = None
    refresh_metadata: bool = False
    base_offset: int = -1
    record_errors: Mapping[int, KafkaError] = {}


class Row(NamedTuple):
    """The reaction of each kind of producer to an error code."""

    plain: ProduceReaction
    idempotent: ProduceReaction
    transactional: ProduceReaction


_DONE = Row(ProduceReaction.DONE, ProduceReaction.DONE, ProduceReaction.DONE)
_RETRY = Row(ProduceReaction.RETRY, ProduceReaction.RETRY, ProduceReaction.RETRY)
_REFRESH = Row(ProduceReaction.REFRESH, ProduceReaction.REFRESH, ProduceReaction.REFRESH)
_SPLIT = Row(ProduceReaction.SPLIT, ProduceReaction.SPLIT, ProduceReaction.SPLIT)
_FAIL = Row(ProduceReaction.FAIL, ProduceReaction.FAIL, ProduceReaction.ABORTABLE)
_FATAL = Row(ProduceReaction.FAIL, ProduceReaction.FATAL, ProduceReaction.FATAL)
_SEQUENCE = Row(ProduceReaction.FAIL, ProduceReaction.SEQUENCE, ProduceReaction.SEQUENCE)

#: The table. For other codes the error class decides: refresh_metadata, retriable, else _FAIL.
ROWS: Dict[int, Row] = {
    0: _DONE,
    # CORRUPT_MESSAGE: damaged in transfer, so a retry may succeed.
    2: _RETRY,
    # UNKNOWN_TOPIC_OR_PARTITION: this broker does not host it; normal right after creation.
    3: _REFRESH,
    # LEADER_NOT_AVAILABLE
    5: _REFRESH,
    # NOT_LEADER_OR_FOLLOWER: from v10 on the response names the leader.
    6: _REFRESH,
    # REQUEST_TIMED_OUT: the leader has written it, the followers have not replicated it in time.
    7: _RETRY,
    # MESSAGE_TOO_LARGE
    10: _SPLIT,
    # INVALID_TOPIC_EXCEPTION, RECORD_LIST_TOO_LARGE
    17: _FAIL,
    18: _FAIL,
    # NOT_ENOUGH_REPLICAS: nothing was written. In a V1 transaction brokers also answer this for
    # transient errors of the coordinator.
    19: _RETRY,
    # NOT_ENOUGH_REPLICAS_AFTER_APPEND: the leader has written it.
    20: _RETRY,
    # INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED
    21: _FAIL,
    29: _FAIL,
    # CLUSTER_AUTHORIZATION_FAILED: idempotent writes are not allowed.
    31: _FATAL,
    # INVALID_TIMESTAMP: v8 and later name the records.
    32: _FAIL,
    # UNSUPPORTED_VERSION: the broker is too old for producer ids.
    35: _FATAL,
    # UNSUPPORTED_FOR_MESSAGE_FORMAT
    43: _FAIL,
    # OUT_OF_ORDER_SEQUENCE_NUMBER
    45: _SEQUENCE,
    # DUPLICATE_SEQUENCE_NUMBER: it is stored, at an unknown offset.
    46: _DONE,
    # INVALID_PRODUCER_EPOCH: leaders also answer this to fenced producers; the coordinator decides.
    47: _SEQUENCE,
    # INVALID_TXN_STATE: the partition is not in the transaction (before v11).
    48: _FAIL,
    # INVALID_PRODUCER_ID_MAPPING
    49: _FATAL,
    # CONCURRENT_TRANSACTIONS: the previous transaction is still being completed.
    51: _RETRY,
    # TRANSACTIONAL_ID_AUTHORIZATION_FAILED: also a transactional batch without transactional id.
    53: _FATAL,
    # KAFKA_STORAGE_ERROR
    56: _REFRESH,
    # UNKNOWN_PRODUCER_ID: the broker has forgotten the producer.
    59: _SEQUENCE,
    # UNSUPPORTED_COMPRESSION_TYPE: this version cannot carry the codec.
    76: _FAIL,
    # INVALID_RECORD: v8 and later name the records.
    87: _FAIL,
    # PRODUCER_FENCED: a newer producer has the transactional id.
    90: _FATAL,
    # UNKNOWN_TOPIC_ID: the topic may have been created again, under a new id.
    100: _REFRESH,
    # TRANSACTION_ABORTABLE (KIP-890)
    120: _FAIL,
}

#: REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND: the batch is in the leader's log.
STORED_ALL_THE_SAME = frozenset([7, 20])


def row_of(code: int) -> Row:
    """Return the row of an error code."""
    row = ROWS.get(code)
    if row is not None:
        return row
    error = errors.error_for_code(code)
    if error.refresh_metadata:
        return _REFRESH
    return _RETRY if error.retriable else _FAIL


def reaction_to(kind: ProducerKind, code: int) -> ProduceReaction:
    """Return the reaction of a kind of producer to an error code."""
    row = row_of(code)
    if kind is ProducerKind.PLAIN:
        return row.plain
    return row.idempotent if kind is ProducerKind.IDEMPOTENT else row.transactional


def verdict_of(
    reaction: ProduceReaction, response: PartitionProduceResponse, where: str, record_count: int
) -> ProduceVerdict:
    """Return the verdict of a reaction that does not depend on other batches.

    Arguments: where: topic and partition, for error texts; record_count: of the batch.
    Raises ValueError for SEQUENCE, which depends on other batches.
    """
    if reaction is ProduceReaction.DONE:
        return ProduceVerdict(ProduceAction.DONE, base_offset=response.base_offset)
    if reaction is ProduceReaction.SEQUENCE:
        raise ValueError('code %d needs to be judged by sequences' % response.error_code)
    if reaction in (ProduceReaction.RETRY, ProduceReaction.REFRESH):
        error = error_of(response, where)
        return ProduceVerdict(ProduceAction.RETRY, error, reaction is ProduceReaction.REFRESH)
    if reaction is ProduceReaction.SPLIT and record_count > 1:
        return ProduceVerdict(ProduceAction.SPLIT, error_of(response, where))
    return failure(response, where)


def plain_verdict(
    response: PartitionProduceResponse, where: str, record_count: int
) -> ProduceVerdict:
    """Return the verdict for a producer without producer id; arguments as verdict_of()."""
    reaction = reaction_to(ProducerKind.PLAIN, response.error_code)
    return verdict_of(reaction, response, where, record_count)


def lost_verdict(error: KafkaError) -> ProduceVerdict:
    """Return the verdict on a batch whose request got no response: it may be stored or not."""
    return ProduceVerdict(ProduceAction.RETRY, error, refresh_metadata=True)


def failure(response: PartitionProduceResponse, where: str) -> ProduceVerdict:
    """Return the verdict that fails a batch; each invalid record gets its own error (KIP-467)."""
    own = {
        each.batch_index: errors.for_code(response.error_code)(
            '%s: %s' % (where, _shown(each.batch_index_error_message or response.error_message))
        )
        for each in response.record_errors
    }
    if not own:
        return ProduceVerdict(ProduceAction.FAIL, error_of(response, where))
    mates = KafkaError(
        '%s: not written, because %d other record%s of its batch broke a rule of the topic'
        % (where, len(own), '' if len(own) == 1 else 's')
    )
    return ProduceVerdict(ProduceAction.FAIL, mates, record_errors=own)


def error_of(response: PartitionProduceResponse, where: str) -> KafkaError:
    """Return the exception for an error response, with topic and partition in its text."""
    kind = errors.for_code(response.error_code)
    text = response.error_message or kind.description or ''
    return kind('%s: %s' % (where, _shown(text)))


def _shown(text: Optional[str]) -> str:
    return (text or 'the broker gives no reason')[:MOST_SHOWN]
