"""State table of a transactional producer: states, events and transitions.

Follows KIP-98, KIP-360, KIP-890 and, for prepared transactions, KIP-939. An idempotent producer
without transactional id uses the first three states and the last. Pure.
"""

from __future__ import annotations

import enum
from typing import Dict, Mapping

from kafka.errors import IllegalStateError


class TxnState(enum.Enum):
    """The states of a transactional producer."""

    UNINITIALIZED = 'uninitialized'  # without a producer id
    INITIALIZING = 'initializing'  # InitProducerId is under way, for a producer id or a new epoch
    READY = 'ready'  # between transactions
    IN_TRANSACTION = 'in transaction'
    PREPARED = 'prepared'  # all records are stored; ended later, possibly by another process
    COMMITTING = 'committing'  # records are flushed, then EndTxn is sent
    ABORTING = 'aborting'
    ABORTABLE_ERROR = 'abortable error'  # the transaction can only be aborted
    FATAL_ERROR = 'fatal error'  # the producer can only be closed


class TxnEvent(enum.Enum):
    """The events that change the state."""

    INITIALIZE = 'initialize'  # a producer id, or a new epoch, is required
    INITIALIZED = 'initialized'  # the coordinator has assigned it
    BEGIN = 'begin'
    PREPARE = 'prepare'
    COMMIT = 'commit'
    ABORT = 'abort'
    ENDED = 'ended'  # the transaction is over, and the next may begin
    RENEW = 'renew'  # it is over, and the next needs a new epoch from the coordinator
    ABORTABLE = 'abortable'  # an error after which the transaction can only be aborted
    START_OVER = 'start over'  # the affected batches have failed with the error
    FATAL = 'fatal'  # an error after which the producer can only be closed


_S, _E = TxnState, TxnEvent

#: The transitions. Any other event is an error of the caller, or of this package.
TRANSITIONS: Mapping[TxnState, Mapping[TxnEvent, TxnState]] = {
    _S.UNINITIALIZED: {
        _E.INITIALIZE: _S.INITIALIZING,
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.INITIALIZING: {
        _E.INITIALIZED: _S.READY,
        _E.ABORTABLE: _S.ABORTABLE_ERROR,
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.READY: {
        _E.BEGIN: _S.IN_TRANSACTION,
        _E.INITIALIZE: _S.INITIALIZING,  # the epochs of an idempotent producer are used up
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.IN_TRANSACTION: {
        _E.PREPARE: _S.PREPARED,
        _E.COMMIT: _S.COMMITTING,
        _E.ABORT: _S.ABORTING,
        _E.ABORTABLE: _S.ABORTABLE_ERROR,
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.PREPARED: {
        _E.COMMIT: _S.COMMITTING,
        _E.ABORT: _S.ABORTING,
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.COMMITTING: {
        _E.ENDED: _S.READY,
        _E.RENEW: _S.INITIALIZING,
        _E.ABORTABLE: _S.ABORTABLE_ERROR,
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTING: {
        _E.ENDED: _S.READY,
        _E.RENEW: _S.INITIALIZING,
        _E.ABORTABLE: _S.ABORTING,  # the transaction is being aborted already
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.ABORTABLE_ERROR: {
        _E.INITIALIZE: _S.INITIALIZING,  # if init_transactions() has failed
        _E.ABORT: _S.ABORTING,
        _E.ABORTABLE: _S.ABORTABLE_ERROR,
        _E.START_OVER: _S.UNINITIALIZED,  # without transactional id there is nothing to abort
        _E.FATAL: _S.FATAL_ERROR,
    },
    _S.FATAL_ERROR: {
        _E.ABORTABLE: _S.FATAL_ERROR,
        _E.FATAL: _S.FATAL_ERROR,
    },
}

#: The states in which batches may be sent or in flight.
SENDING = frozenset([_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR])

_ADVICE: Dict[TxnState, str] = {
    _S.UNINITIALIZED: 'call init_transactions() first',
    _S.INITIALIZING: 'repeat init_transactions(), or what has to be finished, until it returns',
    _S.READY: 'call begin_transaction() first',
    _S.IN_TRANSACTION: 'commit or abort the open transaction first',
    _S.PREPARED: 'commit or abort the prepared transaction first',
    _S.COMMITTING: 'repeat commit_transaction() until it returns',
    _S.ABORTING: 'repeat abort_transaction() until it returns',
    _S.ABORTABLE_ERROR: 'call abort_transaction()',
    _S.FATAL_ERROR: 'close the producer',
}


def following(state: TxnState, event: TxnEvent) -> TxnState:
    """Return the state after an event. Raises IllegalStateError if it is not allowed there."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise IllegalStateError(
            'a producer that is %r cannot %s: %s' % (state.value, event.value, _ADVICE[state])
        )
    return found
