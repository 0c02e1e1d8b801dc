"""The state of one transactional id: transitions, epochs, and the contents of its transaction.

Called by coordinator.py. The rules for epochs follow KIP-98, KIP-360, KIP-588 and KIP-890.
Requests are in handlers/transactions.py, markers in logs/appending.py.
"""

from __future__ import annotations

import enum
from typing import Optional, Set, Tuple

from kafka.errors import IllegalStateError

NO_EPOCH = -1
NO_PRODUCER_ID = -1
#: The last epoch of a producer; the next one is reserved for fencing it.
LAST_EPOCH = 2**15 - 2


class TransactionState(enum.Enum):
    """The states of a transactional id; values are the names in responses."""

    EMPTY = 'Empty'
    ONGOING = 'Ongoing'
    PREPARE_COMMIT = 'PrepareCommit'
    PREPARE_ABORT = 'PrepareAbort'
    COMPLETE_COMMIT = 'CompleteCommit'
    COMPLETE_ABORT = 'CompleteAbort'
    DEAD = 'Dead'


S = TransactionState

#: The next states that are allowed in each state.
TRANSITIONS = {
    S.EMPTY: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.ONGOING: (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT),
    S.PREPARE_COMMIT: (S.COMPLETE_COMMIT,),
    S.PREPARE_ABORT: (S.COMPLETE_ABORT,),
    # With KIP-890 an abort without partitions is allowed; it only increases the epoch.
    S.COMPLETE_COMMIT: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.COMPLETE_ABORT: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.DEAD: (),
}

#: The markers are being written.
PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
#: No transaction is open, and one may begin.
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


class Transaction:
    """One transactional id.

    Attributes: producer_id, producer_epoch: of the current producer; last_producer_id,
    last_epoch: the previous ones, to recognise retried requests, -1 for none; next_producer_id:
    takes effect when the markers are written, -1 for none; partitions, groups: those of the
    transaction; started_ms: when the first was added, -1 if none has been; changed_ms: the time of
    the last change; is_stuck: whether a change began that never ends, see
    Transactions.refuses_version_2().
    """

    def __init__(self, transactional_id: str, producer_id: int, now_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.last_producer_id = NO_PRODUCER_ID
        self.last_epoch = NO_EPOCH
        self.next_producer_id = NO_PRODUCER_ID
        self.timeout_ms = 0
        self.state = S.EMPTY
        self.partitions: Set[Tuple[str, int]] = set()
        self.groups: Set[str] = set()
        self.started_ms = -1
        self.changed_ms = now_ms
        self.is_stuck = False

    def __repr__(self) -> str:
        return '<Transaction %r %s producer_id=%d epoch=%d>' % (
            self.transactional_id,
            self.state.value,
            self.producer_id,
            self.producer_epoch,
        )

    @property
    def is_exhausted(self) -> bool:
        """Whether the epoch cannot be increased again for a producer."""
        return self.producer_epoch >= LAST_EPOCH

    def move_to(self, state: TransactionState, now_ms: int) -> None:
        """Change the state. Raises IllegalStateError if the transition is not allowed."""
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'transaction %r cannot go from %s to %s'
                % (self.transactional_id, self.state.value, state.value)
            )
        self.state = state
        self.changed_ms = now_ms

    # ------------------------------------------------------------ producer ids and epochs

    def is_known(self, producer_id: int, producer_epoch: int) -> bool:
        """Return True if a producer that requests its next epoch may own the id (KIP-360)."""
        if self.producer_epoch == NO_EPOCH or producer_id == self.producer_id:
            return True
        return producer_id == self.last_producer_id and producer_epoch >= LAST_EPOCH

    def take_over(
        self, expected_epoch: Optional[int], timeout_ms: int, fresh_id: int, now_ms: int
    ) -> bool:
        """Assign the id to a producer with the next epoch; return False if its epoch is stale.

        Arguments: expected_epoch: the current epoch of the producer, None if it sends none;
            fresh_id: the next producer id if the epochs of this one are exhausted.
        """
        if self.is_exhausted and expected_epoch in (None, self.producer_epoch):
            self.last_producer_id = self.producer_id
            self.last_epoch = NO_EPOCH if expected_epoch is None else self.producer_epoch
            self.producer_id, self.producer_epoch = fresh_id, 0
        elif expected_epoch is None or expected_epoch == self.producer_epoch:
            self.last_epoch = NO_EPOCH if expected_epoch is None else self.producer_epoch
            self.producer_epoch += 1
        elif self.producer_epoch == NO_EPOCH:
            self.producer_epoch = 0
        elif expected_epoch != self.last_epoch:
            return False
        self.timeout_ms = timeout_ms
        self.started_ms = -1
        self.move_to(S.EMPTY, now_ms)
        return True

    # ------------------------------------------------------------ a transaction

    def begin(self, now_ms: int) -> None:
        """Record an addition, the first of which begins a transaction."""
        if self.state is not S.ONGOING:
            self.started_ms = now_ms
        self.move_to(S.ONGOING, now_ms)

    def prepare(self, commit: bool, now_ms: int, raised: bool, keep_last: bool) -> None:
        """Decide the end; markers have the epoch that is valid from now on.

        Arguments: raised: whether the epoch is increased, which fences the producer; with KIP-890
            it gets the new one; keep_last: whether requests with the previous epoch are recognised.
        """
        self.move_to(S.PREPARE_COMMIT if commit else S.PREPARE_ABORT, now_ms)
        if raised:
            self.last_epoch = self.producer_epoch if keep_last else NO_EPOCH
            self.producer_epoch += 1

    def complete(self, now_ms: int) -> None:
        """Record that all markers are written."""
        commit = self.state is S.PREPARE_COMMIT
        self.move_to(S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT, now_ms)
        self.partitions.clear()
        self.groups.clear()
        if self.next_producer_id != NO_PRODUCER_ID:
            self.last_producer_id = self.producer_id
            self.producer_id, self.producer_epoch = self.next_producer_id, 0
            self.next_producer_id = NO_PRODUCER_ID

    @property
    def next_identity(self) -> Tuple[int, int]:
        """The producer id and epoch with which the producer continues (KIP-890)."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def is_repeated(self, producer_id: int, producer_epoch: int) -> bool:
        """Return True if an EndTxn is a retry, with the epoch before its response (KIP-890)."""
        if producer_id == self.producer_id and producer_epoch + 1 == self.producer_epoch:
            return True
        return (
            producer_id == self.last_producer_id
            and producer_epoch == LAST_EPOCH
            and self.producer_epoch == 0
        )
