"""Where the embedded broker answers otherwise than a real one, and why that stays so."""

from __future__ import annotations

import re
from typing import Any, Callable, List, NamedTuple, Optional, Tuple


class Deviation(NamedTuple):
    """``where`` and ``path`` are regular expressions for the whole of both; ``since`` and ``until``
    the first and last release that it is about; ``holds`` gets the real and the embedded value.
    """

    where: str
    path: str
    reason: str
    since: Tuple[int, ...] = ()
    until: Tuple[int, ...] = (99,)
    holds: Optional[Callable[[Any, Any], bool]] = None

    def explains(self, difference: Any, version: Tuple[int, ...]) -> bool:
        """Tell whether it is about a difference in a release."""
        return bool(
            self.since <= version <= self.until
            and re.fullmatch(self.where, difference.where)
            and re.fullmatch(self.path, difference.path)
            and (self.holds is None or self.holds(difference.real, difference.ours))
        )


def _is_filling(real: Any, ours: Any) -> bool:
    return isinstance(real, dict) and set(real) == {'cut_off_bytes'} and ours == '<absent>'


def _is_empty_topic(real: Any, ours: Any) -> bool:
    return isinstance(real, dict) and real.get('partitions') == [] and ours == '<absent>'


def _is_failure(real: Any, ours: Any) -> bool:
    return real in (-1, 'silent', '<absent>') and ours != real


def _is_absent(real: Any, ours: Any) -> bool:
    return '<absent>' in (real, ours)


def _are_neighbours(real: Any, ours: Any) -> bool:
    return isinstance(real, int) and isinstance(ours, int) and abs(real - ours) == 1


DEVIATIONS: List[Deviation] = [
    Deviation(
        r'null-records-.*|malformed-.*/produce negative bytes',
        r'outcome',
        'real brokers fail inside, and whether the answer or the close comes first is chance',
    ),
    Deviation(
        r'.*',
        r'responses.*\.records\[#\d+\]',
        'real brokers fill up converted records to the size of the stored ones with a piece of a'
        ' message that no reader can use (KIP-283)',
        since=(2, 0),
        holds=_is_filling,
    ),
    Deviation(
        r'log-dirs-.*',
        r'results\[.*\]\.topics\[.*\]',
        'brokers with ZooKeeper list every topic, with the partitions that were asked for or none',
        until=(3, 2),
        holds=_is_empty_topic,
    ),
    Deviation(
        r'quorum-.*',
        r'topics.*\.(leader_epoch|high_watermark|log_end_offset)',
        'how often the quorum voted and what its log holds is no part of the script',
    ),
    Deviation(
        r'describe-configs-.*',
        r'results.*\.configs\[(offsets\.topic\.num\.partitions|auto\.create\.topics\.enable'
        r'|default\.replication\.factor)\].*',
        'set for the real brokers here: servers/eras/common/common.properties',
    ),
    Deviation(
        r'(fetch|read-back-in-old-formats)-1-v[0-3]/.*',
        r'outcome|responses\[.*\]\.partitions\[0\]\.(error_code|high_watermark|records.*)',
        '0.11 fails to convert records that have headers, and a fetch that waits for more of them'
        ' is never answered; 1.0 does both',
        since=(0, 11),
        until=(0, 11),
        holds=_is_failure,
    ),
    # What differs between two runs of one real release, too: 4.4.0 was recorded twice.
    Deviation(
        r'(create-(topics|partitions)|delete-topics)-.*/metadata',
        r'topics\[.*\](\.partitions\[.*\]|\.error_code)',
        'the metadata of a KRaft broker follows the answer of its controller, now and then later',
        since=(3, 3),
    ),
    Deviation(
        r'(consumer|share|streams)-group-.*',
        r'groups\[.*\]\.(group|assignment)_epoch',
        'a heartbeat may find that the metadata or the share state of the group has moved on',
        since=(4, 0),
        holds=_are_neighbours,
    ),
    Deviation(
        r'share-group-.*/fetch at once',
        r'responses\[.*\]',
        'the first fetch may come back before the share partition is initialized',
        since=(4, 1),
        holds=_is_absent,
    ),
    Deviation(
        r'share-group-.*/fetch at once',
        r'responses\[.*\]\.partitions\[0\]\.error_(code|message)',
        'the first fetch of all finds no coordinator, whose topic is only just being created',
        since=(4, 1),
        holds=lambda real, ours: real in (-1, '<text>') and ours in (0, None),
    ),
    Deviation(
        r'share-group-.*/acknowledge nothing acquired',
        r'responses\[.*\]\.partitions\[0\]\.error_code',
        'before the share partition is initialized it is unknown, afterwards nothing is acquired',
        since=(4, 1),
        holds=lambda real, ours: {real, ours} == {3, 121},
    ),
]
