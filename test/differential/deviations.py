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


def _is_filling(value: Any) -> bool:
    return isinstance(value, int) or value == '<absent>' or set(value) == {'cut_off_bytes'}


def _is_absent(real: Any, ours: Any) -> bool:
    return '<absent>' in (real, ours)


def _are_neighbours(real: Any, ours: Any) -> bool:
    return isinstance(real, int) and isinstance(ours, int) and abs(real - ours) == 1


def _are_positive(real: Any, ours: Any) -> bool:
    return isinstance(real, int) and isinstance(ours, int) and min(real, ours) > 0


#: Where a broker's setting comes from.
STATIC, DEFAULT = 4, 5

DEVIATIONS: List[Deviation] = [
    Deviation(
        r'null-records-0-v\d+/ask|malformed-3-v\d+/produce negative bytes',
        r'outcome',
        'real brokers fail inside: whether the answer or the close comes first is chance, and some'
        ' do neither',
        holds=lambda real, ours: real in ('closed', 'silent') and ours == 'answer',
    ),
    Deviation(
        r'read-back-in-old-formats-.*',
        r'responses.*\.records\[#\d+\](\.cut_off_bytes)?',
        'brokers fill up converted records to the size of the stored ones (KIP-283), and gzip makes'
        ' other sizes in Java than in Python',
        since=(2, 0),
        until=(3, 9, 99),
        holds=lambda real, ours: all(map(_is_filling, (real, ours))),
    ),
    Deviation(
        r'quorum-55-v\d/ask',
        r'topics\[__cluster_metadata\]\.partitions\[0\]'
        r'\.(leader_epoch|high_watermark|current_voters\[0\]\.log_end_offset)',
        'how often the quorum voted and what its log holds is no part of the script',
        since=(3,),
        holds=_are_positive,
    ),
    Deviation(
        r'describe-configs-32-v\d/of the broker',
        r'results\[4 0\]\.configs\[(auto\.create\.topics\.enable'
        r'|default\.replication\.factor)\]\.(is_default|config_source)',
        'set for the real brokers here, to the default: servers/eras/common/common.properties',
        since=(0, 11),
        holds=lambda real, ours: (real, ours) in ((False, True), (STATIC, DEFAULT)),
    ),
    Deviation(
        r'(waiting-)?fetch-1-v[0-3]/(wait for more|woken|write more)',
        r'outcome|responses.*\.(error_code|base_offset)',
        '0.11 cannot convert records that have headers; if it finds that after a wait, nothing is'
        ' ever answered, and the error goes to who wrote them',
        since=(0, 11),
        until=(0, 11, 99),
        holds=lambda real, ours: real in ('silent', -1),
    ),
    Deviation(
        r'broker-settings-33-v0/told of broker 0 at last',
        r'results\[4 0\]\.configs\[log\.segment\.delete\.delay\.ms\]\.value',
        '1.1 calls a setting that was taken back a default, and goes on telling its value',
        since=(1, 1),
        until=(1, 1, 99),
        holds=lambda real, ours: (real, ours) == ('50000', '60000'),
    ),
    Deviation(
        r'denied-50-v0/ask',
        r'outcome',
        'a KRaft broker fails inside when it refuses to tell of SCRAM users, and says nothing',
        since=(3, 5),
        holds=lambda real, ours: (real, ours) == ('silent', 'answer'),
    ),
    # What differs between two runs of one real release, too: 4.4.0 was recorded twice.
    Deviation(
        r'(consumer|share|streams)-group-.*',
        r'groups\[.*\]\.(group|assignment)_epoch',
        'a heartbeat may find that the metadata or the share state of the group has moved on',
        since=(4, 0),
        holds=_are_neighbours,
    ),
    Deviation(
        r'share-members-.*/read on',
        r'responses\[.*',
        'what another member gave back may not be there yet: two recordings differ',
        since=(4, 1),
        holds=_is_absent,
    ),
    Deviation(
        r'share-group-.*/fetch at once|share-sessions-.*/unknown group',
        r'responses\[[^\]]*\]',
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
