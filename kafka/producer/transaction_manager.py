"""TransactionManager and ProducerIdAndEpoch: the state of a producer, as classes of 2.2.

For programs that use these classes of kafka-python 2.2 and later; the producer itself uses
:mod:`kafka.producer.transaction_state`. They can be created without a broker. Pure.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

from kafka.errors import IllegalStateError
from kafka.producer.sequence_numbers import NOBODY, Identity
from kafka.producer.transaction_state import TransactionState

__all__ = ['ProducerIdAndEpoch', 'TransactionManager']


class ProducerIdAndEpoch:
    """A producer id and its epoch (since 2.2)."""

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch

    @property
    def is_valid(self) -> bool:
        """Whether it was assigned by a broker, that is, not (-1, -1)."""
        return self.producer_id > NOBODY.producer_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerIdAndEpoch):
            return NotImplemented
        return (self.producer_id, self.epoch) == (other.producer_id, other.epoch)

    def __hash__(self) -> int:
        return hash((self.producer_id, self.epoch))

    def __repr__(self) -> str:
        return 'ProducerIdAndEpoch(producer_id=%d, epoch=%d)' % (self.producer_id, self.epoch)

    __str__ = __repr__


class TransactionManager:
    """The state of a producer, with the methods of 2.2.

    Arguments: transactional_id: None for a producer that is only idempotent;
        transaction_timeout_ms; retry_backoff_ms, api_version, metadata: kept as attributes, for
        programs that read them.

    Attributes: state: the TransactionState.
    """

    def __init__(
        self,
        transactional_id: Optional[str] = None,
        transaction_timeout_ms: int = 0,
        retry_backoff_ms: int = 100,
        api_version: Tuple[int, ...] = (0, 11),
        metadata: Any = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self.api_version = api_version
        self.metadata = metadata
        self.state = TransactionState(transactional_id, transaction_timeout_ms)

    @classmethod
    def of(cls, state: TransactionState) -> TransactionManager:
        """Return a TransactionManager for the state of a producer."""
        manager = cls(state.transactional_id, state.timeout_ms)
        manager.state = state
        return manager

    def __repr__(self) -> str:
        return '<TransactionManager of %r>' % (self.state,)

    @property
    def producer_id_and_epoch(self) -> ProducerIdAndEpoch:
        """The producer id and epoch, (-1, -1) before a broker has assigned them."""
        return ProducerIdAndEpoch(*self.state.sequences.identity)

    def set_producer_id_and_epoch(self, producer_id_and_epoch: ProducerIdAndEpoch) -> None:
        """Set producer id and epoch. Raises TypeError for an argument of another type."""
        if not isinstance(producer_id_and_epoch, ProducerIdAndEpoch):
            raise TypeError('a ProducerIdAndEpoch is needed, not %r' % (producer_id_and_epoch,))
        pair = producer_id_and_epoch
        self.state.sequences.begin(Identity(pair.producer_id, pair.epoch))

    def reset_producer_id(self) -> None:
        """Reset to (-1, -1). Raises IllegalStateError if the producer is transactional."""
        if self.is_transactional():
            raise IllegalStateError(
                'the producer id belongs to transactional id %r' % self.transactional_id
            )
        self.state.sequences.forget_identity()

    def has_producer_id(self) -> bool:
        """Return True if a broker has assigned a producer id."""
        return self.producer_id_and_epoch.is_valid

    def is_transactional(self) -> bool:
        """Return True if there is a transactional id."""
        return self.state.is_transactional
