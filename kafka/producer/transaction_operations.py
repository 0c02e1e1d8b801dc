"""Pending operations of a transactional producer, such as a commit.

An operation has the outcome of one public call. It continues after the caller has timed out, and a
repeated call resumes it. Made by :mod:`kafka.producer.transaction_state`. Pure.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from kafka.errors import KafkaError
from kafka.producer.transaction_calls import GroupMember, Offsets
from kafka.producer.transaction_table import TxnEvent
from kafka.structs import TopicPartition


class PreparedTxnState(NamedTuple):
    """What is needed to end a prepared transaction, besides its transactional id (KIP-939).

    is_v2: whether it has version 2 (KIP-890), which needs another version of EndTxn; partition: one
    that was written to, with which to check whether the transaction is still open; None if it has
    only offsets.
    """

    producer_id: int
    epoch: int
    is_v2: bool = False
    partition: Optional[TopicPartition] = None


class Operation:
    """One operation of a caller.

    Attributes: event: the called operation; is_done; error: None if it has succeeded; is_told:
    whether the caller has received the outcome, so that another operation may begin.
    """

    __slots__ = ('error', 'event', 'is_done', 'is_told')

    def __init__(self, event: TxnEvent) -> None:
        self.event = event
        self.is_done = False
        self.is_told = False
        self.error: Optional[KafkaError] = None

    def finish(self, error: Optional[KafkaError] = None) -> None:
        """Set the outcome; only the first call has an effect."""
        if not self.is_done:
            self.is_done, self.error = True, error

    def tell(self) -> None:
        """Note that the caller has received the outcome; raise the error if there is one."""
        self.is_told = True
        if self.error is not None:
            raise self.error.with_traceback(None)  # it may be raised again


class OffsetsOperation(Operation):
    """Offsets that are added to a transaction; ``left`` has those not committed yet."""

    __slots__ = ('asked', 'left', 'member')

    def __init__(self, offsets: Offsets, member: GroupMember) -> None:
        super().__init__(TxnEvent.COMMIT)
        self.asked = dict(offsets)
        self.left = dict(offsets)
        self.member = member
