"""The offsets that groups have committed, those in open transactions, and those in ZooKeeper.

Called by handlers/offsets.py and handlers/transactional_offsets.py; the group registry
(registry.py) decides which commits are allowed. Follows KIP-98 and KIP-447 (offsets in
transactions), KIP-211 (expiration), and KAFKA-2000 (offsets are deleted with their topic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

NO_OFFSET = -1
NO_EPOCH = -1

#: The estimated bytes of one offset without its strings.
OFFSET_BYTES = 300

Key = Tuple[str, int]


class StoredOffset(NamedTuple):
    """A committed offset.

    ``expires_ms`` is -1 unless the commit named a retention time; ``order`` increases with each
    commit; ``topic_id`` is the id of the topic when the offset was committed, None if the topic
    did not exist; ``size`` is the estimate of the bytes that the offset takes.
    """

    offset: int
    leader_epoch: int
    metadata: Optional[str]
    committed_ms: int
    expires_ms: int
    order: int
    topic_id: Optional[bytes]
    size: int


class StoredOffsets:
    """The offsets of all groups. Arguments: state: the state of the cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._groups: Dict[str, Dict[Key, StoredOffset]] = {}
        self._pending: Dict[int, Dict[str, Dict[Key, StoredOffset]]] = {}  # by producer id
        self._zookeeper: Dict[Tuple[str, str, int], int] = {}
        #: Groups that have changed since the last write to disk; None if nothing is written.
        self.touched: Optional[Set[str]] = None
        self._order = 0
        self._used = 0

    def __repr__(self) -> str:
        return '<StoredOffsets of %d groups, %d bytes>' % (len(self._groups), self._used)

    @property
    def used(self) -> int:
        """The estimate of the bytes that all offsets take."""
        return self._used

    def has_room(self, group: str, topic: str, partition: int, metadata: Optional[str]) -> bool:
        """Return True if the memory limit allows a commit; what it replaces is deducted."""
        stored = self._groups.get(group, {}).get((topic, partition))
        before = 0 if stored is None else stored.size
        return self._state.kept.has_room(before, _size(group, topic, metadata))

    def has_room_for_pending(self, group: str, topic: str, metadata: Optional[str]) -> bool:
        """Return True if the memory limit allows a pending offset besides the committed one."""
        return self._state.kept.has_room(0, _size(group, topic, metadata))

    def has_room_in_zookeeper(self, group: str, topic: str, partition: int) -> bool:
        """Return True if the memory limit allows an offset in ZooKeeper."""
        is_there = (group, topic, partition) in self._zookeeper
        return is_there or self._state.kept.has_room(0, _size(group, topic, None))

    @property
    def groups(self) -> List[str]:
        """The ids of the groups that have offsets."""
        return list(self._groups)

    # ------------------------------------------------------------ offsets of groups

    def commit(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        leader_epoch: int,
        metadata: Optional[str],
        now_ms: int,
        expires_ms: int = -1,
    ) -> None:
        """Store an offset; epoch -1 for no epoch, expiry -1 for the retention of the release."""
        stored = self._made(group, topic, offset, leader_epoch, metadata, now_ms, expires_ms)
        self._put(group, (topic, partition), stored)

    def fetch(self, group: str, topic: str, partition: int) -> Optional[StoredOffset]:
        """Return an offset, None if it does not exist."""
        stored = self._groups.get(group, {}).get((topic, partition))
        if stored is None or self._is_of_deleted(topic, stored):
            return None
        return stored

    def has(self, group: str) -> bool:
        """Return True if a group has offsets."""
        return group in self._groups

    def fetch_all(self, group: str) -> Dict[Key, StoredOffset]:
        """Return all offsets of a group, by topic and partition."""
        self._forget_deleted(group)
        return dict(self._groups.get(group, {}))

    def delete(self, group: str, topic: str, partition: int) -> bool:
        """Delete an offset and pending ones of transactions; return True if it was committed."""
        for groups in self._pending.values():
            self._drop(groups.get(group, {}), (topic, partition))
        self._touch(group)
        offsets = self._groups.get(group, {})
        found = self._drop(offsets, (topic, partition))
        if not offsets:
            self._groups.pop(group, None)
        return found

    def delete_group(self, group: str) -> None:
        """Delete all offsets of a group."""
        self._touch(group)
        for groups in self._pending.values():
            for key in list(groups.get(group, {})):
                self._drop(groups[group], key)
            groups.pop(group, None)
        for key in list(self._groups.get(group, {})):
            self._drop(self._groups[group], key)
        self._groups.pop(group, None)

    def expire(self, group: str, now_ms: int, idle_since_ms: Optional[int]) -> None:
        """Delete the expired offsets of a group.

        Arguments: idle_since_ms: since when the group has had no members; None for a group that
            never had members, whose offsets expire by the time of their commit.
        """
        retention = self._state.defaults.offsets_retention_minutes
        if retention is None:
            retention = 10080 if self._state.release.version >= (2, 0) else 1440
        for key, stored in list(self._groups.get(group, {}).items()):
            since = stored.committed_ms if idle_since_ms is None else idle_since_ms
            when = since + retention * 60000 if stored.expires_ms < 0 else stored.expires_ms
            if when <= now_ms:
                self._touch(group)
                self._drop(self._groups[group], key)
        if not self._groups.get(group, True):
            del self._groups[group]

    # ------------------------------------------------------------ in transactions

    def add_pending(
        self,
        producer_id: int,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        leader_epoch: int,
        metadata: Optional[str],
        now_ms: int,
    ) -> None:
        """Keep an offset until its transaction ends."""
        self._touch(group)
        offsets = self._pending.setdefault(producer_id, {}).setdefault(group, {})
        key = (topic, partition)
        self._drop(offsets, key)
        offsets[key] = self._made(group, topic, offset, leader_epoch, metadata, now_ms, -1)
        self._used += offsets[key].size

    def end_pending(self, producer_id: int, commit: bool) -> List[str]:
        """Commit or discard the offsets of a transaction; return the ids of their groups.

        An offset that was committed later without a transaction is not replaced.
        """
        groups = self._pending.pop(producer_id, {})
        for group, offsets in groups.items():
            self._touch(group)
            for key, stored in list(offsets.items()):
                self._drop(offsets, key)
                present = self._groups.get(group, {}).get(key)
                if commit and (present is None or present.order < stored.order):
                    self._put(group, key, stored)
        return list(groups)

    def has_pending(self, group: str, topic: str, partition: int) -> bool:
        """Return True if an open transaction has an offset for a partition."""
        return any((topic, partition) in groups.get(group, ()) for groups in self._pending.values())

    def pending_keys(self, group: str) -> List[Key]:
        """Return the partitions for which open transactions have offsets, sorted."""
        found = {key for groups in self._pending.values() for key in groups.get(group, ())}
        return sorted(found)

    # ------------------------------------------------------------ ZooKeeper

    def commit_to_zookeeper(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Store an offset as OffsetCommit v0 does: without metadata, and it never expires."""
        key = (group, topic, partition)
        self._touch(group)
        if key not in self._zookeeper:
            self._used += _size(group, topic, None)
        self._zookeeper[key] = offset

    def fetch_from_zookeeper(self, group: str, topic: str, partition: int) -> Optional[int]:
        """Return an offset, None if it does not exist."""
        return self._zookeeper.get((group, topic, partition))

    # ------------------------------------------------------------ persistence

    def stored(self, group: str) -> Dict[Key, StoredOffset]:
        """Return all offsets of a group, including those of deleted topics."""
        return dict(self._groups.get(group, {}))

    def pending(self) -> Iterator[Tuple[Tuple[int, str, str, int], StoredOffset]]:
        """Yield the offsets of open transactions with (producer id, group, topic, partition)."""
        for producer_id, groups in self._pending.items():
            for group, offsets in groups.items():
                for key, stored in offsets.items():
                    yield (producer_id, group, *key), stored

    def in_zookeeper(self) -> Iterator[Tuple[Tuple[str, str, int], int]]:
        """Return an iterator over the offsets in ZooKeeper with (group, topic, partition)."""
        return iter(self._zookeeper.items())

    def take_back(
        self,
        group: str,
        key: Key,
        offset: int,
        leader_epoch: int,
        metadata: Optional[str],
        committed_ms: int,
        expires_ms: int,
        topic_id: Optional[bytes],
        *,
        producer_id: Optional[int] = None,
    ) -> None:
        """Store an offset that was read from disk; with a producer id: as a pending one."""
        if producer_id is not None:
            self.add_pending(producer_id, group, *key, offset, leader_epoch, metadata, committed_ms)
            return
        numbers = offset, leader_epoch, metadata, committed_ms, expires_ms
        stored = self._made(group, key[0], *numbers)
        self._put(group, key, stored._replace(topic_id=topic_id))

    def _touch(self, group: str) -> None:
        if self.touched is not None:
            self.touched.add(group)

    # ------------------------------------------------------------

    def _made(
        self,
        group: str,
        topic: str,
        offset: int,
        leader_epoch: int,
        metadata: Optional[str],
        now_ms: int,
        expires_ms: int,
    ) -> StoredOffset:
        self._order += 1
        known = self._state.topics.get(topic)
        topic_id = known.topic_id if known is not None else None
        size = _size(group, topic, metadata)
        return StoredOffset(
            offset, leader_epoch, metadata, now_ms, expires_ms, self._order, topic_id, size
        )

    def _put(self, group: str, key: Key, stored: StoredOffset) -> None:
        self._touch(group)
        offsets = self._groups.setdefault(group, {})
        self._drop(offsets, key)
        offsets[key] = stored
        self._used += stored.size

    def _drop(self, offsets: Dict[Key, StoredOffset], key: Key) -> bool:
        stored = offsets.pop(key, None)
        if stored is None:
            return False
        self._used -= stored.size
        return True

    def _forget_deleted(self, group: str) -> None:
        """Delete the offsets of topics that were deleted or created again."""
        offsets = self._groups.get(group)
        for key, stored in list((offsets or {}).items()):
            if self._is_of_deleted(key[0], stored):
                self._touch(group)
                self._drop(self._groups[group], key)
        if offsets is not None and not offsets:
            del self._groups[group]

    def _is_of_deleted(self, name: str, stored: StoredOffset) -> bool:
        """Return True if the topic of an offset was deleted or created again (0.10.2)."""
        if stored.topic_id is None or self._state.release.version < (0, 10, 2):
            return False
        topic = self._state.topics.get(name)
        return topic is None or topic.topic_id != stored.topic_id


def _size(group: str, topic: str, metadata: Optional[str]) -> int:
    return OFFSET_BYTES + len(group) + len(topic) + len(metadata or '')
