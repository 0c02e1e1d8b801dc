"""One transactional id as its coordinator knows it: states, epochs, what the transaction holds.

Owns the states, the one table of what may follow what, and the rules for epochs of KIP-98, KIP-360,
KIP-588 and KIP-890. Does not own: who may ask (transactions.py), requests (handlers), markers in
logs (appending.py).
"""

from __future__ import annotations

import enum
from typing import Optional, Set, Tuple

from kafka.errors import IllegalStateError

NO_EPOCH = -1
NO_PRODUCER_ID = -1
#: The last epoch that a producer gets; the one above is left for fencing it.
LAST_EPOCH = 2**15 - 2


class TransactionState(enum.Enum):
    """What a transactional id is in, by the names that brokers tell."""

    EMPTY = 'Empty'
    ONGOING = 'Ongoing'
    PREPARE_COMMIT = 'PrepareCommit'
    PREPARE_ABORT = 'PrepareAbort'
    COMPLETE_COMMIT = 'CompleteCommit'
    COMPLETE_ABORT = 'CompleteAbort'
    DEAD = 'Dead'


S = TransactionState

#: state -> what may come next.
TRANSITIONS = {
    S.EMPTY: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.ONGOING: (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT),
    S.PREPARE_COMMIT: (S.COMPLETE_COMMIT,),
    S.PREPARE_ABORT: (S.COMPLETE_ABORT,),
    # With KIP-890 a transaction without partitions may be aborted; that only raises the epoch.
    S.COMPLETE_COMMIT: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.COMPLETE_ABORT: (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD),
    S.DEAD: (),
}

#: Markers are being written.
PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
#: Nothing is open, and a transaction may begin.
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


class Transaction:
    """One transactional id.

    Attributes: producer_id, producer_epoch: of the producer that owns it now; last_producer_id,
    last_epoch: those before, for answering a repeated request, -1 for none; next_producer_id: takes
    over when the markers are written, -1 for none; partitions, groups: what it wrote to;
    started_ms: when the first of them came, -1 if there was none yet; changed_ms: when anything
    happened last; is_stuck: whether a change began that never ends (see refuses_version_2()).
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
        """Whether the epoch cannot be raised again for a producer."""
        return self.producer_epoch >= LAST_EPOCH

    def move_to(self, state: TransactionState, now_ms: int) -> None:
        """Change the state. Raises IllegalStateError for one that cannot follow."""
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'transaction %r cannot go from %s to %s'
                % (self.transactional_id, self.state.value, state.value)
            )
        self.state = state
        self.changed_ms = now_ms

    # ------------------------------------------------------------ who owns it

    def is_known(self, producer_id: int, producer_epoch: int) -> bool:
        """Tell whether a producer that wants its next epoch may have owned this (KIP-360)."""
        if self.producer_epoch == NO_EPOCH or producer_id == self.producer_id:
            return True
        return producer_id == self.last_producer_id and producer_epoch >= LAST_EPOCH

    def take_over(
        self, expected_epoch: Optional[int], timeout_ms: int, fresh_id: int, now_ms: int
    ) -> bool:
        """Give it to a producer with the next epoch; return whether that was right.

        Arguments: expected_epoch: the one that the producer has, None if it does not say;
            fresh_id: a producer id to begin with where the epochs of this one are used up.
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
        """Note that something was added: the first time, a transaction begins."""
        if self.state is not S.ONGOING:
            self.started_ms = now_ms
        self.move_to(S.ONGOING, now_ms)

    def prepare(self, commit: bool, now_ms: int, raised: bool, keep_last: bool) -> None:
        """Decide the end; markers carry the epoch that holds from now on.

        Arguments: raised: whether the epoch goes up, which fences the producer or, with KIP-890, is
            told to it; keep_last: whether a producer with the epoch before is still listened to.
        """
        self.move_to(S.PREPARE_COMMIT if commit else S.PREPARE_ABORT, now_ms)
        if raised:
            self.last_epoch = self.producer_epoch if keep_last else NO_EPOCH
            self.producer_epoch += 1

    def complete(self, now_ms: int) -> None:
        """Note that all markers are written."""
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
        """The producer id and epoch that the producer goes on with (KIP-890)."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def is_repeated(self, producer_id: int, producer_epoch: int) -> bool:
        """Tell whether an EndTxn is from before its answer, which raised the epoch (KIP-890)."""
        if producer_id == self.producer_id and producer_epoch + 1 == self.producer_epoch:
            return True
        return (
            producer_id == self.last_producer_id
            and producer_epoch == LAST_EPOCH
            and self.producer_epoch == 0
        )
