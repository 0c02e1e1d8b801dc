"""The reset policy: where reading begins without a position, as auto_offset_reset says.

Reads the words of the option, and returns the timestamp for ListOffsets. A policy is one of the
numbers of 1.x (EARLIEST, LATEST, NONE) or a ByDuration (KIP-1106). Pure.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Union

from kafka.errors import InvalidOptionError

__all__ = ['EARLIEST', 'LATEST', 'NONE', 'ByDuration', 'ResetPolicy', 'read_policy', 'timestamp_of']

# As OffsetResetStrategy of 1.x; the first two are also the times of ListOffsets.
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
#: Longer than any log; a number that all brokers can take.
_LONGEST_MS = 2**62


class ByDuration(NamedTuple):
    """Begin with the first record that is no older than so many milliseconds."""

    milliseconds: int


ResetPolicy = Union[int, ByDuration]


def read_policy(word: Any) -> ResetPolicy:
    """Return what a word of auto_offset_reset means; NONE for one that is not known.

    Arguments: word: 'earliest', 'latest' or by its older name, 'by_duration:<ISO 8601>' as in
    by_duration:P1DT12H (days, hours, minutes, seconds); one of the numbers, or what this returns.

    Raises InvalidOptionError for a duration that is none, or negative.
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
            'auto_offset_reset=by_duration:%.50s: write the duration as ISO 8601 has it, not'
            ' negative, such as by_duration:P7D or by_duration:PT1H30M' % duration
        )
    days, hours, minutes, seconds = (part or '0' for part in found.groups())
    whole, _, fraction = seconds.replace(',', '.').partition('.')
    parts = zip((days, hours, minutes, whole), _SECONDS)
    total = sum(int(part[:18]) * each for part, each in parts) * 1000
    return min(_LONGEST_MS, total + int((fraction + '000')[:3]))


def timestamp_of(policy: ResetPolicy, wall: float) -> int:
    """Return the time to ask ListOffsets for: -1, -2, or milliseconds since 1970.

    Arguments: wall: seconds since 1970 by the clock of this machine.
    """
    if isinstance(policy, ByDuration):
        return max(0, int(wall * 1000) - policy.milliseconds)
    return policy
