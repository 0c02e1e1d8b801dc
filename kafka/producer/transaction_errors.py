"""Table of the reactions of a producer to the error codes of transaction requests.

Follows KIP-98, KIP-360, KIP-447, KIP-588 and KIP-890. The error codes of Produce are in
:mod:`kafka.producer.produce_errors`. Pure.
"""

from __future__ import annotations

import enum
from typing import Dict, Mapping

from kafka import errors
from kafka.errors import KafkaError


class CallKind(enum.Enum):
    """The requests; the values are their names in messages."""

    INIT_PRODUCER_ID = 'InitProducerId'
    ADD_PARTITIONS = 'AddPartitionsToTxn'
    ADD_OFFSETS = 'AddOffsetsToTxn'
    COMMIT_OFFSETS = 'TxnOffsetCommit'
    END = 'EndTxn'


class CallOutcome(enum.Enum):
    """What a producer does after a response."""

    DONE = 'done'
    RETRY = 'retry'  # the same request, after a back-off
    REFIND = 'refind'  # look up the coordinator, then retry
    ABORTABLE = 'abortable'
    ABORTABLE_OR_FATAL = 'abortable if a new epoch can be had, otherwise fatal'
    FATAL = 'fatal'


_DONE, _RETRY, _REFIND = CallOutcome.DONE, CallOutcome.RETRY, CallOutcome.REFIND
_ABORTABLE, _EITHER, _FATAL = (
    CallOutcome.ABORTABLE,
    CallOutcome.ABORTABLE_OR_FATAL,
    CallOutcome.FATAL,
)

#: Codes that mean the same for all requests.
_ALWAYS: Dict[int, CallOutcome] = {
    0: _DONE,
    # COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
    15: _REFIND,
    16: _REFIND,
    # INVALID_PRODUCER_EPOCH of old versions, PRODUCER_FENCED: another producer uses the id.
    47: _FATAL,
    90: _FATAL,
    # INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING
    48: _FATAL,
    49: _FATAL,
}

#: Appended to UNSUPPORTED_VERSION if version 2 was disabled. A producer is not notified of that,
#: and brokers of 4.4.0 refuse the transactional id from then on (CONCURRENT_TRANSACTIONS).
SET_BACK = (
    'The feature transaction.version of the brokers was set back; make a new producer, best with'
    ' another transactional_id: this one may be refused for a while'
)

#: By request and code; OTHER stands for every other code whose error class is not retriable.
OTHER = -1000
TABLE: Mapping[CallKind, Mapping[int, CallOutcome]] = {
    CallKind.INIT_PRODUCER_ID: {
        # TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED: ACLs may be added.
        53: _ABORTABLE,
        31: _ABORTABLE,
        120: _ABORTABLE,
        OTHER: _FATAL,
    },
    CallKind.ADD_PARTITIONS: {
        53: _FATAL,
        # UNKNOWN_PRODUCER_ID
        59: _EITHER,
        # TOPIC_AUTHORIZATION_FAILED; OPERATION_NOT_ATTEMPTED: another partition has failed.
        29: _ABORTABLE,
        55: _ABORTABLE,
        OTHER: _ABORTABLE,
    },
    CallKind.ADD_OFFSETS: {
        53: _FATAL,
        59: _EITHER,
        120: _ABORTABLE,
        # GROUP_AUTHORIZATION_FAILED
        30: _ABORTABLE,
        OTHER: _FATAL,
    },
    CallKind.COMMIT_OFFSETS: {
        # REQUEST_TIMED_OUT: this coordinator may be isolated from the others.
        7: _REFIND,
        53: _FATAL,
        120: _ABORTABLE,
        30: _ABORTABLE,
        # ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID: the group has rebalanced.
        22: _ABORTABLE,
        25: _ABORTABLE,
        82: _ABORTABLE,
        # REBALANCE_IN_PROGRESS: it is rebalancing. Brokers of 2.8 to 4.4 answer this to plain
        # commits (OffsetCommit) only.
        27: _ABORTABLE,
        OTHER: _FATAL,
    },
    CallKind.END: {
        53: _FATAL,
        59: _EITHER,
        # For an abort it is fatal; see outcome_of_end().
        120: _ABORTABLE,
        OTHER: _FATAL,
    },
}


def outcome_of(call: CallKind, code: int) -> CallOutcome:
    """Return the reaction to the error code of a response."""
    found = _ALWAYS.get(code) or TABLE[call].get(code)
    if found is not None:
        return found
    return _RETRY if errors.error_for_code(code).retriable else TABLE[call][OTHER]


def outcome_of_end(code: int, commits: bool) -> CallOutcome:
    """Return the reaction to the error code of EndTxn: a failed abort is fatal."""
    found = outcome_of(CallKind.END, code)
    return _FATAL if found is _ABORTABLE and not commits else found


def error_of_call(call: CallKind, code: int, about: str) -> KafkaError:
    """Return the exception for an error code, which names the request and what it concerned.

    In old versions of the requests brokers answer INVALID_PRODUCER_EPOCH to a fenced producer; here
    it is always a ProducerFencedError (KIP-588).
    """
    is_fenced = code == errors.InvalidProducerEpochError.errno
    kind = errors.ProducerFencedError if is_fenced else errors.for_code(code)
    return kind('%s for %s: %s' % (call.value, about, kind.description))
