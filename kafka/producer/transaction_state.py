"""TransactionState: the state machine of an idempotent or transactional producer.

Decides which batches may be sent and which request is next, with the states of
:mod:`kafka.producer.transaction_table`: transactions of KIP-98, KIP-360 and both versions of
KIP-890. Version 1 adds partitions by a request before they are written to; in version 2 a write
adds the partition, and each end of a transaction raises the epoch. Sequence numbers are assigned by
:mod:`kafka.producer.sequence_numbers`, requests built by :mod:`kafka.producer.transaction_calls`,
error codes classified by :mod:`kafka.producer.transaction_errors`.

Its users call it in turns of the loop. The *caller* begins and ends transactions and waits for an
``Operation``. The *sender* calls ``may_send(batch)`` and ``stamp(batch)``, and reports the outcome
by ``on_produced()``, ``on_lost()``, ``on_split()`` or ``give_up()``. The *driver* sends the request
that ``needs()`` returns and reports the response. There is no lock: only ``check_send()`` and
``refuses_send`` may be used in other threads.

A request without a response may have been executed, so it is repeated until it is answered: a
commit never becomes an abort, and no transaction begins before the outcome of the previous one is
known. A lost request of version 1 may still arrive in the next transaction, which therefore gets a
new epoch first if brokers support that (KIP-360). Pure.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, Mapping, NamedTuple, Optional, Sequence, Set

from kafka import errors
from kafka.errors import BrokerResponseError, IllegalStateError, KafkaError, ProtocolError
from kafka.producer import transaction_calls as calls
from kafka.producer.produce_errors import (
    STORED_ALL_THE_SAME,
    ProduceAction,
    ProduceReaction,
    ProducerKind,
    ProduceVerdict,
    failure,
    lost_verdict,
    reaction_to,
    verdict_of,
)
from kafka.producer.sequence_numbers import NOBODY, Batch, Identity, Sequences, place_of, where
from kafka.producer.transaction_calls import Ask, Caller, GroupMember, Offsets, Versions
from kafka.producer.transaction_errors import (
    SET_BACK,
    CallKind,
    CallOutcome,
    error_of_call,
    outcome_of,
    outcome_of_end,
)
from kafka.producer.transaction_operations import OffsetsOperation, Operation, PreparedTxnState
from kafka.producer.transaction_table import SENDING, TxnEvent, TxnState, following
from kafka.protocol.produce import PartitionProduceResponse
from kafka.structs import TopicPartition

CONCURRENT_TRANSACTIONS = errors.ConcurrentTransactionsError.errno
INVALID_PRODUCER_EPOCH = errors.InvalidProducerEpochError.errno
INVALID_TXN_STATE = errors.InvalidTxnStateError.errno
OPERATION_NOT_ATTEMPTED = errors.OperationNotAttemptedError.errno
PRODUCER_FENCED = errors.ProducerFencedError.errno
#: Codes that may also mean that the coordinator has timed the transaction out; see _told().
_MAY_BE_TIMED_OUT = (INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, PRODUCER_FENCED)
#: The coordinator may still be finishing the last transaction at the first AddPartitionsToTxn.
FIRST_BACKOFF_MS = 20
#: The public call of each event, for error texts.
_VERBS: Mapping[TxnEvent, str] = {
    TxnEvent.INITIALIZE: 'init_transactions()',
    TxnEvent.BEGIN: 'begin_transaction()',
    TxnEvent.COMMIT: 'commit_transaction()',
    TxnEvent.ABORT: 'abort_transaction()',
}


class DriverStep(NamedTuple):
    """What the driver does after a response.

    backoff_ms: the pause before the next request; 0: none, None: the usual back-off after an error;
    refinds: whether to look up the coordinator again first.
    """

    backoff_ms: Optional[int] = 0
    refinds: bool = False


_GO_ON = DriverStep()
_NOTHING = ProduceVerdict(ProduceAction.IGNORE)


class TransactionState:
    """The transactions and sequence numbers of one producer.

    Arguments: transactional_id: None for a producer that is only idempotent; timeout_ms: how long a
        transaction may be open before the coordinator aborts it.

    Attributes: kind; state; error: the first error of the open transaction, or the fatal one;
    sequences; is_v2: whether the open or next transaction has version 2 (KIP-890); refuses_send:
    whether check_send() raises; on_need: called when needs() may return another request; now:
    returns monotonic seconds.
    """

    def __init__(self, transactional_id: Optional[str] = None, timeout_ms: int = 60000) -> None:
        self.kind = (
            ProducerKind.IDEMPOTENT if transactional_id is None else ProducerKind.TRANSACTIONAL
        )
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.state = TxnState.UNINITIALIZED
        self.error: Optional[KafkaError] = None
        self.sequences = Sequences(self.is_transactional)
        self.is_v2 = False
        self.refuses_send = self.is_transactional
        self.on_need: Callable[[], None] = lambda: None
        self.now: Callable[[], float] = lambda: 0.0
        self._operation: Optional[Operation] = None
        self._offsets: Deque[OffsetsOperation] = deque()
        # Features of the brokers, from set_brokers().
        self._v2_is_there = False
        self._raises_epoch = True
        self._may_fence = True
        self._wants_identity = False
        self._renews = False  # InitProducerId keeps the producer id and raises its epoch
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._wanted: Set[TopicPartition] = set()
        self._adding: Set[TopicPartition] = set()
        self._added: Set[TopicPartition] = set()
        self._groups: Set[str] = set()
        self._is_started = False  # the coordinator knows of the transaction
        self._may_be_started = False  # or possibly, from a request without a response
        self._needs_epoch = False
        self._end_is_asked = False
        self._end_was_lost = False
        self._opened_at: Optional[float] = None  # when it may have begun at the coordinator

    def __repr__(self) -> str:
        identity = self.sequences.identity
        return '<%s %s %s, producer %d epoch %d>' % (
            type(self).__name__,
            'idempotent' if self.transactional_id is None else repr(self.transactional_id),
            self.state.value,
            identity.producer_id,
            identity.epoch,
        )

    @property
    def is_transactional(self) -> bool:
        """Whether it has a transactional id."""
        return self.kind is ProducerKind.TRANSACTIONAL

    @property
    def is_fatal(self) -> bool:
        """Whether the producer can only be closed."""
        return self.state is TxnState.FATAL_ERROR

    @property
    def is_ending(self) -> bool:
        """Whether a transaction is being committed or aborted."""
        return self.state in (TxnState.COMMITTING, TxnState.ABORTING)

    def _move(self, event: TxnEvent) -> None:
        self.state = following(self.state, event)
        self.refuses_send = (
            self.state is not TxnState.IN_TRANSACTION if self.is_transactional else self.is_fatal
        )
        self.on_need()

    # ------------------------------------------------------------ the caller

    def check_send(self) -> None:
        """Raise unless a record may be sent now.

        Raises IllegalStateError outside of a transaction; after an error KafkaError with the cause.
        """
        if not self.refuses_send:
            return
        self._check_error('send()')
        raise IllegalStateError('send() needs an open transaction: call begin_transaction() first')

    def _check_error(self, what: str) -> None:
        if self.is_fatal:
            raise self._again('%s is not possible any more, close the producer: %s', what)
        if self.state is TxnState.ABORTABLE_ERROR:
            raise self._again('%s is not possible, call abort_transaction(): %s', what)

    def _again(self, text: str, what: str) -> KafkaError:
        """Return a new error for the stored one: of its class, if its constructor takes a text."""
        cause = self.error
        kind = type(cause) if isinstance(cause, BrokerResponseError) else KafkaError
        error = kind(text % (what, cause))
        error.__cause__ = cause
        return error

    def _resumed(self, event: TxnEvent, what: str) -> Optional[Operation]:
        """Return the pending operation that a repeated call continues, or None.

        Raises IllegalStateError while another operation is pending, or its caller has not received
        the outcome.
        """
        pending = self._operation
        if pending is None or pending.is_told:
            return None
        if pending.event is not event:
            raise IllegalStateError(
                '%s is not possible: %s was called before and its outcome is not known to the'
                ' caller yet. Call it again first' % (what, _VERBS[pending.event])
            )
        return pending

    def _check_transactional(self, what: str) -> None:
        if not self.is_transactional:
            raise IllegalStateError(
                '%s needs a transactional producer: set transactional_id' % what
            )

    def initialize(self) -> Operation:
        """Begin to get the producer id; done at once if there is one."""
        what = _VERBS[TxnEvent.INITIALIZE]
        self._check_transactional(what)
        pending = self._resumed(TxnEvent.INITIALIZE, what)
        if pending is not None:
            return pending
        if self.is_fatal:
            self._check_error(what)
        operation = Operation(TxnEvent.INITIALIZE)
        if self.sequences.identity != NOBODY:
            operation.finish()
            operation.is_told = True
            return operation
        self.error = None
        self._operation = operation
        self._move(TxnEvent.INITIALIZE)
        return operation

    def begin(self) -> None:
        """Begin a transaction. Raises IllegalStateError or, after an error, KafkaError."""
        what = _VERBS[TxnEvent.BEGIN]
        self._check_transactional(what)
        self._resumed(TxnEvent.BEGIN, what)
        self._check_error(what)
        self._move(TxnEvent.BEGIN)
        self.sequences.begins_at_zero = self.is_v2

    def prepare(self, is_flushed: bool) -> PreparedTxnState:
        """Prepare the transaction: it can only be ended from now on (KIP-939).

        Arguments: is_flushed: as for needs(). Returns what is needed to end it. Raises as begin();
        IllegalStateError if records were sent meanwhile, and for an empty transaction.
        """
        what = 'prepare_transaction()'
        self._check_transactional(what)
        self._resumed(TxnEvent.PREPARE, what)
        self._check_error(what)
        following(self.state, TxnEvent.PREPARE)
        is_waiting = self._wanted or self._adding or self._offsets
        if not is_flushed or is_waiting or self.sequences.has_outstanding:
            raise IllegalStateError('%s: records are being sent meanwhile, stop that first' % what)
        if not self._is_started:
            raise IllegalStateError('%s: nothing was sent, abort the transaction instead' % what)
        self._move(TxnEvent.PREPARE)
        partition = self.sequences.any_partition()
        return PreparedTxnState(*self.sequences.identity, self.is_v2, partition)

    def commit(self) -> Operation:
        """Begin or continue a commit. Raises as begin()."""
        return self._end(TxnEvent.COMMIT)

    def abort(self) -> Operation:
        """Begin or continue an abort. Raises as begin(), but not after an abortable error."""
        return self._end(TxnEvent.ABORT)

    def _end(self, event: TxnEvent) -> Operation:
        what = _VERBS[event]
        self._check_transactional(what)
        pending = self._resumed(event, what)
        if pending is not None:
            return pending
        if self.is_fatal or event is TxnEvent.COMMIT:
            self._check_error(what)
        state = following(self.state, event)
        assert state in (TxnState.COMMITTING, TxnState.ABORTING)
        self._operation = Operation(event)
        if event is TxnEvent.ABORT:
            self._drop_asked(errors.TransactionAbortedError('the transaction is being aborted'))
        self._move(event)
        return self._operation

    def send_offsets(self, offsets: Offsets, member: GroupMember) -> OffsetsOperation:
        """Add offsets of a group to the transaction; a repeated call continues.

        Raises IllegalStateError outside of a transaction; as begin() after an error.
        """
        what = 'send_offsets_to_transaction()'
        self._check_transactional(what)
        self._check_error(what)
        if self.state is not TxnState.IN_TRANSACTION:
            raise IllegalStateError('%s needs an open transaction' % what)
        for pending in self._offsets:
            if pending.asked == offsets and pending.member == member:
                return pending
        operation = OffsetsOperation(offsets, member)
        if offsets:
            self._offsets.append(operation)
            self.on_need()
        else:
            operation.finish()
        return operation

    # ------------------------------------------------------------ for the sender, before sending

    @property
    def produce_versions(self) -> Versions:
        """The lowest and highest version of Produce that can be used now."""
        return calls.PRODUCE_V2 if self.is_v2 else calls.PRODUCE_V1

    def may_send(self, batch: Batch) -> bool:
        """Return True if a batch may be sent now; else needs() returns a request for it, if any."""
        if not self.is_transactional:
            if self.sequences.needs_identity and not self._wants_identity:
                self._wants_identity = True
                self.on_need()
            return not self.is_fatal and self.sequences.may_send(batch)
        if self.state not in SENDING or self._end_is_asked:
            return False
        if self.state in (TxnState.ABORTING, TxnState.ABORTABLE_ERROR):
            if not self.sequences.is_numbered(batch):
                return False
        elif not self.is_v2 and batch.topic_partition not in self._added:
            self.note_partition(batch.topic_partition)
            return False
        return self.sequences.may_send(batch)

    def note_partition(self, topic_partition: TopicPartition) -> None:
        """Request that a partition is added to the transaction (version 1)."""
        if self.is_v2 or not self.is_transactional or topic_partition in self._added:
            return
        if topic_partition not in self._wanted and topic_partition not in self._adding:
            self._wanted.add(topic_partition)
            self.on_need()

    def stamp(self, batch: Batch) -> None:
        """Number a batch that is sent now. Raises IllegalStateError if it may not be sent."""
        if not self.may_send(batch):
            raise IllegalStateError('a batch for %s may not go now' % where(batch))
        self.sequences.stamp(batch)
        if self.is_v2:
            self._is_started = True
            self._note_opening()

    @property
    def needs_identity(self) -> bool:
        """Whether a producer id is required before batches can be sent."""
        return self.sequences.needs_identity

    def restore(self, batch: Batch) -> bool:
        """Complete an interrupted stamp() or on_produced(); see Sequences.restore()."""
        return self.sequences.restore(batch)

    def take_unsent_error(self) -> Optional[KafkaError]:
        """Return the error of all batches that may_drop(), or None if no batch has to fail."""
        if self.state is TxnState.ABORTING:
            return errors.TransactionAbortedError('its transaction was aborted before it was sent')
        if self.state not in (TxnState.ABORTABLE_ERROR, TxnState.FATAL_ERROR):
            return None
        if self.state is TxnState.ABORTABLE_ERROR and not self.is_transactional:
            error, self.error = self.error, None
            self._wants_identity = False
            self._move(TxnEvent.START_OVER)
            return error
        return self.error

    def may_drop(self, batch: Batch) -> bool:
        """Return True if a batch that waits to be sent has to fail with take_unsent_error().

        A batch that may be stored is retried, unless the epoch ends with the transaction.
        """
        if self.is_fatal or not self.sequences.is_numbered(batch):
            return True
        if self.sequences.is_on_wire(batch):
            return False
        is_over = self.state is TxnState.ABORTING and self.is_v2
        return is_over or self.sequences.is_missing(batch)

    # ------------------------------------------------------------ for the sender, outcomes

    def on_produced(self, batch: Batch, response: PartitionProduceResponse) -> ProduceVerdict:
        """Handle the response for a batch; return what to do with the batch.

        After SPLIT the sender reports the pieces by on_split().
        """
        code = response.error_code
        reaction = reaction_to(self.kind, code)
        if self.sequences.was_given_up(batch):
            if reaction is ProduceReaction.DONE:
                self.sequences.on_stored(batch, response.base_offset)
            else:
                self.sequences.on_retry(batch, may_be_stored=True)
            return self._settled(_NOTHING)
        if reaction is ProduceReaction.SEQUENCE:
            reaction = self.sequences.judge(batch, response)
        verdict = verdict_of(reaction, response, where(batch), batch.record_count)
        if verdict.action is ProduceAction.DONE:
            self.sequences.on_stored(batch, response.base_offset)
        elif verdict.action is ProduceAction.RETRY:
            self.sequences.on_retry(batch, code in STORED_ALL_THE_SAME)
        elif verdict.action is ProduceAction.SPLIT and self.sequences.may_be_stored(batch):
            # Its pieces would be other batches, which the broker could not recognise as duplicates.
            verdict = failure(response, where(batch))
            self.sequences.on_given_up(batch)
            self.sequences.on_retry(batch, may_be_stored=True)
            self._on_failed(reaction, verdict.error)
        elif verdict.action is ProduceAction.FAIL:
            if self.is_transactional:
                error = _named(verdict.error, self.is_v2)
                verdict = verdict._replace(error=error and self._told(error))
            self.sequences.on_refused(batch)
            self._on_failed(reaction, verdict.error)
        return self._settled(verdict)

    def _on_failed(self, reaction: ProduceReaction, error: Optional[KafkaError]) -> None:
        if reaction is ProduceReaction.FATAL:
            self.fail(error)
        elif self.is_transactional:
            self._make_abortable(error)

    def on_lost(self, batch: Batch, error: KafkaError) -> ProduceVerdict:
        """Handle a lost request; return what to do with one of its batches."""
        is_given_up = self.sequences.was_given_up(batch)
        self.sequences.on_retry(batch, may_be_stored=True)
        return self._settled(_NOTHING if is_given_up else lost_verdict(error))

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Note that a batch is replaced by pieces, which wait to be sent."""
        self.sequences.on_split(batch, pieces)

    def give_up(self, batch: Batch, error: KafkaError) -> None:
        """Note that a batch has failed: its time or retries are used up, or it is purged.

        Also called for a batch in flight, whose response is still to be reported, and after
        may_drop().
        """
        self.sequences.on_given_up(batch)
        self.refuse(error)
        self._settled(_NOTHING)

    def refuse(self, error: KafkaError) -> None:
        """Note that a record has failed, possibly before it was in a batch.

        The transaction becomes abortable, because a commit without the record would be incomplete.
        """
        is_open = (
            self.state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING) and not self._end_is_asked
        )
        if self.is_transactional and is_open:
            self._make_abortable(error)

    def _settled(self, verdict: ProduceVerdict) -> ProduceVerdict:
        """React to a changed state of the sequence numbers; return the verdict unchanged."""
        if self.is_transactional and self.sequences.needs_epoch and not self.is_fatal:
            if self.is_v2 or self._raises_epoch:
                self._needs_epoch = True
                if self.state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING):
                    self._make_abortable(
                        errors.OutOfOrderSequenceNumberError(
                            'it is unknown whether some records of the transaction are stored'
                        )
                    )
            else:
                self.fail(
                    errors.OutOfOrderSequenceNumberError(
                        'it is unknown whether some records of the transaction are stored, and'
                        ' brokers before 2.5 give no new epoch'
                    )
                )
        if self.is_ending or self.sequences.needs_identity:
            self.on_need()
        return verdict

    # ------------------------------------------------------------ errors

    def _make_abortable(self, error: Optional[KafkaError]) -> None:
        """Let only an abort be possible; keep the first error."""
        if self.state is TxnState.FATAL_ERROR:
            return
        self._needs_epoch = True
        if self.state is TxnState.ABORTING:
            return
        if self.state is not TxnState.ABORTABLE_ERROR:
            self.error = error
        self._drop_asked(self.error)
        if self._operation is not None:
            self._operation.finish(self.error)
        self._move(TxnEvent.ABORTABLE)

    def fail(self, error: Optional[KafkaError]) -> None:
        """Set the fatal state: the producer can only be closed."""
        if not self.is_fatal:
            self.error = error
        self._drop_asked(error)
        if self._operation is not None:
            self._operation.finish(error)
        self._move(TxnEvent.FATAL)

    def _drop_asked(self, error: Optional[KafkaError]) -> None:
        """Drop the partitions and offsets that were to be added to the transaction."""
        for operation in self._offsets:
            operation.finish(error)
        self._offsets.clear()
        self._wanted.clear()
        self._adding.clear()

    # ------------------------------------------------------------ for the driver

    def set_brokers(
        self, v2: bool, raises_epoch: bool = True, may_fence: bool = True, remembered: int = 5
    ) -> None:
        """Set what the brokers support; v2 takes effect from the next transaction on.

        Arguments: v2: the feature transaction.version is 2 or more; raises_epoch: brokers have
        InitProducerId v3; may_fence: brokers have TxnOffsetCommit v3; remembered: the number of
        batches per producer and partition that leaders remember, 1 on 0.11.
        """
        self._v2_is_there = v2
        self._raises_epoch = raises_epoch
        self._may_fence = may_fence
        self.sequences.most_in_flight = remembered

    def needs(self, is_flushed: bool) -> Optional[Ask]:
        """Return the request to send now, or None; the same one until it is answered.

        Arguments: is_flushed: whether all batches have an outcome.
        """
        if self.state is TxnState.INITIALIZING:
            return calls.init_producer_id(self._caller, self.timeout_ms, self._renews)
        if not self.is_transactional:
            return self._needs_identity()
        if self.state in (TxnState.IN_TRANSACTION, TxnState.COMMITTING):
            if not self._adding and self._wanted:
                self._adding, self._wanted = self._wanted, set()
            if self._adding or self._offsets:
                self._note_opening()
            if self._adding:
                return calls.add_partitions(self._caller, self._adding)
            if self._offsets:
                return self._offsets_ask(self._offsets[0])
        if not self.is_ending or not is_flushed or self.sequences.has_outstanding:
            return None
        if self._is_started or self._may_be_started:
            self._end_is_asked = True
            return calls.end(self._caller, self.state is TxnState.COMMITTING)
        self._ended(None)
        return self.needs(is_flushed)

    def _note_opening(self) -> None:
        """Note when transaction_timeout_ms may have begun at the coordinator."""
        if self._opened_at is None:
            self._opened_at = self.now()

    def _told(self, error: KafkaError, is_newer: bool = False) -> KafkaError:
        """Return the error of a response, with another text if the transaction has timed out.

        The coordinator raises the epoch when it aborts, so the responses are those to a producer
        that was replaced by a newer one: INVALID_PRODUCER_EPOCH to Produce and TxnOffsetCommit,
        PRODUCER_FENCED to EndTxn and AddOffsetsToTxn, INVALID_TXN_STATE to a commit of version 2.
        Only the elapsed time distinguishes the two.

        Arguments: is_newer: whether the response can only mean a newer producer.
        """
        opened_at = self._opened_at
        code = error.errno if isinstance(error, BrokerResponseError) else None
        if opened_at is None or is_newer or code not in _MAY_BE_TIMED_OUT:
            return error
        seconds = self.now() - opened_at
        if seconds * 1000 < self.timeout_ms:
            return error
        return type(error)(
            'the transaction of transactional id %r timed out after transaction_timeout_ms (%d ms;'
            ' it has been open for %.1f s): its coordinator has aborted it, if no newer producer'
            ' did. Raise transaction_timeout_ms, or end transactions earlier'
            % (self.transactional_id, self.timeout_ms, seconds)
        )

    @property
    def _caller(self) -> Caller:
        return Caller(self.transactional_id, self.sequences.identity, self.is_v2)

    def _needs_identity(self) -> Optional[Ask]:
        is_used_up = self.sequences.needs_identity and self.sequences.identity != NOBODY
        if self.is_fatal or not (self._wants_identity or is_used_up):
            return None
        if (
            self.state not in (TxnState.UNINITIALIZED, TxnState.READY)
            or not self.sequences.needs_identity
        ):
            return None
        self._move(TxnEvent.INITIALIZE)
        return calls.init_producer_id(self._caller, self.timeout_ms, raises=False)

    def _offsets_ask(self, operation: OffsetsOperation) -> Ask:
        member = operation.member
        if self.is_v2:
            self._is_started = True
        elif member.group_id not in self._groups:
            return calls.add_offsets(self._caller, member.group_id)
        return calls.commit_offsets(self._caller, member, operation.left, self._may_fence)

    def on_call_lost(self, ask: Ask) -> DriverStep:
        """Handle a request without a response: it may have been executed."""
        if ask.kind in (CallKind.ADD_PARTITIONS, CallKind.ADD_OFFSETS):
            self._may_be_started = True
        if ask.kind is CallKind.END:
            self._end_was_lost = True
        if ask.kind is not CallKind.INIT_PRODUCER_ID:
            self._needs_epoch = True
        return DriverStep(None, refinds=True)

    def on_no_coordinator(self, ask: Ask, error: KafkaError) -> DriverStep:
        """Handle an error of FindCoordinator."""
        is_fatal = error.fatal or isinstance(error, errors.TransactionalIdAuthorizationFailedError)
        return self._conclude(ask, CallOutcome.FATAL if is_fatal else CallOutcome.ABORTABLE, error)

    def on_call_refused(self, ask: Ask, error: KafkaError) -> DriverStep:
        """Handle a request that cannot be sent at all, for example to a broker that is too old."""
        return self._conclude(ask, CallOutcome.FATAL, error)

    def on_answer(self, ask: Ask, response: Any) -> DriverStep:
        """Handle the response to a request; return what to do before the next one."""
        if self.is_fatal:
            return _GO_ON
        if ask.kind is CallKind.ADD_PARTITIONS:
            return self._on_added(ask, calls.added_partitions(response))
        if ask.kind is CallKind.COMMIT_OFFSETS:
            return self._on_offsets(ask, calls.committed_offsets(response))
        code: int = response.error_code
        if ask.kind is CallKind.END:
            return self._on_end(ask, response)
        outcome = outcome_of(ask.kind, code)
        if outcome is not CallOutcome.DONE:
            error = self._told(error_of_call(ask.kind, code, ask.about))
            return self._conclude(ask, outcome, error)
        if ask.kind is CallKind.ADD_OFFSETS:
            self._groups.add(ask.request.group_id)
            self._is_started = True
        else:
            self._on_identity(Identity(response.producer_id, response.producer_epoch))
        return _GO_ON

    def _conclude(self, ask: Ask, outcome: CallOutcome, error: KafkaError) -> DriverStep:
        """React to the error of a request; return what the driver does."""
        if outcome in (CallOutcome.RETRY, CallOutcome.REFIND):
            return DriverStep(None, refinds=outcome is CallOutcome.REFIND)
        is_out = not (self.is_v2 or self._raises_epoch)
        if outcome is CallOutcome.FATAL or outcome is CallOutcome.ABORTABLE_OR_FATAL and is_out:
            self.fail(error)
        else:
            self._make_abortable(error)
        # An abort continues in spite of errors, but after a back-off.
        return DriverStep(None) if self.state is TxnState.ABORTING else _GO_ON

    def _on_added(self, ask: Ask, codes: Dict[TopicPartition, int]) -> DriverStep:
        """Handle the response to AddPartitionsToTxn, which adds all partitions or none."""
        outcomes = {place: outcome_of(ask.kind, code) for place, code in codes.items()}
        missing = [place for place in self._adding if place not in codes]
        if missing and self._adding:
            return self._conclude(ask, CallOutcome.ABORTABLE, _unanswered(ask, missing))
        for outcome in (CallOutcome.FATAL, CallOutcome.ABORTABLE_OR_FATAL, CallOutcome.ABORTABLE):
            guilty = [place for place, each in outcomes.items() if each is outcome]
            # OPERATION_NOT_ATTEMPTED: another partition has failed, possibly with a retriable
            # error.
            own = [place for place in guilty if codes[place] != OPERATION_NOT_ATTEMPTED]
            if own:
                about = '%s of %s' % (place_of(own[0]), ask.about)
                error = self._told(error_of_call(ask.kind, codes[own[0]], about))
                return self._conclude(ask, outcome, error)
        if all(each is CallOutcome.DONE for each in outcomes.values()):
            self._added |= self._adding
            self._adding.clear()
            self._is_started = True
            return _GO_ON
        is_first = CONCURRENT_TRANSACTIONS in codes.values() and not self._is_started
        refinds = CallOutcome.REFIND in outcomes.values()
        if not refinds and CallOutcome.RETRY not in outcomes.values():
            code = max(codes.values())  # OPERATION_NOT_ATTEMPTED; the others are 0
            return self._conclude(
                ask, CallOutcome.ABORTABLE, error_of_call(ask.kind, code, ask.about)
            )
        return DriverStep(FIRST_BACKOFF_MS if is_first else None, refinds)

    def _on_offsets(self, ask: Ask, codes: Dict[TopicPartition, int]) -> DriverStep:
        """Handle the response to TxnOffsetCommit; offsets with retriable errors are sent again."""
        if not self._offsets:
            return _GO_ON  # dropped meanwhile, by an error or an abort
        operation = self._offsets[0]
        outcomes = {place: outcome_of(ask.kind, code) for place, code in codes.items()}
        missing = [place for place in operation.left if place not in codes]
        if missing:
            return self._conclude(ask, CallOutcome.FATAL, _unanswered(ask, missing))
        for outcome in (CallOutcome.FATAL, CallOutcome.ABORTABLE):
            for place, each in outcomes.items():
                if each is outcome:
                    about = 'group %r, %s' % (operation.member.group_id, place_of(place))
                    error = self._told(error_of_call(ask.kind, codes[place], about))
                    return self._conclude(ask, outcome, error)
        for place, each in outcomes.items():
            if each is CallOutcome.DONE:
                operation.left.pop(place, None)
        if operation.left:
            return DriverStep(None, refinds=CallOutcome.REFIND in outcomes.values())
        self._offsets.popleft()
        operation.finish()
        self.on_need()
        return _GO_ON

    def _on_end(self, ask: Ask, response: Any) -> DriverStep:
        code: int = response.error_code
        commits = self.state is TxnState.COMMITTING
        outcome = outcome_of_end(code, commits)
        if outcome is CallOutcome.DONE:
            if not self.is_v2:
                self._ended(None)
            elif response.producer_id < 0:
                self.fail(ProtocolError('EndTxn for %s: no next producer id' % ask.about))
            else:
                self._ended(Identity(response.producer_id, response.producer_epoch))
            return _GO_ON
        if code == INVALID_TXN_STATE and not commits and not self._is_started:
            self._ended(None)  # the request without a response was not executed either
            return _GO_ON
        if outcome is CallOutcome.ABORTABLE_OR_FATAL and not commits and self._raises_epoch:
            self._needs_epoch = True
            self._ended(None)  # the coordinator does not know the producer id any more
            return _GO_ON
        # In version 2 the coordinator recognises epochs that it has raised itself.
        is_newer = self.is_v2 and code == PRODUCER_FENCED
        error = self._told(error_of_call(ask.kind, code, ask.about), is_newer)
        if outcome is CallOutcome.FATAL and commits and self._end_was_lost:
            error = _with_text(error, 'whether the transaction was committed is not known')
        elif isinstance(error, errors.UnsupportedVersionError) and self.is_v2:
            error = _with_text(error, SET_BACK)
        return self._conclude(ask, outcome, error)

    def _on_identity(self, identity: Identity) -> None:
        if identity.producer_id < 0 or identity.epoch < 0:
            self.fail(ProtocolError('InitProducerId: the broker gave no producer id'))
            return
        if self.is_transactional:
            self.sequences.restart(identity)
            self.is_v2 = self._v2_is_there
        else:
            self.sequences.begin(identity)
        self._renews = False
        self._move(TxnEvent.INITIALIZED)
        if self._operation is not None:
            self._operation.finish()

    def _ended(self, identity: Optional[Identity]) -> None:
        """Get ready for the next transaction, or request a new epoch first.

        Arguments: identity: the one of the next transaction, from the response (version 2).
        """
        if identity is not None:
            self.sequences.restart(identity)
        is_lost = not self.is_v2 and (self._needs_epoch or self.sequences.needs_epoch)
        changes = self._v2_is_there and not self.is_v2
        is_nobody = self.sequences.identity == NOBODY
        renews = is_nobody or (is_lost or changes) and self._raises_epoch
        self._renews = renews and not is_nobody
        self.is_v2 = self.is_v2 and self._v2_is_there
        self.error = None
        self._forget_transaction()
        self._move(TxnEvent.RENEW if renews else TxnEvent.ENDED)
        if self._operation is not None and not renews:
            self._operation.finish()


def _named(error: Optional[KafkaError], is_v2: bool) -> Optional[KafkaError]:
    """Return the error of a batch in the form for users of transactions."""
    if type(error) is errors.InvalidProducerEpochError:  # an old epoch means a fenced producer
        return errors.FencedEpochError(*error.args)
    if type(error) is errors.UnsupportedVersionError and is_v2:
        return type(error)('%s %s' % (error.args[0], SET_BACK))
    return error


def _unanswered(ask: Ask, missing: Sequence[TopicPartition]) -> KafkaError:
    return ProtocolError(
        '%s for %s: the broker says nothing about %s'
        % (ask.kind.value, ask.about, place_of(missing[0]))
    )


def _with_text(error: KafkaError, text: str) -> KafkaError:
    return type(error)('%s. %s' % (error.args[0] if error.args else '', text))
