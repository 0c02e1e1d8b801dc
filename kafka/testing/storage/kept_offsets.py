"""Offsets and transactions of a durable cluster, to and from the journal.

Committed offsets, those in open transactions and in ZooKeeper, transactional ids and producer ids.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Set, Tuple

from kafka.testing.groups.stored_offsets import StoredOffset
from kafka.testing.state import ClusterState
from kafka.testing.storage.journal import Journal, Key
from kafka.testing.transactions.coordinator import Transactions
from kafka.testing.transactions.transaction import Transaction, TransactionState
from kafka.testing.waiting import Waiting

Values = Mapping[Key, Any]

#: Attributes of a transactional id that are stored unchanged.
_PLAIN = (
    'producer_id',
    'producer_epoch',
    'last_producer_id',
    'last_epoch',
    'next_producer_id',
    'timeout_ms',
    'started_ms',
    'changed_ms',
)


class KeptOffsets:
    """Writes the offsets of a cluster to the journal when they change."""

    def __init__(self, journal: Journal, state: ClusterState) -> None:
        self._journal = journal
        self._state = state
        self._noted: Dict[str, Dict[Tuple[str, int], StoredOffset]] = {}
        state.offsets.touched = set()

    def note(self) -> None:
        """Put offsets that have changed into the journal."""
        offsets, journal = self._state.offsets, self._journal
        touched, offsets.touched = offsets.touched or set(), set()
        for group in touched:
            before, now = self._noted.pop(group, {}), offsets.stored(group)
            for place in before:
                if place not in now:
                    journal.forget(('offset', group, *place))
            for place, stored in now.items():
                if before.get(place) is not stored:
                    journal.put(('offset', group, *place), _written(stored))
            if now:
                self._noted[group] = now
        if touched:
            pending = {('pending', *place): _written(at) for place, at in offsets.pending()}
            journal.put_all('pending', pending)
            zookeeper = {('zookeeper', *place): at for place, at in offsets.in_zookeeper()}
            journal.put_all('zookeeper', zookeeper)

    def restore(self, values: Values) -> None:
        """Restore offsets from the values of the journal."""
        offsets = self._state.offsets
        for key, value in values.items():
            if key[0] == 'offset':
                offsets.take_back(key[1], (key[2], key[3]), *_read(value))
            elif key[0] == 'pending':
                offsets.take_back(key[2], (key[3], key[4]), *_read(value), producer_id=key[1])
            elif key[0] == 'zookeeper':
                offsets.commit_to_zookeeper(key[1], key[2], key[3], value)
        self._noted = {group: offsets.stored(group) for group in offsets.groups}
        offsets.touched = set()


def _written(stored: StoredOffset) -> List[Any]:
    topic_id = None if stored.topic_id is None else stored.topic_id.hex()
    return [
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.committed_ms,
        stored.expires_ms,
        topic_id,
    ]


def _read(value: List[Any]) -> List[Any]:
    topic_id = value[-1]
    return [*value[:-1], None if topic_id is None else bytes.fromhex(topic_id)]


# ---------------------------------------------------------------- transactions


def note_transactions(journal: Journal, state: ClusterState) -> None:
    """Put all transactional ids and the next free producer id into the journal."""
    found = state.transactions
    if found is None:
        return
    journal.put(('producer_ids',), found.next_producer_id)
    journal.put_all(
        'transaction',
        {('transaction', each.transactional_id): _transaction(each) for each in found.all},
    )


def _transaction(found: Transaction) -> List[Any]:
    return [
        found.state.value,
        [getattr(found, name) for name in _PLAIN],
        sorted(found.partitions),
        sorted(found.groups),
    ]


def restore_transactions(values: Values, state: ClusterState, waiting: Waiting) -> None:
    """Restore transactions from the journal; those that were being ended are ended next.

    A log may have records of a producer whose transaction the journal does not have, if the process
    was killed in between: their partitions are added to it.
    """
    first = values.get(('producer_ids',))
    if first is None:
        return
    made = Transactions(state, waiting)
    made.continue_producer_ids(first)
    state.transactions = made
    written = _open_in_logs(state)
    for key, value in values.items():
        if key[0] == 'transaction':
            name, plain, partitions, groups = value
            found = Transaction(key[1], -1, 0)
            found.state = TransactionState(name)
            for attribute, number in zip(_PLAIN, plain):
                setattr(found, attribute, number)
            found.partitions = {(topic, index) for topic, index in partitions}
            found.groups = set(groups)
            found.partitions |= written.get((found.producer_id, found.producer_epoch), set())
            made.take_back(found)


def _open_in_logs(state: ClusterState) -> Dict[Tuple[int, int], Set[Tuple[str, int]]]:
    """Return the partitions whose logs have open transactions, by producer id and epoch."""
    found: Dict[Tuple[int, int], Set[Tuple[str, int]]] = {}
    for partition in state.partitions():
        for producer_id in partition.log.open_transactions:
            known = partition.producers.get(producer_id)
            if known is not None:
                place = producer_id, known.producer_epoch
                found.setdefault(place, set()).add((partition.topic, partition.index))
    return found
