"""The offsets that groups have committed, those in open transactions, and those in ZooKeeper.

Owns what is stored, how long, and how much. Who may commit is the groups' business (registry.py);
what requests look like is in handlers/offsets.py. Follows KIP-98 and KIP-447 (offsets in
transactions), KIP-211 (when offsets expire), and KAFKA-2000 (they go with their topic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

NO_OFFSET = -1
NO_EPOCH = -1

#: What one offset takes beside its text.
OFFSET_BYTES = 300

Key = Tuple[str, int]


class StoredOffset(NamedTuple):
    """An offset as it was committed.

    ``expires_ms`` is -1 unless the commit named a time; ``order`` tells which of two is later;
    ``topic_id`` is that of the topic at the time, None if there was none; ``size`` is about the
    bytes that it takes.
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
    """All of a cluster. Arguments: state: the cluster's, for its topics."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._groups: Dict[str, Dict[Key, StoredOffset]] = {}
        self._pending: Dict[int, Dict[str, Dict[Key, StoredOffset]]] = {}  # by producer id
        self._zookeeper: Dict[Tuple[str, str, int], int] = {}
        #: Groups of which something has changed; None if nobody wants to know.
        self.touched: Optional[Set[str]] = None
        self._order = 0
        self._used = 0

    def __repr__(self) -> str:
        return '<StoredOffsets of %d groups, %d bytes>' % (len(self._groups), self._used)

    @property
    def used(self) -> int:
        """How many bytes all of them take."""
        return self._used

    def has_room(self, group: str, topic: str, partition: int, metadata: Optional[str]) -> bool:
        """Tell whether an offset may be committed; what takes the place of another one is small."""
        stored = self._groups.get(group, {}).get((topic, partition))
        before = 0 if stored is None else stored.size
        return self._state.kept.has_room(before, _size(group, topic, metadata))

    def has_room_for_pending(self, group: str, topic: str, metadata: Optional[str]) -> bool:
        """Tell whether an offset may be kept beside the one that there is."""
        return self._state.kept.has_room(0, _size(group, topic, metadata))

    def has_room_in_zookeeper(self, group: str, topic: str, partition: int) -> bool:
        """Tell whether an offset may be stored there."""
        is_there = (group, topic, partition) in self._zookeeper
        return is_there or self._state.kept.has_room(0, _size(group, topic, None))

    @property
    def groups(self) -> List[str]:
        """Ids of the groups that have offsets."""
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
        """Store an offset; epoch -1 for none, expiry -1 for what the release does by itself."""
        stored = self._made(group, topic, offset, leader_epoch, metadata, now_ms, expires_ms)
        self._put(group, (topic, partition), stored)

    def fetch(self, group: str, topic: str, partition: int) -> Optional[StoredOffset]:
        """Return an offset, None if there is none."""
        stored = self._groups.get(group, {}).get((topic, partition))
        if stored is None or self._is_of_deleted(topic, stored):
            return None
        return stored

    def has(self, group: str) -> bool:
        """Tell whether a group has offsets."""
        return group in self._groups

    def fetch_all(self, group: str) -> Dict[Key, StoredOffset]:
        """Return all offsets of a group, by topic and partition."""
        self._forget_deleted(group)
        return dict(self._groups.get(group, {}))

    def delete(self, group: str, topic: str, partition: int) -> bool:
        """Forget an offset, also where a transaction wants to store one; return whether it was."""
        for groups in self._pending.values():
            self._drop(groups.get(group, {}), (topic, partition))
        self._touch(group)
        offsets = self._groups.get(group, {})
        found = self._drop(offsets, (topic, partition))
        if not offsets:
            self._groups.pop(group, None)
        return found

    def delete_group(self, group: str) -> None:
        """Forget all offsets of a group."""
        self._touch(group)
        for groups in self._pending.values():
            for key in list(groups.get(group, {})):
                self._drop(groups[group], key)
            groups.pop(group, None)
        for key in list(self._groups.get(group, {})):
            self._drop(self._groups[group], key)
        self._groups.pop(group, None)

    def expire(self, group: str, now_ms: int, idle_since_ms: Optional[int]) -> None:
        """Forget what is too old.

        Arguments: idle_since_ms: since when a group of members has had none, None for a group that
            never had any, whose offsets age by themselves.
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
        """Store the offsets of a transaction, or forget them; return the groups it was about.

        One that was committed without transaction meanwhile stays.
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
        """Tell whether an open transaction may change an offset."""
        return any((topic, partition) in groups.get(group, ()) for groups in self._pending.values())

    def pending_keys(self, group: str) -> List[Key]:
        """Return what open transactions may change, by topic and partition."""
        found = {key for groups in self._pending.values() for key in groups.get(group, ())}
        return sorted(found)

    # ------------------------------------------------------------ ZooKeeper

    def commit_to_zookeeper(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Store an offset as version 0 of OffsetCommit does: without metadata, for ever."""
        key = (group, topic, partition)
        self._touch(group)
        if key not in self._zookeeper:
            self._used += _size(group, topic, None)
        self._zookeeper[key] = offset

    def fetch_from_zookeeper(self, group: str, topic: str, partition: int) -> Optional[int]:
        """Return an offset, None if there is none."""
        return self._zookeeper.get((group, topic, partition))

    # ------------------------------------------------------------ what is written down

    def stored(self, group: str) -> Dict[Key, StoredOffset]:
        """Return what there is of a group, also of topics that are gone."""
        return dict(self._groups.get(group, {}))

    def pending(self) -> Iterator[Tuple[Tuple[int, str, str, int], StoredOffset]]:
        """Yield what open transactions may commit, with producer id, group and place."""
        for producer_id, groups in self._pending.items():
            for group, offsets in groups.items():
                for key, stored in offsets.items():
                    yield (producer_id, group, *key), stored

    def in_zookeeper(self) -> Iterator[Tuple[Tuple[str, str, int], int]]:
        """Yield what is in ZooKeeper, with group and place."""
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
        """Store an offset again that was written down; with a producer id: as one that waits."""
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
        """Forget offsets of topics that are gone or made anew."""
        offsets = self._groups.get(group)
        for key, stored in list((offsets or {}).items()):
            if self._is_of_deleted(key[0], stored):
                self._touch(group)
                self._drop(self._groups[group], key)
        if offsets is not None and not offsets:
            del self._groups[group]

    def _is_of_deleted(self, name: str, stored: StoredOffset) -> bool:
        """Tell whether the topic of an offset is gone, or was made anew (0.10.2)."""
        if stored.topic_id is None or self._state.release.version < (0, 10, 2):
            return False
        topic = self._state.topics.get(name)
        return topic is None or topic.topic_id != stored.topic_id


def _size(group: str, topic: str, metadata: Optional[str]) -> int:
    return OFFSET_BYTES + len(group) + len(topic) + len(metadata or '')
