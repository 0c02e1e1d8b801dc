"""The transaction coordinator of an embedded cluster: producer ids and transactions.

One for all nodes together, called by handlers/transactions.py, which checks the node, by
transactional_writes.py and by handlers/transactional_offsets.py. One transactional id is in
transaction.py. Follows KIP-98, KIP-360, KIP-588 and KIP-890; error codes are those of the newest
versions, which :func:`fenced_code` translates.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Dict, Iterable, List, NamedTuple, Optional, Tuple

from kafka.testing import errors
from kafka.testing.logs.appending import append_marker
from kafka.testing.logs.segments import StorageError
from kafka.testing.settings.configs import OVERDUE_INTERVAL, broker_config
from kafka.testing.state import NO_LEADER
from kafka.testing.transactions.transaction import (
    IDLE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    S,
    Transaction,
)

if TYPE_CHECKING:
    from kafka.testing.broker import Broker
    from kafka.testing.state import ClusterState
    from kafka.testing.waiting import Waiting

#: The interval of retries of markers for partitions without a leader.
_RETRY_SECONDS = 0.1
#: How long an unused transactional id is kept.
_EXPIRES_MS = 7 * 24 * 3600 * 1000
_MOST_IDS = 100_000
#: The feature whose level 2 enables transactions version 2 (KIP-890).
_FEATURE = 'transaction.version'

TopicPartition = Tuple[str, int]


class Identity(NamedTuple):
    """The producer id and epoch of a response, or an error."""

    error_code: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class Transactions:
    """All transactional ids of a cluster.

    Arguments: state: of the cluster; waiting: notified of markers and committed offsets.
    """

    def __init__(self, state: ClusterState, waiting: Waiting) -> None:
        self._state = state
        self._waiting = waiting
        self._by_id: Dict[str, Transaction] = {}
        self._next_producer_id = 0
        self._is_watching = False

    def __repr__(self) -> str:
        return '<Transactions, %d ids>' % len(self._by_id)

    def get(self, transactional_id: str) -> Optional[Transaction]:
        """Return the state of a transactional id, None if it is unknown."""
        found = self._by_id.get(transactional_id)
        if found and found.state in IDLE and found.changed_ms + _EXPIRES_MS < self._now_ms():
            found.move_to(S.DEAD, self._now_ms())
            del self._by_id[transactional_id]
            return None
        return found

    @property
    def all(self) -> List[Transaction]:
        """All known transactional ids, sorted by id."""
        return [self._by_id[each] for each in sorted(self._by_id)]

    def new_producer_id(self) -> int:
        """Return an unused producer id."""
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def continue_producer_ids(self, first: int) -> None:
        """Assign no producer id below ``first``, since logs on disk may contain those."""
        self._next_producer_id = max(self._next_producer_id, first)

    @property
    def next_producer_id(self) -> int:
        """The producer id that is assigned next."""
        return self._next_producer_id

    def take_back(self, found: Transaction) -> None:
        """Restore a transactional id that was read from disk, and continue its transaction."""
        self._by_id[found.transactional_id] = found
        if found.state in IDLE and found.partitions:
            found.begin(self._now_ms())  # it was written to before the journal was
        if found.state in PREPARED:
            self._state.timers.later(0.0, partial(self._carry_out, found))
        elif found.state is S.ONGOING:
            self._watch()

    # ------------------------------------------------------------ InitProducerId

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Optional[Tuple[int, int]],
    ) -> Identity:
        """Assign a producer id with a new epoch to a transactional id; abort its open transaction.

        Arguments: expected: the producer id and epoch that the producer has, None if it has none.
        """
        if not transactional_id:
            return Identity(errors.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._setting('transaction.max.timeout.ms'):
            return Identity(errors.INVALID_TRANSACTION_TIMEOUT)
        found = self.get(transactional_id)
        if found is None:
            if len(self._by_id) >= _MOST_IDS and not self._forget_oldest():
                return Identity(errors.COORDINATOR_NOT_AVAILABLE)
            found = Transaction(transactional_id, self.new_producer_id(), self._now_ms())
            self._by_id[transactional_id] = found
        if expected is not None and not found.is_known(*expected):
            return Identity(errors.PRODUCER_FENCED)
        if found.state is S.ONGOING and not found.is_stuck:
            # When the producer retries, its epoch is above the one that fences others.
            self._end(found, commit=False, raised=True, keep_last=False)
            return Identity(errors.CONCURRENT_TRANSACTIONS)
        if found.state in PREPARED or found.is_stuck:
            return Identity(errors.CONCURRENT_TRANSACTIONS)
        fresh = self.new_producer_id() if found.is_exhausted else NO_PRODUCER_ID
        epoch = None if expected is None else expected[1]
        if not found.take_over(epoch, timeout_ms, fresh, self._now_ms()):
            return Identity(errors.PRODUCER_FENCED)
        return Identity(errors.NONE, found.producer_id, found.producer_epoch)

    def _forget_oldest(self) -> bool:
        """Make room for another id; return False if none is idle."""
        idle = [each for each in self._by_id.values() if each.state in IDLE]
        if not idle:
            return False
        del self._by_id[min(idle, key=lambda each: each.changed_ms).transactional_id]
        return True

    # ------------------------------------------------------------ contents of a transaction

    def check(self, transactional_id: str, producer_id: int, producer_epoch: int) -> int:
        """Return why a producer may not add to a transaction, NONE if it may."""
        if not transactional_id:
            return errors.INVALID_REQUEST
        found = self.get(transactional_id)
        if found is None or found.producer_id != producer_id:
            return errors.INVALID_PRODUCER_ID_MAPPING
        if found.producer_epoch != producer_epoch:
            return errors.PRODUCER_FENCED
        is_busy = found.state in PREPARED or found.is_stuck
        return errors.CONCURRENT_TRANSACTIONS if is_busy else errors.NONE

    def refuses_version_2(self, found: Transaction) -> bool:
        """Return True if transactions version 2 is no longer enabled, and block the transaction.

        As in 4.4.0: the change has begun by then and never ends, so that every later request gets
        CONCURRENT_TRANSACTIONS.
        """
        if self._state.features.get(_FEATURE, 0) >= 2:
            return False
        found.is_stuck = True
        return True

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition] = (),
        groups: Iterable[str] = (),
    ) -> int:
        """Add partitions and groups to a transaction; return NONE or an error code."""
        error = self.check(transactional_id, producer_id, producer_epoch)
        if error != errors.NONE:
            return error
        found = self._by_id[transactional_id]
        is_first = found.state is not S.ONGOING
        found.begin(self._now_ms())
        found.partitions.update(partitions)
        found.groups.update(groups)
        if is_first:
            self._watch()
        return errors.NONE

    def has_partition(self, transactional_id: str, topic: str, partition: int) -> bool:
        """Return True if a partition is in the open transaction of an id."""
        found = self.get(transactional_id)
        return found is not None and (topic, partition) in found.partitions

    def has_group(self, transactional_id: str, group: str) -> bool:
        """Return True if the open transaction of an id may include the offsets of a group.

        As in brokers: a transaction contains the partition of __consumer_offsets of the group.
        """
        found = self.get(transactional_id)
        wanted = self.offsets_partition(group)
        return found is not None and wanted in map(self.offsets_partition, found.groups)

    def offsets_partition(self, group: str) -> int:
        """Return the partition of __consumer_offsets for a group."""
        return _java_hash(group) % self._setting('offsets.topic.num.partitions')

    def check_write(
        self,
        transactional_id: Optional[str],
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        produce_version: int,
    ) -> int:
        """Return why a transactional batch may not be appended, NONE if it may (KIP-890).

        Leaders call this before a producer's first batch in a partition. From Produce v12 on the
        partition is added; below, from 3.6 on, it must have been added before.
        """
        if not transactional_id:
            return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        place = (topic, partition)
        if produce_version >= 12:
            error = self.check(transactional_id, producer_id, producer_epoch)
            is_new = not self.has_partition(transactional_id, topic, partition)
            if error == errors.NONE and is_new:
                if self.refuses_version_2(self._by_id[transactional_id]):
                    return errors.UNSUPPORTED_VERSION
                self.add(transactional_id, producer_id, producer_epoch, [place])
            return fenced_code(error, newest=False)
        if self._state.release.version < (3, 6):
            return errors.NONE
        error = self.check(transactional_id, producer_id, producer_epoch)
        if error == errors.CONCURRENT_TRANSACTIONS:
            return errors.NOT_ENOUGH_REPLICAS  # the error at which old clients retry
        if error != errors.NONE:
            return fenced_code(error, newest=False)
        if place in self._by_id[transactional_id].partitions:
            return errors.NONE
        abortable = produce_version >= 11
        return errors.TRANSACTION_ABORTABLE if abortable else errors.INVALID_TXN_STATE

    # ------------------------------------------------------------ end of a transaction

    def end_without_raising(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool
    ) -> Identity:
        """Commit or abort as EndTxn does up to v4: the epoch is not increased."""
        if not transactional_id:
            return Identity(errors.INVALID_REQUEST)
        found = self.get(transactional_id)
        if found is None or found.producer_id != producer_id:
            return Identity(errors.INVALID_PRODUCER_ID_MAPPING)
        is_later = producer_epoch > found.producer_epoch and self._state.release.version < (2, 5)
        if found.producer_epoch != producer_epoch and not is_later:
            return Identity(errors.PRODUCER_FENCED)
        if found.is_stuck:
            return Identity(errors.CONCURRENT_TRANSACTIONS)
        if found.state is S.ONGOING and is_later:
            # Releases before 2.5 decide the end before they check the epoch, and write no markers:
            # the transaction never ends.
            found.prepare(commit, self._now_ms(), raised=False, keep_last=True)
            return Identity(errors.PRODUCER_FENCED)
        if found.state is S.ONGOING:
            self._end(found, commit, raised=False, keep_last=True)
            return Identity(errors.NONE, producer_id, producer_epoch)
        wanted = (
            (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)
            if commit
            else (
                S.PREPARE_ABORT,
                S.COMPLETE_ABORT,
            )
        )
        if found.state not in wanted:
            return Identity(errors.INVALID_TXN_STATE)
        if found.state in PREPARED:
            return Identity(errors.CONCURRENT_TRANSACTIONS)
        return Identity(errors.NONE, producer_id, producer_epoch)

    def end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool
    ) -> Identity:
        """Commit or abort as EndTxn does from v5 on: the epoch is increased (KIP-890)."""
        if not transactional_id:
            return Identity(errors.INVALID_REQUEST)
        found = self.get(transactional_id)
        if found is None:
            return Identity(errors.INVALID_PRODUCER_ID_MAPPING)
        is_repeated = found.is_repeated(producer_id, producer_epoch) and found.state is not S.EMPTY
        is_current = (producer_id, producer_epoch) == (found.producer_id, found.producer_epoch)
        if producer_id != found.producer_id and not is_repeated:
            return Identity(errors.INVALID_PRODUCER_ID_MAPPING)
        if found.is_stuck:
            return Identity(errors.CONCURRENT_TRANSACTIONS)
        if found.state in PREPARED:
            if not is_repeated:
                return Identity(errors.PRODUCER_FENCED)
            is_same = commit == (found.state is S.PREPARE_COMMIT)
            return Identity(errors.CONCURRENT_TRANSACTIONS if is_same else errors.INVALID_TXN_STATE)
        if found.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT) and is_repeated:
            if commit != (found.state is S.COMPLETE_COMMIT):
                return Identity(errors.INVALID_TXN_STATE)
            return Identity(errors.NONE, *found.next_identity)
        if not is_current:
            return Identity(errors.PRODUCER_FENCED)
        if found.state is not S.ONGOING and commit:
            return Identity(errors.INVALID_TXN_STATE)
        if self.refuses_version_2(found):
            return Identity(errors.UNSUPPORTED_VERSION)
        self._end(found, commit, raised=True, keep_last=True)
        return Identity(errors.NONE, *found.next_identity)

    def _end(self, found: Transaction, commit: bool, raised: bool, keep_last: bool) -> None:
        """Decide the end of a transaction, and schedule its markers."""
        if raised and keep_last and found.is_exhausted:
            found.next_producer_id = self.new_producer_id()
        found.prepare(commit, self._now_ms(), raised, keep_last)
        self._state.timers.later(0.0, partial(self._carry_out, found))

    def _carry_out(self, found: Transaction) -> None:
        """Write the markers once the decision is on disk.

        Otherwise the process could be killed after the first marker, and at the next start the
        transaction would be open again and be aborted when it times out.
        """
        storage = self._state.storage
        if storage is not None:
            try:
                storage.decide()
            except StorageError:
                self._state.timers.later(_RETRY_SECONDS, partial(self._carry_out, found))
                return
        self._write_markers(found)
        if storage is not None:
            storage.note_groups()

    def _write_markers(self, found: Transaction) -> None:
        """Write the missing markers; those of partitions without a leader are tried again."""
        commit = found.state is S.PREPARE_COMMIT
        for name, index in sorted(found.partitions):
            topic = self._state.topics.get(name)
            partition = topic.partition(index) if topic else None
            if partition is not None:
                if partition.leader == NO_LEADER:
                    continue
                error = append_marker(
                    self._state,
                    self._waiting,
                    partition,
                    found.producer_id,
                    found.producer_epoch,
                    commit,
                )
                if error == errors.KAFKA_STORAGE_ERROR:
                    continue
            found.partitions.discard((name, index))
        if found.partitions:
            self._state.timers.later(_RETRY_SECONDS, partial(self._carry_out, found))
            return
        if found.groups:
            for group in self._state.offsets.end_pending(found.producer_id, commit):
                self._waiting.touch(('group', group))
        found.complete(self._now_ms())

    # ------------------------------------------------------------ expiration

    def _watch(self) -> None:
        """Schedule the check for expired transactions, which repeats while any is open."""
        if self._is_watching:
            return
        self._is_watching = True
        period = max(1, self._setting(OVERDUE_INTERVAL)) / 1000
        now = self._state.timers.clock.monotonic()
        self._state.timers.later(period * (now // period + 1) - now, self._abort_late)

    def _abort_late(self) -> None:
        self._is_watching = False
        now_ms = self._now_ms()
        for each in self.all:
            if each.state is S.ONGOING and each.started_ms + each.timeout_ms < now_ms:
                # Its producer may continue with its epoch (KIP-588).
                self._end(each, commit=False, raised=True, keep_last=True)
        if any(each.state is S.ONGOING for each in self._by_id.values()):
            self._watch()

    def _setting(self, name: str) -> int:
        return int(broker_config(self._state, self._state.controller_id, name))

    def _now_ms(self) -> int:
        return self._state.timers.clock.wall_ms()


def fenced_code(code: int, newest: bool) -> int:
    """Return a code as in a version: PRODUCER_FENCED came with 2.7 (KIP-588)."""
    if code == errors.PRODUCER_FENCED and not newest:
        return errors.INVALID_PRODUCER_EPOCH
    return code


def _java_hash(text: str) -> int:
    """Return the absolute value of ``String.hashCode()``, by which brokers assign groups."""
    units = text.encode('utf-16-be')
    found = 0
    for high, low in zip(units[::2], units[1::2]):
        found = (31 * found + (high << 8) + low) & 0xFFFFFFFF
    return found & 0x7FFFFFFF if found < 2**31 else (2**32 - found) & 0x7FFFFFFF


def transactions_of(broker: Broker) -> Transactions:
    """Return the transactions of a broker's cluster, made on the first call."""
    state = broker.state
    if state.transactions is None:
        state.transactions = Transactions(state, broker.waiting)
    found: Transactions = state.transactions
    return found
