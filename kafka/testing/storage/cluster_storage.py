"""The storage of a durable embedded cluster: its folder, its journal and the files of its logs.

Called by broker.py and by the drivers, server.py and memory.py. Records are written to their log
when they are appended; all other state is written to the journal by :meth:`Storage.commit`, once
for each turn of the loop and before its responses are sent, with one fsync for each file if
``fsync`` is set. If it fails, these responses are not sent. The values in the journal are encoded
in kept_state.py, kept_offsets.py and kept_groups.py.

The folder belongs to the process that has opened it. A forked child closes its copies of the
descriptors, so that it neither holds the lock after its parent has ended nor writes to the folder.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional, Union
from weakref import WeakSet

from kafka.protocol.api import ApiKey
from kafka.testing.calls import Call
from kafka.testing.logs.segments import OpenFiles, StorageError
from kafka.testing.logs.stored_log import StoredLog
from kafka.testing.releases import RELEASES
from kafka.testing.state import ClusterState, Topic
from kafka.testing.storage.data_folder import DataFolder
from kafka.testing.storage.journal import Journal, Key
from kafka.testing.storage.kept_groups import KeptGroups
from kafka.testing.storage.kept_offsets import KeptOffsets, note_transactions, restore_transactions
from kafka.testing.storage.kept_state import note_state, restore_state
from kafka.testing.waiting import Waiting

log = logging.getLogger(__name__)

#: The limit of the bytes in all logs together that the next start has to read.
UNCHECKED = 4 * 1024 * 1024
#: How many seconds after a failed write to the journal it is tried again.
RETRY_SECONDS = 1.0

#: Requests that change logs only, or nothing.
_QUIET = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_CLUSTER,
    }
)
#: Requests that change groups, offsets and transactions, but no topics or configs.
_OF_GROUPS = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.JOIN_GROUP,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)


class Storage:
    """The files of one cluster.

    Arguments: path: of its folder, created if it does not exist; fsync: whether acknowledged data
    is synced to disk, so that it survives a power failure; state, waiting: those of the cluster.
    """

    def __init__(
        self, path: Union[str, Path], fsync: bool, state: ClusterState, waiting: Waiting
    ) -> None:
        self.folder = DataFolder(Path(path))
        self.fsync = fsync
        self._state = state
        self._waiting = waiting
        self._files = OpenFiles()
        self._journal = Journal(self.folder.path / 'journal', fsync)
        self._offsets: Optional[KeptOffsets] = None
        self._groups: Optional[KeptGroups] = None
        self._written: Dict[StoredLog, None] = {}  # in the order of writes
        self._unchecked: Dict[StoredLog, int] = {}  # bytes that the next start has to read of each
        self._cost = 0  # the sum of these bytes, or more
        self._deleted: Dict[str, List[int]] = {}  # by topic id, the partitions with logs to delete
        self._state_changed = False
        self._groups_changed = False
        self._failed_at: Optional[float] = None
        self._untold: Optional[StorageError] = None  # a failure that commit() has not raised yet
        self._is_abandoned = False

    def __repr__(self) -> str:
        return '<Storage %s>' % self.folder.path

    # ------------------------------------------------------------ start and stop

    def open(self) -> None:
        """Lock the folder and restore the cluster from it.

        Raises: StorageError if another process uses the folder, or if it is damaged or was not
            written by an embedded cluster of this or an earlier release: it is not changed then;
            or if the operating system refuses access.
        """
        try:
            self._open()
        except OSError as error:
            raise StorageError(
                '%s cannot be used: %s. Choose another folder'
                % (self.folder.path, error.strerror or error)
            ) from error

    def _open(self) -> None:
        state, known = self._state, self.folder.open()
        try:
            self._check(known)
            if not known:  # first of all, since it marks the folder as a cluster's
                self.folder.save({'version': state.release.name})
            values = self._journal.open()
            # Ids must not repeat, also if the random generator is seeded.
            starts = values.get(('starts',), 0)
            if starts:
                state.chance.seed('start %d %r' % (starts, state.chance.getrandbits(64)))
                state.cluster_id = values.get(('cluster_id',), state.cluster_id)
            self._restore(values)
            state.storage = self
            self._journal.put(('starts',), starts + 1)
            self._journal.put(('cluster_id',), state.cluster_id)
            self.note_everything()
            self.commit()
            self.folder.save({'version': state.release.name})
            _opened.add(self)
        except BaseException:
            state.storage = None
            self._journal.close()
            self._files.close_all()
            self.folder.close()
            raise

    def _check(self, known: Dict[str, Any]) -> None:
        before, now = known.get('version'), self._state.release.name
        if before in RELEASES and RELEASES.index(before) > RELEASES.index(now):
            raise StorageError(
                '%s was written by release %s, which %s cannot read: start it with version=%r'
                % (self.folder.path, before, now, before)
            )

    def _restore(self, values: Dict[Key, Any]) -> None:
        state = self._state
        restore_state(values, state)
        state.kept.measure_again()
        for topic in state.topics.values():
            self.adopt(topic)
        self._deleted = {key[1]: value for key, value in values.items() if key[0] == 'deleted'}
        # If such a topic exists, the write of its deletion was not complete.
        for topic in state.topics.values():
            if self._deleted.pop(topic.topic_id.hex(), None) is not None:
                self._journal.forget(('deleted', topic.topic_id.hex()))
        restore_transactions(values, state, self._waiting)
        self._offsets = KeptOffsets(self._journal, state)
        self._offsets.restore(values)
        self._groups = KeptGroups(self._journal, state)
        self._groups.restore(values)

    def close(self) -> None:
        """Write everything to disk and unlock the folder. Raises StorageError."""
        if self._is_abandoned:
            self._state.storage = None
            return
        _opened.discard(self)
        try:
            self.note_everything()
            self.commit()
            for topic in self._state.topics.values():
                for partition in topic.partitions:
                    if isinstance(partition.log, StoredLog):
                        partition.log.close()
        except OSError as error:
            raise StorageError('%s: %s' % (self.folder.path, error)) from error
        finally:
            self._state.storage = None
            self._journal.close()
            self._files.close_all()
            self.folder.close()

    def abandon(self) -> None:
        """Close the descriptors in a forked child; the folder belongs to the parent."""
        self._is_abandoned = True
        self._journal.close()
        self._files.abandon()
        self.folder.close()

    # ------------------------------------------------------------ topics

    def adopt(self, topic: Topic) -> None:
        """Store the records of a topic on disk from now on. Raises StorageError, OSError."""
        for partition in topic.partitions:
            if not isinstance(partition.log, StoredLog):
                folder = self.folder.log_folder(topic.topic_id.hex(), partition.index)
                made = StoredLog(folder, self._files, self.fsync, self._note_written)
                made.recover()
                self._unchecked[made] = made.unchecked
                partition.log, partition.producers = made, made.producers
        self.note_everything()

    def discard(self, topic: Topic) -> None:
        """Delete the logs of a topic once its deletion is in the journal."""
        numbers = [partition.index for partition in topic.partitions]
        self._deleted[topic.topic_id.hex()] = numbers
        self._journal.put(('deleted', topic.topic_id.hex()), numbers)
        for partition in topic.partitions:
            if isinstance(partition.log, StoredLog):
                self._written.pop(partition.log, None)
                self._unchecked.pop(partition.log, None)
        self.note_everything()

    def _remove_deleted(self) -> None:
        deleted, self._deleted = self._deleted, {}
        for topic_id, numbers in deleted.items():
            for number in numbers:
                folder = self.folder.log_folder(topic_id, number)
                self._files.close_in(folder)
                shutil.rmtree(str(folder), ignore_errors=True)
            self._journal.forget(('deleted', topic_id))

    # ------------------------------------------------------------ changes

    def note(self, call: Call[Any]) -> None:
        """Record what a handled request may have changed."""
        api_key = call.header.api_key
        if api_key == ApiKey.PRODUCE and call.request.transactional_id is not None:
            self._groups_changed = True  # it may have added partitions to a transaction
        if api_key not in _QUIET:
            self._groups_changed = True
            if api_key not in _OF_GROUPS:
                self._state_changed = True

    def note_everything(self) -> None:
        """Record that any state may have changed."""
        self._state_changed = self._groups_changed = True

    def note_groups(self) -> None:
        """Record that groups, offsets or transactions may have changed."""
        self._groups_changed = True

    def _note_written(self, log: StoredLog, cost: int) -> None:
        self._written[log] = None
        self._unchecked[log] = self._unchecked.get(log, 0) + cost
        self._cost += cost

    def commit(self) -> None:
        """Write to disk what has changed since the last call, before it is acknowledged.

        Raises: StorageError if that fails; nothing may be acknowledged then.
        """
        untold, self._untold = self._untold, None
        if untold is not None:
            raise untold
        self._commit()

    def _commit(self) -> None:
        if not (self._written or self._state_changed or self._groups_changed or self._failed_at):
            return
        if self._is_abandoned:
            raise StorageError(
                '%s belongs to the process that has forked this one' % self.folder.path
            )
        now = self._state.timers.clock.monotonic()
        try:
            is_new = self._note_changes()
            # The logs first: the markers of a transaction must be on disk when its end is.
            self._bring_logs()
            if is_new or self._failed_at is None or now >= self._failed_at:
                self._journal.write()
                self._failed_at = None
                self._remove_deleted()
        except OSError as error:
            self._failed_at = now + RETRY_SECONDS
            log.error('folder=%s: cannot be written: %s', self.folder.path, error)
            raise StorageError('%s: %s' % (self.folder.path, error)) from error

    def decide(self) -> None:
        """Write a decision to disk before it is carried out. Raises StorageError."""
        self.note_groups()
        try:
            self._commit()
        except StorageError as error:
            # Responses of this turn may depend on it: commit() has to raise the error as well.
            self._untold = error
            self.note_groups()
            raise

    def _note_changes(self) -> bool:
        """Put changes into the journal; return True if anything may have changed.

        Pending lines of the journal alone do not count: after a failed write, a client that
        repeats its request changes nothing, and would get a successful response.
        """
        is_new = self._state_changed or self._groups_changed
        if self._state_changed:
            note_state(self._journal, self._state)
        if self._groups_changed and self._groups is not None and self._offsets is not None:
            # The last line may be lost: first the offsets, then the end of the transaction they
            # were in.
            self._offsets.note()
            note_transactions(self._journal, self._state)
            self._groups.note()
        self._state_changed = self._groups_changed = False
        return is_new

    def _bring_logs(self) -> None:
        """Sync logs that were written, and write checkpoints where they are due."""
        while self._written:
            each = next(iter(self._written))
            del self._written[each]  # a log that fails is not tried again
            if self.fsync:
                each.sync()
            if each.needs_checkpoint:
                self._checkpoint(each)
        if self._cost > UNCHECKED:
            self._checkpoint_largest()

    def _checkpoint(self, each: StoredLog) -> None:
        has_new_start, each.has_new_start = each.has_new_start, False
        try:
            each.checkpoint()
        except OSError as error:
            if has_new_start:  # else deleted records would reappear
                raise
            # Otherwise the next start only takes longer.
            log.warning('folder=%s: no checkpoint: %s', each.folder, error)
        self._unchecked.pop(each, None)

    def _checkpoint_largest(self) -> None:
        """Write checkpoints until the next start has little to read."""
        left = sum(self._unchecked.values())
        costs = sorted(self._unchecked.items(), key=lambda item: item[1], reverse=True)
        for each, cost in costs:
            if left > UNCHECKED // 2:
                self._checkpoint(each)
                left -= cost
        self._cost = left


#: The open storages of this process.
_opened: WeakSet[Storage] = WeakSet()


def _abandon_all() -> None:
    for storage in list(_opened):
        storage.abandon()
    _opened.clear()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_abandon_all)
