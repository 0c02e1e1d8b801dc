"""The configs of a topic decoded for its logs: formats, limits, timestamps, compaction.

The effective values are those of :func:`kafka.testing.settings.configs.topic_config`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Tuple

from kafka.codec import CODEC_NAMES
from kafka.testing.settings.configs import BROKER, topic_config
from kafka.testing.state import ClusterState

#: The size of the cache of decoded configs.
_MOST_KNOWN = 1000

_FOREVER = 2**63 - 1

_CODECS = {name: number for number, name in CODEC_NAMES.items()}
_CODECS['uncompressed'] = 0


class LogSettings(NamedTuple):
    """The decoded configs of a topic.

    ``codec`` is None if batches keep that of the producer; ``before_ms`` and ``after_ms`` limit
    how far a timestamp may be before and after the broker's clock.
    """

    magic: int
    max_message_bytes: int
    codec: Optional[int]
    has_append_time: bool
    before_ms: int
    after_ms: int
    is_compacted: bool
    is_deleted: bool
    min_insync_replicas: int
    segment_bytes: int = 1 << 30
    segment_ms: int = _FOREVER
    retention_bytes: int = -1  # of a partition; negative for no limit, as the next one
    retention_ms: int = -1
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    min_cleanable_ratio: float = 0.5


def log_settings(state: ClusterState, topic: str) -> LogSettings:
    """Return the settings of an existing topic."""
    # Needed for each batch: looking them all up takes as long as appending it, therefore cached.
    own, of_brokers = state.topics[topic].configs, state.configs.get((BROKER, ''), {})
    key = tuple(own.items()), tuple(of_brokers.items())
    known: Optional[LogSettings] = state.log_settings.get(key)
    if known is None:
        if len(state.log_settings) >= _MOST_KNOWN:
            state.log_settings.clear()
        known = state.log_settings[key] = _looked_up(state, topic)
    return known


def _looked_up(state: ClusterState, topic: str) -> LogSettings:
    version = state.release.version

    def setting(name: str) -> str:
        return topic_config(state, topic, name)

    if version >= (3, 6):
        before_ms = int(setting('message.timestamp.before.max.ms'))
        after_ms = int(setting('message.timestamp.after.max.ms'))
        if version < (4, 0):  # before KIP-937 the older config is the default of both
            difference_ms = int(setting('message.timestamp.difference.max.ms'))
            before_ms = difference_ms if before_ms == _FOREVER else before_ms
            after_ms = difference_ms if after_ms == _FOREVER else after_ms
    elif version >= (0, 10):
        before_ms = after_ms = int(setting('message.timestamp.difference.max.ms'))
    else:
        before_ms = after_ms = _FOREVER
    policies = setting('cleanup.policy').split(',')
    return LogSettings(
        magic=_magic(state, topic),
        max_message_bytes=int(setting('max.message.bytes')),
        codec=_CODECS.get(setting('compression.type')) if version >= (0, 9) else None,
        has_append_time=(
            version >= (0, 10) and setting('message.timestamp.type') == 'LogAppendTime'
        ),
        before_ms=before_ms,
        after_ms=after_ms,
        is_compacted='compact' in policies,
        is_deleted='delete' in policies,
        min_insync_replicas=int(setting('min.insync.replicas')) if version >= (0, 8, 2) else 1,
        segment_bytes=int(setting('segment.bytes')),
        segment_ms=int(setting('segment.ms')),
        retention_bytes=int(setting('retention.bytes')),
        retention_ms=int(setting('retention.ms')),
        delete_retention_ms=int(setting('delete.retention.ms')),
        min_compaction_lag_ms=int(setting('min.compaction.lag.ms')),
        min_cleanable_ratio=float(setting('min.cleanable.dirty.ratio')),
    )


def _magic(state: ClusterState, topic: str) -> int:
    """Return the message format of a topic; from 3.0 on only one is left."""
    release = state.release
    if release.version < (0, 10) or release.version >= (3, 0):
        return release.highest_magic
    text = topic_config(state, topic, 'message.format.version')
    number: Tuple[int, ...] = tuple(int(part) for part in re.findall('[0-9]+', text)[:2])
    return 0 if number < (0, 10) else 1 if number < (0, 11) else 2
