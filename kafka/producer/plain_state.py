"""The state of a producer without a producer id: nothing is tracked.

It has the methods of :class:`kafka.producer.transaction_state.TransactionState` that the sender
calls, so that the sender is the same for all kinds of producers. A retry may store a record twice,
and order is up to the accumulator. Pure.
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
    """The state of a producer that has none."""

    kind = ProducerKind.PLAIN
    transactional_id: Optional[str] = None
    is_transactional = False
    is_fatal = False
    is_ending = False
    refuses_send = False
    produce_versions = ALL_VERSIONS

    def check_send(self) -> None:
        """Let every record be sent."""

    def may_send(self, batch: Batch) -> bool:
        """Let every batch go."""
        return True

    def stamp(self, batch: Batch) -> None:
        """Give no numbers."""

    def take_unsent_error(self) -> Optional[KafkaError]:
        """Fail nothing."""
        return None

    def may_drop(self, batch: Batch) -> bool:
        """Drop nothing."""
        return False

    def on_produced(self, batch: Batch, response: PartitionProduceResponse) -> ProduceVerdict:
        """Return what to do with a batch after an answer."""
        if not response.error_code:
            return ProduceVerdict(ProduceAction.DONE, base_offset=response.base_offset)
        return plain_verdict(response, where(batch), batch.record_count)

    def on_lost(self, batch: Batch, error: KafkaError) -> ProduceVerdict:
        """Return what to do with a batch whose request got no answer."""
        return lost_verdict(error)

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Remember nothing."""

    def refuse(self, error: KafkaError) -> None:
        """Remember nothing."""

    def give_up(self, batch: Batch, error: KafkaError) -> None:
        """Remember nothing."""
