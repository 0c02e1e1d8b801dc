"""The reset policy (option auto_offset_reset): the offset to begin at without a position.

Parses the values of the option, and returns the timestamp for ListOffsets. A policy is one of the
numbers of 1.x (EARLIEST, LATEST, NONE) or a ByDuration (KIP-1106). Pure.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Union

from kafka.errors import InvalidOptionError

__all__ = ['EARLIEST', 'LATEST', 'NONE', 'ByDuration', 'ResetPolicy', 'read_policy', 'timestamp_of']

# As OffsetResetStrategy of 1.x; the first two are also timestamps of ListOffsets.
LATEST, EARLIEST, NONE = -1, -2, 0

_WORDS = {
    'earliest': EARLIEST,
    'smallest': EARLIEST,
    'latest': LATEST,
    'largest': LATEST,
    'none': NONE,
}
_BY_DURATION = 'by_duration:'
_ISO_8601 = re.compile(
    r'P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{1,9})?)S)?)?\Z', re.ASCII
)
_SECONDS = (86400, 3600, 60, 1)
#: Longer than any log, and a number that all brokers accept.
_LONGEST_MS = 2**62


class ByDuration(NamedTuple):
    """Begin with the first record that is at most this number of milliseconds old."""

    milliseconds: int


ResetPolicy = Union[int, ByDuration]


def read_policy(word: Any) -> ResetPolicy:
    """Return the policy for a value of auto_offset_reset; NONE for an unknown one.

    Arguments: word: 'earliest', 'latest' or their older names 'smallest', 'largest';
    'by_duration:<ISO 8601>' such as by_duration:P1DT12H (days, hours, minutes, seconds); one of the
    numbers, or a ResetPolicy.

    Raises InvalidOptionError for a malformed or negative duration.
    """
    if isinstance(word, ByDuration):
        return word
    if isinstance(word, int) and not isinstance(word, bool):
        return word if word in (EARLIEST, LATEST) else NONE
    if not isinstance(word, str):
        return NONE
    if word.startswith(_BY_DURATION):
        return ByDuration(_milliseconds(word[len(_BY_DURATION) :]))
    return _WORDS.get(word, NONE)


def _milliseconds(duration: str) -> int:
    found = _ISO_8601.match(duration.upper())
    if found is None or not any(found.groups()):
        raise InvalidOptionError(
            'auto_offset_reset=by_duration:%.50s: expected a duration of ISO 8601 that is'
            ' not negative, such as by_duration:P7D or by_duration:PT1H30M' % duration
        )
    days, hours, minutes, seconds = (part or '0' for part in found.groups())
    whole, _, fraction = seconds.replace(',', '.').partition('.')
    parts = zip((days, hours, minutes, whole), _SECONDS)
    total = sum(int(part[:18]) * each for part, each in parts) * 1000
    return min(_LONGEST_MS, total + int((fraction + '000')[:3]))


def timestamp_of(policy: ResetPolicy, wall: float) -> int:
    """Return the timestamp for ListOffsets: -1, -2, or milliseconds since 1970.

    Arguments: wall: the time of this machine, in seconds since 1970.
    """
    if isinstance(policy, ByDuration):
        return max(0, int(wall * 1000) - policy.milliseconds)
    return policy
