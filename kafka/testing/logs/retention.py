"""Segment rolling and retention: when logs begin a new segment, and when old ones are deleted.

Follows ``segment.bytes``, ``segment.ms``, ``retention.ms``, ``retention.bytes`` and
``cleanup.policy``. As in brokers the check runs every ``log.retention.check.interval.ms``, and for
compaction every ``log.cleaner.backoff.ms``, but timers are set only if something may be due. The
compaction itself is in compaction.py.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Callable, Optional

from kafka.testing.logs.compaction import clean, compact, is_dirty
from kafka.testing.logs.log_settings import LogSettings, log_settings
from kafka.testing.logs.partition_log import Batch, PartitionLog, Segment
from kafka.testing.settings.configs import broker_config, broker_keys
from kafka.testing.timers import Timer

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState, Partition
    from kafka.testing.waiting import Waiting

log = logging.getLogger(__name__)

_CHECK = 'log.retention.check.interval.ms'
_BACKOFF = 'log.cleaner.backoff.ms'


def roll_if_due(log: PartitionLog, batch: Batch, settings: LogSettings, now_ms: int) -> None:
    """Begin a new segment if a batch does not fit into the active one. Raises OSError."""
    active = log.active
    size = log.active_bytes
    if not size:
        active.opened_ms = now_ms
        return
    if batch.max_timestamp >= 0 and active.first_timestamp >= 0:
        age_ms = batch.max_timestamp - active.first_timestamp
    else:
        age_ms = now_ms - active.opened_ms
    if size + len(batch.data) > settings.segment_bytes or age_ms > settings.segment_ms:
        log.roll(now_ms)


def delete_old(log: PartitionLog, settings: LogSettings, now_ms: int) -> bool:
    """Delete the segments that exceed the retention; return True if any was deleted.

    Raises OSError.
    """
    if not settings.is_deleted:
        return False
    before = log.start_offset
    if settings.retention_ms >= 0:
        gone = 0
        for segment in log.segments:
            if now_ms - youngest_ms(log, segment) <= settings.retention_ms:
                break
            gone += 1
        _delete(log, gone, now_ms)
    if settings.retention_bytes >= 0:
        gone, excess = 0, log.size_bytes - settings.retention_bytes
        for position in range(len(log.segments)):
            excess -= log.segment_bytes(position)
            if excess < 0:
                break
            gone += 1
        _delete(log, gone, now_ms)
    return log.start_offset != before


def youngest_ms(log: PartitionLog, segment: Segment) -> int:
    """Return the largest timestamp in a segment; the time of its last write if there is none."""
    if segment.max_timestamp >= 0:
        return segment.max_timestamp
    return log.modified_ms if segment is log.active else segment.modified_ms


def _delete(log: PartitionLog, count: int, now_ms: int) -> None:
    """Delete the oldest segments; before the active one is deleted, a new one begins."""
    if count == len(log.segments):
        try:
            log.roll(now_ms)
        except OSError:  # the disk may be full: deleting the others makes room
            if count == 1:
                raise
        count = len(log.segments) - 1
    if count:
        log.delete_before(log.segments[count].base_offset)


class Upkeep:
    """Runs retention and compaction of a cluster's logs when they are due."""

    def __init__(self, state: ClusterState, waiting: Waiting) -> None:
        self._state = state
        self._waiting = waiting
        self._began = state.timers.clock.monotonic()
        self._deletion: Optional[Timer] = None
        self._deletion_due = 0.0  # when retention is due; it runs at the next interval
        self._cleaning: Optional[Timer] = None

    def note(self, settings: LogSettings) -> None:
        """Schedule the checks after a write to a log with these settings."""
        if settings.is_deleted and (settings.retention_ms >= 0 or settings.retention_bytes >= 0):
            wait_ms = 0 if settings.retention_bytes >= 0 else settings.retention_ms
            self._plan_deletion(wait_ms)
        if settings.is_compacted and self._cleaning is None:
            self._cleaning = self._at_interval(_BACKOFF, 0, self._clean)

    def _plan_deletion(self, wait_ms: int) -> None:
        """Schedule retention at the first interval after ``wait_ms``."""
        due = self._state.timers.clock.monotonic() + wait_ms / 1000
        if self._deletion is not None:
            if self._deletion_due <= due:
                return
            self._deletion.cancel()
        self._deletion_due = due
        self._deletion = self._at_interval(_CHECK, wait_ms, self._delete)

    def _at_interval(self, name: str, wait_ms: int, call: Callable[[], None]) -> Timer:
        timers = self._state.timers
        seconds = _interval_ms(self._state, name) / 1000
        passed = timers.clock.monotonic() - self._began + wait_ms / 1000
        return timers.at(self._began + seconds * (math.floor(passed / seconds) + 1), call)

    def _delete(self) -> None:
        self._deletion = None
        delete_all(self._state, self._waiting)
        now_ms = self._state.timers.clock.wall_ms()
        waits = [
            settings.retention_ms + youngest_ms(partition.log, partition.log.segments[0]) - now_ms
            for partition in self._state.partitions()
            for settings in [log_settings(self._state, partition.topic)]
            if settings.is_deleted and settings.retention_ms >= 0 and partition.log.size_bytes
        ]
        if waits:
            self._plan_deletion(max(0, min(waits)))

    def _clean(self) -> None:
        self._cleaning = None
        state = self._state
        for partition in list(state.partitions()):
            settings = log_settings(state, partition.topic)
            if settings.is_compacted and is_dirty(partition.log, settings):
                clean_one(state, self._waiting, partition)


def upkeep_of(state: ClusterState, waiting: Waiting) -> Upkeep:
    """Return the Upkeep of a cluster, made on the first call."""
    if state.upkeep is None:
        state.upkeep = Upkeep(state, waiting)
    found: Upkeep = state.upkeep
    return found


def delete_all(state: ClusterState, waiting: Waiting) -> None:
    """Delete the segments of all logs that exceed the retention."""
    now_ms = state.timers.clock.wall_ms()
    for partition in list(state.partitions()):
        settings = log_settings(state, partition.topic)
        try:
            if delete_old(partition.log, settings, now_ms):
                waiting.touch(('partition', partition.topic, partition.index))
        except OSError as error:
            _complain(partition, error)


def clean_one(state: ClusterState, waiting: Waiting, partition: Partition) -> None:
    """Compact the closed segments of a log."""
    settings, now_ms = log_settings(state, partition.topic), state.timers.clock.wall_ms()
    try:
        clean(partition.log, partition.producers, settings, now_ms, state.release.version)
    except OSError as error:
        _complain(partition, error)
    waiting.touch(('partition', partition.topic, partition.index))


def compact_now(state: ClusterState, waiting: Waiting, partition: Partition) -> None:
    """Compact a log up to its last stable offset. Raises OSError."""
    found, now_ms = partition.log, state.timers.clock.wall_ms()
    found.roll(now_ms)
    compact(
        found,
        partition.producers,
        found.last_stable_offset,
        log_settings(state, partition.topic).delete_retention_ms,
        now_ms,
        state.release.version,
    )
    waiting.touch(('partition', partition.topic, partition.index))


def _complain(partition: Partition, error: OSError) -> None:
    log.error('topic=%s partition=%d: %s', partition.topic, partition.index, error)


def _interval_ms(state: ClusterState, name: str) -> int:
    if name not in broker_keys(state.release.name):
        return 15000
    return max(1, int(broker_config(state, state.controller_id, name)))
