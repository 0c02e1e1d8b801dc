"""SASLprep (RFC 4013): one form for names and passwords that look the same.

The tables of stringprep (RFC 3454) are the standard library's module of that name, which is exact
(Unicode 3.2), needs nothing to be installed and stays as long as the codec ``idna``, which is built
on it. Packages that offer SASLprep use the same tables.
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
    """Return a text as SASLprep writes it.

    Arguments: allow_unassigned: whether characters younger than Unicode 3.2 may stay, as they may
    in queries (names), but not in what is stored (passwords).

    Raises ValueError, which shows nothing of the text, for one that the profile forbids.
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
    """Check that a text with letters of scripts from right to left has no others (RFC 3454, 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError('the text mixes scripts of both directions')
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError('a text from right to left begins and ends with such a character')
