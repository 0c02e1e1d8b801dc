"""SASLprep (RFC 4013): normalization of names and passwords that look the same.

The tables of RFC 3454 are those of the standard library's module stringprep: it has the exact
version (Unicode 3.2), needs no installation, and is kept as long as the codec ``idna``, which is
built on it. Packages that offer SASLprep use the same tables. Pure.
"""

from __future__ import annotations

import stringprep
from unicodedata import ucd_3_2_0

__all__ = ['saslprep']

_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(text: str, allow_unassigned: bool = False) -> str:
    """Return a text in the form of SASLprep.

    Arguments: allow_unassigned: whether code points that Unicode 3.2 does not assign are allowed:
    they are in queries (names), but not in stored strings (passwords).

    Raises ValueError, whose text does not show the argument, for a text that the profile prohibits.
    """
    if text.isascii() and text.isprintable():
        return text
    mapped = ''.join(
        ' ' if stringprep.in_table_c12(each) else each
        for each in text
        if not stringprep.in_table_b1(each)
    )
    prepared = ucd_3_2_0.normalize('NFKC', mapped)
    for each in prepared:
        if any(is_in(each) for is_in in _PROHIBITED):
            raise ValueError('the text has a character that SASLprep forbids')
        if not allow_unassigned and stringprep.in_table_a1(each):
            raise ValueError('the text has a character that Unicode 3.2 does not know')
    _check_directions(prepared)
    return prepared


def _check_directions(text: str) -> None:
    """Check that a text with right-to-left letters has no left-to-right ones (RFC 3454, 6).

    It must also begin and end with a right-to-left letter. Raises ValueError.
    """
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError('the text mixes scripts of both directions')
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError('a text from right to left begins and ends with such a character')
