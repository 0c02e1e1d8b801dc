"""PlainState: the state of a producer without producer id, which tracks nothing.

It has the methods of :class:`kafka.producer.transaction_state.TransactionState` that the sender
calls, so that the sender is the same for all kinds of producers. A retry may store a record twice,
and only the accumulator can keep the order (one batch in flight per partition). Pure.
"""

from __future__ import annotations

from typing import Optional, Sequence

from kafka.errors import KafkaError
from kafka.producer.produce_errors import (
    ProduceAction,
    ProducerKind,
    ProduceVerdict,
    lost_verdict,
    plain_verdict,
)
from kafka.producer.sequence_numbers import Batch, where
from kafka.protocol.produce import PartitionProduceResponse

#: Every version of Produce may carry these batches.
ALL_VERSIONS = (0, 13)


class PlainState:
    """The state of a producer without idempotence."""

    kind = ProducerKind.PLAIN
    transactional_id: Optional[str] = None
    is_transactional = False
    is_fatal = False
    is_ending = False
    refuses_send = False
    needs_identity = False
    produce_versions = ALL_VERSIONS

    def check_send(self) -> None:
        """Allow every record."""

    def may_send(self, batch: Batch) -> bool:
        """Return True: every batch may be sent."""
        return True

    def stamp(self, batch: Batch) -> None:
        """Do nothing: the batches have no sequence numbers."""

    def restore(self, batch: Batch) -> bool:
        """Return False: the batch has no sequence number."""
        return False

    def take_unsent_error(self) -> Optional[KafkaError]:
        """Return None: no batch has to fail."""
        return None

    def may_drop(self, batch: Batch) -> bool:
        """Return False: no batch has to be dropped."""
        return False

    def on_produced(self, batch: Batch, response: PartitionProduceResponse) -> ProduceVerdict:
        """Return what to do with a batch after a response."""
        if not response.error_code:
            return ProduceVerdict(ProduceAction.DONE, base_offset=response.base_offset)
        return plain_verdict(response, where(batch), batch.record_count)

    def on_lost(self, batch: Batch, error: KafkaError) -> ProduceVerdict:
        """Return what to do with a batch whose request got no response."""
        return lost_verdict(error)

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Do nothing: batches are not tracked."""

    def refuse(self, error: KafkaError) -> None:
        """Do nothing: there is no transaction."""

    def give_up(self, batch: Batch, error: KafkaError) -> None:
        """Do nothing: batches are not tracked."""
