"""The state of an idempotent or transactional producer: what its sender may do, and what it must.

Owns what the sender asks before a batch goes, and what it reports afterwards; the sequence numbers
are :mod:`kafka.producer.sequence_numbers`', the transactions
:mod:`kafka.producer.transaction_course`'s. Pure: no clock, no lock, no thread. Whoever uses it does
so in one turn of the loop at a time; only ``check_send()`` and ``refuses_send`` may be used
anywhere.

Three parties use it. The *caller* begins and ends transactions and waits for an ``Operation``. The
*sender* asks ``may_send(batch)``, calls ``stamp(batch)`` and reports by ``on_produced()``,
``on_lost()``, ``on_split()`` or ``give_up()`` what became of it. The *driver* makes the call that
``needs()`` returns and reports the answer.
"""

from __future__ import annotations

from typing import Optional, Sequence

from kafka import errors
from kafka.errors import IllegalStateError, KafkaError
from kafka.producer import transaction_calls as calls
from kafka.producer.produce_errors import (
    STORED_ALL_THE_SAME,
    Action,
    Reaction,
    Verdict,
    failure,
    lost_verdict,
    reaction_to,
    verdict_of,
)
from kafka.producer.sequence_numbers import Batch, where
from kafka.producer.transaction_calls import Versions
from kafka.producer.transaction_course import TransactionCourse
from kafka.producer.transaction_errors import SET_BACK
from kafka.producer.transaction_table import SENDING, Event, State
from kafka.protocol.produce import PartitionProduceResponse
from kafka.structs import TopicPartition

_NOTHING = Verdict(Action.IGNORE)


class TransactionState(TransactionCourse):
    """The state of one producer; arguments and attributes are those of TransactionCourse."""

    # ------------------------------------------------------------ the sender, before sending

    @property
    def produce_versions(self) -> Versions:
        """The lowest and highest version of Produce that may carry batches now."""
        return calls.PRODUCE_V2 if self.is_v2 else calls.PRODUCE_V1

    def may_send(self, batch: Batch) -> bool:
        """Tell whether a batch may go now. If it needs anything first, needs() will say so."""
        if not self.is_transactional:
            if self.sequences.needs_identity and not self._wants_identity:
                self._wants_identity = True
                self.on_need()
            return not self.is_fatal and self.sequences.may_send(batch)
        if self.state not in SENDING or self._end_is_asked:
            return False
        if self.state in (State.ABORTING, State.ABORTABLE_ERROR):
            if not self.sequences.is_numbered(batch):
                return False
        elif not self.is_v2 and batch.topic_partition not in self._added:
            self.note_partition(batch.topic_partition)
            return False
        return self.sequences.may_send(batch)

    def note_partition(self, topic_partition: TopicPartition) -> None:
        """Let a partition be added to the transaction before its first batch is ready."""
        if self.is_v2 or not self.is_transactional or topic_partition in self._added:
            return
        if topic_partition not in self._wanted and topic_partition not in self._adding:
            self._wanted.add(topic_partition)
            self.on_need()

    def stamp(self, batch: Batch) -> None:
        """Number a batch that goes on the wire now. Raises IllegalStateError if it may not."""
        if not self.may_send(batch):
            raise IllegalStateError('a batch for %s may not go now' % where(batch))
        self.sequences.stamp(batch)
        if self.is_v2:
            self._is_started = True
            self._note_opening()

    def take_unsent_error(self) -> Optional[KafkaError]:
        """Return the error with which each batch that may_drop() has to fail now, None for none."""
        if self.state is State.ABORTING:
            return errors.TransactionAbortedError('its transaction was aborted before it was sent')
        if self.state not in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            return None
        if self.state is State.ABORTABLE_ERROR and not self.is_transactional:
            error, self.error = self.error, None
            self._wants_identity = False
            self._move(Event.START_OVER)
            return error
        return self.error

    def may_drop(self, batch: Batch) -> bool:
        """Tell whether a batch that waits to be sent has to fail with take_unsent_error().

        One that may have arrived goes on, unless the epoch ends with the transaction.
        """
        if self.is_fatal or not self.sequences.is_numbered(batch):
            return True
        if self.sequences.is_on_wire(batch):
            return False
        is_over = self.state is State.ABORTING and self.is_v2
        return is_over or self.sequences.is_missing(batch)

    # ------------------------------------------------------------ the sender, afterwards

    def on_produced(self, batch: Batch, response: PartitionProduceResponse) -> Verdict:
        """Take the answer about a batch; return what to do with it.

        After SPLIT the sender reports the pieces by on_split().
        """
        code = response.error_code
        reaction = reaction_to(self.kind, code)
        if self.sequences.was_given_up(batch):
            if reaction is Reaction.DONE:
                self.sequences.on_stored(batch, response.base_offset)
            else:
                self.sequences.on_retry(batch, may_be_stored=True)
            return self._settled(_NOTHING)
        if reaction is Reaction.SEQUENCE:
            reaction = self.sequences.judge(batch, response)
        verdict = verdict_of(reaction, response, where(batch), batch.record_count)
        if verdict.action is Action.DONE:
            self.sequences.on_stored(batch, response.base_offset)
        elif verdict.action is Action.RETRY:
            self.sequences.on_retry(batch, code in STORED_ALL_THE_SAME)
        elif verdict.action is Action.SPLIT and self.sequences.may_be_stored(batch):
            # Its pieces would be other batches, which the broker could not know again.
            verdict = failure(response, where(batch))
            self.sequences.on_given_up(batch)
            self.sequences.on_retry(batch, may_be_stored=True)
            self._on_failed(reaction, verdict.error)
        elif verdict.action is Action.FAIL:
            if self.is_transactional:
                error = _named(verdict.error, self.is_v2)
                verdict = verdict._replace(error=error and self._told(error))
            self.sequences.on_refused(batch)
            self._on_failed(reaction, verdict.error)
        return self._settled(verdict)

    def _on_failed(self, reaction: Reaction, error: Optional[KafkaError]) -> None:
        if reaction is Reaction.FATAL:
            self.fail(error)
        elif self.is_transactional:
            self._make_abortable(error)

    def on_lost(self, batch: Batch, error: KafkaError) -> Verdict:
        """Take note that a request got no answer; return what to do with a batch of it."""
        is_given_up = self.sequences.was_given_up(batch)
        self.sequences.on_retry(batch, may_be_stored=True)
        return self._settled(_NOTHING if is_given_up else lost_verdict(error))

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Take note that pieces stand for a batch now; they wait to be sent."""
        self.sequences.on_split(batch, pieces)

    def give_up(self, batch: Batch, error: KafkaError) -> None:
        """Take note that a batch has failed: its time or its retries are over, or it is purged.

        Also while it is on the wire, when its answer is still to be reported; and also after
        may_drop().
        """
        self.sequences.on_given_up(batch)
        self.refuse(error)
        self._settled(_NOTHING)

    def refuse(self, error: KafkaError) -> None:
        """Take note that a record has failed, maybe before it came into a batch.

        What is committed without it would not be what the program wanted to be committed.
        """
        is_open = self.state in (State.IN_TRANSACTION, State.COMMITTING) and not self._end_is_asked
        if self.is_transactional and is_open:
            self._make_abortable(error)

    def _settled(self, verdict: Verdict) -> Verdict:
        """Draw the conclusions of what the sequences have become."""
        if self.is_transactional and self.sequences.needs_epoch and not self.is_fatal:
            if self.is_v2 or self._raises_epoch:
                self._needs_epoch = True
                if self.state in (State.IN_TRANSACTION, State.COMMITTING):
                    self._make_abortable(
                        errors.OutOfOrderSequenceNumberError(
                            'nobody knows whether some records of the transaction are stored'
                        )
                    )
            else:
                self.fail(
                    errors.OutOfOrderSequenceNumberError(
                        'nobody knows whether some records of the transaction are stored, and'
                        ' brokers before 2.5 give no new epoch'
                    )
                )
        if self.is_ending or self.sequences.needs_identity:
            self.on_need()
        return verdict


def _named(error: Optional[KafkaError], is_v2: bool) -> Optional[KafkaError]:
    """Return the error of a batch as users of transactions should see it."""
    if type(error) is errors.InvalidProducerEpochError:  # that of an old epoch is fenced too
        return errors.FencedEpochError(*error.args)
    if type(error) is errors.UnsupportedVersionError and is_v2:
        return type(error)('%s %s' % (error.args[0], SET_BACK))
    return error
